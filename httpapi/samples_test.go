package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// sample is a call of a route that succeeds in a stocked world. Called in the order of the table,
// all of them do.
type sample struct {
	user string // who may; admin when empty
	app  string // the path's first parameter, when it is not that of stock.param and there are several
	// the path's last parameter, when it is not that of stock.param; a name in stock.param stands
	// for what it has
	last   string
	query  string   // with its ?
	body   string   // JSON
	fields []string // what its body knows: "name kind", with ? for a field that may be null
}

var userFields = []string{
	"domain string?", "displayName string?", "familyName string?",
	"givenName string?", "middleName string?", "email string?",
	"timezone string?", "data object?", "userFields object?", "superuser bool", "enabled bool", "locked bool",
	"aiConsent bool", "source string?", "sourceId string?", "passwordExpiresAt time?", "globalPermissions object",
	"globalPermissions.ai bool", "globalPermissions.jobCreation bool", "globalPermissions.viewAllTeams bool",
	"globalPermissions.viewAllUsers bool", "globalPermissions.painlessScriptCreation bool",
}

var teamFields = []string{
	"name string", "slug string", "description string?", "domain string?", "color string?", "icon string?",
	"materialIcon string?", "source string?", "sourceId string?",
}

// saySomething is the sample of a comment on any kind.
var saySomething = sample{body: `{"message": "Look, @mia"}`, fields: []string{"message string"}}

// samples has every route that does more than answer a GET. UPLOAD stands for the id of a staged
// file.
var samples = withSCIM(withAssistants(withApps(withDomains(withBundles(withContent(map[string]sample{
	"putColor": {body: `{"color": "#123456"}`, fields: []string{"color string"}},
	"exportColors": {
		body:   `{"source": "atlas"}`,
		fields: []string{"source string", "progress string", "download bool"},
	},
	"importColors":  {body: `{"uploadId": "UPLOAD"}`, fields: []string{"uploadId string"}},
	"deleteColor":   {last: "gone"},
	"createReply":   {body: `{"message": "Hi @mia"}`, fields: []string{"message string"}},
	"putComment":    {body: `{"message": "Hello @tim"}`, fields: []string{"message string", "public bool"}},
	"deleteComment": {},

	"putNotifications": {body: `{"state": "read"}`, fields: []string{"state string"}},
	"putNotification":  {body: `{"state": "unread"}`, fields: []string{"state string"}},

	"createReportComment": saySomething, "createDatasetComment": saySomething, "createDatasourceComment": saySomething,
	"createQueryComment": saySomething, "createTeamComment": saySomething, "createJobComment": saySomething,
	"createTemplateComment": saySomething, "createAssistantComment": saySomething, "createLibraryComment": saySomething,

	"login": {
		body:   `{"username": "dana", "password": "open sesame", "tenant": "acme"}`,
		fields: []string{"username string", "password string", "tenant string"},
	},
	"logout": {user: "nora"},
	"putTenant": {
		body: `{"name": "Acme Inc."}`,
		fields: []string{
			"name string", "settings object", "settings.ai object", "settings.ai.enabled bool",
			"settings.licenses strings?", "settings.defaultDomain string?", "settings.deployFrom array?",
		},
	},
	"createToken": {
		body: `{"notes": "new"}`,
		fields: []string{
			"type string", "readOnly bool", "notes string?", "restrict string?", "cidr string?",
			"expiresAt time?",
		},
	},
	"deleteToken": {},
	"createUser": {
		body:   `{"username": "ana"}`,
		fields: append([]string{"username string", "password string?"}, userFields...),
	},
	"putUser":    {body: `{"displayName": "Mia W."}`, fields: userFields},
	"deleteUser": {last: "gone"},
	"putPassword": {
		body:   `{"password": "long enough"}`,
		fields: []string{"password string", "currentPassword string"},
	},
	"putSuperuser":  {body: `{"superuser": true}`, fields: []string{"superuser bool"}},
	"putViewedFeed": {},
	"putAvatar":     {body: gif},
	"deleteAvatar":  {},
	"createTeam":    {body: `{"name": "Sales", "slug": "sales"}`, fields: teamFields},
	"putTeam":       {body: `{"name": "Design & Co"}`, fields: teamFields},
	"deleteTeam":    {last: "spare"},
	"putMember":     {last: "nora", body: `{"role": "designer"}`, fields: []string{"role string"}},
	"deleteMember":  {last: "dana"},
	"createUpload":  {query: "?filename=f.json", body: `[]`},
	"deleteUpload":  {},
	"createInstruction": {
		body:   `{"slug": "style", "content": "short"}`,
		fields: []string{"slug string", "description string?", "content string"},
	},
	"putInstruction":    {body: `{"content": "short"}`, fields: []string{"description string?", "content string"}},
	"deleteInstruction": {last: "gone"},
	"reassignPrincipal": {body: `{"to": "dana"}`, fields: []string{"to string"}},
}))))))

// gif is as much of a picture as a server looks at.
const gif = "GIF89a"

// stock is a world in which tenant acme has one of everything.
type stock struct {
	*world
	param map[string]string // part of a pattern to what stands for its parameter
}

