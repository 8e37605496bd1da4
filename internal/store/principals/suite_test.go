package bunstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) principals.Store) {
	for name, check := range map[string]func(*testing.T, principals.Store){
		"UserRoundTrip":         testUserRoundTrip,
		"TeamRoundTrip":         testTeamRoundTrip,
		"TakenNames":            testTaken,
		"Logins":                testLogins,
		"LoginNetworks":         testLoginNetworks,
		"Members":               testMembers,
		"DeletedTeam":           testDeletedTeam,
		"MemberPages":           testMemberPages,
		"MemberOrder":           testMemberOrder,
		"OtherSuperusers":       testOtherSuperusers,
		"MarkFeedViewed":        testSawFeed,
		"Missing":               testMissing,
		"Isolation":             testIsolation,
		"Search":                testSearch,
		"FailedEditWritesNone":  testFailedEdit,
		"FailedTxWritesNone":    testFailedTx,
		"ParallelEditsAllLand":  testParallelEdits,
		"LockTenantWaits":       testLockTenant,
		"UserPages":             testUserPages,
		"UsersNamed":            testUsersNamed,
		"TeamPages":             testTeamPages,
		"PrincipalsInOrder":     testOrder,
		"PrincipalsLetWrite":    testPrincipalsWithWrites,
		"PrincipalsFollow":      testFollow,
		"CanceledWritesNothing": testCanceled,
		"Known":                 testKnown,
		"PutUsers":              testPutUsers,
		"PutTeams":              testPutTeams,
		"TransfererIsolation":   testTransfererIsolation,
		"UserFrom":              testUserFrom,
		"Accounts":              testAccounts,
		"AddDirectoryUsers":     testAddDirectoryUsers,
		"EditDirectoryUsers":    testEditDirectoryUsers,
		"RenameUsers":           testRenameUsers,
		"Dependents":            testDependents,
		"MemberCounts":          testMemberCounts,
		"Superusers":            testSuperusers,
		"DomainPrincipals":      testDomainPrincipals,
		"DomainCounts":          testDomainCounts,
		"DomainIsolation":       testDomainIsolation,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func user(name string) principals.User {
	return principals.User{
		Username: name, Domain: principals.Local,
		Enabled: true, Data: json.RawMessage("{}"), UserFields: json.RawMessage("{}"),
		CreatedAt: monday, UpdatedAt: monday,
	}
}

// teamID returns the UUID of the nth team.
func teamID(n int) string { return fmt.Sprintf("01932e00-0000-7000-8000-%012d", n) }

func team(n int, name string) principals.Team {
	return principals.Team{
		ID: teamID(n), Name: name, Slug: fmt.Sprintf("slug-%d", n),
		Domain: principals.Local, CreatedAt: monday, UpdatedAt: monday,
	}
}

func addUsers(t *testing.T, s principals.Store, tenant string, all ...principals.User) {
	t.Helper()
	for _, u := range all {
		is.New(t).NoErr(s.InsertUser(t.Context(), tenant, u))
	}
}

func addTeams(t *testing.T, s principals.Store, tenant string, all ...principals.Team) {
	t.Helper()
	for _, u := range all {
		is.New(t).NoErr(s.InsertTeam(t.Context(), tenant, u))
	}
}

func ids(t *testing.T, s principals.Store, tenant string) []string {
	t.Helper()
	got := []string{}
	for p, err := range s.Principals(t.Context(), tenant) {
		is.New(t).NoErr(err)
		got = append(got, p.ID)
	}
	return got
}

// full returns a user with a value in every field.
func full() principals.User {
	text := func(s string) *string { return &s }
	at := func(n int) *time.Time { t := monday.Add(time.Duration(n) * time.Hour); return &t }
	return principals.User{
		Tenant: "acme", Username: "Jö.Doe+x@example.com", Domain: "ldap", DisplayName: text("Jö '; DROP -- ?$1\\"),
		FamilyName: text("Doe"), GivenName: text("Jö"),
		MiddleName: text("日本 🎨"), Email: text("jo@example.com"), EmailTyped: true,
		Timezone: text("Europe/Berlin"), Superuser: true, Enabled: true, DirectoryDisabled: true, DirectoryLocked: true,
		GlobalPermissions: principals.GlobalPermissions{AI: true, ViewAllTeams: true, PainlessScriptCreation: true},
		Source:            text("scan"), SourceID: text("CN=Jö,DC=example"),
		Data: json.RawMessage(`{"a":["ü",1e400,{}]}`), UserFields: json.RawMessage(`{"b":null}`),
		LastViewedFeed: at(1), LockedAt: at(2), LoginAttempts: 7, PasswordSetAt: at(3), PasswordExpiresAt: at(4),
		ForgotPasswordRequestTime: at(5), MFA: true, AIMessage: text("two\nlines"), AIConsent: true,
		AvatarID: text("a/b"), AvatarUpdatedAt: at(6), CreatedAt: monday, UpdatedAt: tuesday,
	}
}

func testUserRoundTrip(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	want := full()
	fieldtest.Full(t, want, "Locked") // the Service sets it
	addUsers(t, s, "acme", want, user("plain"))
	got, err := s.User(ctx, "acme", want.Username)
	is.NoErr(err)
	is.Equal(got, want)
	plain, err := s.User(ctx, "acme", "plain")
	is.NoErr(err)
	bare := user("plain")
	bare.Tenant = "acme"
	is.Equal(plain, bare) // nil stays nil

	changed, err := s.UpdateUser(ctx, "acme", "plain", func(u *principals.User) error {
		name := u.Username
		*u = want
		u.Username = name
		u.GlobalPermissions = principals.GlobalPermissions{JobCreation: true, ViewAllUsers: true}
		return nil
	})
	is.NoErr(err)
	again, err := s.User(ctx, "acme", "plain")
	is.NoErr(err)
	is.Equal(again, changed)
	is.Equal(again.Email, want.Email)
	is.Equal(again.GlobalPermissions.JobCreation, true)
	is.Equal(again.GlobalPermissions.AI, false)

	p, err := s.Principal(ctx, "acme", want.Username)
	is.NoErr(err)
	is.Equal(p, principals.Principal{
		ID: want.Username, Type: principals.TypeUser, Name: *want.DisplayName, DisplayName: want.DisplayName,
		Email: want.Email, AvatarID: want.AvatarID, AvatarUpdatedAt: want.AvatarUpdatedAt,
	})
	everyone, err := s.Principal(ctx, "acme", principals.Everyone)
	is.NoErr(err)
	is.Equal(everyone.Type, principals.TypeEveryone)
}

func testTeamRoundTrip(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	text := func(s string) *string { return &s }
	want := principals.Team{
		Tenant: "acme", ID: teamID(1), Name: "Büro", Slug: "Buero_1", Description: text("two\nlines"), Domain: "ldap",
		Color: text("#abc"), Icon: text("fa-users"), MaterialIcon: text("group"),
		Source: text("scan"), SourceID: text("CN=x"), DirectoryGone: true,
		CreatedAt: monday, UpdatedAt: tuesday,
	}
	fieldtest.Full(t, want)
	addTeams(t, s, "acme", want)
	for _, key := range []string{teamID(1), "Buero_1"} {
		got, err := s.Team(ctx, "acme", key)
		is.NoErr(err)
		is.Equal(got, want)
	}
	p, err := s.Principal(ctx, "acme", teamID(1))
	is.NoErr(err)
	is.Equal(p, principals.Principal{
		ID: teamID(1), Type: principals.TypeTeam, Name: "Büro",
		Color: want.Color, Icon: want.Icon, MaterialIcon: want.MaterialIcon,
	})
	changed, err := s.UpdateTeam(ctx, "acme", teamID(1), func(t *principals.Team) error {
		t.Name, t.Slug, t.Description = "New", "new", nil
		return nil
	})
	is.NoErr(err)
	got, err := s.Team(ctx, "acme", "new")
	is.NoErr(err)
	is.Equal(got, changed)
	is.True(got.Description == nil)
}

func testTaken(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", user("Straße"))
	for _, name := range []string{"Straße", "straße", "STRASSE", "strasse"} {
		is.Equal(errs.CodeOf(s.InsertUser(ctx, "acme", user(name))), errs.Conflict) // case does not matter
	}
	is.NoErr(s.InsertUser(ctx, "evil", user("Straße"))) // each tenant has separate ones
	addTeams(t, s, "acme", team(1, "a"), team(2, "a"))  // names may be the same
	same := team(3, "b")
	same.Slug = "slug-1"
	is.Equal(errs.CodeOf(s.InsertTeam(ctx, "acme", same)), errs.Conflict)
	_, err := s.UpdateTeam(ctx, "acme", teamID(2), func(t *principals.Team) error { t.Slug = "slug-1"; return nil })
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.Equal(len(ids(t, s, "acme")), 3) // a refused insert leaves no principal
}

func testLogins(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	jo := user("Jo")
	jo.DirectoryLocked = true
	addUsers(t, s, "acme", jo)
	none, err := s.Login(ctx, "acme", "jo", "")
	is.NoErr(err)
	is.Equal(none, principals.Login{Username: "Jo", Domain: principals.Local, Enabled: true, DirectoryLocked: true})
	want := principals.Login{
		Username: "Jo", Domain: principals.Local, Enabled: true,
		DirectoryLocked: true, Hash: "$argon2id$…", Attempts: 3,
		LockedAt: monday, SetAt: tuesday, ExpiresAt: tuesday.Add(time.Hour), Recent: []time.Time{monday, tuesday},
	}
	fieldtest.Full(t, want, "Network", "NetworkLock", "Unlock", "Forget") // see testLoginNetworks
	is.NoErr(s.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error { *l = want; return nil }))
	got, err := s.Login(ctx, "acme", "jo", "")
	is.NoErr(err)
	is.Equal(got, want)
	u, err := s.User(ctx, "acme", "Jo")
	is.NoErr(err)
	is.Equal(*u.LockedAt, monday)
	is.Equal(*u.PasswordSetAt, tuesday)
	is.Equal(u.LoginAttempts, 3)
	is.Equal(u.UpdatedAt, monday) // a login is no change of the user

	_, err = s.UpdateUser(ctx, "acme", "Jo", func(u *principals.User) error { u.LockedAt = nil; return nil })
	is.NoErr(err)
	got, err = s.Login(ctx, "acme", "jo", "")
	is.NoErr(err)
	is.Equal(got.Hash, want.Hash) // an edit of the user keeps the password
	is.True(got.LockedAt.IsZero())
	is.NoErr(s.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error { *l = none; return nil }))
	got, err = s.Login(ctx, "acme", "jo", "")
	is.NoErr(err)
	is.Equal(got, none)
}

