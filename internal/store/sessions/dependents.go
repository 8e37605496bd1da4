package bunstore

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// dependentBatch is the number of users in one statement.
const dependentBatch = 500

// OfUsers implements sessions.Store.
func (s *Store) OfUsers(
	ctx context.Context, tenant string, usernames []string, at time.Time,
) (tokens, sessions int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	for some := range slices.Chunk(usernames, dependentBatch) {
		var t, n int
		these := `tenant_id = $1 AND username IN ` + bunx.In(3, len(some))
		err := c.One(ctx, "Session", `SELECT (SELECT count(*) FROM tc_tokens WHERE `+these+`),
			(SELECT count(*) FROM tc_sessions WHERE expires_at > $2 AND `+these+`)`,
			bunx.Args(some, tenant, bunx.At(at)),
			&t, &n)
		if err != nil {
			return 0, 0, err
		}
		tokens, sessions = tokens+t, sessions+n
	}
	return tokens, sessions, nil
}
