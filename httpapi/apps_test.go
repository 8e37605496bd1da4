package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

var appFields = []string{
	"type string", "name string", "slug string?", "description string?",
	"defn object", "settings object", "folderId string?", "source string?", "sourceId string?",
}

// withApps adds the samples of apps.
func withApps(samples map[string]sample) map[string]sample {
	for name, s := range map[string]sample{
		"createApp": {
			body:   `{"type": "report", "name": "New", "slug": "new"}`,
			fields: append([]string{"datasets array?"}, appFields...),
		},
		"putApp":          {body: `{"name": "Other"}`, fields: appFields},
		"deleteApp":       {last: "admin:gone"},
		"restoreApp":      {last: "trashed"},
		"purgeApp":        {last: "purged"},
		"copyApp":         {body: `{"name": "Twin"}`, fields: []string{"name string"}},
		"putAppOwner":     {last: "drafted", body: `{"ownerId": "dana"}`, fields: []string{"ownerId string"}},
		"getAppTag":       {last: "assigned"},
		"editApp":         {body: `{"force": true}`, fields: []string{"force bool"}},
		"getAppDraft":     {last: "drafted"},
		"getAppDraftDiff": {last: "drafted"},
		"commitAppDraft":  {last: "drafted", body: `{"force": true}`, fields: []string{"force bool"}},
		"deleteAppDraft":  {last: "discarded"},
		"compareApp": {
			body:   `{"files": {"index.html": "` + strings.Repeat("0", 64) + `"}}`,
			fields: []string{"files object"},
		},
		"putAppFile":    {body: `{"content": "y"}`},
		"deleteAppFile": {last: "gone.txt"},
		"putAppShare": {
			last:   "dana",
			body:   `{"accessLevel": 1}`,
			fields: []string{"accessLevel number", "roles strings?"},
		},
		"deleteAppShare":    {},
		"putAppVariable":    {last: "TOKEN", body: `{"value": "new"}`, fields: []string{"value string"}},
		"deleteAppVariable": {},
		"putAppDependency": {
			last:   "more",
			body:   `{"datasetId": "DATASET"}`,
			fields: []string{"datasetId string", "label string?"},
		},
		"deleteAppDependency": {},
		"putAppTag":           {last: "tags"},
		"deleteAppTag":        {last: "assigned"},
		"putAppFavorite":      {},
		"deleteAppFavorite":   {},
		"exportApp":           {},
		"createAppToken": {
			body: `{"notes": "new"}`,
			fields: []string{
				"type string", "roles strings?", "notes string?", "restrict string?", "cidr string?",
				"expiresAt time?",
			},
		},
		"getAppToken":     {last: "shown"},
		"deleteAppToken":  {last: "shown"},
		"getAppSharePage": {query: "?token=KEY"},
		"deployApp":       {},
		"putAgent": {
			body:   `{"enabled": true, "model": "fast"}`,
			fields: []string{"enabled bool?", "model string?", "instructions string?", "zone string?"},
		},
		"triggerAgent":      {body: `{"input": {"order": 5}}`},
		"cancelAgentRun":    {last: "canceled-run"},
		"migrateApp":        {},
		"postToAppServer":   {last: "_server/a", body: `{"x": 1}`},
		"putToAppServer":    {last: "_server/a", body: `{"x": 1}`},
		"patchAtAppServer":  {last: "_server/a", body: `{"x": 1}`},
		"deleteAtAppServer": {last: "_server/a"},

		"chatWithApp": {
			body:   `{"messages": [{"role": "user", "content": "Hello"}]}`,
			fields: []string{"messages array?", "model string?"},
		},
		"suggestAppIcon":       {},
		"modernizeAppManifest": {},

		"listAppWebhooks":     {last: "hooked"},
		"getAppInvocation":    {app: "hooked", last: "invocation"},
		"replayAppInvocation": {app: "hooked", last: "invocation"},
		"getAppCall":          {app: "hooked", last: "served"},
		"listWebhookTokens":   {last: "hooked"},
		"createWebhookToken": {
			last:   "hooked",
			body:   `{"notes": "new"}`,
			fields: []string{"type string", "notes string?", "restrict string?", "cidr string?", "expiresAt time?"},
		},
		"getWebhookToken":     {app: "hooked", last: "webhook-token"},
		"deleteWebhookToken":  {app: "hooked", last: "webhook-token"},
		"rotateWebhookSecret": {last: "unused"},
		"getWebhook":          {app: "hooked", last: "echo", query: "?token=HOOK"},
		"postWebhook":         {app: "hooked", last: "echo", query: "?token=HOOK", body: `{}`},
		"putWebhook":          {app: "hooked", last: "echo", query: "?token=HOOK", body: `{}`},
		"getWebhookRoot":      {last: "hooked", query: "?token=HOOK"},
		"postWebhookRoot":     {last: "hooked", query: "?token=HOOK", body: `{}`},
		"putWebhookRoot":      {last: "hooked", query: "?token=HOOK", body: `{}`},
	} {
		samples[name] = s
	}
	return samples
}

