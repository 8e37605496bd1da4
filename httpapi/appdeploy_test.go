package httpapi_test

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/matryer/is"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/postgres"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

// deployed is what a deploy answers.
type deployed struct {
	ID, OwnerID string
	Deployed    *struct {
		Routes               []struct{ File string }
		Migrations, Warnings []string
	}
}

// TestCopyIsDeployed: the copy of an app that is deployed runs, as its owner's; of what cannot run
// the answer says why.
func TestCopyIsDeployed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"server/a.js":      whoami,
			"server/n.js":      "export const GET = ({ query }) => query('SELECT n FROM t')",
			"migrations/1.sql": "CREATE TABLE t (n integer); INSERT INTO t VALUES (5)",
		})
		one := "/api/apps/" + app
		a := w.must(t, "tim", "POST", "/api/apps", `{"type": "report", "name": "Empty"}`)
		plain := w.must(t, "tim", "POST", "/api/apps/"+read[deployed](t, a).ID+"/_copy", "")
		is.Equal(plain.status, 201)
		is.Equal(read[deployed](t, plain).Deployed, nil)

		a = w.must(t, "dana", "POST", one+"/_copy", `{"name": "Mine"}`)
		is.Equal(a.status, 201)
		c := read[deployed](t, a)
		is.Equal(a.header.Get("Location"), baseURL+"/api/apps/"+c.ID)
		is.Equal(fmt.Sprint(*c.Deployed), "{[{server/a.js} {server/n.js}] [1.sql] []}")
		// a database of its own
		is.Equal(w.do(t, "dana", "GET", "/api/apps/"+c.ID+"/view/api/_server/n", "").body, `[{"n":5}]`)

		put(t, w, app, map[string]string{"server/a.js": "export const GET = ("})
		c = read[deployed](t, w.must(t, "dana", "POST", one+"/_copy", ""))
		is.Equal(len(c.Deployed.Routes), 0)
		is.True(strings.Contains(c.Deployed.Warnings[0], "/_deploy. server/a.js:1:"))
		is.Equal(w.do(t, "dana", "GET", "/api/apps/"+c.ID+"/view/api/_server/n", "").status, 404)

		again := read[deployed](t, w.must(t, "dana", "POST", "/api/apps/"+c.ID+"/_copy", ""))
		is.True(strings.HasSuffix(again.Deployed.Warnings[0], "The app that it is a copy of was not deployed."))
	})
}

// TestImportsRunNothing: what an archive brings runs after somebody of the tenant has deployed it,
// as who that is.
func TestImportsRunNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{"server/a.js": "export const GET = () => 1"})
		one := "/api/apps/" + app
		get := func(user string) string { return w.do(t, user, "GET", one+"/view/api/_server/a", "").body }
		type imported struct{ Warnings []string }
		sentence := " once somebody deploys the app, with POST /api/apps/" + app +
			"/_deploy. Until then it runs what was deployed before, if anything."
		count := func(a answer) int {
			return strings.Count(strings.Join(read[imported](t, a).Warnings, "\n"), sentence)
		}

		put(t, w, app, map[string]string{
			"server/a.js": "export const GET = () => 2",
			"server/b.js": "export const GET = () => 2",
		})
		archive := w.must(t, "admin", "POST", one+"/_export", "").body
		is.Equal(get("mia"), "1")
		// all of it is here
		is.Equal(count(w.must(t, "admin", "POST", "/api/_import-bundle?updateRule=overwrite&changes=true", archive)), 0)
		put(t, w, app, map[string]string{"server/a.js": "export const GET = () => 3"})
		is.Equal(
			count(w.must(
				t, "admin", "POST", "/api/_import-bundle?updateRule=overwrite&changes=true&dryRun=true",
				archive,
			)),
			1,
		)
		is.Equal(count(w.must(t, "admin", "POST", "/api/_import-bundle?updateRule=overwrite", archive)), 1)
		is.Equal(count(w.must(t, "admin", "POST", "/api/_import-bundle?updateRule=skip", archive)), 0)
		is.Equal(get("mia"), "1")
		w.must(t, "admin", "DELETE", one, "")
		w.must(t, "admin", "POST", one+"/_purge", "")
		is.Equal(count(w.must(t, "admin", "POST", "/api/_import-bundle", archive)), 1)
		is.Equal(w.do(t, "dana", "GET", one+"/view/api/_server/a", "").status, 404)
		w.must(t, "dana", "POST", one+"/_deploy", "")
		is.Equal(get("dana"), "2")

		w.must(t, "eve", "PUT", "/api/tenant", `{"settings": {"deployFrom": ["acme"]}}`)
		bring := func() answer {
			return w.must(
				t, "admin", "POST", "/api/_bundle-deploy?updateRule=overwrite",
				`{"entries": [{"type": "app", "appId": "`+app+`"}], "tenants": ["evil"]}`,
			)
		}
		is.Equal(strings.Count(bring().body, "with POST /api/apps/"+app+"/_deploy"), 1)
		is.Equal(w.do(t, "eve", "GET", one+"/view/api/_server/a", "").status, 404)
		is.True(strings.Contains(
			w.must(t, "eve", "GET", "/api/notifications", "").body, "with POST /api/apps/"+app+"/_deploy",
		))
		c := read[deployed](t, w.must(t, "eve", "POST", one+"/_copy", "")) // copying it is no way around
		is.True(strings.HasSuffix(c.Deployed.Warnings[0], "The app that it is a copy of came from another tenant."))
		is.Equal(w.do(t, "eve", "GET", "/api/apps/"+c.ID+"/view/api/_server/a", "").status, 404)
		is.Equal(read[deployed](t, w.must(t, "eve", "POST", one+"/_deploy", "")).OwnerID, "eve")
		is.Equal(get("eve"), "2")
		put(t, w, app, map[string]string{"server/a.js": "export const GET = () => 4"})
		bring()
		is.Equal(get("eve"), "2") // which nobody of evil has deployed
		is.Equal(get("dana"), "2")
	})
}

