package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/sessions"
)

const (
	userURN  = "urn:ietf:params:scim:schemas:core:2.0:User"
	groupURN = "urn:ietf:params:scim:schemas:core:2.0:Group"
	patchURN = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
)

// scimUser is the body of a user, with members beside the name.
func scimUser(name, more string) string {
	return fmt.Sprintf(`{"schemas": [%q], "userName": %q%s}`, userURN, name, more)
}

// scimPatch is the body of a PATCH.
func scimPatch(operations ...string) string {
	return fmt.Sprintf(`{"schemas": [%q], "Operations": [%s]}`, patchURN, strings.Join(operations, ", "))
}

// provider makes a token of a domain for SCIM, and has user call with it.
func (w *world) provider(t testing.TB, superuser, domain, user string) (key string) {
	t.Helper()
	key = read[struct{ Key string }](
		t, w.must(t, superuser, "POST", "/api/domains/"+domain+"/tokens", `{"type": "scim"}`),
	).Key
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions[user] = key
	return key
}

// stockSCIM adds users and a group to the domain gate of acme, and the callers provider and, of
// another tenant, rival.
func stockSCIM(t testing.TB, w *world, param map[string]string) {
	t.Helper()
	w.must(t, "eve", "POST", "/api/domains", `{"name": "Lair", "type": "gate", "config": {}}`)
	w.provider(t, "admin", "gate", "provider")
	w.provider(t, "eve", "lair", "rival")
	id := func(a answer) string { return read[struct{ ID string }](t, a).ID }
	param["Users"] = id(w.must(
		t, "provider", "POST", "/api/scim/v2/Users", scimUser("paul", `, "displayName": "Paul Mann"`),
	))
	param["scimGone"] = id(w.must(t, "provider", "POST", "/api/scim/v2/Users", scimUser("quit", "")))
	param["Groups"] = id(w.must(
		t, "provider", "POST", "/api/scim/v2/Groups",
		`{"schemas": ["`+groupURN+`"], "displayName": "Pilots", "members": [{"value": "`+param["Users"]+`"}]}`,
	))
	// so that no read writes how often the tokens were used
	is.New(t).NoErr(w.app.Sessions.Unchecked().FlushAll(t.Context()))
	param["ResourceTypes"], param["Schemas"], param["gateDomain"] = "User", userURN, "gate"
	param["scimToken"] = id(w.must(t, "admin", "POST", "/api/domains/gate/tokens", `{}`))
}

func withSCIM(all map[string]sample) map[string]sample {
	for name, s := range map[string]sample{
		"createDomainToken": {last: "gate", body: `{"type": "scim", "notes": "Entra"}`},
		"deleteDomainToken": {app: "gateDomain", last: "scimToken"},
		"listDomainTokens":  {last: "gate"},
		"getDomainToken":    {app: "gateDomain", last: "scimToken"},
		"createSCIMUser":    {body: scimUser("petra", "")},
		"putSCIMUser":       {body: scimUser("paul", `, "displayName": "Paul M."`)},
		"patchSCIMUser":     {body: scimPatch(`{"op": "replace", "path": "displayName", "value": "Paul"}`)},
		"deleteSCIMUser":    {last: "scimGone"},
		"searchSCIMUsers":   {body: `{"filter": "active eq true"}`},
		"createSCIMGroup":   {body: `{"schemas": ["` + groupURN + `"], "displayName": "Crew"}`},
		"putSCIMGroup":      {body: `{"schemas": ["` + groupURN + `"], "displayName": "Pilots & Co"}`},
		"patchSCIMGroup":    {body: scimPatch(`{"op": "replace", "path": "displayName", "value": "Pilots"}`)},
		"deleteSCIMGroup":   {},
		"searchSCIMGroups":  {body: `{}`},
	} {
		all[name] = s
	}
	return all
}

// TestSCIMTokens: at the routes of SCIM a token of a domain is the only credential, and it is one
// nowhere else.
func TestSCIMTokens(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		personal := read[struct{ Key string }](t, s.must(t, "admin", "POST", "/api/tokens", `{}`)).Key
		foreign := strings.Replace(s.token(t, "provider"), "acme", "evil", 1)
		for _, r := range httpapi.Routes() {
			if r.Public {
				continue
			}
			keys := []string{s.token(t, "provider")}
			if strings.HasPrefix(r.Pattern, "/api/scim/") {
				keys = []string{
					s.token(t, "admin"), personal, foreign, s.token(t, "provider") + "x",
					strings.Replace(s.token(t, "provider"), "tcp", "tct", 1),
				}
			}
			for _, key := range keys {
				target, _, _ := strings.Cut(s.target(r), "?")
				req := s.request(t, "", r.Method, target, "", "Authorization: Bearer "+key)
				req.Body = unread{t}
				if a := s.send(req); a.status != http.StatusUnauthorized {
					t.Errorf("%s with %.8s…: %d %s", r.Name, key, a.status, a.body)
				}
			}
			if strings.HasPrefix(r.Pattern, "/api/scim/") { // nor the cookie of a session
				if a := s.do(
					t, "", r.Method, s.target(r), "", "Cookie: sid="+s.token(t, "admin"),
					"Sec-Fetch-Site: same-origin",
				); a.status != http.StatusUnauthorized {
					t.Errorf("%s with a cookie: %d %s", r.Name, a.status, a.body)
				}
			}
		}
	})
}

