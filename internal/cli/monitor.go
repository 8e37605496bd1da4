package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/cli/accesslog"
	"github.com/tenantcontent/tenantcontent/metrics"
)

// monitoring has the settings of what operators watch a server by. Each address is a listener of
// its own, so that the public one serves neither metrics nor profiles.
type monitoring struct {
	MetricsListen string `env:"TENANTCONTENT_METRICS_LISTEN" help:"Address of /metrics." placeholder:"HOST:PORT"`
	PprofListen   string `env:"TENANTCONTENT_PPROF_LISTEN" help:"Address of Go profiles." placeholder:"HOST:PORT"`
	AccessLog     string `env:"TENANTCONTENT_ACCESS_LOG" help:"File with a line for each request, or stdout or stderr." placeholder:"FILE"`
}

// observers are what a server is observed by, each of them nil if it is off.
type observers struct {
	metrics *metrics.Metrics
	access  *accesslog.Log
}

// observe sets the Observer of a Config to the metrics and the access log, as far as they are
// configured. end writes what is left of the access log.
// Errors: errs.Invalid for an access log that cannot be opened.
func (m monitoring) observe(lib *tenantcontent.Config, t terminal) (all observers, end func(), err error) {
	end = func() {}
	if m.MetricsListen != "" {
		scheme, _, _ := strings.Cut(lib.BaseURL, ":")
		all.metrics = metrics.New(metrics.Options{URLScheme: scheme, Version: version()})
		lib.Observer = all.metrics
	}
	switch m.AccessLog {
	case "":
		return all, end, nil
	case "stdout":
		all.access = accesslog.New(t.out, lib.Log)
	case "stderr":
		all.access = accesslog.New(t.err, lib.Log)
	default:
		if all.access, err = accesslog.Open(m.AccessLog, lib.Log); err != nil {
			return all, end, errs.Wrap(errs.Invalid, err, "--access-log: cannot write %s: %v", m.AccessLog, err)
		}
	}
	lib.Observer = entity.Observers(lib.Observer, all.access)
	lib.Warnings = all.access.Warnings
	return all, func() {
		if err := all.access.Close(); err != nil {
			lib.Log.Error("the access log was not written to its end", "err", err)
		}
	}, nil
}

// serve serves what is configured until stop is called, which waits for the answers that are being
// written. The addresses are those that check accepts. Errors: errs.Invalid for an address that
// cannot be listened on.
func (m monitoring) serve(lib tenantcontent.Config, all observers) (stop func(), err error) {
	var servers []*http.Server
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), linger)
		defer cancel()
		for _, s := range servers {
			_ = s.Shutdown(ctx)
			_ = s.Close()
		}
	}
	start := func(flag, address, what string, handler http.Handler) error {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return errs.Wrap(errs.Invalid, err, "--%s: cannot listen on %s: %v", flag, address, err)
		}
		server := &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute,
			ErrorLog: slog.NewLogLogger(lib.Log.Handler(), slog.LevelWarn),
		}
		servers = append(servers, server)
		lib.Log.Info("serving "+what, "address", reachable(listener.Addr().String()))
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				lib.Log.Error("serving "+what+" has ended", "err", err)
			}
		}()
		return nil
	}
	if m.MetricsListen != "" {
		err = start("metrics-listen", m.MetricsListen, "metrics", exposition(lib, all))
	}
	if err == nil && m.PprofListen != "" {
		err = start("pprof-listen", m.PprofListen, "profiles", profiles())
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// check returns errs.Invalid for an address that cannot be listened on, and for one that would
// serve profiles to other machines: they show what is in memory.
func (m monitoring) check() error {
	if m.MetricsListen != "" {
		if _, err := net.ResolveTCPAddr("tcp", m.MetricsListen); err != nil {
			return errs.Wrap(errs.Invalid, err, "--metrics-listen: cannot listen on %s: %v", m.MetricsListen, err)
		}
	}
	if m.PprofListen == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(m.PprofListen); err != nil {
		return errs.Wrap(errs.Invalid, err, "--pprof-listen: %v", err)
	}
	if !loopback(m.PprofListen) {
		return errs.New(
			errs.Invalid, "--pprof-listen: %s is not a loopback address, such as 127.0.0.1: profiles show what is in "+
				"the memory of the server. Forward a port of your own to it.", m.PprofListen,
		)
	}
	return nil
}

// loopback reports whether an address, with a port or without, is localhost or a loopback address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// exposition serves /metrics: those of the App, its connections to the database, Go and the
// process.
func exposition(lib tenantcontent.Config, all observers) http.Handler {
	mux := http.NewServeMux()
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		all.metrics, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(lib.DB.DB, "main"),
	)
	if all.access != nil {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "tenantcontent_access_log_lost_total", Help: "Lines of the access log that were not written.",
		}, func() float64 { return float64(all.access.Lost()) }))
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(lib.Log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4,
	}))
	return mux
}

// profiles serves /debug/pprof/ to clients that name a loopback address as the host, so that no
// page of a browser reads it by a name that resolves to this machine.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			http.Error(w, "Profiles are served to http://127.0.0.1 and http://localhost only.", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
