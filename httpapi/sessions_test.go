package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const login = `{"username": "dana", "password": "open sesame", "tenant": "acme"}`

// cookie logs dana in and returns the cookie.
func (w *world) cookie(t testing.TB) *http.Cookie {
	t.Helper()
	a := w.must(t, "", "POST", "/api/login/local", login)
	c, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	is.New(t).NoErr(err)
	return c
}

// TestPasswordAndTokens: a new password leaves API tokens alive and says how many, or revokes them
// at once.
func TestPasswordAndTokens(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	type answer struct{ RevokedTokens, LiveTokens int }
	var secret string
	for range 2 {
		secret = read[map[string]any](t, w.must(t, "dana", "POST", "/api/tokens", `{"notes": "CLI"}`))["key"].(string)
	}
	put := func(query string) answer {
		return read[answer](
			t, w.must(t, "admin", "PUT", "/api/users/dana/password"+query, `{"password": "a new password"}`),
		)
	}
	before := put("")
	is.Equal(before.RevokedTokens, 0)
	is.True(before.LiveTokens >= 2)
	is.Equal(put("?revokeTokens=false"), before)
	is.Equal(w.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+secret).status, 200)
	is.Equal(put("?revokeTokens=true"), answer{RevokedTokens: before.LiveTokens})
	is.Equal(w.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+secret).status, 401)
	refused := w.do(t, "admin", "PUT", "/api/users/dana/password?revokeTokens=true", `{"password": "short"}`)
	is.Equal(refused.status, 400)
}

// TestDisabledUsersAreLoggedOut: what a user was logged in with ends with the user, and does not
// come back.
func TestDisabledUsersAreLoggedOut(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		secret := read[map[string]any](t, w.must(t, "dana", "POST", "/api/tokens", `{"notes": "CLI"}`))["key"].(string)
		cookie := w.cookie(t)
		status := func() [2]int {
			return [2]int{
				w.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+secret).status,
				w.do(t, "", "GET", "/api/session", "", "Cookie: "+cookie.Name+"="+cookie.Value).status,
			}
		}
		is.Equal(status(), [2]int{200, 200})
		w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": true}`)
		is.Equal(status(), [2]int{200, 200})
		w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": false}`)
		is.Equal(status(), [2]int{401, 401})
		w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": true}`)
		is.Equal(status(), [2]int{401, 401})
		is.Equal(w.do(t, "", "POST", "/api/login/local", login).status, 200)
	})
}

