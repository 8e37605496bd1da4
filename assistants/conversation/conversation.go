// Package conversation is how people talk to assistants: the skills of an assistant become the tools of a conversation.
//
// httpapi runs conversations for callers; the root and hosts import it for the skills that a server provides.
package conversation

import (
	"context"

	"github.com/tenantcontent/tenantcontent/ai/chat"
	"github.com/tenantcontent/tenantcontent/assistants"
)

// Skill is a type of skill that a server provides, and what it does in conversations.
type Skill struct {
	assistants.SkillType
	// Open returns the tools of one skill of an assistant in one conversation. end, unless it is nil, is called when the conversation has
	// ended. The actor of ctx is who talks: tools have the rights of this caller, whoever owns the assistant. ctx ends with the conversation.
	//
	// Errors: one with a code of package errs other than errs.Internal is told to the model, which goes on without the skill; any other
	// error ends the conversation.
	Open func(ctx context.Context, u Use) (tools []chat.Tool, end func(), err error)
}

// Use is a skill of an assistant that is used in a conversation.
type Use struct {
	Assistant assistants.Assistant
	Skill     assistants.Skill
	Secrets   map[string]string // of the assistant, in the clear: they must not reach the model, results or errors
}

// Types returns the types of some skills, for assistants.Options.
func Types(all []Skill) []assistants.SkillType {
	types := make([]assistants.SkillType, len(all))
	for i, s := range all {
		types[i] = s.SkillType
	}
	return types
}
