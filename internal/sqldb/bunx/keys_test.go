package bunx_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// odd are keys with special characters of SQL or JSON.
var odd = []string{
	"", " ", "a", "A", "ä", "'", `"`, `\`, `\\"`, "';DROP TABLE tc_colors;--",
	"$1", "?", ":a", "{a,b}", `["a"]`, "null", "1", "<&>", "\u2028", "😀", "a\nb",
}

var byKey = bunx.Lookup{Columns: "key", Table: "tc_colors", Where: "tenant_id = $1", Key: "key"}

func find(t testing.TB, db *bun.DB, tenant string, keys ...string) []string {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, tenant)
	return sorted(t)(c.Find(ctx, byKey, keys, tenant))
}

func sorted(t testing.TB) func(*sql.Rows, error) []string {
	return func(rows *sql.Rows, err error) []string {
		all, err := bunx.Scan(rows, err, bunx.Text)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return all
	}
}

func TestFind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		for _, key := range odd {
			is.Equal(len(find(t, db, "acme", odd...)), slices.Index(odd, key)) // those that exist, and no others
			is.NoErr(put(t.Context(), db, key, time.Now()))
			is.Equal(find(t, db, "acme", key, "none"), []string{key})
		}
		is.Equal(find(t, db, "acme", odd...), slices.Sorted(slices.Values(odd)))
		is.Equal(len(find(t, db, "acme")), 0)
		is.Equal(len(find(t, db, "evil", odd...)), 0)
		is.Equal(len(find(t, db, "acme", "\xff")), 0)
	})
}

func TestAmong(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		for _, key := range odd {
			is.NoErr(put(t.Context(), db, key, time.Now()))
		}
		ctx, c := bunx.For(t.Context(), db, "acme")
		pairs := bunx.Keys(
			append(slices.Clone(odd), "a"), append(slices.Repeat([]string{"#fff"}, len(odd)-1), "#000", "#000"),
		)
		all := sorted(t)(c.Rows(
			ctx, `SELECT key FROM tc_colors WHERE tenant_id = $1 AND `+c.Match(2, "key", "color"), "acme",
			pairs,
		))
		is.Equal(all, slices.Sorted(slices.Values(odd[:len(odd)-1]))) // the last pair but one has another color

		remove := func(keys ...string) (n int) {
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) (err error) {
				n, err = c.Exec(
					ctx, `DELETE FROM tc_colors WHERE tenant_id = $1 AND key IN `+c.Among(2, 1), "acme",
					bunx.Keys(keys),
				)
				return err
			}))
			return n
		}
		is.Equal(remove(), 0)
		is.Equal(remove("none", `\`, `\`), 1)
		is.Equal(remove(odd...), len(odd)-1)
	})
}

// TestFindLocks: a transaction waits for another one that found the same rows, and sees what that
// one wrote.
func TestFindLocks(t *testing.T) {
	locked := byKey
	locked.Columns, locked.Lock = "search", true
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		is.NoErr(put(t.Context(), db, "a", time.Now()))
		is.NoErr(put(t.Context(), db, "b", time.Now()))
		done := make(chan error)
		for i := range 20 {
			keys := []string{"a", "b"}
			if i%2 == 1 {
				slices.Reverse(keys) // the order of keys does not cause a deadlock
			}
			go func() {
				done <- bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
					rows, err := c.Find(ctx, locked, keys, "acme")
					all, err := bunx.Scan(rows, err, bunx.Text)
					if err != nil {
						return err
					}
					longest := max(len(all[0]), len(all[1]))
					_, err = c.Exec(
						ctx, `UPDATE tc_colors SET search = $1 WHERE tenant_id = $2`,
						strings.Repeat("x", longest+1), "acme",
					)
					return err
				})
			}()
		}
		for range 20 {
			is.NoErr(<-done)
		}
		ctx, c := bunx.For(t.Context(), db, "acme")
		var length int
		is.NoErr(c.One(ctx, "Color", "SELECT length(search) FROM tc_colors WHERE key = $1", []any{"b"}, &length))
		is.Equal(length, 21)
	})
}

// TestFindNeedsNoStatistics checks the plan for a table that PostgreSQL has never analyzed.
func TestFindNeedsNoStatistics(t *testing.T) {
	dbtest.Server(t)
	is := is.New(t)
	db, counter := dbtest.Counted(t, dbtest.Postgres)
	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = fmt.Sprintf("color-%d", i)
	}
	is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at)
			SELECT 'acme', key ->> 0, '', '#fff', now(), now() FROM json_array_elements($1) AS all_keys(key)`,
			bunx.Keys(keys))
		return err
	}))
	counter.Take()
	is.Equal(len(find(t, db, "acme", keys[:250]...)), 250)
	ctx, c := bunx.For(t.Context(), db, "acme")
	plan := strings.Join(sorted(t)(c.Rows(ctx, "EXPLAIN "+counter.Take()[0], "acme", bunx.Keys(keys[:250]))), "\n")
	is.True(regexp.MustCompile(`Index Cond: .*tenant_id.* AND \(key = `).MatchString(plan))
}

