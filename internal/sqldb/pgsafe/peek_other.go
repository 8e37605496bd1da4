//go:build !unix

package pgsafe

// peek does nothing on this system. The next statement on a lost connection fails.
func peek(uintptr) error { return nil }
