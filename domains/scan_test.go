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
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// stock fills the directory with people and a group of the first two.
func (w *world) stock(n int) {
	w.paper.all = nil
	for i := range n {
		w.paper.all = append(w.paper.all, person(i))
	}
	w.paper.all = append(w.paper.all, domains.Entry{
		Group: &domains.Group{ID: "g", Name: "Readers", Members: []string{"id-0000", "id-0001"}},
	})
}

func (w *world) count(t *testing.T, table string) (n int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), w.db, "acme")
	is.New(t).NoErr(c.NewRaw(`SELECT count(*) FROM `+table+` WHERE tenant_id = 'acme'`).Scan(ctx, &n))
	return n
}

// TestScan: people and groups become users and teams, a dry run changes nothing, and every domain
// of the driver is read.
func TestScan(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.add(t, "Empty", "paper", "")
		w.stock(3)
		for _, dry := range []bool{true, false} {
			all, err := w.Scan(root(t), "paper", domains.ScanOptions{DryRun: dry})
			is.NoErr(err)
			is.Equal(len(all), 2)
			is.Equal(all[0].ID, "books")
			is.Equal(all[0].Users.Created, 3)
			is.Equal(all[0].Teams.Created, 1)
			is.Equal(all[0].Added, 2)
			is.Equal(all[0].ScannedAt == nil, dry)
			is.Equal(all[1].Warnings, []string{"The domain has no configuration."})
			is.Equal(w.count(t, "tc_users"), map[bool]int{true: 1, false: 4}[dry])
			run, err := w.ScanState(root(t), "books")
			is.NoErr(err)
			is.Equal(run.Phase, domains.Done)
			is.Equal(run.DryRun, dry)
			is.Equal(run.Users, 3)
			is.Equal(run.Groups, 1)
			is.True(run.FinishedAt != nil && run.Error == "")
		}
		d, err := w.Get(root(t), "books")
		is.NoErr(err)
		is.True(d.ScannedAt != nil)
		all, err := w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.NoErr(err)
		is.Equal(len(all), 1)
		is.Equal(all[0].Users.Unchanged, 3)
		is.Equal(all[0].Added+all[0].Removed+all[0].Users.Updated+all[0].Teams.Updated, 0)
		contents, err := w.Contents(as(t, "acme", "jo", false))
		is.NoErr(err)
		is.Equal(contents, []domains.Content{{ID: "books", Users: 3, Teams: 1}, {ID: "empty"}, {ID: "local", Users: 1}})
	})
}

// TestScanGuard: a directory that has suddenly lost its people disables nobody by itself.
func TestScanGuard(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(50)
		_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
		is.NoErr(err)
		w.stock(20)
		dry, err := w.Scan(root(t), "paper", domains.ScanOptions{DryRun: true})
		is.NoErr(err)
		is.True(strings.Contains(dry[0].Warnings[0], "30 of 50"))
		_, err = w.Scan(root(t), "paper", domains.ScanOptions{})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.True(strings.Contains(errs.MessageOf(err), "30 of 50"))
		is.True(w.user(t, "user0040").Enabled)
		run, err := w.ScanState(root(t), "books")
		is.NoErr(err)
		is.Equal(run.Phase, domains.Failed)
		is.True(strings.Contains(run.Error, "30 of 50"))
		all, err := w.Scan(root(t), "paper", domains.ScanOptions{Force: true})
		is.NoErr(err)
		is.Equal(all[0].Users.Disabled, 30)
		is.True(!w.user(t, "user0040").Enabled)
	})
}

// TestScanFails: what is not whole changes nothing, in no domain.
func TestScanFails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(250)
		w.paper.err = errs.New(errs.Upstream, "The directory breaks off.")
		_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
		is.Equal(errs.CodeOf(err), errs.Upstream)
		is.Equal(w.count(t, "tc_users"), 1)
		run, err := w.ScanState(root(t), "books")
		is.NoErr(err)
		is.Equal(run.Phase, domains.Failed)
		is.Equal(run.Error, "The directory breaks off.")
		is.Equal(run.Users, 250)

		w.paper.err = errors.New("secret detail")
		_, err = w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.True(err != nil)
		run, err = w.ScanState(root(t), "books")
		is.NoErr(err)
		is.Equal(run.Error, "The scan was broken off.")

		w.paper.err = nil
		_, err = w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.NoErr(err) // a failed one stands in nobody's way
	})
}

