package endtoend_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// app creates an app with files and returns its id.
func (c *caller) app(t testing.TB, name string, files map[string]string) string {
	t.Helper()
	id := c.create(t, "/api/apps", `{"type": "report", "name": "`+name+`"}`)
	for path, text := range files {
		body, err := json.Marshal(map[string]string{
			"content":  base64.StdEncoding.EncodeToString([]byte(text)),
			"encoding": "base64",
		})
		is.New(t).NoErr(err)
		c.must(t, "PUT", "/api/apps/"+id+"/contents/"+path, string(body))
	}
	return id
}

// show opens a page with the session of a caller, waits until it has set window.done, and returns
// that.
func show(ctx context.Context, t *testing.T, c *caller, path string) map[string]string {
	t.Helper()
	is := is.New(t)
	_, err := chromedp.Run(ctx, func(ctx context.Context, tab *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(
			ctx, tab, network.SetCookie,
			network.SetCookieParams{Name: "sid", Value: c.token, URL: c.w.url, HTTPOnly: new(true)},
		)
	})
	is.NoErr(err)
	is.NoErr(chromedp.Do(ctx, chromedp.Navigate(c.w.url+path)))
	return ended(ctx, t)
}

// ended waits until the page in a browser has set window.done, and returns that.
func ended(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	is := is.New(t)
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		done, err := chromedp.Run(ctx, chromedp.Evaluate[string](`JSON.stringify(window.done || null)`))
		if err != nil || done == "null" {
			continue
		}
		var all map[string]string
		is.NoErr(json.Unmarshal([]byte(done), &all))
		return all
	}
	t.Fatal("the page has not ended")
	return nil
}

// TestAppInBrowser: an ordinary front end works. It has a module script with static and dynamic
// imports, a font, a style and routes in the hash. It makes a call that the manifest allows, and
// calls routes of its server with each method.
func TestAppInBrowser(t *testing.T) {
	is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite)
	w.admin.must(t, "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
	app := w.admin.app(t, "Front end", map[string]string{
		"informer.yaml": "access: [colors]\nroles: [viewer]\n",
		"server/orders/[id].js": `const answer = ({request: {method, user, roles, params, body}}) => [method, user.username, roles.length, params.id, body?.n ?? ""].join()
export const GET = answer, POST = answer, PUT = answer, PATCH = answer, DELETE = answer`,
		"server/chief.js": `export const config = {roles: ["chief"]}
export const GET = () => 1`,
		"index.html": `<!doctype html><html><head><link rel="stylesheet" href="./assets/a.css"><script ` +
			`type="module" crossorigin src="./assets/a.js"></script></head>` +
			`<body><a href="#/one">one</a><p>Hi</p></body></html>`,
		"assets/a.css":   `p{color:rgb(1,2,3);background:url(dot.svg)}`,
		"assets/dot.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`,
		"assets/b.js":    `export const name = "b"`,
		"assets/c.js":    `export default "c"`,
		"assets/d.json":  `{"d": "d"}`,
		"assets/a.js": `import {name} from "./b.js"
const done = {name}
const set = async (key, f) => { try { done[key] = String(await f()) } catch (e) { done[key] = "failed: " + e } }
await set("later", async () => (await import("./c.js")).default)
await set("file", async () => (await (await fetch(new URL("./d.json", import.meta.url))).json()).d)
await set("call", async () => (await (await fetch("api/colors")).json()).total)
await set("address", async () => (await fetch(informer.api + "colors")).status)
await set("refused", async () => (await fetch("api/users")).status)
for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
	const options = method === "GET" ? {} : {method, headers: {"Content-Type": "application/json"}, body: '{"n": 5}'}
	await set(method, async () => (await fetch("api/_server/orders/7", options)).json())
}
await set("chief", async () => (await fetch(informer.api + "_server/chief")).status)
await set("user", () => informer.user.username)
await set("style", () => getComputedStyle(document.querySelector("p")).color)
await set("hash", () => new Promise(ok => { addEventListener("hashchange", () => ok(location.hash)); document.querySelector("a").click() }))
await set("path", () => location.pathname.endsWith("/view"))
await set("head", () => document.baseURI === informer.base)
window.done = done`,
	})
	w.admin.must(t, "POST", "/api/apps/"+app+"/_deploy", "")
	is.Equal(show(ctx, t, w.admin, "/api/apps/"+app+"/view"), map[string]string{
		"GET": "GET,admin,1,7,", "POST": "POST,admin,1,7,5", "PUT": "PUT,admin,1,7,5",
		"PATCH": "PATCH,admin,1,7,5", "DELETE": "DELETE,admin,1,7,5", "chief": "403",
		"name": "b", "later": "c", "file": "d", "call": "1",
		"address": "200", "refused": "403", "user": "admin", "style": "rgb(1, 2, 3)", "hash": "#/one",
		"path": "true", "head": "true",
	})
}

