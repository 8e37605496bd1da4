package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"reflect"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// isAction reports whether a route replaces, imports, deploys, scans, reassigns, exports or
// deletes. The parameters of an app's own routes are its own, and so is what its agents are started
// with.
func isAction(r httpapi.Route) bool {
	return r.Method == "DELETE" && r.Name != "deleteAtAppServer" || strings.Contains(r.Pattern, "/_") &&
		!strings.Contains(r.Pattern, "/_hook") && !strings.HasSuffix(r.Pattern, "/_chat") &&
		!strings.HasSuffix(r.Pattern, "/_trigger") || strings.HasPrefix(r.Pattern, "/api/colors-") && r.Method == "POST"
}

func TestActionRoutesDeclareOptions(t *testing.T) {
	for _, r := range httpapi.Routes() {
		// SCIM has parameters of its own.
		if isAction(r) && !strings.HasPrefix(r.Pattern, "/api/scim/") != (r.Options != nil) {
			t.Errorf("%s: Options %v", r.Name, r.Options)
		}
	}
}

// optionNames are the names of an action route's options, by their kind in the table of samples.
func optionNames(v reflect.Type) (names []string) {
	for i := range v.NumField() {
		if f := v.Field(i); f.Anonymous {
			names = append(names, optionNames(f.Type)...)
		} else {
			names = append(names, f.Tag.Get("json"))
		}
	}
	return names
}

// formOf is a form of fields in their order, "name=value" each, and its content type. The file is
// the field file.
func formOf(t testing.TB, fields ...string) (body, kind string) {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		create := w.CreateFormField
		if name == "file" {
			create = func(name string) (io.Writer, error) { return w.CreateFormFile(name, "a.tgz") }
		}
		part, err := create(name)
		is.NoErr(err)
		_, err = part.Write([]byte(value))
		is.NoErr(err)
	}
	is.NoErr(w.Close())
	return b.String(), w.FormDataContentType()
}

// withQuery adds a query to a target.
func withQuery(target, query string) string {
	if strings.Contains(target, "?") {
		return target + "&" + query
	}
	return target + "?" + query
}

// TestUnknownOptions: an action route refuses an option that it does not know wherever that stands,
// and does nothing.
func TestUnknownOptions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		s.token(t, "admin")
		before := s.dump(t, "acme")
		refused := func(r httpapi.Route, where, option string, a answer) {
			t.Helper()
			if a.status != 400 || !strings.HasPrefix(a.message(t), "unknown option "+option+": ") {
				t.Errorf("%s, %s in the %s: %d %s", r.Name, option, where, a.status, a.body)
			}
		}
		for _, r := range httpapi.Routes() {
			if r.Options == nil {
				continue
			}
			body := s.body(r)
			for _, option := range []string{"dryrun", "nonsense", "DRYRUN", "Force"} {
				refused(r, "query", option, s.do(t, "admin", r.Method, withQuery(s.target(r), option+"=true"), body))
				if !r.File || r.Name == "restoreFile" {
					object := body
					if object == "" {
						object = "{}"
					}
					refused(
						r, "body", option,
						s.do(t, "admin", r.Method, s.target(r), merged(t, object, `{"`+option+`": true}`)),
					)
				}
				if r.File {
					form, kind := formOf(t, option+"=true", "file="+s.param["archive"])
					refused(r, "form", option, s.do(t, "admin", r.Method, s.target(r), form, "Content-Type: "+kind))
				}
			}
			for _, option := range optionNames(reflect.TypeOf(r.Options)) { // bare texts and JSON at once
				a := s.do(
					t, "admin", r.Method,
					withQuery(s.target(r), fmt.Sprintf("%s=[\"1\"]&%[1]s=[\"2\"]", option)), body,
				)
				if a.status != 400 || !strings.HasPrefix(a.message(t), option) {
					t.Errorf("%s, %s twice: %d %s", r.Name, option, a.status, a.body)
				}
			}
		}
		if s.dump(t, "acme") != before {
			t.Error("something was done")
		}
	})
}

