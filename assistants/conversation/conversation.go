// Package conversation is how people talk to assistants: what an assistant is told of its
// knowledge, its skills as the tools of a conversation, and how a dispatcher hands over to another
// assistant.
//
// httpapi runs conversations for callers; the root and hosts import it for the skills that a server
// provides.
package conversation

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Skill is a type of skill that a server provides, and what it does in conversations.
type Skill struct {
	assistants.SkillType
	// Open returns the tools of one skill of an assistant in one conversation. end, unless it is
	// nil, is called when the conversation has ended. The actor of ctx is the caller that talks:
	// tools have the rights of this caller, not those of the assistant's owner. ctx ends with the
	// conversation. The skills of an assistant are opened at once: Open is called by several
	// goroutines.
	//
	// Errors: one with a code of package errs other than errs.Internal is told to the model, which
	// goes on with the tools that are returned beside it; any other error ends the conversation.
	Open func(ctx context.Context, u Use) (tools []Tool, end func(), err error)
}

// Use is a skill of an assistant that is used in a conversation.
type Use struct {
	Assistant assistants.Assistant
	Skill     assistants.Skill
	Secrets   map[string]string // of the assistant, in the clear: they must not reach the model, results or errors

	known  []*known  // datasets of the assistant
	images *int      // how many the conversation has made
	text   *lastText // of the conversation
	user   string    // Input.User
}

// Options configure a Service. All but Skills and Log are required.
type Options struct {
	Provider ai.Provider
	Scripts  Runtime // of the skill code
	Skills   []Skill // of the host, beside the ready ones
	// Extract returns the text of a document that is not text already.
	Extract func(ctx context.Context, contentType, name string, data []byte) (text string, err error)
	// Assistants has the assistants.
	Assistants *assistants.Service
	Content    *content.Service
	Datasets   *datasets.Service
	// Expand replaces the references to AI instructions in a text: *aiinstr.Service has it.
	Expand func(ctx context.Context, text string) (expanded string, unknown []string, err error)
	Log    *slog.Logger // default slog.Default
}

// Service runs conversations with assistants.
type Service struct {
	o       Options
	knowing *limiter.Limiter // of datasets, by tenant
	reading *limiter.Limiter // of files, by tenant
	making  *limiter.Limiter // of images, by tenant
}

// How many datasets and files are read, and images made, at once.
const (
	maxKnowing         = 8
	maxKnowingOfTenant = 4
	knowingWait        = 20 * time.Second

	maxReading         = 8
	maxReadingOfTenant = 2
	readingWait        = 20 * time.Second

	maxMaking         = 16
	maxMakingOfTenant = 8
	makingWait        = time.Minute
)

// New returns a Service.
func New(o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Service{
		o:       o,
		knowing: limiter.New(limiter.Options{Capacity: maxKnowing, PerKey: maxKnowingOfTenant, Timeout: knowingWait}),
		reading: limiter.New(limiter.Options{Capacity: maxReading, PerKey: maxReadingOfTenant, Timeout: readingWait}),
		making:  limiter.New(limiter.Options{Capacity: maxMaking, PerKey: maxMakingOfTenant, Timeout: makingWait}),
	}
}

// SkillTypes returns the types of the ready skills that a program has, and those of its host, for
// assistants.Options. Errors: errs.Invalid for a type that is there twice, or a skill without Open.
func SkillTypes(p ai.Provider, scripts Runtime, own []Skill) ([]assistants.SkillType, error) {
	types := []assistants.SkillType{
		{
			Type:        "query",
			Name:        "Query datasets",
			Description: "Reads the rows of the datasets that the assistant knows.",
		},
		{
			Type:        "files",
			Name:        "Read files",
			Description: "Reads the text of the assistant's files, and of the files among its references.",
		},
	}
	if _, none := scripts.(jsvm.None); !none {
		types = append(types, assistants.SkillType{
			Type:        "code",
			Name:        "Run code",
			Description: "Runs JavaScript that reaches nothing.",
		})
	}
	if _, images := p.(ai.Imager); images {
		types = append(types, assistants.SkillType{
			Type:        "images",
			Name:        "Make images",
			Description: "Makes images that the person sees.",
		})
	}
	for _, s := range own {
		if s.Open == nil || s.Type == "" || slices.ContainsFunc(types, func(t assistants.SkillType) bool {
			return t.Type == s.Type
		}) {
			return nil, errs.New(
				errs.Invalid, "Config.Skills: the skill %q must have a type that no other skill has, and Open",
				s.Type,
			)
		}
		types = append(types, s.SkillType)
	}
	return types, nil
}

