package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// html is the header of a browser that goes to a page.
const html = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"

// begun begins a login at the provider and returns the query and the cookie with which a browser
// comes back to the callback.
func (w *world) begun(t testing.TB, query string) (back url.Values, cookie string) {
	t.Helper()
	a := w.must(t, "", "GET", "/api/login/gate/sso?tenant=acme"+query, "")
	to, err := url.Parse(a.header.Get("Location"))
	is.New(t).NoErr(err)
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	return url.Values{"tenant": {"acme"}, "code": {"jo"}, "state": {to.Query().Get("state")}}, "Cookie: " + cookie
}

// TestCausesOfRefusedLogins: each has a sentence of its own in the log, and words for the person
// where they tell nothing about people. A program reads the same for all.
func TestCausesOfRefusedLogins(t *testing.T) {
	const refused = "The log-in was refused."
	for name, c := range map[string]struct {
		reason, page string
		plain        bool // the base URL is http
		come         func(t *testing.T, w *world, back url.Values, cookie string, header string) answer
	}{
		"no cookie at all": {"brought none at all, so it blocks cookies", "has not brought back the cookie", false,
			func(t *testing.T, w *world, back url.Values, _, header string) answer {
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header)
			}},
		"another browser": {"brought others, so the login was begun in another browser",
			"has not brought back the cookie", false,
			func(t *testing.T, w *world, back url.Values, _, header string) answer {
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header, "Cookie: theme=dark")
			}},
		"a form over http": {"browsers bring it only over https, and the base URL is http://content.example",
			"has not brought back the cookie", true,
			func(t *testing.T, w *world, back url.Values, _, header string) answer {
				back.Set("RelayState", back.Get("state"))
				return w.do(t, "", "POST", "/api/login/gate/acs?tenant=acme", back.Encode(), urlencoded, header)
			}},
		"nobody asked": {"nobody asked for: it has no state", refused, false,
			func(t *testing.T, w *world, _ url.Values, cookie, header string) answer {
				return w.do(t, "", "GET", "/api/login/gate/callback?tenant=acme&code=jo", "", header, cookie)
			}},
		"a made-up state": {"nobody asked for: no login of this service has its state", refused, false,
			func(t *testing.T, w *world, _ url.Values, cookie, header string) answer {
				return w.do(t, "", "GET", "/api/login/gate/callback?tenant=acme&code=jo&state=x", "", header, cookie)
			}},
		"stale": {"begun more than ten minutes ago", "more than ten minutes ago", false,
			func(t *testing.T, w *world, back url.Values, cookie, header string) answer {
				w.pass(11 * time.Minute)
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header, cookie)
			}},
		"stale, and its cookie dropped": {"begun more than ten minutes ago", "more than ten minutes ago", false,
			func(t *testing.T, w *world, back url.Values, _, header string) answer {
				w.pass(11 * time.Minute)
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header)
			}},
		"twice": {"the login was used before", "used before", false,
			func(t *testing.T, w *world, back url.Values, cookie, header string) answer {
				w.must(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", cookie)
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header, cookie)
			}},
		"twice, and its cookie taken away": {"the login was used before", "used before", false,
			func(t *testing.T, w *world, back url.Values, cookie, header string) answer {
				w.must(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", cookie)
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header)
			}},
		"another tenant's": {"does not open: the login is another tenant's", refused, false,
			func(t *testing.T, w *world, back url.Values, cookie, header string) answer {
				back.Set("tenant", "evil")
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header, cookie)
			}},
		"another domain's": {"begun at the domain gate, and its answer came to another one", refused, false,
			func(t *testing.T, w *world, back url.Values, cookie, header string) answer {
				return w.do(t, "", "GET", "/api/login/second/callback?"+back.Encode(), "", header, cookie)
			}},
		"a domain that is gone": {"the domain gate, where the login was begun, is not there any more", refused, false,
			func(t *testing.T, w *world, back url.Values, cookie, header string) answer {
				w.must(t, "admin", "DELETE", "/api/domains/gate", "")
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header, cookie)
			}},
		"the provider's error": {"the provider says access_denied", refused, false,
			func(t *testing.T, w *world, back url.Values, cookie, header string) answer {
				back.Set("error", "access_denied")
				return w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", header, cookie)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			for _, header := range []string{"Accept: application/json", html} {
				w := newWorld(t, dbtest.SQLite, withDrivers, func(o *tenantcontent.Config) {
					if c.plain {
						o.BaseURL = "http://content.example"
					}
				})
				stockDomains(t, w, map[string]string{})
				w.must(t, "admin", "POST", "/api/domains", `{"name": "Second", "type": "gate", "config": {}}`)
				back, cookie := w.begun(t, "")
				from := len(w.log.String())
				a := c.come(t, w, back, cookie, header)
				is.Equal(a.status, 401)
				is.Equal(len(a.header.Values("Set-Cookie")), 0)
				lines := w.lines(from)
				if last := lines[len(lines)-1]; !strings.Contains(last, `msg="login refused"`) ||
					!strings.Contains(last, c.reason) {
					t.Errorf("%q", last)
				}
				if header != html {
					is.Equal(a.message(t), "Unable to log in")
					continue
				}
				is.Equal(a.header.Get("Content-Type"), "text/html; charset=utf-8")
				is.Equal(a.header.Get("Referrer-Policy"), "no-referrer") // its address has the code
				is.True(strings.Contains(a.body, c.page))
				is.True(strings.Contains(a.body, "<code>"+a.header.Get("X-Request-Id")+"</code>"))
				is.True(strings.Contains(a.body, "Try again</a>") &&
					strings.Contains(a.body, "Other ways to log in</a>"))
				for _, secret := range []string{back.Get("state"), cookie, "access_denied", "Second"} {
					is.True(!strings.Contains(a.body, secret))
				}
			}
		})
	}
}

