package apps_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/store/apps"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestFavorite(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo, mia := as(t, "acme", "jo", actor.Publisher), as(t, "acme", "mia", actor.Member)
		v := w.create(t, jo)
		_, err := w.SetFavorite(mia, v.ID, true)
		is.True(errors.Is(err, errs.NotFound)) // she does not see it
		_, err = w.PutShare(jo, v.ID, "mia", level(shares.Use))
		is.NoErr(err)
		for range 2 {
			marked, err := w.SetFavorite(mia, v.ID, true)
			is.NoErr(err)
			is.True(marked.Favorite)
		}
		draft, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		is.True(!draft.Favorite) // it is mia's
		marked, err := w.SetFavorite(jo, draft.ID, true)
		is.NoErr(err)
		is.True(marked.Favorite)
		v, err = w.Get(jo, v.ID)
		is.NoErr(err)
		is.True(v.Favorite)
		_, err = w.SetFavorite(jo, v.ID, false)
		is.NoErr(err)
		draft, err = w.Draft(jo, v.ID)
		is.NoErr(err)
		is.True(!draft.Favorite)
		for row, err := range w.All(mia) {
			is.NoErr(err)
			is.True(row.Favorite)
		}
		reads := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", ReadOnly: true})
		_, err = w.SetFavorite(reads, v.ID, true)
		is.True(errors.Is(err, errs.Forbidden))
		stranger := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "nobody", Superuser: true})
		_, err = w.SetFavorite(stranger, v.ID, true)
		is.True(errors.Is(err, errs.Forbidden))
	})
}

func TestVisits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo, mia := as(t, "acme", "jo", actor.Publisher), as(t, "acme", "mia", actor.Member)
		recent := func(ctx context.Context) (names []string) {
			t.Helper()
			all, err := w.Recent(ctx)
			is.NoErr(err)
			for _, v := range all {
				names = append(names, v.Name)
			}
			return names
		}
		visit := func(ctx context.Context, id string) {
			t.Helper()
			w.now = w.now.Add(time.Minute)
			is.NoErr(w.Visit(ctx, id))
		}
		var all []apps.Shown
		for n := range 22 {
			all = append(all, w.create(t, jo, func(a *apps.App) { a.Name = fmt.Sprint("App ", n) }))
			visit(jo, all[n].ID)
		}
		is.True(errors.Is(w.Visit(mia, all[0].ID), errs.NotFound))
		_, err := w.PutShare(jo, all[0].ID, "mia", level(shares.Use))
		is.NoErr(err)
		visit(mia, all[0].ID)
		draft, err := w.Edit(jo, all[1].ID, false)
		is.NoErr(err)
		visit(jo, draft.ID) // no visit
		visit(jo, all[0].ID)
		names := recent(jo)
		is.Equal(len(names), 20)
		is.Equal(names[:2], []string{"App 0", "App 21"})
		is.Equal(names[19], "App 3")
		is.Equal(recent(mia), []string{"App 0"})
		is.Equal(recent(as(t, "evil", "jo", actor.Publisher)), nil)
		is.NoErr(w.DeleteShare(jo, all[0].ID, "mia"))
		is.Equal(recent(mia), nil)

		_, err = w.Stats(mia, all[0].ID)
		is.True(errors.Is(err, errs.NotFound))
		_, err = w.PutShare(jo, all[0].ID, "mia", level(shares.Use))
		is.NoErr(err)
		_, err = w.Stats(mia, all[0].ID)
		is.True(errors.Is(err, errs.Forbidden))
		first := w.now.Format(time.DateOnly)
		days, err := w.Stats(jo, all[0].ID)
		is.NoErr(err)
		is.Equal(days, []apps.Day{{Day: first, Views: 3, Users: 2}})
		w.now = w.now.AddDate(0, 0, 29)
		visit(jo, all[0].ID)
		days, err = w.Stats(jo, all[0].ID)
		is.NoErr(err)
		is.Equal(days, []apps.Day{
			{Day: first, Views: 3, Users: 2}, {Day: w.now.Format(time.DateOnly), Views: 1, Users: 1},
		})
		w.now = w.now.AddDate(0, 0, 1)
		days, err = w.Stats(jo, all[0].ID)
		is.NoErr(err)
		is.Equal(len(days), 1) // the first is 30 days ago
	})
}

// TestVisitsAreFlushed: a view is in the database when FlushAll has returned, and not before.
func TestVisitsAreFlushed(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	w := newWorld(t, db)
	jo := as(t, "acme", "jo", actor.Publisher)
	v := w.create(t, jo)
	stored := func() []apps.Day {
		t.Helper()
		days, err := bunstore.New(db).Days(t.Context(), "acme", v.ID, "")
		is.NoErr(err)
		return days
	}
	is.NoErr(w.Visit(jo, v.ID))
	is.NoErr(w.Visit(jo, v.ID))
	is.Equal(stored(), nil)
	for range 2 { // nothing is written twice
		is.NoErr(w.Unchecked().FlushAll(t.Context()))
		is.Equal(stored(), []apps.Day{{Day: w.now.Format(time.DateOnly), Views: 2, Users: 1}})
	}
}
