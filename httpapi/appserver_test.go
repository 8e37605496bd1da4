package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// shop makes an app of dana's with files, which mia may run as a clerk, deploys it and returns its
// id.
func shop(t *testing.T, w *world, files map[string]string) string {
	t.Helper()
	app := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/apps", `{"type": "report", "name": "Shop"}`)).ID
	put(t, w, app, map[string]string{
		"informer.yaml": "access: [colors, {path: 'colors/*', methods: [GET, PUT]}]\nroles: [clerk, boss]\n",
		"index.html":    "<head></head>",
	})
	put(t, w, app, files)
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/mia", `{"accessLevel": 1, "roles": ["clerk"]}`)
	w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	return app
}

// put writes files of an app.
func put(t *testing.T, w *world, app string, files map[string]string) {
	t.Helper()
	for path, content := range files {
		w.must(t, "dana", "PUT", "/api/apps/"+app+"/contents/"+path, content, "Content-Type: text/plain")
	}
}

const whoami = `export const GET = ({ request: { user, roles, method, headers } }) => [user?.username ?? null, roles, method, headers.cookie ?? headers.authorization ?? null].join()
export const POST = GET, PUT = GET, PATCH = GET, DELETE = GET`

// TestServerRoutesOfPages: the page of a viewer calls routes of the server below its view token,
// with every method and as the viewer; the page of a visitor only reads, as nobody.
func TestServerRoutesOfPages(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"server/who.js":   whoami,
			"server/index.js": whoami,
			"server/query.js": "export const GET = ({ request }) => request.query\nexport const POST = GET, PUT = " +
				"GET, PATCH = GET, DELETE = GET",
		})
		base := opened(t, w, "mia", app)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			a := w.do(
				t, "", method, base+"api/_server/who", `{}`, "Origin: null", "Sec-Fetch-Site: cross-site",
				"Content-Type: application/json",
			)
			is.Equal(a.body, `"mia,clerk,`+method+`,"`)
			is.Equal(a.header.Get("Access-Control-Allow-Origin"), "null")
			is.True(strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox "))
			is.Equal(a.header.Get("Cache-Control"), "no-store")
			for _, path := range []string{"_server", "_server/", "_server/who/"} {
				is.Equal(
					w.do(t, "mia", method, "/api/apps/"+app+"/view/api/"+path, `{}`).body,
					`"mia,clerk,`+method+`,"`,
				)
				is.Equal(w.do(t, "", method, base+"api/"+path, `{}`).body, `"mia,clerk,`+method+`,"`)
			}
			for _, path := range []string{"_server//", "_server//who", "_server/who//", "_server/x/"} {
				is.Equal(w.do(t, "mia", method, "/api/apps/"+app+"/view/api/"+path, `{}`).status, 404)
				is.Equal(w.do(t, "", method, base+"api/"+path, `{}`).status, 404)
			}
			is.Equal(w.do(t, "", method, base+"api/_server/query?a=1&a=2&b=", `{}`).body, `{"a":["1","2"],"b":""}`)
			is.Equal(
				w.do(t, "mia", method, "/api/apps/"+app+"/view/api/_server/query?limit=x", `{}`).body,
				`{"limit":"x"}`,
			)
		}
		is.Equal(w.do(t, "", "HEAD", base+"api/_server/who", "").status, 200)
		is.Equal(w.do(t, "", "POST", base+"api/colors", "{}").status, 405)
		// the manifest's calls of pages are reads
		is.Equal(w.do(t, "", "PUT", base+"api/colors/red", `{"color": "red"}`).status, 405)
		is.Equal(w.do(t, "", "POST", base+"a.js", "").status, 405)
		is.Equal(w.do(t, "nora", "GET", "/api/apps/"+app+"/view/api/_server/who", "").status, 404)
		is.Equal(w.do(t, "eve", "GET", "/api/apps/"+app+"/view/api/_server/who", "").status, 404)
		is.Equal(w.do(t, "", "POST", "/api/apps/"+app+"/view/api/_server/who", "{}").status, 401)

		_, key := invited(t, w, app, `{"roles": ["boss"]}`)
		visited := baseIn(t, w.must(t, "", "GET", "/api/apps/"+app+"/share?token="+key, ""))
		is.Equal(w.do(t, "", "GET", visited+"api/_server/who", "").body, `",boss,GET,"`)
		is.Equal(w.do(t, "", "POST", visited+"api/_server/who", "{}").message(t), "This token can only read.")

		readOnly := read[struct{ Key string }](t, w.must(t, "mia", "POST", "/api/tokens", `{"readOnly": true}`)).Key
		is.Equal(
			w.do(t, "", "GET", "/api/apps/"+app+"/view/api/_server/who", "", "Authorization: Bearer "+readOnly).body,
			`"mia,clerk,GET,"`,
		)
		is.Equal(
			w.do(
				t, "", "POST", "/api/apps/"+app+"/view/api/_server/who", "{}",
				"Authorization: Bearer "+readOnly,
			).status,
			403,
		)
	})
}