// TestFailuresGoBack: a login that was begun so leads back to its page also when it fails, with
// what went wrong, and nowhere else.
func TestFailuresGoBack(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withDrivers)
	stockDomains(t, w, map[string]string{})
	const to = "&errors=return&returnTo=%2Fhello%3Fa%3D1%26error%3Dold%23there"
	back, cookie := w.begun(t, to)
	back.Del("code")
	a := w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", "X-Request-Id: r-7", cookie)
	is.Equal(a.status, http.StatusSeeOther)
	is.Equal(a.header.Get("Location"), baseURL+"/hello?a=1&error=login_refused&request=r-7#there")
	is.Equal(a.header.Get("WWW-Authenticate"), "")
	is.Equal(len(a.header.Values("Set-Cookie")), 0)
	a = w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", "X-Request-Id: r-8", cookie) // again
	is.Equal(a.header.Get("Location"), baseURL+"/hello?a=1&error=login_used&request=r-8#there")
	// without the cookie nothing is known
	is.Equal(w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "").status, 401)
	back, cookie = w.begun(t, to)
	w.pass(11 * time.Minute)
	a = w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", "X-Request-Id: r-9", cookie)
	is.Equal(a.header.Get("Location"), baseURL+"/hello?a=1&error=login_expired&request=r-9#there")
	a = w.do(t, "", "GET", "/api/login/nowhere/sso?tenant=acme&errors=return&returnTo=/hello", "", "X-Request-Id: r-10")
	is.Equal(a.header.Get("Location"), baseURL+"/hello?error=unknown_domain&request=r-10")
	back, cookie = w.begun(t, to)
	a = w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", cookie)
	is.Equal(a.header.Get("Location"), baseURL+"/hello?a=1&error=old#there") // where it has asked for, when it works

	for _, bad := range []string{
		"&errors=return", "&errors=x", "&errors=return&returnTo=//evil.example",
		"&errors=return&returnTo=https://evil.example", `&errors=return&returnTo=/\evil.example`,
	} {
		a := w.do(t, "", "GET", "/api/login/gate/sso?tenant=acme"+bad, "", html)
		is.Equal(a.status, 400)
		is.Equal(a.header.Get("Location"), "")
		is.True(!strings.Contains(a.body, "evil"))
	}
	back, cookie = w.begun(t, "&returnTo=/hello") // returnTo alone is for logins that work
	back.Del("code")
	is.Equal(w.do(t, "", "GET", "/api/login/gate/callback?"+back.Encode(), "", cookie).status, 401)
}

