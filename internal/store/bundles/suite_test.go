package bunstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var monday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil, with the user jo in both.
func testStore(t *testing.T, open func(t *testing.T) bundles.Store) {
	for name, check := range map[string]func(*testing.T, bundles.Store){
		"RoundTrip":             testRoundTrip,
		"TakenSlug":             testTakenSlug,
		"Update":                testUpdate,
		"Delete":                testDelete,
		"Entries":               testEntries,
		"MeasureEntries":        testMeasureEntries,
		"SameReference":         testSameReference,
		"NoPrincipal":           testNoPrincipal,
		"Isolation":             testIsolation,
		"Search":                testSearch,
		"FailedEditWritesNone":  testFailedEdit,
		"ParallelEditsAllLand":  testParallelEdits,
		"Pages":                 testPages,
		"EntryPages":            testEntryPages,
		"Deployments":           testDeployments,
		"MarksOfDeployments":    testMarks,
		"RenameUsers":           testRenameUsers,
		"LockWaits":             testLock,
		"DryRunLeavesNothing":   testDryRun,
		"FailedTxWritesNone":    testFailedTx,
		"CanceledWritesNothing": testCanceled,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// bundle returns the nth bundle of a test.
func bundle(n int) bundles.Bundle {
	at := monday.Add(time.Duration(n) * time.Minute)
	return bundles.Bundle{
		ID:        id(n),
		Name:      fmt.Sprintf("Bundle %d", n),
		Slug:      fmt.Sprintf("bundle-%d", n),
		CreatedAt: at,
		UpdatedAt: at,
	}
}

// entry returns the nth entry of the mth bundle.
func entry(n, m int) bundles.Entry {
	at := monday.Add(time.Duration(n) * time.Minute)
	return bundles.Entry{
		ID: id(1000 + n), BundleID: id(m), Type: "tagged",
		EntityID: id(5000 + n), Data: json.RawMessage(`{}`), CreatedAt: at, UpdatedAt: at,
	}
}

func add(t *testing.T, s bundles.Store, tenant string, b bundles.Bundle, entries ...bundles.Entry) {
	t.Helper()
	is.New(t).NoErr(s.Insert(t.Context(), tenant, b))
	for _, e := range entries {
		is.New(t).NoErr(s.InsertEntry(t.Context(), tenant, e))
	}
}

// of returns a bundle as a store of acme returns it.
func of(b bundles.Bundle, entries ...bundles.Entry) bundles.Bundle {
	b.Tenant, b.Entries = "acme", []bundles.Entry{}
	for _, e := range entries {
		e.Tenant = "acme"
		b.Entries = append(b.Entries, e)
	}
	return b
}

func testRoundTrip(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	text := "'; DROP TABLE tc_bundles; --?$1\\ 日本 🎨\n<b>"
	b, e := bundle(1), entry(1, 1)
	b.Name, b.Description, b.Slug, b.UpdatedAt = text, &text, "A_b-9", monday.Add(time.Hour)
	e.Type, e.EntityID, e.Data, e.UpdatedAt =
		"user", text, json.RawMessage(`{"b":1,"a":["ü",null]}`), monday.Add(time.Hour)
	second := entry(2, 1)
	second.Type, second.EntityID = "global", ""
	fieldtest.Full(t, of(b, e))
	fieldtest.Full(t, of(b, e).Entries[0], "Ref") // the Service sets it
	add(t, s, "acme", b, second, e)
	for _, key := range []string{b.ID, b.Slug} {
		got, err := s.Get(ctx, "acme", key)
		is.NoErr(err)
		is.Equal(got, of(b, e, second)) // in the order of createdAt
		got, err = s.Find(ctx, "acme", key)
		is.NoErr(err)
		without := of(b)
		without.Entries = nil
		is.Equal(got, without)
	}
	one, err := s.Entry(ctx, "acme", b.ID, e.ID)
	is.NoErr(err)
	is.Equal(one, of(b, e).Entries[0])
	for _, key := range []string{id(9), "a_b-9", ""} {
		_, err = s.Get(ctx, "acme", key)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Find(ctx, "acme", key)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	all, err := s.All(ctx, "acme")
	is.NoErr(err)
	want := of(b)
	want.Entries = nil
	is.Equal(all, []bundles.Bundle{want})
}

func testTakenSlug(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1))
	add(t, s, "acme", bundle(2))
	add(t, s, "evil", bundle(1))
	other := bundle(3)
	other.Slug = bundle(1).Slug
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", other)), errs.Conflict)
	_, err := s.Update(ctx, "acme", id(2), func(b *bundles.Bundle) error { b.Slug = "bundle-1"; return nil })
	is.Equal(errs.CodeOf(err), errs.Conflict)
	other.Slug = "BUNDLE-1" // case matters
	is.NoErr(s.Insert(ctx, "acme", other))
}

func testUpdate(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1), entry(1, 1))
	add(t, s, "acme", bundle(2), entry(2, 2))
	text := "new"
	got, err := s.Update(ctx, "acme", "bundle-1", func(b *bundles.Bundle) error {
		is.Equal(*b, of(bundle(1), entry(1, 1)))
		b.Name, b.Slug, b.Description, b.UpdatedAt = "New", "new", &text, monday.Add(time.Hour)
		b.ID, b.Tenant, b.CreatedAt, b.Entries = id(7), "evil", monday.Add(time.Hour), nil // these do not change
		return nil
	})
	is.NoErr(err)
	want := of(bundle(1), entry(1, 1))
	want.Name, want.Slug, want.Description, want.UpdatedAt = "New", "new", &text, monday.Add(time.Hour)
	is.Equal(got, want)
	again, err := s.Get(ctx, "acme", "new")
	is.NoErr(err)
	is.Equal(again, want)
	other, err := s.Get(ctx, "acme", id(2))
	is.NoErr(err)
	is.Equal(other, of(bundle(2), entry(2, 2)))
	_, err = s.Update(ctx, "acme", "bundle-1", func(*bundles.Bundle) error { return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testDelete(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1), entry(1, 1), entry(2, 1))
	add(t, s, "acme", bundle(2), entry(3, 2))
	is.NoErr(s.Delete(ctx, "acme", "bundle-1"))
	is.Equal(errs.CodeOf(s.Delete(ctx, "acme", "bundle-1")), errs.NotFound)
	_, err := s.Entry(ctx, "acme", id(1), id(1001))
	is.Equal(errs.CodeOf(err), errs.NotFound) // they are deleted with it
	is.NoErr(s.DeleteEntry(ctx, "acme", id(2), id(1003)))
	is.Equal(errs.CodeOf(s.DeleteEntry(ctx, "acme", id(2), id(1003))), errs.NotFound)
	is.NoErr(s.Delete(ctx, "acme", id(2)))
	all, err := s.All(ctx, "acme")
	is.NoErr(err)
	is.Equal(len(all), 0)
}

