package bundles_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// compared is a Service of which each import, restore and deploy of these tests is tried by a dry
// run before, which has to report and refuse the same.
type compared struct {
	*bundles.Service
	t testing.TB
}

func (c compared) Import(ctx context.Context, r io.Reader, o bundles.ImportOptions) (bundles.ImportResult, error) {
	return c.archive(ctx, r, o, c.Service.Import)
}

func (c compared) Restore(ctx context.Context, r io.Reader, o bundles.ImportOptions) (bundles.ImportResult, error) {
	return c.archive(ctx, r, o, c.Service.Restore)
}

func (c compared) Deploy(
	ctx context.Context, key string, tenants []string, o bundles.ImportOptions,
) ([]bundles.Deployed, error) {
	return c.deploy(tenants, o, func(o bundles.ImportOptions) ([]bundles.Deployed, error) {
		return c.Service.Deploy(ctx, key, tenants, o)
	})
}

func (c compared) DeployManifest(
	ctx context.Context, m bundles.Manifest, tenants []string, o bundles.ImportOptions,
) ([]bundles.Deployed, error) {
	return c.deploy(tenants, o, func(o bundles.ImportOptions) ([]bundles.Deployed, error) {
		return c.Service.DeployManifest(ctx, m, tenants, o)
	})
}

func (c compared) deploy(
	tenants []string, o bundles.ImportOptions, do func(bundles.ImportOptions) ([]bundles.Deployed, error),
) ([]bundles.Deployed, error) {
	if !repeatable(o) || len(tenants) > 1 { // one target may change what the next one gets
		return do(o)
	}
	return compare(c.t, o, do, func(done []bundles.Deployed) (text string) {
		for _, d := range done {
			text += report(d.ImportResult) + fmt.Sprint(d.Tenant, d.Err)
		}
		return text
	})
}

func (c compared) archive(ctx context.Context, r io.Reader, o bundles.ImportOptions,
	into func(
		context.Context, io.Reader, bundles.ImportOptions,
	) (bundles.ImportResult, error)) (bundles.ImportResult, error) {
	file, ok := r.(*bytes.Reader)
	if !ok || !repeatable(o) {
		return into(ctx, r, o)
	}
	return compare(c.t, o, func(o bundles.ImportOptions) (bundles.ImportResult, error) {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			c.t.Fatal(err)
		}
		return into(ctx, file, o)
	}, report)
}

// repeatable reports whether a dry run is to do the same: by design it does not fail for rows that
// exist if it lists the changes.
func repeatable(o bundles.ImportOptions) bool {
	return !o.DryRun && (o.Rule != entity.Fail || !o.Changes)
}

// compare does something twice, first as a dry run.
func compare[T any](
	t testing.TB, o bundles.ImportOptions, do func(bundles.ImportOptions) (T, error), text func(T) string,
) (T, error) {
	t.Helper()
	dry := o
	dry.DryRun = true
	planned, refused := do(dry)
	done, err := do(o)
	if got, want := text(planned), text(done); got != want || errs.CodeOf(refused) != errs.CodeOf(err) ||
		errs.MessageOf(refused) != errs.MessageOf(err) {
		t.Errorf("the dry run: %s %v\nthe real one: %s %v", got, refused, want, err)
	}
	return done, err
}

// report is what a dry run has to report, too.
func report(r bundles.ImportResult) string {
	r.Archive = nil
	return fmt.Sprintf("%+v", r)
}

// TestDryRunAndWriters: on SQLite a dry run waits for no writer, and no writer for a dry run.
func TestDryRunAndWriters(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	w := newWorld(t, db)
	file := w.export(t, "acme", "", "tagged "+w.make(t, "acme", "tag", "Red", `{}`))
	is.NoErr(bunx.InTx(t.Context(), db, func(context.Context) error { // it has the writer
		for _, do := range []func(context.Context, io.Reader, bundles.ImportOptions) (bundles.ImportResult, error){
			w.App.Bundles.Import, w.App.Bundles.Restore,
		} {
			r, err := do(w.as(t, "evil"), bytes.NewReader(file), bundles.ImportOptions{DryRun: true})
			is.NoErr(err)
			is.Equal(r.Created, 1)
		}
		return nil
	}))

	h := halting{bytes.NewReader(file), new(int), make(chan struct{}), make(chan struct{})}
	ended, evil := make(chan error, 1), w.as(t, "evil")
	go func() {
		_, err := w.App.Bundles.Restore(evil, h, bundles.ImportOptions{DryRun: true})
		ended <- err
	}()
	select {
	case <-h.reached:
	case err := <-ended:
		t.Fatal("it did not halt:", err)
	}
	w.make(t, "evil", "tag", "Blue", `{}`)
	close(h.goOn)
	is.NoErr(<-ended)
	is.Equal(w.names(t, "evil", "tag"), "Blue")
}
