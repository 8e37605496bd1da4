package bunstore_test

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
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// directoryStore is the Store of both packages, which share tables: each reads what the other
// writes.
type directoryStore interface {
	dirsync.Store
	principals.Store
}

var dirsyncMonday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

// dirsyncMany is more than fits any statement.
const dirsyncMany = 1203

// testDirectory runs all checks of the methods that a dirsync.Store has in addition to a
// principals.Store; principalstest.TestStore checks the others. open returns an empty
// directoryStore whose database has the tenants acme and evil.
func testDirectory(t *testing.T, open func(t *testing.T) directoryStore) {
	for name, check := range map[string]func(*testing.T, directoryStore){
		"DomainUsers":   testDomainUsers,
		"DomainTeams":   testDomainTeams,
		"DomainMembers": testDomainMembers,
		"Isolation":     testDirsyncIsolation,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func dirsyncUser(name, domain string) principals.User {
	return principals.User{
		Username: name, Domain: domain, Enabled: true, Data: json.RawMessage("{}"), UserFields: json.RawMessage("{}"),
		CreatedAt: dirsyncMonday, UpdatedAt: dirsyncMonday,
	}
}

func dirsyncAddUsers(t *testing.T, s directoryStore, tenant string, all ...principals.User) {
	t.Helper()
	for _, u := range all {
		is.New(t).NoErr(s.InsertUser(t.Context(), tenant, u))
	}
}

// dirsyncTeamID returns the UUID of the nth team.
func dirsyncTeamID(n int) string { return fmt.Sprintf("01932e00-0000-7000-8000-%012d", n) }

func dirsyncTeam(n int, name, domain string) principals.Team {
	return principals.Team{
		ID:        dirsyncTeamID(n),
		Name:      name,
		Slug:      fmt.Sprintf("slug-%d", n),
		Domain:    domain,
		CreatedAt: dirsyncMonday,
		UpdatedAt: dirsyncMonday,
	}
}

func dirsyncAddTeams(t *testing.T, s directoryStore, tenant string, all ...principals.Team) {
	t.Helper()
	for _, u := range all {
		is.New(t).NoErr(s.InsertTeam(t.Context(), tenant, u))
	}
}

func dirsyncMember(n int, username string, role actor.Role) principals.Membership {
	return principals.Membership{TeamID: dirsyncTeamID(n), Username: username, Role: role, CreatedAt: dirsyncMonday}
}

// dirsyncDirectoryUser returns a user with a value in every text.
func dirsyncDirectoryUser(name string) principals.DirectoryUser {
	return principals.DirectoryUser{
		Username: name, Source: "LDAP", SourceID: "id of " + name,
		DisplayName: "Ünal '; DROP --?$1", FamilyName: "Doe", GivenName: "Jö",
		MiddleName: "日本", Email: name + "@example.com", Timezone: "Europe/Berlin",
		Enabled: true, DirectoryDisabled: true, DirectoryLocked: true,
	}
}

// domainUsers returns the result of DomainUsers.
func domainUsers(t *testing.T, s directoryStore, tenant, domain string) (all []principals.DirectoryUser) {
	t.Helper()
	is.New(t).NoErr(s.DomainUsers(t.Context(), tenant, domain, func(u principals.DirectoryUser) {
		all = append(all, u)
	}))
	return all
}

func testDomainUsers(t *testing.T, s directoryStore) {
	is, ctx := is.New(t), t.Context()
	boss := dirsyncUser("Boss", "ldap")
	boss.Superuser = true
	dirsyncAddUsers(
		t, s, "acme", dirsyncUser("bare", "ldap"), boss, dirsyncUser("other", "saml"),
		dirsyncUser("local", principals.Local),
	)
	jo := dirsyncDirectoryUser("jo")
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", []principals.DirectoryUser{jo}, dirsyncMonday))
	is.Equal(domainUsers(t, s, "acme", "ldap"), []principals.DirectoryUser{ // ordered by username
		{Username: "Boss", Superuser: true, Enabled: true}, {Username: "bare", Enabled: true}, jo,
	})
	is.Equal(len(domainUsers(t, s, "acme", "none")), 0)
}

func testDomainTeams(t *testing.T, s directoryStore) {
	is, ctx := is.New(t), t.Context()
	one, two, other := dirsyncTeam(2, "one", "ldap"), dirsyncTeam(1, "two", "ldap"), dirsyncTeam(3, "other", "saml")
	one.DirectoryGone = true
	dirsyncAddTeams(t, s, "acme", one, two, other, dirsyncTeam(4, "local", principals.Local))
	teams, err := s.DomainTeams(ctx, "acme", "ldap")
	is.NoErr(err)
	one.Tenant, two.Tenant = "acme", "acme"
	is.Equal(teams, []principals.Team{two, one})
	slugs, err := s.Slugs(ctx, "acme")
	is.NoErr(err)
	slices.Sort(slugs)
	is.Equal(slugs, []string{"slug-1", "slug-2", "slug-3", "slug-4"})
}

// domainMembers returns the result of DomainMembers, ordered.
func domainMembers(t *testing.T, s directoryStore, tenant, domain string) (all []dirsync.MemberKey) {
	t.Helper()
	is.New(t).NoErr(s.DomainMembers(t.Context(), tenant, domain, func(at dirsync.MemberKey) { all = append(all, at) }))
	slices.SortFunc(all, func(a, b dirsync.MemberKey) int {
		return cmp.Or(strings.Compare(a.TeamID, b.TeamID), strings.Compare(a.Username, b.Username))
	})
	return all
}

func testDomainMembers(t *testing.T, s directoryStore) {
	is, ctx := is.New(t), t.Context()
	dirsyncAddTeams(t, s, "acme", dirsyncTeam(1, "one", "ldap"), dirsyncTeam(2, "two", principals.Local))
	all := []principals.Membership{dirsyncMember(1, "guest", actor.Member), dirsyncMember(2, "guest", actor.Member)}
	dirsyncAddUsers(t, s, "acme", dirsyncUser("guest", principals.Local))
	var users []principals.DirectoryUser
	for n := range dirsyncMany {
		users = append(users, dirsyncDirectoryUser(fmt.Sprintf("u%04d", n)))
		all = append(all, dirsyncMember(1, users[n].Username, actor.Member))
	}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", users, dirsyncMonday))
	is.NoErr(s.PutMember(ctx, "acme", dirsyncMember(1, "u0001", actor.Admin)))
	is.NoErr(s.AddMembers(ctx, "acme", all))
	is.NoErr(s.AddMembers(ctx, "acme", nil))
	members, err := s.Members(ctx, "acme", dirsyncTeamID(1), paging.Query{Limit: paging.MaxLimit})
	is.NoErr(err)
	for _, m := range members.Rows {
		is.Equal(m.Role == actor.Admin, m.Username == "u0001") // existing members keep their role
	}
	got := domainMembers(t, s, "acme", "ldap")
	is.Equal(len(got), dirsyncMany+1) // users of all domains, but not teams of other domains
	is.Equal(got[:2], []dirsync.MemberKey{
		{TeamID: dirsyncTeamID(1), Username: "guest"}, {TeamID: dirsyncTeamID(1), Username: "u0000"},
	})
	is.True(errs.CodeOf(s.AddMembers(
		ctx, "acme", []principals.Membership{dirsyncMember(1, "none", actor.Member)},
	)) == errs.Conflict)

	// do not exist
	gone := []dirsync.MemberKey{
		{TeamID: dirsyncTeamID(2), Username: "u0000"}, {TeamID: dirsyncTeamID(9), Username: "guest"},
	}
	for n := range dirsyncMany {
		gone = append(gone, dirsync.MemberKey{TeamID: dirsyncTeamID(1), Username: fmt.Sprintf("u%04d", n)})
	}
	is.NoErr(errors.Join(s.DeleteMembers(ctx, "acme", gone), s.DeleteMembers(ctx, "acme", nil)))
	is.Equal(domainMembers(t, s, "acme", "ldap"), []dirsync.MemberKey{{TeamID: dirsyncTeamID(1), Username: "guest"}})
	in, err := s.Members(ctx, "acme", dirsyncTeamID(2), paging.Query{Limit: paging.MaxLimit})
	is.NoErr(err)
	is.Equal(len(in.Rows), 1)
}

func testDirsyncIsolation(t *testing.T, s directoryStore) {
	is, ctx := is.New(t), t.Context()
	is.NoErr(s.AddDirectoryUsers(
		ctx, "acme", "ldap", []principals.DirectoryUser{dirsyncDirectoryUser("jo")}, dirsyncMonday,
	))
	dirsyncAddTeams(t, s, "acme", dirsyncTeam(1, "one", "ldap"))
	is.NoErr(s.PutMember(ctx, "acme", dirsyncMember(1, "jo", actor.Member)))

	// another tenant sees nothing
	is.Equal(len(domainUsers(t, s, "evil", "ldap"))+len(domainMembers(t, s, "evil", "ldap")), 0)
	teams, err := s.DomainTeams(ctx, "evil", "ldap")
	is.NoErr(err)
	slugs, err := s.Slugs(ctx, "evil")
	is.NoErr(err)
	is.Equal(len(teams)+len(slugs), 0)

	// another tenant cannot change it
	is.NoErr(s.DeleteMembers(ctx, "evil", []dirsync.MemberKey{{TeamID: dirsyncTeamID(1), Username: "jo"}}))
	is.Equal(
		errs.CodeOf(s.AddMembers(ctx, "evil", []principals.Membership{dirsyncMember(1, "jo", actor.Admin)})),
		errs.Conflict,
	)
	is.Equal(len(domainMembers(t, s, "acme", "ldap")), 1)
}
