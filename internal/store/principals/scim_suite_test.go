package bunstore_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/principals"
)

// scimStore is the Store of both packages, which share tables: each reads what the other writes.
type scimStore interface {
	scim.Store
	principals.Store
}

var scimMonday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

// testSCIM runs all checks of the methods that a scim.Store has in addition to a principals.Store;
// principalstest.TestStore checks the others. open returns an empty scimStore whose database has
// the tenants acme and evil.
func testSCIM(t *testing.T, open func(t *testing.T) scimStore) {
	for name, check := range map[string]func(*testing.T, scimStore){
		"Identities": testIdentities,
		"People":     testPeople,
		"Groups":     testGroups,
		"Members":    testScimMembers,
		"Isolation":  testScimIsolation,
		"Many":       testMany,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// id returns the nth UUID.
func id(n int) string { return fmt.Sprintf("01932e00-0000-7000-8000-%012d", n) }

func scimAddUsers(t *testing.T, s scimStore, tenant, domain string, names ...string) {
	t.Helper()
	for _, name := range names {
		is.New(t).NoErr(s.InsertUser(t.Context(), tenant, principals.User{
			Username: name, Domain: domain, Enabled: true,
			Data: json.RawMessage("{}"), UserFields: json.RawMessage("{}"),
			CreatedAt: scimMonday, UpdatedAt: scimMonday,
		}))
	}
}

// scimTeam returns a team with the nth id; source may be "".
func scimTeam(n int, name, domain, source, externalID string) principals.Team {
	t := principals.Team{
		ID:        id(n),
		Name:      name,
		Slug:      fmt.Sprintf("slug-%d", n),
		Domain:    domain,
		CreatedAt: scimMonday,
		UpdatedAt: scimMonday,
	}
	if source != "" {
		t.Source = &source
	}
	if externalID != "" {
		t.SourceID = &externalID
	}
	return t
}

func scimAddTeams(t *testing.T, s scimStore, tenant string, all ...principals.Team) {
	t.Helper()
	for _, one := range all {
		is.New(t).NoErr(s.InsertTeam(t.Context(), tenant, one))
	}
}

func join(t *testing.T, s scimStore, tenant, teamID string, names ...string) {
	t.Helper()
	var all []principals.Membership
	for _, name := range names {
		all = append(all, principals.Membership{
			TeamID:    teamID,
			Username:  name,
			Role:      actor.Member,
			CreatedAt: scimMonday,
		})
	}
	is.New(t).NoErr(s.AddMembers(t.Context(), tenant, all))
}

// leave removes users from a team.
func leave(t *testing.T, s scimStore, tenant, teamID string, names ...string) {
	t.Helper()
	var all []announced.MemberKey
	for _, name := range names {
		all = append(all, announced.MemberKey{TeamID: teamID, Username: name})
	}
	is.New(t).NoErr(s.DeleteMembers(t.Context(), tenant, all))
}

func usernames(people []scim.Person) (names []string) {
	for _, p := range people {
		names = append(names, p.Username)
	}
	return names
}

func testIdentities(t *testing.T, s scimStore) {
	is, ctx := is.New(t), t.Context()
	scimAddUsers(t, s, "acme", "staff", "Anna", "bob")
	all, err := s.People(ctx, "acme", "staff", scim.ByName, "anna")
	is.NoErr(err)
	is.Equal(len(all), 1)
	is.Equal(all[0].Identity, scim.Identity{})
	is.Equal(all[0].CreatedAt, scimMonday)

	is.NoErr(s.Identify(ctx, "acme", map[string]string{"Anna": id(1), "nobody": id(9)}, scimMonday))
	// users with an identity keep it
	is.NoErr(s.Identify(ctx, "acme", map[string]string{"Anna": id(2), "bob": id(3)}, scimMonday))
	ids, err := s.Identities(ctx, "acme", []string{"Anna", "bob", "nobody"})
	is.NoErr(err)
	is.Equal(ids, map[string]string{"Anna": id(1), "bob": id(3)})

	want := scim.Identity{ID: id(1), ExternalID: "x", ChangedAt: scimMonday.Add(time.Hour)}
	is.NoErr(s.SetIdentity(ctx, "acme", "Anna", want))
	for by, value := range map[scim.Key]string{scim.ByID: id(1), scim.ByExternalID: "x", scim.ByName: "anna"} {
		all, err := s.People(ctx, "acme", "staff", by, value)
		is.NoErr(err)
		is.Equal(len(all), 1)
		is.Equal(all[0].Identity, want)
		is.Equal(all[0].Username, "Anna")
	}
	source := "x"
	is.NoErr(s.InsertUser(ctx, "acme", principals.User{
		Username: "cy", Domain: "staff", SourceID: &source,
		Data: json.RawMessage("{}"), UserFields: json.RawMessage("{}"), CreatedAt: scimMonday, UpdatedAt: scimMonday,
	}))
	for _, c := range []struct {
		tenant, domain string
		ids            []string
		want           int
	}{
		{"acme", "staff", []string{"X", "x"}, 2}, {"acme", "staff", []string{"none", id(1)}, 0},
		{"acme", "other", []string{"x"}, 0}, {"evil", "staff", []string{"x"}, 0},
	} {
		from, err := s.UsersFrom(ctx, c.tenant, c.domain, c.ids) // by the source id, or the externalId
		is.NoErr(err)
		is.Equal(len(from), c.want)
	}
	_, err = s.DeleteUser(ctx, "acme", "cy")
	is.NoErr(err)
	from, err := s.UsersFrom(ctx, "acme", "staff", []string{"x"})
	is.NoErr(err)
	is.True(len(from) == 1 && from[0].Username == "Anna")
	gone := want
	gone.Gone = true
	is.NoErr(s.SetIdentity(ctx, "acme", "Anna", gone))
	from, err = s.UsersFrom(ctx, "acme", "staff", []string{"x"})
	is.NoErr(err)
	is.Equal(len(from), 0)
	is.NoErr(s.SetIdentity(ctx, "acme", "Anna", want))
	move := func(domain string) {
		t.Helper()
		_, err := s.UpdateUser(ctx, "acme", "Anna", func(u *principals.User) error { u.Domain = domain; return nil })
		is.NoErr(err)
	}
	move("other") // the id of the provider of the previous domain is not known here
	for _, domain := range []string{"staff", "other"} {
		from, err = s.UsersFrom(ctx, "acme", domain, []string{"x"})
		is.NoErr(err)
		is.Equal(len(from), 0)
	}
	move("staff")
	is.NoErr(s.SetIdentity(ctx, "acme", "Anna", want))
	is.Equal(
		errs.CodeOf(s.SetIdentity(ctx, "acme", "nobody", scim.Identity{ID: id(8), ChangedAt: scimMonday})),
		errs.Conflict,
	)
	// Anna's
	is.Equal(
		errs.CodeOf(s.SetIdentity(ctx, "acme", "bob", scim.Identity{ID: id(1), ChangedAt: scimMonday})),
		errs.Conflict,
	)

	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"Anna": "Anne"}, scimMonday))
	all, err = s.People(ctx, "acme", "staff", scim.ByID, id(1))
	is.NoErr(err)
	is.Equal(usernames(all), []string{"Anne"}) // it changes with the name
	_, err = s.DeleteUser(ctx, "acme", "Anne")
	is.NoErr(err)
	scimAddUsers(t, s, "acme", "staff", "Anne")
	ids, err = s.Identities(ctx, "acme", []string{"Anne"})
	is.NoErr(err)
	is.Equal(len(ids), 0) // it is deleted with the user
}

