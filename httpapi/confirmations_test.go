package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/assistants/mcp"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// remoteShop is a remote MCP server with the tools look, which only reads, and order.
type remoteShop struct {
	*httptest.Server
	mu       sync.Mutex
	calls    []string // with their arguments
	headers  []http.Header
	redirect string // "": it answers itself
}

func newShop(t testing.TB) *remoteShop {
	t.Helper()
	s, server := &remoteShop{}, sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	for _, name := range []string{"look", "order", "secret"} {
		server.AddTool(&sdk.Tool{
			Name:        name,
			InputSchema: json.RawMessage(`{"type": "object"}`),
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: name == "look"},
		},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.calls = append(s.calls, name+" "+string(r.Params.Arguments))
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name + " is done"}}}, nil
			})
	}
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = append(s.headers, r.Header.Clone())
		to := s.redirect
		s.mu.Unlock()
		if to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *remoteShop) done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.calls...)
}

// sent returns the headers of the requests so far. Connections are ended behind the end of a
// conversation.
func (s *remoteShop) sent() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]http.Header{}, s.headers...)
}

// caller is a model that calls a tool for each question "tool arguments", and has the result
// answered.
func caller(r aitest.Request) aitest.Turn {
	if r.Last().Role == "tool" {
		return aitest.Turn{Text: []string{"Done."}}
	}
	name, arguments, _ := strings.Cut(r.Last().Text(), " ")
	return calls(name, arguments)
}

// withShop returns a world whose assistants can have tools of MCP servers on this machine, and the
// path of one that has a shop, which mia may talk to, too. model is at the server.
func withShop(
	t testing.TB, open dbtest.Opener, model ai.Provider, s *remoteShop, change ...func(*tenantcontent.Config),
) (*world, string) {
	t.Helper()
	local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	w := newWorld(t, open, append([]func(*tenantcontent.Config){withAI(model), func(c *tenantcontent.Config) {
		c.Skills = []conversation.Skill{mcp.New(mcp.Options{AllowNetworks: local, Log: c.Log})}
	}}, change...)...)
	w.withAI(t, "mia")
	one := "/api/assistants/" + added(t, w, "assistants", `{"name": "Helper"}`)
	w.must(
		t, "admin", "PUT", one+"/skills/shop",
		fmt.Sprintf(`{"type": "mcp", "config": {"url": %q, "tools": ["look", "order"]}}`, s.URL),
	)
	w.must(t, "admin", "PUT", one+"/shares/mia", `{"accessLevel": 1}`)
	return w, one
}

// ask begins a chat over a connection.
func ask(ctx context.Context, t testing.TB, server *httptest.Server, path, credential, question string) *bufio.Reader {
	t.Helper()
	is := is.New(t)
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": question}}})
	is.NoErr(err)
	r, err := http.NewRequestWithContext(ctx, "POST", server.URL+path+"/_chat", strings.NewReader(string(body)))
	is.NoErr(err)
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Content-Type", "application/json")
	res, err := server.Client().Do(r)
	is.NoErr(err)
	t.Cleanup(func() { _ = res.Body.Close() })
	is.Equal(res.StatusCode, 200)
	return bufio.NewReader(res.Body)
}

// eventNamed reads events up to one with a name, and returns its data.
func eventNamed(t testing.TB, events *bufio.Reader, name string) string {
	t.Helper()
	for {
		e, err := readEvent(events)
		is.New(t).NoErr(err)
		if e.name == name {
			return e.data
		}
		if e.name == "done" || e.name == "error" {
			t.Fatalf("%s: %s, and no %s", e.name, e.data, name)
		}
	}
}

// asked is the event confirm.
type asked struct {
	CallID, Name, Arguments, ConfirmationID string
	ExpiresAt                               time.Time
}

func confirmed(t testing.TB, events *bufio.Reader) (a asked) {
	t.Helper()
	is.New(t).NoErr(json.Unmarshal([]byte(eventNamed(t, events, "confirm")), &a))
	return a
}

