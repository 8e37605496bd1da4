package sweep

import "time"

// SetReal makes the clock of s count as that of the machine.
func SetReal(s *Sweeper) { s.real = true }

// SetMonotonic sets the clock by which s waits after a jump.
func SetMonotonic(s *Sweeper, now func() time.Time) { s.monotonic = now }
