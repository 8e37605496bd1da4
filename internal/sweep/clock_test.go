package sweep_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/sweep"
)

// TestClockJumps: after a jump forward nothing is removed for an hour, which is told once; a clock
// that is set right again goes on at once, also where times of the wrong one are stored.
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
		now = monday.Add(5 * time.Minute) // somebody has set it right
		ran, err = run()
		is.NoErr(err)
		is.True(ran)
		is.Equal(len(*did), 0)

		now = monday.Add(48 * time.Hour) // a server that was off
		_, err = run()
		is.True(err != nil)
		ticks = ticks.Add(time.Hour)
		ran, err = run()
		is.NoErr(err)
		is.True(ran)
		is.Equal(len(*did), 1)

		now = monday.Add(12 * time.Hour) // back: the time of the last sweep is ahead, and keeps nobody
		ran, err = run()
		is.NoErr(err)
		is.True(ran)
	})
}