// TestNullOptions: null is no value of an option: it is refused, and nothing is done.
func TestNullOptions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		s.token(t, "admin")
		before, tried := s.dump(t, "acme"), 0
		for _, r := range httpapi.Routes() {
			if r.Options == nil || r.File && r.Name != "restoreFile" {
				continue
			}
			body := s.body(r)
			if body == "" {
				body = "{}"
			}
			for _, option := range optionNames(reflect.TypeOf(r.Options)) {
				target := s.target(r)
				if i := strings.IndexByte(target, '?'); i >= 0 {
					target = target[:i]
				}
				tried++
				a := s.do(t, "admin", r.Method, target, merged(t, body, `{"`+option+`": null}`))
				if a.status != 400 || a.message(t) != option+" must not be null: give it a value, or leave it out" {
					t.Errorf("%s, %s: %d %s", r.Name, option, a.status, a.body)
				}
			}
		}
		a := s.do(t, "admin", "POST", "/api/_bundle-deploy?tenants=acme&entries=null", "")
		if a.status != 400 || !strings.HasPrefix(a.message(t), "entries must not be null") {
			t.Errorf("null in the query: %d %s", a.status, a.body)
		}
		if tried < 20 || s.dump(t, "acme") != before {
			t.Errorf("something was done, or only %d options were tried", tried)
		}
	})
}

func TestOptionsEverywhere(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		s.token(t, "admin")
		const urlencodedForm = "Content-Type: application/x-www-form-urlencoded"
		archive, staged := s.param["archive"], s.param["staged"]
		s.must(t, "admin", "PUT", "/api/colors/more", `{"color": "#000000"}`) // a restore would remove it
		form := func(fields ...string) (string, string) {
			body, kind := formOf(t, fields...)
			return body, "Content-Type: " + kind
		}
		before := s.dump(t, "acme")
		send := func(path, body string, header ...string) answer {
			return s.do(t, "admin", "POST", path, body, header...)
		}

		for i, dry := range []answer{
			send("/api/_restore?dryRun=true", archive), send("/api/_restore?dryRun", archive),
			send("/api/_restore-from-file", `{"uploadId": "`+staged+`", "dryRun": true}`),
			send("/api/_restore-from-file?dryRun=true", `{"uploadId": "`+staged+`", "dryRun": true}`),
			send("/api/_restore-from-file?dryRun=true&uploadId="+staged, ""),
			send("/api/bundles/kept/_deploy?dryRun=true&tenants=acme", ""),
			send("/api/bundles/kept/_deploy?dryRun=1", `{"tenants": ["acme"]}`),
			send(`/api/_bundle-deploy?dryRun=true&tenants=acme&entries=[{"type":"global"}]`, ""),
		} {
			if dry.status != 200 {
				t.Errorf("dry run %d: %d %s", i, dry.status, dry.body)
			}
		}
		for _, path := range []string{"/api/_restore", "/api/_restore-from-file", "/api/_import-bundle"} {
			body, kind := form("dryRun=true", "file="+archive)
			is.Equal(send(path, body, kind).status, 200)

			for _, late := range []string{"dryRun=true", "nonsense=1", "file=x", "=x"} {
				body, kind = form("file="+archive, late)
				a := send(path, body, kind)
				is.Equal(a.status, 400)
				name, _, _ := strings.Cut(late, "=")
				is.Equal(a.message(t), "The form field "+name+" comes after the file: send it before.")
			}
			body, kind = form("dryRun=true", "file="+archive)
			a := send(path+"?dryRun=false", body, kind)
			is.Equal(a.status, 400)
			is.Equal(a.message(t), "dryRun is given twice with different values: give it once")
			body, kind = form("dryRun=true", "dryRun=false", "file="+archive)
			is.Equal(send(path, body, kind).status, 400)
			is.Equal(send(path, "dryRun=true", urlencodedForm).status, 415)
			is.Equal(send(path+"?dryRun=true", archive, urlencodedForm).status, 200) // as curl sends it
			is.Equal(send(path, archive, "Content-Type: text/plain").status, 415)
			body, kind = form("dryRun=true")
			is.Equal(send(path, body, kind).message(t), "The form has no field file.")
			body, kind = form("owner="+strings.Repeat("x", 1<<20+1), "file="+archive)
			is.Equal(send(path, body, kind).status, 413)
			for _, content := range []string{archive, strings.Repeat("\x00", 1<<20+1)} {
				body, kind = form("archive=" + content)
				a := send(path, body, kind)
				is.Equal(a.status, 400)
				is.True(strings.HasPrefix(
					a.message(t), "unknown option archive: this route has changes, dryRun, owner, updateRule",
				))
				is.True(strings.HasSuffix(a.message(t), "; the file must be the field file"))
			}
		}
		body, kind := form("updateRule=fail", "file="+archive)
		is.Equal(send("/api/_import-bundle", body, kind).status, 409) // red is there
		is.Equal(send("/api/_import-bundle?updateRule=fail", archive).status, 409)
		for body, message := range map[string]string{
			`{"tenants": ["acme"], "dryrun": true}`:  "unknown option dryrun: did you mean dryRun?",
			`{"tenants": ["acme"], "dry-run": true}`: "unknown option dry-run: did you mean dryRun?",
			`{"tenants": ["acme"], "updaterules": "skip"}`: "unknown option updaterules: did you mean " +
				"updateRule?",
			`{"tenants": ["acme"], "x": 1}`: "unknown option x: this route has changes, " +
				"dryRun, tenants, updateRule",
			`{"tenants": ["acme"], "dryRun": true, "dryRun":false}`: "dryRun is given twice with different " +
				"values: give it once",
			`{"tenants": ["acme"], "dryRun": "yes"}`: "dryRun must be true or false",
		} {
			a := send("/api/bundles/kept/_deploy", body)
			is.Equal(a.status, 400)
			is.Equal(a.message(t), message)
		}
		is.Equal(
			send("/api/bundles/kept/_deploy?dryRun=maybe", `{"tenants": ["acme"]}`).message(t),
			"dryRun must be true or false",
		)
		is.Equal(send("/api/bundles/kept/_deploy?tenants=evil", `{"tenants": ["acme"]}`).status, 400)
		is.Equal(send(`/api/_bundle-deploy?dryRun=true&tenants=acme&entries=x`, "").message(t), "entries must be JSON")
		is.Equal(send("/api/_restore-from-file?uploadId="+staged, archive).status, 400)
		is.Equal(send("/api/_import-bundle", `{"dryRun": true}`).status, 415)
		is.Equal(send("/api/principals/mia/_reassign?to=dana", `{"to": "tim"}`).status, 400)
		is.Equal(
			send("/api/bundles/kept/_export", `{"nonsense": 1}`).message(t),
			"unknown option nonsense: this route has none",
		)
		is.Equal(
			s.do(t, "admin", "DELETE", "/api/users/mia?reassignto=dana", "").message(t),
			"unknown option reassignto: did you mean reassignTo?",
		)
		is.Equal(s.do(t, "admin", "DELETE", "/api/colors/red", `{"dryRun": true}`).status, 400)
		is.Equal(s.dump(t, "acme"), before)

		is.Equal(send("/api/principals/mia/_reassign?to=dana", `{"to": "dana"}`).status, 200)
		is.Equal(s.do(t, "admin", "DELETE", "/api/users/mia", `{"reassignTo": "dana"}`).status, 200)
		is.Equal(
			send("/api/colors-export", `{"download": true, "source": "x"}`).header.Get("Content-Disposition"),
			"attachment; filename=colors.json",
		)
	})
}

