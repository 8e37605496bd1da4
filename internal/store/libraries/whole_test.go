package bunstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// fill stores n files in a library of acme, each with a different content.
func fill(t testing.TB, db *bun.DB, library string, n int) {
	t.Helper()
	is.New(t).NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO tc_library_files (tenant_id, kind, library_id, path, folded, content_id, size, content_type, created_at, updated_at)
			SELECT 'acme', 'app', '%s', 'dir/f' || i, 'dir/f' || i, 'c' || i, 100, 'text/plain', '2026-11-20T20:31:00.000000Z', '2026-11-20T20:31:00.000000Z' FROM n`,
			n, library))
		return err
	}))
}

// edit changes n files of a library.
func edit(t testing.TB, db *bun.DB, library string, n int) {
	t.Helper()
	is.New(t).NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		for i := range n {
			_, err := c.Exec(ctx,
				`UPDATE tc_library_files SET content_id = $3 WHERE tenant_id = 'acme' AND library_id = $1 `+
					`AND path = $2`,
				library, fmt.Sprint("dir/f", i*7+1), fmt.Sprint(library, i))
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestWholeLibraries: copying, replacing and reading a library takes as many statements for 200
// files as for one, and uses indexes.
func TestWholeLibraries(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		db, counter := dbtest.Counted(t, open)
		s, seen := bunstore.New(db, "app"), [][]string{}
		for i, n := range []int{1, 200} {
			app, draft := fmt.Sprint("app", i), fmt.Sprint("draft", i)
			fill(t, db, app, n)
			counter.Take()
			is.NoErr(s.Copy(ctx, "acme", app, draft))
			statements := counter.Take()
			edit(t, db, draft, min(n, 10))
			counter.Take()
			is.NoErr(s.Replace(ctx, "acme", app, draft, time.Now()))
			statements = append(statements, counter.Take()...)
			_, err := s.Modified(ctx, "acme", []string{app, draft})
			is.NoErr(err)
			seen = append(seen, append(statements, counter.Take()...))
		}
		is.Equal(seen[0], seen[1])
		last := seen[1][len(seen[1])-1]
		plan := strings.Join(explain(t, db, last, "acme", bunx.Keys([]string{"app0", "app1"}), "app"), "\n")
		if !strings.Contains(plan, "updated") || // the index tc_library_files_updated, or that of a partition
			strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE") {
			t.Error(plan)
		}
	})
}

// TestMaxFiles: a full library refuses new paths, but files in it can be overwritten.
func TestMaxFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx, db := is.New(t), t.Context(), open(t)
		fill(t, db, "full", libraries.MaxFiles)
		s := bunstore.New(db, "app")
		file := libraries.File{
			Path:        "new",
			ContentID:   "x",
			ContentType: "text/plain",
			CreatedAt:   time.Now(),
			UpdatedAt:   time.Now(),
		}
		_, err := s.Put(ctx, "acme", "full", file)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), "10000"))
		_, err = s.Put(ctx, "acme", "other", file)
		is.NoErr(err)
		file.Path = "dir/f1"
		_, err = s.Put(ctx, "acme", "full", file)
		is.NoErr(err)
		is.NoErr(s.Delete(ctx, "acme", "full", "dir/f2", time.Now()))
		file.Path = "new"
		_, err = s.Put(ctx, "acme", "full", file)
		is.NoErr(err)
	})
}

func explain(t *testing.T, db *bun.DB, query string, args ...any) []string {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "acme")
	return dbtest.Explain(ctx, t, c, query, args...)
}

// BenchmarkReplace commits a draft of 2,000 files of which 10 changed: go test
// ./internal/store/libraries -run - -bench Replace
func BenchmarkReplace(b *testing.B) {
	for engine, open := range map[string]dbtest.Opener{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			db := open(b)
			s, ctx, begun, copied, looked := bunstore.New(db, "app"), b.Context(), 0, time.Duration(0), time.Duration(0)
			fill(b, db, "app", 2000)
			for b.Loop() {
				b.StopTimer()
				draft := fmt.Sprint("draft", begun)
				begun++
				begin := time.Now()
				err := s.Copy(ctx, "acme", "app", draft)
				copied += time.Since(begin)
				is.New(b).NoErr(err)
				edit(b, db, draft, 10)
				b.StartTimer()
				is.New(b).NoErr(s.Replace(ctx, "acme", "app", draft, time.Now()))
				b.StopTimer()
				begin = time.Now()
				_, err = s.Modified(ctx, "acme", []string{"app", draft})
				looked += time.Since(begin)
				is.New(b).NoErr(err)
				b.StartTimer()
			}
			b.ReportMetric(float64(copied.Microseconds())/float64(begun)/1000, "copy-ms")
			b.ReportMetric(float64(looked.Microseconds())/float64(begun)/1000, "modified-ms")
		})
	}
}
