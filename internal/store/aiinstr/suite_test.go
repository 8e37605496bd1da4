package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/aiinstr"
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
// evil, each with the principals jo, mia and the UUID that ends with 99.
func testStore(t *testing.T, open func(t *testing.T) aiinstr.Store) {
	for name, check := range map[string]func(*testing.T, aiinstr.Store){
		"RoundTrip":           testRoundTrip,
		"TakenSlug":           testTakenSlug,
		"Update":              testUpdate,
		"Delete":              testDelete,
		"Isolation":           testIsolation,
		"Search":              testSearch,
		"FailedTxWritesNone":  testFailedTx,
		"ParallelEditsLand":   testParallelEdits,
		"Pages":               testPages,
		"Contents":            testContents,
		"PutAll":              testPutAll,
		"SlugsPassOn":         testSlugsPassOn,
		"OwnedAndReassigned":  testReassign,
		"ReassignTells":       testReassignTells,
		"RenameOwners":        testRenameOwners,
		"NoOwner":             testNoOwner,
		"CanceledWritesNone":  testCanceled,
		"EmptyListsAreNoSQLs": testEmpty,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// id returns the nth id.
func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

func instruction(n int, slug string) aiinstr.Instruction {
	return aiinstr.Instruction{
		Tenant:    "acme",
		ID:        id(n),
		Slug:      slug,
		Content:   "content of " + slug,
		OwnerID:   "jo",
		CreatedAt: monday,
		UpdatedAt: monday,
	}
}

func insert(t *testing.T, s aiinstr.Store, all ...aiinstr.Instruction) {
	t.Helper()
	for _, i := range all {
		is.New(t).NoErr(s.Insert(t.Context(), i.Tenant, i))
	}
}

func testRoundTrip(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	about := "short ✓\nand long"
	for n, want := range []aiinstr.Instruction{
		{
			Slug:        "tone",
			Description: &about,
			Content:     " '; DROP TABLE x; --?$1 \\ ${other} \t\r\n",
			OwnerID:     "jo",
			CreatedAt:   monday,
			UpdatedAt:   tuesday,
		},
		{
			Slug:      strings.Repeat("A", 128),
			Content:   strings.Repeat("ü", 128<<10),
			OwnerID:   id(99),
			CreatedAt: monday,
			UpdatedAt: monday,
		},
	} {
		want.Tenant, want.ID = "acme", id(n)
		if n == 0 {
			fieldtest.Full(t, want)
		}
		insert(t, s, want)
		for _, key := range []string{want.ID, want.Slug} {
			got, err := s.Get(ctx, "acme", key)
			is.NoErr(err)
			is.Equal(got, want)
		}
	}
	for _, key := range []string{"TONE", "other", id(7)} { // case matters
		_, err := s.Get(ctx, "acme", key)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

func testTakenSlug(t *testing.T, s aiinstr.Store) {
	is := is.New(t)
	insert(t, s, instruction(1, "tone"))
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", instruction(2, "tone"))), errs.Conflict)
	insert(t, s, instruction(3, "Tone"))
	other := instruction(1, "tone")
	other.Tenant = "evil"
	insert(t, s, other) // with the same id and slug in another tenant
}

func testUpdate(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, instruction(1, "tone"))
	about := "about"
	got, err := s.Update(ctx, "acme", "tone", func(i *aiinstr.Instruction) error {
		i.Description, i.Content, i.UpdatedAt = &about, "new", tuesday
		i.Tenant, i.ID, i.Slug, i.OwnerID, i.CreatedAt = "evil", id(9), "other", "eve", tuesday // stay
		return nil
	})
	want := instruction(1, "tone")
	want.Description, want.Content, want.UpdatedAt = &about, "new", tuesday
	is.NoErr(err)
	is.Equal(got, want)
	got, err = s.Get(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(got, want)
	page, err := s.Page(ctx, "acme", paging.Query{Limit: 5, Q: "ABOUT"})
	is.NoErr(err)
	is.Equal(page.Total, 1) // a search finds the new texts

	fault := errors.New("fault")
	_, err = s.Update(ctx, "acme", id(1), func(i *aiinstr.Instruction) error {
		i.Content = "worse"
		return fault
	})
	is.Equal(err, fault)
	got, err = s.Get(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(got, want)
	_, err = s.Update(ctx, "acme", "none", func(*aiinstr.Instruction) error { return fault })
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testDelete(t *testing.T, s aiinstr.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	insert(t, s, instruction(1, "tone"), instruction(2, "style"))
	is.Equal(s.Delete(ctx, "acme", "tone", func(aiinstr.Instruction) error { return fault }), fault)
	yes := func(i aiinstr.Instruction) error {
		is.Equal(i.OwnerID, "jo")
		return nil
	}
	is.NoErr(s.Delete(ctx, "acme", "tone", yes))
	is.Equal(errs.CodeOf(s.Delete(ctx, "acme", "tone", yes)), errs.NotFound)
	is.NoErr(s.Delete(ctx, "acme", id(2), yes))
	ids, err := s.IDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(len(ids), 0)
}

func testIsolation(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, instruction(1, "tone"))
	for tenant, want := range map[string]int{"acme": 1, "evil": 0, "none": 0} {
		n, err := s.Count(ctx, tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}
	yes := func(aiinstr.Instruction) error { return nil }
	for _, key := range []string{"tone", id(1)} {
		_, err := s.Get(ctx, "evil", key)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Update(ctx, "evil", key, func(*aiinstr.Instruction) error { return nil })
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.CodeOf(s.Delete(ctx, "evil", key, yes)), errs.NotFound)
	}
	page, err := s.Page(ctx, "evil", paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Total, 0)
	contents, err := s.Contents(ctx, "evil", []string{"tone"}, 100)
	is.NoErr(err)
	is.Equal(len(contents), 0)
	some, err := s.Some(ctx, "evil", []string{id(1)})
	is.NoErr(err)
	is.Equal(len(some), 0)
	slugs, err := s.Slugs(ctx, "evil", []string{"tone"})
	is.NoErr(err)
	is.Equal(len(slugs), 0)
	n, err := s.Remove(ctx, "evil", []string{id(1)})
	is.NoErr(err)
	is.Equal(n, 0)
	n, err = s.Owned(ctx, "evil", "jo")
	is.NoErr(err)
	is.Equal(n, 0)
	moved, err := s.Reassign(ctx, "evil", "jo", "eve", tuesday)
	is.NoErr(err)
	is.Equal(len(moved), 0)
	is.NoErr(s.PutAll(ctx, "evil", []aiinstr.Instruction{instruction(1, "tone")}, []string{id(1)}))
	got, err := s.Get(ctx, "acme", "tone")
	is.NoErr(err)
	is.Equal(got, instruction(1, "tone")) // untouched
}

func testFailedTx(t *testing.T, s aiinstr.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	insert(t, s, instruction(1, "old"))
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.Insert(ctx, "acme", instruction(2, "new")))
		is.NoErr(s.Delete(ctx, "acme", "old", func(aiinstr.Instruction) error { return nil }))
		return fault
	})
	is.Equal(err, fault)
	ids, err := s.IDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(ids, []string{id(1)})
}

func testParallelEdits(t *testing.T, s aiinstr.Store) {
	is := is.New(t)
	insert(t, s, instruction(1, "n"))
	var wg sync.WaitGroup
	fails := make(chan error, 20)
	for range 20 {
		wg.Go(func() {
			_, err := s.Update(t.Context(), "acme", "n", func(i *aiinstr.Instruction) error {
				i.Content += "x"
				return nil
			})
			fails <- err
		})
	}
	wg.Wait()
	close(fails)
	for err := range fails {
		is.NoErr(err)
	}
	got, err := s.Get(t.Context(), "acme", "n")
	is.NoErr(err)
	is.Equal(got.Content, "content of n"+strings.Repeat("x", 20))
}

func testPages(t *testing.T, s aiinstr.Store) {
	ctx := t.Context()
	for n := range 25 {
		i := instruction(n, fmt.Sprintf("Slug-%02d", n*7%25))    // no two columns have the same order
		i.CreatedAt = monday.Add(time.Duration(n%3) * time.Hour) // equal times, which are ordered by id
		i.UpdatedAt = monday.Add(time.Duration(n%4) * 24 * time.Hour)
		insert(t, s, i)
	}
	for _, sort := range []string{"", "slug", "-slug", "createdAt", "-updatedAt"} {
		is := is.New(t)
		keys := pagingtest.TestCursor(t, sort, func(
			ctx context.Context, q paging.Query,
		) (paging.Page[aiinstr.Instruction], error) {
			return s.Page(ctx, "acme", q)
		}, func(i aiinstr.Instruction) string { return i.Slug })
		if sort == "" {
			is.True(slices.IsSorted(keys))
		}
	}
	pagingtest.TestBytes(t, func(ctx context.Context, q paging.Query) (paging.Page[aiinstr.Instruction], error) {
		return s.Page(ctx, "acme", q)
	})
	pagingtest.TestOrder(t, func(ctx context.Context, q paging.Query) (paging.Page[aiinstr.Instruction], error) {
		return s.Page(ctx, "acme", q)
	}, "slug", func(a, b aiinstr.Instruction) int {
		return strings.Compare(a.ID, b.ID)
	}, map[string]func(a, b aiinstr.Instruction) int{
		"slug":      func(a, b aiinstr.Instruction) int { return strings.Compare(a.Slug, b.Slug) },
		"createdAt": func(a, b aiinstr.Instruction) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updatedAt": func(a, b aiinstr.Instruction) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	is := is.New(t)
	for q, total := range map[string]int{"sLUG-1": 10, "%": 0, "_": 0, "content": 0} {
		page, err := s.Page(ctx, "acme", paging.Query{Limit: 5, Q: q})
		is.NoErr(err)
		is.Equal(page.Total, total)
	}
	_, err := s.Page(ctx, "acme", paging.Query{Limit: 5, Sort: "content"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func testContents(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, instruction(1, "a"), instruction(2, "b"), instruction(3, "c"))
	got, err := s.Contents(ctx, "acme", []string{"a", "b", "none"}, 24)
	is.NoErr(err)
	is.Equal(got, map[string]string{"a": "content of a", "b": "content of b"})
	_, err = s.Contents(ctx, "acme", []string{"a", "b"}, 23)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	many := []string{"c"}
	for n := range 25_000 { // more than fit one statement
		many = append(many, fmt.Sprintf("x%d", n))
	}
	got, err = s.Contents(ctx, "acme", append(many, "a"), 24)
	is.NoErr(err)
	is.Equal(len(got), 2)
}

func testPutAll(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, instruction(1, "a"))
	over, fresh := instruction(1, "a2"), instruction(2, "b")
	over.Content, over.OwnerID, over.CreatedAt, over.UpdatedAt = "new", "mia", tuesday, tuesday
	is.NoErr(s.PutAll(ctx, "acme", []aiinstr.Instruction{over, fresh}, []string{over.ID}))
	over.CreatedAt = monday // stays
	some, err := s.Some(ctx, "acme", []string{id(2), id(1), id(7)})
	is.NoErr(err)
	slices.SortFunc(some, func(a, b aiinstr.Instruction) int { return strings.Compare(a.ID, b.ID) })
	is.Equal(some, []aiinstr.Instruction{over, fresh})
	err = s.PutAll(ctx, "acme", []aiinstr.Instruction{instruction(3, "b")}, nil)
	is.Equal(errs.CodeOf(err), errs.Conflict)
}

func testSlugsPassOn(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, instruction(1, "a"), instruction(2, "b"))
	is.NoErr(s.PutAll(
		ctx, "acme", []aiinstr.Instruction{instruction(1, "b"), instruction(2, "c"), instruction(3, "a")},
		[]string{id(1), id(2)},
	))
	slugs, err := s.Slugs(ctx, "acme", []string{"a", "b", "c", "d"})
	is.NoErr(err)
	is.Equal(slugs, map[string]string{"a": id(3), "b": id(1), "c": id(2)})
}

func testReassign(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	other := instruction(3, "c")
	other.OwnerID = "mia"
	insert(t, s, instruction(2, "b"), instruction(1, "a"), other)
	moved, err := s.Reassign(ctx, "acme", "jo", "mia", tuesday)
	is.NoErr(err)
	is.Equal(len(moved), 2)
	is.Equal(moved[0].ID+moved[0].Slug+moved[0].OwnerID, id(1)+"amia")
	for owner, want := range map[string]int{"jo": 0, "mia": 3} {
		n, err := s.Owned(ctx, "acme", owner)
		is.NoErr(err)
		is.Equal(n, want)
	}
	got, err := s.Get(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(got.Content, "content of a")
	is.Equal(got.UpdatedAt, tuesday)
}

func owners(t *testing.T, s aiinstr.Store, tenant string) string {
	t.Helper()
	ids, err := s.Owners(t.Context(), tenant)
	is.New(t).NoErr(err)
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func testRenameOwners(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	theirs := instruction(3, "c")
	theirs.OwnerID = "mia"
	insert(t, s, instruction(1, "a"), instruction(2, "b"), theirs)
	is.Equal(owners(t, s, "acme"), "jo mia")
	is.Equal(owners(t, s, "evil"), "")
	is.NoErr(s.RenameOwners(ctx, "evil", map[string]string{"jo": "eve"}))
	is.NoErr(s.RenameOwners(ctx, "acme", map[string]string{"jo": "Joe", "none": "nobody"}))
	is.Equal(owners(t, s, "acme"), "Joe mia")
	got, err := s.Get(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(got.OwnerID, "Joe")
	is.Equal(got.UpdatedAt, monday) // a new owner is not a change
}

func testCanceled(t *testing.T, s aiinstr.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Insert(ctx, "acme", instruction(1, "a")), context.Canceled))
	ids, err := s.IDs(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(len(ids), 0)
}

func testEmpty(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	contents, err := s.Contents(ctx, "acme", nil, 0)
	is.NoErr(err)
	is.Equal(len(contents), 0)
	some, err := s.Some(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(some), 0)
	slugs, err := s.Slugs(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(slugs), 0)
	is.NoErr(s.PutAll(ctx, "acme", nil, nil))
	n, err := s.Remove(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(n, 0)
}
