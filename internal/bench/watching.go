package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/cli/accesslog"
	"github.com/tenantcontent/tenantcontent/metrics"
)

// watchMetrics reads single colors from 16 callers with metrics, beside the same without them.
func watchMetrics(_ context.Context, w *world) (result, error) {
	return w.watched("metrics", 0.98, tenantcontent.Config{Observer: metrics.New(metrics.Options{})})
}

// watchAccessLog is watchMetrics with an access log in a file.
func watchAccessLog(_ context.Context, w *world) (result, error) {
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	log, err := accesslog.Open(filepath.Join(folder, "access.log"), slog.Default())
	if err != nil {
		return result{}, err
	}
	r, err := w.watched("an access log", 0.9, tenantcontent.Config{Observer: log})
	if closed := log.Close(); err == nil {
		err = closed
	}
	return r, err
}

// watchTraces is watchMetrics with spans of one request in a hundred, which an exporter in memory
// gets.
func watchTraces(ctx context.Context, w *world) (result, error) {
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.01))),
		sdktrace.WithBatcher(tracetest.NewNoopExporter()),
	)
	defer func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) }()
	return w.watched("traces", 0.95, tenantcontent.Config{TracerProvider: provider})
}

// watched measures reads a second with a Config, at least must times those without what it adds.
func (w *world) watched(what string, must float64, c tenantcontent.Config) (result, error) {
	var sides [2]func() (float64, error)
	for i, config := range []tenantcontent.Config{c, {}} {
		config.DB, config.SecretKey = w.db, w.key
		app, err := tenantcontent.Open(config)
		if err != nil {
			return result{}, err
		}
		address, err := w.serve(app)
		if err != nil {
			return result{}, err
		}
		sides[i] = func() (float64, error) {
			return throughput(address, w.token, callers, 1500*time.Millisecond, func(c *caller, who, i int) error {
				_, err := c.do("GET", fmt.Sprintf("/api/colors/color-%06d", (who*631+i*7)%10000), "")
				return err
			})
		}
	}
	with, without, ratio, err := inTurn(sides[0], sides[1])
	return result{
		ours: perSecond(with), bare: perSecond(without) + " without " + what,
		ratio: ratio, must: fmt.Sprintf("≥ %.2f", must), met: ratio >= must,
	}, err
}
