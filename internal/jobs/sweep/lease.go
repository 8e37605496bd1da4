package sweep

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

const (
	leaseTime = 2 * time.Minute       // how long others wait for a process that has ended
	renewEach = 30 * time.Second      // while a sweep runs
	pause     = 45 * time.Second      // between the beginnings of two sweeps, of all processes
	leaseName = "sweep"               // in tc_leases
	endsAlone = 5 * time.Second       // most time for releasing a lease after ctx has ended
	errLease  = "The lease of sweeps" // name for people
)

// RunAlone is Run for processes that share the database: it does nothing, and returns false, while
// another process sweeps or has begun to within the last seconds. holder identifies the process.
//
// It also does nothing for a while if a clock seems wrong, because removed rows cannot be restored.
// It returns an error about that once: see checkClock.
func (s *Sweeper) RunAlone(ctx context.Context, holder string) (bool, error) {
	if wait, err := s.checkClock(ctx); wait || err != nil {
		return false, err
	}
	took, err := s.take(ctx, holder)
	if err != nil || !took {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.renew(ctx, stop, holder)
	}()
	err = s.Run(ctx)
	stop()
	<-ended
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endsAlone)
	defer cancel()
	if _, failed := s.extend(last, holder, s.clock.Now()); err == nil {
		err = failed
	}
	return true, err
}

// take takes the lease if it is free and the last sweep was begun a while ago.
func (s *Sweeper) take(ctx context.Context, holder string) (bool, error) {
	own, c := bunx.For(ctx, s.db, "")
	now := s.clock.Now()
	var old string
	var ends, done bunx.Time
	err := c.One(
		own, errLease, `SELECT holder, ends_at, done_at FROM tc_leases WHERE name = $1`, []any{leaseName}, &old,
		&ends, &done,
	)
	query, args := `UPDATE tc_leases SET holder = $2, ends_at = $3 WHERE name = $1 AND holder = $4 `+
		`AND ends_at = $5`, []any{
		leaseName, holder, bunx.At(now.Add(leaseTime)), old, ends,
	}
	switch {
	case errs.CodeOf(err) == errs.NotFound:
		query, args = `INSERT INTO tc_leases (name, holder, ends_at) VALUES ($1, $2, $3) `+
			`ON CONFLICT (name) DO NOTHING`, args[:3]
	case err != nil:
		return false, err
	case ends.After(now) && ends.Before(now.Add(2*leaseTime)),
		done.After(now.Add(-pause)) && done.Before(now.Add(overlap)):
		return false, nil // later ones were stored while a clock was ahead
	}
	n, err := s.exec(ctx, query, args...)
	return n == 1, err
}

// renew renews the lease until ctx ends. It calls lost when another process has it.
func (s *Sweeper) renew(ctx context.Context, lost func(), holder string) {
	for range clock.Each(ctx, renewEach) {
		if n, err := s.extend(ctx, holder, s.clock.Now().Add(leaseTime)); err == nil && n == 0 {
			lost()
			return
		}
	}
}

func (s *Sweeper) extend(ctx context.Context, holder string, until time.Time) (int, error) {
	return s.exec(
		ctx, `UPDATE tc_leases SET ends_at = $1 WHERE name = $2 AND holder = $3`, bunx.At(until), leaseName,
		holder,
	)
}

func (s *Sweeper) exec(ctx context.Context, query string, args ...any) (n int, err error) {
	err = bunx.WriteOne(ctx, s.db, "", func(ctx context.Context, c bunx.Conn) error {
		n, err = c.Exec(ctx, query, args...)
		return bunx.Err(err, errLease)
	})
	return n, err
}

// done returns the time from which a sweep after the last completed one looks for rows, or the zero
// time before the first sweep.
func done(ctx context.Context, db *bun.DB, now time.Time) (time.Time, error) {
	ctx, c := bunx.For(ctx, db, "")
	var at bunx.Time
	err := c.One(ctx, errLease, `SELECT done_at FROM tc_leases WHERE name = $1`, []any{leaseName}, &at)
	if errs.CodeOf(err) == errs.NotFound {
		err = nil
	}
	if err != nil || at.After(now.Add(overlap)) { // a clock was ahead
		return time.Time{}, err
	}
	if at.IsZero() {
		return time.Time{}, nil
	}
	return at.Add(-overlap), nil
}

// setDone records a completed sweep.
func setDone(ctx context.Context, db *bun.DB, begun time.Time) error {
	return bunx.WriteOne(ctx, db, "", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_leases (name, holder, ends_at, done_at) VALUES ($1, '', $2, $2)
			ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at`, leaseName, bunx.At(begun))
		return bunx.Err(err, errLease)
	})
}