func testPeople(t *testing.T, s scimStore) {
	is, ctx := is.New(t), t.Context()
	scimAddUsers(t, s, "acme", "staff", "dora", "Anna", "bob", "Carl")
	scimAddUsers(t, s, "acme", "other", "eve")
	scimAddUsers(t, s, "acme", principals.Local, "root")
	is.NoErr(s.SetIdentity(
		ctx, "acme", "bob", scim.Identity{ID: id(2), ExternalID: "x", Gone: true, ChangedAt: scimMonday},
	))
	is.NoErr(s.SetIdentity(ctx, "acme", "eve", scim.Identity{ID: id(3), ExternalID: "x", ChangedAt: scimMonday}))
	is.NoErr(s.SetIdentity(ctx, "acme", "dora", scim.Identity{ID: id(4), ExternalID: "x", ChangedAt: scimMonday}))
	for _, c := range []struct {
		offset, limit int
		want          []string
	}{{0, 10, []string{"Anna", "Carl", "dora"}}, {1, 1, []string{"Carl"}}, {3, 5, nil}, {0, 0, nil}} {
		page, total, err := s.PeoplePage(ctx, "acme", "staff", c.offset, c.limit)
		is.NoErr(err)
		is.Equal(total, 3)
		is.Equal(usernames(page), c.want)
	}
	var seen []string
	is.NoErr(s.EachPerson(ctx, "acme", "staff", func(p scim.Person) bool {
		seen = append(seen, p.Username)
		return len(seen) < 2
	}))
	is.Equal(seen, []string{"Anna", "Carl"})
	all, err := s.People(ctx, "acme", "staff", scim.ByExternalID, "x") // not unique; users that are gone are found
	is.NoErr(err)
	is.Equal(usernames(all), []string{"bob", "dora"})
	for name, email := range map[string]string{
		"dora": "Dora@Example.com",
		"Anna": "dora@example.com",
		"bob":  "bob@example.com",
		"eve":  "dora@example.com",
	} {
		is.NoErr(s.EditDirectoryUsers(ctx, "acme", []string{name}, scimMonday, func(u *principals.DirectoryUser) {
			u.Email = email
		}))
	}
	all, err = s.People(ctx, "acme", "staff", scim.ByEmail, "dora@EXAMPLE.com")
	is.NoErr(err)
	is.Equal(usernames(all), []string{"Anna", "dora"})
	names, err := s.Usernames(ctx, "acme", "staff", []string{id(2), id(3), id(4), id(5)}) // not excluded here
	is.NoErr(err)
	is.Equal(names, map[string]string{id(4): "dora"})
}

