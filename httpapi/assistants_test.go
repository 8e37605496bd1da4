package httpapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	confirmationstore "github.com/tenantcontent/tenantcontent/internal/store/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

var assistantFields = []string{
	"name string", "slug string?", "description string?", "instructions string?",
	"welcome string?", "dispatcher bool", "suggestions strings?", "modelId string?",
	"embedded bool", "data object?", "folderId string?", "skills array?",
}

// withAssistants adds the samples of assistants.
func withAssistants(samples map[string]sample) map[string]sample {
	for name, s := range map[string]sample{
		"createAssistant": {body: `{"name": "New", "slug": "new"}`, fields: assistantFields},
		"putAssistant":    {body: `{"name": "Other"}`, fields: assistantFields},
		"deleteAssistant": {last: "admin:gone"},
		"putAssistantOwner": {
			last:   "drafted-assistant",
			body:   `{"ownerId": "dana"}`,
			fields: []string{"ownerId string"},
		},
		"editAssistant":         {body: `{"force": true}`, fields: []string{"force bool"}},
		"getAssistantDraft":     {last: "drafted-assistant"},
		"getAssistantDraftDiff": {last: "drafted-assistant"},
		"commitAssistantDraft": {
			last:   "drafted-assistant",
			body:   `{"force": true}`,
			fields: []string{"force bool"},
		},
		"deleteAssistantDraft": {last: "discarded-assistant"},
		"putAssistantSkill": {
			last:   "code",
			body:   `{"config": {}}`,
			fields: []string{"type string", "config object?"},
		},
		"deleteAssistantSkill":     {},
		"putAssistantSecret":       {last: "TOKEN", body: `{"value": "new"}`, fields: []string{"value string"}},
		"deleteAssistantSecret":    {},
		"putAssistantDataset":      {body: `{"mode": "schema"}`, fields: []string{"mode string", "filter object?"}},
		"deleteAssistantDataset":   {},
		"putAssistantReference":    {body: `{"label": "Shelf"}`, fields: []string{"label string?"}},
		"deleteAssistantReference": {},
		"getAssistantFile":         {last: "notes.txt"},
		"putAssistantFile":         {last: "notes.txt", body: `{"content": "y"}`},
		"deleteAssistantFile":      {last: "gone.txt"},
		"putAssistantShare": {
			last:   "dana",
			body:   `{"accessLevel": 3}`,
			fields: []string{"accessLevel number", "roles strings?"},
		},
		"deleteAssistantShare": {},
		"createAssistantToken": {
			body:   `{"notes": "new"}`,
			fields: []string{"type string", "notes string?", "restrict string?", "cidr string?", "expiresAt time?"},
		},
		"getAssistantToken":    {last: "chat"},
		"deleteAssistantToken": {last: "chat"},
		"chatWithAssistant": {
			body:   `{"messages": [{"role": "user", "content": "Hello"}]}`,
			fields: []string{"messages array?", "model string?"},
		},
		"confirmAssistantCall": {
			body:   `{"confirmationId": "waiting", "approve": true}`,
			fields: []string{"confirmationId string", "approve bool"},
		},
		"makeAssistantImage": {body: `{"prompt": "A chair"}`, fields: []string{"prompt string", "size string?"}},
	} {
		samples[name] = s
	}
	return samples
}

// waitAgain lets a call of an assistant wait for a decision of admin.
func waitAgain(t testing.TB, w *world, assistant string) {
	t.Helper()
	is, s, asked := is.New(t), confirmationstore.New(w.db), sha256.Sum256([]byte("user admin"))
	if _, err := s.Take(t.Context(), "acme", "waiting"); errs.CodeOf(err) != errs.NotFound {
		is.NoErr(err)
	}
	is.NoErr(s.Add(t.Context(), "acme", confirmations.Confirmation{
		ID: "waiting", Assistant: assistant, Asked: hex.EncodeToString(asked[:]), ExpiresAt: w.now().Add(time.Minute),
	}, 1, w.now()))
}

