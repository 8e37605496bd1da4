package view_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
)

var (
	now    = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	key    = bytes.Repeat([]byte("k"), 32)
	claims = view.Claims{
		Tenant: "acme", App: "0198d5a0-0000-7000-8000-000000000001", Credential: "s1",
		User: "jö:/ü", Role: "approver", Under: "d1", Scope: view.Viewer,
		Expires: now.Add(view.Lifetime),
	}
)

func tokens(t testing.TB, key []byte) *view.Tokens {
	t.Helper()
	made, err := view.NewTokens(key)
	is.New(t).NoErr(err)
	return made
}

func TestTokenKeepsAllClaims(t *testing.T) {
	is := is.New(t)
	all := tokens(t, key)
	token := all.Make(claims)
	is.Equal(url.PathEscape(token), token) // one segment, as it is
	is.True(strings.HasPrefix(token, "~"))
	got, err := all.Check(token, now)
	is.NoErr(err)
	is.Equal(got, claims)
	fieldtest.Full(t, got)

	for _, other := range []view.Claims{
		{
			Tenant:     "acme",
			App:        "a1",
			Credential: "s1",
			User:       "jo",
			Under:      "d1",
			Scope:      view.Viewer,
			Expires:    now.Add(view.Lifetime),
		},
		{
			Tenant:     "acme",
			App:        "a1",
			Credential: "t1",
			Under:      "d1",
			Scope:      view.Visitor,
			Expires:    now.Add(view.Lifetime),
		},
		{Tenant: "acme", App: "a1", User: "jo", Under: "d1", Scope: view.Hosted, Expires: now.Add(view.Lifetime)},
	} {
		got, err = all.Check(all.Make(other), now)
		is.NoErr(err)
		is.Equal(got, other)
	}
}

// TestTokenEndsWithoutUse: each use lets a token live for another hour, and other tokens none.
func TestTokenEndsWithoutUse(t *testing.T) {
	is := is.New(t)
	all, other := tokens(t, key), claims
	other.Credential = "s2"
	token, unused := all.Make(claims), all.Make(other)
	check := func(all *view.Tokens, token string, after time.Duration) string {
		got, err := all.Check(token, now.Add(after))
		if err != nil {
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.True(got.App != "") // so that it can be opened again
			return errs.MessageOf(err)
		}
		return ""
	}
	const ended = "The view of the app was not used for an hour: open the app again."
	for at := time.Duration(0); at < 3*time.Hour; at += view.Idle - 2*time.Minute {
		is.Equal(check(all, token, at), "")
	}
	is.Equal(check(all, unused, view.Idle), ended)
	is.Equal(check(all, unused, view.Idle-time.Second), "")
	is.Equal(check(all, unused, 2*view.Idle), ended)
	is.Equal(check(all, unused, 2*view.Idle), ended)           // asking is no use
	is.Equal(check(tokens(t, key), token, 2*time.Hour), ended) // another process does not know it
	is.Equal(check(tokens(t, key), token, view.Idle-time.Second), "")
}

func TestTokenExpires(t *testing.T) {
	all := tokens(t, key)
	for _, c := range []struct {
		name    string
		expires time.Duration
		want    string
	}{
		{"just", time.Second, ""},
		{"now", 0, "The view of the app has expired: open the app again."},
		{"long ago", -100 * time.Hour, "The view of the app has expired: open the app again."},
		{"too late", view.Lifetime + time.Second, "The link to the app's files is not valid: open the app again."},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			mine := claims
			mine.Expires = now.Add(c.expires)
			token := all.Make(mine)
			for at := mine.Expires.Add(-view.Lifetime); at.Before(now); at = at.Add(view.Idle / 2) {
				_, _ = all.Check(token, at)
			}
			got, err := all.Check(token, now)
			is.Equal(errs.MessageOf(err), c.want)
			is.Equal(got == mine, c.name != "too late") // claims of what has expired are told
			is.True(err == nil || errs.CodeOf(err) == errs.Unauthenticated)
		})
	}
}

