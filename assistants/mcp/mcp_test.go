package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/assistants/mcp"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

// loopback is where the servers of tests are.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// remote is an MCP server.
type remote struct {
	url string
	mcp *sdk.Server
	web *httptest.Server

	mu      sync.Mutex
	headers []http.Header
	calls   []*sdk.CallToolParamsRaw
	deleted int // sessions
	// instead, unless it is nil, serves the requests of the methods of the protocol for which it
	// returns true.
	instead func(w http.ResponseWriter, r *http.Request, method string, id json.RawMessage) bool
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// newRemote starts a server with the tools look, which only reads, and change, which return their
// arguments.
func newRemote(t testing.TB) *remote {
	t.Helper()
	r := &remote{mcp: sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)}
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return r.mcp }, nil)
	r.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		q.Body = io.NopCloser(bytes.NewReader(body))
		var message struct {
			Method string          `json:"method"`
			ID     json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(body, &message)
		r.mu.Lock()
		r.headers = append(r.headers, q.Header.Clone())
		instead := r.instead
		if q.Method == http.MethodDelete {
			r.deleted++
		}
		r.mu.Unlock()
		if instead != nil && instead(w, q, message.Method, message.ID) {
			return
		}
		handler.ServeHTTP(w, q)
	}))
	t.Cleanup(r.web.CloseClientConnections)
	t.Cleanup(func() { go r.web.Close() }) // hanging handlers end with their clients
	r.url = r.web.URL
	r.add("look", true, nil)
	r.add("change", false, nil)
	return r
}

// add adds a tool. run nil returns the arguments.
func (r *remote) add(
	name string, readOnly bool, run func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error),
) {
	r.mcp.AddTool(&sdk.Tool{
		Name: name, Description: "Does " + name + ".", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: readOnly},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}, func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r.mu.Lock()
		r.calls = append(r.calls, q.Params)
		r.mu.Unlock()
		if run != nil {
			return run(ctx, q)
		}
		return text(name + " " + string(q.Params.Arguments)), nil
	})
}

// set sets what is served instead.
func (r *remote) set(instead func(w http.ResponseWriter, q *http.Request, method string, id json.RawMessage) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instead = instead
}

// answerCalls serves all calls with a function.
func (r *remote) answerCalls(answer func(w http.ResponseWriter, q *http.Request, id json.RawMessage)) {
	r.set(func(w http.ResponseWriter, q *http.Request, method string, id json.RawMessage) bool {
		if method == "tools/call" {
			answer(w, q, id)
		}
		return method == "tools/call"
	})
}

func (r *remote) did() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		names = append(names, c.Name)
	}
	return names
}

// options reach the servers of tests.
func options() mcp.Options {
	return mcp.Options{AllowNetworks: loopback, Log: slog.New(slog.DiscardHandler)}
}

// use returns the use of a skill shop with a configuration.
func use(config string, secrets map[string]string) conversation.Use {
	return conversation.Use{
		Skill:   assistants.Skill{Type: "mcp", Name: "shop", Config: json.RawMessage(config)},
		Secrets: secrets,
	}
}

func configure(url string, tools ...string) string {
	names, _ := json.Marshal(tools)
	return fmt.Sprintf(`{"url": %q, "tools": %s}`, url, names)
}

// open opens a skill for a test.
func open(t testing.TB, o mcp.Options, u conversation.Use) ([]chat.Tool, error) {
	t.Helper()
	tools, end, err := mcp.New(o).Open(t.Context(), u)
	if end != nil {
		t.Cleanup(end)
	}
	return tools, err
}

func names(tools []chat.Tool) (all []string) {
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return all
}

// opened opens a skill with some tools of a server.
func opened(t testing.TB, o mcp.Options, r *remote, tools ...string) []chat.Tool {
	t.Helper()
	all, err := open(t, o, use(configure(r.url, tools...), nil))
	is.New(t).NoErr(err)
	return all
}

func run(t testing.TB, tool chat.Tool, arguments string) (string, error) {
	t.Helper()
	return tool.Run(t.Context(), ai.ToolCall{ID: "a", Name: tool.Name, Arguments: arguments})
}

