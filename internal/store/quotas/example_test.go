package bunstore_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/quotas"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := tenants.NewQuotas(tenants.QuotaOptions{Store: bunstore.New(db), Bytes: 8})
	_, err := blobs.Put(ctx, s.Blobs(blobstore.New(db)), "acme", "0192b2a0-0000-7000-8000-000000000001", 1<<20, time.Now(), strings.NewReader("some bytes"))
	fmt.Println(err)
	// Output:
	// The storage of the tenant is full: it holds 0 bytes of the 8 bytes that it may have, and this does not fit. Remove files, content or data of apps that are not needed, or ask the operator for a larger quota.
}
