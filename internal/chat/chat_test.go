package chat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

func provider(t testing.TB, script ...aitest.Turn) (ai.Provider, *aitest.Server) {
	t.Helper()
	s := aitest.NewServer(script...)
	t.Cleanup(s.Close)
	p, err := openai.New(openai.Options{
		URL:    s.URL,
		Models: []openai.Model{{Name: "m"}},
		Log:    slog.New(slog.DiscardHandler),
	})
	is.New(t).NoErr(err)
	return p, s
}

var ask = ai.Request{Messages: []ai.Message{{Role: ai.User, Content: "How many?"}}}

// tools returns a tool that works, one that fails and one that ends the conversation with an error.
func tools(broken error) []chat.Tool {
	run := func(content string, err error) func(context.Context, ai.ToolCall) (string, error) {
		return func(_ context.Context, c ai.ToolCall) (string, error) { return content + c.Arguments, err }
	}
	return []chat.Tool{
		{Tool: ai.Tool{Name: "count"}, Run: run("5 ", nil)},
		{Tool: ai.Tool{Name: "refuse"}, Run: run("", errs.New(errs.Forbidden, "Not you."))},
		{Tool: ai.Tool{Name: "long"}, Run: run(strings.Repeat("x", 100), nil)},
		{Tool: ai.Tool{Name: "break"}, Run: run("", broken)},
	}
}

// record returns an emit function that records events.
func record(to *[]string) func(chat.Event) error {
	return func(e chat.Event) error {
		switch {
		case e.Call != nil:
			*to = append(*to, "call "+e.Call.Name)
		case e.Result != nil:
			*to = append(*to, fmt.Sprintf("%s %v %s", e.Result.CallID, e.Result.Failed, e.Result.Content))
		default:
			*to = append(*to, e.Text)
		}
		return nil
	}
}

func TestRun(t *testing.T) {
	is := is.New(t)
	p, s := provider(t,
		aitest.Turn{Text: []string{"Let me ", "look."},
			Usage: ai.Usage{InputTokens: 1, OutputTokens: 2}, Calls: []ai.ToolCall{
				{ID: "a", Name: "count", Arguments: `{"n": 1}`}, {ID: "b", Name: "refuse"},
				{ID: "c", Name: "none", Arguments: "{}"},
				{ID: "d", Name: "count", Arguments: "[1"}, {ID: "e", Name: "long"},
			}},
		aitest.Turn{Text: []string{"Five."}, Usage: ai.Usage{InputTokens: 10, OutputTokens: 20}})
	var got []string
	out, err := chat.Run(
		t.Context(), chat.Options{Provider: p, Request: ask, Tools: tools(nil), MaxResult: 50}, record(&got),
	)
	is.NoErr(err)
	is.Equal(got, []string{
		"Let me ", "look.", "call count", `a false 5 {"n": 1}`,
		"call refuse", "b true Error: Not you.", "call none", "c true Error: There is no tool none.",
		"call count", "d true Error: The arguments must be a JSON object.",
		"call long", "e true Error: The result has 102 bytes, and the most is 50: ask for less.", "Five.",
	})
	is.Equal(out.Text, "Five.")
	is.Equal(out.Finish, ai.Stopped)
	is.Equal(out.Usage, ai.Usage{InputTokens: 11, OutputTokens: 22})
	is.Equal(len(out.Messages), 7)
	second := s.Requests()[1]
	is.Equal(len(second.Messages), 7)
	is.Equal(second.Messages[1].ToolCalls[0].Function.Name, "count")
	is.Equal(second.Messages[2].Text(), `5 {"n": 1}`)
}

// TestSteps: a model that always makes calls must answer in the last step.
func TestSteps(t *testing.T) {
	is := is.New(t)
	again := aitest.Turn{Text: []string{"x"}, Calls: []ai.ToolCall{{ID: "a", Name: "count", Arguments: "{}"}}}
	p, s := provider(t, again, again, again)
	var got []string
	out, err := chat.Run(
		t.Context(), chat.Options{Provider: p, Request: ask, Tools: tools(nil), Steps: 3}, record(&got),
	)
	is.NoErr(err)
	is.Equal(got, []string{"x", "call count", "a false 5 {}", "x", "call count", "a false 5 {}", "x"})
	is.Equal(len(s.Requests()[1].Tools), 4)
	is.Equal(len(s.Requests()[2].Tools), 0)
	is.Equal(len(out.Messages[len(out.Messages)-1].ToolCalls), 0)
}

