package dbtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database"
)

// Example returns an embedded database for the example of a package, as database.Open and tenantcontent.Migrate make it, a context
// whose actor is admin, a superuser of the tenant acme, and a function that removes the database. It panics if something fails.
func Example() (db *bun.DB, ctx context.Context, remove func()) {
	whole, err := template()
	check(err)
	folder, err := os.MkdirTemp("", "example")
	check(err)
	path := filepath.Join(folder, "content.db")
	check(os.WriteFile(path, whole, 0o600))
	db, err = database.Open("sqlite:" + path)
	check(err)
	ctx = actor.With(context.Background(), actor.Actor{Tenant: "acme", User: "admin", Superuser: true, AI: true})
	check(addPeople(ctx, db, "admin"))
	return db, ctx, func() { check(errors.Join(db.Close(), os.RemoveAll(folder))) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
