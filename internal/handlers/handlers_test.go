package handlers_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/text/charset"
)

// memory is a handlers.Store in memory. Its embedded Store is nil: no other method is called.
type memory struct {
	handlers.Store
	mu       sync.Mutex
	deployed map[string]handlers.Deployment
	programs map[string][]handlers.Program
	reads    int
}

func (m *memory) Routes(_ context.Context, tenant, app string) ([]handlers.Route, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deployed[tenant+"/"+app].Routes, nil
}

func (m *memory) Sources(_ context.Context, tenant, app string) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deployed[tenant+"/"+app].Sources, nil
}

func (m *memory) Put(_ context.Context, tenant, app string, d handlers.Deployment, added []handlers.Program) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deployed[tenant+"/"+app] = d
	for _, p := range added {
		m.programs[tenant+"/"+p.Hash] = append(m.programs[tenant+"/"+p.Hash], p)
	}
	return nil
}

func (m *memory) Programs(_ context.Context, tenant, hash string) ([]handlers.Program, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	return m.programs[tenant+"/"+hash], nil
}

func (m *memory) Add(_ context.Context, tenant string, p handlers.Program, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.programs[tenant+"/"+p.Hash] = append([]handlers.Program{p}, m.programs[tenant+"/"+p.Hash]...)
	return nil
}

func newStore() *memory {
	return &memory{deployed: map[string]handlers.Deployment{}, programs: map[string][]handlers.Program{}}
}

func newRuntime(t *testing.T) jsvm.Runtime {
	t.Helper()
	rt, err := quickjs.New(quickjs.Options{})
	is.New(t).NoErr(err)
	t.Cleanup(func() { is.New(t).NoErr(rt.Close()) })
	return rt
}

var app = handlers.App{Tenant: "acme", ID: "app"}

