package bunstore_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// The names of files are in one Store and their bytes in another.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	l := libraries.New(libraries.Options{Store: bunstore.New(db, "library"), Blobs: blobstore.New(db)})
	locked := func(context.Context) error { return nil } // the owner of a library locks it here
	f, err := l.Put(ctx, "acme", "site", "index.html", "", strings.NewReader("<h1>Hello</h1>"), locked)
	fmt.Println(f.Path, f.ContentType, f.Size, err)
	// Output:
	// index.html text/html 14 <nil>
}
