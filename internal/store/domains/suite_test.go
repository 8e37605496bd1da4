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

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns a Store whose database has the tenants acme and evil,
// each with only the domain local.
func testStore(t *testing.T, open func(t *testing.T) domains.Store) {
	for name, check := range map[string]func(*testing.T, domains.Store){
		"LocalIsThere":       testLocal,
		"RoundTrip":          testRoundTrip,
		"TakenID":            testTakenID,
		"Update":             testUpdate,
		"Delete":             testDelete,
		"Isolation":          testIsolation,
		"Search":             testSearch,
		"FailedTxWritesNone": testFailedTx,
		"ParallelEditsLand":  testParallelEdits,
		"Pages":              testPages,
		"Size":               testSize,
		"SetIDs":             testSetIDs,
		"Logins":             testLogins,
		"LoginsAreUsedOnce":  testUsedOnce,
		"Scans":              testScans,
		"OneScanAtATime":     testOneScan,
		"LockTenantWaits":    testLockTenant,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func domain(id string) domains.Domain {
	name := strings.ToUpper(id)
	return domains.Domain{Tenant: "acme", ID: id, Name: &name, Type: "LDAP", CreatedAt: monday, UpdatedAt: monday}
}

func insert(t *testing.T, s domains.Store, all ...domains.Domain) {
	t.Helper()
	for _, d := range all {
		is.New(t).NoErr(s.Insert(t.Context(), d.Tenant, d))
	}
}

func testLocal(t *testing.T, s domains.Store) {
	for _, tenant := range []string{"acme", "evil"} {
		is := is.New(t)
		d, err := s.Get(t.Context(), tenant, "local")
		is.NoErr(err)
		is.Equal(*d.Name, "Local")
		is.Equal(d.Type, "local")
		is.True(d.Config == nil && d.Description == nil && d.ScannedAt == nil && d.Sealed == "")
		is.True(!d.CreatedAt.IsZero())
	}
}

func testRoundTrip(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	name, about := "Häuser '; DROP TABLE x; --?$1", "short ✓\nand long"
	for _, want := range []domains.Domain{
		{ID: "full", Name: &name,
			Description: &about, Type: "AD", Config: json.RawMessage(`{"url": "ldap://x","n":1.50}`),
			Sealed: "v1.x.y", SealedKeys: "v1.k", IDs: domains.IDAttributes{People: "entryUUID", Groups: "cn"},
			ScannedAt: &tuesday, CreatedAt: monday, UpdatedAt: tuesday},
		{ID: "bare", Type: "of-a-host", CreatedAt: monday, UpdatedAt: monday},
	} {
		want.Tenant = "acme"
		if want.ID == "full" {
			fieldtest.Full(t, want, "Unready") // the Service sets it
		}
		insert(t, s, want)
		got, err := s.Get(ctx, "acme", want.ID)
		is.NoErr(err)
		is.Equal(got, want)
	}
	all, err := s.All(ctx, "acme", "")
	is.NoErr(err)
	is.Equal(ids(all), []string{"bare", "full", "local"})
	full, err := s.Get(ctx, "acme", "full")
	is.NoErr(err)
	is.Equal(all[1], full)
	for driver, want := range map[string][]string{"AD": {"full"}, "local": {"local"}, "ad": nil} {
		some, err := s.All(ctx, "acme", driver)
		is.NoErr(err)
		is.Equal(ids(some), want)
	}
	page, err := s.Page(ctx, "acme", paging.Query{Limit: 9, Q: "häuser"})
	is.NoErr(err)
	full.Config, full.Sealed, full.SealedKeys = nil, "", "" // which may be long
	is.Equal(page.Rows, []domains.Domain{full})
	is.NoErr(s.SetScanned(ctx, "acme", "bare", tuesday))
	got, err := s.Get(ctx, "acme", "bare")
	is.NoErr(err)
	is.Equal(*got.ScannedAt, tuesday)
	is.Equal(got.UpdatedAt, monday)
	for _, id := range []string{"FULL", "other", ""} {
		_, err := s.Get(ctx, "acme", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.CodeOf(s.SetScanned(ctx, "acme", id, tuesday)), errs.NotFound)
	}
}

// testSetIDs: ids that are set are not changed, and the callers get them.
func testSetIDs(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("dir"))
	for _, c := range []struct{ ids, known domains.IDAttributes }{
		{domains.IDAttributes{}, domains.IDAttributes{}},
		{domains.IDAttributes{People: "entryUUID"}, domains.IDAttributes{People: "entryUUID"}},
		{
			domains.IDAttributes{People: "nsUniqueId", Groups: "objectGUID"},
			domains.IDAttributes{People: "entryUUID", Groups: "objectGUID"},
		},
		{domains.IDAttributes{}, domains.IDAttributes{People: "entryUUID", Groups: "objectGUID"}},
	} {
		known, err := s.SetIDs(ctx, "acme", "dir", c.ids)
		is.NoErr(err)
		is.Equal(known, c.known)
		got, err := s.Get(ctx, "acme", "dir")
		is.NoErr(err)
		is.Equal(got.IDs, c.known)
		is.Equal(got.UpdatedAt, monday)
	}
	for tenant, id := range map[string]string{"acme": "other", "evil": "dir"} {
		_, err := s.SetIDs(ctx, tenant, id, domains.IDAttributes{People: "x"})
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	_, err := s.Update(ctx, "acme", "dir", func(d *domains.Domain) error { d.IDs = domains.IDAttributes{}; return nil })
	is.NoErr(err)
	got, err := s.Get(ctx, "acme", "dir")
	is.NoErr(err)
	is.Equal(got.IDs, domains.IDAttributes{})
}

func testSize(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	size := func(tenant string) [2]int {
		t.Helper()
		n, bytes, err := s.Size(ctx, tenant)
		is.NoErr(err)
		return [2]int{n, bytes}
	}
	is.Equal(size("acme"), [2]int{1, 0})
	open, sealed := domain("open"), domain("sealed")
	open.Config, sealed.Config, sealed.Sealed = json.RawMessage(`{"cn":"Häuser"}`), json.RawMessage(`{}`), "v1.x"
	insert(t, s, open, sealed, domain("bare"))
	is.Equal(size("acme"), [2]int{4, len(open.Config) + 2 + 4})
	is.Equal(size("evil"), [2]int{1, 0})
	is.Equal(size("nobody"), [2]int{0, 0})
}

func ids(all []domains.Domain) []string {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.ID)
	}
	return ids
}

