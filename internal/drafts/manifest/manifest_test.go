package manifest_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
)

const full = `# An app with everything.
entryPoint: dist/index.html
access:
  - GET datasets/*
  - teams
  - POST,GET queries/:id/_run
  - path: comments/**
    methods: [DELETE, GET]
    description: What people say
  - {dataset: sales, description: One row per sale}
  - dataset: staff
roles:
  - viewer
  - id: approver
    name: Approvers
    description: |
      Sign orders.
      Daily.
agents:
  daily:
    description: Sums up the day
    instructions: |
      Sum up ${day}.
    model: small
    tools: [tools/orders.js, web]
    on: order.created
    cron: ["0 7 * * 1", "0 7 * * 2"]
    onFailure: alarm
  alarm:
events:
  - order.created
  - {name: "order:gone", description: x}
env:
  - API_KEY
  - name: URL
    description: Where
    required: true
x-build: {any: [thing, 1, null]}
`

func TestRead(t *testing.T) {
	is := is.New(t)
	got, err := manifest.Read("app.yaml", []byte(full))
	is.NoErr(err)
	is.Equal(got, manifest.Manifest{
		EntryPoint: "dist/index.html",
		Access: []manifest.Rule{
			{Methods: []string{"GET"}, Path: "datasets/*"}, {Methods: []string{"GET"}, Path: "teams"},
			{Methods: []string{"GET", "POST"}, Path: "queries/:id/_run"},
			{Methods: []string{"GET", "DELETE"}, Path: "comments/**", Description: "What people say"},
		},
		Datasets: []manifest.Dataset{{Alias: "sales", Description: "One row per sale"}, {Alias: "staff"}},
		Roles: []manifest.Role{
			{ID: "viewer", Name: "viewer"}, {ID: "approver", Name: "Approvers", Description: "Sign orders.\nDaily.\n"},
		},
		Agents: []manifest.Agent{
			{
				Name: "daily", Description: "Sums up the day", Instructions: "Sum up ${day}.\n", Model: "small",
				Tools: []string{"tools/orders.js", "web"}, On: []string{"order.created"},
				Cron: []string{"0 7 * * 1", "0 7 * * 2"}, OnFailure: "alarm",
			},
			{Name: "alarm"},
		},
		Events: []manifest.Event{{Name: "order.created"}, {Name: "order:gone", Description: "x"}},
		Env:    []manifest.Variable{{Name: "API_KEY"}, {Name: "URL", Description: "Where", Required: true}},
	})
	is.Equal(got.Access[2].String(), "GET,POST queries/:id/_run")
}

