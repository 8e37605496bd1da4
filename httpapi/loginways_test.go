package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// way is a row of the list of logins.
type way struct {
	ID, Name, Method, Href       string
	UsernameParam, PasswordParam *string
	Default                      bool
}

func (w *world) ways(t testing.TB, query string) []way {
	t.Helper()
	return read[struct {
		Embedded map[string][]way `json:"_embedded"`
	}](t, w.must(t, "", "GET", "/api/login"+query, "")).Embedded["inf:domain"]
}

func names(all []way) string {
	var ids []string
	for _, w := range all {
		ids = append(ids, w.ID)
	}
	return strings.Join(ids, " ")
}

// TestListLogins: a log-in page finds those domains that people can log in at, and nothing of where
// they are.
func TestListLogins(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		stockDomains(t, w, map[string]string{}) // books, gate, and gone, which has no configuration
		w.must(
			t, "admin", "POST", "/api/domains",
			`{"name": "Corp directory", "type": "LDAP", "config": {"url": "ldaps://dc1.corp.example", "baseDN": `+
				`"dc=corp"}}`,
		)
		w.must(
			t, "admin", "POST", "/api/domains",
			`{"name": "Secret directory", "type": "LDAP", "config": {"url": "ldaps://dc2.corp.example", "baseDN": `+
				`"dc=corp", "hidden": true}}`,
		)
		all := w.ways(t, "?tenant=acme")
		is.Equal(names(all), "local books corp-directory gate")
		username, pass := "username", "password"
		is.Equal(all[0], way{"local", "Local", "password", baseURL + "/api/login/local", &username, &pass, true})
		is.Equal(all[3], way{"gate", "Gate", "redirect", baseURL + "/api/login/gate/sso?tenant=acme", nil, nil, false})
		text := w.must(t, "", "GET", "/api/login?tenant=acme", "").body
		for _, inside := range []string{"dc1", "corp.example", "LDAP", "ldap", "paper", "Secret"} {
			is.True(!strings.Contains(text, inside))
		}
		is.Equal(names(w.ways(t, "?tenant=acme&start=1&limit=2")), "books corp-directory")

		// A link leads back where the page wants it.
		all = w.ways(t, "?tenant=acme&returnTo=/hello%3Fa=1&errors=return")
		is.Equal(all[3].Href, baseURL+"/api/login/gate/sso?errors=return&returnTo=%2Fhello%3Fa%3D1&tenant=acme")
		for _, bad := range []string{
			"returnTo=//evil.example", "returnTo=x", "errors=return", "errors=x&returnTo=/a", "start=x",
		} {
			is.Equal(w.do(t, "", "GET", "/api/login?"+bad, "").status, 400)
		}

		// Changes show at once: the default comes first, what is hidden or removed is gone, also
		// local.
		w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"defaultDomain": "gate"}}`)
		w.must(
			t, "admin", "PUT", "/api/domains/books",
			`{"id": "books", "type": "paper", "config": {"secret": "********", "hidden": true}}`,
		)
		w.must(t, "admin", "PUT", "/api/domains/local", `{"id": "local", "type": "local", "config": {"hidden": true}}`)
		is.Equal(names(w.ways(t, "?tenant=acme")), "gate corp-directory")
		is.True(w.ways(t, "?tenant=acme")[0].Default)
		// which still works
		is.Equal(
			w.do(
				t, "", "POST", "/api/login/local",
				`{"username": "dana", "password": "open sesame", "tenant": "acme"}`,
			).status,
			200,
		)
		w.must(t, "admin", "DELETE", "/api/domains/gate", "")
		is.Equal(names(w.ways(t, "?tenant=acme")), "corp-directory")
		is.Equal(w.do(
			t, "admin", "PUT", "/api/domains/local",
			`{"id": "local", "type": "local", "config": {"hidden": "no"}}`,
		).message(t),
			"config.hidden is not understood: hidden must be true or false")
	})
}

// TestLoginsOfUnknownTenants: a tenant that does not exist looks as one with nothing but the domain
// local.
func TestLoginsOfUnknownTenants(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withDrivers)
	stockDomains(t, w, map[string]string{})
	for _, header := range []string{"Accept: application/json", html} {
		known := w.do(t, "", "GET", "/api/login?tenant=evil", "", header, "X-Request-Id: r-1")
		is.Equal(known.status, 200)
		for _, tenant := range []string{"none", "x", "a.b", strings.Repeat("x", 500)} {
			unknown := w.do(t, "", "GET", "/api/login?tenant="+tenant, "", header, "X-Request-Id: r-1")
			is.Equal(unknown.status, known.status)
			is.Equal(unknown.body, strings.ReplaceAll(known.body, "evil", tenant))
			unknown.header.Del("Content-Length") // the body has the name
			known.header.Del("Content-Length")
			unknown.header.Del("Etag")
			known.header.Del("Etag")
			is.Equal(fmt.Sprint(unknown.header), fmt.Sprint(known.header))
		}
	}
	is.Equal(w.do(t, "", "GET", "/api/login?tenant=a%00", "").status, 400)
	is.Equal(names(w.ways(t, "")), "local") // several tenants: default, which is not there
	is.True(!strings.Contains(w.must(t, "", "GET", "/api/login", "").body, "tenant="))
}

// TestLoginPageListsAll: the page has a form for one password and links to all other ways, and
// leads on from all.
func TestLoginPageListsAll(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withDrivers)
	stockDomains(t, w, map[string]string{})
	page := func(target string, headers ...string) answer {
		t.Helper()
		return w.do(t, "", "GET", target, "", append(headers, html)...)
	}
	a := page("/api/login?tenant=acme&returnTo=/hello")
	is.Equal(a.status, 200)
	is.True(strings.Contains(a.header.Get("Content-Security-Policy"), "form-action 'self'"))
	for _, part := range []string{
		`action="/api/login/local"`, `name="returnTo" value="/hello"`, `name="tenant" value="acme"`,
		`<a href="` + baseURL + `/api/login/gate/sso?returnTo=%2Fhello&amp;tenant=acme">Log in with Gate</a>`,
		`<a href="` + baseURL +
			`/api/login?domain=books&amp;returnTo=%2Fhello&amp;tenant=acme">Log in with username and password ` +
			`(Books)</a>`,
	} {
		if !strings.Contains(a.body, part) {
			t.Error(part, a.body)
		}
	}
	is.True(strings.Contains(page("/api/login?tenant=acme&domain=books").body, `action="/api/login/books"`))
	// there is no password of it
	is.True(strings.Contains(page("/api/login?tenant=acme&domain=gate").body, `action="/api/login/local"`))
	is.True(strings.Contains(page("/api/login?tenant=acme").body, `name="returnTo" value="/api/login?tenant=acme"`))
	// also at the page of an app
	is.True(strings.Contains(page("/api/apps/"+sales(t, w, "Sales")+"/view?tenant=acme").body, "Log in with Gate"))
	for _, odd := range []string{`"><script>alert(1)</script>`, "a&b=c"} {
		for _, name := range []string{"tenant", "domain"} {
			is.True(!strings.Contains(
				page("/api/login?"+name+"="+strings.ReplaceAll(odd, "&", "%26")).body, "<script>",
			))
		}
	}

	// A form of a browser without a path leads to the page, which tells who has logged in; a wrong
	// password shows it again.
	in := w.do(t, "", "POST", "/api/login/local", "username=dana&password=open+sesame&tenant=acme", urlencoded, html)
	is.Equal(in.status, 303)
	is.Equal(in.header.Get("Location"), "/api/login?tenant=acme")
	session, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	is.True(strings.Contains(
		page("/api/login?tenant=acme", "Cookie: "+session).body,
		"<strong>dana</strong> of the tenant <strong>acme</strong>",
	))
	is.True(strings.Contains(
		page("/api/login?tenant=acme&returnTo=/hello", "Cookie: "+session).body,
		`<a href="`+baseURL+`/hello">Go on</a>`,
	))
	is.True(!strings.Contains(page("/api/login?tenant=acme", "Cookie: sid=x").body, "<strong>"))
	// its button
	out := w.do(
		t, "", "POST", "/api/logout", "provider=true", urlencoded, html, "Cookie: "+session,
		"Sec-Fetch-Site: same-origin",
	)
	is.Equal(out.status, 303)
	is.True(!strings.Contains(page("/api/login?tenant=acme", "Cookie: "+session).body, "<strong>"))
	wrong := w.do(t, "", "POST", "/api/login/local", "username=dana&password=wrong&tenant=acme", urlencoded, html)
	is.Equal(wrong.status, 401)
	is.True(strings.Contains(wrong.body, "Unable to log in") && strings.Contains(wrong.body, "Log in with Gate"))
	missing := w.do(t, "", "POST", "/api/login/local", "username=dana", urlencoded, html)
	is.Equal(missing.status, 400)
	is.True(strings.Contains(missing.body, "password is required"))

	// A login at a provider lands there, too.
	back, cookie := w.begun(t, "")
	a = page("/api/login/gate/callback?"+back.Encode(), cookie)
	is.Equal(a.status, 303)
	is.Equal(a.header.Get("Location"), baseURL+"/api/login?tenant=acme")
	is.True(!strings.Contains(a.body, "token"))
}

// TestFormsNeedHTTPS: a domain whose provider answers with a form is not ready at a server without
// https, and says why.
func TestFormsNeedHTTPS(t *testing.T) {
	is := is.New(t)
	const saml = `{"name": "Entry", "type": "SAML", "config": {"metadataURL": "https://idp.example/metadata"}}`
	for base, ready := range map[string]bool{"http://content.example": false, baseURL: true} {
		w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.BaseURL = base })
		d := read[struct {
			Public struct {
				Ready  bool
				Reason string
			}
		}](t, w.must(t, "admin", "POST", "/api/domains?check=false", saml))
		is.Equal(d.Public.Ready, ready)
		is.Equal(
			strings.Contains(
				d.Public.Reason, "needs this server to be at https, and its base URL is http://content.example",
			),
			!ready,
		)
		is.Equal(
			strings.Contains(
				w.log.String(),
				`msg="nobody can log in at a domain" tenant=acme domain=entry reason="A log-in needs`,
			),
			!ready,
		)
		is.Equal(strings.Contains(names(w.ways(t, "?tenant=acme")), "entry"), ready)
	}
}
