package principals_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// A host has the Service as App.Principals.
func Example() {
	db, ctx, remove := dbtest.Example()
	defer remove()
	s := principals.New(principals.Options{Store: bunstore.New(db)})
	mia, err := s.CreateUser(ctx, principals.User{Username: "mia", Enabled: true}, "a long password")
	if err != nil {
		panic(err)
	}
	team, err := s.CreateTeam(ctx, principals.Team{Name: "Design"})
	if err != nil {
		panic(err)
	}
	member, err := s.SetMember(ctx, team.ID, mia.Username, actor.Designer)
	fmt.Println(team.Slug, member.Username, member.Role, err)
	// Output:
	// design mia designer <nil>
}
