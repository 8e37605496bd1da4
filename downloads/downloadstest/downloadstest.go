// Package downloadstest checks that a downloads.Store keeps its promises, and downloads.Service over it. Tests of stores
// import it.
package downloadstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/blobs/files/filestest"
	"github.com/tenantcontent/tenantcontent/downloads"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

// TestStore runs all checks. open returns empty stores of rows and blobs, whose database has the tenants acme and evil.
func TestStore(t *testing.T, open func(t *testing.T) downloads.Options) {
	t.Run("Store", func(t *testing.T) {
		filestest.TestStore(t, func(t *testing.T) downloads.Store { return open(t).Store })
	})
	t.Run("Service", func(t *testing.T) {
		filestest.TestService(t, "download", func(t *testing.T, set filestest.Settings) filestest.Service {
			o := open(t)
			o.Now, o.NewID = set.Now, set.NewID
			return reading{downloads.New(o)}
		})
	})
	for name, check := range map[string]func(*testing.T, downloads.Options){
		"SuperuserSeesNot":     testSuperuser,
		"IgnoredErrorFails":    testIgnoredError,
		"InTransaction":        testInTx,
		"RowFails":             testRowFails,
		"SweepsAbandoned":      testAbandoned,
		"WriteRunsHere":        testGoroutines,
		"WriterIsOverAtTheEnd": testLateWrite,
		"KeptForSuperusers":    testKeep,
		"Pages":                testPage,
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t)
			o.NewID = func() string { return filestest.ID }
			check(t, o)
		})
	}
}

// reading is a downloads.Service that takes a Reader.
type reading struct{ *downloads.Service }

func (s reading) Create(ctx context.Context, filename, contentType string, r io.Reader) (downloads.Download, error) {
	return s.Service.Create(ctx, filename, contentType, copied(r))
}

func copied(r io.Reader) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}
}

func testSuperuser(t *testing.T, o downloads.Options) {
	s := downloads.New(o)
	_, err := s.Create(filestest.As(t, "acme", "jo"), "a", "", copied(strings.NewReader("x")))
	is.New(t).NoErr(err)
	filestest.Hidden(t, filestest.As(t, "acme", "root"), reading{s})
}

// testIgnoredError: a write that goes on after an error makes no download with a hole.
func testIgnoredError(t *testing.T, o downloads.Options) {
	is, s := is.New(t), downloads.New(o)
	jo, cancel := context.WithCancel(filestest.As(t, "acme", "jo"))
	_, err := s.Create(jo, "a", "", func(w io.Writer) error {
		_, err := w.Write(make([]byte, 2<<20))
		is.NoErr(err)
		cancel()
		_, _ = w.Write([]byte("lost"))
		return nil
	})
	is.True(errors.Is(err, context.Canceled))
	filestest.Hidden(t, filestest.As(t, "acme", "jo"), reading{s})
}

// testInTx: in a transaction write may read rows between its writes, and all goes when the transaction does.
func testInTx(t *testing.T, o downloads.Options) {
	is, s, jo := is.New(t), downloads.New(o), filestest.As(t, "acme", "jo")
	fault := errors.New("fault")
	for _, want := range []error{fault, nil} {
		err := o.Store.InTx(jo, func(ctx context.Context) error {
			d, err := s.Create(ctx, "a", "", func(w io.Writer) error {
				for range 5 {
					if _, err := o.Store.Expired(ctx, "acme", time.Now(), 10); err != nil {
						return err
					}
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return err
					}
				}
				return nil
			})
			is.NoErr(err)
			is.Equal(d.Chunks, 5)
			_, err = s.Get(ctx, d.ID) // the transaction sees its own download
			is.NoErr(err)
			return want
		})
		is.Equal(err, want)
		if want != nil {
			filestest.Hidden(t, jo, reading{s})
		}
	}
	_, r, err := s.Open(jo, filestest.ID)
	is.NoErr(err)
	n, err := io.Copy(io.Discard, r)
	is.NoErr(err)
	is.Equal(n, int64(5<<20))
}

// noRows is a Store whose Insert fails.
type noRows struct {
	downloads.Store
	fault error
}

func (s noRows) Insert(context.Context, string, downloads.Download) error { return s.fault }

