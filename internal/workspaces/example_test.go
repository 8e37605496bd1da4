package workspaces_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing/fstest"

	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	folder, err := os.MkdirTemp("", "workspaces")
	check(err)
	defer func() { check(os.RemoveAll(folder)) }()
	d, err := sqlite.New(sqlite.Options{Dir: folder})
	check(err)
	defer func() { check(d.Close()) }()
	keys, err := keyring.Parse(keyring.Generate())
	check(err)
	s := workspaces.New(workspaces.Options{Driver: d, Store: bunstore.New(db), Keys: keys})

	applied, err := s.Migrate(ctx, "acme", app, fstest.MapFS{
		"migrations/0001_orders.sql": {Data: []byte("CREATE TABLE orders (id integer PRIMARY KEY, item text NOT NULL);")},
	})
	fmt.Println(applied, err)
	c, err := s.Connect(ctx, "acme", app)
	check(err)
	defer func() { check(c.Close()) }()
	rows, err := c.Query(ctx, "INSERT INTO orders (item) VALUES ($1) RETURNING id, item", json.RawMessage(`["tea"]`))
	fmt.Println(string(rows), err)
	_, err = c.Query(context.Background(), "ATTACH 'other.db' AS other", nil)
	fmt.Println(err)
	// Output:
	// [0001_orders.sql] <nil>
	// [{"id":1,"item":"tea"}] <nil>
	// ATTACH is not allowed in a workspace. A statement begins with SELECT, WITH, VALUES, INSERT, UPDATE, DELETE, CREATE, ALTER or DROP.
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
