package bunx

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
)

// A step changes at most stepRows rows: others write between two of them. StepLimit ends the SELECT of these rows.
const (
	stepRows  = 500
	StepLimit = " LIMIT 500"
)

// Steps runs a statement that changes at most as many rows of a tenant as StepLimit says until it finds no more, each time in a transaction
// of its own, and reports the number of all rows. In a sweep it ends with entity.ErrMore when others have their turn. It is not called in a transaction.
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

// DeleteSteps deletes the rows of a tenant for which a condition holds, as Steps does. key are the columns of the primary key behind the tenant,
// parted by commas; the condition has the tenant as $1 and args from $2 on.
func DeleteSteps(ctx context.Context, db *bun.DB, tenant, table, key, where string, args ...any) (n int, err error) {
	query := `DELETE FROM ` + table + ` WHERE tenant_id = $1 AND (` + key + `) IN (SELECT ` + key + ` FROM ` + table + ` WHERE tenant_id = $1 AND ` + where + StepLimit + `)`
	return Steps(ctx, db, tenant, query, append([]any{tenant}, args...)...)
}
