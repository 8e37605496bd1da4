//go:build !linux

package subprocess

// Confine does nothing on this system and returns "none".
func Confine(int64) string { return "none" }

// ResidentPeak returns 0, because it is not known on this system.
func ResidentPeak(int) int64 { return 0 }
