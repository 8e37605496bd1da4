package postgres_test

import (
	"fmt"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/postgres"
)

func Example() {
	d, err := postgres.New(postgres.Options{URL: "postgres://keeper:secret@db.internal/workspaces", Quota: 1 << 30})
	fmt.Println(d.Engine(), err) // it has not connected yet
	fmt.Println(d.Close())
	_, err = postgres.New(postgres.Options{URL: "postgres://keeper:secret@db.internal:none/"})
	fmt.Println(errs.MessageOf(err))
	first, _, _ := strings.Cut(postgres.Lockdown("workspaces", "keeper"), "\n") // what a superuser runs if keeper is none
	fmt.Println(first)
	// Output:
	// postgres <nil>
	// <nil>
	// the URL of workspaces cannot be read: it looks like postgres://user:password@host:5432/workspaces
	// REVOKE ALL ON DATABASE "workspaces" FROM PUBLIC;
}
