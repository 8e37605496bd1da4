package bunstore_test

import (
	"context"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/workspaces"
	"github.com/tenantcontent/tenantcontent/workspaces/bunstore"
	"github.com/tenantcontent/tenantcontent/workspaces/workspacestest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		workspacestest.TestStore(t, func(t *testing.T) (workspaces.Store, workspacestest.InTx) {
			db := open(t)
			return bunstore.New(db), func(ctx context.Context, fn func(context.Context) error) error { return bunx.InTx(ctx, db, fn) }
		})
	})
}
