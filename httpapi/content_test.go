package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// entityFields are what the bodies of the plain routes know.
var entityFields = []string{
	"name string", "slug string?", "description string?", "data object?", "source string?", "sourceId string?",
}

// withContent adds the samples of the plain routes, which are alike.
func withContent(samples map[string]sample) map[string]sample {
	for _, k := range content.Kinds() {
		name := content.Noun(k.Kind)
		samples["create"+name] = sample{body: `{"name": "New", "slug": "new"}`, fields: entityFields}
		samples["put"+name] = sample{body: `{"name": "Other"}`, fields: entityFields}
		samples["delete"+name] = sample{last: "admin:gone"}
	}
	samples["putLibraryFile"] = sample{body: `{"content": "x"}`}
	samples["deleteLibraryFile"] = sample{last: "gone.txt"}
	return samples
}

// stockContent switches AI on in both tenants, and makes two entities of each ready kind, of which
// one may be deleted.
func stockContent(t testing.TB, w *world, param map[string]string) {
	for _, user := range []string{"admin", "eve"} {
		w.must(t, user, "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
	}
	for _, slug := range []string{"tone", "gone"} {
		w.must(t, "admin", "POST", "/api/ai-instructions", `{"slug": "`+slug+`", "content": "be kind"}`)
	}
	param["ai-instructions"] = "tone"
	for _, k := range content.Kinds() {
		for _, slug := range []string{"gone", "kept"} {
			a := w.must(t, "admin", "POST", "/api/"+k.Plural, `{"name": "Kept", "slug": "`+slug+`"}`)
			param[k.Plural] = read[struct{ ID string }](t, a).ID
		}
	}
	for _, path := range []string{"dir/a.txt", "gone.txt"} {
		w.must(t, "admin", "PUT", "/api/libraries/admin:kept/contents/"+path, `x`, "Content-Type: text/plain")
	}
	param["contents"] = "dir/a.txt"
}

// markContent makes an entity of each ready kind that has a mark in its data.
func (w *world) markContent(t testing.TB, superuser, mark string) {
	w.must(t, superuser, "POST", "/api/ai-instructions", `{"slug": "`+mark+`", "content": "x"}`)
	for _, k := range content.Kinds() {
		w.must(t, superuser, "POST", "/api/"+k.Plural, `{"name": "x", "slug": "`+mark+`", "data": {"m": "`+mark+`"}}`)
	}
	w.must(t, superuser, "PUT", "/api/libraries/"+superuser+":"+mark+"/contents/"+mark, "x", "Content-Type: text/plain")
	w.markApps(t, superuser, mark)
	w.markAssistants(t, superuser, mark)
}

// TestHostKinds: a host's own kind has no plain routes, and is what the registry knows.
func TestHostKinds(t *testing.T) {
	is := is.New(t)
	own := entity.Type{Kind: "report"}
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		c.Entities = []entity.Type{own, {Kind: "library"}, {Kind: "thing"}}
	})
	for _, path := range []string{
		"/api/reports", "/api/reports/x", "/api/libraries", "/api/libraries/x/contents",
		"/api/libraries/x/contents/y",
	} {
		is.Equal(w.do(t, "admin", "GET", path, "").status, 404)
	}
	is.Equal(w.do(t, "admin", "POST", "/api/reports", `{"name": "x"}`).message(t), "There is no such route.")
	is.Equal(w.must(t, "admin", "GET", "/api/datasets", "").status, 200)
	_, err := tenantcontent.Open(tenantcontent.Config{
		DB:        w.db,
		SecretKey: tenantcontent.NewSecretKey(),
		Entities:  []entity.Type{own, own},
	})
	is.True(err != nil)
}

