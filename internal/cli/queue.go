package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

type queueStatsCommand struct {
	storage
}

func (q *queueStatsCommand) Run(ctx context.Context, t terminal) error {
	return q.with(ctx, t, func(app *tenantcontent.App) error {
		all, err := app.Queue().Stats(ctx)
		if err != nil {
			return err
		}
		rows := [][]string{{"TENANT", "KIND", "STATE", "JOBS", "FIRST DUE"}}
		for _, s := range all {
			rows = append(rows, []string{s.Tenant, s.Kind, string(s.State), fmt.Sprint(s.N), second(s.Oldest)})
		}
		return table(t, rows)
	})
}

type queueDeadCommand struct {
	storage
	Tenant string `help:"Id of the tenant (default: all)." placeholder:"ID"`
}

// Run lists at most the first 1,000 dead jobs of each tenant.
func (q *queueDeadCommand) Run(ctx context.Context, t terminal) error {
	return q.with(ctx, t, func(app *tenantcontent.App) error {
		tenants := []string{q.Tenant}
		var err error
		if q.Tenant == "" {
			tenants, err = deadOf(ctx, app)
		} else {
			_, err = app.Tenants.Unchecked().Lookup(ctx, q.Tenant)
		}
		if err != nil {
			return err
		}
		rows := [][]string{{"TENANT", "ID", "KIND", "TRIES", "ENDED", "ERROR"}}
		for _, tenant := range tenants {
			dead, err := app.Queue().Jobs(ctx, tenant, queue.Filter{State: queue.Dead})
			if err != nil {
				return err
			}
			for _, j := range dead {
				rows = append(rows, []string{
					tenant, harmless(j.ID), j.Kind, fmt.Sprint(j.Tries), second(*j.EndedAt), harmless(*j.Error),
				})
			}
		}
		return table(t, rows)
	})
}

// deadOf returns the tenants that have dead jobs.
func deadOf(ctx context.Context, app *tenantcontent.App) (tenants []string, err error) {
	all, err := app.Queue().Stats(ctx)
	for _, s := range all {
		if s.State == queue.Dead && !slices.Contains(tenants, s.Tenant) {
			tenants = append(tenants, s.Tenant)
		}
	}
	return tenants, err
}

// deadJobs selects dead jobs of a tenant.
type deadJobs struct {
	storage
	Tenant string   `arg:"" help:"Id of the tenant."`
	IDs    []string `arg:"" name:"id" help:"Ids of dead jobs."`
}

func (d *deadJobs) run(ctx context.Context, t terminal, do func(app *tenantcontent.App) error) error {
	return d.with(ctx, t, func(app *tenantcontent.App) error {
		if _, err := app.Tenants.Unchecked().Lookup(ctx, d.Tenant); err != nil {
			return err
		}
		return do(app)
	})
}

type queueRequeueCommand struct {
	deadJobs
}

// Run requeues all of the jobs or none. Running servers begin them within seconds.
func (q *queueRequeueCommand) Run(ctx context.Context, t terminal) error {
	return q.run(ctx, t, func(app *tenantcontent.App) error {
		if err := app.Queue().Requeue(ctx, q.Tenant, q.IDs...); err != nil {
			return err
		}
		return say(t, "Put back %s.", jobs(len(q.IDs)))
	})
}

type queueDiscardCommand struct {
	deadJobs
}

func (q *queueDiscardCommand) Run(ctx context.Context, t terminal) error {
	return q.run(ctx, t, func(app *tenantcontent.App) error {
		n, err := app.Queue().Discard(ctx, q.Tenant, q.IDs...)
		switch {
		case err != nil:
			return err
		case n == 0:
			return errs.New(
				errs.NotFound,
				"no dead job of the tenant %s has such an id: `tenantcontent queue dead` lists them", q.Tenant,
			)
		case n < len(q.IDs):
			return say(t, "Removed %s; the other ids are those of no dead job.", jobs(n))
		}
		return say(t, "Removed %s.", jobs(n))
	})
}

func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// second formats a time for people.
func second(at time.Time) string { return at.UTC().Format(time.RFC3339) }