// stockApps makes an app with one of everything, one that may be deleted, two that are, and two
// with a draft.
func stockApps(t testing.TB, w *world, param map[string]string) {
	id := func(name string) string {
		t.Helper()
		return read[struct{ ID string }](
			t,
			w.must(t, "admin", "POST", "/api/apps", `{"type": "report", "name": "`+name+`", "slug": "`+name+`"}`),
		).ID
	}
	id("gone")
	for _, name := range []string{"trashed", "purged"} {
		param[name] = id(name)
		w.must(t, "admin", "DELETE", "/api/apps/"+param[name], "")
	}
	for _, name := range []string{"drafted", "discarded"} {
		param[name] = id(name)
		draft := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/apps/"+param[name]+"/_edit", ""))
		w.must(t, "admin", "PUT", "/api/apps/"+draft.ID+"/contents/index.html", `draft`, "Content-Type: text/html")
	}
	app := id("kept")
	one := "/api/apps/" + app
	for _, f := range [][3]string{
		{"dir/a.txt", "text/plain", "x"}, {"gone.txt", "text/plain", "x"}, {"index.html", "text/html", "<p>Hi"},
		{
			"informer.yaml", "application/yaml",
			"access: [colors]\nroles: [editor, viewer]\nagents: {clerk: {instructions: Work., on: order.sent, " +
				"cron: '0 0 1 1 *'}}\n",
		},
	} {
		w.must(t, "admin", "PUT", one+"/contents/"+f[0], f[2], "Content-Type: "+f[1])
	}
	admin := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "admin"})
	_, err := w.app.Messages.Emit(admin, app, "order.made", nil)
	is.New(t).NoErr(err)
	event, err := w.app.Messages.Emit(admin, app, "order.paid", json.RawMessage(`{"order": 5}`))
	is.New(t).NoErr(err)
	sent, err := w.app.Messages.Email(
		admin, app, []string{"ann@example.com", "bob@example.com"},
		messages.Email{Subject: "Paid", Text: "Thanks"},
	)
	is.New(t).NoErr(err)
	param["events"], param["messages"] = event.ID, sent[0].ID
	w.must(
		t, "admin", "PUT", one+"/contents/server/a.js",
		"export const GET = ({ query }) => query('SELECT 1 AS n')\nexport const POST = GET, PUT = GET, PATCH = "+
			"GET, DELETE = GET",
		"Content-Type: text/javascript",
	)
	w.must(t, "admin", "POST", one+"/_deploy", "")
	for _, name := range []string{"runs", "canceled-run"} {
		param[name] = read[struct{ ID string }](t, w.must(t, "admin", "POST", one+"/agents/clerk/_trigger", "")).ID
	}
	param["agents"] = "clerk"
	w.must(t, "admin", "PUT", one+"/shares/mia", `{"accessLevel": 2, "roles": ["editor"]}`)
	w.must(t, "admin", "PUT", one+"/environment/KEY", `{"value": "secret"}`)
	w.must(t, "admin", "PUT", one+"/dependencies/sales", `{"datasetId": "`+param["datasets"]+`", "label": "Sales"}`)
	tag := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/tags", `{"name": "Assigned"}`)).ID
	w.must(t, "admin", "PUT", one+"/tags/"+tag, "")
	param["shown"] = read[struct{ ID string }](t, w.must(t, "admin", "POST", one+"/tokens", `{"roles": ["editor"]}`)).ID
	param["key"] = read[struct{ Key string }](t, w.must(t, "admin", "POST", one+"/tokens", `{}`)).Key
	stockWebhooks(t, w, param)
	param["-"], param["api"] = "dir/a.txt", "colors"
	param["apps"], param["shares"], param["environment"], param["dependencies"], param["assigned"] =
		app, "mia", "KEY", "sales", tag
}

