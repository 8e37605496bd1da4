package apps_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/shares"
)

// before returns a Service over a database that calls do once, before the first statement with a text.
func before(t *testing.T, w *world, db *bun.DB, text string, do func()) *apps.Service {
	t.Helper()
	done := false
	return w.service(t, dbtest.Watched(t, db, func(statement string) {
		if !done && strings.Contains(statement, text) {
			done = true
			do()
		}
	}))
}

// TestPurgeLeavesRestoredApp: an app that is restored while a purge looks at it either stays, or cannot be restored.
func TestPurgeLeavesRestoredApp(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w := newWorld(t, db)
	jo := as(t, "acme", "jo", actor.DataWizard)
	v := w.create(t, jo)
	is.NoErr(w.Delete(jo, v.ID))
	var restored error
	purge := before(t, w, db, "tc_app_shares", func() {
		ctx, cancel := context.WithTimeout(jo, 300*time.Millisecond) // it waits for the purge
		defer cancel()
		_, restored = w.Restore(ctx, v.ID)
	})
	purged := purge.Purge(jo, v.ID)
	is.True((restored == nil) != (purged == nil))
	_, err := w.Get(jo, v.ID)
	is.Equal(errors.Is(err, errs.NotFound), purged == nil)
}

// TestCopyChecksLockedApp: nobody copies an app by a share that has ended, or the draft of an app as what it no longer is.
func TestCopyChecksLockedApp(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w := newWorld(t, db)
	jo, mia := as(t, "acme", "jo", actor.Admin), as(t, "acme", "mia", actor.Admin)
	v := w.create(t, jo, func(a *apps.App) { a.Defn = json.RawMessage(`{"entryPoint":"x"}`) })
	_, err := w.PutShare(jo, v.ID, "mia", level(shares.Write))
	is.NoErr(err)
	late := before(t, w, db, "FOR UPDATE", func() { is.NoErr(w.DeleteShare(jo, v.ID, "mia")) })
	_, err = late.Copy(mia, v.ID, nil)
	is.True(errors.Is(err, errs.NotFound))

	d, err := w.Edit(jo, v.ID, false)
	is.NoErr(err)
	_, err = w.Copy(jo, d.ID, nil)
	is.Equal(errs.MessageOf(err), "This is the draft of an app: copy the app itself.")
}
