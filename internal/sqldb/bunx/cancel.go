package bunx

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// marks reports whether the driver is that of package postgres, whose errors tell whether a
// statement was sent.
func marks(db *bun.DB) bool {
	_, ok := db.Driver().(interface{ CancelsStatements() })
	return ok
}

// cancels reports whether the driver of a PostgreSQL has the server stop a statement when its
// context ends: that of package postgres, and pgx. pgdriver, which a host may bring as it is, only
// closes the connection, and the server goes on with what it does.
func cancels(db *bun.DB) bool {
	t := reflect.TypeOf(db.Driver())
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return marks(db) || strings.HasPrefix(t.PkgPath(), "github.com/jackc/pgx/")
}

const watch = "SELECT set_config('client_connection_check_interval', '1000', true)"

// watched are the pools whose servers take watch: not each system can look.
var watched sync.Map // of bool, by *sql.DB

// watchClient has the server of a driver that does not cancel notice within a second, also while it
// waits for a lock, that the client of a transaction is gone.
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
