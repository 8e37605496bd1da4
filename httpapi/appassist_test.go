package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// models are the language models of all worlds: see talk.
var models = sync.OnceValues(func() (ai.Provider, error) {
	return openai.New(openai.Options{
		URL:        aitest.NewReplier(talk).URL,
		Models:     []openai.Model{{Name: "fast"}, {Name: "smart"}},
		ImageModel: "flux",
		Log:        slog.New(slog.DiscardHandler),
	})
})

// talk answers by what the last message has in it.
func talk(r aitest.Request) aitest.Turn {
	if r.Prompt != "" {
		return aitest.Turn{Image: []byte("GIF89a of " + r.Prompt)}
	}
	last := r.Last()
	text := last.Text()
	say := func(text ...string) aitest.Turn {
		return aitest.Turn{Text: text, Usage: ai.Usage{InputTokens: 100, OutputTokens: 10}}
	}
	switch {
	case strings.HasPrefix(text, "call ") && last.Role == "user": // a tool with its arguments
		name, arguments, _ := strings.Cut(text[len("call "):], " ")
		return aitest.Turn{
			Calls: []ai.ToolCall{{ID: "call_1", Name: name, Arguments: arguments}},
			Usage: ai.Usage{InputTokens: 50, OutputTokens: 5},
		}
	case strings.Contains(text, "Suggest up to"):
		return say(`{"suggestions": ["Which region sold most?", "  ", "How did sales grow?"]}`)
	case strings.Contains(text, "five icons"):
		return say("```json\n", `{"icons": ["no_such_icon", "bar_chart", "sell"]}`, "\n```")
	case strings.Contains(text, "Rewrite the manifest"), strings.Contains(text, "Write the manifest"):
		return say(`{"manifest": "access: /api/colors", "changes": []}`)
	case strings.Contains(text, "That is not right"):
		return say(`{"manifest": "access:\n  - colors\n  - datasets/*\n", "changes": ["access is a list"]}`)
	case last.Role == "tool":
		return say("The tool has answered: ", text, ".")
	case strings.Contains(text, "rows") && len(r.Tools) > 0:
		return aitest.Turn{
			Text:  []string{"Let me count."},
			Calls: []ai.ToolCall{{ID: "call_1", Name: "dataset_count", Arguments: `{"dataset": "sales"}`}},
			Usage: ai.Usage{InputTokens: 50, OutputTokens: 5},
		}
	case strings.Contains(text, "everything"):
		return aitest.Turn{
			Calls: []ai.ToolCall{
				{
					ID:        "call_1",
					Name:      "dataset_rows",
					Arguments: `{"dataset": "sales", "sort": "-amount", "filter": {"amount": {"gt": 1}}}`,
				},
				{ID: "call_2", Name: "dataset_rows", Arguments: `{"dataset": "salaries"}`},
			},
		}
	case strings.Contains(text, "fail late"):
		return aitest.Turn{Text: []string{"I "}, Cut: true}
	case strings.Contains(text, "fail"):
		return aitest.Turn{
			Status: 429,
			Header: map[string]string{"Retry-After": "7"},
			Body:   `{"error": {"message": "quota of organization org-1"}}`,
		}
	case strings.Contains(text, "instructions"):
		return say(r.Messages[0].Text())
	}
	return say("You said: ", text)
}

// withModel returns a provider whose model does what a script says.
func withModel(t testing.TB, script ...aitest.Turn) (*aitest.Server, ai.Provider) {
	t.Helper()
	s := aitest.NewServer(script...)
	t.Cleanup(s.Close)
	return s, modelAt(t, s)
}

// modelAt returns a provider whose model is at a server.
func modelAt(t testing.TB, s *aitest.Server) ai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		URL:    s.URL,
		Models: []openai.Model{{Name: "fast"}},
		Log:    slog.New(slog.DiscardHandler),
	})
	is.New(t).NoErr(err)
	return p
}

// imagesAt returns a provider that also makes images.
func imagesAt(t testing.TB, s *aitest.Server) ai.Provider {
	t.Helper()
	p, err := openai.New(openai.Options{
		URL:        s.URL,
		Models:     []openai.Model{{Name: "fast"}},
		ImageModel: "flux",
		Log:        slog.New(slog.DiscardHandler),
	})
	is.New(t).NoErr(err)
	return p
}

