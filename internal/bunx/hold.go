package bunx

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
)

// HoldPrincipal keeps a user or team, and its id, until the transaction ends: whoever renames or deletes it, or passes on
// what it owns, waits, and then finds what is inserted here for it. Others hold it at the same time. It comes before
// anything else that the transaction locks, so that nobody waits in a circle.
// Errors: errs.Unauthenticated when it is not there any more.
func (c Conn) HoldPrincipal(ctx context.Context, tenant, id string) error {
	query := `SELECT id FROM tc_principals WHERE tenant_id = $1 AND id = $2`
	if c.Postgres() {
		query += ` FOR KEY SHARE`
	}
	err := c.One(ctx, "User", query, []any{tenant, id}, &id)
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(errs.Unauthenticated, "Log in again: this user is not here any more.")
	}
	return err
}