func files(all map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range all {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// deployed returns a Service with an app that runs some files.
func deployed(t *testing.T, all map[string]string) (*handlers.Service, *memory) {
	t.Helper()
	store := newStore()
	s := handlers.New(handlers.Options{Store: store, Runtime: newRuntime(t), Decode: charset.Decode})
	install(t, s, all)
	return s, store
}

func install(t *testing.T, s *handlers.Service, all map[string]string) {
	t.Helper()
	b, err := s.Build(t.Context(), app, files(all), true)
	is.New(t).NoErr(err)
	is.New(t).NoErr(s.Install(t.Context(), app, b))
}

const empty = "export const GET = () => 1\n"

// TestConfigNames: the members of a config are those that were checked, not others that differ in
// case.
func TestConfigNames(t *testing.T) {
	is := is.New(t)
	r := handlers.Route{Config: json.RawMessage(`{"roles": ["a"], "Roles": [], "timeout": 5000, "TIMEOUT": 1e300}`)}
	is.Equal(r.Roles(), []string{"a"})
	is.Equal(r.Timeout(), 5*time.Second)
	is.Equal(handlers.Route{Config: json.RawMessage(`{"Timeout": 1}`)}.Timeout(), handlers.DefaultTime)
}

// TestBuildYields: a build holds no place of a limiter while it waits for scripts, which take as
// long as they want to.
func TestBuildYields(t *testing.T) {
	is := is.New(t)
	s := handlers.New(handlers.Options{Store: newStore(), Runtime: newRuntime(t), Decode: charset.Decode})
	yielded := false
	ctx := limiter.WithYield(t.Context(), func() { yielded = true })
	_, err := s.Build(ctx, app, files(map[string]string{"server/index.js": empty}), false)
	is.NoErr(err)
	is.True(yielded)
}

func TestBuildFindsRoutes(t *testing.T) {
	is := is.New(t)
	s := handlers.New(handlers.Options{Store: newStore(), Runtime: newRuntime(t), Decode: charset.Decode})
	b, err := s.Build(t.Context(), app, files(map[string]string{
		"index.html": "x", "lib/money.js": "export const vat = 1.2", "server/index.js": empty,
		"server/orders/[id].js": "import { vat } from '../../lib/money.js'\nexport function PATCH() { return vat " +
			"}\nexport async function DELETE() {}\nexport const GET = () => vat",
		"server/orders/index.js": empty, "server/readme.md": "# no script", "server/util.js": "export const helper = 1",
		"webhooks/stripe/[action].js": "export const config = { timeout: 5000, verify: { preset: 'stripe' }, " +
			"keep: true }\nexport function POST() {}",
		"webhooks/[a]/[b]/index.js": "export function GET() {}\nexport function PUT() {}\nexport const POST = " +
			"'no function'",
		"webhooks/stripe/payment.js": "export default 1\nexport function POST() {}",
		"server/deep/a b/ü.js":       empty,
		"tools/a.js":                 "nothing {{{",
	}), false)
	is.NoErr(err)
	var got []string
	for _, r := range b.Routes {
		got = append(
			got,
			fmt.Sprint(r.Area, " ", r.Path, " ", r.File, " ", strings.Join(r.Methods, ","), " ", string(r.Config)),
		)
	}
	is.Equal(strings.Join(got, "\n"), strings.Join([]string{
		`server / server/index.js GET {}`,
		`server /deep/a b/ü server/deep/a b/ü.js GET {}`,
		`server /orders server/orders/index.js GET {}`,
		`server /orders/:id server/orders/[id].js GET,PATCH,DELETE {}`,
		`webhooks /:a/:b webhooks/[a]/[b]/index.js GET,PUT {}`,
		`webhooks /stripe/:action webhooks/stripe/[action].js POST ` +
			`{"timeout":5000,"verify":{"preset":"stripe"},"keep":true}`,
		`webhooks /stripe/payment webhooks/stripe/payment.js POST {}`,
	}, "\n"))
	is.Equal(b.Warnings, []string{
		"server/util.js exports no function GET, POST, PUT, PATCH or DELETE, so it is no route.",
	})
	is.Equal(b.Routes[0].Timeout(), handlers.DefaultTime)
	is.Equal(b.Routes[5].Timeout(), 5*time.Second)

	b, err = s.Build(t.Context(), app, files(map[string]string{"index.html": "x"}), false)
	is.NoErr(err)
	is.Equal(len(b.Routes), 0)
}

func TestBuildRefuses(t *testing.T) {
	s := handlers.New(handlers.Options{Store: newStore(),
		Runtime: newRuntime(t), Check: func(r handlers.Route) error {
			if strings.Contains(string(r.Config), "wrong") {
				return errs.New(errs.Invalid, "%s:1:1: checked", r.File)
			}
			return nil
		}})
	for want, all := range map[string]map[string]string{
		"webhooks/a.js:2:":            {"webhooks/a.js": "\nexport function POST( {"},
		"lib/b.js:1:":                 {"webhooks/a.js": "import '../lib/b.js'", "lib/b.js": "}"},
		"packages cannot be imported": {"server/a.js": "import x from 'lodash'\n" + empty},
		"is absolute":                 {"server/a.js": "import x from '/lib/x.js'\n" + empty},
		"leaves the folder":           {"server/a.js": "import x from '../../x.js'\n" + empty},
		"server/a.js:1:11: it throws when it is loaded: Error: no.": {
			"server/a.js": "throw new Error('no')\n" + empty,
		},
		"lib/b.js:2:11: there is no global Buffer, which the file uses when it is loaded: handlers have": {
			"server/a.js": "import '../lib/b.js'\n" + empty,
			"lib/b.js":    "\nconst x = Buffer.from('')",
		},
		"server/a.js:1:24: there is no global process, which": {
			"server/a.js": "export class A extends process.X {}\n" + empty,
		},
		"server/a.js:1:1: its config cannot be read: TypeError": {
			"server/a.js": "export const config = { a: 1n }\n" + empty,
		},
		"server/a.js:1:16: Expected \")\" but found \":\". This looks like TypeScript": {
			"server/a.js": "const f = (a, b: number) => a\n" + empty,
		},
		"lib/t.js:2:13: Expected \"from\" but found \"{\". This looks like TypeScript": {
			"server/a.js": "import '../lib/t.js'\n" + empty,
			"lib/t.js":    "\nimport type { X } from './x.js'",
		},
		"server/a.js:2:1: config must be an object": {
			"server/a.js": "\nexport const config = [1]\n" + empty,
		},
		"server/a.js:1:1: config must be an object, such": {
			"server/a.js": "export const config = null\n" + empty,
		},
		"server/a.js:1:1: config.timeout must be a number": {
			"server/a.js": "export const config = { timeout: '5s' }\n" + empty,
		},
		"from 1 to 120000":    {"server/a.js": "export const config = { timeout: 120001 }\n" + empty},
		"config.timeout must": {"server/a.js": "export const config = { timeout: 0 }\n" + empty},
		"config.timeout must be a number of milliseconds from 1": {
			"server/a.js": "export const config = { timeout: null }\n" + empty,
		},
		"config.roles must be an array": {
			"server/a.js": "export const config = { roles: 'admin' }\n" + empty,
		},
		"config.redirects must be an array of hosts": {
			"server/a.js": "export const config = { redirects: ['https://a.example'] }\n" + empty,
		},
		"a.js:1:1: config.redirects must be an array": {
			"server/a.js": "export const config = { redirects: ['*.a.example'] }\n" + empty,
		},
		"server/b.js:1:1: config.redirects must be": {
			"server/b.js": "export const config = { redirects: 'a.example' }\n" + empty,
		},
		"webhooks/a.js:1:1: config.redirects is for server": {
			"webhooks/a.js": "export const config = { redirects: ['a.example'] }\n" + empty,
		},
		"webhooks/a.js:1:1: config.roles is for server routes": {
			"webhooks/a.js": "export const config = { roles: ['a'] }\n" + empty,
		},
		"server/a.js:1:1: its route /a is that of server/a/index.js": {
			"server/a.js":       empty,
			"server/a/index.js": empty,
		},
		"its route /:y is that of server/[x].js":    {"server/[x].js": empty, "server/[y].js": empty},
		"the parameter x is there twice":            {"server/[x]/[x].js": empty},
		"\"[...rest]\" cannot be a part of a route": {"server/[...rest].js": empty},
		"\":id\" cannot be a part of a route":       {"server/:id.js": empty},
		"server/a.js:1:1: checked": {
			"server/a.js": "export const config = { verify: 'wrong' }\n" + empty,
		},
		"BigInt": {
			"server/a.js": "export const config = { a: 1n }\n" + empty,
		},
	} {
		_, err := s.Build(t.Context(), app, files(all), false)
		if errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "~handler") {
			t.Errorf("%v: %v, not %q", all, err, want)
		}
	}
}

func TestMatch(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{
		"server/index.js": empty, "server/a/index.js": empty, "server/a/[x].js": empty,
		"server/a/b.js": "export const POST = () => 1", "server/[y]/c.js": empty, "server/[y]/[z]/d.js": empty,
	})
	match := func(method, path string) string {
		r, params, err := s.Match(t.Context(), app, handlers.Server, method, path)
		if refused := (handlers.NotAllowed{}); errors.As(err, &refused) {
			is.Equal(errs.CodeOf(err), errs.MethodNotAllowed)
			return r.Path + " has " + strings.Join(refused.Methods, ",")
		}
		if err != nil {
			return string(errs.CodeOf(err))
		}
		return fmt.Sprint(r.Path, " ", params)
	}
	for at, want := range map[string]string{
		"GET ": "/ map[]", "GET /": "/ map[]", "HEAD /": "/ map[]",
		"POST /": "/ has GET", "GET /a": "/a map[]", "GET a/": "/a map[]", "GET /A": "not_found",
		"POST /a/b": "/a/b map[]", "GET /a/b": "/a/b has POST",
		"GET /a/x%2Fy%20z": "/a/:x map[x:x/y z]", "GET /a/c": "/a/:x map[x:c]", "GET /b/c": "/:y/c map[y:b]",
		"GET /a/b/d": "/:y/:z/d map[y:a z:b]", "GET /a//b": "not_found", "GET /a/%": "not_found",
		"GET /a/b/e": "not_found", "GET /a/b/c/d": "not_found", "GET //": "not_found",
	} {
		method, path, _ := strings.Cut(at, " ")
		if got := match(method, path); got != want {
			t.Errorf("%s: %s, not %s", at, got, want)
		}
	}
	_, _, err := s.Match(t.Context(), app, handlers.Webhooks, "GET", "/a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.Match(t.Context(), handlers.App{Tenant: "evil", ID: app.ID}, handlers.Server, "GET", "/a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

// run calls the server route /a of an app.
func run(t *testing.T, s *handlers.Service, in handlers.Invocation) handlers.Outcome {
	t.Helper()
	var err error
	in.App = app
	if in.Request.Method == "" {
		in.Request.Method = "GET"
	}
	in.Route, in.Request.Params, err = s.Match(t.Context(), app, handlers.Server, in.Request.Method, "/a")
	is.New(t).NoErr(err)
	out, err := s.Run(t.Context(), in)
	is.New(t).NoErr(err)
	return out
}

func TestContext(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{"server/a.js": `
		export async function POST(c) {
			c.log('hello', 1)
			c.log.warn('careful')
			const { sales } = c.context
			return {
				names: Object.keys(c).sort(), request: c.request, env: c.env, hmac: c.crypto === crypto && btoa ` +
		`=== c.btoa && base64Encode === c.base64Encode,
				html: await c.markdown('x') + await markdown('y'), sum: await c.query('select $1', [2]), ` +
		`fields: await sales.fields(), rows: await sales.rows({ limit: 1 }), count: await sales.count(),
				aliases: Object.keys(c.context), absent: typeof c.fetch + typeof globalThis.fetch + typeof extractText,
			}
		}`})
	echo := func(name string) jsvm.Function {
		return func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
			return json.Marshal(name + string(args))
		}
	}
	out := run(t, s, handlers.Invocation{
		Env: map[string]string{"KEY": "s3cret"}, Datasets: []string{"sales", "__proto__"},
		Functions: map[string]jsvm.Function{"query": echo("q"), "markdown": echo("m"), "dataset": echo("d")},
		Request: handlers.Request{
			Method: "POST", Path: "/a",
			Query:   map[string][]string{"one": {"1"}, "two": {"1", "2"}},
			Headers: handlers.JoinHeaders(map[string][]string{"X-A": {"1", "2"}, "Cookie": {"c"}}, "cookie"),
			Body:    []byte(`{"a": [1, "ü"]}`), ContentType: "application/json", RawBody: true,
			User:  &handlers.User{ID: "jo", Type: "User", Name: "Jo", Username: "jo"},
			Roles: []string{"boss"}, Replay: true,
		},
	})
	is.Equal(out.Result.Outcome, jsvm.OK)
	is.Equal(out.Response.Status, 200)
	is.Equal(out.Response.Headers["content-type"], "application/json; charset=utf-8")
	is.Equal(string(out.Response.Body),
		`{"names":["atob","base64Decode","base64Encode","base64UrlDecode","base64UrlEncode","btoa","context",`+
			`"crypto","env","log","markdown","query","request","respond"],`+
			`"request":{"method":"POST","path":"/a","params":{},"query":{"one":"1","two":["1","2"]},`+
			`"headers":{"x-a":"1, 2"},"body":{"a":[1,"ü"]},"rawBody":"{\"a\": [1, \"ü\"]}","user":{"id":"jo",`+
			`"type":"User",`+
			`"name":"Jo","username":"jo"},"roles":["boss"],"replay":true},`+
			`"env":{"KEY":"s3cret"},"hmac":true,"html":"m[\"x\"]m[\"y\"]","sum":"q[\"select `+
			`$1\",[2]]","fields":"d[\"sales\",\"fields\"]","rows":"d[\"sales\",\"rows\",{\"limit\":1}]",`+
			`"count":"d[\"sales\",\"count\"]",`+
			`"aliases":["sales","__proto__"],"absent":"undefinedundefinedundefined"}`)
	is.Equal(len(out.Result.Logs), 2)
	is.Equal(out.Result.Logs[1].Level+out.Result.Logs[1].Text, "warncareful")
}

