// Package exampletest opens an App for the examples in documentation. Their tests import it.
package exampletest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// Open returns an App on a temporary SQLite database with the tenant acme, a context whose actor is
// its superuser admin, and a function that removes the database. It panics if something fails.
func Open() (app *tenantcontent.App, ctx context.Context, remove func()) {
	ctx = context.Background()
	folder, err := os.MkdirTemp("", "example")
	check(err)
	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	check(err)
	check(tenantcontent.Migrate(ctx, db))
	app, err = tenantcontent.Open(tenantcontent.Config{
		DB:        db,
		SecretKey: tenantcontent.NewSecretKey(),
		Log:       slog.New(slog.DiscardHandler),
	})
	check(err)
	_, err = app.AddTenant(
		ctx, tenants.Tenant{ID: "acme", Name: "Acme Inc.", Settings: tenants.Settings{AI: true}},
		"a long password",
	)
	check(err)
	admin := actor.Actor{Tenant: "acme", User: "admin", Superuser: true, AI: true}
	return app, actor.With(ctx, admin), func() {
		check(db.Close())
		check(os.RemoveAll(folder))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
