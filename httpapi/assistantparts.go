package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// assistantPartRoutes serves what assistants know and can do: skills, secrets, datasets and
// references.
type assistantPartRoutes struct{ *api }

// routes returns the rows of the route table, unless the host keeps assistants itself. needsAI
// comes before everything else.
func (a assistantPartRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, assistants.Kind) {
		return nil
	}
	const one = "/api/assistants/:id"
	n := drafted{a.api, "assistants", string(assistants.Kind), "files", a.Assistants}
	return guarded(a.needsAI, []rest.Route{
		{
			Method:  get,
			Pattern: one + "/skills",
			Name:    "listAssistantSkills",
			Grants:  nothing,
			Query:   none,
			Summary: "What an assistant can do",
			Gives:   openapi.OK(openapi.Whole[assistantSkillBody]("inf:assistant-skill", "inf:assistant")),
			Handle:  a.listAssistantSkills,
		},
		{
			Method:  get,
			Pattern: one + "/skills/:name",
			Name:    "getAssistantSkill",
			Grants:  nothing,
			Summary: "One skill of an assistant",
			Gives:   openapi.OK(openapi.One[assistantSkillBody]()),
			Fails:   []int{404},
			Handle:  a.getAssistantSkill,
		},
		{
			Method:  put,
			Pattern: one + "/skills/:name",
			Name:    "putAssistantSkill",
			Grants:  programs,
			Row:     "assistant-skill",
			Writes:  rest.InTx,
			Summary: "Add or change a skill of an assistant",
			Takes:   openapi.Update[skillUpdate, assistantSkillBody](),
			Gives:   openapi.OK(openapi.One[assistantSkillBody]()),
			Fails:   []int{400},
			Handle:  a.putAssistantSkill,
		},
		{
			Method:  del,
			Pattern: one + "/skills/:name",
			Name:    "deleteAssistantSkill",
			Grants:  programs,
			Row:     "assistant-skill",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Take a skill off an assistant",
			Gives:   openapi.OK(openapi.None()),
			Handle:  a.deleteAssistantSkill,
		},
		{
			Method:  get,
			Pattern: one + "/secrets",
			Name:    "getAssistantSecrets",
			Grants:  credentials,
			Summary: "The names of an assistant's secrets",
			Gives:   openapi.OK(openapi.One[secretsBody]()),
			Handle:  n.getAssistantSecrets,
		},
		{
			Method:  put,
			Pattern: one + "/secrets/:key",
			Name:    "putAssistantSecret",
			Grants:  credentials,
			Row:     "assistant",
			Writes:  rest.InTx,
			Summary: "Set a secret of an assistant",
			Takes:   openapi.Input[secretInput](),
			Gives:   openapi.OK(openapi.One[assistantBody]()),
			Fails:   []int{400},
			Handle:  a.putAssistantSecret,
		},
		{
			Method:  del,
			Pattern: one + "/secrets/:key",
			Name:    "deleteAssistantSecret",
			Grants:  credentials,
			Row:     "assistant",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Remove a secret of an assistant",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  a.deleteAssistantSecret,
		},
		{
			Method:  get,
			Pattern: one + "/datasets",
			Name:    "listAssistantDatasets",
			Grants:  nothing,
			Query:   none,
			Summary: "The datasets that an assistant knows",
			Gives:   openapi.OK(openapi.Whole[knownDatasetBody]("inf:assistant-dataset", "inf:assistant")),
			Handle:  a.listAssistantDatasets,
		},
		{
			Method:  get,
			Pattern: one + "/datasets/:datasetId",
			Name:    "getAssistantDataset",
			Grants:  nothing,
			Summary: "What an assistant knows of a dataset",
			Gives:   openapi.OK(openapi.One[knownDatasetBody]()),
			Handle:  a.getAssistantDataset,
		},
		{
			Method:  put,
			Pattern: one + "/datasets/:datasetId",
			Name:    "putAssistantDataset",
			Grants:  programs,
			Row:     "assistant-dataset",
			Writes:  rest.InTx,
			Summary: "Let an assistant know a dataset",
			Takes:   openapi.Update[knownDatasetInput, knownDatasetBody](),
			Gives:   openapi.OK(openapi.One[knownDatasetBody]()),
			Fails:   []int{400, 404},
			Handle:  a.putAssistantDataset,
		},
		{
			Method:  del,
			Pattern: one + "/datasets/:datasetId",
			Name:    "deleteAssistantDataset",
			Grants:  programs,
			Row:     "assistant-dataset",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Take a dataset off an assistant",
			Gives:   openapi.OK(openapi.None()),
			Handle:  a.deleteAssistantDataset,
		},
		{
			Method:  get,
			Pattern: one + "/references",
			Name:    "listAssistantReferences",
			Grants:  nothing,
			Query:   none,
			Summary: "The entities that an assistant knows",
			Gives:   openapi.OK(openapi.Whole[assistantReferenceBody]("inf:assistant-reference", "inf:assistant")),
			Handle:  a.listAssistantReferences,
		},
		{
			Method:  get,
			Pattern: one + "/references/:entityType/:entityId",
			Name:    "getAssistantReference",
			Grants:  nothing,
			Summary: "One reference of an assistant",
			Gives:   openapi.OK(openapi.One[assistantReferenceBody]()),
			Handle:  a.getAssistantReference,
		},
		{
			Method:  put,
			Pattern: one + "/references/:entityType/:entityId",
			Name:    "putAssistantReference",
			Grants:  programs,
			Row:     "assistant-reference",
			Writes:  rest.InTx,
			Summary: "Let an assistant know an entity",
			Takes:   openapi.Update[referenceInput, assistantReferenceBody](),
			Gives:   openapi.OK(openapi.One[assistantReferenceBody]()),
			Fails:   []int{400},
			Handle:  a.putAssistantReference,
		},
		{
			Method:  del,
			Pattern: one + "/references/:entityType/:entityId",
			Name:    "deleteAssistantReference",
			Grants:  programs,
			Row:     "assistant-reference",
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "Take a reference off an assistant",
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{404},
			Handle:  a.deleteAssistantReference,
		},
	})
}

