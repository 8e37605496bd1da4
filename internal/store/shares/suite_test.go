package bunstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// Row is the guard.Guard.Row of the Store's conditional writes.
const Row = "app-share"

// InTx runs a function in one transaction, which the methods of the Store join.
type InTx func(ctx context.Context, fn func(ctx context.Context) error) error

// testStore runs all checks. open returns an empty Store whose rows for guards are Row, and whose
// database has the tenants acme and evil, each with the principals jo, joe, mia, team and *.
func testStore(t *testing.T, open func(t *testing.T) (shares.Store, InTx)) {
	for name, check := range map[string]func(*testing.T, shares.Store, InTx){
		"RoundTrip":          testRoundTrip,
		"Conditions":         testConditions,
		"Grants":             testGrants,
		"ManyGrants":         testManyGrants,
		"Replace":            testReplace,
		"Remove":             testRemove,
		"RemovePrincipals":   testRemovePrincipals,
		"RenameUsers":        testRenameUsers,
		"Isolation":          testIsolation,
		"FailedTxWritesNone": testFailedTx,
		"CanceledWritesNone": testCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			s, inTx := open(t)
			check(t, s, inTx)
		})
	}
}

func share(principal string, level shares.Level, roles ...string) shares.Share {
	return shares.Share{PrincipalID: principal, Level: level, Roles: roles, CreatedAt: monday, UpdatedAt: monday}
}

func put(t *testing.T, s shares.Store, id string, all ...shares.Share) {
	t.Helper()
	for _, one := range all {
		stored, err := s.Put(t.Context(), "acme", id, one)
		is.New(t).NoErr(err)
		is.New(t).Equal(stored, one)
	}
}

func all(t *testing.T, s shares.Store, tenant, id string) []shares.Share {
	t.Helper()
	rows, err := s.All(t.Context(), tenant, id)
	is.New(t).NoErr(err)
	return rows
}

// principals returns the principals that have a share of an entity of acme.
func principals(t *testing.T, s shares.Store, id string) string {
	t.Helper()
	var ids []string
	for _, one := range all(t, s, "acme", id) {
		ids = append(ids, one.PrincipalID)
	}
	return strings.Join(ids, " ")
}

func testRoundTrip(t *testing.T, s shares.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	want := []shares.Share{
		{PrincipalID: shares.Everyone, Level: shares.Use, CreatedAt: monday, UpdatedAt: tuesday},
		{
			PrincipalID: "jo",
			Level:       shares.Admin,
			Roles:       []string{`"; DROP`, "a,b", "$1?", "ü 🎨", "<b>\\"},
			CreatedAt:   monday,
			UpdatedAt:   monday,
		},
		{
			PrincipalID: "mia",
			Level:       shares.None,
			Roles:       []string{strings.Repeat("x", shares.MaxRole)},
			CreatedAt:   tuesday,
			UpdatedAt:   tuesday,
		},
		{PrincipalID: "team", Level: shares.Write, CreatedAt: monday, UpdatedAt: monday},
	}
	fieldtest.Full(t, want[1])
	put(t, s, "a", want[3], want[1], want[0], want[2])
	put(t, s, "b", share("joe", shares.Use))
	is.Equal(all(t, s, "acme", "a"), want) // ordered
	for _, one := range want {
		got, err := s.One(ctx, "acme", "a", one.PrincipalID)
		is.NoErr(err)
		is.Equal(got, one)
	}
	for _, at := range [][2]string{{"a", "joe"}, {"c", "jo"}, {"A", "jo"}, {"a", ""}} {
		_, err := s.One(ctx, "acme", at[0], at[1])
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.CodeOf(s.Delete(ctx, "acme", at[0], at[1])), errs.NotFound)
	}

	fresh := shares.Share{PrincipalID: "jo", Level: shares.Use, CreatedAt: tuesday, UpdatedAt: tuesday}
	stored, err := s.Put(ctx, "acme", "a", fresh)
	is.NoErr(err)
	fresh.CreatedAt = monday // the creation time of the share does not change
	is.Equal(stored, fresh)
	got, err := s.One(ctx, "acme", "a", "jo")
	is.NoErr(err)
	is.Equal(got, fresh)
	is.True(got.Version() != want[1].Version())

	is.NoErr(s.Delete(ctx, "acme", "a", "jo"))
	is.Equal(errs.CodeOf(s.Delete(ctx, "acme", "a", "jo")), errs.NotFound)
	is.Equal(principals(t, s, "a"), "* mia team")
	is.Equal(principals(t, s, "b"), "joe")
	is.Equal(principals(t, s, "c"), "")
}

