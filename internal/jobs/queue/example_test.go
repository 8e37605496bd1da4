package queue_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// A host adds its workers with Config.Workers, puts jobs with App.Queue, and App.Run does them.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	q := queue.New(queue.Options{Store: bunstore.New(db)})
	ctx, stop := context.WithCancel(ctx)
	err := q.Add(queue.Worker{Kind: "greeting", Do: func(_ context.Context, j queue.Job) error {
		fmt.Println(j.Tenant, string(j.Payload))
		stop() // Run finishes the job all the same
		return nil
	}})
	if err != nil {
		panic(err)
	}
	if err := q.Put(ctx, queue.Job{Tenant: "acme", Kind: "greeting", Payload: []byte(`{"to": "jo"}`)}); err != nil {
		panic(err)
	}
	q.Run(ctx)
	left, err := q.Jobs(context.Background(), "acme", queue.Filter{})
	fmt.Println(len(left), err)
	// Output:
	// acme {"to": "jo"}
	// 0 <nil>
}
