package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/store/webhooks"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := bunstore.New(db)
	call := webhooks.Invocation{ID: "00000000-0000-7000-8000-000000000001", App: "a", Area: handlers.Webhooks, Method: "POST", Path: "/stripe", StartedAt: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), Status: 200}
	fmt.Println(s.Record(ctx, "acme", []webhooks.Entry{{Invocation: call, Calls: 1}}))
	days, err := s.Days(ctx, "acme", "a", webhooks.Filter{}, "2026-11-01")
	fmt.Println(days, err)
	// Output:
	// <nil>
	// [{2026-11-20 1 0 0s}] <nil>
}