func testLoginNetworks(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	at := func(n int) time.Time { return monday.Add(time.Duration(n) * time.Minute) }
	edit := func(ctx context.Context, tenant, network string, n principals.NetworkLogin) error {
		return s.EditLogin(ctx, tenant, "jo", network, func(l *principals.Login) error { l.Network = n; return nil })
	}
	set := func(tenant, network string, n principals.NetworkLogin) {
		t.Helper()
		is.NoErr(edit(ctx, tenant, network, n))
	}
	setAll := func(n int, prefix string, login func(i int) principals.NetworkLogin) {
		t.Helper()
		is.NoErr(s.InTx(ctx, func(ctx context.Context) error { // many in one are much faster
			for i := range n {
				if err := edit(ctx, "acme", fmt.Sprint(prefix, i), login(i)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	get := func(tenant, network string) principals.NetworkLogin {
		t.Helper()
		l, err := s.Login(ctx, tenant, "jo", network)
		is.NoErr(err)
		return l.Network
	}
	none := principals.NetworkLogin{}
	addUsers(t, s, "acme", user("Jo"))
	addUsers(t, s, "evil", user("jo"))
	failed := principals.NetworkLogin{Attempts: 3, FailedAt: at(1), LockedAt: at(2)}
	in := principals.NetworkLogin{LoggedInAt: at(3)}
	set("acme", "192.0.2.1/32", failed)
	set("acme", "2001:db8::/64", in)
	all := principals.NetworkLogin{Attempts: 1, FailedAt: at(4), LockedAt: at(4), LoggedInAt: at(5)}
	fieldtest.Full(t, all)
	set("acme", "", all)
	set("evil", "192.0.2.1/32", in)
	is.Equal(get("acme", ""), all)
	is.Equal(get("acme", "192.0.2.1/32"), failed)
	is.Equal(get("acme", "2001:db8::/64"), in)
	is.Equal(get("acme", "192.0.2.2/32"), none)
	is.Equal(get("evil", "192.0.2.1/32"), in)
	is.Equal(get("evil", "2001:db8::/64"), none)

	// Recent failures belong to the user, and an edit of the user keeps them.
	recent := []time.Time{at(1), at(2)}
	is.NoErr(s.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error { l.Recent = recent; return nil }))
	_, err := s.UpdateUser(ctx, "acme", "Jo", func(u *principals.User) error { u.MFA = true; return nil })
	is.NoErr(err)
	l, err := s.Login(ctx, "acme", "jo", "192.0.2.1/32")
	is.NoErr(err)
	is.Equal(l.Recent, recent)

	is.NoErr(s.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error { l.Unlock = true; return nil }))
	is.Equal(get("acme", "192.0.2.1/32"), none)
	is.Equal(get("acme", ""), principals.NetworkLogin{LoggedInAt: at(5)})
	is.Equal(get("evil", "192.0.2.1/32"), in)

	// Failures from more and more networks remove only networks with failures, and logins only
	// networks with logins.
	setAll(principals.MaxNetworks+5, "fail", func(i int) principals.NetworkLogin {
		return principals.NetworkLogin{Attempts: 1, FailedAt: at(100 + i)}
	})
	is.Equal(get("acme", "fail4"), none)
	is.Equal(get("acme", "fail5").Attempts, 1)
	is.Equal(get("acme", "2001:db8::/64"), in)
	setAll(principals.MaxNetworks, "in", func(i int) principals.NetworkLogin {
		return principals.NetworkLogin{LoggedInAt: at(100 + i)}
	})
	is.Equal(get("acme", "2001:db8::/64"), none)
	is.Equal(get("acme", "in0"), principals.NetworkLogin{LoggedInAt: at(100)})
	is.Equal(get("acme", "fail5").Attempts, 1)

	n, err := s.SweepNetworks(ctx, "acme", at(105).Add(24*time.Hour))
	is.NoErr(err)
	is.Equal(n, 1)
	is.Equal(get("acme", "fail5"), none)
	is.Equal(get("acme", "fail6").Attempts, 1)
	n, err = s.SweepNetworks(ctx, "acme", at(100).Add(30*24*time.Hour))
	is.NoErr(err)
	is.Equal(n, principals.MaxNetworks) // the failures that were left, and the first login
	is.Equal(get("acme", "in1"), principals.NetworkLogin{LoggedInAt: at(101)})

	is.NoErr(s.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error { l.Forget = true; return nil }))
	is.Equal(get("acme", "in1"), none)
	is.Equal(get("evil", "192.0.2.1/32"), in)
	is.NoErr(deleted(s.DeleteUser(ctx, "evil", "jo")))
	addUsers(t, s, "evil", user("jo"))
	is.Equal(get("evil", "192.0.2.1/32"), none) // the new user is another one
}

// deleted returns the error of a DeleteUser.
func deleted(_ string, err error) error { return err }

func member(n int, name string, r actor.Role) principals.Membership {
	return principals.Membership{TeamID: teamID(n), Username: name, Role: r, CreatedAt: monday}
}

func testMembers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	zoe := user("a-zoe")
	name := "Zoe"
	zoe.DisplayName = &name
	addUsers(t, s, "acme", zoe, user("Bob"), user("alf"))
	addTeams(t, s, "acme", team(1, "one"), team(2, "Another"))
	for _, m := range []principals.Membership{
		member(1, "a-zoe", actor.Admin), member(1, "Bob", actor.Member), member(1, "alf", actor.Member),
		member(2, "a-zoe", actor.Designer), member(1, "Bob", actor.Publisher), // again: another role
	} {
		is.NoErr(s.PutMember(ctx, "acme", m))
	}
	in, err := s.Members(ctx, "acme", teamID(1), query(100))
	is.NoErr(err)
	is.Equal(in.Rows, []principals.Membership{ // by label
		{TeamID: teamID(1), TeamName: "one", Username: "alf", Role: actor.Member, CreatedAt: monday},
		{TeamID: teamID(1), TeamName: "one", Username: "Bob", Role: actor.Publisher, CreatedAt: monday},
		{
			TeamID:      teamID(1),
			TeamName:    "one",
			Username:    "a-zoe",
			DisplayName: &name,
			Role:        actor.Admin,
			CreatedAt:   monday,
		},
	})
	of, err := s.Memberships(ctx, "acme", "a-zoe", query(100))
	is.NoErr(err)
	is.Equal(len(of.Rows), 2)
	is.Equal(of.Rows[0].TeamName, "Another") // by team name
	is.Equal(of.Rows[0].Role, actor.Designer)

	one, err := s.Member(ctx, "acme", teamID(1), "a-zoe")
	is.NoErr(err)
	is.Equal(one, in.Rows[2])
	for _, missing := range [][3]string{
		{"evil", teamID(1), "a-zoe"}, {"acme", teamID(2), "Bob"}, {"acme", teamID(1), "nobody"},
	} {
		_, err = s.Member(ctx, missing[0], missing[1], missing[2])
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}

	is.Equal(errs.CodeOf(s.PutMember(ctx, "acme", member(9, "alf", actor.Member))), errs.Conflict)
	is.Equal(errs.CodeOf(s.PutMember(ctx, "acme", member(1, "nobody", actor.Member))), errs.Conflict)
	is.NoErr(s.DeleteMember(ctx, "acme", teamID(1), "alf"))
	is.Equal(errs.CodeOf(s.DeleteMember(ctx, "acme", teamID(1), "alf")), errs.NotFound)
	is.NoErr(s.DeleteTeam(ctx, "acme", teamID(2)))      // memberships go with the team
	is.NoErr(deleted(s.DeleteUser(ctx, "acme", "Bob"))) // and with the user
	of, err = s.Memberships(ctx, "acme", "a-zoe", query(100))
	is.NoErr(err)
	is.Equal(of.Total, 1)
	in, err = s.Members(ctx, "acme", teamID(1), query(100))
	is.NoErr(err)
	is.Equal(in.Total, 1)

	account, err := s.DeleteUser(ctx, "acme", "alf")
	is.NoErr(err)
	is.Equal(account, "alf")
	addUsers(t, s, "acme", user("alf"))
	account, err = s.DeleteUser(ctx, "acme", "alf")
	is.NoErr(err)
	is.Equal(account, "alf/1") // of another user
}

// testDeletedTeam: the rows of a deleted team's members are deleted in steps. Until then they are
// not members, not even of a new team with the id.
func testDeletedTeam(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addTeams(t, s, "acme", team(1, "one"), team(2, "two"))
	addTeams(t, s, "evil", team(1, "one"))
	addUsers(t, s, "evil", user("u0"))
	is.NoErr(s.PutMember(ctx, "evil", member(1, "u0", actor.Admin)))
	const n = 10
	for i := range n {
		name := fmt.Sprint("u", i)
		addUsers(t, s, "acme", user(name))
		is.NoErr(s.PutMember(ctx, "acme", member(1, name, actor.Admin)))
		is.NoErr(s.PutMember(ctx, "acme", member(2, name, actor.Member)))
	}
	more, err := s.RemoveMembersOf(ctx, "acme", teamID(1), n)
	is.NoErr(err)
	is.True(!more) // the team exists
	is.NoErr(s.DeleteTeam(ctx, "acme", teamID(1)))
	look := func() {
		t.Helper()
		for i := range n {
			of, err := s.Memberships(ctx, "acme", fmt.Sprint("u", i), query(100))
			is.NoErr(err)
			is.Equal([]int{of.Total, len(of.Rows)}, []int{1, 1})
		}
		d, err := s.Dependents(ctx, "acme", []string{"u0", "u9"})
		is.NoErr(err)
		is.Equal(d.Memberships, map[string]int{teamID(2): 2})
		counts, err := s.MemberCounts(ctx, "acme", []string{teamID(1), teamID(2)})
		is.NoErr(err)
		is.Equal(counts, map[string]int{teamID(2): n})
		all, err := s.MembersOf(ctx, "acme", []string{teamID(1), teamID(2)})
		is.NoErr(err)
		is.Equal(len(all), n)
	}
	look()
	for steps := 1; steps <= 2; steps++ {
		more, err := s.RemoveMembersOf(ctx, "acme", teamID(1), 3)
		is.NoErr(err)
		is.True(more)
		look()
	}
	is.NoErr(s.PutTeams(ctx, "acme", []principals.Team{team(1, "again")}, nil)) // four rows remain
	in, err := s.Members(ctx, "acme", teamID(1), query(100))
	is.NoErr(err)
	is.Equal([]int{in.Total, len(in.Rows)}, []int{0, 0})
	is.NoErr(s.PutMember(ctx, "acme", member(1, "u9", actor.Member)))
	more, err = s.RemoveMembersOf(ctx, "acme", teamID(1), 3)
	is.NoErr(err)
	is.True(!more)
	in, err = s.Members(ctx, "acme", teamID(1), query(100))
	is.NoErr(err)
	is.Equal([]int{in.Total, len(in.Rows)}, []int{1, 1})
	in, err = s.Members(ctx, "evil", teamID(1), query(100))
	is.NoErr(err)
	is.Equal(in.Total, 1)
}

func testMemberOrder(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	// two labels that are equal except for case, which are ordered by username
	names := map[string]string{"c": "Zoe", "B": "zOE", "a": "Ärger"}
	for username, name := range names {
		u := user(username)
		u.DisplayName = &name
		addUsers(t, s, "acme", u)
	}
	addUsers(t, s, "acme", user("alf"))
	addTeams(t, s, "acme", team(3, "one"), team(1, "ONE"), team(2, "Another"))
	for _, m := range []principals.Membership{
		member(1, "c", actor.Member), member(1, "a", actor.Admin),
		member(1, "alf", actor.Member), member(1, "B", actor.Member),
		member(3, "alf", actor.Member), member(2, "alf", actor.Member),
	} {
		is.NoErr(s.PutMember(ctx, "acme", m))
	}
	in, err := s.Members(ctx, "acme", teamID(1), query(100))
	is.NoErr(err)
	var users, teams []string
	for _, m := range in.Rows {
		users = append(users, m.Username)
	}
	is.Equal(users, []string{"alf", "B", "c", "a"})
	of, err := s.Memberships(ctx, "acme", "alf", query(100))
	is.NoErr(err)
	for _, m := range of.Rows {
		teams = append(teams, m.TeamID)
	}
	is.Equal(teams, []string{teamID(2), teamID(1), teamID(3)})
}

func testSawFeed(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	jo := user("jo")
	addUsers(t, s, "acme", jo, user("mia"))
	is.NoErr(s.MarkFeedViewed(ctx, "acme", "jo", tuesday))
	seen := tuesday
	jo.LastViewedFeed = &seen // UpdatedAt and Version do not change
	for _, want := range []principals.User{jo, user("mia")} {
		want.Tenant = "acme"
		got, err := s.User(ctx, "acme", want.Username)
		is.NoErr(err)
		is.Equal(got, want)
	}
}

func testOtherSuperusers(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	a, b, off := user("a"), user("b"), user("off")
	a.Superuser, b.Superuser, off.Superuser, off.Enabled = true, true, true, false
	addUsers(t, s, "acme", a, b, off, user("c"))
	addUsers(t, s, "evil", a)
	for name, want := range map[string]int{"a": 1, "off": 2, "c": 2} {
		n, err := s.OtherSuperusers(ctx, "acme", name)
		is.NoErr(err)
		is.Equal(n, want)
	}
	names, err := s.EnabledSuperusers(ctx, "acme")
	is.NoErr(err)
	is.Equal(names, []string{"a", "b"})
	names, err = s.EnabledSuperusers(ctx, "none")
	is.NoErr(err)
	is.Equal(len(names), 0)
}

func testMissing(t *testing.T, s principals.Store) {
	addUsers(t, s, "acme", user("Jo"))
	for name, call := range everyCall(t.Context(), s, "acme", "jo", teamID(1), "slug-1") {
		// names are case-sensitive except for logins
		if name == "Login" || name == "EditLogin" {
			continue
		}
		t.Run(name, func(t *testing.T) { is.New(t).Equal(errs.CodeOf(call()), errs.NotFound) })
	}
}

// everyCall returns the methods of the Store that return errs.NotFound if the user, team or
// membership does not exist.
func everyCall(ctx context.Context, s principals.Store, tenant, name, id, slug string) map[string]func() error {
	one := func(_ any, err error) error { return err }
	return map[string]func() error{
		"User": func() error { return one(s.User(ctx, tenant, name)) },
		"UpdateUser": func() error {
			return one(s.UpdateUser(ctx, tenant, name, func(u *principals.User) error {
				u.Enabled = false
				return nil
			}))
		},
		"DeleteUser":     func() error { return deleted(s.DeleteUser(ctx, tenant, name)) },
		"MarkFeedViewed": func() error { return s.MarkFeedViewed(ctx, tenant, name, tuesday) },
		"Login":          func() error { return one(s.Login(ctx, tenant, name, "")) },
		"EditLogin": func() error {
			return s.EditLogin(ctx, tenant, name, "", func(l *principals.Login) error { l.Hash = "x"; return nil })
		},
		"Team":       func() error { return one(s.Team(ctx, tenant, id)) },
		"TeamBySlug": func() error { return one(s.Team(ctx, tenant, slug)) },
		"UpdateTeam": func() error {
			return one(s.UpdateTeam(ctx, tenant, id, func(t *principals.Team) error { t.Name = "x"; return nil }))
		},
		"DeleteTeam":    func() error { return s.DeleteTeam(ctx, tenant, id) },
		"DeleteMember":  func() error { return s.DeleteMember(ctx, tenant, id, name) },
		"PrincipalUser": func() error { return one(s.Principal(ctx, tenant, name)) },
		"PrincipalTeam": func() error { return one(s.Principal(ctx, tenant, id)) },
		"LockTenant":    func() error { return s.LockTenant(ctx, tenant+"x") },
	}
}

func testIsolation(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	super := user("jo")
	super.Superuser = true
	addUsers(t, s, "acme", super)
	addTeams(t, s, "acme", team(1, "one"))
	is.NoErr(s.PutMember(ctx, "acme", member(1, "jo", actor.Member)))

	for name, call := range everyCall(ctx, s, "evil", "jo", teamID(1), "slug-1") {
		// another tenant sees nothing
		t.Run(name, func(t *testing.T) { is.New(t).Equal(errs.CodeOf(call()), errs.NotFound) })
	}
	is.Equal(errs.CodeOf(s.PutMember(ctx, "evil", member(1, "jo", actor.Admin))), errs.Conflict)
	n, err := s.OtherSuperusers(ctx, "evil", "x")
	is.NoErr(err)
	is.Equal(n, 0) // nor counts it
	users, err := s.Users(ctx, "evil", query(10))
	is.NoErr(err)
	teams, err := s.Teams(ctx, "evil", query(10))
	is.NoErr(err)
	is.Equal(users.Total+teams.Total+len(users.Rows)+len(teams.Rows), 0)
	in, err := s.Members(ctx, "evil", teamID(1), query(100))
	is.NoErr(err)
	of, err := s.Memberships(ctx, "evil", "jo", query(100))
	is.NoErr(err)
	is.Equal(len(in.Rows)+in.Total+len(of.Rows)+of.Total+len(ids(t, s, "evil")), 0)

	addUsers(t, s, "evil", user("jo")) // the same names in another tenant are other rows
	addTeams(t, s, "evil", team(1, "theirs"))
	is.NoErr(s.PutMember(ctx, "evil", member(1, "jo", actor.Admin)))
	for _, name := range []string{"UpdateUser", "EditLogin", "UpdateTeam", "DeleteMember", "DeleteUser", "DeleteTeam"} {
		is.NoErr(everyCall(ctx, s, "evil", "jo", teamID(1), "slug-1")[name]())
	}
	super.Tenant = "acme"
	got, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)
	is.Equal(got, super) // another tenant cannot change it
	l, err := s.Login(ctx, "acme", "jo", "")
	is.NoErr(err)
	is.Equal(l.Hash, "")
	in, err = s.Members(ctx, "acme", teamID(1), query(100))
	is.NoErr(err)
	is.Equal(in.Total, 1)
	is.Equal(in.Rows[0].Role, actor.Member)
	is.Equal(in.Rows[0].TeamName, "one")
	is.Equal(ids(t, s, "acme"), []string{"jo", teamID(1)})
}

func testFailedEdit(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	fault := errors.New("fault")
	addUsers(t, s, "acme", user("jo"))
	addTeams(t, s, "acme", team(1, "one"))
	_, err := s.UpdateUser(ctx, "acme", "jo", func(u *principals.User) error { u.Enabled = false; return fault })
	is.Equal(err, fault)
	_, err = s.UpdateTeam(ctx, "acme", teamID(1), func(t *principals.Team) error { t.Name = "x"; return fault })
	is.Equal(err, fault)
	err = s.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error { l.Hash = "x"; return fault })
	is.Equal(err, fault)
	u, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)
	is.True(u.Enabled)
	one, err := s.Team(ctx, "acme", teamID(1))
	is.NoErr(err)
	is.Equal(one.Name, "one")
	l, err := s.Login(ctx, "acme", "jo", "")
	is.NoErr(err)
	is.Equal(l.Hash, "")
}

