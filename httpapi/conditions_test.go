package httpapi_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

var strong = regexp.MustCompile(`^"([A-Za-z0-9_-]{16}\.)?[A-Za-z0-9_-]{12}"$`)

// single reports whether a route is the GET of one resource.
func single(r httpapi.Route) bool {
	return r.Method == http.MethodGet && !r.AnyType && !strings.HasPrefix(r.Name, "list")
}

// isFile reports whether a route is the GET of a file.
func isFile(r httpapi.Route) bool {
	return slices.Contains([]string{
		"getAvatar", "getLibraryFile", "getAppFile", "getAssistantFile", "getAppViewFile", "getDownloadContent",
	}, r.Name)
}

// TestFileTags: the tag of a file changes with its bytes, whatever the clock says, and conditions
// and ranges follow it.
func TestFileTags(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		for _, r := range httpapi.Routes() {
			if !isFile(r) {
				continue
			}
			target := s.target(r)
			whole := s.must(t, "admin", "GET", target, "")
			tag := whole.header.Get("ETag")
			if !regexp.MustCompile(`^"[A-Za-z0-9_-]{16}"$`).MatchString(tag) ||
				whole.header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%s: %v", r.Name, whole.header)
			}
			for _, c := range []struct {
				headers []string
				status  int
				body    string
			}{
				{[]string{"If-None-Match: " + tag}, 304, ""},
				{[]string{"If-None-Match: W/" + tag}, 304, ""},
				{[]string{`If-None-Match: "x"`}, 200, whole.body},
				{[]string{"If-Match: " + tag}, 200, whole.body},
				{[]string{`If-Match: "x"`}, 412, ""},
				{[]string{"Range: bytes=0-0", "If-Range: " + tag}, 206, whole.body[:1]},
				{[]string{"Range: bytes=0-0", `If-Range: "x"`}, 200, whole.body},
				{[]string{"Range: bytes=0-0", "If-Range: W/" + tag}, 200, whole.body},
				{[]string{"Range: bytes=999999999-"}, 416, ""},
			} {
				a := s.do(t, "admin", "GET", target, "", c.headers...)
				if a.status != c.status || c.body != "" && a.body != c.body {
					t.Errorf("%s with %q: %d %q", r.Name, c.headers, a.status, a.body)
				}
				if bad := a.status >= 400; bad != (a.header.Get("ETag") == "") ||
					bad != (a.header.Get("Cache-Control") == "no-store") {
					t.Errorf("%s with %q: %v", r.Name, c.headers, a.header)
				}
			}
			if r.Name == "getDownloadContent" || r.Name == "getAppViewFile" { // which nobody writes there
				continue
			}
			for _, headers := range [][]string{
				{`If-Match: "x"`}, {"If-None-Match: *"}, {"If-None-Match: " + tag}, {"If-Match: W/" + tag},
			} {
				for method, body := range map[string]string{"PUT": gif + "2", "DELETE": ""} {
					if a := s.do(t, "admin", method, target, body, append(
						headers, "Content-Type: application/octet-stream",
					)...); a.status != 412 {
						t.Errorf("%s %s with %q: %d %s", method, target, headers, a.status, a.body)
					}
				}
			}
			if now := s.must(t, "admin", "GET", target, ""); now.body != whole.body || now.header.Get("ETag") != tag {
				t.Errorf("%s was written though the condition does not hold", target)
			}
			put := s.must(
				t, "admin", "PUT", target, gif+"2", "If-Match: "+tag, "Content-Type: application/octet-stream",
			)
			now := s.must(t, "admin", "GET", target, "", "If-None-Match: "+tag)
			if now.body != gif+"2" || now.header.Get("ETag") == tag ||
				put.header.Get("ETag") != now.header.Get("ETag") {
				t.Errorf("%s: PUT answers the tag %s, and GET %v", target, put.header.Get("ETag"), now.header)
			}
			s.must(t, "admin", "DELETE", target, "", "If-Match: "+now.header.Get("ETag"))
			if a := s.do(
				t, "admin", "PUT", target, gif, "If-Match: *", "Content-Type: application/octet-stream",
			); a.status != 412 {
				t.Errorf("PUT %s where nothing is: %d %s", target, a.status, a.body)
			}
			if a := s.do(t, "admin", "GET", target, ""); a.status != 404 {
				t.Errorf("%s: %d", target, a.status)
			}
			s.must(t, "admin", "PUT", target, gif, "If-None-Match: *", "Content-Type: application/octet-stream")
		}
	})
}

