package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// searched are the tables with a column search.
var searched = []searchTable{
	{"tc_ai_instructions", []string{"id"}},
	{"tc_apps", []string{"id"}},
	{"tc_assistants", []string{"id"}},
	{"tc_bundles", []string{"id"}},
	{"tc_colors", []string{"key"}},
	{"tc_domains", []string{"id"}},
	{"tc_entities", []string{"kind", "id"}},
	{"tc_events", []string{"id"}},
	{"tc_messages", []string{"id"}},
	{"tc_teams", []string{"id"}},
	{"tc_users", []string{"username"}},
}

// searchTable is a table with a column search, and the columns of its primary key after the tenant.
type searchTable struct {
	name string
	key  []string
}

// foldedAtOnce is the number of rows that foldAccents reads and writes with one statement.
const foldedAtOnce = 500

// foldAccents sets all search columns to the result of fold.Search. Before this migration they have
// that of fold.Text, of which fold.Search makes the same as of the original. Rows of ASCII do not
// change. The triggers of the tables note the changed rows for the indexes of searches.
func foldAccents(ctx context.Context, c bunx.Conn) error {
	tenants, err := texts(ctx, c, `SELECT tenant_id FROM tc_tenants ORDER BY tenant_id`)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		ctx, c := bunx.For(ctx, c.DB, tenant)
		for _, t := range searched {
			if err := t.fold(ctx, c, tenant); err != nil {
				return fmt.Errorf("%s of %s: %w", t.name, tenant, bunx.Err(err, ""))
			}
		}
	}
	return nil
}

// fold does the work of foldAccents for the rows of a tenant.
func (t searchTable) fold(ctx context.Context, c bunx.Conn, tenant string) error {
	read, write := t.read(c), t.write(c)
	last := make([]string, len(t.key))
	for n := foldedAtOnce; n == foldedAtOnce; {
		args := []any{tenant}
		for _, text := range last {
			args = append(args, text)
		}
		rows, err := c.Rows(ctx, read, args...)
		some, err := bunx.Scan(rows, err, t.scan)
		if n = len(some); err != nil || n == 0 {
			return err
		}
		last = some[n-1][:len(t.key)]
		if changed := t.changed(some); len(changed[0]) > 0 {
			if _, err := c.Exec(ctx, write, tenant, bunx.Keys(changed...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// read returns the statement that selects the key and the text of the next rows that are not ASCII.
// The arguments are the tenant and the last key.
func (t searchTable) read(c bunx.Conn) string {
	bytes, key, after := "length(CAST(search AS blob))", strings.Join(t.key, ", "), "$2"
	if c.Postgres() {
		bytes = "octet_length(search)"
	}
	for i := range t.key[1:] {
		after += fmt.Sprintf(", $%d", i+3)
	}
	return fmt.Sprintf(
		`SELECT %[1]s, search FROM %[2]s WHERE tenant_id = $1 AND (%[1]s) > (%[3]s) AND %[4]s <> length(search)
		ORDER BY %[1]s LIMIT %[5]d`, key, t.name, after, bytes, foldedAtOnce,
	)
}

func (t searchTable) scan(rows *sql.Rows) ([]string, error) {
	row := make([]string, len(t.key)+1)
	to := make([]any, len(row))
	for i := range row {
		to[i] = &row[i]
	}
	return row, rows.Scan(to...)
}

// changed returns the columns of the keys and new texts of the rows that change.
func (t searchTable) changed(rows [][]string) [][]string {
	columns := make([][]string, len(t.key)+1)
	for _, row := range rows {
		text := row[len(t.key)]
		folded := fold.Search(text)
		if folded == text {
			continue
		}
		for i, of := range row[:len(t.key)] {
			columns[i] = append(columns[i], of)
		}
		columns[len(t.key)] = append(columns[len(t.key)], folded)
	}
	return columns
}

// write returns the statement that sets the texts of rows. The arguments are the tenant, and the
// bunx.Keys of changed. MATERIALIZED makes SQLite read these first, and look each row up.
func (t searchTable) write(c bunx.Conn) string {
	names, is := "", ""
	for i, column := range t.key {
		names += fmt.Sprintf("key%d, ", i)
		is += fmt.Sprintf(" AND %s.%s = sought.key%d", t.name, column, i)
	}
	return fmt.Sprintf(
		`WITH sought (%sfolded) AS MATERIALIZED %s
		UPDATE %s SET search = sought.folded FROM sought WHERE tenant_id = $1%s`,
		names, c.Among(2, len(t.key)+1), t.name, is,
	)
}
