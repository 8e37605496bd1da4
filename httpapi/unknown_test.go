package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// sendUnknown sends a body with a member that the route does not know, at a dotted path. meant is
// the path of the member that it is a misspelling of, "" for none.
func (s stock) sendUnknown(t *testing.T, r httpapi.Route, body, path, meant string) {
	t.Helper()
	a := s.sendBody(t, r, body)
	refused := refusal(r)
	if strings.Contains(path, ".") && refused != "" {
		refused = "unknown member " // of an option, too
	}
	if refused != "" {
		want := refused + path + ": "
		if meant != "" {
			want += "did you mean " + meant + "?"
		}
		if a.status != 400 || !strings.HasPrefix(a.message(t), want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
		return
	}
	warning := a.header.Get("Warning")
	want := ""
	if meant != "" {
		want = "did you mean " + meant + "?"
	}
	if !a.taken() || (meant == "") != (warning == "") || !strings.Contains(warning, want) {
		t.Errorf("%s: %d %s, warning %s", body, a.status, a.body, warning)
	}
}

// eachWrite calls test with every route that may have a body of this service: handlers, providers
// and SCIM have their own.
func eachWrite(t *testing.T, test func(t *testing.T, s stock, r httpapi.Route)) {
	dbtest.Server(t)
	s := stocked(t, dbtest.Postgres)
	others := []string{
		// the body is for a handler
		"postToAppServer", "putToAppServer", "patchAtAppServer", "deleteAtAppServer",
		"postWebhookRoot", "postWebhook", "putWebhookRoot", "putWebhook",
		"finishSAML", "singleLogoutByForm", "receiveLogout", // the form is a provider's
		// the body is a file: see TestUnknownMembersOfFiles
		"createUpload", "putAvatar", "putLibraryFile", "putAppFile", "putAssistantFile",
		"importBundle", "restoreArchive", // the body is an archive: see TestUnknownOptions
		"logout", // the session would be over
	}
	for _, r := range httpapi.Routes() {
		if r.Method != "GET" && !strings.HasPrefix(r.Pattern, "/api/scim/") && !slices.Contains(others, r.Name) {
			t.Run(r.Name, func(t *testing.T) { test(t, s, r) })
		}
	}
}

// TestUnknownMembers: a member that a route does not know is refused, or left out with a warning if
// it is nearly one that it knows.
func TestUnknownMembers(t *testing.T) {
	eachWrite(t, func(t *testing.T, s stock, r httpapi.Route) {
		body := s.body(r)
		if body == "" {
			body = "{}"
		}
		s.sendUnknown(t, r, merged(t, body, `{"zzyzzyx": 1}`), "zzyzzyx", "")
		for _, f := range samples[r.Name].fields {
			path, _, _ := strings.Cut(f, " ")
			at, name := "", path
			if dot := strings.LastIndex(path, "."); dot >= 0 {
				at, name = path[:dot+1], path[dot+1:]
			}
			for _, near := range []string{
				name + "z", name[:1] + "_" + name[1:], strings.ToUpper(name), name[:1] + "-" + name[1:],
			} {
				s.sendUnknown(t, r, merged(t, body, object(at+near, "true")), at+near, path)
			}
		}
	})
}

func TestUnknownInnerMembers(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.Postgres)
	for _, test := range []struct{ method, target, body, want string }{
		{
			"POST", "/api/apps",
			`{"type": "report", "name": "N", "datasets": [{"alias": "a", "datasetID": "x"}]}`,
			"unknown member datasets[0].datasetID: did you mean datasets[0].datasetId?",
		},
		{
			"POST", "/api/assistants",
			`{"name": "N", "skills": [{"type": "code"}, {"type": "code", "Config": {}}]}`,
			"unknown member skills[1].Config: did you mean skills[1].config?",
		},
		{
			"POST", "/api/apps/" + s.param["apps"] + "/chat",
			`{"messages": [{"role": "user", "content": "x", "text": "y"}]}`,
			"unknown member messages[0].text: messages[0] has content, role",
		},
		{
			"PUT", "/api/tenant", `{"settings": {"AI": {"enabled": true}}}`,
			"unknown member settings.AI: did you mean settings.ai?",
		},
		{
			"PUT", "/api/tenant", `{"settings": {"ai": {"enable": true}}}`,
			"unknown member settings.ai.enable: did you mean settings.ai.enabled?",
		},
		{
			"PUT", "/api/tenant", `{"settings": {"deployFrom": [{"tenant": "evil", "runas": "dana"}]}}`,
			"unknown member settings.deployFrom[0].runas: did you mean settings.deployFrom[0].runAs?",
		},
		{
			"POST", "/api/_bundle", `{"entries": [{"type": "global", "Data": {}}]}`,
			"unknown member entries[0].Data: did you mean entries[0].data?",
		},
		{"POST", "/api/tokens", `{"readonly": true}`, "unknown member readonly: did you mean readOnly?"},
		{
			"POST", "/api/tokens", `{"read_only": true, "expires": "2026-12-01T00:00:00Z"}`,
			"unknown member expires: did you mean expiresAt?; unknown member read_only: did you mean readOnly?",
		},
		{"PUT", "/api/users/mia", `{"enabledd": false}`, "unknown member enabledd: did you mean enabled?"},
		{
			"PUT", "/api/apps/" + s.param["apps"] + "/agents/helper", `{"statuz": "active"}`,
			"unknown member statuz: this route has ",
		},
		{
			"PUT", "/api/tenant", `{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}`,
			"unknown member a: this route has name, settings; ",
		},
	} {
		a := s.do(t, "admin", test.method, test.target, test.body)
		is.Equal(a.status, 400)
		if !strings.HasPrefix(a.message(t), test.want) {
			t.Errorf("%s: %s", test.body, a.body)
		}
	}
	a := s.do(t, "admin", "PUT", "/api/tenant", `{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}`)
	is.True(strings.HasSuffix(a.message(t), "; and 2 more"))
	many := map[string]int{}
	for i := range 50_000 {
		many[fmt.Sprint("member", i)] = 1
	}
	body, err := json.Marshal(many)
	is.NoErr(err)
	is.Equal(s.do(t, "admin", "PUT", "/api/tenant", string(body)).status, 400)
	is.Equal(s.do(t, "admin", "POST", "/api/ai-instructions", string(body)).status, 400)
}

