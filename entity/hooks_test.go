package entity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
)

// noted returns hooks that note their calls under a name.
func noted(name string, did *[]string, err error) entity.Hooks {
	note := func(what ...any) error {
		*did = append(*did, name+" "+fmt.Sprint(what...))
		return err
	}
	counted := []entity.Dependent{{Count: entity.Count{N: 1, Of: name}}}
	return entity.Hooks{
		Renamed: func(_ context.Context, tenant string, names map[string]string) error { return note(tenant, names) },
		Deleted: func(_ context.Context, tenant string, gone ...entity.Key) error { return note(tenant, gone) },
		Dependents: func(
			_ context.Context, tenant string, kind entity.Kind, ids []string, at time.Time,
		) ([]entity.Dependent, error) {
			return counted, note(tenant, kind, ids, at.Year())
		},
		Additions: func(
			_ context.Context, tenant string, kind entity.Kind, ids []string,
		) (map[string][]entity.Dependent, error) {
			return map[string][]entity.Dependent{ids[0]: counted}, note(tenant, kind, ids)
		},
		Counts: func(_ context.Context, tenant string) ([]entity.TenantCount, error) {
			return []entity.TenantCount{{Of: name, N: 1, Rank: len(name)}}, note(tenant)
		},
		TenantDeleted: func(_ context.Context, tenant, deleted string) error { return note(tenant, deleted) },
		TenantsWith: func(_ context.Context, deleted string) ([]string, error) {
			return []string{name}, note(deleted)
		},
		Removed: func(_ context.Context, tenant string) error { return note(tenant) },
		Sealed:  []entity.SealedColumn{{Table: name, Column: "secret", Key: "id"}},
		Sweep:   func(_ context.Context, tenant string) (int, error) { return 1, note(tenant) },
	}
}

// TestHooks: hooks are called in the order in which they were added, those of a kind in the place
// of the kind. A nil hook does nothing.
func TestHooks(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	var did []string
	r := entity.NewRegistry()
	is.NoErr(r.Add(entity.Type{Kind: "recipe", Hooks: noted("recipe", &did, nil)}, entity.Type{Kind: "plain"}))
	r.AddHooks(entity.Hooks{}, noted("files", &did, nil))
	took := func() []string { defer func() { did = nil }(); return did }

	is.NoErr(r.Rename(ctx, "acme", map[string]string{"jo": "joe"}))
	is.Equal(took(), []string{"recipe acmemap[jo:joe]", "files acmemap[jo:joe]"})
	is.NoErr(r.Deleted(ctx, "acme", entity.Key{Kind: "user", ID: "jo"}))
	is.Equal(took(), []string{"recipe acme[{user jo}]", "files acme[{user jo}]"})
	is.NoErr(r.Deleted(ctx, "acme")) // does nothing
	is.Equal(took(), nil)
	counts, err := r.Dependents(ctx, "acme", "user", []string{"jo"}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	is.NoErr(err)
	is.Equal(counts, []entity.Dependent{
		{Count: entity.Count{N: 1, Of: "recipe"}}, {Count: entity.Count{N: 1, Of: "files"}},
	})
	is.Equal(took(), []string{"recipe acmeuser[jo] 2026", "files acmeuser[jo] 2026"})
	added, err := r.Additions(ctx, "acme", "team", []string{"t"})
	is.NoErr(err)
	is.Equal(added, map[string][]entity.Dependent{"t": counts})
	is.Equal(len(took()), 2)
	for _, ids := range [][]string{nil, {}} {
		_, err = r.Dependents(ctx, "acme", "user", ids, time.Time{})
		is.NoErr(err)
		_, err = r.Additions(ctx, "acme", "user", ids)
		is.NoErr(err)
	}
	is.Equal(took(), nil)
	for _, s := range r.Sweeps() {
		_, err := s.Tenant(ctx, "acme")
		is.NoErr(err)
	}
	is.Equal(took(), []string{"recipe acme", "files acme"})
	sums, err := r.TenantCounts(ctx, "acme")
	is.NoErr(err)
	is.Equal(sums, []entity.TenantCount{{Of: "files", N: 1, Rank: 5}, {Of: "recipe", N: 1, Rank: 6}}) // by rank
	is.Equal(took(), []string{"recipe acme", "files acme"})
	with, every, err := r.TenantsWith(ctx, "evil")
	is.NoErr(err)
	is.Equal(with, []string{"recipe", "files"})
	is.True(!every)
	is.Equal(took(), []string{"recipe evil", "files evil"})
	// no TenantsWith
	r.AddHooks(entity.Hooks{TenantDeleted: func(context.Context, string, string) error { return nil }})
	_, every, err = r.TenantsWith(ctx, "evil")
	is.NoErr(err)
	is.True(every)
	did = nil
	is.NoErr(r.TenantDeleted(ctx, "acme", "evil"))
	is.Equal(took(), []string{"recipe acmeevil", "files acmeevil"})
	is.NoErr(r.Removed(ctx, "acme"))
	is.Equal(took(), []string{"recipe acme", "files acme"})
	is.Equal(r.Sealed(), []entity.SealedColumn{
		{Table: "recipe", Column: "secret", Key: "id"}, {Table: "files", Column: "secret", Key: "id"},
	})
}

// TestHooksStopAtAnError: all hooks but Removed stop at the first error.
func TestHooksStopAtAnError(t *testing.T) {
	is, ctx, failed := is.New(t), t.Context(), errors.New("no")
	var did []string
	r := entity.NewRegistry()
	r.AddHooks(noted("bad", &did, failed), noted("good", &did, nil))
	is.Equal(r.Rename(ctx, "acme", nil), failed)
	is.Equal(r.Deleted(ctx, "acme", entity.Key{}), failed)
	_, err := r.Dependents(ctx, "acme", "user", []string{"jo"}, time.Time{})
	is.Equal(err, failed)
	_, err = r.Additions(ctx, "acme", "user", []string{"jo"})
	is.Equal(err, failed)
	_, err = r.TenantCounts(ctx, "acme")
	is.Equal(err, failed)
	is.Equal(r.TenantDeleted(ctx, "acme", "evil"), failed)
	_, _, err = r.TenantsWith(ctx, "evil")
	is.Equal(err, failed)
	is.Equal(len(did), 7)
	is.True(errors.Is(r.Removed(ctx, "acme"), failed))
	is.Equal(did[7:], []string{"bad acme", "good acme"})
}

func TestCounts(t *testing.T) {
	is := is.New(t)
	of := func(n int, what string, rank int) entity.Dependent {
		return entity.Dependent{Count: entity.Count{N: n, Of: what}, Rank: rank}
	}
	is.Equal(entity.Counts(nil), nil)
	all := []entity.Dependent{
		of(1, "recipe", 0), of(2, "file", 5), of(0, "picture", 4), of(1, "password", 1), of(3, "file", 5),
		of(1, "note", 0),
	}
	is.Equal(entity.Counts(all), []entity.Count{
		{N: 1, Of: "password"}, {N: 5, Of: "file"}, {N: 1, Of: "recipe"}, {N: 1, Of: "note"},
	})
	is.Equal(all[0].Of, "recipe") // the caller may change the slice
}