// TestManifestWaitsForDeploy: what a deployed app may call is what its last deploy says, whatever
// is written or imported since, and an open page goes on; a manifest that cannot be read is
// refused.
func TestManifestWaitsForDeploy(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"informer.yaml":    "access: [colors]\nroles: [clerk]\n",
			"server/call.js":   callJS,
			"webhooks/call.js": "export const POST = async ({ fetch }) => (await fetch('users')).status",
		})
		one := "/api/apps/" + app
		base := opened(t, w, "dana", app)
		holds := func(colors, users int) {
			t.Helper()
			is.Equal(w.do(t, "", "GET", base+"api/colors", "").status, colors)
			is.Equal(w.do(t, "", "GET", base+"api/users", "").status, users)
			is.Equal(
				strings.Contains(w.must(t, "dana", "GET", one+"/data-access", "").body, `"path":"users"`),
				users == 200,
			)
		}
		holds(200, 403)
		archive := w.must(t, "admin", "POST", one+"/_export", "").body
		put(t, w, app, map[string]string{"informer.yaml": "access: [users]\nroles: [boss]\n"})
		holds(200, 403)
		is.True(strings.Contains(w.must(t, "dana", "GET", one+"/roles", "").body, `"id":"clerk"`))
		is.Equal(
			w.must(t, "dana", "POST", one+"/view/api/_server/call", `{"method": "GET", "path": "colors"}`).body,
			"200",
		)
		is.Equal(
			w.do(t, "dana", "POST", one+"/view/api/_server/call", `{"method": "GET", "path": "users"}`).status,
			500,
		)

		bad := "access: [colors]\nrolls: 1\n"
		a := w.do(t, "dana", "PUT", one+"/contents/informer.yaml", bad, "Content-Type: text/plain")
		is.Equal(a.status, 400)
		is.True(strings.Contains(a.body, "informer.yaml:2:1: rolls"))
		for user, status := range map[string]int{"mia": 403, "nora": 404, "eve": 404} {
			is.Equal(
				w.do(t, user, "PUT", one+"/contents/informer.yaml", bad, "Content-Type: text/plain").status,
				status,
			)
		}
		draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/_edit", "")).ID
		w.must(t, "dana", "PUT", "/api/apps/"+draft+"/contents/informer.yaml", bad, "Content-Type: text/plain")
		w.must(t, "dana", "DELETE", one+"/draft", "")
		holds(200, 403)
		w.must(t, "dana", "POST", one+"/_deploy", "")
		is.Equal(w.do(t, "", "GET", base+"api/users", "").status, 401)
		base = opened(t, w, "dana", app)
		holds(403, 200)

		brought := w.must(t, "admin", "POST", "/api/_import-bundle?updateRule=overwrite", archive)
		is.Equal(
			strings.Count(
				brought.body,
				"the manifest, handlers, agents and migrations that came along count once somebody deploys the app",
			),
			1,
		)
		holds(403, 200)
		w.must(t, "dana", "POST", one+"/_deploy", "")
		base = opened(t, w, "dana", app)
		holds(200, 403)
	})
}