// TestServerRouteFromAnotherSite: the cookie that a browser adds starts nothing for a page of
// another origin.
func TestServerRouteFromAnotherSite(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{"server/who.js": whoami})
	for page, may := range pages {
		a := w.do(t, "", "POST", "/api/apps/"+app+"/view/api/_server/who", "{}", append(
			strings.Split(page, "\n"), "Cookie: sid="+w.token(t, "mia"),
		)...)
		is.Equal(a.status == 200, may)
	}
}

// TestServerRouteAtOrigin: at its own origin, an app's routes are for its pages alone.
func TestServerRouteAtOrigin(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withAppOrigin)
	app := shop(t, w, map[string]string{"server/who.js": whoami, "server/index.js": whoami})
	b := newBrowser(t, w, "mia")
	at, _ := b.open(t, baseURL+"/api/apps/"+app+"/view")
	origin := strings.TrimSuffix(at, "/")
	cookie := "Cookie: __Host-view=" + b.cookies[b.host(t, origin)]["__Host-view"]
	send := func(method, path string, headers ...string) answer {
		return w.do(t, "", method, origin+path, "{}", append(headers, cookie, "Content-Type: application/json")...)
	}
	is.Equal(send("POST", "/api/_server/who", "Sec-Fetch-Site: same-origin").body, `"mia,clerk,POST,"`)
	is.Equal(send("DELETE", "/api/_server", "Origin: "+origin).body, `"mia,clerk,DELETE,"`)
	is.Equal(send("GET", "/api/_server/who", "Sec-Fetch-Site: same-origin").body, `"mia,clerk,GET,"`)
	for _, from := range []string{
		"Sec-Fetch-Site: same-site", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: none", "Origin: " + baseURL,
		"Origin: null",
	} {
		is.Equal(send("POST", "/api/_server/who", from).status, 403)
		// a form of a neighbour
		is.Equal(send("POST", "/api/_server/who", from, "Sec-Fetch-Mode: navigate").status, 403)
	}
	is.Equal(send("POST", "/api/colors", "Sec-Fetch-Site: same-origin").status, 405)
	is.Equal(send("POST", "/index.html", "Sec-Fetch-Site: same-origin").status, 405)
	is.Equal(w.do(t, "", "POST", origin+"/api/_server/who", "{}").status, 401)
}

// TestServerRouteRoles: config.roles is for viewers with one of them, also by role=, and nothing
// runs for others.
func TestServerRouteRoles(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{
		"server/who.js": "export const config = { roles: ['boss', 'chief'] }\n" + whoami,
	})
	deployed := w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	is.True(strings.Contains(
		deployed.body,
		`"warnings":["server/who.js: config.roles has \"chief\", which is no role of the manifest, so nobody has it."]`,
	))
	route := "/api/apps/" + app + "/view/api/_server/who"
	is.Equal(w.do(t, "mia", "GET", route, "").message(t), "This route of the app is for the roles boss, chief.")
	is.Equal(w.do(t, "dana", "GET", route, "").body, `"dana,clerk,boss,GET,"`) // the owner has every role
	is.Equal(w.do(t, "admin", "GET", route, "").body, `"admin,clerk,boss,GET,"`)
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/tim", `{"accessLevel": 2}`)
	is.Equal(w.do(t, "tim", "GET", route, "").status, 403) // who may change the app has to choose the role
	a := w.must(t, "dana", "GET", "/api/apps/"+app+"/view?role=boss", "")
	is.Equal(w.do(t, "", "GET", baseIn(t, a)+"api/_server/who", "").body, `"dana,boss,GET,"`)
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/mia", `{"accessLevel": 1, "roles": ["boss"]}`)
	is.Equal(w.do(t, "mia", "GET", route, "").body, `"mia,boss,GET,"`)
}

// TestServerRouteOfDraft: a draft runs what its files contain now, for those who may change the
// app.
func TestServerRouteOfDraft(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"server/a.js":      "export const GET = () => 1",
			"migrations/1.sql": "CREATE TABLE t (n integer)",
		})
		draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/apps/"+app+"/_edit", "")).ID
		get := func(user, id string) answer { return w.do(t, user, "GET", "/api/apps/"+id+"/view/api/_server/a", "") }
		is.Equal(get("dana", draft).body, "1")
		is.Equal(get("mia", draft).status, 404)
		put(t, w, draft, map[string]string{
			"server/a.js": "import n from '../n.json'\nexport const GET = async ({ query }) => (await " +
				"query('INSERT INTO t VALUES ($1) RETURNING n', [n]))[0].n",
			"n.json": "2",
		})
		is.Equal(get("dana", draft).body, "2")
		put(t, w, draft, map[string]string{"n.json": "3"})
		is.Equal(get("dana", draft).body, "3")
		put(t, w, draft, map[string]string{"server/a.js": "export const GET = ("})
		is.True(strings.HasPrefix(get("dana", draft).message(t), "server/a.js:1:"))
		is.Equal(get("dana", draft).status, 409)
		is.Equal(w.do(t, "dana", "POST", "/api/apps/"+draft+"/_deploy", "").status, 400)
		is.Equal(get("mia", app).body, "1")
		is.Equal(w.do(t, "dana", "POST", "/api/apps/"+app+"/draft/_commit", "").status, 400)
		put(t, w, draft, map[string]string{
			"server/a.js": "export const GET = async ({ query }) => (await query('SELECT count(*) AS n FROM t'))[0].n",
		})
		w.must(t, "dana", "POST", "/api/apps/"+app+"/draft/_commit", "")
		is.Equal(get("mia", app).body, "0") // the draft had a database of its own
	})
}

