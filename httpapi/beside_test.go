package httpapi_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestUpdatedAtOfApps: tags and bindings are beside the row of an app, whose updatedAt they leave
// alone.
func TestUpdatedAtOfApps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		id := func(path, body string) string {
			return read[struct{ ID string }](t, w.must(t, "dana", "POST", path, body)).ID
		}
		app := "/api/apps/" + id("/api/apps", `{"type": "report", "name": "A"}`)
		tag, dataset := id("/api/tags", `{"name": "T"}`), id("/api/datasets", `{"name": "D"}`)
		updated := func() string {
			return read[struct{ UpdatedAt string }](t, w.must(t, "dana", "GET", app, "")).UpdatedAt
		}
		before := updated()
		for _, call := range [][3]string{
			{"PUT", "/tags/" + tag, ""}, {"PUT", "/dependencies/sales", `{"datasetId": "` + dataset + `"}`},
			{"DELETE", "/dependencies/sales", ""}, {"DELETE", "/tags/" + tag, ""},
			{"PUT", "/tags/" + tag, ""}, {"PUT", "/dependencies/sales", `{"datasetId": "` + dataset + `"}`},
		} {
			w.pass(1e9)
			w.must(t, "dana", call[0], app+call[1], call[2])
			is.Equal(updated(), before)
		}
		w.pass(1e9)
		w.must(t, "dana", "DELETE", "/api/tags/"+tag, "")
		w.must(t, "dana", "DELETE", "/api/datasets/"+dataset, "")
		is.Equal(updated(), before)
		w.must(t, "dana", "PUT", app, `{"name": "B"}`)
		is.True(updated() != before)
	})
}

func TestOwnerIsRequired(t *testing.T) {
	is, s := is.New(t), stocked(t, dbtest.SQLite)
	for _, path := range []string{"/api/apps/" + s.param["apps"], "/api/assistants/" + s.param["assistants"]} {
		for _, body := range []string{`{}`, ``, `{"ownerId": ""}`} {
			is.Equal(
				s.do(t, "admin", "PUT", path+"/owner", body).message(t),
				"ownerId is required: a username, or the id of a team",
			)
		}
	}
}

func TestMethodsOfWebhookFiles(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{
		"webhooks/a.js": "export const POST = () => 1\nexport const DELETE = () => 2",
		"webhooks/b.js": "export const PATCH = () => 2",
	})
	deployed := w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "").body
	for _, warning := range []string{
		"webhooks/a.js:2:1: it exports DELETE, which no call of a webhook has: use GET, POST or PUT.",
		"webhooks/b.js:1:1: it exports PATCH, which no call of a webhook has: use GET, POST or PUT.",
	} {
		is.True(strings.Contains(deployed, warning))
	}
	key := read[struct{ Key string }](t, w.must(t, "dana", "POST", "/api/apps/"+app+"/webhook-tokens", `{}`)).Key
	is.Equal(w.do(t, "", "DELETE", "/api/apps/"+app+"/_hook/a?token="+key, "").status, 405)
	is.Equal(w.do(t, "", "POST", "/api/apps/"+app+"/_hook/a?token="+key, "{}").status, 200)
}

func TestImportOfColorsWithByteOrderMark(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	upload := w.upload(t, "admin", "\xef\xbb\xbf"+`[{"key": "sky", "color": "blue"}]`)
	w.must(t, "admin", "POST", "/api/colors-import", `{"uploadId": "`+upload+`"}`)
	is.Equal(w.do(t, "admin", "GET", "/api/colors/sky", "").status, 200)
}
