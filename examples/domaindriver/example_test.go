package domaindriver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/examples/domaindriver"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "domaindriver")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "content.db"))
	check(err)
	defer db.Close()
	check(tenantcontent.Migrate(ctx, db))

	// The host's driver joins the ready ones.
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(),
		DomainDrivers: []domains.Driver{domaindriver.Staff{Files: os.DirFS("testdata")}},
	})
	check(err)
	_, err = app.AddTenant(ctx, tenants.Tenant{ID: "north"}, "a long password")
	check(err)

	// A superuser makes a domain with it.
	north := actor.With(ctx, actor.Actor{Tenant: "north", User: "admin", Superuser: true})
	name := "Staff"
	staff, err := app.Domains.Create(north, domains.Domain{
		Name: &name, Type: "staff-csv", Config: json.RawMessage(`{"file": "staff.csv"}`),
	})
	check(err)

	// Whoever is on the list can log in, and becomes a user.
	login, err := app.Sessions.Login(ctx, "north", staff.ID, "jo", "jo's secret")
	check(err)
	fmt.Println(login.User.Username, "is of the domain", login.User.Domain)

	// A scan brings the others, and the groups as teams.
	scanned, err := app.Domains.ScanDomain(north, staff.ID, domains.ScanOptions{})
	check(err)
	fmt.Println(
		scanned[0].Users.Created, "users,", scanned[0].Teams.Created, "teams and", scanned[0].Added,
		"memberships are new",
	)

	// Output:
	// jo is of the domain staff
	// 2 users, 2 teams and 4 memberships are new
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