// TestCreatedTags: an answer with 201 has the tag that a GET of what was made has, unless it shows
// a secret once.
func TestCreatedTags(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		n := 0
		for _, r := range httpapi.Routes() {
			if r.Method != http.MethodPost {
				continue
			}
			a := s.call(t, who(r), r)
			if got := a.header.Get("Cache-Control"); !strings.HasPrefix(got, "no-store") {
				t.Errorf("%s: Cache-Control %q", r.Name, got)
			}
			if a.status != 201 {
				continue
			}
			n++
			made := s.must(t, who(r), "GET", strings.TrimPrefix(a.header.Get("Location"), baseURL), "")
			if tag := a.header.Get("ETag"); r.Secret != (tag == "") || !r.Secret && tag != made.header.Get("ETag") {
				t.Errorf(
					"%s answers the tag %s, and GET has %s:\n%s\n%s", r.Name, tag, made.header.Get("ETag"),
					a.body, made.body,
				)
			}
		}
		if n < 10 {
			t.Errorf("%d routes", n)
		}
	})
}

// TestTags: each single resource has a strong entity tag, and is not sent to who has it already.
func TestTags(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		for _, r := range httpapi.Routes() {
			if !single(r) {
				a := s.call(t, who(r), r)
				file := isFile(r) || strings.HasPrefix(r.Name, "getOpenAPI")
				if r.Method == http.MethodGet && !file && !strings.HasPrefix(r.Pattern, "/api/scim/") &&
					(a.header.Get("ETag") != "" ||
						a.header.Get("Cache-Control") != "no-store") {
					t.Errorf("%s: %v", r.Name, a.header)
				}
				continue
			}
			whole := s.call(t, who(r), r)
			tag, cached := whole.header.Get("ETag"), "private, no-cache"
			if r.Secret {
				cached = "no-store"
			}
			if !strong.MatchString(tag) {
				t.Errorf("%s: ETag %q", r.Name, tag)
			}
			for given, status := range map[string]int{
				tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304,
				`"x"`: 200, `W/"x"`: 200, strings.ToUpper(tag): 200, `"` + tag[1:len(tag)-2] + `"`: 200,
				tag[1:]: 400, `"x" "y"`: 400, "": 400, "x": 400,
				`*, "x"`: 400, `"a b"`: 400, `w/"x"`: 400, `"`: 400, ",": 400,
			} {
				a := s.call(t, who(r), r, "If-None-Match: "+given)
				if got := a.header.Get("Cache-Control"); status != 400 && got != cached || status == 400 &&
					(got != "no-store" || a.header.Get("ETag") != "") {
					t.Errorf("%s with If-None-Match: %s: %v", r.Name, given, a.header)
				}
				if a.status != status || status == 304 && (a.body != "" || a.header.Get("ETag") != tag ||
					a.header.Get("Content-Type") != "") ||
					status == 200 && (a.body != whole.body || a.header.Get("ETag") != tag) || status == 400 &&
					!strings.Contains(a.message(t), "If-None-Match") {
					t.Errorf("%s with If-None-Match: %s: %d %v %s", r.Name, given, a.status, a.header, a.body)
				}
			}
		}
	})
}

// TestConditionalWrites: each write to a resource with a tag obeys If-Match and If-None-Match, and
// a PUT answers with the tag that a GET has afterwards.
func TestConditionalWrites(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		gets := map[string]bool{}
		for _, r := range httpapi.Routes() {
			if single(r) {
				gets[r.Pattern] = true
			}
		}
		n := 0
		for _, r := range httpapi.Routes() {
			if r.Method != http.MethodPut && r.Method != http.MethodDelete || !gets[r.Pattern] {
				continue
			}
			n++
			if r.Row == "" {
				t.Errorf("%s names no row", r.Name)
				continue
			}
			user, target := who(r), s.target(r)
			was := s.do(t, user, "GET", target, "")
			if was.status == 404 { // a PUT that creates
				s.call(t, user, r)
				was = s.do(t, user, "GET", target, "")
			}
			before := s.dump(t, "acme")
			tag := was.header.Get("ETag")
			for _, header := range []string{
				`If-Match: "x"`, "If-Match: W/" + tag, `If-Match: "x", "y"`,
				"If-None-Match: *", "If-None-Match: " + tag, "If-None-Match: W/" + tag,
			} {
				a := s.call(t, user, r, header)
				if a.status != 412 || !strings.Contains(a.message(t), "If-Match") {
					t.Errorf("%s with %s: %d %s", r.Name, header, a.status, a.body)
				}
			}
			if a := s.call(t, user, r, "If-Match: x"); a.status != 400 || !strings.Contains(a.message(t), "If-Match") {
				t.Errorf("%s with a malformed header: %d %s", r.Name, a.status, a.body)
			}
			if s.dump(t, "acme") != before {
				t.Errorf("%s wrote though its condition does not hold", r.Name)
			}
			// A caller who sees something else beside the row has the same version.
			other := strings.Split(tag, ".")[0] + `.other"`
			if a := s.call(t, user, r, `If-Match: "x", `+other, `If-None-Match: "x"`); a.status >= 300 {
				t.Errorf("%s with its tag: %d %s", r.Name, a.status, a.body)
			} else if r.Method == http.MethodPut {
				if now := s.do(t, user, "GET", target, "").header.Get("ETag"); now != a.header.Get("ETag") {
					t.Errorf("%s answers the tag %s, and GET has %s", r.Name, a.header.Get("ETag"), now)
				}
			}
		}
		if n < 20 {
			t.Errorf("%d routes", n)
		}
	})
}

