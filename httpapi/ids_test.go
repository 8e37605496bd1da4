package httpapi_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// misspelled are what other readers of UUIDs take for the id, and what only contains it.
func misspelled(id string) []string {
	return []string{
		"{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), "a" + id + "b", id + "x", " " + id,
	}
}

// inPath escapes a segment of a path, every byte of it.
func inPath(s string) string {
	return strings.NewReplacer("{", "%7B", "}", "%7D", ":", "%3A", " ", "%20").Replace(s)
}

// TestIDsHaveOneSpelling: in the path of every route, only a UUID of 36 characters is an id.
func TestIDsHaveOneSpelling(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		checked := 0
		for _, r := range httpapi.Routes() {
			target, query, _ := strings.Cut(s.target(r), "?")
			parts := strings.Split(target, "/")
			for i, part := range parts {
				if !uuids.Valid(part) {
					continue
				}
				checked++
				for _, bad := range misspelled(part) {
					parts[i] = inPath(bad)
					want := 404
					if parts[2] == "comments" { // a malformed id of a comment is 400
						want = 400
					}
					// Callers of these must not learn which apps exist.
					if r.Name == "getAppSharePage" || strings.Contains(r.Pattern, "/_hook") {
						want = 401
					}
					if a := s.do(t, who(r), r.Method, strings.Join(parts, "/")+"?"+query, s.body(r)); a.status != want {
						t.Errorf("%s with %q: %d %s", r.Name, bad, a.status, a.body)
					} else {
						a.message(t)
					}
				}
				parts[i] = part
			}
		}
		is.New(t).True(checked > 50)
		for _, bad := range misspelled(teamID) {
			for _, target := range []string{
				"/api/principals/%", "/api/reports/%%3Aa", "/api/bundles/%", "/api/ai-instructions/%",
				"/api/users/%",
			} {
				a := s.do(t, "admin", "GET", strings.Replace(target, "%", inPath(bad), 1), "")
				is.New(t).Equal(a.status, 404)
			}
		}
		for _, bad := range misspelled(s.param["uploads"]) {
			a := s.do(t, "admin", "POST", "/api/colors-import", `{"uploadId": "`+bad+`"}`)
			is.New(t).Equal(a.status, 400)
		}
		for _, bad := range misspelled(teamID) {
			a := s.do(t, "admin", "POST", "/api/principals/mia/_reassign", `{"to": "`+bad+`"}`)
			is.New(t).Equal(a.status, 400)
			a = s.do(t, "admin", "DELETE", "/api/users/mia?reassignTo="+inPath(bad), "")
			is.New(t).Equal(a.status, 400)
		}
	})
}

// TestIDsIgnoreCase: an id in upper case is the same id.
func TestIDsIgnoreCase(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	for _, r := range httpapi.Routes() {
		parts := strings.Split(s.target(r), "/")
		for i, part := range parts {
			if uuids.Valid(part) {
				parts[i] = strings.ToUpper(part)
			}
		}
		if target := strings.Join(parts, "/"); r.Method == "GET" && target != s.target(r) {
			s.must(t, "admin", "GET", target, "")
		}
	}
}

// TestSlugsThatContainIDs: such a slug is a slug like any other, and what is called by it is
// nothing else.
func TestSlugsThatContainIDs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		for path, body := range map[string]string{
			"/api/bundles":         `{"name": "B", "slug": "SLUG"}`,
			"/api/ai-instructions": `{"slug": "SLUG", "content": "c"}`, "/api/teams": `{"name": "T", "slug": "SLUG"}`,
		} {
			victim := read[struct{ ID string }](
				t, s.must(t, "admin", "POST", path, strings.ReplaceAll(body, "SLUG", "victim")),
			).ID
			for _, slug := range []string{"a" + victim + "b", strings.ReplaceAll(victim, "-", ""), victim + "-x"} {
				made := s.must(t, "admin", "POST", path, strings.ReplaceAll(body, "SLUG", slug))
				own := read[struct{ ID string }](t, made).ID
				location := strings.TrimPrefix(made.header.Get("Location"), baseURL)
				if path != "/api/teams" {
					is.Equal(location, path+"/"+slug)
				}
				is.Equal(read[struct{ ID string }](t, s.must(t, "admin", "GET", path+"/"+slug, "")).ID, own)
				s.must(t, "admin", "DELETE", path+"/"+slug, "")
				is.Equal(s.do(t, "admin", "GET", path+"/"+own, "").status, 404)
				s.must(t, "admin", "GET", path+"/"+victim, "")
			}
			for _, slug := range []string{victim, strings.ToUpper(victim)} {
				is.Equal(s.do(t, "admin", "POST", path, strings.ReplaceAll(body, "SLUG", slug)).status, 400)
			}
		}
	})
}