// TestEntityOwners: who may do what with an entity of its own, another's, a team's and the
// system's.
func TestEntityOwners(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		dana := read[struct{ ID string }](
			t, w.must(t, "dana", "POST", "/api/reports", `{"name": "Sales", "slug": "sales"}`),
		).ID
		for user, status := range map[string]int{"mia": 403, "tim": 403, "dana": 200, "admin": 200} {
			is.Equal(
				w.do(
					t, user, "PUT", "/api/reports/dana:sales",
					`{"description": "x", "ownerId": "mia", "system": true, "editingId": "x"}`,
				).status,
				status,
			)
			row := read[map[string]any](t, w.must(t, user, "GET", "/api/reports/"+dana, ""))
			is.Equal(row["permissions"].(map[string]any)["edit"], status == 200)
			is.Equal(
				[]any{row["ownerId"], row["system"], row["editingId"], row["naturalId"]},
				[]any{"dana", false, nil, "dana:sales"},
			)
		}
		registry := w.as(t, "acme")
		_, err := w.app.Content.Unchecked().Types()[4].Reassign(registry, "acme", "dana", teamID)
		is.NoErr(err)
		for user, status := range map[string]int{"mia": 403, "nora": 403, "tim": 200, "dana": 200, "admin": 200} {
			// designers of the team
			is.Equal(w.do(t, user, "PUT", "/api/reports/"+teamID+":sales", `{"description": "x"}`).status, status)
		}
		_, err = w.app.Content.Unchecked().SetSystem(t.Context(), "acme", "report", dana, true)
		is.NoErr(err)
		for _, user := range []string{"admin", "dana"} {
			is.Equal(
				w.do(t, user, "PUT", "/api/reports/"+dana, `{"name": "x"}`).message(t),
				"This report belongs to the system.",
			)
			is.Equal(w.do(t, user, "DELETE", "/api/reports/"+dana, "").status, 403)
		}
	})
}

// TestDraftsOverHTTP: they are in no list, and found by their id alone.
func TestDraftsOverHTTP(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		original := read[struct{ ID string }](
			t, w.must(t, "dana", "POST", "/api/datasets", `{"name": "A", "slug": "a"}`),
		).ID
		slug := "b"
		ctx := actor.With(t.Context(), actor.Actor{
			Tenant: "acme",
			User:   "dana",
			Teams:  map[string]actor.Role{teamID: actor.Designer},
		})
		draft, err := w.app.Content.Create(
			ctx, content.Entity{Kind: "dataset", Name: "A", Slug: &slug, EditingID: &original},
		)
		is.NoErr(err)
		is.Equal(read[page](t, w.must(t, "mia", "GET", "/api/datasets", "")).Total, 1)
		is.Equal(w.do(t, "mia", "GET", "/api/datasets/dana:b", "").status, 404)
		row := read[map[string]any](t, w.must(t, "mia", "GET", "/api/datasets/"+draft.ID, ""))
		is.Equal([]any{row["editingId"], row["naturalId"]}, []any{original, draft.ID})
	})
}

