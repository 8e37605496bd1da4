package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

type tenantListCommand struct {
	storage
}

func (l *tenantListCommand) Run(ctx context.Context, t terminal) error {
	return l.with(ctx, t, func(app *tenantcontent.App) error {
		all, err := app.Tenants.Unchecked().All(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "NAME", "CREATED"}}
		for _, tenant := range all {
			rows = append(rows, []string{tenant.ID, harmless(tenant.Name), day(tenant.CreatedAt)})
		}
		return table(t, rows)
	})
}

type tenantShowCommand struct {
	storage
	ID string `arg:"" help:"Id of the tenant."`
}

func (s *tenantShowCommand) Run(ctx context.Context, t terminal) error {
	return s.with(ctx, t, func(app *tenantcontent.App) error {
		tenant, err := app.Tenants.Unchecked().Lookup(ctx, s.ID)
		if err != nil {
			return err
		}
		counts, err := app.Tenants.Unchecked().Counts(ctx, s.ID)
		if err != nil {
			return err
		}
		sources := make([]string, len(tenant.Settings.DeployFrom))
		for i, from := range tenant.Settings.DeployFrom {
			sources[i] = from.Tenant
		}
		rows := [][]string{
			{"id", tenant.ID}, {"name", harmless(tenant.Name)}, {"created", day(tenant.CreatedAt)},
			{"AI", map[bool]string{true: "on", false: "off"}[tenant.Settings.AI]}, {"licenses", list(tenant.Settings.Licenses)},
			{"default domain", tenant.Settings.DefaultDomain}, {"deploys from", list(sources)},
		}
		for _, c := range counts {
			rows = append(rows, []string{c.Of, fmt.Sprint(c.N)})
		}
		return table(t, rows)
	})
}

type tenantDeleteCommand struct {
	storage
	ID                string `arg:"" help:"Id of the tenant."`
	Yes               bool   `help:"Do not ask."`
	WithoutWorkspaces bool   `help:"Delete it also if the SQL databases of its apps are elsewhere, and stay there."`
}

// Run shows what is removed, asks for the id on a terminal, and removes the tenant.
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
			if err := app.CheckDelete(ctx, d.ID); err != nil {
				return err
			}
		}
		if !d.Yes {
			if _, ok := t.keyboard(); !ok {
				return errs.New(errs.Invalid, "nothing was deleted: without a terminal to ask on, deleting the tenant %s needs --yes (it has %s)", d.ID, summary(counts))
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

// delete deletes the tenant, and shows how many rows are gone. Interrupted, it goes on the next time.
func (d *tenantDeleteCommand) delete(ctx context.Context, t terminal, app *tenantcontent.App) error {
	p := t.progress()
	defer p.finish()
	p.begin("deleting", 0)
	rows := 0
	err := app.Tenants.Unchecked().Delete(ctx, d.ID, func(n int) {
		rows += n
		p.name(fmt.Sprintf("deleting, %d rows", rows))
	})
	if interruption(ctx, err) != nil {
		return interrupted("nobody can use the tenant any more: delete it again for the rest, or a running server does in ten minutes")
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

type domainListCommand struct {
	storage
	Tenant string `default:"default" help:"Id of the tenant." placeholder:"ID"`
}

func (l *domainListCommand) Run(ctx context.Context, t terminal) error {
	return l.with(ctx, t, func(app *tenantcontent.App) error {
		if _, err := app.Tenants.Unchecked().Lookup(ctx, l.Tenant); err != nil {
			return err
		}
		ctx := actor.With(ctx, actor.Actor{Tenant: l.Tenant, User: "*", Superuser: true})
		all, err := app.Domains.All(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "TYPE", "NAME", "LAST SCAN", "NEXT SCAN", "SCHEDULE"}}
		for _, d := range all {
			name, scanned, next := "", "-", "-"
			if d.Name != nil {
				name = harmless(*d.Name)
			}
			if d.ScannedAt != nil {
				scanned = second(*d.ScannedAt)
			}
			schedule := app.Domains.Unchecked().Schedule(d)
			if schedule != "" {
				at, err := app.Domains.NextScan(ctx, d.ID)
				if err != nil {
					return err
				}
				if at != nil {
					next = second(*at)
				}
			}
			rows = append(rows, []string{d.ID, d.Type, name, scanned, next, cmp.Or(harmless(schedule), "-")})
		}
		return table(t, rows)
	})
}

// table prints rows in columns.
func table(t terminal, rows [][]string) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// list joins words, "nothing" for none.
func list(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
