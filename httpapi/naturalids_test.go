package httpapi_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// naturals returns the natural ids of all that has one, by id.
func (s stock) naturals(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range httpapi.Routes() {
		parts := strings.Split(s.target(r), "/")
		if r.Method != "GET" || len(parts) != 4 || !uuids.Valid(parts[3]) {
			continue
		}
		if a := s.do(t, "admin", "GET", strings.Join(parts, "/"), ""); a.status == 200 &&
			strings.HasPrefix(a.body, "{") {
			if one := read[struct{ ID, NaturalID string }](t, a); one.NaturalID != "" && one.NaturalID != one.ID {
				all[parts[3]] = one.NaturalID
			}
		}
	}
	return all
}

// TestNaturalIDs: in the path of every route, a natural id is taken where an id is.
func TestNaturalIDs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		names := s.naturals(t)
		routes := slices.Clone(httpapi.Routes())
		slices.SortStableFunc(routes, func(a, b httpapi.Route) int {
			// what removes something comes last, and what is within first
			removes := func(r httpapi.Route) int {
				if r.Method == "DELETE" || strings.HasSuffix(r.Pattern, "/_purge") ||
					strings.HasSuffix(r.Pattern, "/_commit") {
					return 1
				}
				return 0
			}
			return cmp.Or(removes(a)-removes(b), removes(a)*(len(b.Pattern)-len(a.Pattern)))
		})
		checked := map[string]bool{}
		for _, r := range routes {
			target, query, _ := strings.Cut(s.target(r), "?")
			parts := strings.Split(target, "/")
			for i, part := range parts {
				natural, has := names[part]
				if !has {
					continue
				}
				checked[strings.Split(r.Pattern, "/")[i-1]+"/"+strings.Split(r.Pattern, "/")[i]] = true
				parts[i] = inPath(natural)
				got := s.do(t, who(r), r.Method, strings.Join(parts, "/")+"?"+query, s.body(r))
				parts[i] = part
				if got.status < 400 {
					continue
				}
				if want := s.do(t, who(r), r.Method, target+"?"+query, s.body(r)); got.status != want.status {
					t.Errorf(
						"%s %s with %q: %d %s, and with the id %d", r.Method, r.Pattern, natural, got.status,
						got.body, want.status,
					)
				}
			}
		}
		for _, at := range []string{
			"apps/:id", "assistants/:id", "datasets/:id", "datasets/:datasetId", "tags/:tagId", "libraries/:id",
			"reports/:id", "teams/:id", "bundles/:id",
		} {
			if !checked[at] {
				t.Errorf("%s was not checked: %v", at, checked)
			}
		}
	})
}

// TestNaturalIDsBeside: natural ids of entities that others refer to, in paths and in bodies.
func TestNaturalIDsBeside(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.withAI(t, "admin")
		make := func(plural, body string) (id, natural string) {
			one := read[struct{ ID, NaturalID string }](t, w.must(t, "admin", "POST", "/api/"+plural, body))
			return one.ID, one.NaturalID
		}
		dataset, sales := make("datasets", `{"name": "Sales", "slug": "sales"}`)
		tag, blue := make("tags", `{"name": "Blue", "slug": "blue"}`)
		app, _ := make("apps", `{"name": "App", "type": "report"}`)
		assistant, _ := make("assistants", `{"name": "A"}`)
		other, helper := make("assistants", `{"name": "H", "slug": "helper"}`)
		is.Equal(sales, "admin:sales")
		for path, body := range map[string]string{
			"/api/apps/" + app + "/dependencies/rows": `{"datasetId": "` + sales +
				`"}`,
			"/api/assistants/" + assistant + "/datasets/" + inPath(sales):              `{}`,
			"/api/assistants/" + assistant + "/references/assistant/" + inPath(helper): `{}`,
			"/api/apps/" + app + "/tags/" + inPath(blue):                               ``,
		} {
			for range 2 { // made, and changed
				a := w.must(t, "admin", "PUT", path, body)
				is.True(strings.Contains(a.body, dataset) || strings.Contains(a.body, tag) ||
					strings.Contains(a.body, other))
			}
			w.must(t, "admin", "GET", path, "")
			w.must(t, "admin", "DELETE", path, "")
			is.Equal(w.do(t, "admin", "GET", path, "").status, 404)
		}
		app, _ = make(
			"apps",
			`{"name": "Bound", "type": "report", "datasets": [{"alias": "rows", "datasetId": "`+sales+`"}]}`,
		)
		bound := w.must(t, "admin", "GET", "/api/apps/"+app+"/dependencies/rows", "")
		is.True(strings.Contains(bound.body, dataset))
		for _, none := range []string{"admin:none", ":", "admin:", "nobody:sales"} {
			is.Equal(
				w.do(t, "admin", "PUT", "/api/apps/"+app+"/dependencies/rows", `{"datasetId": "`+none+`"}`).status,
				400,
			)
			is.Equal(w.do(t, "admin", "PUT", "/api/apps/"+app+"/tags/"+inPath(none), "").status, 404)
		}
	})
}
