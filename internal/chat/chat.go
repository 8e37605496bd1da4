// Package chat runs a conversation with a language model and tools: the model answers, what it
// calls is done, and it goes on with the results until it has no more calls.
//
// httpapi runs the chats of apps and the conversations with assistants with it, and
// internal/chat/assist asks for single answers. Agents keep each step, so they run their own.
package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
)

// The defaults of Options, and the bounds of each Run.
const (
	DefaultSteps  = 20
	DefaultResult = 64 << 10
	maxText       = 4 << 20 // bytes of all answers, with their calls
	maxResults    = 8 << 20 // bytes of all results: a call beyond them is not done
)

// Tool is a function that a model may call, and what it does.
type Tool struct {
	ai.Tool
	// Run does a call and returns what the model is to read. The model also reads the sentence of
	// an error that has a code of package errs other than errs.Internal, and goes on; any other
	// error ends the conversation.
	Run func(ctx context.Context, call ai.ToolCall) (string, error)
	// Confirm is true for a tool whose calls are done only if Options.Confirm allows them.
	Confirm bool
}

// Options configure a Run. Provider and Request.Messages are required.
type Options struct {
	Provider ai.Provider
	Request  ai.Request // without Tools
	Tools    []Tool
	// Steps is the most answers of the model; default DefaultSteps. For the last one it has no
	// tools, so that the conversation ends.
	Steps int
	// MaxResult is the most bytes of a result; default DefaultResult. A longer one is an error that
	// the model reads.
	MaxResult int
	// Confirm asks a person whether a call of a tool with Confirm is to be done: it shows the call,
	// whose arguments are a JSON object without duplicate names and what Run is called with, and
	// waits for the answer. Its errors are those of Tool.Run. nil: such calls are refused.
	Confirm func(ctx context.Context, call ai.ToolCall) (bool, error)
	// Next is called before each answer of the model but the first one, and may change the model,
	// the messages of the request and the tools with which the conversation goes on. nil: they
	// stay.
	Next func(r *ai.Request, tools *[]Tool)
}

// Event is something that happens in a conversation: exactly one field is set.
type Event struct {
	Text   string // a piece of an answer
	Call   *ai.ToolCall
	Result *Result
	// Of tools that call Emit:
	Image   *ai.Image // for the person
	Speaker *Speaker  // who answers from here on
}

// Speaker is an assistant that a conversation has been handed over to.
type Speaker struct{ ID, Name string }

type emitKey struct{}

// Emit sends an event of the conversation that a tool is called in, with the context of that call.
// Without a conversation it does nothing.
func Emit(ctx context.Context, e Event) error {
	if emit, ok := ctx.Value(emitKey{}).(func(Event) error); ok {
		return emit(e)
	}
	return nil
}

// Result is what a call has led to.
type Result struct {
	CallID  string
	Name    string
	Content string // as the model reads it
	Failed  bool
}

// Outcome is what a conversation has led to.
type Outcome struct {
	ai.Answer              // the last one, with the Usage of all
	Text      string       // of the last answer
	Messages  []ai.Message // answers and results, to be put behind those of the request
}

// Run runs a conversation and calls emit with its events as they happen, one after the other. It
// returns what it has until then with an error: those of ai.Provider.Chat, of emit, and those of
// tools that end the conversation.
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
		for _, c := range calls {
			if err := r.call(ctx, c); err != nil {
				return r.out, err
			}
		}
	}
}

// Text returns the answer of a model to a request without tools, with its Usage. Errors: as
// ai.Provider.Chat; errs.Unavailable for an answer that was cut at its length, or left out.
func Text(ctx context.Context, p ai.Provider, r ai.Request) (string, ai.Usage, error) {
	out, err := Run(ctx, Options{Provider: p, Request: r, Steps: 1}, func(Event) error { return nil })
	if err == nil && out.Finish != ai.Stopped {
		err = errs.New(errs.Unavailable, "The model has not answered to the end. Try again.")
	}
	return out.Text, out.Usage, err
}

// run is a conversation while it is run.
type run struct {
	Options
	emit func(Event) error
	out  Outcome
	text int // bytes of all answers
	read int // bytes of all results
}

// answer has the model answer, and returns its calls.
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
		calls = nil // a model can invent some
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

// errTooMuch is what the model reads of a call beyond maxResults.
var errTooMuch = errs.New(
	errs.TooLarge, "The results of this conversation have more than %d MiB: answer with what you have read.",
	maxResults>>20,
)

// errDeclined is what the model reads of a call that a person does not want.
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

// duplicateNames reports whether an object in a JSON text has a name twice: what one program takes
// of it, another one may not.
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
