package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/internal/store/agents"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	store := bunstore.New(db)
	now := time.Now()
	err := store.PutAgents(ctx, "acme", []agents.Agent{{App: "shop", Name: "digest", Definition: agents.Definition{Cron: []string{"@daily"}}, CreatedAt: now, UpdatedAt: now}})
	if err != nil {
		panic(err)
	}
	all, err := store.Agents(ctx, "acme", "shop")
	fmt.Println(all[0].Name, all[0].Settings().Cron, err)
	// Output:
	// digest [@daily] <nil>
}
