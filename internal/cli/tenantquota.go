package cli

import (
	"context"
	"strconv"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

type tenantQuotaCommand struct {
	storage
	ID        string `arg:"" help:"Id of the tenant."`
	Size      string `help:"Most bytes that it stores, such as 50GiB; default: as many as the server allows." placeholder:"SIZE|default"`
	Databases string `help:"Most SQL databases of its apps and drafts; default: as many as the server allows." placeholder:"NUMBER|default"`
}

// Run sets the quota of a tenant, if a flag is set, and shows it with the usage. A running server
// uses it within a second.
func (q *tenantQuotaCommand) Run(ctx context.Context, t terminal) error {
	return q.with(ctx, t, func(app *tenantcontent.App) error {
		tenant, err := app.Tenants.Unchecked().Lookup(ctx, q.ID)
		if err != nil {
			return err
		}
		own := tenant.Quota
		if q.Size != "" {
			var of size
			if own.Bytes, err = ownLimit("--size", q.Size, &of, func() int64 { return int64(of) }); err != nil {
				return err
			}
		}
		if q.Databases != "" {
			var of count
			if own.Workspaces, err = ownLimit("--databases", q.Databases, &of, func() int {
				return int(of)
			}); err != nil {
				return err
			}
		}
		if q.Size != "" || q.Databases != "" {
			if _, err := app.Tenants.Unchecked().SetQuota(ctx, q.ID, own); err != nil {
				return err
			}
		}
		u, err := app.Storage(ctx, q.ID)
		if err != nil {
			return err
		}
		return table(t, [][]string{
			{"OF", "USED", "ALLOWED"},
			{"bytes", tenants.Size(u.Used()), ofServer(own.Bytes == nil, tenants.Size(u.Allowed))},
			{"uploads", tenants.Size(u.Uploads), ""},
			{"downloads", tenants.Size(u.Downloads), ""}, {"libraries", tenants.Size(u.Libraries()), ""},
			{"records", tenants.Size(u.Records), ""}, {"data of apps", tenants.Size(u.Workspaces), ""},
			{"databases", strconv.Itoa(u.Count), ofServer(own.Workspaces == nil, strconv.Itoa(u.MaxCount))},
		})
	})
}

// ofServer returns a limit, and marks one that is not the tenant's: the server may have another
// environment than this command.
func ofServer(is bool, limit string) string {
	if is {
		return limit + " (the server's)"
	}
	return limit
}

// ownLimit parses a limit. It returns nil for the server's limit. It returns errs.Invalid naming
// the flag.
func ownLimit[T any](flag, text string, into interface{ UnmarshalText([]byte) error }, value func() T) (*T, error) {
	if text == "default" {
		return nil, nil
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		return nil, errs.New(errs.Invalid, "%s: %v; or default, for what the server allows", flag, err)
	}
	limit := value()
	return &limit, nil
}
