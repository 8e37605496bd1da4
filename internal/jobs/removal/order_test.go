package removal_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestDeletesAndFeedsLockUsersInOneOrder: a delete of users waits for an activity that concerns the
// last of them, before it has locked the first for another activity that concerns both.
func TestDeletesAndFeedsLockUsersInOneOrder(t *testing.T) {
	is := is.New(t)
	w := open(t, dbtest.PostgresURL(t))
	defer func() { _ = w.db.Close() }()
	is.NoErr(migrations.Run(t.Context(), w.db))
	w.fill(t)
	put := func(ctx context.Context, id string, concerned ...string) error {
		return w.comments.PutActivity(ctx, "acme", comments.Activity{
			ID:        id,
			Type:      "note",
			Entity:    entity.Key{Kind: "tag", ID: "t"},
			UserID:    "root",
			CreatedAt: time.Now(),
		}, concerned)
	}
	ended := make(chan error)
	is.NoErr(w.comments.InTx(t.Context(), func(ctx context.Context) error {
		if err := put(ctx, "first", "m001"); err != nil {
			return err
		}
		go func() {
			_, _, err := w.store.DeleteUsers(t.Context(), "acme", []string{"u00", "m001"}) // u00 is first in the table
			ended <- err
		}()
		time.Sleep(300 * time.Millisecond)
		go func() { ended <- put(t.Context(), "second", "m001", "u00") }()
		time.Sleep(300 * time.Millisecond)
		return nil
	}))
	is.NoErr(<-ended)
	is.NoErr(<-ended)
}