// stockAssistants makes an assistant with one of everything, one that may be deleted, and two with
// a draft.
func stockAssistants(t testing.TB, w *world, param map[string]string) {
	id := func(slug string) string {
		t.Helper()
		return read[struct{ ID string }](
			t, w.must(t, "admin", "POST", "/api/assistants", `{"name": "Kept", "slug": "`+slug+`"}`),
		).ID
	}
	id("gone")
	for _, slug := range []string{"drafted-assistant", "discarded-assistant"} {
		param[slug] = id(slug)
		draft := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/assistants/"+param[slug]+"/_edit", ""))
		w.must(t, "admin", "PUT", "/api/assistants/"+draft.ID, `{"instructions": "Be kind."}`)
		w.must(t, "admin", "PUT", "/api/assistants/"+draft.ID+"/files/a.txt", "draft", "Content-Type: text/plain")
	}
	param["assistants"] = id("kept")
	waitAgain(t, w, param["assistants"])
	one := "/api/assistants/" + param["assistants"]
	for _, path := range []string{"notes.txt", "gone.txt"} {
		w.must(t, "admin", "PUT", one+"/files/"+path, "x", "Content-Type: text/plain")
	}
	w.must(t, "admin", "PUT", one+"/skills/query", `{}`)
	w.must(t, "admin", "PUT", one+"/secrets/KEY", `{"value": "secret"}`)
	w.must(t, "admin", "PUT", one+"/datasets/"+param["datasets"], `{}`)
	w.must(t, "admin", "PUT", one+"/references/library/"+param["libraries"], `{}`)
	w.must(t, "admin", "PUT", one+"/shares/mia", `{"accessLevel": 2}`)
	param["chat"] = read[struct{ ID string }](t, w.must(t, "admin", "POST", one+"/tokens", `{}`)).ID
	param["skills"], param["secrets"], param["references"], param["library"] =
		"query", "KEY", "library", param["libraries"]
}

// markAssistants makes an assistant that has a mark wherever one fits, and a draft of it.
func (w *world) markAssistants(t testing.TB, superuser, mark string) {
	one := "/api/assistants/" + read[struct{ ID string }](t, w.must(t, superuser, "POST", "/api/assistants",
		`{"name": "`+mark+`", "slug": "`+mark+`", "suggestions": ["`+mark+`"], "data": {"m": "`+mark+`"}}`)).ID
	w.must(t, superuser, "PUT", one+"/secrets/"+mark, `{"value": "x"}`)
	w.must(t, superuser, "PUT", one+"/skills/"+mark, `{"type": "query"}`)
	w.must(t, superuser, "PUT", one+"/files/"+mark, "x", "Content-Type: text/plain")
	w.must(t, superuser, "PUT", one+"/shares/"+mark, `{"accessLevel": 1}`)
	w.must(t, superuser, "POST", one+"/tokens", `{}`)
	w.must(t, superuser, "POST", one+"/comments", `{"message": "`+mark+`"}`)
	w.must(t, superuser, "POST", one+"/_edit", "")
}

// TestAIGate: on every route of AI the switch of the tenant comes first, whoever calls, then the ai
// credential, before anything that the request has.
func TestAIGate(t *testing.T) {
	w := newWorld(t, dbtest.SQLite)
	gated := 0
	each := func(user, message string, status int, headers ...string) {
		t.Helper()
		for _, r := range httpapi.Routes() {
			if !strings.HasPrefix(r.Pattern, "/api/assistants") && !strings.HasPrefix(r.Pattern, "/api/ai-") {
				continue
			}
			gated++
			target := strings.NewReplacer(":", "x", "*", "x").Replace(r.Pattern)
			if a := w.do(t, user, r.Method, target+"?misspelled=1", `{`, headers...); a.status != status ||
				a.message(t) != message {
				t.Errorf("%s of %s: %d %s", r.Name, user, a.status, a.body)
			}
		}
	}
	readOnly := "Authorization: Bearer " + read[struct{ Key string }](
		t, w.must(t, "mia", "POST", "/api/tokens", `{"readOnly": true}`),
	).Key
	for _, user := range []string{"admin", "mia"} {
		each(user, "AI is not enabled on the system", 400)
	}
	each("mia", "AI is not enabled on the system", 400, readOnly)
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
	const credential = `This needs the ai credential, which a superuser gives: PUT /api/users/{username} ` +
		`{"globalPermissions": {"ai": true}}.`
	each("mia", credential, 403)
	each("mia", credential, 403, readOnly)
	is.New(t).True(gated > 5*40) // the walk found the routes
}