// TestDeployIsAllOrNothing: a deploy that fails leaves what the app runs; migrations before the one
// that fails are applied.
func TestDeployIsAllOrNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{"server/a.js": "export const GET = () => 1"})
		one := "/api/apps/" + app
		get := func() string { return w.do(t, "mia", "GET", one+"/view/api/_server/a", "").body }
		put(t, w, app, map[string]string{
			"server/a.js":      "export const GET = () => 2",
			"migrations/1.sql": "CREATE TABLE t (n integer)",
			"migrations/2.sql": "CREATE TABL",
		})
		a := w.do(t, "dana", "POST", one+"/_deploy", "")
		is.Equal(a.status, 400)
		is.True(strings.Contains(a.message(t), "migrations/2.sql"))
		is.Equal(get(), "1")
		put(t, w, app, map[string]string{
			"migrations/2.sql":      "CREATE TABLE u (n integer)",
			"migrations/1.down.sql": "DROP TABLE t",
		})
		a = w.do(t, "dana", "POST", one+"/_deploy", "")
		is.Equal(a.status, 400)
		is.True(strings.Contains(a.message(t), "migrations/1.down.sql undoes another file"))
		w.must(t, "dana", "DELETE", one+"/contents/migrations/1.down.sql", "")
		type done struct {
			Deployed struct {
				Migrations, Warnings []string
				Routes               []struct{ File string }
			}
		}
		d := read[done](t, w.must(t, "dana", "POST", one+"/_deploy", ""))
		is.Equal(fmt.Sprint(d.Deployed), "{[2.sql] [] [{server/a.js}]}")
		is.Equal(get(), "2")
		put(t, w, app, map[string]string{
			"migrations/1.sql": "CREATE TABLE other (n integer)",
			"server/none.js":   "export const none = 1",
		})
		d = read[done](t, w.must(t, "dana", "POST", one+"/_deploy", ""))
		is.Equal(len(d.Deployed.Migrations), 0)
		is.Equal(len(d.Deployed.Warnings), 2)
		for _, route := range []string{"_deploy", "_migrate"} { // an error where it matters
			a = w.do(t, "dana", "POST", one+"/"+route+"?strict=true", "")
			is.Equal(a.status, 400)
			is.True(strings.Contains(a.message(t), "migrations/1.sql has changed since it was applied"))
		}
		tables := read[struct {
			Tables []struct{ Name string }
		}](t, w.must(t, "dana", "GET", one+"/stats/tables", ""))
		is.Equal(fmt.Sprint(tables.Tables), "[{t} {u}]")
		is.Equal(w.do(t, "mia", "GET", one+"/stats/tables", "").status, 403)
		w.must(t, "dana", "DELETE", one+"/contents/server/a.js", "")
		w.must(t, "dana", "POST", one+"/_deploy", "")
		is.Equal(w.do(t, "mia", "GET", one+"/view/api/_server/a", "").status, 404)
	})
}

