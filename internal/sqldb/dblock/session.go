package dblock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// session is a connection that holds an advisory lock.
type session struct {
	conn *sql.Conn
}

// number is the advisory lock of a schema. Each schema of a database has a different one.
const number = `hashtextextended('tenantcontent secrets ' || current_schema(), 0)`

const (
	share = `SELECT pg_try_advisory_lock_shared(` + number + `)`
	alone = `SELECT pg_try_advisory_lock(` + number + `)`

	// holders returns the holders of the lock. pg_locks contains a bigint as two halves.
	holders = `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.pid <> pg_backend_pid() AND l.objsubid = 1
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND (l.classid::bigint << 32) | l.objid::bigint = ` + number + ` ORDER BY a.backend_start`
)

func openSession(ctx context.Context, db *bun.DB, holder string, shared bool) (*session, error) {
	if db.Stats().MaxOpenConnections == 1 {
		return nil, errs.New(
			errs.Invalid,
			"The pool of connections to the database has one place: it needs a second one, which holds a lock.",
		)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, bunx.Err(err, "")
	}
	s := &session{conn: conn.Conn}
	if err := s.lock(ctx, holder, shared); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *session) lock(ctx context.Context, holder string, shared bool) error {
	if _, err := s.conn.ExecContext(ctx, `SELECT set_config('application_name', $1, false)`, holder); err != nil {
		return bunx.Err(err, "")
	}
	query, got := alone, false
	if shared {
		query = share
	}
	if err := s.conn.QueryRowContext(ctx, query).Scan(&got); err != nil || got {
		return bunx.Err(err, "")
	}
	rows, err := s.conn.QueryContext(ctx, holders)
	names, err := bunx.Scan(rows, err, bunx.Text)
	if err != nil {
		return bunx.Err(err, "")
	}
	return taken(shared, names)
}

func (s *session) check(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, `SELECT 1`)
	return bunx.Err(err, "")
}

// unlockTimeout is how long close waits for the server to release the lock before it closes the
// connection.
const unlockTimeout = 2 * time.Second

// close releases the lock and closes the connection. If the release fails, the server releases the
// lock later because the connection is closed.
func (s *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	_, _ = s.conn.ExecContext(ctx, `SELECT pg_advisory_unlock_all()`)
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // so that the pool does not keep it
	if err := s.conn.Close(); !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}
