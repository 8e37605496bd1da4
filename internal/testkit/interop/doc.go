// Package interop tests the service against servers that other people wrote. Its tests have the
// build tag interop and run with `make interop`, which installs the servers: `make test` stays
// quick. Nothing is skipped: a server that is missing fails its test.
//
// Each server has files of its own, which start it once, on loopback addresses and in a temporary
// folder, and test against it.
package interop
