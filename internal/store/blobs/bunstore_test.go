package bunstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/blobstest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		blobstest.TestStore(t, func(t *testing.T) blobs.Store {
			db := open(t)
			db.SetMaxOpenConns(8)
			return bunstore.New(db)
		})
	})
}

func TestStoreSize(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		blobstest.TestSize(t, func(t *testing.T) blobs.Store { return bunstore.New(open(t)) })
	})
}

func TestMemory(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) { blobstest.TestMemory(t, bunstore.New(open(t))) })
}

// TestJoinsTransaction: the blob is committed or rolled back with its transaction.
func TestJoinsTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		s, fault := bunstore.New(db), errors.New("fault")
		for _, want := range []error{nil, fault} {
			err := bunx.InTx(t.Context(), db, func(ctx context.Context) error {
				_, err := blobs.Put(
					ctx, s, "acme", "a", math.MaxInt64, time.Now(), bytes.NewReader(make([]byte, 3<<20)),
				)
				is.NoErr(err)
				r, err := s.Open(ctx, "acme", "a") // visible in the transaction
				is.NoErr(err)
				n, err := io.Copy(io.Discard, r)
				is.NoErr(err)
				is.Equal(n, int64(3<<20))
				return want
			})
			is.Equal(err, want)
			_, err = s.Open(t.Context(), "acme", "a")
			is.Equal(err != nil, want != nil)
			is.NoErr(s.Delete(t.Context(), "acme", "a"))
			is.Equal(chunks(t, db), 0)
		}
	})
}

// TestAbortAfterCommit: a Commit whose transaction fails leaves the chunks that were written before
// it. Abort removes them.
func TestAbortAfterCommit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, ctx := is.New(t), open(t), t.Context()
		s, fault := bunstore.New(db), errors.New("fault")
		w, err := s.Create(ctx, "acme", "a", math.MaxInt64, time.Now())
		is.NoErr(err)
		_, err = w.Write(make([]byte, 3<<20+1))
		is.NoErr(err)
		err = bunx.InTx(ctx, db, func(ctx context.Context) error {
			_, err := w.Commit(ctx)
			is.NoErr(err)
			return fault
		})
		is.Equal(err, fault)
		_, err = s.Open(ctx, "acme", "a")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(chunks(t, db), 3)
		w.Abort()
		is.Equal(chunks(t, db), 0)
	})
}

// TestAbortInTransaction: Abort also removes a blob that was committed in the same transaction. A
// caller that ignores an error commits the rest.
func TestAbortInTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		s := bunstore.New(db)
		is.NoErr(bunx.InTx(t.Context(), db, func(ctx context.Context) error {
			w, err := s.Create(ctx, "acme", "a", math.MaxInt64, time.Now())
			is.NoErr(err)
			_, err = w.Write(make([]byte, 1<<20+1))
			is.NoErr(err)
			_, err = w.Commit(ctx)
			is.NoErr(err)
			w.Abort()
			return nil
		}))
		_, err := s.Open(t.Context(), "acme", "a")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(chunks(t, db), 0)
	})
}

func chunks(t *testing.T, db *bun.DB) (n int) {
	ctx, c := bunx.For(t.Context(), db, "acme")
	is.New(t).NoErr(c.Row(ctx, `SELECT count(*) FROM tc_blob_chunks`).Scan(&n))
	return n
}

func BenchmarkWrite(b *testing.B) { each(b, func(b *testing.B, s *bunstore.Store) { write(b, s) }) }

func BenchmarkRead(b *testing.B) {
	each(b, func(b *testing.B, s *bunstore.Store) {
		b.StopTimer()
		write(b, s)
		b.StartTimer()
		for range b.N {
			r, err := s.Open(b.Context(), "acme", "0")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDelete(b *testing.B) {
	each(b, func(b *testing.B, s *bunstore.Store) {
		b.StopTimer()
		write(b, s)
		b.StartTimer()
		for i := range b.N {
			if err := s.Delete(b.Context(), "acme", string(rune('0'+i))); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// each runs a benchmark of blobs of 100 MiB on each database, with and without the triggers that
// count the bytes of a tenant.
func each(b *testing.B, run func(*testing.B, *bunstore.Store)) {
	for name, open := range map[string]dbtest.Opener{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		for _, counted := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/counted=%t", name, counted), func(b *testing.B) {
				db := open(b)
				if !counted {
					uncounted(b, db)
				}
				s := bunstore.New(db)
				b.SetBytes(100 << 20)
				b.ReportAllocs()
				b.ResetTimer()
				run(b, s)
			})
		}
	}
}

// uncounted drops the triggers of the chunks that count bytes.
func uncounted(b *testing.B, db *bun.DB) {
	b.Helper()
	is := is.New(b)
	for _, of := range []string{"insert", "delete", "update"} {
		query := "DROP TRIGGER IF EXISTS tc_blob_chunks_storage_" + of
		if db.Dialect().Name() == dialect.PG {
			query += " ON tc_blob_chunks"
		}
		_, err := db.ExecContext(b.Context(), query)
		is.NoErr(err)
	}
}

func write(b *testing.B, s *bunstore.Store) {
	p := bytes.Repeat([]byte("0123456789abcdef"), 100<<16)
	for i := range b.N {
		_, err := blobs.Put(b.Context(), s, "acme", string(rune('0'+i)), math.MaxInt64, time.Now(), bytes.NewReader(p))
		if err != nil {
			b.Fatal(err)
		}
	}
}
