package sweep

import (
	"context"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

const (
	// jump is the most usual time between two sweeps: a running server sweeps once a minute.
	jump = time.Hour
	// holdTime is how long nothing is removed after a jump, so that people can correct a wrong
	// clock.
	holdTime = time.Hour
	// apart is the most difference between the clocks of this machine and of a PostgreSQL.
	apart = 10 * time.Minute
)

// held is the state of a Sweeper about a clock that may be wrong.
type held struct {
	last  time.Time // time of the last sweep before the jump
	since time.Time // by the monotonic clock of the process; zero without a jump
	apart bool      // the clocks differ
}

// checkClock reports whether a sweep must wait. It waits for an hour after the clock has jumped
// since the last sweep, even if no server ran in between. It also waits as long as the clock of
// this machine differs from that of the PostgreSQL. When the wait begins, checkClock returns an
// error for the log.
func (s *Sweeper) checkClock(ctx context.Context) (wait bool, err error) {
	if wait, err := s.differs(ctx); wait || err != nil {
		return wait, err
	}
	now := s.clock.Now()
	last, err := done(ctx, s.db, now)
	if err != nil || last.IsZero() {
		s.held.since = time.Time{}
		return false, err
	}
	last = last.Add(overlap)
	switch {
	case now.Sub(last) <= jump:
		s.held.since = time.Time{}
		return false, nil
	case s.held.since.IsZero() || !s.held.last.Equal(last):
		s.held.last, s.held.since = last, s.monotonic()
		return true, errs.New(errs.Unavailable,
			"The last sweep was %v ago by the clock of this machine, at %s: nothing is removed for an hour, in "+
				"case the clock is wrong.",
			now.Sub(last).Round(time.Minute), last.UTC().Format(time.RFC3339))
	}
	return s.monotonic().Sub(s.held.since) < holdTime, nil
}

// differs compares the clock of this machine with that of a PostgreSQL, which is authoritative.
func (s *Sweeper) differs(ctx context.Context) (bool, error) {
	own, c := bunx.For(ctx, s.db, "")
	if !c.Postgres() || !s.real {
		return false, nil
	}
	var at bunx.Time
	if err := c.One(own, "Clock", `SELECT clock_timestamp()`, nil, &at); err != nil {
		return false, err
	}
	by := s.clock.Now().Sub(at.Time)
	was := s.held.apart
	s.held.apart = by.Abs() > apart
	if !s.held.apart || was {
		return s.held.apart, nil
	}
	return true, fmt.Errorf(
		"the clock of this machine differs by %v from that of the PostgreSQL: this server removes nothing until "+
			"they agree",
		by.Round(time.Second),
	)
}
