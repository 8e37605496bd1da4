package bunstore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// many is more than fits any statement.
const many = 1203

// directoryUser returns a user with a value in every field but Superuser, which directories do not
// set.
func directoryUser(name string) principals.DirectoryUser {
	return principals.DirectoryUser{
		Username: name, Source: "LDAP", SourceID: "id of " + name,
		DisplayName: "Ünal '; DROP --?$1", FamilyName: "Doe", GivenName: "Jö",
		MiddleName: "日本", Email: name + "@example.com", Timezone: "Europe/Berlin",
		Enabled: true, DirectoryDisabled: true, DirectoryLocked: true,
	}
}

// ofDomain returns the users of a domain in the form of a directory, ordered by username.
func ofDomain(t *testing.T, s principals.Store, tenant, domain string) []principals.DirectoryUser {
	t.Helper()
	is := is.New(t)
	names, _, err := s.DomainPrincipals(t.Context(), tenant, domain)
	is.NoErr(err)
	users, err := s.SomeUsers(t.Context(), tenant, names)
	is.NoErr(err)
	all := make([]principals.DirectoryUser, len(names))
	for _, u := range users {
		is.Equal(u.Domain, domain)
		at, found := slices.BinarySearch(names, u.Username)
		is.True(found)
		all[at] = principals.DirectoryUser{
			Username: u.Username, Source: or(u.Source),
			SourceID: or(u.SourceID), DisplayName: or(u.DisplayName), FamilyName: or(u.FamilyName),
			GivenName: or(u.GivenName), MiddleName: or(u.MiddleName),
			Email: or(u.Email), Timezone: or(u.Timezone), Superuser: u.Superuser,
			Enabled: u.Enabled, DirectoryDisabled: u.DirectoryDisabled, DirectoryLocked: u.DirectoryLocked,
		}
	}
	return all
}

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// in returns a user with another domain.
func in(domain string, u principals.User) principals.User {
	u.Domain = domain
	return u
}

