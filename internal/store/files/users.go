package bunstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// userBatch is the number of users whose files one statement counts.
const userBatch = 500

// Forget implements files.Store.
func (s *Store) Forget(ctx context.Context, tenant, account string, at time.Time, n int) (more bool, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		some, err := c.Exec(
			ctx,
			`UPDATE `+s.table+` SET username = '', expires_at = $3 WHERE `+c.Some(s.table, `username = $2`, n),
			tenant, account, bunx.At(at),
		)
		more = some >= n
		return bunx.Err(err, s.noun)
	})
	return more, err
}

// RenameUsers implements files.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(c.RenameAccounts(ctx, tenant, s.table, names), s.noun)
	})
}

// CountOfUsers implements files.Store.
func (s *Store) CountOfUsers(ctx context.Context, tenant string, usernames []string, at time.Time) (int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	sum := 0
	for some := range slices.Chunk(usernames, userBatch) {
		accounts, err := c.Accounts(ctx, tenant, some)
		if err != nil {
			return 0, err
		}
		var n int
		err = c.One(ctx, s.noun, `SELECT count(*) FROM `+s.table+
			` WHERE tenant_id = $1 AND expires_at > $2 AND username IN `+
			bunx.In(3, len(accounts)), bunx.Args(slices.Collect(maps.Values(accounts)), tenant, bunx.At(at)), &n)
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
