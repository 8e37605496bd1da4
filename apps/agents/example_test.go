package agents_test

import (
	"fmt"
	"strings"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

// An agent that an app declares in its manifest exists once the app is deployed, and people can
// override its settings.
func ExampleService_Update() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	shop, err := app.Apps.Create(ctx, apps.App{Type: apps.Report, Name: "Shop"})
	if err != nil {
		panic(err)
	}
	manifest := strings.NewReader("agents: {digest: {instructions: Sum up the day., cron: '0 18 * * *'}}")
	if _, err := app.Apps.PutFile(ctx, shop.ID, entity.File{
		Path: "informer.yaml", ContentType: "application/yaml",
	}, manifest); err != nil {
		panic(err)
	}
	if _, err := app.Apps.Deploy(ctx, shop.ID, apps.PublishOptions{}); err != nil {
		panic(err)
	}
	off := false
	v, err := app.Agents.Update(ctx, shop.ID, "digest", func(o *agents.Overrides) { o.Enabled = &off })
	fmt.Println(v.Name, v.Settings().Cron, v.Settings().Enabled, v.Next, err)
	// Output:
	// digest [0 18 * * *] false <nil> <nil>
}
