package bunstore_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/store/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// on are Settings with AI in every tenant.
type on struct{}

func (on) AIEnabled(context.Context, string) (bool, error) { return true, nil }

// A Service asks whether AI is on in the tenant; tenants.Service answers it from the settings.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := aiinstr.New(aiinstr.Options{Store: bunstore.New(db), Settings: on{}})
	i, err := s.Create(ctx, aiinstr.Instruction{Slug: "tone", Content: "Be brief."})
	fmt.Println(i.Slug, i.OwnerID, err)
	// Output:
	// tone admin <nil>
}
