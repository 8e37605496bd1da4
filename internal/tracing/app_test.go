package tracing_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/secure/agefile"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/metrics"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func TestMain(m *testing.M) {
	javascript.Child()
	agefile.SetWorkFactor(10)
	os.Exit(m.Run())
}

// world is an App with a tenant, and what records its spans and log.
type world struct {
	*tenantcontent.App
	admin context.Context
	token string
	spans *tracetest.SpanRecorder
	log   *logtest.Buffer
}

// take returns the spans that have ended as "name < parent", sorted, each once, and forgets them.
func (w world) take() []string {
	all := w.spans.Ended()
	w.spans.Reset()
	names := map[string]string{}
	for _, s := range all {
		names[s.SpanContext().SpanID().String()] = s.Name()
	}
	var out []string
	for _, s := range all {
		line := s.Name()
		if s.Parent().IsValid() {
			line += " < " + names[s.Parent().SpanID().String()]
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// serve returns the status and body of a request with traceparent.
func (w world) serve(method, path, body string) (int, string) {
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	r.Header.Set("Traceparent", parent)
	r.Header.Set("Authorization", "Bearer "+w.token)
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String()
}

func open(t *testing.T, open dbtest.Opener) world {
	t.Helper()
	is := is.New(t)
	w := world{spans: tracetest.NewSpanRecorder(), log: &logtest.Buffer{}}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
	w.admin = actor.With(t.Context(), actor.Actor{Tenant: "ours", User: "admin", Superuser: true, AI: true})
	var err error
	w.App, err = tenantcontent.Open(tenantcontent.Config{
		DB: open(t), SecretKey: tenantcontent.NewSecretKey(), TracerProvider: provider,
		Log:     slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Scripts: javascript.New(javascript.Options{}),
		Workers: []tenantcontent.Worker{{
			Kind: "mine", Do: func(ctx context.Context, _ queue.Job) error {
				_, err := w.Colors.Get(actor.With(ctx, actor.Actor{Tenant: "ours", User: "admin"}), "red")
				return err
			},
		}},
	})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(w.Close()) })
	_, err = w.AddTenant(t.Context(), tenants.Tenant{
		ID: "ours", Settings: tenants.Settings{Licenses: []string{"apps"}},
	}, "correct horse battery")
	is.NoErr(err)
	_, err = w.Tenants.Unchecked().Rekey(t.Context()) // the tenants of dbtest have no check of the key
	is.NoErr(err)
	_, w.token, err = w.Sessions.CreateToken(w.admin, sessions.TokensOf{Type: sessions.Personal}, sessions.NewToken{})
	is.NoErr(err)
	w.spans.Reset()
	return w
}

func TestSpansOfRequests(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, w := is.New(t), open(t, opener)
		const canary = "canary7f3a"
		status, _ := w.serve("PUT", "/api/colors/red", `{"color":"#ff0000"}`)
		is.Equal(status, http.StatusOK)
		names := w.take()
		is.True(slices.Contains(names, "PUT /api/colors/{key} < "))
		is.True(len(names) > 1)
		for _, name := range names[1:] {
			if !strings.HasSuffix(name, " < PUT /api/colors/{key}") && name != "PUT /api/colors/{key} < " {
				t.Errorf("%q is not a span of the request: %q", name, names)
			}
		}
		status, _ = w.serve("GET", "/api/colors/"+canary+"?fields="+canary, "")
		is.True(status >= 400)
		status, _ = w.serve("GET", "/api/"+canary, "")
		is.Equal(status, http.StatusNotFound)
		for _, s := range w.spans.Ended() {
			is.Equal(s.SpanContext().TraceID().String(), parent[3:35])
			is.True(!strings.Contains(s.Name()+attributes(s)+s.Status().Description, canary))
		}
		is.True(strings.Contains(w.log.String(), "trace_id="+parent[3:35]))
	})
}

