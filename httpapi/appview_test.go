package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

var manifestOfSales = "access: [colors, 'users/:name', 'principals/*']\nroles: [viewer, approver]\n"

// sales makes an app of dana's, which mia may run, and returns its id.
func sales(t *testing.T, w *world, name string) string {
	t.Helper()
	app := read[struct{ ID string }](
		t, w.must(t, "dana", "POST", "/api/apps", `{"type": "report", "name": "`+name+`"}`),
	).ID
	for _, f := range [][3]string{
		{"index.html", "text/html", "<head><title>x</title></head>"},
		{"a.js", "text/javascript", "export default 1"}, {"sub/page.html", "text/html", "<p>sub"},
		{"informer.yaml", "application/yaml", manifestOfSales},
		{"server/a.js", "text/javascript", "// secret"}, {"webhooks/a.js", "text/javascript", "// secret"},
		{"migrations/1.sql", "text/plain", "-- secret\nCREATE TABLE secret (id integer)"},
		{"tools/a.js", "text/javascript", "secret"}, {"app.yaml", "text/plain", "secret"},
		{".env", "text/plain", "secret"}, {"sub/.git/config", "text/plain", "secret"},
		{"bin.zip", "application/zip", "PK"}, {"api/colors", "text/plain", "file"},
	} {
		w.must(t, "dana", "PUT", "/api/apps/"+app+"/contents/"+f[0], f[2], "Content-Type: "+f[1])
	}
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/mia", `{"accessLevel": 1, "roles": ["viewer"]}`)
	return app
}

var baseOf = regexp.MustCompile(`<base href="` + baseURL + `([^"]*/view/-/~[^"/]*/)`)

// opened returns the path below which the page of an app has all that is its own, for somebody who
// opens it.
func opened(t *testing.T, w *world, user, app string) string {
	t.Helper()
	a := w.must(t, user, "GET", "/api/apps/"+app+"/view", "")
	m := baseOf.FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("no base: %s", a.body)
	}
	return m[1]
}

// contextOf returns what a page finds in window.informer.
func contextOf(t *testing.T, a answer) (c struct {
	App      struct{ ID, Name string }
	User     struct{ Username, DisplayName string }
	Roles    []string
	Base     string
	API      string
	Datasets map[string]struct {
		Label  string
		Fields []map[string]string
	}
}) {
	t.Helper()
	is := is.New(t)
	_, rest, _ := strings.Cut(a.body, "window.informer=JSON.parse(")
	text, _, _ := strings.Cut(rest, ");")
	var inner string
	is.NoErr(json.Unmarshal([]byte(text), &inner))
	is.NoErr(json.Unmarshal([]byte(inner), &c))
	return c
}

