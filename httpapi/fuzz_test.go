package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// raw sends a request that httptest.NewRequest would refuse to build; sent is false when net/http
// would, too.
func (w *world) raw(t testing.TB, user, method, target, body string) (a answer, sent bool) {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return answer{}, false
	}
	r := httptest.NewRequest(method, "/", strings.NewReader(body)).WithContext(t.Context())
	r.URL, r.RequestURI = u, target
	r.Header = http.Header{"Authorization": {"Bearer " + w.token(t, user)}}
	return w.send(r), true
}

// FuzzColorKey: any text is either refused with 400 or is a key, which a PUT makes, its own link
// finds and a DELETE removes.
func FuzzColorKey(f *testing.F) {
	for _, key := range []string{
		"red", "", " ", ".", "..", "a/b", "brand/primary 100%", "%2F", "%",
		"+", "?", "#", "a?b=c", ":", "owner:slug", ";", "permissions", "é", "e\u0301",
		"😀", "\u2028", "\x00", "\n", "\x7f", "\u0085", "\xff", "\xed\xa0\x80",
		strings.Repeat("é", 255), strings.Repeat("a", 256), "\\", "'", `"`, "<b>", "$1", "?0",
	} {
		f.Add(key)
	}
	w := newWorld(f, dbtest.SQLite)
	f.Fuzz(func(t *testing.T, key string) {
		target := hal.Href("colors", key)
		put, _ := w.raw(t, "dana", "PUT", target, `{"color": "#a1b2c3"}`)
		valid := key != "" && utf8.ValidString(key) && utf8.RuneCountInString(key) <= 255 &&
			!strings.ContainsFunc(key, unicode.IsControl)
		if !valid {
			if put.status != 400 && (key != "" || put.status != 404) { // without a key it is no route
				t.Fatalf("PUT %q: %d %s", key, put.status, put.body)
			}
			return
		}
		c := read[struct {
			Key   string
			Links struct{ Self struct{ Href string } } `json:"_links"`
		}](t, put)
		if put.status != 200 || c.Key != key || c.Links.Self.Href != baseURL+target {
			t.Fatalf("PUT %q: %d %s", key, put.status, put.body)
		}
		got, sent := w.raw(t, "mia", "GET", strings.TrimPrefix(c.Links.Self.Href, baseURL), "")
		if !sent || got.status != 200 || read[struct{ Key string }](t, got).Key != key {
			t.Fatalf("GET %q: %d %s", key, got.status, got.body)
		}
		if gone, _ := w.raw(t, "dana", "DELETE", target, ""); gone.status != 200 || gone.body != "" {
			t.Fatalf("DELETE %q: %d %s", key, gone.status, gone.body)
		}
	})
}

// FuzzDecode: no body makes the decoder panic or answer 500, and none fills a field by another
// spelling of its name.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		"", " ", "{}", "null", "[]",
		`{"color": "#a1b2c3"}`, `{"COLOR": "#a1b2c3"}`,
		`{"color": null}`, `{"color": "#fff", "color": 1}`, `{"colo\u0072": "#fff"}`,
		`{"key": 1, "\u212aey": 2}`, `{"color": "\u0000"}`, `{"color": "\\u0000"}`,
		"{\"color\": \"\xff\"}", `{"displayName": "x", "DisplayName": 1}`, `{"data": {"a": [1e999]}}`,
		`{"globalPermissions": {"AI": true}}`, `{"settings": {"ai": {"enabled": true}}}`, "[[[[",
		`{"a":`, `{"name": "\ud800"}`, `{"passwordExpiresAt": "9999-12-31T23:59:59.999999999Z"}`,
		`{"passwordExpiresAt": "0000-01-01T00:00:00Z"}`,
		`{"passwordExpiresAt": "0000-01-01T00:00:00+23:59"}`, `{"expiresAt": "9999-12-31T23:59:59-23:59"}`,
		`{"passwordExpiresAt": "9999-12-31T23:59:59-23:59"}`,
		`{"passwordExpiresAt": "0001-01-01T00:00:00Z"}`, `{"expiresAt": "2026-11-21T00:00:00+23:59"}`,
		`{"notes": "\ufeff"}`, `{"timezone": "../../etc/passwd"}`, `{"email": "a@b"}`,
	} {
		f.Add(body)
	}
	worlds := []*world{newWorld(f, dbtest.SQLite), newWorld(f, dbtest.Postgres)}
	f.Fuzz(func(t *testing.T, body string) {
		for _, w := range worlds {
			decodeSafely(t, w, body)
		}
	})
}

