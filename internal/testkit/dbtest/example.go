package dbtest

import (
	"context"
	"os"
	"path/filepath"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database"
)

// Example returns a database for an Example, which has no testing.TB: an embedded one, migrated, with the tenants acme and evil, a
// context whose actor is admin, a superuser of acme, and a function that removes the database. It panics if something fails.
//
// Where a package has tests inside of it, its Examples use this in place of internal/testkit/exampletest: with the root, which imports the
// package, a third of the module would be compiled once more for the tests of the package.
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
	return db, ctx, func() {
		check(db.Close())
		check(os.RemoveAll(folder))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
