package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// hooked is an app of admin with webhooks, and a token of it.
type hooked struct {
	*world
	app, token, key string
}

// hook makes an app of somebody with webhooks, which are deployed.
func hook(t testing.TB, w *world, user string, files map[string]string) hooked {
	t.Helper()
	app := read[struct{ ID string }](t, w.must(t, user, "POST", "/api/apps", `{"type": "report", "name": "Hooked"}`)).ID
	h := hooked{world: w, app: app}
	h.deploy(t, user, files)
	made := read[struct{ ID, Key string }](t, w.must(t, user, "POST", h.path("/webhook-tokens"), `{"notes": "stripe"}`))
	h.token, h.key = made.ID, made.Key
	return h
}

func (h hooked) path(rest string) string { return "/api/apps/" + h.app + rest }

func (h hooked) deploy(t testing.TB, user string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		h.must(
			t, user, "PUT", h.path("/contents/"+strings.NewReplacer("[", "%5B", "]", "%5D").Replace(name)),
			content, "Content-Type: text/javascript",
		)
	}
	h.must(t, user, "POST", h.path("/_deploy"), "")
}

// call calls a webhook of the app.
func (h hooked) call(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	return h.do(t, "", method, h.path("/_hook/"+path)+sign+"token="+h.key, body, headers...)
}

// invocation is a record as a client sees it.
type invocation struct {
	ID, Method, Path string
	StatusCode       int
	DurationMs       float64
	MemoryPeakBytes  string
	Error, ReplayOf  *string
	Logs             []struct{ Level, Message string }
	Kept             bool
}

type listing struct {
	Routes []struct {
		Method, Path string
		Config       json.RawMessage
	}
	Recent []invocation
	Daily  []struct {
		Day               string
		Count, ErrorCount int
		AvgDurationMs     float64
	}
}

func (h hooked) list(t testing.TB, user, query string) listing {
	t.Helper()
	return read[listing](t, h.must(t, user, "GET", h.path("/webhooks"+query), ""))
}

// last is the last call with its log.
func (h hooked) last(t testing.TB, user string) invocation {
	t.Helper()
	return read[invocation](
		t, h.must(t, user, "GET", h.path("/webhooks/invocations/"+h.list(t, user, "").Recent[0].ID), ""),
	)
}

const echo = `export function POST({request, env, log}) {
	log('hello')
	return {status: 201, headers: {'X-Own': 'yes', 'Set-Cookie': 'a=b'}, body: {...request, env}}
}
export const GET = () => 'plain'
`