func decision(id string, approve bool) string {
	return fmt.Sprintf(`{"confirmationId": %q, "approve": %t}`, id, approve)
}

// waiting returns the number of calls that wait.
func waiting(t testing.TB, w *world) (n int) {
	t.Helper()
	n, err := bunx.Count(t.Context(), w.db, "acme", "tc_confirmations")
	is.New(t).NoErr(err)
	return n
}

// TestConfirmedCalls: a call that changes something waits for the person, and for no one else, and
// for one decision, which may come to another server.
func TestConfirmedCalls(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), newShop(t)
		model := aitest.NewReplier(caller)
		t.Cleanup(model.Close)
		var c tenantcontent.Config
		w, one := withShop(t, open, modelAt(t, model), s, func(own *tenantcontent.Config) { c = *own })
		other, err := tenantcontent.Open(c) // a second server over the same database
		is.NoErr(err)
		first, server := w.http, httptest.NewServer(w.http)
		t.Cleanup(server.Close) // when the streams are closed
		admin := w.token(t, "admin")
		const result = `{"id":"c","name":"shop_order","content":"order is done","failed":false}`
		const declined = `{"id":"c","name":"shop_order","content":"Error: The user has declined this ` +
			`call.","failed":true}`

		events := ask(t.Context(), t, server, one, admin, `shop_look {"n": 1}`) // reads, so at once
		is.Equal(
			eventNamed(t, events, "tool-result"),
			`{"id":"c","name":"shop_look","content":"look is done","failed":false}`,
		)
		is.Equal(s.done(), []string{`look {"n":1}`})
		events = ask(t.Context(), t, server, one, admin, `shop_secret {}`) // is not in the list
		is.Equal(
			eventNamed(t, events, "tool-result"),
			`{"id":"c","name":"shop_secret","content":"Error: There is no tool shop_secret.","failed":true}`,
		)

		for _, approve := range []bool{true, false} {
			before := len(s.done())
			events = ask(t.Context(), t, server, one, admin, `shop_order {"n": 2}`)
			a := confirmed(t, events)
			is.Equal(a, asked{
				CallID:         "c",
				Name:           "shop_order",
				Arguments:      `{"n": 2}`,
				ConfirmationID: a.ConfirmationID,
				ExpiresAt:      w.now().Add(10 * time.Minute),
			})
			is.Equal(len(s.done()), before)
			for user, status := range map[string]int{"mia": 404, "eve": 400, "tim": 403, "": 401} {
				// eve's tenant has no AI, tim no credential for it
				is.Equal(w.do(t, user, "POST", one+"/_chat/_confirm", decision(a.ConfirmationID, true)).status, status)
			}
			for body, message := range map[string]string{
				`{}`:                "confirmationId is required: the event confirm has it",
				`{"approve": true}`: "confirmationId is required: the event confirm has it",
				`{"confirmationId": "` + a.ConfirmationID +
					`"}`: "approve is required: true or false",
				`{"confirmationId": "` + a.ConfirmationID +
					`", "approve": null}`: "approve must not be null",
				`{"confirmationId": "` + a.ConfirmationID +
					`", "approve": "yes"}`: "approve must be true or false",
				`{"confirmationId": "` + a.ConfirmationID + `", "approve": true, "arguments": {}}`: "arguments",
			} {
				refused := w.do(t, "admin", "POST", one+"/_chat/_confirm", body)
				is.Equal(refused.status, 400)
				is.True(strings.Contains(refused.message(t), strings.Fields(message)[0]))
			}
			second := "/api/assistants/" + added(t, w, "assistants", fmt.Sprintf(`{"name": "Second %t"}`, approve))
			is.Equal(w.do(t, "admin", "POST", second+"/_chat/_confirm", decision(a.ConfirmationID, true)).status, 404)
			is.Equal(w.do(t, "admin", "POST", one+"/_chat/_confirm", decision("another", true)).status, 404)

			w.http = other
			w.must(t, "admin", "POST", one+"/_chat/_confirm", decision(a.ConfirmationID, approve))
			again := w.do(t, "admin", "POST", one+"/_chat/_confirm", decision(a.ConfirmationID, true))
			is.Equal(again.status, 404)
			is.Equal(
				again.message(t),
				"Nothing waits for this confirmation: it is decided already, its time is over, or the "+
					"conversation has ended.",
			)
			w.http = first
			is.Equal(eventNamed(t, events, "tool-result"), map[bool]string{true: result, false: declined}[approve])
			eventNamed(t, events, "done")
			is.Equal(waiting(t, w), 0)
		}
		is.Equal(s.done(), []string{`look {"n":1}`, `order {"n":2}`})

		events = ask(t.Context(), t, server, one, admin, `shop_order {"n": 3}`) // nobody decides
		a := confirmed(t, events)
		w.pass(10 * time.Minute)
		is.Equal(eventNamed(t, events, "tool-result"), declined)
		is.Equal(w.do(t, "admin", "POST", one+"/_chat/_confirm", decision(a.ConfirmationID, true)).status, 404)

		ctx, leave := context.WithCancel(t.Context()) // the client goes
		a = confirmed(t, ask(ctx, t, server, one, admin, `shop_order {"n": 4}`))
		leave()
		for deadline := time.Now().Add(time.Minute); waiting(t, w) > 0; time.Sleep(10 * time.Millisecond) {
			is.True(time.Now().Before(deadline))
		}
		is.Equal(w.do(t, "admin", "POST", one+"/_chat/_confirm", decision(a.ConfirmationID, true)).status, 404)
		is.Equal(len(s.done()), 2)
	})
}