func TestTools(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	tools := opened(t, options(), r, "change", "look")
	is.Equal(names(tools), []string{"shop_change", "shop_look"})
	is.Equal(tools[0].Description, "Does change.")
	is.Equal(string(tools[0].Parameters), `{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`)
	is.True(tools[0].Confirm)
	is.True(!tools[1].Confirm)
	got, err := run(t, tools[0], `{"n": 1}`)
	is.NoErr(err)
	is.Equal(got, `change {"n":1}`)
	got, err = run(t, tools[1], `{"n": 12345678901234567890}`)
	is.NoErr(err)
	is.Equal(got, `look {"n":12345678901234567890}`)
	key := func(i int) string {
		key, _ := r.calls[i].Meta["idempotencyKey"].(string)
		return key
	}
	is.True(strings.HasSuffix(key(0), ".1.a"))
	is.True(strings.HasSuffix(key(1), ".2.a")) // models use ids twice
	is.Equal(strings.TrimSuffix(key(0), ".1.a"), strings.TrimSuffix(key(1), ".2.a"))

	for confirm, want := range map[string][]bool{
		"always":  {true, true},
		"never":   {false, false},
		"changes": {true, false},
	} {
		tools, err := open(
			t, options(),
			use(strings.TrimSuffix(configure(r.url, "change", "look"), "}")+`, "confirm": "`+confirm+`"}`, nil),
		)
		is.NoErr(err)
		is.Equal([]bool{tools[0].Confirm, tools[1].Confirm}, want)
	}
	first := key(0)
	_, err = run(t, opened(t, options(), r, "look")[0], `{"n": 1}`)
	is.NoErr(err)
	is.True(key(2) != first) // another conversation
}

// TestAllowList: other tools than those that the skill names do not exist, and one that the server
// does not have is told.
func TestAllowList(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	tools, err := open(t, options(), use(configure(r.url, "look", "gone", "Change"), nil))
	is.Equal(names(tools), []string{"shop_look"})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(
		errs.MessageOf(err),
		"The MCP server does not have these tools, which are not available now: gone, Change.",
	)

	tools, err = open(t, options(), use(configure(r.url, "gone"), nil))
	is.Equal(len(tools), 0)
	is.Equal(errs.CodeOf(err), errs.NotFound)

	tools = opened(t, options(), r, "look")
	r.mcp.RemoveTools("look")
	_, err = run(t, tools[0], `{"n": 1}`)
	is.True(strings.HasPrefix(
		errs.MessageOf(err), `The MCP server did not do the call: it answers: unknown tool "look"`,
	))
	r.add("look", true, nil)
	_, err = run(t, tools[0], `{"n": 1}`)
	is.NoErr(err)
}

// TestPages: long lists of tools are read to their end, and endless ones are not.
func TestPages(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	r.mcp = sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, &sdk.ServerOptions{PageSize: 2})
	r.add("look", true, nil)
	for i := range 12 {
		r.add(fmt.Sprintf("a%02d", i), false, nil)
	}
	is.Equal(names(opened(t, options(), r, "look", "a11")), []string{"shop_look", "shop_a11"})

	pages := 0
	r.set(func(w http.ResponseWriter, _ *http.Request, method string, id json.RawMessage) bool {
		if method == "tools/list" {
			pages++
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(
				w,
				`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"b%d","inputSchema":{"type":"object"}}],"nextCursor":"next"}}`,
				id, pages,
			)
		}
		return method == "tools/list"
	})
	tools, err := open(t, options(), use(configure(r.url, "look", "b3"), nil))
	is.Equal(names(tools), []string{"shop_b3"})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(pages, 10)
}

func TestToolNames(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	long := strings.Repeat("x", 100)
	for _, name := range []string{"a.b", "a_b", "a-b", long} {
		r.add(name, true, nil)
	}
	tools := opened(t, options(), r, "a.b", "a_b", "a-b", long)
	got := names(tools)
	is.Equal(got[0], "shop_a_b")
	is.True(strings.HasPrefix(got[1], "shop_a_b_") && len(got[1]) == len("shop_a_b_")+8)
	is.Equal(got[2], "shop_a-b")
	is.True(strings.HasPrefix(got[3], "shop_xxx") && len(got[3]) == 64)
	for i, want := range []string{"a.b", "a_b", "a-b", long} { // each calls its own
		text, err := run(t, tools[i], `{"n":1}`)
		is.NoErr(err)
		is.Equal(text, want+` {"n":1}`)
	}
}

