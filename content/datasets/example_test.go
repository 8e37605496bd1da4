package datasets_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	orders, err := app.Content.Create(ctx, content.Entity{Kind: content.Dataset,
		Name: "Orders", Data: json.RawMessage(`{
		"fields": [{"name": "region", "type": "string"}, {"name": "amount", "type": "numeric"}],
		"rows": [{"region": "North", "amount": 10}, {"region": "South", "amount": 7}, {"region": "North", "amount": 12}]
	}`)})
	if err != nil {
		panic(err)
	}
	rows, err := app.Datasets.Rows(ctx, orders.ID, datasets.Query{
		Filter: json.RawMessage(`{"amount": {"gt": 7}}`),
		Sort:   "-amount",
		Limit:  10,
	})
	fmt.Println(string(rows), err)
	n, err := app.Datasets.Count(ctx, orders.ID, json.RawMessage(`{"region": "North"}`))
	fmt.Println(n, err)
	// Output:
	// [{"region":"North","amount":12},{"region":"North","amount":10}] <nil>
	// 2 <nil>
}
