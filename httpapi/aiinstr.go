package httpapi

import (
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/hal"
)

// instructionRoutes serves AI instructions.
type instructionRoutes struct{ *api }

// routes returns the rows of the route table.
func (a instructionRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/ai-instructions",
			Name:    "listInstructions",
			Grants:  nothing,
			Query:   searched,
			Summary: "The AI instructions",
			Guard:   a.needsAI,
			Gives:   openapi.OK(openapi.PageWith[instructionBody, instructionsBody]("inf:ai-instruction")),
			Fails:   []int{400, 403},
			Handle:  a.listInstructions,
		},
		{
			Method:  post,
			Pattern: "/api/ai-instructions",
			Name:    "createInstruction",
			Drops:   true,
			Grants:  programs,
			Writes:  rest.InTx,
			Summary: "Add an AI instruction",
			Guard:   a.needsAI,
			Takes:   openapi.Input[instructionInput](),
			Gives:   openapi.Created(openapi.One[instructionBody]()),
			Fails:   []int{400, 403, 409},
			Handle:  a.createInstruction,
		},
		{
			Method:  get,
			Pattern: "/api/ai-instructions/:id",
			Name:    "getInstruction",
			Grants:  nothing,
			Summary: "One AI instruction",
			Guard:   a.needsAI,
			Gives:   openapi.OK(openapi.One[instructionBody]()),
			Fails:   []int{404},
			Handle:  a.getInstruction,
		},
		{
			Method:  put,
			Pattern: "/api/ai-instructions/:id",
			Name:    "putInstruction",
			Drops:   true,
			Grants:  programs,
			Row:     "ai-instruction",
			Writes:  rest.InTx,
			Summary: "Change an AI instruction",
			Guard:   a.needsAI,
			Takes:   openapi.Update[instructionUpdate, instructionBody](),
			Gives:   openapi.OK(openapi.One[instructionBody]()),
			Fails:   []int{400, 403},
			Handle:  a.putInstruction,
		},
		{
			Method:  del,
			Pattern: "/api/ai-instructions/:id",
			Name:    "deleteInstruction",
			Grants:  programs,
			Row:     "ai-instruction",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove an AI instruction",
			Guard:   a.needsAI,
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{400, 403, 404},
			Handle:  a.deleteInstruction,
		},
	}
}

// instructionBody is an AI instruction as the API writes it.
type instructionBody struct {
	Tenant      string                     `json:"tenant"`
	ID          string                     `json:"id"`
	Slug        string                     `json:"slug"`
	Description *string                    `json:"description"`
	Content     string                     `json:"content"`
	OwnerID     string                     `json:"ownerId"`
	CreatedAt   hal.Time                   `json:"createdAt"`
	UpdatedAt   hal.Time                   `json:"updatedAt"`
	Permissions instructionPermissionsBody `json:"permissions"`
}

// Relations implements openapi.Related.
func (instructionBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:ai-instructions", "inf:owner"}}
}

type instructionPermissionsBody struct {
	Edit        bool `json:"edit"`
	Delete      bool `json:"delete"`
	Write       bool `json:"write"`
	ChangeOwner bool `json:"changeOwner"`
	Copy        bool `json:"copy"`
}

func (a instructionRoutes) instruction(who actor.Actor, i aiinstr.Instruction) hal.Resource {
	may := instructionPermissionsBody(aiinstr.PermissionsOf(who, i))
	links := a.owned(
		hal.Self(a.href("ai-instructions", i.Slug)), i.OwnerID,
	).With("inf:ai-instructions", a.href("ai-instructions"))
	return hal.Resource{Links: links, Row: i, Beside: may, Value: instructionBody{
		Tenant: i.Tenant, ID: i.ID, Slug: i.Slug, Description: i.Description, Content: i.Content, OwnerID: i.OwnerID,
		CreatedAt: hal.Time(i.CreatedAt), UpdatedAt: hal.Time(i.UpdatedAt),
		Permissions: may,
	}}
}

// instructionsBody is what a page of instructions has beside its rows.
type instructionsBody struct {
	Permissions instructionPermissionsBody `json:"permissions"`
}

// needsAI guards the AI routes: AI has to be on in the tenant (400), and the caller has to hold the
// ai credential (403).
func (a *api) needsAI(r *rest.Request) error {
	_, err := a.AIInstructions.Allowed(r.Context())
	return err
}

// listInstructions serves GET /api/ai-instructions: 200 and a page of instructions, 100 unless
// limit says otherwise, ordered by slug unless sort says otherwise (slug, createdAt, updatedAt); q
// searches slug and description. The permissions beside the page are those for the instructions of
// all owners.
func (a instructionRoutes) listInstructions(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.AIInstructions.List(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	extra := map[string]any{"permissions": instructionPermissionsBody(aiinstr.ListPermissions(r.Who))}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:ai-instruction", extra,
		func(i aiinstr.Instruction) hal.Resource {
			return a.instruction(r.Who, i)
		}))
}

// instructionInput is a new instruction.
type instructionInput struct {
	Slug        string             `json:"slug"`
	Description rest.Field[string] `json:"description"`
	Content     string             `json:"content"`
}

// createInstruction serves POST /api/ai-instructions: 201 and the instruction, with Location at its
// slug; a description that is blank or null counts as left out. 400 without slug or content; 409
// for a taken slug.
func (a instructionRoutes) createInstruction(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[instructionInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	i, err := a.AIInstructions.Create(r.Context(), aiinstr.Instruction{
		Slug:        in.Slug,
		Description: in.Description.Value,
		Content:     in.Content,
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("ai-instructions", i.Slug), a.instruction(r.Who, i))
}

// getInstruction serves GET /api/ai-instructions/{id}, an id or a slug: 200 and the instruction;
// 404.
func (a instructionRoutes) getInstruction(r *rest.Request) (rest.Reply, error) {
	i, err := a.AIInstructions.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.instruction(r.Who, i))
}

// instructionUpdate is a change of an instruction.
type instructionUpdate struct {
	Description rest.Field[string] `json:"description"`
	Content     string             `json:"content"`
}

// putInstruction serves PUT /api/ai-instructions/{id}: 200 and the instruction with the new
// content; a description that is blank or null counts as left out, and then the old one stays. A
// slug is passed over. 403 for others than the owner and superusers.
func (a instructionRoutes) putInstruction(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[instructionUpdate](r, instructionBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	i, err := a.AIInstructions.Update(r.Context(), r.Param("id"), func(i *aiinstr.Instruction) error {
		if d := in.Description.Value; d != nil && strings.TrimSpace(*d) != "" {
			i.Description = d
		}
		i.Content = in.Content
		return nil
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.instruction(r.Who, i))
}

// deleteInstruction serves DELETE /api/ai-instructions/{id}: 200; 404; 403 for others than the
// owner and superusers.
func (a instructionRoutes) deleteInstruction(r *rest.Request) (rest.Reply, error) {
	if err := a.AIInstructions.Delete(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