// TestFetch: a handler calls what the manifest allows, in process and with the rights of the
// viewer.
func TestFetch(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{"server/a.js": `
		export const POST = async ({ request: { body: [path, options] }, fetch }) => {
			try { const { status, body, headers } = await fetch(path, options); return { answer: [status, body, headers] } } catch (e) { return { error: e.code + ': ' + e.message } }
		}`})
	call := func(user, args string) string {
		return w.do(
			t, user, "POST", "/api/apps/"+app+"/view/api/_server/a", args, "Content-Type: application/json",
		).body
	}
	for args, want := range map[string]string{
		`["colors/red", {"method": "put", "body": {"color": "#ff0000"}}]`: `[200,{"_links"`,
		`["/api/colors?limit=0"]`:                          `"count":0`,
		`["colors/none"]`:                                  `[404,{"statusCode":404`,
		`["colors", {"headers": {"Accept": "text/html"}}]`: `[406,`,
		`["colors/red", {"method": "PUT", "body": "{"}]`:   `[400,`,
		`["users"]`: `forbidden: The manifest of the app does not ` +
			`allow GET users`,
		`["colors", {"method": "DELETE"}]`:                       `forbidden: `,
		`["https://example.com/"]`:                               `there is no other network`,
		`["colors?q=https://example.com/"]`:                      `[200,`,
		`["//example.com/"]`:                                     `there is no other network`,
		`["colors/../users"]`:                                    `forbidden: `,
		`["colors%2f..%2fusers"]`:                                `forbidden: `,
		`["colors", {"headers": {"Cookie": "sid=x"}}]`:           `the header \"Cookie\" cannot be sent`,
		`["colors", {"headers": {"Authorization": "Bearer x"}}]`: `cannot be sent`,
		`["colors", {"headers": {"accept": "a\r\nb: c"}}]`:       `cannot be sent`,
		`["colors", 5]`:                                          `must be an object`,
		`[5]`:                                                    `the first argument must be a path`,
		`[""]`:                                                   `the first argument must be a path`,
		`["colors#x"]`:                                           `no # or line breaks`,
		`["apps/` + app + `/view/api/_server/a"]`:                `forbidden: `,
	} {
		if got := call("dana", args); !strings.Contains(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}
	// mia may not do that herself
	is.True(strings.Contains(call("mia", `["colors/blue", {"method": "PUT", "body": {"color": "blue"}}]`), `[403,`))
	is.Equal(w.do(t, "dana", "GET", "/api/colors/red", "").status, 200)
	is.Equal(w.do(t, "dana", "GET", "/api/colors/blue", "").status, 404)
	w.must(t, "dana", "PUT", "/api/colors/red", `{"color": "#0000ff"}`)
	is.True(strings.Contains(
		call(
			"dana",
			`["colors/red", {"method": "PUT", "body": {"color": "#ff0000"}, "headers": {"If-Match": "\"x\""}}]`,
		),
		`[412,`,
	))
}

// TestHandlerFunctions: what a handler has beside fetch.
func TestHandlerFunctions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{"migrations/1.sql": "CREATE TABLE orders (id integer, total real)",
			"server/a.js": `
			export async function POST(c) {
				await c.query('INSERT INTO orders VALUES ($1, $2)', [1, 2.5])
				const [order] = await c.query('SELECT * FROM orders')
				const event = await c.emit('order.paid', { order })
				const note = await c.notify('mia', { title: 'Paid' })
				const mails = await c.email(['a@example.com', 'b@example.com'], { subject: 'Paid', html: '<p>Thanks' })
				let wrong; try { await c.query('SELECT nothing') } catch (e) { wrong = e.code }
				let unbound; try { await c.context.sales.rows() } catch (e) { unbound = e.code + ': ' + e.message }
				return { order, event: event.name, note: typeof note.id, queued: mails.queued, html: await c.markdown('**a**'), text: await c.extractText('<p>Hi</p>', { contentType: 'text/html' }), wrong, unbound, key: c.env.KEY }
			}`})
		w.must(t, "dana", "PUT", "/api/apps/"+app+"/environment/KEY", `{"value": "s3cret"}`)
		put(t, w, app, map[string]string{"informer.yaml": "access: [dataset: sales]"})
		w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
		a := w.do(t, "mia", "POST", "/api/apps/"+app+"/view/api/_server/a", "{}")
		is.Equal(
			a.body,
			`{"order":{"id":1,"total":2.5},"event":"order.paid","note":"string","queued":2,"html":"<p><strong>a</strong></p>\n","text":"Hi\n","wrong":"invalid","unbound":"not_found: No dataset is bound to the alias sales.","key":"s3cret"}`,
		)
	})
}

