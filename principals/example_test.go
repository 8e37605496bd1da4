package principals_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/exampletest"
	"github.com/tenantcontent/tenantcontent/principals"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	mia, err := app.Principals.CreateUser(ctx, principals.User{Username: "mia", Enabled: true}, "a long password")
	if err != nil {
		panic(err)
	}
	team, err := app.Principals.CreateTeam(ctx, principals.Team{Name: "Design"})
	if err != nil {
		panic(err)
	}
	member, err := app.Principals.SetMember(ctx, team.ID, mia.Username, actor.Designer)
	fmt.Println(team.Slug, member.Username, member.Role, err)
	// Output:
	// design mia designer <nil>
}
