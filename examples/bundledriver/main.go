// Bundledriver ships content of the host's own, recipes, from one tenant to another in a bundle,
// and has it commented. Package kitchen has the driver.
//
//	go run ./examples/bundledriver
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver/kitchen"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func main() {
	folder, err := os.MkdirTemp("", "bundledriver")
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

func run(ctx context.Context, folder string, out io.Writer) error {
	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := tenantcontent.Migrate(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, kitchen.Table); err != nil {
		return err
	}

	// The host's kind, and the type of bundle entries that ships it.
	recipes := kitchen.Recipes{DB: db}
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(),
		Entities: []entity.Type{recipes.Type()}, BundleDrivers: []bundles.Driver{recipes},
	})
	if err != nil {
		return err
	}
	defer app.Close()
	for _, tenant := range []string{"north", "south"} {
		if _, err := app.AddTenant(ctx, tenants.Tenant{ID: tenant}, "a long password"); err != nil {
			return err
		}
	}
	for _, r := range []kitchen.Recipe{
		{TenantID: "north", ID: "dough", Title: "Dough", Steps: "Knead."},
		{TenantID: "north", ID: "pizza", Title: "Pizza", Steps: "Bake.", PartOf: "dough"},
		{TenantID: "north", ID: "soup", Title: "Soup", Steps: "Cook."},
	} {
		if err := recipes.Insert(ctx, r); err != nil {
			return err
		}
	}
	north := actor.With(ctx, actor.Actor{Tenant: "north", User: "admin", Superuser: true})
	south := actor.With(ctx, actor.Actor{Tenant: "south", User: "admin", Superuser: true})

	// A superuser of one tenant makes a bundle and exports it. What the pizza needs goes with it.
	var file bytes.Buffer
	if err := export(north, app, &file, out); err != nil {
		return err
	}
	// One of another tenant imports it.
	report, err := app.Bundles.Import(south, &file, bundles.ImportOptions{})
	if err != nil {
		return err
	}
	ids, err := recipes.IDs(ctx, "south")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, report.Created, "created:", ids)
	return comment(south, app, out)
}

func export(ctx context.Context, app *tenantcontent.App, file, out io.Writer) error {
	b, err := app.Bundles.Create(ctx, bundles.Bundle{Name: "Italian"})
	if err != nil {
		return err
	}
	if _, err := app.Bundles.CreateEntry(ctx, b.ID, bundles.Entry{
		Type: string(kitchen.Kind), EntityID: "pizza",
	}); err != nil {
		return err
	}
	e, err := app.Bundles.Export(ctx, b.Slug)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, e.Filename())
	return e.Write(ctx, file)
}

// comment comments on a recipe, and deletes the comments as a host does that deletes a recipe.
func comment(ctx context.Context, app *tenantcontent.App, out io.Writer) error {
	c, err := app.Comments.Create(ctx, entity.Key{Kind: kitchen.Kind, ID: "pizza"}, "More salt?")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, c.UserID, "on", c.Entity.ID+":", c.Message)
	if err := app.Deleted(ctx, "south", c.Entity); err != nil {
		return err
	}
	page, err := app.Comments.List(ctx, entity.Key{Kind: kitchen.Kind, ID: "pizza"}, paging.Query{Limit: 10})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, page.Total, "comments")
	return nil
}
