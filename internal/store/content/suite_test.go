package bunstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil, each with the principals jo and mia.
func testStore(t *testing.T, open func(t *testing.T) content.Store) {
	for name, check := range map[string]func(*testing.T, content.Store){
		"RoundTrip":          testRoundTrip,
		"Slugs":              testSlugs,
		"Update":             testUpdate,
		"Delete":             testDelete,
		"Isolation":          testIsolation,
		"Search":             testSearch,
		"FailedTxWritesNone": testFailedTx,
		"ParallelEditsLand":  testParallelEdits,
		"Pages":              testPages,
		"Drafts":             testDrafts,
		"Some":               testSome,
		"PutAll":             testPutAll,
		"SlugsPassOn":        testSlugsPassOn,
		"Reassign":           testReassign,
		"ReassignRenames":    testReassignRenames,
		"ReassignTells":      testReassignTells,
		"RenameOwners":       testRenameOwners,
		"NoOwner":            testNoOwner,
		"RemoveLibraries":    testRemoveLibraries,
		"CanceledWritesNone": testCanceled,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// id returns the nth id.
func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// keys returns the keys of reports.
func keys(ns ...int) (all []entity.Key) {
	for _, n := range ns {
		all = append(all, entity.Key{Kind: "report", ID: id(n)})
	}
	return all
}

func at(n int) content.Lookup { return content.Lookup{ID: id(n)} }

func newEntity(n int, slug string) content.Entity {
	e := content.Entity{
		Tenant: "acme", Kind: "report", ID: id(n), Name: "Name " + slug,
		OwnerID: "jo", Data: json.RawMessage(`{}`), CreatedAt: monday, UpdatedAt: monday,
	}
	if slug != "" {
		e.Slug = &slug
	}
	return e
}

func library(n int) content.Entity {
	e := newEntity(n, "")
	e.Kind, e.Name = content.Library, "Library"
	return e
}

func insert(t *testing.T, s content.Store, all ...content.Entity) {
	t.Helper()
	for _, e := range all {
		is.New(t).NoErr(s.Insert(t.Context(), e.Tenant, e))
	}
}

func yes(content.Entity) error { return nil }

func testRoundTrip(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	slug, text, editing := strings.Repeat("A", 128), "'; DROP TABLE x; --?$1 \\ ✓\n", id(50)
	for n, want := range []content.Entity{
		{
			Name:        "Every field",
			Slug:        &slug,
			Description: &text,
			Data:        json.RawMessage(`{"a":[1,{"b":"\u0000ü"}]}`),
			Source:      &text,
			SourceID:    &text,
			System:      true,
		},
		{Name: strings.Repeat("ü", 255), Data: json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)},
		{Name: "Draft", Slug: &slug, EditingID: &editing, Data: json.RawMessage(`{}`)},
	} {
		want.Tenant, want.Kind, want.ID, want.OwnerID, want.CreatedAt, want.UpdatedAt =
			"acme", "dataset", id(n), "jo", monday, tuesday
		if n == 0 {
			fieldtest.Full(t, want, "EditingID") // a draft has it
		}
		insert(t, s, want)
		got, err := s.Get(ctx, "acme", "dataset", at(n))
		is.NoErr(err)
		is.Equal(got, want)
		_, err = s.Get(ctx, "acme", "report", at(n)) // of another kind
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	got, err := s.Get(ctx, "acme", "dataset", content.Lookup{Owner: "jo", Slug: slug})
	is.NoErr(err)
	is.Equal(got.ID, id(0)) // not the draft
	for _, at := range []content.Lookup{{Owner: "mia", Slug: slug}, {Owner: "jo", Slug: strings.ToLower(slug)}, at(9)} {
		_, err := s.Get(ctx, "acme", "dataset", at)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

func testSlugs(t *testing.T, s content.Store) {
	is := is.New(t)
	insert(t, s, newEntity(1, "a"), newEntity(2, ""), newEntity(3, ""), newEntity(4, "A"))
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", newEntity(5, "a"))), errs.Conflict)
	owner, kind, tenant := newEntity(6, "a"), newEntity(7, "a"), newEntity(1, "a")
	owner.OwnerID, kind.Kind, tenant.Tenant = "mia", "query", "evil"
	insert(t, s, owner, kind, tenant) // not taken for another owner, kind and tenant
	_, err := s.Update(t.Context(), "acme", "report", at(4), func(e *content.Entity) error {
		e.Slug = newEntity(0, "a").Slug
		return nil
	})
	is.Equal(errs.CodeOf(err), errs.Conflict)
}

func testUpdate(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newEntity(1, "a"))
	want := newEntity(1, "b")
	want.Description, want.Source, want.SourceID, want.OwnerID, want.System =
		want.Slug, want.Slug, want.Slug, "mia", true
	want.Data, want.UpdatedAt = json.RawMessage(`{"new":1}`), tuesday
	got, err := s.Update(ctx, "acme", "report", content.Lookup{Owner: "jo", Slug: "a"}, func(e *content.Entity) error {
		is.Equal(*e, newEntity(1, "a"))
		*e = want
		e.Tenant, e.Kind, e.ID, e.CreatedAt = "evil", "query", id(9), tuesday // these do not change
		return nil
	})
	is.NoErr(err)
	is.Equal(got, want)
	got, err = s.Get(ctx, "acme", "report", at(1))
	is.NoErr(err)
	is.Equal(got, want)
	page, err := s.Page(ctx, "acme", "report", paging.Query{Limit: 5, Q: "NAME B"})
	is.NoErr(err)
	is.Equal(page.Total, 1) // a search finds the new texts

	fault := errors.New("fault")
	_, err = s.Update(ctx, "acme", "report", at(1), func(e *content.Entity) error {
		e.Name = "worse"
		return fault
	})
	is.Equal(err, fault)
	got, err = s.Get(ctx, "acme", "report", at(1))
	is.NoErr(err)
	is.Equal(got, want)
	_, err = s.Update(ctx, "acme", "report", at(7), func(*content.Entity) error { return fault })
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testDelete(t *testing.T, s content.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	insert(t, s, newEntity(1, "a"))
	is.Equal(s.Delete(ctx, "acme", "report", at(1), func(content.Entity) error { return fault }), fault)
	is.NoErr(s.Delete(ctx, "acme", "report", content.Lookup{Owner: "jo", Slug: "a"}, yes))
	is.Equal(errs.CodeOf(s.Delete(ctx, "acme", "report", at(1), yes)), errs.NotFound)
}

func testIsolation(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newEntity(1, "a"), library(2))
	for tenant, want := range map[string]int{"acme": 2, "evil": 0, "none": 0} {
		n, err := s.Count(ctx, tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}
	for _, where := range []content.Lookup{at(1), {Owner: "jo", Slug: "a"}} {
		_, err := s.Get(ctx, "evil", "report", where)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Update(ctx, "evil", "report", where, func(*content.Entity) error { return nil })
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.CodeOf(s.Delete(ctx, "evil", "report", where, yes)), errs.NotFound)
	}
	page, err := s.Page(ctx, "evil", "report", paging.Query{Limit: 5})
	is.NoErr(err)
	is.Equal(page.Total, 0)
	n, err := s.Owned(ctx, "evil", "report", "jo")
	is.NoErr(err)
	is.Equal(n, 0)
	moved, err := s.Reassign(ctx, "evil", "report", "jo", "eve", tuesday)
	is.NoErr(err)
	is.Equal(len(moved), 0)
	n, err = s.Remove(ctx, "evil", "library", []string{id(2)})
	is.NoErr(err)
	is.Equal(n, 0)
	there, err := s.Transferable(ctx, "evil", keys(1))
	is.NoErr(err)
	is.Equal(len(there), 0)
	other := newEntity(1, "z")
	other.Name = "theirs"
	is.NoErr(s.PutAll(ctx, "evil", "report", []content.Entity{other}, []string{id(1)}))

	got, err := s.Get(ctx, "acme", "report", at(1))
	is.NoErr(err)
	is.Equal(got, newEntity(1, "a")) // untouched
	_, err = s.Get(ctx, "acme", content.Library, at(2))
	is.NoErr(err)
}

func testFailedTx(t *testing.T, s content.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	insert(t, s, newEntity(1, "old"))
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.Insert(ctx, "acme", newEntity(2, "new")))
		is.NoErr(s.Delete(ctx, "acme", "report", at(1), yes))
		return fault
	})
	is.Equal(err, fault)
	ids, err := s.IDs(ctx, "acme", "report")
	is.NoErr(err)
	is.Equal(ids, []string{id(1)})
}

