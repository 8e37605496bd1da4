package bunstore_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/messages"
	"github.com/tenantcontent/tenantcontent/messages/bunstore"
	"github.com/tenantcontent/tenantcontent/messages/messagestest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		messagestest.TestStore(t, func(t *testing.T) messages.Store { return bunstore.New(open(t)) })
	})
}
