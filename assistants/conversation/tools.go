package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"github.com/tenantcontent/tenantcontent/ai/chat"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxTools is how many tools a model has: OpenAI's API takes no more.
const maxTools = 120

// open opens the skills of an assistant, and returns their tools, whose names are distinct, and what the model is told of skills that are not
// there.
func (c *conversation) open(ctx context.Context, as assistants.Assistant, known []*known) (tools []chat.Tool, notes []string, err error) {
	secrets, err := c.s.o.Assistants.Unchecked().Secrets(as)
	if err != nil {
		return nil, nil, err
	}
	names := names{handOverTool: true}
	left := 0
	for _, skill := range as.Skills {
		open := c.s.opener(skill.Type)
		if open == nil {
			notes = append(notes, fmt.Sprintf("Your skill %s is not available: this server does not provide %s any more.", skill.Name, skill.Type))
			continue
		}
		own := make(map[string]string, len(secrets)) // the skill may change it
		for name, value := range secrets {
			own[name] = value
		}
		some, end, err := open(ctx, Use{Assistant: as, Skill: skill, Secrets: own, known: known, images: &c.images, user: c.in.User})
		if end != nil {
			c.ends = append(c.ends, end)
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil {
			if errs.CodeOf(err) == errs.Internal {
				return nil, nil, fmt.Errorf("skill %s: %w", skill.Name, err)
			}
			c.s.o.Log.WarnContext(ctx, "a skill of an assistant is not complete", "assistant", as.ID, "skill", skill.Name, "err", err)
			notes = append(notes, fmt.Sprintf("Your skill %s is not complete: %s", skill.Name, shortened(errs.MessageOf(err), maxNote)))
		}
		for _, t := range some {
			if len(tools) == maxTools {
				left++
				continue
			}
			t.Name = names.take(t.Name, skill.Name)
			tools = append(tools, t)
		}
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d tools of your skills are left out: the most is %d.", left, maxTools))
	}
	return tools, notes, nil
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// names are the names of tools that are taken.
type names map[string]bool

// take returns the name of a tool of a skill: its own, or one with the skill's name if that is taken or not one that models take.
func (n names) take(name, skill string) string {
	if n[name] || !toolName.MatchString(name) {
		name = skill + "_" + name
	}
	for try := 1; n[name] || !toolName.MatchString(name); try++ {
		sum := sha256.Sum256([]byte(fmt.Sprint(name, try)))
		name = hex.EncodeToString(sum[:16])
	}
	n[name] = true
	return name
}

// soft reports whether an error is told to the model, and the conversation goes on: something is not there for the caller, or not as it must be.
func soft(err error) bool {
	for _, code := range []errs.Code{errs.NotFound, errs.Forbidden, errs.Conflict, errs.Invalid} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
