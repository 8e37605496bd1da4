package principalstest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// many is more than any statement takes at once.
const many = 1203

// directoryUser has a value in every text.
func directoryUser(name string) principals.DirectoryUser {
	return principals.DirectoryUser{
		Username: name, Source: "LDAP", SourceID: "id of " + name, DisplayName: "Ünal '; DROP --?$1", FamilyName: "Doe", GivenName: "Jö",
		MiddleName: "日本", Email: name + "@example.com", Timezone: "Europe/Berlin", Enabled: true, DirectoryDisabled: true,
	}
}

// ofDomain returns what DomainUsers does.
func ofDomain(t *testing.T, s principals.Store, tenant, domain string) (all []principals.DirectoryUser) {
	t.Helper()
	is.New(t).NoErr(s.DomainUsers(t.Context(), tenant, domain, func(u principals.DirectoryUser) { all = append(all, u) }))
	return all
}

// in returns a user with another domain.
func in(domain string, u principals.User) principals.User {
	u.Domain = domain
	return u
}

func testDomainUsers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	bare, jo := in("ldap", user("bare")), full()
	other := in("saml", full())
	other.Username = "other"
	addUsers(t, s, "acme", bare, jo, other, user("local"))
	is.Equal(ofDomain(t, s, "acme", "ldap"), []principals.DirectoryUser{ // ordered by username
		{
			Username: jo.Username, Source: *jo.Source, SourceID: *jo.SourceID, DisplayName: *jo.DisplayName, FamilyName: *jo.FamilyName,
			GivenName: *jo.GivenName, MiddleName: *jo.MiddleName, Email: *jo.Email, Timezone: *jo.Timezone, Superuser: true, Enabled: true,
			DirectoryDisabled: true,
		},
		{Username: "bare", Enabled: true},
	})
	is.Equal(len(ofDomain(t, s, "acme", "none")), 0)
	got, err := s.UserFrom(ctx, "acme", "ldap", *jo.SourceID)
	is.NoErr(err)
	is.Equal(got, jo)
	for _, id := range []string{"", "none"} {
		_, err = s.UserFrom(ctx, "acme", "ldap", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	holders, err := s.Holders(ctx, "acme", []string{"jö.doe+x@example.com", "bare", "none", "Bare"})
	is.NoErr(err)
	is.Equal(holders, map[string]principals.Holder{
		"jö.doe+x@example.com": {Username: jo.Username, Domain: "ldap"}, "bare": {Username: "bare", Domain: "ldap"},
	})
	holders, err = s.Holders(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(holders), 0)
}

func testAddDirectoryUsers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	var all []principals.DirectoryUser
	for n := range many {
		all = append(all, directoryUser(fmt.Sprintf("u%04d", n)))
	}
	bare := principals.DirectoryUser{Username: "Zoe", SourceID: "z", Superuser: true}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", append(slices.Clone(all), bare), monday))
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", nil, monday))
	bare.Superuser = false // no directory makes one
	is.Equal(ofDomain(t, s, "acme", "ldap"), append([]principals.DirectoryUser{bare}, all...))
	got, err := s.User(ctx, "acme", "Zoe")
	is.NoErr(err)
	want, id := in("ldap", user("Zoe")), "z"
	want.Tenant, want.Enabled, want.SourceID = "acme", false, &id
	is.Equal(got, want)
	is.Equal(len(ids(t, s, "acme")), many+1) // each is a principal
	p, err := s.Principal(ctx, "acme", "u0001")
	is.NoErr(err)
	is.Equal(p.Name, all[1].DisplayName)
	page, err := s.Users(ctx, "acme", searching("u0002@EXAMPLE"))
	is.NoErr(err)
	is.Equal(page.Total, 1) // it can be found
	err = s.AddDirectoryUsers(ctx, "acme", "ldap", []principals.DirectoryUser{directoryUser("new"), directoryUser("ZOE")}, monday)
	is.Equal(errs.CodeOf(err), errs.Conflict)
	_, err = s.User(ctx, "acme", "new")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testEditDirectoryUsers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	var all []principals.DirectoryUser
	var names []string
	for n := range many {
		names = append(names, fmt.Sprintf("u%04d", n))
		all = append(all, directoryUser(names[n]))
	}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", all, monday))
	jo := full()
	addUsers(t, s, "acme", jo)
	l, err := s.Login(ctx, "acme", "jö.doe+x@example.com", "")
	is.NoErr(err)
	edited := 0
	is.NoErr(s.EditDirectoryUsers(ctx, "acme", append(names, jo.Username, "none"), tuesday, func(u *principals.DirectoryUser) {
		edited++
		switch u.Username {
		case "u0001", jo.Username:
			*u = principals.DirectoryUser{Username: "x", Source: "AD", SourceID: "y", DisplayName: "New"}
		case "u0002":
			u.Email = "new@example.com"
		}
	}))
	is.Equal(edited, many+1)
	all[1] = principals.DirectoryUser{Username: "u0001", Source: "AD", SourceID: "y", DisplayName: "New"}
	all[2].Email = "new@example.com"
	got := slices.DeleteFunc(ofDomain(t, s, "acme", "ldap"), func(u principals.DirectoryUser) bool { return u.Username == jo.Username })
	is.Equal(got, all)
	for name, at := range map[string]bool{"u0001": true, "u0002": true, "u0003": false} {
		u, err := s.User(ctx, "acme", name)
		is.NoErr(err)
		is.Equal(u.UpdatedAt == tuesday, at) // what is not changed is not written
		is.Equal(u.CreatedAt, monday)
	}
	u, err := s.User(ctx, "acme", jo.Username)
	is.NoErr(err)
	text := func(s string) *string { return &s }
	jo.Source, jo.SourceID, jo.DisplayName, jo.Enabled, jo.DirectoryDisabled, jo.UpdatedAt = text("AD"), text("y"), text("New"), false, false, tuesday
	jo.FamilyName, jo.GivenName, jo.MiddleName, jo.Email, jo.Timezone = nil, nil, nil, nil, nil
	is.Equal(u, jo) // still a superuser, with all that no directory knows
	after, err := s.Login(ctx, "acme", "jö.doe+x@example.com", "")
	is.NoErr(err)
	l.Enabled = false
	is.Equal(after, l)
	p, err := s.Principal(ctx, "acme", "u0001")
	is.NoErr(err)
	is.Equal(p.Name, "New")
	page, err := s.Users(ctx, "acme", searching("new"))
	is.NoErr(err)
	is.Equal(page.Total, 3)
}

