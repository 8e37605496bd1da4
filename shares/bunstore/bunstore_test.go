package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/shares"
	"github.com/tenantcontent/tenantcontent/shares/bunstore"
	"github.com/tenantcontent/tenantcontent/shares/sharestest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		sharestest.TestStore(t, func(t *testing.T) (shares.Store, sharestest.InTx) {
			db := dbtest.People(t, open(t), "jo", "joe", "mia", "team")
			return bunstore.New(db, "tc_app_shares", sharestest.Row), func(ctx context.Context, fn func(context.Context) error) error {
				return bunx.InTx(ctx, db, fn)
			}
		})
	})
}
