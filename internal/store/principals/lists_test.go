package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

func query(limit int) paging.Query { return paging.Query{Limit: limit} }

// pages checks a list of 25 rows with pagingtest, and returns their keys.
func pages[T any](
	t *testing.T, sort string, page func(context.Context, paging.Query) (paging.Page[T], error),
	key func(T) string,
) []string {
	t.Helper()
	keys := pagingtest.TestCursor(t, sort, page, key)
	pagingtest.TestBytes(t, func(ctx context.Context, q paging.Query) (paging.Page[T], error) {
		q.Sort = sort
		return page(ctx, q)
	})
	return keys
}

func testUserPages(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	for i := range 25 {
		u := user(fmt.Sprintf("%c%02d", "uU"[i%2], i))
		u.CreatedAt = monday.Add(time.Duration(i%3) * time.Hour) // equal times, which are ordered by name
		u.UpdatedAt = monday.Add(-time.Duration(i) * time.Hour)
		if i%2 == 0 {
			name := fmt.Sprintf("Ann %d%%", i%4)
			u.DisplayName = &name
		}
		addUsers(t, s, "acme", u)
	}
	page := func(ctx context.Context, q paging.Query) (paging.Page[principals.User], error) {
		return s.Users(ctx, "acme", q)
	}
	key := func(u principals.User) string { return u.Username }
	byName := pages(t, "", page, key)
	is.Equal(byName[:3], []string{"u00", "U01", "u02"}) // case does not matter
	is.Equal(pages(t, "username", page, key), byName)
	backwards := pages(t, "-username", page, key)
	slices.Reverse(backwards)
	is.Equal(backwards, byName)
	is.Equal(pages(t, "displayName", page, key)[:2], []string{"u00", "u04"})
	is.Equal(pages(t, "createdAt", page, key)[:2], []string{"u00", "U03"})
	is.Equal(pages(t, "updatedAt", page, key)[0], "u24")
	pages(t, "-createdAt", page, key)
	folded := func(a, b principals.User) int { return strings.Compare(fold.Name(a.Username), fold.Name(b.Username)) }
	pagingtest.TestOrder(t, page, "username", folded, map[string]func(a, b principals.User) int{
		"username": folded,
		"displayName": func(a, b principals.User) int {
			return strings.Compare(fold.Text(a.Label()), fold.Text(b.Label()))
		},
		"createdAt": func(a, b principals.User) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updatedAt": func(a, b principals.User) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	for q, total := range map[string]int{"ANN": 13, "ann 2%": 6, "_": 0, "u0": 10} {
		p, err := s.Users(ctx, "acme", paging.Query{Limit: 5, Q: q})
		is.NoErr(err)
		is.Equal(p.Total, total)
	}
	for _, bad := range []paging.Query{
		{Sort: "email"}, {Limit: 1, Sort: "createdAt", After: &paging.Position{Value: "x"}},
	} {
		_, err := s.Users(ctx, "acme", bad)
		is.True(err != nil)
	}
}

func testUsersNamed(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", full(), user("Jo"), user("al"))
	addUsers(t, s, "evil", user("jo"), user("eve"))
	got, err := s.UsersNamed(ctx, "acme", []string{"jo", "jö.doe+x@example.com", "eve", "nobody", "o'; --", "?"})
	is.NoErr(err)
	slices.SortFunc(got, func(a, b principals.User) int { return strings.Compare(a.Username, b.Username) })
	jo := user("Jo")
	jo.Tenant = "acme"
	is.Equal(got, []principals.User{jo, full()})
	got, err = s.UsersNamed(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(got), 0)
}

func testTeamPages(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	for i := range 25 {
		g := team(i, fmt.Sprintf("%c %02d", "tT"[i%2], i/2))
		g.CreatedAt = monday.Add(time.Duration(i%3) * time.Hour)
		g.UpdatedAt = monday.Add(-time.Duration(i) * time.Hour)
		addTeams(t, s, "acme", g)
	}
	page := func(ctx context.Context, q paging.Query) (paging.Page[principals.Team], error) {
		return s.Teams(ctx, "acme", q)
	}
	key := func(g principals.Team) string { return g.ID }
	byName := pages(t, "", page, key)
	is.Equal(byName[:3], []string{teamID(0), teamID(1), teamID(2)})
	is.Equal(pages(t, "name", page, key), byName)
	is.Equal(pages(t, "createdAt", page, key)[:2], []string{teamID(0), teamID(3)})
	is.Equal(pages(t, "updatedAt", page, key)[0], teamID(24))
	pages(t, "-name", page, key)
	pagingtest.TestOrder(t, page, "name", func(a, b principals.Team) int {
		return strings.Compare(a.ID, b.ID)
	}, map[string]func(a, b principals.Team) int{
		"name":      func(a, b principals.Team) int { return strings.Compare(fold.Text(a.Name), fold.Text(b.Name)) },
		"createdAt": func(a, b principals.Team) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updatedAt": func(a, b principals.Team) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	p, err := s.Teams(ctx, "acme", paging.Query{Limit: 5, Q: "SLUG-1"})
	is.NoErr(err)
	is.Equal(p.Total, 11)
}

func testMemberPages(t *testing.T, s principals.Store) {
	is := is.New(t)
	var users []principals.User
	var teams []principals.Team
	for i := range 25 {
		u := user(fmt.Sprintf("%c%02d", "uU"[i%2], i))
		label := fmt.Sprintf("%c %d", "aA"[i%2], i/2%5) // equal labels, which are ordered by name
		u.DisplayName = &label
		users, teams = append(users, u), append(teams, team(i, fmt.Sprintf("%c %d", "tT"[i%2], i/2%5)))
	}
	addUsers(t, s, "acme", users...)
	addTeams(t, s, "acme", teams...)
	addUsers(t, s, "evil", user("u00"))
	addTeams(t, s, "evil", team(0, "theirs"))
	for i := range 25 {
		for _, m := range []principals.Membership{
			member(0, users[i].Username, actor.Member), member(i, "u00", actor.Designer),
		} {
			m.CreatedAt = monday.Add(time.Duration(i%3) * time.Hour)
			is.NoErr(s.PutMember(t.Context(), "acme", m))
		}
	}
	is.NoErr(s.PutMember(t.Context(), "evil", member(0, "u00", actor.Admin)))

	members := func(ctx context.Context, q paging.Query) (paging.Page[principals.Membership], error) {
		return s.Members(ctx, "acme", teamID(0), q)
	}
	username := func(m principals.Membership) string { return m.Username }
	is.Equal(pages(t, "", members, username)[:4], []string{"u00", "U01", "u10", "U11"})
	is.Equal(pages(t, "-displayName", members, username)[0], "U19")
	is.Equal(pages(t, "username", members, username)[24], "u24")
	pages(t, "-createdAt", members, username)
	folded := func(a, b principals.Membership) int {
		return strings.Compare(fold.Name(a.Username), fold.Name(b.Username))
	}
	created := func(a, b principals.Membership) int { return a.CreatedAt.Compare(b.CreatedAt) }
	pagingtest.TestOrder(t, members, "displayName", folded, map[string]func(a, b principals.Membership) int{
		"displayName": func(a, b principals.Membership) int {
			return strings.Compare(fold.Text(*a.DisplayName), fold.Text(*b.DisplayName))
		},
		"username":  folded,
		"createdAt": created,
	})

	memberships := func(ctx context.Context, q paging.Query) (paging.Page[principals.Membership], error) {
		return s.Memberships(ctx, "acme", "u00", q)
	}
	teamOf := func(m principals.Membership) string { return m.TeamID }
	is.Equal(pages(t, "", memberships, teamOf)[:4], []string{teamID(0), teamID(1), teamID(10), teamID(11)})
	pages(t, "-teamName", memberships, teamOf)
	pages(t, "createdAt", memberships, teamOf)
	pagingtest.TestOrder(t, memberships, "teamName", func(a, b principals.Membership) int {
		return strings.Compare(a.TeamID, b.TeamID)
	},
		map[string]func(a, b principals.Membership) int{
			"teamName": func(a, b principals.Membership) int {
				return strings.Compare(fold.Text(a.TeamName), fold.Text(b.TeamName))
			},
			"createdAt": created,
		})

	for name, page := range map[string]func(context.Context, paging.Query) (paging.Page[principals.Membership], error){
		"members":     members,
		"memberships": memberships,
	} {
		p, err := page(t.Context(), paging.Query{CountOnly: true})
		is.NoErr(err)
		is.Equal([]int{len(p.Rows), p.Total}, []int{0, 25})
		p, err = page(t.Context(), paging.Query{Start: 25, Limit: 10}) // beyond the end
		is.NoErr(err)
		is.Equal([]int{len(p.Rows), p.Total}, []int{0, 25})
		for _, bad := range []paging.Query{
			{Sort: "role"}, {Q: "a", Limit: 1},
			{Limit: 1, Sort: "createdAt", After: &paging.Position{Value: "x"}},
		} {
			_, err := page(t.Context(), bad)
			if errs.CodeOf(err) != errs.Invalid {
				t.Errorf("%s of %+v: %v", name, bad, err)
			}
		}
	}
}

// testPrincipals checks only the list of all principals, of an empty Store with the tenant acme.
func testPrincipals(t *testing.T, s principals.Store) { testOrder(t, s) }

func testOrder(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	named := func(name, display string) principals.User {
		u := user(name)
		u.DisplayName = &display
		return u
	}
	addUsers(t, s, "acme", user("bob"), user("Émile"), user("zed"), named("y", "ALF"), named("x", "alf"),
		named("w", "Über"),
		named("v", "straße"), named("u", "STRASSE"), named("t", "日本"))
	addTeams(t, s, "acme", team(1, "Bobs"), team(2, "alf"))
	is.Equal(ids(t, s, "acme"), []string{
		teamID(2), "x", "y", // alf, alf, ALF: alike except for case, so by id
		"bob", teamID(1), "u", "v", "zed", "Émile", "w", "t",
	})
	_, err := s.UpdateUser(ctx, "acme", "y", func(u *principals.User) error { u.DisplayName = nil; return nil })
	is.NoErr(err)
	_, err = s.UpdateTeam(ctx, "acme", teamID(1), func(t *principals.Team) error { t.Name = "aaa"; return nil })
	is.NoErr(err)
	is.Equal(ids(t, s, "acme"), []string{ // labels are updated
		teamID(1), teamID(2), "x", "bob", "u", "v", "y", "zed", "Émile", "w", "t",
	})
	for i := range 12 { // as many equal labels as any number of rows at a time
		u := named(fmt.Sprintf("z%02d", i), "ZZZ")
		addUsers(t, s, "acme", u)
	}
	all := ids(t, s, "acme")
	is.Equal(len(all), 11+12)
	is.Equal(all[8:11], []string{"z00", "z01", "z02"})
	is.True(slices.IsSorted(all[8:20]))
	for p, err := range s.Principals(ctx, "acme") {
		is.NoErr(err)
		one, err := s.Principal(ctx, "acme", p.ID)
		is.NoErr(err)
		is.Equal(p, one) // the list and the look-up return the same
	}
}

func testPrincipalsWithWrites(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", user("a"), user("b"))
	for p, err := range s.Principals(ctx, "acme") {
		is.NoErr(err)
		is.NoErr(deleted(s.DeleteUser(ctx, "acme", p.ID)))
	}
	is.Equal(len(ids(t, s, "acme")), 0)
}

// testFollow adds and removes concurrently. Afterwards the principals are the users and the teams.
func testFollow(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	together(t, func(i int) error {
		name, id := fmt.Sprintf("u%02d", i), teamID(i)
		err := errors.Join(s.InsertUser(ctx, "acme", user(name)), s.InsertTeam(ctx, "acme", team(i, name+"s")))
		if i%2 == 0 {
			err = errors.Join(err, deleted(s.DeleteUser(ctx, "acme", name)))
		}
		if i%3 == 0 {
			err = errors.Join(err, s.DeleteTeam(ctx, "acme", id))
		}
		return err
	})
	users, err := s.Users(ctx, "acme", query(100))
	is.NoErr(err)
	teams, err := s.Teams(ctx, "acme", query(100))
	is.NoErr(err)
	var want []string
	for _, u := range users.Rows {
		want = append(want, u.Username)
	}
	for _, g := range teams.Rows {
		want = append(want, g.ID)
	}
	got := ids(t, s, "acme")
	slices.Sort(want)
	slices.Sort(got)
	is.Equal(len(want), 10+13)
	is.Equal(got, want)
}
