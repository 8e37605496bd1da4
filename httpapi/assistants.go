package httpapi

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// assistantRoutes serves assistants with their drafts, files and shares.
type assistantRoutes struct{ *api }

// routes returns the rows of assistants, unless the host keeps them itself. needsAI comes before
// everything else.
func (a assistantRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, assistants.Kind) {
		return nil
	}
	const one = "/api/assistants/:id"
	n := drafted{a.api, "assistants", string(assistants.Kind), "files", a.Assistants}
	t := a.assistantTokens()
	return guarded(a.needsAI, []rest.Route{
		{
			Method:  get,
			Pattern: "/api/assistants",
			Name:    "listAssistants",
			Grants:  nothing,
			Query:   searched,
			Summary: "The assistants that the caller sees",
			Gives:   openapi.OK(openapi.PageWith[assistantBody, assistantsBody]("inf:assistant")),
			Fails:   []int{400, 403},
			Handle:  a.listAssistants,
		},
		{
			Method:  post,
			Pattern: "/api/assistants",
			Name:    "createAssistant",
			Grants:  programs,
			Writes:  rest.InTx,
			Summary: "Add an assistant",
			Takes:   openapi.Input[assistantInput](),
			Gives:   openapi.Created(openapi.One[assistantBody]()),
			Fails:   []int{400, 409},
			Handle:  a.createAssistant,
		},
		{
			Method:  get,
			Pattern: "/api/assistants-list",
			Name:    "listAllAssistants",
			Grants:  nothing,
			Heavy:   rest.Brief,
			Query:   none,
			Summary: "All assistants that the caller sees, in short",
			Gives:   openapi.OK(openapi.List[assistantRow]()),
			Handle:  a.listAllAssistants,
		},
		{
			Method:  get,
			Pattern: "/api/assistants/drafts",
			Name:    "listAssistantDrafts",
			Grants:  nothing,
			Query:   none,
			Summary: "The drafts of the assistants that the caller may change",
			Gives:   openapi.OK(openapi.List[assistantRow]()),
			Handle:  a.listAssistantDrafts,
		},
		{
			Method:  get,
			Pattern: "/api/assistants/skills",
			Name:    "listSkillTypes",
			Grants:  nothing,
			Query:   none,
			Summary: "The skills that this server provides",
			Gives:   openapi.OK(openapi.List[assistants.SkillType]()),
			Handle:  a.listSkillTypes,
		},
		{
			Method:  get,
			Pattern: one,
			Name:    "getAssistant",
			Grants:  nothing,
			Summary: "One assistant",
			Gives:   openapi.OK(openapi.One[assistantBody]()),
			Fails:   []int{404},
			Handle:  a.getAssistant,
		},
		{
			Method:  put,
			Pattern: one,
			Name:    "putAssistant",
			Grants:  programs,
			Row:     "assistant",
			Writes:  rest.InTx,
			Summary: "Change an assistant",
			Takes:   openapi.Update[assistantInput, assistantBody](),
			Gives:   openapi.OK(openapi.One[assistantBody]()),
			Fails:   []int{403},
			Handle:  a.putAssistant,
		},
		{
			Method:  del,
			Pattern: one,
			Name:    "deleteAssistant",
			Grants:  programs,
			Row:     "assistant",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove an assistant with its draft and files",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{403},
			Handle:  a.deleteAssistant,
		},
		{
			Method:  put,
			Pattern: one + "/owner",
			Name:    "putAssistantOwner",
			Grants:  rights,
			Row:     "assistant",
			Writes:  rest.InTx,
			Summary: "Pass an assistant on to another owner",
			Takes:   openapi.Input[ownerInput](),
			Gives:   openapi.OK(openapi.One[assistantBody]()),
			Fails:   []int{400},
			Handle:  a.putAssistantOwner,
		},

		{
			Method:  post,
			Pattern: one + "/_edit",
			Name:    "editAssistant",
			Grants:  programs,
			Heavy:   rest.Brief,
			Writes:  rest.InTx,
			Options: forceInput{},
			Summary: "Begin a draft of an assistant, or go on with it",
			Gives:   openapi.OK(openapi.One[assistantBody]()),
			Handle:  a.editAssistant,
		},
		{
			Method:  get,
			Pattern: one + "/draft",
			Name:    "getAssistantDraft",
			Grants:  nothing,
			Summary: "The draft of an assistant",
			Gives:   openapi.OK(openapi.One[assistantBody]()),
			Handle:  a.getAssistantDraft,
		},
		{
			Method:  del,
			Pattern: one + "/draft",
			Name:    "deleteAssistantDraft",
			Grants:  programs,
			Row:     "assistant",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Discard the draft of an assistant",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  n.deleteDraft,
		},
		{
			Method:  get,
			Pattern: one + "/draft/diff",
			Name:    "getAssistantDraftDiff",
			Grants:  nothing,
			Heavy:   rest.Brief,
			Summary: "What the draft of an assistant changes",
			Gives:   openapi.OK(openapi.One[diffBody]()),
			Handle:  n.getDiff,
		},
		{
			Method:  post,
			Pattern: one + "/draft/_commit",
			Name:    "commitAssistantDraft",
			Grants:  programs,
			Heavy:   rest.Brief,
			Writes:  rest.InTx,
			Options: forceInput{},
			Summary: "Publish the draft of an assistant",
			Gives:   openapi.OK(openapi.One[assistantBody]()),
			Fails:   []int{404},
			Handle:  a.commitAssistantDraft,
		},

		{
			Method:  get,
			Pattern: one + "/files",
			Name:    "listAssistantFiles",
			Grants:  nothing,
			Query:   paged,
			Summary: "The files of an assistant",
			Gives:   openapi.OK(openapi.Page[libraryFileBody]("inf:content")),
			Fails:   []int{403},
			Handle:  n.listFiles,
		},
		{
			Method:  get,
			Pattern: one + "/files/*path",
			Name:    "getAssistantFile",
			Grants:  nothing,
			Heavy:   rest.Brief,
			AnyType: true,
			Summary: "The bytes of an assistant's file",
			Gives:   openapi.OK(openapi.Bytes("*/*")),
			Handle:  n.getFile,
		},
		{
			Method:  put,
			Pattern: one + "/files/*path",
			Name:    "putAssistantFile",
			Grants:  programs,
			Row:     "library-file",
			Heavy:   rest.Brief,
			Summary: "Write a file of an assistant",
			Takes:   openapi.Input[fileInput]().Or(openapi.Bytes("*/*")),
			Gives:   openapi.OK(openapi.One[libraryFileBody]()),
			Handle:  n.putFile,
		},
		{
			Method:  del,
			Pattern: one + "/files/*path",
			Name:    "deleteAssistantFile",
			Grants:  programs,
			Row:     "library-file",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a file of an assistant",
			Gives:   openapi.OK(openapi.None()),
			Handle:  n.deleteFile,
		},

		{
			Method:  get,
			Pattern: one + "/shares",
			Name:    "listAssistantShares",
			Grants:  rights,
			Query:   none,
			Summary: "With whom an assistant is shared",
			Gives:   openapi.OK(openapi.Whole[shareBody]("inf:assistant-share", "inf:assistant")),
			Handle:  n.listShares,
		},
		{
			Method:  get,
			Pattern: one + "/shares/:principalId",
			Name:    "getAssistantShare",
			Grants:  rights,
			Summary: "The share of one principal",
			Gives:   openapi.OK(openapi.One[shareBody]()),
			Handle:  n.getShare,
		},
		{
			Method:  put,
			Pattern: one + "/shares/:principalId",
			Name:    "putAssistantShare",
			Grants:  rights,
			Row:     "assistant-share",
			Writes:  rest.InTx,
			Summary: "Share an assistant, or change a share",
			Takes:   openapi.Update[shareInput, shareBody](),
			Gives:   openapi.OK(openapi.One[shareBody]()),
			Fails:   []int{400},
			Handle:  n.putShare,
		},
		{
			Method:  del,
			Pattern: one + "/shares/:principalId",
			Name:    "deleteAssistantShare",
			Grants:  rights,
			Row:     "assistant-share",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "End a share",
			Gives:   openapi.OK(openapi.None()),
			Handle:  n.deleteShare,
		},

		{
			Method:  get,
			Pattern: one + "/tokens",
			Name:    "listAssistantTokens",
			Grants:  credentials,
			Secret:  true,
			Query:   paged,
			Summary: "The tokens of an assistant",
			Gives:   openapi.OK(openapi.Page[tokenBody]("inf:token")),
			Fails:   []int{403},
			Handle:  t.list,
		},
		{
			Method:  post,
			Pattern: one + "/tokens",
			Name:    "createAssistantToken",
			Grants:  credentials,
			Secret:  true,
			Writes:  rest.InTx,
			Summary: "Make a token of an assistant",
			Takes:   openapi.Input[tokenInput](),
			Gives:   openapi.Created(openapi.One[newToken]()),
			Handle:  a.createAssistantToken,
		},
		{
			Method:  get,
			Pattern: one + "/tokens/:tokenId",
			Name:    "getAssistantToken",
			Grants:  credentials,
			Secret:  true,
			Summary: "One token of an assistant",
			Gives:   openapi.OK(openapi.One[tokenBody]()),
			Handle:  t.get,
		},
		{
			Method:  del,
			Pattern: one + "/tokens/:tokenId",
			Name:    "deleteAssistantToken",
			Grants:  credentials,
			Row:     "assistant-token",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Revoke a token of an assistant",
			Gives:   openapi.OK(openapi.None()),
			Handle:  t.remove,
		},
	})
}

