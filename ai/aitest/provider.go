package aitest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Key is the key that the provider must use, if its server needs one. TestProvider checks that
// errors do not contain it.
const Key = "sk-test-0123456789"

// TestProvider checks a Provider. open returns a Provider whose server answers with the turns: the
// server of NewServer, or an equivalent one for another wire format. The Provider must wait at most
// a second for a server that sends nothing.
func TestProvider(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	for name, test := range map[string]func(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider){
		"Text": testText, "Calls": testCalls, "Finish": testFinish,
		"Refusals": testRefusals, "CutAnswer": testCut, "StalledAnswer": testStall,
		"EndlessAnswer": testFlood, "Cancel": testCancel, "EmitError": testEmit, "UnknownModel": testUnknownModel,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

// hello is a request.
var hello = ai.Request{
	Messages: []ai.Message{{Role: ai.System, Content: "Be brief."}, {Role: ai.User, Content: "Hello?"}},
}

// chat returns the text and the calls of an answer.
func chat(
	ctx context.Context, p ai.Provider, r ai.Request,
) (text []string, calls []ai.ToolCall, a ai.Answer, err error) {
	a, err = p.Chat(ctx, r, func(part ai.Part) error {
		if part.ToolCall != nil {
			calls = append(calls, *part.ToolCall)
		} else {
			text = append(text, part.Text)
		}
		return nil
	})
	return text, calls, a, err
}

func testText(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	is := is.New(t)
	release := make(chan struct{})
	p := open(t, Turn{
		Text:  []string{"He", "llo\n\n", "data: wörld"},
		Wait:  release,
		Usage: ai.Usage{InputTokens: 7, OutputTokens: 3},
	})
	var text []string
	a, err := p.Chat(t.Context(), hello, func(part ai.Part) error {
		if len(text) == 0 {
			close(release) // the rest is sent after the first piece was emitted
		}
		text = append(text, part.Text)
		return nil
	})
	is.NoErr(err)
	is.Equal(strings.Join(text, "|"), "He|llo\n\n|data: wörld")
	is.Equal(a.Finish, ai.Stopped)
	is.Equal(a.Usage, ai.Usage{InputTokens: 7, OutputTokens: 3})
	is.True(a.Model != "")
}

func testCalls(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	is := is.New(t)
	want := []ai.ToolCall{
		{ID: "a", Name: "rows", Arguments: `{"alias": "söles"}`}, {ID: "b", Name: "count", Arguments: `{}`},
	}
	p := open(t, Turn{Text: []string{"Let me look."}, Calls: want}, Turn{Text: []string{"Two."}})
	r := hello
	r.Tools = []ai.Tool{
		{
			Name:        "rows",
			Description: "Rows",
			Parameters:  []byte(`{"type": "object", "properties": {"alias": {"type": "string"}}}`),
		},
		{Name: "count"},
	}
	text, calls, a, err := chat(t.Context(), p, r)
	is.NoErr(err)
	is.Equal(text, []string{"Let me look."})
	is.Equal(calls, want)
	is.Equal(a.Finish, ai.Calls)
	r.Messages = append(r.Messages, ai.Message{Role: ai.Assistant, Content: "Let me look.", ToolCalls: calls},
		ai.Message{Role: ai.ToolRole, ToolCallID: "a", Content: "[]"},
		ai.Message{Role: ai.ToolRole, ToolCallID: "b", Content: "2"})
	text, _, a, err = chat(t.Context(), p, r)
	is.NoErr(err)
	is.Equal(text, []string{"Two."})
	is.Equal(a.Finish, ai.Stopped)
	r.Tools = []ai.Tool{{Name: "broken", Parameters: []byte("[]")}}
	_, _, _, err = chat(t.Context(), p, r)
	is.True(errors.Is(err, errs.Invalid))
}

// testFinish: a call that was cut off is not emitted.
func testFinish(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	for _, finish := range []ai.Finish{ai.Length, ai.Filtered} {
		p := open(t, Turn{
			Text:   []string{"Once upon"},
			Calls:  []ai.ToolCall{{ID: "a", Name: "rows", Arguments: `{"al`}},
			Finish: finish,
		})
		text, calls, a, err := chat(t.Context(), p, hello)
		is.New(t).NoErr(err)
		is.New(t).Equal(text, []string{"Once upon"})
		is.New(t).Equal(len(calls), 0)
		is.New(t).Equal(a.Finish, finish)
	}
}

func testRefusals(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	for _, c := range []struct {
		turn  Turn
		code  errs.Code
		after time.Duration
	}{
		{
			Turn{
				Status: 401,
				Body:   `{"error": {"message": "Incorrect API key provided: ` + Key + `", "code": "invalid_api_key"}}`,
			},
			errs.Unavailable, 0,
		},
		{Turn{Status: 403, Body: `no ` + Key}, errs.Unavailable, 0},
		{Turn{Status: 404, Body: `{"error": {"message": "no such model"}}`}, errs.Unavailable, 0},
		{
			Turn{
				Status: 429,
				Header: map[string]string{"Retry-After": "7"},
				Body:   `{"error": {"message": "slow down"}}`,
			},
			errs.Unavailable, 7 * time.Second,
		},
		{Turn{Status: 500, Body: `<html>` + Key}, errs.Unavailable, 0},
		{Turn{Status: 503, Header: map[string]string{"Retry-After": "x"}}, errs.Unavailable, 0},
		{
			Turn{
				Status: 400,
				Body: `{"error": {"message": "This model's maximum context length is 8192 tokens", "code": ` +
					`"context_length_exceeded"}}`,
			},
			errs.Invalid, 0,
		},
		{Turn{Status: 400, Body: `{"error": {"message": "bad ` + Key + `"}}`}, errs.Invalid, 0},
		{Turn{Status: 302, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}, errs.Unavailable, 0},
		{Turn{Status: http.StatusOK, Body: "<html>" + Key}, errs.Unavailable, 0},
		{
			Turn{
				Status: http.StatusOK,
				Header: map[string]string{"Content-Type": "text/event-stream"},
				Body:   "data: {\"error\": {\"message\": \"" + Key + "\"}}\n\n",
			},
			errs.Unavailable, 0,
		},
		{
			Turn{
				Status: http.StatusOK,
				Header: map[string]string{"Content-Type": "text/event-stream"},
				Body:   "data: {\"choices\": [{\n\n",
			},
			errs.Unavailable, 0,
		},
		{
			Turn{
				Status: http.StatusOK,
				Header: map[string]string{"Content-Type": "text/event-stream"},
				Body:   "data: [DONE]\n\n",
			},
			errs.Unavailable, 0,
		},
	} {
		_, _, _, err := chat(t.Context(), open(t, c.turn), hello)
		if errs.CodeOf(err) != c.code || errs.RetryAfterOf(err) != c.after || errs.MessageOf(err) == "" {
			t.Errorf("%d %s: %v", c.turn.Status, c.turn.Body, err)
		}
		if err != nil && strings.Contains(err.Error(), Key) {
			t.Errorf("%d: the error has the key: %v", c.turn.Status, err)
		}
	}
}

func testCut(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	text, calls, _, err := chat(t.Context(), open(t, Turn{
		Text:  []string{"Hel"},
		Calls: []ai.ToolCall{{ID: "a", Name: "rows", Arguments: "{}"}},
		Cut:   true,
	}), hello)
	is.New(t).True(errors.Is(err, errs.Unavailable))
	is.New(t).Equal(text, []string{"Hel"})
	is.New(t).Equal(len(calls), 0)
}

func testStall(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	text, _, _, err := chat(t.Context(), open(t, Turn{Text: []string{"Hel"}, Stall: true}), hello)
	is.New(t).True(errors.Is(err, errs.Unavailable))
	is.New(t).Equal(text, []string{"Hel"})
}

func testFlood(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	_, _, _, err := chat(t.Context(), open(t, Turn{Text: []string{strings.Repeat("x", 64<<10)}, Flood: true}), hello)
	is.New(t).True(errors.Is(err, errs.Unavailable))
}

func testCancel(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	cause := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := open(t, Turn{Text: []string{"Hel"}, Stall: true}).Chat(ctx, hello, func(ai.Part) error {
		cancel(cause)
		return nil
	})
	is.New(t).Equal(err, cause)
}

func testEmit(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	stop := errors.New("enough")
	n := 0
	_, err := open(t, Turn{Text: []string{"a", "b"}, Flood: true}).Chat(t.Context(), hello, func(ai.Part) error {
		n++
		return stop
	})
	is.New(t).Equal(err, stop)
	is.New(t).Equal(n, 1)
}

func testUnknownModel(t *testing.T, open func(t *testing.T, script ...Turn) ai.Provider) {
	p := open(t, Turn{Text: []string{"Hi"}})
	lister, ok := p.(ai.Lister)
	if !ok {
		return
	}
	r := hello
	r.Model = "no-such-model"
	_, _, _, err := chat(t.Context(), p, r)
	is.New(t).True(errors.Is(err, errs.Invalid))
	r.Model = lister.Models()[0]
	_, _, _, err = chat(t.Context(), p, r)
	is.New(t).NoErr(err)
}
