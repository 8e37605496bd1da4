package httpapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// assistantPartRoutes serves what assistants know and can do: skills, secrets, datasets and references.
type assistantPartRoutes struct{ *api }

// routes returns the rows of the route table, unless the host keeps assistants itself. needsAI comes before everything else.
func (a assistantPartRoutes) routes() []Route {
	if slices.Contains(a.HostKinds, assistants.Kind) {
		return nil
	}
	const one = "/api/assistants/:id"
	n := drafted{a.api, "assistants", string(assistants.Kind), "files", a.Assistants}
	return guarded(a.needsAI, []Route{
		{Method: get, Pattern: one + "/skills", Name: "listAssistantSkills", Grants: nothing, Query: none, Summary: "What an assistant can do", handle: a.listAssistantSkills},
		{Method: get, Pattern: one + "/skills/:name", Name: "getAssistantSkill", Grants: nothing, Summary: "One skill of an assistant", handle: a.getAssistantSkill},
		{Method: put, Pattern: one + "/skills/:name", Name: "putAssistantSkill", Grants: programs, Row: "assistant-skill", Writes: InTx, Summary: "Add or change a skill of an assistant", handle: a.putAssistantSkill},
		{Method: del, Pattern: one + "/skills/:name", Name: "deleteAssistantSkill", Grants: programs, Row: "assistant-skill", Writes: InTx, Options: noOptions{}, Summary: "Take a skill off an assistant", handle: a.deleteAssistantSkill},
		{Method: get, Pattern: one + "/secrets", Name: "getAssistantSecrets", Grants: credentials, Summary: "The names of an assistant's secrets", handle: n.getAssistantSecrets},
		{Method: put, Pattern: one + "/secrets/:key", Name: "putAssistantSecret", Grants: credentials, Row: "assistant", Writes: InTx, Summary: "Set a secret of an assistant", handle: a.putAssistantSecret},
		{Method: del, Pattern: one + "/secrets/:key", Name: "deleteAssistantSecret", Grants: credentials, Row: "assistant", Writes: InTx, Options: noOptions{}, Summary: "Remove a secret of an assistant", handle: a.deleteAssistantSecret},
		{Method: get, Pattern: one + "/datasets", Name: "listAssistantDatasets", Grants: nothing, Query: none, Summary: "The datasets that an assistant knows", handle: a.listAssistantDatasets},
		{Method: get, Pattern: one + "/datasets/:datasetId", Name: "getAssistantDataset", Grants: nothing, Summary: "What an assistant knows of a dataset", handle: a.getAssistantDataset},
		{Method: put, Pattern: one + "/datasets/:datasetId", Name: "putAssistantDataset", Grants: programs, Row: "assistant-dataset", Writes: InTx, Summary: "Let an assistant know a dataset", handle: a.putAssistantDataset},
		{Method: del, Pattern: one + "/datasets/:datasetId", Name: "deleteAssistantDataset", Grants: programs, Row: "assistant-dataset", Writes: InTx, Options: noOptions{}, Summary: "Take a dataset off an assistant", handle: a.deleteAssistantDataset},
		{Method: get, Pattern: one + "/references", Name: "listAssistantReferences", Grants: nothing, Query: none, Summary: "The entities that an assistant knows", handle: a.listAssistantReferences},
		{Method: get, Pattern: one + "/references/:entityType/:entityId", Name: "getAssistantReference", Grants: nothing, Summary: "One reference of an assistant", handle: a.getAssistantReference},
		{Method: put, Pattern: one + "/references/:entityType/:entityId", Name: "putAssistantReference", Grants: programs, Row: "assistant-reference", Writes: InTx, Summary: "Let an assistant know an entity", handle: a.putAssistantReference},
		{Method: del, Pattern: one + "/references/:entityType/:entityId", Name: "deleteAssistantReference", Grants: programs, Row: "assistant-reference", Writes: InTx, Options: noOptions{}, Summary: "Take a reference off an assistant", handle: a.deleteAssistantReference},
	})
}

