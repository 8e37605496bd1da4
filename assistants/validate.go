package assistants

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fields"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// The most that each field may have.
const (
	maxInstructions = 256 << 10 // bytes
	maxSuggestions  = 20
	maxSuggestion   = 1000 // characters
	maxData         = 1 << 20
	maxList         = 200 // skills, datasets, references
	maxConfig       = 16 << 10
	maxFilter       = 64 << 10
)

// kindDataset is the kind of datasets.
const kindDataset entity.Kind = "dataset"

var skillName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// accept checks an assistant that an actor writes, which was another one before, and fills in what
// was left out. Errors: errs.Invalid naming the field.
func (s *Service) accept(ctx context.Context, a actor.Actor, as *Assistant, was Assistant) error {
	if err := as.acceptFields(); err != nil {
		return err
	}
	if err := s.provided(as.Skills, was.Skills); err != nil {
		return err
	}
	for _, d := range as.Datasets {
		if err := s.acceptDataset(ctx, as.Tenant, d, was.Datasets); err != nil {
			return err
		}
	}
	for _, r := range as.References {
		if slices.ContainsFunc(was.References, r.same) {
			continue
		}
		key := entity.Key{Kind: entity.Kind(r.EntityType), ID: r.EntityID}
		err := s.rules.Known(ctx, as.Tenant, key)
		if err == nil && key.Kind == Kind {
			_, _, err = s.rules.FindHead(ctx, a, key.ID)
		}
		if err != nil {
			return missing(err, "references: there is no %s %s", key.Kind, key.ID)
		}
	}
	return nil
}

// acceptDataset checks that a dataset is there and that its filter fits, if the caller can read it,
// unless the same was there before.
func (s *Service) acceptDataset(ctx context.Context, tenant string, d Dataset, was []Dataset) error {
	at := slices.IndexFunc(was, d.same)
	if at < 0 {
		if err := s.rules.Known(ctx, tenant, entity.Key{Kind: kindDataset, ID: d.DatasetID}); err != nil {
			return missing(err, "datasets: there is no dataset %s", d.DatasetID)
		}
	}
	if d.Filter == nil || s.o.CheckFilter == nil || at >= 0 && bytes.Equal(was[at].Filter, d.Filter) {
		return nil
	}
	switch err := s.o.CheckFilter(ctx, d.DatasetID, d.Filter); errs.CodeOf(err) {
	case errs.Invalid:
		return errs.Wrap(errs.Invalid, err, "datasets: %s: %s", d.DatasetID, errs.MessageOf(err))
	case errs.NotFound, errs.Forbidden, errs.Conflict, errs.Unavailable: // it cannot be read
		return nil
	default:
		return err
	}
}

// missing returns errs.Invalid for an entity that is not there, and other errors as they are.
func missing(err error, format string, args ...any) error {
	if errs.CodeOf(err) == errs.NotFound {
		return errs.Wrap(errs.Invalid, err, format, args...)
	}
	return err
}

