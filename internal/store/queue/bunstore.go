// Package bunstore stores jobs and schedules in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Store implements queue.Store. It implements queue.Bell and queue.Clock if its database supports
// notifications and has a clock.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

var jobs = bunx.NewTable("tc_jobs", "j", []bunx.Column[queue.Job]{
	{Name: "tenant_id", Key: true, Field: func(j *queue.Job) any { return &j.Tenant }},
	{Name: "id", Key: true, Field: func(j *queue.Job) any { return &j.ID }},
	{Name: "kind", Field: func(j *queue.Job) any { return &j.Kind }},
	{Name: "key", Field: func(j *queue.Job) any { return bunx.TextOrNull(&j.Key) }},
	{Name: "payload", Field: func(j *queue.Job) any { return bunx.JSON(&j.Payload) }},
	{Name: "state", Field: func(j *queue.Job) any { return (*string)(&j.State) }},
	{Name: "tries", Field: func(j *queue.Job) any { return &j.Tries }},
	{Name: "error", Field: func(j *queue.Job) any { return &j.Error }},
	{Name: "node", Field: func(j *queue.Job) any { return bunx.TextOrNull(&j.Node) }},
	{Name: "lease", Field: func(j *queue.Job) any { return bunx.TextOrNull(&j.Lease) }},
	{Name: "due_at", Field: func(j *queue.Job) any { return bunx.TimeOf(&j.Due) }},
	{Name: "wake_at", Field: func(j *queue.Job) any { return bunx.TimeOrNull(&j.Wake) }},
	{Name: "created_at", Field: func(j *queue.Job) any { return bunx.TimeOf(&j.CreatedAt) }},
	{Name: "ended_at", Field: func(j *queue.Job) any { return bunx.TimeOrNull(&j.EndedAt) }},
})

const what = "Job"

// Time implements queue.Clock, for PostgreSQL.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	ctx, c := bunx.For(ctx, s.db, bunx.AllTenants)
	if !c.Postgres() {
		return time.Time{}, errors.ErrUnsupported
	}
	var at bunx.Time
	err := c.One(ctx, "Clock", `SELECT clock_timestamp()`, nil, &at)
	return at.Time, err
}

// InTx implements queue.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// AfterCommit implements queue.Store.
func (s *Store) AfterCommit(ctx context.Context, f func()) { bunx.AfterCommit(ctx, f) }

// unlessKey skips rows whose key is taken.
const unlessKey = ` ON CONFLICT (tenant_id, kind, key) WHERE key IS NOT NULL AND state <> 'dead' DO NOTHING`

// Insert implements queue.Store.
func (s *Store) Insert(ctx context.Context, tenant string, some []queue.Job) error {
	some = slices.Clone(some)
	for i := range some {
		some[i].Tenant = tenant
	}
	write := bunx.Write
	if len(some) == 1 {
		write = bunx.WriteOne
	}
	return write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := jobs.Insert(ctx, c, unlessKey, some...)
		return bunx.Err(err, what)
	})
}

// Count implements queue.Store.
func (s *Store) Count(ctx context.Context, tenant string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, what, `SELECT count(*) FROM tc_jobs WHERE tenant_id = $1 AND state <> 'dead'`, []any{tenant}, &n)
	return n, err
}

// readyLine finds the first line after another one.
const readyLine = `SELECT tenant_id, kind FROM tc_jobs WHERE state = 'ready' AND (tenant_id, kind) > ($1, $2) ` +
	`ORDER BY tenant_id, kind LIMIT 1`

// readyLines reads one line after the other, so its cost does not depend on the number of their
// jobs.
const readyLines = `WITH RECURSIVE line AS (
		SELECT * FROM (SELECT tenant_id, kind, 1 AS n FROM tc_jobs WHERE state = 'ready' AND (tenant_id, kind) > ($1, $2) ORDER BY tenant_id, kind LIMIT 1) AS head
		UNION ALL
		SELECT next.tenant_id, next.kind, line.n + 1 FROM line CROSS JOIN LATERAL (SELECT tenant_id, kind FROM tc_jobs AS j
			WHERE state = 'ready' AND (j.tenant_id, j.kind) > (line.tenant_id, line.kind) ORDER BY tenant_id, kind LIMIT 1) AS next
		WHERE line.n < $3)
	SELECT tenant_id, kind FROM line ORDER BY n`

// ReadyLines implements queue.Store. SQLite does not support LATERAL, but its statements cost very
// little.
func (s *Store) ReadyLines(ctx context.Context, after queue.Line, n int) (all []queue.Line, err error) {
	ctx, c := bunx.For(ctx, s.db, bunx.AllTenants)
	if c.Postgres() {
		rows, err := c.Rows(ctx, readyLines, after.Tenant, after.Kind, n)
		all, err = bunx.Scan(rows, err, func(rows *sql.Rows) (l queue.Line, err error) {
			err = rows.Scan(&l.Tenant, &l.Kind)
			return l, err
		})
		return all, bunx.Err(err, what)
	}
	for len(all) < n {
		var l queue.Line
		err := c.One(ctx, what, readyLine, []any{after.Tenant, after.Kind}, &l.Tenant, &l.Kind)
		switch {
		case errs.CodeOf(err) == errs.NotFound:
			return all, nil
		case err != nil:
			return nil, err
		}
		all, after = append(all, l), l
	}
	return all, nil
}

