package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// callJS calls whatever route its request names, and answers with the status.
const callJS = `export const POST = async ({ request: { body: { method, path, body } }, fetch }) => (await ` +
	`fetch(path, { method, body })).status`

// TestAppIsCappedAtItsOwner: what a call for a viewer may do tenant-wide is what both the viewer
// and the owner of the app may do; the viewer's own rows stay the viewer's.
func TestAppIsCappedAtItsOwner(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		for _, user := range []string{"dana", "tim"} {
			w.must(t, "admin", "PUT", "/api/users/"+user, `{"globalPermissions": {"ai": true}}`)
		}
		w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
		app := shop(t, w, map[string]string{
			"server/call.js": callJS,
			"informer.yaml": "access: ['PUT colors/*', 'PUT datasets/*', 'GET ai-instructions']\nroles: [clerk, " +
				"boss]\n",
		})
		for _, viewer := range []string{"mia", "tim"} {
			w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/"+viewer, `{"accessLevel": 1, "roles": ["clerk"]}`)
		}
		dataset := func(owner string) string {
			as := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: owner, Superuser: true})
			made, err := w.app.Content.Create(as, content.Entity{Kind: content.Dataset, Name: "of " + owner})
			is.NoErr(err)
			return made.ID
		}
		ofTeam, of := dataset(teamID), map[string]string{}
		viewers := []string{"mia", "tim", "admin"} // a member, an admin of a team, a superuser without a team
		for _, viewer := range viewers {
			of[viewer] = dataset(viewer)
		}
		for _, owner := range []string{"mia", "dana", "tim", "admin", teamID} {
			w.must(t, "admin", "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "`+owner+`"}`)
			designs := owner == "dana" || owner == "tim" || owner == "admin"
			for _, viewer := range viewers {
				for _, c := range []struct {
					what, method, path, body string
					may                      bool
				}{
					{"tenant-wide rule", "PUT", "colors/red", `{"color": "#ff0000"}`, viewer != "mia" && designs},
					{
						"row of a team", "PUT", "datasets/" + ofTeam, `{"description": "x"}`,
						viewer == "tim" && designs || viewer == "admin" && owner == "admin",
					},
					{"row of the viewer", "PUT", "datasets/" + of[viewer], `{"description": "x"}`, true},
					{"ai", "GET", "ai-instructions", `null`, viewer != "mia" && designs},
				} {
					call := fmt.Sprintf(`{"method": %q, "path": %q, "body": %s}`, c.method, c.path, c.body)
					got := w.must(t, viewer, "POST", "/api/apps/"+app+"/view/api/_server/call", call).body
					if may := got == "200" || got == "201"; may != c.may {
						t.Errorf("%s, owner %s, viewer %s: %s", c.what, owner, viewer, got)
					}
					if !c.may && got != "403" && got != "404" {
						t.Errorf("%s, owner %s, viewer %s: refused with %s", c.what, owner, viewer, got)
					}
				}
				page := w.do(t, "", "GET", opened(t, w, viewer, app)+"api/ai-instructions", "").status
				is.Equal(page == 200, viewer != "mia" && designs)
			}
		}
	})
}

// TestCapIsAskedAtEachCall: an owner who loses rights takes them from the app at once, also from a
// page that is open; an owner who is disabled, and one who was not asked, leave it those of a
// member.
func TestCapIsAskedAtEachCall(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{"server/call.js": callJS})
	base := opened(t, w, "admin", app)
	red := func() string {
		return w.must(
			t, "", "POST", base+"api/_server/call",
			`{"method": "PUT", "path": "colors/red", "body": {"color": "#ff0000"}}`,
		).body
	}
	owner := func(by, id string) {
		w.must(t, by, "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "`+id+`"}`)
	}
	is.Equal(red(), "200")
	member := "/api/teams/" + teamID + "/members/dana"
	w.must(t, "admin", "PUT", member, `{"role": "member"}`)
	is.Equal(red(), "403")
	w.must(t, "admin", "PUT", member, `{"role": "designer"}`)
	is.Equal(red(), "200")
	w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": false}`)
	is.Equal(red(), "403")
	owner("admin", "tim")
	is.Equal(red(), "200")
	owner("tim", "dana") // who did not ask for it
	w.must(t, "admin", "PUT", "/api/users/dana", `{"enabled": true}`)
	w.pass(0) // her session has ended
	is.Equal(red(), "403")
	w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	is.Equal(red(), "200")
}