func testFailedTx(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	fault := errors.New("fault")
	addUsers(t, s, "acme", user("old"))
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.InsertUser(ctx, "acme", user("new")))
		is.NoErr(s.InsertTeam(ctx, "acme", team(1, "one")))
		is.NoErr(s.PutMember(ctx, "acme", member(1, "new", actor.Member)))
		is.NoErr(deleted(s.DeleteUser(ctx, "acme", "old")))
		_, err := s.User(ctx, "acme", "new")
		is.NoErr(err) // the transaction sees its own writes
		return fault
	})
	is.Equal(err, fault)
	is.Equal(ids(t, s, "acme"), []string{"old"})
}

// together makes twenty concurrent calls of f and fails on any error.
func together(t *testing.T, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	fails := make([]error, 20)
	for i := range fails {
		wg.Go(func() { fails[i] = f(i) })
	}
	wg.Wait()
	is.New(t).NoErr(errors.Join(fails...))
}

func testParallelEdits(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	addUsers(t, s, "acme", user("jo"))
	addTeams(t, s, "acme", team(1, "n"))
	together(t, func(int) error {
		_, userErr := s.UpdateUser(ctx, "acme", "jo", func(u *principals.User) error { u.LoginAttempts++; return nil })
		loginErr := s.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error { l.Attempts++; return nil })
		_, teamErr := s.UpdateTeam(ctx, "acme", teamID(1), func(t *principals.Team) error { t.Name += "n"; return nil })
		return errors.Join(userErr, loginErr, teamErr)
	})
	u, err := s.User(ctx, "acme", "jo")
	is.NoErr(err)
	is.Equal(u.LoginAttempts, 40)
	one, err := s.Team(ctx, "acme", teamID(1))
	is.NoErr(err)
	is.Equal(len(one.Name), 21)
}

func testLockTenant(t *testing.T, s principals.Store) {
	is, ctx := is.New(t), t.Context()
	inside, most, mu := 0, 0, sync.Mutex{}
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		inside += n
		most = max(most, inside)
	}
	together(t, func(i int) error {
		return s.InTx(ctx, func(ctx context.Context) error {
			if err := s.LockTenant(ctx, "acme"); err != nil {
				return err
			}
			count(1)
			defer count(-1)
			time.Sleep(time.Millisecond)
			return s.InsertUser(ctx, "acme", user(fmt.Sprint("u", i)))
		})
	})
	is.Equal(most, 1)
	is.Equal(len(ids(t, s, "acme")), 20)
}

func testCanceled(t *testing.T, s principals.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.InsertUser(ctx, "acme", user("a")), context.Canceled))
	is.Equal(len(ids(t, s, "acme")), 0)
}
