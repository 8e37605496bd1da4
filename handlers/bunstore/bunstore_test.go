package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/handlers"
	"github.com/tenantcontent/tenantcontent/handlers/bunstore"
	"github.com/tenantcontent/tenantcontent/handlers/handlerstest"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		handlerstest.TestStore(t, func(t *testing.T) (handlers.Store, handlerstest.InTx) {
			db := open(t)
			return bunstore.New(db), func(ctx context.Context, fn func(context.Context) error) error { return bunx.InTx(ctx, db, fn) }
		})
	})
}