// TestDocumentedExample: the example of docs/manifest.md is a manifest, and has every member.
func TestDocumentedExample(t *testing.T) {
	is := is.New(t)
	doc, err := os.ReadFile("../../../docs/manifest.md")
	is.NoErr(err)
	_, example, _ := strings.Cut(string(doc), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	m, err := manifest.Read("informer.yaml", []byte(example))
	is.NoErr(err)
	fieldtest.Full(t, m)
}

func TestReadOfNothingIsTheZeroManifest(t *testing.T) {
	for _, raw := range []string{
		"", "\n\n", "# nothing\n", "---\n", "\xef\xbb\xbf", "{}", "null",
		"access:\nroles:\nagents:\nevents:\nenv:\n", "x-mine: 1",
	} {
		t.Run(fmt.Sprintf("%q", raw), func(t *testing.T) {
			is := is.New(t)
			got, err := manifest.Read("informer.yaml", []byte(raw))
			is.NoErr(err)
			is.Equal(got, manifest.Manifest{})
			is.True(!got.Allows("GET", "datasets"))
		})
	}
}

// bad are files that are refused, and what the error begins with behind the file's name.
var bad = []struct{ raw, want string }{
	// keys and kinds
	{"- a", ":1:1: must be an object"},
	{"text", ":1:1: must be an object"},
	{
		"acess: []",
		":1:1: acess: is not known here; known are access, agents, entryPoint, env, events, roles, and names that " +
			"begin with x-",
	},
	{
		"roles:\n  - id: a\n    lable: b",
		":3:5: roles[0].lable: is not known here; known are description, id, name, and",
	},
	{"access: GET datasets", ":1:9: access: must be a list"},
	{"access: {a: b}", ":1:9: access: must be a list"},
	{"agents: [a]", ":1:9: agents: must be an object"},
	{"access: []\nroles: []\naccess: []", ":3:1: access: is there twice"},
	{"agents:\n  a:\n    model: x\n    model: y", ":4:5: model: is there twice"},
	{"? [a]\n: b", ":1:3: a key must be text"},
	{"x-a: {? {b: c} : d}", ":1:9: a key must be text"},
	// YAML
	{"access: [", ":2:1: the manifest is not YAML that can be read: while parsing a flow node"},
	{"access:\n\t- a", ":2:"},
	{"a: b: c", ":1:"},
	{"a: 'x", ":1:"},
	{"a: 1\n---\nb: 2", ":2:1: the manifest must be one document"},
	{"access: &a [GET datasets]", ":1:9: anchors (&) and aliases (*)"},
	{"x-a: &a 1\nx-b: *a", ":1:6: anchors"},
	{"x-a: *a", ":1:"},
	{"x-a: !!binary aGk=", ":1:6: tags (!)"},
	{"x-a: !thing {}", ":1:6: tags (!)"},
	{"<<: {access: []}", ":1:1: <<: is not known"},
	{"x-a: \"\\0\"", ":1:6: text must be Unicode without NUL"},
	{"access: []\nx: \x00", ":2:4: the manifest must be UTF-8 text without NUL"},
	{"é: \xff", ":1:4: the manifest must be UTF-8"},
	{"\xff\xfea\x00", ":1:1: the manifest must be UTF-8"},
	{strings.Repeat("[", 40), ":1:"},
	// entryPoint
	{"entryPoint: ../a.html", ":1:13: entryPoint: path must be relative"},
	{"entryPoint: /a.html", ":1:13: entryPoint: path must be relative"},
	{"entryPoint: a.js", ":1:13: entryPoint: must be a page"},
	{"entryPoint: [a.html]", ":1:13: entryPoint: must be text"},
	{"entryPoint:", ":1:12: entryPoint: must be text"},
	{"entryPoint: 5", ":1:13: entryPoint: must be text: put 5 into quotes"},
	// access
	{"access: [GET]", ":1:10: access[0]: GET needs a path behind it"},
	{"access: [5]", ":1:10: access[0]: must be text"},
	{"access: [datasets, get datasets]", ":1:20: access[1]: get is no method: use GET, POST, PUT, PATCH, DELETE"},
	{"access: [HEAD datasets]", ":1:10: access[0]: HEAD is no method"},
	{"access: [a b c]", ":1:10: access[0]: must be a method and a path"},
	{"access: [/datasets]", ":1:10: access[0]: the path is relative to /api/"},
	{"access: [api/datasets]", ":1:10: access[0]: the path is relative to /api/"},
	{"access: ['https://evil.example/x']", ":1:10: access[0]: the path must be one below /api/"},
	{"access: ['**']", ":1:10: access[0]: the first segment"},
	{"access: ['*/x']", ":1:10: access[0]: the first segment"},
	{"access: [':a/x']", ":1:10: access[0]: the first segment"},
	{"access: [a/**/b]", ":1:10: access[0]: ** can only be"},
	{"access: [a/b*]", ":1:10: access[0]: b* mixes"},
	{"access: ['a/{id}']", ":1:10: access[0]: {id} mixes"},
	{"access: ['a/:']", ":1:10: access[0]: : is no parameter"},
	{"access: [a/../tokens]", ":1:10: access[0]: the path must not have"},
	{"access: [a//b]", ":1:10: access[0]: the path must not have"},
	{"access: [a/]", ":1:10: access[0]: the path must not have"},
	{"access: [a/.]", ":1:10: access[0]: the path must not have"},
	{"access: [a%2Fb]", ":1:10: access[0]: the path must not have"},
	{`access: ['a\b']`, ":1:10: access[0]: the path must not have"},
	{"access: ['a;b']", ":1:10: access[0]: the path must not have"},
	{"access: ['a?b=c']", ":1:10: access[0]: the path must not have"},
	{"access: [{path: a, description: [b]}]", ":1:33: access[0].description: must be text"},
	{"access: [{methods: [GET]}]", ":1:10: access[0]: needs path, or dataset"},
	{"access: [{}]", ":1:10: access[0]: needs path, or dataset"},
	{"access: [{path: a, dataset: b}]", ":1:10: access[0]: has dataset beside path"},
	{"access: [{dataset: a b}]", ":1:20: access[0].dataset: must be a letter"},
	{"access: [{dataset: __proto__}]", ":1:20: access[0].dataset: must be a letter"},
	{"access: [{dataset: a}, {dataset: a}]", `:1:34: access[1].dataset: "a" is there twice`},
	{"access: [{methods: [GET, 5], path: a}]", ":1:26: access[0].methods[1]: must be text"},
	{"access: [" + strings.Repeat("a,", 501) + "]", ":1:9: access: has 501 items; the most is 500"},
	{"access: [" + strings.Repeat("a/", 32) + "a]", ":1:10: access[0]: the path has 33 segments"},
	// roles, events, env
	{"roles: [a, a]", `:1:12: roles[1]: "a" is there twice`},
	{"roles: [a b]", ":1:9: roles[0]: must be letters"},
	{"roles: [{name: a}]", ":1:9: roles[0]: needs id"},
	{"roles: [[a]]", ":1:9: roles[0]: must be an object"},
	{"roles: [null]", ":1:9: roles[0]: must be text"},
	{"roles: [" + strings.Repeat("a", 129) + "]", ":1:9: roles[0]: must be letters"},
	{"roles: [{id: a, name: \"b\\nc\"}]", ":1:23: roles[0].name: must be a line"},
	{
		"roles: [{id: a, description: " + strings.Repeat("é", 16<<10+1) + "}]",
		":1:30: roles[0].description: must have at most 16384 characters",
	},
	{"events: ['']", ":1:10: events[0]: must be letters"},
	{"env: [1A]", ":1:7: env[0]: must be letters"},
	{"env: [{name: A, value: x}]", ":1:17: env[0].value: is not known here"},
	{"env: [{name: A, required: maybe}]", ":1:27: env[0].required: must be true or false"},
	{"env: [{name: A, required: 'true'}]", ":1:27: env[0].required: must be true or false"},
	// agents
	{"agents: {a b: {}}", ":1:10: agents.a b: the name of an agent"},
	{"agents: {a: {onFailure: b}}", `:1:25: agents.a.onFailure: there is no agent "b"`},
	{"agents: {a: {cron: daily}}", ":1:20: agents.a.cron: must be a schedule"},
	{"agents: {a: {cron: [0 7 * * 1, '@daily']}}", ":1:32: agents.a.cron[1]: must be a schedule"},
	{"agents: {a: {on: [x, y z]}}", ":1:22: agents.a.on[1]: must be the name of an event"},
	{"agents: {a: {tools: {b: c}}}", ":1:21: agents.a.tools: must be a list"},
}

func TestReadRefuses(t *testing.T) {
	for _, c := range bad {
		t.Run(fmt.Sprintf("%.60q", c.raw), func(t *testing.T) {
			is := is.New(t)
			got, err := manifest.Read("informer.yaml", []byte(c.raw))
			is.Equal(errs.CodeOf(err), errs.Invalid)
			if message := errs.MessageOf(err); !strings.HasPrefix(message, "informer.yaml"+c.want) {
				t.Errorf("got %q, want informer.yaml%s…", message, c.want)
			}
			is.Equal(got, manifest.Manifest{})
		})
	}
}

// TestReadOfFullSize: a file that is made to cost much costs little, and is refused or read.
func TestReadOfFullSize(t *testing.T) {
	const size = manifest.MaxSize / 4
	bomb := "x-a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += fmt.Sprintf("x-%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	for name, raw := range map[string]string{
		"a MiB":         strings.Repeat("# a\n", 1<<18),
		"aliases":       bomb,
		"an alias loop": "x-a: &a [*a]",
		"brackets":      strings.Repeat("[", size),
		"braces":        strings.Repeat("{", size),
		"pairs":         strings.Repeat("{a: ", size/4),
		"dashes":        strings.Repeat("- ", size/2),
		"questions":     strings.Repeat("? ", size/2),
		"anchors":       strings.Repeat("&a ", size/3),
		"comments":      strings.Repeat("#\n", size/2-2) + "a",
		"blank lines":   strings.Repeat("\n", size-1) + "a",
		"keys":          "x-a:\n" + strings.Repeat(" a:\n", size/4-2),
		"commas":        "x-a: [" + strings.Repeat("a,", size/2-8) + "a], b",
		"quotes":        `x-a: "` + strings.Repeat(`\\\x41`, size/6-10),
		"words":         "x-a: " + strings.Repeat("a\n ", size/3-10) + ": :",
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := manifest.Read("app.yaml", []byte(raw))
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), "app.yaml:"))
			is.True(!strings.Contains(errs.MessageOf(err), "\n"))
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(full))
	for _, c := range bad {
		if len(c.raw) < 1000 {
			f.Add([]byte(c.raw))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := manifest.Read("f.yaml", raw)
		if err != nil {
			if message := errs.MessageOf(err); errs.CodeOf(err) != errs.Invalid ||
				!strings.HasPrefix(message, "f.yaml:") {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if bytes.IndexByte(raw, 0) >= 0 || len(raw) > manifest.MaxSize {
			t.Fatalf("%q was read", raw)
		}
		for _, r := range m.Access {
			if len(r.Methods) == 0 || strings.HasPrefix(r.Path, "/") || strings.Contains(r.Path, "..") &&
				strings.Contains("/"+r.Path+"/", "/../") {
				t.Fatalf("%q has the rule %q", raw, r)
			}
		}
		for _, path := range []string{
			"tokens", "session", "tenant", "apps/x/shares", "users/x/password", "_restore", "../x", "users//x",
		} {
			if m.Allows("GET", path) {
				t.Fatalf("%q allows %s", raw, path)
			}
		}
	})
}

// TestManifestHasABound: short values are no way to make a small file large in memory.
func TestManifestHasABound(t *testing.T) {
	is := is.New(t)
	text := "agents:\n"
	for i := range 40 {
		text += fmt.Sprintf("  a%d: {tools: [%s]}\n", i, strings.TrimSuffix(strings.Repeat("a,", 245), ","))
	}
	_, err := manifest.Read("informer.yaml", []byte(text))
	is.NoErr(err)
	for i := range 40 {
		text += fmt.Sprintf("  b%d: {tools: [%s]}\n", i, strings.TrimSuffix(strings.Repeat("a,", 245), ","))
	}
	_, err = manifest.Read("informer.yaml", []byte(text))
	is.True(strings.Contains(
		errs.MessageOf(err), "the manifest must have at most 10000 lists, objects, keys and texts in all",
	))
}
