package httpapi_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// everClosed are the calls that have been closed to apps since apps could make calls: first
// segments, segments anywhere, and first segments of what apps read and do not write.
var (
	everClosed         = regexp.MustCompile(`^(_.*|apps|apps-.*|bundle-.*|bundles|domain-.*|domains|domains-.*|login|logout|scim|sessions?|tenants?|tokens)(/|$)`)
	everClosedSegments = regexp.MustCompile(`/(_reassign|_rotate-webhook-secret|password|secrets|shares|superuser|tokens|webhook-tokens)(/|$)`)
	everRead           = regexp.MustCompile(`^(principals|teams|users)(/|$)`)
)

// writesOfApps are the writes that apps may make: a new one is added here by who has thought about
// what it gives away.
var writesOfApps = []string{
	"chatWithAssistant", "createAssistantComment", "createCode",
	"createDataset", "createDatasetComment", "createDatasource",
	"createDatasourceComment", "createFile", "createJobComment",
	"createLetterhead", "createLibrary", "createLibraryComment",
	"createQuery", "createQueryComment", "createReply",
	"createReport", "createReportComment", "createTag", "createTemplate",
	"createTemplateComment", "createUpload", "createVisual",
	"deleteCode", "deleteColor", "deleteComment", "deleteDataset",
	"deleteDatasource", "deleteFile", "deleteLetterhead",
	"deleteLibrary", "deleteLibraryFile", "deleteQuery", "deleteReport",
	"deleteTag", "deleteTemplate", "deleteUpload", "deleteVisual",
	"exportColors", "importColors", "makeAssistantImage", "putCode",
	"putColor", "putComment", "putDataset", "putDatasource", "putFile", "putLetterhead", "putLibrary", "putLibraryFile",
	"putNotification", "putNotifications", "putQuery", "putReport", "putTag", "putTemplate", "putVisual",
}

// TestEveryRouteGrants: each row of the route table has what it grants, what was ever closed to
// apps is closed, and the writes that are open are those that were thought about.
func TestEveryRouteGrants(t *testing.T) {
	var open []string
	for _, r := range httpapi.Routes() {
		if r.Grants == "" {
			t.Errorf("%s does not say what it grants", r.Name)
		}
		path, below := strings.CutPrefix(r.Pattern, "/api/")
		if !below || path == "" || r.Grants != "nothing" {
			continue
		}
		if everClosed.MatchString(path) || everClosedSegments.MatchString("/"+path) || r.Method != "GET" &&
			everRead.MatchString(path) {
			t.Errorf("%s %s has been closed to apps", r.Method, r.Pattern)
		}
		if r.Method != "GET" {
			open = append(open, r.Name)
		}
	}
	slices.Sort(open)
	is.New(t).Equal(open, writesOfApps)
}

// TestClosedRulesOfRoutes: a manifest cannot name what the table closes.
func TestClosedRulesOfRoutes(t *testing.T) {
	m := httpapi.Manifests()
	for _, rule := range []string{
		"GET tokens", "POST tokens", "GET tokens/*", "GET session",
		"POST login/*", "GET login/:domain/sso", "POST logout", "PUT users/*/password",
		"PUT users/*/superuser", "PUT users/*", "POST users",
		"DELETE users/jo", "PUT teams/*/members/*", "DELETE teams/*", "POST principals/*/_reassign",
		"GET tenant", "PUT tenant", "GET domains", "GET domains/**",
		"PUT domains/*", "POST domain-drivers/*/_scan", "GET domains-list", "GET apps",
		"GET apps-list", "GET apps/**", "PUT apps/*/shares/*",
		"POST apps/*/_deploy", "GET bundles/*", "POST bundles/*/_deploy", "GET bundle-list",
		"POST _restore", "POST _restore-from-file", "POST _import-bundle",
		"POST _bundle", "GET scim/v2/Users", "GET assistants/*/secrets",
		"GET assistants/*/tokens", "PUT assistants/*/shares/*", "GET Tokens",
		"GET TENANT", "GET tokens.", "PUT assistants/*/owner",
		"PUT assistants/a/owner", "POST assistants/*/_chat/_confirm",
		"PUT assistants/*/skills/*", "PUT assistants/*/files/a/b", "PUT assistants/*",
		"POST assistants", "PUT assistants/*/files/**/x", "PUT toolkits/*",
		"POST integrations", "DELETE jobs/*", "POST ai-instructions",
		"PUT users/*/avatar", "PUT users/*/viewed-feed", "GET apps/*/contents/a/b/**",
	} {
		is := is.New(t)
		_, err := m.Read("app.yaml", []byte("access:\n  - "+rule))
		if err == nil || !strings.Contains(err.Error(), "no app may call") &&
			!strings.Contains(err.Error(), "** can only be") {
			t.Errorf("%s: %v", rule, err)
		}
		is.True(err != nil)
	}
	for _, rule := range []string{
		"GET users/**", "PUT users/**", "PUT assistants/**",
		"POST assistants/*/_chat", "GET assistants/*/*", "GET libraries/*/contents/a/b/**",
		"PUT libraries/*/contents/**", "GET nothing/like/*", "GET toolkits/**",
		"GET Datasets/*", "POST queries/:id/_run", "PUT colors/password",
	} {
		_, err := m.Read("app.yaml", []byte("access:\n  - "+rule))
		is.New(t).NoErr(err)
	}
}

