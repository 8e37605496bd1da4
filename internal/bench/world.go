package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	colorstore "github.com/tenantcontent/tenantcontent/internal/store/colors"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// world is one engine with the service and the bare handlers served beside each other from one
// database.
type world struct {
	engine   string
	url      string // of the database
	db       *bun.DB
	app      *tenantcontent.App
	ours     string // host:port
	bare     string
	token    string
	key      string          // Config.SecretKey
	admin    context.Context // carries the superuser of tenant default
	ends     []func() error
	modelURL string // of the model's server
	onceBig
}

const password = "bench-password"

func newWorld(ctx context.Context, engine string) (*world, error) {
	w := &world{engine: engine, key: tenantcontent.NewSecretKey()}
	var err error
	if w.url, err = w.database(ctx); err != nil {
		return nil, err
	}
	if w.db, err = engines.Open(w.url); err != nil {
		return nil, err
	}
	w.ends = append(w.ends, w.db.Close)
	if err := tenantcontent.Migrate(ctx, w.db); err != nil {
		return nil, err
	}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	models, err := w.model()
	if err != nil {
		return nil, err
	}
	w.app, err = tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        w.db,
		SecretKey: w.key,
		Log:       quiet,
		AI:        models,
	})
	if err != nil {
		return nil, err
	}
	if _, _, err := w.app.FirstStart(ctx, password); err != nil {
		return nil, err
	}
	w.admin = actor.With(ctx, actor.Actor{Tenant: "default", User: "admin", Superuser: true})
	if err := w.populate(ctx); err != nil {
		return nil, err
	}
	login, err := w.app.Sessions.Login(ctx, principals.Credentials{
		Tenant: "default", Domain: "local", Username: "admin", Password: password,
	})
	if err != nil {
		return nil, err
	}
	w.token = login.Token
	if w.ours, err = w.serve(w.app); err != nil {
		return nil, err
	}
	w.bare, err = w.serve(bareHandlers(w.db))
	return w, err
}

// database returns the URL of a new database.
func (w *world) database(ctx context.Context) (string, error) {
	if w.engine == "postgres" {
		c, err := pgtest.Start(ctx)
		if err != nil {
			return "", err
		}
		w.ends = append(w.ends, func() error { c.Stop(); return nil })
		return c.URL, nil
	}
	dir, err := os.MkdirTemp("", "tenantcontent-bench-")
	w.ends = append(w.ends, func() error { return os.RemoveAll(dir) })
	return "sqlite:" + filepath.Join(dir, "bench.db"), err
}

// populate fills the tables that every request looks into: 100 tenants, 10,000 idle sessions,
// 10,000 colors.
func (w *world) populate(ctx context.Context) error {
	for i := range 99 {
		if _, err := w.app.Tenants.Unchecked().Add(ctx, tenants.Tenant{ID: fmt.Sprintf("tenant-%d", i)}); err != nil {
			return err
		}
	}
	now := bunx.At(time.Now())
	err := bunx.Write(ctx, w.db, "default", func(ctx context.Context, c bunx.Conn) error {
		for i := range 10000 {
			_, err := c.Exec(ctx,
				`INSERT INTO tc_sessions (tenant_id, id, username, created_at, expires_at) `+
					`VALUES ('default', $1, 'admin', $2, $3)`,
				fmt.Sprintf("idle-%d", i), now, bunx.At(now.Add(time.Hour)))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	store := colorstore.New(w.db)
	for i := 0; i < 10000; i += 500 {
		if err := store.PutAll(ctx, "default", someColors("color", i, 500)); err != nil {
			return err
		}
	}
	return w.analyze(ctx)
}

// analyze has PostgreSQL count. SQLite keeps no statistics here, as it has none in use: with those
// of this crowd it joins the bare list of principals by reading all users for each.
func (w *world) analyze(ctx context.Context) error {
	if w.engine != "postgres" {
		return nil
	}
	_, err := w.db.ExecContext(ctx, "ANALYZE")
	return err
}

// someColors makes n colors numbered from a number on.
func someColors(prefix string, from, n int) []colors.Color {
	now := time.Now().UTC().Truncate(time.Microsecond)
	all := make([]colors.Color, n)
	for i := range all {
		all[i] = colors.Color{
			Key: fmt.Sprintf("%s-%06d", prefix, from+i), Color: fmt.Sprintf("#%06x", (from+i)*7919%0xffffff),
			CreatedAt: now, UpdatedAt: now,
		}
	}
	return all
}

func (w *world) serve(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), 0),
	}
	go func() { _ = s.Serve(l) }()
	w.ends = append(w.ends, s.Close)
	return l.Addr().String(), nil
}

// close takes the world down, last things first.
func (w *world) close() error {
	var errs []error
	for i := range w.ends {
		errs = append(errs, w.ends[len(w.ends)-1-i]())
	}
	return errors.Join(errs...)
}