func testEntries(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1), entry(1, 1))
	add(t, s, "acme", bundle(2))
	at := monday.Add(time.Hour)
	got, err := s.SetData(ctx, "acme", id(1), id(1001), json.RawMessage(`{"a":1}`), at)
	is.NoErr(err)
	want := of(bundle(1), entry(1, 1)).Entries[0]
	want.Data, want.UpdatedAt = json.RawMessage(`{"a":1}`), at
	is.Equal(got, want)
	for _, other := range []string{id(2), id(3)} { // the entry of another bundle
		_, err = s.SetData(ctx, "acme", other, id(1001), json.RawMessage(`{}`), at)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Entry(ctx, "acme", other, id(1001))
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.CodeOf(s.DeleteEntry(ctx, "acme", other, id(1001))), errs.NotFound)
	}
	e := entry(9, 77) // the bundle does not exist
	is.Equal(errs.CodeOf(s.InsertEntry(ctx, "acme", e)), errs.Conflict)
}

func testMeasureEntries(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	large := entry(1, 1)
	large.Data = json.RawMessage(`{"a":"ü"}`)
	add(t, s, "acme", bundle(1), large, entry(2, 1))
	add(t, s, "acme", bundle(2))
	add(t, s, "evil", bundle(1), entry(3, 1))
	for of, want := range map[string][2]int{id(1): {2, 12}, id(2): {0, 0}} {
		n, bytes, err := s.MeasureEntries(ctx, "acme", of)
		is.NoErr(err)
		is.Equal([2]int{n, bytes}, want)
	}
	_, _, err := s.MeasureEntries(ctx, "acme", id(3))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	size := func(ctx context.Context, n, bytes int) {
		t.Helper()
		is.Helper()
		gotN, gotBytes, err := s.MeasureEntries(ctx, "acme", id(1))
		is.NoErr(err)
		is.Equal([2]int{gotN, gotBytes}, [2]int{n, bytes})
	}
	_, err = s.SetData(ctx, "acme", id(1), large.ID, json.RawMessage(`{"a":1}`), monday)
	is.NoErr(err)
	size(ctx, 2, 9)
	is.NoErr(s.InTx(ctx, func(ctx context.Context) error { // counted in the same transaction
		is.NoErr(s.DeleteEntry(ctx, "acme", id(1), large.ID))
		size(ctx, 1, 2)
		return s.InsertEntry(ctx, "acme", large)
	}))
	size(ctx, 2, 12)

	var all sync.WaitGroup
	for i := range 10 { // each call measures and then adds
		all.Go(func() {
			is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
				n, _, err := s.MeasureEntries(ctx, "acme", id(2))
				if err != nil || n > 3 {
					return err
				}
				return s.InsertEntry(ctx, "acme", entry(10+i, 2))
			}))
		})
	}
	all.Wait()
	n, _, err := s.MeasureEntries(ctx, "acme", id(2))
	is.NoErr(err)
	is.Equal(n, 4)
}

