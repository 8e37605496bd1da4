package bunstore

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// dependentBatch is of how many users one statement counts.
const dependentBatch = 500

// CountOfUsers implements files.Store.
func (s *Store) CountOfUsers(ctx context.Context, tenant string, usernames []string, at time.Time) (int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	sum := 0
	for some := range slices.Chunk(usernames, dependentBatch) {
		var n int
		err := c.One(ctx, s.noun, `SELECT count(*) FROM `+s.table+` WHERE tenant_id = $1 AND expires_at > $2 AND username IN `+
			bunx.In(3, len(some)), bunx.Args(some, tenant, bunx.At(at)), &n)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
