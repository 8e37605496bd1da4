package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// browser follows redirects, and keeps a cookie for the host alone that has set it.
type browser struct {
	w       *world
	cookies map[string]map[string]string
	visited []string
}

func newBrowser(t *testing.T, w *world, user string) *browser {
	t.Helper()
	b := &browser{w: w, cookies: map[string]map[string]string{}}
	if user != "" {
		b.set(b.host(t, baseURL), "__Host-sid", w.token(t, user))
	}
	return b
}

func (b *browser) host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	is.New(t).NoErr(err)
	return u.Host
}

func (b *browser) set(host, name, value string) {
	if b.cookies[host] == nil {
		b.cookies[host] = map[string]string{}
	}
	b.cookies[host][name] = value
}

// get makes one request.
func (b *browser) get(t *testing.T, address string, headers ...string) answer {
	t.Helper()
	host := b.host(t, address)
	var cookies []string
	for name, value := range b.cookies[host] {
		cookies = append(cookies, name+"="+value)
	}
	if len(cookies) > 0 {
		headers = append(headers, "Cookie: "+strings.Join(cookies, "; "))
	}
	r := b.w.request(t, "", "GET", address, "", headers...)
	a := b.w.send(r)
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies[host], c.Name)
			continue
		}
		b.set(host, c.Name, c.Value)
	}
	return a
}

var navigation = []string{"Sec-Fetch-Mode: navigate", "Accept: text/html"}

// open goes to an address, and returns where that ends.
func (b *browser) open(t *testing.T, address string) (at string, a answer) {
	t.Helper()
	for range 10 {
		b.visited = append(b.visited, address)
		if a = b.get(t, address, navigation...); a.status != 303 {
			return address, a
		}
		is.New(t).Equal(a.header.Get("Referrer-Policy"), "no-referrer")
		is.New(t).Equal(a.header.Get("Cache-Control"), "no-store")
		address = a.header.Get("Location")
	}
	t.Fatal("the redirects do not end", b.visited)
	return "", answer{}
}

func withAppOrigin(c *tenantcontent.Config) { c.AppOrigin = "https://{app}.apps.example.net" }

// TestAppOrigin: an app that is opened at the service has an origin of its own, with its files and
// the calls that its manifest allows, and nothing else of the service.
func TestAppOrigin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withAppOrigin)
		app := sales(t, w, "Sales")
		b := newBrowser(t, w, "mia")
		at, a := b.open(t, baseURL+"/api/apps/"+app+"/view")
		is.Equal(a.status, 200)
		origin := strings.TrimSuffix(at, "/")
		is.True(strings.HasPrefix(origin, "https://"+app+"-") && strings.HasSuffix(origin, ".apps.example.net"))
		is.Equal(len(b.visited), 5) // the service, the app, the service, the app and its page
		is.True(strings.Contains(a.body, `<base href="`+origin+`/">`))
		c := contextOf(t, a)
		is.Equal([]string{c.Base, c.API, c.User.Username}, []string{origin + "/", origin + "/api/", "mia"})
		csp := a.header.Get("Content-Security-Policy")
		is.True(strings.Contains(csp, " allow-same-origin;") && strings.Contains(csp, "default-src "+origin+"/ ") &&
			strings.Contains(csp, "frame-ancestors "+baseURL+";"))
		is.True(!strings.Contains(csp, "allow-top-navigation"))
		is.Equal(a.header.Get("Access-Control-Allow-Origin"), "")
		is.Equal(a.header.Get("Cross-Origin-Resource-Policy"), "same-origin")

		host := b.host(t, origin)
		is.Equal(len(b.cookies[host]), 1) // the verifier has served
		is.True(strings.HasPrefix(b.cookies[host]["__Host-view"], "~"))
		for _, visited := range b.visited {
			is.True(!strings.Contains(visited, b.cookies[host]["__Host-view"]))
		}

		js := b.get(t, origin+"/a.js")
		is.Equal(js.body, "export default 1")
		is.Equal(js.header.Get("Content-Type"), "text/javascript; charset=utf-8")
		is.Equal(b.get(t, origin+"/a.js", "If-None-Match: "+js.header.Get("Etag")).status, 304)
		is.Equal(b.get(t, origin+"/a.js", "Range: bytes=0-5").body, "export")
		is.Equal(b.get(t, origin+"/nothing.js").status, 404)
		for path, base := range map[string]string{
			"/":              "/",
			"/orders/5?x=1":  "/",
			"/index.html":    "/",
			"/sub/page.html": "/sub/",
		} {
			at, a := b.open(t, origin+path)
			is.Equal(at, origin+path) // no redirect any more
			is.True(strings.Contains(a.body, `<base href="`+origin+base+`">`))
		}
		w.must(t, "dana", "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
		is.Equal(read[page](t, b.get(t, origin+"/api/colors?limit=1")).Total, 1)
		for path, status := range map[string]int{
			"/api/users": 403, "/api/session": 403, "/api/tokens": 403,
			"/api": 404, "/api/../api/session": 403, "/healthz": 404,
			"/informer.yaml": 404, "/server/a.js": 404, "/.env": 404,
			"/sub/.git/config": 404, "/%00": 400, "/%zz": 400, "/~x/a.js": 200,
		} {
			u, err := url.Parse(origin)
			is.NoErr(err)
			r := b.w.request(t, "", "GET", origin+"/", "", "Cookie: __Host-view="+b.cookies[host]["__Host-view"])
			if r.URL, err = u.Parse(origin); err != nil {
				t.Fatal(err)
			}
			r.URL.Path, r.URL.RawPath = path, path
			if plain, err := url.PathUnescape(path); err == nil {
				r.URL.Path = plain
			}
			if got := w.send(r).status; got != status && !(path == "/%zz" && got == 404) {
				t.Errorf("%s: %d", path, got)
			}
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			r := b.w.request(
				t, "", method, origin+"/api/colors", "", "Cookie: __Host-view="+b.cookies[host]["__Host-view"],
			)
			is.Equal(w.send(r).status, 405)
		}

		// A bookmark of a browser that has no cookie, and a role.
		at, a = newBrowser(t, w, "mia").open(t, origin+"/orders/5?x=%2F")
		is.Equal(at, origin+"/orders/5?x=%2F")
		is.Equal(a.status, 200)
		_, a = newBrowser(t, w, "dana").open(t, baseURL+"/api/apps/"+app+"/view?role=approver")
		is.Equal(contextOf(t, a).Roles, []string{"approver"})
		at, a = newBrowser(t, w, "mia").open(t, baseURL+"/api/apps/"+app+"/view?print=landscape")
		is.Equal(at, origin+"/?print=landscape")
		is.True(strings.Contains(a.body, "@page{size:landscape}"))
		is.Equal(
			newBrowser(t, w, "mia").get(t, baseURL+"/api/apps/"+app+"/view?role=approver", navigation...).status,
			403,
		)
		is.True(!strings.Contains(w.log.String(), "code=") && !strings.Contains(w.log.String(), "challenge"))
	})
}