var (
	claim = `WITH picked AS MATERIALIZED (SELECT id FROM tc_jobs WHERE tenant_id = $1 AND kind = $2 AND state = 'ready'
		AND EXISTS (SELECT 1 FROM tc_tenants t WHERE t.tenant_id = $1 AND t.hidden IS NULL) ORDER BY due_at, id LIMIT $3`
	take = `) UPDATE tc_jobs SET state = 'running', tries = tries + 1, lease = $4, node = $5, wake_at = $6
		WHERE tenant_id = $1 AND id IN (SELECT id FROM picked) RETURNING ` + jobs.Names
	claimOnSQLite   = claim + take
	claimOnPostgres = claim + " FOR UPDATE SKIP LOCKED" + take
)

// Claim implements queue.Store.
func (s *Store) Claim(ctx context.Context, l queue.Line, n int, by queue.Claim) (all []queue.Job, err error) {
	err = bunx.WriteOne(ctx, s.db, l.Tenant, func(ctx context.Context, c bunx.Conn) error {
		query := claimOnSQLite
		if c.Postgres() {
			query = claimOnPostgres
		}
		rows, err := c.Rows(ctx, query, l.Tenant, l.Kind, n, by.Lease, by.Node, bunx.At(by.Until))
		all, err = bunx.Scan(rows, err, scanJob)
		return bunx.Err(err, what)
	})
	slices.SortFunc(all, func(a, b queue.Job) int {
		if d := a.Due.Compare(b.Due); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, err
}

// many is the number of jobs in one statement.
const many = 500

// byLease calls do with the ids of jobs that have the same lease, at most many at a time.
func byLease(some []queue.Job, do func(lease string, ids []string) error) error {
	ids := map[string][]string{}
	for _, j := range some {
		ids[j.Lease] = append(ids[j.Lease], j.ID)
	}
	for lease, all := range ids {
		for part := range slices.Chunk(all, many) {
			if err := do(lease, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// change runs a statement with the arguments args on jobs of a tenant whose leases are held, and
// returns the number of rows.
func (s *Store) change(
	ctx context.Context, tenant string, some []queue.Job, statement string, args ...any,
) (n int, err error) {
	err = byLease(some, func(lease string, ids []string) error {
		return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
			query, all := held(statement, args, tenant, lease, ids)
			m, err := c.Exec(ctx, query, all...)
			n += m
			return bunx.Err(err, what)
		})
	})
	return n, err
}

// held appends to a statement the condition that a row is a job of a tenant with a lease.
func held(statement string, args []any, tenant, lease string, ids []string) (string, []any) {
	n := len(args)
	where := fmt.Sprintf(" WHERE tenant_id = $%d AND lease = $%d AND id IN ", n+1, n+2)
	return statement + where + bunx.In(n+3, len(ids)), bunx.Args(ids, append(slices.Clone(args), tenant, lease)...)
}

// Extend implements queue.Store.
func (s *Store) Extend(ctx context.Context, tenant string, some []queue.Job, until time.Time) (map[string]bool, error) {
	all := map[string]bool{}
	err := byLease(some, func(lease string, ids []string) error {
		return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
			query, args := held(`UPDATE tc_jobs SET wake_at = $1`, []any{bunx.At(until)}, tenant, lease, ids)
			rows, err := c.Rows(ctx, query+" RETURNING id", args...)
			held, err := bunx.TextSet(rows, err)
			maps.Copy(all, held)
			return bunx.Err(err, what)
		})
	})
	return all, err
}

// Remove implements queue.Store.
func (s *Store) Remove(ctx context.Context, tenant string, some []queue.Job) (int, error) {
	return s.change(ctx, tenant, some, `DELETE FROM tc_jobs`)
}

// Retry implements queue.Store.
func (s *Store) Retry(ctx context.Context, j queue.Job, cause string, at time.Time) (bool, error) {
	n, err := s.change(ctx, j.Tenant, []queue.Job{j},
		`UPDATE tc_jobs SET state = 'waiting', tries = $1, lease = NULL, node = NULL, error = $2, wake_at = $3`,
		j.Tries, cause, bunx.At(at))
	return n > 0, err
}

// Hurry implements queue.Store.
func (s *Store) Hurry(ctx context.Context, tenant string, ids []string) (n int, err error) {
	for part := range slices.Chunk(ids, many) {
		err := bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
			m, err := c.Exec(ctx,
				`UPDATE tc_jobs SET state = 'ready', wake_at = NULL WHERE tenant_id = $1 AND state = 'waiting' `+
					`AND id IN `+bunx.In(2, len(part)),
				bunx.Args(part, tenant)...)
			n += m
			return bunx.Err(err, what)
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Release implements queue.Store.
func (s *Store) Release(ctx context.Context, tenant string, some []queue.Job) error {
	_, err := s.change(
		ctx, tenant, some,
		`UPDATE tc_jobs SET state = 'ready', tries = tries - 1, lease = NULL, node = NULL, wake_at = NULL`,
	)
	return err
}

// Bury implements queue.Store.
func (s *Store) Bury(ctx context.Context, j queue.Job, cause string, at time.Time) (bool, error) {
	n, err := s.change(ctx, j.Tenant, []queue.Job{j},
		`UPDATE tc_jobs SET state = 'dead', lease = NULL, node = NULL, wake_at = NULL, error = $1, ended_at = $2`,
		cause, bunx.At(at))
	return n > 0, err
}

// Next implements queue.Store.
func (s *Store) Next(ctx context.Context) (waking, firing *time.Time, err error) {
	ctx, c := bunx.For(ctx, s.db, bunx.AllTenants)
	var wake, next bunx.Time
	err = c.One(
		ctx, what,
		`SELECT (SELECT min(wake_at) FROM tc_jobs WHERE wake_at IS NOT NULL), (SELECT min(next_at) `+
			`FROM tc_job_schedules)`,
		nil, &wake, &next,
	)
	return wake.Ptr(), next.Ptr(), err
}

// wakes is the number of jobs that one Wake makes ready.
const wakes = 1000

// Wake implements queue.Store.
func (s *Store) Wake(ctx context.Context, now time.Time) (n int, err error) {
	err = bunx.WriteOne(ctx, s.db, bunx.AllTenants, func(ctx context.Context, c bunx.Conn) error {
		locked := ""
		if c.Postgres() {
			locked = " FOR UPDATE SKIP LOCKED"
		}
		n, err = c.Exec(ctx,
			`WITH picked AS MATERIALIZED (SELECT tenant_id, id FROM tc_jobs WHERE wake_at IS NOT NULL `+
				`AND wake_at <= $1 ORDER BY wake_at LIMIT $2`+locked+`)
			UPDATE tc_jobs SET state = 'ready', lease = NULL, node = NULL, wake_at = NULL
				WHERE (tenant_id, id) IN (SELECT tenant_id, id FROM picked)`,
			bunx.At(now), wakes)
		return bunx.Err(err, what)
	})
	return n, err
}

// Jobs implements queue.Store.
func (s *Store) Jobs(ctx context.Context, tenant string, f queue.Filter, n int) ([]queue.Job, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx,
		jobs.Select(`WHERE tenant_id = $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR state = $3) `+
			`ORDER BY due_at, id LIMIT $4`),
		tenant, f.Kind, string(f.State), n)
	all, err := bunx.Scan(rows, err, scanJob)
	return all, bunx.Err(err, what)
}

// Stats implements queue.Store.
func (s *Store) Stats(ctx context.Context) ([]queue.Stat, error) {
	ctx, c := bunx.For(ctx, s.db, bunx.AllTenants)
	rows, err := c.Rows(
		ctx,
		`SELECT tenant_id, kind, state, count(*), min(due_at) FROM tc_jobs GROUP BY tenant_id, kind, state `+
			`ORDER BY tenant_id, kind, state`,
	)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (st queue.Stat, err error) {
		err = rows.Scan(&st.Tenant, &st.Kind, (*string)(&st.State), &st.N, bunx.TimeOf(&st.Oldest))
		return st, err
	})
	return all, bunx.Err(err, what)
}

// Requeue implements queue.Store.
func (s *Store) Requeue(ctx context.Context, tenant, id string, now time.Time) (j queue.Job, err error) {
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		j, err = jobs.Scan(c.Row(ctx,
			`UPDATE tc_jobs SET state = 'ready', tries = 0, error = NULL, ended_at = NULL, due_at = $1
				WHERE tenant_id = $2 AND id = $3 AND state = 'dead'
			RETURNING `+jobs.Names, bunx.At(now), tenant, id))
		return bunx.Err(err, "A job with this key")
	})
	if errs.CodeOf(err) == errs.NotFound {
		err = errs.New(errs.NotFound, "There is no dead job %s.", id)
	}
	return j, err
}

// Discard implements queue.Store.
func (s *Store) Discard(ctx context.Context, tenant string, ids []string) (n int, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err = c.ExecIn(ctx, `DELETE FROM tc_jobs WHERE tenant_id = $1 AND state = 'dead' AND id IN `, ids, tenant)
		return bunx.Err(err, what)
	})
	return n, err
}

// Sweep implements queue.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time, keep int) (n int, err error) {
	for where, arg := range map[string]any{
		`state = 'dead' AND ended_at < $2`: bunx.At(before),
		`state = 'ready' AND due_at < $2`:  bunx.At(before),
		`state = 'dead' AND id IN (SELECT id FROM tc_jobs WHERE tenant_id = $1 AND state = 'dead' ` +
			`ORDER BY ended_at DESC, id DESC LIMIT 1000 OFFSET $2)`: keep,
	} {
		m, err := bunx.DeleteSteps(ctx, s.db, tenant, "tc_jobs", "id", where, arg)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}