func TestSpansOfArchivesAndJobs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, w := is.New(t), open(t, opener)
		_, err := w.Colors.Put(w.admin, "red", "#ff0000")
		is.NoErr(err)
		b, err := w.Bundles.Create(w.admin, bundles.Bundle{Name: "All"})
		is.NoErr(err)
		_, err = w.Bundles.CreateEntry(w.admin, b.ID, bundles.Entry{Type: "global", EntityID: "color"})
		is.NoErr(err)
		w.take()
		export, err := w.Bundles.Export(w.admin, b.ID)
		is.NoErr(err)
		var archive bytes.Buffer
		is.NoErr(export.Write(w.admin, &archive))
		is.Equal(w.take(), []string{"SELECT < archive export", "archive export"})
		_, err = w.Bundles.Import(w.admin, bytes.NewReader(archive.Bytes()), bundles.ImportOptions{})
		is.NoErr(err)
		names := w.take()
		is.True(slices.Contains(names, "archive import") && slices.Contains(names, "SELECT < archive import"))
		_, err = w.ExportTenant(t.Context(), "ours", io.Discard, tenantcontent.TenantTransfer{
			Passphrase: "a long passphrase",
		})
		is.NoErr(err)
		is.True(slices.Contains(w.take(), "SELECT < archive tenant export"))

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		is.NoErr(w.Queue().Put(t.Context(), queue.Job{Tenant: "ours", Kind: "mine"}))
		for range 3000 {
			if len(w.spans.Ended()) > 1 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		stop()
		is.NoErr(<-ended)
		is.Equal(w.take(), []string{"SELECT < job mine", "job mine"}) // nothing of the other background work
	})
}

func TestSpansOfHandlers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, w := is.New(t), open(t, opener)
		shop, err := w.Apps.Create(w.admin, apps.App{Name: "Shop", Type: "app"})
		is.NoErr(err)
		_, err = w.Apps.PutFile(w.admin, shop.ID, entity.File{
			Path: "webhooks/ping.js", ContentType: "text/javascript",
		}, strings.NewReader(
			`export function GET() { return {body: "pong"} }`,
		))
		is.NoErr(err)
		_, err = w.Apps.Deploy(w.admin, shop.ID, apps.PublishOptions{})
		is.NoErr(err)
		hooks := sessions.TokensOf{Type: sessions.Webhook, EntityID: shop.ID}
		token, _, err := w.Sessions.CreateToken(w.admin, hooks, sessions.NewToken{})
		is.NoErr(err)
		key, err := w.Webhooks.Keys(w.admin, shop.ID)
		is.NoErr(err)
		text, err := key(token.ID, token.CreatedAt)
		is.NoErr(err)
		w.take()
		status, body := w.serve("GET", "/api/apps/"+shop.ID+"/_hook/ping?token="+text, "")
		is.Equal(status, http.StatusOK)
		is.True(strings.Contains(body, "pong"))
		names := w.take()
		is.True(slices.Contains(names, "handler webhooks /ping < GET /api/apps/{id}/_hook/{path}"))
	})
}

// TestNoProviderCostsNothing: a request has as many allocations as before there were spans, and one
// with metrics no more than without.
func TestNoProviderCostsNothing(t *testing.T) {
	is := is.New(t)
	serve := func(c tenantcontent.Config) func() {
		c.DB, c.SecretKey = dbtest.SQLite(t), tenantcontent.NewSecretKey()
		app, err := tenantcontent.Open(c)
		is.NoErr(err)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/healthz", nil)
		r.Header.Set("X-Request-Id", "fixed")
		answer := nowhere{http.Header{}}
		return func() {
			clear(answer.header)
			app.ServeHTTP(answer, r)
		}
	}
	without := testing.AllocsPerRun(200, serve(tenantcontent.Config{}))
	with := testing.AllocsPerRun(200, serve(tenantcontent.Config{Observer: metrics.New(metrics.Options{})}))
	t.Logf("%v allocations without metrics, %v with", without, with)
	is.True(with <= without)
}

// nowhere is a http.ResponseWriter that allocates nothing.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
