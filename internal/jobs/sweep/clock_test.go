package sweep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestClockJumps: after a jump forward nothing is removed for an hour, which is logged once. Sweeps
// continue as soon as the clock is corrected, even if times of the wrong clock are stored.
func TestClockJumps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now, ticks := is.New(t), open(t), monday, time.Now()
		s, did := sweeper(db, &now, expired)
		sweep.SetMonotonic(s, func() time.Time { return ticks })
		run := func() (bool, error) { return s.RunAlone(t.Context(), "me") }
		ran, err := run()
		is.NoErr(err)
		is.True(ran)

		confirm(t, db, "acme", "late", 3, monday.Add(24*time.Hour))
		now = monday.Add(400 * 24 * time.Hour)
		ran, err = run()
		is.True(err != nil)
		is.True(!ran)
		ran, err = run()
		is.NoErr(err)
		is.True(!ran)
		now = monday.Add(5 * time.Minute) // the clock was corrected
		ran, err = run()
		is.NoErr(err)
		is.True(ran)
		is.Equal(len(*did), 0)

		now = monday.Add(48 * time.Hour) // the server was off
		_, err = run()
		is.True(err != nil)
		ticks = ticks.Add(time.Hour)
		ran, err = run()
		is.NoErr(err)
		is.True(ran)
		is.Equal(len(*did), 1)

		now = monday.Add(12 * time.Hour) // back: the time of the last sweep is in the future, and does not matter
		ran, err = run()
		is.NoErr(err)
		is.True(ran)
	})
}

// TestClockDiffers: a node whose clock differs by more than ten minutes from that of the PostgreSQL
// removes nothing, logs it once, and continues as soon as the clock is corrected. SQLite has no
// clock to compare.
func TestClockDiffers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), time.Now()
		postgres := db.Dialect().Name() == dialect.PG
		s, did := sweeper(db, &now, expired)
		sweep.SetReal(s)
		confirm(t, db, "acme", "old", 1, now.Add(-time.Hour))
		ran, err := s.RunAlone(t.Context(), "me")
		is.NoErr(err)
		is.True(ran)
		is.Equal(len(*did), 1)
		for i, by := range []time.Duration{11 * time.Minute, -11 * time.Minute, 24 * time.Hour, -24 * time.Hour} {
			confirm(t, db, "acme", by.String(), 1, time.Now().Add(-48*time.Hour))
			*did, now = nil, time.Now().Add(by)
			if !postgres && by > time.Hour {
				continue // TestClockJumps
			}
			ran, err := s.RunAlone(t.Context(), "me")
			if !postgres {
				is.NoErr(err)
				is.True(ran)
				continue
			}
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), "the clock of this machine differs by ") &&
				strings.Contains(err.Error(), "PostgreSQL"))
			is.True(!ran)
			ran, err = s.RunAlone(t.Context(), "me")
			is.NoErr(err) // it was logged before
			is.True(!ran)
			is.Equal(len(*did), 0)
			now = time.Now().Add(time.Duration(1+2*i) * time.Minute) // which is within the limit
			ran, err = s.RunAlone(t.Context(), "me")
			is.NoErr(err)
			is.True(ran)
			is.Equal(len(*did), 1)
		}
	})
}