// TestScanRuns: its state can be read meanwhile, and another scan, a delete and a new configuration
// are refused or noticed.
func TestScanRuns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(200)
		w.paper.wait = make(chan struct{})
		ended := make(chan error)
		ctx := root(t)
		go func() {
			_, err := w.Scan(ctx, "paper", domains.ScanOptions{})
			ended <- err
		}()
		var run domains.ScanState
		for run.Users < 100 {
			var err error
			run, err = w.ScanState(root(t), "books")
			is.NoErr(err)
			time.Sleep(time.Millisecond)
		}
		is.Equal(run.Phase, domains.Reading)
		is.True(run.FinishedAt == nil)
		_, err := w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.Equal(errs.CodeOf(w.Delete(root(t), "books")), errs.Conflict)
		_, err = w.Update(root(t), "books", func(d *domains.Domain) error {
			d.Config = []byte(`{"url": "y"}`)
			return nil
		})
		is.NoErr(err)
		close(w.paper.wait)
		is.Equal(errs.CodeOf(<-ended), errs.Conflict) // it has read what is another directory now
		is.Equal(w.count(t, "tc_users"), 1)
		_, err = w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.NoErr(err)
	})
}

// TestScanCanceled: a caller who goes away takes the scan along.
func TestScanCanceled(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	w.stock(200)
	w.paper.wait = make(chan struct{})
	ctx, cancel := context.WithCancel(root(t))
	ended := make(chan error)
	go func() {
		_, err := w.Scan(ctx, "paper", domains.ScanOptions{})
		ended <- err
	}()
	w.reading(t, "acme", "books", 100)
	cancel()
	is.True(errors.Is(<-ended, context.Canceled))
	run, err := w.ScanState(root(t), "books")
	is.NoErr(err)
	is.Equal(run.Phase, domains.Failed)
	is.Equal(w.count(t, "tc_users"), 1)
}

// TestDeadScan: the scan of a process that has ended shows as failed, and the next one takes its
// place.
func TestDeadScan(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(3)
		run := domains.ScanState{ID: "dead", Phase: domains.Reading, StartedAt: w.clock, HeardAt: w.clock}
		is.NoErr(w.store.BeginScan(t.Context(), "acme", "books", run, w.clock))
		w.clock = w.clock.Add(4 * time.Minute)
		_, err := w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		w.clock = w.clock.Add(2 * time.Minute)
		run, err = w.ScanState(root(t), "books")
		is.NoErr(err)
		is.Equal(run.Phase, domains.Failed)
		is.True(run.FinishedAt != nil && run.Error != "")
		_, err = w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.NoErr(err)
	})
}

// TestNoScan: drivers and domains without a directory, and callers who may not.
func TestNoScan(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Gate", "gate", `{}`)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	w.add(t, "Empty", "paper", "")
	for _, c := range []struct {
		driver, domain string
		want           errs.Code
	}{
		{"gate", "", errs.Invalid}, {"local", "", errs.Invalid},
		{"nowhere", "", errs.NotFound}, {"paper", "gate", errs.Invalid},
		{"paper", "nowhere", errs.Invalid}, {"paper", "empty", errs.Invalid},
	} {
		_, err := w.Scan(root(t), c.driver, domains.ScanOptions{Domain: c.domain})
		is.Equal(errs.CodeOf(err), c.want)
	}
	for domain, want := range map[string]errs.Code{
		"gate":    errs.Invalid,
		"local":   errs.Invalid,
		"empty":   errs.Invalid,
		"nowhere": errs.NotFound,
	} {
		_, err := w.ScanDomain(root(t), domain, domains.ScanOptions{})
		is.Equal(errs.CodeOf(err), want)
	}
	_, err := w.Scan(as(t, "acme", "jo", false), "paper", domains.ScanOptions{})
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	_, err = w.ScanState(as(t, "acme", "jo", false), "books")
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	all, err := w.Scan(as(t, "evil", "root", true), "paper", domains.ScanOptions{})
	is.NoErr(err)
	is.Equal(len(all), 0) // another tenant has none
	run, err := w.ScanState(root(t), "books")
	is.NoErr(err)
	is.Equal(run, domains.ScanState{})
}

// TestDelete: a domain goes with its users and teams.
func TestDelete(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(3)
		_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
		is.NoErr(err)
		is.Equal(errs.CodeOf(w.Delete(as(t, "acme", "jo", false), "books")), errs.Forbidden)
		is.Equal(errs.CodeOf(w.Delete(as(t, "acme", "user0000", true), "books")), errs.Conflict) // one of them
		is.Equal(w.count(t, "tc_users"), 4)
		is.NoErr(w.Delete(root(t), "books"))
		is.Equal(w.count(t, "tc_users"), 1)
		is.Equal(w.count(t, "tc_teams"), 0)
		is.Equal(errs.CodeOf(w.Delete(root(t), "books")), errs.NotFound)
	})
}
