package entity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

func kind(k entity.Kind, owned int, err error) entity.Type {
	return entity.Type{
		Kind:  k,
		Owned: func(context.Context, string, string) (int, error) { return owned, err },
		Reassign: func(_ context.Context, tenant, from, to string) ([]entity.Ref, error) {
			return []entity.Ref{{Kind: k, Name: tenant + " " + from, OwnerID: to}}, err
		},
	}
}

// registryOf returns a Registry of some kinds.
func registryOf(types ...entity.Type) (*entity.Registry, error) {
	r := entity.NewRegistry()
	return r, r.Add(types...)
}

func TestRegistryRefuses(t *testing.T) {
	is := is.New(t)
	_, err := registryOf(kind("a", 0, nil), kind("b", 0, nil), kind("a", 0, nil))
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = registryOf(kind("", 0, nil))
	is.Equal(errs.CodeOf(err), errs.Invalid)
	r, err := registryOf(kind("a", 0, nil))
	is.NoErr(err)
	is.Equal(errs.CodeOf(r.Add(kind("b", 0, nil), kind("a", 0, nil))), errs.Invalid)
	is.Equal(r.Kinds(), []entity.Kind{"a"}) // nothing was added
}

func TestRegistry(t *testing.T) {
	is := is.New(t)
	r, err := registryOf(kind("report", 2, nil), entity.Type{Kind: "plain"}, kind("app", 1, nil), kind("none", 0, nil))
	is.NoErr(err)
	counts, err := r.Owned(t.Context(), "acme", "jo")
	is.NoErr(err)
	is.Equal(counts, map[entity.Kind]int{"report": 2, "app": 1})
	moved, err := r.Reassign(t.Context(), "acme", "jo", "al")
	is.NoErr(err)
	is.Equal(moved, []entity.Ref{ // in the order of registration
		{Kind: "report", Name: "acme jo", OwnerID: "al"},
		{Kind: "app", Name: "acme jo", OwnerID: "al"}, {Kind: "none", Name: "acme jo", OwnerID: "al"},
	})
}

// TestOwners: Owned is called for each principal if a kind has no Owners.
func TestOwners(t *testing.T) {
	is, failed := is.New(t), errors.New("no")
	one := entity.Type{Kind: "one", Owned: func(_ context.Context, _, owner string) (int, error) {
		return len(owner) - 2, nil
	}}
	list := entity.Type{Kind: "list", Owners: func(context.Context, string) ([]string, error) {
		return []string{"al", "stranger"}, nil
	}}
	r, err := registryOf(one, list, entity.Type{Kind: "plain"})
	is.NoErr(err)
	owners, err := r.Owners(t.Context(), "acme", []string{"jo", "al", "mia"})
	is.NoErr(err)
	is.Equal(owners, map[string]bool{"al": true, "mia": true})
	for _, bad := range []entity.Type{kind("bad", 0, failed),
		{Kind: "bad", Owners: func(context.Context, string) ([]string, error) {
			return nil, failed
		}}} {
		r, err := registryOf(one, bad)
		is.NoErr(err)
		_, err = r.Owners(t.Context(), "acme", []string{"jo"})
		is.Equal(err, failed)
	}
}

func TestRename(t *testing.T) {
	is, failed := is.New(t), errors.New("no")
	var did []string
	by := func(k entity.Kind, err error) (byHand, own entity.Type) {
		byHand = entity.Type{Kind: k, Reassign: func(_ context.Context, tenant, from, to string) ([]entity.Ref, error) {
			did = append(did, fmt.Sprint(k, tenant, from, to))
			return nil, err
		}}
		own = byHand
		own.Rename = func(_ context.Context, tenant string, names map[string]string) error {
			did = append(did, fmt.Sprint(k, tenant, names))
			return err
		}
		return byHand, own
	}
	byHand, _ := by("a", nil)
	_, own := by("b", nil)
	r, err := registryOf(own, byHand, entity.Type{Kind: "plain"})
	is.NoErr(err)
	is.NoErr(r.Rename(t.Context(), "acme", map[string]string{"jo": "joe", "al": "alf"}))
	is.Equal(did, []string{"bacmemap[al:alf jo:joe]", "aacmealalf", "aacmejojoe"})
	byHand, own = by("c", failed)
	for _, bad := range []entity.Type{byHand, own} {
		r, err := registryOf(bad)
		is.NoErr(err)
		is.Equal(r.Rename(t.Context(), "acme", map[string]string{"jo": "joe"}), failed)
	}
}

