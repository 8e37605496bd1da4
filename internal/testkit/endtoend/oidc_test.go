package endtoend_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

func oidcConfig(p *oidctest.Provider) map[string]any {
	return map[string]any{"issuer": p.URL, "clientID": oidctest.ClientID, "clientSecret": oidctest.Secret}
}

// TestOIDC: a browser follows the login page's link to the provider and returns with a session.
func TestOIDC(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, w, jo := is.New(t), oidctest.New(t), newWorld(t, open), newClient(t)
		id := w.admin.domain(t, "Work", "OIDC", oidcConfig(p))
		is.True(!strings.Contains(w.admin.must(t, "GET", "/api/domains-list", "").body, "s3cr"))
		link := read[struct{ Public struct{ SSO string } }](
			t, w.admin.must(t, "GET", "/api/domains/work", ""),
		).Public.SSO

		is.Equal(jo.who(t, w), "")
		a := jo.get(t, link+"&returnTo=/api/session%3Fx=1")
		is.Equal(read[struct{ User string }](t, a).User, "jo")
		is.Equal(jo.at.String(), w.url+"/api/session?x=1")
		made := w.admin.user(t, "jo")
		is.Equal(made, user{
			Username: "jo", Domain: id, Email: "jo@example.com",
			DisplayName: "Jo Doe", SourceID: p.URL + "#0017", Enabled: true,
		})

		a = newClient(t).get(t, link) // without a page to return to, the answer is the token
		is.Equal(a.status, http.StatusOK)
		bearer := &caller{w, read[struct{ Token string }](t, a).Token}
		is.Equal(bearer.who(t), "jo")
		is.True(strings.HasPrefix(a.header.Get("Set-Cookie"), "sid=tcs.acme.") &&
			strings.Contains(a.header.Get("Set-Cookie"), "; HttpOnly; SameSite=Lax"))
		is.Equal(len(w.admin.users(t, id)), 1) // the same user
		for _, elsewhere := range []string{
			"//evil.example", "https://evil.example/", `/\evil.example`, "/\t/evil.example",
			"javascript:alert(1)", "evil",
		} {
			newClient(t).get(t, w.sso("acme", id, elsewhere)).refused(t, http.StatusBadRequest)
		}

		// A new name and address at the provider change the user.
		report := bearer.do(t, "POST", "/api/reports", `{"name": "Sales"}`)
		is.Equal(report.status, http.StatusForbidden) // a login does not grant rights
		key := read[struct{ Key string }](t, bearer.must(t, "POST", "/api/tokens", `{}`)).Key
		p.Be(oidctest.Object{
			"sub":                "0017",
			"preferred_username": "joanna",
			"name":               "Joanna Doe",
			"email":              "joanna@example.com",
		})
		is.Equal(read[struct{ User string }](t, newClient(t).get(t, w.sso("acme", id, "/api/session"))).User, "joanna")
		made.Username, made.Email, made.DisplayName = "joanna", "joanna@example.com", "Joanna Doe"
		is.Equal(w.admin.user(t, "joanna"), made)
		is.Equal(len(w.admin.users(t, id)), 1)
		is.Equal(jo.who(t, w), "joanna") // the old session has the new name
		is.Equal((&caller{w, key}).who(t), "joanna")

		w.admin.must(t, "PUT", "/api/users/joanna", `{"enabled": false}`)
		is.Equal(jo.who(t, w), "")
		out := newClient(t)
		out.get(t, w.sso("acme", id, "/api/session")).stranger(t)
		is.Equal(out.who(t, w), "")
		w.admin.must(t, "PUT", "/api/users/joanna", `{"enabled": true}`)
		is.Equal(jo.who(t, w), "") // the session has ended

		w.login(t, "acme", id, "joanna", "any").stranger(t) // the domain has no passwords
		back := jo.sentTo(t, link, "/callback")
		p.Close()
		said := jo.get(t, back.String()).refused(t, http.StatusBadGateway)
		config := oidcConfig(p)
		config["scopes"] = []string{"openid"} // cached metadata of the previous provider is not used
		w.admin.reconfigure(t, id, "OIDC", config)
		is.Equal(newClient(t).get(t, link).refused(t, http.StatusBadGateway), said)
		is.True(!strings.Contains(said, "127.0.0.1"))
	})
}

// TestOIDCTrial: a configuration that is not saved has no id, so the test shows no address to
// register.
func TestOIDCTrial(t *testing.T) {
	is, p, w := is.New(t), oidctest.New(t), newWorld(t, dbtest.SQLite)
	body, err := json.Marshal(map[string]any{"type": "OIDC", "config": oidcConfig(p)})
	is.NoErr(err)
	text := w.admin.must(t, "POST", "/api/domains/_test", string(body)).body
	is.True(strings.Contains(text, "/api/login/DOMAIN/callback?tenant=acme"))
	w.admin.domain(t, "Work", "OIDC", oidcConfig(p))
	text = w.admin.must(t, "POST", "/api/domains/work/_test", "").body
	is.True(strings.Contains(text, "/api/login/work/callback?tenant=acme"))
}