// TestCapHoldsForLinks: the page of a visitor whom a superuser has invited has no more tenant-wide
// rights than the owner of the app.
func TestCapHoldsForLinks(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
	app := shop(t, w, map[string]string{
		"informer.yaml":  "access: ['GET ai-instructions']\nroles: [clerk, boss]\n",
		"server/read.js": "export const GET = ({ fetch }) => fetch('ai-instructions').then(r => r.status)",
	})
	key := read[struct{ Key string }](t, w.must(t, "admin", "POST", "/api/apps/"+app+"/tokens", "{}")).Key
	visited := baseIn(t, w.must(t, "", "GET", "/api/apps/"+app+"/share?token="+key, ""))
	is.Equal(w.do(t, "", "GET", visited+"api/ai-instructions", "").status, http.StatusForbidden)
	is.Equal(w.do(t, "", "GET", visited+"api/_server/read", "").body, "403")
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "admin"}`)
	is.Equal(w.do(t, "", "GET", visited+"api/ai-instructions", "").status, http.StatusOK)
	is.Equal(w.do(t, "", "GET", visited+"api/_server/read", "").body, "200")
}

// TestCapHoldsAtOrigins: the page of a superuser at the app's own origin has no more tenant-wide
// rights than the owner of the app, and neither have the server routes that it calls.
func TestCapHoldsAtOrigins(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withAppOrigin)
		w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
		app := shop(t, w, map[string]string{
			"informer.yaml":  "access: ['GET ai-instructions']\nroles: [clerk, boss]\n",
			"server/read.js": "export const GET = ({ fetch }) => fetch('ai-instructions').then(r => r.status)",
		})
		b := newBrowser(t, w, "admin")
		origin, _ := b.open(t, baseURL+"/api/apps/"+app+"/view")
		origin = strings.TrimSuffix(origin, "/")
		get := func() []string {
			page := b.get(t, origin+"/api/ai-instructions").status
			return []string{fmt.Sprint(page), b.get(t, origin+"/api/_server/read", "Sec-Fetch-Site: same-origin").body}
		}
		is.Equal(get(), []string{"403", "403"})
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "admin"}`)
		is.Equal(get(), []string{"200", "200"})
	})
}

// payroll is a host's dataset that only superusers read.
type payroll struct{ hostTable }

func (p payroll) Table(ctx context.Context, tenant string, d entity.Ref) (datasets.Table, error) {
	if a, err := actor.From(ctx); err != nil || !a.Superuser {
		return nil, errs.New(errs.Forbidden, "Only superusers read the payroll.")
	}
	return p.hostTable.Table(ctx, tenant, d)
}

// withPayroll returns a world with an app to which the payroll is bound as pay, and the id of the
// dataset. Mia is a member, tim an admin of a team, admin a superuser without a team.
func withPayroll(
	t *testing.T, open dbtest.Opener, model ai.Provider, files map[string]string,
) (*world, string, string) {
	w := newWorld(t, open, withAI(model), func(c *tenantcontent.Config) {
		c.Datasets = payroll{hostTable{n: 3, text: "pay of the boss"}}
	})
	w.withAI(t, "dana", "tim")
	app, dataset := shop(t, w, files), added(t, w, "datasets", `{"name": "Hosted payroll"}`)
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/dependencies/pay", `{"datasetId": "`+dataset+`", "label": "Pay"}`)
	w.must(t, "admin", "PUT", "/api/apps/"+app, `{"settings": {"passDatasets": true}}`)
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/tim", `{"accessLevel": 1}`)
	w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	return w, app, dataset
}

var (
	capViewers = []string{"mia", "tim", "admin"}
	capOwners  = []string{"mia", "dana", "tim", "admin", teamID}
)

