package indexer

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// writer collects rows of a segment, and writes them in steps.
type writer struct {
	x      *Indexer
	l      list
	number int
	table  string
	rows   [3][]string
	bytes  int
}

const stepBytes = 1 << 20

func (w *writer) put(ctx context.Context, table string, row ...string) error {
	w.table = table
	for i, text := range row {
		w.rows[i] = append(w.rows[i], text)
		w.bytes += len(text)
	}
	if len(w.rows[0]) < inStep && w.bytes < stepBytes {
		return nil
	}
	return w.flush(ctx)
}

// flush writes the collected rows.
func (w *writer) flush(ctx context.Context) error {
	if len(w.rows[0]) == 0 {
		return nil
	}
	rows := bunx.Keys(w.rows[:]...)
	err := bunx.Write(ctx, w.x.db, w.l.tenant, func(ctx context.Context, c bunx.Conn) error {
		var state string
		err := c.One(
			ctx, "Index", `SELECT state FROM tc_search_segments WHERE `+of+` AND segment = $4`+c.ForChange(),
			w.l.args(w.number), &state,
		)
		if err != nil {
			return ignoreGone(err)
		}
		if state != "written" { // another process is removing it
			return errTaken
		}
		columns, values := `(tenant_id, list, part, segment, block, ids)`, `name, list`
		if w.table == "grams" {
			columns, values = `(tenant_id, list, part, segment, gram, n, docs)`, `name, CAST(n AS integer), list`
		}
		_, err = c.Exec(ctx, `WITH v (name, n, list) AS `+c.Among(5, 3)+` INSERT INTO tc_search_`+w.table+` `+columns+
			` SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS integer), `+values+` FROM v`,
			w.l.args(w.number, rows)...)
		return bunx.Err(err, "Index")
	})
	w.rows, w.bytes = [3][]string{}, 0
	return err
}

// clean removes segments that were replaced, and incomplete segments of killed processes.
func (x *Indexer) clean(ctx context.Context, l list) error {
	if _, err := x.exec(
		ctx, l, `UPDATE tc_search_segments SET state = 'gone' WHERE `+of+` AND state = 'written'`,
	); err != nil {
		return err
	}
	own, c := bunx.For(ctx, x.db, l.tenant)
	rows, err := c.Rows(own, `SELECT segment FROM tc_search_segments WHERE `+of+
		` AND state = 'gone' ORDER BY segment`, l.args()...)
	gone, err := bunx.Scan(rows, err, func(rows *sql.Rows) (n int, err error) { return n, rows.Scan(&n) })
	if err != nil || len(gone) == 0 {
		return bunx.Err(err, "Index")
	}
	for after := ""; ; {
		rows, err := c.Rows(own, `SELECT gram FROM tc_search_grams WHERE `+of+
			` AND gram > $4 GROUP BY gram ORDER BY gram LIMIT `+strconv.Itoa(gramsInStep), l.args(after)...)
		grams, err := bunx.Scan(rows, err, bunx.Text)
		if err != nil {
			return bunx.Err(err, "Index")
		}
		if len(grams) == 0 {
			break
		}
		last := grams[len(grams)-1]
		if _, err := x.exec(ctx, l, `DELETE FROM tc_search_grams WHERE `+of+` AND gram > $4 AND gram <= $5
			AND segment IN (SELECT segment FROM tc_search_segments WHERE `+of+` AND state = 'gone')`,
			after, last); err != nil {
			return err
		}
		after = last
	}
	for _, segment := range gone {
		if _, err := x.exec(ctx, l, `DELETE FROM tc_search_docs WHERE `+of+
			` AND block >= $4 AND block < $5`, blocks(segment)...); err != nil {
			return err
		}
		if _, err := x.exec(
			ctx, l, `DELETE FROM tc_search_segments WHERE `+of+` AND segment = $4 AND state = 'gone'`, segment,
		); err != nil {
			return err
		}
	}
	return nil
}