// TestResultsAreBounded: a model gets at most 8 MiB of results, and later calls are not done.
func TestResultsAreBounded(t *testing.T) {
	is := is.New(t)
	calls := make([]ai.ToolCall, 12)
	for i := range calls {
		calls[i] = ai.ToolCall{ID: fmt.Sprint(i), Name: "read", Arguments: "{}"}
	}
	p, _ := provider(t, aitest.Turn{Calls: calls}, aitest.Turn{Text: []string{"Enough."}})
	done := 0
	read := chat.Tool{Tool: ai.Tool{Name: "read"}, Run: func(context.Context, ai.ToolCall) (string, error) {
		done++
		return strings.Repeat("x", 1<<20), nil
	}}
	out, err := chat.Run(t.Context(), chat.Options{
		Provider:  p,
		Request:   ask,
		Tools:     []chat.Tool{read},
		MaxResult: 1 << 20,
	}, func(chat.Event) error {
		return nil
	})
	is.NoErr(err)
	is.Equal(done, 8)
	is.Equal(
		out.Messages[9].Content,
		"Error: The results of this conversation have more than 8 MiB: answer with what you have read.",
	)
	is.Equal(out.Text, "Enough.")
}

func TestErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	call := aitest.Turn{Calls: []ai.ToolCall{{ID: "a", Name: "break", Arguments: "{}"}}}
	for name, c := range map[string]struct {
		script []aitest.Turn
		emit   error
		want   error
	}{
		"Tool":     {[]aitest.Turn{call}, nil, broken},
		"Emit":     {[]aitest.Turn{call}, context.Canceled, context.Canceled},
		"Provider": {[]aitest.Turn{{Status: 500}}, nil, errs.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := provider(t, c.script...)
			_, err := chat.Run(t.Context(), chat.Options{Provider: p, Request: ask, Tools: tools(broken)},
				func(chat.Event) error {
					return c.emit
				})
			is.New(t).True(errors.Is(err, c.want))
		})
	}
}

// TestCancelInTool: a canceled context ends the conversation, whatever the tool returns.
func TestCancelInTool(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	p, _ := provider(t, aitest.Turn{Calls: []ai.ToolCall{{ID: "a", Name: "wait", Arguments: "{}"}}})
	_, err := chat.Run(ctx, chat.Options{Provider: p,
		Request: ask,
		Tools: []chat.Tool{{Tool: ai.Tool{Name: "wait"}, Run: func(context.Context, ai.ToolCall) (string, error) {
			cancel(gone)
			return "", errs.New(errs.Invalid, "x")
		}}}}, func(chat.Event) error { return nil })
	is.New(t).Equal(err, gone)
}

// TestConfirm: a person decides about calls of some tools, and sees the arguments with which they
// are done.
func TestConfirm(t *testing.T) {
	is := is.New(t)
	var done []string
	change := chat.Tool{Tool: ai.Tool{Name: "change"},
		Confirm: true, Run: func(_ context.Context, c ai.ToolCall) (string, error) {
			done = append(done, c.Arguments)
			return "changed", nil
		}}
	calls := aitest.Turn{Calls: []ai.ToolCall{
		{ID: "a", Name: "change", Arguments: `{"n": 1}`},
		{ID: "b", Name: "change", Arguments: `{"n": 2}`}, {ID: "c", Name: "change", Arguments: " "},
		{ID: "d", Name: "change", Arguments: `{"n": 1, "n": 2}`},
		{ID: "e", Name: "change", Arguments: `[1]`}, {ID: "f", Name: "count", Arguments: `{}`},
		{ID: "g", Name: "change", Arguments: `{"n": 3}`},
		{ID: "h", Name: "change", Arguments: `{"a": {"n": 1}, "b": [{"n": 2}, {"n": "n"}]}`},
	}}
	p, s := provider(t, calls, aitest.Turn{Text: []string{"Done."}})
	var got, asked []string
	_, err := chat.Run(t.Context(), chat.Options{
		Provider: p, Request: ask, Tools: append(tools(nil), change),
		Confirm: func(_ context.Context, c ai.ToolCall) (bool, error) {
			asked = append(asked, c.Name+c.Arguments)
			if c.ID == "g" {
				return false, errs.New(errs.Busy, "Too many wait.")
			}
			return c.ID != "b", nil
		},
	}, record(&got))
	is.NoErr(err)
	is.Equal(asked, []string{
		`change{"n": 1}`, `change{"n": 2}`, `change{}`, `change{"n": 3}`,
		`change{"a": {"n": 1}, "b": [{"n": 2}, {"n": "n"}]}`,
	})
	is.Equal(done, []string{`{"n": 1}`, `{}`, `{"a": {"n": 1}, "b": [{"n": 2}, {"n": "n"}]}`})
	is.Equal(got, []string{
		"call change", "a false changed", "call change",
		"b true Error: The user has declined this call.", "call change", "c false changed",
		"call change", "d true Error: The arguments must have each name once.",
		"call change", "e true Error: The arguments must be a JSON object.",
		"call count", "f false 5 {}", "call change",
		"g true Error: Too many wait.", "call change", "h false changed", "Done.",
	})
	is.Equal(s.Requests()[1].Messages[3].Text(), "Error: The user has declined this call.")

	done, got = nil, nil
	p, _ = provider(t, aitest.Turn{Calls: calls.Calls[:1]}, aitest.Turn{Text: []string{"Pity."}})
	_, err = chat.Run(t.Context(), chat.Options{Provider: p, Request: ask, Tools: []chat.Tool{change}}, record(&got))
	is.NoErr(err)
	is.Equal(got, []string{
		"call change", "a true Error: A person must confirm this call, and nobody can be asked here.", "Pity.",
	})
	is.Equal(len(done), 0)

	broken := errors.New("database away")
	p, _ = provider(t, aitest.Turn{Calls: calls.Calls[:1]})
	_, err = chat.Run(t.Context(), chat.Options{
		Provider: p, Request: ask,
		Tools: []chat.Tool{change}, Confirm: func(context.Context, ai.ToolCall) (bool, error) {
			return true, broken
		},
	}, record(&got))
	is.Equal(err, broken)
	is.Equal(len(done), 0)
}

