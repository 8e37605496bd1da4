package bundledriver_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	ctx := context.Background()
	db, remove := open(ctx)
	defer remove()

	// The host's kind, and the type of bundle entries that ships it.
	recipes := bundledriver.Recipes{DB: db}
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(),
		Entities: []entity.Type{recipes.Type()}, BundleDrivers: []bundles.Driver{recipes},
	})
	check(err)
	for _, tenant := range []string{"north", "south"} {
		_, err = app.AddTenant(ctx, tenants.Tenant{ID: tenant}, "a long password")
		check(err)
	}
	for _, r := range []bundledriver.Recipe{
		{TenantID: "north", ID: "dough", Title: "Dough", Steps: "Knead."},
		{TenantID: "north", ID: "pizza", Title: "Pizza", Steps: "Bake.", PartOf: "dough"},
		{TenantID: "north", ID: "soup", Title: "Soup", Steps: "Cook."},
	} {
		check(recipes.Insert(ctx, r))
	}

	// A superuser of one tenant makes a bundle and exports it. What the pizza needs goes with it.
	north := actor.With(ctx, actor.Actor{Tenant: "north", User: "admin", Superuser: true})
	b, err := app.Bundles.Create(north, bundles.Bundle{Name: "Italian"})
	check(err)
	_, err = app.Bundles.AddEntry(north, b.ID, "recipe", "pizza", nil)
	check(err)
	export, err := app.Bundles.Export(north, b.Slug)
	check(err)
	var file bytes.Buffer
	check(export.Write(north, &file))
	fmt.Println(export.Filename())

	// One of another tenant imports it.
	south := actor.With(ctx, actor.Actor{Tenant: "south", User: "admin", Superuser: true})
	report, err := app.Bundles.Import(south, &file, bundles.ImportOptions{})
	check(err)
	fmt.Println(report.Created, "created")
	ids, err := recipes.IDs(ctx, "south")
	check(err)
	fmt.Println(ids)

	// Output:
	// italian.tgz
	// 2 created
	// [dough pizza]
}

// open returns a database with the tables of the library and of the host, and a function that
// removes it.
func open(ctx context.Context) (db *bun.DB, remove func()) {
	folder, err := os.MkdirTemp("", "bundledriver")
	check(err)
	db, err = sqlite.Open(filepath.Join(folder, "content.db"))
	check(err)
	check(tenantcontent.Migrate(ctx, db))
	_, err = db.ExecContext(ctx, bundledriver.Table)
	check(err)
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
