package draftstore

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// merge makes the statements that merge the entities of some principals.
//
// SQLite merges ordered SELECTs efficiently, so each principal has one. The number of principals is
// rounded up so that there are few different statements. PostgreSQL looks up one principal after
// the other, with the same statement for any number.
type merge struct {
	rows, shared    string // names of the tables
	listed, listedA string // Store.listed, and the same for the alias a
	c               bunx.Conn
	n               int   // number of arguments
	args            []any // the principals
}

func (s *Store[T]) newMerge(c bunx.Conn, principals []string) merge {
	m := merge{c: c, rows: s.rows, shared: s.shared, listed: s.listed, listedA: s.listedAs("a.")}
	if c.Postgres() {
		m.n, m.args = 1, []any{bunx.Keys(principals)}
		return m
	}
	m.n = max(4, 1<<bits.Len(uint(max(len(principals), 1)-1)))
	m.args = bunx.Args(principals)
	for len(m.args) < m.n {
		m.args = append(m.args, "") // "" owns nothing
	}
	return m
}

// page returns the statement of a page: some columns of an entity, and the number of entities that
// the principals see. Its arguments are the tenant, the most rows, how many are skipped, the
// principals, and the position of r if it has one.
func (m merge) page(columns string, r bunx.Range) string {
	const principals = 4
	and := func(before, column string) string {
		if r.After == nil {
			return ""
		}
		return fmt.Sprintf("%s(%s, id) %s ($%d, $%d)", before, column, r.Past, principals+m.n, principals+m.n+1)
	}
	ownedBy := func(owner string) string {
		return `SELECT ` + r.Column + ` AS at, id FROM ` + m.rows + ` WHERE tenant_id = $1 AND owner_id = ` + owner +
			` AND ` + m.listed + and(` AND `, r.Column)
	}
	branches := make([]string, 0, m.n+1)
	if m.c.Postgres() {
		branches = append(branches, `SELECT o.at, o.id FROM principals p CROSS JOIN LATERAL (`+ownedBy("p.id")+
			order("", r.Column, r.Dir)+` LIMIT $2::bigint + $3::bigint) o`)
	} else {
		for i := range m.n {
			branches = append(branches, ownedBy(fmt.Sprintf("$%d", principals+i)))
		}
	}
	branches = append(branches, `SELECT at, id FROM shared`+and(` WHERE `, "at"))
	rows := m.rows + ` a WHERE a.tenant_id = $1 AND a.id = shown.id`
	if m.c.Postgres() { // OFFSET prevents an ordinary join
		rows = `LATERAL (SELECT * FROM ` + m.rows + ` WHERE tenant_id = $1 AND id = shown.id OFFSET 0) a`
	}
	return m.with(principals, r.Column) + `, shown AS MATERIALIZED (` + strings.Join(branches, " UNION ALL ") +
		order("", "at", r.Dir) + ` LIMIT $2 OFFSET $3)
		SELECT ` + columns + `, ` + m.total() + ` FROM shown CROSS JOIN ` + rows + order("shown.", "at", r.Dir)
}

// count returns the statement that counts what the principals see. Its arguments are the tenant and
// the principals.
func (m merge) count() string { return m.with(2, "label") + ` SELECT ` + m.total() }

// with returns the WITH of a statement whose principals begin at an argument. shared are the
// entities that are shared with them and that they do not own, with the column by which the rows
// are ordered.
func (m merge) with(principals int, column string) string {
	if m.c.Postgres() {
		return `WITH principals (id) AS MATERIALIZED ` + m.c.Among(principals, 1) + `,
			shared AS MATERIALIZED (SELECT ` + column + ` AS at, id FROM ` + m.rows +
			` WHERE tenant_id = $1 AND id = ANY (ARRAY(
				SELECT entity_id FROM ` + m.shared + ` WHERE tenant_id = $1 AND principal_id = ` + anyPrincipal +
			` AND access_level > 0))
				AND ` + m.listed + ` AND owner_id NOT IN (SELECT id FROM principals))`
	}
	return `WITH principals (id) AS MATERIALIZED (VALUES ` + strings.ReplaceAll(
		bunx.In(principals, m.n), `,`, `),(`,
	) + `),
		shared AS MATERIALIZED (SELECT a.` + column +
		` AS at, a.id FROM (SELECT DISTINCT s.entity_id FROM principals p CROSS JOIN ` + m.shared + ` s
			WHERE s.tenant_id = $1 AND s.principal_id = p.id AND s.access_level > 0) g CROSS JOIN ` + m.rows + ` a
			WHERE a.tenant_id = $1 AND a.id = g.entity_id AND ` + m.listedA +
		` AND a.owner_id NOT IN (SELECT id FROM principals))`
}

// anyPrincipal is an array, which PostgreSQL looks up in an index in one scan.
const anyPrincipal = `ANY (ARRAY(SELECT id FROM principals))`

// owned returns the list of tc_totals that counts the rows of a table by owner.
func owned(table string) string { return "owned_" + strings.TrimPrefix(table, "tc_") }

// total returns an expression for the number of entities that the principals see.
func (m merge) total() string {
	principals := `IN (SELECT id FROM principals)`
	if m.c.Postgres() {
		principals = `= ` + anyPrincipal
	}
	return `(SELECT count(*) FROM shared) + ` + bunx.Total(owned(m.rows), principals) + ` AS total`
}

func order(table, column, dir string) string {
	return ` ORDER BY ` + table + column + ` ` + dir + `, ` + table + `id ` + dir
}
