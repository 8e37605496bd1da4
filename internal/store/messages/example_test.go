package bunstore_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/internal/store/messages"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	store := bunstore.New(db)
	now := time.Now()
	err := store.InsertEvent(ctx, "acme", messages.Event{
		ID: "1", App: "shop", Name: "order.paid", Payload: json.RawMessage(`{"order": 5}`), CreatedAt: now, UpdatedAt: now, Progress: messages.Progress{State: messages.Pending},
	})
	if err != nil {
		panic(err)
	}
	page, err := store.Events(ctx, "acme", "shop", messages.Filter{State: messages.Pending}, paging.Query{Limit: 10})
	fmt.Println(page.Total, page.Rows[0].Name, err)
	// Output:
	// 1 order.paid <nil>
}