// TestVersions: every change of a row has another version, also when the clock stands still; what
// is beside the row changes the second part of the tag alone.
func TestVersions(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	tag := func(user, target string) [2]string {
		parts := strings.Split(s.must(t, user, "GET", target, "").header.Get("ETag"), ".")
		return [2]string{parts[0], parts[1]}
	}
	report := read[struct{ ID string }](t, s.must(t, "dana", "POST", "/api/reports", `{"name": "R"}`)).ID
	seen := map[string]bool{}
	for i := range 5 {
		s.must(t, "dana", "PUT", "/api/reports/"+report, fmt.Sprintf(`{"data": {"n": %d}}`, i))
		version := tag("dana", "/api/reports/"+report)[0]
		is.True(!seen[version])
		seen[version] = true
	}
	owner, reader := tag("dana", "/api/reports/"+report), tag("mia", "/api/reports/"+report)
	is.Equal(owner[0], reader[0])
	is.True(owner[1] != reader[1]) // their permissions differ
	before := tag("admin", "/api/users/mia")
	s.do(t, "", "POST", "/api/login/local", `{"username": "mia", "password": "wrong", "tenant": "acme"}`)
	after := tag("admin", "/api/users/mia")
	is.Equal(before[0], after[0])
	is.True(before[1] != after[1]) // loginAttempts
}

// TestVersionOfUserStays: reading the feed and a new picture change the second part of a user's tag
// alone, so that the edit of an admin who has read the user before goes on.
func TestVersionOfUserStays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open)
		const mia = "/api/users/mia"
		first := w.must(t, "admin", "GET", mia, "")
		tag, version := first.header.Get("ETag"), func(tag string) string { return strings.Split(tag, ".")[0] }
		for _, change := range []struct{ method, target, body string }{
			{"PUT", mia + "/viewed-feed", ""}, {"PUT", mia + "/avatar", gif},
			{"PUT", mia + "/avatar", gif + "2"}, {"DELETE", mia + "/avatar", ""},
		} {
			w.pass(time.Minute)
			was := w.must(t, "admin", "GET", mia, "")
			w.must(t, "mia", change.method, change.target, change.body)
			now := w.must(t, "admin", "GET", mia, "")
			// the second part follows what is shown
			is.Equal(now.header.Get("ETag") == was.header.Get("ETag"), now.body == was.body)
			is.Equal(version(now.header.Get("ETag")), version(tag))
			is.Equal(read[map[string]any](t, now)["updatedAt"], read[map[string]any](t, first)["updatedAt"])
		}
		edited := w.must(t, "admin", "PUT", mia, `{"displayName": "Q"}`, "If-Match: "+tag)
		is.True(version(edited.header.Get("ETag")) != version(tag))
		is.Equal(w.do(t, "admin", "PUT", mia, `{"displayName": "R"}`, "If-Match: "+tag).status, 412)
	})
}

