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
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// Stores are the Store to check and the store of users of the same database.
type Stores struct {
	sessions.Store
	Users principals.Store
}

// testStore runs all checks. open returns empty stores over one database that has the tenants acme
// and evil.
func testStore(t *testing.T, open func(t *testing.T) Stores) {
	for name, check := range map[string]func(*testing.T, Stores){
		"SessionRoundTrip":      testSession,
		"TokenRoundTrip":        testToken,
		"Holder":                testHolder,
		"DisabledHolder":        testDisabled,
		"NoSuchUser":            testNoSuchUser,
		"TakenIDs":              testTaken,
		"Missing":               testMissing,
		"DeletesAreForOne":      testDelete,
		"RevokeAll":             testRevokeAll,
		"EndLogins":             testEndLogins,
		"GoneWithTheirUser":     testUserDeleted,
		"Isolation":             testIsolation,
		"CountAdds":             testCount,
		"ParallelCountsAllLand": testParallelCounts,
		"Sweep":                 testSweep,
		"ProviderSessions":      testProviderSessions,
		"OfUsers":               testOfUsers,
		"EntityTokens":          testEntityTokens,
		"Pages":                 testPages,
		"FailedTxWritesNone":    testFailedTx,
		"CanceledWritesNothing": testCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.addUser(t, "acme", "jo")
			s.addUser(t, "acme", "kim")
			s.addUser(t, "evil", "jo")
			check(t, s)
		})
	}
}

func (s Stores) addUser(t *testing.T, tenant, name string) {
	t.Helper()
	is.New(t).NoErr(s.Users.InsertUser(t.Context(), tenant, principals.User{
		Username: name, Domain: principals.Local,
		Enabled: true, Data: json.RawMessage("{}"), UserFields: json.RawMessage("{}"),
		CreatedAt: monday, UpdatedAt: monday,
	}))
}

func session(id, user string) sessions.Session {
	return sessions.Session{ID: id, Username: user, CreatedAt: monday, ExpiresAt: tuesday}
}

func (s Stores) addSession(t *testing.T, tenant string, all ...sessions.Session) {
	t.Helper()
	for _, x := range all {
		is.New(t).NoErr(s.InsertSession(t.Context(), tenant, x))
	}
}

// tokenID returns a UUID for a number.
func tokenID(n int) string { return fmt.Sprintf("01932e00-0000-7000-8000-%012d", n) }

func token(n int, user string) sessions.Token {
	return sessions.Token{
		ID: tokenID(n), Type: "personal", Username: user,
		SecretHash: fmt.Sprintf("hash %d", n), CreatedAt: monday, UpdatedAt: monday,
	}
}

func (s Stores) addToken(t *testing.T, tenant string, all ...sessions.Token) {
	t.Helper()
	for _, x := range all {
		is.New(t).NoErr(s.InsertToken(t.Context(), tenant, x))
	}
}

// ofUser names the personal tokens of a user.
func ofUser(username string) sessions.TokensOf {
	return sessions.TokensOf{Type: sessions.Personal, EntityID: username}
}

// stored returns a user's tokens by id.
func (s Stores) stored(t *testing.T, tenant, user string) map[string]sessions.Token {
	t.Helper()
	page, err := s.Tokens(t.Context(), tenant, ofUser(user), paging.Query{Limit: paging.MaxLimit})
	is.New(t).NoErr(err)
	all := map[string]sessions.Token{}
	for _, x := range page.Rows {
		all[x.ID] = x
	}
	return all
}

func testSession(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	want := sessions.Session{
		ID:            "hash-_1",
		Username:      "jo",
		CreatedAt:     monday,
		ExpiresAt:     tuesday.Add(time.Microsecond),
		PasswordSetAt: monday.Add(time.Millisecond),
	}
	s.addSession(t, "acme", want)
	got, h, err := s.Session(ctx, "acme", want.ID)
	is.NoErr(err)
	is.Equal(got, want)
	is.Equal(h, sessions.Holder{Username: "jo", Enabled: true})
}

