package comments_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/exampletest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func Example() {
	app, ctx, remove := exampletest.Open()
	defer remove()
	report, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
	if err != nil {
		panic(err)
	}
	c, err := app.Comments.Create(ctx, "report", report.ID, "Is this right, @admin?")
	fmt.Println(c.UserID, c.Mentions[0].Username, err)
	_, err = app.Comments.Reply(ctx, c.ID, "It is.")
	fmt.Println(err)
	thread, err := app.Comments.Replies(ctx, c.ID, paging.Query{Limit: 10})
	fmt.Println(thread.Total, thread.Rows[0].Message, err)
	// Output:
	// admin admin <nil>
	// <nil>
	// 1 It is. <nil>
}
