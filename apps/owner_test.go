package apps_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestRunsAs: nobody gets the rights of others by making them the owner of code.
func TestRunsAs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo, mia := as(t, "acme", "jo", actor.Admin), as(t, "acme", "mia", actor.Admin)
		root := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "root", Superuser: true})
		v := w.create(t, jo)
		runsAs := func() string {
			t.Helper()
			app, err := w.Get(root, v.ID)
			is.NoErr(err)
			return app.RunsAs()
		}
		deploy := func(ctx context.Context) {
			t.Helper()
			_, err := w.Deploy(ctx, v.ID, apps.PublishOptions{})
			is.NoErr(err)
		}
		give := func(ctx context.Context, owner string) {
			t.Helper()
			_, err := w.SetOwner(ctx, v.ID, owner)
			is.NoErr(err)
		}
		is.Equal(runsAs(), "jo")
		_, err := w.PutShare(jo, v.ID, "jo", level(shares.Write)) // jo can still change what belongs to mia
		is.NoErr(err)

		give(jo, "mia")
		is.Equal(runsAs(), "")
		deploy(jo)
		is.Equal(runsAs(), "")
		_, err = w.Edit(jo, v.ID, false)
		is.NoErr(err)
		_, err = w.Commit(jo, v.ID, apps.PublishOptions{})
		is.NoErr(err)
		is.Equal(runsAs(), "")
		give(jo, "mia") // whom it belongs to already
		is.Equal(runsAs(), "")
		deploy(mia)
		is.Equal(runsAs(), "mia")
		deploy(jo) // mia has agreed
		is.Equal(runsAs(), "mia")

		give(jo, "jo")
		is.Equal(runsAs(), "jo")
		give(root, "mia")
		is.Equal(runsAs(), "mia")

		for ctx, want := range map[context.Context]string{jo: "", root: "jo"} {
			give(root, "mia")
			_, err = w.Unchecked().Type().Reassign(ctx, "acme", "mia", "jo")
			is.NoErr(err)
			if ctx == jo { // who gets it
				want = "jo"
			}
			is.Equal(runsAs(), want)
		}
		_, err = w.Unchecked().Type().Reassign(jo, "acme", "jo", "mia")
		is.NoErr(err)
		is.Equal(runsAs(), "")
		deploy(root)
		is.Equal(runsAs(), "mia")
	})
}