// TestVisitorsConfirm: of two visitors, and who has invited them, each decides on the calls of
// their own conversation.
func TestVisitorsConfirm(t *testing.T) {
	is, s := is.New(t), newShop(t)
	model := aitest.NewReplier(caller)
	t.Cleanup(model.Close)
	w, one := withShop(t, dbtest.SQLite, modelAt(t, model), s)
	server := httptest.NewServer(w.http)
	t.Cleanup(server.Close) // when the streams are closed
	key := func() string {
		return read[struct{ Key string }](t, w.must(t, "admin", "POST", one+"/tokens", `{}`)).Key
	}
	mine, others := key(), key()
	confirm := func(user, key, id string) int {
		if key == "" {
			return w.do(t, user, "POST", one+"/_chat/_confirm", decision(id, true)).status
		}
		return w.do(t, "", "POST", one+"/_chat/_confirm", decision(id, true), "Authorization: Bearer "+key).status
	}
	events := ask(t.Context(), t, server, one, mine, `shop_order {"n": 1}`)
	a := confirmed(t, events)
	is.Equal(confirm("", others, a.ConfirmationID), 404)
	is.Equal(confirm("admin", "", a.ConfirmationID), 404)
	is.Equal(confirm("", mine, a.ConfirmationID), 200)
	eventNamed(t, events, "done")
	is.Equal(s.done(), []string{`order {"n":1}`})
	events = ask(t.Context(), t, server, one, w.token(t, "admin"), `shop_order {"n": 2}`)
	a = confirmed(t, events)
	is.Equal(confirm("", mine, a.ConfirmationID), 404)
	events = ask(t.Context(), t, server, one, w.token(t, "mia"), `shop_order {"n": 3}`)
	a = confirmed(t, events)
	// who may not talk to it any more decides nothing
	w.must(t, "admin", "PUT", "/api/users/mia", `{"globalPermissions": {"ai": false}}`)
	is.Equal(confirm("mia", "", a.ConfirmationID), 403)
	is.Equal(len(s.done()), 1)
}

