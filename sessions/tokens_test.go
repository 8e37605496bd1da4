package sessions_test

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/sessions"
)

var loopback = netip.MustParseAddr("127.0.0.1")

func ptr[T any](v T) *T { return &v }

// token makes a token of jo of acme and returns its credential.
// own are the caller's personal tokens.
var own = sessions.TokensOf{Type: sessions.Personal}

func (f *fixture) token(t *testing.T, n sessions.NewToken) (sessions.Token, string) {
	t.Helper()
	made, credential, err := f.CreateToken(f.as(t), own, n)
	is.New(t).NoErr(err)
	return made, credential
}

// listed returns jo's only token.
func (f *fixture) listed(t *testing.T) sessions.Token {
	t.Helper()
	is := is.New(t)
	page, err := f.Tokens(f.as(t), own, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(len(page.Rows), 1)
	return page.Rows[0]
}

func TestToken(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		end := monday.Add(time.Hour + 999) // nanoseconds, which no database keeps
		made, credential := f.token(t, sessions.NewToken{
			ReadOnly:  true,
			Notes:     ptr("for CI"),
			ExpiresAt: ptr(end.In(time.FixedZone("", 3600))),
		})
		is.Equal(made, f.listed(t)) // what is given is what is stored
		is.Equal(made.ExpiresAt, ptr(monday.Add(time.Hour)))

		a, err := f.Authenticate(t.Context(), credential, loopback)
		is.NoErr(err)
		is.Equal(a, actor.Actor{Tenant: "acme", User: "jo", Superuser: true, AI: true, ReadOnly: true, Token: made.ID})
		_, _, err = f.CreateToken(actor.With(t.Context(), a), own, sessions.NewToken{})
		is.Equal(errs.CodeOf(err), errs.Forbidden) // a token cannot make tokens

		_, other := f.token(t, sessions.NewToken{})
		a, err = f.Authenticate(t.Context(), other, loopback)
		is.NoErr(err)
		is.Equal(a.ReadOnly, false)
	})
}

func TestTokenIsRefused(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		made, credential := f.token(t, sessions.NewToken{ExpiresAt: ptr(monday.Add(time.Hour))})
		_, other := f.token(t, sessions.NewToken{})
		parts, others := strings.Split(credential, "."), strings.Split(other, ".")
		for name, bad := range map[string]string{
			"wrong secret":    strings.Join([]string{"tct", "acme", made.ID, parts[3][1:] + parts[3][:1]}, "."),
			"another token's": strings.Join([]string{"tct", "acme", made.ID, others[3]}, "."),
			"the hash":        strings.Join([]string{"tct", "acme", made.ID, made.SecretHash}, "."),
			"another tenant":  strings.Replace(credential, "acme", "evil", 1),
			"no such tenant":  strings.Replace(credential, "acme", "nowhere", 1),
			"no such token": strings.Join(
				[]string{"tct", "acme", "01932e00-0000-7000-8000-000000000009", parts[3]}, ".",
			),
			"the secret as session": "tcs.acme." + parts[3],
		} {
			t.Run(name, func(t *testing.T) {
				_, err := f.Authenticate(ctx, bad, loopback)
				refused(t, err)
			})
		}
		f.now = monday.Add(time.Hour - time.Microsecond)
		_, err := f.Authenticate(ctx, credential, loopback)
		is.NoErr(err)
		f.now = monday.Add(time.Hour)
		_, err = f.Authenticate(ctx, credential, loopback)
		refused(t, err)

		_, err = f.Authenticate(ctx, other, loopback)
		is.NoErr(err)
		is.NoErr(f.DeleteToken(f.as(t), own, strings.ToUpper(strings.Split(other, ".")[2]))) // UUIDs ignore case
		_, err = f.Authenticate(ctx, other, loopback)
		refused(t, err) // at once
	})
}

func TestSessionOfAnotherTenant(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		_, err := f.Authenticate(t.Context(), strings.Replace(f.login(t).Token, "acme", "evil", 1), loopback)
		refused(t, err)
	})
}

