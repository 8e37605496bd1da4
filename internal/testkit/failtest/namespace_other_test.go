//go:build !linux

package failtest_test

// runInNamespace does nothing, because the tests that mount file systems run only on Linux.
func runInNamespace() (code int, done bool) { return 0, false }
