package embed_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "embed")
	check(err)
	defer os.RemoveAll(folder)

	// The host opens and closes its own database. On PostgreSQL only this URL differs.
	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	check(err)
	defer db.Close()
	check(tenantcontent.Migrate(ctx, db))

	app, err := tenantcontent.Open(tenantcontent.Config{
		DB:            db,
		Scripts:       javascript.New(javascript.Options{}),
		SecretKeyFile: filepath.Join(folder, "secret.key"),
		BaseURL:       "https://content.example.com",
		Authenticate:  whoCalls,
		Resume:        whoIs, // for the pages of apps
	})
	check(err)
	running, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { check(app.Run(running)) }) // background work, until its context ends
	defer func() {
		stop()
		background.Wait()
		check(app.Close())
	}()

	// Tenants are made once, with a superuser. (Who calls over HTTP is for Authenticate to say: nobody logs in here.)
	_, err = app.AddTenant(ctx, tenants.Tenant{ID: "acme", Name: "Acme Inc."}, "a long password")
	check(err)

	// Without HTTP: say who calls, then use the services. The rules are the same.
	jo := actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
	red, err := app.Colors.Put(jo, "brand/red", "#ff0000")
	check(err)
	fmt.Println(red.Tenant, red.Key, red.Color)

	_, err = app.Colors.Put(jo, "brand/red", "reddish")
	fmt.Println(errs.CodeOf(err), "-", err)

	// An app with its page, which mia may use. Only users that the library has own something, or get shares.
	for _, name := range []string{"jo", "mia"} {
		_, err = app.Principals.CreateUser(jo, principals.User{Username: name, Enabled: true}, "")
		check(err)
	}
	report, err := app.Apps.Create(jo, apps.App{Type: apps.Report, Name: "Sales"})
	check(err)
	page, err := app.Apps.PutFile(jo, report.ID, "index.html", "", strings.NewReader("<!doctype html><h1>Sales</h1>"))
	check(err)
	_, err = app.Apps.PutShare(jo, report.ID, "mia", func(s *shares.Share) { s.Level = shares.Use })
	check(err)
	mia := actor.With(ctx, actor.Actor{
		Tenant: "acme",
		User:   "mia",
		Teams:  map[string]actor.Role{"sales": actor.Member},
	})
	seen, err := app.Apps.Get(mia, report.ID)
	check(err)
	fmt.Println(page.Path, page.ContentType, "-", seen.Name, seen.Permissions.Run, seen.Permissions.Write)

	// Files in the folder server are routes for the pages of the app, once they are deployed.
	_, err = app.Apps.PutFile(
		jo, report.ID, "server/total.js", "",
		strings.NewReader("export const GET = ({request}) => ({user: request.user.username, total: 12})"),
	)
	check(err)
	_, err = app.Apps.Deploy(jo, report.ID, apps.PublishOptions{})
	check(err)

	// With HTTP: the App is an http.Handler.
	mux := http.NewServeMux()
	mux.Handle("/api/", app)
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, path := range []string{
		"/api/colors/brand%2Fred/permissions", "/api/apps/" + report.ID + "/view/api/_server/total",
	} {
		req, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		check(err)
		req.Header.Set("X-User", "jo")
		res, err := http.DefaultClient.Do(req)
		check(err)
		body, err := io.ReadAll(res.Body)
		check(err)
		check(res.Body.Close())
		fmt.Println(res.Status)
		fmt.Println(string(body))
	}

	// Output:
	// acme brand/red #ff0000
	// invalid - Invalid color format
	// index.html text/html - Sales true false
	// 200 OK
	// {"_links":{"inf:color":{"href":"https://content.example.com/api/colors/brand%2Fred"},"self":{"href":"https://content.example.com/api/colors/brand%2Fred/permissions"}},"edit":true,"delete":true,"write":true}
	// 200 OK
	// {"user":"jo","total":12}
}

// whoCalls is the host's own log-in. Leave Config.Authenticate out, and users log in with POST
// /api/login/local.
func whoCalls(r *http.Request) (actor.Actor, error) {
	return whoIs(r.Context(), "acme", r.Header.Get("X-User"))
}

// whoIs returns what a user may do now, and refuses one who may not come any more. It is asked with
// every request of a page of an app, which brings none of the host's headers and cookies.
func whoIs(_ context.Context, tenant, user string) (actor.Actor, error) {
	if user == "" {
		return actor.Actor{}, errs.New(errs.Unauthenticated, "Log in first.")
	}
	return actor.Actor{Tenant: tenant, User: user, Superuser: true}, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
