package webhooks

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor. They are for
// the program that builds the services, and for calls of webhooks, which have a key instead.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// FlushAll writes the invocations of every tenant that are only in memory.
func (u Unchecked) FlushAll(ctx context.Context) error { return u.s.records.FlushAll(ctx) }

// AppKind is the kind of entities that have webhooks.
const AppKind entity.Kind = "app"

// sweepBatch is how many rows of each table are removed in one transaction.
const sweepBatch = 1000

// Hooks returns what is done with records and requests: they go with their apps and when they are
// old, the calls of an app are counted before it is purged, and the keys of requests are secrets.
func (u Unchecked) Hooks() entity.Hooks {
	s := u.s
	return entity.Hooks{
		Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			apps := entity.IDs(gone, AppKind)
			if len(apps) == 0 {
				return nil
			}
			return s.o.Store.Remove(ctx, tenant, apps)
		},
		Dependents: func(
			ctx context.Context, tenant string, kind entity.Kind, ids []string, _ time.Time,
		) ([]entity.Dependent, error) {
			if kind != AppKind {
				return nil, nil
			}
			n, err := s.o.Store.Calls(ctx, tenant, ids)
			return []entity.Dependent{{Count: entity.Count{N: n, Of: "webhook call"}, Rank: 8}}, err
		},
		Sealed: []entity.SealedColumn{{Table: sealedTable, Column: sealedColumn, Key: "id"}},
		Due: []entity.Due{
			{Table: "tc_webhook_invocations", Column: "started_at", Age: s.o.Limits.Retention},
			{Table: sealedTable, Column: "received_at", Age: s.o.Limits.KeptFor},
			{Table: "tc_webhook_days", Column: "day", Day: true, Age: s.o.Limits.Retention},
		},
		Sweep: func(ctx context.Context, tenant string) (removed int, err error) {
			now := s.clock.Stamp()
			old := Old{
				Invocations: now.Add(-s.o.Limits.Retention), Requests: now.Add(-s.o.Limits.KeptFor),
				Day: now.Add(-s.o.Limits.Retention).Format(time.DateOnly), Batch: sweepBatch,
			}
			for {
				n, err := s.o.Store.Sweep(ctx, tenant, old)
				if removed += n; err != nil || n == 0 {
					return removed, err
				}
				if err := entity.Step(ctx); err != nil {
					return removed, err
				}
			}
		},
	}
}