// known encodes an element of a list of an assistant.
func (a assistantPartRoutes) known(id string, value guard.Versioned, path ...string) hal.Resource {
	links := hal.Self(a.href(append([]string{"assistants", id}, path...)...)).With("inf:assistant", a.href("assistants", id)).
		With("inf:assistant-"+path[0], a.href("assistants", id, path[0]))
	return hal.Resource{Links: links, Row: value, Beside: struct{}{}, Value: value}
}

// listKnown replies with a list of an assistant: 200 and all elements.
func listKnown[E any](a *api, r *request, plural, rel string, list func(assistants.Assistant) []E, encode func(id string, e E) hal.Resource) (reply, error) {
	v, err := a.Assistants.Get(r.Context(), r.param("id"))
	if err != nil {
		return reply{}, err
	}
	rows := []hal.Resource{}
	for _, e := range list(v.Assistant) {
		rows = append(rows, encode(r.param("id"), e))
	}
	links := hal.Self(a.href("assistants", r.param("id"), plural)).With("inf:assistant", a.href("assistants", r.param("id")))
	return ok(hal.Collection(links, hal.Page{Count: len(rows), Total: len(rows)}, rel, rows, nil))
}

// oneKnown replies with an element of a list of an assistant: 200; 404.
func oneKnown[E any](a *api, r *request, what string, list func(assistants.Assistant) []E, is func(E) bool, encode func(id string, e E) hal.Resource) (reply, error) {
	v, err := a.Assistants.Get(r.Context(), r.param("id"))
	if err != nil {
		return reply{}, err
	}
	all := list(v.Assistant)
	at := slices.IndexFunc(all, is)
	if at < 0 {
		return reply{}, errs.New(errs.NotFound, "%s not found.", what)
	}
	return ok(encode(r.param("id"), all[at]))
}

func skillsOf(as assistants.Assistant) []assistants.Skill         { return as.Skills }
func datasetsOf(as assistants.Assistant) []assistants.Dataset     { return as.Datasets }
func referencesOf(as assistants.Assistant) []assistants.Reference { return as.References }

func (a assistantPartRoutes) skill(id string, s assistants.Skill) hal.Resource {
	return a.known(id, s, "skills", s.Name)
}

// knownDatasetBody is what an assistant knows of a dataset as the API writes it.
type knownDatasetBody struct {
	DatasetID string          `json:"datasetId"`
	Mode      string          `json:"mode"`
	Filter    json.RawMessage `json:"filter"`
}

func (a assistantPartRoutes) knownDataset(id string, d assistants.Dataset) hal.Resource {
	res := a.known(id, d, "datasets", d.DatasetID)
	res.Value = knownDatasetBody{d.DatasetID, string(d.Mode), d.Filter}
	res.Links.With("inf:dataset", a.href("datasets", d.DatasetID))
	return res
}

func (a assistantPartRoutes) reference(id string, ref assistants.Reference) hal.Resource {
	res := a.known(id, ref, "references", ref.EntityType, ref.EntityID)
	if href := a.entityHref(entity.Kind(ref.EntityType), ref.EntityID); href != "" {
		res.Links.With("inf:entity", href)
	}
	return res
}

// listAssistantSkills serves GET /api/assistants/{id}/skills: 200 and the skills, ordered by name; 404.
func (a assistantPartRoutes) listAssistantSkills(r *request) (reply, error) {
	return listKnown(a.api, r, "skills", "inf:assistant-skill", skillsOf, a.skill)
}

// getAssistantSkill serves GET /api/assistants/{id}/skills/{name}: 200 and the skill; 404.
func (a assistantPartRoutes) getAssistantSkill(r *request) (reply, error) {
	return oneKnown(a.api, r, "Skill", skillsOf, func(s assistants.Skill) bool { return s.Name == r.param("name") }, a.skill)
}