func TestWebhook(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		h := hook(t, w, "dana", map[string]string{"webhooks/orders/[action].js": echo, "webhooks/index.js": echo})
		w.must(t, "dana", "PUT", h.path("/environment/KEY"), `{"value": "geheim"}`)
		a := h.call(
			t, "POST", "orders/paid%20x?a=1&a=2&b=%20&app_token=x", "{\"n\": 1.50}", "Cookie: sid=x",
			"Proxy-Authorization: x", "Authorization: Bearer provider", "X-Event: paid",
		)
		is.Equal(a.status, 201)
		is.Equal(a.header.Get("X-Own"), "yes")
		is.Equal(a.header.Get("Set-Cookie"), "")
		is.Equal(a.header.Get("Cache-Control"), "no-store")
		got := read[struct {
			Method, RawBody string
			Params          map[string]string
			Query           map[string]any
			Headers, Env    map[string]string
			Body            struct{ N float64 }
			User            map[string]string
			Roles           []string
		}](t, a)
		is.Equal(got.Method, "POST")
		is.Equal(got.RawBody, `{"n": 1.50}`)
		is.Equal(got.Body.N, 1.5)
		is.Equal(got.Params, map[string]string{"action": "paid x"})
		is.Equal(got.Query, map[string]any{"a": []any{"1", "2"}, "b": " "})
		is.Equal(got.Headers, map[string]string{
			"host":          "example.com",
			"authorization": "Bearer provider",
			"x-event":       "paid",
			"content-type":  "application/json",
		})
		is.Equal(got.Env, map[string]string{"KEY": "geheim"})
		is.Equal(got.User["id"], "dana")
		is.Equal(got.User["name"], "Dana Smith")
		is.Equal(got.Roles, []string{})
		is.Equal(
			read[struct{ RawBodyEncoding string }](t, h.call(t, "POST", "orders/x", "\xff\x00")).RawBodyEncoding,
			"binary",
		)
		is.Equal(w.do(t, "", "GET", h.path("/_hook?token="+h.key), "").body, `"plain"`) // the folder's index.js
		is.Equal(h.call(t, "GET", "nowhere/x", "").status, 404)
		not := h.call(t, "PUT", "orders/x", "")
		is.Equal(not.status, 405)
		is.Equal(not.header.Get("Allow"), "GET, HEAD, POST")

		is.Equal(w.do(t, "", "HEAD", h.path("/_hook?token="+h.key), "").status, 200)
		// with the HEAD, which GET has answered
		is.Equal(h.list(t, "dana", "?method=GET&path=/").Daily[0].Count, 2)
		is.Equal(w.do(t, "", "POST", h.path("/_hook/x?a=%zz"), "{}").status, 400) // whatever the key is

		one := h.list(t, "dana", "?method=post&path=/orders/:action")
		is.Equal(len(one.Recent), 2)
		is.Equal(one.Daily[0].Count, 2)
		all := h.list(t, "dana", "")
		is.Equal(len(all.Recent), 6)
		is.Equal(all.Daily[0].Day, "2026-11-20T00:00:00.000Z")
		is.Equal(all.Daily[0].ErrorCount, 2)
		is.Equal(len(all.Routes), 4)
		is.Equal(string(all.Routes[0].Config), `{"public":true}`)
		is.Equal(all.Recent[1].StatusCode, 405)
		for _, query := range []string{"?method=POST", "?path=/x", "?method=&path=", "?methods=POST&path=/x"} {
			is.Equal(w.do(t, "dana", "GET", h.path("/webhooks"+query), "").status, 400)
		}
		v := read[invocation](t, w.must(t, "dana", "GET", h.path("/webhooks/invocations/"+one.Recent[1].ID), ""))
		is.Equal(v.Logs[0].Message, "hello")
		is.True(v.MemoryPeakBytes > "1")
		is.Equal(v.Error, nil)
		token := read[struct{ Requests int }](t, w.must(t, "dana", "GET", h.path("/webhook-tokens/"+h.token), ""))
		is.Equal(token.Requests, 6)
		is.True(!strings.Contains(w.log.String(), h.key[strings.LastIndex(h.key, ".")+1:]))
	})
}

// TestWebhookSlashes: a slash at the end of a path does not matter, and the link of a token works
// with the paths that the list of webhooks has.
func TestWebhookSlashes(t *testing.T) {
	w := newWorld(t, dbtest.SQLite)
	h := hook(t, w, "dana", map[string]string{"webhooks/orders/[action].js": echo, "webhooks/index.js": echo})
	link := read[struct {
		Links map[string]struct{ Href string } `json:"_links"`
	}](t, w.must(t, "dana", "GET", h.path("/webhook-tokens/"+h.token), "")).Links["inf:app-hook"].Href
	for path, want := range map[string]int{
		"":           200,
		"/":          200,
		"orders/x":   200,
		"/orders/x":  200,
		"orders/x/":  200,
		"orders//x":  404,
		"//orders/x": 404,
		"nowhere/":   404,
	} {
		at := strings.NewReplacer("{+path}", path, "{key}", h.key, baseURL, "").Replace(link) // of a token's link
		if a := w.do(t, "", "GET", at, ""); a.status != want {
			t.Errorf("%q: %d %s", path, a.status, a.body)
		}
	}
}