// TestNoAppCallsClosedRoutes: whatever the manifest allows, neither a page nor a handler calls a
// route that grants something, for a superuser either; and a library of an app is closed wherever
// it stands.
func TestNoAppCallsClosedRoutes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		areas := map[string]bool{} // to whether it has an open route
		for _, r := range httpapi.Routes() {
			if path, below := strings.CutPrefix(r.Pattern, "/api/"); below && path != "" {
				area, _, _ := strings.Cut(path, "/")
				areas[area] = areas[area] || r.Grants == "nothing"
			}
		}
		manifest := "roles: [clerk]\naccess:\n"
		for area, some := range areas {
			if some {
				manifest += "  - GET,POST,PUT,PATCH,DELETE " + area + "/**\n"
			}
		}
		app := shop(t, s.world, map[string]string{
			"informer.yaml": manifest,
			"server/call.js": `export const POST = ({ request: { body: { path, method } }, fetch }) => ` +
				`fetch(path, { method }).then(answer => ({ answer }))`,
		})
		s.must(t, "admin", "PUT", "/api/apps/"+app+"/owner", `{"ownerId": "admin"}`)
		base := opened(t, s.world, "admin", app)
		handled := func(method, path string) (answer, string) {
			call, err := json.Marshal(map[string]string{"method": method, "path": path})
			is.NoErr(err)
			a := s.must(t, "", "POST", base+"api/_server/call", string(call), "Origin: null")
			got := read[struct {
				Answer struct {
					Status int
					Body   struct{ Message string }
				}
			}](t, a).Answer
			return answer{status: got.Status}, got.Body.Message
		}
		closed := 0
		for _, r := range httpapi.Routes() {
			target, below := strings.CutPrefix(s.target(r), "/api/")
			area, _, _ := strings.Cut(target, "/")
			area, _, _ = strings.Cut(area, "?")
			if !below || !areas[area] || r.Grants == "nothing" {
				continue
			}
			closed++
			a, message := handled(r.Method, target)
			if a.status != 403 || !strings.HasPrefix(message, "No app may call "+r.Method+" /api/") ||
				!strings.HasSuffix(message, ", which grants "+string(r.Grants)+".") {
				t.Errorf("%s: %d %s", r.Name, a.status, message)
			}
			if r.Method == "GET" {
				a := s.do(t, "", "GET", base+"api/"+target, "")
				if a.status != 403 || !strings.HasPrefix(a.message(t), "No app may call") {
					t.Errorf("page to %s: %d %s", r.Name, a.status, a.body)
				}
			}
		}
		is.True(closed > 40)

		library := read[struct{ LibraryID string }](t, s.must(t, "admin", "GET", "/api/apps/"+app, "")).LibraryID
		for _, path := range []string{"", "/contents", "/contents/informer.yaml"} {
			for _, method := range []string{"GET", "PUT", "DELETE"} {
				if path == "/contents" && method != "GET" {
					continue
				}
				a, message := handled(method, "libraries/"+library+path)
				is.Equal(a.status, 403)
				is.True(strings.Contains(message, "the library of an app"))
			}
			a := s.do(t, "", "GET", base+"api/libraries/"+library+path, "")
			is.Equal(a.status, 403)
		}
		a, _ := handled("GET", "colors/red")
		is.Equal(a.status, 200)
		a, _ = handled("PUT", "libraries/"+s.param["libraries"]+"/contents/x.txt")
		is.Equal(a.status, 200)
	})
}

// TestUselessRules: a deploy warns of rules that allow nothing.
func TestUselessRules(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := shop(t, w, map[string]string{"server/x.js": "export const GET = () => 1"})
	put(t, w, app, map[string]string{"informer.yaml": "access: ['PUT assistants/**', 'GET users/**']"})
	a := w.must(t, "dana", "POST", "/api/apps/"+app+"/_deploy", "")
	is.True(strings.Contains(
		a.body,
		`"warnings":["The rule PUT assistants/** in access allows nothing: no app may make these calls, which grant `,
	))
}