// TestUnknownParameters: a list and a write name the query parameter that they do not know; reads
// of single resources, the flat list of colors and the input catalogs take any.
func TestUnknownParameters(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	lists := 0
	for _, r := range httpapi.Routes() {
		if r.Public || r.Options != nil || r.AnyQuery || r.Name == "callFromAppView" {
			// which answers what another route does
			continue
		}
		list := false
		if r.Method == "GET" && !r.AnyType {
			a := s.must(t, "admin", "GET", s.target(r), "")
			list = strings.HasPrefix(a.body, "[") || strings.Contains(a.body, `"total":`) &&
				strings.Contains(a.body, `"start":`)
		}
		if strings.HasPrefix(r.Pattern, "/api/input-") || r.Name == "listAllColors" {
			list = false
		}
		list = list || r.Name == "listAppWebhooks" // a misspelled filter must not show all
		a := s.do(t, "admin", r.Method, withQuery(s.target(r), "nonsense=1"), s.body(r))
		if refuses := list || r.Method != "GET"; !refuses {
			if a.status >= 400 || strings.Contains(a.body, "nonsense") {
				t.Errorf("%s: %d %s", r.Name, a.status, a.body)
			}
			continue
		}
		if a.status != 400 || !strings.HasPrefix(a.message(t), "unknown query parameter nonsense: this route has ") {
			t.Errorf("%s: %d %s", r.Name, a.status, a.body)
		}
		for _, name := range r.Query {
			lists++
			a := s.do(t, "admin", r.Method, s.target(r)+"?"+name+"=1&"+name+"=1", s.body(r))
			if a.status != 400 || a.message(t) != "The query parameter "+name+" is given twice: give it once." {
				t.Errorf("%s, %s twice: %d %s", r.Name, name, a.status, a.body)
			}
		}
	}
	is := is.New(t)
	is.True(lists > 100)
	is.Equal(
		s.do(t, "admin", "GET", "/api/colors?Limit=3", "").message(t),
		"unknown query parameter Limit: did you mean limit?",
	)
	is.Equal(
		s.do(t, "admin", "GET", "/api/tokens?name=x", "").message(t),
		"unknown query parameter name: this route has start, limit, sort, cursor",
	)
	is.Equal(s.do(t, "admin", "GET", "/api/tokens?q=x", "").status, 400)
}

