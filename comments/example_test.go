package comments_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/store/comments"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// A host has the Service as App.Comments, with its kinds in place of this one.
func Example() {
	db, ctx, remove := dbtest.Example()
	defer remove()
	users := principals.New(principals.Options{Store: principalstore.New(db)})
	if _, err := users.CreateUser(ctx, principals.User{Username: "mia", Enabled: true}, ""); err != nil {
		panic(err)
	}
	kinds := entity.NewRegistry()
	err := kinds.Add(entity.Type{Kind: "report", Commented: true, Lookup: func(_ context.Context, _, id string) (entity.Ref, error) {
		return entity.Ref{Kind: "report", ID: id, OwnerID: "admin"}, nil
	}})
	if err != nil {
		panic(err)
	}
	store := bunstore.New(db)
	s := comments.New(comments.Options{Store: store, Queue: store, Entities: kinds, Users: users})
	c, err := s.Create(ctx, "report", "sales", "Is this right, @mia?")
	if err != nil {
		panic(err)
	}
	fmt.Println(c.UserID, c.Mentions[0].Username)
	_, err = s.Reply(ctx, c.ID, "It is.")
	fmt.Println(err)
	thread, err := s.Replies(ctx, c.ID, paging.Query{Limit: 10})
	fmt.Println(thread.Total, thread.Rows[0].Message, err)
	// Output:
	// admin mia
	// <nil>
	// 1 It is. <nil>
}
