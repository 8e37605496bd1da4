// Embed is a program with users and tables of its own that has tenantcontent inside: its log-in is
// that of the library, too, what both write is one transaction, and it refuses and hears of
// changes.
//
//	go run ./examples/embed
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func main() {
	javascript.Child() // tenants' scripts run in processes of the same program
	folder, err := os.MkdirTemp("", "embed")
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), folder, os.Stdout)
	if err := os.RemoveAll(folder); err != nil {
		log.Print(err)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, folder string, out io.Writer) (err error) {
	// The host opens and closes its own database. postgres.Open is for PostgreSQL.
	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	h := &host{db: db, out: out}
	if err := h.migrate(ctx); err != nil {
		return err
	}
	h.app, err = tenantcontent.Open(tenantcontent.Config{
		DB:            db,
		Scripts:       javascript.New(javascript.Options{}),
		SecretKeyFile: filepath.Join(folder, "secret.key"),
		BaseURL:       "https://content.example.com",
		Authenticate:  h.authenticate,
		Resume:        h.resume, // for the pages of apps
		Before:        []func(context.Context, entity.Change) error{h.veto},
		After:         []func(context.Context, entity.Change){h.changed},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	var ended error
	background.Go(func() { ended = h.app.Run(running) }) // background work, until its context ends
	defer func() {
		stop()
		background.Wait()
		err = errors.Join(err, ended, h.app.Close())
	}()

	// Tenants are made once. Their superuser is for log-ins of the library, which are off here.
	if _, err := h.app.AddTenant(ctx, tenants.Tenant{ID: "acme", Name: "Acme Inc."}, "a long password"); err != nil {
		return err
	}
	jo, err := h.resume(ctx, "acme", "jo")
	if err != nil {
		return err
	}
	for _, step := range []func(ctx context.Context) error{h.orders, h.serve} {
		if err := step(actor.With(ctx, jo)); err != nil {
			return err
		}
	}
	return nil
}

// host is the program: its users are in the table people, and what it sells in orders.
type host struct {
	db  *bun.DB
	app *tenantcontent.App
	out io.Writer
}

// migrate makes the tables of the library and of the host.
func (h *host) migrate(ctx context.Context) error {
	if err := tenantcontent.Migrate(ctx, h.db); err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE TABLE people (tenant text, name text, admin boolean, PRIMARY KEY (tenant, name))",
		"INSERT INTO people VALUES ('acme', 'jo', true), ('acme', 'mia', false)",
		"CREATE TABLE orders (tenant text, no integer, color text, PRIMARY KEY (tenant, no))",
	} {
		if _, err := h.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// authenticate is the log-in of the host: here a header that its proxy sets. Leave
// Config.Authenticate out, and users log in with POST /api/login/local.
func (h *host) authenticate(r *http.Request) (actor.Actor, error) {
	return h.resume(r.Context(), "acme", r.Header.Get("X-User"))
}

// resume returns what a user may do now, and refuses one who may not come any more. It is called
// with every request of a page of an app, which brings none of the host's headers and cookies.
func (h *host) resume(ctx context.Context, tenant, user string) (actor.Actor, error) {
	var admin bool
	err := h.db.QueryRowContext(
		ctx, "SELECT admin FROM people WHERE tenant = ? AND name = ?", tenant, user,
	).Scan(&admin)
	if err != nil {
		return actor.Actor{}, errs.Wrap(errs.Unauthenticated, err, "Log in first.")
	}
	return actor.Actor{Tenant: tenant, User: user, Superuser: admin}, nil
}

// veto refuses that a color is deleted in which something was ordered. It runs in the transaction
// of the change.
func (h *host) veto(ctx context.Context, c entity.Change) error {
	if c.Kind != colors.Kind || c.Action != entity.ActionDelete {
		return nil
	}
	ctx, db := tenantcontent.Conn(ctx, h.db, c.Tenant)
	ordered, err := db.NewSelect().Table("orders").Where("tenant = ? AND color = ?", c.Tenant, c.ID).Exists(ctx)
	if err == nil && ordered {
		err = errs.New(errs.Conflict, "Something was ordered in the color %s.", c.ID)
	}
	return err
}

// changed is called with each change after its commit. The host uses those of colors.
func (h *host) changed(_ context.Context, c entity.Change) {
	if c.Kind == colors.Kind {
		fmt.Fprintln(h.out, "changed:", c.Actor, c.Action, c.ID)
	}
}

// orders writes rows of the host and of the library in one transaction of the host.
func (h *host) orders(ctx context.Context) error {
	if err := h.order(ctx, 1, "brand/red", "#ff0000"); err != nil {
		return err
	}
	fmt.Fprintln(h.out, "order 2:", h.order(ctx, 2, "brand/blue", "bluish"))
	n, err := h.db.NewSelect().Table("orders").Count(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(h.out, n, "order")
	fmt.Fprintln(h.out, "delete:", h.app.Colors.Delete(ctx, "brand/red"))
	return nil
}

// order orders something in a new color: there are both, or neither.
func (h *host) order(ctx context.Context, no int, key, color string) error {
	tx, err := h.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // of one that is not committed
	within, err := tenantcontent.WithTx(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(within, "INSERT INTO orders VALUES ('acme', ?, ?)", no, key); err != nil {
		return err
	}
	if _, err := h.app.Colors.Put(within, key, color); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return tenantcontent.Committed(within) // now changed is called
}

// serve makes an app with a route of its own, and serves it by HTTP.
func (h *host) serve(ctx context.Context) error {
	for _, name := range []string{"jo", "mia"} { // only users whom the library knows own content
		if _, err := h.app.Principals.CreateUser(ctx, principals.User{Username: name, Enabled: true}, ""); err != nil {
			return err
		}
	}
	sales, err := h.app.Apps.Create(ctx, apps.App{Type: apps.Report, Name: "Sales"})
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"index.html":      "<!doctype html><h1>Sales</h1>",
		"server/total.js": "export const GET = ({request}) => ({user: request.user.username, total: 12})",
	} {
		if _, err := h.app.Apps.PutFile(ctx, sales.ID, entity.File{Path: path}, strings.NewReader(text)); err != nil {
			return err
		}
	}
	if _, err := h.app.Apps.Deploy(ctx, sales.ID, apps.PublishOptions{}); err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("/api/", h.app) // the App is an http.Handler
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, c := range [][3]string{
		{"GET", "/api/apps/" + sales.ID + "/view/api/_server/total", "jo"},
		{"GET", "/api/colors/brand%2Fred/permissions", "mia"},
		{"DELETE", "/api/colors/brand%2Fred", "jo"},
		{"GET", "/api/colors", "eve"},
	} {
		status, body, err := call(ctx, c[0], server.URL+c[1], c[2])
		if err != nil {
			return err
		}
		fmt.Fprintln(h.out, c[2]+":", status, body)
	}
	return nil
}

// call makes a request as a user.
func call(ctx context.Context, method, url, user string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("X-User", user)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}
