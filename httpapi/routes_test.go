package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// unread is a body that must not be read.
type unread struct{ t testing.TB }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, http.ErrBodyReadAfterClose
}

func (unread) Close() error { return nil }

func TestWithoutCredentials(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		token := read[struct{ ID, Key string }](
			t, s.must(t, "dana", "POST", "/api/tokens", `{"expiresAt": "2026-11-20T21:00:00Z"}`),
		)
		session := s.token(t, "dana")
		s.must(t, "mia", "POST", "/api/logout", "")
		bad := []string{
			"", "Authorization: Bearer",
			"Authorization: Bearer x", "Authorization: Bearer tcs.acme.x", "Authorization: Bearer tcs..",
			"Authorization: Bearer tct.acme.x.y", "Authorization: Bearer " + token.Key + "x",
			"Authorization: Bearer " + token.Key,                                                // expired by then
			"Authorization: Bearer " + session,                                                  // too
			"Authorization: Bearer " + s.sessions["mia"],                                        // ended
			"Authorization: Bearer " + strings.Replace(session, "acme", "evil", 1),              // of another tenant
			"Authorization: Bearer " + strings.Replace(token.Key, "acme", "evil", 1),            // too
			"Authorization: Bearer tct.acme." + token.ID + "." + strings.Split(session, ".")[2], // of another kind
			"Authorization: Bearer tcs.acme." + strings.Split(token.Key, ".")[3],                // too
			"Authorization: Bearer tcs.acme\x00.x", "Authorization: Bearer tcs.ac\xffme.x",
			"Authorization: Basic ZGFuYTpvcGVuIHNlc2FtZQ==", "Authorization: " + session,
			"Cookie: sid=x", "Cookie: sid=",
			"Cookie: sid=" + session,
		}
		s.pass(13 * time.Hour)
		for _, r := range httpapi.Routes() {
			for _, header := range bad {
				if r.Public {
					continue
				}
				target := s.target(r)
				if r.Name == "getAppSharePage" { // its credential is in the query
					target, _, _ = strings.Cut(target, "?")
				}
				req := s.request(t, "", r.Method, target, "", "Content-Type: application/json")
				req.Body = unread{t}
				if name, value, ok := strings.Cut(header, ": "); ok {
					req.Header[name] = []string{value}
				}
				a := s.send(req)
				if a.status != 401 || a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s with %q: %d %s", r.Name, header, a.status, a.body)
					continue
				}
				a.message(t)
			}
		}
	})
}

func TestWithoutPermission(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		for _, r := range httpapi.Routes() {
			if r.Permission == "" {
				continue
			}
			for _, user := range []string{"mia", "nora"} {
				req := s.request(t, user, r.Method, s.target(r), "", "Content-Type: application/json")
				req.Body = unread{t}
				a := s.send(req)
				if a.status != 403 {
					t.Errorf("%s as %s: %d %s", r.Name, user, a.status, a.body)
					continue
				}
				a.message(t)
			}
		}
	})
}

// TestReadOnlyToken: GET and HEAD alone.
func TestReadOnlyToken(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		key := read[struct{ Key string }](t, s.must(t, "admin", "POST", "/api/tokens", `{"readOnly": true}`)).Key
		for _, r := range httpapi.Routes() {
			if r.Public || strings.HasPrefix(r.Pattern, "/api/scim/") {
				continue
			}
			a := s.call(t, "", r, "Authorization: Bearer "+key)
			if reads := r.Method == http.MethodGet; reads != (a.status < 400) || !reads &&
				a.message(t) != "This token can only read." {
				t.Errorf("%s: %d %s", r.Name, a.status, a.body)
			}
		}
	})
}

func TestMethods(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	allowed := map[string][]string{}
	for _, r := range httpapi.Routes() {
		allowed[r.Pattern] = append(allowed[r.Pattern], r.Method)
	}
	for _, r := range httpapi.Routes() {
		methods := allowed[r.Pattern]
		if slices.Contains(methods, "GET") && !slices.Contains(methods, "HEAD") {
			methods = append(methods, "HEAD")
		}
		slices.Sort(methods)
		allowed[r.Pattern] = methods
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "FOO",
		} {
			if slices.Contains(methods, method) {
				continue
			}
			req := s.request(t, "", "GET", s.target(r), "")
			req.Method = method
			a := s.send(req)
			if a.status != 405 || a.header.Get("Allow") != strings.Join(methods, ", ") {
				t.Errorf("%s %s: %d, Allow %q", method, r.Pattern, a.status, a.header.Get("Allow"))
				continue
			}
			a.message(t)
		}
	}
}