func testUserFrom(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	bare, jo := in("ldap", user("bare")), full()
	other := in("saml", full())
	other.Username = "other"
	addUsers(t, s, "acme", bare, jo, other, user("local"))
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

func testAccounts(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	for i, email := range []string{"jo@Example.com", "jo@example.COM", "ünal@example.com", "mia'--@example.com"} {
		u, id := in("ldap", user(fmt.Sprint("u", i))), fmt.Sprintf("ID %d '", i/2)
		u.Email, u.SourceID = &email, &id
		addUsers(t, s, "acme", u)
		u.Domain, u.Username = "saml", u.Username+"-saml"
		addUsers(t, s, "acme", u)
		u.Domain = "ldap"
		addUsers(t, s, "evil", u)
	}
	names := func(users []principals.User, err error) (all []string) {
		t.Helper()
		is.NoErr(err)
		for _, u := range users {
			is.Equal(u.Domain, "ldap")
			all = append(all, u.Username)
		}
		slices.Sort(all)
		return all
	}
	for email, want := range map[string][]string{
		"JO@example.com": {"u0", "u1"}, "ünal@EXAMPLE.com": {"u2"}, "MIA'--@example.com": {"u3"},
		"": nil, "jo": nil, "%@example.com": nil,
	} {
		is.Equal(names(s.UsersWithEmail(ctx, "acme", "ldap", email)), want)
	}
	// A user with a typed address is not found by it, unless a directory sets another one.
	_, err := s.UpdateUser(ctx, "acme", "u3", func(u *principals.User) error { u.EmailTyped = true; return nil })
	is.NoErr(err)
	typed := "typed@example.com"
	_, err = s.UpdateUser(ctx, "acme", "u2", func(u *principals.User) error {
		u.Email, u.EmailTyped = &typed, true
		return nil
	})
	is.NoErr(err)
	edit := func(change func(*principals.DirectoryUser)) {
		t.Helper()
		is.NoErr(s.EditDirectoryUsers(ctx, "acme", []string{"u2"}, tuesday, change))
	}
	edit(func(u *principals.DirectoryUser) { u.DisplayName = "New" })
	for _, email := range []string{"mia'--@example.com", "ünal@example.com", typed} {
		is.Equal(names(s.UsersWithEmail(ctx, "acme", "ldap", email)), nil)
	}
	edit(func(u *principals.DirectoryUser) { u.Email = "Said@example.com" })
	is.Equal(names(s.UsersWithEmail(ctx, "acme", "ldap", "said@example.com")), []string{"u2"})
	edit(func(u *principals.DirectoryUser) { u.Email = "" })
	is.Equal(names(s.UsersWithEmail(ctx, "acme", "ldap", "said@example.com")), nil)

	is.Equal(names(s.UsersFrom(ctx, "acme", "ldap", []string{"ID 0 '"})), []string{"u0", "u1"})
	is.Equal(len(names(s.UsersFrom(ctx, "acme", "ldap", []string{"none", "ID 1 '", "ID 0 '"}))), 2)
	is.Equal(names(s.UsersFrom(ctx, "acme", "ldap", []string{"id 0 '", ""})), nil)
	is.Equal(names(s.UsersFrom(ctx, "acme", "ldap", nil)), nil)
}

func testAddDirectoryUsers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	fieldtest.Full(t, directoryUser("x"), "Superuser")
	var all []principals.DirectoryUser
	for n := range many {
		all = append(all, directoryUser(fmt.Sprintf("u%04d", n)))
	}
	bare := principals.DirectoryUser{Username: "Zoe", SourceID: "z", Superuser: true}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", append(slices.Clone(all), bare), monday))
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", nil, monday))
	bare.Superuser = false // directories do not create any
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
	err = s.AddDirectoryUsers(
		ctx, "acme", "ldap", []principals.DirectoryUser{directoryUser("new"), directoryUser("ZOE")}, monday,
	)
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
	is.NoErr(s.EditDirectoryUsers(ctx, "acme", append(
		names, jo.Username, "none",
	), tuesday, func(u *principals.DirectoryUser) {
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
	got := slices.DeleteFunc(ofDomain(t, s, "acme", "ldap"), func(u principals.DirectoryUser) bool {
		return u.Username == jo.Username
	})
	is.Equal(got, all)
	for name, at := range map[string]bool{"u0001": true, "u0002": true, "u0003": false} {
		u, err := s.User(ctx, "acme", name)
		is.NoErr(err)
		is.Equal(u.UpdatedAt == tuesday, at) // unchanged rows are not written
		is.Equal(u.CreatedAt, monday)
	}
	u, err := s.User(ctx, "acme", jo.Username)
	is.NoErr(err)
	text := func(s string) *string { return &s }
	jo.Source, jo.SourceID, jo.DisplayName, jo.Enabled, jo.DirectoryDisabled, jo.DirectoryLocked, jo.UpdatedAt =
		text("AD"), text("y"), text("New"), false, false, false, tuesday
	jo.FamilyName, jo.GivenName, jo.MiddleName, jo.Email, jo.Timezone, jo.EmailTyped = nil, nil, nil, nil, nil, false
	is.Equal(u, jo) // still a superuser, and other fields that directories do not set are unchanged
	after, err := s.Login(ctx, "acme", "jö.doe+x@example.com", "")
	is.NoErr(err)
	l.Enabled, l.DirectoryLocked = false, false
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
	for n := range many { // most of them do not exist
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
	is.Equal(ids(t, s, "acme"), []string{"JOE", "Mia", teamID(1), "taken"}) // updated, ordered by label
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

func testDomainPrincipals(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	one, two, other := team(2, "one"), team(1, "two"), team(3, "other")
	one.Domain, two.Domain, other.Domain = "ldap", "ldap", "saml"
	addTeams(t, s, "acme", one, two, other, team(4, "local"))
	addUsers(t, s, "acme", in("ldap", user("mia")), in("ldap", user("Al")), in("saml", user("sam")), user("local"))
	addUsers(t, s, "evil", in("ldap", user("eve")))
	for domain, want := range map[string][2][]string{
		"ldap": {{"Al", "mia"}, {teamID(1), teamID(2)}}, "saml": {{"sam"}, {teamID(3)}}, "none": {},
	} {
		users, teams, err := s.DomainPrincipals(ctx, "acme", domain)
		is.NoErr(err)
		is.Equal([2][]string{users, teams}, want)
	}
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
	is.Equal(counts, map[string]principals.DomainCounts{
		"local": {Users: 1},
		"ldap":  {Users: 2, Teams: 1},
		"empty": {Teams: 1},
	})
}

func testDomainIsolation(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	one := team(1, "one")
	one.Domain = "ldap"
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", []principals.DirectoryUser{directoryUser("jo")}, monday))
	addTeams(t, s, "acme", one)
	was, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)

	_, err = s.UserFrom(ctx, "evil", "ldap", "id of jo") // another tenant sees nothing
	is.Equal(errs.CodeOf(err), errs.NotFound)
	holders, err := s.Holders(ctx, "evil", []string{"jo"})
	is.NoErr(err)
	users, teams, err := s.DomainPrincipals(ctx, "evil", "ldap")
	is.NoErr(err)
	counts, err := s.DomainCounts(ctx, "evil")
	is.NoErr(err)
	is.Equal(len(holders)+len(users)+len(teams)+len(counts), 0)

	// another tenant cannot change it
	is.NoErr(s.EditDirectoryUsers(ctx, "evil", []string{"jo"}, tuesday, func(u *principals.DirectoryUser) {
		u.Enabled = false
	}))
	is.NoErr(s.RenameUsers(ctx, "evil", map[string]string{"jo": "joe"}, tuesday))
	// the same name in another tenant is another row
	is.NoErr(s.AddDirectoryUsers(ctx, "evil", "ldap", []principals.DirectoryUser{directoryUser("jo")}, tuesday))
	got, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)
	is.Equal(got, was)
}

func searching(text string) paging.Query { return paging.Query{Limit: 10, Q: text} }