func TestResults(t *testing.T) {
	r := newRemote(t)
	for name, c := range map[string]struct {
		result sdk.CallToolResult
		want   string
		failed bool
	}{
		"text": {
			result: sdk.CallToolResult{
				Content: []sdk.Content{&sdk.TextContent{Text: "a"}, &sdk.TextContent{Text: "b\xff"}},
			},
			want: "a\nb\ufffd",
		},
		"image": {
			result: sdk.CallToolResult{
				Content: []sdk.Content{
					&sdk.TextContent{Text: "a"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("abc")},
				},
			},
			want: "a\n[An image (image/png, 3 bytes) that is not shown here]",
		},
		"audio": {
			result: sdk.CallToolResult{
				Content: []sdk.Content{&sdk.AudioContent{MIMEType: "audio/mpeg", Data: []byte("abcd")}},
			},
			want: "[A sound (audio/mpeg, 4 bytes) that is not played here]",
		},
		"link": {
			result: sdk.CallToolResult{Content: []sdk.Content{&sdk.ResourceLink{Name: "file", URI: "file:///a"}}},
			want:   "[A link to the resource file: file:///a]",
		},
		"resource": {
			result: sdk.CallToolResult{
				Content: []sdk.Content{&sdk.EmbeddedResource{
					Resource: &sdk.ResourceContents{URI: "file:///a", Text: "inside"},
				}},
			},
			want: "inside",
		},
		"blob": {
			result: sdk.CallToolResult{
				Content: []sdk.Content{&sdk.EmbeddedResource{
					Resource: &sdk.ResourceContents{URI: "file:///a", MIMEType: "a/b", Blob: []byte("ab")},
				}},
			},
			want: "[The resource file:///a (a/b, 2 bytes) that is not shown here]",
		},
		"structured": {result: sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}}, want: `{"n":1}`},
		"none":       {},
		"failed": {
			result: sdk.CallToolResult{
				IsError: true,
				Content: []sdk.Content{&sdk.TextContent{Text: "no such chair %s"}},
			},
			want:   "no such chair %s",
			failed: true,
		},
		"failed-": {result: sdk.CallToolResult{IsError: true}, want: "The tool has failed.", failed: true},
		"long":    {result: *text(strings.Repeat("ä", 50000)), want: strings.Repeat("ä", 32000)},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r.add(name, true, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &c.result, nil
			})
			got, err := run(t, opened(t, options(), r, name)[0], `{"n":1}`)
			if c.failed {
				is.Equal(errs.CodeOf(err), errs.Invalid)
				got = errs.MessageOf(err)
			} else {
				is.NoErr(err)
			}
			if name == "long" {
				is.True(len(got) < chat.DefaultResult)
				is.True(strings.HasSuffix(got, " more bytes of the result are left out: ask for less]"))
				got = got[:len(c.want)]
			}
			is.Equal(got, c.want)
		})
	}
}

