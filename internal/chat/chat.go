// Package chat runs a conversation with a language model and tools: the model answers, its calls
// are done, and it continues with their results until it makes no more calls.
//
// httpapi runs the chats of apps and the conversations with assistants with it.
// internal/chat/assist uses it for single answers. Agents store each step, so they do not use Run.
package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
)

// The defaults of Options, and the limits of each Run.
const (
	DefaultSteps  = 20
	DefaultResult = 64 << 10
	maxText       = 4 << 20 // bytes of all answers, with their calls
	maxResults    = 8 << 20 // bytes of all results; further calls are not done
)

// Tool is a function that a model may call.
type Tool struct {
	ai.Tool
	// Run does a call and returns the result for the model. If it returns an error with a code of
	// package errs other than errs.Internal, the model gets the sentence of the error and
	// continues. Any other error ends the conversation.
	Run func(ctx context.Context, call ai.ToolCall) (string, error)
	// Confirm reports whether calls of the tool are done only if Options.Confirm allows them.
	Confirm bool
}

// Options configure a Run. Provider and Request.Messages are required.
type Options struct {
	Provider ai.Provider
	Request  ai.Request // without Tools
	Tools    []Tool
	// Steps is the most answers of the model; default DefaultSteps. The last one is requested
	// without tools, so that the conversation ends.
	Steps int
	// MaxResult is the most bytes of a result; default DefaultResult. For a longer one the model
	// gets an error.
	MaxResult int
	// Confirm shows a call of a tool with Confirm to a person, waits for the answer, and reports
	// whether the call may be done. The arguments of the call are a JSON object without duplicate
	// names, and Run is called with the same ones. Its errors are handled like those of Tool.Run.
	// nil: such calls are refused.
	Confirm func(ctx context.Context, call ai.ToolCall) (bool, error)
	// Next is called before each answer of the model but the first one. It may change the model,
	// the messages of the request and the tools for the rest of the conversation. nil: they do not
	// change.
	Next func(r *ai.Request, tools *[]Tool)
}

// Event is something that happens in a conversation: exactly one field is set.
type Event struct {
	Text   string // a piece of an answer
	Call   *ai.ToolCall
	Result *Result
	// Sent by tools that call Emit:
	Image   *ai.Image // for the person
	Speaker *Speaker  // the assistant that answers from now on
}

// Speaker is an assistant to which a conversation has been handed over.
type Speaker struct{ ID, Name string }

type continuingKey struct{}

// Continue returns a context of a conversation in which a model has answered: see Continuing.
func Continue(ctx context.Context) context.Context {
	return context.WithValue(ctx, continuingKey{}, true)
}

// Continuing reports whether a call of a Provider belongs to a conversation in which a model has
// answered. Run passes such a context to its tools and to the Provider, from the second answer on.
func Continuing(ctx context.Context) bool { return ctx.Value(continuingKey{}) != nil }

type emitKey struct{}

// Emit emits an event of a conversation. A tool calls it with the context of its call. Outside of a
// conversation it does nothing.
func Emit(ctx context.Context, e Event) error {
	if emit, ok := ctx.Value(emitKey{}).(func(Event) error); ok {
		return emit(e)
	}
	return nil
}

// Result is the result of a call.
type Result struct {
	CallID  string
	Name    string
	Content string // the text for the model
	Failed  bool
}

// Outcome is the result of a conversation.
type Outcome struct {
	ai.Answer              // the last answer, with the Usage of all answers
	Text      string       // of the last answer
	Messages  []ai.Message // answers and results, which follow the messages of the request
}

// Run runs a conversation and calls emit with its events in order. With an error, it returns the
// Outcome so far. Errors: those of ai.Provider.Chat and of emit, and those of tools that end the
// conversation.
func Run(ctx context.Context, o Options, emit func(Event) error) (Outcome, error) {
	if o.Steps == 0 {
		o.Steps = DefaultSteps
	}
	if o.MaxResult == 0 {
		o.MaxResult = DefaultResult
	}
	r := &run{Options: o, emit: emit}
	ctx = context.WithValue(ctx, emitKey{}, emit)
	asked := o.Request
	for step := 1; ; step++ {
		if step > 1 && o.Next != nil {
			o.Next(&asked, &r.Tools)
		}
		r.Request = asked
		if step < o.Steps {
			for _, t := range r.Tools {
				r.Request.Tools = append(r.Request.Tools, t.Tool)
			}
		}
		r.Request.Messages = append(asked.Messages[:len(asked.Messages):len(asked.Messages)], r.out.Messages...)
		calls, err := r.answer(ctx)
		if err != nil || len(calls) == 0 || step == o.Steps {
			return r.out, err
		}
		if step == 1 {
			ctx = Continue(ctx)
		}
		for _, c := range calls {
			if err := r.call(ctx, c); err != nil {
				return r.out, err
			}
		}
	}
}