// TestWaitingCalls: conversations that wait for a person leave the models to others, and each
// person has a number of them.
func TestWaitingCalls(t *testing.T) {
	is, s := is.New(t), newShop(t)
	model := aitest.NewReplier(caller)
	t.Cleanup(model.Close)
	w, one := withShop(t, dbtest.SQLite, modelAt(t, model), s)
	server := httptest.NewServer(w.http)
	t.Cleanup(server.Close) // when the streams are closed
	all := map[string]*bufio.Reader{}
	for range confirmations.MaxWaiting { // twice as many as a user has places
		events := ask(t.Context(), t, server, one, w.token(t, "admin"), `shop_order {}`)
		all[confirmed(t, events).ConfirmationID] = events
	}
	events := ask(t.Context(), t, server, one, w.token(t, "admin"), `shop_order {}`)
	is.Equal(
		eventNamed(t, events, "tool-result"),
		`{"id":"c","name":"shop_order","content":"Error: 16 calls wait for your confirmation. Decide on one, or `+
			`wait until it is over.","failed":true}`,
	)
	is.Equal(len(s.done()), 0)
	for id := range all { // all go on in the end, although there are not places for all at once
		w.must(t, "admin", "POST", one+"/_chat/_confirm", decision(id, true))
	}
	for _, events := range all {
		eventNamed(t, events, "done")
	}
	is.Equal(len(s.done()), confirmations.MaxWaiting)
}

// TestMCPServersInConversations: what is wrong with a server is told, the conversation goes on, and
// secrets reach it alone.
func TestMCPServersInConversations(t *testing.T) {
	is, s, thief := is.New(t), newShop(t), newShop(t)
	model := aitest.NewReplier(caller)
	t.Cleanup(model.Close)
	w, one := withShop(t, dbtest.SQLite, modelAt(t, model), s)
	const secret = "hunter2hunter2"
	configure := func(url, tools string) {
		w.must(
			t, "admin", "PUT", one+"/skills/shop",
			fmt.Sprintf(
				`{"type": "mcp", "config": {"url": %q, "tools": %s, "headers": {"Authorization": "Bearer ${KEY}"}}}`,
				url, tools,
			),
		)
	}
	chat := func(question string) (body, prompt string) {
		before := len(model.Requests())
		body = w.must(
			t, "admin", "POST", one+"/_chat", `{"messages": [{"role": "user", "content": "`+question+`"}]}`,
		).body
		return body, told(t, model, before)
	}
	configure(s.URL, `["look"]`)
	_, prompt := chat("shop_look {}")
	is.True(strings.Contains(
		prompt,
		"Your skill shop is not complete: The assistant has no secret KEY, which the header Authorization needs.",
	))
	w.must(t, "admin", "PUT", one+"/secrets/KEY", `{"value": "`+secret+`"}`)

	configure(s.URL, `["look", "gone"]`)
	body, prompt := chat("shop_look {}")
	is.Equal(results(t, body), []string{"look is done"})
	is.Equal(strings.Count(prompt, "not available now: gone."), 1)
	for _, h := range s.sent() {
		is.Equal(h.Get("Authorization"), "Bearer "+secret)
	}

	s.mu.Lock()
	s.redirect = thief.URL
	s.mu.Unlock()
	body, prompt = chat("shop_look {}")
	is.Equal(len(results(t, body)), 0)
	is.True(strings.Contains(prompt, "it redirects to another address, which is not followed."))
	is.Equal(len(thief.sent()), 0)

	s.Close()
	body, prompt = chat("shop_look {}")
	is.True(strings.Contains(body, "event: done"))
	is.True(strings.Contains(
		prompt, "Your skill shop is not complete: The MCP server did not list its tools: it cannot be reached.",
	))
	is.True(strings.Contains(w.log.String(), "an MCP server failed"))
	for _, r := range model.Requests() {
		is.True(!strings.Contains(r.Body, secret))
	}
	is.True(!strings.Contains(w.log.String()+body, secret))

	for config, want := range map[string]string{
		`{"url": "https://169.254.169.254/mcp", "tools": ["look"]}`: "skills: shop: config.url: connections to " +
			"169.254.169.254 are denied by the configuration of this server. Its operator names the networks of " +
			"its own where MCP servers may be: TENANTCONTENT_ALLOW_NETWORKS, Options.AllowNetworks",
		`{"url": "https://192.168.1.1/mcp", "tools": ["look"]}`: "skills: shop: config.url: connections to " +
			"192.168.1.1 are denied by the configuration of this server. Its operator names the networks of its " +
			"own where MCP servers may be: TENANTCONTENT_ALLOW_NETWORKS, Options.AllowNetworks",
		`{"url": "https://mcp.example.com", "tool": ["look"]}`: "skills: shop: config.tool is unknown: a " +
			"skill of the type mcp has url, tools, headers and confirm",
	} {
		a := w.do(t, "admin", "PUT", one+"/skills/shop", `{"type": "mcp", "config": `+config+`}`)
		is.Equal(a.status, 400)
		is.Equal(a.message(t), want)
	}
}

