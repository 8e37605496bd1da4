package bunstore_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Users and teams whose avatars nobody uploads need a Store and nothing else.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := principals.New(principals.Options{Store: bunstore.New(db)})
	team, err := s.CreateTeam(ctx, principals.Team{Name: "Design"})
	fmt.Println(team.Name, team.Slug, err)
	// Output:
	// Design design <nil>
}