// stockWebhooks makes an app with webhooks, a token of it that is used and one that is not, a call
// that can be run again, and one of a server route.
func stockWebhooks(t testing.TB, w *world, param map[string]string) {
	h := hook(t, w, "admin", map[string]string{
		"webhooks/index.js": echoAll,
		"webhooks/echo.js": "export const config = {keep: true}\nexport const GET = ({ query }) => query('SELECT " +
			"1 AS n'), POST = GET, PUT = GET\n",
		"server/log.js": "export const GET = ({ log }) => log('x')",
	})
	param["webhook-token"] = read[struct{ ID string }](
		t, w.must(t, "admin", "POST", h.path("/webhook-tokens"), `{}`),
	).ID
	param["unused"] = read[struct{ ID string }](
		t, w.must(t, "admin", "POST", "/api/apps", `{"type": "report", "name": "Unused"}`),
	).ID
	param["hooked"], param["hook"] = h.app, h.key
	if a := h.call(t, "POST", "echo", "{}"); a.status != 200 {
		t.Fatal(a.body)
	}
	param["invocation"] = h.last(t, "admin").ID
	w.must(t, "admin", "GET", h.path("/view/api/_server/log"), "")
	param["served"] = read[struct{ Recent []struct{ ID string } }](
		t, w.must(t, "admin", "GET", h.path("/stats/api"), ""),
	).Recent[0].ID
	w.must(t, "admin", "GET", h.path("/webhook-tokens"), "") // which writes how often they were used
}

const echoAll = "export const GET = () => 'x', POST = GET, PUT = GET\n"

// markApps makes an app that has a mark wherever one fits, and a draft of it.
func (w *world) markApps(t testing.TB, superuser, mark string) {
	a := w.must(
		t, superuser, "POST", "/api/apps",
		`{"type": "report", "name": "`+mark+`", "slug": "`+mark+`", "defn": {"m": "`+mark+`", "env": {"`+mark+
			`": "x"}}}`,
	)
	app := read[struct{ ID, Tenant string }](t, a)
	one := "/api/apps/" + app.ID
	w.must(t, superuser, "PUT", one+"/favorite", "")
	is := is.New(t)
	is.NoErr(w.app.Apps.Visit(
		actor.With(t.Context(), actor.Actor{Tenant: app.Tenant, User: superuser, Superuser: true}), app.ID,
	))
	is.NoErr(w.app.Apps.Unchecked().FlushAll(t.Context()))
	w.must(t, superuser, "PUT", one+"/contents/"+mark, "x", "Content-Type: text/plain")
	w.must(t, superuser, "PUT", one+"/contents/informer.yaml", "roles: ["+mark+"]", "Content-Type: application/yaml")
	w.must(
		t, superuser, "PUT", one+"/contents/server/"+mark+".js", "export const GET = () => '"+mark+"'",
		"Content-Type: text/javascript",
	)
	w.must(t, superuser, "POST", one+"/_deploy", "")
	is.Equal(w.must(t, superuser, "GET", one+"/view/api/_server/"+mark, "").body, `"`+mark+`"`)
	w.must(t, superuser, "GET", one+"/stats/api", "") // which writes the call
	w.must(t, superuser, "PUT", one+"/shares/"+mark, `{"accessLevel": 1, "roles": ["`+mark+`"]}`)
	w.must(t, superuser, "POST", one+"/tokens", `{}`)
	w.must(t, superuser, "POST", one+"/_edit", "")
}

