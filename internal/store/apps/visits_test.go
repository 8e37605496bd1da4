package bunstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// favorites returns the numbers from 1 to 4 of a user's favorite apps.
func favorites(t *testing.T, s apps.Store, tenant, user string) (marked []int) {
	t.Helper()
	all, err := s.Favorites(t.Context(), tenant, user, numbered(1, 2, 3, 4))
	is.New(t).NoErr(err)
	for n := 1; n <= 4; n++ {
		if all[id(n)] {
			marked = append(marked, n)
		}
	}
	is.New(t).Equal(len(all), len(marked))
	return marked
}

func testFavorites(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	mark := func(tenant, user string, n int, favorite bool) errs.Code {
		return errs.CodeOf(s.SetFavorite(ctx, tenant, user, id(n), favorite, monday))
	}
	insert(t, s, newApp(1, "a"), newApp(2, "b"), newDraft(12, 2, "b"), newApp(3, "c"))
	theirs := newApp(1, "a")
	theirs.Tenant = "evil"
	insert(t, s, theirs)
	trash(t, s, 3, tuesday)
	for _, n := range []int{1, 12, 1} { // a favorite draft is a favorite of its app; a second call changes nothing
		is.Equal(mark("acme", "jo", n, true), errs.CodeOf(nil))
	}
	is.Equal(mark("acme", "mia", 2, true), errs.CodeOf(nil))
	is.Equal(mark("acme", "jo", 3, true), errs.NotFound)
	is.Equal(mark("acme", "jo", 9, true), errs.NotFound)
	is.Equal(mark("acme", "nobody", 1, true), errs.Forbidden)
	is.Equal(mark("evil", "jo", 2, true), errs.NotFound) // an app of another tenant
	is.Equal(mark("evil", "jo", 1, false), errs.CodeOf(nil))
	is.Equal(favorites(t, s, "acme", "jo"), []int{1, 2})
	is.Equal(favorites(t, s, "acme", "mia"), []int{2})
	is.Equal(favorites(t, s, "evil", "jo"), nil)
	none, err := s.Favorites(ctx, "acme", "jo", nil)
	is.NoErr(err)
	is.Equal(len(none), 0)

	is.Equal(mark("acme", "jo", 12, false), errs.CodeOf(nil))
	is.Equal(mark("acme", "jo", 2, false), errs.CodeOf(nil)) // it is not a favorite
	is.Equal(favorites(t, s, "acme", "jo"), []int{1})
	is.Equal(favorites(t, s, "acme", "mia"), []int{2})
	_, err = s.Remove(ctx, "acme", numbered(1))
	is.NoErr(err)
	insert(t, s, newApp(1, "a"))
	is.Equal(favorites(t, s, "acme", "jo"), nil)
}

func testViews(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(1, "a"), newApp(2, "b"))
	add := func(tenant string, views map[apps.View]apps.Views) {
		t.Helper()
		is.NoErr(s.AddViews(ctx, tenant, views))
	}
	of := func(n int, user, day string) apps.View { return apps.View{App: id(n), Username: user, Day: day} }
	add("acme", nil)
	for range 2 {
		add("acme", map[apps.View]apps.Views{
			of(1, "jo", "2026-11-16"): {N: 2, Last: monday}, of(1, "mia", "2026-11-16"): {N: 1, Last: monday},
			of(1, "jo", "2026-11-17"): {N: 3, Last: tuesday}, of(2, "jo", "2026-11-16"): {N: 5, Last: monday},
			// neither exists
			of(9, "jo", "2026-11-16"): {N: 7, Last: monday}, of(1, "nobody", "2026-11-16"): {N: 7, Last: monday},
		})
	}
	add("evil", map[apps.View]apps.Views{of(1, "jo", "2026-11-16"): {N: 9, Last: monday}})
	days := func(tenant string, n int, since string) []apps.Day {
		t.Helper()
		all, err := s.Days(ctx, tenant, id(n), since)
		is.NoErr(err)
		return all
	}
	is.Equal(days("acme", 1, "2026-11-16"), []apps.Day{
		{Day: "2026-11-16", Views: 6, Users: 2}, {Day: "2026-11-17", Views: 6, Users: 1},
	})
	is.Equal(days("acme", 1, "2026-11-17"), []apps.Day{{Day: "2026-11-17", Views: 6, Users: 1}})
	is.Equal(days("acme", 2, ""), []apps.Day{{Day: "2026-11-16", Views: 10, Users: 1}})
	is.Equal(days("evil", 1, ""), nil)
	_, err := s.Remove(ctx, "acme", numbered(1))
	is.NoErr(err)
	is.Equal(days("acme", 1, ""), nil)
}

