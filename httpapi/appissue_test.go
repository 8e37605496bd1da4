package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// endedBody is the answer to a request below a view token that has ended.
type endedBody struct {
	StatusCode int
	Message    string
	Reload     string
}

// TestTokenIsNotWidened: the page that a superuser has open calls nothing that the designer of the
// app has deployed since.
func TestTokenIsNotWidened(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{"informer.yaml": "access: []\nroles: [clerk]\n"})
		stolen := opened(t, w, "admin", app)
		is.Equal(w.do(t, "", "GET", stolen+"index.html", "").status, 200)
		put(t, w, app, map[string]string{
			"informer.yaml": "access: ['PUT assistants/**', 'GET colors']\n",
			"server/x.js":   callJS,
		})
		w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
		for _, c := range []struct{ method, path string }{
			{"POST", "api/_server/x"}, {"POST", "api/_server/none"}, {"GET", "api/colors"},
			{"GET", "api/tokens"}, {"GET", "index.html"}, {"GET", "none"},
		} {
			a := w.do(
				t, "", c.method, stolen+c.path,
				`{"method": "PUT", "path": "colors/red", "body": {"color": "#ff0000"}}`, "Origin: null",
			)
			is.Equal(a.status, http.StatusUnauthorized)
			is.Equal(read[endedBody](t, a), endedBody{
				401, "The app has changed since it was opened: open it again.",
				baseURL + "/api/apps/" + app + "/view",
			})
			is.Equal(a.header.Get("Access-Control-Allow-Origin"), "null") // the page can read it
		}
		again := opened(t, w, "admin", app)
		is.Equal(w.do(t, "", "GET", again+"api/colors", "").status, 200)
		is.Equal(w.do(t, "", "POST", again+"api/_server/x", `{"method": "GET", "path": "colors"}`).body, "200")
	})
}

// TestWhatEndsTokens: a view token is for what the server of the app runs, which calls it may make
// and which datasets it uses, and for no pages.
func TestWhatEndsTokens(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		manifest := "access: [colors, 'GET users/*']\nroles: [clerk, boss]\n"
		app := shop(t, w, map[string]string{
			"informer.yaml": manifest, "server/a.js": "import n from '../lib/n.js'\nexport const GET = () => n",
			"lib/n.js": "export default 1", "a.js": "1",
		})
		dataset, err := w.app.Content.Create(
			actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "dana", Superuser: true}),
			content.Entity{Kind: content.Dataset, Name: "Rows"},
		)
		is.NoErr(err)
		one := "/api/apps/" + app
		w.must(t, "dana", "PUT", one+"/dependencies/old", `{"datasetId": "`+dataset.ID+`"}`)
		deploy := func(files map[string]string) func() {
			return func() { put(t, w, app, files); w.must(t, "dana", "POST", one+"/_deploy", "") }
		}
		commit := func(path, text string) func() {
			return func() {
				draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/_edit", "")).ID
				w.must(t, "dana", "PUT", "/api/apps/"+draft+"/contents/"+path, text, "Content-Type: text/plain")
				w.must(t, "dana", "POST", one+"/draft/_commit", "")
			}
		}
		for _, c := range []struct {
			what   string
			change func()
			ends   bool
		}{
			{"nothing", func() { w.must(t, "dana", "POST", one+"/_deploy", "") }, false},
			{"a page", deploy(map[string]string{"index.html": "<head></head>2", "a.js": "2"}), false},
			{"a page in a draft", commit("a.js", "3"), false},
			{"a webhook", deploy(map[string]string{"webhooks/in.js": "export const POST = () => 1"}), false},
			{
				"a role and texts",
				deploy(map[string]string{"informer.yaml": manifest + "entryPoint: index.html\n"}), false,
			},
			{"the name", func() { w.must(t, "dana", "PUT", one, `{"name": "Other"}`) }, false},
			{"an import", deploy(map[string]string{"lib/n.js": "export default 2"}), true},
			{"a handler", deploy(map[string]string{"server/a.js": "export const GET = () => 3"}), true},
			{"a handler in a draft", commit("server/a.js", "export const GET = () => 4"), true},
			{"a new handler", deploy(map[string]string{"server/b/[id].js": "export const GET = () => 3"}), true},
			{"fewer handlers", func() {
				w.must(t, "dana", "DELETE", one+"/contents/server/a.js", "")
				deploy(nil)()
			}, true},
			{"fewer calls", deploy(map[string]string{"informer.yaml": "access: [colors]\n"}), true},
			{"more calls", deploy(map[string]string{"informer.yaml": "access: [colors, 'GET,PUT colors/*']\n"}), true},
			{"more calls in a draft", commit("informer.yaml", "access: [colors, users]\n"), true},
			{"a binding", func() {
				w.must(t, "dana", "PUT", one+"/dependencies/rows", `{"datasetId": "`+dataset.ID+`"}`)
			}, true},
			{"no binding", func() { w.must(t, "dana", "DELETE", one+"/dependencies/rows", "") }, true},
		} {
			base := opened(t, w, "mia", app)
			is.Equal(w.do(t, "", "GET", base+"api/colors", "").status, 200)
			c.change()
			for _, path := range []string{"api/colors", "a.js"} {
				if got := w.do(t, "", "GET", base+path, "").status; got != map[bool]int{false: 200, true: 401}[c.ends] {
					t.Errorf("%s: %s is %d", c.what, path, got)
				}
			}
		}
	})
}