// TestDraftSendsNothing: the handlers of a draft check notifications and e-mails as those of the
// app do, but only log what they would send, unless their editor asks. What was sent then is the
// app's, and outlives the draft.
func TestDraftSendsNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{"server/a.js": `export const POST = async ({ notify, email, emit }) => {
			const one = await notify('mia', { title: 'Paid', path: 'orders/5' })
			const many = await email(['a@example.com', 'b@example.com'], { subject: 'Thanks', text: 'Hi' })
			const wrong = await notify('nobody', { title: 'x' }).catch((e) => e.message)
			return [Object.keys(one), Object.keys(many), many.queued, wrong, (await emit('paid')).appId]
		}`})
		one := "/api/apps/" + app
		begin := func() string {
			return read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/_edit", "")).ID
		}
		call := func(id, query string) {
			is.Helper()
			a := w.do(t, "dana", "POST", "/api/apps/"+id+"/view/api/_server/a"+query, "{}")
			is.Equal(a.body, `[["id"],["ids","queued"],2,"There is no user nobody.","`+id+`"]`)
		}
		total := func(user, path string) int { return read[page](t, w.must(t, user, "GET", path, "")).Total }
		draft := begin()
		for _, query := range []string{"", "?send=false", "?send=true&send=false"} {
			call(draft, query)
		}
		is.Equal([]int{
			total("dana", "/api/apps/"+draft+"/messages"), total("dana", one+"/messages"),
			total("mia", "/api/notifications"),
		}, []int{0, 0, 0})
		calls := "/api/apps/" + draft + "/stats/api"
		recent := read[struct{ Recent []struct{ ID string } }](t, w.must(t, "dana", "GET", calls, "")).Recent
		is.Equal(len(recent), 3)
		lines := read[struct {
			Logs []struct{ Level, Message string }
		}](t, w.must(t, "dana", "GET", calls+"/"+recent[0].ID, "")).Logs
		is.Equal(fmt.Sprint(lines),
			`[{info notify sends nothing in a draft without ?send=true: {"to":"mia","title":"Paid","path":"orders/5"}}`+
				` {info email sends nothing in a draft without ?send=true: `+
				`{"to":"a@example.com","title":"Thanks","body":"Hi"}}`+
				` {info email sends nothing in a draft without ?send=true: `+
				`{"to":"b@example.com","title":"Thanks","body":"Hi"}}]`)
		call(draft, "?send=true")
		w.must(t, "dana", "DELETE", one+"/draft", "")
		is.Equal([]int{
			total("dana", one+"/messages"), total("dana", one+"/messages?state=pending"),
			total("mia", "/api/notifications"),
		}, []int{3, 2, 1})
		call(begin(), "?send=true")
		w.must(t, "dana", "POST", one+"/draft/_commit", "")
		is.Equal(total("dana", one+"/messages"), 6)
		call(app, "") // the app itself sends
		is.Equal(total("dana", one+"/messages"), 9)
	})
}

// TestDeclaredVariables: a variable that the manifest declares is one of the environment before it
// has a value, and a deploy and a commit warn of one that is required.
func TestDeclaredVariables(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"server/a.js":   "export const GET = ({ env }) => env",
			"informer.yaml": "roles: [clerk]\nenv: [OLD, {name: KEY, required: true}, URL]",
		})
		one := "/api/apps/" + app
		env := func(id string) string {
			var got struct{ Env json.RawMessage }
			is.NoErr(json.Unmarshal([]byte(w.must(t, "dana", "GET", "/api/apps/"+id+"/environment", "").body), &got))
			var small bytes.Buffer
			is.NoErr(json.Compact(&small, got.Env))
			return small.String()
		}
		warnings := func(body string) string {
			type done struct{ Deployed struct{ Warnings []string } }
			return strings.Join(read[done](t, w.must(t, "dana", "POST", one+body, "")).Deployed.Warnings, "\n")
		}
		const warned = "The manifest requires the variable KEY, which has no value: set it with PUT "
		is.Equal(env(app), `{"KEY":null,"OLD":null,"URL":null}`)
		is.Equal(warnings("/_deploy"), warned+one+"/environment/KEY.")
		is.Equal(w.do(t, "dana", "DELETE", one+"/environment/KEY", "").status, 404) // there is no value to remove
		is.Equal(w.do(t, "dana", "GET", one+"/view/api/_server/a", "").body, `{}`)
		put(t, w, app, map[string]string{"informer.yaml": "env: [NEW, {name: KEY, required: true}]"})
		w.must(t, "dana", "PUT", one+"/environment/OTHER", `{"value": "x"}`)
		// of the app as it is and as it will be
		is.Equal(env(app), `{"KEY":null,"NEW":null,"OLD":null,"OTHER":"********","URL":null}`)
		is.Equal(warnings("/_deploy"), warned+one+"/environment/KEY.")
		is.Equal(env(app), `{"KEY":null,"NEW":null,"OTHER":"********"}`)
		draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/_edit", "")).ID
		w.must(
			t, "dana", "PUT", "/api/apps/"+draft+"/contents/informer.yaml",
			"env: [{name: KEY, required: true}, {name: NEXT, required: true}]", "Content-Type: text/plain",
		)
		w.must(t, "dana", "PUT", "/api/apps/"+draft+"/environment/KEY", `{"value": "x"}`)
		is.Equal(env(draft), `{"KEY":"********","NEXT":null,"OTHER":"********"}`)
		is.Equal(warnings("/draft/_commit"), strings.ReplaceAll(warned, "KEY", "NEXT")+one+"/environment/NEXT.")
		is.Equal(env(app), `{"KEY":"********","NEXT":null,"OTHER":"********"}`)
		w.must(t, "dana", "PUT", one+"/environment/NEXT", `{"value": ""}`)
		is.Equal(warnings("/_deploy"), "")
	})
}