func TestTokenNeedsItsClaims(t *testing.T) {
	all := tokens(t, key)
	for name, empty := range map[string]func(*view.Claims){
		"tenant":                           func(c *view.Claims) { c.Tenant = "" },
		"app":                              func(c *view.Claims) { c.App = "" },
		"credential":                       func(c *view.Claims) { c.Credential = "" },
		"user":                             func(c *view.Claims) { c.User = "" },
		"scope":                            func(c *view.Claims) { c.Scope = "" },
		"a scope":                          func(c *view.Claims) { c.Scope = "admin" },
		"a user that visitors do not have": func(c *view.Claims) { c.Scope = view.Visitor },
		"visitor's credential": func(c *view.Claims) {
			c.Scope, c.User, c.Credential = view.Visitor, "", ""
		},
		"what it is issued under": func(c *view.Claims) { c.Under = "" },
		"expiry":                  func(c *view.Claims) { c.Expires = time.Time{} },
		"expiry of a host's user": func(c *view.Claims) {
			c.Scope, c.Credential, c.Expires = view.Hosted, "", time.Time{}
		},
		"name of a host's user": func(c *view.Claims) {
			c.Scope, c.Credential, c.User = view.Hosted, "", ""
		},
		"no credential that hosts' users have": func(c *view.Claims) { c.Scope = view.Hosted },
	} {
		t.Run(name, func(t *testing.T) {
			c := claims
			empty(&c)
			_, err := all.Check(all.Make(c), now)
			is.New(t).Equal(errs.CodeOf(err), errs.Unauthenticated)
		})
	}
}

// TestTokenCannotBeForged: no other text than the one that was made is a token, and no other key
// makes one.
func TestTokenCannotBeForged(t *testing.T) {
	all := tokens(t, key)
	token := all.Make(claims)
	text, mac, _ := strings.Cut(token[1:], ".")
	bare := hmac.New(sha256.New, key) // the key, used for something else
	bare.Write([]byte(text))
	other := claims
	other.App = "0198d5a0-0000-7000-8000-000000000002"
	otherText, _, _ := strings.Cut(all.Make(other)[1:], ".")
	for name, forged := range map[string]string{
		"empty": "", "tilde": "~", "dot": "~.",
		"no tilde": token[1:], "two tildes": "~" + token, "no MAC": "~" + text + ".", "no dot": "~" + text + mac,
		"no claims": "~." + mac, "cut": token[:len(token)-1], "longer": token + "A",
		"padded": token + "=", "newline": token + "\n", "space": token + " ",
		"standard alphabet": strings.NewReplacer("-", "+", "_", "/").Replace(token) + "/",
		"another's claims":  "~" + otherText + "." + mac,
		"another key":       tokens(t, bytes.Repeat([]byte("x"), 32)).Make(claims),
		"plain HMAC":        "~" + text + "." + base64.RawURLEncoding.EncodeToString(bare.Sum(nil)),
		"long":              "~" + strings.Repeat("A", 1<<20) + "." + mac, "not UTF-8": "~\xff.\xff",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := all.Check(forged, now)
			is.New(t).Equal(errs.CodeOf(err), errs.Unauthenticated)
			is.New(t).Equal(got, view.Claims{})
		})
	}
	for i := range token {
		for _, c := range []byte("A_~.=%\x00") {
			if token[i] == c {
				continue
			}
			if _, err := all.Check(token[:i]+string(rune(c))+token[i+1:], now); err == nil {
				t.Fatalf("byte %d may be %q", i, c)
			}
		}
	}
}

func TestClaimsAreForOneAppOfOneTenant(t *testing.T) {
	is := is.New(t)
	is.True(claims.For("acme", claims.App))
	is.True(!claims.For("evil", claims.App))
	is.True(!claims.For("acme", "0198d5a0-0000-7000-8000-000000000002"))
	is.True(!view.Claims{}.For("", ""))
}

func TestKeyIsLongAndNotPrinted(t *testing.T) {
	is := is.New(t)
	_, err := view.NewTokens(key[:31])
	is.Equal(errs.CodeOf(err), errs.Internal)
	all := tokens(t, key)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		is.Equal(fmt.Sprintf(verb, all), "view.Tokens")
		is.Equal(fmt.Sprintf(verb, *all), "view.Tokens")
	}
}

func FuzzCheck(f *testing.F) {
	all := tokens(f, key)
	token := all.Make(claims)
	for _, s := range []string{"", "~", "~.", token, token[1:], token + "A", "~e30.AA"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := all.Check(s, now); err == nil && (s != token || c != claims) {
			t.Fatalf("%q is a token of %v", s, c)
		}
	})
}