// withAI returns the configuration of a world with a provider.
func withAI(p ai.Provider) func(*tenantcontent.Config) {
	return func(c *tenantcontent.Config) { c.AI = p }
}

// chatApp switches AI on, makes an app and returns the path of its chat.
func chatApp(t testing.TB, w *world) string {
	t.Helper()
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
	return "/api/apps/" + read[struct{ ID string }](
		t, w.must(t, "admin", "POST", "/api/apps", `{"type": "report", "name": "Sales"}`),
	).ID + "/chat"
}

const hello = `{"messages": [{"role": "user", "content": "Hello"}]}`

// event is an event as a client reads it.
type event struct{ name, data string }

// readEvent reads an event, without comments.
func readEvent(r *bufio.Reader) (e event, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch {
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		case name == "" && e.name != "":
			return e, nil
		}
	}
}

// stream begins a chat over a connection.
func stream(
	ctx context.Context, t testing.TB, w *world, server *httptest.Server, path string,
) (*http.Response, *bufio.Reader) {
	t.Helper()
	is := is.New(t)
	r, err := http.NewRequestWithContext(ctx, "POST", server.URL+path, strings.NewReader(hello))
	is.NoErr(err)
	r.Header.Set("Authorization", "Bearer "+w.token(t, "admin"))
	r.Header.Set("Content-Type", "application/json")
	res, err := server.Client().Do(r)
	is.NoErr(err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res, bufio.NewReader(res.Body)
}

// TestChatStreams: an event is there as soon as the model has sent it, and nothing between may hold
// it back.
func TestChatStreams(t *testing.T) {
	is := is.New(t)
	wait := make(chan struct{})
	_, model := withModel(t, aitest.Turn{Text: []string{"He", "llo\n\ndata: x"}, Wait: wait})
	w := newWorld(t, dbtest.SQLite, withAI(model))
	server := httptest.NewServer(w.http)
	defer server.Close()
	res, events := stream(t.Context(), t, w, server, chatApp(t, w))
	is.Equal(res.StatusCode, 200)
	is.Equal(res.Header.Get("Content-Type"), "text/event-stream")
	is.Equal(res.Header.Get("Cache-Control"), "no-store, no-transform")
	is.Equal(res.Header.Get("X-Accel-Buffering"), "no")
	e, err := readEvent(events)
	is.NoErr(err)
	is.Equal(e, event{"text", `{"text":"He"}`})
	close(wait)
	for _, want := range []event{
		{"text", `{"text":"llo\n\ndata: x"}`}, {"usage", `{"model":"fast","inputTokens":0,"outputTokens":0}`},
		{"done", `{"finish":"stop"}`},
	} {
		e, err := readEvent(events)
		is.NoErr(err)
		is.Equal(e, want)
	}
	_, err = readEvent(events)
	is.Equal(err, io.EOF)
}

// TestChatEndsWithItsClient: the model's server does not work for nobody.
func TestChatEndsWithItsClient(t *testing.T) {
	is := is.New(t)
	s, model := withModel(t, aitest.Turn{Text: []string{"He"}, Stall: true})
	w := newWorld(t, dbtest.SQLite, withAI(model))
	server := httptest.NewServer(w.http)
	defer server.Close()
	ctx, leave := context.WithCancel(t.Context())
	_, events := stream(ctx, t, w, server, chatApp(t, w))
	_, err := readEvent(events)
	is.NoErr(err)
	leave()
	until(t, "the end of the chat", func() bool { return s.Gone() == 1 })
	until(t, "the end of the chat", func() bool { return strings.Contains(w.log.String(), "client gone") })
}

// TestChatOfStoppingServer: the client is told, a while after the server has begun to stop.
func TestChatOfStoppingServer(t *testing.T) {
	is := is.New(t)
	_, model := withModel(t, aitest.Turn{Text: []string{"He"}, Stall: true})
	w := newWorld(t, dbtest.SQLite)
	path := chatApp(t, w)
	w.rebuilt(t, func(c *httpapi.Config) { c.AI, c.LastIdle = model, 10*time.Millisecond })
	server := httptest.NewServer(w.http)
	defer server.Close()
	_, events := stream(t.Context(), t, w, server, path)
	_, err := readEvent(events)
	is.NoErr(err)
	drained := make(chan error, 1)
	go func() { drained <- w.http.(httpapi.Handler).Drain(t.Context()) }()
	e, err := readEvent(events)
	is.NoErr(err)
	is.Equal(e, event{
		"error", `{"statusCode":503,"error":"Service Unavailable","message":"The server stops. Ask again."}`,
	})
	is.NoErr(<-drained)
}

// TestHeartbeat: a stream whose model says nothing sends comments, so that no proxy takes it for
// dead.
func TestHeartbeat(t *testing.T) {
	is := is.New(t)
	wait := make(chan struct{})
	defer close(wait)
	s := aitest.NewReplier(func(aitest.Request) aitest.Turn {
		<-wait
		return aitest.Turn{Status: 500}
	})
	defer s.Close()
	p, err := openai.New(openai.Options{
		URL:    s.URL,
		Models: []openai.Model{{Name: "fast"}},
		Log:    slog.New(slog.DiscardHandler),
	})
	is.NoErr(err)
	w := newWorld(t, dbtest.SQLite)
	path := chatApp(t, w)
	w.rebuilt(t, func(c *httpapi.Config) { c.AI, c.Heartbeat = p, 10*time.Millisecond })
	server := httptest.NewServer(w.http)
	defer server.Close()
	res, events := stream(t.Context(), t, w, server, path)
	is.Equal(res.StatusCode, 200)
	for range 3 {
		line, err := events.ReadString('\n')
		is.NoErr(err)
		is.Equal(strings.TrimSpace(strings.Trim(line, ":")), "")
	}
	wait <- struct{}{}
	e, err := readEvent(events)
	is.NoErr(err)
	is.Equal(e.name, "error")
	is.True(strings.Contains(e.data, `"statusCode":503`))
}

// TestStuckClient: a client that takes nothing is cut, and holds up nothing.
func TestStuckClient(t *testing.T) {
	is := is.New(t)
	s, model := withModel(t, aitest.Turn{Text: []string{strings.Repeat("x", 64<<10)}, Flood: true})
	w := newWorld(t, dbtest.SQLite)
	path := chatApp(t, w)
	w.rebuilt(t, func(c *httpapi.Config) { c.AI, c.Idle = model, 100*time.Millisecond })
	server := httptest.NewUnstartedServer(w.http)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10) // else the kernel takes the whole answer
		return ctx
	}
	server.Start()
	defer server.Close()
	server.Client().Transport.(*http.Transport).DialContext = func(
		ctx context.Context, network, address string,
	) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}
	_, events := stream(t.Context(), t, w, server, path)
	_, err := readEvent(events)
	is.NoErr(err)
	until(t, "the end of the chat", func() bool { return strings.Contains(w.log.String(), "i/o timeout") })
	until(t, "the end of the model's answer", func() bool { return s.Gone() == 1 })
}

