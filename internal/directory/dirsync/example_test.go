package dirsync_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

func Example() {
	db, ctx, remove := dbtest.Example()
	defer remove()
	users := bunstore.New(db)
	s := dirsync.New(dirsync.Options{Store: users, Principals: principals.New(principals.Options{Store: users}).Unchecked()})
	report, err := s.Sync(ctx, "acme", "staff", dirsync.Snapshot{
		People: []principals.Identity{{ID: "1", Username: "jo"}, {ID: "2", Username: "mia"}},
		Groups: []dirsync.Group{{ID: "g", Name: "Sales", Members: []string{"2"}}},
	}, dirsync.SyncOptions{Source: "LDAP"})
	fmt.Println(report.Users.Created, "users,", report.Teams.Created, "team,", report.Added, "membership", err)
	// Output:
	// 2 users, 1 team, 1 membership <nil>
}