func testRenameUsers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	jo := full()
	addUsers(t, s, "acme", jo, user("mia"), user("taken"))
	addUsers(t, s, "evil", jo)
	addTeams(t, s, "acme", team(1, "one"))
	is.NoErr(s.PutMember(ctx, "acme", member(1, "mia", actor.Admin)))
	names := map[string]string{jo.Username: "JOE", "mia": "Mia", "none": "nobody"}
	for n := range many { // most of whom do not exist
		names[fmt.Sprint("was", n)] = fmt.Sprint("becomes", n)
	}
	is.NoErr(s.RenameUsers(ctx, "acme", names, tuesday))
	is.NoErr(s.RenameUsers(ctx, "acme", nil, tuesday))
	got, err := s.User(ctx, "acme", "JOE")
	is.NoErr(err)
	want := jo
	want.Username, want.UpdatedAt = "JOE", tuesday
	is.Equal(got, want)
	_, err = s.User(ctx, "acme", jo.Username)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	l, err := s.Login(ctx, "acme", "joe", "")
	is.NoErr(err)
	is.Equal(l.Username, "JOE") // found by the folded name
	in, err := s.Members(ctx, "acme", teamID(1), query(paging.MaxLimit))
	is.NoErr(err)
	is.Equal(in.Rows[0].Username, "Mia")
	is.Equal(in.Rows[0].Role, actor.Admin)
	is.Equal(ids(t, s, "acme"), []string{"JOE", "Mia", teamID(1), "taken"}) // as principals they follow, by label
	p, err := s.Principal(ctx, "acme", "Mia")
	is.NoErr(err)
	is.Equal(p.Name, "Mia")
	page, err := s.Users(ctx, "acme", searching("joe"))
	is.NoErr(err)
	is.Equal(page.Total, 1)
	is.Equal(errs.CodeOf(s.RenameUsers(ctx, "acme", map[string]string{"Mia": "TAKEN"}, tuesday)), errs.Conflict)
	theirs, err := s.User(ctx, "evil", jo.Username)
	is.NoErr(err)
	jo.Tenant = "evil"
	is.Equal(theirs, jo)
}

func testDomainTeams(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	one, two, other := team(2, "one"), team(1, "two"), team(3, "other")
	one.Domain, two.Domain, other.Domain, one.DirectoryGone = "ldap", "ldap", "saml", true
	addTeams(t, s, "acme", one, two, other, team(4, "local"))
	teams, err := s.DomainTeams(ctx, "acme", "ldap")
	is.NoErr(err)
	one.Tenant, two.Tenant = "acme", "acme"
	is.Equal(teams, []principals.Team{two, one})
	slugs, err := s.Slugs(ctx, "acme")
	is.NoErr(err)
	slices.Sort(slugs)
	is.Equal(slugs, []string{"slug-1", "slug-2", "slug-3", "slug-4"})
}

// domainMembers returns what DomainMembers does, in order.
func domainMembers(t *testing.T, s principals.Store, tenant, domain string) (all []principals.MemberKey) {
	t.Helper()
	is.New(t).NoErr(s.DomainMembers(t.Context(), tenant, domain, func(at principals.MemberKey) { all = append(all, at) }))
	slices.SortFunc(all, func(a, b principals.MemberKey) int {
		return cmp.Or(strings.Compare(a.TeamID, b.TeamID), strings.Compare(a.Username, b.Username))
	})
	return all
}

