package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"

	"golang.org/x/sync/errgroup"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxTools is how many tools a model has: OpenAI's API takes no more.
const maxTools = 120

// open opens the skills of an assistant, and returns their tools, whose names are distinct, and
// what the model is told of skills that are not there.
func (c *conversation) open(
	ctx context.Context, as assistants.Assistant, known []*known,
) (tools []Tool, notes []string, err error) {
	secrets, err := c.s.o.Assistants.Unchecked().Secrets(as)
	if err != nil {
		return nil, nil, err
	}
	all := c.openSkills(ctx, as, secrets, known)
	for _, o := range all {
		if o.end != nil {
			c.ends = append(c.ends, o.end)
		}
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	taken := names{handOverTool: true}
	left := 0
	for i, skill := range as.Skills {
		if !all[i].provided {
			notes = append(
				notes,
				fmt.Sprintf(
					"Your skill %s is not available: this server does not provide %s any more.", skill.Name,
					skill.Type,
				),
			)
			continue
		}
		if err := all[i].err; err != nil {
			if errs.CodeOf(err) == errs.Internal {
				return nil, nil, fmt.Errorf("skill %s: %w", skill.Name, err)
			}
			c.s.o.Log.WarnContext(
				ctx, "a skill of an assistant is not complete", "assistant", as.ID, "skill", skill.Name, "err",
				err,
			)
			notes = append(
				notes,
				fmt.Sprintf("Your skill %s is not complete: %s", skill.Name, shortened(errs.MessageOf(err), maxNote)),
			)
		}
		for _, t := range all[i].tools {
			if len(tools) == maxTools {
				left++
				continue
			}
			t.Name = taken.take(t.Name, skill.Name)
			tools = append(tools, t)
		}
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d tools of your skills are left out: the most is %d.", left, maxTools))
	}
	return tools, notes, nil
}

// opened is what Skill.Open returned.
type opened struct {
	provided bool // false: the server has no such skill
	tools    []Tool
	end      func()
	err      error
}

// maxOpening is how many skills of a conversation are opened at once. Those that wait for servers
// do not wait for each other.
const maxOpening = 8

// maxServers is how many skills of a host, such as servers of tools, are opened in one turn of a
// conversation.
const maxServers = 16

var errServers = errs.New(
	errs.Unavailable, "Too many skills of the assistant need other servers: the most is %d.", maxServers,
)

// openSkills opens the skills of an assistant.
func (c *conversation) openSkills(
	ctx context.Context, as assistants.Assistant, secrets map[string]string, known []*known,
) []opened {
	all, servers := make([]opened, len(as.Skills)), 0
	var opening errgroup.Group
	opening.SetLimit(maxOpening)
	for i, skill := range as.Skills {
		open, o := c.s.opener(skill.Type), &all[i]
		if o.provided = open != nil; !o.provided {
			continue
		}
		if !ready(skill.Type) {
			if servers++; servers > maxServers {
				o.err = errServers
				continue
			}
		}
		opening.Go(func() error {
			defer func() {
				if p := recover(); p != nil {
					o.err = fmt.Errorf("panic: %v", p)
				}
			}()
			// The skill may change its secrets.
			o.tools, o.end, o.err = open(ctx, Use{
				Assistant: as,
				Skill:     skill,
				Secrets:   maps.Clone(secrets),
				known:     known,
				images:    &c.images,
				text:      &c.text,
				user:      c.in.User,
			})
			return nil
		})
	}
	_ = opening.Wait()
	return all
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// names are the names of tools that are taken.
type names map[string]bool

// take returns the name of a tool of a skill: its own, or one with the skill's name if that is
// taken or not one that models take.
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

// toldToModel reports whether an error is told to the model, and the conversation goes on:
// something is not there for the caller, or not as it must be.
func toldToModel(err error) bool {
	for _, code := range []errs.Code{errs.NotFound, errs.Forbidden, errs.Conflict, errs.Invalid} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
