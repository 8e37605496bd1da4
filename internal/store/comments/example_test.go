package bunstore_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/store/comments"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// nobody are Users without anybody.
type nobody struct{}

func (nobody) DisplayNames(context.Context, []string) (map[string]*string, error) { return nil, nil }

// A host comments its own recipes. Users finds whom a message mentions; principals.Service is one.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	registry := entity.NewRegistry()
	err := registry.Add(entity.Type{
		Kind: "recipe", Commented: true,
		Lookup: func(_ context.Context, _, id string) (entity.Ref, error) {
			return entity.Ref{Kind: "recipe", ID: id, Name: "Soup", OwnerID: "admin"}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	store := bunstore.New(db)
	s := comments.New(comments.Options{Store: store, Queue: store, Entities: registry, Users: nobody{}})
	c, err := s.Create(ctx, "recipe", "soup", "More salt?")
	fmt.Println(c.UserID, c.Message, c.Entity.ID, err)
	// Output:
	// admin More salt? soup <nil>
}