// listAssistants serves GET /api/assistants: 200 and a page of the assistants that the caller sees,
// without drafts, 20 unless limit says otherwise, ordered by name unless sort says otherwise (name,
// createdAt, updatedAt); q searches name, slug and description.
func (a assistantRoutes) listAssistants(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(20)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Assistants.List(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	extra := map[string]any{"permissions": listPermissionsBody{a.Assistants.CanCreate(r.Who)}}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:assistant", extra, a.assistant))
}

// assistantRow is an assistant in the plain lists.
type assistantRow struct {
	ID          string                   `json:"id"`
	NaturalID   string                   `json:"naturalId"`
	Name        string                   `json:"name"`
	Slug        *string                  `json:"slug"`
	Description *string                  `json:"description"`
	Dispatcher  bool                     `json:"dispatcher"`
	ModelID     *string                  `json:"modelId"`
	Embedded    bool                     `json:"embedded"`
	OwnerID     string                   `json:"ownerId"`
	Shared      bool                     `json:"shared"`
	FolderID    *string                  `json:"folderId"`
	EditingID   *string                  `json:"editingId"`
	LockedBy    *string                  `json:"editingLockedBy"`
	CreatedAt   hal.Time                 `json:"createdAt"`
	UpdatedAt   hal.Time                 `json:"updatedAt"`
	Permissions assistantPermissionsBody `json:"permissions"`
}

func newAssistantRow(v assistants.Shown) assistantRow {
	return assistantRow{
		v.ID, v.NaturalID(), v.Name, v.Slug, v.Description, v.Dispatcher,
		v.ModelID, v.Embedded, v.OwnerID, v.Shared, v.FolderID, v.EditingID,
		v.EditLock.LockedBy, hal.Time(v.CreatedAt), hal.Time(v.UpdatedAt), assistantPermissionsBody(v.Permissions),
	}
}

// assistantsBody is what a page of assistants has beside its rows.
type assistantsBody struct {
	Permissions listPermissionsBody `json:"permissions"`
}

// listAllAssistants serves GET /api/assistants-list: 200 and an array of all assistants that the
// caller sees, in short, ordered by name.
func (a assistantRoutes) listAllAssistants(r *rest.Request) (rest.Reply, error) {
	return rest.Streamed(func(w io.Writer) error {
		return rest.WriteArray(w, a.Assistants.All(r.Context()), func(dst []byte, v assistants.Shown) []byte {
			dst, _ = hal.Append(dst, newAssistantRow(v)) // it has nothing that cannot be encoded
			return dst
		})
	})
}

// listAssistantDrafts serves GET /api/assistants/drafts: 200 and an array of the drafts of the
// assistants that the caller may change.
func (a assistantRoutes) listAssistantDrafts(r *rest.Request) (rest.Reply, error) {
	drafts, err := a.Assistants.Drafts(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]assistantRow, len(drafts))
	for i, d := range drafts {
		rows[i] = newAssistantRow(d)
	}
	return rest.OK(rows)
}

