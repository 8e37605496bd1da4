package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

// handOverTool is the name of the tool of dispatchers.
const handOverTool = "hand_over"

// maxHandOvers is how often a conversation is handed over in one answer, or that is tried. No
// assistant gets it twice.
const maxHandOvers = 3

// handOver returns the tool with which a dispatcher hands over to one of its assistants that the
// caller may talk to. Without such an assistant it returns no tool.
func (c *conversation) handOver(ctx context.Context, as assistants.Assistant) ([]Tool, error) {
	if len(c.spoken) > maxHandOvers {
		return nil, nil
	}
	var ids []string
	for _, r := range as.References {
		if r.EntityType == string(assistants.Kind) && !slices.Contains(c.spoken, r.EntityID) {
			ids = append(ids, r.EntityID)
		}
	}
	seen, err := c.s.o.Assistants.Seen(ctx, ids)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { _, ok := seen[id]; return !ok })
	if c.in.Visitor { // whom the caller may let in to what the caller may share
		if ids, err = c.sharable(ctx, ids); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	lines := make([]string, len(ids))
	for i, id := range ids {
		lines[i] = id + ": " + oneLine(seen[id].Name)
		if d := seen[id].Description; d != nil {
			lines[i] += ", " + shortened(oneLine(*d), maxDescription)
		}
	}
	var b strings.Builder
	b.WriteString("Hands the conversation over to another assistant, which answers in your place. The assistants:\n")
	tellLines(&b, lines, ReferenceTokens, 0)
	known, _ := json.Marshal(ids) // strings can be encoded
	return []Tool{{
		Tool: ai.Tool{Name: handOverTool,
			Description: b.String(),
			Parameters: json.RawMessage(`{"type":"object","properties":{"assistant":{"type":"string","enum":` +
				string(known) +
				`},"question":{"type":"string","description":"What it is to answer, if the last message does not ` +
				`say it"}},"required":["assistant"]}`)},
		Run: func(ctx context.Context, call ai.ToolCall) (string, error) { return c.over(ctx, ids, call) },
	}}, nil
}

// sharable returns those of some assistants that the caller may share.
func (c *conversation) sharable(ctx context.Context, ids []string) (some []string, err error) {
	for _, id := range ids {
		_, err := c.s.o.Assistants.CheckShare(ctx, id)
		switch {
		case err == nil:
			some = append(some, id)
		case !toldToModel(err):
			return nil, err
		}
	}
	return some, nil
}

// over is the tool hand_over, for the assistants with some ids.
func (c *conversation) over(ctx context.Context, ids []string, call ai.ToolCall) (string, error) {
	var in struct {
		Assistant string `json:"assistant"`
		Question  string `json:"question"`
	}
	switch err := json.Unmarshal([]byte(call.Arguments), &in); {
	case err != nil:
		return "", errs.New(errs.Invalid, "assistant and question must be text.")
	case !slices.Contains(ids, in.Assistant):
		return "", errs.New(errs.NotFound, "There is no such assistant to hand over to.")
	case c.to != nil:
		return "", errs.New(errs.Conflict, "You have handed over already.")
	case len(c.spoken) > maxHandOvers || slices.Contains(c.spoken, in.Assistant):
		return "", errs.New(errs.Conflict, "You have tried that: answer yourself.")
	}
	as, err := c.s.o.Assistants.CheckTalk(ctx, in.Assistant, c.in.Visitor)
	if err != nil {
		return "", err
	}
	t, err := c.turn(ctx, as)
	if err != nil {
		return "", err
	}
	if err := chat.Emit(ctx, chat.Event{Speaker: &chat.Speaker{ID: as.ID, Name: as.Name}}); err != nil {
		return "", err
	}
	c.to = t
	out := fmt.Sprintf("You are the assistant %s now: answer the person.", oneLine(as.Name))
	if in.Question != "" {
		out += " The question: " + in.Question
	}
	return out, nil
}