func TestRegistryStopsAtAnError(t *testing.T) {
	is, failed := is.New(t), errors.New("no")
	r, err := registryOf(kind("a", 1, nil), kind("b", 1, failed))
	is.NoErr(err)
	_, err = r.Owned(t.Context(), "acme", "jo")
	is.Equal(err, failed)
	moved, err := r.Reassign(t.Context(), "acme", "jo", "al")
	is.Equal(err, failed)
	is.Equal(moved, nil)
}

func TestEmptyRegistry(t *testing.T) {
	is := is.New(t)
	r, err := registryOf()
	is.NoErr(err)
	counts, err := r.Owned(t.Context(), "acme", "jo")
	is.NoErr(err)
	is.Equal(len(counts), 0)
}

func TestWarningsAddUp(t *testing.T) {
	is := is.New(t)
	var sums entity.Warnings
	is.Equal(len(sums.Warnings()), 0)
	counts := []entity.Count{{N: 1, Of: "secret"}, {N: 1, Of: "dataset row"}}
	sums.Add("%s of %s stayed behind.", counts...)
	sums.Add("%s of %s stayed behind.", entity.Count{N: 2, Of: "secret"}, entity.Count{N: 1, Of: "user row"})
	sums.Add("%s came.", entity.Count{N: 0, Of: "user"})
	is.Equal(sums.Warnings()[0], "1 secret of 1 dataset row stayed behind.")
	sums.Add("%s of %s stayed behind.", entity.Count{N: 3, Of: "secret"}, entity.Count{N: 0, Of: "dataset row"})
	is.Equal(sums.Warnings(), []string{
		"4 secrets of 1 dataset row stayed behind.", "2 secrets of 1 user row stayed behind.", "0 users came.",
	})
	is.Equal(counts[0].N, 1) // the caller may change the slice
}

// TestCommentedKindsFitPathsAndMembers: the names of a comment's members and routes are made of the
// kind.
func TestCommentedKindsFitPathsAndMembers(t *testing.T) {
	find := func(context.Context, string, string) (entity.Ref, error) { return entity.Ref{}, nil }
	for _, bad := range []entity.Type{
		{Kind: "recipe", Commented: true},
		{Kind: "parent", Commented: true, Lookup: find}, {Kind: "user", Commented: true, Lookup: find},
		{Kind: "Recipe", Commented: true, Lookup: find}, {Kind: "my recipe", Commented: true, Lookup: find},
		{Kind: "recipe", Plural: "a/b", Commented: true, Lookup: find},
	} {
		_, err := registryOf(bad)
		is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	}
	good := entity.Type{Kind: "city", Plural: "cities", Commented: true, Lookup: find}
	_, err := registryOf(good)
	is.New(t).NoErr(err)
	is.New(t).Equal(good.Path(), "cities")
	is.New(t).Equal(entity.Type{Kind: "recipe"}.Path(), "recipes")
}

// named is an Observer that writes down what it is told.
type named struct {
	name string
	to   *[]string
}

// Begin implements entity.Beginner.
func (n named) Begin(ctx context.Context, _ entity.Work, kind string) context.Context {
	*n.to = append(*n.to, n.name+" begins "+kind)
	return ctx
}

// Observe implements entity.Observer.
func (n named) Observe(_ context.Context, o entity.Observation) {
	*n.to = append(*n.to, n.name+" ends "+o.Kind)
}

// plain is an Observer without a Begin.
type plain struct{ entity.Observer }

func TestObservers(t *testing.T) {
	is, seen := is.New(t), []string(nil)
	a, b := named{"a", &seen}, named{"b", &seen}
	is.Equal(entity.Observers(), nil)
	is.Equal(entity.Observers(nil, nil), nil)
	is.Equal(entity.Observers(nil, a), a)
	all := entity.Observers(a, nil, plain{b})
	ctx := entity.Begin(t.Context(), all, entity.JobWork, "mail")
	entity.Observe(ctx, all, entity.Observation{Work: entity.JobWork, Kind: "mail"})
	is.Equal(seen, []string{"a begins mail", "a ends mail", "b ends mail"})
}