// TestOIDCAttacks: a login can only be completed once, by the browser that began it, in the same
// tenant and domain.
func TestOIDCAttacks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, w := is.New(t), oidctest.New(t), newWorld(t, open)
		id := w.admin.domain(t, "Work", "OIDC", oidcConfig(p))
		second := w.admin.domain(t, "Second", "OIDC", oidcConfig(p))
		eve := w.in(t, "evil", "local", "admin", password)
		is.Equal(eve.domain(t, "Work", "OIDC", oidcConfig(p)), id)
		start := func(c *client, domain string) *url.URL {
			t.Helper()
			return c.sentTo(t, w.sso("acme", domain, "/api/session"), "/callback")
		}

		jo, other := newClient(t), newClient(t)
		back := start(jo, id)
		other.get(t, back.String()).stranger(t) // another browser, without a login,
		start(other, id)
		other.get(t, back.String()).stranger(t) // and with one
		is.Equal(other.who(t, w), "")
		is.Equal(read[struct{ User string }](t, jo.get(t, back.String())).User, "jo") // which has not used up the login
		jo.get(t, back.String()).stranger(t)                                          // only once
		is.Equal(jo.who(t, w), "jo")

		jo = newClient(t)
		back = start(jo, id)
		state := back.Query().Get("state")
		for _, bad := range []string{
			"", ".", "acme." + state, "." + state, state[1:], state + "x", strings.ToUpper(state),
			strings.Repeat("x", 10_000),
		} {
			jo.get(t, altered(back, "state", bad)).stranger(t)
		}
		elsewhere := *back
		elsewhere.Path = "/api/login/" + second + "/callback"
		jo.get(t, elsewhere.String()).stranger(t)
		jo.get(t, back.String()).stranger(t) // the login is completed

		jo = newClient(t)
		stolen := start(newClient(t), id).Query().Get("code")
		jo.get(t, altered(start(jo, id), "code", stolen)).stranger(t) // the code of another login
		jo.get(t, altered(start(jo, id), "code", "")).stranger(t)
		jo.get(t, altered(start(jo, id), "error", "access_denied")).stranger(t)

		// Two logins of one browser are independent.
		one, two := start(jo, id), start(jo, second)
		jo.get(t, two.String()).stranger(t) // jo belongs to the other domain
		is.Equal(read[struct{ User string }](t, jo.get(t, one.String())).User, "jo")

		// A tenant's login returns to that tenant's address, whatever a header contains.
		jo = newClient(t)
		jo.get(t, altered(start(jo, id), "tenant", "evil")).stranger(t)
		jo.get(t, altered(start(jo, id), "tenant", "")).stranger(t)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, start(jo, id).String(), nil)
		is.NoErr(err)
		r.Header.Set("X-Tenant", "evil")
		is.Equal(read[struct{ Tenant string }](t, jo.send(t, r)).Tenant, "acme")
		is.Equal(len(eve.users(t, id)), 0)
		is.Equal(len(w.admin.users(t, id)), 1)

		p.Set(func() { p.EditClaims = func(c oidctest.Object) { c["nonce"] = "another" } })
		newClient(t).get(t, w.sso("acme", id, "/api/session")).stranger(t)
		p.Set(func() { p.EditClaims = func(c oidctest.Object) { c["aud"] = "another" } })
		newClient(t).get(t, w.sso("acme", id, "/api/session")).stranger(t)
		p.Set(func() { p.EditClaims = nil })
		is.True(strings.Contains(w.log.String(), "another login")) // the reason is only in the log
		for _, secret := range []string{oidctest.Secret, oidctest.AccessToken, stolen, state} {
			is.True(!strings.Contains(w.log.String(), secret))
		}
	})
}

