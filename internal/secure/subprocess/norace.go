//go:build !race

package subprocess

// Instrumented reports whether the race detector is in the program, which needs what Confine takes.
const Instrumented = false
