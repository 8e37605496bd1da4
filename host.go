package tenantcontent

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Conn returns the connection on which a host's own entity.Transferer, or other code that gets a context of this library, runs
// the statements of a tenant: in the transaction that ctx carries, or in none. Run them with the context that it returns.
// Where row-level security is on, and the host's tables have policies like ours, PostgreSQL reads the tenant from it.
func Conn(ctx context.Context, db *bun.DB, tenant string) (context.Context, bun.IDB) {
	ctx, c := bunx.For(ctx, db, tenant)
	return ctx, c.IDB
}

// InTx runs fn in one transaction, as App.InTx does, for a host's own entity.Transferer that is made before the App. Inside a
// transaction it joins.
func InTx(ctx context.Context, db *bun.DB, fn func(ctx context.Context) error) error {
	return bunx.InTx(ctx, db, fn)
}