// TestMoves: a user who is moved to another domain can log in there, or the answer says why not.
func TestMoves(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		w.must(
			t, "admin", "POST", "/api/domains",
			`{"name": "Books", "type": "paper", "config": {"secret": "hush-hush"}}`,
		)
		w.must(
			t, "admin", "POST", "/api/domains",
			`{"name": "More", "type": "paper", "config": {"secret": "more-hush"}}`,
		)
		w.must(t, "admin", "POST", "/api/domains", `{"name": "Empty", "type": "gate"}`)
		w.must(t, "admin", "POST", "/api/domains", `{"name": "Door", "type": "gate", "config": {"accounts": "books"}}`)
		enter := func(domain, password string) int {
			return w.do(
				t, "", "POST", "/api/login/"+domain,
				fmt.Sprintf(`{"tenant": "acme", "username": "zoe", "password": %q}`, password),
			).status
		}
		is.Equal(enter("books", "hush-hush"), 200)
		type user struct {
			Domain           string
			Source, SourceID *string
		}
		move := func(body string) answer { return w.do(t, "admin", "PUT", "/api/users/zoe", body) }
		// what was read is sent back
		moved := read[user](t, move(`{"domain": "more", "source": "paper", "sourceId": "z1"}`))
		is.Equal(moved, user{Domain: "more"})
		is.Equal(enter("books", "hush-hush"), 401)
		is.Equal(enter("more", "more-hush"), 200)
		is.Equal(
			w.do(t, "admin", "PUT", "/api/users/zoe", `{"domain": "books", "sourceId": "z1-of-books"}`).status,
			409,
		)
		anyway := func(who, body string) answer {
			return w.do(t, "admin", "PUT", "/api/users/"+who+"?check=false", body)
		}
		// a tie that is set stays
		is.Equal(read[user](t, anyway("zoe", `{"domain": "books", "sourceId": "z1-of-books"}`)).SourceID != nil, true)
		is.Equal(enter("books", "hush-hush"), 401)
		w.must(t, "admin", "PUT", "/api/users/zoe", `{"sourceId": null}`)
		is.Equal(enter("books", "hush-hush"), 200)

		for body, want := range map[string]answer{
			`{"domain": "empty"}`: {status: 409, body: "The domain empty has no configuration."},
			`{"domain": "door"}`:  {status: 409, body: "it logs in those of the domain books"},
			`{"domain": "local"}`: {status: 400, body: "domain cannot become local without a password"},
			`{"domain": "none"}`:  {status: 400, body: "domain must be the id of a domain"},
		} {
			a := move(body)
			if a.status != want.status || !strings.Contains(a.body, want.body) {
				t.Errorf("%s: %d %s", body, a.status, a.body)
			}
		}
		// The directory must know who moves there.
		w.must(t, "admin", "POST", "/api/domains", `{"name": "Away", "type": "paper", "config": {"secret": "away"}}`)
		unknown := w.do(t, "admin", "PUT", "/api/users/dana", `{"domain": "books"}`)
		is.Equal(unknown.status, 409)
		is.True(strings.Contains(
			unknown.body,
			"The directory of the domain books does not know dana: no entry has this name. With check=false the "+
				"user moves all the same.",
		))
		is.Equal(w.do(t, "admin", "PUT", "/api/users/dana", `{"domain": "away"}`).status, 502)
		is.Equal(w.do(t, "admin", "PUT", "/api/users/dana?check=no", `{"domain": "books"}`).status, 400)
		is.Equal(w.do(t, "dana", "PUT", "/api/users/dana", `{"domain": "books"}`).status, 403) // and asks nobody
		is.Equal(read[user](t, w.must(t, "admin", "GET", "/api/users/dana", "")).Domain, "local")
		is.Equal(anyway("mia", `{"domain": "away"}`).status, 200)

		is.Equal(w.do(t, "admin", "POST", "/api/users", `{"username": "new", "domain": "door"}`).status, 409)
		w.must(t, "admin", "POST", "/api/users", `{"username": "new", "domain": "books"}`)

		is.Equal(
			w.do(
				t, "dana", "PUT", "/api/users/zoe/password",
				`{"domain": "local", "password": "a new password"}`,
			).status,
			403,
		)
		is.Equal(
			w.do(
				t, "admin", "PUT", "/api/users/zoe/password",
				`{"domain": "more", "password": "a new password"}`,
			).status,
			400,
		)
		is.Equal(
			w.do(t, "admin", "PUT", "/api/users/zoe/password", `{"domain": "local", "password": "short"}`).status,
			400,
		)
		is.Equal(
			w.do(
				t, "admin", "PUT", "/api/users/dana/password",
				`{"domain": "local", "password": "a new password"}`,
			).status,
			400,
		)
		is.Equal(enter("books", "hush-hush"), 200)
		w.must(t, "admin", "PUT", "/api/users/zoe/password", `{"domain": "local", "password": "a new password"}`)
		is.Equal(enter("books", "hush-hush"), 401)
		is.Equal(enter("local", "a new password"), 200)
		is.Equal(read[user](t, w.must(t, "admin", "GET", "/api/users/zoe", "")), user{Domain: "local"})
	})
}

