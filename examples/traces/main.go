// Traces is a program whose requests are traced: it sends the spans of OpenTelemetry to a receiver
// of OTLP over HTTP, such as a collector, Jaeger or Tempo.
//
//	OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 go run ./examples/traces
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func main() {
	folder, err := os.MkdirTemp("", "traces")
	if err != nil {
		log.Fatal(err)
	}
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://127.0.0.1:4318")
	err = run(context.Background(), folder, endpoint, os.Stdout)
	if err := os.RemoveAll(folder); err != nil {
		log.Print(err)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, folder, endpoint string, out io.Writer) (err error) {
	// The exporter of otlp.go keeps gRPC out of this module. A program that does not mind has
	//	exporter, err := otlptracehttp.New(ctx)
	exporter := &exporter{endpoint: endpoint, client: http.DefaultClient}
	provider := sdktrace.NewTracerProvider(
		// in the background, so that requests do not wait
		sdktrace.WithBatcher(exporter),
		// 0.01 for one in a hundred
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(1))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "example"))),
	)
	defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }() // sends what is left

	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := tenantcontent.Migrate(ctx, db); err != nil {
		return err
	}
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKeyFile: filepath.Join(folder, "secret.key"), TracerProvider: provider,
		Log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{
			Level: slog.LevelDebug, ReplaceAttr: onlyTraces, // trace_id is in each line of a request
		})),
		Authenticate: func(*http.Request) (actor.Actor, error) {
			return actor.Actor{Tenant: "acme", User: "admin", Superuser: true}, nil
		},
	})
	if err != nil {
		return err
	}
	defer app.Close()
	if _, err := app.AddTenant(ctx, tenants.Tenant{ID: "acme"}, "a long password"); err != nil {
		return err
	}
	server := httptest.NewServer(app)
	defer server.Close()
	// A caller that is traced itself sends traceparent: the span of the request is in its trace.
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/colors?limit=5", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	server.Close() // waits until the log has its line
	_, err = fmt.Fprintln(out, answer.StatusCode)
	return err
}

// onlyTraces leaves out of the log what differs from run to run.
func onlyTraces(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.MessageKey, "path", "status", "trace_id":
		return a
	}
	return slog.Attr{}
}
