package comments_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	if _, err := app.Principals.CreateUser(ctx, principals.User{Username: "mia", Enabled: true}, ""); err != nil {
		panic(err)
	}
	sales, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
	if err != nil {
		panic(err)
	}
	c, err := app.Comments.Create(ctx, entity.Key{Kind: "report", ID: sales.ID}, "Is this right, @mia?")
	if err != nil {
		panic(err)
	}
	fmt.Println(c.UserID, c.Mentions[0].Username)
	_, err = app.Comments.Reply(ctx, c.ID, "It is.")
	fmt.Println(err)
	thread, err := app.Comments.Replies(ctx, c.ID, paging.Query{Limit: 10})
	fmt.Println(thread.Total, thread.Rows[0].Message, err)
	// Output:
	// admin mia
	// <nil>
	// 1 It is. <nil>
}