// TestAppView: the page has a base with a token, below which its files and calls are without any
// other credential.
func TestAppView(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := sales(t, w, "Sales")
		a := w.must(t, "mia", "GET", "/api/apps/"+app+"/view", "")
		base := opened(t, w, "mia", app)
		c := contextOf(t, a)
		is.Equal(c.App.ID, app)
		is.Equal(c.App.Name, "Sales")
		is.Equal(c.User.Username, "mia")
		is.Equal(c.User.DisplayName, "Mia Wong")
		is.Equal(c.Roles, []string{"viewer"})
		is.Equal(c.Base, baseURL+base)
		is.Equal(c.API, baseURL+base+"api/")
		is.Equal(len(c.Datasets), 0)
		is.Equal(a.header.Get("Content-Type"), "text/html; charset=utf-8")
		is.Equal(a.header.Get("Cache-Control"), "no-store")
		is.Equal(a.header.Get("Access-Control-Allow-Origin"), "") // a page of an app may not read it

		get := func(path string, headers ...string) answer { return w.do(t, "", "GET", base+path, "", headers...) }
		js := get("a.js")
		is.Equal(js.body, "export default 1")
		is.Equal(js.header.Get("Content-Type"), "text/javascript; charset=utf-8")
		is.True(js.header.Get("Etag") != "")
		is.Equal(js.header.Get("Vary"), "") // a script is the same for a visit
		is.Equal(get("index.html").header.Get("Vary"), "Accept, Sec-Fetch-Mode")
		is.Equal(get("a.js", "If-None-Match: "+js.header.Get("Etag")).status, 304)
		is.Equal(get("a.js", "Range: bytes=0-5").body, "export")
		is.Equal(get("a.js", "Range: bytes=99-").status, 416)
		is.Equal(get("bin.zip").header.Get("Content-Disposition"), "attachment")
		is.Equal(get("index.html").body, "<head><title>x</title></head>") // as a part of a page
		is.Equal(get("nothing").status, 404)

		visit := "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
		for path, from := range map[string]string{
			"":              base,
			"index.html":    base,
			"deep/route":    base,
			"sub/page.html": base + "sub/",
		} {
			a := get(path, visit)
			is.Equal(a.status, 200)
			is.True(strings.Contains(a.body, `<base href="`+baseURL+from+`">`)) // the same token
			is.Equal(contextOf(t, a).Base, baseURL+base)
		}
		is.Equal(get("deep/route", visit, "Sec-Fetch-Mode: cors").status, 404)

		w.must(t, "dana", "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
		colors := get("api/colors?limit=1")
		is.Equal(read[page](t, colors).Total, 1)
		is.Equal(colors.header.Get("Access-Control-Allow-Origin"), "null")
		is.Equal(read[struct{ Username string }](t, get("api/users/mia")).Username, "mia")
		is.Equal(get("api/principals/mia").status, 403) // a redirect
		is.Equal(get("api/principals/mia").header.Get("Location"), "")
		is.Equal(w.must(t, "mia", "GET", "/api/apps/"+app+"/view/-/api/colors", "").body, "file")

		for _, path := range []string{
			"", "a.js", "nothing", "api/colors", "api/users", "api/principals/mia", "server/a.js",
		} {
			h := get(path).header
			is.Equal(h.Get("Access-Control-Allow-Origin"), "null")
			is.Equal(h.Get("X-Content-Type-Options"), "nosniff")
			is.Equal(h.Get("Referrer-Policy"), "no-referrer")
			csp := h.Get("Content-Security-Policy")
			is.True(strings.HasPrefix(csp, "sandbox allow-scripts ") &&
				strings.Contains(csp, "default-src "+baseURL+base+" 'unsafe-inline'"))
			is.True(!strings.Contains(csp, "allow-same-origin"))
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			is.Equal(w.do(t, "", method, base+"api/colors", "").status, 405)
		}
		is.True(!strings.Contains(w.log.String(), strings.Split(base, "/")[6]))
	})
}

// TestAppViewFolders: a browser that goes to a folder gets its index.html, one that goes to a name
// the page with .html, and else the entry page; what is fetched is a file by its own path.
func TestAppViewFolders(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := sales(t, w, "Sales")
	for path, content := range map[string]string{
		"docs/index.html":   "<title>docs</title>",
		"about.html":        "<title>about</title>",
		"docs/guide.html":   "<title>guide</title>",
		"plain":             "<title>plain</title>",
		"plain.html":        "no",
		"server/index.html": "secret",
	} {
		w.must(t, "dana", "PUT", "/api/apps/"+app+"/contents/"+path, content, "Content-Type: "+map[bool]string{
			true:  "text/html",
			false: "text/plain",
		}[strings.HasSuffix(path, ".html")])
	}
	base := opened(t, w, "mia", app)
	for path, want := range map[string]string{
		"docs/": "docs", "about": "about", "about.html": "about", "docs/guide": "guide", "docs": "x",
		"docs/index": "docs", "orders/5": "x", "orders/5/": "x", "./": "x", "": "x",
		"about/": "x", "docs/other/": "x", "docs//": "x", "/docs/": "x", "about.pdf": "x",
		"server/": "x", "server/index": "x", ".git/": "x", "api/": "403", "api/colors/": "404", "api//colors": "404",
	} {
		for _, at := range []string{base + path, "/api/apps/" + app + "/view/-/" + path} {
			if strings.HasPrefix(path, "api/") && at != base+path { // there they are files, which are missing
				continue
			}
			user := map[bool]string{true: "", false: "mia"}[at == base+path]
			a := w.do(t, user, "GET", at, "", "Accept: text/html", "Sec-Fetch-Mode: navigate")
			title := fmt.Sprint(a.status)
			if a.status == 200 {
				_, title, _ = strings.Cut(a.body, "<title>")
				title, _, _ = strings.Cut(title, "<")
				is.True(strings.Contains(a.body, "<base href="))
			}
			if title != want && (path != "" || at == base) {
				t.Errorf("%s: %s, not %s", at, title, want)
			}
			if path != "plain" && path != "about.html" && path != "" && !strings.HasPrefix(path, "api") &&
				w.do(t, user, "GET", at, "").status != 404 {
				t.Errorf("%s is there without a visit", at)
			}
		}
	}
	is.True(strings.Contains(
		w.do(t, "", "GET", base+"docs/", "", "Accept: text/html").body, `<base href="`+baseURL+base+`docs/">`,
	))
	// the file itself, which is no page
	is.Equal(w.do(t, "", "GET", base+"plain", "", "Accept: text/html").body, "<title>plain</title>")
}

