// Package sweep runs the sweeps of hooks (entity.Hooks.Sweep) for the tenants with due rows, in one
// process at a time.
//
// The root imports it.
package sweep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Sweeper runs sweeps.
type Sweeper struct {
	db      *bun.DB
	sweeps  func() []entity.Sweep
	tenants func(ctx context.Context) ([]string, error)
	hidden  func(ctx context.Context) ([]string, error)
	clock   clock.Clock
	real    bool // clock is that of this machine
	held    held // used by RunAlone

	monotonic func() time.Time // time.Now, except in tests
}

// New returns a Sweeper. tenants returns all tenants, for sweeps without Due. hidden returns the
// tenants that are being imported or deleted, and so lack rows: only the sweep of the tenants
// themselves runs for these. now is time.Now if it is nil.
func New(
	db *bun.DB, sweeps func() []entity.Sweep, tenants, hidden func(ctx context.Context) ([]string, error),
	now func() time.Time,
) *Sweeper {
	return &Sweeper{
		monotonic: time.Now, db: db, sweeps: sweeps, tenants: tenants, hidden: hidden, clock: clock.New(now, nil),
		real: now == nil,
	}
}

// overlap is how far before the beginning of the previous sweep a sweep looks, because clocks of
// nodes differ, and times are taken before a transaction commits.
const overlap = 10 * time.Minute

// steps is the number of steps of a tenant's sweep before those of other tenants continue.
const steps = 4

// Run runs all sweeps once, even if another process does. Long sweeps of tenants do some steps in
// turn. The failure of a tenant's sweep does not prevent other sweeps.
func (s *Sweeper) Run(ctx context.Context) error {
	begun, turns := s.clock.Now(), &turns{}
	since, err := done(ctx, s.db, begun)
	if err != nil {
		return err
	}
	for _, sweep := range s.sweeps() {
		if err := s.each(ctx, sweep, begun, since, turns); err != nil {
			turns.failed = append(turns.failed, err)
		}
	}
	turns.finish(ctx)
	failed := append(turns.failed, ctx.Err())
	if ctx.Err() == nil { // failed sweeps are still due
		failed = append(failed, setDone(ctx, s.db, begun))
	}
	return errors.Join(failed...)
}

// turns are the sweeps of tenants that have more to do.
type turns struct {
	more   []turn
	failed []error
}

type turn struct {
	sweep  entity.Sweep
	tenant string
}

// take runs some steps of the sweep of a tenant, and appends it to t.more if it is not done.
func (t *turns) take(ctx context.Context, next turn) {
	_, err := next.sweep.Tenant(entity.WithSteps(ctx, steps), next.tenant)
	switch {
	case errors.Is(err, entity.ErrMore):
		t.more = append(t.more, next)
	case err != nil:
		t.failed = append(t.failed, fmt.Errorf("tenant %s: %w", next.tenant, err))
	}
}

// finish runs the sweeps of t.more in turn until all are done or ctx is done.
func (t *turns) finish(ctx context.Context) {
	for len(t.more) > 0 && ctx.Err() == nil {
		next := t.more[0]
		t.more = t.more[1:]
		t.take(ctx, next)
	}
}

