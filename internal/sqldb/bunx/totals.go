package bunx

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/uptrace/bun"
)

// Total returns an expression for the number of rows in some parts of a list, for the tenant in
// argument $1. parts is the end of a condition, such as "= $2". The lists are defined by the
// migration that creates tc_totals, whose triggers maintain the numbers. They are exact in every
// transaction.
func Total(list, parts string) string {
	return `(SELECT CAST(coalesce(sum(n), 0) AS bigint) FROM tc_totals WHERE tenant_id = $1 AND list = '` + list +
		`' AND part ` + parts + `)`
}

// Whole is the condition for the only part of a list that is not divided.
const Whole = `= ''`

// foldBatch is the number of slots that one transaction adds up.
const foldBatch = 1000

// foldSlots adds up slots that no transaction is about to write. It returns the parts that have no
// rows any more and, last, the number of slots. A list that has 2,000 rows now gets an index of
// trigrams. A migration that writes slot 0 must add such lists itself.
const foldSlots = `WITH slots AS (SELECT tenant_id, list, part, slot FROM tc_totals WHERE slot <> 0 ORDER BY tenant_id, list, part LIMIT $1 FOR UPDATE SKIP LOCKED),
	gone AS (DELETE FROM tc_totals t USING slots s WHERE t.tenant_id = s.tenant_id AND t.list = s.list AND t.part = s.part AND t.slot = s.slot
		RETURNING t.tenant_id, t.list, t.part, t.n),
	folded AS (INSERT INTO tc_totals AS t (tenant_id, list, part, slot, n) SELECT tenant_id, list, part, 0, sum(n) FROM gone GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
		ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = t.n + excluded.n RETURNING t.tenant_id, t.list, t.part, t.n),
	long AS (INSERT INTO tc_search_lists (tenant_id, list, part) SELECT tenant_id, list, part FROM folded WHERE n >= 2000
		AND list IN ('ai_instructions', 'apps', 'assistants', 'bundles', 'colors', 'domains', 'entities', 'teams', 'users') ON CONFLICT DO NOTHING)
	SELECT tenant_id, list, part FROM folded WHERE n = 0 UNION ALL SELECT '', '', CAST(count(*) AS text) FROM slots`

// FoldTotals adds up the slots that transactions have written, for all tenants and without waiting
// for transactions, and returns their number.
func FoldTotals(ctx context.Context, db *bun.DB) (n int, err error) {
	if _, c := For(ctx, db, AllTenants); !c.Postgres() { // SQLite has one slot
		return 0, nil
	}
	for some := foldBatch; some == foldBatch && err == nil; {
		err = Write(ctx, db, AllTenants, func(ctx context.Context, c Conn) (err error) {
			some, err = foldSome(ctx, c)
			return Err(err, "Total")
		})
		n += some
	}
	return n, err
}

// foldSome adds up slots in one transaction, and removes the parts that have no rows any more.
func foldSome(ctx context.Context, c Conn) (n int, err error) {
	var tenants, lists, parts []string
	rows, err := c.Rows(ctx, foldSlots, foldBatch)
	_, err = Scan(rows, err, func(rows *sql.Rows) (struct{}, error) {
		var tenant, list, part string
		err := rows.Scan(&tenant, &list, &part)
		if err == nil && list == "" {
			n, err = strconv.Atoi(part)
			return struct{}{}, err
		}
		tenants, lists, parts = append(tenants, tenant), append(lists, list), append(parts, part)
		return struct{}{}, err
	})
	if err == nil && len(parts) > 0 {
		_, err = c.Exec(
			ctx, `DELETE FROM tc_totals WHERE slot = 0 AND n = 0 AND `+c.Match(1, "tenant_id", "list", "part"),
			Keys(tenants, lists, parts),
		)
	}
	return n, err
}