// testRowFails: bytes without their row would stay for ever.
func testRowFails(t *testing.T, o downloads.Options) {
	is, jo, rows := is.New(t), filestest.As(t, "acme", "jo"), o.Store
	for _, size := range []int{0, 1, 3 << 20} {
		o.Store = noRows{rows, errors.New("fault")}
		_, err := downloads.New(o).Create(jo, "a", "", copied(bytes.NewReader(make([]byte, size))))
		is.Equal(err, o.Store.(noRows).fault)
		_, err = o.Blobs.Open(jo, "acme", filestest.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	n, err := o.Blobs.Sweep(jo, "acme", time.Now().Add(time.Hour))
	is.NoErr(err)
	is.Equal(n, 0)
}

func testAbandoned(t *testing.T, o downloads.Options) {
	is, now := is.New(t), time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	w, err := o.Blobs.Create(t.Context(), "acme", filestest.ID, 10<<20, now) // the process dies while it writes
	is.NoErr(err)
	_, err = w.Write(make([]byte, 2<<20))
	is.NoErr(err)
	now = now.Add(24*time.Hour + time.Microsecond)
	n, err := downloads.New(o).Hooks().Sweep(t.Context(), "acme")
	is.NoErr(err)
	is.Equal(n, 0) // it was no download yet
	n, err = o.Blobs.Sweep(t.Context(), "acme", now)
	is.NoErr(err)
	is.Equal(n, 0)
}

func testGoroutines(t *testing.T, o downloads.Options) {
	is, s := is.New(t), downloads.New(o)
	stack := make([]byte, 1<<16)
	_, err := s.Create(filestest.As(t, "acme", "jo"), "a", "", func(io.Writer) error {
		stack = stack[:runtime.Stack(stack, false)]
		return nil
	})
	is.NoErr(err)
	is.True(strings.Contains(string(stack), "testGoroutines(")) // the test's own goroutine
}

// testLateWrite: a Writer that was kept cannot add to the download.
func testLateWrite(t *testing.T, o downloads.Options) {
	is, s := is.New(t), downloads.New(o)
	var kept io.Writer
	_, err := s.Create(filestest.As(t, "acme", "jo"), "a", "", func(w io.Writer) error { kept = w; return nil })
	is.NoErr(err)
	_, err = kept.Write(make([]byte, 1<<20))
	is.True(err != nil)
}

// testKeep: what the service keeps is for the superusers of that one tenant, for as long as it says.
func testKeep(t *testing.T, o downloads.Options) {
	is, now := is.New(t), time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	s := downloads.New(o)
	d, err := s.Keep(t.Context(), "acme", "before.tgz", "application/gzip", 7*24*time.Hour, copied(strings.NewReader("x")))
	is.NoErr(err)
	is.Equal(d.ExpiresAt, now.Add(7*24*time.Hour))
	filestest.Hidden(t, filestest.As(t, "acme", "jo"), reading{s})
	filestest.Hidden(t, filestest.As(t, "evil", "root"), reading{s})
	now = d.ExpiresAt.Add(-time.Microsecond)
	_, r, err := s.Open(filestest.As(t, "acme", "root"), d.ID)
	is.NoErr(err)
	content, err := io.ReadAll(r)
	is.NoErr(err)
	is.Equal(string(content), "x")
	now = d.ExpiresAt
	filestest.Hidden(t, filestest.As(t, "acme", "root"), reading{s})
}

// testPage: a list has what its reader may fetch.
func testPage(t *testing.T, o downloads.Options) {
	is, now := is.New(t), time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	n := 0
	o.Now = func() time.Time { return now }
	o.NewID = func() string { n++; return fmt.Sprintf("018f0000-0000-7000-8000-%012d", n) }
	s := downloads.New(o)
	for _, name := range []string{"jo", "root", "jo"} {
		_, err := s.Create(filestest.As(t, "acme", name), fmt.Sprint(name, n+1), "", copied(strings.NewReader("x")))
		is.NoErr(err)
		now = now.Add(time.Second)
	}
	_, err := s.Keep(t.Context(), "acme", "kept", "", time.Hour, copied(strings.NewReader("x")))
	is.NoErr(err)
	list := func(tenant, user string) (names []string) {
		page, err := s.Page(filestest.As(t, tenant, user), paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Total, len(page.Rows))
		for _, d := range page.Rows {
			got, err := s.Get(filestest.As(t, tenant, user), d.ID)
			is.NoErr(err)
			is.Equal(got, d)
			names = append(names, d.Filename)
		}
		return names
	}
	is.Equal(list("acme", "jo"), []string{"jo3", "jo1"}) // the newest first
	is.Equal(list("acme", "root"), []string{"kept", "root2"})
	is.Equal(list("acme", "mo"), nil)
	is.Equal(list("evil", "root"), nil) // another tenant
	is.Equal(list("evil", "jo"), nil)
	now = now.Add(time.Hour)
	is.Equal(list("acme", "root"), []string{"root2"}) // it has expired
	_, err = s.Page(t.Context(), paging.Query{Limit: 10})
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}