// each calls turns.take for each tenant that has rows due for sweep. It returns the errors of
// finding them.
func (s *Sweeper) each(ctx context.Context, sweep entity.Sweep, now, since time.Time, turns *turns) error {
	did := map[string]bool{}
	some := func(tenant string) {
		if did[tenant] || ctx.Err() != nil {
			return
		}
		did[tenant] = true
		turns.take(ctx, turn{sweep, tenant})
	}
	if len(sweep.Due) == 0 {
		tenants, err := s.tenants(ctx)
		for _, tenant := range tenants {
			some(tenant)
		}
		return err
	}
	var failed []error
	for _, due := range sweep.Due {
		if err := s.due(ctx, due, now, since, some); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// page is the number of rows that are read at once.
const page = 1000

// row is one of the rows that are due.
type row struct {
	at     any
	tenant string
}

// due calls do with the tenants of the due rows, in the order of the rows, possibly several times.
// It skips hidden tenants, in which referenced rows can be missing.
func (s *Sweeper) due(ctx context.Context, due entity.Due, now, since time.Time, do func(tenant string)) error {
	if due.Column == tenantID {
		return s.having(ctx, due, do)
	}
	query, bound := Query(due), any(bunx.At(now.Add(-due.Age)))
	if due.Since {
		if bound = bunx.At(since); since.IsZero() {
			bound = first(due)
		}
	}
	if due.Day {
		bound = now.Add(-due.Age).UTC().Format(time.DateOnly)
	}
	for after := (row{at: first(due)}); ; {
		rows, err := look(ctx, s.db, query, bound, after, due.Day)
		if err != nil {
			return err
		}
		if err := s.shown(ctx, due, rows, do); err != nil {
			return err
		}
		if len(rows) < page || ctx.Err() != nil {
			return ctx.Err()
		}
		after = rows[len(rows)-1]
	}
}

// shown calls do with the tenants of rows, without hidden ones.
func (s *Sweeper) shown(ctx context.Context, due entity.Due, rows []row, do func(tenant string)) (err error) {
	var hidden []string
	if len(rows) > 0 && !due.Hidden { // as of a moment after the rows were read
		if hidden, err = s.hidden(ctx); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if !slices.Contains(hidden, r.tenant) {
			do(r.tenant)
		}
	}
	return nil
}

// tenantID is the Column of a Due of all rows.
const tenantID = "tenant_id"

// having is due for all rows of a table. It finds one tenant after the other in the primary key.
func (s *Sweeper) having(ctx context.Context, due entity.Due, do func(tenant string)) error {
	var rows []row
	own, c := bunx.For(ctx, s.db, bunx.AllTenants)
	for after := (row{}); ; rows = append(rows, after) {
		err := c.One(own, "Row", Query(due), []any{after.tenant}, &after.tenant)
		switch {
		case errs.CodeOf(err) == errs.NotFound:
			return s.shown(ctx, due, rows, do)
		case err != nil:
			return err
		}
	}
}

// first returns a value that precedes the column of all rows.
func first(due entity.Due) any {
	if due.Day {
		return ""
	}
	return bunx.At(time.Time{}.Add(time.Microsecond))
}

// Query returns the statement for a page of the due rows after another row, with the time and
// tenant of each. If all rows are due, it is the statement for the next tenant that has some.
func Query(due entity.Due) string {
	if due.Column == tenantID {
		return `SELECT tenant_id FROM ` + due.Table + ` WHERE tenant_id > $1 ORDER BY tenant_id LIMIT 1`
	}
	where, compare := "", "<="
	if due.Day {
		compare = "<"
	}
	if due.Where != "" {
		where = due.Where + " AND "
	}
	if due.Since {
		compare = ">="
	}
	return fmt.Sprintf(`SELECT %[2]s, tenant_id FROM %[1]s WHERE %[3]s%[2]s %[4]s $1 `+
		`AND (%[2]s, tenant_id) > ($2, $3) ORDER BY %[2]s, tenant_id LIMIT %[5]d`,
		due.Table, due.Column, where, compare, page)
}

func look(ctx context.Context, db *bun.DB, query string, bound any, after row, day bool) ([]row, error) {
	ctx, c := bunx.For(ctx, db, bunx.AllTenants)
	rows, err := c.Rows(ctx, query, bound, after.at, after.tenant)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (r row, err error) {
		if day {
			var text string
			err = rows.Scan(&text, &r.tenant)
			r.at = text
			return r, err
		}
		var at bunx.Time
		err = rows.Scan(&at, &r.tenant)
		r.at = at
		return r, err
	})
	return all, bunx.Err(err, "Row")
}