// ready reports whether a type of skill is one of those that this package has.
func ready(skillType string) bool {
	return slices.Contains([]string{"query", "files", "code", "images"}, skillType)
}

// opener returns what opens the skills of a type, nil for one that is not provided any more.
func (s *Service) opener(skillType string) func(ctx context.Context, u Use) ([]Tool, func(), error) {
	switch _, imager := s.o.Provider.(ai.Imager); {
	case skillType == "query":
		return s.openQuery
	case skillType == "files":
		return s.openFiles
	case skillType == "code":
		return s.openCode
	case skillType == "images" && imager:
		return s.openImages
	}
	for _, own := range s.o.Skills {
		if own.Type == skillType {
			return own.Open
		}
	}
	return nil
}

// Input is what a conversation begins with.
type Input struct {
	Messages []ai.Message // of the person and of the assistants, at least one
	Model    string       // that answers; "" for that of the assistant
	Models   []string     // that there are; none if that is not known
	User     string       // see ai.Request.User
	// Visitor reports whether the caller stands for somebody whom the caller has invited.
	Visitor bool
}

// Begin begins a conversation of the caller with an assistant, which the caller may talk to
// (assistants.Service.CheckTalk). The conversation is chat.Run with the Options that it returns and
// ctx; end must be called when that has returned, also if Begin returns an error. Errors:
// errs.Invalid for instructions that cannot be expanded; those of skills that end a conversation.
func (s *Service) Begin(ctx context.Context, as assistants.Assistant, in Input) (o ChatOptions, end func(), err error) {
	if _, err := actor.From(ctx); err != nil {
		return ChatOptions{}, func() {}, err
	}
	c := &conversation{s: s, in: in}
	t, err := c.turn(ctx, as)
	if err != nil {
		return ChatOptions{}, c.end, err
	}
	o = ChatOptions{Provider: s.o.Provider, Request: ai.Request{User: in.User}, Next: c.next}
	t.apply(in, &o.Request, &o.Tools)
	return o, c.end, nil
}

// conversation is a conversation while it is run.
type conversation struct {
	s      *Service
	in     Input
	ends   []func()
	spoken []string // ids of the assistants that have answered, and of that which does
	images int
	text   lastText
	to     *turn // who answers next; nil if nothing changes
}

func (c *conversation) end() {
	for _, end := range slices.Backward(c.ends) {
		end()
	}
}

// next is chat.Options.Next.
func (c *conversation) next(r *ai.Request, tools *[]Tool) {
	if c.to != nil {
		c.to.apply(c.in, r, tools)
		c.to = nil
	}
}

// turn is what one assistant answers with.
type turn struct {
	model  string
	system string
	tools  []Tool
}

func (t *turn) apply(in Input, r *ai.Request, tools *[]Tool) {
	r.Model, *tools = t.model, t.tools
	r.Messages = append([]ai.Message{{Role: ai.System, Content: t.system}}, in.Messages...)
}

// turn opens what an assistant knows and can do.
func (c *conversation) turn(ctx context.Context, as assistants.Assistant) (*turn, error) {
	c.spoken = append(c.spoken, as.ID)
	instructions, _, err := c.s.o.Expand(ctx, as.Instructions)
	if err != nil {
		return nil, err
	}
	known, err := c.s.knownDatasets(ctx, as)
	if err != nil {
		return nil, err
	}
	tools, notes, err := c.open(ctx, as, known)
	if err != nil {
		return nil, err
	}
	p := prompt{as: as, instructions: instructions, datasets: known, notes: notes}
	p.queries = slices.ContainsFunc(as.Skills, func(skill assistants.Skill) bool { return skill.Type == "query" })
	if p.references, p.hidden, err = c.s.references(ctx, as); err != nil {
		return nil, err
	}
	if p.files, err = c.s.o.Assistants.Unchecked().Files(ctx, as, paging.Query{Limit: filesOfPage}); err != nil {
		return nil, err
	}
	if as.Dispatcher {
		over, err := c.handOver(ctx, as)
		if err != nil {
			return nil, err
		}
		tools = append(tools, over...)
		p.dispatches = len(over) > 0
	}
	t := &turn{model: c.model(as), system: p.text(), tools: tools}
	for _, k := range known { // which the tools keep
		k.fields, k.rows = nil, nil
	}
	return t, nil
}

// model returns the model that answers for an assistant; "" for the default one.
func (c *conversation) model(as assistants.Assistant) string {
	switch {
	case c.in.Model != "":
		return c.in.Model
	case as.ModelID != nil && (len(c.in.Models) == 0 || slices.Contains(c.in.Models, *as.ModelID)):
		return *as.ModelID
	}
	return ""
}