// TestNameOfPrivateAddress: a name that resolves to an address of this machine is refused when it
// is called.
func TestNameOfPrivateAddress(t *testing.T) {
	is, s := is.New(t), newShop(t)
	tls := httptest.NewTLSServer(s.Config.Handler)
	defer tls.Close()
	model := aitest.NewReplier(caller)
	t.Cleanup(model.Close)
	w := newWorld(t, dbtest.SQLite, withAI(modelAt(t, model)), func(c *tenantcontent.Config) {
		c.Skills = []conversation.Skill{mcp.New(mcp.Options{Log: slog.New(slog.DiscardHandler)})}
	})
	w.withAI(t)
	one := "/api/assistants/" + added(t, w, "assistants", `{"name": "Helper"}`)
	url := "https://localhost" + tls.URL[strings.LastIndex(tls.URL, ":"):]
	w.must(t, "admin", "PUT", one+"/skills/shop", `{"type": "mcp", "config": {"url": "`+url+`", "tools": ["look"]}}`)
	w.must(t, "admin", "POST", one+"/_chat", `{"messages": [{"role": "user", "content": "shop_look {}"}]}`)
	is.True(strings.Contains(
		told(t, model, 0), "connections to its address are denied by the configuration of this server.",
	))
	is.Equal(len(s.headers), 0)
}

