package bunstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	filestore "github.com/tenantcontent/tenantcontent/internal/store/files"
	"github.com/tenantcontent/tenantcontent/internal/store/quotas"
	tenantstore "github.com/tenantcontent/tenantcontent/internal/store/tenants"
	workspacestore "github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/testkit/blobstest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const mib = 1 << 20

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), dbtest.People(t, open(t), "jo")
		bytesOf, uploads := blobstore.New(db), files.New(files.Options{
			Store: filestore.Uploads(db),
			Blobs: blobstore.New(db),
			Noun:  "Upload",
		})
		spaces := workspacestore.New(db)
		upload := func(ctx context.Context, tenant string) files.File {
			f, err := uploads.Create(ctx, tenant, files.Draft{Username: "jo"}, func(w io.Writer) error {
				_, err := w.Write(make([]byte, 3*mib+1))
				return err
			})
			is.NoErr(err)
			return f
		}
		testStore(t, bunstore.New(db), map[string]Change{
			"Blob": func(ctx context.Context, tenant string) tenants.Usage {
				_, err := blobs.Put(ctx, bytesOf, tenant, "a", mib, time.Now(), strings.NewReader("12345"))
				is.NoErr(err)
				return tenants.Usage{Files: 5}
			},
			"Upload": func(ctx context.Context, tenant string) tenants.Usage {
				upload(ctx, tenant)
				return tenants.Usage{Files: 3*mib + 1, Uploads: 3*mib + 1}
			},
			"Deleted": func(ctx context.Context, tenant string) tenants.Usage {
				is.NoErr(uploads.Delete(ctx, tenant, upload(ctx, tenant).ID))
				return tenants.Usage{}
			},
			"HalfWritten": func(ctx context.Context, tenant string) tenants.Usage { // the stored part of it is counted
				w, err := bytesOf.Create(ctx, tenant, "half", 10*mib, time.Now().Add(-48*time.Hour))
				is.NoErr(err)
				_, err = w.Write(make([]byte, 2*mib+5))
				is.NoErr(err)
				return tenants.Usage{Files: 2 * mib}
			},
			"RolledBack": func(ctx context.Context, tenant string) tenants.Usage {
				fault := errors.New("fault")
				is.Equal(bunx.InTx(ctx, db, func(ctx context.Context) error {
					upload(ctx, tenant)
					u, _, err := bunstore.New(db).Measure(ctx, tenant) // visible in the transaction
					is.NoErr(err)
					is.True(u.Files >= 3*mib)
					return fault
				}), fault)
				return tenants.Usage{}
			},
			"Workspace": func(ctx context.Context, tenant string) tenants.Usage {
				_, _, err := spaces.Add(ctx, tenant, workspaces.Record{
					App:       "0192b2a0-0000-7000-8000-000000000001",
					Engine:    "sqlite",
					CreatedAt: time.Now(),
				})
				is.NoErr(err)
				return tenants.Usage{Count: 1}
			},
		})
		n, err := bytesOf.Sweep(t.Context(), "acme", time.Now().Add(-24*time.Hour))
		is.NoErr(err)
		is.True(n <= 1)
		dbtest.CheckStored(t, db, "acme")
	})
}

// TestOwn: the quota of a tenant is read together with what it stores, and no other tenant's.
func TestOwn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		s := tenants.NewQuotas(tenants.QuotaOptions{Store: bunstore.New(db), Bytes: 100, Workspaces: 7})
		set := func(q tenants.Quota) {
			_, err := tenantstore.New(db).Update(t.Context(), "acme", func(t *tenants.Tenant) error {
				t.Quota = q
				return nil
			})
			is.NoErr(err)
		}
		bytes, number := int64(50), 3
		set(tenants.Quota{Bytes: &bytes, Workspaces: &number})
		for tenant, want := range map[string][]int64{"acme": {50, 3}, "evil": {100, 7}} {
			u, err := s.Usage(t.Context(), tenant)
			is.NoErr(err)
			is.Equal([]int64{u.Allowed, int64(u.MaxCount)}, want)
			is.NoErr(s.Check(t.Context(), tenant, want[0]))
			is.Equal(errs.CodeOf(s.Check(t.Context(), tenant, want[0]+1)), errs.Full)
		}
		spaces := workspaces.New(workspaces.Options{
			Store:  workspacestore.New(db),
			Driver: noDriver{},
			Keys:   noKeys{},
			Admit:  s.CheckWorkspace,
		})
		zero := 0
		set(tenants.Quota{Workspaces: &zero})
		_, err := spaces.Connect(t.Context(), "acme", "0192b2a0-0000-7000-8000-000000000001")
		is.Equal(errs.CodeOf(err), errs.Full)
		_, err = spaces.Connect(t.Context(), "evil", "0192b2a0-0000-7000-8000-000000000001")
		is.NoErr(err)
		set(tenants.Quota{})
		is.NoErr(s.Check(t.Context(), "acme", 100)) // an old measurement does not refuse writes
	})
}