// TestWebhookGate: a call without a valid key is the same 401, whatever else it has, and costs no
// statement when the app is known.
func TestWebhookGate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, statements := dbtest.Counted(t, open)
		w := newWorld(t, func(testing.TB) *bun.DB { return db })
		h := hook(t, w, "dana", map[string]string{"webhooks/x.js": echo})
		draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", h.path("/_edit"), "")).ID
		gone := hook(t, w, "dana", map[string]string{"webhooks/x.js": echo})
		w.must(t, "dana", "DELETE", gone.path(""), "")
		revoked := hook(t, w, "dana", map[string]string{"webhooks/x.js": echo})
		w.must(t, "dana", "DELETE", revoked.path("/webhook-tokens/"+revoked.token), "")
		rotated := hook(t, w, "dana", map[string]string{"webhooks/x.js": echo})
		w.must(t, "dana", "POST", rotated.path("/_rotate-webhook-secret"), "")
		is.True(strings.Contains(w.must(t, "dana", "GET", rotated.path(""), "").body, `"webhookSecret":"********"`))

		want := w.do(t, "", "POST", h.path("/_hook/x"), "")
		is.Equal(want.status, 401)
		is.Equal(want.message(t), "The token is missing or not valid.")
		wrong := h.key[:len(h.key)-4] + "AAAA"
		for name, path := range map[string]string{
			"no route": h.path("/_hook/nowhere"),
			"no key":   h.path("/_hook/x?token="), "a wrong one": h.path("/_hook/x?token=" + wrong),
			"of another app":           h.path("/_hook/x?token=" + gone.key),
			"an app that is deleted":   gone.path("/_hook/x?token=" + gone.key),
			"a draft":                  "/api/apps/" + draft + "/_hook/x?token=" + h.key,
			"an app that is not there": "/api/apps/" + id(999) + "/_hook/x?token=" + h.key,
			"no app":                   "/api/apps/x/_hook/x?token=" + h.key,
			"a revoked one":            revoked.path("/_hook/x?token=" + revoked.key),
			"a rotated one":            rotated.path("/_hook/x?token=" + rotated.key),
			"of a session":             h.path("/_hook/x?token=" + w.token(t, "dana")),
		} {
			for _, method := range []string{"GET", "POST", "PUT"} {
				a := w.do(t, "", method, path, "x")
				if a.status != want.status || a.body != want.body ||
					fmt.Sprint(a.header["Www-Authenticate"]) != fmt.Sprint(want.header["Www-Authenticate"]) {
					t.Errorf("%s: %s %d %s", name, method, a.status, a.body)
				}
			}
		}
		is.Equal(w.do(t, "dana", "POST", h.path("/_hook/x"), "").status, 401) // a session is no key
		is.Equal(len(h.list(t, "dana", "").Recent), 0)
		cost := func(path string) int {
			t.Helper()
			statements.Take()
			is.Equal(w.do(t, "", "POST", path, "").status, 401)
			return len(statements.Take())
		}
		first := cost("/api/apps/" + id(998) + "/_hook/x?token=" + wrong)
		is.Equal(first, cost(gone.path("/_hook/x?token="+wrong))+first) // the deleted one was looked up a moment ago
		is.Equal(first, 1)
		is.Equal(cost("/api/apps/"+id(998)+"/_hook/x?token="+wrong), 0)
		is.Equal(cost(h.path("/_hook/x?token="+wrong)), 0)

		is.Equal(h.call(t, "POST", "x", "{}").status, 201)
		statements.Take()
		is.Equal(h.call(t, "POST", "x", "{}").status, 201)
		is.Equal(statements.Take(), nil) // but for the batch, which App.Run writes

		again := read[page](
			t, w.must(t, "dana", "GET", rotated.path("/webhook-tokens"), ""),
		).Embedded["inf:token"][0]["key"].(string)
		is.True(again != rotated.key)
		rotated.key = again
		is.Equal(rotated.call(t, "POST", "x", "{}").status, 201)
		w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": false}`)
		is.Equal(h.call(t, "POST", "x", "{}").status, 401) // at once
		w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": true}`)
		is.Equal(h.call(t, "POST", "x", "{}").status, 201)
		w.must(t, "admin", "DELETE", "/api/users/dana?reassignTo=tim", "")
		is.Equal(h.call(t, "POST", "x", "{}").status, 401) // the token went with the user who made it
	})
}

