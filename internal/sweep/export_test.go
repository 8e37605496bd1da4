package sweep

import "time"

// SetMonotonic sets the clock by which s waits after a jump.
func SetMonotonic(s *Sweeper, now func() time.Time) { s.monotonic = now }