// TestWorkspaces: the size of SQL databases is measured and counted. A tenant that exceeds its
// quota because of them can only free space, and can write again afterwards.
func TestWorkspaces(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, ctx := is.New(t), open(t), t.Context()
		now := time.Now()
		s := tenants.NewQuotas(tenants.QuotaOptions{Store: bunstore.New(db), Bytes: mib, Now: func() time.Time {
			now = now.Add(time.Minute)
			return now
		}})
		driver, err := sqlite.New(sqlite.Options{Dir: t.TempDir()})
		is.NoErr(err)
		defer func() { is.NoErr(driver.Close()) }()
		spaces := workspaces.New(workspaces.Options{
			Store:  workspacestore.New(db),
			Driver: driver,
			Keys:   noKeys{},
			Room:   s.Left,
		})
		const app = "0192b2a0-0000-7000-8000-000000000001"
		run := func(tenant string, statements ...string) (err error) {
			c, err := spaces.Connect(ctx, tenant, app)
			is.NoErr(err)
			for _, statement := range statements {
				if _, failed := c.Query(ctx, statement, nil); failed != nil {
					err = failed
				}
			}
			is.NoErr(c.Close())
			is.NoErr(spaces.Measure(ctx))
			return err
		}
		used := func(tenant string) int64 {
			u, err := s.Usage(ctx, tenant)
			is.NoErr(err)
			is.Equal(dbtest.CheckStored(t, db, tenant)["workspaces"], u.Workspaces)
			return u.Workspaces
		}
		const table, add = "CREATE TABLE n (b BLOB)", "INSERT INTO n VALUES (zeroblob(600000))"
		is.NoErr(run("acme", table, add))
		is.True(used("acme") > 600_000 && used("acme") < 700_000)
		is.Equal(used("evil"), int64(0))
		err = run("acme", add) // larger than the rest, and smaller than the limit of a workspace
		is.Equal(errs.CodeOf(err), errs.Full)
		is.True(strings.Contains(errs.MessageOf(err), "storage of the tenant is full: it holds "))
		is.True(used("acme") < 700_000)
		is.NoErr(run("acme", "INSERT INTO n VALUES (zeroblob(100000))"))
		_, err = blobs.Put(
			ctx, s.Blobs(blobstore.New(db)), "acme", "a", mib, time.Now(),
			bytes.NewReader(make([]byte, mib-used("acme"))),
		)
		is.NoErr(err) // files and databases share the quota
		is.Equal(errs.CodeOf(run("acme", "INSERT INTO n VALUES (1)")), errs.Full)
		is.Equal(errs.CodeOf(run("acme", "CREATE TABLE m (b BLOB)")), errs.Full)
		is.NoErr(run("evil", table, add))
		is.NoErr(run("acme", "SELECT count(*) FROM n", "DELETE FROM n", "DROP TABLE n"))
		is.True(used("acme") < 50_000)
		is.NoErr(run("acme", table, add))
		is.NoErr(spaces.Drop(ctx, "acme", []string{app}))
		is.Equal(used("acme"), int64(0))
	})
}

// noDriver does not connect, and noKeys does not seal.
type (
	noDriver struct{ workspaces.Driver }
	noKeys   struct{}
)