func testDomainMembers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	one, two := team(1, "one"), team(2, "two")
	one.Domain = "ldap"
	addTeams(t, s, "acme", one, two)
	all := []principals.Membership{member(1, "guest", actor.Member), member(2, "guest", actor.Member)}
	addUsers(t, s, "acme", user("guest"))
	var users []principals.DirectoryUser
	for n := range many {
		users = append(users, directoryUser(fmt.Sprintf("u%04d", n)))
		all = append(all, member(1, users[n].Username, actor.Member))
	}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", users, monday))
	is.NoErr(s.PutMember(ctx, "acme", member(1, "u0001", actor.Admin)))
	is.NoErr(s.AddMembers(ctx, "acme", all))
	is.NoErr(s.AddMembers(ctx, "acme", nil))
	members, err := s.Members(ctx, "acme", teamID(1), query(paging.MaxLimit))
	is.NoErr(err)
	for _, m := range members.Rows {
		is.Equal(m.Role == actor.Admin, m.Username == "u0001") // who is there keeps the role
	}
	got := domainMembers(t, s, "acme", "ldap")
	is.Equal(len(got), many+1) // of whatever domain the users are, but not of other domains' teams
	is.Equal(got[:2], []principals.MemberKey{{TeamID: teamID(1), Username: "guest"}, {TeamID: teamID(1), Username: "u0000"}})
	is.True(errs.CodeOf(s.AddMembers(ctx, "acme", []principals.Membership{member(1, "none", actor.Member)})) == errs.Conflict)

	gone := []principals.MemberKey{{TeamID: teamID(2), Username: "u0000"}, {TeamID: teamID(9), Username: "guest"}} // do not exist
	for n := range many {
		gone = append(gone, principals.MemberKey{TeamID: teamID(1), Username: fmt.Sprintf("u%04d", n)})
	}
	is.NoErr(errors.Join(s.DeleteMembers(ctx, "acme", gone), s.DeleteMembers(ctx, "acme", nil)))
	is.Equal(domainMembers(t, s, "acme", "ldap"), []principals.MemberKey{{TeamID: teamID(1), Username: "guest"}})
	in, err := s.Members(ctx, "acme", teamID(2), query(paging.MaxLimit))
	is.NoErr(err)
	is.Equal(len(in.Rows), 1)
}

func testDomainCounts(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	counts, err := s.DomainCounts(ctx, "acme")
	is.NoErr(err)
	is.Equal(len(counts), 0)
	one, two := team(1, "one"), team(2, "two")
	one.Domain, two.Domain = "ldap", "empty"
	addTeams(t, s, "acme", one, two)
	addUsers(t, s, "acme", user("jo"), in("ldap", user("mia")), in("ldap", user("al")))
	addUsers(t, s, "evil", in("ldap", user("eve")))
	counts, err = s.DomainCounts(ctx, "acme")
	is.NoErr(err)
	is.Equal(counts, map[string]principals.DomainCounts{"local": {Users: 1}, "ldap": {Users: 2, Teams: 1}, "empty": {Teams: 1}})
}

func testDirectoryIsolation(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	one := team(1, "one")
	one.Domain = "ldap"
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", []principals.DirectoryUser{directoryUser("jo")}, monday))
	addTeams(t, s, "acme", one)
	is.NoErr(s.PutMember(ctx, "acme", member(1, "jo", actor.Member)))
	was, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)

	is.Equal(len(ofDomain(t, s, "evil", "ldap"))+len(domainMembers(t, s, "evil", "ldap")), 0) // another tenant sees nothing
	_, err = s.UserFrom(ctx, "evil", "ldap", "id of jo")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	holders, err := s.Holders(ctx, "evil", []string{"jo"})
	is.NoErr(err)
	teams, err := s.DomainTeams(ctx, "evil", "ldap")
	is.NoErr(err)
	slugs, err := s.Slugs(ctx, "evil")
	is.NoErr(err)
	counts, err := s.DomainCounts(ctx, "evil")
	is.NoErr(err)
	is.Equal(len(holders)+len(teams)+len(slugs)+len(counts), 0)

	is.NoErr(s.EditDirectoryUsers(ctx, "evil", []string{"jo"}, tuesday, func(u *principals.DirectoryUser) { u.Enabled = false })) // and changes nothing
	is.NoErr(s.RenameUsers(ctx, "evil", map[string]string{"jo": "joe"}, tuesday))
	is.NoErr(s.DeleteMembers(ctx, "evil", []principals.MemberKey{{TeamID: teamID(1), Username: "jo"}}))
	is.Equal(errs.CodeOf(s.AddMembers(ctx, "evil", []principals.Membership{member(1, "jo", actor.Admin)})), errs.Conflict)
	is.NoErr(s.AddDirectoryUsers(ctx, "evil", "ldap", []principals.DirectoryUser{directoryUser("jo")}, tuesday)) // the same name is another row
	got, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)
	is.Equal(got, was)
	is.Equal(len(domainMembers(t, s, "acme", "ldap")), 1)
}

func searching(text string) paging.Query { return paging.Query{Limit: 10, Q: text} }
