package bunstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/paging"
)

func testSome(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	a := newApp(1, "a")
	a.Defn = json.RawMessage(`{"a":1}`)
	insert(t, s, a, newDraft(2, 1, ""), newApp(3, "c"))
	trash(t, s, 3, tuesday)
	some, err := s.Some(ctx, "acme", numbered(7, 1))
	is.NoErr(err)
	is.Equal(some, []apps.App{a})
	few, meter := paging.WithBatch(ctx, 1)
	some, err = s.Some(few, "acme", numbered(1, 2))
	is.NoErr(err)
	is.True(len(some) == 1 || len(some) == 2 && !meter.Full()) // the caller may request the others again
	for name, read := range map[string]func(context.Context, string, []string) ([]apps.App, error){
		"Some":     s.Some,
		"Heads":    s.Heads,
		"LockSome": s.LockSome,
	} {
		none, err := read(ctx, "acme", nil)
		is.NoErr(err)
		is.Equal(len(none), 0)
		all, err := read(ctx, "acme", numbered(3, 2, 7, 1)) // including the draft and the deleted app
		is.NoErr(err)
		slices.SortFunc(all, func(a, b apps.App) int { return strings.Compare(a.ID, b.ID) })
		is.Equal(ids(all), numbered(1, 2, 3))
		is.Equal(len(all[0].Defn) > 0, name == "Some")
	}
	library := func(n int) string { return newApp(n, "").LibraryID }
	libraries, err := s.Libraries(ctx, "acme", []string{library(1), library(2), library(3), library(7)})
	is.NoErr(err)
	is.Equal(libraries, map[string]bool{library(1): true, library(2): true, library(3): true})
	exist, err := s.Exist(ctx, "acme", numbered(1, 2, 3, 7))
	is.NoErr(err)
	// including the draft and the deleted app
	is.Equal(exist, map[string]bool{numbered(1)[0]: true, numbered(2)[0]: true, numbered(3)[0]: true})
	none, err := s.Slugs(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(none), 0)
	is.NoErr(s.PutAll(ctx, "acme", nil, nil))
	none, err = s.Remove(ctx, "acme", nil)
	is.NoErr(err)
	is.Equal(len(none), 0)
	is.NoErr(s.SetShared(ctx, "acme", nil))
	is.NoErr(s.RenameUsers(ctx, "acme", nil))
}

func testUsing(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	tagged, bound, draft, both := newApp(1, "a"), newApp(2, "b"), newDraft(3, 2, ""), newApp(4, "d")
	tagged.Tags, bound.Tags, both.Tags = []string{id(50), id(51)}, nil, []string{id(51)}
	sales := []apps.Dataset{{Alias: "sales", DatasetID: id(60)}, {Alias: "more", DatasetID: id(61)}}
	tagged.Datasets, bound.Datasets, draft.Datasets, both.Datasets = nil, sales, sales[1:], sales
	insert(t, s, tagged, bound, draft, both, newApp(5, "e"))
	trash(t, s, 4, tuesday)
	for _, test := range []struct {
		tags, datasets []string
		want           []string
	}{
		{numbered(50), nil, numbered(1)},
		{numbered(51, 99), nil, numbered(1, 4)},
		{nil, numbered(61), numbered(2, 3, 4)},
		{numbered(50), numbered(60), numbered(1, 2, 4)},
		{numbered(60), numbered(50), nil},
		{nil, nil, nil},
	} {
		using, err := s.Using(ctx, "acme", test.tags, test.datasets)
		is.NoErr(err)
		is.Equal(using, test.want)
		using, err = s.Using(ctx, "evil", test.tags, test.datasets)
		is.NoErr(err)
		is.Equal(len(using), 0)
	}
}

func testAwaitOwner(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	for n := range 3 {
		insert(t, s, newApp(n, strconv.Itoa(n)))
	}
	is.NoErr(s.AwaitOwner(ctx, "evil", numbered(0, 1, 2)))
	is.NoErr(s.AwaitOwner(ctx, "acme", append(numbered(0, 2), id(99))))
	for n, want := range []bool{true, false, true} {
		a, err := s.Head(ctx, "acme", at(n))
		is.NoErr(err)
		is.Equal(a.AwaitsOwner, want)
	}
}

