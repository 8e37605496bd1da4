package openai

import (
	"context"
	"errors"
	"fmt"
	"io"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/tenantcontent/tenantcontent/ai"
)

// maxCalls is the most calls that one answer may have.
const maxCalls = 128

// answer is an answer while it comes in.
type answer struct {
	ai.Answer
	emit    func(ai.Part) error
	calls   []call
	refused error // of emit
}

// call is a call while it comes in, in many pieces.
type call struct {
	id              string
	number          int64 // the index that the server has for it
	name, arguments []byte
}

// read reads an answer to its end. An answer without a reason for its end has been cut.
func (a *answer) read(ctx context.Context, stream *ssestream.Stream[sdk.ChatCompletionChunk]) error {
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
	if a.Finish == "" {
		return fmt.Errorf("the answer ends in the middle: %w", io.ErrUnexpectedEOF)
	}
	if a.Finish == ai.Length || a.Finish == ai.Filtered { // the last call is cut, and what comes behind that end is none
		return nil
	}
	for _, c := range a.calls {
		if err := a.send(ai.Part{ToolCall: &ai.ToolCall{ID: c.id, Name: string(c.name), Arguments: string(c.arguments)}}); err != nil {
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
	if text := choice.Delta.Content + choice.Delta.Refusal; text != "" {
		if err := a.send(ai.Part{Text: text}); err != nil {
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
		if len(a.calls) > 0 { // some servers have stop for calls, too
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

// addCall adds a piece of a call. A server names a call in its first piece; some send each call whole, all with the same index.
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
	a.calls[at].name = append(a.calls[at].name, c.Function.Name...)
	a.calls[at].arguments = append(a.calls[at].arguments, c.Function.Arguments...)
	return nil
}

func (a *answer) send(p ai.Part) error {
	err := a.emit(p)
	if err != nil {
		a.refused = err
		return errors.Join(errStopped, err)
	}
	return nil
}

// errStopped ends the reading of an answer when emit has failed.
var errStopped = errors.New("the reader has stopped")