func testTakenID(t *testing.T, s domains.Store) {
	is := is.New(t)
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", domain("local"))), errs.Conflict)
	insert(t, s, domain("ldap"))
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", domain("ldap"))), errs.Conflict)
}

func testUpdate(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("ldap"))
	about := "more"
	got, err := s.Update(ctx, "acme", "ldap", func(d *domains.Domain) error {
		d.Tenant, d.ID, d.CreatedAt, d.ScannedAt = "evil", "other", tuesday, &tuesday // these do not change
		d.Name, d.Description, d.Type, d.Config, d.Sealed, d.UpdatedAt =
			nil, &about, "SAML", json.RawMessage(`{}`), "s", tuesday
		return nil
	})
	is.NoErr(err)
	want := domains.Domain{Tenant: "acme", ID: "ldap", Description: &about,
		Type: "SAML", Config: json.RawMessage(`{}`), Sealed: "s",
		CreatedAt: monday, UpdatedAt: tuesday}
	is.Equal(got, want)
	got, err = s.Get(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(got, want)
	no := errors.New("no")
	_, err = s.Update(ctx, "acme", "ldap", func(d *domains.Domain) error { d.Type = "x"; return no })
	is.Equal(err, no)
	got, err = s.Get(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(got, want)
	_, err = s.Update(ctx, "acme", "other", func(*domains.Domain) error { t.Error("called"); return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testDelete(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("ldap"), domain("saml"))
	is.NoErr(s.UseLogin(ctx, "acme", "ldap", "a", monday))
	is.NoErr(s.BeginScan(ctx, "acme", "ldap", run("1", monday), monday))
	is.NoErr(s.Delete(ctx, "acme", "ldap"))
	is.Equal(errs.CodeOf(s.Delete(ctx, "acme", "ldap")), errs.NotFound)
	last, err := s.LastScan(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(last, domains.ScanState{})
	_, err = s.Get(ctx, "acme", "saml")
	is.NoErr(err)
	is.Equal(errs.CodeOf(s.UseLogin(ctx, "acme", "ldap", "b", monday)), errs.Conflict)
	is.Equal(errs.CodeOf(s.BeginScan(ctx, "acme", "ldap", run("1", monday), monday)), errs.Conflict)
}

func testIsolation(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("ldap"))
	for tenant, want := range map[string]int{"acme": 2, "evil": 1, "none": 0} {
		n, err := s.Count(ctx, tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}
	is.NoErr(s.UseLogin(ctx, "acme", "ldap", "a", monday))
	is.NoErr(s.BeginScan(ctx, "acme", "ldap", run("1", monday), monday))
	want, err := s.Get(ctx, "acme", "ldap")
	is.NoErr(err)
	for tenant, want := range map[string]bool{"acme": true, "evil": false, "none": false} {
		used, err := s.LoginUsed(ctx, tenant, "a")
		is.NoErr(err)
		is.Equal(used, want)
	}

	_, err = s.Get(ctx, "evil", "ldap")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Update(ctx, "evil", "ldap", func(d *domains.Domain) error { d.Type = "x"; return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.CodeOf(s.Delete(ctx, "evil", "ldap")), errs.NotFound)
	is.Equal(errs.CodeOf(s.SetScanned(ctx, "evil", "ldap", tuesday)), errs.NotFound)
	all, err := s.All(ctx, "evil", "")
	is.NoErr(err)
	is.Equal(ids(all), []string{"local"})
	page, err := s.Page(ctx, "evil", paging.Query{Limit: 10, Q: "ldap"})
	is.NoErr(err)
	is.Equal(page.Total, 0)
	n, err := s.Sweep(ctx, "evil", tuesday.AddDate(1, 0, 0))
	is.NoErr(err)
	is.Equal(n, 0)
	last, err := s.LastScan(ctx, "evil", "ldap")
	is.NoErr(err)
	is.Equal(last, domains.ScanState{})
	is.Equal(errs.CodeOf(s.LockScan(ctx, "evil", "ldap", "1")), errs.Conflict)
	is.NoErr(s.UpdateScan(ctx, "evil", "ldap", run("1", tuesday)))
	other := domain("ldap")
	other.Tenant, other.Type = "evil", "OIDC" // the same id in another tenant
	insert(t, s, other)

	got, err := s.Get(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(got, want)
	last, err = s.LastScan(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(last, run("1", monday))
	is.NoErr(s.UseLogin(ctx, "evil", "ldap", "a", monday)) // which is independent of that of acme
	is.Equal(errs.CodeOf(s.UseLogin(ctx, "acme", "ldap", "a", monday)), errs.Conflict)
}

func testFailedTx(t *testing.T, s domains.Store) {
	is, ctx, no := is.New(t), t.Context(), errors.New("no")
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.Insert(ctx, "acme", domain("ldap")))
		is.NoErr(s.UseLogin(ctx, "acme", "ldap", "a", monday))
		return no
	})
	is.Equal(err, no)
	_, err = s.Get(ctx, "acme", "ldap")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	for _, want := range []error{nil, no} { // a dry run stores nothing either
		is.Equal(s.DryRun(ctx, func(ctx context.Context) error {
			is.NoErr(s.Insert(ctx, "acme", domain("ldap")))
			_, err := s.Get(ctx, "acme", "ldap")
			is.NoErr(err)
			return want
		}), want)
		_, err = s.Get(ctx, "acme", "ldap")
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

func testParallelEdits(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("ldap"))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := s.Update(ctx, "acme", "ldap", func(d *domains.Domain) error { d.Sealed += "x"; return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := s.Get(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(len(got.Sealed), 20)
}

func testPages(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	for i, name := range []string{"Äpfel", "b", "C", "d"} {
		d := domain(fmt.Sprintf("x%d", i))
		d.Name, d.CreatedAt, d.UpdatedAt =
			&name, monday.Add(-time.Duration(i)*time.Hour), tuesday.Add(time.Duration(i%2)*time.Hour)
		insert(t, s, d)
	}
	bare := domain("e-bare")
	bare.Name = nil // sorted by its id
	insert(t, s, bare)
	for _, c := range []struct {
		q    paging.Query
		want []string
	}{
		{paging.Query{Limit: 3}, []string{"x1", "x2", "x3"}},
		{paging.Query{Start: 3, Limit: 3}, []string{"e-bare", "local", "x0"}},
		{paging.Query{Limit: 2, Sort: "-id"}, []string{"x3", "x2"}},
		{paging.Query{Limit: 1, Sort: "createdAt"}, []string{"x3"}},
		{paging.Query{Limit: 9, Q: "äPFEL"}, []string{"x0"}},
	} {
		page, err := s.Page(ctx, "acme", c.q)
		is.NoErr(err)
		is.Equal(ids(page.Rows), c.want)
	}
	all := func(ctx context.Context, q paging.Query) (paging.Page[domains.Domain], error) {
		return s.Page(ctx, "acme", q)
	}
	pagingtest.TestBytes(t, all)
	label := func(d domains.Domain) string {
		if d.Name == nil {
			return d.ID
		}
		return strings.ToLower(*d.Name)
	}
	byID := func(a, b domains.Domain) int { return strings.Compare(a.ID, b.ID) }
	pagingtest.TestOrder(t, all, "name", byID, map[string]func(a, b domains.Domain) int{
		"name":      func(a, b domains.Domain) int { return strings.Compare(label(a), label(b)) },
		"id":        byID,
		"createdAt": func(a, b domains.Domain) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updatedAt": func(a, b domains.Domain) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	})
	page, err := s.Page(ctx, "acme", paging.Query{Limit: 4})
	is.NoErr(err)
	is.Equal(page.Total, 6)
	page, err = s.Page(ctx, "acme", paging.Query{Limit: 4, After: page.Last})
	is.NoErr(err)
	is.Equal(ids(page.Rows), []string{"local", "x0"})
	_, err = s.Page(ctx, "acme", paging.Query{Limit: 4, Sort: "config"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func testLogins(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("oidc"), domain("saml"))
	is.NoErr(s.UseLogin(ctx, "acme", "oidc", "old", monday))
	is.NoErr(s.UseLogin(ctx, "acme", "oidc", "new", tuesday))
	for _, domain := range []string{"oidc", "saml"} {
		is.Equal(errs.CodeOf(s.UseLogin(ctx, "acme", domain, "old", tuesday)), errs.Conflict)
	}
	used := func(id string, want bool) {
		t.Helper()
		got, err := s.LoginUsed(ctx, "acme", id)
		is.NoErr(err)
		is.Equal(got, want)
	}
	used("old", true)
	used("other", false)
	n, err := s.Sweep(ctx, "acme", tuesday)
	is.NoErr(err)
	is.Equal(n, 1)
	used("old", false)
	used("new", true)
	is.NoErr(s.UseLogin(ctx, "acme", "oidc", "old", monday))
	is.Equal(errs.CodeOf(s.UseLogin(ctx, "acme", "oidc", "new", tuesday)), errs.Conflict)
}

func testUsedOnce(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("oidc"))
	var all sync.WaitGroup
	var mu sync.Mutex
	used := 0
	for range 10 {
		all.Go(func() {
			err := s.UseLogin(ctx, "acme", "oidc", "a", monday)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				used++
			} else if errs.CodeOf(err) != errs.Conflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	is.Equal(used, 1)
}

func run(id string, at time.Time) domains.ScanState {
	return domains.ScanState{ID: id, Phase: domains.Reading, StartedAt: at, HeardAt: at}
}

func testScans(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("ldap"))
	last, err := s.LastScan(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(last, domains.ScanState{})
	is.NoErr(s.BeginScan(ctx, "acme", "ldap", run("1", monday), monday))
	is.Equal(errs.CodeOf(s.BeginScan(ctx, "acme", "ldap", run("2", monday), monday)), errs.Conflict)
	ended := run("1", monday)
	ended.Phase, ended.Users, ended.Groups, ended.Written, ended.Total = domains.Failed, 20000, 200, 7, 9
	ended.Error, ended.HeardAt, ended.FinishedAt = "The directory ✓", tuesday, &tuesday
	is.NoErr(s.UpdateScan(ctx, "acme", "ldap", ended))
	last, err = s.LastScan(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(last, ended)

	next := run("2", monday) // one that has ended is replaced at any time, also by a dry run
	next.DryRun = true
	is.NoErr(s.BeginScan(ctx, "acme", "ldap", next, monday))
	is.NoErr(s.UpdateScan(ctx, "acme", "ldap", ended)) // the earlier one no longer exists
	last, err = s.LastScan(ctx, "acme", "ldap")
	is.NoErr(err)
	is.Equal(last, next)
	is.Equal(errs.CodeOf(s.BeginScan(ctx, "acme", "ldap", run("3", tuesday), monday)), errs.Conflict)
	is.NoErr(s.BeginScan(ctx, "acme", "ldap", run("3", tuesday), tuesday)) // it was last updated on Monday
	is.Equal(errs.CodeOf(s.LockScan(ctx, "acme", "ldap", "2")), errs.Conflict)
	is.NoErr(s.LockScan(ctx, "acme", "ldap", "3"))
}

func testLockTenant(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	var all sync.WaitGroup
	var mu sync.Mutex
	inside, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		inside += n
		most = max(most, inside)
	}
	for i := range 10 {
		all.Go(func() {
			err := s.InTx(ctx, func(ctx context.Context) error {
				if err := s.LockTenant(ctx, "acme"); err != nil {
					return err
				}
				count(1)
				defer count(-1)
				time.Sleep(time.Millisecond)
				return s.Insert(ctx, "acme", domain(fmt.Sprint("d", i)))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	is.Equal(most, 1)
	is.Equal(errs.CodeOf(s.LockTenant(ctx, "nobody")), errs.NotFound)
}

func testOneScan(t *testing.T, s domains.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, domain("ldap"))
	var all sync.WaitGroup
	var mu sync.Mutex
	var began []string
	for i := range 10 {
		all.Go(func() {
			id := fmt.Sprint(i)
			err := s.BeginScan(ctx, "acme", "ldap", run(id, tuesday), monday)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				began = append(began, id)
			} else if errs.CodeOf(err) != errs.Conflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	is.Equal(len(began), 1)
	last, err := s.LastScan(ctx, "acme", "ldap")
	is.NoErr(err)
	is.True(slices.Contains(began, last.ID))
}
