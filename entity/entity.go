// Package entity defines what bundles, comments and reassignment share: kinds of content,
// references to entities, and the registry of the operations that each kind supports.
//
// Nouns import it and declare themselves in the registry, which the root makes and fills. The
// package stores nothing.
package entity

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Kind names a kind of content, such as "report".
type Kind string

// The kinds of principals. They are constants, so that a type that a host registers in place of one
// of them cannot fail to declare itself a principal. What a deploy from another tenant may do with
// principals depends on it.
const (
	KindUser Kind = "user" // their ids are their usernames
	KindTeam Kind = "team"
)

// KindMember is the kind of memberships in changes. The id of a membership is the id of the team, a
// slash and the username.
const KindMember Kind = "member"

// Ref refers to one entity.
type Ref struct {
	Kind    Kind
	ID      string // UUID; a username for a user
	Name    string
	OwnerID string // principal id; "" for content without an owner
	System  bool   // belongs to the service itself; bundles refuse system jobs
	Draft   bool   // a draft of another entity; it can be found only by its id
	// External reports whether a directory or provider checks the password of a user.
	External bool
}

// Key names one entity.
type Key struct {
	Kind Kind
	ID   string
}

// Keys returns the keys of a kind with some ids.
func Keys(kind Kind, ids ...string) []Key {
	all := make([]Key, len(ids))
	for i, id := range ids {
		all[i] = Key{Kind: kind, ID: id}
	}
	return all
}

