package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	store := bunstore.New(db)
	now := time.Now()
	err := store.Insert(ctx, "acme", []queue.Job{{ID: "1", Kind: "report", Payload: []byte(`{}`), State: queue.Ready, Due: now, CreatedAt: now}})
	if err != nil {
		panic(err)
	}
	jobs, err := store.Claim(ctx, queue.Line{Tenant: "acme", Kind: "report"}, 10, queue.Claim{Lease: "unique", Node: "here", Until: now.Add(time.Minute)})
	fmt.Println(len(jobs), jobs[0].State, jobs[0].Tries, err)
	// Output:
	// 1 running 1 <nil>
}