// TestHeaders: secrets are in the headers of the requests to the server, and in nothing that comes
// from it.
func TestHeaders(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	const secret = "s3cr3t-t0k3n"
	r.mcp.AddTool(&sdk.Tool{
		Name:        "echo",
		Description: "Not " + secret,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"` + secret + `":{"type":"string","default":"` +
			secret + `","description":"` + secret + `"}}}`),
	}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("Bearer " + secret), nil
	})
	r.add("fail", true, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("bad " + secret)
	})
	config := strings.TrimSuffix(
		configure(r.url, "echo", "fail"), "}",
	) + `, "headers": {"authorization": "Bearer ${TOKEN}", "X-Both": "${TOKEN}/${OTHER}", "X-Version": "costs $5"}}`
	var log bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	tools, err := open(t, o, use(config, map[string]string{"TOKEN": secret, "OTHER": "o", "UNUSED": "unused-secret"}))
	is.NoErr(err)
	got, err := run(t, tools[0], "{}")
	is.NoErr(err)
	is.Equal(got, "Bearer ********")
	_, err = run(t, tools[1], `{"n":1}`)
	is.True(err != nil)
	r.answerCalls(func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Denied for %s"}}`, id, secret)
	})
	_, refused := run(t, tools[1], `{"n":1}`)
	is.Equal(errs.MessageOf(refused), "The MCP server did not do the call: it answers: Denied for ********")
	for _, shown := range []string{
		tools[0].Description, string(tools[0].Parameters), errs.MessageOf(err), err.Error(), refused.Error(),
		log.String(),
	} {
		is.True(!strings.Contains(shown, secret))
	}
	for _, h := range r.headers {
		is.Equal(h.Get("Authorization"), "Bearer "+secret)
		is.Equal(h.Get("X-Both"), secret+"/o")
		is.Equal(h.Get("X-Version"), "costs $5")
		is.True(!strings.Contains(fmt.Sprint(h), "unused-secret"))
	}

	for name, secrets := range map[string]map[string]string{
		"The assistant has no secret TOKEN, which the header authorization needs.": {"OTHER": "o"},
		"The secret TOKEN of the assistant cannot be sent in the header authorization: it has characters that headers do not have.": {
			"OTHER": "o",
			"TOKEN": "a\nX-Evil: 1",
		},
	} {
		_, err = open(t, options(), use(strings.Replace(config, `"X-Both": "${TOKEN}/${OTHER}", `, "", 1), secrets))
		is.Equal(errs.MessageOf(err), name)
	}
}

// TestRedirects: secrets do not follow a redirect, whatever its status, and neither does anything
// else.
func TestRedirects(t *testing.T) {
	is := is.New(t)
	var other []*http.Request
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		other = append(other, r)
	}))
	defer thief.Close()
	r := newRemote(t)
	config := strings.TrimSuffix(configure(r.url, "look"), "}") + `, "headers": {"Authorization": "Bearer ${TOKEN}"}}`
	secrets := map[string]string{"TOKEN": "s3cr3t"}
	tools, err := open(t, options(), use(config, secrets))
	is.NoErr(err)
	for _, status := range []int{301, 302, 303, 307, 308} {
		r.set(func(w http.ResponseWriter, q *http.Request, _ string, _ json.RawMessage) bool {
			http.Redirect(w, q, thief.URL, status)
			return true
		})
		for _, try := range []func() error{
			func() error { _, err := run(t, tools[0], `{"n":1}`); return err },
			func() error { _, err := open(t, options(), use(config, secrets)); return err },
		} {
			err := try()
			is.Equal(errs.CodeOf(err), errs.Unavailable)
			is.True(strings.HasSuffix(
				errs.MessageOf(err),
				"it redirects to another address, which is not followed. The skill must have the right one.",
			))
		}
		r.set(nil)
		tools, err = open(t, options(), use(config, secrets))
		is.NoErr(err)
	}
	is.Equal(len(other), 0)
}

// TestNetworks: no connection is made to networks that are not of the internet, unless the operator
// allows it.
func TestNetworks(t *testing.T) {
	r := newRemote(t)
	port := r.url[strings.LastIndex(r.url, ":"):]
	plain, err := open(t, options(), use(configure("http://localhost"+port, "look"), nil))
	is.New(t).NoErr(err)
	is.New(t).Equal(len(plain), 1)
	requests := len(r.headers)
	elsewhere := []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24")}
	for name, c := range map[string]struct {
		o         mcp.Options
		url, want string
	}{
		"https": {mcp.Options{}, "https://localhost" + port, "denied by the configuration of this server"},
		"http": {
			mcp.Options{AllowNetworks: elsewhere}, "http://localhost" + port,
			"denied by the configuration of this server",
		},
		"https-else": {
			mcp.Options{AllowNetworks: elsewhere}, "https://localhost" + port,
			"denied by the configuration of this server",
		},
		"denied": {
			mcp.Options{AllowNetworks: loopback, DenyNetworks: loopback}, "http://localhost" + port,
			"denied by the configuration of this server",
		},
		"accept": {mcp.Options{}, "https://127.0.0.1" + port, "config.url: connections to 127.0.0.1 are denied"},
		"metadata": {
			mcp.Options{}, "https://169.254.169.254/latest",
			"config.url: connections to 169.254.169.254 are denied",
		},
		"plain": {
			mcp.Options{}, r.url,
			"config.url must begin with https://, unless the operator of this server allows http in networks of " +
				"its own (TENANTCONTENT_ALLOW_NETWORKS",
		},
		"plain-else": {
			mcp.Options{AllowNetworks: elsewhere}, r.url, "config.url must begin with https://: the operator",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Log = slog.New(slog.DiscardHandler)
			_, err := open(t, c.o, use(configure(c.url, "look"), nil))
			is.New(t).True(strings.Contains(errs.MessageOf(err), c.want))
		})
	}
	is.New(t).Equal(len(r.headers), requests)
}