func testUses(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	theirs := newApp(1, "a")
	theirs.Tenant = "evil"
	insert(t, s, newApp(1, "a"), newApp(2, "b"), newApp(3, "c"), theirs)
	of := func(n int, user, day string) apps.View { return apps.View{App: id(n), Username: user, Day: day} }
	is.NoErr(s.AddViews(ctx, "acme", map[apps.View]apps.Views{
		of(1, "jo", "2026-11-16"): {N: 2, Last: monday},
		of(1, "jo", "2026-11-17"): {N: 3, Last: tuesday}, of(1, "mia", "2026-11-16"): {N: 4, Last: monday},
		of(2, "jo", "2026-11-16"): {N: 5, Last: monday},
	}))
	is.NoErr(s.AddViews(ctx, "evil", map[apps.View]apps.Views{of(1, "jo", "2026-11-16"): {N: 9, Last: monday}}))
	for user, marked := range map[string][]int{"jo": {1, 2, 3}, "mia": {1}} {
		for _, n := range marked {
			is.NoErr(s.SetFavorite(ctx, "acme", user, id(n), true, monday))
		}
	}
	for _, c := range []struct {
		count func(ctx context.Context, tenant string, some []string) (apps.Uses, error)
		some  []string
		want  apps.Uses
	}{
		{s.UsesOf, numbered(1), apps.Uses{Favorites: 2, Visits: 2, Views: 9}},
		{s.UsesOf, numbered(2, 3), apps.Uses{Favorites: 2, Visits: 1, Views: 5}},
		{s.UsesOf, numbered(9), apps.Uses{}},
		{s.UsesOf, nil, apps.Uses{}},
		{s.UsesBy, []string{"jo"}, apps.Uses{Favorites: 3, Visits: 2, Views: 10}},
		{s.UsesBy, []string{"mia", "nobody"}, apps.Uses{Favorites: 1, Visits: 1, Views: 4}},
		{s.UsesBy, []string{"jo", "mia"}, apps.Uses{Favorites: 4, Visits: 3, Views: 14}},
		{s.UsesBy, nil, apps.Uses{}},
	} {
		uses, err := c.count(ctx, "acme", c.some)
		is.NoErr(err)
		is.Equal(uses, c.want)
	}
}

func testRecent(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	theirs := newApp(2, "b")
	theirs.OwnerID = "mia"
	team := newApp(3, "c")
	team.OwnerID = "red"
	insert(t, s, newApp(1, "a"), theirs, team, newApp(4, "d"), newApp(5, "e"))
	visit := func(n int, user string, at time.Time) {
		t.Helper()
		is.NoErr(s.AddViews(ctx, "acme", map[apps.View]apps.Views{
			{App: id(n), Username: user, Day: at.Format(time.DateOnly)}: {N: 1, Last: at},
		}))
	}
	recent := func(tenant, user string, v apps.Viewer, n int) []string {
		t.Helper()
		all, err := s.Recent(ctx, tenant, user, v, n)
		is.NoErr(err)
		return ids(all)
	}
	for n := 1; n <= 5; n++ {
		visit(n, "jo", monday.Add(time.Duration(n)*time.Minute))
	}
	visit(1, "jo", tuesday)
	visit(1, "jo", monday) // a late write of an earlier visit changes nothing
	visit(4, "mia", monday)
	trash(t, s, 5, tuesday)
	jo, all := apps.Viewer{Principals: []string{"jo", "red"}}, apps.Viewer{All: true}
	is.Equal(recent("acme", "jo", all, 9), numbered(1, 4, 3, 2))
	is.Equal(recent("acme", "jo", all, 2), numbered(1, 4))
	is.Equal(recent("acme", "jo", jo, 9), numbered(1, 4, 3)) // the share has ended
	is.Equal(recent("acme", "jo", apps.Viewer{}, 9), nil)
	is.Equal(recent("acme", "mia", all, 9), numbered(4))
	is.Equal(recent("evil", "jo", all, 9), nil)
	share(t, s, 2, "red", shares.None)
	is.Equal(recent("acme", "jo", jo, 9), numbered(1, 4, 3))
	share(t, s, 2, "red", shares.Use)
	is.Equal(recent("acme", "jo", jo, 9), numbered(1, 4, 3, 2))
	both := map[apps.View]apps.Views{ // two days in one batch
		{App: id(3), Username: "jo", Day: "2026-11-16"}: {N: 1, Last: monday},
		{App: id(3), Username: "jo", Day: "2026-11-17"}: {N: 1, Last: tuesday.Add(time.Minute)},
	}
	is.NoErr(s.AddViews(ctx, "acme", both))
	is.Equal(recent("acme", "jo", jo, 9), numbered(3, 1, 4, 2))
	_, err := s.Remove(ctx, "acme", numbered(3))
	is.NoErr(err)
	is.Equal(recent("acme", "jo", jo, 9), numbered(1, 4, 2))
}
