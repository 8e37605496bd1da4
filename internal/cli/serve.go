package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/dblock"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/tracing"
)

// drain is how long a stopping server waits for running requests. linger is how long it then waits
// for connections that it closes when they are idle.
const (
	drain  = 30 * time.Second
	linger = time.Second
)

// defaultDelay is how long a server that others can reach serves requests after the signal to stop:
// a load balancer that asks /readyz each second, and needs several failures, has noticed by then.
const defaultDelay = 5 * time.Second

type serveCommand struct {
	config
	storage
	logging
	monitoring
	ShutdownDelay *stopDelay `env:"TENANTCONTENT_SHUTDOWN_DELAY" help:"How long /readyz is 503 before the server stops listening, such as 10s (default: 5s, 0s on a loopback address)." placeholder:"TIME"`
	AdminPassword string     `env:"TENANTCONTENT_ADMIN_PASSWORD" help:"First start: password of the superuser admin (default: a random one, printed once)." placeholder:"PASSWORD"`
}

// Run serves until ctx ends. It then stops accepting connections, waits for running requests and
// closes the database.
func (s *serveCommand) Run(ctx context.Context, t terminal) error {
	lib, err := s.library()
	if err != nil {
		return err
	}
	if _, err := net.ResolveTCPAddr("tcp", s.Listen); err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot listen on %s: %v", s.Listen, err)
	}
	if err := s.monitoring.check(); err != nil {
		return err
	}
	if err := s.make(); err != nil {
		return err
	}
	lib.Log = slog.New(tracing.Handler(s.logger(t.err).Handler()))
	if lib.AI, err = s.models(lib); err != nil {
		return err
	}
	lib.Skills = s.skills(lib)
	if s.MCPNetworks != "none" {
		lib.Log.Warn("TENANTCONTENT_MCP_NETWORKS is the old name of TENANTCONTENT_ALLOW_NETWORKS, and counts with " +
			"it: use that one")
	}
	if err := s.open(&lib); err != nil {
		return err
	}
	defer func() { _ = shut(&lib) }()
	if err := engines.Check(ctx, lib.DB); err != nil {
		return err
	}
	only, err := dblock.Serve(ctx, lib.DB, s.Listen)
	if err != nil {
		return err
	}
	defer func() { _ = only.Release() }()
	if err := tenantcontent.CheckSecretKeyFile(ctx, lib); err != nil {
		return err
	}
	all, end, err := s.observe(&lib, t)
	if err != nil {
		return err
	}
	defer end()
	app, err := tenantcontent.Open(lib)
	if err != nil {
		return err
	}
	defer func() { _ = app.Close() }()
	if err := tenantcontent.Migrate(ctx, lib.DB); err != nil {
		return err
	}
	if err := app.Ready(ctx); err != nil {
		return err
	}
	// A port in use is an error before the first start, which prints a password once.
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot listen on %s: %v", s.Listen, err)
	}
	defer func() { _ = listener.Close() }() // closed already if it has served
	stop, err := s.monitoring.serve(lib, all)
	if err != nil {
		return err
	}
	defer stop()
	url := address(listener.Addr().String(), lib.BaseURL)
	if err := app.Lock(ctx, url); err != nil {
		return err
	}
	defer func() { _ = app.Unlock() }()
	made, generated, err := app.FirstStart(ctx, s.AdminPassword)
	if err != nil {
		return err
	}
	if made {
		welcome(t, generated)
	}
	started(lib, url)
	return serve(ctx, listener, app, app, lib.Log, s.shutdownDelay())
}

// started logs the address of the server and, if apps have separate origins, theirs.
func started(lib tenantcontent.Config, url string) {
	if lib.AppOrigin == "" {
		lib.Log.Info("serving", "url", url)
		return
	}
	lib.Log.Info("serving", "url", url, "apps", lib.AppOrigin)
	if otherListener(lib.AppOrigin, lib.BaseURL) {
		lib.Log.Warn("the origin of apps has another scheme or port than the base URL: browsers find apps there "+
			"only if something forwards them to this server",
			"apps", lib.AppOrigin, "base", lib.BaseURL)
	}
}

// otherListener reports whether the origin of apps is on this machine, with another scheme or port
// than the base URL. Without a proxy, as on a developer's machine, nothing serves it.
func otherListener(apps, base string) bool {
	at, err := url.Parse(strings.Replace(apps, "{app}", "app", 1))
	if err != nil || at.Hostname() != "localhost" && !strings.HasSuffix(at.Hostname(), ".localhost") {
		return false
	}
	u, err := url.Parse(base)
	return err == nil && (at.Scheme != u.Scheme || at.Port() != u.Port())
}

// address returns the URL at which to call a server: the address it listens on, with the path of
// its base URL.
func address(listen, base string) string {
	path := ""
	if u, err := url.Parse(base); err == nil {
		path = strings.TrimRight(u.EscapedPath(), "/")
	}
	return "http://" + reachable(listen) + path
}

func welcome(t terminal, generated string) {
	password := "as configured"
	if generated != "" {
		password = generated + " (shown only now)"
	}
	_, _ = fmt.Fprintf(t.out, "First start: made the tenant default with the superuser admin, password %s.\n", password)
}

// shutdownDelay returns how long requests are served after the signal to stop.
func (s *serveCommand) shutdownDelay() time.Duration {
	switch {
	case s.ShutdownDelay != nil:
		return time.Duration(*s.ShutdownDelay)
	case loopback(s.Listen):
		return 0
	}
	return defaultDelay
}

// serve runs the HTTP server, with the app or a handler around it, and the background work
// concurrently. When ctx ends, it makes the app unready, serves requests for as long as the delay,
// and then finishes those that run.
func serve(
	ctx context.Context, listener net.Listener, handler http.Handler, app *tenantcontent.App, log *slog.Logger,
	delay time.Duration,
) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	failed := make(chan error, 2)
	running.Go(func() {
		if err := app.Run(background); err != nil {
			failed <- err
		}
	})
	defer running.Wait()
	defer stop()

	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	if delay > 0 {
		log.Info("stopping: /readyz is 503, and requests are served", "for", delay)
		app.Withdraw()
		select {
		case err := <-failed:
			return errors.Join(err, server.Close())
		case <-time.After(delay):
		}
	}
	log.Info("stopping: finishing what runs")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	shutdown, closed := context.WithCancel(last)
	var closing sync.WaitGroup
	closing.Go(func() { _ = server.Shutdown(shutdown) }) // no new connections; idle ones are closed
	err := app.Drain(last)
	timer := time.AfterFunc(linger, closed)
	closing.Wait()
	timer.Stop()
	closed()
	if err != nil {
		err = fmt.Errorf("some requests did not finish in %s: %w", drain, err)
	}
	if err := errors.Join(err, server.Close()); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}