func TestTokensAreTheCallersAlone(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		made, _ := f.token(t, sessions.NewToken{})
		for _, other := range []actor.Actor{
			{Tenant: "acme", User: "kim", Superuser: true}, {Tenant: "evil", User: "jo", Superuser: true},
		} {
			ctx := actor.With(t.Context(), other)
			page, err := f.Tokens(ctx, own, paging.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(page.Total, 0)
			is.Equal(errs.CodeOf(f.DeleteToken(ctx, own, made.ID)), errs.NotFound)
		}
		for _, id := range []string{"", "x", "a\x00b", "\xff", strings.Repeat("x", 10000)} {
			is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), own, id)), errs.NotFound)
		}
		is.Equal(f.listed(t).ID, made.ID)
		_, err := f.Tokens(t.Context(), own, paging.Query{})
		is.Equal(errs.CodeOf(err), errs.Unauthenticated) // no actor, no query
		is.Equal(errs.CodeOf(f.DeleteToken(t.Context(), own, made.ID)), errs.Unauthenticated)
		_, _, err = f.CreateToken(t.Context(), own, sessions.NewToken{})
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	})
}

func TestCIDR(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		for _, c := range []struct {
			cidr, from string
			ok         bool
		}{
			{"192.0.2.0/24", "192.0.2.255", true},
			{"192.0.2.0/24", "192.0.3.0", false},
			{"192.0.2.0/24", "::ffff:192.0.2.1", true}, // as a socket for both kinds names it
			{"192.0.2.0/24", "::ffff:192.0.3.1", false},
			{"192.0.2.7/32", "192.0.2.7", true},
			{"192.0.2.7/24", "192.0.2.9", true}, // bits behind the prefix do not count
			{"::ffff:192.0.2.0/120", "192.0.2.9", true},
			{"::ffff:192.0.2.0/120", "192.0.3.9", false},
			{"0.0.0.0/0", "192.0.2.1", true},
			{"0.0.0.0/0", "2001:db8::1", false},
			{"2001:db8::/32", "2001:db8:ffff::1", true},
			{"2001:db8::/32", "2001:db9::1", false},
			{"fe80::/10", "fe80::1%eth0", true},
			{"::/0", "2001:db8::1", true},
			{"::/0", "192.0.2.1", false},
			{"0.0.0.0/0", "", false}, // no known address
			{"::/0", "", false},
		} {
			t.Run(c.cidr+" from "+c.from, func(t *testing.T) {
				is := is.New(t)
				var from netip.Addr
				if c.from != "" {
					from = netip.MustParseAddr(c.from)
				}
				_, credential := f.token(t, sessions.NewToken{Restrict: ptr("cidr"), CIDR: ptr(c.cidr)})
				_, err := f.Authenticate(t.Context(), credential, from)
				if c.ok {
					is.NoErr(err)
				} else {
					refused(t, err)
				}
			})
		}
	})
}

func TestNewTokenIsChecked(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		for name, bad := range map[string]sessions.NewToken{
			"notes":            {Notes: ptr(strings.Repeat("ü", 1001))},
			"notes NUL":        {Notes: ptr("a\x00b")},
			"notes no UTF-8":   {Notes: ptr("\xff")},
			"restrict":         {Restrict: ptr("host"), CIDR: ptr("::/0")},
			"no cidr":          {Restrict: ptr("cidr")},
			"no restrict":      {CIDR: ptr("::/0")},
			"cidr":             {Restrict: ptr("cidr"), CIDR: ptr("192.0.2.1")},
			"cidr 33":          {Restrict: ptr("cidr"), CIDR: ptr("192.0.2.1/33")},
			"cidr empty":       {Restrict: ptr("cidr"), CIDR: ptr("")},
			"expired":          {ExpiresAt: ptr(monday)},
			"zero":             {ExpiresAt: ptr(time.Time{})},
			"year 10000":       {ExpiresAt: ptr(time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600)))},
			"far year":         {ExpiresAt: ptr(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC))},
			"now but for nsec": {ExpiresAt: ptr(monday.Add(999))},
		} {
			t.Run(name, func(t *testing.T) {
				_, _, err := f.CreateToken(f.as(t), own, bad)
				is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
			})
		}
		f.token(t, sessions.NewToken{
			ExpiresAt: ptr(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)),
			Notes:     ptr(strings.Repeat("ü", 1000)),
		})
		is.New(t).Equal(f.listed(t).ExpiresAt.Year(), 9999)
	})
}