func TestPaths(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	for _, r := range httpapi.Routes() {
		path, _, _ := strings.Cut(s.target(r), "?")
		if path == "/" || path == "/api" || path == "/api/" {
			// the root is spelled in two ways, and the page has no segment
			continue
		}
		last := path[strings.LastIndex(path, "/")+1:]
		first := strings.Split(path, "/")[1]
		want := map[string]int{
			path + "/": 404, "/" + path: 404, path + "//": 404, "/." + path: 404, "/x/.." + path: 404,
			strings.Replace(path, "/"+last, "//"+last, 1):   404,
			strings.Replace(path, first, escaped(first), 1): 404, // a literal is spelled one way
			"/" + strings.ReplaceAll(path[1:], "/", "%2F"):  404,
			strings.ToUpper(path):                           404,
			path + "%00":                                    400, path + "%FF": 400, "/%00" + path: 400,
		}
		if strings.Contains(path, "/_hook") { // the key comes first
			for target := range want {
				if strings.HasPrefix(target, path+"/") || strings.Contains(target, "/_hook//") {
					want[target] = 401
				}
			}
		}
		if r.Slashes && strings.Contains(path, "/_server/") { // it is the same route: TestServerRoutesOfPages
			delete(want, path+"/")
		}
		if first == last {
			delete(want, "/%2F")
			want["/"+path[1:]+"%2F"] = 404
			delete(want, path)
		}
		for target, status := range want {
			a := s.do(t, "admin", r.Method, target, "")
			if a.status != status {
				t.Errorf("%s %s: %d %s", r.Method, target, a.status, a.body)
				continue
			}
			a.message(t)
		}
	}
	for _, target := range []string{
		"//", "/api/..", "/api/../api/colors", "/api/colors/../colors", "/api/colors/red/..", "/api//", "/API",
		"/%61pi", "/api/nothing", "/healthz/", "/api/healthz", "/favicon.ico", "/api/colors/red/permissions/x",
	} {
		a := s.do(t, "admin", "GET", target, "")
		is.New(t).Equal(a.message(t), "There is no such route.")
		is.New(t).Equal(a.status, 404)
	}
}

// escaped spells the first letter of a segment as its escape.
func escaped(segment string) string { return fmt.Sprintf("%%%02X%s", segment[0], segment[1:]) }

// TestHead: HEAD is GET without the body, also over a connection.
func TestHead(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	server := httptest.NewServer(s.http)
	defer server.Close()
	for _, r := range httpapi.Routes() {
		if r.Method != http.MethodGet || r.Name == "finishSSO" { // which can be called once a login
			continue
		}
		get := s.call(t, "admin", r)
		req, err := http.NewRequest("HEAD", server.URL+s.target(r), nil)
		is.NoErr(err)
		req.Header.Set("Authorization", "Bearer "+s.token(t, who(r)))
		res, err := http.DefaultTransport.RoundTrip(req)
		is.NoErr(err)
		is.NoErr(res.Body.Close())
		if res.StatusCode != get.status || res.Header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d %v, GET %d", s.target(r), res.StatusCode, res.Header, get.status)
		}
	}
}

func TestRequestID(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	made := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	long := strings.Repeat("a", 128)
	for given, kept := range map[string]bool{
		"abc": true, "A-b_c.d:9": true, long: true, "": false,
		long + "a": false, "a b": false, "a\nb": false, "ä": false,
		"<script>": false, "a\x00": false, "a%0A": false,
	} {
		for _, target := range []string{"/api/session", "/healthz", "/nothing"} {
			r := s.request(t, "", "GET", target, "")
			r.Header["X-Request-Id"] = []string{given}
			got := s.send(r).header.Get("X-Request-Id")
			if kept && got != given || !kept && !made.MatchString(got) {
				t.Errorf("%q became %q", given, got)
			}
		}
	}
}

// TestBadPages: every list names the parameter that is wrong.
func TestBadPages(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		for _, path := range []string{"/api/colors", "/api/tokens", "/api/users",
			"/api/teams", "/api/activities", "/api/notifications", "/api/users/mia/feed",
			"/api/teams/design/comments", "/api/comments/" + s.param["comments"] + "/replies"} {
			for name, values := range map[string][]string{
				"start": {"-1", "x", "1.5", "1e3", "9223372036854775808", "%20", "0x1", "%D9%A1", ""},
				"limit": {"-1", "1001", "x", "1.0", "9223372036854775808", "%20", ""},
				"sort": {
					"x", "-", "--createdAt", "CREATEDAT", "created_at", "createdAt,id", "tenant_id",
					"passwordHash", "%27", "1",
				},
				"cursor": {"x", "e30", "%25", "bnVsbA", "W10", "eyJsIjoiIn0"},
			} {
				for _, v := range values {
					a := s.do(t, "admin", "GET", path+"?"+name+"="+v, "")
					if a.status != 400 || !strings.HasPrefix(a.message(t), name) {
						t.Errorf("%s?%s=%s: %d %s", path, name, v, a.status, a.body)
					}
				}
			}
		}
	})
}