// testConditions: a write whose condition is not met changes nothing.
func testConditions(t *testing.T, s shares.Store, _ InTx) {
	is := is.New(t)
	first, second := share("jo", shares.Use), share("jo", shares.Write)
	second.UpdatedAt = tuesday
	demand := func(version string) context.Context {
		return guard.With(t.Context(), &guard.Guard{Row: Row, Fits: func(v string, exists bool) bool {
			return exists && v == version
		}})
	}
	none := func() context.Context {
		return guard.With(t.Context(), &guard.Guard{Row: Row, Fits: func(_ string, exists bool) bool {
			return !exists
		}})
	}
	write := func(ctx context.Context, one shares.Share) errs.Code {
		_, err := s.Put(ctx, "acme", "a", one)
		return errs.CodeOf(err)
	}
	is.Equal(write(demand(first.Version()), first), errs.Stale) // the share does not exist
	is.Equal(principals(t, s, "a"), "")
	is.Equal(write(none(), first), errs.Code(""))
	is.Equal(write(none(), second), errs.Stale)
	is.Equal(write(demand(second.Version()), second), errs.Stale)
	is.Equal(all(t, s, "acme", "a"), []shares.Share{first})
	is.Equal(write(demand(first.Version()), second), errs.Code(""))
	is.Equal(all(t, s, "acme", "a"), []shares.Share{second})
	is.Equal(errs.CodeOf(s.Delete(demand(first.Version()), "acme", "a", "jo")), errs.Stale)
	is.Equal(all(t, s, "acme", "a"), []shares.Share{second})
	is.NoErr(s.Delete(demand(second.Version()), "acme", "a", "jo"))
	is.Equal(principals(t, s, "a"), "")
}

// testGrants: Grants returns the highest level, and the roles of all shares that grant something.
func testGrants(t *testing.T, s shares.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	put(
		t, s, "both", share("jo", shares.Use, "b", "x"), share("team", shares.Write, "a", "b"),
		share("mia", shares.Admin, "never"),
	)
	put(t, s, "every", share(shares.Everyone, shares.Use))
	put(t, s, "none", share("jo", shares.None, "z"))
	put(t, s, "off", share("jo", shares.None, "z"), share("team", shares.Use, "y"))
	put(t, s, "other", share("mia", shares.Write))
	put(t, s, "unasked", share("jo", shares.Write))
	ids, jo := []string{
		"both", "every", "none", "off", "other", "missing", "both",
	}, []string{shares.Everyone, "jo", "team", "jo"}
	grants, err := s.Grants(ctx, "acme", ids, jo)
	is.NoErr(err)
	is.Equal(grants, map[string]shares.Grant{
		"both":  {Level: shares.Write, Roles: []string{"a", "b", "x"}},
		"every": {Level: shares.Use},
		"off":   {Level: shares.Use, Roles: []string{"y"}},
	})
	for _, none := range [][2][]string{{nil, jo}, {ids, nil}, {{"other"}, jo}, {ids, {"joe"}}} {
		grants, err := s.Grants(ctx, "acme", none[0], none[1])
		is.NoErr(err)
		is.Equal(len(grants), 0)
	}
}

