package bunstore_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) queue.Store { return bunstore.New(open(t)) })
	})
}

// TestHiddenTenant: the jobs of a tenant wait while it is being imported. The rows that they need
// may not exist yet, and never will if the import fails.
func TestHiddenTenant(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), time.Now()
		store := bunstore.New(db)
		hide := func(why any) {
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(ctx, `UPDATE tc_tenants SET hidden = $1 WHERE tenant_id = 'acme'`, why)
				return err
			}))
		}
		claimed := func(tenant string) int {
			all, err := store.Claim(
				t.Context(), queue.Line{Tenant: tenant, Kind: "mail"}, 10,
				queue.Claim{Lease: tenant, Node: "here", Until: now.Add(time.Minute)},
			)
			is.NoErr(err)
			return len(all)
		}
		for _, tenant := range []string{"acme", "evil"} {
			is.NoErr(store.Insert(t.Context(), tenant, []queue.Job{{
				ID:        "1",
				Kind:      "mail",
				Payload:   json.RawMessage(`{}`),
				State:     queue.Ready,
				Due:       now,
				CreatedAt: now,
			}}))
		}
		hide("importing")
		is.Equal(claimed("acme"), 0)
		is.Equal(claimed("evil"), 1)
		hide(nil)
		is.Equal(claimed("acme"), 1)
	})
}