// TestWhatWasReadCanBeWritten sends the answer of each GET to the PUT of the same path: it changes
// nothing.
func TestWhatWasReadCanBeWritten(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		s := stocked(t, open)
		s.token(t, "admin")
		reads := map[string]httpapi.Route{}
		for _, r := range httpapi.Routes() {
			if r.Method == "GET" {
				reads[r.Pattern] = r
			}
		}
		for _, r := range httpapi.Routes() {
			read, both := reads[r.Pattern]
			others := []string{
				"putNotifications", // the GET is of a list
				"putAppServer",     // the body is for a handler
				"putWebhook", "putWebhookRoot", "putToAppServer",
				"putAvatar", "putLibraryFile", "putAppFile", "putAssistantFile", // the body is a file
			}
			if r.Method != "PUT" || !both || strings.HasPrefix(r.Pattern, "/api/scim/") ||
				slices.Contains(others, r.Name) {
				continue
			}
			target := s.target(r)
			a := s.do(t, who(r), read.Method, target, "")
			if a.status == 404 { // which a PUT makes
				s.must(t, who(r), "PUT", target, s.body(r))
				a = s.do(t, who(r), read.Method, target, "")
			}
			if a.status != 200 {
				t.Errorf("%s: %d %s", read.Name, a.status, a.body)
				continue
			}
			before := a.header.Get("Etag")
			if b := s.do(t, who(r), "PUT", target, a.body); b.status != 200 {
				t.Errorf("%s: %d %s\n%s", r.Name, b.status, b.body, a.body)
			}
			again := s.do(t, who(r), read.Method, target, "")
			var one, other map[string]any
			is := is.New(t)
			is.NoErr(json.Unmarshal([]byte(a.body), &one))
			is.NoErr(json.Unmarshal([]byte(again.body), &other))
			for _, m := range []map[string]any{one, other} {
				delete(m, "updatedAt")
			}
			if fmt.Sprint(one) != fmt.Sprint(other) {
				t.Errorf("%s changed it (%s):\n%s\n%s", r.Name, before, a.body, again.body)
			}
		}
	})
}

