package slapd

import (
	"errors"
	"os"
	"testing"
)

// Test starts a directory that ends with the test. Without slapd it skips the test loudly, unless CI or
// TENANTCONTENT_TEST_REQUIRE_SLAPD is set: then it fails.
func Test(t testing.TB, tree *Tree) *Server {
	t.Helper()
	s, err := Start(t.Context(), tree)
	if errors.Is(err, ErrNoServer) && os.Getenv("CI") == "" && os.Getenv("TENANTCONTENT_TEST_REQUIRE_SLAPD") == "" {
		t.Skipf("NOT TESTED ON A DIRECTORY: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}
