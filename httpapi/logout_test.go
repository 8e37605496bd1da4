package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// enter logs somebody in at the provider and returns the session's credential.
func (w *world) enter(t testing.TB, who string) string {
	t.Helper()
	params, cookie := w.handshake(t, "state", who)
	return read[struct{ Token string }](t, w.must(t, "", "GET", "/api/login/gate/callback?"+params, "", cookie)).Token
}

// alive reports whether a session is.
func (w *world) alive(t testing.TB, token string) bool {
	t.Helper()
	return w.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+token).status == 200
}

// TestLogoutAtProvider: whoever logged in at a provider logs out there, too, and comes back to
// where they like.
func TestLogoutAtProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		stockDomains(t, w, map[string]string{})
		type answer struct{ Location *string }
		out := func(token, query, body string, headers ...string) (*url.URL, []*http.Cookie, int) {
			t.Helper()
			a := w.do(t, "", "POST", "/api/logout"+query, body, append(
				headers, "Cookie: sid="+token, "Sec-Fetch-Site: same-origin",
			)...)
			to := a.header.Get("Location")
			if a.status == 200 && a.body != "" {
				if l := read[answer](t, a).Location; l != nil {
					to = *l
				}
			}
			u, err := url.Parse(to)
			is.NoErr(err)
			return u, (&http.Response{Header: a.header}).Cookies(), a.status
		}
		back := func(to *url.URL, cookies []*http.Cookie, more string) (string, string) {
			t.Helper()
			var header []string
			if len(cookies) > 0 {
				header = append(header, "Cookie: "+cookies[len(cookies)-1].Name+"="+cookies[len(cookies)-1].Value)
			}
			a := w.must(t, "", "GET", strings.TrimPrefix(
				to.Query().Get("back"), baseURL,
			)+"&state="+to.Query().Get("state")+more, "", header...)
			return a.header.Get("Location"), a.body
		}

		sue := w.enter(t, "sue")
		to, cookies, status := out(sue, "?provider=true&returnTo=/apps%3Fx%3D1", "")
		is.Equal(status, 200)
		is.Equal(to.Query().Get("hint"), "token of sue")
		is.Equal(to.Query().Get("back"), baseURL+"/api/login/gate/loggedout?tenant=acme")
		is.True(!w.alive(t, sue))
		is.Equal(len(cookies), 2)
		is.Equal(cookies[0].Name+cookies[0].Value, "sid")
		is.True(cookies[1].HttpOnly && cookies[1].Secure && cookies[1].Path == "/api/login/")
		where, _ := back(to, cookies, "")
		is.Equal(where, baseURL+"/apps?x=1")
		for _, lost := range [][]*http.Cookie{nil, {{Name: cookies[1].Name, Value: "x"}}} {
			// another browser, and one that invents a cookie
			where, page := back(to, lost, "")
			is.Equal(where, "")
			is.True(strings.Contains(page, "<h1>You are logged out</h1>"))
		}
		where, _ = back(to, cookies, "&no=1") // the provider's answer is not good
		is.Equal(where, "")
		params, login := w.handshake(t, "state", "sue") // the cookie of a login is none of a logout
		query, err := url.ParseQuery(params)
		is.NoErr(err)
		a := w.must(t, "", "GET", "/api/login/gate/loggedout?tenant=acme&state="+query.Get("state"), "", login)
		is.Equal(a.status, 200)

		// A form is sent on; nothing of it is in the log.
		for _, form := range [][2]string{{"", "provider=true&returnTo=/apps"}, {"?provider=true&returnTo=/apps", ""}} {
			sue = w.enter(t, "sue")
			to, cookies, status = out(sue, form[0], form[1], urlencoded)
			is.Equal(status, 303)
			is.Equal(to.Host, "provider.example")
			where, _ = back(to, cookies, "")
			is.Equal(where, baseURL+"/apps")
			is.True(!w.alive(t, sue))
		}
		for _, secret := range []string{"token of sue", to.Query().Get("state"), cookies[1].Value} {
			is.True(!strings.Contains(w.log.String(), secret))
		}
		is.True(!strings.Contains(w.dump(t, "acme"), "token of"))

		// Where there is nothing to log out of, the session ends here.
		nell := w.enter(t, "nell") // whose provider is away
		to, cookies, status = out(nell, "?provider=true", "")
		is.Equal(to.String(), "")
		is.Equal(len(cookies), 1)
		is.Equal(status, 200)
		is.True(!w.alive(t, nell))
		is.True(strings.Contains(
			w.log.String(), `msg="no logout at the provider" reason="The provider is away.: it is off"`,
		))
		mia := w.token(t, "mia")
		to, _, status = out(mia, "?provider=true", "provider=true", urlencoded)
		is.Equal(status, 303)
		is.Equal(to.String(), baseURL+"/api/login/local/loggedout")
		is.True(!w.alive(t, mia))
		w.pass(0)
		to, _, _ = out(w.token(t, "mia"), "", "provider=true&returnTo=/apps", urlencoded)
		is.Equal(to.String(), baseURL+"/apps")
		sue = w.enter(t, "sue")
		w.must(t, "admin", "PUT", "/api/domains/gate", `{"id": "gate", "type": "gate", "config": null}`)
		to, _, _ = out(sue, "?provider=true", "")
		is.Equal(to.String(), "")
		is.True(!w.alive(t, sue))
		w.must(t, "admin", "PUT", "/api/domains/gate", `{"id": "gate", "type": "gate", "config": {}}`)

		// What is refused ends nothing.
		sue = w.enter(t, "sue")
		for _, bad := range []string{
			"?provider=yes", "?provider=true&returnTo=//evil.example",
			"?provider=true&returnTo=https://evil.example/", "?provider=true&returnTo=x",
		} {
			_, _, status = out(sue, bad, "")
			is.Equal(status, 400)
		}
		is.Equal(
			w.do(
				t, "", "POST", "/api/logout?provider=true", "", "Cookie: sid="+sue,
				"Sec-Fetch-Site: cross-site",
			).status,
			403,
		)
		is.Equal(w.do(t, "", "POST", "/api/logout?provider=true", "").status, 401)
		is.True(w.alive(t, sue))
		_, cookies, status = out(sue, "?provider=false", "")
		is.Equal(status, 200)
		is.Equal(len(cookies), 1)
		is.True(!w.alive(t, sue))
	})
}

