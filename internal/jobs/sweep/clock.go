package sweep

import (
	"context"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

const (
	// jump is the most time between two sweeps that is usual: there is one a minute while a server
	// runs.
	jump = time.Hour
	// holdTime is how long nothing is removed after a jump, for somebody to set a clock that is
	// wrong.
	holdTime = time.Hour
	// apart is how much the clocks of this machine and of a PostgreSQL may differ.
	apart = 10 * time.Minute
)

// held is what a Sweeper knows of a clock that may be wrong.
type held struct {
	last  time.Time // that of the last sweep before the jump
	since time.Time // by the process's own monotonic clock, zero for no jump
	apart bool      // the clocks differ
}

// checkClock reports whether a sweep must wait: for an hour after the clock has jumped since the
// last sweep, also where no server ran meanwhile, and as long as the clock of this machine is not
// that of the PostgreSQL. It returns an error for the log when that begins.
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

// differs compares the clock of this machine with that of a PostgreSQL, which is the one that
// counts.
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
