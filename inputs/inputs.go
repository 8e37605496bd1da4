// Package inputs has the two read-only catalogs of the input builder: the editor components that a
// client can show, and the editors suggested for each type of value.
//
//	editors, err := app.Inputs.Editors(ctx)
//	templates, err := app.Inputs.Templates(ctx)
//
// The catalogs are part of the program and the same for every tenant, so the package has no store.
// httpapi serves them, and the root or a host builds them with New. It imports only actor and errs.
package inputs

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Editor is one editor component.
type Editor struct {
	ID   string `json:"id"`   // component id, for example "mdSelect"; unique in the catalog
	Name string `json:"name"` // untranslated i18n key, for example "input:select"
}

// Preset is an editor suggested for a type of value, with the options it starts with.
type Preset struct {
	Key   string `json:"key"`   // untranslated i18n key
	Group string `json:"group"` // the type of value: the Type of the preset's Template
	Input Input  `json:"input"`
}

// Input maps the id of one editor to its default options. It has a single key, and its options are
// never nil.
type Input map[string]map[string]any

// Template is one row of the template catalog: the presets of a type of value.
type Template struct {
	Type    string
	Presets []Preset
}

// Service returns the catalogs to any session. It is safe for concurrent use.
type Service struct {
	editors []Editor
}

// New returns a Service with the thirteen built-in editors and then the host's editors, in the
// given order.
// Errors: errs.Invalid for an empty id or one that is taken.
func New(extra ...Editor) (*Service, error) {
	all := append(editors(), extra...)
	taken := map[string]bool{}
	for _, e := range all {
		switch {
		case e.ID == "":
			return nil, errs.New(errs.Invalid, "An input editor needs an id.")
		case taken[e.ID]:
			return nil, errs.New(errs.Invalid, "There are two input editors with the id %q.", e.ID)
		}
		taken[e.ID] = true
	}
	return &Service{editors: all}, nil
}

// Editors returns the editors in the order of registration. The caller may change the slice.
// Errors: errs.Unauthenticated without an actor.
func (s *Service) Editors(ctx context.Context) ([]Editor, error) {
	if _, err := actor.From(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(s.editors), nil
}

// Templates returns the presets of the types object, string, numeric, date and boolean, in this
// order. The caller may change them and their options. Errors: errs.Unauthenticated without an
// actor.
func (s *Service) Templates(ctx context.Context) ([]Template, error) {
	if _, err := actor.From(ctx); err != nil {
		return nil, err
	}
	return templates(), nil
}