// TestHostKeepsApps: a host that has a kind app of its own has no routes of apps.
func TestHostKeepsApps(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.Entities = []entity.Type{{Kind: "app"}} })
	for _, path := range []string{"/api/apps", "/api/apps-list", "/api/apps/x/draft"} {
		is.Equal(w.do(t, "admin", "GET", path, "").message(t), "There is no such route.")
	}
}

// TestLibraryOfApp: the routes of libraries serve an app's library by the rights of the app alone.
func TestLibraryOfApp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := read[struct{ ID, LibraryID string }](
			t, w.must(t, "dana", "POST", "/api/apps", `{"type": "report", "name": "Sales"}`),
		)
		library := "/api/libraries/" + app.LibraryID
		w.must(t, "dana", "PUT", library+"/contents/a.txt", "x", "Content-Type: text/plain")
		is.Equal(w.must(t, "dana", "GET", "/api/apps/"+app.ID+"/contents/a.txt", "").body, "x")
		is.Equal(w.must(t, "dana", "GET", library+"/contents/a.txt", "").body, "x")
		w.must(t, "dana", "GET", library, "")
		w.must(t, "dana", "GET", library+"/contents", "")
		for _, user := range []string{"mia", "nora", "eve"} {
			for _, call := range [][2]string{
				{"GET", library}, {"PUT", library},
				{"DELETE", library}, {"GET", library + "/contents"}, {"GET", library + "/contents/a.txt"},
				{"PUT", library + "/contents/a.txt"}, {"DELETE", library + "/contents/a.txt"},
			} {
				body := ""
				if call[0] == "PUT" {
					body = `{"name": "y"}`
					if strings.HasSuffix(call[1], "/a.txt") {
						body = `{"content": "y"}`
					}
				}
				is.Equal(w.do(t, user, call[0], call[1], body).status, 404)
			}
			is.Equal(w.must(t, user, "GET", "/api/libraries?q=sales", "").status, 200)
		}
		is.Equal(read[page](t, w.must(t, "dana", "GET", "/api/libraries", "")).Total, 0) // it is in no list
		for _, method := range []string{"PUT", "DELETE"} {
			body := map[string]string{"PUT": `{}`}[method]
			is.Equal(w.do(t, "dana", method, library, body).status, 403)
		}
		w.must(t, "admin", "PUT", "/api/apps/"+app.ID+"/shares/mia", `{"accessLevel": 1}`)
		// who may run it does not read its sources
		is.Equal(w.do(t, "mia", "GET", library+"/contents/a.txt", "").status, 403)
		is.Equal(w.do(t, "mia", "PUT", library+"/contents/a.txt", "y", "Content-Type: text/plain").status, 403)
		w.must(t, "dana", "DELETE", library+"/contents/a.txt", "")
		is.Equal(w.do(t, "dana", "GET", library+"/contents/a.txt", "").status, 404)
	})
}

// TestPagesReachNoLibraryOfAnApp: the page of an app reads libraries that its manifest names, and
// no file of an app as it is written. Who does not see the insides of an app does not learn its
// library.
func TestPagesReachNoLibraryOfAnApp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		type app struct {
			ID        string
			LibraryID *string
			Links     map[string]any `json:"_links"`
		}
		page := read[app](t, w.must(t, "dana", "POST", "/api/apps", `{"type": "report", "name": "Page"}`))
		w.must(
			t, "dana", "PUT", "/api/apps/"+page.ID+"/contents/informer.yaml", "access: [libraries/**]",
			"Content-Type: application/yaml",
		)
		other := read[app](t, w.must(t, "dana", "POST", "/api/apps", `{"type": "report", "name": "Private"}`))
		draft := read[app](t, w.must(t, "dana", "POST", "/api/apps/"+other.ID+"/_edit", ""))
		library := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/libraries", `{"name": "Images"}`)).ID
		for _, id := range []string{*page.LibraryID, *other.LibraryID, *draft.LibraryID, library} {
			w.must(
				t, "dana", "PUT", "/api/libraries/"+id+"/contents/server/x.js", "secret",
				"Content-Type: text/javascript",
			)
			for _, path := range []string{"", "/contents", "/contents/server/x.js"} {
				want := 403
				if id == library {
					want = 200
				}
				is.Equal(w.do(t, "dana", "GET", "/api/apps/"+page.ID+"/view/api/libraries/"+id+path, "").status, want)
				is.Equal(w.do(t, "dana", "GET", "/api/libraries/"+id+path, "").status, 200)
			}
		}
		is.True(other.Links["inf:library"] != nil)
		w.must(t, "admin", "PUT", "/api/apps/"+other.ID+"/shares/mia", `{"accessLevel": 1}`)
		seen := read[app](t, w.must(t, "mia", "GET", "/api/apps/"+other.ID, ""))
		is.Equal(seen.LibraryID, nil)
		is.Equal(seen.Links["inf:library"], nil)
	})
}

