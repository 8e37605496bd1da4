package queue

import (
	"context"
	"errors"
	"time"
)

// hasten sets the next time of a schedule to the first one after now, and reports whether it was
// later. It is later if a clock was ahead when it was stored, or if the rules of the zone have
// changed.
func (c *Schedule) hasten(now time.Time) bool {
	next, err := Next(c.Cron, c.Zone, now)
	if err != nil || !c.Next.After(next) {
		return false
	}
	c.Next = next
	return true
}

const (
	// reviewPause is the time between two reviews of schedules.
	reviewPause = 10 * time.Minute
	// manySchedules is the number of schedules that are read at once.
	manySchedules = 1000
)

// reviewEach reviews the schedules at the beginning, then each reviewPause, and whenever the clock
// has gone back.
func (s *Service) reviewEach(ctx context.Context) {
	ticker := time.NewTicker(reviewPause)
	defer ticker.Stop()
	for {
		if err := s.review(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.Warn(
				"queue: cannot review the times of schedules; it is tried again", "err", err, "pause",
				reviewPause,
			)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wentBack:
		case <-ticker.C:
		}
	}
}

// review corrects next times of schedules of all tenants that are later than they should be.
func (s *Service) review(ctx context.Context) error {
	var last Schedule
	for {
		all, err := s.store.EachSchedule(ctx, last, manySchedules)
		if err != nil {
			return err
		}
		now, late := s.stamp(), map[string][]Schedule{}
		for _, c := range all {
			was := c.Next
			if c.hasten(now) {
				late[c.Tenant] = append(late[c.Tenant], c)
				s.o.Log.Info("queue: the next time of a schedule was later than it can be, and was worked out again",
					"tenant", c.Tenant, "kind", c.Kind, "key", c.Key, "was", was, "next", c.Next)
			}
		}
		for tenant, some := range late {
			if err := s.store.Hasten(ctx, tenant, some); err != nil {
				return err
			}
			for _, c := range some {
				s.hint(c.Next)
			}
		}
		if len(all) < manySchedules {
			return nil
		}
		last = all[len(all)-1]
	}
}

// readClock is a reading of the database's clock, with the time of this machine at that moment. Its
// monotonic reading shows how long ago that was.
type readClock struct{ at, local time.Time }

// clockPause is the time between two readings of the database's clock.
const clockPause = time.Minute

// readClock reads the clock of the database. If that fails, the time continues from the last
// reading.
func (s *Service) readClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	switch at, err := s.shared.Time(ctx); {
	case err == nil:
		s.read.Store(&readClock{at, time.Now()})
	case !errors.Is(err, errors.ErrUnsupported) && ctx.Err() == nil:
		s.o.Log.Debug("queue: cannot read the clock of the database", "err", err)
	}
}

// readClockEach reads the clock each clockPause.
func (s *Service) readClockEach(ctx context.Context) {
	for pause(ctx, clockPause); ctx.Err() == nil; pause(ctx, clockPause) {
		s.readClock(ctx)
	}
}