// testProviderSessions: the ids of a session at a provider are deleted with the session. A logout
// at the provider ends the sessions that it names, and no others.
func testProviderSessions(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	at := func(id, user, domain, subject, provider string) sessions.Session {
		x := session(id, user)
		x.Provider = &sessions.StoredProviderSession{
			Domain:  domain,
			Subject: subject,
			ID:      provider,
			Sealed:  "sealed " + id,
		}
		fieldtest.Full(t, *x.Provider, map[bool]string{true: "ID"}[provider == ""])
		return x
	}
	rest := []sessions.Session{
		at("b", "jo", "work", "jo", "2"), at("c", "jo", "work", "jo", ""),
		at("d", "kim", "work", "kim", "3"), at("e", "kim", "other", "jo", "1"),
	}
	s.addSession(t, "acme", at("a", "jo", "work", "jo", "1"), session("plain", "jo"))
	s.addSession(t, "acme", rest...)
	s.addSession(t, "evil", at("a", "jo", "work", "jo", "1"), at("f", "jo", "work", "jo", "1"))
	bare := at("bare", "jo", "bare", "jo", "1")
	bare.Provider.Sealed = ""
	s.addSession(t, "acme", bare)
	got, err := s.ProviderSession(ctx, "acme", "bare")
	is.NoErr(err)
	is.Equal(got, *bare.Provider)
	got, err = s.ProviderSession(ctx, "acme", "b")
	is.NoErr(err)
	is.Equal(got, *rest[0].Provider)
	for _, none := range [][2]string{{"acme", "plain"}, {"acme", "f"}, {"acme", "none"}, {"evil", "b"}} {
		_, err := s.ProviderSession(ctx, none[0], none[1])
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	left := func(tenant string) (ids string) {
		t.Helper()
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "plain"} {
			_, _, err := s.Session(ctx, tenant, id)
			_, failed := s.ProviderSession(ctx, tenant, id)
			if err == nil {
				ids += " " + id
			} else if errs.CodeOf(failed) != errs.NotFound {
				t.Errorf("%s: %v", id, failed)
			}
		}
		return ids
	}
	ends := func(n int, domain, subject string, ids ...string) {
		t.Helper()
		ended, err := s.DeleteProviderSessions(ctx, "acme", domain, subject, ids)
		is.NoErr(err)
		is.Equal(ended, n)
	}
	ends(0, "work", "")             // no user
	ends(0, "work", "kim", "1")     // of another user
	ends(0, "none", "jo", "1", "2") // of another domain
	ends(0, "work", "", "x' OR 1=1")
	is.Equal(left("acme"), " a b c d e plain")
	ends(1, "work", "", "1", "9")
	is.Equal(left("acme"), " b c d e plain")
	ends(2, "work", "jo")
	is.Equal(left("acme"), " d e plain")
	ends(1, "work", "kim", "3", "2", "1")
	is.Equal(left("acme"), " e plain")
	is.Equal(left("evil"), " a f")
	is.NoErr(s.DeleteSession(ctx, "acme", "e"))
	is.Equal(left("acme"), " plain")
	s.addSession(t, "acme", at("b", "jo", "work", "jo", "2"), at("e", "kim", "other", "jo", "1"))
	is.NoErr(s.DeleteSessionsOfDomains(ctx, "acme", nil))
	is.NoErr(s.DeleteSessionsOfDomains(ctx, "acme", []string{"work", "none"}))
	is.Equal(left("acme"), " e plain")
	is.Equal(left("evil"), " a f")
	n, err := s.Sweep(ctx, "evil", tuesday)
	is.NoErr(err)
	is.Equal(n, 2)
	is.Equal(left("evil"), "")
}

