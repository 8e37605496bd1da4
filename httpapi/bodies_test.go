package httpapi_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// eachBody calls test with every route that reads a JSON body. The samples succeed as often as they
// are sent, or answer 409. Decoding is the same on both databases: it runs on the stricter one.
func eachBody(t *testing.T, test func(t *testing.T, s stock, r httpapi.Route)) {
	eachBodyWith(t, func(*httpapi.Config) {}, test)
}

func eachBodyWith(t *testing.T, change func(*httpapi.Config), test func(t *testing.T, s stock, r httpapi.Route)) {
	dbtest.Server(t)
	s := stocked(t, dbtest.Postgres)
	s.rebuilt(t, change)
	for _, r := range httpapi.Routes() {
		if decodes(r) {
			t.Run(r.Name, func(t *testing.T) { test(t, s, r) })
		}
	}
}

// taken reports whether a sample went through.
func (a answer) taken() bool { return a.status < 300 || a.status == 409 }

func (s stock) sendBody(t *testing.T, r httpapi.Route, body string, headers ...string) answer {
	t.Helper()
	switch r.Name { // of which each call ends the draft, or what waits
	case "commitAppDraft":
		s.must(t, "admin", "POST", "/api/apps/"+s.param["drafted"]+"/_edit", "")
	case "commitAssistantDraft":
		s.must(t, "admin", "POST", "/api/assistants/"+s.param["drafted-assistant"]+"/_edit", "")
	case "confirmAssistantCall":
		waitAgain(t, s.world, s.param["assistants"])
	}
	return s.do(t, who(r), r.Method, s.target(r), body, headers...)
}

// wrong are values of the wrong type for a kind of field.
var wrong = map[string][]string{
	"string":   {`1`, `true`, `[]`, `{}`, `["x"]`, `null`},
	"string?":  {`1`, `true`, `[]`, `{}`},
	"bool":     {`1`, `"true"`, `[]`, `{}`, `null`},
	"bool?":    {`1`, `"true"`, `[]`, `{}`},
	"number":   {`"1"`, `true`, `[]`, `{}`, `1.5`, `null`},
	"time?":    {`1`, `true`, `[]`, `{}`, `"soon"`, `""`, `"2026-11-20"`},
	"object":   {`1`, `true`, `"x"`, `[]`, `null`},
	"object?":  {`1`, `true`, `"x"`, `[]`},
	"array?":   {`1`, `true`, `"x"`, `{}`},
	"strings?": {`1`, `true`, `"x"`, `{}`, `[1]`, `["x", {}]`, `[null, 1]`},
}

func TestWrongTypes(t *testing.T) {
	eachBody(t, func(t *testing.T, s stock, r httpapi.Route) {
		for _, f := range samples[r.Name].fields {
			path, kind, _ := strings.Cut(f, " ")
			for _, value := range wrong[kind] {
				body := merged(t, s.body(r), object(path, value))
				a := s.sendBody(t, r, body)
				want := path + " must be "
				switch {
				case r.Name == "putColor": // says so of all that is no hex
					want = "Invalid color format"
				case r.Options != nil && value == "null":
					want = path + " must not be null"
				}
				if a.status != 400 || !strings.HasPrefix(a.message(t), want) {
					t.Errorf("%s: %d %s", body, a.status, a.body)
				}
			}
		}
	})
}

// TestFoldedNames: encoding/json would take each of these for the field.
func TestFoldedNames(t *testing.T) {
	eachBody(t, func(t *testing.T, s stock, r httpapi.Route) {
		for _, f := range samples[r.Name].fields {
			path, kind, _ := strings.Cut(f, " ")
			for _, folded := range foldings(path) {
				body := merged(t, s.body(r), object(folded, wrong[kind][0]))
				s.sendUnknown(t, r, body, folded, path)
			}
		}
	})
}

// refusal returns how a route refuses a member that it does not know, "" for a route that leaves it
// out.
func refusal(r httpapi.Route) string {
	switch {
	case r.Options != nil:
		return "unknown option "
	case r.Drops:
		return ""
	}
	return "unknown member "
}

// foldings are other spellings of a path's last name.
func foldings(path string) []string {
	at := strings.LastIndex(path, ".") + 1
	name := path[at:]
	var all []string
	for _, other := range []string{
		strings.ToUpper(name),
		string(unicode.ToUpper(rune(name[0]))) + name[1:], strings.ReplaceAll(name, "k", "\u212a"),
		strings.ReplaceAll(name, "s", "\u017f"),
	} {
		if other != name {
			all = append(all, path[:at]+other)
		}
	}
	return all
}

