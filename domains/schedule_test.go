package domains_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/queue"
)

// TestSchedule: a directory is scanned by the queue, with the guard of every scan; what is the same already is not written.
func TestSchedule(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		put := func(config string) error {
			t.Helper()
			_, err := w.Update(root(t), "books", func(d *domains.Domain) error { d.Config = []byte(config); return nil })
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
			`{"url": "x", "schedule": "CRON_TZ=Mars 0 3 * * *"}`: "config.schedule: \"Mars\" is no time zone",
			`{"url": "x", "schedule": "@every 1s"}`:              "config.schedule: cron:",
			`{"url": "x", "schedule": 3}`:                        "config.schedule is not understood",
		} {
			err := put(config)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), want))
		}
		is.NoErr(put(`{"url": "x", "schedule": "@daily"}`)) // keeps the password: it goes nowhere else
		is.Equal(schedules()[0].Cron, "@daily")

		job := func() error {
			return w.Unchecked().Workers()[0].Do(t.Context(), queue.Job{Tenant: "acme", Kind: domains.JobScan, Key: "books"})
		}
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
		is.NoErr(w.store.BeginScan(t.Context(), "acme", "books", domains.ScanState{ID: "other", Phase: domains.Reading, StartedAt: now, HeardAt: now}, now))
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