// TestTiedEmail: where people log in as the user who has their e-mail address, users cannot take
// the one of somebody else.
func TestTiedEmail(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		w.must(
			t, "admin", "POST", "/api/domains",
			`{"name": "Books", "type": "paper", "config": {"secret": "hush-hush"}}`,
		)
		w.must(t, "admin", "POST", "/api/domains", `{"name": "Door", "type": "gate", "config": {"accounts": "books"}}`)
		w.sessions["zoe"] = read[struct{ Token string }](
			t,
			w.must(t, "", "POST", "/api/login/books", `{"tenant": "acme", "username": "zoe", "password": "hush-hush"}`),
		).Token
		change := func(who, body string) int { return w.do(t, who, "PUT", "/api/users/"+who, body).status }
		is.Equal(change("zoe", `{"email": "zoe@example.com"}`), 200)
		w.must(
			t, "admin", "PUT", "/api/domains/door",
			`{"id": "door", "type": "gate", "config": {"accounts": "books", "accountsBy": "email"}}`,
		)
		is.Equal(change("zoe", `{"email": "boss@example.com"}`), 403)
		is.Equal(change("zoe", `{"email": null}`), 403)
		is.Equal(change("zoe", `{"email": "zoe@example.com", "timezone": "Europe/Berlin"}`), 200)
		is.Equal(change("dana", `{"email": "dana@example.com"}`), 200) // of another domain
		is.Equal(w.do(t, "admin", "PUT", "/api/users/zoe", `{"email": "zoe@example.org"}`).status, 200)
	})
}

// TestAuthorizations: a request with several Authorization headers is nobody's, whichever of them
// is right.
func TestAuthorizations(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	right := "Bearer " + w.token(t, "mia")
	for _, two := range [][]string{{right, right}, {right, "Bearer x"}, {"Bearer x", right}, {"", right}, {right, ""}} {
		for _, target := range []string{"/api/session", "/api", "/api/none"} {
			r := w.request(t, "", "GET", target, "")
			r.Header["Authorization"] = two
			a := w.send(r)
			is.Equal(a.status, 400)
			is.Equal(a.message(t), "The request has several Authorization headers: send one.")
		}
	}
}

func TestCookie(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	c := w.cookie(t)
	is.Equal(c.Name, "sid")
	is.Equal(c.Path, "/")
	is.Equal(c.Domain, "") // of this host alone
	is.Equal(c.SameSite, http.SameSiteLaxMode)
	is.True(c.HttpOnly)
	is.True(c.Secure) // the base URL is https
	header := "Cookie: other=1; sid=" + c.Value
	is.Equal(read[map[string]any](t, w.must(t, "", "GET", "/api/session", "", header))["user"], "dana")
	// a token comes first
	is.Equal(read[map[string]any](t, w.must(t, "mia", "GET", "/api/session", "", header))["user"], "mia")
	is.Equal(w.do(t, "", "GET", "/api/session", "", header+"; sid="+c.Value).status, 200)
	for _, two := range []string{header + "; sid=x", "Cookie: sid=x; sid=" + c.Value, header + "; sid="} {
		a := w.do(t, "", "GET", "/api/session", "", two)
		is.Equal(a.status, 401)
		is.Equal(a.message(t), "The cookie sid is there with different values: send one.")
	}

	out := w.must(t, "", "POST", "/api/logout", "", header)
	gone, err := http.ParseSetCookie(out.header.Get("Set-Cookie"))
	is.NoErr(err)
	is.Equal(gone.Name+gone.Value+gone.Path, "sid/")
	is.Equal(gone.MaxAge, -1)
	is.Equal(w.do(t, "", "GET", "/api/session", "", header).status, 401)

	plain := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.BaseURL = "http://localhost:8080/" })
	is.True(!plain.cookie(t).Secure)
	below := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		c.BaseURL = "http://localhost:8080/a/content/"
	})
	is.Equal(below.cookie(t).Path, "/a/content") // and not the cookie of what else is at the host
}