// TestLibraryPaths: what a path may be.
func TestLibraryPaths(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		w := newWorld(t, open)
		w.must(t, "dana", "POST", "/api/libraries", `{"name": "L", "slug": "l"}`)
		at := "/api/libraries/dana:l/contents/"
		for path, status := range map[string]int{
			"a": 200, "a%20b/c%25.js": 200, "%C3%BC.txt": 200,
			"x%2Fy": 200, strings.Repeat("x", 1024): 200, ".env": 200, "..a/b": 200,
			"%2E%2E/a": 400, "d/%2E%2E/a": 400, "d/%2E": 400, "%2Fetc": 400,
			"d%2F%2Fa": 400, "d%2F": 400, "d%5Ca": 400, "d%0A": 400, "u%CC%88": 400,
			strings.Repeat("x", 1025): 400, "a%00": 400, "%FF": 400, "": 404, "d//a": 404, "d/": 404,
		} {
			put := w.do(t, "dana", "PUT", at+path, "bytes", "Content-Type: text/plain")
			if put.status != status {
				t.Errorf("PUT %q: %d %s", path, put.status, put.body)
			}
			if put.status == 200 {
				href := strings.TrimPrefix(read[page](t, put).Links["self"].Href, baseURL)
				if got := w.do(t, "mia", "GET", href, ""); got.body != "bytes" ||
					!strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
					t.Errorf("GET %q: %d %s", href, got.status, got.body)
				}
				w.must(t, "dana", "DELETE", at+path, "")
			}
		}
		for _, c := range []struct{ there, path string }{
			// the same but for case, a file as a folder, a folder as a file
			{"a", "A"}, {"a", "a/b"}, {"%C3%BC.txt", "%C3%9C.TXT"}, {"x%2Fy", "x"},
		} {
			w.must(t, "dana", "PUT", at+c.there, "bytes", "Content-Type: text/plain")
			if put := w.do(t, "dana", "PUT", at+c.path, "bytes", "Content-Type: text/plain"); put.status != 409 {
				t.Errorf("PUT %q beside %q: %d %s", c.path, c.there, put.status, put.body)
			}
			w.must(t, "dana", "DELETE", at+c.there, "")
			w.must(t, "dana", "PUT", at+c.path, "bytes", "Content-Type: text/plain")
			w.must(t, "dana", "DELETE", at+c.path, "")
		}
	})
}

// TestLibraryFiles: kinds of bodies, ranges, and that nothing is left behind.
func TestLibraryFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open, func(c *tenantcontent.Config) { c.MaxUpload = 3 << 20 })
		w.must(t, "dana", "POST", "/api/libraries", `{"name": "L", "slug": "l"}`)
		before := w.dump(t, "acme")
		at := "/api/libraries/dana:l/contents/"
		for _, c := range []struct{ path, body, sent, kept, content string }{
			{"a.js", `let a`, "", "text/javascript", `let a`}, {"a.js", `let b`, "text/x; a=b", "text/x; a=b", `let b`},
			{"a.json", `{"content": "{}"}`, "application/json", "application/json", `{}`},
			{"b", `{}`, "application/octet-stream", "application/octet-stream", `{}`},
			{
				"c.bin", `{"content": "AAH/", "encoding": "base64", "contentType": "x/y"}`, "application/json",
				"x/y", "\x00\x01\xff",
			},
			{
				"big", strings.Repeat("0123456789abcdef", 1<<17), "", "application/octet-stream",
				strings.Repeat("0123456789abcdef", 1<<17),
			},
			{"empty", "", "", "application/octet-stream", ""},
		} {
			r := w.request(t, "dana", "PUT", at+c.path, c.body)
			r.Header.Del("Content-Type")
			if c.sent != "" {
				r.Header.Set("Content-Type", c.sent)
			}
			put := w.send(r)
			is.Equal(put.status, 200)
			is.Equal(read[struct{ ContentType string }](t, put).ContentType, c.kept)
			got := w.must(t, "nora", "GET", at+c.path, "")
			is.Equal(got.body, c.content)
			is.Equal(got.header.Get("Content-Type"), c.kept)
		}
		is.Equal(w.must(t, "mia", "GET", at+"big", "", "Range: bytes=1048575-1048577").body, "f01")
		for body, message := range map[string]string{
			`{}`:                                     "content is required",
			`{"content": 1}`:                         "content must be a string",
			`{"content": "x", "encoding": "hex"}`:    `encoding must be "base64", or left out`,
			`{"content": "?", "encoding": "base64"}`: "content must be base64",
			`{"content": "x", "contentType": "x"}`:   "contentType must be a media type such as text/plain",
		} {
			is.Equal(w.do(t, "dana", "PUT", at+"bad", body).message(t), message)
		}
		is.Equal(
			w.do(t, "dana", "PUT", at+"large", strings.Repeat("x", 3<<20+1), "Content-Type: text/plain").status,
			413,
		)
		for _, user := range []string{"mia", "tim"} {
			is.Equal(w.do(t, user, "PUT", at+"a.js", "x", "Content-Type: text/plain").status, 403)
			is.Equal(w.do(t, user, "DELETE", at+"a.js", "").status, 403)
		}
		list := read[page](t, w.must(t, "mia", "GET", "/api/libraries/dana:l/contents?limit=2", ""))
		is.Equal([]int{list.Count, list.Total}, []int{2, 6})
		rest := read[page](t, w.must(t, "mia", "GET", list.next(), ""))
		is.Equal(rest.Embedded["inf:content"][0]["path"], "b")
		for _, path := range []string{"a.js", "a.json", "b", "c.bin", "big", "empty"} {
			w.must(t, "dana", "DELETE", at+path, "")
		}
		sweep := func() { // a while later, when nobody can still be reading
			for range 2 {
				w.pass(2 * time.Minute)
				is.NoErr(w.app.Sweep(t.Context()))
			}
		}
		sweep()
		is.Equal(w.dump(t, "acme"), before) // no blob is left

		w.must(t, "dana", "PUT", at+"a", "x", "Content-Type: text/plain")
		w.must(t, "dana", "DELETE", "/api/libraries/dana:l", "")
		sweep()
		is.True(!strings.Contains(w.dump(t, "acme"), "tc_blobs"))
	})
}