// putAssistantSkill serves PUT /api/assistants/{id}/skills/{name} {type?, config?}: 200 and the skill, whose type is its name unless type
// says otherwise; 400 for a type that this server does not provide; 404; 403; 409 for a draft that somebody else edits.
func (a assistantPartRoutes) putAssistantSkill(r *request) (reply, error) {
	in, err := decodeUpdate[struct {
		Type   *string                `json:"type"`
		Config field[json.RawMessage] `json:"config"`
	}](r, assistants.Skill{})
	if err != nil {
		return reply{}, err
	}
	if err := objectOrNull("config", in.Config); err != nil {
		return reply{}, err
	}
	s, err := a.Assistants.PutSkill(r.Context(), r.param("id"), r.param("name"), func(s *assistants.Skill) {
		if in.Type != nil {
			s.Type = *in.Type
		} else if s.Type == "" {
			s.Type = s.Name
		}
		in.Config.apply(&s.Config)
	})
	if err != nil {
		return reply{}, err
	}
	return ok(a.skill(r.param("id"), s))
}

// deleteAssistantSkill serves DELETE /api/assistants/{id}/skills/{name}: 200; 404; 403; 409 as for a PUT.
func (a assistantPartRoutes) deleteAssistantSkill(r *request) (reply, error) {
	if err := a.Assistants.RemoveSkill(r.Context(), r.param("id"), r.param("name")); err != nil {
		return reply{}, err
	}
	return done()
}

// objectOrNull returns errs.Invalid for a field that is there and neither an object nor null.
func objectOrNull(name string, f field[json.RawMessage]) error {
	if f.Value != nil && !bytes.HasPrefix(bytes.TrimSpace(*f.Value), []byte("{")) {
		return errs.New(errs.Invalid, "%s must be a JSON object or null", name)
	}
	return nil
}

// getAssistantSecrets serves GET /api/assistants/{id}/secrets: 200 and {secrets: {name: mask}}; 404; 403.
func (n drafted) getAssistantSecrets(r *request) (reply, error) {
	names, err := n.Assistants.Secrets(r.Context(), r.param("id"))
	if err != nil {
		return reply{}, err
	}
	return n.secretNames(r, "secrets", "secrets", "inf:assistant-secret", names, nil)
}

// putAssistantSecret serves PUT /api/assistants/{id}/secrets/{key} {value}: 200 and the assistant; a mask keeps the value that is there; 400
// for a bad name or value; 404; 403; 409 for a draft that somebody else edits.
func (a assistantPartRoutes) putAssistantSecret(r *request) (reply, error) {
	value, err := r.secretValue()
	if err != nil {
		return reply{}, err
	}
	return assistantRoutes{a.api}.shownAssistant(a.Assistants.SetSecret(r.Context(), r.param("id"), r.param("key"), value))
}

// deleteAssistantSecret serves DELETE /api/assistants/{id}/secrets/{key}: 200; 404; 403; 409 as for a PUT.
func (a assistantPartRoutes) deleteAssistantSecret(r *request) (reply, error) {
	if err := a.Assistants.RemoveSecret(r.Context(), r.param("id"), r.param("key")); err != nil {
		return reply{}, err
	}
	return done()
}

// listAssistantDatasets serves GET /api/assistants/{id}/datasets: 200 and {datasetId, mode, filter} of all, ordered by datasetId; 404.
func (a assistantPartRoutes) listAssistantDatasets(r *request) (reply, error) {
	return listKnown(a.api, r, "datasets", "inf:assistant-dataset", datasetsOf, a.knownDataset)
}

// getAssistantDataset serves GET /api/assistants/{id}/datasets/{datasetId}: 200; 404.
func (a assistantPartRoutes) getAssistantDataset(r *request) (reply, error) {
	id, _ := uuids.Parse(r.param("datasetId"))
	return oneKnown(a.api, r, "Dataset", datasetsOf, func(d assistants.Dataset) bool { return d.DatasetID == id }, a.knownDataset)
}