func testToken(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	text := func(s string) *string { return &s }
	used, end := monday.Add(time.Hour), tuesday.Add(time.Microsecond)
	full := sessions.Token{
		ID: tokenID(1), Type: "personal", Username: "jo", SecretHash: "hash", ReadOnly: true,
		Notes: text("Jö '; DROP -- ?$1\\\n日本 🎨"), Restrict: text("cidr"),
		Host: text("example.com"), CIDR: text("2001:db8::/32"),
		Data: json.RawMessage(`{"a":["ü",1e400,{}]}`), Requests: 1 << 40,
		Blocked: 7, LastAccessedAt: &used, ExpiresAt: &end,
		CreatedAt: monday, UpdatedAt: tuesday,
	}
	fieldtest.Full(t, full, "Entity") // testEntityTokens has Entity
	s.addToken(t, "acme", full, token(2, "jo"))
	stored := s.stored(t, "acme", "jo")
	is.Equal(stored[tokenID(1)], full)
	is.Equal(stored[tokenID(2)], token(2, "jo")) // fields that are not set are empty

	got, h, err := s.Token(ctx, "acme", tokenID(1)) // only what a request needs
	is.NoErr(err)
	is.Equal(got, sessions.Token{
		ID: full.ID, Type: "personal", Username: "jo",
		SecretHash: "hash", ReadOnly: true, Restrict: full.Restrict, CIDR: full.CIDR,
		Data: full.Data, ExpiresAt: &end,
	})
	is.Equal(h, sessions.Holder{Username: "jo", Enabled: true})
}

