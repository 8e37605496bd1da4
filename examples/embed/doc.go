// Package embed shows how a Go program puts tenantcontent inside itself: example_test.go is the
// whole of it, and `go test` runs it. Nobody imports this package; copy from it.
package embed
