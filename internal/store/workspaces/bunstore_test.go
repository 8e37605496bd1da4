package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/workspacestest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		workspacestest.TestStore(t, func(t *testing.T) (workspaces.Store, workspacestest.InTx) {
			db := open(t)
			return bunstore.New(db), func(ctx context.Context, fn func(context.Context) error) error {
				return bunx.InTx(ctx, db, fn)
			}
		})
	})
}