// TestAIBeforeBody: whether AI is on is asked before anything else of a request is looked at.
func TestAIBeforeBody(t *testing.T) {
	is, s := is.New(t), stocked(t, dbtest.SQLite)
	s.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": false}}}`)
	for _, r := range httpapi.Routes() {
		if !strings.HasPrefix(r.Pattern, "/api/ai-instructions") {
			continue
		}
		req := s.request(t, "admin", r.Method, withQuery(s.target(r), "nonsense=1"), "", "Content-Type: text/plain")
		req.Body, req.ContentLength = unread{t}, 2<<20
		a := s.send(req)
		is.Equal(a.status, 400)
		is.Equal(a.message(t), "AI is not enabled on the system")
	}
}

func TestColorBodies(t *testing.T) {
	is, s := is.New(t), stocked(t, dbtest.SQLite)
	for _, body := range []string{
		`null`, `7`, `[]`, `["#ffffff"]`, `"#ffffff"`,
		`true`, `{}`, `{"color": null}`, `{"color": 7}`, `{"color": ["#ffffff"]}`, `{"color": {}}`,
		`{"color": "red"}`, ``,
	} {
		a := s.do(t, "dana", "PUT", "/api/colors/red", body)
		is.Equal(a.status, 400)
		is.Equal(a.message(t), "Invalid color format")
	}
}

// TestCatalogPages: the lists of drivers are paged as other lists are.
func TestCatalogPages(t *testing.T) {
	is, s := is.New(t), stocked(t, dbtest.SQLite)
	for path, rel := range map[string]string{
		"/api/bundle-drivers": "inf:bundle-driver",
		"/api/domain-drivers": "inf:domain-driver",
	} {
		all := read[page](t, s.must(t, "nora", "GET", path, ""))
		is.Equal(all.Count, all.Total)
		is.Equal(all.next(), "")
		var ids []any
		for target := path + "?limit=2"; target != ""; {
			p := read[page](t, s.must(t, "nora", "GET", target, ""))
			is.Equal(p.Total, all.Total)
			for _, row := range p.Embedded[rel] {
				ids = append(ids, row["id"])
			}
			target = p.next()
		}
		is.Equal(len(ids), all.Total)
		for i, row := range all.Embedded[rel] {
			is.Equal(ids[i], row["id"])
		}
		is.Equal(s.do(t, "nora", "GET", path+"?limit=1001", "").status, 400)
		is.Equal(s.do(t, "nora", "GET", path+"?sort=id", "").status, 400)
	}
}

// TestPrevFromBeyondTheEnd leads to the last page.
func TestPrevFromBeyondTheEnd(t *testing.T) {
	is, s := is.New(t), stocked(t, dbtest.SQLite)
	total := read[page](t, s.must(t, "nora", "GET", "/api/bundle-drivers", "")).Total
	is.Equal(total, 17)
	for target, want := range map[string]string{
		"start=1000&limit=5": "limit=5&start=15",
		"start=17&limit=5":   "limit=5&start=15", "start=20&limit=17": "limit=17&start=0",
		"start=16&limit=5": "limit=5&start=11",
		"start=3&limit=5":  "limit=5&start=0", "start=18&limit=1": "limit=1&start=16",
	} {
		p := read[page](t, s.must(t, "nora", "GET", "/api/bundle-drivers?"+target, ""))
		prev := strings.TrimPrefix(p.Links["prev"].Href, baseURL)
		is.Equal(prev, "/api/bundle-drivers?"+want)
		is.True(read[page](t, s.must(t, "nora", "GET", prev, "")).Count > 0)
	}
	s.must(t, "nora", "GET", "/api/bundle-drivers?start=5&limit=0", "")
	empty := read[page](t, s.must(t, "nora", "GET", "/api/colors?q=nothing&start=5&limit=2", ""))
	is.Equal(strings.TrimPrefix(empty.Links["prev"].Href, baseURL), "/api/colors?limit=2&q=nothing&start=0")
}
