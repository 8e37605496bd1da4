package bunx

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// marks reports whether the driver is that of package postgres, whose errors record whether a
// statement was sent.
func marks(db *bun.DB) bool {
	_, ok := db.Driver().(interface{ CancelsStatements() })
	return ok
}

// cancels reports whether the driver of a PostgreSQL makes the server stop a statement when its
// context ends. The driver of package postgres and pgx do. pgdriver, which a host may use directly,
// only closes the connection, and the server continues the statement.
func cancels(db *bun.DB) bool {
	t := reflect.TypeOf(db.Driver())
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return marks(db) || strings.HasPrefix(t.PkgPath(), "github.com/jackc/pgx/")
}

const watch = "SELECT set_config('client_connection_check_interval', '1000', true)"

// watched are the pools whose servers support client_connection_check_interval, which some
// operating systems do not.
var watched sync.Map // of bool, by *sql.DB

// watchClient makes the server notice within a second, also while it waits for a lock, that the
// client of a transaction has disconnected. It is for drivers that do not cancel statements.
func (r *running) watchClient(ctx context.Context) error {
	if r.db.Dialect().Name() != dialect.PG || cancels(r.db) {
		return nil
	}
	run := func(ctx context.Context) error {
		_, err := r.conn().fixed.ExecContext(ctx, watch)
		return err
	}
	takes, known := watched.Load(r.db.DB)
	switch {
	case !known:
		err := r.savepoint(ctx, run)
		if err != nil && codes(err) == (code{}) {
			return err
		}
		watched.Store(r.db.DB, err == nil)
	case takes.(bool):
		return run(ctx)
	}
	return nil
}