// testManyGrants has more entities and principals than fit the arguments of one statement.
func testManyGrants(t *testing.T, s shares.Store, _ InTx) {
	is := is.New(t)
	put(t, s, "a", share("team", shares.Use))
	ids, mine := make([]string, 40_000), make([]string, 40_000)
	for i := range ids {
		ids[i], mine[i] = "e"+strings.Repeat("x", i%30), "p"+strings.Repeat("x", i%30)
	}
	ids[20_000], mine[30_000] = "a", "team"
	grants, err := s.Grants(t.Context(), "acme", ids, mine)
	is.NoErr(err)
	is.Equal(grants, map[string]shares.Grant{"a": {Level: shares.Use}})
}

func testReplace(t *testing.T, s shares.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "a", share("jo", shares.Use, "r"), share("mia", shares.Write))
	put(t, s, "b", share("jo", shares.Use))
	want := []shares.Share{
		share(shares.Everyone, shares.None), share("jo", shares.Write), share("team", shares.Use, "r"),
	}
	want[1].CreatedAt, want[1].UpdatedAt = tuesday, tuesday
	is.NoErr(s.Replace(ctx, "acme", map[string][]shares.Share{"a": {want[2], want[0], want[1]}}))
	is.Equal(all(t, s, "acme", "a"), want)
	is.NoErr(s.Replace(ctx, "acme", map[string][]shares.Share{"a": want})) // again
	is.Equal(all(t, s, "acme", "a"), want)
	twice := []shares.Share{share("jo", shares.Use), share("jo", shares.Write)}
	is.Equal(errs.CodeOf(s.Replace(ctx, "acme", map[string][]shares.Share{"a": twice})), errs.Conflict)
	is.Equal(all(t, s, "acme", "a"), want)
	is.NoErr(s.Replace(ctx, "acme", map[string][]shares.Share{"a": nil}))
	is.Equal(principals(t, s, "a"), "")
	is.Equal(principals(t, s, "b"), "jo")

	several := map[string][]shares.Share{"a": want, "b": nil, "c": {share("mia", shares.Use)}}
	is.NoErr(s.Replace(ctx, "acme", several))
	some, err := s.Some(ctx, "acme", []string{"c", "a", "b", "none"})
	is.NoErr(err)
	is.Equal(some, map[string][]shares.Share{"a": want, "c": several["c"]})
	is.NoErr(s.Replace(ctx, "acme", nil))
	for tenant, ids := range map[string][]string{"acme": nil, "evil": {"a", "c"}} {
		some, err := s.Some(ctx, tenant, ids)
		is.NoErr(err)
		is.Equal(len(some), 0)
	}
}

func testRemove(t *testing.T, s shares.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	for _, id := range []string{"a", "b", "c"} {
		put(t, s, id, share("jo", shares.Use), share("mia", shares.Use))
	}
	is.NoErr(s.Remove(ctx, "acme", []string{"a", "c", "missing"}))
	is.NoErr(s.Remove(ctx, "acme", nil))
	is.Equal(principals(t, s, "a")+principals(t, s, "c"), "")
	is.Equal(principals(t, s, "b"), "jo mia")
}

func testRemovePrincipals(t *testing.T, s shares.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "b", share("jo", shares.Use), share("team", shares.Use), share("mia", shares.Use))
	put(t, s, "a", share("team", shares.None))
	put(t, s, "c", share("mia", shares.Use))
	gone := []string{"jo", "team", "nobody"}
	ids, err := s.SharedWith(ctx, "acme", gone)
	is.NoErr(err)
	is.Equal(ids, []string{"a", "b"})
	is.NoErr(s.RemovePrincipals(ctx, "acme", gone))
	is.Equal(principals(t, s, "a"), "")
	is.Equal(principals(t, s, "b"), "mia")
	is.Equal(principals(t, s, "c"), "mia")
	for _, none := range [][]string{nil, {"jo"}} {
		is.NoErr(s.RemovePrincipals(ctx, "acme", none))
		ids, err := s.SharedWith(ctx, "acme", none)
		is.NoErr(err)
		is.Equal(len(ids), 0)
	}
}

