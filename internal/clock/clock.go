// Package clock is where services take the time and new ids from.
package clock

import (
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