// stocked makes a world with things of acme's admin in it.
func stocked(t testing.TB, open dbtest.Opener, change ...func(*tenantcontent.Config)) stock {
	w := newWorld(t, open, append(change, withDrivers)...)
	w.must(t, "admin", "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
	w.must(t, "admin", "PUT", "/api/colors/gone", `{"color": "#ff0000"}`)
	w.must(t, "admin", "POST", "/api/users", `{"username": "gone"}`)
	w.must(t, "admin", "POST", "/api/teams", `{"name": "Spare"}`)
	w.must(t, "mia", "PUT", "/api/users/mia/avatar", gif)
	id := func(a answer) string { return read[struct{ ID string }](t, a).ID }
	s := stock{w, map[string]string{
		"colors": "red", "principals": "mia", "login": "local", "users": "mia", "members": "mia", "teams": teamID,
		"uploads":   w.upload(t, "admin", `[{"key": "sky", "color": "blue"}]`),
		"downloads": id(w.must(t, "admin", "POST", "/api/colors-export", `{}`)),
		"tokens":    id(w.must(t, "admin", "POST", "/api/tokens", `{}`)),
		"comments":  id(w.must(t, "admin", "POST", "/api/teams/"+teamID+"/comments", `{"message": "Hi @mia"}`)),
	}}
	w.must(t, "dana", "POST", "/api/teams/"+teamID+"/comments", `{"message": "Hi @admin"}`)
	told := read[page](t, w.must(t, "admin", "GET", "/api/notifications", ""))
	happened := read[page](t, w.must(t, "admin", "GET", "/api/activities", ""))
	s.param["activities"], _ = happened.Embedded["inf:activity"][0]["id"].(string)
	s.param["input-editors"] = "mdInput"
	s.param["notifications"], _ = told.Embedded["inf:notification"][0]["id"].(string)
	stockContent(t, w, s.param)
	stockApps(t, w, s.param)
	stockAssistants(t, w, s.param)
	stockBundles(t, w, s.param)
	stockDomains(t, w, s.param)
	stockSCIM(t, w, s.param)
	return s
}

// target is the path of a route with things of acme for its parameters.
func (s stock) target(r httpapi.Route) string {
	parts := strings.Split(r.Pattern, "/")
	last := 0
	for i, p := range parts {
		if strings.HasPrefix(p, ":") || strings.HasPrefix(p, "*") {
			parts[i], last = s.param[parts[i-1]], i
		}
	}
	sample := samples[r.Name]
	if sample.app != "" {
		parts[3] = s.param[sample.app]
	}
	if sample.last != "" {
		parts[last] = cmp.Or(s.param[sample.last], sample.last)
	}
	return strings.Join(parts, "/") + strings.NewReplacer(
		"KEY", s.param["key"], "HOOK", s.param["hook"],
	).Replace(sample.query)
}

func (s stock) body(r httpapi.Route) string {
	return strings.NewReplacer(
		"UPLOAD", s.param["uploads"], "STAGED", s.param["staged"], "ARCHIVE", s.param["archive"], "DATASET",
		s.param["datasets"],
	).Replace(samples[r.Name].body)
}

// call calls a route with its sample as somebody.
func (s stock) call(t testing.TB, user string, r httpapi.Route, headers ...string) answer {
	t.Helper()
	if strings.HasPrefix(r.Pattern, "/api/scim/") {
		user = cmp.Or(map[string]string{"admin": "provider", "eve": "rival"}[user], user)
	}
	switch r.Name {
	case "finishSSO":
		params, cookie := s.handshake(t, "state", "sue")
		return s.do(t, user, r.Method, s.target(r)+"?"+params, "", append(headers, cookie)...)
	case "finishSAML":
		params, cookie := s.handshake(t, "RelayState", "sue")
		return s.do(t, user, r.Method, s.target(r)+"?tenant=acme", params, append(headers, urlencoded, cookie)...)
	case "singleLogoutByForm":
		return s.do(t, user, r.Method, s.target(r), "SAMLRequest=x&who=sue&id=2", append(headers, urlencoded)...)
	case "receiveLogout":
		return s.do(t, user, r.Method, s.target(r), "who=sue&id=1", append(headers, urlencoded)...)
	}
	return s.do(t, user, r.Method, s.target(r), s.body(r), headers...)
}

// who may call a route.
func who(r httpapi.Route) string {
	if user := samples[r.Name].user; user != "" {
		return user
	}
	if strings.HasPrefix(r.Pattern, "/api/scim/") {
		return "provider"
	}
	return "admin"
}

// decodes reports whether a route reads a JSON body.
func decodes(r httpapi.Route) bool { return samples[r.Name].fields != nil }

// TestSamples makes sure that the samples fit the table, so that the tests made from them mean
// something.
func TestSamples(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		known := map[string]bool{}
		for _, r := range httpapi.Routes() {
			known[r.Name] = true
			if _, ok := samples[r.Name]; !ok && r.Method != http.MethodGet {
				t.Errorf("%s has no sample", r.Name)
			}
			if a := s.call(t, who(r), r); a.status >= 400 {
				t.Errorf("%s: %d %s", r.Name, a.status, a.body)
			}
		}
		for name := range samples {
			if !known[name] {
				t.Errorf("the sample %s is of no route", name)
			}
		}
	})
}

// object nests a value at a dotted path: object("a.b", "1") is {"a":{"b":1}}.
func object(path, value string) string {
	names := strings.Split(path, ".")
	for i := len(names) - 1; i >= 0; i-- {
		value = fmt.Sprintf("{%q:%s}", names[i], value)
	}
	return value
}

// merged returns a JSON object with the members of another one added.
func merged(t testing.TB, body, more string) string {
	t.Helper()
	all := map[string]json.RawMessage{}
	is := is.New(t)
	is.NoErr(json.Unmarshal([]byte(body), &all))
	is.NoErr(json.Unmarshal([]byte(more), &all))
	out, err := json.Marshal(all)
	is.NoErr(err)
	return string(out)
}