// TestWebhookKeyOfAnotherTenant: a key that names one tenant opens nothing of another one, whose
// app has the same secret.
func TestWebhookKeyOfAnotherTenant(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	h := hook(t, w, "admin", map[string]string{"webhooks/x.js": echo})
	claims := jwt.MapClaims{}
	token, _, err := jwt.NewParser().ParseUnverified(h.key, claims)
	is.NoErr(err)
	is.Equal(token.Header["kid"], "acme")
	is.Equal(claims["key"], h.token)
	secret, err := w.app.Apps.WebhookSecret(w.as(t, "acme"), h.app)
	is.NoErr(err)
	token.Header["kid"] = "evil"
	foreign, err := token.SignedString(secret)
	is.NoErr(err)
	is.Equal(w.do(t, "", "POST", h.path("/_hook/x?token="+foreign), "{}").status, 401)
}

// TestWebhookOfTeam runs as the team, which reads and writes nothing by fetch.
func TestWebhookOfTeam(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	h := hook(t, w, "admin", map[string]string{
		"webhooks/x.js": `export async function POST({request, fetch}) {
			const one = await fetch('teams/` + teamID +
			`'), two = await fetch('colors/red', {method: 'PUT', body: {color: '#ff0000'}})
			return {user: request.user, read: one.status, write: two.status}
		}`,
	})
	w.must(
		t, "admin", "PUT", h.path("/contents/informer.yaml"), "access:\n  - teams/*\n  - PUT colors/*\n",
		"Content-Type: application/yaml",
	)
	w.must(t, "admin", "POST", h.path("/_deploy"), "")
	type seen struct {
		User        map[string]string
		Read, Write int
	}
	got := read[seen](t, h.call(t, "POST", "x", "{}"))
	is.Equal(got.Write, 200) // admin is a superuser
	w.must(t, "admin", "PUT", h.path("/owner"), `{"ownerId": "`+teamID+`"}`)
	got = read[seen](t, h.call(t, "POST", "x", "{}"))
	is.Equal(got, seen{map[string]string{"id": teamID, "type": "Team", "name": "Design"}, 200, 403})
}

// TestWebhookFailures: what goes wrong is in the record and not in the answer.
func TestWebhookFailures(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		c.Webhooks = webhooks.Limits{Body: 100}
	})
	h := hook(t, w, "admin", map[string]string{
		"webhooks/throw.js": "export function POST() {\n  throw new Error('geheim')\n}\n",
		"webhooks/loop.js":  "export const config = {timeout: 100}\nexport function POST() { for (;;); }\n",
		"webhooks/stuck.js": "export const config = {timeout: 100}\nexport function POST() { " +
			"[].indexOf.call({length: 2 ** 53 - 1}, 1) }\n",
		"webhooks/much.js": "export function POST() { const all = []; for (;;) all.push(new ArrayBuffer(1 << 20)) }\n",
		"webhooks/x.js":    echo,
	})
	a := h.call(t, "POST", "throw", "{}")
	is.Equal(a.status, 500)
	is.Equal(a.message(t), "An internal server error occurred")
	v := h.last(t, "admin")
	is.Equal(v.StatusCode, 500)
	is.True(strings.Contains(*v.Error, "Error: geheim"))
	is.True(strings.Contains(*v.Error, "webhooks/throw.js:2"))
	is.Equal(h.call(t, "POST", "loop", "{}").status, 504)
	is.Equal(h.last(t, "admin").StatusCode, 504)
	is.Equal(h.call(t, "POST", "stuck", "{}").status, 504) // its process was killed
	is.True(strings.HasPrefix(*h.last(t, "admin").Error, "TimeoutError: "))
	a = h.call(t, "POST", "much", "{}")
	is.Equal(a.status, 500)
	is.Equal(a.message(t), "An internal server error occurred")
	v = h.last(t, "admin")
	is.True(strings.HasPrefix(*v.Error, "InternalError: out of memory"))
	is.Equal(len(v.MemoryPeakBytes), len("134217728"))
	is.Equal(h.call(t, "POST", "x", strings.Repeat("x", 101)).status, 413)
	is.Equal(h.last(t, "admin").StatusCode, 413)
	is.Equal(h.call(t, "POST", "x", strings.Repeat("x", 100)).status, 201)
	is.True(!strings.Contains(w.log.String(), "geheim"))
}