func testPutAll(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	text, stored := "text", newApp(1, "a")
	stored.Lock, stored.Base, stored.Shared = drafts.Lock{
		Session:     &text,
		HeartbeatAt: &monday,
		LockedBy:    &text,
	}, "base", true
	stored.WebhookSecret = "sealed"
	insert(t, s, stored)
	over, fresh := newApp(1, "a2"), newApp(2, "b")
	over.Name, over.OwnerID, over.Defn, over.Settings, over.Type =
		"new", "mia", json.RawMessage(`{"n":1}`), json.RawMessage(`{"s":1}`), apps.Full
	over.Description, over.Sealed, over.Origin, over.IsManaged, over.FolderID, over.AwaitsOwner =
		&text, "sealed", &text, true, &text, true
	over.Source, over.SourceID, over.DefnUpdatedAt, over.DeployedAt, over.UpdatedAt =
		&text, &text, &tuesday, &tuesday, tuesday
	over.Datasets, over.Tags = []apps.Dataset{{Alias: "a", DatasetID: id(3), Label: "A"}}, numbered(7)
	put := over
	// these do not change
	put.CreatedAt, put.LibraryID, put.EditingID, put.DeletedAt, put.Base = tuesday, id(77), &text, &tuesday, "other"
	put.WebhookSecret = "other"
	is.NoErr(s.PutAll(ctx, "acme", []apps.App{put, fresh}, numbered(1)))
	over.Lock, over.Base, over.Shared, over.WebhookSecret =
		stored.Lock, stored.Base, stored.Shared, stored.WebhookSecret
	got, err := s.Get(ctx, "acme", at(1))
	is.NoErr(err)
	is.Equal(got, over)
	got, err = s.Get(ctx, "acme", at(2))
	is.NoErr(err)
	is.Equal(got, fresh)
	page, err := s.Page(ctx, "acme", apps.Viewer{All: true}, paging.Query{Limit: 5, Q: "new"})
	is.NoErr(err)
	is.Equal(page.Total, 1)
	err = s.PutAll(ctx, "acme", []apps.App{newApp(3, "b")}, nil)
	is.Equal(errs.CodeOf(err), errs.Conflict)

	var many []apps.App
	for n := range 200 {
		many = append(many, newApp(1000+n, fmt.Sprintf("m%d", n)))
	}
	is.NoErr(s.PutAll(ctx, "acme", many, nil))
	all, err := s.IDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(len(all), 202)
	is.True(slices.IsSorted(all))
	gone, err := s.Remove(ctx, "acme", all)
	is.NoErr(err)
	is.Equal(len(gone), 202)
}

func testSlugsPassOn(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(1, "a"), newApp(2, "b"))
	is.NoErr(s.PutAll(ctx, "acme", []apps.App{newApp(1, "b"), newApp(2, "c"), newApp(3, "a")}, numbered(1, 2)))
	for slug, n := range map[string]int{"a": 3, "b": 1, "c": 2} {
		got, err := s.Get(ctx, "acme", apps.Lookup{Owner: "jo", Slug: slug})
		is.NoErr(err)
		is.Equal(got.ID, id(n))
	}
}

func testRemove(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	a := newApp(1, "a")
	a.Defn = json.RawMessage(`{"a":1}`)
	insert(t, s, a, newApp(2, "b"), newApp(3, "c"), newDraft(11, 1, "a"), newDraft(12, 2, "b"), newApp(4, "d"))
	for _, n := range []int{1, 2, 4, 11} {
		share(t, s, n, "mia", shares.Use)
	}
	trash(t, s, 3, tuesday)
	gone, err := s.Remove(ctx, "acme", numbered(3, 1, 9, 12)) // with a deleted app, a missing one, and a draft
	is.NoErr(err)
	slices.SortFunc(gone, func(a, b apps.App) int { return strings.Compare(a.ID, b.ID) })
	is.Equal(ids(gone), numbered(1, 3, 11, 12))
	is.Equal(gone[0].LibraryID, a.LibraryID)
	is.Equal(len(gone[0].Defn), 0)
	for n, left := range map[int]int{1: 0, 2: 1, 4: 1, 11: 0} {
		all, err := s.Shares().All(ctx, "acme", id(n))
		is.NoErr(err)
		is.Equal(len(all), left)
	}
	all, err := s.IDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(all, numbered(2, 4))
	_, err = s.Draft(ctx, "acme", id(2))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testSetShared(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(1, "a"), newApp(2, "b"), newApp(3, "c"))
	share(t, s, 1, "mia", shares.Use)
	share(t, s, 2, "mia", shares.None)
	share(t, s, 3, "mia", shares.Use)
	shared := func(n int) bool {
		a, err := s.Get(ctx, "acme", at(n))
		is.NoErr(err)
		is.Equal(a.UpdatedAt, monday) // a new owner is not a change
		return a.Shared
	}
	is.NoErr(s.SetShared(ctx, "acme", numbered(1, 2)))
	is.Equal([]bool{shared(1), shared(2), shared(3)}, []bool{true, false, false})
	is.NoErr(s.Shares().Remove(ctx, "acme", numbered(1)))
	is.NoErr(s.SetShared(ctx, "acme", numbered(1, 3)))
	is.Equal([]bool{shared(1), shared(2), shared(3)}, []bool{false, false, true})
}