// known encodes an element of a list of an assistant.
func (a assistantPartRoutes) known(id string, value guard.Versioned, path ...string) hal.Resource {
	links := hal.Self(a.href(append([]string{"assistants", id}, path...)...)).With(
		"inf:assistant", a.href("assistants", id),
	).
		With("inf:assistant-"+path[0], a.href("assistants", id, path[0]))
	return hal.Resource{Links: links, Row: value, Beside: struct{}{}, Value: value}
}

// listKnown replies with a list of an assistant: 200 and all elements.
func listKnown[E any](
	a *api, r *rest.Request, plural, rel string, list func(assistants.Assistant) []E,
	encode func(id string, e E) hal.Resource,
) (rest.Reply, error) {
	v, err := a.Assistants.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	rows := []hal.Resource{}
	for _, e := range list(v.Assistant) {
		rows = append(rows, encode(r.Param("id"), e))
	}
	links := hal.Self(a.href(
		"assistants", r.Param("id"), plural,
	)).With("inf:assistant", a.href("assistants", r.Param("id")))
	return rest.OK(hal.Collection(links, hal.Page{Count: len(rows), Total: len(rows)}, rel, rows, nil))
}

// oneKnown replies with an element of a list of an assistant: 200; 404.
func oneKnown[E any](
	a *api, r *rest.Request, what string, list func(assistants.Assistant) []E, is func(E) bool,
	encode func(id string, e E) hal.Resource,
) (rest.Reply, error) {
	v, err := a.Assistants.Get(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	all := list(v.Assistant)
	at := slices.IndexFunc(all, is)
	if at < 0 {
		return rest.Reply{}, errs.New(errs.NotFound, "%s not found.", what)
	}
	return rest.OK(encode(r.Param("id"), all[at]))
}

func skillsOf(as assistants.Assistant) []assistants.Skill         { return as.Skills }
func datasetsOf(as assistants.Assistant) []assistants.Dataset     { return as.Datasets }
func referencesOf(as assistants.Assistant) []assistants.Reference { return as.References }

func (a assistantPartRoutes) skill(id string, s assistants.Skill) hal.Resource {
	res := a.known(id, s, "skills", s.Name)
	res.Value = assistantSkillBody(s)
	return res
}

// assistantSkillBody is a skill of an assistant as the API writes it.
type assistantSkillBody assistants.Skill

// Relations implements openapi.Related.
func (assistantSkillBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:assistant", "inf:assistant-skills"}}
}

// knownDatasetBody is what an assistant knows of a dataset as the API writes it.
type knownDatasetBody struct {
	DatasetID string          `json:"datasetId"`
	Mode      string          `json:"mode"`
	Filter    json.RawMessage `json:"filter"`
}

// Relations implements openapi.Related.
func (knownDatasetBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:assistant", "inf:assistant-datasets", "inf:dataset"}}
}

func (a assistantPartRoutes) knownDataset(id string, d assistants.Dataset) hal.Resource {
	res := a.known(id, d, "datasets", d.DatasetID)
	res.Value = knownDatasetBody{d.DatasetID, string(d.Mode), d.Filter}
	res.Links.With("inf:dataset", a.href("datasets", d.DatasetID))
	return res
}

// assistantReferenceBody is a reference of an assistant as the API writes it.
type assistantReferenceBody assistants.Reference

// Relations implements openapi.Related.
func (assistantReferenceBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:assistant", "inf:assistant-references", "inf:entity"}}
}

func (a assistantPartRoutes) reference(id string, ref assistants.Reference) hal.Resource {
	res := a.known(id, ref, "references", ref.EntityType, ref.EntityID)
	res.Value = assistantReferenceBody(ref)
	if href := a.entityHref(entity.Kind(ref.EntityType), ref.EntityID); href != "" {
		res.Links.With("inf:entity", href)
	}
	return res
}

// listAssistantSkills serves GET /api/assistants/{id}/skills: 200 and the skills, ordered by name;
// 404.
func (a assistantPartRoutes) listAssistantSkills(r *rest.Request) (rest.Reply, error) {
	return listKnown(a.api, r, "skills", "inf:assistant-skill", skillsOf, a.skill)
}

// getAssistantSkill serves GET /api/assistants/{id}/skills/{name}: 200 and the skill; 404.
func (a assistantPartRoutes) getAssistantSkill(r *rest.Request) (rest.Reply, error) {
	return oneKnown(a.api, r, "Skill", skillsOf, func(s assistants.Skill) bool {
		return s.Name == r.Param("name")
	}, a.skill)
}

// skillUpdate is the body of a write to a skill.
type skillUpdate struct {
	Type   *string                     `json:"type"`
	Config rest.Field[json.RawMessage] `json:"config"`
}

// putAssistantSkill serves PUT /api/assistants/{id}/skills/{name} {type?, config?}: 200 and the
// skill, whose type is its name unless type says otherwise; 400 for a type that this server does
// not provide; 404; 403; 409 for a draft that somebody else edits.
func (a assistantPartRoutes) putAssistantSkill(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[skillUpdate](r, assistants.Skill{})
	if err != nil {
		return rest.Reply{}, err
	}
	if err := objectOrNull("config", in.Config); err != nil {
		return rest.Reply{}, err
	}
	s, err := a.Assistants.PutSkill(r.Context(), r.Param("id"), r.Param("name"), func(s *assistants.Skill) {
		if in.Type != nil {
			s.Type = *in.Type
		} else if s.Type == "" {
			s.Type = s.Name
		}
		in.Config.Apply(&s.Config)
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.skill(r.Param("id"), s))
}

// deleteAssistantSkill serves DELETE /api/assistants/{id}/skills/{name}: 200; 404; 403; 409 as for
// a PUT.
func (a assistantPartRoutes) deleteAssistantSkill(r *rest.Request) (rest.Reply, error) {
	if err := a.Assistants.DeleteSkill(r.Context(), r.Param("id"), r.Param("name")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// objectOrNull returns errs.Invalid for a field that is there and neither an object nor null.
func objectOrNull(name string, f rest.Field[json.RawMessage]) error {
	if f.Value != nil && !bytes.HasPrefix(bytes.TrimSpace(*f.Value), []byte("{")) {
		return errs.New(errs.Invalid, "%s must be a JSON object or null", name)
	}
	return nil
}

// secretsBody has the names of an assistant's secrets.
type secretsBody struct {
	Secrets map[string]*string `json:"secrets"`
}

// Relations implements openapi.Related.
func (secretsBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:assistant", "inf:assistant-secret"}}
}

// getAssistantSecrets serves GET /api/assistants/{id}/secrets: 200 and {secrets: {name: mask}};
// 404; 403.
func (n drafted) getAssistantSecrets(r *rest.Request) (rest.Reply, error) {
	names, err := n.Assistants.Secrets(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return n.secretNames(r, "secrets", "inf:assistant-secret", names, nil, func(masks map[string]*string) any {
		return secretsBody{masks}
	})
}

// putAssistantSecret serves PUT /api/assistants/{id}/secrets/{key} {value}: 200 and the assistant;
// a mask keeps the value that is there; 400 for a bad name or value; 404; 403; 409 for a draft that
// somebody else edits.
func (a assistantPartRoutes) putAssistantSecret(r *rest.Request) (rest.Reply, error) {
	value, err := secretValueOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	return assistantRoutes(a).shownAssistant(a.Assistants.PutSecret(
		r.Context(), r.Param("id"), r.Param("key"), value,
	))
}

// deleteAssistantSecret serves DELETE /api/assistants/{id}/secrets/{key}: 200; 404; 403; 409 as for
// a PUT.
func (a assistantPartRoutes) deleteAssistantSecret(r *rest.Request) (rest.Reply, error) {
	if err := a.Assistants.DeleteSecret(r.Context(), r.Param("id"), r.Param("key")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// listAssistantDatasets serves GET /api/assistants/{id}/datasets: 200 and {datasetId, mode, filter}
// of all, ordered by datasetId; 404.
func (a assistantPartRoutes) listAssistantDatasets(r *rest.Request) (rest.Reply, error) {
	return listKnown(a.api, r, "datasets", "inf:assistant-dataset", datasetsOf, a.knownDataset)
}

// getAssistantDataset serves GET /api/assistants/{id}/datasets/{datasetId}: 200; 404.
func (a assistantPartRoutes) getAssistantDataset(r *rest.Request) (rest.Reply, error) {
	id, _ := uuids.Parse(r.Param("datasetId"))
	return oneKnown(a.api, r, "Dataset", datasetsOf, func(d assistants.Dataset) bool {
		return d.DatasetID == id
	}, a.knownDataset)
}

// knownDatasetInput is what an assistant shall know of a dataset.
type knownDatasetInput struct {
	Mode   *string                     `json:"mode"`
	Filter rest.Field[json.RawMessage] `json:"filter"`
}

// putAssistantDataset serves PUT /api/assistants/{id}/datasets/{datasetId} {mode?, filter?}: 200
// and the dataset; the mode of a new one is full unless mode says otherwise: full, subset, schema
// or sampled. subset needs a filter, as handlers have it, and sampled may have one. 400 for an
// unknown dataset; 404; 403; 409 for a draft that somebody else edits.
func (a assistantPartRoutes) putAssistantDataset(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[knownDatasetInput](r, knownDatasetBody{})
	if err != nil {
		return rest.Reply{}, err
	}
	if err := objectOrNull("filter", in.Filter); err != nil {
		return rest.Reply{}, err
	}
	d, err := a.Assistants.PutDataset(r.Context(), r.Param("id"), r.Param("datasetId"), func(d *assistants.Dataset) {
		if in.Mode != nil {
			if d.Mode = assistants.Mode(*in.Mode); d.Mode == assistants.Full || d.Mode == assistants.Schema {
				d.Filter = nil // which is for the other modes
			}
		} else if d.Mode == "" {
			d.Mode = assistants.Full
		}
		in.Filter.Apply(&d.Filter)
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.knownDataset(r.Param("id"), d))
}

// deleteAssistantDataset serves DELETE /api/assistants/{id}/datasets/{datasetId}: 200; 404; 403;
// 409 as for a PUT.
func (a assistantPartRoutes) deleteAssistantDataset(r *rest.Request) (rest.Reply, error) {
	if err := a.Assistants.DeleteDataset(r.Context(), r.Param("id"), r.Param("datasetId")); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}

// listAssistantReferences serves GET /api/assistants/{id}/references: 200 and {entityType,
// entityId, label} of all, ordered by both; 404.
func (a assistantPartRoutes) listAssistantReferences(r *rest.Request) (rest.Reply, error) {
	return listKnown(a.api, r, "references", "inf:assistant-reference", referencesOf, a.reference)
}

// referenced returns the entity in the path of a request.
func referenced(r *rest.Request) entity.Key {
	return entity.Key{Kind: entity.Kind(r.Param("entityType")), ID: strings.ToLower(r.Param("entityId"))}
}

// getAssistantReference serves GET /api/assistants/{id}/references/{entityType}/{entityId}: 200;
// 404.
func (a assistantPartRoutes) getAssistantReference(r *rest.Request) (rest.Reply, error) {
	to := referenced(r)
	return oneKnown(a.api, r, "Reference", referencesOf, func(ref assistants.Reference) bool {
		return ref.EntityType == string(to.Kind) && ref.EntityID == to.ID
	}, a.reference)
}

// referenceInput is a reference of an assistant.
type referenceInput struct {
	Label rest.Field[string] `json:"label"`
}

// putAssistantReference serves PUT /api/assistants/{id}/references/{entityType}/{entityId}
// {label?}: 200 and the reference. A dispatcher hands over to the assistants among its references.
// 400 for an unknown entity and for a kind that assistants cannot know; 404; 403; 409 for a draft
// that somebody else edits.
func (a assistantPartRoutes) putAssistantReference(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[referenceInput](r, assistants.Reference{})
	if err != nil {
		return rest.Reply{}, err
	}
	ref, err := a.Assistants.PutReference(r.Context(), r.Param("id"), referenced(r), func(ref *assistants.Reference) {
		in.Label.Apply(&ref.Label)
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.reference(r.Param("id"), ref))
}

// deleteAssistantReference serves DELETE /api/assistants/{id}/references/{entityType}/{entityId}:
// 200; 404; 403; 409 as for a PUT.
func (a assistantPartRoutes) deleteAssistantReference(r *rest.Request) (rest.Reply, error) {
	if err := a.Assistants.DeleteReference(r.Context(), r.Param("id"), referenced(r)); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