// TestServerOwnedFields: what a body says about these is refused or has no effect, in any row of
// the tenant.
func TestServerOwnedFields(t *testing.T) {
	const value = "2001-01-01T00:00:00Z"
	names := []string{
		"id", "tenant", "createdAt", "updatedAt", "ownerId", "username",
		"key", "user", "userId", "teamId", "naturalId", "passwordHash",
		"secretHash", "password_hash", "passwordSetAt", "lockedAt", "tenant_id", "tenantId",
		"host", "expires", "created", "size", "chunks", "_links", "_embedded",
	}
	eachBody(t, func(t *testing.T, s stock, r httpapi.Route) {
		fields := []string{}
		for _, f := range samples[r.Name].fields {
			fields = append(fields, strings.Fields(f)[0])
		}
		for _, name := range names {
			if slices.Contains(fields, name) {
				continue
			}
			a := s.sendBody(t, r, merged(t, s.body(r), fmt.Sprintf(`{%q: %q}`, name, value)))
			refused := refusal(r) != "" && a.status == 400 && strings.HasPrefix(a.message(t), refusal(r)+name)
			if shown := refusal(r) == "" || r.Method == "PUT"; !refused && !(shown && a.taken()) ||
				strings.Contains(a.body, "2001-01-01") {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
		for _, tenant := range []string{"acme", "evil"} {
			if strings.Contains(s.dump(t, tenant), "2001-01-01") {
				t.Error("it is in the database")
			}
		}
	})
}

func TestMalformedBodies(t *testing.T) {
	const notJSON, notObject = "The body is not valid JSON.", "The body must be a JSON object."
	eachBody(t, func(t *testing.T, s stock, r httpapi.Route) {
		name := strings.Fields(samples[r.Name].fields[0])[0]
		for body, message := range map[string]string{
			`{`: notJSON, `{"a":}`: notJSON, `{} x`: notJSON,
			`{}{}`: notJSON, `{'a': 1}`: notJSON, `{"a": 01}`: notJSON, "{\"a\": \"\n\"}": notJSON,
			`{"a": NaN}`: notJSON, `{"a": "\ud800x`: notJSON, "\xef\xbb\xbf\xef\xbb\xbf{}": notJSON,
			" \xef\xbb\xbf{}": notJSON, "{\"a\": \"\x00\"}": notJSON, "\x00": notJSON,
			strings.Repeat("[", 20_000): notJSON, strings.Repeat(`{"a":`, 20_000): notJSON,
			`{"a": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`: notJSON,
			`[]`: notObject, `[{}]`: notObject, `"x"`: notObject, `null`: notObject, `7`: notObject, `true`: notObject,
			`{"` + name + `": "a\u0000b"}`: "The body must not have NUL characters or halves of surrogate pairs.",
			`{"a\u0000": 1}`:               "The body must not have NUL characters or halves of surrogate pairs.",
			`{"a": "\\\u0000"}`:            "The body must not have NUL characters or halves of surrogate pairs.",
			"{\"a\": \"\xff\"}":            "The body must be UTF-8.",
			"{\"a\": \"\xed\xa0\x80\"}":    "The body must be UTF-8.",
		} {
			if r.Name == "putColor" && message == notObject {
				message = "Invalid color format"
			}
			a := s.sendBody(t, r, body)
			if a.status != 400 || a.message(t) != message {
				t.Errorf("%.60q: %d %s", body, a.status, a.body)
			}
		}
		if a := s.sendBody(t, r, merged(t, s.body(r), `{"nothing": "\\u0000"}`)); a.taken() != (refusal(r) == "") {
			// a backslash and u0000
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := s.sendBody(t, r, "\xef\xbb\xbf"+s.body(r)); !a.taken() {
			t.Errorf("with a byte order mark: %d %s", a.status, a.body)
		}
	})
}

func TestContentTypes(t *testing.T) {
	eachBody(t, func(t *testing.T, s stock, r httpapi.Route) {
		for kind, fits := range map[string]bool{
			"application/json": true, "application/json; charset=utf-8": true, "APPLICATION/JSON;charset=UTF-8": true,
			"application/hal+json": true, "application/problem+json; charset=utf-8": true,
			"text/plain": false, "text/json": false,
			"multipart/form-data; boundary=x": false, "application/octet-stream": false,
			"application/jsonp": false, "application/xml": false,
			"nonsense": false, "application/json; charset": false, "*/*": false,
			"application/x-www-form-urlencoded": r.Name == "login",
		} {
			body := s.body(r)
			if strings.HasSuffix(kind, "urlencoded") {
				body = "username=dana&password=open+sesame&tenant=acme"
			}
			a := s.sendBody(t, r, body, "Content-Type: "+kind)
			if fits && !a.taken() || !fits && a.status != 415 {
				t.Errorf("%s: %d %s", kind, a.status, a.body)
			}
			if !fits {
				a.message(t)
			}
		}
	})
}

func TestBodySize(t *testing.T) {
	const most = 64 << 10
	eachBodyWith(t, func(c *httpapi.Config) { c.MaxBody = most }, func(t *testing.T, s stock, r httpapi.Route) {
		body := s.body(r)
		if a := s.sendBody(t, r, body+strings.Repeat(" ", most-len(body))); !a.taken() {
			t.Errorf("%d bytes: %d %s", most, a.status, a.body)
		}
		a := s.sendBody(t, r, body+strings.Repeat(" ", most-len(body)+1))
		if a.status != 413 || a.message(t) != "The body must have at most 65536 bytes." {
			t.Errorf("%d bytes: %d %s", most+1, a.status, a.body)
		}
	})
}

// TestCommits: what a transactional route did is gone when its commit fails, and the answer is no
// success.
func TestCommits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		whole := s.http
		s.rebuilt(t, func(c *httpapi.Config) {
			inTx := c.InTx
			c.InTx = func(ctx context.Context, fn func(context.Context) error) error {
				return inTx(ctx, func(ctx context.Context) error {
					if err := fn(ctx); err != nil {
						return err
					}
					return errs.New(errs.Unavailable, "The commit fails.")
				})
			}
		})
		failing := s.http
		s.token(t, "admin")
		before := s.dump(t, "acme")
		for _, r := range httpapi.Routes() {
			if r.Writes != httpapi.InTx {
				continue // one statement: there is no commit to fail alone
			}
			s.http = failing
			if a := s.call(t, "admin", r); a.status != 503 || a.message(t) != "The commit fails." ||
				a.header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %d %s", r.Name, a.status, a.body)
			}
			if s.dump(t, "acme") != before {
				t.Errorf("%s left something", r.Name)
			}
			s.http = whole
			a, was := s.call(t, "admin", r), before
			if before = s.dump(t, "acme"); a.status >= 300 || before == was {
				t.Errorf("%s writes nothing: %d %s", r.Name, a.status, a.body)
			}
		}
	})
}

