package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// redirecting answers with the status and Location of the query, under the name of a header in it.
const redirecting = `export const GET = ({ request: { query }, respond }) => {
	const answer = { status: Number(query.status ?? 302), headers: { [query.name ?? 'Location']: query.several ? [query.to, query.several] : query.to } }
	if (query.early) { respond(answer); return }
	return answer
}
export const POST = GET`

// TestRedirectsOfServerRoutes: a server route leads browsers to the app's own paths and the hosts
// in its config, in whatever form the Location is.
func TestRedirectsOfServerRoutes(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{
		"server/plain.js": redirecting, "webhooks/plain.js": redirecting,
		"server/listed.js": "export const config = { redirects: ['Pay.example.com', 'localhost:3000'] }\n" +
			redirecting,
	})
	view := "/api/apps/" + app + "/view"
	page := strings.TrimPrefix(opened(t, w, "mia", app), baseURL)
	ways := map[string]string{view + "/api/_server/": "mia", page + "api/_server/": ""}
	get := func(way, route, to string, more ...string) answer {
		return w.do(t, ways[way], "GET", way+route+"?to="+url.QueryEscape(to)+strings.Join(more, ""), "")
	}
	for way := range ways {
		for _, own := range []string{
			"", "x", "./x?a=1#b", "?q=https://evil.example", "#top",
			"../../x", view,
			view + "/-/", baseURL + view + "?x=1", strings.ToUpper(baseURL[:8]) + baseURL[8:] + view + "/x",
			baseURL + view + "/a/../b", view + "/%2e/x",
		} {
			a := get(way, "plain", own)
			is.Equal(a.status, 302)
			is.Equal(a.header.Get("Location"), own)
		}
		for to, says := range map[string]string{
			"https://evil.example/x?code=geheim": "the host evil.example,",
			"http://evil.example":                "the host evil.example,",
			"HTTPS://EVIL.example:443/":          "the host evil.example,",
			"https://evil.example:8443":          "the host evil.example:8443,",
			"//evil.example/x":                   "the host evil.example,", "///evil.example": "does not have a host",
			"////evil.example": "does not have a host", `\\\\evil.example`: "backslash",
			`/\\evil.example`: "backslash", `\\/evil.example`: "backslash", "/\t/evil.example": "control character",
			"https:evil.example": "does not have a host", "https:/evil.example": "does not have a host",
			"https:///evil.example": "does not have a host", "http:evil.example": "does not have a host",
			"https://" + baseURL[strings.Index(baseURL, "://")+3:] + "@evil.example": "a user before the host",
			"https://evil%2eexample": "the host evil.example,",
			"javascript:alert(1)":    "not an https address", "data:text/html,x": "not an https address",
			"myapp://x": "not an https address", "x:y": "not an https address",
			"ftp://evil.example":      "not an https address",
			"https://evil.example:x/": "not an address", "%zz": "not an address",
			"/": "outside of the app's own paths", "/there": "outside of the app's own paths",
			"/api/users": "outside of the app's own paths", view + "x": "outside of the app's own paths",
			view + "/../../../users": "outside", view + "/%2e%2e/%2E%2e/x": "outside",
			view + "/.%2e/x": "outside", strings.Repeat("../", 12) + "x": "outside",
			"/api/apps/00000000-0000-7000-8000-000000000000/view": "outside",
			baseURL + ".evil.example/" + view:                     "the host ", "/x y": "a space",
		} {
			for _, more := range []string{
				"", "&status=303", "&status=307", "&status=300", "&status=399", "&early=1", "&name=LOCATION",
				"&name=location",
			} {
				a := get(way, "plain", to, more)
				if a.status != 502 || !strings.Contains(a.message(t), says) {
					t.Errorf("%s %s%s: %d %s", way, to, more, a.status, a.body)
				}
				is.True(strings.Contains(a.message(t), "server/plain.js") &&
					strings.Contains(a.message(t), "config.redirects"))
				is.True(!strings.Contains(a.message(t), "geheim"))
				is.Equal(a.header.Get("Location"), "")
			}
		}
		is.Equal(get(way, "plain", "x", "&several=//evil.example").status, 502)
		is.Equal(get(way, "plain", "https://evil.example", "&status=200").status, 200) // which no browser follows
		is.Equal(get(way, "plain", "https://evil.example", "&name=Refresh").header.Get("Refresh"), "")

		for to, status := range map[string]int{
			"https://pay.example.com/x?y=1": 302, "http://PAY.example.com:80": 302, "https://pay.example.com:443/": 302,
			"//pay.example.com": 302, "http://localhost:3000/x": 302, "x": 302,
			"https://pay.example.com:8443": 502, "http://localhost/x": 502,
			"https://pay.example.com.":  502,
			"https://x.pay.example.com": 502, "https://pay.example.com@evil.example": 502,
			"https://evil.example/pay.example.com": 502, "/there": 502, "ftp://pay.example.com": 502,
		} {
			is.Equal(get(way, "listed", to).status, status)
		}
	}
	is.Equal(w.do(t, "mia", "POST", view+"/api/_server/plain?to=//evil.example", "{}").status, 502)
	key := read[struct{ Key string }](t, w.must(t, "dana", "POST", "/api/apps/"+app+"/webhook-tokens", `{}`)).Key
	a := w.do(t, "", "GET", "/api/apps/"+app+"/_hook/plain?to=//evil.example&token="+key, "")
	is.Equal(a.status, 302) // webhooks answer what they like
	is.Equal(a.header.Get("Location"), "//evil.example")
}

// TestRedirectsAtOrigin: all paths at an app's own origin are its own, and those of its view at the
// service.
func TestRedirectsAtOrigin(t *testing.T) {
	w := newWorld(t, dbtest.SQLite, withAppOrigin)
	app := shop(t, w, map[string]string{"server/plain.js": redirecting})
	b := newBrowser(t, w, "mia")
	at, _ := b.open(t, baseURL+"/api/apps/"+app+"/view")
	origin := strings.TrimSuffix(at, "/")
	cookie := "Cookie: __Host-view=" + b.cookies[b.host(t, origin)]["__Host-view"]
	for to, status := range map[string]int{
		"/": 302, "/orders?x=1": 302, "../../../x": 302,
		origin: 302, origin + "/x": 302, baseURL + "/api/apps/" + app + "/view": 302,
		baseURL + "/api/users": 502, "//evil.example": 502,
		"https:evil.example": 502, `\\\\evil.example`: 502, origin + ".evil.example": 502,
		strings.Replace(origin, app, "018f0000-0000-7000-8000-0000000000ff", 1): 502, // a neighbour
	} {
		a := w.do(
			t, "", "GET", origin+"/api/_server/plain?to="+url.QueryEscape(to), "", cookie,
			"Sec-Fetch-Site: same-origin",
		)
		if a.status != status {
			t.Errorf("%s: %d %s", to, a.status, a.body)
		}
	}
}
