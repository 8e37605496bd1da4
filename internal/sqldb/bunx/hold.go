package bunx

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
)

// HoldPrincipal protects a user or team, and its id, until the transaction ends. A transaction that
// renames or deletes it, or reassigns what it owns, waits, and then finds the rows inserted here.
// Several transactions can hold it at the same time. It must be called before the transaction locks
// anything else, so that holders do not deadlock. It returns errs.Forbidden if the principal does
// not exist: it was deleted, or the host's login knows a person that is not a user.
func (c Conn) HoldPrincipal(ctx context.Context, tenant, id string) error {
	query := `SELECT id FROM tc_principals WHERE tenant_id = $1 AND id = $2`
	if c.Postgres() {
		query += ` FOR KEY SHARE`
	}
	var found string
	err := c.One(ctx, "User", query, []any{tenant, id}, &found)
	if errs.CodeOf(err) == errs.NotFound {
		return noPrincipal(id)
	}
	return err
}

// HoldAccount is HoldPrincipal that returns the account of a user: see Account.
func (c Conn) HoldAccount(ctx context.Context, tenant, name string) (account string, err error) {
	held, err := c.HoldAccounts(ctx, tenant, []string{name})
	if account = held[name]; err == nil && account == "" {
		err = noPrincipal(name)
	}
	return account, err
}

func noPrincipal(id string) error {
	return errs.New(errs.Forbidden, "%s is no user or team of this tenant, so nothing can belong to them.", id)
}

// HoldPrincipals is HoldPrincipal for any number of users, teams and "*". It returns those that
// exist.
func (c Conn) HoldPrincipals(ctx context.Context, tenant string, ids []string) (held map[string]bool, err error) {
	query := `SELECT id FROM tc_principals WHERE tenant_id = $1 AND id ` + c.OneOf(2) + ` ORDER BY id`
	if c.Postgres() {
		query += ` FOR KEY SHARE`
	}
	held, err = TextSet(c.Rows(ctx, query, tenant, Keys(ids)))
	return held, Err(err, "User")
}