// TestTooManyChats: a user has a number of answers at once.
func TestTooManyChats(t *testing.T) {
	is := is.New(t)
	var turns []aitest.Turn
	for range 8 {
		turns = append(turns, aitest.Turn{Text: []string{"He"}, Stall: true})
	}
	_, model := withModel(t, append(turns, aitest.Turn{Text: []string{"Hi"}})...)
	w := newWorld(t, dbtest.SQLite)
	path := chatApp(t, w)
	w.rebuilt(t, func(c *httpapi.Config) { c.AI = chat.NewPlaces(10*time.Millisecond).For(model, "") })
	server := httptest.NewServer(w.http)
	defer server.Close()
	var leave context.CancelFunc
	for range 8 {
		var ctx context.Context
		ctx, leave = context.WithCancel(t.Context())
		defer leave()
		_, events := stream(ctx, t, w, server, path)
		_, err := readEvent(events)
		is.NoErr(err)
	}
	a := w.do(t, "admin", "POST", path, hello)
	is.Equal(a.status, 429)
	is.True(strings.HasPrefix(a.message(t), "Too many answers"))
	is.True(a.header.Get("Retry-After") != "")
	leave()
	until(t, "the end of the chat", func() bool { return w.do(t, "admin", "POST", path, hello).status == 200 })
}