// TestAppViewRefuses: nothing but the app's own is below its token, for as long as the viewer may
// run it.
func TestAppViewRefuses(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app, other := sales(t, w, "Sales"), sales(t, w, "Other")
		base := opened(t, w, "mia", app)
		token := strings.Split(base, "/")[6]
		get := func(target string) answer { return w.do(t, "", "GET", target, "") }

		for _, path := range []string{
			"server/a.js", "SERVER/a.js", "webhooks/a.js", "migrations/1.sql", "tools/a.js",
			"informer.yaml", "INFORMER.YAML", "app.yaml", ".env", "sub/.git/config",
			"../contents/informer.yaml", "..%2Fcontents%2Finformer.yaml",
			"%2e%2e/%2e%2e/contents/a.js", "./informer.yaml", "sub/../informer.yaml",
			"sub%2F..%2Finformer.yaml", "server%2Fa.js", "%73erver/a.js",
			"a.js%5C..%5Cserver", "sub//page.html", "/a.js", "a.js/",
		} {
			for _, target := range []string{base + path, "/api/apps/" + app + "/view/-/" + path} {
				user := map[bool]string{true: "", false: "mia"}[strings.HasPrefix(target, base)]
				a := w.do(t, user, "GET", target, "")
				if a.status != 404 || strings.Contains(a.body, "secret") {
					t.Errorf("%s: %d %s", target, a.status, a.body)
				}
			}
		}
		for _, path := range []string{
			"api/tokens", "api/session", "api/apps", "api/apps/" + other, "api/users",
			"api/users/mia/password", "api/colors/red", "api/colors%2Fred", "api/colors/..", "api/../apps",
			"api/%2e%2e/apps", "api/users/..%2F..%2Ftokens", "api/Colors", "api/colors/", "api/_server/a",
		} {
			if a := get(base + path); a.status != 403 && a.status != 404 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}

		stranger := newWorld(t, dbtest.SQLite)
		forged := map[string]string{
			"of another app": "/api/apps/" + other + "/view/-/" + token,
			"changed":        base[:len(base)-2] + "x", "empty": "/api/apps/" + app + "/view/-/~",
			"no MAC": "/api/apps/" + app + "/view/-/" + token[:strings.Index(token, ".")],
			"of another key": "/api/apps/" + app + "/view/-/" + strings.Split(
				opened(t, stranger, "mia", sales(t, stranger, "Sales")), "/",
			)[6],
		}
		for name, prefix := range forged {
			for _, path := range []string{"/a.js", "/api/colors"} {
				a := get(prefix + path)
				if a.status != 401 {
					t.Errorf("a token %s: %d %s", name, a.status, a.body)
				}
			}
		}
		is.Equal(w.do(t, "mia", "GET", "/api/apps/"+app+"/view/api/"+token+"/colors", "").status, 404)
		is.Equal(w.do(t, "", "GET", "/api/colors", "", "Authorization: Bearer "+token).status, 401) // it is no session
		is.Equal(w.do(t, "", "GET", "/api/apps/"+app+"/view", "", "Cookie: sid="+token).status, 401)
		is.Equal(
			w.do(t, "mia", "GET", "/api/apps/"+app+"/view/-/a.js", "").header.Get("Access-Control-Allow-Origin"),
			"",
		)
		for _, user := range []string{"nora", "eve"} { // who do not see the app
			for _, path := range []string{"view", "view/-/a.js", "view/api/colors", "roles", "data-access"} {
				is.Equal(w.do(t, user, "GET", "/api/apps/"+app+"/"+path, "").status, 404)
			}
		}
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/nora", `{"accessLevel": 1}`)
		is.Equal(w.do(t, "nora", "GET", "/api/apps/"+app+"/view", "").status, 403) // who has no role

		// Rights are asked again for each file and call.
		still := func(status int) {
			t.Helper()
			for _, path := range []string{"a.js", "api/colors"} {
				if a := get(base + path); a.status != status {
					t.Errorf("%s: %d %s", path, a.status, a.body)
				}
			}
		}
		still(200)
		w.must(t, "admin", "DELETE", "/api/apps/"+app+"/shares/mia", "")
		still(404)
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/mia", `{"accessLevel": 1}`)
		still(200)
		w.must(
			t, "dana", "PUT", "/api/apps/"+app+"/contents/informer.yaml", "access: [teams]",
			"Content-Type: application/yaml",
		)
		is.Equal(get(base+"api/colors").status, 401) // the page was opened under another list
		is.Equal(get(opened(t, w, "mia", app)+"api/colors").status, 403)
		w.must(
			t, "dana", "PUT", "/api/apps/"+app+"/contents/informer.yaml", manifestOfSales,
			"Content-Type: application/yaml",
		)
		w.must(t, "admin", "PUT", "/api/users/mia", `{"enabled": false}`)
		still(401)
		w.must(t, "admin", "PUT", "/api/users/mia", `{"enabled": true}`)
		still(401) // the session has ended
		w.pass(0)
		base = opened(t, w, "mia", app)
		still(200)
		w.must(t, "mia", "POST", "/api/logout", "")
		still(401)
		w.pass(0)
		base = opened(t, w, "mia", app)
		for range 12 { // an hour without use would end it
			w.pass(59 * time.Minute)
			still(200)
		}
		w.pass(12*time.Minute - 2*time.Second) // tokens end at whole seconds
		still(200)
		w.pass(2 * time.Second) // token and session end
		still(401)
	})
}

