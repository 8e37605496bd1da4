package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Check returns an error if a database should not be used: one that is a standby, or is reached
// through a pooler that does not keep sessions. Call it before tenantcontent.Migrate. Errors:
// errs.Unavailable, saying what to do; errs.Invalid for a pooler.
func Check(ctx context.Context, db *bun.DB) error {
	var standby bool
	if err := db.QueryRowContext(ctx, "SELECT pg_is_in_recovery()").Scan(&standby); err != nil {
		return bunx.Err(err, "")
	}
	if standby {
		return errs.New(
			errs.Unavailable,
			"this PostgreSQL is a standby, which takes no writes: name the primary in the database URL, or "+
				"promote this one",
		)
	}
	return checkSessions(ctx, db)
}

// sessionProbes is how often checkSessions looks. A pooler that others use gives the connections of
// its server out by chance.
const sessionProbes = 3

// checkSessions returns errs.Invalid if a pooler gives a connection to the server to one
// transaction after the other, of whatever client: the settings of a session, such as the tenant of
// its statements, its locks and its prepared statements are then those of others.
func checkSessions(ctx context.Context, db *bun.DB) error {
	if db.Stats().MaxOpenConnections == 1 {
		return nil // it needs another connection
	}
	one, err := db.Conn(ctx)
	if err != nil {
		return bunx.Err(err, "")
	}
	defer func() { _ = one.Close() }()
	other, err := db.Conn(ctx)
	if err != nil {
		return bunx.Err(err, "")
	}
	defer func() { _ = other.Close() }()
	for i := range sessionProbes {
		kept, err := keepsSession(ctx, one.Conn, other.Conn, fmt.Sprint(i))
		if err != nil {
			return bunx.Err(err, "")
		}
		if !kept {
			return errs.New(errs.Invalid,
				"the database URL leads to a pooler that does not keep sessions (PgBouncer with "+
					"pool_mode=transaction or statement): "+
					"set pool_mode=session for this database, or name the PostgreSQL itself; pool_max_conns in the "+
					"URL bounds the connections of this server")
		}
	}
	return nil
}

// keepsSession reports whether a session that has a setting still has it, and its process at the
// server, while another session has a transaction. The statements are of the simple protocol:
// prepared ones are what a pooler mixes up.
func keepsSession(ctx context.Context, one, other *sql.Conn, value string) (bool, error) {
	var before, between, after int
	var setting string
	if err := one.QueryRowContext(
		ctx, "SELECT pg_backend_pid() FROM set_config('tenantcontent.session', '"+value+"', false)",
	).Scan(&before); err != nil {
		return false, err
	}
	tx, err := other.BeginTx(ctx, nil)
	if err != nil && ctx.Err() == nil && one.QueryRowContext(ctx, "SELECT 1").Scan(&after) == nil {
		return false, nil // statements are served and transactions are not
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&between); err != nil || between == before {
		return false, err
	}
	err = one.QueryRowContext(
		ctx, "SELECT pg_backend_pid(), coalesce(current_setting('tenantcontent.session', true), '')",
	).Scan(&after, &setting)
	return after == before && setting == value, err
}
