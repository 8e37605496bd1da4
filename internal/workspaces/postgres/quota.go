package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// size is the measured size of a workspace.
type size struct {
	bytes int64
	since int64 // bytes that may have been written then
	at    time.Time
}

// fresh is how long a measure is valid.
const fresh = 2 * time.Second

// room returns errs.TooLarge if a workspace is as large as it may be.
func (d *Driver) room(ctx context.Context, own string, s sqltext.Statement, values []any) error {
	written := int64(len(s.Text)) + 64
	for _, v := range values {
		written += int64(len(encode(v)))
	}
	if s.Has("SELECT") || s.Has("UPDATE") || s.Has("ALTER") { // these can write any number of rows
		written += d.o.Quota
	}
	d.mu.Lock()
	last, ok := d.sizes[own]
	d.mu.Unlock()
	if !ok || time.Since(last.at) > fresh || last.since > d.o.Quota/16 {
		var err error
		if last, err = d.measured(ctx, own); err != nil {
			return err
		}
	}
	if last.bytes >= d.o.Quota {
		d.remember(own, last)
		return d.full()
	}
	last.since += written
	d.remember(own, last)
	return nil
}

func (d *Driver) full() error {
	return errs.New(
		errs.TooLarge,
		"The workspace is full: it can have %d MiB. Empty tables with TRUNCATE, or drop them; the room of "+
			"deleted rows becomes free later.",
		d.o.Quota>>20,
	)
}

// measured returns the size of a workspace now, with what open transactions have written into
// tables that were there before them.
func (d *Driver) measured(ctx context.Context, own string) (size, error) {
	now := size{at: time.Now()}
	return now, d.asAdmin(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx,
			`SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
				JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND c.relkind IN ('r', 'm', 'p')`, own).Scan(&now.bytes)
	})
}

// watching is how often the size is looked at while one statement writes.
const watching = 250 * time.Millisecond

// watch cancels a statement that makes a workspace larger than it may be. The returned function
// ends that, and reports whether it was canceled.
func (d *Driver) watch(ctx context.Context, own string, cancel func()) (stop func() bool) {
	ctx, end := context.WithCancel(ctx)
	done, over := make(chan struct{}), false
	go func() {
		defer close(done)
		ticks := time.NewTicker(watching)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			now, err := d.measured(ctx, own)
			if err == nil && now.bytes >= d.o.Quota {
				d.remember(own, now)
				over = true
				cancel()
				return
			}
		}
	}()
	return func() bool {
		end()
		<-done
		return over
	}
}

func (d *Driver) remember(own string, s size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sizes) > 10_000 {
		clear(d.sizes)
	}
	d.sizes[own] = s
}

// Sizes implements workspaces.Driver.
func (d *Driver) Sizes(ctx context.Context, tenant string, apps []string) (map[string]int64, error) {
	names := make([]string, len(apps))
	for i, app := range apps {
		names[i] = name(tenant, app)
	}
	all := map[string]int64{}
	err := d.asAdmin(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx,
			`SELECT n.nspname::text, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_namespace n
			LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'm', 'p')
				WHERE n.nspname = ANY ($1::text[]::name[]) GROUP BY 1`,
			names)
		if err != nil {
			return err
		}
		var own string
		var bytes int64
		_, err = pgx.ForEachRow(rows, []any{&own, &bytes}, func() error {
			all[apps[slices.Index(names, own)]] = bytes
			return nil
		})
		return err
	})
	return all, err
}

// Once implements tenantsql.Backend. The record is written first: a second caller waits for it.
func (l *session) Once(ctx context.Context, m workspaces.Migration, fn func() error) error {
	return l.transaction(ctx, "BEGIN", func() error {
		result := l.pg.ExecParams(ctx, "INSERT INTO "+recorded+
			" (name, digest, applied_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
			[][]byte{[]byte(m.Name), []byte(m.Digest), []byte(workspaces.Time(time.Now()))}, nil, nil, nil).Read()
		if result.Err != nil || result.CommandTag.RowsAffected() == 0 {
			return l.worded(ctx, result.Err, sqltext.Statement{})
		}
		return fn()
	})
}

// Run implements tenantsql.Backend.
func (l *session) Run(ctx context.Context, s sqltext.Statement) error {
	if err := l.check(ctx, s, nil); err != nil {
		return err
	}
	_, err := l.statement(ctx, s, nil)
	return err
}

// Applied implements tenantsql.Backend.
func (l *session) Applied(ctx context.Context) (map[string]string, error) {
	result := l.pg.ExecParams(ctx, "SELECT name, digest FROM "+recorded, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, l.worded(ctx, result.Err, sqltext.Statement{})
	}
	all := map[string]string{}
	for _, row := range result.Rows {
		all[string(row[0])] = string(row[1])
	}
	return all, nil
}

// Stats implements workspaces.Driver. Rows are counted for five seconds; those of tables that are
// left are estimated.
func (d *Driver) Stats(ctx context.Context, w workspaces.Workspace) (workspaces.Stats, error) {
	c, err := d.connect(ctx, w)
	if err != nil {
		return workspaces.Stats{}, err
	}
	defer func() { _ = c.Close() }()
	l := c.Backend
	s := workspaces.Stats{Limit: d.o.Quota, Tables: []workspaces.Table{}}
	err = d.asAdmin(ctx, func(ctx context.Context, c *pgx.Conn) error { return tables(ctx, c, l.own, &s) })
	if err != nil {
		return s, err
	}
	counting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.Name == recorded {
			continue
		}
		result := l.pg.ExecParams(counting, "SELECT count(*) FROM "+quote(t.Name), nil, nil, nil, nil).Read()
		if result.Err != nil {
			if errors.Is(counting.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
				break
			}
			return s, l.worded(ctx, result.Err, sqltext.Statement{})
		}
		if n, ok := decode(20, -1, result.Rows[0][0]).(int64); ok {
			t.Rows = n
		}
	}
	return s, nil
}

// tables reads the sizes, estimated rows and columns of a schema.
func tables(ctx context.Context, c *pgx.Conn, own string, s *workspaces.Stats) error {
	rows, err := c.Query(ctx, `SELECT c.relname, pg_total_relation_size(c.oid), greatest(c.reltuples, 0)::bigint,
		ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
		ARRAY(SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1
			AND c.relkind IN ('r', 'p') ORDER BY c.relname COLLATE "C"`,
		own)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var t workspaces.Table
		var columns, types []string
		if err := rows.Scan(&t.Name, &t.Bytes, &t.Rows, &columns, &types); err != nil {
			return err
		}
		s.Bytes += t.Bytes
		if t.Name == recorded {
			continue
		}
		t.Columns = []workspaces.Column{}
		for i := range columns {
			t.Columns = append(t.Columns, workspaces.Column{Name: columns[i], Type: types[i]})
		}
		s.Tables = append(s.Tables, t)
	}
	return rows.Err()
}