// TestArgumentsOfHandlerFunctions: an argument or option that a function does not know throws, and
// is not dropped.
func TestArgumentsOfHandlerFunctions(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{"server/a.js": `
		export async function POST(c) {
			const { query, fetch, emit, notify, email, markdown, extractText } = c
			const says = []
			for (const call of [
				() => query('SELECT 1', [], {}), () => fetch('colors', { methd: 'PUT' }), () => fetch('colors', { params: {} }), () => fetch('colors', {}, 1),
				() => emit('a', {}, {}), () => notify('mia', { titel: 'x' }), () => email('a@example.com', { subject: 'x' }, {}), () => markdown('a', {}),
				() => extractText('a', { contenttype: 'text/html' }), () => extractText('a', {}, {}), () => extractText('a', 7), () => extractText({ content: 'YQ==', encodng: 'base64' }),
				() => extractText('!', 'text/plain'), () => extractText('YQ==', 'image/png'), () => extractText('YQ==', ''), () => extractText({}),
				() => c.context.sales.fields({}), () => c.context.sales.rows({}, {}),
			]) {
				try { says.push('took ' + await call()) } catch (e) { says.push(e.message) }
			}
			const texts = [await extractText('PHA+SGk8L3A+', 'text/html'), await extractText({ content: 'YQ==', encoding: 'base64', size: 1 }, 'text/plain'), await extractText('b')]
			return { says, texts }
		}`})
	put(t, w, app, map[string]string{"informer.yaml": "access: [dataset: sales]"})
	w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	got := read[struct{ Says, Texts []string }](t, w.do(t, "mia", "POST", "/api/apps/"+app+"/view/api/_server/a", "{}"))
	is.Equal(got.Texts, []string{"Hi\n", "a", "b"})
	want := []string{
		"query takes 2 arguments at most, not 3", "fetch: unknown option methd: did you mean method?",
		`fetch: unknown option "params": it has body, headers, method`, "fetch takes 2 arguments at most, not 3",
		"emit takes 2 arguments at most, not 3", `notify: unknown field "titel"`,
		"email takes 2 arguments at most, not 3", "markdown takes 1 arguments at most, not 2",
		"extractText: unknown option contenttype: did you mean contentType?",
		"extractText takes 2 arguments at most, not 3", "extractText: the options must have content,",
		"extractText: unknown option encodng: did you mean encoding?", "extractText: the content is not base64",
		"Text is extracted from PDF", "took a", "extractText: the first argument must be a string, bytes,",
		"", "",
	}
	is.Equal(len(got.Says), len(want))
	for i, said := range got.Says {
		if !strings.HasPrefix(said, want[i]) {
			t.Errorf("%d: %s, not %s", i, said, want[i])
		}
	}
}

// TestHandlerAnswers: what a handler answers is sent as it is, in the sandbox of the view, and
// nothing of its failure.
func TestHandlerAnswers(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w,
		map[string]string{"server/endless.js": "export const config = { timeout: 300 }\nexport const POST = () => " +
			"{ for (;;); }",
			"server/a.js": `
		export const GET = ({ respond }) => { respond({ status: 202, body: '<b>', headers: { 'Content-Type': 'text/html', 'Cache-Control': 'max-age=60', 'Content-Security-Policy': 'none' } }); throw new Error('later') }
		export const PUT = ({ request: { body } }) => body.length
		export const DELETE = () => ({ status: 302, headers: { Location: 'there' } })`})
	route := "/api/apps/" + app + "/view/api/_server/a"
	a := w.do(t, "mia", "GET", route, "")
	is.Equal(a.status, 202)
	is.Equal(a.body, "<b>")
	is.Equal(a.header.Get("Content-Type"), "text/html")
	is.Equal(a.header.Get("Cache-Control"), "max-age=60")
	is.Equal(a.header.Get("X-Content-Type-Options"), "nosniff")
	is.True(strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox allow-scripts"))
	a = w.do(t, "mia", "POST", "/api/apps/"+app+"/view/api/_server/endless", "{}")
	is.Equal(a.status, 504)
	is.Equal(a.message(t), "The app took too long to answer")
	// more than a JSON body elsewhere
	is.Equal(w.do(t, "mia", "PUT", route, strings.Repeat("x", 2<<20), "Content-Type: text/plain").body, "2097152")
	a = w.do(t, "mia", "DELETE", route, "")
	is.Equal(a.status, 302)
	is.Equal(a.header.Get("Location"), "there")
	is.Equal(
		w.do(t, "mia", "PUT", route, strings.Repeat("x", 10<<20+1), "Content-Type: text/plain").status,
		http.StatusRequestEntityTooLarge,
	)
}