func TestBodies(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{
		"server/a.js": `export function POST({ request: { body, rawBody, bodyEncoding, rawBodyEncoding } }) { ` +
			`return { body, rawBody, bodyEncoding, rawBodyEncoding } }`,
	})
	multipart := "--b\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\nü\r\n--b\r\nContent-Disposition: " +
		"form-data; name=\"f\"; filename=\"a.bin\"\r\nContent-Type: image/png\r\n\r\n\xff\x00\r\n--b--\r\n"
	for _, c := range []struct{ contentType, body, want string }{
		{"application/json", "", `{"body":null,"rawBody":""}`},
		{"application/json; charset=utf-8", ` [1]`, `{"body":[1],"rawBody":" [1]"}`},
		{"application/vnd.x+json", `"x"`, `{"body":"x","rawBody":"\"x\""}`},
		{"application/json", "\ufeff{}", `{"body":{},"rawBody":"` + "\ufeff" + `{}"}`},
		{"application/json", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), `{"body":[[[[`},
		// deeper than an engine can parse, sooner or later
		{"application/json", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), `{"body":"[[[[`},
		{"application/json", `{"a":`, `{"body":"{\"a\":","rawBody":"{\"a\":"}`},
		{
			"application/x-www-form-urlencoded", "a=1&b=2&b=3+4",
			`{"body":{"a":"1","b":["2","3 4"]},"rawBody":"a=1&b=2&b=3+4"}`,
		},
		{
			"application/x-www-form-urlencoded", "discount=100%&b=%2&c=%zz%41&d&=e&&f;g=1",
			`{"body":{"":"e","b":"%2","c":"%zzA","d":"","discount":"100%","f;g":"1"},"raw`,
		},
		{"application/x-www-form-urlencoded", strings.Repeat("a&", 1001), `{"body":"a&a&`},
		// The encoding of a form's texts: of _charset_, of the header, UTF-8, of the field charset,
		// and else a guess that bodyEncoding names.
		{
			"application/x-www-form-urlencoded; charset=windows-1252", "n=J%F6rg%80&charset=windows-1252",
			`{"body":{"charset":"windows-1252","n":"Jörg€"},"raw`,
		},
		{
			"application/x-www-form-urlencoded", "n=%80%81", // not all bytes are defined there
			"{\"body\":{\"n\":\"€\u0081\"},\"raw",
		},
		{
			"application/x-www-form-urlencoded", "n=J%F6rg&charset=windows-1252",
			`{"body":{"charset":"windows-1252","n":"Jörg"},"rawBody":"n=J%F6rg&charset=windows-1252"}`,
		},
		{
			"application/x-www-form-urlencoded; charset=utf-8", "n=J%F6rg&charset=ISO-8859-1",
			`{"body":{"charset":"ISO-8859-1","n":"Jörg"},"raw`,
		},
		{
			"application/x-www-form-urlencoded", "n=J%C3%B6rg&charset=windows-1252",
			`{"body":{"charset":"windows-1252","n":"Jörg"},"raw`,
		},
		{
			"application/x-www-form-urlencoded", "_charset_=Shift_JIS&%93%FA=%93%FA%96%7B",
			`{"body":{"_charset_":"Shift_JIS","日":"日本"},"raw`,
		},
		{
			"application/x-www-form-urlencoded", "n=J%F6rg",
			`{"body":{"n":"Jörg"},"rawBody":"n=J%F6rg","bodyEncoding":"windows-1252"}`,
		},
		{
			"application/x-www-form-urlencoded; charset=nonsense", "n=J%F6rg",
			`{"body":{"n":"Jörg"},"rawBody":"n=J%F6rg","bodyEncoding":"windows-1252"}`,
		},
		{
			"application/x-www-form-urlencoded; charset=windows-1252", "n=J\xf6rg",
			`{"body":{"n":"Jörg"},"rawBody":"n=Jörg","rawBodyEncoding":"binary"}`,
		},
		{"text/plain; charset=ISO-8859-1", "J\xf6rg", `{"body":"Jörg","rawBody":"Jörg","rawBodyEncoding":"binary"}`},
		{"text/csv; charset=utf-16le", "a\x00\xe4\x00", `{"body":"aä","rawBody":`},
		{"text/plain; charset=gb18030", "\xc4\xe3\xba\xc3", `{"body":"你好","rawBody":`},
		{
			"text/plain; charset=utf-8", "J\xf6rg",
			`{"body":"SvZyZw==","rawBody":"Jörg","bodyEncoding":"base64","rawBodyEncoding":"binary"}`,
		},
		{
			"text/plain; charset=iso-2022-kr", "J\xf6rg",
			`{"body":"SvZyZw==","rawBody":"Jörg","bodyEncoding":"base64","rawBodyEncoding":"binary"}`,
		},
		{"application/json; charset=iso-8859-1", "\"J\xf6rg\"", `{"body":"Jörg","rawBody":`},
		{"application/json; charset=iso-8859-1", "\"Jörg\"", `{"body":"Jörg","rawBody":`}, // JSON is UTF-8
		{"application/json; charset=utf-16le", "1\x00", `{"body":1,"rawBody":`},
		{
			"multipart/form-data; boundary=b",
			"--b\r\nContent-Disposition: form-data; name=\"t\"\r\nContent-Type: text/plain; " +
				"charset=iso-8859-1\r\n\r\n\xfc\r\n--b\r\nContent-Disposition: form-data; " +
				"name=\"u\"\r\n\r\n\xfc\r\n--b--\r\n",
			`{"body":{"t":"ü","u":"ü"},"rawBody":`,
		},
		{"text/plain", "ü\x00", `{"body":"ü\u0000","rawBody":"ü\u0000"}`},
		{
			"image/png", "\xff\x00",
			`{"body":"/wA=","rawBody":"ÿ\u0000","bodyEncoding":"base64","rawBodyEncoding":"binary"}`,
		},
		{
			"multipart/form-data; boundary=b", multipart,
			`{"body":{"f":{"filename":"a.bin","contentType":"image/png","size":2,"encoding":"base64",` +
				`"content":"/wA="},"t":"ü"},"raw`,
		},
		{"multipart/form-data", "x", `{"body":"x","rawBody":"x"}`},
		{"multipart/form-data; boundary=b", "--b\r\nx", `{"body":"--b\r\nx","rawBody":"--b\r\nx"}`},
		{";;;", "x", `{"body":"x","rawBody":"x"}`},
	} {
		out := run(t, s, handlers.Invocation{
			Request: handlers.Request{Method: "POST", Body: []byte(c.body), ContentType: c.contentType, RawBody: true},
		})
		if !strings.HasPrefix(string(out.Response.Body), c.want) {
			t.Errorf("%s %q: %s", c.contentType, c.body, out.Response.Body)
		}
	}
	out := run(t, s, handlers.Invocation{Request: handlers.Request{Method: "POST", Body: []byte("x")}})
	is.Equal(string(out.Response.Body), `{"body":"x"}`)
}