// TestMounted: a service below a path serves that path, and what a proxy has taken it away from,
// and nothing beside it.
func TestMounted(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.BaseURL = "https://example.com/content" })
	for target, status := range map[string]int{
		"/content/healthz": 200, "/healthz": 200,
		"/content/api/colors": 200, "/api/colors": 200, "/content/api/colors/a%2Fb%20c": 404,
		"/contentapi/colors": 404, "/contents/api/colors": 404, "/content/content/api/colors": 404,
		"/content": 200, "/content/": 200, "/content/api": 200, "/contents": 404,
		"/%63ontent/api/colors/a%2Fb": 404, "/other/api/colors": 404,
	} {
		a := w.do(t, "dana", "GET", target, "")
		if a.status != status {
			t.Errorf("%s: %d", target, a.status)
		}
	}
	w.must(t, "dana", "PUT", "/content/api/colors/a%2Fb", `{"color": "#ff0000"}`)
	is.Equal(
		read[page](t, w.must(t, "dana", "GET", "/content/api/colors?limit=1", "")).Links["self"].Href,
		"https://example.com/content/api/colors?limit=1",
	)
	is.True(strings.Contains(
		w.must(t, "dana", "GET", "/api/colors/a%2Fb", "").body,
		`"https://example.com/content/api/colors/a%2Fb"`,
	))
	// the origin has no path
	is.Equal(w.do(t, "", "POST", "/content/api/login/local", login, "Origin: https://example.com").status, 200)
	team := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/content/api/teams", `{"name": "Moved"}`)).ID
	for id, at := range map[string]string{"dana": "/content/api/users/dana", team: "/content/api/teams/" + team} {
		a := w.do(t, "dana", "GET", "/content/api/principals/"+id, "")
		is.Equal([]any{a.status, a.header.Get("Location")}, []any{302, at})
	}

	for _, bad := range []string{
		"content", "ftp://example.com", "https://", "https://:80",
		"https://example.com?x", "https://example.com/a?", "https://example.com/a#b", "https://jo@example.com",
		"https://example.com/a//b", "https://example.com/../a",
		"https://example.com/a%2Fb", "https://example.com/a b", "https://example.com/;a",
	} {
		_, err := httpapi.New(httpapi.Config{BaseURL: bad})
		if errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), "base URL") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestHostLogins: the routes that log in are gone where a host knows callers by itself, unless it
// keeps them.
func TestHostLogins(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
			c.KeepLogins = keep
			c.Authenticate = func(*http.Request) (actor.Actor, error) {
				return actor.Actor{Tenant: "acme", User: "dana"}, nil
			}
		})
		is := is.New(t)
		is.Equal(w.do(t, "", "GET", "/api/session", "").status, 200)
		for target, there := range map[string]int{
			"POST /api/login/local":         200,
			"GET /api/login/local/sso":      404,
			"GET /api/login/local/callback": 401,
			"GET /api/login/local/metadata": 404,
		} {
			method, path, _ := strings.Cut(target, " ")
			body := ""
			if method == "POST" {
				body = login
			}
			a := w.do(t, "", method, path, body)
			if keep {
				is.Equal(a.status, there)
			} else {
				is.Equal(a.message(t), "There is no such route.")
			}
		}
		is.Equal(
			w.do(
				t, "", "POST", "/api/login/local/acs", "a=b", "Content-Type: application/x-www-form-urlencoded",
			).status,
			map[bool]int{true: 401, false: 404}[keep],
		)
	}
}

// pages says of where a request comes from whether a cookie may write there.
var pages = map[string]bool{
	// no browser
	"": true,
	// the Host
	"Sec-Fetch-Site: same-origin": true, "Sec-Fetch-Site: none": true,
	"Origin: " + baseURL: true, "Origin: http://example.com": true,
	"Sec-Fetch-Site: cross-site": false, "Sec-Fetch-Site: same-site": false, "Sec-Fetch-Site: x": false,
	"Origin: https://evil.example": false, "Origin: null": false,
	"Origin: https://content.example.evil": false, "Origin: x": false,
}

