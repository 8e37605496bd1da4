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

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// Principals returns the ids of the principals in the tenants of an empty Store.
func Principals() []string { return []string{"jo", "mia", "red", "blue", "green"} }

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil, each with the Principals.
func testStore(t *testing.T, open func(t *testing.T) apps.Store) {
	for name, check := range map[string]func(*testing.T, apps.Store){
		"RoundTrip":            testRoundTrip,
		"Slugs":                testSlugs,
		"Update":               testUpdate,
		"Hold":                 testHold,
		"Deleted":              testDeleted,
		"OneDraft":             testOneDraft,
		"Drafts":               testDrafts,
		"Lock":                 testLock,
		"Isolation":            testIsolation,
		"Search":               testSearch,
		"FailedTxWritesNone":   testFailedTx,
		"CanceledWritesNone":   testCanceled,
		"ParallelEditsAllLand": testParallelEdits,
		"Pages":                testPages,
		"Visible":              testVisible,
		"ManyPrincipals":       testManyPrincipals,
		"Some":                 testSome,
		"Using":                testUsing,
		"AwaitOwner":           testAwaitOwner,
		"PutAll":               testPutAll,
		"SlugsPassOn":          testSlugsPassOn,
		"Remove":               testRemove,
		"SetShared":            testSetShared,
		"Reassign":             testReassign,
		"ReassignRenames":      testReassignRenames,
		"ReassignTells":        func(t *testing.T, s apps.Store) { ownership(s).ReassignTells(t, tuesday) },
		"RenameUsers":          testRenameUsers,
		"NoOwner":              testNoOwner,
		"Favorites":            testFavorites,
		"Views":                testViews,
		"Uses":                 testUses,
		"Recent":               testRecent,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// id returns the nth id.
func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

func at(n int) apps.Lookup { return apps.Lookup{ID: id(n)} }

func newApp(n int, slug string) apps.App {
	a := apps.App{
		Tenant: "acme", ID: id(n), Type: apps.Report,
		Name: "Name " + slug, OwnerID: "jo", Defn: json.RawMessage(`{}`), Settings: json.RawMessage(`{}`),
		LibraryID: id(n + 1_000_000), CreatedAt: monday, UpdatedAt: monday,
	}
	if slug != "" {
		a.Slug = &slug
	}
	return a
}

// newDraft returns the nth row, a draft of an app.
func newDraft(n, of int, slug string) apps.App {
	a, original := newApp(n, slug), id(of)
	a.EditingID = &original
	return a
}

func insert(t *testing.T, s apps.Store, all ...apps.App) {
	t.Helper()
	for _, a := range all {
		is.New(t).NoErr(s.Insert(t.Context(), a.Tenant, a))
	}
}

// share adds a share of the nth app for a principal, with the row of the app locked.
func share(t *testing.T, s apps.Store, n int, principal string, level shares.Level) {
	t.Helper()
	is.New(t).NoErr(s.InTx(t.Context(), func(ctx context.Context) error {
		if _, err := s.Lock(ctx, "acme", at(n)); err != nil {
			return err
		}
		_, err := s.Shares().Put(ctx, "acme", id(n), shares.Share{
			PrincipalID: principal,
			Level:       level,
			CreatedAt:   monday,
			UpdatedAt:   monday,
		})
		return err
	}))
}

func trash(t *testing.T, s apps.Store, n int, at time.Time) {
	t.Helper()
	_, err := s.Update(t.Context(), "acme", apps.Lookup{ID: id(n)}, func(a *apps.App) error {
		a.DeletedAt = &at
		return nil
	})
	is.New(t).NoErr(err)
}

func ids(all []apps.App) (ids []string) {
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	return ids
}

// numbered returns the ids with some numbers.
func numbered(ns ...int) (ids []string) {
	for _, n := range ns {
		ids = append(ids, id(n))
	}
	return ids
}

func testRoundTrip(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	slug, text, editing, user, later :=
		strings.Repeat("A", 128), "'; DROP TABLE x; --?$1 \\ ✓\n", id(0), "mia", tuesday.Add(time.Microsecond)
	for n, want := range []apps.App{
		{Type: apps.Full, Name: "Every field", Slug: &slug,
			Description: &text, Defn: json.RawMessage(`{"a":[1,{"b":"\u0000ü"}]}`),
			Sealed: "sealed", WebhookSecret: "sealed, too",
			Settings: json.RawMessage(`{"s":1}`), Origin: &text,
			Base: "base", Lock: drafts.Lock{Session: &text, HeartbeatAt: &later, LockedBy: &user},
			Shared: true, IsManaged: true, FolderID: &slug, Tags: numbered(7, 8),
			Datasets: []apps.Dataset{{Alias: "a", DatasetID: id(3), Label: "\u0000ü"}, {Alias: "b", DatasetID: id(3)}},
			Source:   &text, SourceID: &text,
			DefnUpdatedAt: &later, DeployedAt: &later, AwaitsOwner: true},
		{
			Type:     apps.Report,
			Name:     strings.Repeat("ü", 255),
			Defn:     json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`),
			Settings: json.RawMessage(`{}`),
		},
		{
			Type:      apps.Report,
			Name:      "Draft",
			Slug:      &slug,
			EditingID: &editing,
			Defn:      json.RawMessage(`{}`),
			Settings:  json.RawMessage(`{}`),
		},
	} {
		want.Tenant, want.ID, want.OwnerID, want.LibraryID, want.CreatedAt, want.UpdatedAt =
			"acme", id(n), "jo", id(100+n), monday, tuesday
		if n == 0 {
			fieldtest.Full(t, want, "EditingID", "DeletedAt") // the draft has EditingID; testDeleted has DeletedAt
		}
		insert(t, s, want)
		got, err := s.Get(ctx, "acme", at(n))
		is.NoErr(err)
		is.Equal(got, want)
		got, err = s.Head(ctx, "acme", at(n))
		is.NoErr(err)
		want.Defn = nil
		is.Equal(got, want)
	}
	got, err := s.Get(ctx, "acme", apps.Lookup{Owner: "jo", Slug: slug})
	is.NoErr(err)
	is.Equal(got.ID, id(0)) // not the draft
	for n := range 3 {
		got, err := s.Get(ctx, "acme", apps.Lookup{Library: id(100 + n)})
		is.NoErr(err)
		is.Equal(got.ID, id(n)) // also of the draft
	}
	for _, at := range []apps.Lookup{
		{Owner: "mia", Slug: slug}, {Library: id(0)}, {Library: id(100), Deleted: true},
		{Owner: "jo", Slug: strings.ToLower(slug)}, at(9), {ID: id(0), Deleted: true},
	} {
		_, err := s.Get(ctx, "acme", at)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

func testSlugs(t *testing.T, s apps.Store) {
	is := is.New(t)
	insert(t, s, newApp(1, "a"), newApp(2, ""), newApp(3, ""), newApp(4, "A"))
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", newApp(5, "a"))), errs.Conflict)
	owner, tenant := newApp(6, "a"), newApp(1, "a")
	owner.OwnerID, tenant.Tenant = "mia", "evil"
	insert(t, s, owner, tenant, newDraft(7, 1, "a")) // not taken for another owner, another tenant and a draft
	_, err := s.Update(t.Context(), "acme", at(4), func(a *apps.App) error {
		a.Slug = newApp(0, "a").Slug
		return nil
	})
	is.Equal(errs.CodeOf(err), errs.Conflict)
	library := newApp(8, "b")
	library.LibraryID = newApp(1, "").LibraryID
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", library)), errs.Conflict)
}

func testUpdate(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(1, "a"))
	text, want := "text", newApp(1, "b")
	want.Description, want.Source, want.SourceID, want.Origin, want.FolderID = &text, &text, &text, &text, &text
	want.WebhookSecret = "sealed, too"
	want.Type, want.Sealed, want.Settings, want.Base, want.IsManaged =
		apps.Full, "sealed", json.RawMessage(`{"s":1}`), "base", true
	want.Lock = drafts.Lock{Session: &text, HeartbeatAt: &tuesday, LockedBy: &text}
	want.AwaitsOwner = true
	want.Datasets, want.Tags = []apps.Dataset{{Alias: "a", DatasetID: id(3), Label: "A"}}, numbered(7)
	want.Defn, want.UpdatedAt, want.DefnUpdatedAt, want.DeployedAt =
		json.RawMessage(`{"new":1}`), tuesday, &tuesday, &tuesday
	fieldtest.Full(t, want, "EditingID", "DeletedAt", "Shared")
	got, err := s.Update(ctx, "acme", apps.Lookup{Owner: "jo", Slug: "a"}, func(a *apps.App) error {
		is.Equal(*a, newApp(1, "a"))
		*a = want
		// these do not change
		a.Tenant, a.ID, a.LibraryID, a.EditingID, a.Shared, a.CreatedAt =
			"evil", id(9), id(9), &a.LibraryID, true, tuesday
		return nil
	})
	is.NoErr(err)
	is.Equal(got, want)
	got, err = s.Get(ctx, "acme", at(1))
	is.NoErr(err)
	is.Equal(got, want)
	for _, v := range []apps.Viewer{{All: true}, {Principals: []string{"jo"}}} {
		page, err := s.Page(ctx, "acme", v, paging.Query{Limit: 5, Q: "NAME B"})
		is.NoErr(err)
		is.Equal(page.Total, 1) // a search finds the new texts
	}

	fault := errors.New("fault")
	_, err = s.Update(ctx, "acme", at(1), func(a *apps.App) error {
		a.Name = "worse"
		return fault
	})
	is.Equal(err, fault)
	got, err = s.Get(ctx, "acme", at(1))
	is.NoErr(err)
	is.Equal(got, want)
	_, err = s.Update(ctx, "acme", at(7), func(*apps.App) error { return fault })
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

// testHold: a principal that is held may become an owner. testNoOwner checks with Insert that it
// cannot be removed at the same time.
func testHold(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(1, "a"))
	is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
		held, err := s.Hold(ctx, "acme", []string{"nobody", "red", shares.Everyone, "JO", "red"})
		is.NoErr(err)
		is.Equal(held, map[string]bool{"red": true, shares.Everyone: true})
		_, err = s.Update(ctx, "acme", at(1), func(a *apps.App) error {
			a.OwnerID = "red"
			return nil
		})
		return err
	}))
	got, err := s.Get(ctx, "acme", apps.Lookup{Owner: "red", Slug: "a"})
	is.NoErr(err)
	is.Equal(got.ID, id(1))
}

func testDeleted(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(1, "a"))
	trash(t, s, 1, tuesday)
	insert(t, s, newApp(2, "a")) // the slug is free again
	trash(t, s, 2, tuesday.Add(time.Hour))
	insert(t, s, newApp(3, "a"))

	for at, want := range map[apps.Lookup]string{
		{ID: id(1)}: "", {ID: id(1), Deleted: true}: id(1), {ID: id(3)}: id(3), {ID: id(3), Deleted: true}: "",
		{Library: newApp(1, "").LibraryID}: "", {Library: newApp(1, "").LibraryID, Deleted: true}: id(1),
		// the most recently deleted one
		{Owner: "jo", Slug: "a"}: id(3), {Owner: "jo", Slug: "a", Deleted: true}: id(2),
	} {
		got, err := s.Get(ctx, "acme", at)
		head, failed := s.Head(ctx, "acme", at)
		is.Equal(errs.CodeOf(failed), errs.CodeOf(err))
		if want == "" {
			is.Equal(errs.CodeOf(err), errs.NotFound)
			continue
		}
		is.Equal(head.ID, want)
		is.NoErr(err)
		is.Equal(got.ID, want)
		is.Equal(got.DeletedAt != nil, at.Deleted)
	}
	_, err := s.Lock(ctx, "acme", at(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	got, err := s.Lock(ctx, "acme", apps.Lookup{ID: id(1), Deleted: true})
	is.NoErr(err)
	is.Equal(got.ID, id(1))
	for _, v := range []apps.Viewer{{All: true}, {Principals: []string{"jo"}}} {
		page, err := s.Page(ctx, "acme", v, paging.Query{Limit: 5})
		is.NoErr(err)
		is.Equal(ids(page.Rows), numbered(3))
		is.Equal(page.Total, 1)
	}
	all, err := s.IDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(all, numbered(3))
	some, err := s.Slugs(ctx, "acme", []apps.Lookup{{Owner: "jo", Slug: "a"}})
	is.NoErr(err)
	is.Equal(ids(some), numbered(3))
	n, err := s.Owned(ctx, "acme", "jo")
	is.NoErr(err)
	is.Equal(n, 3)

	restore := func(a *apps.App) error {
		a.DeletedAt = nil
		return nil
	}
	_, err = s.Update(ctx, "acme", apps.Lookup{ID: id(1), Deleted: true}, restore)
	is.Equal(errs.CodeOf(err), errs.Conflict) // another app has the slug
	trash(t, s, 3, tuesday)
	got, err = s.Update(ctx, "acme", apps.Lookup{ID: id(1), Deleted: true}, restore)
	is.NoErr(err)
	is.Equal(got, newApp(1, "a"))
}

// testOneDraft: one of several concurrent inserts succeeds.
func testOneDraft(t *testing.T, s apps.Store) {
	is := is.New(t)
	insert(t, s, newApp(1, "a"), newApp(2, "b"))
	const callers = 8
	results := make(chan error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { results <- s.Insert(t.Context(), "acme", newDraft(10+i, 1, "a")) })
	}
	wg.Wait()
	close(results)
	made := 0
	for err := range results {
		if err == nil {
			made++
			continue
		}
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.True(strings.Contains(errs.MessageOf(err), "draft"))
	}
	is.Equal(made, 1)
	insert(t, s, newDraft(20, 2, "b"))
	for tenant, want := range map[string]int{"acme": 2, "evil": 0} {
		n, err := s.Count(t.Context(), tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}
	for tenant, want := range map[string]map[string]bool{"acme": {id(1): true, id(2): true}, "evil": {}} {
		drafted, err := s.Drafted(t.Context(), tenant, []string{id(1), id(2), id(3)})
		is.NoErr(err)
		is.Equal(drafted, want)
	}
	draft, err := s.Draft(t.Context(), "acme", id(2))
	is.NoErr(err)
	is.Equal(draft, newDraft(20, 2, "b"))
	is.NoErr(s.InTx(t.Context(), func(ctx context.Context) error {
		locked, err := s.LockDraft(ctx, "acme", id(2))
		is.Equal(locked, draft)
		return err
	}))
	for _, draft := range []func(context.Context, string, string) (apps.App, error){s.Draft, s.LockDraft} {
		_, err = draft(t.Context(), "acme", id(20))
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = draft(t.Context(), "evil", id(2))
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	_, err = s.Remove(t.Context(), "acme", numbered(20))
	is.NoErr(err)
	insert(t, s, newDraft(21, 2, "b")) // a draft of another app
}

func testDrafts(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	theirs, deleted := newApp(3, "c"), newApp(4, "d")
	theirs.OwnerID = "mia"
	insert(t, s, newApp(1, "a"), newApp(2, "b"), theirs, deleted)
	b, c := newDraft(12, 2, "b"), newDraft(13, 3, "c")
	b.Name, c.OwnerID = "alpha", "mia" // first by its name
	insert(t, s, newDraft(11, 1, "a"), b, c, newDraft(14, 4, "d"))
	trash(t, s, 4, tuesday)
	share(t, s, 2, "red", shares.Use)
	share(t, s, 1, "red", shares.None)
	share(t, s, 3, "jo", shares.Write)
	share(t, s, 3, "red", shares.Use)

	for _, c := range []struct {
		viewer apps.Viewer
		want   []string
	}{
		{apps.Viewer{All: true}, numbered(12, 11, 13)},
		{apps.Viewer{Principals: []string{"jo"}}, numbered(12, 11, 13)},
		{apps.Viewer{Principals: []string{"jo", "red"}}, numbered(12, 11, 13)},
		{apps.Viewer{Principals: []string{"red"}}, numbered(12, 13)},
		{apps.Viewer{Principals: []string{"mia", shares.Everyone}}, numbered(13)},
		{apps.Viewer{Principals: []string{"blue"}}, nil},
		{apps.Viewer{}, nil},
	} {
		all, err := s.Drafts(ctx, "acme", c.viewer)
		is.NoErr(err)
		is.Equal(ids(all), c.want)
	}
	all, err := s.Drafts(ctx, "acme", apps.Viewer{All: true})
	is.NoErr(err)
	b.Defn = nil
	is.Equal(all[0], b)
	page, err := s.Page(ctx, "acme", apps.Viewer{All: true}, paging.Query{Limit: 9})
	is.NoErr(err)
	is.Equal(ids(page.Rows), numbered(1, 2, 3)) // without the draft
	owned, err := s.OwnedDrafts(ctx, "acme", "jo")
	is.NoErr(err)
	is.Equal(ids(owned), numbered(11, 12, 14))
	is.Equal(len(owned[0].Defn), 0)
	some, err := s.Slugs(ctx, "acme", []apps.Lookup{
		{Owner: "jo", Slug: "a"}, {Owner: "jo", Slug: "b"}, {Owner: "mia", Slug: "a"}, {Owner: "jo", Slug: "x"},
	})
	is.NoErr(err)
	slices.SortFunc(some, func(a, b apps.App) int { return strings.Compare(a.ID, b.ID) })
	is.Equal(ids(some), numbered(1, 2))
	is.Equal(len(some[0].Defn), 0)
}

// testLock: a transaction that has locked an app keeps others from changing it.
func testLock(t *testing.T, s apps.Store) {
	is := is.New(t)
	insert(t, s, newApp(1, "a"), newDraft(2, 1, "a"))
	for _, n := range []int{1, 2} {
		var order []string
		locked, done := make(chan struct{}), make(chan error)
		go func() {
			<-locked
			_, err := s.Update(t.Context(), "acme", at(n), func(a *apps.App) error {
				order = append(order, "update of "+a.Name)
				return nil
			})
			done <- err
		}()
		is.NoErr(s.InTx(t.Context(), func(ctx context.Context) error {
			a, err := s.Lock(ctx, "acme", at(n))
			is.NoErr(err)
			is.Equal(a.ID, id(n))
			close(locked)
			order = append(order, "transaction")
			_, err = s.Update(ctx, "acme", at(n), func(a *apps.App) error {
				a.Name = "new"
				return nil
			})
			return err
		}))
		is.NoErr(<-done)
		is.Equal(order, []string{"transaction", "update of new"})
	}
	_, err := s.Lock(t.Context(), "acme", at(9))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testIsolation(t *testing.T, s apps.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, newApp(1, "a"), newDraft(2, 1, "a"))
	share(t, s, 1, "mia", shares.Use)
	for _, where := range []apps.Lookup{at(1), at(2), {Owner: "jo", Slug: "a"}, {Library: newApp(1, "").LibraryID}} {
		_, err := s.Get(ctx, "evil", where)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Head(ctx, "evil", where)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Update(ctx, "evil", where, func(*apps.App) error { return nil })
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	_, err := s.Lock(ctx, "evil", at(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Draft(ctx, "evil", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	for _, v := range []apps.Viewer{{All: true}, {Principals: []string{"jo"}}, {Principals: []string{"mia"}}} {
		for _, search := range []string{"", "name"} {
			page, err := s.Page(ctx, "evil", v, paging.Query{Limit: 5, Q: search})
			is.NoErr(err)
			is.Equal(len(page.Rows)+page.Total, 0)
		}
		all, err := s.Drafts(ctx, "evil", v)
		is.NoErr(err)
		is.Equal(len(all), 0)
	}
	n, err := s.Owned(ctx, "evil", "jo")
	is.NoErr(err)
	is.Equal(n, 0)
	is.Equal(owners(t, s, "evil"), "")
	is.NoErr(s.RenameUsers(ctx, "evil", map[string]string{"jo": "joe"}))
	for what, read := range map[string]func() ([]apps.App, error){
		"OwnedDrafts": func() ([]apps.App, error) { return s.OwnedDrafts(ctx, "evil", "jo") },
		"Reassign":    func() ([]apps.App, error) { return s.Reassign(ctx, "evil", "jo", "mia", tuesday) },
		"Some":        func() ([]apps.App, error) { return s.Some(ctx, "evil", numbered(1, 2)) },
		"Heads":       func() ([]apps.App, error) { return s.Heads(ctx, "evil", numbered(1, 2)) },
		"LockSome":    func() ([]apps.App, error) { return s.LockSome(ctx, "evil", numbered(1, 2)) },
		"Slugs": func() ([]apps.App, error) {
			return s.Slugs(ctx, "evil", []apps.Lookup{{Owner: "jo", Slug: "a"}})
		},
		"Remove": func() ([]apps.App, error) { return s.Remove(ctx, "evil", numbered(1, 2)) },
	} {
		all, err := read()
		is.NoErr(err)
		if len(all) > 0 {
			t.Errorf("%s finds another tenant's app", what)
		}
	}
	exist, err := s.Exist(ctx, "evil", numbered(1))
	is.NoErr(err)
	is.Equal(len(exist), 0)
	libraries, err := s.Libraries(ctx, "evil", []string{newApp(1, "").LibraryID})
	is.NoErr(err)
	is.Equal(len(libraries), 0)
	all, err := s.IDs(ctx, "evil")
	is.NoErr(err)
	is.Equal(len(all), 0)
	is.NoErr(s.SetShared(ctx, "evil", numbered(1)))
	other := newApp(1, "z")
	other.Name = "theirs"
	is.NoErr(s.PutAll(ctx, "evil", []apps.App{other}, numbered(1)))
	is.NoErr(s.Insert(ctx, "evil", newDraft(2, 1, "z")))

	got, err := s.Get(ctx, "acme", at(1))
	is.NoErr(err)
	is.Equal(got, newApp(1, "a")) // untouched
	_, err = s.Draft(ctx, "acme", id(1))
	is.NoErr(err)
	all2, err := s.Shares().All(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(len(all2), 1)
}

func testFailedTx(t *testing.T, s apps.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	insert(t, s, newApp(1, "old"))
	share(t, s, 1, "mia", shares.Use)
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.Insert(ctx, "acme", newApp(2, "new")))
		_, err := s.Remove(ctx, "acme", numbered(1))
		is.NoErr(err)
		return fault
	})
	is.Equal(err, fault)
	all, err := s.IDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(all, numbered(1))
	left, err := s.Shares().All(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(len(left), 1)
}

func testCanceled(t *testing.T, s apps.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Insert(ctx, "acme", newApp(1, "a")), context.Canceled))
	_, err := s.Page(ctx, "acme", apps.Viewer{Principals: []string{"jo"}}, paging.Query{Limit: 5})
	is.True(errors.Is(err, context.Canceled))
	all, err := s.IDs(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(len(all), 0)
}

func testParallelEdits(t *testing.T, s apps.Store) {
	is := is.New(t)
	insert(t, s, newApp(1, "n"))
	const callers = 20
	results := make(chan error, callers)
	for range callers {
		go func() {
			_, err := s.Update(t.Context(), "acme", apps.Lookup{Owner: "jo", Slug: "n"}, func(a *apps.App) error {
				a.Name += "x"
				return nil
			})
			results <- err
		}()
	}
	for range callers {
		is.NoErr(<-results)
	}
	got, err := s.Get(t.Context(), "acme", at(1))
	is.NoErr(err)
	is.Equal(got.Name, "Name n"+strings.Repeat("x", callers))
}

func ownership(s apps.Store) transfertest.Owners {
	return transfertest.Owners{
		Insert: func(ctx context.Context, n int, owner string) error {
			a := newApp(n, fmt.Sprint("s", n))
			a.OwnerID = owner
			return s.Insert(ctx, "acme", a)
		},
		Owned: func(ctx context.Context, owner string) (int, error) { return s.Owned(ctx, "acme", owner) },
		Reassign: func(ctx context.Context, from, to string, at time.Time) (all []transfertest.Moved, err error) {
			moved, err := s.Reassign(ctx, "acme", from, to, at)
			for _, a := range moved {
				all = append(all, transfertest.Moved{ID: a.ID, OwnerID: a.OwnerID, UpdatedAt: a.UpdatedAt})
			}
			return all, err
		},
		InTx: s.InTx,
	}
}

func testNoOwner(t *testing.T, s apps.Store) {
	ownership(s).NoOwner(t)
	everyone := newApp(2, "")
	everyone.OwnerID = shares.Everyone
	is.New(t).Equal(errs.CodeOf(s.Insert(t.Context(), "acme", everyone)), errs.Forbidden)
}
