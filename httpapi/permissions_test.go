package httpapi_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// permissionsIn calls found with each object permissions of a JSON value.
func permissionsIn(v any, found func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			permissionsIn(e, found)
		}
	case map[string]any:
		if p, ok := v["permissions"].(map[string]any); ok {
			found(p)
		}
		for _, e := range v {
			permissionsIn(e, found)
		}
	}
}

// TestPermissionsOfReadOnlyToken: whatever it reads, it may do nothing, and its user may do
// something.
func TestPermissionsOfReadOnlyToken(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		key := read[struct{ Key string }](t, s.must(t, "admin", "POST", "/api/tokens", `{"readOnly": true}`)).Key
		some := 0
		for _, r := range httpapi.Routes() {
			if r.Method != "GET" || r.Public || r.AnyType {
				continue
			}
			var body any
			is.New(t).NoErr(json.Unmarshal(
				[]byte(s.must(t, "", "GET", s.target(r), "", "Authorization: Bearer "+key).body), &body,
			))
			permissionsIn(body, func(p map[string]any) {
				for name, may := range p {
					if may != false {
						t.Errorf("%s: %s is %v", r.Name, name, may)
					}
				}
			})
			is.New(t).NoErr(json.Unmarshal([]byte(s.must(t, "admin", "GET", s.target(r), "").body), &body))
			permissionsIn(body, func(p map[string]any) {
				for _, may := range p {
					if may == true {
						some++
					}
				}
			})
		}
		if some < 100 {
			t.Errorf("the superuser may do %d things", some)
		}
	})
}

// TestPermissionsAreTheSameEverywhere: of what a bundle refers to, and of the authors of comments,
// they are those of its own route, for every caller.
func TestPermissionsAreTheSameEverywhere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		s.must(t, "admin", "POST", "/api/users", `{"username": "paula", "domain": "books"}`)
		own := map[string]string{"user": "/api/users/", "team": "/api/teams/"}
		for _, k := range content.Kinds() {
			own[string(k.Kind)] = "/api/" + k.Plural + "/"
		}
		refer := func(kind, column, id string) {
			s.must(t, "admin", "POST", "/api/bundles/kept/entries", `{"type": "`+kind+`", "`+column+`": "`+id+`"}`)
		}
		refer("user", "username", "dana")
		refer("user", "username", "paula")
		refer("user", "username", "tim")
		refer("team", "teamId", teamID)
		for _, k := range content.Kinds() {
			if drivers := read[page](
				t, s.must(t, "admin", "GET", "/api/bundle-drivers", ""),
			); !slices.ContainsFunc(drivers.Embedded["inf:bundle-driver"], func(d map[string]any) bool {
				return d["id"] == string(k.Kind)
			}) {
				continue
			}
			refer(string(k.Kind), string(k.Kind)+"Id", s.param[k.Plural])
		}
		own["app"] = "/api/apps/"
		refer("app", "appId", s.param["apps"])
		danas := read[struct{ ID string }](
			t, s.must(t, "dana", "POST", "/api/reports", `{"name": "Dana's", "slug": "hers"}`),
		).ID
		refer("report", "reportId", danas)
		teams := read[struct{ ID string }](t, s.must(t, "mia", "GET", "/api/queries/admin:kept", "")).ID
		_, err := s.app.Content.Unchecked().SetSystem(t.Context(), "acme", "job", s.param["jobs"], true)
		is.NoErr(err)
		s.must(t, "admin", "POST", "/api/principals/admin/_reassign", `{"to": "`+teamID+`"}`)
		s.must(t, "dana", "POST", "/api/queries/"+teams+"/comments", `{"message": "Hi"}`)
		for _, caller := range []string{"admin", "dana", "tim", "mia", "nora"} {
			checked := map[string]bool{}
			for _, e := range read[page](
				t, s.must(t, caller, "GET", "/api/bundles/kept/entries?limit=1000", ""),
			).Embedded["inf:bundle-entry"] {
				kind := e["type"].(string)
				embedded, ok := e["_embedded"].(map[string]any)["inf:"+kind].(map[string]any)
				if !ok {
					continue
				}
				alone := read[map[string]any](t, s.must(t, caller, "GET", own[kind]+embedded["id"].(string), ""))
				if checked[kind] = true; !reflect.DeepEqual(embedded["permissions"], alone["permissions"]) {
					t.Errorf(
						"%s in an entry for %s: %v, alone %v", kind, caller, embedded["permissions"],
						alone["permissions"],
					)
				}
				if !reflect.DeepEqual(embedded["_links"], alone["_links"]) {
					t.Errorf("%s in an entry for %s: %v, alone %v", kind, caller, embedded["_links"], alone["_links"])
				}
				if beside, ok := e[kind].(map[string]any); ok &&
					!reflect.DeepEqual(beside["permissions"], alone["permissions"]) {
					t.Errorf(
						"%s beside an entry for %s: %v, alone %v", kind, caller, beside["permissions"],
						alone["permissions"],
					)
				}
			}
			is.True(len(checked) > 10)
			for _, c := range read[page](
				t, s.must(t, caller, "GET", "/api/queries/"+teams+"/comments", ""),
			).Embedded["inf:comment"] {
				author := c["_embedded"].(map[string]any)["inf:user"].(map[string]any)
				alone := read[map[string]any](
					t, s.must(t, caller, "GET", "/api/users/"+author["username"].(string), ""),
				)
				is.Equal(author["permissions"], alone["permissions"])
				self := strings.TrimPrefix(
					c["_links"].(map[string]any)["self"].(map[string]any)["href"].(string), baseURL,
				)
				is.Equal(read[map[string]any](t, s.must(t, caller, "GET", self, ""))["permissions"], c["permissions"])
			}
			for _, path := range []string{"/api/users", "/api/teams", "/api/reports", "/api/ai-instructions"} {
				if path == "/api/ai-instructions" && caller != "admin" {
					continue // without the ai credential
				}
				for rel, rows := range read[page](t, s.must(t, caller, "GET", path, "")).Embedded {
					for _, row := range rows {
						self := strings.TrimPrefix(
							row["_links"].(map[string]any)["self"].(map[string]any)["href"].(string), baseURL,
						)
						if alone := read[map[string]any](
							t, s.must(t, caller, "GET", self, ""),
						); !reflect.DeepEqual(alone["permissions"], row["permissions"]) {
							t.Errorf(
								"%s of %s for %s: %v, alone %v", rel, self, caller, row["permissions"],
								alone["permissions"],
							)
						}
					}
				}
			}
		}
	})
}