// TestEncodedBodies: body is what was encoded, rawBody what was sent; what is damaged or too large
// is refused before the handler runs.
func TestEncodedBodies(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{
		"server/a.js": `export function POST({ request: { body, rawBody }, crypto }) { return { body: ` +
			`JSON.stringify(body).slice(0, 20), sum: crypto.hash('sha256', rawBody) } }`,
	})
	compressed := func(coding, plain string) string {
		var b bytes.Buffer
		w := map[string]func() io.WriteCloser{
			"gzip": func() io.WriteCloser {
				return gzip.NewWriter(&b)
			}, "deflate": func() io.WriteCloser { return zlib.NewWriter(&b) },
			"br": func() io.WriteCloser {
				return brotli.NewWriter(&b)
			}, "bare": func() io.WriteCloser { f, _ := flate.NewWriter(&b, 9); return f },
		}[coding]()
		_, _ = io.WriteString(w, plain)
		is.NoErr(w.Close())
		return b.String()
	}
	const plain = `{"a":1}`
	zeros := func(n int) string { return `"` + strings.Repeat("0", n) + `"` }
	for _, c := range []struct {
		coding, body string
		want         errs.Code // "" for the body
	}{
		{"gzip", compressed("gzip", plain), ""}, {"x-gzip", compressed("gzip", plain), ""},
		{"GZIP", compressed("gzip", plain), ""}, {"deflate", compressed("deflate", plain), ""},
		{"deflate", compressed("bare", plain), ""}, {"br", compressed("br", plain), ""},
		{"identity", plain, ""}, {"", plain, ""}, {"utf-8", plain, ""},
		{"gzip, br", compressed("br", compressed("gzip", plain)), ""},
		{"gzip", plain, errs.Invalid}, {"gzip", compressed("gzip", plain)[:20], errs.Invalid},
		{"deflate", plain, errs.Invalid}, {"br", plain + "xxxxxxxx", errs.Invalid},
		{"zstd", plain, errs.Unsupported}, {"gzip, gzip, gzip", plain, errs.Unsupported},
		{"gzip", compressed("gzip", zeros(2<<20)), errs.TooLarge},
		{"br", compressed("br", zeros(64<<20)), errs.TooLarge},
		{"deflate", compressed("deflate", zeros(64<<20)), errs.TooLarge},
		{"gzip, gzip", compressed("gzip", compressed("gzip", zeros(64<<20))), errs.TooLarge},
	} {
		in := handlers.Invocation{App: app, Request: handlers.Request{
			Method: "POST", Body: []byte(c.body),
			ContentType: "application/json", RawBody: true, Headers: map[string]string{"content-encoding": c.coding},
		}}
		var err error
		in.Route, in.Request.Params, err = s.Match(t.Context(), app, handlers.Server, "POST", "/a")
		is.NoErr(err)
		out, err := s.Run(t.Context(), in)
		sum := sha256.Sum256([]byte(c.body))
		if want := `{"body":"{\"a\":1}","sum":"` + hex.EncodeToString(sum[:]) + `"}`; errs.CodeOf(err) != c.want ||
			err == nil && string(out.Response.Body) != want {
			t.Errorf("%s %.20q: %s %v", c.coding, c.body, out.Response.Body, err)
		}
	}
}

