package bunx

import (
	"context"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// PostgreSQL keeps the plan of a statement, and of what a foreign key looks up, until the
// statistics of its tables change. One that was made when a table was empty may read all rows of a
// tenant, and nobody collects statistics of rows that a transaction has not committed. So long
// transactions have their plans made anew as they write, and collect the statistics of what they
// have written when they end.

// growStep is how many rows change the plans of the statements that follow, and the statistics of a
// table.
const growStep = 1000

// growth is what a transaction of Long work has written on PostgreSQL.
type growth struct {
	rows, next int
}

// add counts rows. Whenever their number has doubled, what follows is planned anew.
func (g *growth) add(ctx context.Context, c Conn, rows int) error {
	g.rows += rows
	if g.rows < max(g.next, growStep) {
		return nil
	}
	g.next = 2 * g.rows
	return c.Replan(ctx)
}

// Replan has PostgreSQL plan the statements that follow on this connection by the sizes that tables
// have now, and so what foreign keys look up. A transaction that changes many rows begins with it.
func (c Conn) Replan(ctx context.Context) error {
	if !c.Postgres() {
		return nil
	}
	_, err := c.fixed.ExecContext(ctx, "DISCARD PLANS")
	return err
}

// changed returns the tables, or partitions, of which the transaction has changed many rows.
func (g *growth) changed(ctx context.Context, c Conn) ([]string, error) {
	if g == nil || g.rows < growStep || IsDryRun(ctx) {
		return nil, nil
	}
	rows, err := c.Rows(ctx, `SELECT CAST(CAST(relid AS regclass) AS text) FROM pg_stat_xact_user_tables
		WHERE relname LIKE 'tc\_%' AND n_tup_ins + n_tup_upd + n_tup_del >= $1 ORDER BY relid`, growStep)
	return Scan(rows, err, Text)
}

// maxAnalyze is how long the statistics of tables are collected at most.
const maxAnalyze = 10 * time.Second

// analyze collects the statistics of tables, from a sample of their rows. What fails, or is not
// allowed to the role, is left to the server's autovacuum.
func analyze(ctx context.Context, db *bun.DB, tables []string) {
	if len(tables) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxAnalyze)
	defer cancel()
	_, _ = withHooks(db, db.DB).ExecContext(ctx, "ANALYZE (SKIP_LOCKED) "+strings.Join(tables, ", "))
}

// Analyze has PostgreSQL collect the statistics of a table, or of a tenant's partition of it, to
// which many rows were added in many transactions. It is not called in a transaction.
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
