package domains_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
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

// TestRealmsAreBounded: those that are kept opened, by their number and by their bytes.
func TestRealmsAreBounded(t *testing.T) {
	is := is.New(t)
	for _, c := range [][3]int{{10, 7, 10}, {1500, 7, 1000}, {100, 512 << 10, 32}} {
		kept, bytes := domains.KeepRealms(c[0], c[1])
		is.Equal(kept, c[2])
		is.Equal(bytes, c[1]*c[2])
	}
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

// reading waits until the scan of a domain reads and has shown n people.
func (w *world) reading(t *testing.T, tenant, domain string, n int) {
	t.Helper()
	for range 60_000 {
		run, err := w.ScanState(as(t, tenant, "root", true), domain)
		is.New(t).NoErr(err)
		if run.Phase == domains.Reading && run.Users >= n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%s is not read", domain)
}

// addThird adds the tenant third beside those that every database has.
func (w *world) addThird(t *testing.T) {
	t.Helper()
	w.addTenant(t, "third")
}

func (w *world) addTenant(t *testing.T, tenant string) {
	t.Helper()
	is.New(t).NoErr(bunx.Write(t.Context(), w.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at)
			VALUES ($1, $1, '{}', '', $2, $2)`, tenant, bunx.At(w.clock))
		return err
	}))
}

// TestTwoScansAtOnce: a third one would have a third directory in memory, and no tenant has both
// places.
func TestTwoScansAtOnce(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.addThird(t)
	w.stock(200)
	w.paper.wait = make(chan struct{})
	tenants := []string{"acme", "evil", "third"}
	for _, tenant := range tenants {
		w.addTo(t, tenant, "a", "paper", `{"url": "x"}`)
		w.addTo(t, tenant, "b", "paper", `{"url": "x"}`)
	}
	scan := func(tenant, domain string) error {
		_, err := w.Scan(as(t, tenant, "root", true), "paper", domains.ScanOptions{Domain: domain, DryRun: true})
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- scan("acme", "") }() // all domains of a driver are one scan
	w.reading(t, "acme", "a", 100)
	is.Equal(errs.CodeOf(scan("acme", "b")), errs.Conflict)
	is.Equal(errs.CodeOf(scan("acme", "")), errs.Conflict)
	go func() { ended <- scan("evil", "b") }()
	w.reading(t, "evil", "b", 100)
	is.Equal(errs.CodeOf(scan("evil", "b")), errs.Conflict)
	waits := make(chan error, 1)
	go func() { waits <- scan("evil", "a") }() // of another domain: it waits for the one of b
	hangsUp, hangUp := context.WithTimeout(as(t, "evil", "root", true), 300*time.Millisecond)
	defer hangUp()
	_, err := w.Scan(hangsUp, "paper", domains.ScanOptions{Domain: "a", DryRun: true})
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.Equal(errs.CodeOf(scan("third", "a")), errs.Unavailable)
	close(w.paper.wait)
	is.NoErr(<-ended)
	is.NoErr(<-ended)
	is.NoErr(<-waits)
	for _, tenant := range tenants {
		is.NoErr(scan(tenant, ""))
	}
}

// TestTakenOver: a scan that counted as dead, as the machine slept, goes on and ends beside the one
// that has taken its place.
func TestTakenOver(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	books, err := w.store.Get(t.Context(), "acme", "books")
	is.NoErr(err)
	begin := func() (*domains.Scanning, string) {
		t.Helper()
		one, err := w.BeginScan(t.Context(), books)
		is.NoErr(err)
		run, err := w.store.LastScan(t.Context(), "acme", "books")
		is.NoErr(err)
		return one, run.ID
	}
	shown := func(id string, phase domains.Phase) {
		t.Helper()
		run, err := w.ScanState(root(t), "books")
		is.NoErr(err)
		is.Equal(run.ID, id)
		is.Equal(run.Phase, phase)
	}
	first, _ := begin()
	w.late.Add(int64(6 * time.Minute))
	second, id := begin()
	is.NoErr(first.Beat(t.Context()))
	shown(id, domains.Reading)
	first.End(t.Context())
	is.NoErr(second.Beat(t.Context()))
	w.late.Add(int64(6 * time.Minute)) // what is in this process is alive, whatever its last note says
	shown(id, domains.Reading)
	second.End(t.Context())
	shown(id, domains.Done)
}

// brokenStore loses the connection, or its caller, just when the note of a scan is there.
type brokenStore struct {
	domains.Store
	then func(context.Context) error
}

func (s brokenStore) BeginScan(
	ctx context.Context, tenant, domain string, run domains.ScanState, stale time.Time,
) error {
	if err := s.Store.BeginScan(ctx, tenant, domain, run, stale); err != nil {
		return err
	}
	return s.then(ctx)
}

// TestBrokenBegin: a scan that may have been noted, though it cannot begin, does not keep others
// from their own.
func TestBrokenBegin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(3)
		hung, hangUp := context.WithCancel(root(t))
		for _, c := range []struct {
			ctx  context.Context
			then func(context.Context) error
			want error
		}{
			{root(t), func(context.Context) error { return io.ErrUnexpectedEOF }, io.ErrUnexpectedEOF},
			{hung, func(ctx context.Context) error {
				hangUp()
				if ctx.Err() != nil {
					return errors.New("the note was broken off")
				}
				return nil
			}, context.Canceled},
		} {
			broken := w.with(t, func(o *options) { o.Store = brokenStore{w.store, c.then} })
			_, err := broken.ScanDomain(c.ctx, "books", domains.ScanOptions{})
			is.True(errors.Is(err, c.want))
			run, err := w.ScanState(root(t), "books")
			is.NoErr(err)
			is.Equal(run.Phase, domains.Failed)
			is.Equal(run.Error, "The scan was broken off.")
			_, err = w.ScanDomain(root(t), "books", domains.ScanOptions{})
			is.NoErr(err)
		}
	})
}

// TestScanOfSeveral: while one domain is read, those that wait are heard of too; and when one
// fails, the others say so.
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
		w.reading(t, "acme", "a", 100)
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
	domains.Principals
	then func()
}

func (p slowPeople) RemoveDomain(ctx context.Context, tenant, domain, to string) error {
	err := p.Principals.RemoveDomain(ctx, tenant, domain, to)
	p.then()
	return err
}

// tellingStore tells when a scan is about to be noted, and when it is.
type tellingStore struct {
	domains.Store
	asked, noted chan struct{}
}

func (s tellingStore) BeginScan(
	ctx context.Context, tenant, domain string, run domains.ScanState, stale time.Time,
) error {
	close(s.asked)
	err := s.Store.BeginScan(ctx, tenant, domain, run, stale)
	close(s.noted)
	return err
}

// TestDeleteMeetsScan: a scan that begins while its domain is being deleted neither stops the
// delete nor is stopped by it in a deadlock.
func TestDeleteMeetsScan(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.stock(3)
		ctx := root(t)
		_, err := w.Scan(ctx, "paper", domains.ScanOptions{})
		is.NoErr(err)
		telling := tellingStore{w.store, make(chan struct{}), make(chan struct{})}
		until := telling.noted
		if w.db.Dialect().Name() == dialect.SQLite { // where it waits for the delete
			until = telling.asked
		}
		scanning := w.with(t, func(o *options) { o.Store = telling })
		ended := make(chan error, 1)
		deleting := w.with(t, func(o *options) {
			o.Principals = slowPeople{w.people.Unchecked(), func() {
				go func() {
					_, err := scanning.ScanDomain(ctx, "books", domains.ScanOptions{})
					ended <- err
				}()
				<-until
			}}
		})
		is.NoErr(deleting.Delete(ctx, "books"))
		is.Equal(errs.CodeOf(<-ended), errs.Conflict)
		is.Equal(w.count(t, "tc_users"), 1)
	})
}