// hang waits until the client has gone.
func hang(_ http.ResponseWriter, r *http.Request, _ json.RawMessage) { <-r.Context().Done() }

// TestHostileServers: whatever a server does, a call ends, with a sentence, and so does connecting.
func TestHostileServers(t *testing.T) {
	stream := func(piece func(id json.RawMessage) string) func(
		w http.ResponseWriter, r *http.Request, id json.RawMessage,
	) {
		return func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, piece(id)); err != nil {
					return
				}
			}
		}
	}
	asJSON := func(body string) func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		return func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, strings.ReplaceAll(body, "ID", "%[1]s"), id)
		}
	}
	const tooLarge, slow, unreadable = "its answer is too large.", "it has not answered in time. What it was " +
		"asked for may be done all the same.", "its answer cannot be read."
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, id json.RawMessage)
		want   string
	}{
		"Silent": {hang, slow},
		"SilentStream": {func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, slow},
		"EndlessJSON": {func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		}, tooLarge},
		"EndlessEvent": {stream(func(json.RawMessage) string {
			return "data: " + strings.Repeat("x", 1<<16)
		}), tooLarge},
		"EndlessComments": {stream(func(json.RawMessage) string { return ":\n\n" }), tooLarge},
		"EndlessNotifications": {stream(func(json.RawMessage) string {
			return `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` +
				"\n\n"
		}), tooLarge},
		"EndlessPings": {stream(func(json.RawMessage) string {
			return `data: {"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n\n"
		}), "it has asked for too much itself.|" + tooLarge},
		"EndlessAfter": {stream(func(id json.RawMessage) string {
			return `data: {"jsonrpc":"2.0","id":` + string(id) + `,"result":{"content":[]}}` + "\n\n"
		}), ""},
		"ManyParts": {
			asJSON(`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":[` +
				strings.Repeat("[],", 100000) + `[]]}}`),
			tooLarge,
		},
		"Deep": {
			asJSON(`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":` +
				strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}`),
			unreadable,
		},
		"Malformed":    {asJSON(`{"jsonrpc":"2.0","id":ID,"result":{"content":[`), unreadable},
		"NoJSON":       {asJSON(`<html>`), unreadable},
		"OtherContent": {asJSON(`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"strange"}]}}`), unreadable},
		"NullContent":  {asJSON(`{"jsonrpc":"2.0","id":ID,"result":{"content":[null]}}`), unreadable},
		"OtherType": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			_, _ = io.WriteString(w, "hello")
		}, unreadable},
		"Status500": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			http.Error(w, "broken", http.StatusInternalServerError)
		}, "it answers with the status 500."},
		"Unauthorized": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			http.Error(w, "who?", http.StatusUnauthorized)
		}, "it does not accept the headers of the skill (status 401)."},
		"Refusal": {
			asJSON(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"n must be small"}}`),
			"it answers: n must be small",
		},
		"EmptyStream": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
		}, unreadable},
		"MalformedEvent": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\n\n")
		}, unreadable},
		"Abort": {func(http.ResponseWriter, *http.Request, json.RawMessage) {
			panic(http.ErrAbortHandler)
		}, "it cannot be reached."},
		"LongHeader": {func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		}, "it cannot be reached."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is, r, o := is.New(t), newRemote(t), options()
			if c.want == slow {
				o.Call = time.Second
			}
			tools := opened(t, o, r, "look")
			r.answerCalls(c.answer)
			_, err := run(t, tools[0], `{"n":1}`)
			if c.want == "" {
				is.NoErr(err)
			} else {
				is.Equal(errs.CodeOf(err), errs.Unavailable)
				why := strings.TrimPrefix(errs.MessageOf(err), "The MCP server did not do the call: ")
				is.True(slices.Contains(strings.Split(c.want, "|"), why))
			}
			r.set(nil)
			if c.want == slow { // with a time that a busy machine may need
				tools = opened(t, options(), r, "look")
			}
			got, err := run(t, tools[0], `{"n":2}`) // the next call gets a new connection, if it needs one
			is.NoErr(err)
			is.Equal(got, `look {"n":2}`)

			if c.want == slow {
				o.Connect = time.Second
			}
			for _, during := range []string{"initialize", "tools/list"} {
				r.set(func(w http.ResponseWriter, q *http.Request, method string, id json.RawMessage) bool {
					if method == during || method == "server/discover" && during == "initialize" {
						c.answer(w, q, id)
						return true
					}
					return false
				})
				tools, err = open(t, o, use(configure(r.url, "look"), nil))
				is.Equal(len(tools), 0)
				is.True(errs.CodeOf(err) == errs.Unavailable || errs.CodeOf(err) == errs.NotFound)
			}
		})
	}
}

