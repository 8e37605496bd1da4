package bunx

import (
	"context"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
)

// A step changes at most stepRows rows, so that others can write between two steps. StepLimit ends
// the SELECT of these rows.
const (
	stepRows  = 500
	StepLimit = " LIMIT 500"
)

// Steps runs a statement until it changes no more rows of a tenant, each time in a new transaction,
// and returns the number of all rows. The statement must end its SELECT with StepLimit. In a sweep
// Steps returns entity.ErrMore when the sweeps of other tenants must run. It must not be called in
// a transaction.
func Steps(ctx context.Context, db *bun.DB, tenant, query string, args ...any) (n int, err error) {
	for {
		some := 0
		err := WriteOne(ctx, db, tenant, func(ctx context.Context, c Conn) (err error) {
			some, err = c.Exec(ctx, query, args...)
			return Err(err, "Row")
		})
		if n += some; err != nil || some < stepRows {
			return n, err
		}
		if err := entity.Step(ctx); err != nil {
			return n, err
		}
	}
}

// DeleteSteps deletes the rows of a tenant that meet a condition, as Steps does. key are the
// columns of the primary key after the tenant, separated by commas. The condition has the tenant as
// $1 and args from $2 on.
func DeleteSteps(ctx context.Context, db *bun.DB, tenant, table, key, where string, args ...any) (n int, err error) {
	query := `DELETE FROM ` + table + ` WHERE tenant_id = $1 AND (` + key + `) IN (SELECT ` + key + ` FROM ` +
		table + ` WHERE tenant_id = $1 AND ` + where + StepLimit + `)`
	return Steps(ctx, db, tenant, query, append([]any{tenant}, args...)...)
}

// Some returns a condition that selects at most n rows of a table that meet another condition, for
// a DELETE or UPDATE of a few of many rows. The condition has the tenant as $1.
func (c Conn) Some(table, where string, n int) string {
	end := ` FROM ` + table + ` WHERE tenant_id = $1 AND ` + where + ` LIMIT ` + strconv.Itoa(n)
	if c.Postgres() { // the rows of a tenant are in one partition
		return `tenant_id = $1 AND ctid = ANY (ARRAY(SELECT ctid` + end + `))`
	}
	return `rowid IN (SELECT rowid` + end + `)`
}

// RemoveOf deletes at most n rows of an account from some tables, one table after the other, and
// reports whether there may be more.
func (c Conn) RemoveOf(ctx context.Context, tenant, account string, n int, tables ...string) (more bool, err error) {
	for _, table := range tables {
		some, err := c.Exec(ctx, `DELETE FROM `+table+` WHERE `+c.Some(table, `username = $2`, n), tenant, account)
		if n -= some; err != nil || n <= 0 {
			return true, Err(err, "Row")
		}
	}
	return false, nil
}
