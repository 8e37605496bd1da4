package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/shares"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) (shares.Store, InTx) {
			db := dbtest.People(t, open(t), "jo", "joe", "mia", "team")
			return bunstore.New(
					db, "tc_app_shares", Row,
				), func(ctx context.Context, fn func(context.Context) error) error {
					return bunx.InTx(ctx, db, fn)
				}
		})
	})
}
