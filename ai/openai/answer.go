package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/tenantcontent/tenantcontent/ai"
)

// maxCalls is the most calls that one answer may have.
const maxCalls = 128

// answer is an answer that is being received.
type answer struct {
	ai.Answer
	emit    func(ai.Part) error
	calls   []call
	refused error // of emit
	think   thinking
	said    bool // the answer has text or a call
}

// call is a call that is being received, in many pieces.
type call struct {
	id              string
	number          int64 // index of the call in the server's answer
	name, arguments []byte
}

// read reads an answer to its end. An answer without a finish reason was cut off, unless the server
// sent the event that ends the stream.
func (a *answer) read(ctx context.Context, stream *ssestream.Stream[sdk.ChatCompletionChunk], done *bool) error {
	defer func() {
		if stream.Err() == nil {
			_ = stream.Close()
		}
	}()
	for stream.Next() {
		if err := a.add(stream.Current()); err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.text("", true); err != nil {
		return err
	}
	if a.Finish == "" && *done && a.said {
		if a.Finish = ai.Stopped; len(a.calls) > 0 {
			a.Finish = ai.Calls
		}
	}
	if a.Finish == "" {
		return fmt.Errorf("the answer ends in the middle: %w", io.ErrUnexpectedEOF)
	}
	if a.Finish == ai.Length || a.Finish == ai.Filtered {
		// the last call is cut off, so no calls are sent
		return nil
	}
	for _, c := range a.calls {
		if err := a.send(ai.Part{
			ToolCall: &ai.ToolCall{ID: c.id, Name: string(c.name), Arguments: string(c.arguments)},
		}); err != nil {
			return err
		}
	}
	return nil
}

// add adds a piece of an answer.
func (a *answer) add(chunk sdk.ChatCompletionChunk) error {
	if chunk.Model != "" {
		a.Model = chunk.Model
	}
	if u := chunk.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		a.Usage = ai.Usage{InputTokens: int(u.PromptTokens), OutputTokens: int(u.CompletionTokens)}
	}
	if len(chunk.Choices) == 0 {
		return nil
	}
	choice := chunk.Choices[0]
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var thought string
		if json.Unmarshal([]byte(choice.Delta.JSON.ExtraFields[name].Raw()), &thought) == nil && thought != "" {
			if err := a.send(ai.Part{Reasoning: thought}); err != nil {
				return err
			}
			break
		}
	}
	if text := content(choice.Delta) + choice.Delta.Refusal; text != "" {
		if err := a.text(text, false); err != nil {
			return err
		}
	}
	for _, c := range choice.Delta.ToolCalls {
		if err := a.addCall(c); err != nil {
			return err
		}
	}
	switch choice.FinishReason {
	case "":
	case "stop":
		a.Finish = ai.Stopped
		if len(a.calls) > 0 { // some servers finish with stop after calls, too
			a.Finish = ai.Calls
		}
	case "tool_calls", "function_call":
		a.Finish = ai.Calls
	case "length":
		a.Finish = ai.Length
	case "content_filter":
		a.Finish = ai.Filtered
	default:
		a.Finish = ai.Stopped
	}
	return nil
}

// content returns the text of a piece. Some servers send a list of parts.
func content(delta sdk.ChatCompletionChunkChoiceDelta) string {
	raw := delta.JSON.Content.Raw()
	if !strings.HasPrefix(raw, "[") {
		return delta.Content
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(raw), &parts) != nil {
		return ""
	}
	var text strings.Builder
	for _, p := range parts {
		if p.Type == "text" || p.Type == "output_text" || p.Type == "" {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// text emits a piece of text. The reasoning of a model before its answer is emitted as such.
func (a *answer) text(piece string, last bool) error {
	thought, said := a.think.part(piece, last)
	if thought != "" {
		if err := a.send(ai.Part{Reasoning: thought}); err != nil {
			return err
		}
	}
	if said == "" {
		return nil
	}
	return a.send(ai.Part{Text: said})
}

// addCall adds a piece of a call. The first piece, and for some servers each, has the name of the
// call. Some servers send each call in one piece, all with the same index.
func (a *answer) addCall(c sdk.ChatCompletionChunkChoiceDeltaToolCall) error {
	at := -1
	for i, begun := range a.calls {
		if begun.number == c.Index && (c.ID == "" || begun.id == c.ID) {
			at = i
		}
	}
	if at < 0 {
		if len(a.calls) == maxCalls {
			return fmt.Errorf("the answer has more than %d calls", maxCalls)
		}
		id := c.ID
		if id == "" {
			id = fmt.Sprintf("call_%d", len(a.calls))
		}
		a.calls = append(a.calls, call{id: id, number: c.Index})
		at = len(a.calls) - 1
	}
	switch name := string(a.calls[at].name); {
	case strings.HasPrefix(c.Function.Name, name): // some servers send the name so far again
		a.calls[at].name = []byte(c.Function.Name)
	default:
		a.calls[at].name = append(a.calls[at].name, c.Function.Name...)
	}
	a.said = true
	a.calls[at].arguments = append(a.calls[at].arguments, c.Function.Arguments...)
	return nil
}

func (a *answer) send(p ai.Part) error {
	a.said = a.said || p.Text != ""
	err := a.emit(p)
	if err != nil {
		a.refused = err
		return errors.Join(errStopped, err)
	}
	return nil
}

// errStopped ends the reading of an answer after emit has failed.
var errStopped = errors.New("the reader has stopped")