// IDs returns the ids of the keys of some kinds.
func IDs(keys []Key, kinds ...Kind) (ids []string) {
	for _, k := range keys {
		if slices.Contains(kinds, k.Kind) {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// Type has the operations of one kind. A nil field means that the kind does not support the
// operation.
type Type struct {
	Kind Kind
	// Lookup finds an entity by its id or its natural id ("owner:slug"). It returns errs.NotFound
	// if the entity does not exist.
	Lookup func(ctx context.Context, tenant, id string) (Ref, error)
	// Find returns the entities with the given ids that exist, by id; see Refs. nil: they are
	// looked up one by one.
	Find func(ctx context.Context, tenant string, ids []string) (map[string]Ref, error)
	// Commented reports whether entities of the kind can be commented: with comments.Service, and
	// at /api/{Plural}/{id}/comments, where id is any that Lookup accepts. It needs Lookup. A
	// comment has the id of its entity in the member {Kind}Id. Code that deletes an entity of the
	// kind must pass it to Registry.Deleted, which removes its comments.
	Commented bool
	// Visible returns an error, such as errs.NotFound, if the caller in ctx cannot see an entity.
	// Its comments are hidden then. id is any that Lookup accepts. nil: every session sees all
	// entities.
	Visible func(ctx context.Context, id string) error
	// Plural is the kind in the paths of its routes; default: the kind with an s. It must differ
	// from the plurals of other commented kinds and from the other routes of the API.
	Plural string
	// Owned returns the number of entities that a principal owns.
	Owned func(ctx context.Context, tenant, owner string) (int, error)
	// Owners returns the ids of all principals that own something, each once. nil: Owned is called
	// for one principal after the other.
	Owners func(ctx context.Context, tenant string) ([]string, error)
	// Reassign makes to the owner of everything that from owns, and returns the moved entities. It
	// joins the transaction in ctx.
	Reassign func(ctx context.Context, tenant, from, to string) ([]Ref, error)
	// Rename replaces the owner ids of the entities of principals, including drafts. names maps old
	// ids to new ones. A new id is not an old one and owns nothing, so the order does not matter.
	// It joins the transaction in ctx. nil: Reassign is called.
	Rename func(ctx context.Context, tenant string, names map[string]string) error
	// Transferer moves entities of the kind between tenants.
	Transferer Transferer
	// Owns reports whether entities of the kind, such as teams, can own others. A restore or deploy
	// reassigns what such an entity owns before it removes the entity. Transferer.Remove then calls
	// Registry.Deleted itself, before it deletes the rows.
	Owns bool
	// Protected returns those of some entities that an import must not overwrite, such as
	// superusers. nil: it may overwrite all.
	Protected func(ctx context.Context, tenant string, ids []string) ([]string, error)
	// Hooks are what the kind does with its rows, or with other rows of its package, when the
	// entities that they belong to change.
	Hooks Hooks
}

// Registry holds the kinds and hooks that the packages of a program, and its host, have declared,
// in the order of registration.
type Registry struct {
	types []Type
	hooks []Hooks
}

// Path returns the kind as it is written in the paths of its routes.
func (t Type) Path() string { return cmp.Or(t.Plural, string(t.Kind)+"s") }

// commented matches kinds and plurals that can be commented, as they become parts of member names
// and of paths.
var commented = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// NewRegistry returns an empty Registry. Services are built with it while Add and AddHooks fill it.
func NewRegistry() *Registry { return &Registry{} }

// Add adds kinds and their hooks after those already registered. It must not be called once the
// Registry is in use. It adds nothing if it fails.
//
// Errors: errs.Invalid for an empty kind or one that is registered. A kind that can be commented
// also needs Lookup, and its name and plural must have only letters and digits and differ from
// other members of comments.
func (r *Registry) Add(types ...Type) error {
	seen := map[Kind]bool{}
	for _, t := range types {
		if err := t.check(); err != nil {
			return err
		}
		if _, there := r.Type(t.Kind); t.Kind == "" || there || seen[t.Kind] {
			return errs.New(errs.Invalid, "entity kind %q is empty or registered twice", t.Kind)
		}
		seen[t.Kind] = true
	}
	for _, t := range types {
		r.types = append(r.types, t)
		r.hooks = append(r.hooks, t.Hooks)
	}
	return nil
}

func (t Type) check() error {
	switch {
	case !t.Commented:
		return nil
	case t.Lookup == nil:
		return errs.New(errs.Invalid, "entity kind %q can be commented, so it needs Lookup", t.Kind)
	case !commented.MatchString(string(t.Kind)) || !commented.MatchString(t.Path()) || t.Kind == "parent" ||
		t.Kind == KindUser:
		return errs.New(errs.Invalid,
			"entity kind %q can be commented, so it and its plural %q must begin with a small letter, "+
				"have only letters and digits of ASCII, and not be parent or user", t.Kind, t.Path())
	}
	return nil
}

// Type returns the operations of a kind.
func (r *Registry) Type(kind Kind) (Type, bool) {
	for _, t := range r.types {
		if t.Kind == kind {
			return t, true
		}
	}
	return Type{}, false
}

// Kinds returns the kinds in the order of their registration.
func (r *Registry) Kinds() []Kind {
	kinds := make([]Kind, len(r.types))
	for i, t := range r.types {
		kinds[i] = t.Kind
	}
	return kinds
}

// Lookup finds an entity of a kind by its id or natural id. It returns errs.NotFound if the entity
// does not exist or the kind has no Lookup.
func (r *Registry) Lookup(ctx context.Context, tenant string, kind Kind, id string) (Ref, error) {
	t, ok := r.Type(kind)
	if !ok || t.Lookup == nil {
		return Ref{}, errs.New(errs.NotFound, "There is no %s that could be looked up.", kind)
	}
	return t.Lookup(ctx, tenant, id)
}

// Refs returns the given entities of a kind that exist, by id. The map is empty if the kind has
// neither Find nor Lookup.
func (r *Registry) Refs(ctx context.Context, tenant string, kind Kind, ids []string) (map[string]Ref, error) {
	t, _ := r.Type(kind)
	return t.Refs(ctx, tenant, ids)
}

// Refs returns the given entities that exist, by id. The map is empty if the kind has neither Find
// nor Lookup.
func (t Type) Refs(ctx context.Context, tenant string, ids []string) (map[string]Ref, error) {
	if t.Find != nil {
		return t.Find(ctx, tenant, ids)
	}
	found := map[string]Ref{}
	if t.Lookup == nil {
		return found, nil
	}
	for _, id := range ids {
		ref, err := t.Lookup(ctx, tenant, id)
		if errs.CodeOf(err) == errs.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[id] = ref
	}
	return found, nil
}

// Owned returns how many entities a principal owns, per kind. Kinds with a count of 0 are left out.
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

// Owners returns those of some principal ids that own something of any kind.
func (r *Registry) Owners(ctx context.Context, tenant string, among []string) (map[string]bool, error) {
	asked, owners := make(map[string]bool, len(among)), map[string]bool{}
	for _, id := range among {
		asked[id] = true
	}
	for _, t := range r.types {
		some, err := t.owners(ctx, tenant, among)
		if err != nil {
			return nil, err
		}
		for _, id := range some {
			if asked[id] {
				owners[id] = true
			}
		}
	}
	return owners, nil
}

func (t Type) owners(ctx context.Context, tenant string, among []string) (owners []string, err error) {
	switch {
	case t.Owners != nil:
		return t.Owners(ctx, tenant)
	case t.Owned == nil:
		return nil, nil
	}
	for _, id := range among {
		n, err := t.Owned(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			owners = append(owners, id)
		}
	}
	return owners, nil
}

// Rename replaces the names of renamed users. It first replaces the owner ids of their entities,
// kind by kind in the order of registration (see Type.Rename), and then calls Hooks.Renamed.
func (r *Registry) Rename(ctx context.Context, tenant string, names map[string]string) error {
	for _, t := range r.types {
		if err := t.rename(ctx, tenant, names); err != nil {
			return err
		}
	}
	for _, h := range r.hooks {
		if h.Renamed == nil {
			continue
		}
		if err := h.Renamed(ctx, tenant, names); err != nil {
			return err
		}
	}
	return nil
}

func (t Type) rename(ctx context.Context, tenant string, names map[string]string) error {
	if t.Rename != nil {
		return t.Rename(ctx, tenant, names)
	}
	if t.Reassign == nil {
		return nil
	}
	for _, from := range slices.Sorted(maps.Keys(names)) {
		if _, err := t.Reassign(ctx, tenant, from, names[from]); err != nil {
			return err
		}
	}
	return nil
}

// Reassign moves everything that from owns to to, kind by kind in the order of registration, so
// that concurrent calls lock rows in the same order. It joins the transaction in ctx.
func (r *Registry) Reassign(ctx context.Context, tenant, from, to string) ([]Ref, error) {
	return r.ReassignOnly(ctx, tenant, from, to, r.Kinds()...)
}

// ReassignOnly is like Reassign, but only for some kinds. Unknown kinds are ignored.
func (r *Registry) ReassignOnly(ctx context.Context, tenant, from, to string, kinds ...Kind) ([]Ref, error) {
	var moved []Ref
	for _, t := range r.types {
		if t.Reassign == nil || !slices.Contains(kinds, t.Kind) {
			continue
		}
		refs, err := t.Reassign(ctx, tenant, from, to)
		if err != nil {
			return nil, err
		}
		moved = append(moved, refs...)
	}
	return moved, r.reassigned(ctx, tenant, moved)
}