// TestBytesAreSigned: what crypto computes of rawBody is computed of the bytes that were sent,
// whether or not they are text.
func TestBytesAreSigned(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t,
		map[string]string{"server/a.js": `export function POST({ request: { rawBody, headers }, crypto }) {
		const own = globalThis.crypto
		return [
			crypto.verifyHmac('sha256', 'k', rawBody, headers.sig), crypto.hmac('sha256', 'k', rawBody) === ` +
			`headers.sig, own.hash('sha256', rawBody) === headers.sum,
			crypto.verifyHmac('sha256', 'k', rawBody + ' ', headers.sig), crypto.hash('sha256', 'é!') === ` +
			`crypto.hash('sha256', base64Decode('w6kh', 'bytes')),
		]
	}`})
	for _, body := range []string{"text", "é", "\xff\x00\xe9", "\xff", strings.Repeat("\xff", 64<<10)} {
		mac, sum := hmac.New(sha256.New, []byte("k")), sha256.Sum256([]byte(body))
		mac.Write([]byte(body))
		out := run(t, s, handlers.Invocation{Request: handlers.Request{
			Method: "POST", Body: []byte(body),
			RawBody: true,
			Headers: map[string]string{"sig": hex.EncodeToString(mac.Sum(nil)), "sum": hex.EncodeToString(sum[:])},
		}})
		is.Equal(string(out.Response.Body), "[true,true,true,false,true]")
	}
}

