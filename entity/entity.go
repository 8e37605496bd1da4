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
	ID      string // UUID; a username for a user
	Name    string
	OwnerID string // principal id, "" for content that nobody owns
	System  bool   // belongs to the service itself: system jobs stay out of bundles
	Draft   bool   // a draft of another piece; it can be found by its id alone
}

// Key names one piece of content.
type Key struct {
	Kind Kind
	ID   string
}

// Type is what the host can do with one kind. A nil field means that the kind cannot do that.
type Type struct {
	Kind Kind
	// Lookup finds a piece by its id or its natural id ("owner:slug"). Errors: errs.NotFound.
	Lookup func(ctx context.Context, tenant, id string) (Ref, error)
	// Find finds many pieces by their ids at once, and gives those that are there by id. nil: they are looked up one by one.
	Find func(ctx context.Context, tenant string, ids []string) (map[string]Ref, error)
	// Commented says that pieces of the kind can be commented. It needs Lookup.
	Commented bool
	// Owned counts what a principal owns.
	Owned func(ctx context.Context, tenant, owner string) (int, error)
	// Reassign moves all that from owns to to and names each moved piece. It joins the transaction in ctx.
	Reassign func(ctx context.Context, tenant, from, to string) ([]Ref, error)
	// Porter moves pieces of the kind between tenants.
	Porter Porter
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

// Type gives what the host can do with a kind.
func (r *Registry) Type(kind Kind) (Type, bool) {
	for _, t := range r.types {
		if t.Kind == kind {
			return t, true
		}
	}
	return Type{}, false
}

// Kinds lists the kinds in the order of their registration.
func (r *Registry) Kinds() []Kind {
	kinds := make([]Kind, len(r.types))
	for i, t := range r.types {
		kinds[i] = t.Kind
	}
	return kinds
}

// Lookup finds a piece of a kind by its id or natural id. Errors: errs.NotFound, also when the kind cannot be looked up.
func (r *Registry) Lookup(ctx context.Context, tenant string, kind Kind, id string) (Ref, error) {
	t, ok := r.Type(kind)
	if !ok || t.Lookup == nil {
		return Ref{}, errs.New(errs.NotFound, "There is no %s that could be looked up.", kind)
	}
	return t.Lookup(ctx, tenant, id)
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