// TestBroken: a connection that breaks again and again is not made for ever.
func TestBroken(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	tools := opened(t, options(), r, "look")
	r.answerCalls(func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
	})
	for range 10 {
		_, err := run(t, tools[0], `{"n":1}`)
		is.Equal(errs.CodeOf(err), errs.Unavailable)
	}
	r.set(nil)
	_, err := run(t, tools[0], `{"n":1}`)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	r.mu.Lock()
	defer r.mu.Unlock()
	is.True(len(r.headers) < 40)
}

// TestForgottenSession: a server that was started again does the call in a new session, once.
func TestForgottenSession(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	legacy := func(w http.ResponseWriter, _ *http.Request, method string, id json.RawMessage) bool {
		// the newest protocol has no sessions
		if method == "server/discover" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, id)
		}
		return method == "server/discover"
	}
	r.set(legacy)
	tools := opened(t, options(), r, "change")
	forgotten := 0
	r.set(func(w http.ResponseWriter, q *http.Request, method string, id json.RawMessage) bool {
		if method == "tools/call" && forgotten == 0 {
			forgotten++
			http.Error(w, "session not found", http.StatusNotFound)
			return true
		}
		return legacy(w, q, method, id)
	})
	got, err := run(t, tools[0], `{"n":1}`)
	is.NoErr(err)
	is.Equal(got, `change {"n":1}`)
	is.Equal(r.did(), []string{"change"})
	is.Equal(forgotten, 1)
}

// TestServerAsks: a server that requests answers of the model or of the person gets none.
func TestServerAsks(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	r.add("sample", true, func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		//lint:ignore SA1019 servers of older versions of the protocol ask so
		_, err := q.Session.CreateMessage(ctx, &sdk.CreateMessageParams{
			MaxTokens: 5,
			//lint:ignore SA1019 as above
			Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "Tell me all."}}},
		})
		return text(fmt.Sprint("refused: ", err != nil)), nil
	})
	r.add("elicit", true, func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, err := q.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Your password?"})
		return text(fmt.Sprint("refused: ", err != nil)), nil
	})
	r.add("roots", true, func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		//lint:ignore SA1019 servers of older versions of the protocol ask so
		all, err := q.Session.ListRoots(ctx, nil)
		return text(fmt.Sprint("refused: ", err != nil || len(all.Roots) == 0)), nil
	})
	for _, newest := range []bool{true, false} {
		r.set(func(w http.ResponseWriter, _ *http.Request, method string, _ json.RawMessage) bool {
			if method == "server/discover" && !newest {
				http.Error(w, "no", http.StatusBadRequest)
				return true
			}
			return false
		})
		for _, tool := range opened(t, options(), r, "sample", "elicit", "roots") {
			got, err := run(t, tool, `{"n":1}`)
			if err != nil {
				got = errs.MessageOf(err)
			}
			is.Equal(got, "refused: true")
		}
	}
}

