// Package tracing makes OpenTelemetry spans of the work that an App does, and passes their context
// on: into the log, and to other servers.
//
// The root imports it, and internal/secure/egress.
package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenantcontent/tenantcontent/entity"
)

// scope is the name of the tracer.
const scope = "github.com/tenantcontent/tenantcontent"

// tracer is an Observer that makes a span of work.
type tracer struct {
	trace.Tracer
	database attribute.KeyValue
}

// New returns an Observer that makes spans with the provider, or nil if it is nil. database is what
// db.system.name of statements is.
//
// Requests, scans, archives, runs of handlers, jobs, calls of models and logins have spans.
// Statements and waits have them only within these. Look-ups of credentials and background tasks
// have none, nor does anything within a request that is not sampled.
func New(provider trace.TracerProvider, database string) entity.Observer {
	if provider == nil {
		return nil
	}
	return tracer{provider.Tracer(scope), attribute.String("db.system.name", database)}
}

// startedKey is the key of the *started of a context.
type startedKey struct{}

// started is a span of a tracer that is recorded and has not ended.
type started struct {
	trace.Span
	work   entity.Work
	around trace.Span // the parent
}

// The options of spans, so that none is made for each span.
var (
	ofServer   = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	ofClient   = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	ofConsumer = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	ofInternal = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal)}
)

// options returns the options of the span of work, nil if it has none.
func options(work entity.Work) []trace.SpanStartOption {
	switch work {
	case entity.RequestWork:
		return ofServer
	case entity.StatementWork, entity.ModelWork, entity.ScanWork:
		return ofClient
	case entity.JobWork:
		return ofConsumer
	case entity.HandlerWork, entity.ArchiveWork, entity.TurnWork, entity.LoginWork:
		return ofInternal
	}
	return nil
}

// Begin implements entity.Beginner.
func (t tracer) Begin(ctx context.Context, work entity.Work, kind string) context.Context {
	o := options(work)
	if o == nil {
		return ctx
	}
	if work != entity.RequestWork {
		around := trace.SpanContextFromContext(ctx)
		part := work == entity.StatementWork || work == entity.TurnWork
		if around.IsValid() && !around.IsSampled() || part && !around.IsValid() {
			return ctx
		}
	}
	if s, ok := ctx.Value(startedKey{}).(*started); ok && s.work == entity.StatementWork {
		ctx = trace.ContextWithSpan(ctx, s.around) // bun commits with the context of BEGIN
	}
	around := trace.SpanFromContext(ctx)
	ctx, span := t.Start(ctx, name(work, kind), o...)
	if !span.IsRecording() {
		return ctx
	}
	return context.WithValue(ctx, startedKey{}, &started{span, work, around})
}

// name returns the name of a span.
func name(work entity.Work, kind string) string {
	switch work {
	case entity.RequestWork:
		return method(kind)
	case entity.StatementWork, entity.ModelWork:
		return kind
	}
	return strings.TrimRight(string(work)+" "+kind, " ")
}

// method returns a method of HTTP as the name of a span. HTTP stands for those that are not known,
// which callers can make up.
func method(of string) string {
	switch of {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return of
	}
	return "HTTP"
}

// Observe implements entity.Observer.
func (t tracer) Observe(ctx context.Context, o entity.Observation) {
	span, ok := ctx.Value(startedKey{}).(*started)
	if !ok || span.work != o.Work || !span.IsRecording() {
		return
	}
	if o.Tenant != "" {
		span.SetAttributes(attribute.String("tenantcontent.tenant", o.Tenant))
	}
	failed := o.Outcome != entity.OK
	if failed {
		span.SetAttributes(attribute.String("error.type", o.Outcome))
	}
	switch o.Work {
	case entity.RequestWork:
		failed = o.Status >= http.StatusInternalServerError
		request(span, o)
	case entity.StatementWork:
		span.SetAttributes(t.database, attribute.String("db.operation.name", o.Kind))
	case entity.ModelWork:
		span.SetAttributes(attribute.String("gen_ai.operation.name", o.Kind))
	default:
		span.SetName(name(o.Work, o.Kind))
	}
	if failed {
		span.SetStatus(codes.Error, o.Outcome)
	}
	span.End()
}

// request sets what is known of a request at its end.
func request(span trace.Span, o entity.Observation) {
	if known := method(o.Method); known == "HTTP" {
		span.SetAttributes(attribute.String("http.request.method", "_OTHER"))
	} else {
		span.SetAttributes(attribute.String("http.request.method", known))
	}
	if _, route, ok := strings.Cut(o.Kind, " "); ok {
		span.SetName(o.Kind)
		span.SetAttributes(attribute.String("http.route", route))
	}
	if o.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", o.Status))
	}
}

// Extract returns a context with the span that the header traceparent of a request names, unless
// the context has a span.
func Extract(ctx context.Context, r *http.Request) context.Context {
	if r.Header["Traceparent"] == nil || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
}

// Inject sets the header traceparent of a request to another server, if the context has a span and
// the request has no such header. It passes no tracestate on: that of other systems is not for
// everyone.
func Inject(ctx context.Context, header http.Header) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() || header.Get("Traceparent") != "" {
		return
	}
	ctx = trace.ContextWithSpanContext(ctx, span.WithTraceState(trace.TraceState{}))
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// ID returns the id of the trace that a context belongs to, or "".
func ID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		return span.TraceID().String()
	}
	return ""
}

// Handler returns a slog.Handler that adds trace_id and span_id to what is logged with a context
// that has a span.
func Handler(h slog.Handler) slog.Handler { return handler{h} }

type handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(
			slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()),
		)
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