// TestPlansUnderPolicies checks by which index statements with many keys, or with the account of a
// user, find their rows. With row-level security an index does not support a condition with a
// function that is not leakproof. Which functions are leakproof differs between minor releases.
func TestPlansUnderPolicies(t *testing.T) {
	dbtest.Server(t)
	secured, open := dbtest.Postgres(t), dbtest.PGX(t)
	for name, db := range map[string]*bun.DB{"secured": secured, "open": open} {
		is := is.New(t)
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			for _, statement := range []string{ // so many rows that the indexes differ in cost, without statistics
				`INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at) ` +
					`SELECT 'acme', n, '', '#fff', now(), now() FROM generate_series(1, 20000) n`,
				`INSERT INTO tc_principals (tenant_id, id, type, label) SELECT 'acme', n, 'User', '' ` +
					`FROM generate_series(1, 20000) n`,
				`INSERT INTO tc_former_users (tenant_id, username, n) SELECT 'acme', n, 1 ` +
					`FROM generate_series(1, 20000) n`,
				"SET LOCAL enable_seqscan = off", "SET LOCAL enable_bitmapscan = off",
				"SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off",
				"SET LOCAL cpu_index_tuple_cost = 100", // it reads as few rows as possible
			} {
				if _, err := c.Exec(ctx, statement); err != nil {
					return err
				}
			}
			for query, want := range map[string]string{
				`SELECT key FROM tc_colors WHERE tenant_id = $1 AND key ` +
					c.OneOf(2): `key = ANY`,
				`DELETE FROM tc_colors WHERE tenant_id = $1 AND ` +
					c.Match(2, "key", "color"): `key = `,
				`WITH v (id) AS ` + c.Among(2, 1) +
					` SELECT (SELECT p.label FROM tc_principals p WHERE p.tenant_id = $1 AND p.id = v.id) FROM v`: `id = `,
				`SELECT ` + bunx.UserOf("f.key") +
					` FROM tc_colors f WHERE tenant_id = $1 AND $2 <> ''`: `username = `,
				`SELECT p.label FROM tc_principals p WHERE p.tenant_id = $1 AND p.id IN (` + bunx.Account("$2") +
					`)`: `id = `,
			} {
				plan := strings.Join(
					dbtest.Explain(ctx, t, c, query, "acme", bunx.Keys([]string{"a"}, []string{"b"})), "\n",
				)
				if !regexp.MustCompile(`Index Cond: .*` + want).MatchString(plan) {
					t.Errorf("%s: %s\nis not looked up by %q:\n%s", name, query, want, plan)
				}
			}
			return nil
		}))
	}
}

// TestOnlyAmongReadsKeys: statements use the elements of JSON only through Among, whose columns an
// index supports.
func TestOnlyAmongReadsKeys(t *testing.T) {
	is := is.New(t)
	root, err := os.OpenRoot("../../..")
	is.NoErr(err)
	defer func() { _ = root.Close() }()
	is.NoErr(fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			path == "internal/sqldb/bunx/keys.go" {
			return err
		}
		text, err := fs.ReadFile(root.FS(), path)
		if strings.Contains(
			strings.ReplaceAll(string(text), `"json_array_elements", "jsonb_array_elements"`, ""),
			"json_array_elements",
		) {
			t.Errorf("%s has json_array_elements: use bunx.Conn.Among", path)
		}
		return err
	}))
}
