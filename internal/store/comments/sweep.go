package bunstore

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// oldest are some activities from before the time $2.
const oldest = `(SELECT id FROM tc_activities WHERE tenant_id = $1 AND created_at < $2 ORDER BY created_at, id` +
	bunx.StepLimit + `)`

// SweepOld implements comments.Store. One activity can be in the feeds of all users, so the feeds
// are swept first.
func (s *Store) SweepOld(ctx context.Context, tenant string, before time.Time) (n int, err error) {
	for {
		if _, err := bunx.DeleteSteps(
			ctx, s.db, tenant, "tc_feed", "activity_id, username", "activity_id IN "+oldest, bunx.At(before),
		); err != nil {
			return n, err
		}
		some := 0
		err := bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
			some, err = c.Exec(
				ctx, `DELETE FROM tc_activities WHERE tenant_id = $1 AND id IN `+oldest, tenant,
				bunx.At(before),
			)
			return bunx.Err(err, "Activity")
		})
		if n += some; err != nil {
			return n, err
		}
		if some == 0 {
			break
		}
		if err := entity.Step(ctx); err != nil {
			return n, err
		}
	}
	notices, err := bunx.DeleteSteps(ctx, s.db, tenant, "tc_notifications", "id", `created_at < $2`, bunx.At(before))
	return n + notices, err
}