// withAI turns AI on, and lets some users use it.
func (w *world) withAI(t testing.TB, users ...string) {
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
	for _, user := range users {
		w.must(t, "admin", "PUT", "/api/users/"+user, `{"globalPermissions": {"ai": true}}`)
	}
}

// TestAssistantShares: what each level of a share lets do, and what the members of an owning team
// may.
func TestAssistantShares(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.withAI(t, "dana", "mia", "nora")
		id := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/assistants", `{"name": "Helper"}`)).ID
		one := "/api/assistants/" + id
		comment := read[struct{ ID string }](t, w.must(t, "dana", "POST", one+"/comments", `{"message": "private"}`)).ID
		calls := []struct {
			method, path, body string
			least              int // level
		}{
			{"GET", "", "", 1}, {"GET", "/skills", "", 1},
			{"GET", "/datasets", "", 1}, {"GET", "/references", "", 1}, {"GET", "/comments", "", 1},
			{"GET", "/files", "", 2}, {"GET", "/shares", "", 2},
			{"GET", "/secrets", "", 2}, {"PUT", "", `{"welcome": "Hi"}`, 2},
			{"PUT", "/skills/code", `{}`, 2}, {"PUT", "/secrets/A", `{"value": "x"}`, 2},
			{"POST", "/_edit", "", 2}, {"GET", "/draft", "", 2},
			{"GET", "/draft/diff", "", 2}, {"POST", "/draft/_commit", "", 2},
			{"PUT", "/shares/nora", `{"accessLevel": 1}`, 3}, {"GET", "/tokens", "", 3},
			{"POST", "/tokens", `{}`, 3}, {"PUT", "/owner", `{"ownerId": "dana"}`, 3},
		}
		check := func(user string, level int) {
			t.Helper()
			for _, c := range calls {
				status := w.do(t, user, c.method, one+c.path, c.body).status
				fits := status < 300
				switch {
				case level == 0:
					fits = status == 404
				case level < c.least:
					fits = status == 403
				}
				if !fits {
					t.Errorf("level %d: %s %s: %d", level, c.method, c.path, status)
				}
			}
		}
		listed := func(user string) int {
			return read[struct{ Total int }](t, w.must(t, user, "GET", "/api/assistants", "")).Total
		}
		activities := func(user string) string { return w.must(t, user, "GET", "/api/activities", "").body }
		for level := range 4 {
			w.must(t, "dana", "PUT", one+"/shares/mia", fmt.Sprintf(`{"accessLevel": %d}`, level))
			check("mia", level)
			is.Equal(listed("mia"), min(level, 1))
			is.Equal(
				w.do(t, "mia", "GET", "/api/comments/"+comment, "").status,
				map[bool]int{true: 404, false: 200}[level == 0],
			)
			is.Equal(strings.Contains(activities("mia"), "private"), level > 0)
		}
		is.Equal(
			w.do(t, "mia", "PUT", one+"/shares/nora", `{"accessLevel": 4}`).message(t),
			"accessLevel must be a number from 0 to 3",
		)
		is.Equal(
			w.do(t, "mia", "PUT", one+"/shares/nora", `{"accessLevel": 1, "roles": ["x"]}`).message(t),
			"roles: an assistant has no roles",
		)
		w.must(t, "dana", "DELETE", one+"/shares/mia", "")
		w.must(t, "dana", "DELETE", one+"/shares/nora", "")
		w.must(t, "dana", "PUT", one+"/owner", `{"ownerId": "`+teamID+`"}`)
		check("mia", 1) // a member of the team
		calls = calls[:len(calls)-1]
		check("nora", 0)
		check("dana", 3) // a designer of it
	})
}

// TestHostKeepsAssistants: a host that has a kind assistant of its own has no routes of assistants.
func TestHostKeepsAssistants(t *testing.T) {
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.Entities = []entity.Type{{Kind: "assistant"}} })
	for _, path := range []string{"/api/assistants", "/api/assistants-list", "/api/assistants/x/draft"} {
		is.New(t).Equal(w.do(t, "admin", "GET", path, "").message(t), "There is no such route.")
	}
}
