package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// userBatch is the number of users whose files one statement counts.
const userBatch = 500

// OfUsers implements files.Store.
func (s *Store) OfUsers(ctx context.Context, tenant string, usernames []string, limit int) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, s.ofUsers+bunx.In(3, len(usernames))+` LIMIT $2`, bunx.Args(usernames, tenant, limit)...)
	ids, err := bunx.Scan(rows, err, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	return ids, bunx.Err(err, s.noun)
}

// RenameUsers implements files.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(c.Rename(ctx, tenant, s.table, "username", names), s.noun)
	})
}

// CountOfUsers implements files.Store.
func (s *Store) CountOfUsers(ctx context.Context, tenant string, usernames []string, at time.Time) (int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	sum := 0
	for some := range slices.Chunk(usernames, userBatch) {
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

// UsedBytes implements files.Store.
func (s *Store) UsedBytes(ctx context.Context, tenant, username string) (n int64, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return n, c.One(ctx, s.noun, s.held, []any{tenant, username}, &n)
}