// TestWhatAppsRunGoesWithThem: the SQL database of a draft goes when it is published or discarded,
// that of an app and its handlers when it is purged.
func TestWhatAppsRunGoesWithThem(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, folder := is.New(t), t.TempDir()
		w := newWorld(t, open, func(c *tenantcontent.Config) {
			d, err := sqlite.New(sqlite.Options{Dir: folder})
			is.NoErr(err)
			t.Cleanup(func() { is.NoErr(d.Close()) })
			c.Workspaces = d
		})
		left := func() (files, rows, handlers int) {
			all, err := filepath.Glob(filepath.Join(folder, "*", "*.sqlite"))
			is.NoErr(err)
			count := func(table string) int {
				n, err := bunx.Count(t.Context(), w.db, "acme", table)
				is.NoErr(err)
				return n
			}
			rows, handlers = count("tc_workspaces"), count("tc_handler_routes")+count("tc_handler_deployments")
			return len(all), rows, handlers
		}
		expect := func(files, handlers int) {
			t.Helper()
			f, r, h := left()
			is.Equal(fmt.Sprint(f, r, h), fmt.Sprint(files, files, handlers))
		}
		app := shop(t, w, map[string]string{
			"server/a.js": "export const GET = ({ query }) => query('SELECT * FROM t')",
		})
		one := "/api/apps/" + app
		limit := read[struct{ Bytes, Limit int }](t, w.must(t, "dana", "GET", one+"/stats/tables", ""))
		is.Equal(limit.Limit, 256<<20) // before there is a database
		is.Equal(limit.Bytes, 0)
		expect(0, 2)
		put(t, w, app, map[string]string{"migrations/1.sql": "CREATE TABLE t (n integer)"})
		w.must(t, "dana", "POST", one+"/_deploy", "")
		expect(1, 2)
		for _, end := range [][2]string{{"DELETE", "/draft"}, {"POST", "/draft/_commit"}} {
			draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/_edit", "")).ID
			is.Equal(w.do(t, "dana", "GET", "/api/apps/"+draft+"/view/api/_server/a", "").body, "[]")
			expect(2, 2)
			w.must(t, "dana", end[0], one+end[1], "")
			expect(1, 2)
		}
		w.must(t, "dana", "DELETE", one, "")
		expect(1, 2) // it can be restored
		w.must(t, "dana", "POST", one+"/_restore", "")
		is.Equal(w.do(t, "dana", "GET", one+"/view/api/_server/a", "").body, "[]")
		w.must(t, "dana", "DELETE", one, "")
		w.must(t, "admin", "POST", one+"/_purge", "")
		expect(0, 0)
	})
}

// withPostgresWorkspaces keeps the SQL databases of apps where the service's is PostgreSQL in
// another database of the same server.
func withPostgresWorkspaces(t *testing.T) func(*tenantcontent.Config) {
	return func(c *tenantcontent.Config) {
		if c.DB.Dialect().Name() != dialect.PG {
			return
		}
		is, server := is.New(t), dbtest.Server(t)
		exec := func(statement string) {
			conn, err := pgx.Connect(t.Context(), server.URL)
			is.NoErr(err)
			defer func() { is.NoErr(conn.Close(t.Context())) }()
			_, err = conn.Exec(t.Context(), statement)
			is.NoErr(err)
		}
		name := "workspaces_" + strings.ToLower(rand.Text())
		exec("CREATE DATABASE " + name)
		u, err := url.Parse(server.URL)
		is.NoErr(err)
		u.Path = "/" + name
		d, err := postgres.New(postgres.Options{URL: u.String()})
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(d.Close()) })
		c.Workspaces = workspaces.Driver(d)
	}
}