func TestResponses(t *testing.T) {
	s, _ := deployed(t, map[string]string{
		"server/a.js": `export function POST({ request }) { return eval('(' + request.body + ')') }`,
	})
	for result, want := range map[string]string{
		"undefined": "204 map[] ", "null": "200 json null", "'hi'": `200 json "hi"`,
		"[1]": "200 json [1]", "({status: 'paid'})": `200 json {"status":"paid"}`, "({a: 1})": `200 json {"a":1}`,
		"({status: null})": `200 json {"status":null}`, "({status: '200'})": `200 json {"status":"200"}`,
		"({status: 201})":               "201 map[] ",
		"({status: 200, body: 'ü'})":    "200 map[content-type:text/plain; charset=utf-8] ü",
		"({status: 404, body: {a: 1}})": `404 json {"a":1}`,
		"({status: 200, body: null})":   "200 json null", "({status: 200, body: 5})": "200 json 5",
		"({status: 204, body: 'x', headers: {'content-type': 'a/b'}})":         "204 map[] ",
		"({status: 200, body: '<b>', headers: {'Content-Type': 'text/html'}})": "200 map[content-type:text/html] <b>",
		"({status: 200, body: '/wA=', encoding: 'base64'})": "200 map[content-type:application/" +
			"octet-stream] \xff\x00",
		"({status: 200, body: '/wA', encoding: 'base64'})": "200 map[content-type:application/" +
			"octet-stream] \xff\x00",
		"({status: 302, headers: {Location: '/x', 'X-N': 5, 'x-l': ['a', true]}})": "302 map[location:/x x-l:a, " +
			"true x-n:5] ",
		"({status: 200, headers: {a: null}})": "200 map[] ",
		"({status: 200, headers: {'Set-Cookie': 'a=b', 'Content-Security-Policy': '', 'Transfer-Encoding': 'chunked', 'Access-Control-Allow-Origin': '*', 'x-ok': '1'}})": "200 map[x-ok:1] ",
		"new Uint8Array([255, 0])":                    "200 map[content-type:application/octet-stream] \xff\x00",
		"new Uint8Array([1, 255, 0]).buffer.slice(1)": "200 map[content-type:application/octet-stream] \xff\x00",
		"({status: 200, body: new DataView(new Uint8Array([1, 255, 0]).buffer, 1), headers: {'Content-Type': 'image/png'}})": "200 map[content-type:image/png] \xff\x00",
		"({status: 200, headers: new Map([['X-A', '1']])})":                                                                  "200 map[x-a:1] ",
		"new Response('ü', {status: 201, headers: {'X-A': '1'}})":                                                            "201 map[content-type:text/plain;charset=UTF-8 x-a:1] ü",
		"Response.json([1])":                `200 map[content-type:application/json] [1]`,
		"new Response(null, {status: 204})": "204 map[] ",
		"({status: NaN})":                   "500 thrown NaN", "({status: Infinity})": "500 thrown Infinity",
		"({status: -Infinity, body: 'x'})": "500 thrown -Infinity", "({status: Number(undefined)})": "500 thrown NaN",
		"({status: 100})": "500 thrown whole number", "({status: 199})": "500 thrown whole number",
		"({status: 600})":   "500 thrown whole number",
		"({status: 200.5})": "500 thrown whole number", "({status: -1})": "500 thrown whole number",
		"({status: 200, headers: {'a b': '1'}})":                "500 thrown no name of a header",
		"({status: 200, headers: {'': '1'}})":                   "500 thrown no name of a header",
		"({status: 200, headers: {a: 'x\\r\\nSet-Cookie: y'}})": "500 thrown character",
		"({status: 200, headers: {a: '\\u0100'}})":              "500 thrown character",
		"({status: 200, headers: {a: {}}})":                     "500 thrown must be a string",
		"({status: 200, headers: {a: 1, A: 2}})":                "500 thrown twice",
		"({status: 200, headers: 'x'})":                         "500 thrown must be an object",
		"({status: 200, headers: {a: 'x'.repeat(20000)}})":      "500 thrown 100 headers",
		"({status: 200, body: 'ü', encoding: 'base64'})":        "500 thrown no base64",
		"({status: 200, body: {}, encoding: 'base64'})":         "500 thrown must be a string",
		"({status: 200, body: 'x', encoding: 'gzip'})":          "500 thrown encoding",
		"(() => { throw new Error('secret') })()":               "500 thrown secret",
	} {
		out := run(t, s, handlers.Invocation{Request: handlers.Request{Method: "POST", Body: []byte(result)}})
		got := fmt.Sprintf("%d %v %s", out.Response.Status, out.Response.Headers, out.Response.Body)
		got = strings.Replace(got, "map[content-type:application/json; charset=utf-8]", "json", 1)
		if out.Result.Outcome != jsvm.OK {
			if strings.Contains(string(out.Response.Body), "secret") ||
				!strings.Contains(string(out.Response.Body), `"message":"An internal server error occurred"`) {
				t.Errorf("%s: %s", result, out.Response.Body)
			}
			cause := ""
			for part := range strings.SplitSeq(want, " ") {
				cause = part
			}
			got = fmt.Sprint(out.Response.Status, " ", out.Result.Outcome, " ", out.Result.Error.Message)
			if strings.HasPrefix(want, "500 thrown") && strings.HasPrefix(got, "500 thrown") &&
				strings.Contains(got, cause) {
				continue
			}
		}
		if got != want {
			t.Errorf("%s: %s, not %s", result, got, want)
		}
		if strings.Contains(result, "Set-Cookie': 'a") && (len(out.Result.Logs) != 1 ||
			!strings.HasSuffix(
				out.Result.Logs[0].Text,
				"access-control-allow-origin, content-security-policy, set-cookie, transfer-encoding",
			)) {
			t.Errorf("logs: %v", out.Result.Logs)
		}
	}
}

