// Package clock is where services take the time and new ids from, and how they wait for times.
package clock

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Clock is a source of times and ids. The zero value is that of New(nil, nil).
type Clock struct {
	now   func() time.Time
	newID func() string
}

// New returns a Clock of now, which is time.Now if it is nil, and newID, which makes UUIDv7s if it
// is nil.
func New(now func() time.Time, newID func() string) Clock { return Clock{now, newID} }

// Now returns the time.
func (c Clock) Now() time.Time {
	if c.now == nil {
		return time.Now()
	}
	return c.now()
}

// Stamp returns the time of a write, in the form that every database can store: UTC, whole
// microseconds.
func (c Clock) Stamp() time.Time { return c.Now().UTC().Truncate(time.Microsecond) }

// NewID returns an id that nothing else has.
func (c Clock) NewID() string {
	if c.newID == nil {
		return uuid.Must(uuid.NewV7()).String()
	}
	return c.newID()
}

// Real reports whether the time is that of this machine.
func (c Clock) Real() bool { return c.now == nil }

// Each yields at the end of each pause until ctx ends. Those that pass while the caller is at work
// are left out.
func Each(ctx context.Context, pause time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !yield() {
					return
				}
			}
		}
	}
}