// provided returns errs.Invalid for a skill that the server does not provide, or whose
// configuration does not fit, unless it was there before.
func (s *Service) provided(all, was []Skill) error {
	for _, skill := range all {
		if slices.ContainsFunc(was, func(w Skill) bool { return w.Version() == skill.Version() }) {
			continue
		}
		at := slices.IndexFunc(s.o.Skills, func(t SkillType) bool { return t.Type == skill.Type })
		if at < 0 {
			return errs.New(
				errs.Invalid,
				"skills: nothing on this server provides %q, the type of the skill %s. It has %s.", skill.Type,
				skill.Name, s.skillTypes(),
			)
		}
		err := error(nil)
		switch check := s.o.Skills[at].Accept; {
		case check != nil:
			err = check(skill.Config)
		case string(skill.Config) != "{}":
			err = errs.New(errs.Invalid, "config must be empty for a skill of the type %s", skill.Type)
		}
		if errs.CodeOf(err) == errs.Invalid {
			err = errs.Wrap(errs.Invalid, err, "skills: %s: %s", skill.Name, errs.MessageOf(err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) skillTypes() string {
	if len(s.o.Skills) == 0 {
		return "no skills"
	}
	types := make([]string, len(s.o.Skills))
	for i, t := range s.o.Skills {
		types[i] = t.Type
	}
	return strings.Join(types, ", ")
}

// acceptFields checks what can be checked without anything else.
func (a *Assistant) acceptFields() error {
	err := cmp.Or(
		fields.Name(&a.Name), fields.Slug(&a.Slug), fields.Text("description", &a.Description, fields.MaxDescription),
		fields.Text("welcome", &a.Welcome, fields.MaxDescription), fields.Text("modelId", &a.ModelID, fields.MaxName),
	)
	switch {
	case err != nil:
		return err
	case len(a.Instructions) > maxInstructions || !escapes.StorableWithin(a.Instructions, maxInstructions):
		return errs.New(
			errs.Invalid, "instructions must be UTF-8 without NUL and have at most %d bytes", maxInstructions,
		)
	case len(a.Suggestions) > maxSuggestions:
		return errs.New(errs.Invalid, "suggestions must be at most %d", maxSuggestions)
	}
	for i, text := range a.Suggestions {
		if text = strings.TrimSpace(text); text == "" || !escapes.StorableWithin(text, maxSuggestion) {
			return errs.New(
				errs.Invalid, "suggestions[%d] must be UTF-8 without NUL and have 1 to %d characters", i,
				maxSuggestion,
			)
		}
		a.Suggestions[i] = text
	}
	if a.FolderID != nil {
		id, ok := uuids.Parse(*a.FolderID)
		if !ok {
			return errs.New(errs.Invalid, "folderId must be a UUID or null")
		}
		a.FolderID = &id
	}
	return cmp.Or(acceptObject("data", &a.Data, maxData), a.acceptSkills(), a.acceptDatasets(), a.acceptReferences())
}

// acceptObject checks a JSON object, and removes the spaces around its parts.
func acceptObject(field string, raw *json.RawMessage, most int) error {
	*raw = object(*raw)
	if _, ok := rawjson.Members(*raw); !ok || !utf8.Valid(*raw) {
		return errs.New(errs.Invalid, "%s must be a JSON object", field)
	}
	if wrong := transfer.Unfit(*raw); wrong != "" {
		return errs.New(errs.Invalid, "%s %s", field, wrong)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, *raw); err != nil {
		return errs.Wrap(errs.Invalid, err, "%s must be a JSON object", field)
	}
	if *raw = b.Bytes(); len(*raw) > most {
		return errs.New(errs.Invalid, "%s must be a JSON object of at most %d bytes", field, most)
	}
	return nil
}

func (a *Assistant) acceptSkills() error {
	for i := range a.Skills {
		skill := &a.Skills[i]
		skill.Name = cmp.Or(skill.Name, skill.Type)
		if !skillName.MatchString(skill.Name) {
			return errs.New(
				errs.Invalid,
				"skills: name %q must be 1 to 64 letters, digits, hyphens and underscores and begin with a letter",
				transfer.Short(skill.Name),
			)
		}
		if err := acceptObject("skills: config of "+skill.Name, &skill.Config, maxConfig); err != nil {
			return err
		}
	}
	return acceptList("skills", a.Skills, func(x, y Skill) int {
		return strings.Compare(x.Name, y.Name)
	}, func(s Skill) string { return s.Name })
}

func (a *Assistant) acceptDatasets() error {
	for i := range a.Datasets {
		d := &a.Datasets[i]
		id, ok := uuids.Parse(d.DatasetID)
		if !ok {
			return errs.New(errs.Invalid, "datasets: datasetId %q must be a UUID", transfer.Short(d.DatasetID))
		}
		if d.DatasetID = id; string(d.Filter) == "null" {
			d.Filter = nil
		}
		filtered := d.Filter != nil
		switch {
		case !slices.Contains([]Mode{Full, Subset, Schema, Sampled}, d.Mode):
			return errs.New(errs.Invalid, "datasets: mode of %s must be full, subset, schema or sampled", id)
		case d.Mode == Subset && !filtered:
			return errs.New(errs.Invalid, "datasets: filter of %s is required in the mode subset", id)
		case filtered && d.Mode != Subset && d.Mode != Sampled:
			return errs.New(errs.Invalid, "datasets: filter of %s is for the modes subset and sampled", id)
		}
		if filtered {
			if err := acceptObject("datasets: filter of "+id, &d.Filter, maxFilter); err != nil {
				return err
			}
		}
	}
	return acceptList("datasets", a.Datasets, func(x, y Dataset) int {
		return strings.Compare(x.DatasetID, y.DatasetID)
	}, func(d Dataset) string { return d.DatasetID })
}

func (a *Assistant) acceptReferences() error {
	for i := range a.References {
		r := &a.References[i]
		if !slices.Contains(ReferenceKinds(), entity.Kind(r.EntityType)) {
			return errs.New(
				errs.Invalid, "references: entityType %q must be one of %s", transfer.Short(r.EntityType),
				joined(ReferenceKinds()),
			)
		}
		id, ok := uuids.Parse(r.EntityID)
		if !ok {
			return errs.New(errs.Invalid, "references: entityId %q must be a UUID", transfer.Short(r.EntityID))
		}
		if r.EntityID = id; !escapes.StorableWithin(r.Label, fields.MaxName) {
			return errs.New(
				errs.Invalid,
				"references: label of %s must be UTF-8 without NUL and have at most %d characters", id,
				fields.MaxName,
			)
		}
	}
	order := func(x, y Reference) int {
		return cmp.Or(strings.Compare(x.EntityType, y.EntityType), strings.Compare(x.EntityID, y.EntityID))
	}
	return acceptList("references", a.References, order, func(r Reference) string {
		return r.EntityType + " " + r.EntityID
	})
}

func joined(kinds []entity.Kind) string {
	texts := make([]string, len(kinds))
	for i, k := range kinds {
		texts[i] = string(k)
	}
	return strings.Join(texts, ", ")
}

// acceptList orders a list and checks that it is short enough and has each key once.
func acceptList[E any](field string, all []E, order func(x, y E) int, key func(E) string) error {
	if len(all) > maxList {
		return errs.New(errs.Invalid, "%s must be at most %d", field, maxList)
	}
	slices.SortStableFunc(all, order)
	for i := 1; i < len(all); i++ {
		if order(all[i-1], all[i]) == 0 {
			return errs.New(errs.Invalid, "%s: %s is there twice", field, key(all[i]))
		}
	}
	return nil
}
