package tenantcontent

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Conn returns the connection on which a host's own entity.Transferer, or other code that gets a
// context of this library, runs the statements of a tenant: in the transaction that ctx carries, or
// in none. Run them with the context that it returns. Where row-level security is on, and the
// host's tables have policies like ours, PostgreSQL reads the tenant from it.
func Conn(ctx context.Context, db *bun.DB, tenant string) (context.Context, bun.IDB) {
	ctx, c := bunx.For(ctx, db, tenant)
	return ctx, c.IDB
}

// InTx runs fn in one transaction, as App.InTx does, for a host's own entity.Transferer that is
// made before the App. Inside a transaction it joins.
func InTx(ctx context.Context, db *bun.DB, fn func(ctx context.Context) error) error {
	return bunx.InTx(ctx, db, fn)
}

// InTx runs fn in one transaction, which every service called with fn's context joins. It commits
// when fn returns nil.
func (app *App) InTx(ctx context.Context, fn func(ctx context.Context) error) error {
	return bunx.InTx(ctx, app.db, fn)
}

// WithTx returns a context with a transaction that the host has begun: every service call with that
// context is part of it, and App.InTx and Conn, too. The host commits it or rolls it back, and
// calls Committed after the commit. A call that fails leaves nothing, and the transaction goes on.
// One call uses it at a time. docs/embed.md says what cannot be part of a transaction.
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	defer tx.Rollback()
//	within, err := tenantcontent.WithTx(ctx, tx)
//	…
//	_, err = app.Colors.Put(within, "red", "#ff0000")
//	…
//	err = tx.Commit()
//	…
//	err = tenantcontent.Committed(within)
//
// Errors: errs.Invalid for an empty transaction, and for a ctx that has one of the same database.
func WithTx(ctx context.Context, tx bun.Tx) (context.Context, error) { return bunx.WithTx(ctx, tx) }

// WithSQLTx is WithTx for a transaction that was begun with the *sql.DB of db, such as by the
// host's own queries. Errors: those of WithTx; errs.Invalid for a transaction of another *sql.DB.
func WithSQLTx(ctx context.Context, db *bun.DB, tx *sql.Tx) (context.Context, error) {
	return bunx.WithSQLTx(ctx, db, tx)
}

// Committed does what the calls of a transaction of WithTx have left for after its commit: it wakes
// queues, ends entries of caches and calls listeners. Without it that happens later or, for
// listeners, never. After a rollback the host does not call it.
// Errors: errs.Invalid if ctx is not one of WithTx, or its transaction has not ended.
func Committed(ctx context.Context) error { return bunx.Committed(ctx) }