// TestCrossOrigin: a page of another origin writes nothing with the cookie that a browser adds,
// whatever the route.
func TestCrossOrigin(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	before := s.dump(t, "acme")
	for _, r := range httpapi.Routes() {
		if slices.Contains([]string{"beginSSO", "finishSSO", "finishSAML"}, r.Name) {
			// the cookie of its own login ties these
			continue
		}
		if r.Name == "singleLogoutByForm" { // a signature of the provider is what counts
			continue
		}
		if strings.Contains(r.Pattern, "/_hook") { // no browser adds the key of a webhook by itself
			continue
		}
		is.New(t).True(!r.Foreign) // no other route is open to forms of other origins
		for page, may := range pages {
			headers := []string{"Cookie: sid=" + s.token(t, who(r))}
			if page != "" {
				headers = append(headers, page)
			}
			switch {
			case strings.HasPrefix(r.Pattern, "/api/scim/"): // no browser adds a token by itself, and a cookie is none
				if a := s.call(t, "", r, headers...); a.status != 401 && (may || a.status != 403) {
					t.Errorf("%s %s: %d", r.Name, page, a.status)
				}
			case r.Method == "GET" && (may || r.Name != "callFromAppView"): // see TestGetFromAnotherSite
				if a := s.call(t, "", r, headers...); a.status >= 400 {
					t.Errorf("%s %s: %d", r.Name, page, a.status) // what it reads, the browser hides from the page
				}
			case !may:
				a := s.call(t, "", r, headers...)
				if a.status != 403 || a.message(t) != "This request came from a page of another origin." ||
					a.header.Get("Set-Cookie") != "" {
					t.Errorf("%s %s: %d %s", r.Name, page, a.status, a.body)
				}
			}
		}
	}
	if s.dump(t, "acme") != before {
		t.Error("something was written")
	}
}

func TestCookieWrites(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	cookie := "Cookie: sid=" + s.token(t, "admin")
	for page, may := range pages {
		headers := strings.Split(page, "\n")
		a := s.do(t, "", "PUT", "/api/colors/red", `{"color": "#ff0000"}`, append(headers, cookie)...)
		is.Equal(a.status == 200, may)
		a = s.do(t, "admin", "PUT", "/api/colors/red", `{"color": "#ff0000"}`, append(headers, cookie)...)
		is.Equal(a.status, 200) // no browser adds a token by itself
		a = s.do(t, "", "POST", "/api/login/local", login, headers...)
		is.Equal(a.status == 200, may)
		is.Equal(a.header.Get("Set-Cookie") != "", may)
	}
}

// TestHostAuthenticator: a host that knows callers by a cookie of its own is kept from other
// origins as well.
func TestHostAuthenticator(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		c.Authenticate = func(r *http.Request) (actor.Actor, error) {
			return actor.Actor{Tenant: "acme", User: "guest", Superuser: true}, nil
		}
	})
	red := func(headers ...string) int {
		return w.do(t, "", "PUT", "/api/colors/red", `{"color": "#ff0000"}`, headers...).status
	}
	is.Equal(red("Cookie: host=1"), 200)
	is.Equal(red("Cookie: host=1", "Sec-Fetch-Site: cross-site"), 403)
	is.Equal(red("Authorization: Basic eDp4", "Sec-Fetch-Site: cross-site"), 403)
	is.Equal(read[map[string]any](t, w.must(t, "", "GET", "/api/session", ""))["user"], "guest")
	is.Equal(w.must(t, "", "POST", "/api/logout", "").status, 200) // it has no session to end
}

