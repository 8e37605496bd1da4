package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/principals/bunstore"
	"github.com/tenantcontent/tenantcontent/principals/dirsync/dirsynctest"
	"github.com/tenantcontent/tenantcontent/principals/principalstest"
	"github.com/tenantcontent/tenantcontent/principals/scim/scimtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		principalstest.TestStore(t, func(t *testing.T) principals.Store { return bunstore.New(open(t)) })
		t.Run("dirsync", func(t *testing.T) {
			dirsynctest.TestStore(t, func(t *testing.T) dirsynctest.Store { return bunstore.New(open(t)) })
		})
		t.Run("scim", func(t *testing.T) {
			scimtest.TestStore(t, func(t *testing.T) scimtest.Store { return bunstore.New(open(t)) })
		})
	})
}

// TestChunks reads the list with many statements: nothing is left out and nothing comes twice, also where labels are
// alike.
func TestChunks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		principalstest.TestPrincipals(t, bunstore.NewWithChunk(open(t), 3))
	})
}
