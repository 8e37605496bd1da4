package bunstore_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// A Store is used without a Service.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := bunstore.New(db)
	info, err := blobs.Put(ctx, s, "acme", "0192b2a0-0000-7000-8000-000000000001", 1<<20, time.Now(), strings.NewReader("some bytes"))
	fmt.Println(info.Size, err)
	// Output:
	// 10 <nil>
}
