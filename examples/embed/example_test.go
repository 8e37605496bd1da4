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

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "embed")
	check(err)
	defer os.RemoveAll(folder)

	// The host opens and closes its own database. On PostgreSQL only this URL differs.
	db, err := database.Open("sqlite:" + filepath.Join(folder, "content.db"))
	check(err)
	defer db.Close()
	check(tenantcontent.Migrate(ctx, db))

	app, err := tenantcontent.Open(tenantcontent.Config{
		DB:            db,
		SecretKeyFile: filepath.Join(folder, "secret.key"),
		BaseURL:       "https://content.example.com",
		Authenticate:  whoCalls,
		Resume:        whoIs, // for the pages of apps
	})
	check(err)
	running, stop := context.WithCancel(ctx)
	defer stop()
	go app.Run(running) // background work, until its context ends

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

	// With HTTP: the App is an http.Handler.
	mux := http.NewServeMux()
	mux.Handle("/api/", app)
	server := httptest.NewServer(mux)
	defer server.Close()

	req, err := http.NewRequest(http.MethodGet, server.URL+"/api/colors/brand%2Fred/permissions", nil)
	check(err)
	req.Header.Set("X-User", "jo")
	res, err := http.DefaultClient.Do(req)
	check(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	check(err)
	fmt.Println(res.Status)
	fmt.Println(string(body))

	// Output:
	// acme brand/red #ff0000
	// invalid - Invalid color format
	// 200 OK
	// {"_links":{"inf:color":{"href":"https://content.example.com/api/colors/brand%2Fred"},"self":{"href":"https://content.example.com/api/colors/brand%2Fred/permissions"}},"edit":true,"delete":true,"write":true}
}

// whoCalls is the host's own log-in. Leave Config.Authenticate out, and users log in with POST /api/login/local.
func whoCalls(r *http.Request) (actor.Actor, error) {
	return whoIs(r.Context(), "acme", r.Header.Get("X-User"))
}

// whoIs returns what a user may do now, and refuses one who may not come any more. It is asked with every request of a page of an app,
// which brings none of the host's headers and cookies.
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
