package apps_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestWebhookSecret: it is made once, replaced by a rotation, and that of no other app, draft or
// copy.
func TestWebhookSecret(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Designer)
		slug := "sales"
		v := w.create(t, jo, func(a *apps.App) { a.Slug = &slug; a.Defn = []byte(`{"env": {"KEY": "geheim"}}`) })
		hooked := func(id string) (apps.Hooked, error) { return w.Unchecked().Hooked(t.Context(), "acme", id) }
		_, err := hooked(v.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound) // without a secret
		first, err := w.WebhookSecret(jo, v.ID)
		is.NoErr(err)
		is.Equal(len(first), 32)
		again, err := w.WebhookSecret(jo, "jo:sales")
		is.NoErr(err)
		is.Equal(first, again)
		for _, id := range []string{v.ID, "jo:sales"} {
			h, err := hooked(id)
			is.NoErr(err)
			is.Equal(h, apps.Hooked{App: v.ID, Owner: "jo", Secret: first, Env: map[string]string{"KEY": "geheim"}})
		}
		before, err := w.Get(jo, v.ID)
		is.NoErr(err)
		id, err := w.RotateWebhookSecret(jo, "jo:sales")
		is.NoErr(err)
		is.Equal(id, v.ID)
		after, err := w.Get(jo, v.ID)
		is.NoErr(err)
		is.True(after.Version() != before.Version())
		second, err := w.WebhookSecret(jo, v.ID)
		is.NoErr(err)
		is.True(string(first) != string(second))

		draft, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		is.Equal(draft.WebhookSecret, "")
		_, err = w.Commit(jo, v.ID, apps.PublishOptions{}) // a rotation is no change that a draft would overwrite
		is.NoErr(err)
		kept, err := w.WebhookSecret(jo, v.ID)
		is.NoErr(err)
		is.Equal(kept, second)
		draft, err = w.Edit(jo, v.ID, false)
		is.NoErr(err)
		copied, err := w.Copy(jo, v.ID, nil)
		is.NoErr(err)
		is.Equal(copied.WebhookSecret, "")

		_, err = w.PutShare(as(t, "acme", "jo", actor.Publisher), v.ID, "mia", level(shares.Use))
		is.NoErr(err)
		readOnly := actor.With(t.Context(), actor.Actor{
			Tenant:   "acme",
			User:     "jo",
			Teams:    map[string]actor.Role{"crew": actor.Designer},
			ReadOnly: true,
		})
		for _, test := range []struct {
			ctx         context.Context
			id          string
			write, read errs.Code
		}{
			{jo, v.ID, "", ""},
			{readOnly, v.ID, errs.Forbidden, ""},
			{as(t, "acme", "mia", actor.Admin), v.ID, errs.Forbidden, errs.Forbidden},
			{as(t, "acme", "al", actor.Admin), v.ID, errs.NotFound, errs.NotFound},
			{as(t, "evil", "jo", actor.Admin), v.ID, errs.NotFound, errs.NotFound},
			{t.Context(), v.ID, errs.Unauthenticated, errs.Unauthenticated},
			{jo, draft.ID, errs.Invalid, errs.Invalid},
		} {
			_, err := w.WebhookSecret(test.ctx, test.id)
			is.Equal(errs.CodeOf(err), test.write)
			_, err = w.RotateWebhookSecret(test.ctx, test.id)
			is.Equal(errs.CodeOf(err), test.write)
			_, err = w.CheckWrite(test.ctx, test.id)
			is.Equal(errs.CodeOf(err), test.write)
			is.Equal(errs.CodeOf(w.Writing(test.ctx, test.id, func(context.Context, string) error {
				return nil
			})), test.write)
			_, err = w.CheckInspect(test.ctx, test.id)
			is.Equal(errs.CodeOf(err), test.read)
		}
		for _, id := range []string{draft.ID, "x", "jo:none"} {
			_, err := hooked(id)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		_, err = w.Unchecked().Hooked(t.Context(), "evil", v.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.NoErr(w.Delete(jo, v.ID))
		_, err = hooked(v.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	})
}