// TestServedCalls: why a server route failed, and what it has logged, is for those who see the
// insides of the app, and not in the answer.
func TestServedCalls(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		const throws = "export const GET = ({ log }) => { log.warn('careful'); throw new Error('geheim') " +
			"}\nexport const POST = () => 1"
		app := shop(t, w, map[string]string{"server/[id].js": throws, "webhooks/x.js": throws})
		one := "/api/apps/" + app
		type calls struct {
			Calls  []struct{ Failed int }
			Recent []invocation
		}
		check := func(one, path string) string {
			t.Helper()
			a := w.do(t, "dana", "GET", one+"/view/api/_server/"+path, "")
			is.Equal(a.status, 500)
			is.Equal(a.message(t), "An internal server error occurred")
			is.Equal(w.do(t, "dana", "POST", one+"/view/api/_server/"+path, "{}").body, "1") // which is not recorded
			all := read[calls](t, w.must(t, "dana", "GET", one+"/stats/api", "")).Recent
			is.Equal(len(all), 1)
			is.Equal([]any{
				all[0].Method, all[0].Path, all[0].StatusCode,
				strings.HasPrefix(*all[0].Error, "Error: geheim\n"),
			}, []any{"GET", "/:id", 500, true})
			is.True(strings.Contains(*all[0].Error, "server/[id].js:1"))
			v := read[invocation](t, w.must(t, "dana", "GET", one+"/stats/api/"+all[0].ID, ""))
			is.Equal(v.Logs[0].Level+" "+v.Logs[0].Message, "warn careful")
			is.Equal(v.Error, all[0].Error)
			return all[0].ID
		}
		id := check(one, "5")
		listed := read[listing](t, w.must(t, "dana", "GET", one+"/webhooks", ""))
		is.Equal(len(listed.Recent)+len(listed.Daily), 0) // it is no webhook
		is.Equal(
			read[invocation](t, w.must(t, "dana", "GET", one+"/webhooks/invocations/"+id, "")).Logs[0].Message,
			"careful",
		)
		is.Equal(w.do(t, "dana", "POST", one+"/webhooks/invocations/"+id+"/_replay", "").status, 404)
		for user, want := range map[string]int{"mia": 403, "nora": 404, "eve": 404} {
			is.Equal(w.do(t, user, "GET", one+"/stats/api", "").status, want)
			is.Equal(w.do(t, user, "GET", one+"/stats/api/"+id, "").status, want)
		}
		is.Equal(w.do(t, "dana", "GET", one+"/stats/api/x", "").status, 404)
		draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/_edit", "")).ID
		check("/api/apps/"+draft, "6")
		is.Equal(len(read[calls](t, w.must(t, "dana", "GET", one+"/stats/api", "")).Recent), 1)
		w.must(t, "dana", "DELETE", one+"/draft", "")
		left := 0
		ctx, c := bunx.For(t.Context(), w.db, "acme")
		is.NoErr(c.One(
			ctx, "Count", "SELECT count(*) FROM tc_webhook_invocations WHERE tenant_id = $1", []any{"acme"},
			&left,
		))
		is.Equal(left, 1) // those of the draft went with it
	})
}

// TestCallsAreCounted: by route and day, those of pages by the manifest's rule.
func TestCallsAreCounted(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{
		"server/[id].js": "export const GET = ({ request: { params } }) => ({ status: +params.id })",
	})
	one := "/api/apps/" + app
	for _, path := range []string{
		"/view/api/_server/200", "/view/api/_server/204", "/view/api/_server/500", "/view/api/_server/no/route",
		"/view/api/colors", "/view/api/colors/none", "/view/api/users",
	} {
		w.do(t, "mia", "GET", one+path, "")
	}
	w.pass(24 * time.Hour)
	w.do(t, "mia", "GET", one+"/view/api/colors", "")
	got := read[struct {
		Calls []struct {
			Day, Area, Method, Path string
			Calls, Failed           int
		}
	}](t, w.must(t, "dana", "GET", one+"/stats/api", ""))
	is.Equal(
		fmt.Sprint(got.Calls),
		"[{2026-11-20 api GET colors 1 0} {2026-11-20 api GET colors/* 1 0} {2026-11-20 server GET /:id 3 1} "+
			"{2026-11-21 api GET colors 1 0}]",
	)
	w.pass(29 * 24 * time.Hour)
	is.NoErr(w.app.Sweep(t.Context()))
	is.Equal(strings.Count(w.must(t, "dana", "GET", one+"/stats/api", "").body, `"day"`), 1)
}

