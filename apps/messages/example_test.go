package messages_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// A handler of an app does this with emit and notify.
func ExampleService_Notify() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	shop, err := app.Apps.Create(ctx, apps.App{Type: apps.Report, Name: "Shop"})
	if err != nil {
		panic(err)
	}
	event, err := app.Messages.Emit(ctx, shop.ID, "order.paid", json.RawMessage(`{"order": 5}`))
	fmt.Println(event.Name, event.State, err)
	_, err = app.Messages.Notify(
		ctx, shop.ID, []string{"admin"}, messages.Notification{Title: "Order 5 was paid", Path: "orders/5"},
	)
	if err != nil {
		panic(err)
	}
	page, _, err := app.Messages.Messages(
		ctx, shop.ID, messages.Filter{Type: messages.TypeNotification}, paging.Query{Limit: 10},
	)
	fmt.Println(page.Total, page.Rows[0].Recipient, page.Rows[0].State, err)
	// Output:
	// order.paid delivered <nil>
	// 1 admin delivered <nil>
}
