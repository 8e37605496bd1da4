package endtoend_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestSharePageInBrowser: a visitor without an account gets a page that works. Its calls may have a
// JSON content type, and it can read why some are refused.
func TestSharePageInBrowser(t *testing.T) {
	is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite)
	app := w.admin.app(t, "Shared", map[string]string{
		"informer.yaml": "access: [colors]\nroles: [viewer]\n",
		"index.html": `<!doctype html><html><head><script type="module" crossorigin ` +
			`src="./a.js"></script></head><body></body></html>`,
		"b.js": `export default "b"`,
		"a.js": `const done = {}
const set = async (key, f) => { try { done[key] = String(await f()) } catch (e) { done[key] = "failed: " + e } }
const call = async (path, options) => { const r = await fetch(path, options); return r.status + " " + (r.ok ? (await r.json()).total : (await r.json()).error) }
const json = {"Content-Type": "application/json"}
await set("user", () => informer.user)
await set("roles", () => informer.roles.join())
await set("later", async () => (await import("./b.js")).default)
await set("call", () => call("api/colors", {headers: json}))
await set("write", () => call("api/colors", {method: "POST", headers: json, body: "{}"}))
await set("put", () => call("a.js", {method: "PUT", headers: {...json, "X-Own": "1"}, body: "{}"}))
await set("forbidden", () => call("api/users", {headers: json}))
await set("none", () => call("nothing", {headers: json}))
await set("bad", () => call("api/colors?limit=x", {headers: json}))
await set("credentials", () => call("api/colors", {credentials: "include"}))
await set("secret", () => informer.base.includes(new URLSearchParams(location.search).get("token")))
window.done = done`,
	})
	a := w.admin.must(t, "POST", "/api/apps/"+app+"/tokens", `{"roles": ["viewer"]}`)
	key := read[struct{ Key string }](t, a).Key
	is.NoErr(chromedp.Do(ctx, chromedp.Navigate(w.url+"/api/apps/"+app+"/share?token="+key)))
	done := "null"
	for ; ctx.Err() == nil && done == "null"; time.Sleep(10 * time.Millisecond) {
		if text, err := chromedp.Run(
			ctx, chromedp.Evaluate[string](`JSON.stringify(window.done || null)`),
		); err == nil {
			done = text
		}
	}
	var got map[string]string
	is.NoErr(json.Unmarshal([]byte(done), &got))
	for name, want := range map[string]string{
		"user": "null", "roles": "viewer", "later": "b",
		"call": "200 0", "write": "405 Method Not Allowed",
		"put": "405 Method Not Allowed", "forbidden": "403 Forbidden",
		"none": "404 Not Found", "bad": "400 Bad Request",
		"credentials": "failed: TypeError: Failed to fetch", "secret": "false",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}
