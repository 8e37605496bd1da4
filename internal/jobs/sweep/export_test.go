package sweep

import "time"

// SetReal makes s treat its clock as that of the machine.
func SetReal(s *Sweeper) { s.real = true }

// SetMonotonic sets the clock with which s waits after a jump.
func SetMonotonic(s *Sweeper, now func() time.Time) { s.monotonic = now }
