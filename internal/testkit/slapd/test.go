package slapd

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
)

// Test starts a directory that ends with the test. Without slapd it skips the test, or fails it:
// see needs.Start.
func Test(t testing.TB, tree *Tree) *Server {
	t.Helper()
	s, err := Start(t.Context(), tree)
	needs.Start(t, err, ErrNoServer)
	t.Cleanup(s.Stop)
	return s
}