// listSkillTypes serves GET /api/assistants/skills: 200 and an array {type, name, description} of
// the skills that this server provides.
func (a assistantRoutes) listSkillTypes(r *rest.Request) (rest.Reply, error) {
	types, err := a.Assistants.SkillTypes(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(append([]assistants.SkillType{}, types...))
}

// assistantInput is the body of a write to an assistant. A field that is left out stays as it is.
type assistantInput struct {
	Name         *string                     `json:"name"`
	Slug         rest.Field[string]          `json:"slug"`
	Description  rest.Field[string]          `json:"description"`
	Instructions rest.Field[string]          `json:"instructions"`
	Welcome      rest.Field[string]          `json:"welcome"`
	Dispatcher   *bool                       `json:"dispatcher"`
	Suggestions  rest.Field[[]string]        `json:"suggestions"`
	ModelID      rest.Field[string]          `json:"modelId"`
	Embedded     *bool                       `json:"embedded"`
	Data         rest.Field[json.RawMessage] `json:"data"`
	FolderID     rest.Field[string]          `json:"folderId"`
	Skills       rest.Field[[]skillInput]    `json:"skills"`
}

// skillInput is a skill in a body.
type skillInput struct {
	Type   string                      `json:"type"`
	Name   string                      `json:"name"`
	Config rest.Field[json.RawMessage] `json:"config"`
}

func (in assistantInput) apply(as *assistants.Assistant) {
	if in.Name != nil {
		as.Name = *in.Name
	}
	if in.Dispatcher != nil {
		as.Dispatcher = *in.Dispatcher
	}
	if in.Embedded != nil {
		as.Embedded = *in.Embedded
	}
	in.Slug.ApplyOrNull(&as.Slug)
	in.Description.ApplyOrNull(&as.Description)
	in.Instructions.Apply(&as.Instructions)
	in.Welcome.ApplyOrNull(&as.Welcome)
	in.Suggestions.Apply(&as.Suggestions)
	in.ModelID.ApplyOrNull(&as.ModelID)
	in.Data.Apply(&as.Data)
	in.FolderID.ApplyOrNull(&as.FolderID)
	if !in.Skills.Set {
		return
	}
	var all []skillInput
	in.Skills.Apply(&all)
	as.Skills = nil
	for _, s := range all {
		skill := assistants.Skill{Type: s.Type, Name: s.Name}
		s.Config.Apply(&skill.Config)
		as.Skills = append(as.Skills, skill)
	}
}

// createAssistant serves POST /api/assistants: 201 and the assistant, which the caller owns; 400
// for a skill that this server does not provide; 409 for a slug that the caller has used.
func (a assistantRoutes) createAssistant(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[assistantInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	var as assistants.Assistant
	in.apply(&as)
	v, err := a.Assistants.Create(r.Context(), as)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("assistants", v.ID), a.assistant(v))
}

// getAssistant serves GET /api/assistants/{id}, an id or a natural id: 200 and the assistant; 404
// for one that the caller does not see. A draft is found by its id, by those who may change the
// assistant.
func (a assistantRoutes) getAssistant(r *rest.Request) (rest.Reply, error) {
	return a.shownAssistant(a.Assistants.Get(r.Context(), r.Param("id")))
}

// putAssistant serves PUT /api/assistants/{id}: 200 and the changed assistant or draft; what the
// body leaves out stays. 400 for a skill that this server does not provide; 403 without the
// permission write; 409 for a taken slug, and for a draft that somebody else edits.
func (a assistantRoutes) putAssistant(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[assistantInput](r, assistantBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	return a.shownAssistant(a.Assistants.Update(r.Context(), r.Param("id"), func(as *assistants.Assistant) error {
		in.apply(as)
		return nil
	}))
}

// deleteAssistant serves DELETE /api/assistants/{id}: 200, and the draft, files, shares, tokens and
// comments go too; 404; 403; 400 for a draft.
func (a assistantRoutes) deleteAssistant(r *rest.Request) (rest.Reply, error) {
	if err := a.Assistants.Delete(r.Context(), r.Param("id")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// putAssistantOwner serves PUT /api/assistants/{id}/owner {ownerId}: 200 and the assistant; 400 for
// an unknown principal; 404; 403.
func (a assistantRoutes) putAssistantOwner(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[ownerInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if in.OwnerID == "" {
		return rest.Reply{}, errs.New(errs.Invalid, "ownerId is required: a username, or the id of a team")
	}
	return a.shownAssistant(a.Assistants.SetOwner(r.Context(), r.Param("id"), in.OwnerID))
}

// editAssistant serves POST /api/assistants/{id}/_edit: 200 and the draft, whose lock the caller's
// session has now, or another one that editingLockedBy names; with force=true the caller's in any
// case. 404; 403.
func (a assistantRoutes) editAssistant(r *rest.Request) (rest.Reply, error) {
	force, err := forceOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.shownAssistant(a.Assistants.Edit(r.Context(), r.Param("id"), force))
}

// getAssistantDraft serves GET /api/assistants/{id}/draft: 200 and the draft; 404; 403.
func (a assistantRoutes) getAssistantDraft(r *rest.Request) (rest.Reply, error) {
	return a.shownAssistant(a.Assistants.Draft(r.Context(), r.Param("id")))
}

// commitAssistantDraft serves POST /api/assistants/{id}/draft/_commit: 200 and the assistant as it
// is published; 404; 403; 409 while somebody else edits the draft, or when the assistant has
// changed since the draft began, unless force=true.
func (a assistantRoutes) commitAssistantDraft(r *rest.Request) (rest.Reply, error) {
	force, err := forceOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.shownAssistant(a.Assistants.Commit(r.Context(), r.Param("id"), force))
}

func (a assistantRoutes) assistantTokens() tokened {
	return tokened{api: a.api, plural: "assistants", kind: string(assistants.Kind), tokenType: sessions.Chat}
}

// createAssistantToken serves POST /api/assistants/{id}/tokens {notes, expiresAt, restrict, cidr}:
// 201 and the token with its key, which cannot be read again. 400 for a member that is not known,
// and for a draft; 403 without the permission share, and for a caller with a token; 404.
func (a assistantRoutes) createAssistantToken(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[tokenInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	n := a.assistantTokens()
	made, err := in.token(n.tokenType)
	if err != nil {
		return rest.Reply{}, err
	}
	t, key, err := a.Sessions.CreateToken(r.Context(), n.of(r), made)
	if err != nil {
		return rest.Reply{}, err
	}
	as, err := a.Assistants.Ref(r.Context(), t.Entity.ID)
	if err != nil {
		return rest.Reply{}, err
	}
	return n.made(r, t, key, as, n.links(t))
}
