package bunstore_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// testRenameUsers: the entries and deployments of the deleted user maria do not become those of mia
// when she is renamed to maria.
func testRenameUsers(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	of := func(n int, kind, id string) bundles.Entry {
		e := entry(n, 1)
		e.Type, e.EntityID = kind, id
		return e
	}
	for _, tenant := range []string{"acme", "evil"} {
		add(
			t, s, tenant, bundle(1), of(1, "user", "jo"), of(2, "user", "mia"), of(3, "user", "maria"),
			of(4, "user", "other"), of(5, "tagged", "jo"),
		)
		is.NoErr(s.SetDeployed(ctx, tenant, "far", id(1), []bundles.Deployment{
			brought("tag", "jo", "1", false), brought("user", "jo", "2", false), brought("user", "maria", "3", false),
			brought("user", "mia", "4", false),
		}))
	}
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "Joe", "mia": "maria", "none": "nobody"}))
	is.NoErr(s.RenameUsers(ctx, "acme", nil))
	for tenant, want := range map[string]string{
		"acme": "user Joe, user maria, user other, tagged jo, ",
		"evil": "user jo, user mia, user maria, user other, tagged jo, ",
	} {
		b, err := s.Get(ctx, tenant, id(1))
		is.NoErr(err)
		got := ""
		for _, e := range b.Entries {
			got += e.Type + " " + e.EntityID + ", "
		}
		is.Equal(got, want)
	}
	all, err := s.Deployed(ctx, "acme", "far", id(1))
	is.NoErr(err)
	is.Equal(all, []bundles.Deployment{
		brought("tag", "jo", "1", false), brought("user", "Joe", "2", false),
		brought("user", "maria", "4", false),
	})
	all, err = s.Deployed(ctx, "evil", "far", id(1))
	is.NoErr(err)
	is.Equal(len(all), 4)
}

// testNoPrincipal: an entry cannot refer to a deleted user.
func testNoPrincipal(t *testing.T, s bundles.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", bundle(1))
	for n, c := range []struct {
		kind entity.Kind
		id   string
		want errs.Code
	}{{"user", "nobody", errs.Invalid}, {"team", id(7), errs.Invalid}, {"user", "jo", ""}, {"report", id(7), ""}} {
		e := entry(n, 1)
		e.Type, e.EntityID, e.Ref = string(c.kind), c.id, &entity.Ref{Kind: c.kind, ID: c.id}
		is.Equal(errs.CodeOf(s.InsertEntry(ctx, "acme", e)), c.want)
	}
	b, err := s.Get(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(len(b.Entries), 2)
}
