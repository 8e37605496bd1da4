package tracing_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/tracing"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// recording returns an Observer and what records its spans.
func recording(sampler sdktrace.Sampler) (entity.Observer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sampler))
	return tracing.New(provider, "sqlite"), spans
}

// do does work, with more inside of it.
func do(ctx context.Context, to entity.Observer, o entity.Observation, inside func(context.Context)) {
	ctx = entity.Begin(ctx, to, o.Work, o.Kind)
	inside(ctx)
	entity.Observe(ctx, to, o)
}

func nothing(context.Context) {}

// attributes returns the attributes of a span as text.
func attributes(s sdktrace.ReadOnlySpan) string {
	var all []string
	for _, a := range s.Attributes() {
		all = append(all, string(a.Key)+"="+a.Value.Emit())
	}
	return strings.Join(all, " ")
}

func TestSpansOfWork(t *testing.T) {
	is := is.New(t)
	to, spans := recording(sdktrace.AlwaysSample())
	r, err := http.NewRequestWithContext(t.Context(), "GET", "/api/colors/red?token=secret", nil)
	is.NoErr(err)
	r.Header.Set("Traceparent", parent)
	ctx := entity.Begin(tracing.Extract(t.Context(), r), to, entity.RequestWork, "GET")
	do(ctx, to, entity.Observation{Work: entity.CredentialWork, Kind: "cache", Outcome: entity.OK}, nothing)
	do(ctx, to, entity.Observation{
		Work: entity.HandlerWork, Kind: "server /x", Outcome: "thrown",
	}, func(ctx context.Context) {
		do(ctx, to, entity.Observation{Work: entity.StatementWork, Kind: "SELECT", Outcome: entity.OK}, nothing)
	})
	do(ctx, to, entity.Observation{Work: entity.ModelWork, Kind: "chat", Outcome: entity.OK}, nothing)
	entity.Observe(ctx, to, entity.Observation{
		Work: entity.RequestWork, Kind: "GET /api/colors/{key}", Method: "GET", Status: 404,
		Outcome: string(errs.NotFound), Tenant: "acme", User: "jo", UserAgent: "curl",
	})
	all := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range spans.Ended() {
		all[s.Name()] = s
		is.Equal(s.SpanContext().TraceID().String(), "4bf92f3577b34da6a3ce929d0e0e4736")
	}
	is.Equal(len(all), 4)
	server, handler := all["GET /api/colors/{key}"], all["handler server /x"]
	is.Equal(server.Parent().SpanID().String(), "00f067aa0ba902b7")
	is.Equal(server.SpanKind(), trace.SpanKindServer)
	is.Equal(server.Status().Code, codes.Unset) // 404 is the client's
	is.Equal(attributes(server), "tenantcontent.tenant=acme error.type=not_found http.request.method=GET "+
		"http.route=/api/colors/{key} http.response.status_code=404")
	is.Equal(handler.Parent().SpanID(), server.SpanContext().SpanID())
	is.Equal(handler.Status().Code, codes.Error)
	is.Equal(all["SELECT"].Parent().SpanID(), handler.SpanContext().SpanID())
	is.Equal(attributes(all["SELECT"]), "db.system.name=sqlite db.operation.name=SELECT")
	is.Equal(all["chat"].SpanKind(), trace.SpanKindClient)
}

// TestSpansWithoutParent: jobs and the like have one of their own, statements of background work
// have none.
func TestSpansWithoutParent(t *testing.T) {
	is := is.New(t)
	to, spans := recording(sdktrace.AlwaysSample())
	for _, work := range []entity.Work{
		entity.JobWork, entity.ScanWork, entity.ArchiveWork, entity.StatementWork, entity.TurnWork, entity.TaskWork,
		entity.CredentialWork, "something new",
	} {
		do(t.Context(), to, entity.Observation{Work: work, Kind: "x", Outcome: string(errs.Unavailable)}, nothing)
	}
	var names []string
	for _, s := range spans.Ended() {
		names = append(names, s.Name())
		is.Equal(s.Status().Code, codes.Error)
	}
	is.Equal(names, []string{"job x", "scan x", "archive x"})
}

