package rest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
)

// TestProgress: a client has Idle for the first byte and for each further one, and has to reach 1
// KiB a second on average after that; the time that the server needs does not count.
func TestProgress(t *testing.T) {
	errCut := errors.New("cut")
	for name, c := range map[string]struct {
		bytes, times int
		pause        time.Duration // of the client, for each step
		compute      time.Duration // of the server
		cut          bool
	}{
		"nothing":             {0, 1, 31 * time.Second, 0, true},
		"soon":                {0, 1, 29 * time.Second, 0, false},
		"fast":                {1 << 20, 1000, time.Millisecond, 0, false},
		"just enough":         {20 << 10, 1000, 20 * time.Second, 0, false},
		"in drops":            {100, 1000, time.Second, 0, true},
		"a few drops":         {100, 25, time.Second, 0, false},
		"slow server":         {1 << 10, 1000, time.Second, time.Hour, false},
		"stops in the middle": {1 << 20, 1000, 31 * time.Second, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				is := is.New(t)
				all := &Transfers{idle: 30 * time.Second, Drained: time.Second}
				var deadline time.Time
				one := all.Begin(func(at time.Time) error { deadline = at; return nil })
				var err error
				for range c.times {
					_, err = one.Step(func() (int, error) {
						time.Sleep(min(c.pause, time.Until(deadline)+time.Nanosecond))
						if time.Now().After(deadline) {
							return 0, errCut
						}
						return c.bytes, nil
					})
					if err != nil {
						break
					}
					time.Sleep(c.compute)
				}
				is.Equal(err != nil, c.cut)
				one.end()
				is.Equal(len(all.all), 0)
			})
		})
	}
}