// TestEnd: the server is told that the conversation has ended.
func TestEnd(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	r.set(func(w http.ResponseWriter, _ *http.Request, method string, _ json.RawMessage) bool {
		if method == "server/discover" {
			http.Error(w, "no", http.StatusBadRequest)
		}
		return method == "server/discover"
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, end, err := mcp.New(options()).Open(ctx, use(configure(r.url, "look"), nil))
	is.NoErr(err)
	cancel()
	end()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r.mu.Lock()
		deleted := r.deleted
		r.mu.Unlock()
		if deleted == 1 {
			break
		}
		is.True(time.Now().Before(deadline))
	}
}

// TestCanceled: a conversation that ends while a server works ends with its cause, and not with a
// sentence for the model.
func TestCanceled(t *testing.T) {
	is, r := is.New(t), newRemote(t)
	tools := opened(t, options(), r, "look")
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	r.answerCalls(func(w http.ResponseWriter, q *http.Request, id json.RawMessage) {
		cancel(gone)
		hang(w, q, id)
	})
	_, err := tools[0].Run(ctx, ai.ToolCall{ID: "a", Arguments: `{"n":1}`})
	is.Equal(err, gone)
	_, _, err = mcp.New(options()).Open(ctx, use(configure(r.url, "look"), nil))
	is.Equal(err, gone)
}

// TestSchemas: what servers say of parameters cannot make a request to a model fail.
func TestSchemas(t *testing.T) {
	r := newRemote(t)
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 40) + `{"type":"string"}` + strings.Repeat(`}}`, 40)
	wide := []string{}
	for i := range 150 {
		wide = append(wide, fmt.Sprintf(`"p%d":{"type":"string","description":%q}`, i, strings.Repeat("x", 50)))
	}
	described := []string{}
	for i := range 90 {
		described = append(
			described, fmt.Sprintf(`"p%d":{"type":"string","description":%q}`, i, strings.Repeat("x", 900)),
		)
	}
	for name, c := range map[string]struct{ schema, want string }{
		"plain": {
			`{"type":"object","properties":{"n":{"type":["integer","null"],"minimum":1,"enum":[1,2,null]}},"required":["n"],"additionalProperties":false}`,
			`{"additionalProperties":false,"properties":{"n":{"enum":[1,2],"minimum":1,"type":["integer","null"]}},"required":["n"],"type":"object"}`,
		},
		"none": {`{"type":"object"}`, `{"properties":{},"type":"object"}`},
		"oneOf": {
			`{"type":"object","oneOf":[{"required":["a"]}],"properties":{"a":{"oneOf":[{"type":"string"},3]}}}`,
			`{"properties":{"a":{"oneOf":[{"type":"string"}]}},"type":"object"}`,
		},
		"wrong": {
			`{"type":"object","properties":{"a":"string","b":{"type":"text","minLength":"1","enum":"x","required":true,"items":[1]},"":{}},"required":[1,"a"],"x-evil":{"a":1}}`,
			`{"properties":{"b":{}},"required":["a"],"type":"object"}`,
		},
		"list": {`{"type":"object","properties":[1]}`, `{"properties":{},"type":"object"}`},
		"refs": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/B"},"c":{"$ref":"https://evil.example/x"}},"$defs":{"A":{"type":"string"}}}`,
			`{"$defs":{"A":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/A"},"b":{},"c":{}},"type":"object"}`,
		},
		"deep": {deep, ""},
		"wide": {
			`{"type":"object","properties":{` + strings.Join(wide, ",") + `}}`,
			`{"properties":{},"type":"object"}`,
		},
		"describe": {`{"type":"object","properties":{` + strings.Join(described, ",") + `}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r.set(func(w http.ResponseWriter, _ *http.Request, method string, id json.RawMessage) bool {
				if method == "tools/list" {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(
						w,
						`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","title":"T","description":"%s","inputSchema":%s}]}}`,
						id, strings.Repeat(`ä\u0000`, 10000), c.schema,
					)
				}
				return method == "tools/list"
			})
			tools := opened(t, options(), r, "t")
			is.True(len(tools[0].Description) <= 4<<10)
			is.True(!strings.Contains(tools[0].Description, "\x00"))
			is.True(len(tools[0].Parameters) <= 16<<10)
			var schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			}
			is.NoErr(json.Unmarshal(tools[0].Parameters, &schema))
			if c.want != "" {
				is.Equal(string(tools[0].Parameters), c.want)
			}
			if name == "describe" {
				is.Equal(len(schema.Properties), 90)
			}
		})
	}
}

