package entity_test

import (
	"context"
	"errors"
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

func TestNewRegistryRefuses(t *testing.T) {
	is := is.New(t)
	_, err := entity.NewRegistry(kind("a", 0, nil), kind("b", 0, nil), kind("a", 0, nil))
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = entity.NewRegistry(kind("", 0, nil))
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func TestRegistry(t *testing.T) {
	is := is.New(t)
	r, err := entity.NewRegistry(kind("report", 2, nil), entity.Type{Kind: "plain"}, kind("app", 1, nil), kind("none", 0, nil))
	is.NoErr(err)
	counts, err := r.Owned(t.Context(), "acme", "jo")
	is.NoErr(err)
	is.Equal(counts, map[entity.Kind]int{"report": 2, "app": 1})
	moved, err := r.Reassign(t.Context(), "acme", "jo", "al")
	is.NoErr(err)
	is.Equal(moved, []entity.Ref{ // in the order of registration
		{Kind: "report", Name: "acme jo", OwnerID: "al"}, {Kind: "app", Name: "acme jo", OwnerID: "al"}, {Kind: "none", Name: "acme jo", OwnerID: "al"},
	})
}

func TestRegistryStopsAtAnError(t *testing.T) {
	is, failed := is.New(t), errors.New("no")
	r, err := entity.NewRegistry(kind("a", 1, nil), kind("b", 1, failed))
	is.NoErr(err)
	_, err = r.Owned(t.Context(), "acme", "jo")
	is.Equal(err, failed)
	moved, err := r.Reassign(t.Context(), "acme", "jo", "al")
	is.Equal(err, failed)
	is.Equal(moved, nil)
}

func TestEmptyRegistry(t *testing.T) {
	is := is.New(t)
	r, err := entity.NewRegistry()
	is.NoErr(err)
	counts, err := r.Owned(t.Context(), "acme", "jo")
	is.NoErr(err)
	is.Equal(len(counts), 0)
}
