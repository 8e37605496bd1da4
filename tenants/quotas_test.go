package tenants_test

import (
	"context"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// fixed is a Store in which each tenant stores as much.
type fixed tenants.Usage

func (f fixed) Measure(context.Context, string) (tenants.Usage, tenants.Quota, error) {
	return tenants.Usage(f), tenants.Quota{}, nil
}

func (f fixed) Usage(ctx context.Context, tenant string) (tenants.Usage, tenants.Quota, error) {
	return f.Measure(ctx, tenant)
}

// TestImports: what is to come is compared with what the server allows, and what is there may be as
// much as that.
func TestImports(t *testing.T) {
	is := is.New(t)
	s := tenants.NewQuotas(tenants.QuotaOptions{
		Store:      fixed{Files: 60, Records: 30, Workspaces: 10},
		Bytes:      100,
		Workspaces: 2,
	})
	is.NoErr(s.CheckImport(100, 2))
	err := s.CheckImport(101, 2)
	is.Equal(errs.CodeOf(err), errs.Full)
	is.True(strings.Contains(err.Error(), "it stores 101 bytes, and may store 100 bytes here"))
	err = s.CheckImport(100, 3)
	is.Equal(errs.CodeOf(err), errs.Full)
	is.True(strings.Contains(err.Error(), "has 3 SQL databases of apps, and may have 2 here"))

	is.NoErr(s.CheckStored(t.Context(), "acme")) // it is full, and stores no more than it may
	is.Equal(errs.CodeOf(s.Check(t.Context(), "acme", 1)), errs.Full)
	s = tenants.NewQuotas(tenants.QuotaOptions{Store: fixed{Files: 60, Records: 30, Workspaces: 10}, Bytes: 99})
	is.Equal(errs.CodeOf(s.CheckStored(t.Context(), "acme")), errs.Full)
}