// putAssistantDataset serves PUT /api/assistants/{id}/datasets/{datasetId} {mode?, filter?}: 200 and the dataset; the mode of a new one is
// full unless mode says otherwise: full, subset, schema or sampled. subset needs a filter, as handlers have it, and sampled may have one. 400
// for an unknown dataset; 404; 403; 409 for a draft that somebody else edits.
func (a assistantPartRoutes) putAssistantDataset(r *request) (reply, error) {
	in, err := decodeUpdate[struct {
		Mode   *string                `json:"mode"`
		Filter field[json.RawMessage] `json:"filter"`
	}](r, knownDatasetBody{})
	if err != nil {
		return reply{}, err
	}
	if err := objectOrNull("filter", in.Filter); err != nil {
		return reply{}, err
	}
	d, err := a.Assistants.PutDataset(r.Context(), r.param("id"), r.param("datasetId"), func(d *assistants.Dataset) {
		if in.Mode != nil {
			if d.Mode = assistants.Mode(*in.Mode); d.Mode == assistants.Full || d.Mode == assistants.Schema {
				d.Filter = nil // which is for the other modes
			}
		} else if d.Mode == "" {
			d.Mode = assistants.Full
		}
		in.Filter.apply(&d.Filter)
	})
	if err != nil {
		return reply{}, err
	}
	return ok(a.knownDataset(r.param("id"), d))
}

// deleteAssistantDataset serves DELETE /api/assistants/{id}/datasets/{datasetId}: 200; 404; 403; 409 as for a PUT.
func (a assistantPartRoutes) deleteAssistantDataset(r *request) (reply, error) {
	if err := a.Assistants.RemoveDataset(r.Context(), r.param("id"), r.param("datasetId")); err != nil {
		return reply{}, err
	}
	return done()
}

// listAssistantReferences serves GET /api/assistants/{id}/references: 200 and {entityType, entityId, label} of all, ordered by both; 404.
func (a assistantPartRoutes) listAssistantReferences(r *request) (reply, error) {
	return listKnown(a.api, r, "references", "inf:assistant-reference", referencesOf, a.reference)
}

// referenced returns the entity in the path of a request.
func referenced(r *request) entity.Key {
	return entity.Key{Kind: entity.Kind(r.param("entityType")), ID: strings.ToLower(r.param("entityId"))}
}

// getAssistantReference serves GET /api/assistants/{id}/references/{entityType}/{entityId}: 200; 404.
func (a assistantPartRoutes) getAssistantReference(r *request) (reply, error) {
	to := referenced(r)
	return oneKnown(a.api, r, "Reference", referencesOf, func(ref assistants.Reference) bool {
		return ref.EntityType == string(to.Kind) && ref.EntityID == to.ID
	}, a.reference)
}

// putAssistantReference serves PUT /api/assistants/{id}/references/{entityType}/{entityId} {label?}: 200 and the reference. A dispatcher
// hands over to the assistants among its references. 400 for an unknown entity and for a kind that assistants cannot know; 404; 403; 409 for a
// draft that somebody else edits.
func (a assistantPartRoutes) putAssistantReference(r *request) (reply, error) {
	in, err := decodeUpdate[struct {
		Label field[string] `json:"label"`
	}](r, assistants.Reference{})
	if err != nil {
		return reply{}, err
	}
	ref, err := a.Assistants.PutReference(r.Context(), r.param("id"), referenced(r), func(ref *assistants.Reference) { in.Label.apply(&ref.Label) })
	if err != nil {
		return reply{}, err
	}
	return ok(a.reference(r.param("id"), ref))
}

// deleteAssistantReference serves DELETE /api/assistants/{id}/references/{entityType}/{entityId}: 200; 404; 403; 409 as for a PUT.
func (a assistantPartRoutes) deleteAssistantReference(r *request) (reply, error) {
	if err := a.Assistants.RemoveReference(r.Context(), r.param("id"), referenced(r)); err != nil {
		return reply{}, err
	}
	return done()
}
