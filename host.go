package tenantcontent

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// people implements bundles.People for any tenant, not only the caller's.
type people struct{ *principals.Service }

// Superusers implements bundles.People. It runs with an actor of that tenant.
func (p people) Superusers(ctx context.Context, tenant string) ([]string, error) {
	ctx = actor.With(ctx, actor.Actor{Tenant: tenant, User: principals.Everyone, Superuser: true})
	var names []string
	err := paging.Each(paging.Query{Limit: paging.MaxLimit}, func(q paging.Query) (paging.Page[principals.User], error) {
		return p.Users(ctx, q)
	}, func(u principals.User) {
		if u.Superuser && u.Enabled {
			names = append(names, u.Username)
		}
	})
	return names, err
}

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