// TestAppOriginRefuses: a code is for one browser, once and for seconds; a cookie for one app, as
// long as its viewer may run it.
func TestAppOriginRefuses(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withAppOrigin)
		app, other := sales(t, w, "Sales"), sales(t, w, "Other")
		b := newBrowser(t, w, "mia")
		at, _ := b.open(t, baseURL+"/api/apps/"+app+"/view")
		origin := strings.TrimSuffix(at, "/")
		host := b.host(t, origin)
		code := b.visited[3]
		is.True(strings.Contains(code, "/.open?code="))

		is.Equal(newBrowser(t, w, "").get(t, code).status, 401) // of another browser
		is.Equal(b.get(t, code).header.Get("Location"), origin+"/")
		mine := b.cookies[host]["__Host-view"]
		delete(b.cookies[host], "__Host-view")
		is.Equal(b.get(t, code).status, 401) // used

		start := func() (b *browser, code string) { // up to the code
			b = newBrowser(t, w, "mia")
			first := b.get(t, origin+"/orders", navigation...).header.Get("Location")
			return b, b.get(t, first).header.Get("Location")
		}
		c, late := start()
		w.pass(31 * time.Second)
		is.Equal(c.get(t, late).status, 401)
		c, stolen := start()
		thief := newBrowser(t, w, "eve")
		thief.get(t, origin+"/orders", navigation...) // has a verifier of its own
		is.Equal(thief.get(t, stolen).status, 401)
		otherAt, _ := b.open(t, baseURL+"/api/apps/"+other+"/view")
		elsewhere := strings.Replace(stolen, origin, strings.TrimSuffix(otherAt, "/"), 1)
		c.set(c.host(t, otherAt), "__Host-open", c.cookies[host]["__Host-open"])
		is.Equal(c.get(t, elsewhere).status, 401) // of another app
		is.Equal(c.get(t, stolen).header.Get("Location"), origin+"/orders")

		is.Equal(b.get(t, origin+"/a.js").status, 401)
		b.set(b.host(t, otherAt), "__Host-view", mine)
		is.Equal(b.get(t, otherAt+"a.js").status, 401)
		b.set(host, "__Host-view", stolen[strings.Index(stolen, "~"):strings.Index(stolen, "&")])
		is.Equal(b.get(t, origin+"/a.js").status, 401) // a code is no cookie
		b.set(host, "__Host-view", mine)
		is.Equal(b.get(t, origin+"/a.js").status, 200)

		for _, from := range [][]string{
			{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"},
			{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"},
			{"Sec-Fetch-Site: same-origin", "Service-Worker: script"},
		} {
			is.Equal(b.get(t, origin+"/a.js", from...).status, 403)
		}
		is.Equal(b.get(t, origin+"/a.js", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors").status, 200)

		label := strings.TrimPrefix(host[:strings.Index(host, ".")], app)
		for _, none := range []string{
			"x.apps.example.net", ".apps.example.net", "a." + host,
			host + ".", host + ":444", strings.ToUpper(app) + ".apps.example.net",
			app + ".apps.example.net", "00000000-0000-0000-0000-00000000000g" + label + ".apps.example.net",
		} {
			r := httptest.NewRequest("GET", "/api/session", nil)
			r.Host = none
			r.Header.Set("Authorization", "Bearer "+w.token(t, "mia"))
			if got := w.send(r).status; got != 404 {
				t.Errorf("%s: %d", none, got)
			}
		}
		// of a tenant that is not the viewer's
		wrong := strings.Replace(origin, label, "-aaaaaaaaaaaaaaaaaaaaaaaaaa", 1)
		w2 := newBrowser(t, w, "mia")
		landed, a := w2.open(t, wrong+"/x")
		is.Equal(a.status, 401)
		is.True(strings.HasPrefix(landed, origin+"/.open?code="))

		view := baseURL + "/api/apps/" + app + "/view"
		for _, bad := range []string{"", "x", strings.Repeat("A", 44)} {
			is.Equal(newBrowser(t, w, "mia").get(t, view+"?challenge="+bad).status, 400)
		}
		for _, path := range []string{
			"https://evil.example/", "//evil.example", "evil", `\\evil.example`, "/.open?x", "", "/%zz",
			strings.Repeat("/x", 2000),
		} {
			landed, _ := newBrowser(t, w, "mia").open(t, view+"?path="+url.QueryEscape(path))
			if landed != origin+"/" {
				t.Errorf("%.30q led to %s", path, landed)
			}
		}
		is.Equal(newBrowser(t, w, "").get(t, view, navigation...).status, 401)
		tossed := newBrowser(t, w, "") // a page of another subdomain can set it
		tossed.set(tossed.host(t, baseURL), "sid", w.token(t, "mia"))
		is.Equal(tossed.get(t, view, navigation...).status, 401)
		landed, a = newBrowser(t, w, "").open(t, origin+"/")
		is.Equal(a.status, 401) // from the service
		is.True(strings.HasPrefix(landed, baseURL))

		w.must(t, "admin", "DELETE", "/api/apps/"+app+"/shares/mia", "")
		is.Equal(b.get(t, origin+"/a.js").status, 404)
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/mia", `{"accessLevel": 1}`)
		is.Equal(b.get(t, origin+"/a.js").status, 200)
		b = newBrowser(t, w, "mia") // with the session of now
		b.open(t, origin+"/")
		is.Equal(b.get(t, origin+"/a.js").status, 200)
		w.must(t, "mia", "POST", "/api/logout", "")
		is.Equal(b.get(t, origin+"/a.js").status, 401)
		is.True(strings.HasPrefix(b.get(t, origin+"/", navigation...).header.Get("Location"), view+"?challenge="))
	})
}

func TestAppOriginConfig(t *testing.T) {
	db := dbtest.SQLite(t)
	for _, c := range []struct{ origin, base, says string }{
		{"https://{app}.apps.example.com", "https://content.example.com", ""},
		{"https://{app}.apps.example.com:8443", "https://content.example.com:8443", ""},
		{"http://{app}.localhost:8080", "http://localhost:8080", ""},
		{"http://{app}.apps.localhost", "http://content.localhost", ""},
		{"https://apps.example.com", "https://content.example.com", "must have {app}"},
		{"https://{app}", "https://content.example.com", "must be https://, {app} and a domain"},
		{"{app}.apps.example.com", "https://content.example.com", "must be https://, {app} and a domain"},
		{"ftp://{app}.apps.example.com", "https://content.example.com", "must be https://"},
		{"https://x{app}.apps.example.com", "https://content.example.com", "must be https://"},
		{"https://{app}.{app}.example.com", "https://content.example.com", "must be https://"},
		{
			"http://{app}.apps.example.com", "https://content.example.com",
			"must be https://: only names below localhost",
		},
		{"https://{app}.apps.example.com/", "https://content.example.com", "without a path"},
		{"https://{app}.apps.example.com?x", "https://content.example.com", "without a path"},
		{"https://{app}.APPS.example.com", "https://content.example.com", "in lower case"},
		{"https://{app}.apps.example.com.", "https://content.example.com", "without a path"},
		{"https://{app}.", "https://content.example.com", "and a domain"},
		{"https://{app}.u:p@example.com", "https://content.example.com", "without a path"},
		{"https://{app}." + strings.Repeat("a.", 100) + "com", "https://content.example.com", "shorter domain"},
		{"https://{app}.example.com", "https://content.example.com", "another domain than the base URL"},
		{"https://{app}.example.com", "https://example.com/content", "another domain than the base URL"},
		{"https://{app}.com", "https://content.example.com", "another domain than the base URL"},
	} {
		_, err := tenantcontent.Open(tenantcontent.Config{
			DB:        db,
			SecretKey: tenantcontent.NewSecretKey(),
			BaseURL:   c.base,
			AppOrigin: c.origin,
		})
		switch {
		case c.says == "" && err == nil:
		case c.says == "" || err == nil || errs.CodeOf(err) != errs.Invalid ||
			!strings.Contains(errs.MessageOf(err), c.says):
			t.Errorf("%s with %s: %v", c.origin, c.base, err)
		}
	}
}