func testGroups(t *testing.T, s scimStore) {
	is, ctx := is.New(t), t.Context()
	gone := scimTeam(4, "Sales", "staff", scim.Source, "g4")
	gone.DirectoryGone = true
	scimAddTeams(t, s, "acme", scimTeam(
		1, "sales", "staff", scim.Source, "g1",
	), scimTeam(2, "Art", "staff", scim.Source, ""), scimTeam(3, "Ops", "staff", "LDAP", "g3"), gone,
		scimTeam(5, "Else", "other", scim.Source, "g1"), scimTeam(6, "Plain", "staff", "", ""))
	names := func(all []principals.Team) (names []string) {
		for _, t := range all {
			names = append(names, t.ID)
		}
		return names
	}
	for _, c := range []struct {
		by    scim.Key
		value string
		want  []string
	}{
		{scim.ByID, id(1), []string{id(1)}}, {scim.ByID, id(3), nil},
		{scim.ByID, id(5), nil}, {scim.ByID, id(6), nil}, {scim.ByID, id(4), []string{id(4)}},
		{scim.ByName, "SALES", []string{id(1), id(4)}}, {scim.ByName, "Ops", nil},
		{scim.ByExternalID, "g1", []string{id(1)}}, {scim.ByExternalID, "g3", nil},
	} {
		all, err := s.Groups(ctx, "acme", "staff", c.by, c.value)
		is.NoErr(err)
		is.Equal(names(all), c.want)
	}
	page, total, err := s.GroupsPage(ctx, "acme", "staff", 0, 10)
	is.NoErr(err)
	is.Equal(total, 2)
	is.Equal(names(page), []string{id(2), id(1)})
	page, _, err = s.GroupsPage(ctx, "acme", "staff", 1, 1)
	is.NoErr(err)
	is.Equal(names(page), []string{id(1)})
	var seen []string
	is.NoErr(s.EachGroup(ctx, "acme", "staff", func(t principals.Team) bool {
		seen = append(seen, t.Name)
		return len(seen) < 1
	}))
	is.Equal(seen, []string{"Art"})
}

func testScimMembers(t *testing.T, s scimStore) {
	is, ctx := is.New(t), t.Context()
	scimAddUsers(t, s, "acme", "staff", "anna", "bob")
	scimAddUsers(t, s, "acme", "other", "eve")
	gone := scimTeam(3, "Gone", "staff", scim.Source, "")
	gone.DirectoryGone = true
	scimAddTeams(
		t, s, "acme", scimTeam(1, "Sales", "staff", scim.Source, ""), scimTeam(2, "Art", "staff", "LDAP", "a"),
		gone,
	)
	join(t, s, "acme", id(1), "anna", "bob", "eve")
	join(t, s, "acme", id(2), "anna")
	join(t, s, "acme", id(3), "anna")
	is.NoErr(s.SetIdentity(ctx, "acme", "bob", scim.Identity{ID: id(8), Gone: true, ChangedAt: scimMonday}))
	all, err := s.GroupMembers(ctx, "acme", "staff", []string{id(1)})
	is.NoErr(err)
	is.Equal(all, []scim.Member{
		{TeamID: id(1), Username: "anna", Label: "anna"},
		{TeamID: id(1), Username: "bob", ID: id(8), Gone: true, Label: "bob"},
	})
	all, err = s.UserGroups(ctx, "acme", "staff", []string{"anna", "eve"})
	is.NoErr(err)
	is.Equal(all, []scim.Member{
		{TeamID: id(1), TeamName: "Sales", Username: "anna"},
		{TeamID: id(1), TeamName: "Sales", Username: "eve"},
	})
	leave(t, s, "acme", id(1), "anna", "nobody")
	leave(t, s, "acme", id(1))
	counts, err := s.MemberCounts(ctx, "acme", []string{id(1), id(2)})
	is.NoErr(err)
	is.Equal(counts, map[string]int{id(1): 2, id(2): 1})
}

