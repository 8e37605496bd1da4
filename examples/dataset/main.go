// Dataset shows rows of a table of the host's as a dataset, which apps and assistants read. Package
// orders has the Source.
//
//	go run ./examples/dataset
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/examples/dataset/orders"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func main() {
	folder, err := os.MkdirTemp("", "dataset")
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
	source := orders.Source{DB: db}
	if err := fill(ctx, source); err != nil {
		return err
	}
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(), Datasets: source,
	})
	if err != nil {
		return err
	}
	defer app.Close()
	if _, err := app.AddTenant(ctx, tenants.Tenant{ID: "acme"}, "a long password"); err != nil {
		return err
	}

	// A user makes a dataset, and the host shows its rows there.
	admin := actor.With(ctx, actor.Actor{Tenant: "acme", User: "admin", Superuser: true})
	d, err := app.Content.Create(admin, content.Entity{Kind: content.Dataset, Name: "Orders"})
	if err != nil {
		return err
	}
	if err := source.Show(ctx, "acme", d.ID); err != nil {
		return err
	}
	fields, err := app.Datasets.Fields(admin, d.ID)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, string(fields))

	// What is not paid, the largest first: handlers of apps and assistants read it like this.
	unpaid := json.RawMessage(`{"paid": false}`)
	rows, err := app.Datasets.Rows(admin, d.ID, datasets.Query{Filter: unpaid, Sort: "-amount", Limit: 2})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, string(rows))
	n, err := app.Datasets.Count(admin, d.ID, unpaid)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, n, "of acme are not paid")

	// The filter is checked before the Source has it.
	_, err = app.Datasets.Count(admin, d.ID, json.RawMessage(`{"paid": "no"}`))
	fmt.Fprintln(out, err)
	return nil
}

// fill makes the host's table, with orders of two tenants.
func fill(ctx context.Context, source orders.Source) error {
	if _, err := source.DB.ExecContext(ctx, orders.Tables); err != nil {
		return err
	}
	chair, table, lamp := 49.5, 320.0, 12.0
	for i, o := range []orders.Order{
		{TenantID: "acme", Item: "Chair", Amount: &chair}, {TenantID: "acme", Item: "Table", Amount: &table},
		{TenantID: "acme", Item: "Lamp", Amount: &lamp, Paid: true}, {TenantID: "acme", Item: "Sofa"},
		{TenantID: "other", Item: "Desk", Amount: &table},
	} {
		o.No = int64(i)
		if err := source.Insert(ctx, o); err != nil {
			return err
		}
	}
	return nil
}
