package bunstore_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// Change adds or removes something that a tenant stores, and returns the change of the tenant's
// usage.
type Change func(ctx context.Context, tenant string) tenants.Usage

// testStore checks a Store over a database with the tenants acme and evil. The changes are made in
// acme, one after the other. The Store must count them there, and not in evil.
func testStore(t *testing.T, s tenants.QuotaStore, changes map[string]Change) {
	is, ctx := is.New(t), t.Context()
	want, own, err := s.Usage(ctx, "acme")
	is.NoErr(err)
	is.Equal(own, tenants.Quota{})
	none, _, err := s.Usage(ctx, "evil")
	is.NoErr(err)
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			by := change(ctx, "acme")
			want.Files, want.Records, want.Workspaces = want.Files+by.Files, want.Records+
				by.Records, want.Workspaces+by.Workspaces
			want.Uploads, want.Downloads, want.Count = want.Uploads+by.Uploads, want.Downloads+
				by.Downloads, want.Count+by.Count
			got, _, err := s.Usage(ctx, "acme")
			is.NoErr(err)
			is.Equal(got, want)
			got, _, err = s.Measure(ctx, "acme")
			is.NoErr(err)
			is.Equal(
				[]int64{got.Files, got.Records, got.Workspaces},
				[]int64{want.Files, want.Records, want.Workspaces},
			)
			got, _, err = s.Usage(ctx, "evil") // another tenant's is not counted
			is.NoErr(err)
			is.Equal(got, none)
		})
	}
	_, _, err = s.Usage(ctx, "nobody")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.Measure(ctx, "nobody")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}