// TestSCIMLogsOut: who is disabled has no session and no token any more, also when enabled again.
func TestSCIMLogsOut(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		user, err := s.app.Principals.User(s.as(t, "acme"), "paul")
		is.NoErr(err)
		l, err := s.app.Sessions.Unchecked().Start(t.Context(), "acme", user, sessions.ProviderSession{})
		is.NoErr(err)
		s.sessions["paul"] = l.Token
		personal := read[struct{ Key string }](t, s.must(t, "paul", "POST", "/api/tokens", `{}`)).Key
		status := func(key string) int {
			return s.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+key).status
		}
		is.Equal([]int{status(l.Token), status(personal)}, []int{200, 200})
		path := "/api/scim/v2/Users/" + s.param["Users"]
		s.must(t, "provider", "PATCH", path, scimPatch(`{"op": "Replace", "path": "active", "value": "False"}`))
		is.Equal([]int{status(l.Token), status(personal)}, []int{401, 401})
		s.must(t, "provider", "PATCH", path, scimPatch(`{"op": "Replace", "path": "active", "value": "True"}`))
		is.Equal([]int{status(l.Token), status(personal)}, []int{401, 401})
	})
}

// TestSCIMVersions: the entity tags of SCIM are weak, and conditions compare them all the same.
func TestSCIMVersions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		for _, kind := range []string{"Users", "Groups"} {
			path := "/api/scim/v2/" + kind + "/" + s.param[kind]
			a := s.must(t, "provider", "GET", path, "")
			tag := a.header.Get("Etag")
			is.True(strings.HasPrefix(tag, `W/"`))
			is.Equal(read[struct{ Meta struct{ Version string } }](t, a).Meta.Version, tag)
			is.Equal(s.do(t, "provider", "GET", path, "", "If-None-Match: "+tag).status, 304)
			change := scimPatch(`{"op": "replace", "path": "displayName", "value": "Other"}`)
			is.Equal(s.do(t, "provider", "PATCH", path, change, `If-Match: W/"x"`).status, 412)
			is.True(s.do(t, "provider", "PATCH", path, change, "If-Match: "+tag).status < 300)
			is.Equal(s.do(t, "provider", "DELETE", path, "", "If-Match: "+tag).status, 412)
			is.Equal(s.do(t, "provider", "GET", path, "", "If-None-Match: "+tag).status, 200)
			is.Equal(s.do(t, "provider", "DELETE", path, "", "If-Match: *").status, 204)
		}
	})
}

// TestSCIMTokenEnds: with its creator's rights, its time, its domain, and when it is revoked; that
// of another domain sees nothing.
func TestSCIMTokenEnds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		status := func(user string) int { return s.do(t, user, "GET", "/api/scim/v2/Users", "").status }
		s.must(t, "admin", "POST", "/api/domains", `{"name": "Side", "type": "gate", "config": {}}`)
		s.provider(t, "admin", "side", "side")
		is.Equal(s.do(t, "side", "GET", "/api/scim/v2/Users/"+s.param["Users"], "").status, 404)
		is.Equal(s.do(t, "side", "DELETE", "/api/scim/v2/Groups/"+s.param["Groups"], "").status, 404)
		a := s.do(
			t, "side", "POST", "/api/scim/v2/Groups",
			`{"schemas": ["`+groupURN+`"], "displayName": "Thieves", "members": [{"value": "`+s.param["Users"]+`"}]}`,
		)
		is.Equal(a.status, 400) // a member of another domain
		is.Equal(s.do(t, "side", "POST", "/api/scim/v2/Users", scimUser("PAUL", "")).status, 409)
		is.Equal(s.do(t, "side", "POST", "/api/scim/v2/Users", scimUser("admin", "")).status, 409)
		is.Equal(s.do(t, "side", "POST", "/api/scim/v2/Bulk", `{"Operations": []}`).status, 501)
		s.must(t, "admin", "DELETE", "/api/domains/side", "")
		is.Equal(status("side"), 401)
		s.must(t, "admin", "POST", "/api/domains", `{"name": "Side", "type": "gate", "config": {}}`)
		is.Equal(status("side"), 401) // also when there is one with its id again

		for domain, want := range map[string]int{"local": 400, "books": 409, "none": 404} {
			is.Equal(s.do(t, "admin", "POST", "/api/domains/"+domain+"/tokens", `{}`).status, want)
		}
		s.must(t, "admin", "PUT", "/api/domains/gate", `{"id": "gate", "type": "paper", "config": {"secret": "x"}}`)
		is.Equal(status("provider"), 409) // it is scanned from now on
		s.must(t, "admin", "PUT", "/api/domains/gate", `{"id": "gate", "type": "gate", "config": {}}`)
		is.Equal(status("provider"), 200)

		s.must(t, "admin", "PUT", "/api/users/dana/superuser", `{"superuser": true}`)
		s.provider(t, "dana", "gate", "danas")
		is.Equal(status("danas"), 200)
		s.must(t, "admin", "PUT", "/api/users/dana/superuser", `{"superuser": false}`)
		is.Equal(status("danas"), 401)
		list := read[page](t, s.must(t, "admin", "GET", "/api/domains/gate/tokens", ""))
		is.Equal(list.Total, 3)
		for _, one := range list.Embedded["inf:token"] {
			s.must(t, "admin", "DELETE", "/api/domains/gate/tokens/"+one["id"].(string), "")
		}
		is.Equal(status("provider"), 401)
	})
}
