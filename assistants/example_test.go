package assistants_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	if _, err := app.Tenants.Update(ctx, func(t *tenants.Tenant) error {
		t.Settings.AI = true
		return nil
	}); err != nil {
		panic(err)
	}
	helper, err := app.Assistants.Create(ctx, assistants.Assistant{
		Name:         "Helper",
		Instructions: "Be kind.",
		Skills:       []assistants.Skill{{Type: "query"}},
	})
	if err != nil {
		panic(err)
	}
	_, err = app.Assistants.PutSkill(ctx, helper.ID, "web", func(s *assistants.Skill) { s.Type = "web" })
	fmt.Println(helper.Name, helper.Skills[0].Name)
	fmt.Println(err)
	// Output:
	// Helper query
	// skills: nothing on this server provides "web", the type of the skill web. It has query, files.
}
