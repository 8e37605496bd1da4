//go:build !linux

package subprocess

// Confine does nothing on this system.
func Confine(int64) string { return "none" }

// ResidentPeak returns 0: it is not known on this system.
func ResidentPeak(int) int64 { return 0 }
