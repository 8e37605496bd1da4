package domains_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

// TestSlowScan: a directory that is not read in time ends the scan, and so does one with too much.
func TestSlowScan(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.Hurry(time.Second, time.Second, 50*time.Millisecond, time.Minute)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	w.stock(200)
	w.paper.wait = make(chan struct{})
	_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
	is.Equal(errs.CodeOf(err), errs.Upstream)
	run, err := w.ScanState(root(t), "books")
	is.NoErr(err)
	is.Equal(run.Phase, domains.Failed)
	is.Equal(run.Error, "The directory of the domain books could not be read in 50ms: narrow its filters.")
}

// TestTooMuch: a directory with more than this service keeps in memory, as texts or as members.
func TestTooMuch(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	long := strings.Repeat("x", 1<<20)
	member := strings.Repeat("x", 1<<10)
	members := make([]string, 2000)
	for i := range members {
		members[i] = member
	}
	for name, one := range map[string]domains.Entry{
		"people":       {Person: &domains.Identity{ID: "x", DisplayName: long}},
		"descriptions": {Group: &domains.Group{ID: "x", Description: long}},
		"members":      {Group: &domains.Group{ID: "x", Members: members}},
	} {
		t.Run(name, func(t *testing.T) {
			w.paper.all = nil
			for range domains.MaxTexts>>20 + 1 {
				w.paper.all = append(w.paper.all, one)
			}
			_, err := w.Scan(root(t), "paper", domains.ScanOptions{})
			is.Equal(errs.CodeOf(err), errs.Upstream)
			is.True(strings.Contains(errs.MessageOf(err), "256 MiB: narrow its filters"))
			is.Equal(w.count(t, "tc_users"), 1)
		})
	}
}

// reading waits until a domain's scan reads and has shown n people.
func (w *world) reading(t *testing.T, domain string, n int) {
	t.Helper()
	for range 5000 {
		run, err := w.ScanState(root(t), domain)
		is.New(t).NoErr(err)
		if run.Phase == domains.Reading && run.Users >= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s is not read", domain)
}

// TestTwoScansAtOnce: a third one would have a third directory in memory.
func TestTwoScansAtOnce(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.stock(200)
	w.paper.wait = make(chan struct{})
	ended := make(chan error, 2)
	ctx := root(t)
	for _, name := range []string{"a", "b"} {
		w.add(t, name, "paper", `{"url": "x"}`)
		go func() {
			_, err := w.ScanDomain(ctx, name, domains.ScanOptions{DryRun: true})
			ended <- err
		}()
		w.reading(t, name, 100)
	}
	w.add(t, "c", "paper", `{"url": "x"}`)
	_, err := w.ScanDomain(ctx, "c", domains.ScanOptions{})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	close(w.paper.wait)
	is.NoErr(<-ended)
	is.NoErr(<-ended)
	_, err = w.ScanDomain(ctx, "c", domains.ScanOptions{DryRun: true})
	is.NoErr(err)
}

// TestScanOfSeveral: while one domain is read, those that wait are heard of too; and when one fails, the others say so.
func TestScanOfSeveral(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.Hurry(time.Second, time.Second, time.Minute, 10*time.Millisecond)
		w.add(t, "a", "paper", `{"url": "x"}`)
		w.add(t, "b", "paper", `{"url": "x"}`)
		w.add(t, "c", "paper", "")
		w.stock(200)
		w.paper.wait = make(chan struct{})
		w.paper.err = errs.New(errs.Upstream, "The directory breaks off.")
		ctx, cancel := context.WithCancel(root(t))
		defer cancel()
		ended := make(chan error)
		go func() {
			_, err := w.Scan(ctx, "paper", domains.ScanOptions{})
			ended <- err
		}()
		w.reading(t, "a", 100)
		for _, id := range []string{"a", "b", "c"} {
			begun, err := w.store.LastScan(t.Context(), "acme", id)
			is.NoErr(err)
			beats := 0
			for last := begun.HeardAt; beats < 2; time.Sleep(5 * time.Millisecond) {
				w.late.Add(int64(time.Second))
				run, err := w.store.LastScan(t.Context(), "acme", id)
				is.NoErr(err)
				if run.HeardAt.After(last) {
					beats, last = beats+1, run.HeardAt
				}
			}
		}
		close(w.paper.wait)
		is.Equal(errs.CodeOf(<-ended), errs.Upstream)
		for id, want := range map[string]string{
			"a": "The directory breaks off.",
			"b": "Nothing was written: the scan of the domain a failed.",
			"c": "Nothing was written: the scan of the domain a failed.",
		} {
			run, err := w.ScanState(root(t), id)
			is.NoErr(err)
			is.Equal(run.Phase, domains.Failed)
			is.Equal(run.Error, want)
		}
	})
}

// slowPeople starts something in the middle of a delete.
type slowPeople struct {
	domains.People
	then func()
}

func (p slowPeople) RemoveDomain(ctx context.Context, tenant, domain, to string) error {
	err := p.People.RemoveDomain(ctx, tenant, domain, to)
	p.then()
	return err
}

// TestDeleteMeetsScan: a scan that begins while its domain is being deleted neither stops the delete nor is stopped by it
// in a deadlock.
func TestDeleteMeetsScan(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(3)
		ctx := root(t)
		_, err := w.Scan(ctx, "paper", domains.ScanOptions{})
		is.NoErr(err)
		ended := make(chan error, 1)
		deleting := w.with(t, slowPeople{w.people, func() {
			go func() {
				_, err := w.ScanDomain(ctx, "books", domains.ScanOptions{})
				ended <- err
			}()
			time.Sleep(300 * time.Millisecond) // the scan has begun, or cannot
		}})
		is.NoErr(deleting.Delete(ctx, "books"))
		is.Equal(errs.CodeOf(<-ended), errs.Conflict)
		is.Equal(w.count(t, "tc_users"), 1)
	})
}