// TestGetFromAnotherSite: a page of another origin, a sibling app and a navigation run no GET
// handler with the cookie of a viewer unless its config allows that, and make no call; a bearer
// token and the view token of a page are not added by browsers.
func TestGetFromAnotherSite(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{
		"server/who.js":  whoami,
		"server/open.js": "export const config = { crossSite: true }\n" + whoami,
	})
	view, cookie := "/api/apps/"+app+"/view/", "Cookie: sid="+w.token(t, "mia")
	foreign := map[string]bool{"Referer: https://evil.example/x": false,
		"Referer: " + baseURL + "/x": true, "Referer: x": false,
		"Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate":  false,
		"Sec-Fetch-Site: same-site\nSec-Fetch-Mode: navigate":   false,
		"Sec-Fetch-Site: none\nReferer: https://evil.example/x": true}
	maps.Copy(foreign, pages)
	for page, may := range foreign {
		headers := append(strings.Split(page, "\n"), cookie)
		for _, method := range []string{"GET", "HEAD"} {
			a := w.do(t, "", method, view+"api/_server/who", "", headers...)
			is.Equal(a.status == 200, may)
			is.Equal(w.do(t, "", method, view+"api/_server/open", "", headers...).status, 200)
			is.Equal(w.do(t, "", method, view+"api/colors", "", headers...).status == 200, may)
		}
		// writes are as for all routes
		is.Equal(w.do(t, "", "POST", view+"api/_server/open", "{}", headers...).status == 200, may ||
			strings.HasPrefix(page, "Referer"))
		is.Equal(w.do(t, "mia", "GET", view+"api/_server/who", "", strings.Split(page, "\n")...).status, 200)
		is.Equal(
			w.do(t, "", "GET", opened(t, w, "mia", app)+"api/_server/who", "", strings.Split(page, "\n")...).status,
			200,
		)
	}
}

// TestGetFromAnotherSiteAtOrigin: the same at an app's own origin.
func TestGetFromAnotherSiteAtOrigin(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withAppOrigin)
	app := shop(t, w, map[string]string{
		"server/who.js":  whoami,
		"server/open.js": "export const config = { crossSite: true }\n" + whoami,
	})
	b := newBrowser(t, w, "mia")
	at, _ := b.open(t, baseURL+"/api/apps/"+app+"/view")
	origin := strings.TrimSuffix(at, "/")
	cookie := "Cookie: __Host-view=" + b.cookies[b.host(t, origin)]["__Host-view"]
	for page, may := range map[string]bool{
		"": true, "Sec-Fetch-Site: same-origin": true,
		"Sec-Fetch-Site: none": true, "Sec-Fetch-Site: same-site": false, "Sec-Fetch-Site: cross-site": false,
		"Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate": false, "Origin: " + baseURL: false,
		"Origin: " + origin: true, "Referer: " + origin + "/x": true,
	} {
		headers := append(strings.Split(page, "\n"), cookie)
		is.Equal(w.do(t, "", "GET", origin+"/api/_server/who", "", headers...).status == 200, may)
		is.Equal(w.do(t, "", "GET", origin+"/api/_server/open", "", headers...).status, 200)
	}
}

// writer is a handler that writes in each way that there is, and returns what came of it.
const writer = `const attempt = async (f) => { try { const r = await f(); return r?.status ?? 'done' } catch (e) { return e.message } }
export const GET = async ({ query, emit, notify, email, fetch }) => ({
	read: await attempt(() => query('SELECT k FROM t')),
	query: await attempt(() => query('INSERT INTO t (k) VALUES (1) RETURNING k')), emit: await attempt(() => emit('x', {})),
	notify: await attempt(() => notify('mia', { title: 'x' })), email: await attempt(() => email('mia@acme.example', { subject: 'x', html: 'x' })),
	fetch: await attempt(() => fetch('colors/red', { method: 'PUT', body: { color: '#123456' } })), fetched: await attempt(() => fetch('colors')),
})
export const POST = GET`

// TestHandlersThatOnlyRead: a GET by cookie writes nothing with fetch, and one with a token that
// can only read writes nothing at all.
func TestHandlersThatOnlyRead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"server/write.js":  writer,
			"migrations/1.sql": "CREATE TABLE t (k integer)",
		})
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/tim", `{"accessLevel": 1}`)
		route := "/api/apps/" + app + "/view/api/_server/write"
		call := func(method string, header string) map[string]any {
			return read[map[string]any](t, w.must(t, "", method, route, "", header))
		}
		cookie := call("GET", "Cookie: sid="+w.token(t, "tim"))
		is.Equal(
			cookie["fetch"],
			"fetch: a GET that a browser makes with its cookie can only read: export POST for PUT colors/red, and "+
				"let the page call that.",
		)
		cookie["fetch"] = ""
		is.Equal(cookie, map[string]any{
			"read":    "done",
			"query":   "done",
			"emit":    "done",
			"notify":  "done",
			"email":   "done",
			"fetch":   "",
			"fetched": 200.0,
		})

		readOnly := read[struct{ Key string }](t, w.must(t, "tim", "POST", "/api/tokens", `{"readOnly": true}`)).Key
		got := call("GET", "Authorization: Bearer "+readOnly)
		is.Equal(got, map[string]any{
			"read":   "done",
			"query":  "query: this token can only read, and the statement writes.",
			"emit":   "emit: this token can only read.",
			"notify": "notify: this token can only read.", "email": "email: this token can only read.",
			"fetch": 403.0, "fetched": 200.0,
		})
		is.Equal(
			w.do(t, "", "POST", route, "", "Cookie: sid="+w.token(t, "tim"), "Sec-Fetch-Site: same-origin").status,
			200,
		)
	})
}
