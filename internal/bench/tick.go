package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const (
	manySchedules = 10_000
	fewSchedules  = 10
	dueSchedules  = 5 // at each tick, of many and of few
)

// cron is a database with schedules.
type cron struct {
	world
	store *queuestore.Store
	due   []queue.Schedule
}

// newCron makes a database with n schedules, of which the first are due at each tick and the others
// in an hour.
func newCron(ctx context.Context, engine string, n int) (*cron, error) {
	c := &cron{world: world{engine: engine}}
	var err error
	if c.url, err = c.database(ctx); err != nil {
		return c, err
	}
	if c.db, err = engines.Open(c.url); err != nil {
		return c, err
	}
	c.ends = append(c.ends, c.db.Close)
	if err := tenantcontent.Migrate(ctx, c.db); err != nil {
		return c, err
	}
	app, err := tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        c.db,
		SecretKey: tenantcontent.NewSecretKey(),
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return c, err
	}
	if _, err := app.Tenants.Unchecked().Add(ctx, tenants.Tenant{ID: "default"}); err != nil {
		return c, err
	}
	c.store = queuestore.New(c.db)
	all := make([]queue.Schedule, n)
	for i := range all {
		all[i] = queue.Schedule{
			Tenant: "default", Kind: "agent", Key: fmt.Sprintf("agent-%05d", i),
			Cron: "0 * * * *", Payload: []byte("null"), Next: time.Now().Add(time.Hour).UTC(),
		}
	}
	c.due = all[:dueSchedules]
	if err := c.store.PutSchedules(ctx, "default", all); err != nil {
		return c, err
	}
	return c, c.analyze(ctx)
}

// ticks returns how many ticks a second there are: a look at what is due, the jobs of what is due,
// and its next times. That the schedules are due again, and their jobs done, is not counted.
func (c *cron) ticks(ctx context.Context) (float64, error) {
	const ticks = 100
	var took time.Duration
	for range ticks {
		now := time.Now().UTC().Truncate(time.Microsecond)
		for i := range c.due {
			c.due[i].Next = now.Add(-time.Minute)
		}
		if err := c.store.PutSchedules(ctx, "default", c.due); err != nil {
			return 0, err
		}
		begin := time.Now()
		_, next, err := c.store.Next(ctx)
		if err == nil && (next == nil || next.After(now)) {
			err = errors.New("no schedule is due")
		}
		if err != nil {
			return 0, err
		}
		n, err := c.store.Fire(ctx, now, 1000, func(due []queue.Schedule) []queue.Job {
			jobs := make([]queue.Job, len(due))
			for i := range due {
				jobs[i] = queue.Job{
					Tenant: due[i].Tenant, ID: fmt.Sprint(now.UnixMicro(), i),
					Kind: due[i].Kind, Key: due[i].Key, Payload: due[i].Payload,
					State: queue.Ready, Due: now, CreatedAt: now,
				}
				due[i].Next, err = queue.Next(due[i].Cron, due[i].Zone, now)
			}
			return jobs
		})
		took += time.Since(begin)
		if err == nil && n != dueSchedules {
			err = fmt.Errorf("%d schedules were due", n)
		}
		if err == nil {
			err = c.finish(ctx, now)
		}
		if err != nil {
			return 0, err
		}
	}
	return ticks / took.Seconds(), nil
}

// finish removes the jobs of a tick.
func (c *cron) finish(ctx context.Context, now time.Time) error {
	jobs, err := c.store.Claim(ctx, queue.Line{Tenant: "default", Kind: "agent"}, 2*dueSchedules, queue.Claim{
		Lease: fmt.Sprint(now.UnixMicro()),
		Node:  "bench",
		Until: now.Add(time.Minute),
	})
	if err != nil {
		return err
	}
	if len(jobs) != dueSchedules {
		return fmt.Errorf("a tick has put %d jobs", len(jobs))
	}
	_, err = c.store.Remove(ctx, "default", jobs)
	return err
}

// cronTick measures a tick with 10,000 schedules against one with 10, where the same number is due.
// Each is the same number of statements: the tests of package queue count them.
func cronTick(ctx context.Context, w *world) (r result, err error) {
	many, err := newCron(ctx, w.engine, manySchedules)
	defer func() { err = errors.Join(err, many.close()) }()
	if err != nil {
		return r, err
	}
	few, err := newCron(ctx, w.engine, fewSchedules)
	defer func() { err = errors.Join(err, few.close()) }()
	if err != nil {
		return r, err
	}
	fewTicks, manyTicks, ratio, err := inTurn(func() (float64, error) {
		return few.ticks(ctx)
	}, func() (float64, error) { return many.ticks(ctx) })
	return result{
		ours:  fmt.Sprintf("%.2fms with %d", 1000/manyTicks, manySchedules),
		bare:  fmt.Sprintf("%.2fms with %d", 1000/fewTicks, fewSchedules),
		ratio: ratio, must: "≤ 1.25", met: ratio <= 1.25,
	}, err
}
