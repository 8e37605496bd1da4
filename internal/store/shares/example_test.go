package bunstore_test

import (
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/store/shares"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// A kind of content has a table of its own for its shares, as apps have tc_app_shares.
func Example() {
	db, ctx, remove := dbtest.Example() // database.Open and tenantcontent.Migrate in a program
	defer remove()
	s := bunstore.New(db, "tc_app_shares", "app-share")
	now := time.Now().UTC().Truncate(time.Microsecond)
	_, err := s.Put(ctx, "acme", "0192b2a0-0000-7000-8000-000000000001", shares.Share{PrincipalID: "admin", Level: shares.Write, CreatedAt: now, UpdatedAt: now})
	fmt.Println(err)
	all, err := s.All(ctx, "acme", "0192b2a0-0000-7000-8000-000000000001")
	fmt.Println(all[0].PrincipalID, all[0].Level == shares.Write, err)
	// Output:
	// <nil>
	// admin true <nil>
}