// TestSecretsKeepTheirPlace: who may change an assistant does not get its secrets by having them
// sent elsewhere, at once, in two steps, or in a draft.
func TestSecretsKeepTheirPlace(t *testing.T) {
	is, s, thief := is.New(t), newShop(t), newShop(t)
	model := aitest.NewReplier(caller)
	t.Cleanup(model.Close)
	w, one := withShop(t, dbtest.SQLite, modelAt(t, model), s)
	skill := func(url, secret string) string {
		return fmt.Sprintf(
			`{"type": "mcp", "config": {"url": %q, "tools": ["look"], "headers": {"X-Key": "k ${%s}"}}}`, url,
			secret,
		)
	}
	w.must(t, "admin", "PUT", one+"/shares/mia", `{"accessLevel": 2}`)
	w.must(t, "admin", "PUT", one+"/secrets/KEY", `{"value": "hunter2hunter2"}`)
	w.must(t, "admin", "PUT", one+"/skills/shop", skill(s.URL, "KEY"))
	w.must(t, "mia", "PUT", one+"/skills/shop", skill(s.URL+"/v2", "KEY")) // the same server
	draft := "/api/assistants/" + read[struct{ ID string }](t, w.must(t, "mia", "POST", one+"/_edit", "")).ID
	for _, at := range []string{one, draft} {
		for _, user := range []string{"mia", "admin"} {
			if at == draft && user == "admin" {
				continue // mia has the lock
			}
			a := w.do(t, user, "PUT", at+"/skills/shop", skill(thief.URL, "KEY"))
			is.Equal(a.status, 400)
			is.Equal(
				a.message(t),
				"skills: shop: the secret KEY would be sent to "+thief.URL+
					", where it was not sent before: remove it, change the skill, and set it again.",
			)
			is.Equal(
				w.do(
					t, user, "PUT", at,
					`{"skills": [`+strings.Replace(skill(thief.URL, "KEY"), `{`, `{"name": "shop",`, 1)+`]}`,
				).status,
				400,
			)
			is.Equal(w.do(t, user, "PUT", at+"/skills/second", skill(thief.URL, "KEY")).status, 400)
		}
		w.must(t, "mia", "DELETE", at+"/skills/shop", "")
		is.Equal(w.do(t, "mia", "PUT", at+"/skills/shop", skill(thief.URL, "KEY")).status, 400)
		w.must(t, "mia", "POST", at+"/_chat", hello)
	}
	w.must(t, "mia", "DELETE", draft+"/secrets/KEY", "")
	w.must(t, "mia", "PUT", draft+"/skills/shop", skill(thief.URL, "KEY"))
	is.Equal(w.do(t, "mia", "PUT", draft+"/secrets/KEY", `{"value": "********"}`).status, 400)
	w.must(t, "mia", "POST", one+"/draft/_commit?force=true", "")
	w.must(t, "mia", "POST", one+"/_chat", hello) // the assistant has the secrets of the draft
	is.Equal(len(thief.sent()), 0)

	w.must(t, "admin", "PUT", one+"/skills/shop", skill(s.URL, "KEY"))
	w.must(t, "admin", "PUT", one+"/secrets/KEY", `{"value": "hunter2hunter2"}`)
	w.must(t, "mia", "PUT", one+"/skills/other", skill(thief.URL, "MINE"))
	w.must(t, "mia", "PUT", one+"/secrets/MINE", `{"value": "my own key"}`)
	w.must(t, "mia", "POST", one+"/_chat", hello)
	is.True(len(thief.sent()) > 0)
	for _, h := range thief.sent() {
		is.Equal(h.Get("X-Key"), "k my own key")
	}
}

// TestImportedSkillGetsNoSecrets: an import that changes where a skill sends a secret leaves the
// secret without its value, another import keeps it.
func TestImportedSkillGetsNoSecrets(t *testing.T) {
	is, s, thief := is.New(t), newShop(t), newShop(t)
	model := aitest.NewReplier(caller)
	t.Cleanup(model.Close)
	w, one := withShop(t, dbtest.SQLite, modelAt(t, model), s)
	skill := func(url string) string {
		return fmt.Sprintf(
			`{"type": "mcp", "config": {"url": %q, "tools": ["look"], "headers": {"X-Key": "${KEY}"}}}`, url,
		)
	}
	export := func() string {
		return w.must(
			t, "admin", "POST", "/api/_bundle",
			`{"entries": [{"type": "assistant", "assistantId": "`+one[len("/api/assistants/"):]+`"}]}`,
		).body
	}
	w.must(t, "admin", "PUT", one+"/skills/shop", skill(thief.URL))
	w.must(t, "admin", "PUT", one+"/secrets/KEY", `{"value": "thief's own"}`)
	hostile := export()
	w.must(t, "admin", "DELETE", one+"/secrets/KEY", "")
	w.must(t, "admin", "PUT", one+"/skills/shop", skill(s.URL))
	w.must(t, "admin", "PUT", one+"/secrets/KEY", `{"value": "hunter2hunter2"}`)
	w.must(t, "admin", "POST", "/api/_import-bundle?updateRule=overwrite", export())
	w.must(t, "admin", "POST", one+"/_chat", hello)
	sent := s.sent()
	is.Equal(sent[len(sent)-1].Get("X-Key"), "hunter2hunter2")

	body := w.must(t, "admin", "POST", "/api/_import-bundle?updateRule=overwrite", hostile).body
	is.True(strings.Contains(body, "its secrets KEY have no value here"))
	w.must(t, "admin", "POST", one+"/_chat", hello)
	is.Equal(len(thief.sent()), 0)
}