// busyRuntime is a Runtime that has no process for a call.
type busyRuntime struct {
	jsvm.Runtime
	busy *bool
}

func (b busyRuntime) Run(ctx context.Context, p *jsvm.Program, c jsvm.Call) (jsvm.Result, error) {
	if *b.busy {
		return jsvm.Result{}, errs.New(errs.Unavailable, "Too many scripts run at the moment. Try again.")
	}
	return b.Runtime.Run(ctx, p, c)
}

// TestWebhookBusy: where no process is free in time, the sender gets 503 with Retry-After, and the
// call is recorded.
func TestWebhookBusy(t *testing.T) {
	is, busy := is.New(t), false
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		rt, err := scripts()
		is.NoErr(err)
		c.Scripts = engine(busyRuntime{rt, &busy})
	})
	h := hook(t, w, "admin", map[string]string{"webhooks/x.js": echo})
	busy = true
	a := h.call(t, "POST", "x", "{}")
	is.Equal(a.status, 503)
	is.Equal(a.header.Get("Retry-After"), "1")
	v := h.last(t, "admin")
	is.Equal(v.StatusCode, 503)
	is.Equal(*v.Error, "Too many scripts run at the moment. Try again.")
	is.Equal(h.list(t, "admin", "").Daily[0].ErrorCount, 1)
}

