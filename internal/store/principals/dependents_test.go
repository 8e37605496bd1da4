package bunstore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/principals"
)

// setPassword sets the password hash of a user.
func setPassword(t *testing.T, s principals.Store, tenant, folded string) {
	t.Helper()
	is.New(t).NoErr(s.EditLogin(t.Context(), tenant, folded, "", func(l *principals.Login) error {
		l.Hash = "$argon2id$"
		return nil
	}))
}

// testDependents has a user with all kinds of dependents, users with one kind each, and one without
// any.
func testDependents(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	jo, key, text := full(), "jö.doe+x@example.com", "x"
	addUsers(t, s, "acme", jo, user("bare"))
	addTeams(t, s, "acme", team(1, "one"), team(2, "two"))
	for n, username := range map[int]string{1: "bare", 2: jo.Username} {
		is.NoErr(s.PutMember(ctx, "acme", member(n, username, actor.Admin)))
	}
	is.NoErr(s.PutMember(ctx, "acme", member(1, jo.Username, actor.Member)))
	setPassword(t, s, "acme", key)
	all := principals.Dependents{
		Passwords: 1, SuperuserRights: 1, Permissions: 3, MFA: 1, AIConsents: 1, AIMessages: 1, Pictures: 1,
		Memberships: map[string]int{teamID(1): 1, teamID(2): 1},
	}
	count := func(tenant string, usernames ...string) principals.Dependents {
		d, err := s.Dependents(ctx, tenant, usernames)
		is.NoErr(err)
		return d
	}
	none := principals.Dependents{Memberships: map[string]int{}}
	is.Equal(count("acme", jo.Username), all)
	is.Equal(count("acme", "bare"), principals.Dependents{Memberships: map[string]int{teamID(1): 1}})
	all.Memberships[teamID(1)]++
	is.Equal(count("acme", "bare", jo.Username, "none"), all)
	is.Equal(count("acme"), none)
	is.Equal(count("evil", jo.Username, "bare"), none) // another tenant sees nothing

	for n, c := range []struct {
		edit func(*principals.User)
		want principals.Dependents
	}{
		{func(u *principals.User) { u.Superuser = true }, principals.Dependents{SuperuserRights: 1}},
		{func(u *principals.User) { u.GlobalPermissions.AI = true }, principals.Dependents{Permissions: 1}},
		{func(u *principals.User) { u.GlobalPermissions.JobCreation = true }, principals.Dependents{Permissions: 1}},
		{func(u *principals.User) { u.GlobalPermissions.ViewAllTeams = true }, principals.Dependents{Permissions: 1}},
		{func(u *principals.User) { u.GlobalPermissions.ViewAllUsers = true }, principals.Dependents{Permissions: 1}},
		{func(u *principals.User) {
			u.GlobalPermissions.PainlessScriptCreation = true
		}, principals.Dependents{Permissions: 1}},
		{func(u *principals.User) { u.MFA = true }, principals.Dependents{MFA: 1}},
		{func(u *principals.User) { u.AIConsent = true }, principals.Dependents{AIConsents: 1}},
		{func(u *principals.User) { u.AIMessage = &text }, principals.Dependents{AIMessages: 1}},
		{func(u *principals.User) { u.AvatarID = &text }, principals.Dependents{Pictures: 1}},
	} {
		u := user(fmt.Sprint("one", n))
		c.edit(&u)
		addUsers(t, s, "acme", u)
		c.want.Memberships = map[string]int{}
		is.Equal(count("acme", u.Username), c.want)
	}
	addUsers(t, s, "evil", user("bare"))
	setPassword(t, s, "evil", "bare")
	is.Equal(count("evil", "bare"), principals.Dependents{Passwords: 1, Memberships: map[string]int{}})
	is.Equal(count("acme", "bare").Passwords, 0)

	var many []principals.DirectoryUser // more than fit one statement
	var names []string
	for n := range manyUsers {
		many = append(many, directoryUser(fmt.Sprintf("u%04d", n)))
		names = append(names, many[n].Username)
	}
	is.NoErr(s.AddDirectoryUsers(ctx, "acme", "ldap", many, monday))
	for _, username := range []string{names[0], names[manyUsers-1]} {
		is.NoErr(s.PutMember(ctx, "acme", member(2, username, actor.Member)))
		setPassword(t, s, "acme", username)
	}
	is.Equal(count("acme", names...), principals.Dependents{Passwords: 2, Memberships: map[string]int{teamID(2): 2}})
}

// manyUsers is more than one statement counts.
const manyUsers = 503

func testMemberCounts(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", user("jo"), user("mia"))
	addTeams(t, s, "acme", team(1, "one"), team(2, "two"), team(3, "empty"))
	for _, m := range []principals.Membership{
		member(1, "jo", actor.Member), member(1, "mia", actor.Admin), member(2, "jo", actor.Member),
	} {
		is.NoErr(s.PutMember(ctx, "acme", m))
	}
	for _, c := range []struct {
		tenant string
		ids    []string
		want   map[string]int
	}{
		{"acme", []string{teamID(1), teamID(2), teamID(3), teamID(9)}, map[string]int{teamID(1): 2, teamID(2): 1}},
		{"acme", []string{teamID(2)}, map[string]int{teamID(2): 1}},
		{"acme", nil, map[string]int{}},
		{"evil", []string{teamID(1), teamID(2)}, map[string]int{}}, // another tenant sees nothing
	} {
		got, err := s.MemberCounts(ctx, c.tenant, c.ids)
		is.NoErr(err)
		is.Equal(got, c.want)
	}
}

func testSuperusers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	boss, off := user("boss"), user("off")
	boss.Superuser, off.Superuser, off.Enabled = true, true, false
	addUsers(t, s, "acme", boss, off, user("jo"))
	addUsers(t, s, "evil", user("boss"))
	for _, c := range []struct {
		tenant          string
		usernames, want []string
	}{
		{"acme", []string{"off", "jo", "boss", "none"}, []string{"boss", "off"}}, // enabled or not
		{"acme", []string{"jo", "off"}, []string{"off"}},
		{"acme", nil, nil},
		{"evil", []string{"boss", "off"}, nil}, // another tenant sees nothing
	} {
		got, err := s.Superusers(ctx, c.tenant, c.usernames)
		is.NoErr(err)
		slices.Sort(got)
		is.Equal(len(got), len(c.want))
		is.True(slices.Equal(got, c.want))
	}
}
