package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestReadme runs the program of README.md, and compares the two line by line.
func TestReadme(t *testing.T) {
	is := is.New(t)
	readme, err := os.ReadFile("../../README.md")
	is.NoErr(err)
	source, err := os.ReadFile("readme_test.go")
	is.NoErr(err)
	_, rest, found := strings.Cut(string(readme), "```go\n")
	is.True(found)
	program, _, _ := strings.Cut(rest, "```")
	rest = string(source)
	for line := range strings.Lines(program) {
		line, _, _ = strings.Cut(line, " // ")
		line = strings.TrimPrefix(strings.TrimSpace(line), "go ") // the test waits for what it starts
		_, after, found := strings.Cut(rest, "\t"+line+"\n")
		if !found {
			t.Fatalf("README.md has the line %q, which this test does not run at this place", line)
		}
		rest = after
	}

	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	mux, password := http.NewServeMux(), "a long password"

	javascript.Child()
	db, err := sqlite.Open("app.db")
	is.NoErr(err)
	err = tenantcontent.Migrate(ctx, db)
	is.NoErr(err)
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKeyFile: "secret.key", BaseURL: "https://content.example.com",
		Scripts: javascript.New(javascript.Options{}),
	})
	is.NoErr(err)
	var background sync.WaitGroup
	defer func() {
		stop()
		background.Wait()
		is.NoErr(app.Close())
		is.NoErr(db.Close())
	}()
	background.Go(func() {
		app.Run(ctx)
	})
	mux.Handle("/api/", app)
	_, err = app.AddTenant(ctx, tenants.Tenant{ID: "acme"}, password)
	is.NoErr(err)
	ctx = actor.With(ctx, actor.Actor{Tenant: "acme", User: "admin", Superuser: true})
	red, err := app.Colors.Put(ctx, "red", "#ff0000")
	is.NoErr(err)
	is.Equal(red.Color, "#ff0000")
}
