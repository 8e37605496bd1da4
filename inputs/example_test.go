package inputs_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/inputs"
)

func Example() {
	catalogs, err := inputs.New(inputs.Editor{ID: "rating", Name: "input:rating"})
	if err != nil {
		panic(err)
	}
	ctx := actor.With(context.Background(), actor.Actor{Tenant: "acme", User: "jo"})
	editors, err := catalogs.Editors(ctx)
	fmt.Println(len(editors), editors[len(editors)-1], err)
	// Output:
	// 14 {rating input:rating} <nil>
}