func TestOddCredentialsReachNoDatabase(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		good := f.login(t).Token
		_, token := f.token(t, sessions.NewToken{})
		for _, odd := range []string{
			"", ".", "..", "...", "tcs",
			"tcs..", "tcs.acme.", "tcs..secret", "tct.acme..secret", "tct.acme.id.", "tct.acme.id",
			good + ".x", "." + good, good + " ", " " + good, good + "\n", strings.ToUpper(good[:3]) + good[3:],
			token + ".x", "tcs" + token[3:], "tct" + good[3:],
			"tcx" + good[3:], "tcs.ac\x00me.secret", "tcs.acme.\xff", "tcs.acme.sécret",
			"tct.acme.' OR 1=1 --.secret", "tcs.%.secret",
			"tcs.acme." + strings.Repeat("x", 1<<20), strings.Repeat(".", 1<<20),
			"Bearer " + good, "eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
		} {
			_, err := f.Authenticate(t.Context(), odd, loopback)
			refused(t, err)
		}
		is.New(t).Equal(f.spy.lookups.Load(), int64(0))
	})
}

func TestCounters(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		made, credential := f.token(t, sessions.NewToken{Restrict: ptr("cidr"), CIDR: ptr("127.0.0.0/8")})
		f.now = monday.Add(time.Minute)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 10 {
					_, err := f.Service.Authenticate(ctx, credential, loopback)
					if err != nil {
						t.Error(err)
					}
				}
				if _, err := f.Service.Authenticate(ctx, credential, netip.MustParseAddr("192.0.2.1")); err == nil {
					t.Error("admitted from another place")
				}
				if _, err := f.Tokens(f.as(t), own, paging.Query{Limit: 1}); err != nil { // writes meanwhile
					t.Error(err)
				}
			})
		}
		wg.Wait()
		_, err := f.Authenticate(ctx, credential+"x", loopback) // a wrong secret is nobody's use
		refused(t, err)
		got := f.listed(t)
		is.Equal(got.Requests, int64(100))
		is.Equal(got.Blocked, int64(10))
		is.Equal(got.LastAccessedAt, ptr(f.now))
		is.Equal(got.UpdatedAt, made.UpdatedAt) // a use is no change
	})
}

func TestFailedFlushKeepsCounters(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		_, credential := f.token(t, sessions.NewToken{})
		use := func() {
			_, err := f.Authenticate(ctx, credential, loopback)
			is.NoErr(err)
		}
		use()
		f.spy.fail = errors.New("away")
		is.True(errors.Is(f.Unchecked().FlushAll(ctx), f.spy.fail))
		use()
		_, err := f.Tokens(f.as(t), own, paging.Query{Limit: 1})
		is.True(errors.Is(err, f.spy.fail))
		f.spy.fail = nil
		is.NoErr(f.Unchecked().FlushAll(ctx))
		f.spy.fail = errors.New("nothing is left to write")
		is.NoErr(f.Unchecked().FlushAll(ctx))
		is.Equal(f.listed(t).Requests, int64(2))
	})
}