// TestCompareApp: a draft is compared by its own files, and named to those who may change the app
// alone.
func TestCompareApp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		type comparison struct {
			ID                      string
			EditingID, DraftID      *string
			Unchanged               int
			Missing, Differs, Extra []string
			Tenant                  string
			Digests                 map[string]string
		}
		compare := func(user, id, files string) comparison {
			t.Helper()
			return read[comparison](t, w.must(t, user, "POST", "/api/apps/"+id+"/_compare", `{"files": `+files+`}`))
		}
		app := read[struct{ ID string }](
			t, w.must(t, "dana", "POST", "/api/apps", `{"type": "report", "name": "Sales"}`),
		).ID
		one := "/api/apps/" + app
		w.must(t, "dana", "PUT", one+"/contents/a.txt", "x", "Content-Type: text/plain")
		const x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
		none, nothing := map[string]string{}, []string{}
		is.Equal(compare("dana", app, `{}`), comparison{
			ID:      app,
			Missing: nothing,
			Differs: nothing,
			Extra:   []string{"a.txt"},
			Tenant:  "acme",
			Digests: map[string]string{"a.txt": x},
		})
		is.Equal(
			compare("dana", app, `{"a.txt": "`+strings.Repeat("0", 64)+`"}`).Digests,
			map[string]string{"a.txt": x},
		)
		draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/_edit", "")).ID
		w.must(t, "dana", "PUT", "/api/apps/"+draft+"/contents/b.txt", "x", "Content-Type: text/plain")

		files := `{"a.txt": "` + x + `", "b.txt": "` + x + `"}`
		is.Equal(compare("dana", app, files), comparison{
			ID:        app,
			DraftID:   &draft,
			Unchanged: 1,
			Missing:   []string{"b.txt"},
			Differs:   nothing,
			Extra:     nothing,
			Tenant:    "acme",
			Digests:   none,
		})
		is.Equal(compare("dana", draft, files), comparison{
			ID:        draft,
			EditingID: &app,
			Unchanged: 2,
			Missing:   nothing,
			Differs:   nothing,
			Extra:     nothing,
			Tenant:    "acme",
			Digests:   none,
		})

		for _, level := range []string{"1", "2"} { // mia is a member, and may change nothing
			w.must(t, "admin", "PUT", one+"/shares/mia", `{"accessLevel": `+level+`}`)
			is.Equal(
				w.do(t, "mia", "POST", one+"/_compare", `{"files": {}}`).status,
				map[string]int{"1": 403, "2": 200}[level],
			)
		}
		is.Equal(compare("mia", app, files).DraftID, nil)
		is.Equal(w.do(t, "mia", "POST", "/api/apps/"+draft+"/_compare", `{"files": {}}`).status, 404)
	})
}