func TestText(t *testing.T) {
	is := is.New(t)
	p, _ := provider(
		t, aitest.Turn{Text: []string{"a", "b"}, Usage: ai.Usage{OutputTokens: 2}},
		aitest.Turn{Text: []string{"a"}, Finish: ai.Length},
	)
	text, usage, err := chat.Text(t.Context(), p, ask)
	is.NoErr(err)
	is.Equal(text, "ab")
	is.Equal(usage.OutputTokens, 2)
	_, _, err = chat.Text(t.Context(), p, ask)
	is.True(errors.Is(err, errs.Unavailable))
}

// TestNext: after a change the conversation continues with the earlier question, answers and
// results. Tools emit events to the same chat.
func TestNext(t *testing.T) {
	is := is.New(t)
	call := func(name string) aitest.Turn { return aitest.Turn{Calls: []ai.ToolCall{{ID: "1", Name: name}}} }
	p, s := provider(t, call("pass"), call("count"), call("pass"), aitest.Turn{Text: []string{"5"}})
	passed, asked := false, 0
	pass := chat.Tool{Tool: ai.Tool{Name: "pass"}, Run: func(ctx context.Context, _ ai.ToolCall) (string, error) {
		passed = true
		return "passed", errors.Join(
			chat.Emit(ctx, chat.Event{Speaker: &chat.Speaker{ID: "2"}}),
			chat.Emit(ctx, chat.Event{Image: &ai.Image{Data: []byte("x")}}),
		)
	}}
	var events []string
	write := record(&events)
	out, err := chat.Run(t.Context(), chat.Options{Provider: p, Request: ask,
		Tools: []chat.Tool{pass}, Next: func(r *ai.Request, may *[]chat.Tool) {
			if asked++; passed {
				r.Messages, *may, passed = append([]ai.Message{{
					Role:    ai.System,
					Content: "Count.",
				}}, ask.Messages...), tools(nil)[:1], false
			}
		}}, func(e chat.Event) error {
		switch {
		case e.Speaker != nil:
			events = append(events, "speaker "+e.Speaker.ID)
			return nil
		case e.Image != nil:
			events = append(events, "image "+string(e.Image.Data))
			return nil
		}
		return write(e)
	})
	is.NoErr(err)
	is.Equal(events, []string{
		"call pass", "speaker 2", "image x", "1 false passed", "call count", "1 false 5 {}", "call pass",
		"1 true Error: There is no tool pass.", "5",
	})
	is.Equal(asked, 3)
	is.Equal(len(out.Messages), 7)
	last := s.Requests()[3].Messages
	is.Equal(len(last), 1+1+6)
	is.Equal(last[0].Text(), "Count.")
	is.Equal(last[2].Role, "assistant")
	is.NoErr(chat.Emit(t.Context(), chat.Event{})) // outside of a conversation
}

// TestLongCalls: the arguments of calls count as bytes of answers.
func TestLongCalls(t *testing.T) {
	is := is.New(t)
	p, _ := provider(t, aitest.Turn{
		Calls: []ai.ToolCall{{ID: "a", Name: "count", Arguments: `{"x": "` + strings.Repeat("x", 5<<20) + `"}`}},
	})
	_, err := chat.Run(t.Context(), chat.Options{Provider: p, Request: ask, Tools: tools(nil)}, func(chat.Event) error {
		return nil
	})
	is.True(errors.Is(err, errs.Unavailable))
}