// TestFailedFlushIsOneTenants: the counters of the others are written.
func TestFailedFlushIsOneTenants(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		for _, tenant := range []string{"acme", "evil"} {
			_, credential, err := f.CreateToken(
				actor.With(ctx, actor.Actor{Tenant: tenant, User: "jo", Superuser: true}), own, sessions.NewToken{},
			)
			is.NoErr(err)
			_, err = f.Authenticate(ctx, credential, loopback)
			is.NoErr(err)
		}
		f.spy.fail, f.spy.fails = errors.New("away"), "evil"
		is.True(errors.Is(f.Unchecked().FlushAll(ctx), f.spy.fail))
		f.spy.fails = "acme"
		is.NoErr(f.Unchecked().FlushAll(ctx)) // evil's are kept, nothing is left of acme's
		f.spy.fail = nil
		is.Equal(f.listed(t).Requests, int64(1))
	})
}

// TestTokensOfRefuses: a type that has no tokens here, and fields of another type.
func TestTokensOfRefuses(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		const types = "type must be one of app-view, personal, webhook"
		scim := sessions.TokensOf{Type: sessions.SCIM, EntityID: "a"} // the fixture has no domains
		swapped := sessions.TokensOf{Type: "a", EntityID: sessions.AppView}
		ofApp := sessions.TokensOf{Type: sessions.Personal, EntityID: "a"}
		for name, c := range map[string]struct {
			of    sessions.TokensOf
			n     sessions.NewToken
			found bool // the other methods do not refuse it
			want  string
		}{
			"no type":  {want: types},
			"not here": {of: scim, want: types},
			"swapped":  {of: swapped, want: types},
			"entity":   {of: ofApp, want: `entityId must be empty for tokens of the type "personal"`},
			"read-only": {
				of: viewsOf("a"), n: sessions.NewToken{ReadOnly: true}, found: true,
				want: `readOnly is only for tokens of the type "personal"`,
			},
			"roles": {
				of: own, n: sessions.NewToken{Roles: []string{"editor"}}, found: true,
				want: `roles and access are only for tokens of the type "app-view"`,
			},
			"access": {
				of: hooksOf("a"), n: sessions.NewToken{Access: []string{"GET colors"}}, found: true,
				want: `roles and access are only for tokens of the type "app-view"`,
			},
		} {
			t.Run(name, func(t *testing.T) {
				is := is.New(t)
				_, _, err := f.CreateToken(f.as(t), c.of, c.n)
				is.Equal(errs.CodeOf(err), errs.Invalid)
				is.Equal(errs.MessageOf(err), c.want)
				if c.found {
					return
				}
				_, err = f.Tokens(f.as(t), c.of, paging.Query{})
				is.Equal(errs.MessageOf(err), c.want)
				_, err = f.Token(f.as(t), c.of, "x")
				is.Equal(errs.MessageOf(err), c.want)
				is.Equal(errs.MessageOf(f.DeleteToken(f.as(t), c.of, "x")), c.want)
			})
		}
	})
}

// TestTokensOfTypesAreSeparate: a token is found with its type and entity only, and by its tenant.
func TestTokensOfTypesAreSeparate(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		all := []sessions.TokensOf{own, viewsOf("a"), viewsOf("b"), hooksOf("a"), hooksOf("b")}
		made := map[sessions.TokensOf]string{}
		for _, of := range all {
			x, credential, err := f.CreateToken(f.as(t), of, sessions.NewToken{})
			is.NoErr(err)
			is.Equal(credential == "", of.Type == sessions.Webhook)
			made[of] = x.ID
		}
		evil := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "jo", Superuser: true})
		for _, of := range all {
			for _, other := range all {
				_, err := f.Token(f.as(t), other, made[of])
				is.Equal(err == nil, of == other)
				if of != other {
					is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), other, made[of])), errs.NotFound)
				}
			}
			_, err := f.Token(evil, of, made[of])
			is.Equal(errs.CodeOf(err), errs.NotFound)
			is.Equal(errs.CodeOf(f.DeleteToken(evil, of, made[of])), errs.NotFound)
			page, err := f.Tokens(f.as(t), of, paging.Query{})
			is.NoErr(err)
			is.Equal(len(page.Rows), 1)
			is.Equal(page.Rows[0].ID, made[of])
			is.NoErr(f.DeleteToken(f.as(t), of, made[of]))
		}
	})
}