// TestWithoutModel: the routes tell how to get one, the gate comes first, and no app has a link to
// them.
func TestWithoutModel(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.AI = nil })
	path := chatApp(t, w)
	one := strings.TrimSuffix(path, "/chat")
	for _, r := range [][2]string{
		{"GET", "/chat"}, {"POST", "/chat"}, {"GET", "/suggestions"}, {"GET", "/suggestions-ai"},
		{"POST", "/_suggest-icon"}, {"POST", "/_modernize-manifest"},
	} {
		a := w.do(t, "admin", r[0], one+r[1], "")
		is.Equal(a.status, 503)
		is.True(strings.Contains(a.message(t), "TENANTCONTENT_AI_URL"))
		is.Equal(w.do(t, "tim", r[0], one+r[1], "").status, 403)
	}
	is.True(!strings.Contains(w.must(t, "admin", "GET", one, "").body, "inf:app-chat"))
	w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": false}, "licenses": ["apps"]}}`)
	a := w.do(t, "admin", "GET", path, "")
	is.Equal(a.status, 400)
	is.Equal(a.message(t), "AI is not enabled on the system")
}

// TestChatConversations: what a client may send.
func TestChatConversations(t *testing.T) {
	w := newWorld(t, dbtest.SQLite)
	path := chatApp(t, w)
	many := strings.TrimSuffix(strings.Repeat(`{"role": "user", "content": "x"},`, 201), ",")
	for body, want := range map[string]string{
		`{}`:                           "messages must have 1 to 200 messages",
		`{"messages": []}`:             "messages must have 1 to 200 messages",
		`{"messages": [` + many + `]}`: "messages must have 1 to 200 messages",
		`{"messages": [{"role": "system", "content": "x"}]}`:                                      "messages[0].role must be user or assistant",
		`{"messages": [{"role": "tool", "content": "x"}]}`:                                        "messages[0].role must be user or assistant",
		`{"messages": ["Hello"]}`:                                                                 "messages[0] must be an object",
		`{"messages": [{"role": "user", "content": [{}]}]}`:                                       "messages[0].content must be a string",
		`{"messages": [{"role": "user", "CONTENT": "Hello"}]}`:                                    "unknown member messages[0].CONTENT: did you mean messages[0].content?",
		`{"messages": [{"role": "user", "content": " "}]}`:                                        "messages[0].content must not be empty",
		`{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}`: "messages[1].role must be user: the last message is the question",
		`{"messages": [{"role": "user", "content": "` + strings.Repeat("x", 600<<10) +
			`"}]}`: "messages must have at most 524288 bytes of text: leave old ones out",
		`{"messages": [{"role": "user", "content": "x"}], "model": "gpt-none"}`: "model must be one of fast, smart",
	} {
		a := w.do(t, "admin", "POST", path, body)
		if a.status != 400 || a.message(t) != want {
			t.Errorf("%.80s: %d %s", body, a.status, a.body)
		}
	}
	for _, model := range []string{"smart", ""} {
		a := w.must(
			t, "admin", "POST", path,
			fmt.Sprintf(`{"messages": [{"role": "user", "content": "x"}], "model": %q}`, model),
		)
		is.New(t).True(strings.Contains(a.body, `"model":"`+map[string]string{"smart": "smart", "": "fast"}[model]+`"`))
	}
}

// TestChatReadsWithTheCallersRights: a dataset of which the caller has no sight is none to the
// model.
func TestChatReadsWithTheCallersRights(t *testing.T) {
	is := is.New(t)
	s, model := withModel(t, aitest.Turn{Text: []string{"Hi"}})
	w := newWorld(t, dbtest.SQLite, withAI(model))
	w.must(t, "admin", "PUT", "/api/users/mia", `{"globalPermissions": {"ai": true}}`)
	path := chatApp(t, w)
	one := strings.TrimSuffix(path, "/chat")
	dataset := read[struct{ ID string }](
		t,
		w.must(
			t, "admin", "POST", "/api/datasets",
			`{"name": "Sales", "data": {"fields": [{"name": "amount", "type": "numeric"}], "rows": [{"amount": 5}]}}`,
		),
	).ID
	w.must(t, "admin", "PUT", one+"/dependencies/sales", `{"datasetId": "`+dataset+`"}`)
	is.Equal(w.do(t, "mia", "POST", path, hello).status, 404)
	w.must(t, "admin", "PUT", one+"/shares/mia", `{"accessLevel": 1}`)
	w.must(
		t, "admin", "PUT", one,
		`{"settings": {"chat": {"instructions": "Be ${tone}.", "welcome": "Hi there", "suggestions": ["How `+
			`much?", 5, ""], "model": "none"}}}`,
	)
	w.must(t, "admin", "POST", "/api/ai-instructions", `{"slug": "tone", "content": "polite"}`)
	w.must(t, "mia", "POST", path, hello)
	system := s.Requests()[0].Messages[0]
	is.Equal(system.Role, "system")
	is.True(strings.Contains(system.Text(), "Be polite."))
	is.True(strings.Contains(system.Text(), "Dataset sales"))
	is.True(len(s.Requests()[0].User) == 32 && !strings.Contains(s.Requests()[0].Body, "mia"))
	offer := read[struct {
		Welcome, Model             string
		Suggestions, Models, Tools []string
	}](t, w.must(t, "mia", "GET", path, ""))
	is.Equal(offer.Welcome, "Hi there")
	is.Equal(offer.Model, "fast")
	is.Equal(offer.Suggestions, []string{"How much?"})
	is.Equal(offer.Tools, []string{"dataset_rows", "dataset_count"})
	is.Equal(w.do(t, "mia", "POST", one+"/_suggest-icon", "").status, 403)
	is.Equal(w.do(t, "mia", "POST", one+"/_modernize-manifest", "").status, 403)
}