// TestWebhooksOfTiers: webhooks of the tier app are for those who may change such apps, and no
// designer.
func TestWebhooksOfTiers(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"licenses": ["apps"]}}`)
	for tier, want := range map[string]int{"report": 200, "app": 403} {
		app := "/api/apps/" + read[struct{ ID string }](
			t, w.must(t, "admin", "POST", "/api/apps", `{"type": "`+tier+`", "name": "Tiered"}`),
		).ID
		w.must(t, "admin", "PUT", app+"/shares/dana", `{"accessLevel": 2}`)
		is.Equal(w.do(t, "dana", "GET", app+"/webhooks", "").status, want)
		is.Equal(w.do(t, "dana", "GET", app+"/webhook-tokens", "").status, want)
		is.Equal(w.do(t, "dana", "POST", app+"/_rotate-webhook-secret", "").status, want)
		is.Equal(w.do(t, "dana", "POST", app+"/webhook-tokens", "").status == 201, want == 200)
		w.must(t, "admin", "GET", app+"/webhooks", "")
	}
}

// TestWebhookResponds: an early answer is sent while the handler goes on, which Drain waits for.
func TestWebhookResponds(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	release := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(release) }) }
	defer end()
	w.must(t, "admin", "PUT", "/api/colors/late", `{"color": "#000000"}`)
	h := hook(t, w, "admin", map[string]string{
		"informer.yaml": "",
		"webhooks/x.js": `export async function POST({respond, fetch, log}) {
			respond({status: 202, body: 'early'})
			for (;;) {
				await new Promise(resolve => setTimeout(resolve, 5))
				const {body} = await fetch('colors/late')
				if (body.color === '#ffffff') break
			}
			log('late')
			throw new Error('late')
		}`,
	})
	w.must(
		t, "admin", "PUT", h.path("/contents/informer.yaml"), "access:\n  - colors/*\n",
		"Content-Type: application/yaml",
	)
	w.must(t, "admin", "POST", h.path("/_deploy"), "")
	a := h.call(t, "POST", "x", "{}")
	is.Equal(a.status, 202)
	is.Equal(a.body, "early")
	is.Equal(h.last(t, "admin").StatusCode, 202)
	is.Equal(h.last(t, "admin").Error, nil)
	w.must(t, "admin", "PUT", "/api/colors/late", `{"color": "#ffffff"}`)
	is.NoErr(w.app.Drain(t.Context()))
	v := h.last(t, "admin")
	is.True(v.Error != nil)
	is.True(strings.HasPrefix(*v.Error, "Error: late"))
	is.Equal(v.Logs[0].Message, "late")
	is.Equal(h.list(t, "admin", "").Daily[0].Count, 1)
}

// TestWebhookVerify: a wrong signature runs no script, and a config that cannot work is not
// deployed.
func TestWebhookVerify(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	h := hook(t, w, "admin", map[string]string{
		"webhooks/github.js": "export const config = {verify: {preset: 'github', secret: 'env.SECRET'}}\n" + echo,
	})
	signed := "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	is.Equal(h.call(t, "POST", "github", "Hello, World!", signed).status, 500)
	is.True(strings.Contains(*h.last(t, "admin").Error, "no variable SECRET"))
	w.must(t, "admin", "PUT", h.path("/environment/SECRET"), `{"value": "It's a Secret to Everybody"}`)
	is.Equal(h.call(t, "POST", "github", "Hello, World!", signed).status, 201)
	is.Equal(h.call(t, "POST", "github", "Hello, World?", signed).status, 401)
	v := h.last(t, "admin")
	is.Equal(v.StatusCode, 401)
	is.Equal(v.MemoryPeakBytes, "0") // no script ran
	w.must(
		t, "admin", "PUT", h.path("/contents/webhooks/github.js"),
		"export const config = {verify: {preset: 'gitlab', secret: 'env.SECRET'}}\n"+echo,
		"Content-Type: text/javascript",
	)
	a := w.do(t, "admin", "POST", h.path("/_deploy"), "")
	is.Equal(a.status, 400)
	is.Equal(
		a.message(t),
		"webhooks/github.js:1:1: config.verify.preset must be one of github, shopify, slack, standard, stripe.",
	)
	is.Equal(h.call(t, "POST", "github", "Hello, World!", signed).status, 201) // as before
}

// TestWebhookReplay runs a request that was kept again.
func TestWebhookReplay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		h := hook(t, w, "admin", map[string]string{
			"webhooks/keep.js": "export const config = {keep: true}\nexport const POST = ({request, log}) => { " +
				"log(request.replay === true, request.rawBody, request.query.a); return 1 }\n",
			"webhooks/x.js": echo,
		})
		is.Equal(h.call(t, "POST", "keep?a=1", "héllo").status, 200)
		first := h.last(t, "admin")
		is.True(first.Kept)
		is.Equal(first.Logs[0].Message, "false héllo 1")
		replay := h.path("/webhooks/invocations/" + first.ID + "/_replay")
		again := read[invocation](t, w.must(t, "admin", "POST", replay, ""))
		is.Equal(*again.ReplayOf, first.ID)
		is.Equal(again.Logs[0].Message, "true héllo 1")
		is.Equal(again.StatusCode, 200)
		is.Equal(h.call(t, "POST", "x", "{}").status, 201)
		is.Equal(
			w.do(t, "admin", "POST", h.path("/webhooks/invocations/"+h.last(t, "admin").ID+"/_replay"), "").status,
			404,
		)
		is.Equal(w.do(t, "eve", "POST", replay, "").status, 404)
		is.Equal(w.do(t, "mia", "POST", replay, "").status, 404)
		is.Equal(w.do(t, "", "POST", replay, "").status, 401)
		w.must(t, "admin", "DELETE", h.path("/contents/webhooks/keep.js"), "")
		w.must(t, "admin", "POST", h.path("/_deploy"), "")
		is.Equal(w.do(t, "admin", "POST", replay, "").status, 409)
	})
}

// TestWebhookTokenRights: who may not change the app sees nothing of its webhooks, and who can only
// read no key.
func TestWebhookTokenRights(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	h := hook(t, w, "dana", map[string]string{"webhooks/x.js": echo})
	w.must(t, "admin", "PUT", h.path("/shares/mia"), `{"accessLevel": 2}`)
	for _, r := range []struct{ method, path string }{
		{"GET", "/webhooks"}, {"GET", "/webhook-tokens"},
		{"POST", "/webhook-tokens"}, {"DELETE", "/webhook-tokens/" + h.token}, {"POST", "/_rotate-webhook-secret"},
		{"GET", "/webhooks/invocations/" + id(1)}, {"POST", "/webhooks/invocations/" + id(1) + "/_replay"},
	} {
		is.Equal(w.do(t, "mia", r.method, h.path(r.path), "").status, 403) // a member
		is.Equal(w.do(t, "nora", r.method, h.path(r.path), "").status, 404)
		is.Equal(w.do(t, "eve", r.method, h.path(r.path), "").status, 404)
	}
	reader := "Authorization: Bearer " + read[struct{ Key string }](
		t, w.must(t, "dana", "POST", "/api/tokens", `{"readOnly": true}`),
	).Key
	is.True(strings.Contains(w.must(t, "", "GET", h.path("/webhook-tokens"), "", reader).body, `"key":null`))
	w.must(t, "", "GET", h.path("/webhooks"), "", reader)
	is.Equal(w.do(t, "", "POST", h.path("/_rotate-webhook-secret"), "", reader).status, 403)
	token := "Authorization: Bearer " + read[struct{ Key string }](
		t, w.must(t, "dana", "POST", "/api/tokens", `{}`),
	).Key
	is.Equal(w.do(t, "", "POST", h.path("/webhook-tokens"), "{}", token).status, 201)
	is.Equal(w.do(t, "", "POST", h.path("/webhook-tokens"), "{}", reader).status, 403)
	is.Equal(w.do(t, "dana", "POST", h.path("/webhook-tokens"), `{"roles": []}`).status, 400)
	is.Equal(w.do(t, "dana", "POST", h.path("/webhook-tokens"), `{"type": "personal"}`).status, 400)
	draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", h.path("/_edit"), "")).ID
	is.Equal(w.do(t, "dana", "GET", "/api/apps/"+draft+"/webhooks", "").status, 400)
	bound := read[struct{ Key string }](
		t,
		w.must(t, "dana", "POST", h.path("/webhook-tokens"), `{"restrict": "cidr", "cidr": "198.51.100.0/24"}`),
	).Key
	is.Equal(w.do(t, "", "GET", h.path("/_hook/x?token="+bound), "").status, 401)
	short := read[struct{ Key string }](
		t, w.must(t, "dana", "POST", h.path("/webhook-tokens"), `{"expiresAt": "2026-11-20T21:00:00Z"}`),
	).Key
	is.Equal(w.do(t, "", "GET", h.path("/_hook/x?token="+short), "").status, 200)
	w.pass(time.Hour)
	is.Equal(w.do(t, "", "GET", h.path("/_hook/x?token="+short), "").status, 401)
}

// TestWebhookOfHostsUsers runs with the rights that Config.Resume returns, and not at all if it
// returns none.
func TestWebhookOfHostsUsers(t *testing.T) {
	is := is.New(t)
	resume := true
	authenticate := func(r *http.Request) (actor.Actor, error) {
		if r.Header.Get("X-User") == "" {
			return actor.Actor{}, errs.New(errs.Unauthenticated, "no")
		}
		return actor.Actor{Tenant: "acme", User: r.Header.Get("X-User"), Superuser: true}, nil
	}
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		c.Authenticate = authenticate
		c.Resume = func(_ context.Context, tenant, username string) (actor.Actor, error) {
			if !resume {
				return actor.Actor{}, errs.New(errs.Unauthenticated, "no")
			}
			return actor.Actor{Tenant: tenant, User: username}, nil
		}
	})
	send := func(method, path, body string) answer {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("X-User", "admin")
		r.Header.Set("Content-Type", "application/json")
		return w.send(r)
	}
	app := read[struct{ ID string }](t, send("POST", "/api/apps", `{"type": "report", "name": "Hooked"}`)).ID
	is.True(send(
		"PUT", "/api/apps/"+app+"/contents/webhooks/x.js",
		`{"content": "export const GET = ({request}) => request.user.id"}`,
	).status < 300)
	is.True(send("POST", "/api/apps/"+app+"/_deploy", "").status < 300)
	key := read[struct{ Key string }](t, send("POST", "/api/apps/"+app+"/webhook-tokens", `{}`)).Key
	is.Equal(w.do(t, "", "GET", "/api/apps/"+app+"/_hook/x?token="+key, "").body, `"admin"`)
	resume = false
	send("PUT", "/api/users/admin", `{"displayName": "A"}`) // what is known of the owner is not kept
	is.Equal(w.do(t, "", "GET", "/api/apps/"+app+"/_hook/x?token="+key, "").status, 401)
}

// TestWebhookOnOtherNodes: what one node deploys, revokes and records, another one sees within a
// second.
func TestWebhookOnOtherNodes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		var config tenantcontent.Config
		w := newWorld(t, open, func(c *tenantcontent.Config) { config = *c })
		other, err := tenantcontent.Open(config)
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(other.Close()) })
		h := hook(t, w, "admin", map[string]string{"webhooks/x.js": "export const POST = () => 1"})
		call := func() answer {
			rec := httptest.NewRecorder()
			other.ServeHTTP(rec, httptest.NewRequest("POST", h.path("/_hook/x?token="+h.key), nil))
			return answer{status: rec.Code, body: rec.Body.String()}
		}
		within := func(status int, body string) {
			t.Helper()
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				a := call()
				if a.status == status && (body == "" || a.body == body) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d %s", a.status, a.body)
				}
			}
		}
		within(200, "1")
		h.deploy(t, "admin", map[string]string{"webhooks/x.js": "export const POST = () => 2"})
		within(200, "2")
		is.NoErr(other.Webhooks.Unchecked().FlushAll(t.Context())) // as App.Run does
		is.True(len(h.list(t, "admin", "").Recent) >= 2)
		w.must(t, "admin", "DELETE", h.path("/webhook-tokens/"+h.token), "")
		is.Equal(h.call(t, "POST", "x", "").status, 401) // at once where it was revoked
		within(401, "")
	})
}

// TestWebhookOfPassedApp: who makes a superuser the owner of an app gets no rights of a superuser
// for its code.
func TestWebhookOfPassedApp(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	h := hook(t, w, "tim", map[string]string{
		"webhooks/x.js": "export function POST({request}) { return {user: request.user.id} }",
	})
	w.must(t, "tim", "PUT", h.path("/shares/tim"), `{"accessLevel": 2}`)
	runs := func() string { t.Helper(); return read[struct{ User string }](t, h.call(t, "POST", "x", "{}")).User }
	is.Equal(runs(), "tim")
	w.must(t, "tim", "PUT", h.path("/owner"), `{"ownerId": "admin"}`)
	for range 2 {
		is.Equal(h.call(t, "POST", "x", "{}").status, 401)
		is.True(strings.Contains(w.must(t, "tim", "GET", h.path(""), "").body, `"awaitsOwner":true`))
		w.must(t, "tim", "POST", h.path("/_deploy"), "")
	}
	w.must(t, "admin", "POST", h.path("/_deploy"), "")
	is.Equal(runs(), "admin")
}