func testHolder(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addSession(t, "acme", session("a", "jo"))
	s.addToken(t, "acme", token(1, "jo"))
	_, err := s.Users.UpdateUser(ctx, "acme", "jo", func(u *principals.User) error {
		u.Superuser, u.GlobalPermissions.AI = true, true
		return nil
	})
	is.NoErr(err)
	is.NoErr(s.Users.EditLogin(ctx, "acme", "jo", "", func(l *principals.Login) error {
		l.Hash, l.SetAt = "phc", tuesday
		return nil
	}))
	want := sessions.Holder{Username: "jo", Enabled: true, Superuser: true, AI: true, PasswordSetAt: tuesday}
	for n, role := range []actor.Role{actor.Member, actor.Admin, actor.Designer} {
		id := s.addMember(t, "acme", n, "jo", role)
		if want.Teams == nil {
			want.Teams = map[string]actor.Role{}
		}
		want.Teams[id] = role
	}
	s.addMember(t, "acme", 8, "kim", actor.Publisher) // a team of another user
	s.addMember(t, "evil", 1, "jo", actor.Publisher)  // the same name and team id elsewhere

	_, h, err := s.Session(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(h, want)
	_, h, err = s.Token(ctx, "acme", tokenID(1))
	is.NoErr(err)
	is.Equal(h, want)
}

// addMember creates a team with a number and adds the user to it.
func (s Stores) addMember(t *testing.T, tenant string, n int, user string, role actor.Role) string {
	t.Helper()
	is, id := is.New(t), tokenID(n)
	is.NoErr(s.Users.InsertTeam(t.Context(), tenant, principals.Team{
		ID: id, Name: "Team", Slug: fmt.Sprintf("slug-%d", n),
		Domain: principals.Local, CreatedAt: monday, UpdatedAt: monday,
	}))
	is.NoErr(s.Users.PutMember(
		t.Context(), tenant, principals.Membership{TeamID: id, Username: user, Role: role, CreatedAt: monday},
	))
	return id
}

func testDisabled(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addSession(t, "acme", session("a", "jo"))
	s.addToken(t, "acme", token(1, "jo"))
	_, err := s.Users.UpdateUser(ctx, "acme", "jo", func(u *principals.User) error { u.Enabled = false; return nil })
	is.NoErr(err)
	_, h, err := s.Session(ctx, "acme", "a") // still found: the Service decides what it means
	is.NoErr(err)
	is.Equal(h.Enabled, false)
	_, h, err = s.Token(ctx, "acme", tokenID(1))
	is.NoErr(err)
	is.Equal(h.Enabled, false)
}

func testNoSuchUser(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	for _, c := range []struct{ tenant, user string }{{"acme", "nobody"}, {"evil", "kim"}, {"nowhere", "jo"}} {
		is.Equal(errs.CodeOf(s.InsertSession(ctx, c.tenant, session("a", c.user))), errs.Conflict)
		is.Equal(errs.CodeOf(s.InsertToken(ctx, c.tenant, token(1, c.user))), errs.Conflict)
	}
}

func testTaken(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addSession(t, "acme", session("a", "jo"))
	s.addToken(t, "acme", token(1, "jo"))
	is.Equal(errs.CodeOf(s.InsertSession(ctx, "acme", session("a", "kim"))), errs.Conflict)
	is.Equal(errs.CodeOf(s.InsertToken(ctx, "acme", token(1, "kim"))), errs.Conflict)
	got, _, err := s.Session(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(got.Username, "jo")
	is.Equal(len(s.stored(t, "acme", "kim")), 0)
}

func testMissing(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	_, h, err := s.Session(ctx, "acme", "nope")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(h, sessions.Holder{})
	_, h, err = s.Token(ctx, "acme", tokenID(9))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(h, sessions.Holder{})
	is.NoErr(s.DeleteSession(ctx, "acme", "nope"))
	is.NoErr(s.EndSession(ctx, "acme", "nope"))
	is.Equal(errs.CodeOf(s.DeleteToken(ctx, "acme", ofUser("jo"), tokenID(9))), errs.NotFound)
	is.NoErr(s.Count(ctx, "acme", nil))
}

func testRevokeAll(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	old, tuesday := token(3, "jo"), monday.Add(24*time.Hour)
	old.ExpiresAt = &tuesday
	s.addToken(t, "acme", token(1, "jo"), token(2, "jo"), old, token(4, "kim"))
	s.addToken(t, "evil", token(5, "jo"))
	for at, want := range map[time.Time]int{monday: 3, tuesday: 2, tuesday.Add(time.Hour): 2} {
		n, err := s.LiveTokens(ctx, "acme", "jo", at)
		is.NoErr(err)
		is.Equal(n, want)
	}
	for _, want := range []int{3, 0} {
		n, err := s.DeleteTokens(ctx, "acme", "jo")
		is.NoErr(err)
		is.Equal(n, want)
	}
	is.Equal(len(s.stored(t, "acme", "jo")), 0)
	is.Equal(len(s.stored(t, "acme", "kim")), 1)
	is.Equal(len(s.stored(t, "evil", "jo")), 1)
}

func testDelete(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addSession(t, "acme", session("a", "jo"), session("b", "jo"))
	s.addToken(t, "acme", token(1, "jo"), token(2, "jo"))
	is.NoErr(s.DeleteSession(ctx, "acme", "a"))
	is.NoErr(s.EndSession(ctx, "acme", "a"))
	_, _, err := s.Session(ctx, "acme", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.Session(ctx, "acme", "b")
	is.NoErr(err)

	one, err := s.TokenOf(ctx, "acme", ofUser("jo"), tokenID(1))
	is.NoErr(err)
	is.Equal(one, token(1, "jo"))
	_, err = s.TokenOf(ctx, "acme", ofUser("kim"), tokenID(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)                                                   // of another user
	is.Equal(errs.CodeOf(s.DeleteToken(ctx, "acme", ofUser("kim"), tokenID(1))), errs.NotFound) // of another user
	is.NoErr(s.DeleteToken(ctx, "acme", ofUser("jo"), tokenID(1)))
	is.Equal(errs.CodeOf(s.DeleteToken(ctx, "acme", ofUser("jo"), tokenID(1))), errs.NotFound)
	_, _, err = s.Token(ctx, "acme", tokenID(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.Token(ctx, "acme", tokenID(2))
	is.NoErr(err)
}

func testEndLogins(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	for _, tenant := range []string{"acme", "evil"} {
		s.addSession(t, tenant, session("a", "jo"), session("b", "jo"))
		ofApp := token(2, "jo")
		ofApp.Entity, ofApp.Type = entity.Key{Kind: "app", ID: "a"}, sessions.AppView
		s.addToken(t, tenant, token(1, "jo"), ofApp)
	}
	s.addSession(t, "acme", session("c", "kim"))
	s.addToken(t, "acme", token(3, "kim"))
	is.NoErr(s.EndLogins(ctx, "acme", []string{"jo", "nobody"}))
	is.NoErr(s.EndLogins(ctx, "acme", nil))
	for _, c := range []struct {
		tenant, session string
		token           int
		there           bool
	}{
		{"acme", "a", 1, false}, {"acme", "b", 1, false}, {"acme", "c", 2, true}, {"acme", "c", 3, true},
		{"evil", "a", 1, true},
	} {
		_, _, err := s.Session(ctx, c.tenant, c.session)
		is.Equal(err == nil, c.there)
		_, _, err = s.Token(ctx, c.tenant, tokenID(c.token))
		is.Equal(err == nil, c.there)
	}
}

func testUserDeleted(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addSession(t, "acme", session("a", "jo"), session("b", "kim"))
	s.addToken(t, "acme", token(1, "jo"), token(2, "kim"))
	_, err := s.Users.DeleteUser(ctx, "acme", "jo")
	is.NoErr(err)
	_, _, err = s.Session(ctx, "acme", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.Token(ctx, "acme", tokenID(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.Session(ctx, "acme", "b")
	is.NoErr(err)
	_, _, err = s.Token(ctx, "acme", tokenID(2))
	is.NoErr(err)
}

func testIsolation(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addSession(t, "acme", session("a", "jo"), session("b", "jo"))
	// another tenant may use the same ids
	s.addSession(t, "evil", sessions.Session{ID: "b", Username: "jo", CreatedAt: tuesday, ExpiresAt: tuesday})
	s.addToken(t, "acme", token(1, "jo"), token(2, "jo"))
	s.addToken(t, "evil", token(2, "jo"))
	for tenant, want := range map[string]int{"acme": 2, "evil": 1, "none": 0} {
		n, err := s.CountTokens(ctx, tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}

	_, _, err := s.Session(ctx, "evil", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound) // another tenant sees nothing
	_, _, err = s.Token(ctx, "evil", tokenID(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	page, err := s.Tokens(ctx, "evil", ofUser("jo"), paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Total, 1) // nor counts it
	is.Equal(page.Rows, []sessions.Token{token(2, "jo")})
	_, err = s.TokenOf(ctx, "evil", ofUser("jo"), tokenID(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.CodeOf(s.DeleteToken(ctx, "evil", ofUser("jo"), tokenID(1))), errs.NotFound)

	is.NoErr(s.DeleteSession(ctx, "evil", "a"))
	is.NoErr(s.EndSession(ctx, "evil", "b"))
	is.NoErr(s.DeleteToken(ctx, "evil", ofUser("jo"), tokenID(2)))
	is.NoErr(s.Count(ctx, "evil", map[string]sessions.Use{tokenID(1): {Requests: 1}, tokenID(2): {Blocked: 1}}))
	n, err := s.Sweep(ctx, "evil", tuesday.Add(time.Hour))
	is.NoErr(err)
	is.Equal(n, 0)

	got, _, err := s.Session(ctx, "acme", "b") // another tenant cannot change it
	is.NoErr(err)
	is.Equal(got, session("b", "jo"))
	is.Equal(
		s.stored(t, "acme", "jo"),
		map[string]sessions.Token{tokenID(1): token(1, "jo"), tokenID(2): token(2, "jo")},
	)
	_, _, err = s.Session(ctx, "acme", "a")
	is.NoErr(err)
}

func testCount(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addToken(t, "acme", token(1, "jo"), token(2, "kim"), token(3, "jo"))
	is.NoErr(s.Count(ctx, "acme", map[string]sessions.Use{
		tokenID(1): {Requests: 2, Blocked: 1, LastAccessedAt: tuesday},
		tokenID(2): {Blocked: 5},
		tokenID(9): {Requests: 1}, // deleted
	}))
	is.NoErr(s.Count(ctx, "acme", map[string]sessions.Use{tokenID(1): {Requests: 3}})) // no time: the old one is kept
	one, two := token(1, "jo"), token(2, "kim")
	one.Requests, one.Blocked, one.LastAccessedAt, two.Blocked = 5, 1, &tuesday, 5
	is.Equal(s.stored(t, "acme", "jo"), map[string]sessions.Token{tokenID(1): one, tokenID(3): token(3, "jo")})
	is.Equal(s.stored(t, "acme", "kim"), map[string]sessions.Token{tokenID(2): two})

	is.NoErr(s.Count(ctx, "acme", map[string]sessions.Use{tokenID(1): {Requests: 1, LastAccessedAt: monday}}))
	// a late process does not set the time back
	is.Equal(*s.stored(t, "acme", "jo")[tokenID(1)].LastAccessedAt, tuesday)
}

func testParallelCounts(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	uses := map[string]sessions.Use{}
	for n := range 5 {
		s.addToken(t, "acme", token(n, "jo"))
		uses[tokenID(n)] = sessions.Use{Requests: 2, Blocked: 1, LastAccessedAt: tuesday}
	}
	var wg sync.WaitGroup
	fails := make(chan error, 20)
	for range 20 {
		wg.Go(func() { fails <- s.Count(ctx, "acme", uses) })
	}
	wg.Wait()
	close(fails)
	for err := range fails {
		is.NoErr(err)
	}
	for _, x := range s.stored(t, "acme", "jo") {
		is.Equal(x.Requests, int64(40))
		is.Equal(x.Blocked, int64(20))
	}
}

func testSweep(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	for i, end := range []time.Duration{-time.Hour, -time.Microsecond, 0, time.Microsecond, time.Hour} {
		s.addSession(t, "acme", sessions.Session{
			ID:        fmt.Sprint(i),
			Username:  "jo",
			CreatedAt: monday,
			ExpiresAt: tuesday.Add(end),
		})
	}
	s.addSession(t, "evil", session("0", "jo"))
	past := monday
	expired := token(1, "jo")
	expired.ExpiresAt = &past
	s.addToken(t, "acme", expired)

	n, err := s.Sweep(ctx, "acme", tuesday)
	is.NoErr(err)
	is.Equal(n, 3) // one that ends now has ended
	for i := range 5 {
		_, _, err := s.Session(ctx, "acme", fmt.Sprint(i))
		is.Equal(errs.CodeOf(err) == errs.NotFound, i < 3)
	}
	_, _, err = s.Session(ctx, "evil", "0")
	is.NoErr(err)
	is.Equal(len(s.stored(t, "acme", "jo")), 1) // tokens are kept, so that their owner sees them
	n, err = s.Sweep(ctx, "acme", tuesday)
	is.NoErr(err)
	is.Equal(n, 0)
}

// testOfUsers: OfUsers counts all tokens of some users of one tenant, and the sessions that have
// not ended.
func testOfUsers(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	ended, later := session("ended", "jo"), session("later", "jo")
	ended.ExpiresAt, later.ExpiresAt = monday, tuesday.Add(time.Microsecond)
	s.addSession(t, "acme", ended, session("until tuesday", "jo"), later, session("kim's", "kim"))
	s.addSession(t, "evil", session("theirs", "jo"))
	expired := token(1, "jo")
	expired.ExpiresAt = &monday
	s.addToken(t, "acme", expired, token(2, "jo"), token(3, "kim"))
	s.addToken(t, "evil", token(1, "jo"))
	var many []string // more than one statement takes
	for n := range 1000 {
		many = append(many, fmt.Sprintf("nobody%d", n))
	}
	for _, c := range []struct {
		tenant           string
		users            []string
		at               time.Time
		tokens, sessions int
	}{
		{"acme", []string{"jo"}, monday, 2, 2},
		{"acme", []string{"jo"}, tuesday, 2, 1}, // a session has ended at the time of its end
		{"acme", []string{"jo"}, tuesday.Add(time.Hour), 2, 0},
		{"acme", append([]string{"jo"}, append(many, "kim")...), monday, 3, 3},
		{"acme", []string{"kim"}, monday, 1, 1},
		{"acme", many, monday, 0, 0},
		{"acme", nil, monday, 0, 0},
		{"evil", []string{"jo", "kim"}, monday, 1, 1},
		{"evil", []string{"kim"}, monday, 0, 0},
	} {
		tokens, live, err := s.OfUsers(ctx, c.tenant, c.users, c.at)
		is.NoErr(err)
		is.Equal([]int{tokens, live}, []int{c.tokens, c.sessions})
	}
}

func testPages(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	for n := range 25 {
		x := token(n, "jo")
		x.CreatedAt = monday.Add(time.Duration(n%3) * time.Hour) // equal times, which are ordered by id
		s.addToken(t, "acme", x)
	}
	s.addToken(t, "acme", token(30, "kim"))
	tokens := func(ctx context.Context, q paging.Query) (paging.Page[sessions.Token], error) {
		return s.Tokens(ctx, "acme", ofUser("jo"), q)
	}
	id := func(x sessions.Token) string { return x.ID }
	for _, sort := range []string{"", "createdAt", "-createdAt"} {
		t.Run("sort="+sort, func(t *testing.T) { pagingtest.TestCursor(t, sort, tokens, id) })
	}
	pagingtest.TestBytes(t, tokens)
	pagingtest.TestNewest(t, tokens, id, func(x sessions.Token) time.Time { return x.CreatedAt })
	page, err := s.Tokens(ctx, "acme", ofUser("jo"), paging.Query{CountOnly: true})
	is.NoErr(err)
	is.Equal(page.Total, 25)
	is.Equal(len(page.Rows), 0)
	for _, q := range []paging.Query{
		{Limit: 5, Sort: "secretHash"}, {Limit: 5, Sort: "tenant_id"},
		{Limit: 5, Q: "x"}, // the list does not support q
		{Limit: 5, After: &paging.Position{Value: "x", Key: "y"}}, // a cursor of another list
	} {
		_, err := s.Tokens(ctx, "acme", ofUser("jo"), q)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
}

func testFailedTx(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	s.addSession(t, "acme", session("old", "jo"))
	s.addToken(t, "acme", token(1, "jo"))
	fault := errors.New("fault")
	err := s.Users.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.InsertSession(ctx, "acme", session("new", "jo")))
		is.NoErr(s.EndSession(ctx, "acme", "old"))
		_, failed := s.DeleteProviderSessions(ctx, "acme", "work", "jo", nil)
		is.NoErr(failed)
		is.NoErr(s.DeleteSessionsOfDomains(ctx, "acme", []string{"work"}))
		is.NoErr(s.InsertToken(ctx, "acme", token(2, "jo")))
		is.NoErr(s.Count(ctx, "acme", map[string]sessions.Use{tokenID(1): {Requests: 1}}))
		is.NoErr(s.DeleteToken(ctx, "acme", ofUser("jo"), tokenID(2)))
		_, err := s.Sweep(ctx, "acme", tuesday)
		is.NoErr(err)
		_, _, err = s.Session(ctx, "acme", "new")
		is.Equal(errs.CodeOf(err), errs.NotFound) // the transaction sees its own writes
		return fault
	})
	is.True(errors.Is(err, fault))
	got, _, err := s.Session(ctx, "acme", "old")
	is.NoErr(err)
	is.Equal(got, session("old", "jo"))
	is.Equal(s.stored(t, "acme", "jo"), map[string]sessions.Token{tokenID(1): token(1, "jo")})
}

func testCanceled(t *testing.T, s Stores) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.InsertSession(ctx, "acme", session("a", "jo")), context.Canceled))
	is.True(errors.Is(s.InsertToken(ctx, "acme", token(1, "jo")), context.Canceled))
	_, _, err := s.Session(t.Context(), "acme", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(len(s.stored(t, "acme", "jo")), 0)
}

// testEntityTokens: the tokens of an entity are separate from personal ones, and are deleted with
// the entity and with their user.
func testEntityTokens(t *testing.T, s Stores) {
	is, ctx := is.New(t), t.Context()
	app := func(id string) entity.Key { return entity.Key{Kind: "app", ID: id} }
	of := func(n int, user, id string) sessions.Token {
		x := token(n, user)
		x.Type, x.Entity, x.Data = sessions.AppView, app(id), json.RawMessage(`{"roles":["editor"]}`)
		x.CreatedAt = monday.Add(time.Duration(n) * time.Minute)
		return x
	}
	other := of(6, "jo", "a")
	other.Type = "webhook"
	assistant := of(7, "jo", "a")
	assistant.Type, assistant.Entity.Kind = sessions.Chat, "assistant"
	views := func(app string) sessions.TokensOf { return sessions.TokensOf{Type: sessions.AppView, EntityID: app} }
	hooks := sessions.TokensOf{Type: sessions.Webhook, EntityID: "a"}
	chats := sessions.TokensOf{Type: sessions.Chat, EntityID: "a"}
	s.addToken(
		t, "acme", token(1, "jo"), of(2, "jo", "a"), of(3, "kim", "a"), of(4, "jo", "b"), of(5, "jo", "c"),
		other, assistant,
	)
	s.addToken(t, "evil", of(2, "jo", "a"))
	listed := func(tenant string, of sessions.TokensOf) (ids []string) {
		t.Helper()
		page, err := s.Tokens(ctx, tenant, of, paging.Query{Limit: 9})
		is.NoErr(err)
		is.Equal(page.Total, len(page.Rows))
		for _, x := range page.Rows {
			ids = append(ids, x.ID)
		}
		return ids
	}
	page, err := s.Tokens(ctx, "acme", views("a"), paging.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(page.Total, 2)
	is.Equal(page.Rows, []sessions.Token{of(3, "kim", "a")})
	is.Equal(listed("acme", views("a")), []string{tokenID(3), tokenID(2)})
	is.Equal(listed("acme", hooks), []string{tokenID(6)})
	is.Equal(listed("acme", chats), []string{tokenID(7)})
	is.Equal(len(s.stored(t, "acme", "jo")), 1) // the personal one
	_, err = s.TokenOf(ctx, "acme", ofUser("jo"), tokenID(2))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.CodeOf(s.DeleteToken(ctx, "acme", ofUser("jo"), tokenID(2))), errs.NotFound)
	one, err := s.TokenOf(ctx, "acme", views("a"), tokenID(2))
	is.NoErr(err)
	is.Equal(one, of(2, "jo", "a"))
	x, _, err := s.Token(ctx, "acme", tokenID(2))
	is.NoErr(err)
	is.Equal(x.Type, sessions.AppView)
	is.Equal(x.Entity, app("a"))
	is.Equal(x.Data, one.Data)

	for _, at := range []struct {
		tenant string
		of     sessions.TokensOf
		id     string
	}{
		{"acme", views("b"), tokenID(2)},
		{"acme", views("a"), tokenID(1)}, {"evil", views("a"), tokenID(3)},
		{"acme", hooks, tokenID(2)}, {"acme", chats, tokenID(2)},
	} {
		is.Equal(errs.CodeOf(s.DeleteToken(ctx, at.tenant, at.of, at.id)), errs.NotFound)
		_, err := s.TokenOf(ctx, at.tenant, at.of, at.id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	is.NoErr(s.DeleteToken(ctx, "acme", views("a"), tokenID(2)))
	is.Equal(listed("acme", views("a")), []string{tokenID(3)})
	is.NoErr(s.DeleteTokensOf(ctx, "acme", "app", []string{"a", "b", "none"}))
	is.Equal(listed("acme", views("a")), nil)
	is.Equal(listed("acme", hooks), nil)
	is.Equal(listed("acme", views("b")), nil)
	is.Equal(listed("acme", views("c")), []string{tokenID(5)})
	is.Equal(listed("acme", chats), []string{tokenID(7)})
	is.Equal(listed("evil", views("a")), []string{tokenID(2)})
	is.Equal(len(s.stored(t, "acme", "jo")), 1)
	n, err := s.DeleteTokens(ctx, "acme", "jo") // all of the user's
	is.NoErr(err)
	is.Equal(n, 3)
}
