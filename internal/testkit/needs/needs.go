// Package needs is for tests that need an installed program: a PostgreSQL server, a directory, a
// browser. Only tests and the packages that start such a program for them import it.
package needs

import (
	"errors"
	"os"
	"testing"
)

// Require is the environment variable with which a missing program fails a test, as it does if CI
// is set. .ci/test.sh sets it, after it has installed the programs.
const Require = "TENANTCONTENT_TEST_REQUIRE"

// Start fails a test whose program did not start. If err is missing, the error of a machine without
// the program, it skips the test instead, unless CI or Require is set. The error says what to
// install.
func Start(t testing.TB, err, missing error) {
	t.Helper()
	if errors.Is(err, missing) && os.Getenv("CI") == "" && os.Getenv(Require) == "" {
		t.Skipf("NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
