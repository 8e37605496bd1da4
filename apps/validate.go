package apps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fields"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// The most that each field may have.
const (
	maxDefn     = 1 << 20 // bytes
	maxSettings = 64 << 10
	maxDatasets = 200
	maxTags     = 100
)

func (t Tier) accept() error {
	if t == Report || t == Full {
		return nil
	}
	return errs.New(errs.Invalid, "type must be report or app")
}

// accept checks an app and fills in what was left out. Errors: errs.Invalid naming the field.
func (a *App) accept() error {
	if err := a.acceptTexts(); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		raw  *json.RawMessage
		most int
	}{{"defn", &a.Defn, maxDefn}, {"settings", &a.Settings, maxSettings}} {
		if len(*f.raw) == 0 {
			*f.raw = json.RawMessage("{}")
		}
		if len(*f.raw) > f.most {
			return errs.New(errs.Invalid, "%s must be a JSON object of at most %d bytes", f.name, f.most)
		}
		if wrong := transfer.Unfit(*f.raw); wrong != "" {
			return errs.New(errs.Invalid, "%s %s", f.name, wrong)
		}
	}
	if a.FolderID != nil {
		id, ok := uuids.Parse(*a.FolderID)
		if !ok {
			return errs.New(errs.Invalid, "folderId must be a UUID or null")
		}
		a.FolderID = &id
	}
	return a.acceptDatasets()
}

func (a *App) acceptTexts() error {
	return cmp.Or(
		fields.Name(&a.Name), fields.Slug(&a.Slug), fields.Text("description", &a.Description, fields.MaxDescription),
		fields.Text("source", &a.Source, fields.MaxSource), fields.Text("sourceId", &a.SourceID, fields.MaxSource),
	)
}

var alias = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (a *App) acceptDatasets() error {
	if len(a.Datasets) > maxDatasets {
		return errs.New(errs.Invalid, "datasets must be at most %d", maxDatasets)
	}
	slices.SortFunc(a.Datasets, func(x, y Dataset) int { return strings.Compare(x.Alias, y.Alias) })
	for i, d := range a.Datasets {
		if !alias.MatchString(d.Alias) {
			return errs.New(
				errs.Invalid,
				"datasets: alias %q must be 1 to 128 letters, digits and underscores and not begin with a digit",
				d.Alias,
			)
		}
		if i > 0 && a.Datasets[i-1].Alias == d.Alias {
			return errs.New(errs.Invalid, "datasets: alias %s is there twice", d.Alias)
		}
		id, ok := uuids.Parse(d.DatasetID)
		if !ok {
			return errs.New(
				errs.Invalid,
				"datasets: datasetId of %s must be the id or natural id of a dataset: there is none with %q",
				d.Alias, shortened(d.DatasetID),
			)
		}
		a.Datasets[i].DatasetID = id
		if !escapes.StorableWithin(d.Label, fields.MaxName) {
			return errs.New(
				errs.Invalid, "datasets: label of %s must be UTF-8 without NUL and have at most %d characters",
				d.Alias, fields.MaxName,
			)
		}
	}
	return nil
}

// knownDatasets returns errs.Invalid for a dataset that the tenant does not have.
func (s *Service) knownDatasets(ctx context.Context, tenant string, all []Dataset) error {
	if s.o.Registry == nil || len(all) == 0 {
		return nil
	}
	ids := make([]string, len(all))
	for i, d := range all {
		ids[i] = d.DatasetID
	}
	found, err := s.o.Registry.Refs(ctx, tenant, kindDataset, ids)
	if err != nil {
		return err
	}
	for _, d := range all {
		if ref, ok := found[d.DatasetID]; !ok || ref.ID != d.DatasetID || ref.Draft {
			return errs.New(errs.Invalid, "datasets: there is no dataset %s for %s", d.DatasetID, d.Alias)
		}
	}
	return nil
}

// merged returns a JSON object with the members that change: null removes one, the others stay.
// what names it in errors.
func merged(what string, was, change json.RawMessage) (json.RawMessage, error) {
	all, err := members(what, was)
	if err != nil {
		return nil, err
	}
	changed, err := members(what, change)
	if err != nil {
		return nil, err
	}
	merge(all, changed)
	return compact(all)
}

// merge changes members: null removes one, and the others stay.
func merge(all, changed map[string]json.RawMessage) {
	for name, value := range changed {
		if string(value) == "null" {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
}

// members returns the members of a JSON object.
func members(what string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	all, ok := rawjson.Members(raw)
	if !ok || !utf8.Valid(raw) {
		return nil, errs.New(errs.Invalid, "%s must be a JSON object", what)
	}
	return all, nil
}

// compact encodes members as an object, ordered by name, without spaces around its parts.
func compact(all map[string]json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(all); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// shortened cuts a name to its longest length.
func shortened(name string) string {
	if r := []rune(name); len(r) > fields.MaxName {
		return string(r[:fields.MaxName])
	}
	return name
}
