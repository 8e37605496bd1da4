package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/errs"
)

// open returns a provider with a server, and the log of the provider.
func open(
	t testing.TB, change func(*openai.Options), script ...aitest.Turn,
) (ai.Provider, *aitest.Server, *bytes.Buffer) {
	t.Helper()
	s, log := aitest.NewServer(script...), &bytes.Buffer{}
	t.Cleanup(s.Close)
	o := openai.Options{
		URL: s.URL, Key: aitest.Key, Models: []openai.Model{{Name: "fast", Server: "gpt-fast"}, {Name: "smart"}},
		Begin: 5 * time.Second, Idle: time.Second,
		Timeout: 5 * time.Second, MaxBytes: 1 << 20, Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	if change != nil {
		change(&o)
	}
	p, err := openai.New(o)
	is.New(t).NoErr(err)
	return p, s, log
}

func ask(t testing.TB, p ai.Provider, r ai.Request) (string, error) {
	t.Helper()
	if r.Messages == nil {
		r.Messages = []ai.Message{{Role: ai.User, Content: "Hello?"}}
	}
	text := ""
	_, err := p.Chat(t.Context(), r, func(p ai.Part) error {
		text += p.Text
		return nil
	})
	return text, err
}

func TestProvider(t *testing.T) {
	aitest.TestProvider(t, func(t *testing.T, script ...aitest.Turn) ai.Provider {
		p, _, log := open(t, nil, script...)
		t.Cleanup(func() { is.New(t).True(!strings.Contains(log.String(), aitest.Key)) })
		return p
	})
}

// TestEnvironmentIsNotRead: the variables of OpenAI's programs, which set options of the client,
// have no effect.
func TestEnvironmentIsNotRead(t *testing.T) {
	is := is.New(t)
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org")
	p, s, _ := open(t, func(o *openai.Options) { o.Key = "" }, aitest.Turn{Text: []string{"Hi"}})
	_, err := ask(t, p, ai.Request{})
	is.NoErr(err)
	is.Equal(s.Requests()[0].Authorization, "")
}

// TestRequest: everything of a request is sent.
func TestRequest(t *testing.T) {
	is := is.New(t)
	p, s, _ := open(t, nil, aitest.Turn{Text: []string{"{}"}})
	_, err := ask(t, p, ai.Request{
		Model: "smart", MaxTokens: 100, JSON: true, User: "u1",
		Messages: []ai.Message{
			{Role: ai.System, Content: "Be brief."},
			{
				Role:    ai.User,
				Content: "What is this?",
				Images:  []ai.Image{{ContentType: "image/png", Data: []byte("png")}},
			},
			{Role: ai.Assistant, ToolCalls: []ai.ToolCall{{ID: "a", Name: "rows", Arguments: `{"n": 1}`}}},
			{Role: ai.ToolRole, ToolCallID: "a", Content: "[1]"},
		},
		Tools: []ai.Tool{
			{
				Name:        "rows",
				Description: "Rows",
				Parameters:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
			},
			{Name: "now"},
		},
	})
	is.NoErr(err)
	r := s.Requests()[0]
	is.Equal(r.Authorization, "Bearer "+aitest.Key)
	is.Equal(r.Model, "smart")
	is.True(r.Stream)
	is.Equal(r.MaxTokens, 100)
	is.Equal(r.User, "u1")
	is.Equal(string(r.ResponseFormat), `{"type":"json_object"}`)
	is.Equal(string(r.StreamOptions), `{"include_usage":true}`)
	is.Equal(len(r.Messages), 4)
	is.Equal(
		fmt.Sprint(r.Messages[1].Content),
		"[map[text:What is this? type:text] map[image_url:map[url:data:image/png;base64,cG5n] type:image_url]]",
	)
	is.Equal(r.Messages[2].ToolCalls[0].Function.Arguments, `{"n": 1}`)
	is.Equal(r.Messages[3].ToolCallID, "a")
	is.Equal(string(r.Tools[0].Function.Parameters), `{"properties":{"n":{"type":"integer"}},"type":"object"}`)
	is.Equal(string(r.Tools[1].Function.Parameters), `{"properties":{},"type":"object"}`)
}

// TestDefaultModel: the default model is the first one, under the server's name.
func TestDefaultModel(t *testing.T) {
	p, s, _ := open(t, nil, aitest.Turn{Text: []string{"Hi"}})
	_, err := ask(t, p, ai.Request{})
	is.New(t).NoErr(err)
	is.New(t).Equal(s.Requests()[0].Model, "gpt-fast")
}

// TestParametersThatServersDoNotHave: parameters that a server refused are omitted, or sent under
// their other name, from then on.
func TestParametersThatServersDoNotHave(t *testing.T) {
	is := is.New(t)
	hi := aitest.Turn{Text: []string{"Hi"}}
	p, s, _ := open(t, nil,
		aitest.Turn{
			Status: 422,
			Body:   `{"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}`,
		},
		aitest.Turn{
			Status: 400,
			Body: `{"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' ` +
				`instead.", "param": "max_tokens"}}`,
		},
		hi, hi)
	for range 2 {
		text, err := ask(t, p, ai.Request{MaxTokens: 9})
		is.NoErr(err)
		is.Equal(text, "Hi")
	}
	all := s.Requests()
	is.Equal(len(all), 4)
	is.True(all[0].StreamOptions != nil && all[0].MaxTokens == 9)
	is.True(all[1].StreamOptions == nil && all[1].MaxTokens == 9)
	is.True(all[3].StreamOptions == nil && all[3].MaxTokens == 0 && all[3].MaxCompletionTokens == 9)
}

// TestOddServers: answers that differ from OpenAI's are read.
func TestOddServers(t *testing.T) {
	chunk := func(delta, finish string) string {
		return `data:{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\r\n\r\n"
	}
	call := func(id, name string) string {
		return `{"tool_calls":[{"index":0,"id":"` + id + `","function":{"name":"` + name + `","arguments":"{}"}}]}`
	}
	for name, c := range map[string]struct{ body, text, calls string }{
		"NoDone": {chunk(`{"content":"Hi"}`, "null") + chunk(`{}`, `"stop"`), "Hi", ""},
		"SameIndex": {
			chunk(call("a", "x"), "null") + chunk(call("b", "y"), "null") + chunk(`{}`, `"stop"`) + "data: [DONE]\n\n",
			"", "a x{} b y{} ",
		},
		"NoCallID": {chunk(call("", "x"), "null") + chunk(`{}`, `"tool_calls"`), "", "call_0 x{} "},
		"LongLine": {
			chunk(
				`{"content":"`+strings.Repeat("x", 200<<10)+`"}`, "null",
			) + ":" + strings.Repeat("y", 20<<10) + "\n\n" + chunk(`{}`, `"stop"`),
			strings.Repeat("x", 200<<10), "",
		},
		"BehindDone": {
			chunk(`{"content":"Hi"}`, `"stop"`) + "data: [DONE]\n\n" + chunk(`{"content":"!"}`, "null"), "Hi",
			"",
		},
		"NullContent": {
			chunk(`{"content":null,"reasoning_content":"hm"}`, "null") + chunk(`{"content":"Hi"}`, `"eos"`),
			"Hi", "",
		},
		"DoneAlone":     {chunk(`{"content":"Hi"}`, "null") + "data: [DONE]\n\n", "Hi", ""},
		"DoneAfterCall": {chunk(call("a", "x"), "null") + "data: [DONE]\n\n", "", "a x{} "},
		"NameRepeated": {
			chunk(
				call("a", "get_x"), "null",
			) + chunk(
				`{"tool_calls":[{"index":0,"function":{"name":"get_x","arguments":""}}]}`, "null",
			) + chunk(`{}`, `"tool_calls"`),
			"", "a get_x{} ",
		},
		"NameInPieces": {
			chunk(
				call("a", "get_"), "null",
			) + chunk(
				`{"tool_calls":[{"index":0,"function":{"name":"x","arguments":""}}]}`, "null",
			) + chunk(`{}`, `"tool_calls"`),
			"", "a get_x{} ",
		},
		"Parts": {
			chunk(`{"content":[{"type":"text","text":"H"},{"type":"image_url"},{"type":"text","text":"i"}]}`, `"stop"`),
			"Hi", "",
		},
		"Think": {
			chunk(
				`{"content":"\n<thi"}`, "null",
			) + chunk(
				`{"content":"nk>hm <b"}`, "null",
			) + chunk(
				`{"content":"> </thi"}`, "null",
			) + chunk(`{"content":"nk>\n\n"}`, "null") + chunk(`{"content":" Hi <think>"}`, `"stop"`),
			"Hi <think>", "",
		},
		"NoThought": {chunk(`{"content":"<th"}`, "null") + chunk(`{"content":"ree>"}`, `"stop"`), "<three>", ""},
		"ShortText": {chunk(`{"content":"<"}`, `"stop"`), "<", ""},
		"Whole": {
			`{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"<think>hm</think>Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			"Hi", "",
		},
		"WholeCalls": {
			"\n " + `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}},{"id":"b","function":{"name":"y","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
			"", "a x{} b y{} ",
		},
		"ManyEmptyLine": {strings.Repeat("\n\n: ping\n", 100) + chunk(`{"content":"Hi"}`, `"stop"`), "Hi", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, _ := open(t, nil, aitest.Turn{
				Status: 200,
				Header: map[string]string{"Content-Type": "text/event-stream"},
				Body:   c.body,
			})
			text, calls := "", ""
			_, err := p.Chat(t.Context(), ai.Request{Messages: []ai.Message{{Role: ai.User, Content: "?"}}},
				func(p ai.Part) error {
					text += p.Text
					if p.ToolCall != nil {
						calls += p.ToolCall.ID + " " + p.ToolCall.Name + p.ToolCall.Arguments + " "
					}
					return nil
				})
			is.New(t).NoErr(err)
			is.New(t).True(text == c.text)
			is.New(t).Equal(calls, c.calls)
		})
	}
}

// TestFailuresAreNamed: an error contains the server's sentence, wherever in the answer it is.
func TestFailuresAreNamed(t *testing.T) {
	tools := []ai.Tool{{Name: "search"}, {Name: "look_up"}}
	for name, c := range map[string]struct {
		turn aitest.Turn
		code errs.Code
		says string
	}{
		"InStream": {
			aitest.Turn{
				Status: 200,
				Body: "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: " +
					"{\"error\":{\"message\":\"upstream overloaded " + aitest.Key + "\"}}\n\n",
			},
			errs.Unavailable, "in the middle of its answer: upstream overloaded ********.",
		},
		"InStreamText": {
			aitest.Turn{Status: 200, Body: "data: {\"error\":\"no memory\"}\n\n"}, errs.Unavailable,
			"in the middle of its answer: no memory.",
		},
		"Whole": {
			aitest.Turn{Status: 200, Body: `{"error":{"message":"quota exceeded"}}`}, errs.Unavailable,
			"has failed: quota exceeded.",
		},
		"EmptyWhole": {
			aitest.Turn{Status: 200, Body: `{"choices":[]}`}, errs.Unavailable, "The model's server has failed",
		},
		"Nonsense": {aitest.Turn{Status: 200, Body: `{"choices":`}, errs.Unavailable, "did not answer to the end"},
		"EmptyStream": {
			aitest.Turn{Status: 200, Body: "data: [DONE]\n\n"}, errs.Unavailable, "did not answer to the end",
		},
		"NoTools": {
			aitest.Turn{
				Status: 400,
				Body:   `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools"}}`,
			},
			errs.Invalid, "takes no tools, and the conversation has search, look_up",
		},
		"NoToolsVLLM": {
			aitest.Turn{
				Status: 400,
				Body: `{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and ` +
					`--tool-call-parser to be set"}`,
			},
			errs.Invalid, "takes no tools",
		},
		"NoFunctions": {
			aitest.Turn{Status: 400, Body: `{"error":{"message":"Function calling is not enabled for this model"}}`},
			errs.Invalid, "takes no tools",
		},
		"AnotherReason": {
			aitest.Turn{Status: 400, Body: `{"error":{"message":"bad temperature"}}`}, errs.Invalid,
			"refuses this request",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, _ := open(t, nil, c.turn)
			_, err := ask(t, p, ai.Request{Tools: tools})
			if errs.CodeOf(err) != c.code || !strings.Contains(errs.MessageOf(err), c.says) ||
				strings.Contains(err.Error(), aitest.Key) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAzure: a deployment has its version in the query, and the key in another header.
func TestAzure(t *testing.T) {
	is := is.New(t)
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = w.Write(
			[]byte("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: " +
				"[DONE]\n\n"),
		)
	}))
	t.Cleanup(s.Close)
	p, err := openai.New(openai.Options{
		URL:    s.URL + "/openai/deployments/mini/?api-version=2024-10-21",
		Key:    "azure-key",
		Models: []openai.Model{{Name: "m"}},
		Log:    slog.New(slog.DiscardHandler),
	})
	is.NoErr(err)
	text, err := ask(t, p, ai.Request{})
	is.NoErr(err)
	is.Equal(text, "Hi")
	is.Equal(got.URL.RequestURI(), "/openai/deployments/mini/chat/completions?api-version=2024-10-21")
	is.Equal([]string{got.Header.Get("api-key"), got.Header.Get("Authorization")}, []string{"azure-key", ""})
}

// TestManyCallsAreRefused: their number is bounded.
func TestManyCallsAreRefused(t *testing.T) {
	body := &strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(
			body,
			"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"c%d\",\"function\":{\"name\":\"x\"}}]}}]}\n\n",
			i, i,
		)
	}
	p, _, _ := open(t, nil, aitest.Turn{
		Status: 200,
		Header: map[string]string{"Content-Type": "text/event-stream"},
		Body:   body.String(),
	})
	_, err := ask(t, p, ai.Request{})
	is.New(t).True(errors.Is(err, errs.Unavailable))
}