// TestEndedViewInBrowser: the page of a view that has ended gets an event and shows a bar, whose
// link opens the app again at the same place. A page that prevents the event can show something
// else.
func TestEndedViewInBrowser(t *testing.T) {
	is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite)
	page := func(version, listener string) map[string]string {
		return map[string]string{
			"informer.yaml": "access: [colors]\n", "server/a.js": "export const GET = () => " + version,
			"index.html": `<!doctype html><head><script>addEventListener("viewended", e => { window.heard = ` +
				`[...(window.heard || []), e.detail.reload]; ` + listener + ` })
window.done = {version: "` + version + `", hash: location.hash}</script></head>`,
		}
	}
	app := w.admin.app(t, "Front end", page("1", ""))
	write := func(version, listener string) {
		for path, text := range page(version, listener) {
			body, err := json.Marshal(map[string]string{"content": text})
			is.NoErr(err)
			w.admin.must(t, "PUT", "/api/apps/"+app+"/contents/"+path, string(body))
		}
		w.admin.must(t, "POST", "/api/apps/"+app+"/_deploy", "")
	}
	script := func(text string) string {
		t.Helper()
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](text))
		is.NoErr(err)
		return got
	}
	until := func(text, want string) {
		t.Helper()
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if got, err := chromedp.Run(ctx, chromedp.Evaluate[string](text)); err == nil && got == want {
				return
			}
		}
		t.Fatalf("%s is not %s", text, want)
	}
	const heard = `JSON.stringify(window.heard || null)`
	const bar = `document.querySelector("[role=alert]")?.textContent ?? ""`
	view := "/api/apps/" + app + "/view"
	w.admin.must(t, "POST", "/api/apps/"+app+"/_deploy", "")
	is.Equal(show(ctx, t, w.admin, view+"#/one"), map[string]string{"version": "1", "hash": "#/one"})
	script(`fetch("api/_server/a"), fetch("api/none"), ""`)
	write("2", "")
	script(`for (let i = 0; i < 3; i++) fetch("api/colors"); ""`)
	until(bar, "The app has changed since it was opened: open it again. Open again")
	is.Equal(script(heard), `["`+w.url+view+`"]`)
	script(`document.querySelector("[role=alert] a").click(), ""`)
	until(`window.done.version`, "2")
	is.Equal(script(`window.done.hash`), "#/one")

	write("3", "e.preventDefault()")
	is.Equal(show(ctx, t, w.admin, view), map[string]string{"version": "3", "hash": ""})
	write("4", "")
	script(`const x = new XMLHttpRequest(); x.open("GET", "api/_server/a"); x.send(); ""`)
	until(heard, `["`+w.url+view+`"]`)
	is.Equal(script(bar), "")
}

// TestHostileAppInBrowser: a page of an app cannot access cookies and storage, other apps, the page
// around it, and routes of the API beyond its manifest.
func TestHostileAppInBrowser(t *testing.T) {
	is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite)
	other := w.admin.app(t, "Other", map[string]string{"index.html": "other", "a.js": "1"})
	asked := make(chan string, 100)
	outside := http.NewServeMux()
	outside.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() })
	server := httptest.NewServer(outside)
	t.Cleanup(server.Close)
	stranger := server.URL
	page := `<!doctype html><html><head></head><body><script>
(async () => {
const done = {}
const set = async (key, f) => { try { done[key] = String(await f()) } catch (e) { done[key] = "refused" } }
const status = async (url, o) => (await fetch(url, o)).status
await set("cookie", () => document.cookie)
await set("localStorage", () => localStorage.length)
await set("sessionStorage", () => sessionStorage.length)
await set("indexedDB", () => new Promise((ok, no) => { const r = indexedDB.open("x"); r.onsuccess = ok; r.onerror = no }))
await set("caches", () => caches.open("x"))
await set("worker", () => navigator.serviceWorker.register("sw.js"))
await set("origin", () => self.origin)
await set("session", () => status("ORIGIN/api/session", {credentials: "include"}))
await set("tokens", () => status("ORIGIN/api/tokens", {method: "POST", credentials: "include"}))
await set("simple", () => status("ORIGIN/api/colors", {mode: "no-cors", credentials: "include"}))
await set("other", () => status("ORIGIN/api/apps/OTHER/view"))
await set("file", () => status("ORIGIN/api/apps/OTHER/view/-/a.js"))
await set("mine", () => status(informer.base.replace(informer.app.id, "OTHER") + "a.js"))
await set("closed", () => status(informer.api + "tokens"))
await set("write", () => status(informer.api + "colors", {method: "POST"}))
await set("up", () => status(informer.base + "../../../contents/informer.yaml"))
await set("outside", () => status("STRANGER/fetch"))
await set("image", () => new Promise((ok, no) => { const i = new Image(); i.onload = ok; i.onerror = no; i.src = "STRANGER/image" }))
await set("script", () => new Promise((ok, no) => { const s = document.createElement("script"); s.onload = ok; s.onerror = no; s.src = "STRANGER/script"; document.head.append(s) }))
await set("frame", () => new Promise((ok, no) => { const f = document.createElement("iframe"); f.onload = () => f.contentDocument ? ok(f.contentDocument.body.innerText) : no(); f.src = "ORIGIN/api/session"; document.body.append(f) }))
await set("parent", () => parent === window ? "none" : parent.document.title)
await set("opened", () => { const o = open("ORIGIN/api/session"); return o ? o.document.body.innerText : no })
await set("beacon", () => { navigator.sendBeacon("STRANGER/beacon", "x"); throw 1 })
window.done = done
})()
</script></body></html>`
	page = strings.NewReplacer("ORIGIN", w.url, "OTHER", other, "STRANGER", stranger).Replace(page)
	app := w.admin.app(t, "Hostile", map[string]string{
		"informer.yaml": "access: [colors]\n",
		"index.html":    page,
		"sw.js":         "",
	})
	got := show(ctx, t, w.admin, "/api/apps/"+app+"/view")
	want := map[string]string{"origin": "null", "mine": "refused", "closed": "403", "write": "405", "parent": "none"}
	for key, value := range got {
		is.Equal(key+": "+value, key+": "+orRefused(want[key]))
	}
	is.Equal(len(got), 23)
	is.Equal(len(asked), 0)
}

func orRefused(want string) string {
	if want == "" {
		return "refused"
	}
	return want
}