// TestAppViewOfToken: with an API token that can only read, an app is viewed for as long as the
// token lives.
func TestAppViewOfToken(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := sales(t, w, "Sales")
	key := read[struct{ ID, Key string }](t, w.must(t, "mia", "POST", "/api/tokens", `{"readOnly": true}`))
	a := w.must(t, "", "GET", "/api/apps/"+app+"/view", "", "Authorization: Bearer "+key.Key)
	base := baseOf.FindStringSubmatch(a.body)[1]
	is.Equal(w.do(t, "", "GET", base+"a.js", "").status, 200)
	w.must(t, "mia", "DELETE", "/api/tokens/"+key.ID, "")
	is.Equal(w.do(t, "", "GET", base+"a.js", "").status, 401)
}

// TestAppViewOfDraft: a draft is shown to those who may change the app.
func TestAppViewOfDraft(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := sales(t, w, "Sales")
	draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/apps/"+app+"/_edit", "")).ID
	w.must(t, "dana", "PUT", "/api/apps/"+draft+"/contents/index.html", "new", "Content-Type: text/html")
	is.True(strings.HasSuffix(w.must(t, "dana", "GET", "/api/apps/"+draft+"/view", "").body, "new"))
	is.True(!strings.HasSuffix(w.must(t, "dana", "GET", "/api/apps/"+app+"/view", "").body, "new"))
	is.Equal(w.do(t, "mia", "GET", "/api/apps/"+draft+"/view", "").status, 404)
	is.Equal(w.do(t, "", "GET", strings.Replace(opened(t, w, "dana", app), app, draft, 1)+"a.js", "").status, 401)
}