// TestOneWriterWins: of writers with the same tag at once, one wins.
func TestOneWriterWins(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open)
		post := func(target, body string) string {
			return target + "/" + read[struct{ ID string }](t, s.must(t, "admin", "POST", target, body)).ID
		}
		s.token(t, "admin")
		for _, c := range []struct{ method, target, body, condition string }{
			{"PUT", "/api/colors/red", `{"color": "#%06d"}`, ""},
			{"PUT", "/api/colors/new", `{"color": "#%06d"}`, "If-None-Match: *"},
			{"PUT", "/api/teams/" + teamID + "/members/nora", `{"role": "member"}`, "If-None-Match: *"},
			{"PUT", post("/api/reports", `{"name": "R"}`), `{"name": "R%d"}`, ""},
			{"PUT", post("/api/bundles", `{"name": "B"}`), `{"name": "B%d"}`, ""},
			{"PUT", "/api/users/mia", `{"displayName": "M%d"}`, ""},
			{"DELETE", "/api/colors/red", "", ""},
			{"DELETE", post("/api/bundles", `{"name": "C"}`), "", ""},
		} {
			condition := c.condition
			if condition == "" {
				condition = "If-Match: " + s.must(t, "admin", "GET", c.target, "").header.Get("ETag")
			}
			var mu sync.Mutex
			var wg sync.WaitGroup
			got := map[int]int{}
			for i := range 20 {
				body := strings.ReplaceAll(
					strings.ReplaceAll(c.body, "%06d", fmt.Sprintf("%06d", i)), "%d", fmt.Sprint(i),
				)
				r := s.request(t, "admin", c.method, c.target, body, condition)
				wg.Go(func() {
					a := s.send(r)
					mu.Lock()
					defer mu.Unlock()
					got[a.status]++
				})
			}
			wg.Wait()
			is.Equal(got[200], 1)                                             // the winner
			is.True(got[412] == 19 || c.method == "DELETE" && got[404] == 19) // deleted by then
		}
	})
}

// TestConditionsComeAfterRights: who may not write learns nothing of the row, and what does not
// exist does not come to be.
func TestConditionsComeAfterRights(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		report := "/api/reports/" + read[struct{ ID string }](
			t, s.must(t, "dana", "POST", "/api/reports", `{"name": "R"}`),
		).ID
		for _, c := range []struct {
			user, method, target, body, condition string
			status                                int
		}{
			{"mia", "PUT", "/api/colors/red", `{"color": "#fff"}`, `If-Match: "x"`, 403},
			{"mia", "PUT", report, `{"name": "S"}`, `If-Match: "x"`, 403},
			{"mia", "DELETE", report, "", `If-Match: "x"`, 403},
			{"eve", "PUT", report, `{"name": "S"}`, "If-Match: *", 404},
			{"admin", "PUT", "/api/reports/" + id(99999), `{"name": "S"}`, "If-Match: *", 404},
			{"admin", "PUT", "/api/colors/missing", `{"color": "#fff"}`, "If-Match: *", 412},
			{"admin", "PUT", "/api/colors/missing", `{"color": "#fff"}`, `If-Match: "x"`, 412},
			{"admin", "DELETE", "/api/colors/missing", "", "If-Match: *", 412},
			{"admin", "DELETE", "/api/colors/missing", "", "If-None-Match: *", 200},
			{"admin", "PUT", "/api/teams/" + teamID + "/members/nora", `{"role": "member"}`, "If-Match: *", 412},
			{"admin", "PUT", "/api/colors/missing", `{"color": "ruby"}`, "If-Match: *", 400},
			{"admin", "GET", "/api/colors/missing", "", "If-None-Match: *", 404},
			{"", "PUT", "/api/colors/red", `{"color": "#fff"}`, "If-Match: x", 401},
			{"admin", "PUT", "/api/users/mia/password", `{"password": "long enough"}`, `If-Match: "x"`, 412},
			{
				"admin", "PUT", "/api/bundles/" + s.param["bundles"] + "/entries/" + s.param["entries"], `{}`,
				`If-Match: "x"`, 412,
			},
			{
				"admin", "PUT", "/api/bundles/" + s.param["bundles"] + "/entries/" + s.param["entries"], `{}`,
				"If-Match: *", 200,
			},
			{"admin", "GET", "/api/colors/missing", "", "", 404}, // none of these made it
			{"admin", "PUT", "/api/colors/missing", `{"color": "#fff"}`, "If-None-Match: *", 200},
		} {
			var headers []string
			if c.condition != "" {
				headers = append(headers, c.condition)
			}
			if a := s.do(t, c.user, c.method, c.target, c.body, headers...); a.status != c.status {
				t.Errorf("%s %s as %q with %s: %d %s", c.method, c.target, c.user, c.condition, a.status, a.body)
			}
		}
	})
}
