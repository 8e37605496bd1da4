// Package interop tests the service with third-party servers. Its tests have the build tag interop
// and run with `make interop`, which installs the servers, so that `make test` stays fast. A
// missing server fails its test.
//
// Each server has separate files, which start it once, on loopback addresses and in a temporary
// folder, and test with it.
package interop