// TestTokenOfDraftEnds: a draft runs what its files are at the moment, so each change of a script
// ends the token of its page.
func TestTokenOfDraftEnds(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{"server/a.js": "export const GET = () => 1"})
	draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/apps/"+app+"/_edit", "")).ID
	of, base := opened(t, w, "dana", app), opened(t, w, "dana", draft)
	is.Equal(w.do(t, "", "GET", base+"api/_server/a", "").body, "1")
	put(t, w, draft, map[string]string{"index.html": "<head></head>2"})
	is.Equal(w.do(t, "", "GET", base+"api/_server/a", "").body, "1")
	put(t, w, draft, map[string]string{"server/a.js": "export const GET = () => 2"})
	is.Equal(w.do(t, "", "GET", base+"api/_server/a", "").status, 401)
	is.Equal(w.do(t, "", "GET", opened(t, w, "dana", draft)+"api/_server/a", "").body, "2")
	is.Equal(w.do(t, "", "GET", of+"api/_server/a", "").body, "1") // what the app runs is the same
}

// TestTokenEndsAfterTwelveHours: also that of a session or API token that goes on, and that of a
// visitor, who has the link.
func TestTokenEndsAfterTwelveHours(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, nil)
	key := "Authorization: Bearer " + read[struct{ Key string }](t, w.must(t, "mia", "POST", "/api/tokens", "{}")).Key
	share := "/api/apps/" + app + "/share?token=" + read[struct{ Key string }](
		t, w.must(t, "admin", "POST", "/api/apps/"+app+"/tokens", "{}"),
	).Key
	viewer, chosen := baseIn(
		t, w.must(t, "", "GET", "/api/apps/"+app+"/view", "", key),
	), baseIn(t, w.must(t, "", "GET", "/api/apps/"+app+"/view?role=clerk", "", key))
	visitor := baseIn(t, w.must(t, "", "GET", share, ""))
	all := map[string]string{
		viewer:  baseURL + "/api/apps/" + app + "/view",
		chosen:  baseURL + "/api/apps/" + app + "/view?role=clerk",
		visitor: "",
	}
	used := func() {
		for base := range all {
			is.Equal(w.do(t, "", "GET", base+"api/colors", "").status, 200)
		}
	}
	for range 14 { // 11 hours and 54 minutes
		w.pass(51 * time.Minute)
		used()
	}
	w.pass(view.Lifetime - 14*51*time.Minute)
	for base, reload := range all {
		a := w.do(t, "", "GET", base+"api/colors", "")
		is.Equal(a.status, 401)
		is.Equal(read[endedBody](t, a), endedBody{401, "The view of the app has expired: open the app again.", reload})
	}
	is.Equal(w.do(t, "", "GET", viewer+"about", "", "Sec-Fetch-Mode: navigate").header.Get("Location"), all[viewer])
	is.Equal(w.do(t, "", "GET", visitor+"about", "", "Sec-Fetch-Mode: navigate").status, 401)
	is.Equal(w.do(t, "", "GET", baseIn(t, w.must(t, "", "GET", share, ""))+"api/colors", "").status, 200)
}

// TestTokenEndsWithoutUse: a page that was not used for an hour is 401, with the address that opens
// the app again.
func TestTokenEndsWithoutUse(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, nil)
	key := "Authorization: Bearer " + read[struct{ Key string }](t, w.must(t, "mia", "POST", "/api/tokens", "{}")).Key
	base := baseIn(t, w.must(t, "", "GET", "/api/apps/"+app+"/view", "", key))
	for range 3 {
		w.pass(view.Idle - time.Minute)
		is.Equal(w.do(t, "", "GET", base+"index.html", "").status, 200)
	}
	w.pass(view.Idle)
	for _, path := range []string{"index.html", "api/colors", "api/_server/x"} {
		a := w.do(t, "", "GET", base+path, "")
		is.Equal(read[endedBody](t, a), endedBody{
			401, "The view of the app was not used for an hour: open the app again.",
			baseURL + "/api/apps/" + app + "/view",
		})
	}
}