func testRenameUsers(t *testing.T, s shares.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	was := share("jo", shares.Write, "r")
	put(t, s, "a", was, share("mia", shares.Use), share(shares.Everyone, shares.Use))
	put(t, s, "b", share("jo", shares.Use), share("team", shares.Use))
	_, err := s.Put(ctx, "evil", "a", was)
	is.NoErr(err)
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "Joe", "mia": "maria", "none": "nobody"}))
	is.NoErr(s.RenameUsers(ctx, "acme", nil))
	is.Equal(principals(t, s, "a"), "* Joe maria")
	is.Equal(principals(t, s, "b"), "Joe team")
	got, err := s.One(ctx, "acme", "a", "Joe")
	is.NoErr(err)
	was.PrincipalID = "Joe"
	is.Equal(got, was)
	is.Equal(len(all(t, s, "evil", "a")), 1) // shares of another tenant are kept
	_, err = s.One(ctx, "evil", "a", "jo")
	is.NoErr(err)
}

func testIsolation(t *testing.T, s shares.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	mine := []shares.Share{share("jo", shares.Write, "r"), share("mia", shares.Use)}
	put(t, s, "a", mine...)
	is.Equal(len(all(t, s, "evil", "a")), 0)
	_, err := s.One(ctx, "evil", "a", "jo")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	grants, err := s.Grants(ctx, "evil", []string{"a"}, []string{"jo", "mia"})
	is.NoErr(err)
	is.Equal(len(grants), 0)
	is.Equal(errs.CodeOf(s.Delete(ctx, "evil", "a", "jo")), errs.NotFound)
	is.NoErr(s.Remove(ctx, "evil", []string{"a"}))
	ids, err := s.SharedWith(ctx, "evil", []string{"jo"})
	is.NoErr(err)
	is.Equal(len(ids), 0)
	is.NoErr(s.RemovePrincipals(ctx, "evil", []string{"jo"}))
	is.NoErr(s.RenameUsers(ctx, "evil", map[string]string{"jo": "x"}))
	_, err = s.Put(ctx, "evil", "a", share("jo", shares.Admin, "theirs"))
	is.NoErr(err)
	is.NoErr(s.Replace(ctx, "evil", map[string][]shares.Share{"a": {share("team", shares.Admin)}}))
	is.Equal(all(t, s, "acme", "a"), mine) // untouched
	is.Equal(len(all(t, s, "evil", "a")), 1)
}

func testFailedTx(t *testing.T, s shares.Store, inTx InTx) {
	is, fault := is.New(t), errors.New("fault")
	put(t, s, "a", share("jo", shares.Use), share("mia", shares.Use))
	put(t, s, "b", share("jo", shares.Use), share("mia", shares.Use))
	was := slices.Concat(all(t, s, "acme", "a"), all(t, s, "acme", "b"))
	err := inTx(t.Context(), func(ctx context.Context) error {
		_, err := s.Put(ctx, "acme", "a", share("jo", shares.Write))
		is.NoErr(err)
		got, err := s.One(ctx, "acme", "a", "jo")
		is.NoErr(err)
		is.Equal(got.Level, shares.Write) // the transaction sees its own writes
		is.NoErr(s.Delete(ctx, "acme", "a", "mia"))
		is.NoErr(s.Replace(ctx, "acme", map[string][]shares.Share{"b": {
			share("team", shares.Use), share("jo", shares.Use),
		}}))
		is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"team": "crew"}))
		is.NoErr(s.RemovePrincipals(ctx, "acme", []string{"jo"}))
		is.NoErr(s.Remove(ctx, "acme", []string{"b"}))
		return fault
	})
	is.Equal(err, fault)
	is.Equal(slices.Concat(all(t, s, "acme", "a"), all(t, s, "acme", "b")), was)
}

func testCanceled(t *testing.T, s shares.Store, _ InTx) {
	is := is.New(t)
	put(t, s, "a", share("jo", shares.Use))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, "acme", "a", share("mia", shares.Use))
	is.True(errors.Is(err, context.Canceled))
	is.True(errors.Is(s.Delete(ctx, "acme", "a", "jo"), context.Canceled))
	is.True(errors.Is(s.Replace(ctx, "acme", map[string][]shares.Share{"a": nil}), context.Canceled))
	is.Equal(principals(t, s, "a"), "jo")
}
