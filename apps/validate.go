package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/escapes"
	"github.com/tenantcontent/tenantcontent/internal/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/slug"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
)

// The most that each field may have.
const (
	maxName        = 255 // characters
	maxDescription = 16 * 1024
	maxSource      = 1024
	maxOwner       = 128
	maxDefn        = 1 << 20 // bytes
	maxSettings    = 64 << 10
	maxDatasets    = 200
	maxTags        = 100
)

// place reads an id or a natural id. Errors: errs.NotFound.
func place(id string) (Lookup, error) {
	if key, ok := uuids.Parse(id); ok {
		return Lookup{ID: key}, nil
	}
	if at := strings.LastIndexByte(id, ':'); at > 0 && slug.Valid(id[at+1:]) {
		if owner := id[:at]; escapes.StorableWithin(owner, maxOwner) {
			if team, ok := uuids.Parse(owner); ok {
				owner = team
			}
			return Lookup{Owner: owner, Slug: id[at+1:]}, nil
		}
	}
	return Lookup{}, notFound() // cannot exist, and the database may refuse the text
}

func notFound() error { return errs.New(errs.NotFound, "App not found.") }

func errDraft(instead string) error {
	return errs.New(errs.Invalid, "This is the draft of an app: %s.", instead)
}

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
	a.Name = strings.TrimSpace(a.Name)
	if a.Name == "" || !escapes.StorableWithin(a.Name, maxName) || strings.ContainsFunc(a.Name, unicode.IsControl) {
		return errs.New(errs.Invalid, "name must be 1 to %d characters without control characters", maxName)
	}
	if a.Slug != nil && *a.Slug == "" {
		a.Slug = nil
	}
	if a.Slug != nil && !slug.Valid(*a.Slug) {
		return errs.New(errs.Invalid, "slug must be 1 to 128 letters, digits, hyphens and underscores, begin with a letter or digit "+
			"and not have the form of a UUID")
	}
	for _, f := range []struct {
		name  string
		value **string
		most  int
	}{
		{"description", &a.Description, maxDescription}, {"source", &a.Source, maxSource}, {"sourceId", &a.SourceID, maxSource},
	} {
		if *f.value == nil {
			continue
		}
		s := strings.TrimSpace(**f.value)
		if *f.value = &s; s == "" {
			*f.value = nil
		}
		if !escapes.StorableWithin(s, f.most) {
			return errs.New(errs.Invalid, "%s must be UTF-8 without NUL and have at most %d characters", f.name, f.most)
		}
	}
	return nil
}

var alias = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

func (a *App) acceptDatasets() error {
	if len(a.Datasets) > maxDatasets {
		return errs.New(errs.Invalid, "datasets must be at most %d", maxDatasets)
	}
	slices.SortFunc(a.Datasets, func(x, y Dataset) int { return strings.Compare(x.Alias, y.Alias) })
	for i, d := range a.Datasets {
		if !alias.MatchString(d.Alias) {
			return errs.New(errs.Invalid, "datasets: alias %q must be 1 to 128 letters, digits and underscores and not begin with a digit", d.Alias)
		}
		if i > 0 && a.Datasets[i-1].Alias == d.Alias {
			return errs.New(errs.Invalid, "datasets: alias %s is there twice", d.Alias)
		}
		id, ok := uuids.Parse(d.DatasetID)
		if !ok {
			return errs.New(errs.Invalid, "datasets: datasetId of %s must be a UUID", d.Alias)
		}
		a.Datasets[i].DatasetID = id
		if !escapes.StorableWithin(d.Label, maxName) {
			return errs.New(errs.Invalid, "datasets: label of %s must be UTF-8 without NUL and have at most %d characters", d.Alias, maxName)
		}
	}
	return nil
}

// knownDatasets returns errs.Invalid for a dataset that the tenant does not have.
func (s *Service) knownDatasets(ctx context.Context, tenant string, all []Dataset) error {
	for _, d := range all {
		if err := s.known(ctx, tenant, "dataset", d.DatasetID); err != nil {
			return errs.Wrap(errs.Invalid, err, "datasets: there is no dataset %s for %s", d.DatasetID, d.Alias)
		}
	}
	return nil
}

func (s *Service) known(ctx context.Context, tenant string, kind entity.Kind, id string) error {
	if s.o.Registry == nil {
		return nil
	}
	ref, err := s.o.Registry.Lookup(ctx, tenant, kind, id)
	if err == nil && (ref.ID != id || ref.Draft) {
		err = errs.New(errs.NotFound, "%s not found", kind)
	}
	return err
}

// merged returns a JSON object with the members that change: null removes one, the others stay. what names it in errors.
func merged(what string, was, change json.RawMessage) (json.RawMessage, error) {
	all, err := members(what, was)
	if err != nil {
		return nil, err
	}
	changed, err := members(what, change)
	if err != nil {
		return nil, err
	}
	for name, value := range changed {
		if string(value) == "null" {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	return compact(all)
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
	if r := []rune(name); len(r) > maxName {
		return string(r[:maxName])
	}
	return name
}