// TestTokenAtOriginEndsWithoutUse: the same holds for the cookie of an app's own origin.
func TestTokenAtOriginEndsWithoutUse(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withAppOrigin)
	app := shop(t, w, nil)
	b := newBrowser(t, w, "mia")
	origin, _ := b.open(t, baseURL+"/api/apps/"+app+"/view")
	origin = strings.TrimSuffix(origin, "/")
	for range 3 {
		w.pass(view.Idle - time.Minute)
		is.Equal(b.get(t, origin+"/api/colors").status, 200)
	}
	w.pass(view.Idle)
	for _, path := range []string{"/api/colors", "/a.js"} {
		a := b.get(t, origin+path)
		is.Equal(read[endedBody](t, a), endedBody{
			401, "The view of the app was not used for an hour: open the app again.",
			baseURL + "/api/apps/" + app + "/view",
		})
	}
}

// TestLinkKeepsItsAccess: the calls of a link are those that the manifest allowed when it was made,
// as far as it allows them still.
func TestLinkKeepsItsAccess(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"informer.yaml": "access: ['GET,PUT colors/*', users]\nroles: [clerk]\n",
			"server/x.js": "export const GET = async ({ fetch, request }) => { try { return (await " +
				"fetch(request.query.path)).status } catch (e) { return e.code } }",
		})
		link := func() string {
			made := read[struct {
				Key  string
				Data struct{ Access []string }
			}](t, w.must(t, "admin", "POST", "/api/apps/"+app+"/tokens", "{}"))
			return "/api/apps/" + app + "/share?token=" + made.Key
		}
		status := func(link, path string) string {
			base := baseIn(t, w.must(t, "", "GET", link, ""))
			page := w.do(t, "", "GET", base+"api/"+path, "").status
			server := w.do(t, "", "GET", base+"api/_server/x?path="+path, "").body
			if page == 200 && server == "200" {
				return "allowed"
			}
			is.Equal(page, 403)
			is.Equal(server, `"forbidden"`)
			return "refused"
		}
		w.must(t, "admin", "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
		old := link()
		is.Equal(status(old, "colors/red"), "allowed")
		is.Equal(status(old, "users"), "allowed")
		is.Equal(status(old, "teams"), "refused")
		put(t, w, app, map[string]string{"informer.yaml": "access: ['colors/*', teams]\nroles: [clerk]\n"})
		w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
		is.Equal(status(old, "colors/red"), "allowed")
		is.Equal(status(old, "users"), "refused") // which the manifest allows no more
		is.Equal(status(old, "teams"), "refused") // which it did not allow then
		is.Equal(status(link(), "teams"), "allowed")
	})
}

// TestTokenOfOneApp: two apps that are the same have no tokens in common.
func TestTokenOfOneApp(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	one, two := shop(t, w, nil), shop(t, w, nil)
	base := opened(t, w, "mia", one)
	is.Equal(w.do(t, "", "GET", base+"api/colors", "").status, 200)
	is.Equal(w.do(t, "", "GET", strings.Replace(base, one, two, 1)+"api/colors", "").status, 401)
}

// TestTokenAtOriginEnds: the cookie of an app's own origin ends as tokens in addresses do, and a
// browser that goes to a page gets the next one, in the same role.
func TestTokenAtOriginEnds(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withAppOrigin)
	app := shop(t, w, map[string]string{"a.js": "1"})
	b := newBrowser(t, w, "dana")
	origin, _ := b.open(t, baseURL+"/api/apps/"+app+"/view?role=clerk")
	origin = strings.TrimSuffix(origin, "/")
	is.Equal(b.get(t, origin+"/api/colors").status, 200)
	put(t, w, app, map[string]string{"a.js": "2"})
	w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	is.Equal(b.get(t, origin+"/a.js").body, "2")
	put(t, w, app, map[string]string{"server/x.js": "export const GET = ({request: {roles}}) => roles"})
	w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	for _, path := range []string{"/api/colors", "/api/_server/x", "/a.js"} {
		a := b.get(t, origin+path)
		is.Equal(a.status, 401)
		is.Equal(read[endedBody](t, a).Reload, baseURL+"/api/apps/"+app+"/view?role=clerk")
	}
	_, a := b.open(t, origin+"/")
	is.Equal(a.status, 200)
	is.Equal(b.get(t, origin+"/api/_server/x", "Sec-Fetch-Site: same-origin").body, `["clerk"]`)
}
