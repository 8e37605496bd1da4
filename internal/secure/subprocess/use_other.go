//go:build !linux

package subprocess

import "time"

// CPUTime returns false, because the time is not known on this system.
func CPUTime(int) (time.Duration, bool) { return 0, false }

// Resident returns 0, because it is not known on this system.
func Resident(int) int64 { return 0 }

// MachineMemory returns 0, because it is not known on this system.
func MachineMemory() int64 { return 0 }