// TestTotalTime: an answer that is sent slowly and without end is cut off.
func TestTotalTime(t *testing.T) {
	p, _, _ := open(t, func(o *openai.Options) {
		o.Timeout = 300 * time.Millisecond
	}, aitest.Turn{Text: []string{"x"}, Pause: 10 * time.Millisecond, Flood: true})
	_, err := ask(t, p, ai.Request{})
	is.New(t).True(errors.Is(err, errs.Unavailable))
	is.New(t).True(strings.Contains(err.Error(), "takes too long"))
}

// TestSlowReader: the time in which the reader does not read is not counted.
func TestSlowReader(t *testing.T) {
	p, _, _ := open(t, func(o *openai.Options) {
		o.Idle, o.Timeout = time.Second, time.Second
	}, aitest.Turn{Text: []string{"a", "b"}})
	began := time.Now()
	_, err := p.Chat(t.Context(), ai.Request{Messages: []ai.Message{{Role: ai.User, Content: "?"}}},
		func(ai.Part) error {
			for time.Since(began) < 1100*time.Millisecond {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
	is.New(t).NoErr(err)
}

// TestBegin: a server that does not begin an answer fails.
func TestBegin(t *testing.T) {
	wait := make(chan struct{})
	s := aitest.NewReplier(func(aitest.Request) aitest.Turn {
		<-wait
		return aitest.Turn{Text: []string{"late"}}
	})
	t.Cleanup(s.Close)
	defer close(wait)
	p, err := openai.New(openai.Options{
		URL:    s.URL,
		Models: []openai.Model{{Name: "m"}},
		Begin:  100 * time.Millisecond,
		Log:    slog.New(slog.DiscardHandler),
	})
	is.New(t).NoErr(err)
	_, err = ask(t, p, ai.Request{})
	is.New(t).True(errors.Is(err, errs.Unavailable))
	is.New(t).True(strings.Contains(err.Error(), "has not begun"))
}

// TestDeniedNetworks: no connection is made, and proxies of the environment are not used.
func TestDeniedNetworks(t *testing.T) {
	is := is.New(t)
	p, s, _ := open(t, func(o *openai.Options) {
		o.DenyNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}, aitest.Turn{Text: []string{"Hi"}})
	_, err := ask(t, p, ai.Request{})
	is.True(errors.Is(err, errs.Unavailable))
	is.True(strings.Contains(err.Error(), "denied by configuration"))
	is.Equal(len(s.Requests()), 0)
}

// TestRedirectIsNotFollowed: the key is sent to one server only.
func TestRedirectIsNotFollowed(t *testing.T) {
	is := is.New(t)
	other := aitest.NewServer(aitest.Turn{Text: []string{"Hi"}})
	t.Cleanup(other.Close)
	p, _, _ := open(t, nil, aitest.Turn{
		Status: http.StatusTemporaryRedirect,
		Header: map[string]string{"Location": other.URL + "/chat/completions"},
	})
	_, err := ask(t, p, ai.Request{})
	is.True(errors.Is(err, errs.Unavailable))
	is.Equal(len(other.Requests()), 0)
}

func TestImage(t *testing.T) {
	is := is.New(t)
	png := []byte("\x89PNG\r\n\x1a\n0000")
	p, s, _ := open(t, func(o *openai.Options) {
		o.ImageModel = "dall-e-3"
	}, aitest.Turn{Image: png}, aitest.Turn{Image: []byte("<html>")}, aitest.Turn{Status: 500})
	imager, ok := p.(ai.Imager)
	is.True(ok)
	image, err := imager.Image(t.Context(), ai.ImageRequest{Prompt: "A fox", Size: "256x256", User: "u1"})
	is.NoErr(err)
	is.Equal(image, ai.Image{ContentType: "image/png", Data: png})
	r := s.Requests()[0]
	is.Equal([]string{r.Model, r.Prompt, r.Size, r.User}, []string{"dall-e-3", "A fox", "256x256", "u1"})
	for range 2 {
		_, err = imager.Image(t.Context(), ai.ImageRequest{Prompt: "A fox"})
		is.True(errors.Is(err, errs.Unavailable))
	}
	_, err = imager.Image(t.Context(), ai.ImageRequest{Prompt: "A fox", Model: "x"})
	is.True(errors.Is(err, errs.Invalid))
	p, _, _ = open(t, nil)
	_, ok = p.(ai.Imager)
	is.True(!ok)
}

func TestOptions(t *testing.T) {
	models := []openai.Model{{Name: "m"}}
	for name, o := range map[string]openai.Options{
		"URL: it must be":   {URL: "api.openai.com/v1", Models: models},
		"URL: it must":      {URL: "ftp://x/", Models: models},
		"URL: it must have": {URL: "https://me:" + aitest.Key + "@x/v1", Models: models},
		"URL: ":             {URL: "https://x/v1?key=" + aitest.Key, Models: models},
		"URL: it must be the address of the API, to which the operation is added: https://x/v1": {
			URL:    "https://x/v1/chat/completions",
			Models: models,
		},
		"URL: it must be the address of the API, to which the": {URL: "https://x/v1/models/", Models: models},
		"URL: a deployment":  {URL: "https://x.openai.azure.com/openai/deployments/d", Models: models},
		"Key":                {URL: "https://x/v1", Key: aitest.Key + "\n", Models: models},
		"Models":             {URL: "https://x/v1"},
		"Models: each":       {URL: "https://x/v1", Models: []openai.Model{{Name: "m"}, {Name: "m"}}},
		"Models: each model": {URL: "https://x/v1", Models: []openai.Model{{}}},
	} {
		_, err := openai.New(o)
		if !errors.Is(err, errs.Invalid) || !strings.HasPrefix(errs.MessageOf(err), name) ||
			strings.Contains(err.Error(), aitest.Key) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestReadModels(t *testing.T) {
	is := is.New(t)
	models, err := openai.ReadModels("fast=gpt-5-mini, org/model:tag ,smart = gpt-5")
	is.NoErr(err)
	is.Equal(models, []openai.Model{
		{Name: "fast", Server: "gpt-5-mini"}, {Name: "org/model:tag"}, {Name: "smart", Server: "gpt-5"},
	})
	for _, bad := range []string{"", "a,", "=x"} {
		_, err := openai.ReadModels(bad)
		is.True(errors.Is(err, errs.Invalid))
	}
}

func ExampleNew() {
	server := aitest.NewServer(aitest.Turn{
		Text:  []string{"Hello, ", "world."},
		Usage: ai.Usage{InputTokens: 9, OutputTokens: 4},
	})
	defer server.Close()
	p, err := openai.New(openai.Options{
		URL:    server.URL,
		Key:    os.Getenv("MODEL_KEY"),
		Models: []openai.Model{{Name: "fast", Server: "gpt-5-mini"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := p.Chat(context.Background(), ai.Request{Messages: []ai.Message{{
		Role:    ai.User,
		Content: "Greet me.",
	}}}, func(part ai.Part) error {
		fmt.Print(part.Text)
		return nil
	})
	fmt.Println()
	fmt.Println(answer.Model, answer.Finish, answer.Usage.OutputTokens, err)
	// Output:
	// Hello, world.
	// gpt-5-mini stop 4 <nil>
}

// TestRefusalThatNamesAParameter: a refusal that repeats text of the request does not change how
// other requests are sent.
func TestRefusalThatNamesAParameter(t *testing.T) {
	is := is.New(t)
	bad := aitest.Turn{Status: 422, Body: `{"error": {"message": "bad tool: stream_options max_completion_tokens"}}`}
	p, s, _ := open(t, nil, bad, bad, bad, aitest.Turn{Text: []string{"Hi"}})
	_, err := ask(t, p, ai.Request{MaxTokens: 5})
	is.True(errors.Is(err, errs.Invalid))
	_, err = ask(t, p, ai.Request{MaxTokens: 5})
	is.NoErr(err)
	last := s.Requests()[3]
	is.Equal(string(last.StreamOptions), `{"include_usage":true}`)
	is.Equal([]int{last.MaxTokens, last.MaxCompletionTokens}, []int{5, 0})
}

// TestCallsBehindTheEnd: the rest of a call that a server sends after cutting it off is ignored.
func TestCallsBehindTheEnd(t *testing.T) {
	is := is.New(t)
	chunk := func(choice string) string { return `data: {"choices": [{"index": 0, ` + choice + "}]}\n\n" }
	piece := chunk(`"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "n", "arguments": "{"}}]}`)
	p, _, _ := open(t, nil, aitest.Turn{
		Header: map[string]string{"Content-Type": "text/event-stream"},
		Body:   piece + chunk(`"delta": {}, "finish_reason": "length"`) + piece + "data: [DONE]\n\n",
	})
	_, err := p.Chat(t.Context(), ai.Request{Messages: []ai.Message{{
		Role:    ai.User,
		Content: "Hello?",
	}}}, func(p ai.Part) error {
		is.True(p.ToolCall == nil)
		return nil
	})
	is.NoErr(err)
}