func testSameReference(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1), entry(1, 1))
	add(t, s, "acme", bundle(2))
	e := entry(1, 1)
	e.ID = id(77)
	is.Equal(errs.CodeOf(s.InsertEntry(ctx, "acme", e)), errs.Conflict)
	e.Type = "report" // the same id of another type
	is.NoErr(s.InsertEntry(ctx, "acme", e))
	e = entry(1, 2)
	e.ID = id(78)
	is.NoErr(s.InsertEntry(ctx, "acme", e)) // in another bundle
	for n, want := range []errs.Code{"", errs.Conflict} {
		e := bundles.Entry{
			ID:        id(80 + n),
			BundleID:  id(1),
			Type:      "global",
			Data:      json.RawMessage(`{}`),
			CreatedAt: monday,
			UpdatedAt: monday,
		}
		is.Equal(errs.CodeOf(s.InsertEntry(ctx, "acme", e)), want)
	}
}

func testIsolation(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1), entry(1, 1))
	for tenant, want := range map[string]int{"acme": 1, "evil": 0, "none": 0} {
		n, err := s.Count(ctx, tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}
	_, err := s.Get(ctx, "evil", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Find(ctx, "evil", "bundle-1")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.MeasureEntries(ctx, "evil", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Update(ctx, "evil", "bundle-1", func(*bundles.Bundle) error { return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.CodeOf(s.Delete(ctx, "evil", id(1))), errs.NotFound)
	is.Equal(errs.CodeOf(s.DeleteEntry(ctx, "evil", id(1), id(1001))), errs.NotFound)
	is.Equal(errs.CodeOf(s.InsertEntry(ctx, "evil", entry(2, 1))), errs.Conflict) // the tenant does not have the bundle
	_, err = s.SetData(ctx, "evil", id(1), id(1001), json.RawMessage(`{}`), monday)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	page, err := s.Page(ctx, "evil", paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Total+len(page.Rows), 0)
	entries, err := s.Entries(ctx, "evil", id(1), paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(entries.Total+len(entries.Rows), 0)
	add(t, s, "evil", bundle(1), entry(1, 1)) // the same ids
	is.NoErr(s.Delete(ctx, "evil", id(1)))
	got, err := s.Get(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(got, of(bundle(1), entry(1, 1)))
}

func testFailedEdit(t *testing.T, s bundles.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	add(t, s, "acme", bundle(1))
	_, err := s.Update(ctx, "acme", id(1), func(b *bundles.Bundle) error { b.Name = "x"; return fault })
	is.Equal(err, fault)
	got, err := s.Get(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(got, of(bundle(1)))
}

func testParallelEdits(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := s.Update(ctx, "acme", id(1), func(b *bundles.Bundle) error { b.Name += "x"; return nil })
			is.NoErr(err)
		})
	}
	all.Wait()
	got, err := s.Get(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(got.Name, bundle(1).Name+strings.Repeat("x", 20))
}

func testPages(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	for n := range 25 {
		b := bundle(n) // no two columns have the same order
		b.Name = fmt.Sprintf("%c %d", "aBcDe"[n%5], n*3%25)
		b.CreatedAt = monday.Add(time.Duration(n%3) * time.Hour) // equal times, which are ordered by id
		b.UpdatedAt = monday.Add(time.Duration(n*7%25) * time.Hour)
		add(t, s, "acme", b, entry(2*n, n), entry(2*n+1, n))
	}
	for _, sort := range []string{"", "createdAt", "-createdAt", "name", "-name", "updatedAt", "-updatedAt"} {
		q, seen := paging.Query{Limit: 10, Sort: sort}, map[string]bool{}
		for range 3 {
			page, err := s.Page(ctx, "acme", q)
			is.NoErr(err)
			is.Equal(page.Total, 25)
			for _, b := range page.Rows {
				seen[b.ID] = true
				is.Equal(len(b.Entries), 2)
				is.Equal(b.Entries[0].BundleID, b.ID)
			}
			q.Start, q.After = q.Start+10, page.Last
		}
		is.Equal(len(seen), 25)
	}
	pagingtest.TestBytes(t, func(ctx context.Context, q paging.Query) (paging.Page[bundles.Bundle], error) {
		return s.Page(ctx, "acme", q)
	})
	pagingtest.TestOrder(t, func(ctx context.Context, q paging.Query) (paging.Page[bundles.Bundle], error) {
		return s.Page(ctx, "acme", q)
	}, "createdAt", func(a, b bundles.Bundle) int {
		return strings.Compare(a.ID, b.ID)
	}, map[string]func(a, b bundles.Bundle) int{
		"name": func(a, b bundles.Bundle) int {
			return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		},
		"createdAt": func(a, b bundles.Bundle) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updatedAt": func(a, b bundles.Bundle) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	page, err := s.Page(ctx, "acme", paging.Query{Limit: 10, Q: "BUNDLE-7"})
	is.NoErr(err)
	is.Equal(page.Total, 1)
	_, err = s.Page(ctx, "acme", paging.Query{Limit: 10, Sort: "slug"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func testEntryPages(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1))
	add(t, s, "acme", bundle(2), entry(77, 2))
	for i := range 25 {
		n := i * 7 % 25 // not in the order of any column
		e := entry(n, 1)
		e.Type = []string{"tagged", "library", "color"}[n%3] // equal types, which are ordered by id
		e.CreatedAt, e.UpdatedAt = monday.Add(time.Duration(n%5)*time.Hour), monday.Add(-time.Duration(n/2)*time.Hour)
		is.NoErr(s.InsertEntry(ctx, "acme", e))
	}
	for _, sort := range []string{"", "-createdAt", "type", "-type", "updatedAt"} {
		q, seen := paging.Query{Limit: 10, Sort: sort}, map[string]bool{}
		for range 3 {
			page, err := s.Entries(ctx, "acme", id(1), q)
			is.NoErr(err)
			is.Equal(page.Total, 25)
			for _, e := range page.Rows {
				seen[e.ID] = true
			}
			q.Start, q.After = q.Start+10, page.Last
		}
		is.Equal(len(seen), 25)
	}
	entries := func(ctx context.Context, q paging.Query) (paging.Page[bundles.Entry], error) {
		return s.Entries(ctx, "acme", id(1), q)
	}
	pagingtest.TestBytes(t, entries)
	pagingtest.TestOrder(t, entries, "createdAt", func(a, b bundles.Entry) int {
		return strings.Compare(a.ID, b.ID)
	}, map[string]func(a, b bundles.Entry) int{
		"createdAt": func(a, b bundles.Entry) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"type":      func(a, b bundles.Entry) int { return strings.Compare(a.Type, b.Type) },
		"updatedAt": func(a, b bundles.Entry) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	_, err := s.Entries(ctx, "acme", id(1), paging.Query{Limit: 10, Q: "x"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

// brought returns an entity that a deploy brought.
func brought(kind entity.Kind, id, fingerprint string, shared bool) bundles.Deployment {
	return bundles.Deployment{Key: entity.Key{Kind: kind, ID: id}, Fingerprint: fingerprint, Shared: shared}
}

func testDeployments(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	var many []bundles.Deployment
	ids, fingerprints := []string{"another"}, map[string]string{}
	for n := range 1203 { // several statements
		d := brought("color", fmt.Sprintf("c%05d", n), fmt.Sprint(n), false)
		many, ids, fingerprints[d.ID] = append(many, d), append(ids, d.ID), d.Fingerprint
	}
	is.NoErr(s.SetDeployed(ctx, "acme", "evil", id(1), many))
	is.NoErr(s.SetDeployed(
		ctx, "acme", "evil", id(2),
		[]bundles.Deployment{brought("tag", "b", "1", false), brought("tag", "a", "", false)},
	))
	is.NoErr(s.SetDeployed(ctx, "acme", "other", id(2), []bundles.Deployment{brought("tag", "b", "1", false)}))
	// the other tenant is not changed
	is.NoErr(s.SetDeployed(ctx, "evil", "evil", id(2), []bundles.Deployment{brought("tag", "a", "", false)}))
	for bundle, want := range map[string][]bundles.Deployment{
		id(1): many, id(2): {brought("tag", "a", "", false), brought("tag", "b", "1", true)}, id(3): nil,
	} {
		all, err := s.Deployed(ctx, "acme", "evil", bundle)
		is.NoErr(err)
		is.Equal(all, want)
	}
	got, err := s.Fingerprints(ctx, "acme", "evil", "color", ids)
	is.NoErr(err)
	is.Equal(got, fingerprints)
	for source, want := range map[string]map[string]string{
		"":      {"a": "", "b": "1"},
		"evil":  {"a": "", "b": "1"},
		"other": {"b": "1"},
		"none":  {},
	} {
		got, err := s.Fingerprints(ctx, "acme", source, "tag", []string{"a", "b"})
		is.NoErr(err)
		is.Equal(got, want)
	}
	is.NoErr(s.SetDeployed(ctx, "acme", "other", id(2), nil))
	all, err := s.Deployed(ctx, "acme", "evil", id(2))
	is.NoErr(err)
	is.Equal(all, []bundles.Deployment{brought("tag", "a", "", false), brought("tag", "b", "1", false)})
	is.NoErr(s.AddDeployed(
		ctx, "acme", "evil", id(2),
		[]bundles.Deployment{brought("tag", "a", "2", false), brought("tag", "c", "3", false)},
	))
	is.NoErr(s.AddDeployed(ctx, "acme", "evil", id(2), nil))
	all, err = s.Deployed(ctx, "acme", "evil", id(2))
	is.NoErr(err)
	is.Equal(all, []bundles.Deployment{
		brought("tag", "a", "2", false), brought("tag", "b", "1", false), brought("tag", "c", "3", false),
	})

	one := []bundles.Deployment{brought("tag", "z", "", false)}
	for _, where := range [][2]string{{"acme", "evil"}, {"acme", "other"}, {"evil", "evil"}} {
		is.NoErr(s.SetDeployed(ctx, where[0], where[1], id(2), one))
	}
	targets, err := s.Targets(ctx, "evil")
	is.NoErr(err)
	is.Equal(targets, []string{"acme", "evil"})
	is.NoErr(s.ForgetSource(ctx, "acme", "evil"))
	targets, err = s.Targets(ctx, "evil")
	is.NoErr(err)
	is.Equal(targets, []string{"evil"})
	for where, want := range map[[2]string]int{{"acme", "evil"}: 0, {"acme", "other"}: 1, {"evil", "evil"}: 1} {
		all, err := s.Deployed(ctx, where[0], where[1], id(2))
		is.NoErr(err)
		is.Equal(len(all), want) // what other sources brought, and other tenants, are not changed
	}
}

// testMarks: an entity has one fingerprint, however many bundles brought it.
func testMarks(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	for tenant, fingerprint := range map[string]string{"acme": "old", "evil": "evil's"} {
		is.NoErr(s.SetDeployed(ctx, tenant, "far", id(1), []bundles.Deployment{
			brought("tag", "a", fingerprint, false),
			brought("tag", "b", fingerprint, false), brought("user", "a", fingerprint, false),
		}))
	}
	is.NoErr(s.SetDeployed(ctx, "acme", "far", id(2), []bundles.Deployment{brought("tag", "a", "new", false)}))
	for _, c := range []struct {
		tenant string
		kind   entity.Kind
		want   map[string]string
	}{
		{"acme", "tag", map[string]string{"a": "new", "b": "old"}}, {"acme", "user", map[string]string{"a": "old"}},
		{"acme", "color", map[string]string{}}, {"evil", "tag", map[string]string{"a": "evil's", "b": "evil's"}},
	} {
		got, err := s.Fingerprints(ctx, c.tenant, "", c.kind, []string{"a", "b", "c"})
		is.NoErr(err)
		is.Equal(got, c.want)
	}
	is.NoErr(s.SetDeployed(ctx, "acme", "near", id(2), []bundles.Deployment{brought("tag", "a", "near", false)}))
	far, err := s.Fingerprints(ctx, "acme", "far", "tag", []string{"a"}) // not what near brought later
	is.NoErr(err)
	is.Equal(far, map[string]string{"a": "new"})
	is.NoErr(s.ForgetDeployed(ctx, "acme", "near", "tag", []string{"a"}))
	is.NoErr(s.ForgetDeployed(ctx, "acme", "near", "tag", nil))
	for source, want := range map[string]map[string]string{"near": {"a": "near"}, "far": {"b": "old"}} {
		got, err := s.Fingerprints(ctx, "acme", source, "tag", []string{"a", "b"})
		is.NoErr(err)
		is.Equal(got, want)
	}
	others, err := s.Fingerprints(ctx, "evil", "far", "tag", []string{"a"})
	is.NoErr(err)
	is.Equal(others, map[string]string{"a": "evil's"})
	none, err := s.Fingerprints(ctx, "acme", "", "tag", nil)
	is.NoErr(err)
	is.Equal(len(none), 0)
}

func testLock(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	is.Equal(errs.CodeOf(s.Lock(ctx, "nobody")), errs.NotFound)
	locked, order := make(chan struct{}), make(chan string, 2)
	var all sync.WaitGroup
	all.Go(func() {
		is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
			is.NoErr(s.Lock(ctx, "acme"))
			close(locked)
			time.Sleep(50 * time.Millisecond)
			order <- "first"
			return nil
		}))
	})
	<-locked
	is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.Lock(ctx, "acme"))
		order <- "second"
		return nil
	}))
	all.Wait()
	is.Equal(<-order, "first")
}

func testDryRun(t *testing.T, s bundles.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	for _, want := range []error{nil, fault} {
		err := s.DryRun(ctx, func(ctx context.Context) error {
			is.NoErr(s.Insert(ctx, "acme", bundle(1)))
			_, err := s.Get(ctx, "acme", id(1))
			is.NoErr(err)
			return want
		})
		is.Equal(err, want)
		_, err = s.Get(ctx, "acme", id(1))
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	is.True(!s.InTransaction(ctx))
	is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
		is.True(s.InTransaction(ctx))
		err := s.DryRun(ctx, func(context.Context) error { t.Error("it ran"); return nil })
		is.Equal(errs.CodeOf(err), errs.Invalid)
		return nil
	}))
}

func testFailedTx(t *testing.T, s bundles.Store) {
	is, ctx, fault := is.New(t), t.Context(), errors.New("fault")
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.Insert(ctx, "acme", bundle(1)))
		is.NoErr(s.InsertEntry(ctx, "acme", entry(1, 1)))
		is.NoErr(s.SetDeployed(ctx, "acme", "evil", id(1), []bundles.Deployment{brought("tag", "a", "", false)}))
		return fault
	})
	is.Equal(err, fault)
	_, err = s.Get(ctx, "acme", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	all, err := s.Deployed(ctx, "acme", "evil", id(1))
	is.NoErr(err)
	is.Equal(len(all), 0)
}

func testCanceled(t *testing.T, s bundles.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Insert(ctx, "acme", bundle(1)), context.Canceled))
	_, err := s.Get(t.Context(), "acme", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}
