package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

type tenantDeleteCommand struct {
	storage
	ID                string `arg:"" help:"Id of the tenant."`
	Yes               bool   `help:"Do not ask."`
	WithoutWorkspaces bool   `help:"Delete it also if the SQL databases of its apps are elsewhere, and stay there."`
}

// Run shows what will be removed, requests the id on a terminal, and removes the tenant.
func (d *tenantDeleteCommand) Run(ctx context.Context, t terminal) error {
	return d.with(ctx, t, func(app *tenantcontent.App) error {
		counts, err := app.Tenants.Unchecked().Counts(ctx, d.ID)
		if errs.CodeOf(err) == errs.NotFound { // or its deletion was interrupted
			if err := d.delete(ctx, t, app); err != nil {
				return err
			}
			return say(t, "Deleted the rest of the tenant %s.", d.ID)
		}
		if err != nil {
			return err
		}
		if !d.WithoutWorkspaces {
			if err := app.Tenants.Unchecked().CheckDelete(ctx, d.ID); err != nil {
				return err
			}
		}
		if !d.Yes {
			if _, ok := t.keyboard(); !ok {
				return errs.New(
					errs.Invalid,
					"nothing was deleted: without a terminal to ask on, deleting the tenant %s needs --yes (it has %s)",
					d.ID, summary(counts),
				)
			}
			_, _ = fmt.Fprintf(t.err, "The tenant %s has %s. There is no way back.\n", d.ID, summary(counts))
			typed, err := t.line(ctx, "Type its id to delete it: ")
			if err != nil {
				return err
			}
			if typed != d.ID {
				return errs.New(errs.Invalid, "nothing was deleted: %q is not the id %s", harmless(typed), d.ID)
			}
		}
		if err := d.delete(ctx, t, app); err != nil {
			return err
		}
		return say(t, "Deleted the tenant %s with %s.", d.ID, summary(counts))
	})
}

// delete deletes the tenant, and shows the number of deleted rows. If it is interrupted, the next
// call continues.
func (d *tenantDeleteCommand) delete(ctx context.Context, t terminal, app *tenantcontent.App) error {
	p := t.progress()
	defer p.finish()
	p.begin("deleting", 0)
	rows := 0
	err := app.Tenants.Unchecked().Delete(ctx, d.ID, tenants.DeleteOptions{
		Leave: d.WithoutWorkspaces,
		Progress: func(n int) {
			rows += n
			p.name(fmt.Sprintf("deleting, %d rows", rows))
		},
	})
	if interruption(ctx, err) != nil {
		return interrupted("nobody can use the tenant any more: delete it again for the rest, or a running server " +
			"does in ten minutes")
	}
	return err
}

// summary lists counts, such as "2 users, 1 domain".
func summary(counts []tenants.Count) string {
	var parts []string
	for _, c := range counts {
		of := c.Of
		if c.N == 1 { // all names are plurals with s
			of = strings.Replace(strings.TrimSuffix(of, "s"), "items", "item", 1)
		}
		if c.N > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.N, of))
		}
	}
	return list(parts)
}