func TestAccept(t *testing.T) {
	s := mcp.New(mcp.Options{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24")}})
	const start = `{"url": "https://mcp.example.com/mcp", "tools": ["look"]`
	for config, want := range map[string]string{
		start + `}`: "",
		start + `, "confirm": "always", "headers": {"Authorization": "Bearer ${TOKEN}", "X-Toolsets": ` +
			`"repos,issues"}}`: "",
		`{"url": "http://10.1.2.3:8000/mcp?profile=x", "tools": ["a.b/c-d"]}`: "",
		`{}`:                         "config.url must be the address",
		`{"url": 1, "tools": ["a"]}`: "config.url must be a text",
		`{"url": null}`:              "config.url must be a text",
		`{"url": "mcp.example.com", "tools": ["a"]}`:                  "config.url must be the address",
		`{"url": "ftp://mcp.example.com", "tools": ["a"]}`:            "config.url must be the address",
		`{"url": "https://", "tools": ["a"]}`:                         "config.url must be the address",
		`{"url": "https://u:p@mcp.example.com", "tools": ["a"]}`:      "config.url must have no user",
		`{"url": "http://mcp.example.com", "tools": ["a"], "Url": 1}`: "config.Url is unknown",
		`{"url": "http://10.1.3.1", "tools": ["a"]}`:                  "config.url must begin with https://",
		`{"url": "https://192.168.0.1", "tools": ["a"]}`: "config.url: connections to 192.168.0.1 " +
			"are denied",
		`{"url": "https://mcp.example.com"}`:                        "config.tools must name",
		`{"url": "https://mcp.example.com", "tools": []}`:           "config.tools must name",
		`{"url": "https://mcp.example.com", "tools": "a"}`:          "config.tools must be a list",
		`{"url": "https://mcp.example.com", "tools": ["a", ""]}`:    "config.tools[1] must have",
		`{"url": "https://mcp.example.com", "tools": ["a", "b c"]}`: "config.tools[1] must have",
		`{"url": "https://mcp.example.com", "tools": ["a", "a"]}`:   "config.tools[1]: a is there twice",
		start + `, "confirm": "no"}`:                                "config.confirm must be",
		start + `, "confirm": null}`:                                "config.confirm must be",
		start + `, "headers": ["a"]}`:                               "config.headers must be an object",
		start + `, "headers": {"a b": "x"}}`:                        `config.headers: "a b" is not`,
		start + `, "headers": {"HOST": "x"}}`:                       "config.headers: HOST is set by",
		start + `, "headers": {"mcp-session-id": "x"}}`:             "config.headers: mcp-session-id is set by",
		start + `, "headers": {"X-A": "x\ny"}}`:                     "config.headers.X-A must be a text of one line",
		start + `, "headers": {"X-A": "1", "x-a": "2"}}`:            "is there twice",
		start + `, "headers": {"X-A": "${TOKEN"}}`:                  "config.headers.X-A: ",
		start + `, "headers": {"X-A": "${a b}"}}`:                   "config.headers.X-A: ",
		start + `, "headers": {"Authorization": "Bearer abc"}}`: "config.headers.Authorization must take " +
			"its value from a secret",
		start + `, "headers": {"x-api-key": "abc"}}`: "config.headers.x-api-key must take its " +
			"value from a secret",
		start + `, "headers": {"Cookie": "a=b"}}`: "config.headers.Cookie must take its value " +
			"from a secret",
		start + `, "url": "https://other.example.com"}`: "config.url is there twice",
	} {
		err := s.Accept(json.RawMessage(config))
		if want == "" {
			is.New(t).NoErr(err)
			continue
		}
		if errs.CodeOf(err) != errs.Invalid || !strings.Contains(errs.MessageOf(err), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