// TestNeverLinked: a person of a provider does not become an existing user, except the one of the
// same person of that provider.
func TestNeverLinked(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, w := is.New(t), oidctest.New(t), newWorld(t, open)
		w.admin.must(
			t, "POST", "/api/users",
			`{"username": "boss", "email": "boss@example.com", "superuser": true, "password": "`+password+`"}`,
		)
		w.admin.must(
			t, "POST", "/api/users",
			`{"username": "boss@example.com", "superuser": true, "password": "`+password+`"}`,
		)
		id := w.admin.domain(t, "Work", "OIDC", oidcConfig(p))
		was := w.admin.users(t, "local")
		enter := func(person oidctest.Object) answer {
			t.Helper()
			p.Be(person)
			return newClient(t).get(t, w.sso("acme", id, "/api/session"))
		}
		session := func(a answer) (s struct {
			User      string
			Superuser bool
		}) {
			t.Helper()
			return read[struct {
				User      string
				Superuser bool
			}](t, a)
		}

		visitor := session(enter(oidctest.Object{
			"sub":                "1",
			"preferred_username": "visitor",
			"email":              "boss@example.com",
			"email_verified":     true,
		}))
		is.Equal(visitor.User, "visitor") // the same address does not matter
		is.True(!visitor.Superuser)
		for _, name := range []string{"boss", "BOSS", "boss@example.com", "admin"} { // nor does the name
			enter(oidctest.Object{
				"sub":                "2",
				"preferred_username": name,
				"email":              "boss@example.com",
				"email_verified":     true,
			}).stranger(t)
		}
		enter(oidctest.Object{"sub": "2", "preferred_username": "visitor"}).stranger(t) // of another person there
		is.Equal(session(enter(oidctest.Object{"sub": "1", "preferred_username": "boss"})).User, "visitor")
		is.Equal(session(enter(oidctest.Object{
			"sub":                "1",
			"preferred_username": "visitor",
			"email":              "other@example.com",
		})).User, "visitor")

		config := oidcConfig(p)
		config["claims"] = map[string]string{"username": "email"}
		w.admin.reconfigure(t, id, "OIDC", config)
		// an unverified address is not used as a name
		enter(oidctest.Object{"sub": "3", "email": "new@example.com"}).stranger(t)
		enter(oidctest.Object{"sub": "3", "email": "boss@example.com", "email_verified": true}).stranger(t)
		is.Equal(session(enter(oidctest.Object{
			"sub":            "3",
			"email":          "new@example.com",
			"email_verified": true,
		})).User, "new@example.com")
		is.Equal(w.admin.users(t, "local"), was)
		is.Equal(len(w.admin.users(t, id)), 2)
	})
}

// TestOIDCLogout: a browser that logs out is also logged out at the provider, and returns. A logout
// token of the provider ends its sessions, once over two servers of one database, in its tenant.
func TestOIDCLogout(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p := is.New(t), oidctest.New(t)
		db, key := open(t), tenantcontent.NewSecretKey()
		w, other := serve(t, db, key, nil), serve(t, db, key, nil)
		id := w.admin.domain(t, "Work", "OIDC", oidcConfig(p))
		eve := w.in(t, "evil", "local", "admin", password)
		is.Equal(eve.domain(t, "Work", "OIDC", oidcConfig(p)), id) // the same client of the same issuer

		jo := newClient(t)
		jo.get(t, w.sso("acme", id, "/api/session"))
		is.Equal(jo.who(t, w), "jo")
		r, err := http.NewRequestWithContext(
			t.Context(), http.MethodPost, w.url+"/api/logout",
			strings.NewReader("provider=true&returnTo=/healthz"),
		)
		is.NoErr(err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", w.url)
		is.Equal(jo.send(t, r).status, http.StatusOK)
		is.Equal(p.Count("/logout"), 1)
		is.Equal(jo.at.String(), w.url+"/healthz")
		is.Equal(jo.who(t, w), "")

		notice := func(w *world, tenant, token string) int {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/api/login/"+id+
				"/backchannel-logout?tenant="+tenant,
				strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
			is.NoErr(err)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return newClient(t).send(t, r).status
		}
		p.Set(func() { p.Person["sid"] = "s-1" })
		jo = newClient(t)
		jo.get(t, w.sso("acme", id, "/api/session"))
		p.Set(func() { p.Person["sid"] = "s-2" })
		two, hers := newClient(t), newClient(t)
		two.get(t, w.sso("acme", id, "/api/session"))
		hers.get(t, w.sso("evil", id, "/api/session"))
		first := p.LogoutToken(oidctest.Object{"sid": "s-1"})
		is.Equal(notice(w, "acme", first), http.StatusOK)
		is.Equal(jo.who(t, w), "")
		is.Equal(two.who(t, w), "jo")
		is.Equal(notice(w, "acme", first), http.StatusBadRequest) // only once,
		is.Equal(notice(other, "acme", first), http.StatusBadRequest)
		all := p.LogoutToken(nil)
		is.Equal(notice(other, "acme", all), http.StatusOK)
		is.Equal(notice(w, "acme", all), http.StatusBadRequest) // on any server
		is.Equal(hers.who(t, w), "jo")                          // of another tenant
		for range 200 {                                         // another server notices within a second
			if two.who(t, w) == "" {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		is.Equal(two.who(t, w), "")
		for _, secret := range []string{first, all, oidctest.Secret} {
			is.True(!strings.Contains(w.log.String()+other.log.String(), secret))
		}

		// The answer of a login can be used once, on any server.
		jo = newClient(t)
		back := jo.sentTo(t, w.sso("acme", id, "/api/session"), "/callback")
		again := *back
		again.Host = strings.TrimPrefix(other.url, "http://")
		cookies := jo.http.Jar.Cookies(back)
		is.True(len(cookies) > 0)
		is.Equal(read[struct{ User string }](t, jo.get(t, back.String())).User, "jo")
		thief := newClient(t)
		thief.http.Jar.SetCookies(&again, cookies)
		thief.get(t, again.String()).stranger(t)
	})
}