// TestCapHoldsForChats: an assistant that an app asks for its viewer has the viewer's rights, but
// tenant-wide no more than the owner of the app: a dataset that a host's Source leaves to
// superusers reaches the model only if both are.
func TestCapHoldsForChats(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s, model := withModel(t)
		w, app, dataset := withPayroll(t, open, model, map[string]string{
			"informer.yaml": "access: ['POST assistants/*/_chat']\nroles: [clerk, boss]\n",
			"server/ask.js": "export const POST = async ({ request: { body }, fetch }) => (await fetch(body.path, " +
				"{ method: 'POST', body: { messages: [{ role: 'user', content: 'Who earns most?' }] } })).status",
		})
		assistant := "assistants/" + added(t, w, "assistants", `{"name": "Helper", "skills": [{"type": "query"}]}`)
		w.must(t, "admin", "PUT", "/api/"+assistant+"/datasets/"+dataset, `{}`)
		for _, viewer := range []string{"mia", "tim"} {
			w.must(t, "admin", "PUT", "/api/"+assistant+"/shares/"+viewer, `{"accessLevel": 1}`)
		}
		ask := fmt.Sprintf(`{"path": "%s/_chat"}`, assistant)
		for _, owner := range capOwners {
			w.must(t, "admin", "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "`+owner+`"}`)
			for _, viewer := range capViewers {
				may := viewer != "mia" && owner != "mia" && owner != teamID // use models
				turns := []aitest.Turn{calls("dataset_rows", `{"dataset": "Hosted payroll"}`), done}
				both := viewer == "admin" && owner == "admin"
				if !both {
					turns = turns[:1] // the model has no such tool: the chat ends
				}
				if may {
					s.Add(turns...)
				}
				before := len(s.Requests())
				got := w.must(t, viewer, "POST", "/api/apps/"+app+"/view/api/_server/ask", ask).body
				sent := s.Requests()[before:]
				if !may {
					is.Equal(got, "403")
					is.Equal(len(sent), 0)
					continue
				}
				is.Equal(got, "200")
				is.Equal(len(sent), len(turns))
				knows := 0
				for _, r := range sent {
					knows += strings.Count(r.Body, "pay of the boss")
				}
				if both != (knows > 0) {
					t.Errorf("owner %s, viewer %s: the model is told %d times", owner, viewer, knows)
				}
			}
		}
	})
}

// TestCapHoldsForPassedDatasets: the page of an app is told of the datasets that both its viewer
// and tenant-wide its owner may read, and opens without the others.
func TestCapHoldsForPassedDatasets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		_, model := withModel(t)
		w, app, _ := withPayroll(t, open, model, nil)
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/mia", `{"accessLevel": 1}`)
		for _, owner := range capOwners {
			w.must(t, "admin", "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "`+owner+`"}`)
			for _, viewer := range capViewers {
				_, told := contextOf(t, w.must(t, viewer, "GET", "/api/apps/"+app+"/view", "")).Datasets["pay"]
				if both := viewer == "admin" && owner == "admin"; told != both {
					t.Errorf("owner %s, viewer %s: told %t", owner, viewer, told)
				}
			}
		}
	})
}

// TestRecordsOfHandlersNeedWrite: a member of the owning team without the role to change the app
// sees how often its handlers ran, but neither their logs and errors nor the texts of its e-mails,
// as it is with the calls of webhooks.
func TestRecordsOfHandlersNeedWrite(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := shop(t, w, map[string]string{
			"server/log.js": `export const POST = async ({ log, notify }) => { log("secret"); await ` +
				`notify("dana", { title: "secret" }) }`,
		})
		w.must(t, "admin", "DELETE", "/api/apps/"+app+"/shares/mia", "")
		w.must(t, "admin", "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "`+teamID+`"}`)
		w.must(t, "dana", "POST", "/api/apps/"+app+"/view/api/_server/log", "{}")
		calls := "/api/apps/" + app + "/stats/api"
		recent := read[struct{ Recent []struct{ ID string } }](t, w.must(t, "dana", "GET", calls, "")).Recent
		is.Equal(len(recent), 1)
		message := read[page](
			t, w.must(t, "dana", "GET", "/api/apps/"+app+"/messages", ""),
		).Embedded["inf:app-message"][0]["id"].(string)
		readOnly := "Authorization: Bearer " + read[struct{ Key string }](
			t, w.must(t, "dana", "POST", "/api/tokens", `{"readOnly": true}`),
		).Key
		for _, path := range []string{
			calls + "/" + recent[0].ID, "/api/apps/" + app + "/messages",
			"/api/apps/" + app + "/messages/" + message,
			"/api/apps/" + app + "/webhooks/invocations/" + recent[0].ID,
		} {
			is.Equal(w.do(t, "dana", "GET", path, "").status, 200)
			is.Equal(w.do(t, "", "GET", path, "", readOnly).status, 200)
			is.Equal(w.do(t, "mia", "GET", path, "").status, 403)
			is.Equal(w.do(t, "nora", "GET", path, "").status, 404)
		}
		is.True(strings.Contains(w.must(t, "mia", "GET", calls, "").body, `"recent":null`))
		is.True(strings.Contains(w.must(t, "dana", "GET", "/api/apps/"+app, "").body, `"inf:app-messages"`))
		is.True(!strings.Contains(w.must(t, "mia", "GET", "/api/apps/"+app, "").body, `"inf:app-messages"`))
	})
}
