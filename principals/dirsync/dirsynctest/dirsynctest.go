// Package dirsynctest checks that a dirsync.Store does what its interface documents. Tests of stores import it.
package dirsynctest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/principals/dirsync"
)

// Store is the store of both packages, which share tables: what one has written the other one reads.
type Store interface {
	dirsync.Store
	principals.Store
}

var monday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

// many is more than any statement takes at once.
const many = 1203

// TestStore runs all checks of what a dirsync.Store has beside a principals.Store; principalstest.TestStore has the others. open
// returns an empty Store whose database has the tenants acme and evil.
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	for name, check := range map[string]func(*testing.T, Store){
		"DomainUsers":   testDomainUsers,
		"DomainTeams":   testDomainTeams,
		"DomainMembers": testDomainMembers,
		"Isolation":     testIsolation,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func user(name, domain string) principals.User {
	return principals.User{
		Username: name, Domain: domain, Enabled: true, Data: json.RawMessage("{}"), UserFields: json.RawMessage("{}"),
		CreatedAt: monday, UpdatedAt: monday,
	}
}

func addUsers(t *testing.T, s Store, tenant string, all ...principals.User) {
	t.Helper()
	for _, u := range all {
		is.New(t).NoErr(s.InsertUser(t.Context(), tenant, u))
	}
}

// teamID returns the UUID of the nth team.
func teamID(n int) string { return fmt.Sprintf("01932e00-0000-7000-8000-%012d", n) }

func team(n int, name, domain string) principals.Team {
	return principals.Team{ID: teamID(n), Name: name, Slug: fmt.Sprintf("slug-%d", n), Domain: domain, CreatedAt: monday, UpdatedAt: monday}
}

func addTeams(t *testing.T, s Store, tenant string, all ...principals.Team) {
	t.Helper()
	for _, u := range all {
		is.New(t).NoErr(s.InsertTeam(t.Context(), tenant, u))
	}
}

func member(n int, username string, role actor.Role) principals.Membership {
	return principals.Membership{TeamID: teamID(n), Username: username, Role: role, CreatedAt: monday}
}

// directoryUser has a value in every text.
func directoryUser(name string) principals.DirectoryUser {
	return principals.DirectoryUser{
		Username: name, Source: "LDAP", SourceID: "id of " + name, DisplayName: "Ünal '; DROP --?$1", FamilyName: "Doe", GivenName: "Jö",
		MiddleName: "日本", Email: name + "@example.com", Timezone: "Europe/Berlin", Enabled: true, DirectoryDisabled: true, DirectoryLocked: true,
	}
}

// domainUsers returns what DomainUsers does.
func domainUsers(t *testing.T, s Store, tenant, domain string) (all []principals.DirectoryUser) {
	t.Helper()
	is.New(t).NoErr(s.DomainUsers(t.Context(), tenant, domain, func(u principals.DirectoryUser) { all = append(all, u) }))
	return all
}

func testDomainUsers(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	boss := user("Boss", "ldap")
	boss.Superuser = true
	addUsers(t, s, "acme", user("bare", "ldap"), boss, user("other", "saml"), user("local", principals.Local))
	jo := directoryUser("jo")
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", []principals.DirectoryUser{jo}, monday))
	is.Equal(domainUsers(t, s, "acme", "ldap"), []principals.DirectoryUser{ // ordered by username
		{Username: "Boss", Superuser: true, Enabled: true}, {Username: "bare", Enabled: true}, jo,
	})
	is.Equal(len(domainUsers(t, s, "acme", "none")), 0)
}

func testDomainTeams(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	one, two, other := team(2, "one", "ldap"), team(1, "two", "ldap"), team(3, "other", "saml")
	one.DirectoryGone = true
	addTeams(t, s, "acme", one, two, other, team(4, "local", principals.Local))
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
func domainMembers(t *testing.T, s Store, tenant, domain string) (all []dirsync.MemberKey) {
	t.Helper()
	is.New(t).NoErr(s.DomainMembers(t.Context(), tenant, domain, func(at dirsync.MemberKey) { all = append(all, at) }))
	slices.SortFunc(all, func(a, b dirsync.MemberKey) int {
		return cmp.Or(strings.Compare(a.TeamID, b.TeamID), strings.Compare(a.Username, b.Username))
	})
	return all
}

func testDomainMembers(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	addTeams(t, s, "acme", team(1, "one", "ldap"), team(2, "two", principals.Local))
	all := []principals.Membership{member(1, "guest", actor.Member), member(2, "guest", actor.Member)}
	addUsers(t, s, "acme", user("guest", principals.Local))
	var users []principals.DirectoryUser
	for n := range many {
		users = append(users, directoryUser(fmt.Sprintf("u%04d", n)))
		all = append(all, member(1, users[n].Username, actor.Member))
	}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", users, monday))
	is.NoErr(s.PutMember(ctx, "acme", member(1, "u0001", actor.Admin)))
	is.NoErr(s.AddMembers(ctx, "acme", all))
	is.NoErr(s.AddMembers(ctx, "acme", nil))
	members, err := s.Members(ctx, "acme", teamID(1), paging.Query{Limit: paging.MaxLimit})
	is.NoErr(err)
	for _, m := range members.Rows {
		is.Equal(m.Role == actor.Admin, m.Username == "u0001") // who is there keeps the role
	}
	got := domainMembers(t, s, "acme", "ldap")
	is.Equal(len(got), many+1) // of whatever domain the users are, but not of other domains' teams
	is.Equal(got[:2], []dirsync.MemberKey{{TeamID: teamID(1), Username: "guest"}, {TeamID: teamID(1), Username: "u0000"}})
	is.True(errs.CodeOf(s.AddMembers(ctx, "acme", []principals.Membership{member(1, "none", actor.Member)})) == errs.Conflict)

	gone := []dirsync.MemberKey{{TeamID: teamID(2), Username: "u0000"}, {TeamID: teamID(9), Username: "guest"}} // do not exist
	for n := range many {
		gone = append(gone, dirsync.MemberKey{TeamID: teamID(1), Username: fmt.Sprintf("u%04d", n)})
	}
	is.NoErr(errors.Join(s.DeleteMembers(ctx, "acme", gone), s.DeleteMembers(ctx, "acme", nil)))
	is.Equal(domainMembers(t, s, "acme", "ldap"), []dirsync.MemberKey{{TeamID: teamID(1), Username: "guest"}})
	in, err := s.Members(ctx, "acme", teamID(2), paging.Query{Limit: paging.MaxLimit})
	is.NoErr(err)
	is.Equal(len(in.Rows), 1)
}

func testIsolation(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", []principals.DirectoryUser{directoryUser("jo")}, monday))
	addTeams(t, s, "acme", team(1, "one", "ldap"))
	is.NoErr(s.PutMember(ctx, "acme", member(1, "jo", actor.Member)))

	is.Equal(len(domainUsers(t, s, "evil", "ldap"))+len(domainMembers(t, s, "evil", "ldap")), 0) // another tenant sees nothing
	teams, err := s.DomainTeams(ctx, "evil", "ldap")
	is.NoErr(err)
	slugs, err := s.Slugs(ctx, "evil")
	is.NoErr(err)
	is.Equal(len(teams)+len(slugs), 0)

	is.NoErr(s.DeleteMembers(ctx, "evil", []dirsync.MemberKey{{TeamID: teamID(1), Username: "jo"}})) // and changes nothing
	is.Equal(errs.CodeOf(s.AddMembers(ctx, "evil", []principals.Membership{member(1, "jo", actor.Admin)})), errs.Conflict)
	is.Equal(len(domainMembers(t, s, "acme", "ldap")), 1)
}