// TestTransactionalRoutes: every route that writes runs in one transaction, and none that reads
// does.
func TestTransactionalRoutes(t *testing.T) {
	outside := []string{
		"testDomain", "testNewDomain", // they write nothing
		"migrateApp", // another database
		// what the handler does, each call of it by itself
		"postToAppServer", "putToAppServer", "patchAtAppServer", "deleteAtAppServer",
		"replayAppInvocation", "postWebhookRoot", "postWebhook", "putWebhookRoot", "putWebhook",
		// they read
		"exportColors", "exportBundle", "exportEntries",
		"exportApp", "compareApp", "searchSCIMUsers", "searchSCIMGroups",
		// so do they, and a model takes its time
		"chatWithApp", "suggestAppIcon", "modernizeAppManifest", "chatWithAssistant", "makeAssistantImage",
		// the bytes arrive before the transaction, which their service begins
		"createUpload", "putAvatar", "putLibraryFile", "putAppFile", "putAssistantFile",
		// a directory is asked before the transaction, which the service begins
		"putUser",
		// a provider is asked before the transaction, which the service begins
		"putDomain",
		// a key is made before it
		"rollDomainKeys",
		// their service writes step by step: a failed attempt is counted
		"login", "finishSAML", "receiveLogout", "singleLogoutByForm", "logout", "putPassword",
	}
	for _, r := range httpapi.Routes() {
		if want := r.Method != "GET" && !slices.Contains(outside, r.Name); (r.Writes != httpapi.Unbound) != want {
			t.Errorf("%s %s: writes %v", r.Method, r.Name, r.Writes)
		}
	}
}

// TestSlowSender: a sender who stands still in the middle of a body keeps nobody else from writing.
func TestSlowSender(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open)
		server := httptest.NewServer(s.http)
		defer server.Close()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		is.NoErr(err)
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(
			conn,
			"PUT /api/users/mia HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{",
			s.token(t, "mia"),
		)
		is.NoErr(err)
		time.Sleep(50 * time.Millisecond) // it is being read by now
		start := time.Now()
		s.must(t, "dana", "PUT", "/api/colors/red", `{"color": "#00ff00"}`)
		is.True(time.Since(start) < 10*time.Second) // not the 30 s until the sender is given up
	})
}