func testScimIsolation(t *testing.T, s scimStore) {
	is, ctx := is.New(t), t.Context()
	for n, tenant := range []string{"acme", "evil"} {
		scimAddUsers(t, s, tenant, "staff", "anna")
		scimAddTeams(t, s, tenant, scimTeam(10+n, "Sales", "staff", scim.Source, "g"))
		join(t, s, tenant, id(10+n), "anna")
		is.NoErr(s.SetIdentity(
			ctx, tenant, "anna", scim.Identity{ID: id(n + 1), ExternalID: "x", ChangedAt: scimMonday},
		))
	}
	all, err := s.People(ctx, "evil", "staff", scim.ByID, id(1))
	is.NoErr(err)
	is.Equal(len(all), 0)
	all, err = s.People(ctx, "evil", "staff", scim.ByExternalID, "x")
	is.NoErr(err)
	is.Equal(len(all), 1)
	is.Equal(all[0].ID, id(2))
	names, err := s.Usernames(ctx, "evil", "staff", []string{id(1), id(2)})
	is.NoErr(err)
	is.Equal(names, map[string]string{id(2): "anna"})
	ids, err := s.Identities(ctx, "evil", []string{"anna"})
	is.NoErr(err)
	is.Equal(ids, map[string]string{"anna": id(2)})
	teams, err := s.Groups(ctx, "evil", "staff", scim.ByID, id(10))
	is.NoErr(err)
	is.Equal(len(teams), 0)
	members, err := s.GroupMembers(ctx, "evil", "staff", []string{id(10), id(11)})
	is.NoErr(err)
	is.Equal(members, []scim.Member{{TeamID: id(11), Username: "anna", ID: id(2), Label: "anna"}})
	leave(t, s, "evil", id(10), "anna")
	is.NoErr(s.SetIdentity(ctx, "evil", "anna", scim.Identity{ID: id(2), Gone: true, ChangedAt: scimMonday}))
	_, total, err := s.PeoplePage(ctx, "evil", "staff", 0, 1)
	is.NoErr(err)
	is.Equal(total, 0)
	groups, err := s.UserGroups(ctx, "acme", "staff", []string{"anna"})
	is.NoErr(err)
	is.Equal(len(groups), 1) // still there
	_, total, err = s.PeoplePage(ctx, "acme", "staff", 0, 1)
	is.NoErr(err)
	is.Equal(total, 1)
}

// testMany runs with more rows than fit any statement.
func testMany(t *testing.T, s scimStore) {
	const many = 1203
	is, ctx := is.New(t), t.Context()
	var users []principals.DirectoryUser
	ids, all := map[string]string{}, []string(nil)
	for n := range many {
		name := fmt.Sprintf("user-%04d", n)
		users, all = append(users, principals.DirectoryUser{Username: name, Enabled: true}), append(all, name)
		ids[name] = id(n)
	}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "staff", users, scimMonday))
	is.NoErr(s.Identify(ctx, "acme", ids, scimMonday))
	found, err := s.Identities(ctx, "acme", all)
	is.NoErr(err)
	is.Equal(found, ids)
	var keys []string
	for n := range many {
		keys = append(keys, id(n))
	}
	names, err := s.Usernames(ctx, "acme", "staff", keys)
	is.NoErr(err)
	is.Equal(len(names), many)
	scimAddTeams(t, s, "acme", scimTeam(many, "All", "staff", scim.Source, ""))
	join(t, s, "acme", id(many), all...)
	groups, err := s.UserGroups(ctx, "acme", "staff", all)
	is.NoErr(err)
	is.Equal(len(groups), many)
	leave(t, s, "acme", id(many), all[1:]...)
	left, err := s.GroupMembers(ctx, "acme", "staff", []string{id(many)})
	is.NoErr(err)
	is.Equal(len(left), 1)
}
