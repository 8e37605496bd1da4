// Domaindriver lets people log in by a list of the host's, and brings the others on it in by a
// scan. Package staffcsv has the driver.
//
//	go run ./examples/domaindriver
package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/examples/domaindriver/staffcsv"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

//go:embed staffcsv/testdata
var lists embed.FS

func main() {
	folder, err := os.MkdirTemp("", "domaindriver")
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
	files, err := fs.Sub(lists, "staffcsv/testdata")
	if err != nil {
		return err
	}

	// The host's driver joins that of local passwords.
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(),
		DomainDrivers: []domains.Driver{staffcsv.Driver{Files: files}},
	})
	if err != nil {
		return err
	}
	defer app.Close()
	if _, err := app.AddTenant(ctx, tenants.Tenant{ID: "north"}, "a long password"); err != nil {
		return err
	}

	// A superuser makes a domain with it.
	north := actor.With(ctx, actor.Actor{Tenant: "north", User: "admin", Superuser: true})
	name := "Staff"
	staff, err := app.Domains.Create(north, domains.Domain{
		Name: &name, Type: "staff-csv", Config: json.RawMessage(`{"file": "staff.csv"}`),
	})
	if err != nil {
		return err
	}

	// A person on the list can log in, and becomes a user.
	login, err := app.Sessions.Login(ctx, principals.Credentials{
		Tenant: "north", Domain: staff.ID, Username: "jo", Password: "jo's secret",
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, login.User.Username, "is of the domain", login.User.Domain)
	_, err = app.Sessions.Login(ctx, principals.Credentials{
		Tenant: "north", Domain: staff.ID, Username: "jo", Password: "a guess",
	})
	fmt.Fprintln(out, err)

	// A scan brings the others, and the groups as teams.
	scanned, err := app.Domains.ScanDomain(north, staff.ID, domains.ScanOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(
		out, scanned[0].Users.Created, "users,", scanned[0].Teams.Created, "teams and", scanned[0].Added,
		"memberships are new",
	)
	return nil
}
