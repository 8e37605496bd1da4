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

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns a Store whose database has only the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) tenants.Store) {
	for name, check := range map[string]func(*testing.T, tenants.Store){
		"RoundTrip":            testRoundTrip,
		"TakenID":              testTaken,
		"Isolation":            testIsolation,
		"FailedEditWritesNone": testFailedEdit,
		"ParallelEditsAllLand": testParallelEdits,
		"FailedTxWritesNone":   testFailedTx,
		"Hidden":               testHidden,
		"Reseal":               testReseal,
		"Delete":               testDelete,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// columns are the sealed columns of tenants.
var columns = []entity.SealedColumn{{Table: "tc_tenants", Column: "key_check", Key: "tenant_id"}}

func tenant(id string) tenants.Tenant {
	bytes, workspaces := int64(20<<30), 5
	return tenants.Tenant{
		ID: id, Name: "Über '; --?$1\\ 🎨",
		Settings: tenants.Settings{
			AI: true, Licenses: []string{"apps", `"ü"`},
			DefaultDomain: "ldap", DeployFrom: []tenants.Source{{Tenant: "acme", RunAs: "jo"}, {Tenant: "evil"}},
		},
		Quota: tenants.Quota{Bytes: &bytes, Workspaces: &workspaces}, CreatedAt: monday, UpdatedAt: tuesday,
	}
}

func testRoundTrip(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	want := tenant("new")
	fieldtest.Full(t, want)
	fieldtest.Full(t, want.Settings)
	fieldtest.Full(t, want.Settings.DeployFrom[0])
	is.NoErr(s.Insert(ctx, want, "sealed"))
	got, err := s.Get(ctx, "new")
	is.NoErr(err)
	is.Equal(got, want)
	check, err := s.KeyCheck(ctx, "new")
	is.NoErr(err)
	is.Equal(check, "sealed")
	ids, err := s.IDs(ctx)
	is.NoErr(err)
	is.Equal(ids, []string{"acme", "evil", "new"})

	want.Name, want.UpdatedAt = "New", tuesday.Add(time.Hour)
	want.Settings = tenants.Settings{Licenses: []string{}, DefaultDomain: "local", DeployFrom: tenants.Sources()}
	want.Quota = tenants.Quota{}
	changed, err := s.Update(ctx, "new", func(t *tenants.Tenant) error { *t = want; return nil })
	is.NoErr(err)
	is.Equal(changed, want)
	got, err = s.Get(ctx, "new")
	is.NoErr(err)
	is.Equal(got, want)

	acme, err := s.Get(ctx, "acme") // settings '{}': missing settings have their defaults
	is.NoErr(err)
	is.Equal(acme.Settings, want.Settings)
}

func testTaken(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	is.Equal(errs.CodeOf(s.Insert(ctx, tenant("acme"), "x")), errs.Conflict)
	acme, err := s.Get(ctx, "acme")
	is.NoErr(err)
	is.Equal(acme.Name, "acme")
}

func testIsolation(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	before, err := s.Get(ctx, "acme")
	is.NoErr(err)
	_, err = s.Update(ctx, "evil", func(t *tenants.Tenant) error { t.Name = "x"; return nil })
	is.NoErr(err)
	n, err := s.Reseal(ctx, "evil", columns, func(old tenants.Secret) (string, error) {
		is.Equal(old.Row, "evil") // nothing of another tenant is visible
		return "resealed", nil
	})
	is.NoErr(err)
	is.Equal(n, 1)
	after, err := s.Get(ctx, "acme")
	is.NoErr(err)
	is.Equal(after, before)
	check, err := s.KeyCheck(ctx, "acme")
	is.NoErr(err)
	is.Equal(check, "")

	_, err = s.Get(ctx, "none")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.KeyCheck(ctx, "none")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Update(ctx, "none", func(*tenants.Tenant) error { return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	n, err = s.Reseal(ctx, "none", columns, func(tenants.Secret) (string, error) { return "x", nil })
	is.NoErr(err)
	is.Equal(n, 0)
}

func testDelete(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	is.NoErr(s.Insert(ctx, tenant("new"), "sealed"))
	_, err := s.Update(ctx, "acme", func(t *tenants.Tenant) error {
		t.Settings.DeployFrom, t.UpdatedAt = []tenants.Source{
			{Tenant: "evil"}, {Tenant: "new", RunAs: "jo"}, {Tenant: "newer"},
		}, monday
		return nil
	})
	is.NoErr(err)
	evil, err := s.Get(ctx, "evil")
	is.NoErr(err)
	is.NoErr(s.Hide(ctx, "new", tenants.Deleting, tuesday))
	fault := errors.New("fault")
	is.Equal(s.Forget(ctx, "new", tuesday, nil, func(context.Context, string) error { return fault }), fault)
	acme, err := s.Get(ctx, "acme")
	is.NoErr(err)
	is.Equal(len(acme.Settings.DeployFrom), 3) // nothing is changed if it fails

	var others []string
	is.NoErr(s.Forget(ctx, "new", tuesday, []string{"new", "evil", "evil"}, func(
		ctx context.Context, other string,
	) error {
		others = append(others, other)
		t, err := s.Get(ctx, other) // in the transaction, after its DeployFrom was changed
		is.NoErr(err)
		is.True(!slices.ContainsFunc(t.Settings.DeployFrom, func(f tenants.Source) bool { return f.Tenant == "new" }))
		return nil
	}))
	is.Equal(others, []string{"acme", "evil"})
	rows := 0
	is.NoErr(s.Empty(ctx, "new", func(n int) { rows += n }))
	is.True(rows > 0) // the database creates some with the tenant
	is.NoErr(s.Delete(ctx, "new"))
	acme, err = s.Get(ctx, "acme")
	is.NoErr(err)
	is.Equal(acme.Settings.DeployFrom, tenants.Sources("evil", "newer")) // not for a later tenant with that id
	is.Equal(acme.UpdatedAt, tuesday)
	same, err := s.Get(ctx, "evil")
	is.NoErr(err)
	is.Equal(same, evil)
	_, err = s.Get(ctx, "new")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.CodeOf(s.Delete(ctx, "new")), errs.NotFound)
	ids, err := s.IDs(ctx)
	is.NoErr(err)
	is.Equal(ids, []string{"acme", "evil"}) // the others are kept
}

// testHidden: a hidden tenant is found only by calls that request it.
func testHidden(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	is.NoErr(s.Insert(ctx, tenant("new"), "k1.new"))
	is.NoErr(s.Insert(ctx, tenant("newer"), "k1.newer"))
	is.NoErr(s.Insert(ctx, tenant("newest"), "k2.newest"))
	checks, err := s.KeyChecks(ctx, 3)
	is.NoErr(err)
	is.Equal(checks, []string{"acme", "new", "newest"}) // one for each key
	why, _, err := s.Hidden(ctx, "new")
	is.NoErr(err)
	is.Equal(why, tenants.Hidden(""))

	is.NoErr(s.Hide(ctx, "new", tenants.Importing, monday))
	is.NoErr(s.Hide(ctx, "new", tenants.Importing, tuesday))
	is.Equal(errs.CodeOf(s.Hide(ctx, "new", tenants.Deleting, tuesday)), errs.NotFound) // the reason is another one
	why, at, err := s.Hidden(ctx, "new")
	is.NoErr(err)
	is.Equal(why, tenants.Importing)
	is.Equal(at, tuesday)
	_, err = s.Get(ctx, "new")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Update(ctx, "new", func(*tenants.Tenant) error { return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	ids, err := s.IDs(ctx)
	is.NoErr(err)
	is.Equal(ids, []string{"acme", "evil", "newer", "newest"})
	all, err := s.All(ctx)
	is.NoErr(err)
	is.Equal(len(all), 4)
	is.Equal(all[2], tenant("newer"))
	ids, err = s.HiddenIDs(ctx)
	is.NoErr(err)
	is.Equal(ids, []string{"new"})
	checks, err = s.KeyChecks(ctx, 3)
	is.NoErr(err)
	is.Equal(checks, []string{"acme", "newer", "newest"})
	is.Equal(errs.CodeOf(s.Insert(ctx, tenant("new"), "x")), errs.Conflict)

	for _, was := range []tenants.Hidden{tenants.Importing, tenants.Deleting} {
		// a reason or time other than that of the tenant
		since := map[tenants.Hidden]time.Time{tenants.Importing: monday, tenants.Deleting: tuesday}[was]
		is.Equal(errs.CodeOf(s.Rehide(ctx, "new", was, since, tenants.Deleting, tuesday)), errs.NotFound)
		is.Equal(errs.CodeOf(s.Show(ctx, "new", was, since)), errs.NotFound)
	}
	is.NoErr(s.Rehide(ctx, "new", tenants.Importing, tuesday, tenants.Deleting, monday))
	why, at, err = s.Hidden(ctx, "new")
	is.NoErr(err)
	is.Equal(why, tenants.Deleting)
	is.Equal(at, monday)
	// not hidden
	is.Equal(errs.CodeOf(s.Rehide(ctx, "newer", tenants.Importing, tuesday, tenants.Deleting, monday)), errs.NotFound)
	is.Equal(errs.CodeOf(s.Rehide(ctx, "none", tenants.Importing, tuesday, tenants.Deleting, monday)), errs.NotFound)

	is.NoErr(s.Show(ctx, "new", tenants.Deleting, monday))
	is.Equal(errs.CodeOf(s.Show(ctx, "new", tenants.Deleting, monday)), errs.NotFound)
	got, err := s.Get(ctx, "new")
	is.NoErr(err)
	is.Equal(got, tenant("new"))
	for _, id := range []string{"acme", "evil", "new", "newer", "newest"} {
		any, err := s.Any(ctx)
		is.NoErr(err)
		is.True(any)
		is.Equal(errs.CodeOf(s.Delete(ctx, id)), errs.NotFound) // it is not being deleted
		is.NoErr(s.Hide(ctx, id, tenants.Deleting, monday))
		is.NoErr(s.Delete(ctx, id))
	}
	any, err := s.Any(ctx)
	is.NoErr(err)
	is.True(!any)
	_, _, err = s.Hidden(ctx, "new")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testFailedEdit(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	fault := errors.New("fault")
	_, err := s.Update(ctx, "acme", func(t *tenants.Tenant) error { t.Name = "x"; return fault })
	is.Equal(err, fault)
	got, err := s.Get(ctx, "acme")
	is.NoErr(err)
	is.Equal(got.Name, "acme")
	_, err = s.Reseal(ctx, "acme", columns, func(tenants.Secret) (string, error) { return "x", fault })
	is.Equal(err, fault)
	check, err := s.KeyCheck(ctx, "acme")
	is.NoErr(err)
	is.Equal(check, "")
}

func testFailedTx(t *testing.T, s tenants.Store) {
	is, no := is.New(t), errors.New("no")
	was, err := s.Get(t.Context(), "acme")
	is.NoErr(err)
	err = s.InTx(t.Context(), func(ctx context.Context) error {
		_, err := s.Update(ctx, "acme", func(t *tenants.Tenant) error { t.Name = "New"; return nil })
		is.NoErr(err)
		return no
	})
	is.Equal(err, no)
	got, err := s.Get(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(got, was)
}

func testParallelEdits(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	var wg sync.WaitGroup
	fails := make([]error, 20)
	for i := range fails {
		wg.Go(func() {
			_, fails[i] = s.Update(ctx, "acme", func(t *tenants.Tenant) error {
				t.Settings.Licenses = append(t.Settings.Licenses, fmt.Sprintf("l%02d", i))
				return nil
			})
		})
	}
	wg.Wait()
	is.NoErr(errors.Join(fails...))
	got, err := s.Get(ctx, "acme")
	is.NoErr(err)
	slices.Sort(got.Settings.Licenses)
	is.Equal(len(slices.Compact(got.Settings.Licenses)), 20)
}

func testReseal(t *testing.T, s tenants.Store) {
	is, ctx := is.New(t), t.Context()
	is.NoErr(s.Insert(ctx, tenant("new"), "old"))
	again := func(old tenants.Secret) (string, error) {
		is.Equal(old.Table+"."+old.Column+"."+old.Row, "tc_tenants.key_check.new")
		return strings.ReplaceAll(old.Sealed, "old", "fresh"), nil
	}
	n, err := s.Reseal(ctx, "new", columns, again)
	is.NoErr(err)
	is.Equal(n, 1)
	n, err = s.Reseal(ctx, "new", columns, again)
	is.NoErr(err)
	is.Equal(n, 0) // nothing to write
	check, err := s.KeyCheck(ctx, "new")
	is.NoErr(err)
	is.Equal(check, "fresh")
	got, err := s.Get(ctx, "new")
	is.NoErr(err)
	is.Equal(got, tenant("new")) // nothing else changes, nor does UpdatedAt
}