func (noDriver) Engine() string { return "none" }

func (noDriver) Connect(context.Context, workspaces.Workspace) (workspaces.Conn, error) {
	return nil, nil
}

func (noKeys) Seal(_, _, _, _ string, plain []byte) (string, error) { return string(plain), nil }

func (noKeys) Open(_, _, _, _, sealed string) ([]byte, error) { return []byte(sealed), nil }

// TestBlobs: a blobs.Store with a quota passes the same checks, as long as there is space.
func TestBlobs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		blobstest.TestStore(t, func(t *testing.T) blobs.Store {
			db := open(t)
			return tenants.NewQuotas(tenants.QuotaOptions{Store: bunstore.New(db)}).Blobs(blobstore.New(db))
		})
	})
}

// TestFull: a write that exceeds the quota is refused, before its bytes if their number is known.
// Other tenants are not affected, and a delete frees space at once.
func TestFull(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, ctx := is.New(t), open(t), t.Context()
		s := tenants.NewQuotas(tenants.QuotaOptions{Store: bunstore.New(db), Bytes: 3 * mib}).Blobs(blobstore.New(db))
		put := func(ctx context.Context, tenant, id string, size int) errs.Code {
			_, err := blobs.Put(ctx, s, tenant, id, 100*mib, time.Now(), io.LimitReader(zeros{}, int64(size)))
			return errs.CodeOf(err)
		}
		is.Equal(put(ctx, "acme", "a", 2*mib), errs.Code(""))
		is.Equal(put(ctx, "acme", "b", mib+1), errs.Full)   // in the middle of the write
		is.Equal(put(ctx, "acme", "c", mib), errs.Code("")) // nothing of b is left
		is.Equal(put(ctx, "acme", "d", 1), errs.Full)
		is.Equal(put(ctx, "evil", "a", 3*mib), errs.Code(""))
		is.NoErr(s.Delete(ctx, "acme", "c"))
		_, err := s.Create(blobs.WithSize(ctx, mib+1), "acme", "e", 100*mib, time.Now())
		is.Equal(errs.CodeOf(err), errs.Full)
		is.True(strings.Contains(errs.MessageOf(err), "storage of the tenant is full: it holds 2.0 MiB of the 3.0 MiB"))
		is.Equal(put(ctx, "acme", "f", mib), errs.Code(""))
		dbtest.CheckStored(t, db, "acme")
	})
}

// TestParallel: concurrent writes do not exceed the quota together.
func TestParallel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		for _, size := range []int{1000, 3*mib/2 + 7} {
			is, db := is.New(t), open(t)
			allowed := int64(5 * size)
			s := tenants.NewQuotas(tenants.QuotaOptions{
				Store: bunstore.New(db),
				Bytes: allowed,
			}).Blobs(blobstore.New(db))
			const n = 12
			var begun, done sync.WaitGroup
			var kept atomic.Int64
			begun.Add(n)
			for i := range n {
				done.Go(func() {
					w, err := s.Create(t.Context(), "acme", fmt.Sprint(i), 100*mib, time.Now())
					begun.Done()
					begun.Wait() // each has checked the quota
					if err == nil {
						_, err = io.Copy(w, io.LimitReader(zeros{}, int64(size)))
					}
					if err == nil {
						_, err = w.Commit(t.Context())
					}
					if err == nil {
						kept.Add(int64(size))
						return
					}
					if errs.CodeOf(err) != errs.Full {
						t.Error(err)
					}
					w.Abort()
				})
			}
			done.Wait()
			is.Equal(dbtest.CheckStored(t, db, "acme")["files"], kept.Load())
			is.True(kept.Load() <= allowed)
			for i := range n { // nothing of the refused writes is left: as many can be written as fit
				_, err := blobs.Put(
					t.Context(), s, "acme", fmt.Sprint("more", i), 100*mib, time.Now(),
					bytes.NewReader(make([]byte, size)),
				)
				if err == nil {
					kept.Add(int64(size))
				}
			}
			is.Equal(kept.Load(), allowed)
		}
	})
}

// zeros is a Reader of endless zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
