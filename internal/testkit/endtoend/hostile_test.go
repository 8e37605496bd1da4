package endtoend_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// hostile is a page that tries several attacks, and reports the results to itself and to the page
// around it.
const hostile = `<!doctype html><html><head></head><body><script>
(async () => {
const done = {}
const set = async (key, f) => { try { done[key] = String(await f()) } catch (e) { done[key] = "refused" } }
const status = async (url, o) => (await fetch(url, o)).status
const loaded = e => new Promise((ok, no) => { e.onload = () => ok("loaded"); e.onerror = no; document.body.append(e) })
await set("cookie", () => document.cookie)
await set("service's session", () => status("SERVICE/api/session", {credentials: "include"}))
await set("blind write", () => status("SERVICE/api/colors", {mode: "no-cors", method: "POST", credentials: "include", body: "x"}))
await set("other app", () => status("OTHER", {credentials: "include"}))
await set("other app's file", () => loaded(Object.assign(new Image(), {src: "OTHER"})))
await set("other app's script", () => loaded(Object.assign(document.createElement("script"), {src: "OTHER"})))
await set("closed call", () => status(informer.api + "session"))
await set("own files closed", () => status(informer.base + "informer.yaml"))
await set("worker", () => navigator.serviceWorker.register(informer.base + "sw.js").then(() => "there"))
await set("frame", async () => { const f = document.createElement("iframe"); f.src = "SERVICE/host.html"; await loaded(f); return f.contentDocument.body.innerText })
await set("window", async () => {
	const o = open("SERVICE/api/session")
	for (let i = 0; i < 1000 && !o.document.body.innerText; i++) { // the page before it is empty
		await new Promise(ok => setTimeout(ok, 10))
	}
	return o.document.body.innerText
})
await set("parent", () => parent === window ? "none" : parent.document.title)
await set("parent's place", () => { if (parent === window) throw 1; return String(parent.location) })
await set("neighbour", () => parent.frames[1].document.body.innerText)
await set("top", () => { if (parent === window) throw 1; top.location = "STRANGER/top"; throw 1 })
await set("form", () => { const f = document.createElement("form"); f.action = "STRANGER/form"; f.target = "_top"; document.body.append(f); f.submit(); throw 1 })
await set("beacon", () => { navigator.sendBeacon("STRANGER/beacon", "x"); throw 1 })
await set("outside", () => status("STRANGER/fetch"))
window.done = done
parent.postMessage(done, "*")
})()
</script></body></html>`

// frames returns a page of the service's origin, or of another site, with two apps in frames. It is
// done when the first app has reported, or, with unseen, when the frame has loaded something.
func frames(app, other string, unseen bool) string {
	end := ""
	if unseen {
		end = `document.querySelector("iframe").onload = () => fetch("/waited").then(() => window.done ??= {})`
	}
	return `<!doctype html><title>Host</title><p>secret</p><script>localStorage.host = "secret"; ` +
		`addEventListener("message", e => window.done = e.data)</script>` +
		`<iframe src="` + app + `"></iframe><iframe src="` + other + `"></iframe><script>` + end + `</script>`
}

// TestHostileAppInFrame: the page of an app cannot access another app, the page around it, the
// service's session, or the API beyond its manifest. The test runs in the sandbox and at a separate
// origin, by itself and in a frame. A page of another site cannot show the app in a frame.
func TestHostileAppInFrame(t *testing.T) {
	for name, change := range map[string][]func(*tenantcontent.Config){"sandbox": nil, "own origin": {withOrigins}} {
		t.Run(name, func(t *testing.T) {
			is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite, change...)
			asked := make(chan string, 100)
			var strange string
			stranger := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/framing.html":
					rw.Header().Set("Content-Type", "text/html")
					_, _ = rw.Write([]byte(strange))
				case "/waited", "/favicon.ico":
				default:
					asked <- r.URL.String()
				}
			}))
			t.Cleanup(stranger.Close)
			other := w.admin.app(t, "Other", map[string]string{"index.html": "<p>other</p>", "a.js": "1"})
			theirs := w.url + "/api/apps/" + other + "/view/-/a.js"
			if change != nil {
				show(
					ctx, t, w.admin,
					"/api/apps/"+w.admin.app(
						t, "Done", map[string]string{"index.html": "<script>window.done = {}</script>"},
					)+"/view",
				)
				is.NoErr(chromedp.Do(ctx, chromedp.Navigate(w.url+"/api/apps/"+other+"/view")))
				at, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.origin"))
				is.NoErr(err)
				is.True(strings.Contains(at, other))
				theirs = at + "/a.js"
			}
			page := strings.NewReplacer("SERVICE", w.url, "OTHER", theirs, "STRANGER", stranger.URL).Replace(hostile)
			app := w.admin.app(t, "Hostile", map[string]string{
				"informer.yaml": "access: [colors]\n",
				"index.html":    page,
				"sw.js":         "1",
			})
			view := w.url + "/api/apps/" + app + "/view"
			w.host(map[string]string{"/host.html": frames(view, w.url+"/api/apps/"+other+"/view", false)})
			strange = frames(view, view, true)

			want := map[string]string{"closed call": "403", "own files closed": "404"}
			if change != nil {
				want["cookie"] = "" // those of the service are HttpOnly
			}
			check := func(got map[string]string) {
				t.Helper()
				is.Equal(len(got), 18)
				for key, value := range got {
					if own, ok := want[key]; ok {
						is.Equal(key+": "+value, key+": "+own)
						continue
					}
					is.Equal(key+": "+value, key+": refused")
				}
				is.Equal(len(asked), 0)
			}
			check(show(ctx, t, w.admin, "/host.html"))
			at, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + localStorage.host"))
			is.NoErr(err)
			is.Equal(at, w.url+"/host.htmlsecret") // it was not navigated elsewhere
			want["parent"] = "none"
			check(show(ctx, t, w.admin, "/api/apps/"+app+"/view"))

			is.NoErr(chromedp.Do(ctx, chromedp.Navigate(stranger.URL+"/framing.html")))
			is.Equal(ended(ctx, t), map[string]string{})
			is.Equal(len(asked), 0)
		})
	}
}