// TestUnknownFieldsOfForms: forms are as strict as JSON.
func TestUnknownFieldsOfForms(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.Postgres)
	form := func(fields url.Values) answer {
		return s.do(t, "", "POST", "/api/login/local", fields.Encode(), urlencoded)
	}
	right := url.Values{"username": {"dana"}, "password": {"open sesame"}, "tenant": {"acme"}}
	is.Equal(form(right).status, 200)
	right.Set("Tenant", "acme")
	a := form(right)
	is.Equal(a.status, 400)
	is.Equal(a.message(t), "unknown field Tenant: did you mean tenant?")
	for _, fields := range [][]string{{"filname=x", "file=x"}, {"file=x", "filname=x"}} {
		body, kind := formOf(t, fields...)
		is.Equal(s.do(t, "admin", "POST", "/api/uploads", body, "Content-Type: "+kind).status, 400)
	}
	is.Equal(
		s.do(t, "nora", "POST", "/api/logout", `{"provider": true}`).message(t),
		"unknown member provider: this route has none",
	)
	is.Equal(
		s.do(t, "nora", "POST", "/api/logout", "provder=true", urlencoded).message(t),
		"unknown field provder: did you mean provider?",
	)
	is.Equal(s.do(t, "nora", "GET", "/api/session", "").status, 200)
}

// TestBodiesOfTrigger: an agent is started with an input, or with what an event would start it
// with.
func TestBodiesOfTrigger(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.Postgres)
	i := slices.IndexFunc(httpapi.Routes(), func(r httpapi.Route) bool { return r.Name == "triggerAgent" })
	path := s.target(httpapi.Routes()[i])
	for body, want := range map[string]string{
		`{"input": {"a": [1]}}`: `{"a": [1]}`, `{}`: `null`, ``: `null`, `{"input": null}`: `null`,
		`{"event": "paid", "payload": {"event": {"Payload": 1}}}`: `{"event":"paid","payload":{"event":{"Payload":1}}}`,
		`{"event": "paid"}`:                  `{"event":"paid","payload":null}`,
		`{"event": "paid", "payload": null}`: `{"event":"paid","payload":null}`,
	} {
		a := s.must(t, "admin", "POST", path, body)
		is.Equal(plainJSON(t, read[struct{ Input json.RawMessage }](t, a).Input), plainJSON(t, json.RawMessage(want)))
	}
	for body, want := range map[string]string{
		`{"payload": 1}`:                "event is required with a payload; without an event, send {input}",
		`{"event": "x", "input": null}`: "input must be left out with an event: send {input}, or {event, payload}",
		`{"event": ""}`:                 "event must be the name of an event",
		`{"event": 7}`:                  "event must be a string",
		`{"Event": "paid"}`:             "unknown member Event: did you mean event?",
		`{"order": 5}`:                  "unknown member order: this route has event, input, payload",
	} {
		a := s.do(t, "admin", "POST", path, body)
		is.Equal(a.status, 400)
		is.Equal(a.message(t), want)
	}
}

func plainJSON(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	is.New(t).NoErr(json.Unmarshal(raw, &v))
	out, err := json.Marshal(v)
	is.New(t).NoErr(err)
	return string(out)
}
