package bundles_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// asking is an archive that takes a connection to be read, as an upload does.
type asking struct {
	io.ReadSeeker
	ctx context.Context
	db  *bun.DB
}

func (a asking) Read(p []byte) (int, error) {
	var n int
	if err := a.db.QueryRowContext(a.ctx, "SELECT 1").Scan(&n); err != nil {
		return 0, err
	}
	return a.ReadSeeker.Read(p[:min(len(p), 64)])
}

// TestImportsLeaveConnections: those that wait for each other do not hold the connections that the
// one which writes needs.
func TestImportsLeaveConnections(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db := open(t)
		w := newWorld(t, db)
		file := w.export(t, "acme", "", "tagged "+w.make(t, "acme", "tag", "T", `{"a": "`+random(5000)+`"}`))
		db.SetMaxOpenConns(2)
		ctx, cancel := context.WithTimeout(w.as(t, "acme"), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				land := []func(context.Context, io.Reader, bundles.ImportOptions) (bundles.ImportResult, error){
					w.Bundles.Import, w.Bundles.Restore,
				}[i%2]
				if _, err := land(
					ctx, asking{bytes.NewReader(file), ctx, db}, bundles.ImportOptions{DryRun: i%3 == 0},
				); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// halting is an archive that is found to be whole, and then halts when it is imported.
type halting struct {
	*bytes.Reader
	seeks         *int
	reached, goOn chan struct{}
}

func (h halting) Seek(offset int64, whence int) (int64, error) {
	if *h.seeks++; *h.seeks == 2 {
		close(h.reached)
		<-h.goOn
	}
	return h.Reader.Seek(offset, whence)
}

// TestLateImports of a tenant, and deploys into it, are told to try again, and have written
// nothing.
func TestLateImports(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, evil := is.New(t), w.as(t, "evil")
		tag := w.make(t, "acme", "tag", "T", `{}`)
		b, file := w.bundle(t, "B", "tagged "+tag), w.export(t, "acme", "", "tagged "+tag)
		h := halting{bytes.NewReader(file), new(int), make(chan struct{}), make(chan struct{})}
		var first bundles.ImportResult
		var failed error
		ended, goOn := make(chan struct{}), sync.OnceFunc(func() { close(h.goOn) })
		go func() {
			defer close(ended)
			first, failed = w.App.Bundles.Import(evil, h, bundles.ImportOptions{})
		}()
		defer func() { goOn(); <-ended }()
		select {
		case <-h.reached:
		case <-ended:
			t.Fatal("the first import did not halt:", failed)
		}
		for _, land := range []func(tenant context.Context) error{
			func(ctx context.Context) error {
				_, err := w.App.Bundles.Import(ctx, bytes.NewReader(file), bundles.ImportOptions{})
				return err
			},
			func(ctx context.Context) error {
				_, err := w.App.Bundles.Restore(ctx, bytes.NewReader(file), bundles.ImportOptions{})
				return err
			},
		} {
			late, cancel := context.WithTimeoutCause(evil, 0, limiter.ErrBusy)
			err := land(late)
			cancel()
			is.Equal(errs.CodeOf(err), errs.Unavailable)
			is.Equal(errs.MessageOf(err), "Other imports are under way. Try again.")
		}
		var err error
		for wait := 3 * time.Second; wait < time.Minute && errs.CodeOf(err) != errs.Unavailable; wait *= 4 {
			// it exports first
			late, cancel := context.WithTimeoutCause(w.as(t, "acme"), wait, limiter.ErrBusy)
			_, err = w.App.Bundles.Deploy(late, b.ID, []string{"evil"}, bundles.ImportOptions{})
			cancel()
		}
		is.Equal(errs.CodeOf(err), errs.Unavailable)
		goOn()
		<-ended
		is.NoErr(failed)
		is.Equal(first.Created, 1)
		// one after the other
		done, err := w.App.Bundles.Deploy(w.as(t, "acme"), b.ID, []string{"evil", "acme"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(len(done), 2)
		is.NoErr(done[1].Err)
	})
}

// TestImportsInOneTransaction of the caller's wait in no queue: it may hold what the others wait
// for.
func TestImportsInOneTransaction(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		file := w.export(t, "acme", "", "tagged "+w.make(t, "acme", "tag", "T", `{}`))
		var other sync.WaitGroup
		is.NoErr(w.InTx(w.as(t, "evil"), func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			if _, err := w.App.Bundles.Import(ctx, bytes.NewReader(file), bundles.ImportOptions{}); err != nil {
				return err
			}
			other.Go(func() {
				_, err := w.App.Bundles.Import(w.as(t, "evil"), bytes.NewReader(file), bundles.ImportOptions{})
				is.NoErr(err)
			})
			time.Sleep(100 * time.Millisecond) // by now it has the slot, and waits for the tenant
			_, err := w.App.Bundles.Import(ctx, bytes.NewReader(file), bundles.ImportOptions{})
			return err
		}))
		other.Wait()
	})
}