// TestWebhookFunctions: all that a webhook can call, with a database of the app's on either engine.
func TestWebhookFunctions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withPostgresWorkspaces(t))
		dataset := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/datasets",
			`{"name": "D", "data": {"fields": [{"name": "amount", "type": "numeric"}], "rows": [{"amount": 3}, `+
				`{"amount": 7}]}}`)).ID
		h := hook(t, w, "dana", map[string]string{
			"informer.yaml":           "access: [colors, {path: 'colors/*', methods: [PUT]}]\n",
			"migrations/1.sqlite.sql": "CREATE TABLE orders (id text PRIMARY KEY, total real, paid_at timestamp)",
			"migrations/1.postgres.sql": "CREATE TABLE orders (id text PRIMARY KEY, total double precision, " +
				"paid_at timestamptz)",
			"webhooks/all.js": `export async function POST({ request, query, fetch, context, emit, notify, ` +
				`email, crypto, markdown, extractText, env, log, base64Decode }) {
				if (!crypto.verifyHmac('sha256', env.KEY, request.rawBody, request.headers['x-signature'])) ` +
				`return { status: 401 }
				const { id, document } = request.body
				const insert = () => query('INSERT INTO orders VALUES ($1, $2, $3) RETURNING *', [id, 2.5, ` +
				`'2026-11-20T20:31:00Z'])
				const [order] = await insert()
				let twice; try { await insert() } catch (e) { twice = e.code }
				let forbidden; try { await fetch('users') } catch (e) { forbidden = e.code }
				log.warn('paid', { id })
				return {
					order, twice, forbidden, color: (await fetch('colors/red', { method: 'PUT', body: { color: ` +
				`'#ff0000' } })).status,
					fields: (await context.orders.fields()).map(f => f.name), rows: await context.orders.rows({ ` +
				`sort: '-amount', limit: 1 }), count: await context.orders.count({ amount: { lt: 5 } }),
					event: (await emit('order.paid', { id })).name, note: Object.keys(await notify('mia', { ` +
				`title: 'Paid ' + id })), mails: (await email(['a@example.com'], { subject: 'Paid', text: 'x' ` +
				`})).queued,
					html: await markdown('**' + id + '**'), text: await extractText({ content: document, ` +
				`encoding: 'base64', contentType: 'text/html' }), plain: base64Decode(document),
					user: request.user.id, roles: request.roles,
				}
			}`,
		})
		w.must(t, "dana", "PUT", h.path("/dependencies/orders"), `{"datasetId": "`+dataset+`"}`)
		w.must(t, "dana", "PUT", h.path("/environment/KEY"), `{"value": "key"}`)
		const body = `{"id": "o1", "document": "PHA+SGk="}`
		is.Equal(h.call(t, "POST", "all", body, "X-Signature: 00").status, 401)
		a := h.call(
			t, "POST", "all", body,
			"X-Signature: sha256=9df88cd5763e522e822a15aa95656370a22914d117b84587a0479c12a5910a39",
		)
		is.Equal(a.status, 200)
		is.Equal(a.body,
			`{"order":{"id":"o1","total":2.5,"paid_at":"2026-11-20T20:31:00.000Z"},"twice":"conflict",`+
				`"forbidden":"forbidden","color":200,"fields":["amount"],"rows":[{"amount":7}],`+
				`"count":1,"event":"order.paid","note":["id"],"mails":1,"html":"<p><strong>o1</strong></p>\n",`+
				`"text":"Hi\n","plain":"<p>Hi","user":"dana","roles":[]}`)
		is.Equal(h.last(t, "dana").Logs[0].Message, `paid {id: "o1"}`)
		is.Equal(read[page](t, w.must(t, "mia", "GET", "/api/notifications", "")).Total, 1)
		is.Equal(read[page](t, w.must(t, "dana", "GET", h.path("/messages"), "")).Total, 2)
		is.Equal(read[page](t, w.must(t, "dana", "GET", h.path("/events"), "")).Total, 1)
		w.must(t, "dana", "DELETE", h.path(""), "")
		w.must(t, "admin", "POST", h.path("/_purge"), "")
	})
}

// TestDocumentedHandlers: the examples of files in docs/handlers.md can be deployed, and the first
// one does what is written there.
func TestDocumentedHandlers(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	text, err := os.ReadFile("../docs/handlers.md")
	is.NoErr(err)
	files := map[string]string{
		"migrations/1.sql": "CREATE TABLE orders (id text PRIMARY KEY, total real); CREATE TABLE calls (body " +
			"text); INSERT INTO orders VALUES ('5', 2)",
	}
	for i, block := range regexp.MustCompile("(?s)```js\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		script := block[1]
		if path := regexp.MustCompile(`^// (server/\S+)`).FindStringSubmatch(script); path != nil {
			files[strings.NewReplacer("[", "%5B", "]", "%5D").Replace(path[1])] = script
		} else if strings.Contains(script, "export ") {
			files[fmt.Sprintf("server/block%d.js", i)] = script
		}
	}
	is.Equal(len(files), 3)
	app := shop(t, w, files)
	route := "/api/apps/" + app + "/view/api/_server/orders/"
	is.Equal(w.do(t, "mia", "GET", route+"5", "").body, `{"id":"5","total":2}`)
	is.Equal(w.do(t, "mia", "PUT", route+"5", `{"total": 3}`).status, 204)
	is.Equal(w.do(t, "mia", "GET", route+"5", "").body, `{"id":"5","total":3}`)
	a := w.do(t, "mia", "GET", route+"6", "")
	is.Equal(a.status, 404)
	is.Equal(a.body, `{"message":"There is no such order."}`)
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/tim", `{"accessLevel": 2}`)
	is.Equal(w.do(t, "tim", "GET", route+"5", "").status, 403) // who has not the role
}
