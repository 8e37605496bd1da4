package bunstore_test

import (
	"slices"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

func testKnown(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", user("jo"), user("mia"))
	addTeams(t, s, "acme", team(1, "Design"))
	addUsers(t, s, "evil", user("eve"))
	known, err := s.Known(ctx, "acme", []string{"jo", "JO", "eve", teamID(1), teamID(2), "*"})
	is.NoErr(err)
	is.Equal(known, map[string]bool{"jo": true, teamID(1): true, "*": true})
	known, err = s.Known(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(known), 0)
	ids, err := s.UserIDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(ids, []string{"jo", "mia"})
	ids, err = s.TeamIDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(ids, []string{teamID(1)})
}

func testPutUsers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	boss, name := user("boss"), "Mia"
	boss.Superuser = true
	addUsers(t, s, "acme", boss, user("jo"))
	fresh, over, demoted := user("mia"), user("jo"), user("boss")
	fresh.DisplayName, fresh.Superuser = &name, true // an import does not make a user a superuser
	over.DisplayName, over.Enabled, over.Domain, over.CreatedAt, over.UpdatedAt = &name, false, "corp", tuesday, tuesday
	over.GlobalPermissions.AI, over.Superuser, over.SourceID = true, true, &name
	demoted.Enabled, demoted.Email, demoted.DisplayName = false, &name, &name
	is.NoErr(s.PutUsers(ctx, "acme", []principals.User{fresh, over, demoted}))
	some, err := s.SomeUsers(ctx, "acme", []string{"mia", "jo", "boss", "none"})
	is.NoErr(err)
	is.Equal(len(some), 3)
	few, meter := paging.WithBatch(ctx, 1)
	part, err := s.SomeUsers(few, "acme", []string{"mia", "jo", "boss"})
	is.NoErr(err)
	is.True(len(part) == 1 || len(part) == 3 && !meter.Full()) // the caller may request the others again
	for _, u := range some {
		switch u.Username {
		case "mia":
			is.Equal([]any{u.Superuser, *u.DisplayName, u.Enabled}, []any{false, "Mia", true})
		case "jo":
			is.Equal([]any{*u.DisplayName, u.CreatedAt, u.UpdatedAt}, []any{"Mia", monday, tuesday})
			is.Equal([]any{
				u.Enabled, u.Domain, u.GlobalPermissions.AI, u.Superuser, u.SourceID == nil,
			}, []any{true, principals.Local, false, false, true})
		case "boss":
			is.Equal([]any{
				u.Superuser, u.Enabled, u.Email == nil, u.DisplayName == nil, u.UpdatedAt,
			}, []any{true, true, true, true, monday})
		}
	}
	known, err := s.Known(ctx, "acme", []string{"mia"})
	is.NoErr(err)
	is.Equal(len(known), 1)
	is.Equal(errs.CodeOf(s.PutUsers(ctx, "acme", []principals.User{user("JO")})), errs.Conflict)
	is.NoErr(s.PutUsers(ctx, "acme", nil))

	picture := "picture"
	_, err = s.UpdateUser(ctx, "acme", "jo", func(u *principals.User) error { u.AvatarID = &picture; return nil })
	is.NoErr(err)
	accounts, pictures, err := s.DeleteUsers(ctx, "evil", []string{"jo"})
	is.NoErr(err)
	is.Equal(len(accounts)+len(pictures), 0)
	accounts, pictures, err = s.DeleteUsers(ctx, "acme", []string{"jo", "mia", "none"})
	is.NoErr(err)
	slices.Sort(accounts)
	is.Equal(accounts, []string{"jo", "mia"})
	is.Equal(pictures, []string{"picture"})
}

func testPutTeams(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", user("jo"), user("mia"))
	addTeams(t, s, "acme", team(1, "A"), team(2, "B"))
	one, two, three := team(1, "A2"), team(2, "B2"), team(3, "C")
	one.Slug, two.Slug, three.Slug = "slug-2", "b2", "slug-1" // slugs are exchanged
	one.CreatedAt, one.UpdatedAt = tuesday, tuesday
	is.NoErr(s.PutTeams(ctx, "acme", []principals.Team{one, two, three}, []string{one.ID, two.ID}))
	slugs, err := s.TeamsWithSlugs(ctx, "acme", []string{"slug-1", "slug-2", "b2", "none"})
	is.NoErr(err)
	is.Equal(slugs, map[string]string{"slug-1": three.ID, "slug-2": one.ID, "b2": two.ID})
	got, err := s.Team(ctx, "acme", one.ID)
	is.NoErr(err)
	is.Equal([]any{got.Name, got.CreatedAt, got.UpdatedAt}, []any{"A2", monday, tuesday})
	other := team(4, "D")
	other.Slug = "b2"
	is.Equal(errs.CodeOf(s.PutTeams(ctx, "acme", []principals.Team{other}, nil)), errs.Conflict)

	members := []principals.Membership{
		{TeamID: one.ID, Username: "mia", Role: actor.Admin, CreatedAt: monday},
		{TeamID: one.ID, Username: "jo", Role: actor.Member, CreatedAt: monday},
		{TeamID: two.ID, Username: "jo", Role: actor.Member, CreatedAt: monday},
	}
	is.NoErr(s.PutMembers(ctx, "acme", members))
	members[2].Role = actor.Designer
	is.NoErr(s.PutMembers(ctx, "acme", members[2:]))
	all, err := s.MembersOf(ctx, "acme", []string{two.ID, one.ID, three.ID})
	is.NoErr(err)
	is.Equal(all, []principals.Membership{members[1], members[0], members[2]})
	for _, tenant := range []string{"evil", "acme"} {
		n, err := s.DeleteTeams(ctx, tenant, []string{one.ID, three.ID, teamID(9)})
		is.NoErr(err)
		is.Equal(n, map[string]int{"evil": 0, "acme": 2}[tenant])
	}
	all, err = s.MembersOf(ctx, "acme", []string{one.ID, two.ID})
	is.NoErr(err)
	is.Equal(len(all), 1)
	teams, err := s.SomeTeams(ctx, "acme", []string{one.ID, two.ID})
	is.NoErr(err)
	is.True(len(teams) == 1 && slices.Contains([]string{two.ID}, teams[0].ID))
}

func testTransfererIsolation(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", user("jo"))
	addTeams(t, s, "acme", team(1, "A"))
	is.NoErr(s.PutMembers(ctx, "acme", []principals.Membership{{
		TeamID:    teamID(1),
		Username:  "jo",
		Role:      actor.Admin,
		CreatedAt: monday,
	}}))
	users, err := s.SomeUsers(ctx, "evil", []string{"jo"})
	is.NoErr(err)
	teams, err := s.SomeTeams(ctx, "evil", []string{teamID(1)})
	is.NoErr(err)
	slugs, err := s.TeamsWithSlugs(ctx, "evil", []string{"slug-1"})
	is.NoErr(err)
	members, err := s.MembersOf(ctx, "evil", []string{teamID(1)})
	is.NoErr(err)
	is.Equal(len(users)+len(teams)+len(slugs)+len(members), 0)
	theirs, name := user("jo"), "Theirs"
	theirs.DisplayName = &name
	is.NoErr(s.PutUsers(ctx, "evil", []principals.User{theirs}))
	is.NoErr(s.PutTeams(ctx, "evil", []principals.Team{team(1, "Theirs")}, []string{teamID(1)}))
	u, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)
	is.Equal(u.DisplayName, nil)
	mine, err := s.Team(ctx, "acme", teamID(1))
	is.NoErr(err)
	is.Equal(mine.Name+mine.Slug, "Aslug-1")
}
