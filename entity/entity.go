// Package entity is what bundles, comments and reassignment share: a kind of content, a reference to one piece of it,
// and the registry of what the host can do with each kind.
//
// Nouns import it; the root builds the registry. It keeps no rows.
package entity

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Kind names a kind of content, such as "report" (DECISIONS, section 6).
type Kind string

// Ref points at one piece of content.
type Ref struct {
	Kind    Kind
	ID      string // UUID
	Name    string
	OwnerID string // principal id, "" for content that nobody owns
}

// Type is what the host can do with one kind. A nil function means that the kind cannot do that.
type Type struct {
	Kind Kind
	// Owned counts what a principal owns.
	Owned func(ctx context.Context, tenant, owner string) (int, error)
	// Reassign moves all that from owns to to and names each moved piece. It joins the transaction in ctx.
	Reassign func(ctx context.Context, tenant, from, to string) ([]Ref, error)
}

// Registry knows the kinds of one host, in the order of their registration.
type Registry struct {
	types []Type
}

// NewRegistry makes a registry. Errors: errs.Invalid for an empty kind or one given twice.
func NewRegistry(types ...Type) (*Registry, error) {
	seen := map[Kind]bool{}
	for _, t := range types {
		if t.Kind == "" || seen[t.Kind] {
			return nil, errs.New(errs.Invalid, "entity kind %q is empty or registered twice", t.Kind)
		}
		seen[t.Kind] = true
	}
	return &Registry{types: types}, nil
}

// Owned counts, per kind, what a principal owns. Kinds of which it owns nothing are left out.
func (r *Registry) Owned(ctx context.Context, tenant, owner string) (map[Kind]int, error) {
	counts := map[Kind]int{}
	for _, t := range r.types {
		if t.Owned == nil {
			continue
		}
		n, err := t.Owned(ctx, tenant, owner)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			counts[t.Kind] = n
		}
	}
	return counts, nil
}

// Reassign moves all that from owns to to, kind by kind in the order of registration, so that two at once lock rows in
// the same order. It joins the transaction in ctx.
func (r *Registry) Reassign(ctx context.Context, tenant, from, to string) ([]Ref, error) {
	var moved []Ref
	for _, t := range r.types {
		if t.Reassign == nil {
			continue
		}
		refs, err := t.Reassign(ctx, tenant, from, to)
		if err != nil {
			return nil, err
		}
		moved = append(moved, refs...)
	}
	return moved, nil
}
