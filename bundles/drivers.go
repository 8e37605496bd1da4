package bundles

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Driver is one type of bundle entry. Implementations must pass drivertest.TestDriver.
type Driver interface {
	// Descriptor describes the type for clients. Its ID is stored with each entry, so it never
	// changes.
	Descriptor() Descriptor
	// Content returns what entries of the type ship: of a type with a Column one kind, with Lookup
	// and Transferer, of which each entry ships one entity and all that it needs; of a type
	// without, any number, and each entry ships all entities of all of them.
	Content() []entity.Type
}

// Descriptor describes a Driver.
type Descriptor struct {
	ID    string // the entry's type
	Name  string // i18n key
	Label string // English name of its builder, "" for a type without one
	// the entry's member that refers to the entity, such as "reportId"; "" for a type that refers
	// to nothing
	Column string
	Icon   Icon
	Editor string // component that edits an entry's data
}

// Icon is the icon of a driver. Exactly one of its fields is set.
type Icon struct {
	Material string // name of a Material icon
	Name     string // name of an icon of the client
	SVG      string // the picture itself
}

// ready lists the types of the library, in the order in which the API lists them.
var ready = []struct{ id, kind, column, icon, label string }{
	{"code", "code", "codeId", "code", "Code"},
	{"global", "", "", "public", ""},
	{"assistant", "assistant", "assistantId", "assistant", "Assistant"},
	{"dataset", "dataset", "datasetId", "dataset", "Dataset"},
	{"datasource", "datasource", "datasourceId", "storage", "Datasource"},
	{"query", "query", "queryId", "manage_search", "Query"},
	{"report", "report", "reportId", "assessment", "Report"},
	{"tagged", "tag", "tagId", "label", "Tag"},
	{"user", "user", "username", "person", "User"},
	{"team", "team", "teamId", "group", "Team"},
	{"job", "job", "jobId", "schedule", "Job"},
	{"template", "template", "templateId", "description", "Template"},
	{"letterhead", "letterhead", "letterheadId", "mail", "Letterhead"},
	{"library", "library", "libraryId", "folder", "Library"},
	{"app", "app", "appId", "apps", "App"},
	{"toolkit", "toolkit", "toolkitId", "build", "Toolkit"},
	{"integration", "integration", "integrationId", "extension", "Integration"},
}

// Columns returns the members of an entry that refer to an entity, in the order in which the API
// lists them. Exactly the one of the entry's type is set.
func Columns() []string {
	return strings.Fields("tagId reportId datasetId datasourceId queryId teamId jobId templateId letterheadId " +
		"assistantId " +
		"libraryId codeId appId toolkitId integrationId username")
}

// order is the order of kinds in an archive: each comes after those that its entities may need. A
// host's own kinds come last, in the order of their registration.
var order = strings.Fields("user team tag color aiInstruction datasource dataset query visual template letterhead " +
	"code library " +
	"integration toolkit file assistant report app job")

// driver is a ready Driver.
type driver struct {
	about   Descriptor
	content []entity.Type
}

func (d driver) Descriptor() Descriptor { return d.about }
func (d driver) Content() []entity.Type { return d.content }

// allDrivers returns the ready drivers with the host's: each in the place of the one with its id,
// or behind them.
func allDrivers(content *entity.Registry, global []entity.Type, own []Driver) ([]Driver, error) {
	all := make([]Driver, 0, len(ready)+len(own))
	for _, r := range ready {
		d := driver{content: global, about: Descriptor{
			ID: r.id, Name: "bundle:" + r.id, Label: r.label, Column: r.column, Icon: Icon{Material: r.icon},
			Editor: "bundle" + strings.ToUpper(r.id[:1]) + r.id[1:],
		}}
		if r.column != "" {
			t, _ := content.Type(entity.Kind(r.kind)) // if the host does not have the kind, nothing can be referred to
			t.Kind = entity.Kind(r.kind)
			d.content = []entity.Type{t}
		}
		all = append(all, d)
	}
	seen := map[string]bool{}
	for _, d := range own {
		if err := CheckDriver(d); err != nil {
			return nil, err
		}
		id := d.Descriptor().ID
		if seen[id] {
			return nil, errs.New(errs.Invalid, "two bundle drivers have the id %q", id)
		}
		seen[id] = true
		if i := slices.IndexFunc(all, func(d Driver) bool { return d.Descriptor().ID == id }); i >= 0 {
			all[i] = d
		} else {
			all = append(all, d)
		}
	}
	return all, nil
}