// TestNoticeOfLogout: a provider that says so ends the sessions that began there with all that
// hangs on them, once, and no others.
func TestNoticeOfLogout(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		stockDomains(t, w, map[string]string{})
		w.must(t, "eve", "POST", "/api/domains", `{"name": "Gate", "type": "gate", "config": {}}`)
		notice := func(query, form string) (int, string) {
			t.Helper()
			a := w.do(t, "", "POST", "/api/login/gate/backchannel-logout"+query, form, urlencoded)
			is.Equal(a.header.Get("Cache-Control"), "no-store")
			return a.status, a.body
		}
		ends := func(form string) {
			t.Helper()
			status, body := notice("?tenant=acme", form)
			is.Equal(status, 200)
			is.Equal(body, "")
		}
		sue, other, tom := w.enter(t, "sue"), w.enter(t, "sue"), w.enter(t, "tom")
		key := read[struct{ Key string }](
			t, w.must(t, "", "POST", "/api/tokens", `{}`, "Authorization: Bearer "+sue),
		).Key
		app := sales(t, w, "Sales")
		w.must(t, "admin", "PUT", "/api/teams/"+teamID+"/members/sue", `{"role": "member"}`)
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/sue", `{"accessLevel": 1, "roles": ["viewer"]}`)
		page := w.must(t, "", "GET", "/api/apps/"+app+"/view", "", "Authorization: Bearer "+sue)
		base := baseOf.FindStringSubmatch(page.body)[1]
		w.must(t, "", "GET", base+"a.js", "")
		is.True(w.alive(t, sue))

		for _, bad := range []string{"", "id=2", "logout_token=x"} {
			status, body := notice("?tenant=acme", bad)
			is.Equal(status, 400)
			is.Equal(
				body,
				`{"error":"invalid_request","error_description":"The logout token is not good, or cannot be `+
					`checked at the moment."}`,
			)
		}
		is.True(strings.Contains(
			w.log.String(), `msg="notice of a logout refused" reason="it says nobody" tenant=acme domain=gate`,
		))
		status, _ := notice("?tenant=evil", "who=sue&id=1") // which has such a domain, but not her
		is.Equal(status, 200)
		ends("who=&id=2") // nobody
		is.True(w.alive(t, sue) && w.alive(t, other))

		ends("who=sue&id=1")
		is.True(!w.alive(t, sue) && !w.alive(t, other) && w.alive(t, tom))
		is.Equal(w.do(t, "", "GET", base+"a.js", "").status, 401) // the page that she had opened
		is.True(w.alive(t, key))                                  // an API token is no session
		sue = w.enter(t, "sue")
		status, _ = notice("?tenant=acme", "who=sue&id=1")
		is.Equal(status, 400) // once
		is.True(w.alive(t, sue))
		ends("who=sue&id=3&session=at-tom")
		is.True(w.alive(t, sue) && w.alive(t, tom))
		ends("who=&id=4&session=at-tom&session=at-kim")
		is.True(w.alive(t, sue) && !w.alive(t, tom))

		for _, path := range []string{"/api/login/local/", "/api/login/books/", "/api/login/none/"} {
			is.Equal(
				w.do(t, "", "POST", path+"backchannel-logout?tenant=acme", "who=sue&id=9", urlencoded).message(t),
				"There is no single sign-on here.",
			)
		}
	})
}

// TestDeletedProvider: who has logged in at a domain's provider is logged out when the domain is
// deleted, also a user of another one.
func TestDeletedProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		stockDomains(t, w, map[string]string{})
		w.must(t, "eve", "POST", "/api/domains", `{"name": "Gate", "type": "gate", "config": {}}`)
		zoe := read[struct{ Token string }](
			t,
			w.must(t, "", "POST", "/api/login/books", `{"tenant": "acme", "username": "zoe", "password": "hush-hush"}`),
		).Token
		w.must(
			t, "admin", "PUT", "/api/domains/gate",
			`{"id": "gate", "type": "gate", "config": {"accounts": "books"}}`,
		)
		byGate := w.enter(t, "zoe")
		is.True(w.alive(t, zoe) && w.alive(t, byGate))
		w.must(t, "eve", "DELETE", "/api/domains/gate", "") // of another tenant
		w.must(t, "admin", "DELETE", "/api/domains/gone", "")
		is.True(w.alive(t, byGate))
		w.must(t, "admin", "DELETE", "/api/domains/gate", "")
		is.True(!w.alive(t, byGate))
		is.True(w.alive(t, zoe)) // who has logged in at the directory
	})
}