// TestAppsLoseWhatIsDeleted: a tag or dataset that is deleted is one that no app has any more.
func TestAppsLoseWhatIsDeleted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		newID := func(path, body string) string {
			return read[struct{ ID string }](t, w.must(t, "admin", "POST", path, body)).ID
		}
		tag, dataset := newID("/api/tags", `{"name": "T"}`), newID("/api/datasets", `{"name": "D"}`)
		app := "/api/apps/" + newID(
			"/api/apps",
			`{"type": "report", "name": "A", "datasets": [{"datasetId": "`+dataset+`", "alias": "d", "label": ""}]}`,
		)
		w.must(t, "admin", "PUT", app+"/tags/"+tag, "")
		draft := read[struct{ ID string }](t, w.must(t, "admin", "POST", app+"/_edit", "")).ID
		w.must(t, "admin", "DELETE", "/api/tags/"+tag, "")
		w.must(t, "admin", "DELETE", "/api/datasets/"+dataset, "")
		is.Equal(read[page](t, w.must(t, "admin", "GET", app+"/tags", "")).Total, 0)
		is.Equal(read[page](t, w.must(t, "admin", "GET", app+"/dependencies", "")).Total, 0)
		is.Equal(read[page](t, w.must(t, "admin", "GET", "/api/apps/"+draft+"/dependencies", "")).Total, 0)
	})
}

// TestImportOfFullApp: a full app comes into a tenant with the license alone, also by an archive.
func TestImportOfFullApp(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"licenses": ["apps"]}}`)
	full := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/apps", `{"type": "app", "name": "Full"}`)).ID
	archive := w.must(t, "admin", "POST", "/api/apps/"+full+"/_export", "").body
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"licenses": []}}`)
	w.must(t, "admin", "POST", "/api/_restore", archive) // it is here already
	w.must(t, "admin", "DELETE", "/api/apps/"+full, "")
	w.must(t, "admin", "POST", "/api/apps/"+full+"/_purge", "")
	a := w.do(t, "admin", "POST", "/api/_import-bundle", archive)
	is.Equal(a.status, 403)
	is.Equal(
		a.message(t),
		"app "+full+": This tenant has no license for apps of the type app; those of the type report need none. "+
			"The operator of this server adds it: tenantcontent tenant license acme --add apps",
	)
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"licenses": ["apps"]}}`)
	w.must(t, "admin", "POST", "/api/_import-bundle", archive)
	w.must(t, "admin", "GET", "/api/apps/"+full, "")
}

// TestAppEntryOfBundle: an entry shows an app to those who see it, and to others that there is one.
func TestAppEntryOfBundle(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/apps", `{"type": "report", "name": "Hers"}`)).ID
	w.must(t, "admin", "POST", "/api/bundles", `{"name": "B", "slug": "b"}`)
	w.must(t, "admin", "POST", "/api/bundles/b/entries", `{"type": "app", "appId": "`+app+`"}`)
	entries := "/api/bundles/b/entries"
	is.True(strings.Contains(w.must(t, "dana", "GET", entries, "").body, `"name":"Hers"`))
	seen := w.must(t, "mia", "GET", entries, "").body
	is.True(strings.Contains(seen, app))
	is.True(!strings.Contains(seen, "Hers"))
}

// TestClosedLicenses: a superuser sends the licenses of a tenant back as they are, and cannot set
// others.
func TestClosedLicenses(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.OpenLicenses = false })
	put := func(body string) answer { return w.do(t, "admin", "PUT", "/api/tenant", body) }
	_, err := w.app.Tenants.Unchecked().ChangeLicenses(t.Context(), "acme", []string{"apps", "x"}, nil)
	is.NoErr(err)
	for _, same := range []string{`["apps", "x"]`, `["x", "apps"]`} {
		is.Equal(put(`{"settings": {"licenses": `+same+`}}`).status, 200)
	}
	is.Equal(put(w.must(t, "admin", "GET", "/api/tenant", "").body).status, 200)
	for _, other := range []string{`[]`, `null`, `["apps"]`, `["apps", "x", "y"]`} {
		a := put(`{"name": "Other", "settings": {"licenses": ` + other + `}}`)
		is.Equal(a.status, 403)
		is.True(strings.Contains(a.message(t), "tenantcontent tenant license acme --add"))
	}
	is.Equal(put(`{"settings": {"licenses": [1]}}`).status, 400)
	got := read[struct {
		Name     string
		Settings struct{ Licenses []string }
	}](t, w.must(t, "admin", "GET", "/api/tenant", ""))
	is.Equal(got.Settings.Licenses, []string{"apps", "x"})
	is.True(got.Name != "Other")
}
