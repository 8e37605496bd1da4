package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := bunstore.New(db)
	r, lasting, err := s.Add(ctx, "acme", workspaces.Record{App: "0192b2a0-0000-7000-8000-000000000001", Engine: "sqlite", CreatedAt: time.Now().UTC()})
	fmt.Println(r.Engine, lasting, err)
	all, err := s.Loose(ctx, "acme")
	fmt.Println(len(all), err)
	// Output:
	// sqlite true <nil>
	// 1 <nil>
}