// CheckDriver returns errs.Invalid if a driver's descriptor and content are inconsistent.
func CheckDriver(d Driver) error {
	about, content := d.Descriptor(), d.Content()
	wrong := func(what string) error {
		return errs.New(errs.Invalid, "the bundle driver %q %s", about.ID, what)
	}
	hints := 0
	for _, hint := range []string{about.Icon.Material, about.Icon.Name, about.Icon.SVG} {
		if hint != "" {
			hints++
		}
	}
	switch {
	case about.ID == "" || about.Name == "" || about.Editor == "":
		return wrong("must have an id, a name and an editor")
	case hints != 1:
		return wrong("must have exactly one icon")
	case slices.Contains([]string{"type", "data", "id", "tenant", "bundleId", "createdAt", "updatedAt"}, about.Column):
		return wrong("must not call its column " + about.Column)
	case about.Column != "" && (len(content) != 1 || content[0].Lookup == nil):
		return wrong("must have one kind of content, with Lookup, as it has a column")
	}
	for _, t := range content {
		if t.Kind == "" || t.Transferer == nil || strings.ContainsAny(string(t.Kind), "/\\.%\x00") {
			return wrong("must have a kind and a Transferer for all its content")
		}
	}
	return nil
}

// transferersOf returns the Transferer of each kind, a driver's rather than the registry's, and the
// order of the kinds.
func transferersOf(content *entity.Registry, drivers []Driver) (map[entity.Kind]entity.Transferer, []entity.Kind) {
	transferers, kinds := map[entity.Kind]entity.Transferer{}, []entity.Kind{}
	add := func(t entity.Type) {
		if t.Transferer != nil && transferers[t.Kind] == nil {
			transferers[t.Kind] = t.Transferer
			kinds = append(kinds, t.Kind)
		}
	}
	for _, d := range drivers {
		for _, t := range d.Content() {
			add(t)
		}
	}
	for _, kind := range content.Kinds() {
		t, _ := content.Type(kind)
		add(t)
	}
	place := func(k entity.Kind) int {
		if i := slices.Index(order, string(k)); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(kinds, func(a, b entity.Kind) int { return cmp.Compare(place(a), place(b)) })
	return transferers, kinds
}

// typeOf returns the entity.Type of a kind, a driver's rather than the registry's, as
// transferersOf.
func (s *Service) typeOf(kind entity.Kind) entity.Type {
	for _, d := range s.drivers {
		for _, t := range d.Content() {
			if t.Kind == kind && t.Transferer != nil {
				return t
			}
		}
	}
	t, _ := s.content.Type(kind)
	return t
}

// Drivers returns the types of entries to any session, in the order of registration.
func (s *Service) Drivers(ctx context.Context) ([]Descriptor, error) {
	if _, err := actor.From(ctx); err != nil {
		return nil, err
	}
	all := make([]Descriptor, len(s.drivers))
	for i, d := range s.drivers {
		all[i] = d.Descriptor()
	}
	return all, nil
}

// Driver returns one type of entries to any session. Errors: errs.Invalid for an id that is not
// registered.
func (s *Service) Driver(ctx context.Context, id string) (Descriptor, error) {
	if _, err := actor.From(ctx); err != nil {
		return Descriptor{}, err
	}
	d, err := s.driver(id)
	if err != nil {
		return Descriptor{}, err
	}
	return d.Descriptor(), nil
}

// Known reports whether there is a driver of this id.
func (s *Service) Known(id string) bool {
	_, err := s.driver(id)
	return err == nil
}

// Column returns the member of an entry of a type that refers to the entity, "" for none.
func (s *Service) Column(kind string) string {
	d, err := s.driver(kind)
	if err != nil {
		return ""
	}
	return d.Descriptor().Column
}

func (s *Service) driver(id string) (Driver, error) {
	for _, d := range s.drivers {
		if d.Descriptor().ID == id {
			return d, nil
		}
	}
	return nil, errs.New(errs.Invalid, "There is no bundle driver %q.", short(id))
}

// shippable returns errs.Invalid for an entity that bundles cannot contain.
func shippable(ref entity.Ref) error {
	switch {
	case ref.System && ref.Kind == "job":
		return errs.New(errs.Invalid, "System jobs cannot be added to bundles")
	case ref.System || ref.Draft:
		return errs.New(errs.Invalid, "Drafts and what belongs to the service cannot be added to bundles.")
	}
	return nil
}

// short shortens a text for a message.
func short(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
