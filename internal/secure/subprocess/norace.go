//go:build !race

package subprocess

// Instrumented reports whether the program contains the race detector, which needs the privileges
// that Confine removes.
const Instrumented = false