func testParallelEdits(t *testing.T, s content.Store) {
	is := is.New(t)
	insert(t, s, newEntity(1, "n"))
	each(t, 20, func(int) error {
		_, err := s.Update(t.Context(), "acme", "report", content.Lookup{Owner: "jo", Slug: "n"},
			func(e *content.Entity) error {
				e.Name += "x"
				return nil
			})
		return err
	})
	got, err := s.Get(t.Context(), "acme", "report", at(1))
	is.NoErr(err)
	is.Equal(got.Name, "Name n"+strings.Repeat("x", 20))
}

// each runs n concurrent calls, all of which must succeed.
func each(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	fails := make(chan error, n)
	for i := range n {
		wg.Go(func() { fails <- f(i) })
	}
	wg.Wait()
	close(fails)
	for err := range fails {
		is.New(t).NoErr(err)
	}
}

func testPages(t *testing.T, s content.Store) {
	ctx := t.Context()
	for n := range 25 {
		e := newEntity(n, fmt.Sprintf("s%02d", n))
		e.Name = fmt.Sprintf("name %02d", n/2) // equal names, which are ordered by id
		if n%2 == 1 {
			e.Name = strings.ToUpper(e.Name) // case does not matter
		}
		e.CreatedAt = monday.Add(time.Duration(n%3) * time.Hour)
		e.UpdatedAt = e.CreatedAt
		insert(t, s, e)
	}
	for _, sort := range []string{"", "name", "-name", "createdAt", "-updatedAt"} {
		is := is.New(t)
		keys := pagingtest.TestCursor(t, sort, func(
			ctx context.Context, q paging.Query,
		) (paging.Page[content.Entity], error) {
			return s.Page(ctx, "acme", "report", q)
		}, func(e content.Entity) string { return e.ID })
		if sort == "" {
			is.True(slices.IsSorted(keys))
		}
	}
	pagingtest.TestBytes(t, func(ctx context.Context, q paging.Query) (paging.Page[content.Entity], error) {
		return s.Page(ctx, "acme", "report", q)
	})
	pagingtest.TestOrder(t, func(ctx context.Context, q paging.Query) (paging.Page[content.Entity], error) {
		return s.Page(ctx, "acme", "report", q)
	}, "name", func(a, b content.Entity) int {
		return strings.Compare(a.ID, b.ID)
	}, map[string]func(a, b content.Entity) int{
		"name": func(a, b content.Entity) int {
			return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		},
		"createdAt": func(a, b content.Entity) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updatedAt": func(a, b content.Entity) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	is := is.New(t)
	for q, total := range map[string]int{"S1": 10, "nAME 00": 2, "%": 0, "_": 0, "jo": 0} {
		page, err := s.Page(ctx, "acme", "report", paging.Query{Limit: 5, Q: q})
		is.NoErr(err)
		is.Equal(page.Total, total)
	}
	page, err := s.Page(ctx, "acme", "query", paging.Query{Limit: 5})
	is.NoErr(err)
	is.Equal(page.Total, 0) // of another kind
	_, err = s.Page(ctx, "acme", "report", paging.Query{Limit: 5, Sort: "data"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func testDrafts(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	draft, system, original := newEntity(2, "a"), newEntity(3, "b"), id(1)
	draft.EditingID, system.System = &original, true
	insert(t, s, newEntity(1, "a"), draft, system)
	page, err := s.Page(ctx, "acme", "report", paging.Query{Limit: 5})
	is.NoErr(err)
	is.Equal(page.Total, 2) // without the draft
	ids, err := s.IDs(ctx, "acme", "report")
	is.NoErr(err)
	is.Equal(ids, []string{id(1)}) // without the system entity
	there, err := s.Transferable(ctx, "acme", append(keys(1, 2, 3, 4), entity.Key{Kind: "query", ID: id(1)}))
	is.NoErr(err)
	is.Equal(there, map[entity.Key]bool{{Kind: "report", ID: id(1)}: true})
	some, err := s.Slugs(ctx, "acme", "report", []content.Lookup{
		{Owner: "jo", Slug: "a"}, {Owner: "jo", Slug: "b"}, {Owner: "mia", Slug: "a"}, {Owner: "jo", Slug: "c"},
	})
	is.NoErr(err)
	is.Equal(len(some), 2)
	n, err := s.Owned(ctx, "acme", "report", "jo")
	is.NoErr(err)
	is.Equal(n, 3)
}

func testSome(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	e := newEntity(1, "a")
	e.Data = json.RawMessage(`{"a":1}`)
	insert(t, s, e, newEntity(2, ""))
	some, err := s.Some(ctx, "acme", "report", []string{id(7), id(1)})
	is.NoErr(err)
	is.Equal(some, []content.Entity{e})
	few, meter := paging.WithBatch(ctx, 1)
	some, err = s.Some(few, "acme", "report", []string{id(1), id(2)})
	is.NoErr(err)
	is.True(len(some) == 1 || len(some) == 2 && !meter.Full()) // the caller may request the others again
	type read = func(context.Context, string, entity.Kind, []string) ([]content.Entity, error)
	for _, read := range []read{s.Heads, s.LockSome} {
		heads, err := read(ctx, "acme", "report", []string{id(2), id(7), id(1)})
		is.NoErr(err)
		is.Equal(len(heads), 2)
		is.Equal(len(heads[0].Data), 0)
	}
	for _, read := range []read{s.Some, s.Heads, s.LockSome} {
		none, err := read(ctx, "acme", "report", nil)
		is.NoErr(err)
		is.Equal(len(none), 0)
	}
	none, err := s.Slugs(ctx, "acme", "report", nil)
	is.NoErr(err)
	is.Equal(len(none), 0)
	there, err := s.Transferable(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(there), 0)
	is.NoErr(s.PutAll(ctx, "acme", "report", nil, nil))
	n, err := s.Remove(ctx, "acme", "report", nil)
	is.NoErr(err)
	is.Equal(n, 0)
}

func testPutAll(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newEntity(1, "a"))
	over, fresh := newEntity(1, "a2"), newEntity(2, "b")
	over.Name, over.OwnerID, over.Data, over.CreatedAt, over.UpdatedAt =
		"new", "mia", json.RawMessage(`{"n":1}`), tuesday, tuesday
	is.NoErr(s.PutAll(ctx, "acme", "report", []content.Entity{over, fresh}, []string{id(1)}))
	over.CreatedAt = monday // stays
	got, err := s.Get(ctx, "acme", "report", at(1))
	is.NoErr(err)
	is.Equal(got, over)
	err = s.PutAll(ctx, "acme", "report", []content.Entity{newEntity(3, "b")}, nil)
	is.Equal(errs.CodeOf(err), errs.Conflict)

	var many []content.Entity
	for n := range 500 {
		many = append(many, newEntity(1000+n, fmt.Sprintf("m%d", n)))
	}
	is.NoErr(s.PutAll(ctx, "acme", "report", many, nil))
	ids, err := s.IDs(ctx, "acme", "report")
	is.NoErr(err)
	is.Equal(len(ids), 502)
	n, err := s.Remove(ctx, "acme", "report", ids)
	is.NoErr(err)
	is.Equal(n, 502)
}

func testSlugsPassOn(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newEntity(1, "a"), newEntity(2, "b"))
	is.NoErr(s.PutAll(
		ctx, "acme", "report", []content.Entity{newEntity(1, "b"), newEntity(2, "c"), newEntity(3, "a")},
		[]string{id(1), id(2)},
	))
	for slug, n := range map[string]int{"a": 3, "b": 1, "c": 2} {
		got, err := s.Get(ctx, "acme", "report", content.Lookup{Owner: "jo", Slug: slug})
		is.NoErr(err)
		is.Equal(got.ID, id(n))
	}
}

func testReassign(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	draft, original, other := newEntity(3, "c"), id(1), newEntity(4, "")
	draft.EditingID, other.Kind = &original, "query"
	insert(t, s, newEntity(2, "b"), newEntity(1, "a"), draft, other)
	moved, err := s.Reassign(ctx, "acme", "report", "jo", "mia", tuesday)
	is.NoErr(err)
	is.Equal(len(moved), 3) // with the draft
	is.Equal([]string{moved[0].ID, moved[1].ID, moved[2].ID}, []string{id(1), id(2), id(3)})
	is.Equal(moved[0].OwnerID+*moved[0].Slug, "miaa")
	got, err := s.Get(ctx, "acme", "report", at(1))
	is.NoErr(err)
	is.Equal(got.OwnerID, "mia")
	is.Equal(got.UpdatedAt, tuesday)
	got, err = s.Get(ctx, "acme", "query", at(4))
	is.NoErr(err)
	is.Equal(got.OwnerID, "jo") // of another kind

	for _, c := range []struct {
		tenant string
		kind   entity.Kind
		owner  string
		want   []string
	}{
		{"evil", "report", "mia", nil}, {"acme", "query", "mia", nil}, {"acme", "report", "jo", nil},
		{"acme", "report", "mia", []string{id(3)}},
	} {
		ended, err := s.DeleteDrafts(ctx, c.tenant, c.kind, c.owner)
		is.NoErr(err)
		is.Equal(ended, c.want)
	}
	moved, err = s.Reassign(ctx, "acme", "report", "mia", "jo", tuesday)
	is.NoErr(err)
	is.Equal(len(moved), 2) // the draft is deleted
	_, err = s.Get(ctx, "acme", "report", at(3))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testReassignRenames(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	long := strings.Repeat("x", 128)
	theirs, theirLong := newEntity(10, "a"), newEntity(11, long)
	theirs.OwnerID, theirLong.OwnerID = "mia", "mia"
	insert(t, s, theirs, theirLong, newEntity(1, "a"), newEntity(2, "a-2"), newEntity(3, long), newEntity(4, "b"))
	moved, err := s.Reassign(ctx, "acme", "report", "jo", "mia", tuesday)
	is.NoErr(err)
	for i, want := range []string{"a-3", "a-2", strings.Repeat("x", 126) + "-2", "b"} {
		is.Equal(*moved[i].Slug, want)
		got, err := s.Get(ctx, "acme", "report", content.Lookup{Owner: "mia", Slug: want})
		is.NoErr(err)
		is.Equal(got.ID, id(i+1))
	}
}

func owners(t *testing.T, s content.Store, tenant string, kind entity.Kind) string {
	t.Helper()
	ids, err := s.Owners(t.Context(), tenant, kind)
	is.New(t).NoErr(err)
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func testRenameOwners(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	draft, theirs, query, original := newEntity(2, "a"), newEntity(3, "a"), newEntity(4, "a"), id(1)
	draft.EditingID, theirs.OwnerID, query.Kind = &original, "mia", "query"
	insert(t, s, newEntity(1, "a"), draft, theirs, query)
	is.Equal(owners(t, s, "acme", "report"), "jo mia")
	is.Equal(owners(t, s, "acme", "query"), "jo")
	is.Equal(owners(t, s, "evil", "report"), "")
	names := map[string]string{"jo": "Joe", "mia": "maria", "none": "nobody"}
	is.NoErr(s.RenameOwners(ctx, "evil", "report", names))
	is.Equal(owners(t, s, "acme", "report"), "jo mia") // of another tenant
	is.NoErr(s.RenameOwners(ctx, "acme", "report", names))
	is.Equal(owners(t, s, "acme", "report"), "Joe maria")
	is.Equal(owners(t, s, "acme", "query"), "jo") // of another kind
	for n, owner := range map[int]string{1: "Joe", 2: "Joe", 3: "maria"} {
		got, err := s.Get(ctx, "acme", "report", at(n))
		is.NoErr(err)
		is.Equal(got.OwnerID, owner)
		is.Equal(got.EditingID != nil, n == 2) // a draft is still a draft
		is.Equal(got.UpdatedAt, monday)        // a new name of the owner is not a change
	}
}

// testRemoveLibraries: entities of other kinds are not removed.
func testRemoveLibraries(t *testing.T, s content.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, library(1), library(2), library(3), newEntity(3, ""))
	is.NoErr(s.Delete(ctx, "acme", content.Library, at(1), yes))
	n, err := s.Remove(ctx, "acme", content.Library, []string{id(3), id(1)})
	is.NoErr(err)
	is.Equal(n, 1)
	ids, err := s.IDs(ctx, "acme", content.Library)
	is.NoErr(err)
	is.Equal(ids, []string{id(2)})
	_, err = s.Get(ctx, "acme", "report", at(3))
	is.NoErr(err)
}

func testCanceled(t *testing.T, s content.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Insert(ctx, "acme", newEntity(1, "a")), context.Canceled))
	ids, err := s.IDs(t.Context(), "acme", "report")
	is.NoErr(err)
	is.Equal(len(ids), 0)
}