// TestAppViewContext: the definition comes before the manifest, a page in a folder has its own
// base, and settings pass datasets.
func TestAppViewContext(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := sales(t, w, "Sales")
	one := "/api/apps/" + app
	dataset := read[struct{ ID string }](
		t,
		w.must(
			t, "dana", "POST", "/api/datasets",
			`{"name": "Orders", "data": {"fields": [{"name": "day", "type": "date", "label": "Day"}]}}`,
		),
	).ID
	w.must(t, "dana", "PUT", one+"/dependencies/orders", `{"datasetId": "`+dataset+`", "label": "All orders"}`)
	w.must(t, "dana", "PUT", one, `{"defn": {"entryPoint": "sub/page.html"}, "settings": {"passDatasets": true}}`)
	a := w.must(t, "mia", "GET", one+"/view?print=landscape", "")
	c := contextOf(t, a)
	is.True(strings.Contains(a.body, `<base href="`+c.Base+`sub/">`))
	is.True(strings.Contains(a.body, `<style>@page{size:landscape}</style>`))
	is.Equal(c.Datasets["orders"].Label, "All orders")
	is.Equal(c.Datasets["orders"].Fields[0]["name"], "day")
	w.must(t, "dana", "PUT", one, `{"defn": {"entryPoint": "server/a.js"}}`)
	is.True(strings.Contains(
		w.must(t, "mia", "GET", one+"/view", "").body, "Pages cannot be at <code>server/a.js</code>",
	))
	w.must(t, "dana", "PUT", one, `{"defn": {"entryPoint": "<b>.html"}}`)
	none := w.must(t, "mia", "GET", one+"/view", "")
	is.True(strings.Contains(none.body, "There is no file <code>&lt;b&gt;.html</code>: add it"))
	is.Equal(none.header.Get("Content-Type"), "text/html; charset=utf-8")
	w.must(t, "dana", "PUT", one, `{"defn": {"entryPoint": null}}`)
	is.Equal(contextOf(t, w.must(t, "dana", "GET", one+"/view?role=approver", "")).Roles, []string{"approver"})
	is.Equal(contextOf(t, w.must(t, "mia", "GET", one+"/view?role=viewer", "")).Roles, []string{"viewer"})
	is.Equal(w.do(t, "mia", "GET", one+"/view?role=approver", "").status, http.StatusForbidden)
	is.Equal(w.do(t, "mia", "GET", one+"/view?print=x", "").status, http.StatusBadRequest)
}

// TestAppViewIsFresh: pages load what was written last, and nobody loads what is closed to them
// now, though what they load is kept in memory.
func TestAppViewIsFresh(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := sales(t, w, "Sales")
		base := opened(t, w, "mia", app)
		get := func() answer { return w.do(t, "", "GET", base+"a.js", "") }
		first := get()
		is.Equal(first.body, "export default 1")
		w.must(t, "dana", "PUT", "/api/apps/"+app+"/contents/a.js", "export default 2", "Content-Type: text/javascript")
		is.Equal(
			w.do(t, "", "GET", base+"a.js", "", "If-None-Match: "+first.header.Get("Etag")).body,
			"export default 2",
		)
		w.must(t, "dana", "DELETE", "/api/apps/"+app+"/contents/a.js", "")
		is.Equal(get().status, 404)
		w.must(t, "dana", "PUT", "/api/apps/"+app+"/contents/a.js", "export default 3", "Content-Type: text/javascript")
		is.Equal(get().body, "export default 3")

		w.must(
			t, "dana", "PUT", "/api/apps/"+app+"/contents/informer.yaml", "roles: [viewer]\n",
			"Content-Type: application/yaml",
		)
		is.Equal(w.do(t, "", "GET", base+"api/colors", "").status, 401)
		base = opened(t, w, "mia", app)
		is.Equal(w.do(t, "", "GET", base+"api/colors", "").status, 403)
		draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/apps/"+app+"/_edit", "")).ID
		w.must(
			t, "dana", "PUT", "/api/apps/"+draft+"/contents/a.js", "export default 4",
			"Content-Type: text/javascript",
		)
		is.Equal(get().body, "export default 3")
		w.must(t, "dana", "POST", "/api/apps/"+app+"/draft/_commit", "")
		is.Equal(get().body, "export default 4")

		share := "/api/apps/" + app + "/shares/mia"
		w.must(t, "admin", "PUT", share, `{"accessLevel": 0}`)
		is.Equal(get().status, 404)
		w.must(t, "admin", "PUT", share, `{"accessLevel": 1}`)
		is.Equal(get().status, 200)
		w.must(t, "admin", "DELETE", share, "")
		is.Equal(get().status, 404)
		w.must(t, "admin", "PUT", share, `{"accessLevel": 1}`)
		is.Equal(get().status, 200)
		w.must(t, "dana", "DELETE", "/api/apps/"+app, "")
		is.Equal(get().status, 404)
		w.must(t, "dana", "POST", "/api/apps/"+app+"/_restore", "")
		is.Equal(get().status, 200)
		w.must(t, "admin", "PUT", "/api/users/mia", `{"enabled": false}`)
		is.Equal(get().status, 401)
	})
}
