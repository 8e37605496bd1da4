package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) principals.Store { return bunstore.New(open(t)) })
		t.Run("dirsync", func(t *testing.T) {
			testDirectory(t, func(t *testing.T) directoryStore { return bunstore.New(open(t)) })
		})
		t.Run("scim", func(t *testing.T) {
			testSCIM(t, func(t *testing.T) scimStore { return bunstore.New(open(t)) })
		})
	})
}

// TestChunks reads the list with many statements. No principal is missing or repeated, even if
// labels are equal.
func TestChunks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		testPrincipals(t, bunstore.NewWithChunk(open(t), 3))
	})
}
