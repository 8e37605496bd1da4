package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/handlers"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) (handlers.Store, InTx) {
			db := open(t)
			return bunstore.New(db), func(ctx context.Context, fn func(context.Context) error) error {
				return bunx.InTx(ctx, db, fn)
			}
		})
	})
}
