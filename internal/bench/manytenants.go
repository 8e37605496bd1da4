package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// manyTenants is how many tenants there are when things that are done for all of them are measured.
const manyTenants = 10_000

const keysChecked = "keys checked at a start"

// tenantRows measures what the number of tenants must not make slower: a sweep with nothing to do,
// what a start reads, and a new tenant.
func tenantRows(ctx context.Context, engine string, pattern *regexp.Regexp) ([]result, error) {
	return onWorld(ctx, engine, "size, tenants", pattern, manyTenantRows)
}

// onWorld measures a group of rows on a world of its own, if its name matches.
func onWorld(
	ctx context.Context, engine, name string, pattern *regexp.Regexp,
	rows func(context.Context, *world) ([]result, error),
) (all []result, err error) {
	if !pattern.MatchString(name) {
		return nil, nil
	}
	fmt.Fprintf(os.Stderr, "%s on %s …\n", name, engine)
	w, err := newWorld(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	all, err = rows(ctx, w)
	for i := range all {
		all[i].name, all[i].engine = name+": "+all[i].name, engine
	}
	return all, err
}

func manyTenantRows(ctx context.Context, w *world) (all []result, err error) {
	check := func() (float64, error) {
		begin := time.Now()
		_, err := w.app.Tenants.Unchecked().Any(ctx)
		if err == nil {
			err = w.app.CheckKeys(ctx)
		}
		return time.Since(begin).Seconds(), err
	}
	n := 0
	add := func() (float64, error) {
		n++
		begin := time.Now()
		_, err := w.app.AddTenant(ctx, tenants.Tenant{ID: fmt.Sprintf("added-%d", n)}, password)
		return time.Since(begin).Seconds(), err
	}
	few := map[string]float64{}
	measured := map[string]func() (float64, error){keysChecked: check, "tenant add": add}
	for name, f := range measured {
		if few[name], err = medianOf(f); err != nil {
			return nil, err
		}
	}
	if err := addTenants(ctx, w); err != nil {
		return nil, err
	}
	for name, f := range measured {
		s, err := medianOf(f)
		if err != nil {
			return nil, err
		}
		r := result{
			name:  name + ", 10,000 tenants against 100",
			ours:  seconds(s),
			bare:  seconds(few[name]),
			ratio: s / few[name],
			must:  "≤ 1.50",
			met:   s <= 1.5*few[name],
		}
		if name == keysChecked { // a part of a start, which is 200 ms
			r.must, r.met = "≤ 50ms", s <= 0.05
		}
		all = append(all, r)
	}
	if err := w.app.Sweep(ctx); err != nil { // the first one looks at all that has happened
		return nil, err
	}
	s, err := medianOf(func() (float64, error) {
		begin := time.Now()
		err := w.app.Sweep(ctx)
		return time.Since(begin).Seconds(), err
	})
	if err != nil {
		return nil, err
	}
	all = append(all, result{
		name: "sweep of 10,000 tenants, nothing to do",
		ours: seconds(s),
		must: "≤ 50ms",
		met:  s <= 0.05,
	})
	r, err := sweepOne(ctx, w)
	return append(all, r), err
}

// sweepOne sweeps 200,000 expired sessions of one tenant, and measures how long another tenant's
// write waits meanwhile.
func sweepOne(ctx context.Context, w *world) (result, error) {
	err := bunx.Write(ctx, w.db, "default", func(ctx context.Context, c bunx.Conn) error {
		numbers := `WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 200000) `
		_, err := c.Exec(
			ctx,
			numbers+`INSERT INTO tc_sessions (tenant_id, id, username, created_at, expires_at) `+
				`SELECT 'default', 'old-' || n, 'admin', '2020-01-01T00:00:00.000000Z', `+
				`'2020-01-02T00:00:00.000000Z' FROM s`,
		)
		return err
	})
	if err != nil {
		return result{}, err
	}
	ended, longest := make(chan error, 1), 0.0
	begin := time.Now()
	go func() { ended <- w.app.Sweep(ctx) }()
	for {
		select {
		case err := <-ended:
			took := time.Since(begin).Seconds()
			return result{
				name: "write beside a sweep of 200,000 rows, longest",
				ours: seconds(longest),
				bare: "sweep " + seconds(took),
				must: "≤ 300ms",
				met:  longest <= 0.3,
			}, err
		default:
		}
		at := time.Now()
		err := bunx.Write(ctx, w.db, "tenant-1", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, `UPDATE tc_tenants SET name = 'x' WHERE tenant_id = 'tenant-1'`)
			return err
		})
		if err != nil {
			return result{}, err
		}
		longest = max(longest, time.Since(at).Seconds())
		time.Sleep(5 * time.Millisecond)
	}
}

// addTenants adds tenants without people.
func addTenants(ctx context.Context, w *world) error {
	for i := range manyTenants {
		if _, err := w.app.Tenants.Unchecked().Add(ctx, tenants.Tenant{ID: fmt.Sprintf("many-%d", i)}); err != nil {
			return err
		}
	}
	return nil
}

func medianOf(f func() (float64, error)) (float64, error) {
	var all []float64
	for range rounds {
		s, err := f()
		if err != nil {
			return 0, err
		}
		all = append(all, s)
	}
	return median(all), nil
}