func TestRespond(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{"server/a.js": `
		export async function GET({ respond, query }) { respond({ status: 202, body: 'soon' }); respond({ ` +
		`status: 400 }); await query(); throw new Error('later') }
		export function POST({ respond, request }) { respond({ status: request.query.n === 'NaN' ? NaN : 999 });` +
		` return 1 }`})
	answered := make(chan handlers.Response, 2)
	waits := func(context.Context, json.RawMessage) (json.RawMessage, error) {
		r := <-answered // the answer is there while the handler runs
		answered <- r
		return nil, nil
	}
	in := handlers.Invocation{Respond: func(r handlers.Response) {
		answered <- r
	}, Functions: map[string]jsvm.Function{"query": waits}}
	out := run(t, s, in)
	is.Equal((<-answered).Status, 202)
	is.True(out.Responded)
	is.Equal(out.Response.Status, 202)
	is.Equal(string(out.Response.Body), "soon")
	is.Equal(out.Result.Outcome, jsvm.Thrown)
	is.Equal(out.Result.Error.Message, "later")

	out = run(t, s, handlers.Invocation{Request: handlers.Request{Method: "POST"}}) // nobody waits
	is.True(out.Responded)
	is.Equal(out.Response.Status, 500)
	is.Equal(out.Result.Outcome, jsvm.Thrown)
}

func TestTimeouts(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{
		"server/a.js": "export const config = { timeout: 50 }\nexport function GET() { for (;;); }\nexport " +
			"function POST() { throw Object.assign(new Error('x'), { name: 'E' }) }",
	})
	out := run(t, s, handlers.Invocation{})
	is.Equal(out.Result.Outcome, jsvm.Timeout)
	is.Equal(out.Response.Status, 504)
	is.Equal(
		string(out.Response.Body),
		`{"statusCode":504,"error":"Gateway Timeout","message":"The app took too long to answer"}`,
	)
	out = run(t, s, handlers.Invocation{Request: handlers.Request{Method: "POST"}})
	is.Equal(out.Response.Status, 500)
	is.True(strings.Contains(out.Result.Error.Stack, "server/a.js:3:"))
}