func decodeSafely(t *testing.T, w *world, body string) {
	for _, route := range [][2]string{
		{"PUT", "/api/colors/x"}, {"PUT", "/api/users/mia"},
		{"PUT", "/api/teams/design"}, {"PUT", "/api/tenant"}, {"POST", "/api/tokens"},
		{"POST", "/api/colors-import"}, {"PUT", "/api/teams/design/members/mia"},
	} {
		a, _ := w.raw(t, "admin", route[0], route[1], body)
		if a.status >= 500 {
			t.Fatalf("%s: %d %s", route[1], a.status, a.body)
		}
		if a.status >= 400 {
			a.message(t)
		}
	}
	named := map[string]json.RawMessage{}
	_ = json.Unmarshal([]byte(body), &named)
	if a, _ := w.raw(t, "dana", "PUT", "/api/colors/x", body); a.status == 200 && named["color"] == nil {
		t.Fatalf("%s made %s", body, a.body)
	}
}

// FuzzPaging: no query makes a 500, and what is a page fits its own numbers.
func FuzzPaging(f *testing.F) {
	w := newWorld(f, dbtest.SQLite)
	w.paint(f, 30)
	next := read[page](f, w.must(f, "admin", "GET", "/api/colors?limit=10&sort=-createdAt", "")).next()
	for _, query := range []string{
		"", next[strings.Index(next, "?")+1:], "start=1&limit=2&sort=-updatedAt&q=c",
		"start=-1", "limit=1001", "limit=0", "start=99999999999999999999",
		"sort=-", "sort=key;drop", "q=%25_%5C", "q=%00", "q=%FF", "cursor=",
		"cursor=e30", "cursor=bnVsbA", "a=%zz", "a;b", "start=1&start=x", "q=%F0%9F%98%80",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{
			"/api/colors", "/api/users", "/api/teams", "/api/tokens", "/api/colors-list", "/api/input-editors",
		} {
			a, sent := w.raw(t, "admin", "GET", path+"?"+query, "")
			switch {
			case !sent || a.status == 200 && strings.HasPrefix(a.body, "["):
			case a.status == 400:
				a.message(t)
			case a.status != 200:
				t.Fatalf("%s?%s: %d %s", path, query, a.status, a.body)
			default:
				if p := read[page](t, a); p.Count > 1000 || p.Start+p.Count > p.Total && p.Count > 0 ||
					p.next() != "" && p.Start+p.Count >= p.Total {
					t.Fatalf("%s?%s: %s", path, query, a.body)
				}
			}
		}
	})
}

// FuzzCursor: a cursor is the client's to change, and nothing it says makes a 500, on either
// database.
func FuzzCursor(f *testing.F) {
	for _, v := range []string{
		"", "x", "2026-11-20T20:31:00.000000Z", "0000-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z",
		"9999-12-31T23:59:59.999999Z", "2026-13-01T00:00:00.000000Z", "\x00", "\xff", "'", "infinity",
	} {
		f.Add("-createdAt", v, "k")
		f.Add("updatedAt", v, v)
		f.Add("", v, v)
	}
	worlds := []*world{newWorld(f, dbtest.SQLite), newWorld(f, dbtest.Postgres)}
	for _, w := range worlds {
		w.must(f, "admin", "PUT", "/api/colors/red", `{"color": "#000"}`)
		w.must(f, "admin", "POST", "/api/tokens", `{}`)
	}
	f.Fuzz(func(t *testing.T, sort, value, key string) {
		for _, w := range worlds {
			for _, path := range []string{"/api/colors", "/api/users", "/api/teams", "/api/tokens"} {
				a, _ := w.raw(t, "admin", "GET", path+"?"+httpapi.CursorQuery(path, sort, value, key), "")
				if a.status != 200 && a.status != 400 {
					t.Fatalf("%s %q %q %q: %d %s", path, sort, value, key, a.status, a.body)
				}
			}
		}
	})
}
