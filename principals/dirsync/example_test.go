package dirsync_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/principals/bunstore"
	"github.com/tenantcontent/tenantcontent/principals/dirsync"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	must(err)
	defer os.RemoveAll(folder)
	db, err := database.Open("sqlite:" + filepath.Join(folder, "content.db"))
	must(err)
	defer db.Close()
	must(tenantcontent.Migrate(ctx, db))
	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey()})
	must(err)
	_, err = app.AddTenant(ctx, tenants.Tenant{ID: "acme", Name: "Acme Inc."}, "a long password")
	must(err)

	users := bunstore.New(db)
	s := dirsync.New(dirsync.Options{Store: users, Principals: principals.New(principals.Options{Store: users}).Unchecked()})
	report, err := s.Sync(ctx, "acme", "staff", dirsync.Snapshot{
		People: []principals.Identity{{ID: "1", Username: "jo"}, {ID: "2", Username: "mia"}},
		Groups: []dirsync.Group{{ID: "g", Name: "Sales", Members: []string{"2"}}},
	}, dirsync.SyncOptions{Source: "LDAP"})
	must(err)
	fmt.Println(report.Users.Created, "users,", report.Teams.Created, "team,", report.Added, "membership")
	// Output:
	// 2 users, 1 team, 1 membership
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