// stale is a Runtime whose programs other ones cannot run.
type stale struct{ jsvm.Runtime }

func (s stale) Compile(ctx context.Context, src jsvm.Source) (*jsvm.Program, error) {
	p, err := s.Runtime.Compile(ctx, src)
	if err == nil {
		p.Engine = "old"
	}
	return p, err
}

func (s stale) Run(ctx context.Context, p *jsvm.Program, c jsvm.Call) (jsvm.Result, error) {
	here := *p
	here.Engine = strings.Replace(here.Engine, "old", s.engine(), 1)
	return s.Runtime.Run(ctx, &here, c)
}

func (s stale) engine() string {
	p, _ := s.Compile(context.Background(), jsvm.Source{Files: jsvm.Files{"a.js": ""}, Entry: "a.js"})
	q, _ := s.Runtime.Compile(context.Background(), jsvm.Source{Files: jsvm.Files{"a.js": ""}, Entry: "a.js"})
	_ = p
	return q.Engine
}

// TestOtherEngine: what another version has deployed is compiled again, from the sources of then.
func TestOtherEngine(t *testing.T) {
	is := is.New(t)
	rt, store := newRuntime(t), newStore()
	install(t, handlers.New(handlers.Options{
		Store:   store,
		Runtime: stale{rt},
	}), map[string]string{"server/a.js": "import n from '../n.json'\nexport const GET = () => n", "n.json": "5"})
	s := handlers.New(handlers.Options{Store: store, Runtime: rt})
	for range 2 {
		out := run(t, s, handlers.Invocation{})
		is.Equal(string(out.Response.Body), "5")
	}
	is.Equal(store.reads, 1)
	s = handlers.New(handlers.Options{Store: store, Runtime: rt}) // another process finds the new program
	is.Equal(string(run(t, s, handlers.Invocation{}).Response.Body), "5")
	for _, all := range store.programs {
		is.Equal(len(all), 2)
	}
}

// TestOtherModule: what a version with another module for handlers has deployed is compiled again,
// too, and not after another deploy.
func TestOtherModule(t *testing.T) {
	is := is.New(t)
	rt, store := newRuntime(t), newStore()
	install(t, handlers.New(handlers.Options{
		Store:   store,
		Runtime: stale{rt},
	}), map[string]string{"server/a.js": empty})
	d := store.deployed["acme/app"]
	d.Routes[0].Hash = "of then"
	s := handlers.New(handlers.Options{Store: store, Runtime: rt})
	r, _, err := s.Match(t.Context(), app, handlers.Server, "GET", "/a")
	is.NoErr(err)
	call := handlers.Invocation{App: app, Route: r, Request: handlers.Request{Method: "GET"}}
	out, err := s.Run(t.Context(), call)
	is.NoErr(err)
	is.Equal(string(out.Response.Body), "1")
	is.Equal(len(store.programs["acme/of then"]), 1)

	install(t, s, map[string]string{"server/a.js": "export const GET = () => 2"})
	_, err = handlers.New(handlers.Options{Store: store, Runtime: rt}).Run(t.Context(), handlers.Invocation{
		App:     app,
		Route:   handlers.Route{Area: handlers.Server, Path: "/a", File: "server/a.js", Hash: "of long ago"},
		Request: handlers.Request{Method: "GET"},
	})
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func TestDrafts(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	version, all := "1", map[string]string{"server/a.js": empty}
	draft := handlers.App{Tenant: "acme", ID: "draft", Draft: true}
	s := handlers.New(handlers.Options{Store: newStore(),
		Runtime: newRuntime(t), Files: func(context.Context, handlers.App) (fs.FS, string, error) {
			return files(all), version, nil
		}})
	r, _, err := s.Match(ctx, draft, handlers.Server, "GET", "/a")
	is.NoErr(err)
	out, err := s.Run(ctx, handlers.Invocation{App: draft, Route: r, Request: handlers.Request{Method: "GET"}})
	is.NoErr(err)
	is.Equal(string(out.Response.Body), "1")
	version, all = "2", map[string]string{"server/a.js": "export const GET = ("}
	_, err = s.Routes(ctx, draft, handlers.Server)
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.True(strings.HasPrefix(err.Error(), "server/a.js:1:"))
	version, all = "3", map[string]string{"server/b.js": empty}
	routes, err := s.Routes(ctx, draft, handlers.Server)
	is.NoErr(err)
	is.Equal(routes[0].Path, "/b")
}

func TestRespondTakesOneArgument(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{
		"server/a.js": "export function GET({ respond }) { try { respond('x', { status: 202 }) } catch (e) { " +
			"return { status: 200, body: e.message } } }",
	})
	out := run(t, s, handlers.Invocation{})
	is.True(strings.HasPrefix(string(out.Response.Body), "respond takes one argument"))
}