func testReassign(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(2, "b"), newApp(1, "a"), newDraft(3, 1, "a"), newApp(4, "d"))
	trash(t, s, 4, tuesday)
	later := tuesday.AddDate(0, 0, 1)
	moved, err := s.Reassign(ctx, "acme", "jo", "red", later)
	is.NoErr(err)
	is.Equal(ids(moved), numbered(1, 2, 3, 4)) // with the draft and the deleted app
	is.Equal(moved[0].OwnerID+*moved[0].Slug, "reda")
	is.Equal(len(moved[0].Defn), 0)
	got, err := s.Get(ctx, "acme", apps.Lookup{Owner: "red", Slug: "a"})
	is.NoErr(err)
	is.Equal([]string{got.OwnerID, got.UpdatedAt.String()}, []string{"red", later.String()})
	moved, err = s.Reassign(ctx, "acme", "jo", "red", later)
	is.NoErr(err)
	is.Equal(len(moved), 0)
}

func testReassignRenames(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	long := strings.Repeat("x", 128)
	theirs, theirLong, theirTrash := newApp(10, "a"), newApp(11, long), newApp(12, "b")
	theirs.OwnerID, theirLong.OwnerID, theirTrash.OwnerID = "mia", "mia", "mia"
	insert(t, s, theirs, theirLong, theirTrash, newApp(1, "a"), newApp(2, "a-2"), newApp(3, long), newApp(4, "b"))
	trash(t, s, 12, tuesday) // its slug is free
	insert(t, s, newDraft(5, 1, "a"))
	moved, err := s.Reassign(ctx, "acme", "jo", "mia", tuesday)
	is.NoErr(err)
	for i, want := range []string{"a-3", "a-2", strings.Repeat("x", 126) + "-2", "b"} {
		is.Equal(*moved[i].Slug, want)
		got, err := s.Get(ctx, "acme", apps.Lookup{Owner: "mia", Slug: want})
		is.NoErr(err)
		is.Equal(got.ID, id(i+1))
	}
	is.Equal(*moved[4].Slug, "a") // a draft keeps its slug
	page, err := s.Page(ctx, "acme", apps.Viewer{All: true}, paging.Query{Limit: 5, Q: "a-3"})
	is.NoErr(err)
	is.Equal(page.Total, 1) // a search finds its new slug
}

func owners(t *testing.T, s apps.Store, tenant string) string {
	t.Helper()
	all, err := s.Owners(t.Context(), tenant)
	is.New(t).NoErr(err)
	slices.Sort(all)
	return strings.Join(all, " ")
}

func testRenameUsers(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	jo, red := "jo", "red"
	draft, theirs, other := newDraft(2, 1, "a"), newApp(3, "a"), newApp(4, "d")
	draft.Lock, theirs.OwnerID = drafts.Lock{Session: &red, HeartbeatAt: &monday, LockedBy: &jo}, "mia"
	other.OwnerID, other.Lock.LockedBy = "red", &red
	insert(t, s, newApp(1, "a"), draft, theirs, other)
	is.Equal(owners(t, s, "acme"), "jo mia red")
	names := map[string]string{"jo": "Joe", "mia": "maria", "none": "nobody"}
	is.NoErr(s.RenameUsers(ctx, "evil", names))
	is.Equal(owners(t, s, "acme"), "jo mia red") // of another tenant
	is.NoErr(s.RenameUsers(ctx, "acme", names))
	is.Equal(owners(t, s, "acme"), "Joe maria red")
	for n, want := range map[int][2]string{1: {"Joe", ""}, 2: {"Joe", "Joe"}, 3: {"maria", ""}, 4: {"red", "red"}} {
		got, err := s.Get(ctx, "acme", at(n))
		is.NoErr(err)
		lockedBy := ""
		if got.Lock.LockedBy != nil {
			lockedBy = *got.Lock.LockedBy
		}
		is.Equal([2]string{got.OwnerID, lockedBy}, want)
		is.Equal(got.EditingID != nil, n == 2) // a draft is still a draft
		is.Equal(got.UpdatedAt, monday)        // a new name of the owner is not a change
	}
}
