package workspacestest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/workspacestest"
)

// The test of a host's own driver.
func Example() {
	_ = func(t *testing.T) {
		open := func(t *testing.T, o workspacestest.Options) workspaces.Driver {
			d, err := sqlite.New(sqlite.Options{Dir: t.TempDir(), Quota: o.Quota, Limits: o.Limits})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			return d
		}
		workspacestest.Test(t, open)
		workspacestest.TestAttacks(t, open)
	}
}
