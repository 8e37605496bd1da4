package domains_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestSchedule: a directory is scanned by the queue, with the guard of every scan; what is the same
// already is not written.
func TestSchedule(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		put := func(config string) error {
			t.Helper()
			_, err := w.Update(root(t), "books", func(d *domains.Domain) error {
				d.Config = []byte(config)
				return nil
			})
			return err
		}
		schedules := func() []queue.Schedule {
			t.Helper()
			all, err := w.queue.Schedules(t.Context(), "acme", domains.JobScan)
			is.NoErr(err)
			return all
		}
		w.add(t, "Books", "paper", `{"url": "x", "password": "s", "schedule": "CRON_TZ=Europe/Berlin 0 3 * * *"}`)
		all := schedules()
		is.Equal(len(all), 1)
		is.Equal([]string{all[0].Key, all[0].Cron, all[0].Zone}, []string{"books", "0 3 * * *", "Europe/Berlin"})
		next, err := w.NextScan(root(t), "books")
		is.NoErr(err)
		is.Equal(*next, time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC))
		for config, want := range map[string]string{
			`{"url": "x", "schedule": "every day"}`:              "config.schedule: cron:",
			`{"url": "x", "schedule": "CRON_TZ=Mars 0 3 * * *"}`: "config.schedule: \"Mars\" is not a time zone",
			`{"url": "x", "schedule": "@every 1s"}`:              "config.schedule: cron:",
			`{"url": "x", "schedule": 3}`:                        "config.schedule is not understood",
			`{"url": "x", "schedule": "* * * * *"}`: "config.schedule must have 10 minutes between " +
				"two scans",
			`{"url": "x", "schedule": "@every 9m"}`: "config.schedule must have 10 minutes between " +
				"two scans",
			`{"url": "x", "schedule": "0,5 3 1 1 *"}`: "config.schedule must have 10 minutes between " +
				"two scans",
		} {
			err := put(config)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), want))
		}
		is.NoErr(put(`{"url": "x", "schedule": "0 3 29 2 *"}`))
		is.NoErr(put(`{"url": "x", "schedule": "*/10 * * * *"}`))
		is.NoErr(put(`{"url": "x", "schedule": "@daily"}`)) // keeps the password: it goes nowhere else
		is.Equal(schedules()[0].Cron, "@daily")

		try := func(n int) error {
			return w.Unchecked().Workers()[0].Do(
				t.Context(), queue.Job{Tenant: "acme", Kind: domains.JobScan, Key: "books", Tries: n},
			)
		}
		job := func() error { return try(2) }
		state := func() domains.ScanState {
			t.Helper()
			run, err := w.ScanState(root(t), "books")
			is.NoErr(err)
			return run
		}
		w.stock(20)
		is.NoErr(job())
		is.Equal(state().Phase, domains.Done)
		is.Equal(w.count(t, "tc_users"), 21)
		before := w.user(t, "user0001")
		w.late.Add(int64(time.Hour))
		is.NoErr(job())
		is.Equal(w.user(t, "user0001"), before)
		is.Equal(state().Written, 0)
		is.Equal(state().Total, 0)

		// However often a schedule that was saved before wants it: ten minutes after the beginning
		// of the last scan.
		last := state().ID
		w.late.Add(int64(9 * time.Minute))
		is.Equal(errs.CodeOf(try(1)), errs.Conflict)
		is.Equal(state().ID, last)
		w.late.Add(int64(time.Minute))
		is.NoErr(try(1))
		is.True(state().ID != last)

		w.paper.all = nil // the guard: most would be disabled
		is.NoErr(job())   // no other try would mend it
		is.Equal(state().Phase, domains.Failed)
		is.True(strings.Contains(state().Error, "disable 20 of 20 users"))
		is.True(w.user(t, "user0001").Enabled)
		w.paper.err = errs.New(errs.Upstream, "The directory is away.")
		is.Equal(errs.CodeOf(job()), errs.Upstream) // is tried again

		// While another process scans, or one that was killed counts as scanning, it waits.
		w.paper.err = nil
		w.stock(20)
		now := w.clock.Add(time.Duration(w.late.Load()))
		is.NoErr(w.store.BeginScan(
			t.Context(), "acme", "books",
			domains.ScanState{ID: "other", Phase: domains.Reading, StartedAt: now, HeardAt: now}, now,
		))
		err = job()
		is.Equal(errs.CodeOf(err), errs.Conflict)
		w.late.Add(int64(6 * time.Minute))
		is.NoErr(job())

		is.NoErr(put(`{"url": "x"}`))
		is.Equal(len(schedules()), 0)
		w.paper.err = errs.New(errs.Upstream, "The directory is away.")
		is.NoErr(job()) // a job of before
		is.NoErr(put(`{"url": "x", "schedule": "0 4 * * 1"}`))
		is.Equal(len(schedules()), 1)
		is.NoErr(w.Delete(root(t), "books"))
		is.Equal(len(schedules()), 0)
		is.NoErr(job())
	})
}

// TestSlowDirectories: directories that hang do not keep all places of scans, by schedule or by
// hand, from another tenant.
func TestSlowDirectories(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.addThird(t)
	hanging := &paper{wait: make(chan struct{})}
	for n := range 200 {
		hanging.all = append(hanging.all, person(n))
	}
	quick := &paper{all: []domains.Entry{person(1)}}
	w.Service = w.with(t, func(o *options) { o.Drivers = []domains.Driver{hanging, named{quick, "quick"}} })
	s := w.Service
	for tenant, driver := range map[string]string{"acme": "paper", "evil": "paper", "third": "quick"} {
		name := "Books"
		_, err := s.Create(as(t, tenant, "root", true), domains.Domain{
			Name:   &name,
			Type:   driver,
			Config: []byte(`{"url": "x", "schedule": "@every 10m"}`),
		})
		is.NoErr(err)
	}
	job := func(ctx context.Context, tenant string) error {
		return s.Unchecked().Workers()[0].Do(
			ctx, queue.Job{Tenant: tenant, Kind: domains.JobScan, Key: "books", Tries: 2},
		)
	}

	s.Hurry(time.Minute, time.Minute, 50*time.Millisecond, time.Minute)
	s.Slow(10 * time.Millisecond)
	for _, tenant := range []string{"acme", "evil"} {
		err := job(t.Context(), tenant)
		is.Equal(errs.CodeOf(err), errs.Upstream)
		is.True(strings.Contains(errs.MessageOf(err), "could not be read in 50ms"))
	}

	s.Hurry(time.Minute, time.Minute, time.Hour, time.Minute) // now they hang for good
	s.Slow(time.Minute)                                       // the third may be slow to be scanned on a busy machine
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- job(ctx, "acme") }()
	w.reading(t, "acme", "books", 100)
	is.Equal(errs.CodeOf(job(t.Context(), "evil")), errs.Unavailable) // the other place is not for those who were slow
	_, err := s.ScanDomain(as(t, "evil", "root", true), "books", domains.ScanOptions{})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.NoErr(job(t.Context(), "third"))
	_, err = s.ScanDomain(as(t, "third", "root", true), "books", domains.ScanOptions{})
	is.NoErr(err)
	cancel()
	is.True(errors.Is(<-ended, context.Canceled))

	close(hanging.wait) // who is quick again has both places again
	is.NoErr(job(t.Context(), "evil"))
	is.NoErr(job(t.Context(), "acme"))
}

// named is a driver with another id.
type named struct {
	domains.Driver
	id string
}

func (n named) Info() domains.Info {
	i := n.Driver.Info()
	i.ID = n.id
	return i
}
