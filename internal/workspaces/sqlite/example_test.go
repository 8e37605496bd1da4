package sqlite_test

import (
	"context"
	"fmt"
	"os"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "workspaces")
	check(err)
	defer func() { check(os.RemoveAll(folder)) }()
	d, err := sqlite.New(sqlite.Options{Dir: folder, Quota: 16 << 20})
	check(err)
	defer func() { check(d.Close()) }()
	c, err := d.Connect(ctx, workspaces.Workspace{Tenant: "acme", App: "0192b2a0-0000-7000-8000-000000000001"})
	check(err)
	defer func() { check(c.Close()) }()
	rows, err := c.Query(ctx, "SELECT 6 * 7 AS answer", nil)
	fmt.Println(string(rows), err)
	_, err = c.Query(ctx, "CREATE TEMP TABLE t (k integer)", nil)
	fmt.Println(errs.MessageOf(err))
	// Output:
	// [{"answer":42}] <nil>
	// CREATE TEMP is not allowed in a workspace. TABLE, INDEX, VIEW, TRIGGER can follow CREATE there.
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