// awayTable is a host's dataset whose database is away.
type awayTable struct{ hostTable }

func (a awayTable) Table(_ context.Context, _ string, d entity.Ref) (datasets.Table, error) {
	if d.Name != "Hosted" {
		return nil, nil
	}
	return a, nil
}

func (awayTable) Fields(context.Context) ([]datasets.Field, error) {
	return nil, errs.New(errs.Unavailable, "The warehouse does not answer.")
}

// TestChatWithoutOneOfItsDatasets: a dataset that cannot be read now leaves the others to the chat.
func TestChatWithoutOneOfItsDatasets(t *testing.T) {
	is := is.New(t)
	s, model := withModel(t, aitest.Turn{Text: []string{"Hi"}})
	w := newWorld(t, dbtest.SQLite, withAI(model), func(c *tenantcontent.Config) { c.Datasets = awayTable{} })
	path := chatApp(t, w)
	for alias, body := range map[string]string{
		"away":  `{"name": "Hosted"}`,
		"sales": `{"name": "Sales", "data": {"fields": [{"name": "amount", "type": "numeric"}], "rows": []}}`,
	} {
		w.must(
			t, "admin", "PUT", strings.TrimSuffix(path, "/chat")+"/dependencies/"+alias,
			`{"datasetId": "`+added(t, w, "datasets", body)+`"}`,
		)
	}
	w.must(t, "admin", "POST", path, hello)
	is.True(strings.Contains(told(t, s, 0), "Dataset sales") && !strings.Contains(told(t, s, 0), "Dataset away"))
}

// TestModelNonsense: a model that does not answer as it must is another server's failure.
func TestModelNonsense(t *testing.T) {
	is := is.New(t)
	nonsense := []aitest.Turn{
		{Text: []string{"Sure!"}}, {Text: []string{`{"icons": []}`}}, {Text: []string{`{"suggestions": 5}`}},
	}
	s, model := withModel(t, append(append(nonsense, nonsense...), nonsense...)...)
	w := newWorld(t, dbtest.SQLite, withAI(model))
	one := strings.TrimSuffix(chatApp(t, w), "/chat")
	for i, r := range [][2]string{
		{"GET", "/suggestions-ai"}, {"POST", "/_suggest-icon"}, {"POST", "/_modernize-manifest"},
	} {
		a := w.do(t, "admin", r[0], one+r[1], "")
		is.Equal(a.status, 502)
		is.Equal(a.message(t), "The model has not answered as it must. Try again, or use another model.")
		is.Equal(len(s.Requests()), 3*(i+1))
	}
}

// TestErrorEventHasNoInsides: what fails late is told as an answer would.
func TestErrorEventHasNoInsides(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	a := w.must(t, "admin", "POST", chatApp(t, w), `{"messages": [{"role": "user", "content": "fail late"}]}`)
	_, failed, ok := strings.Cut(a.body, "event: error\ndata: ")
	is.True(ok)
	var p struct {
		StatusCode     int
		Error, Message string
	}
	is.NoErr(json.Unmarshal([]byte(strings.TrimSpace(failed)), &p))
	is.Equal(p.StatusCode, 503)
	is.Equal(p.Message, "The model's server did not answer to the end. Try again.")
	is.True(strings.Contains(w.log.String(), "request not served"))
}
