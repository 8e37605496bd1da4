package bunstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
)

func ownership(s content.Store) transfertest.Owners {
	return transfertest.Owners{
		Insert: func(ctx context.Context, n int, owner string) error {
			e := newEntity(n, fmt.Sprint("s", n))
			e.OwnerID = owner
			return s.Insert(ctx, "acme", e)
		},
		Owned: func(ctx context.Context, owner string) (int, error) { return s.Owned(ctx, "acme", "report", owner) },
		Reassign: func(ctx context.Context, from, to string, at time.Time) (all []transfertest.Moved, err error) {
			moved, err := s.Reassign(ctx, "acme", "report", from, to, at)
			for _, e := range moved {
				all = append(all, transfertest.Moved{ID: e.ID, OwnerID: e.OwnerID, UpdatedAt: e.UpdatedAt})
			}
			return all, err
		},
		InTx: s.InTx,
	}
}

func testNoOwner(t *testing.T, s content.Store) { ownership(s).NoOwner(t) }

func testReassignTells(t *testing.T, s content.Store) { ownership(s).ReassignTells(t, tuesday) }
