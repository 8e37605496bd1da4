//go:build !linux

package quickjs

func reserve(size int) ([]byte, error) { return make([]byte, size), nil }

func release(dirty []byte) { clear(dirty) }