// TestSessionsEnd: a new password ends the sessions of before, a deleted or disabled user has none.
func TestSessionsEnd(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		status := func(token string) int {
			return w.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+token).status
		}
		mia, nora, dana := w.token(t, "mia"), w.token(t, "nora"), w.token(t, "dana")
		w.pass(time.Minute)
		w.must(t, "admin", "PUT", "/api/users/mia/password", `{"password": "long enough"}`)
		w.must(t, "admin", "DELETE", "/api/users/nora", "")
		w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": false}`)
		is.Equal([]int{status(mia), status(nora), status(dana)}, []int{401, 401, 401})
		w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": true}`)
		is.Equal(status(dana), 401) // it does not come back
	})
}

// TestSecretsAreNotKept: neither a session's nor a token's secret, nor a password, is in a row or
// in the log.
func TestSecretsAreNotKept(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	token := read[struct{ Key string }](t, s.must(t, "admin", "POST", "/api/tokens", `{}`)).Key
	session := s.token(t, "dana")
	s.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+session+"x")
	kept := s.dump(t, "acme") + s.log.String()
	for _, secret := range []string{
		password, token[strings.LastIndex(token, ".")+1:], session[strings.LastIndex(session, ".")+1:],
	} {
		is.True(!strings.Contains(kept, secret))
	}
	is.True(!strings.Contains(s.must(t, "admin", "GET", "/api/tokens", "").body, "tct."))
}

// TestTenantOfLogin: one that names no tenant is of default when there are several.
func TestTenantOfLogin(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	_, err := w.app.AddTenant(t.Context(), tenants.Tenant{ID: "default"}, password)
	is.NoErr(err)
	const admin = `{"username": "admin", "password": "open sesame"}`
	for header, tenant := range map[string]string{
		"X-Tenant: acme":    "acme",
		"X-Tenant: ":        "default",
		"X-Tenant: default": "default",
	} {
		a := w.must(t, "", "POST", "/api/login/local", admin, header)
		is.Equal(read[struct{ Tenant string }](t, a).Tenant, tenant)
	}
	is.Equal(w.do(t, "", "POST", "/api/login/local", admin, "X-Tenant: evil").status, 401)
	is.Equal(w.do(t, "", "POST", "/api/login/local", admin, "X-Tenant: a\xff").status, 401)
}

// TestDeletingAnOwner: content keeps its owner from being deleted, until somebody else gets it.
func TestDeletingAnOwner(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		owner := map[string]string{"r1": "mia", "r2": "mia", "r3": teamID}
		w := newWorld(t, open, func(c *tenantcontent.Config) { c.Entities = []entity.Type{reports(owner)} })
		for target, message := range map[string]string{
			"/api/users/mia":    "mia owns content (report: 2): name another owner in reassignTo.",
			"/api/teams/design": teamID + " owns content (report: 1): name another owner in reassignTo.",
		} {
			a := w.do(t, "admin", "DELETE", target, "")
			is.Equal(a.status, 409)
			is.Equal(a.message(t), message)
		}
		is.Equal(w.do(t, "admin", "DELETE", "/api/users/mia?reassignTo=eve", "").status, 400)
		w.must(t, "admin", "DELETE", "/api/users/mia?reassignTo="+teamID, "")
		w.must(t, "admin", "DELETE", "/api/teams/design?reassignTo=dana", "")
		is.Equal(owner, map[string]string{"r1": "dana", "r2": "dana", "r3": "dana"})
	})
}

// reports is a kind of content whose owners are in a map.
func reports(owner map[string]string) entity.Type {
	return entity.Type{
		Kind: "report",
		Owned: func(_ context.Context, _, of string) (n int, err error) {
			for _, o := range owner {
				if o == of {
					n++
				}
			}
			return n, nil
		},
		Reassign: func(_ context.Context, _, from, to string) (moved []entity.Ref, err error) {
			for id, o := range owner {
				if o == from {
					owner[id] = to
					moved = append(moved, entity.Ref{Kind: "report", ID: id, OwnerID: to})
				}
			}
			return moved, nil
		},
	}
}
