package sqlite

import (
	"context"
	"database/sql/driver"
	"regexp"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// Once implements tenantsql.Backend. The second of two callers waits for the file.
func (s *session) Once(ctx context.Context, m workspaces.Migration, fn func() error) error {
	return s.transaction(ctx, func() error {
		before, err := s.Applied(ctx)
		if _, ok := before[m.Name]; ok || err != nil {
			return err
		}
		if err := fn(); err != nil {
			return err
		}
		return s.exec(
			ctx, "INSERT INTO "+recorded+" (name, digest, applied_at) VALUES ($1, $2, $3)", m.Name, m.Digest,
			workspaces.Time(time.Now()),
		)
	})
}

// Run implements tenantsql.Backend.
func (s *session) Run(ctx context.Context, statement sqltext.Statement) error {
	end, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := s.tie(ctx, statement); err != nil {
		return err
	}
	_, err = s.statement(ctx, statement, nil, s.d.o)
	return err
}

// Applied implements tenantsql.Backend.
func (c *conn) Applied(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	err := c.read(ctx, "SELECT name, digest FROM "+recorded, func(row []driver.Value) error {
		name, _ := row[0].(string)
		all[name], _ = row[1].(string)
		return nil
	})
	return all, err
}

// Stats implements workspaces.Driver. Rows are counted.
func (d *Driver) Stats(ctx context.Context, w workspaces.Workspace) (workspaces.Stats, error) {
	c, err := d.connect(ctx, w)
	if err != nil {
		return workspaces.Stats{}, err
	}
	defer func() { _ = c.Close() }()
	end, err := c.Backend.turn(ctx)
	if err != nil {
		return workspaces.Stats{}, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, d.o.Time)
	defer cancel()
	return c.Backend.stats(ctx, d.o.Quota)
}

func (c *conn) stats(ctx context.Context, quota int64) (workspaces.Stats, error) {
	s := workspaces.Stats{Limit: quota, Tables: []workspaces.Table{}}
	number := func(to *int64) func([]driver.Value) error {
		return func(row []driver.Value) error {
			*to, _ = row[0].(int64)
			return nil
		}
	}
	if err := c.read(
		ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", number(&s.Bytes),
	); err != nil {
		return s, err
	}
	sizes := map[string]int64{}
	err := c.read(ctx,
		"SELECT coalesce(m.tbl_name, d.name), sum(d.pgsize) FROM dbstat d LEFT "+
			"JOIN sqlite_schema m ON m.name = d.name GROUP BY 1", func(row []driver.Value) error {
			name, _ := row[0].(string)
			sizes[name], _ = row[1].(int64)
			return nil
		})
	if err != nil {
		return s, err
	}
	err = c.read(ctx,
		"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "+
			"AND name <> $1 ORDER BY name", func(row []driver.Value) error {
			name, _ := row[0].(string)
			s.Tables = append(
				s.Tables, workspaces.Table{Name: name, Bytes: sizes[name], Columns: []workspaces.Column{}},
			)
			return nil
		}, recorded)
	if err != nil {
		return s, err
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		if err := c.read(ctx, "SELECT count(*) FROM "+quote(t.Name), number(&t.Rows)); err != nil {
			return s, err
		}
		err := c.read(ctx, "SELECT name, type FROM pragma_table_xinfo($1) WHERE hidden <> 1 ORDER BY cid",
			func(row []driver.Value) error {
				name, _ := row[0].(string)
				kind, _ := row[1].(string)
				t.Columns = append(t.Columns, workspaces.Column{Name: name, Type: kind})
				return nil
			}, t.Name)
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// nearSign is the word or sign that SQLite's message about a syntax names.
var nearSign = regexp.MustCompile(`^near "(.*)": `)

// Line implements tenantsql.Backend, as far as SQLite's message names a place.
func (c *conn) Line(s sqltext.Statement, err error) int {
	m := nearSign.FindStringSubmatch(errs.MessageOf(err))
	if m == nil {
		return 0
	}
	found := -1
	for _, t := range s.Tokens {
		if t.Value == m[1] {
			if found >= 0 { // it is one of several
				return 0
			}
			found = t.Pos
		}
	}
	return sqltext.LineOf(s.Text, max(found, 0)) - 1
}

// quote returns an identifier of SQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
