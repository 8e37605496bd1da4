package bunstore

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// merge makes the statements that merge the apps of some principals.
//
// SQLite merges SELECTs by itself, so each principal has one, and the number of principals is rounded up so that there are few
// statements. PostgreSQL looks each principal up in turn, which is one statement for any number.
type merge struct {
	postgres bool
	n        int   // arguments
	args     []any // the principals
}

func newMerge(c bunx.Conn, principals []string) merge {
	if c.Postgres() {
		return merge{postgres: true, n: 1, args: []any{bunx.Keys(principals)}}
	}
	m := merge{n: max(4, 1<<bits.Len(uint(max(len(principals), 1)-1)))}
	m.args = bunx.Args(principals)
	for len(m.args) < m.n {
		m.args = append(m.args, "") // owns nothing
	}
	return m
}

// page returns the statement of a page: the columns of an app, and the number of all that the principals see. Its arguments are
// the tenant, the most rows, how many are skipped, the principals, and the position of r where it has one.
func (m merge) page(r bunx.Range) string {
	const principals = 4
	past := ""
	if r.After != nil {
		past = fmt.Sprintf("(%%s, id) %s ($%d, $%d)", r.Past, principals+m.n, principals+m.n+1)
	}
	and := func(before, column string) string {
		if past == "" {
			return ""
		}
		return before + fmt.Sprintf(past, column)
	}
	owned := func(owner string) string {
		return `SELECT ` + r.Column + ` AS at, id FROM tc_apps WHERE tenant_id = $1 AND owner_id = ` + owner + ` AND ` + listed + and(` AND `, r.Column)
	}
	branches := make([]string, 0, m.n+1)
	if m.postgres {
		branches = append(branches, `SELECT o.at, o.id FROM principals p CROSS JOIN LATERAL (`+owned("p.id")+
			order("", r.Column, r.Dir)+` LIMIT $2::bigint + $3::bigint) o`)
	} else {
		for i := range m.n {
			branches = append(branches, owned(fmt.Sprintf("$%d", principals+i)))
		}
	}
	branches = append(branches, `SELECT at, id FROM shared`+and(` WHERE `, "at"))
	return m.with(principals, r.Column) + `, shown AS MATERIALIZED (` + strings.Join(branches, " UNION ALL ") + order("", "at", r.Dir) + ` LIMIT $2 OFFSET $3)
		SELECT ` + table.Qualified + `, ` + m.total(principals) + ` FROM shown CROSS JOIN ` + m.lateral(`tc_apps`, `*`, `id = shown.id`) + ` AS a` +
		m.where(`a.tenant_id = $1 AND a.id = shown.id`) + order("shown.", "at", r.Dir)
}

// count returns the statement that counts what the principals see. Its arguments are the tenant and the principals.
func (m merge) count() string { return m.with(2, "label") + ` SELECT ` + m.total(2) }

// with returns the WITH of a statement whose principals begin with an argument: shared are the apps that they do not own and have
// a share of, with the column that the rows are ordered by.
func (m merge) with(principals int, column string) string {
	const shares = `FROM tc_app_shares WHERE tenant_id = $1 AND access_level > 0 AND principal_id`
	if m.postgres {
		return fmt.Sprintf(`WITH principals AS MATERIALIZED (SELECT value ->> 0 AS id FROM json_array_elements($%d)),
			shared AS MATERIALIZED (SELECT a.%s AS at, a.id FROM (SELECT DISTINCT s.entity_id FROM principals p CROSS JOIN LATERAL
				(SELECT entity_id %s = p.id OFFSET 0) s) s
				CROSS JOIN %s a WHERE NOT EXISTS (SELECT FROM principals p WHERE p.id = a.owner_id))`,
			principals, column, shares, m.lateral(`tc_apps`, `*`, `id = s.entity_id AND `+listed))
	}
	in := bunx.In(principals, m.n)
	return fmt.Sprintf(`WITH shared AS MATERIALIZED (SELECT a.%s AS at, a.id FROM (SELECT DISTINCT entity_id %s IN %s) s
		CROSS JOIN tc_apps a WHERE a.tenant_id = $1 AND a.id = s.entity_id AND a.editing_id IS NULL AND a.deleted_at IS NULL AND a.owner_id NOT IN %s)`,
		column, shares, in, in)
}

// total is the number of apps that the principals see.
func (m merge) total(principals int) string {
	owned := `(SELECT count(*) FROM tc_apps WHERE tenant_id = $1 AND owner_id IN ` + bunx.In(principals, m.n) + ` AND ` + listed + `)`
	if m.postgres {
		owned = `(SELECT coalesce(sum(o.n), 0)::bigint FROM principals p CROSS JOIN LATERAL (SELECT count(*) AS n FROM tc_apps
			WHERE tenant_id = $1 AND owner_id = p.id AND ` + listed + `) o)`
	}
	return `(SELECT count(*) FROM shared) + ` + owned + ` AS total`
}

// lateral returns a table to CROSS JOIN whose rows meet a condition. PostgreSQL then goes to the index once for each row before
// it, whatever its statistics say; SQLite keeps the order of a CROSS JOIN by itself.
func (m merge) lateral(name, columns, where string) string {
	if !m.postgres {
		return name
	}
	return `LATERAL (SELECT ` + columns + ` FROM ` + name + ` WHERE tenant_id = $1 AND ` + where + ` OFFSET 0)`
}

// where returns a condition that lateral has where that is one.
func (m merge) where(condition string) string {
	if m.postgres {
		return ``
	}
	return ` WHERE ` + condition
}

func order(table, column, dir string) string {
	return ` ORDER BY ` + table + column + ` ` + dir + `, ` + table + `id ` + dir
}