// TestAISwitch: it comes before everything else in a request, and is seen at once.
func TestAISwitch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		calls := [][3]string{
			{"GET", "/api/ai-instructions?start=x", ""},
			{"POST", "/api/ai-instructions", "{"}, {"GET", "/api/ai-instructions/none", ""},
			{"PUT", "/api/ai-instructions/none", "[]"}, {"DELETE", "/api/ai-instructions/none", ""},
		}
		for _, on := range []bool{false, true, false} {
			w.must(t, "admin", "PUT", "/api/tenant", fmt.Sprintf(`{"settings": {"ai": {"enabled": %v}}}`, on))
			for _, user := range []string{"admin", "tim"} {
				for _, c := range calls {
					a := w.do(t, user, c[0], c[1], c[2])
					switch {
					case !on:
						is.Equal([]any{a.status, a.message(t)}, []any{400, "AI is not enabled on the system"})
					case user == "tim": // an admin of a team, without the credential
						is.Equal(a.status, 403)
					default:
						is.True(a.status == 400 || a.status == 404)
						is.True(a.message(t) != "AI is not enabled on the system")
					}
				}
			}
		}
	})
}

// TestFollowingNextOfContent: keyset pages of the lists of this file's routes.
func TestFollowingNextOfContent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
		for n := range 30 {
			w.must(t, "admin", "POST", "/api/ai-instructions", fmt.Sprintf(`{"slug": "s%02d", "content": "x"}`, n))
			w.must(t, "admin", "POST", "/api/apps", fmt.Sprintf(`{"type": "report", "name": "n%02d"}`, n%4))
		}
		for _, list := range []string{"/api/ai-instructions?limit=7", "/api/apps?sort=-name", "/api/apps?limit=11"} {
			seen := map[any]bool{}
			for target := list; target != ""; {
				p := read[page](t, w.must(t, "admin", "GET", target, ""))
				is.Equal(p.Total, 30)
				for _, rows := range p.Embedded {
					for _, row := range rows {
						seen[row["id"]] = true
					}
				}
				target = p.next()
			}
			is.Equal(len(seen), 30)
		}
		// the default of apps and assistants
		is.Equal(read[page](t, w.must(t, "admin", "GET", "/api/apps", "")).Count, 20)
		list := read[struct{ Permissions map[string]bool }](
			t, w.must(t, "admin", "GET", "/api/ai-instructions?limit=1", ""),
		)
		is.Equal(list.Permissions, map[string]bool{
			"edit":        true,
			"delete":      true,
			"write":       true,
			"changeOwner": true,
			"copy":        true,
		})
	})
}
