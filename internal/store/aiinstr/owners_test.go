package bunstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
)

func ownership(s aiinstr.Store) transfertest.Owners {
	return transfertest.Owners{
		Insert: func(ctx context.Context, n int, owner string) error {
			i := instruction(n, fmt.Sprint("s", n))
			i.OwnerID = owner
			return s.Insert(ctx, "acme", i)
		},
		Owned: func(ctx context.Context, owner string) (int, error) { return s.Owned(ctx, "acme", owner) },
		Reassign: func(ctx context.Context, from, to string, at time.Time) (all []transfertest.Moved, err error) {
			moved, err := s.Reassign(ctx, "acme", from, to, at)
			for _, i := range moved {
				all = append(all, transfertest.Moved{ID: i.ID, OwnerID: i.OwnerID, UpdatedAt: i.UpdatedAt})
			}
			return all, err
		},
		InTx: s.InTx,
	}
}

func testNoOwner(t *testing.T, s aiinstr.Store) { ownership(s).NoOwner(t) }

func testReassignTells(t *testing.T, s aiinstr.Store) { ownership(s).ReassignTells(t, tuesday) }