// Text returns the answer of a model to a request without tools, with its Usage. It returns errors
// as ai.Provider.Chat does, and errs.Unavailable for an answer that was cut off or withheld.
func Text(ctx context.Context, p ai.Provider, r ai.Request) (string, ai.Usage, error) {
	out, err := Run(ctx, Options{Provider: p, Request: r, Steps: 1}, func(Event) error { return nil })
	if err == nil && out.Finish != ai.Stopped {
		err = errs.New(errs.Unavailable, "The model has not answered to the end. Try again.")
	}
	return out.Text, out.Usage, err
}

// run is a conversation that is running.
type run struct {
	Options
	emit func(Event) error
	out  Outcome
	text int // bytes of all answers
	read int // bytes of all results
}

// answer requests an answer of the model, and returns its calls.
func (r *run) answer(ctx context.Context) (calls []ai.ToolCall, err error) {
	var text strings.Builder
	a, err := r.Provider.Chat(ctx, r.Request, func(p ai.Part) error {
		r.text += len(p.Text) + len(p.Reasoning)
		if c := p.ToolCall; c != nil {
			r.text += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
		if r.text > maxText {
			return errs.New(errs.Unavailable, "The model's answer has more than %d MiB.", maxText>>20)
		}
		if p.ToolCall != nil {
			calls = append(calls, *p.ToolCall)
			return nil
		}
		if p.Text == "" {
			return nil
		}
		text.WriteString(p.Text)
		return r.emit(Event{Text: p.Text})
	})
	a.Usage = r.out.Usage.Plus(a.Usage)
	r.out.Answer, r.out.Text = a, text.String()
	if r.Request.Tools == nil {
		calls = nil // models may invent calls
	}
	if err == nil {
		r.out.Messages = append(
			r.out.Messages, ai.Message{Role: ai.Assistant, Content: text.String(), ToolCalls: calls},
		)
	}
	return calls, err
}

// call does a call.
func (r *run) call(ctx context.Context, c ai.ToolCall) error {
	if err := r.emit(Event{Call: &c}); err != nil {
		return err
	}
	content, err := "", errTooMuch
	if r.read < maxResults {
		content, err = r.do(ctx, c)
	}
	if err == nil && len(content) > r.MaxResult {
		err = errs.New(
			errs.TooLarge, "The result has %d bytes, and the most is %d: ask for less.", len(content),
			r.MaxResult,
		)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failed := err != nil
	if failed {
		if errs.CodeOf(err) == errs.Internal {
			return err
		}
		content = "Error: " + errs.MessageOf(err)
	}
	r.read += len(content)
	r.out.Messages = append(r.out.Messages, ai.Message{Role: ai.ToolRole, ToolCallID: c.ID, Content: content})
	return r.emit(Event{Result: &Result{CallID: c.ID, Name: c.Name, Content: content, Failed: failed}})
}

func (r *run) do(ctx context.Context, c ai.ToolCall) (string, error) {
	arguments, err := c.Object()
	if err != nil {
		return "", err
	}
	c.Arguments = string(arguments)
	at := slices.IndexFunc(r.Tools, func(t Tool) bool { return t.Name == c.Name })
	if at < 0 {
		return "", errs.New(errs.NotFound, "There is no tool %.100s.", c.Name)
	}
	if r.Tools[at].Confirm {
		if err := r.confirm(ctx, c); err != nil {
			return "", err
		}
	}
	return r.Tools[at].Run(ctx, c)
}

// errTooMuch is the result of a call beyond maxResults for the model.
var errTooMuch = errs.New(
	errs.TooLarge, "The results of this conversation have more than %d MiB: answer with what you have read.",
	maxResults>>20,
)

// errDeclined is the result of a declined call for the model.
var errDeclined = errs.New(errs.Forbidden, "The user has declined this call.")

// confirm returns nil if a person allows a call.
func (r *run) confirm(ctx context.Context, c ai.ToolCall) error {
	switch {
	case r.Confirm == nil:
		return errs.New(errs.Forbidden, "A person must confirm this call, and nobody can be asked here.")
	case duplicateNames(c.Arguments):
		return errs.New(errs.Invalid, "The arguments must have each name once.")
	}
	approved, err := r.Confirm(ctx, c)
	if err == nil && !approved {
		err = errDeclined
	}
	return err
}

// duplicateNames reports whether an object in a JSON text has the same name twice. Programs differ
// in which value they use.
func duplicateNames(text string) bool {
	type level struct {
		names map[string]bool // of an object; nil in an array
		value bool            // the next token is a value, not a name
	}
	open := []level{{}}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return false // the end: the text is valid
		}
		in := &open[len(open)-1]
		if name, ok := token.(string); ok && in.names != nil && !in.value {
			if in.names[name] {
				return true
			}
			in.names[name], in.value = true, true
			continue
		}
		in.value = false
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}