// TestUnknownRequest: neither its path nor a method that a client makes up is in a name.
func TestUnknownRequest(t *testing.T) {
	is := is.New(t)
	to, spans := recording(sdktrace.AlwaysSample())
	o := entity.Observation{Work: entity.RequestWork, Method: "BREW", Status: 503, Outcome: string(errs.Unavailable)}
	ctx := entity.Begin(t.Context(), to, o.Work, o.Method)
	entity.Observe(ctx, to, o)
	entity.Observe(ctx, to, o) // it has ended
	is.Equal(len(spans.Ended()), 1)
	is.Equal(spans.Ended()[0].Name(), "HTTP")
	is.Equal(spans.Ended()[0].Status().Code, codes.Error)
	is.True(strings.Contains(attributes(spans.Ended()[0]), "http.request.method=_OTHER"))
}

// TestNotSampled: what is inside of a request that is not sampled costs nothing, also if the caller
// has decided so.
func TestNotSampled(t *testing.T) {
	is := is.New(t)
	to, spans := recording(sdktrace.ParentBased(sdktrace.NeverSample()))
	ctx := entity.Begin(t.Context(), to, entity.RequestWork, "GET")
	is.True(tracing.ID(ctx) != "") // it has an id for the log all the same
	statement := entity.Observation{Work: entity.StatementWork, Kind: "SELECT", Outcome: entity.OK}
	is.Equal(testing.AllocsPerRun(100, func() { do(ctx, to, statement, nothing) }), 0.0)
	entity.Observe(ctx, to, entity.Observation{Work: entity.RequestWork, Status: 200, Outcome: entity.OK})
	is.Equal(len(spans.Ended()), 0)
}

func TestExtract(t *testing.T) {
	is := is.New(t)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
	is.NoErr(err)
	is.Equal(tracing.ID(tracing.Extract(t.Context(), r)), "")
	is.Equal(testing.AllocsPerRun(100, func() { tracing.Extract(r.Context(), r) }), 0.0)
	for _, bad := range []string{"", "00", "x", parent + "x", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"} {
		r.Header.Set("Traceparent", bad)
		is.Equal(tracing.ID(tracing.Extract(t.Context(), r)), "")
	}
	r.Header.Set("Traceparent", parent)
	is.Equal(tracing.ID(tracing.Extract(t.Context(), r)), "4bf92f3577b34da6a3ce929d0e0e4736")
	own := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
	is.Equal(tracing.Extract(own, r), own) // the host has begun a span
}

func TestInject(t *testing.T) {
	is := is.New(t)
	state, err := trace.ParseTraceState("other=secret")
	is.NoErr(err)
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state,
	}))
	h := http.Header{}
	tracing.Inject(ctx, h)
	is.Equal(h, http.Header{"Traceparent": {"00-01000000000000000000000000000000-0200000000000000-01"}})
	h.Set("Traceparent", "own")
	tracing.Inject(ctx, h)
	is.Equal(h.Get("Traceparent"), "own")
	h = http.Header{}
	tracing.Inject(t.Context(), h)
	is.Equal(len(h), 0)
}

func TestHandler(t *testing.T) {
	is := is.New(t)
	var out bytes.Buffer
	log := slog.New(tracing.Handler(slog.NewTextHandler(&out, nil))).With("a", 1)
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
	log.InfoContext(ctx, "with", "b", 2)
	is.True(strings.HasSuffix(
		out.String(), "a=1 b=2 trace_id=01000000000000000000000000000000 span_id=0200000000000000\n",
	))
	out.Reset()
	log.InfoContext(t.Context(), "without")
	is.True(!strings.Contains(out.String(), "trace_id"))
}

func TestNoProvider(t *testing.T) {
	is := is.New(t)
	is.Equal(tracing.New(nil, "sqlite"), nil)
	is.True(tracing.New(noop.NewTracerProvider(), "sqlite") != nil)
}