// TestPagesOfFailedLogins: a browser gets a page for every failure on its way to a provider and
// back, and can try again as before.
func TestPagesOfFailedLogins(t *testing.T) {
	w := newWorld(t, dbtest.SQLite, withDrivers)
	stockDomains(t, w, map[string]string{})
	w.must(
		t, "admin", "POST", "/api/domains?check=false",
		`{"name": "Away", "type": "OIDC", "config": {"issuer": "http://127.0.0.1:1", "clientID": "x"}}`,
	)
	for target, want := range map[string]struct {
		status int
		text   string
		again  string
	}{
		"GET /api/login/nowhere/sso?tenant=acme": {404, "There is no log-in at this address", ""},
		"GET /api/login/local/sso?tenant=acme":   {404, "There is no log-in at this address", ""},
		"GET /api/login/gate/sso?tenant=nowhere": {404, "There is no log-in at this address", ""},
		"GET /api/login/away/sso?tenant=acme&returnTo=/x%3Fy": {
			502, "cannot be reached",
			`href="` + baseURL + `/api/login/away/sso?returnTo=%2Fx%3Fy&amp;tenant=acme"`,
		},
		"GET /api/login/gate/sso?tenant=acme&returnTo=//x.com": {
			400, "returnTo must be a path", `href="` + baseURL + `/api/login/gate/sso?tenant=acme"`,
		},
		"POST /api/login/gate/acs?tenant=acme": {415, "The Content-Type must be", ""},
	} {
		t.Run(target, func(t *testing.T) {
			is := is.New(t)
			method, path, _ := strings.Cut(target, " ")
			a := w.do(t, "", method, path, "", html)
			is.Equal(a.status, want.status)
			is.Equal(a.header.Get("Content-Type"), "text/html; charset=utf-8")
			is.True(strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'"))
			is.Equal(a.header.Get("Cache-Control"), "no-store")
			is.Equal(a.header.Get("Vary"), "Accept, Sec-Fetch-Mode")
			if !strings.Contains(a.body, want.text) || !strings.Contains(a.body, want.again) ||
				strings.Contains(a.body, "127.0.0.1") {
				t.Error(a.body)
			}
			a = w.do(t, "", method, path, "", html, "Sec-Fetch-Mode: cors") // a script
			is.Equal(a.status, want.status)
			a.message(t)
		})
	}
	page := w.do(t, "", "GET", "/api/login/%3Cb%3E/sso?tenant=%3Cb%3E", "", html)
	is.New(t).True(!strings.Contains(page.body, "<b>"))
	t.Log(fmt.Sprint(len(page.body), " bytes"))
}

// out is a host's driver of a provider that cannot begin a login, for a reason of its own.
type out struct {
	gate
	id  string
	err error
}

func (o out) Info() domains.Info {
	return domains.Info{ID: o.id, Name: o.id, Group: "Single sign-on", LoginComponent: "redirect", LoginMethod: "GET"}
}

func (o out) Open(json.RawMessage) (domains.Realm, error) { return o, nil }

func (o out) Begin(context.Context, domains.Endpoints, string) (string, []byte, error) {
	return "", nil, o.err
}

// TestPagesWhenABusyServerRefuses: a person reads when to try again, and a page of the host learns
// the word.
func TestPagesWhenABusyServerRefuses(t *testing.T) {
	drivers := []domains.Driver{
		out{id: "crowd", err: errs.New(errs.Busy, "Too many people log in at the moment. Try again later.")},
		out{
			id:  "queue",
			err: errs.New(errs.Unavailable, "Too many people log in at this domain at the moment. Try again."),
		},
		out{id: "broken", err: errors.New("dial 10.1.2.3: secret")},
	}
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		c.DomainDrivers = append(c.DomainDrivers, drivers...)
	})
	for id, want := range map[string]struct {
		status            int
		text, word, retry string
	}{
		"crowd":  {429, "Too many people log in at the moment", "busy", "5"},
		"queue":  {503, "Too many people log in at this domain", "busy", "1"},
		"broken": {500, "Something went wrong at this server", "server_error", ""},
	} {
		t.Run(id, func(t *testing.T) {
			is := is.New(t)
			w.must(t, "admin", "POST", "/api/domains", `{"name": "`+id+`", "type": "`+id+`", "config": {}}`)
			begin := "/api/login/" + id + "/sso?tenant=acme"
			a := w.do(t, "", "GET", begin, "", html)
			is.Equal(a.status, want.status)
			is.Equal(a.header.Get("Retry-After"), want.retry)
			is.True(strings.Contains(a.body, want.text) && strings.Contains(a.body, "Try again</a>"))
			is.True(!strings.Contains(a.body, "10.1.2.3"))
			a = w.do(t, "", "GET", begin+"&errors=return&returnTo=/hello", "", html, "X-Request-Id: r-1")
			is.Equal(a.status, 303)
			is.Equal(a.header.Get("Location"), baseURL+"/hello?error="+want.word+"&request=r-1")
			is.Equal(a.header.Get("Retry-After"), "")
		})
	}
}

// TestFormOfADirectoryThatIsAway: a person who has sent a password gets a page, which leads back to
// the form.
func TestFormOfADirectoryThatIsAway(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.must(
		t, "admin", "POST", "/api/domains",
		`{"name": "Away", "type": "LDAP", "config": {"url": "ldap://127.0.0.1:1", "baseDN": "dc=x"}}`,
	)
	const form = "username=jo&password=hush-hush&tenant=acme&returnTo=/hello"
	a := w.do(t, "", "POST", "/api/login/away", form, urlencoded, html)
	is.Equal(a.status, 502)
	is.True(strings.Contains(a.body, "cannot be reached at the moment"))
	is.True(strings.Contains(
		a.body,
		`<a href="`+baseURL+`/api/login?domain=away&amp;returnTo=%2Fhello&amp;tenant=acme">Try again</a>`,
	))
	is.True(!strings.Contains(a.body, "hush-hush") && !strings.Contains(a.body, "127.0.0.1"))
	w.do(t, "", "POST", "/api/login/away", form, urlencoded).message(t) // a program
}
