package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

const tool = `export const config = { description: 'Finds orders', parameters: { type: 'object', properties: { ` +
	`id: { type: 'string' } } }, timeout: 900 }
export default async (given) => {
	console.log('asked for', given.args.id)
	return { names: Object.keys(given).sort(), args: given.args, run: given.run, key: given.idempotencyKey, ` +
	`env: given.env, got: await given.query('SELECT ' + given.args.id) }
}
`

// TestTools: files of the folder tools are named, described and called with args, the run and a
// key.
func TestTools(t *testing.T) {
	is := is.New(t)
	s, _ := deployed(t, map[string]string{
		"tools/orders/find.js": tool,
		"tools/stock/index.js": "export default () => {}",
		"tools/lib.js":         "export const x = 1",
		"tools/data.mjs":       "not read",
	})
	routes, err := s.Routes(t.Context(), app, handlers.Tools)
	is.NoErr(err)
	is.Equal(len(routes), 2)
	find := routes[0]
	is.Equal(
		[]string{find.ToolName(), find.File, find.Description(), routes[1].ToolName()},
		[]string{"orders_find", "tools/orders/find.js", "Finds orders", "stock"},
	)
	is.Equal(string(find.Parameters()), `{"type":"object","properties":{"id":{"type":"string"}}}`)
	is.Equal(find.Timeout(), 900*time.Millisecond)
	is.True(routes[1].Parameters() == nil)

	in := handlers.Invocation{App: app, Route: find,
		Env: map[string]string{"A": "b"}, Functions: map[string]jsvm.Function{
			"query": func(_ context.Context, args json.RawMessage) (json.RawMessage, error) { return args, nil },
		}}
	r, err := s.RunTool(t.Context(), in, handlers.ToolCall{
		Args:           json.RawMessage(`{"id":"5"}`),
		Run:            json.RawMessage(`{"id":"r"}`),
		IdempotencyKey: "r-2",
	})
	is.NoErr(err)
	is.Equal(r.Outcome, jsvm.OK)
	is.Equal(string(r.Value),
		`{"names":["args","atob","base64Decode","base64Encode","base64UrlDecode","base64UrlEncode","btoa",`+
			`"context","crypto","env","idempotencyKey","log","query","run"],`+
			`"args":{"id":"5"},"run":{"id":"r"},"key":"r-2","env":{"A":"b"},"got":["SELECT 5"]}`)
	is.Equal(r.Logs[0].Text, "asked for 5")
	in.Route = routes[1]
	r, err = s.RunTool(t.Context(), in, handlers.ToolCall{})
	is.NoErr(err)
	is.Equal([]any{r.Outcome, r.Value == nil}, []any{jsvm.OK, true})
}

// TestToolsThatAreRefused: each is named with its file.
func TestToolsThatAreRefused(t *testing.T) {
	s := handlers.New(handlers.Options{Store: newStore(), Runtime: newRuntime(t)})
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"name":      {map[string]string{"tools/a b.js": tool}, "tools/a b.js:1:1: the name of a tool"},
		"parameter": {map[string]string{"tools/[id].js": tool}, "tools/[id].js:1:1: the name of a tool"},
		"long": {
			map[string]string{"tools/" + strings.Repeat("x", 65) + ".js": tool}, ":1:1: the name of a tool",
		},
		"same": {
			map[string]string{"tools/a/b.js": tool, "tools/a_b.js": tool},
			"tools/a_b.js:1:1: its name a_b is that of tools/a/b.js",
		},
		"description": {
			map[string]string{"tools/a.js": "export const config = { description: 5 }\nexport default () => 1"},
			"tools/a.js:1:1: config.description must be a text",
		},
		"parameters": {
			map[string]string{
				"tools/a.js": "\nexport const config = { parameters: { type: 'string' } }\nexport default () => 1",
			},
			"tools/a.js:2:1: config.parameters must be a JSON Schema of an object",
		},
		"roles": {
			map[string]string{"tools/a.js": "export const config = { roles: ['a'] }\nexport default () => 1"},
			"tools/a.js:1:1: config.roles is for server routes",
		},
		"syntax": {map[string]string{"tools/a.js": "export default () => {"}, "tools/a.js:1:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Build(t.Context(), app, files(c.files), true)
			is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
			if !strings.Contains(errs.MessageOf(err), c.want) {
				t.Error(errs.MessageOf(err))
			}
		})
	}
	b, err := s.Build(t.Context(), app, files(map[string]string{"tools/a.js": "export const GET = () => 1"}), true)
	is.New(t).NoErr(err)
	is.New(t).Equal(b.Warnings, []string{"tools/a.js exports no function as default, so it is no tool."})
}
