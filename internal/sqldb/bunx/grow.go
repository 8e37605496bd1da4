package bunx

import (
	"context"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// PostgreSQL keeps the plan of a statement, and of the query that checks a foreign key, until the
// statistics of its tables change. A plan that was made when a table was empty may read all rows of
// a tenant. Statistics do not include rows of uncommitted transactions. So long transactions have
// their plans made again as they write, and update the statistics of the tables they changed when
// they end.

// growStep is the number of rows after which later statements are planned again, and the statistics
// of a table are updated.
const growStep = 1000

// growth counts what a transaction of Long work has written on PostgreSQL.
type growth struct {
	rows, next int
}

// add counts rows. Each time their number has doubled, later statements are planned again.
func (g *growth) add(ctx context.Context, c Conn, rows int) error {
	g.rows += rows
	if g.rows < max(g.next, growStep) {
		return nil
	}
	g.next = 2 * g.rows
	return c.Replan(ctx)
}

// Replan makes PostgreSQL plan later statements on this connection, and checks of foreign keys, by
// the current sizes of tables. A transaction that changes many rows calls it first.
func (c Conn) Replan(ctx context.Context) error {
	if !c.Postgres() {
		return nil
	}
	_, err := c.fixed.ExecContext(ctx, "DISCARD PLANS")
	return err
}

// changed returns the tables, or partitions, in which the transaction has changed many rows.
func (g *growth) changed(ctx context.Context, c Conn) ([]string, error) {
	if g == nil || g.rows < growStep || IsDryRun(ctx) {
		return nil, nil
	}
	rows, err := c.Rows(ctx, `SELECT CAST(CAST(relid AS regclass) AS text) FROM pg_stat_xact_user_tables
		WHERE relname LIKE 'tc\_%' AND n_tup_ins + n_tup_upd + n_tup_del >= $1 ORDER BY relid`, growStep)
	return Scan(rows, err, Text)
}

// maxAnalyze is the most time for updating the statistics of tables.
const maxAnalyze = 10 * time.Second

// analyze updates the statistics of tables, from a sample of their rows. If it fails, or the role
// is not allowed to do it, autovacuum does it later.
func analyze(ctx context.Context, db *bun.DB, tables []string) {
	if len(tables) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxAnalyze)
	defer cancel()
	_, _ = withHooks(db, db.DB).ExecContext(ctx, "ANALYZE (SKIP_LOCKED) "+strings.Join(tables, ", "))
}

// Analyze makes PostgreSQL update the statistics of a table, or of a tenant's partition of it, to
// which many transactions have added many rows. It must not be called in a transaction.
func Analyze(ctx context.Context, db *bun.DB, tenant, table string) {
	ctx, c := For(ctx, db, tenant)
	if !c.Postgres() {
		return
	}
	var name string
	err := c.Row(
		ctx, `SELECT CAST(CAST(tableoid AS regclass) AS text) FROM `+table+` WHERE tenant_id = $1 LIMIT 1`,
		tenant,
	).Scan(&name)
	if err == nil {
		analyze(ctx, db, []string{name})
	}
}
