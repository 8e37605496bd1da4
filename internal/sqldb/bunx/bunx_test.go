package bunx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// put adds a color to the tenant acme.
func put(ctx context.Context, db *bun.DB, key string, at time.Time) error {
	return bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at)
			VALUES ('acme', $1, $3, '#fff', $2, $2)`, key, bunx.At(at), fold.Search(key))
		return bunx.Err(err, "Color")
	})
}

func keys(t testing.TB, db *bun.DB, tenant, order string) []string {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, tenant)
	rows, err := c.Rows(ctx, "SELECT key FROM tc_colors ORDER BY "+order)
	all, err := bunx.Scan(rows, err, bunx.Text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTimeRoundTripAndOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		at := []time.Time{
			time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC),
			time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC), time.Unix(0, 0).UTC(),
			time.Date(2026, 3, 29, 1, 59, 59, 0, time.UTC), time.Date(2026, 3, 29, 1, 59, 59, 1000, time.UTC),
			time.Date(2026, 3, 29, 2, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		}
		want := []string{"a", "b", "c", "d", "e", "f", "g"}
		for i := range slices.Backward(at) {
			// Nanoseconds are cut off.
			is.NoErr(put(t.Context(), db, want[i], at[i].Add(999).In(time.FixedZone("x", -7200))))
		}
		is.Equal(keys(t, db, "acme", "created_at"), want)
		ctx, c := bunx.For(t.Context(), db, "acme")
		for i, key := range want {
			var got bunx.Time
			is.NoErr(c.One(
				ctx, "Color", "SELECT created_at FROM tc_colors WHERE key = $1 AND created_at = $2",
				[]any{key, bunx.At(at[i])}, &got,
			))
			is.Equal(got.Time, at[i])
		}
	})
}

// TestExecIn: values that are too many for one statement are written by several.
func TestExecIn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		var values []string
		for n := range 1001 {
			values = append(values, fmt.Sprint("key ", n))
		}
		for _, key := range []string{values[0], values[499], values[500], values[1000], "other"} {
			is.NoErr(put(t.Context(), db, key, time.Now()))
		}
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			n, err := c.ExecIn(
				ctx, `DELETE FROM tc_colors WHERE tenant_id = $1 AND color = $2 AND key IN `, values, "acme",
				"#fff",
			)
			is.Equal(n, 4)
			if err == nil {
				n, err = c.ExecIn(ctx, `DELETE FROM tc_colors WHERE tenant_id = $1 AND key IN `, nil, "acme")
				is.Equal(n, 0)
			}
			return err
		}))
		is.Equal(keys(t, db, "acme", "key"), []string{"other"})
	})
}

func TestInTx(t *testing.T) {
	failed := errors.New("no")
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), time.Now()
		err := bunx.InTx(t.Context(), db, func(ctx context.Context) error {
			is.NoErr(put(ctx, db, "a", now))
			return bunx.InTx(ctx, db, func(ctx context.Context) error { return put(ctx, db, "b", now) }) // joins
		})
		is.NoErr(err)
		is.Equal(keys(t, db, "acme", "key"), []string{"a", "b"})

		err = bunx.InTx(t.Context(), db, func(ctx context.Context) error {
			is.NoErr(bunx.InTx(ctx, db, func(ctx context.Context) error { return put(ctx, db, "c", now) }))
			return failed // also undoes the inner transaction
		})
		is.Equal(err, failed)
		func() {
			defer func() { is.Equal(recover(), "oh") }()
			_ = bunx.InTx(t.Context(), db, func(ctx context.Context) error {
				is.NoErr(put(ctx, db, "d", now))
				panic("oh")
			})
		}()
		is.Equal(keys(t, db, "acme", "key"), []string{"a", "b"})
		is.NoErr(put(t.Context(), db, "e", now)) // the pool is fine
	})
}

func TestAfterCommit(t *testing.T) {
	failed := errors.New("no")
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		var ran []string
		note := func(s string) func() { return func() { ran = append(ran, s) } }
		bunx.AfterCommit(t.Context(), note("no transaction"))
		is.Equal(ran, []string{"no transaction"})
		ran = nil
		err := bunx.InTx(t.Context(), db, func(ctx context.Context) error {
			bunx.AfterCommit(ctx, note("first"))
			return bunx.InTx(ctx, db, func(ctx context.Context) error {
				bunx.AfterCommit(ctx, func() { ran = append(ran, keys(t, db, "acme", "key")...) })
				is.Equal(len(ran), 0)
				return put(ctx, db, "there", time.Now())
			})
		})
		is.NoErr(err)
		is.Equal(ran, []string{"first", "there"})
		ran = nil
		_ = bunx.InTx(t.Context(), db, func(ctx context.Context) error {
			bunx.AfterCommit(ctx, note("rolled back"))
			return failed
		})
		ctx, cancel := context.WithCancel(t.Context())
		err = bunx.InTx(ctx, db, func(ctx context.Context) error {
			bunx.AfterCommit(ctx, note("not committed"))
			cancel()
			return nil
		})
		is.True(errors.Is(err, context.Canceled))
		is.Equal(len(ran), 0)
	})
}

func TestForPutsTheTenant(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	is.Equal(bunx.Tenant(t.Context()), "")
	acme, _ := bunx.For(t.Context(), db, "acme")
	is.Equal(bunx.Tenant(acme), "acme")
	evil, _ := bunx.For(acme, db, "evil")
	is.Equal(bunx.Tenant(evil), "evil")
	none, _ := bunx.For(acme, db, "")
	is.Equal(bunx.Tenant(none), "")
	_ = bunx.Write(acme, db, "evil", func(ctx context.Context, _ bunx.Conn) error {
		is.Equal(bunx.Tenant(ctx), "evil")
		return nil
	})
}

func TestRowLevelSecurityHides(t *testing.T) {
	dbtest.Server(t)
	is, db := is.New(t), dbtest.Postgres(t)
	is.NoErr(put(t.Context(), db, "a", time.Now()))
	for tenant, want := range map[string]int{"acme": 1, "evil": 0, "": 0} {
		is.Equal(len(keys(t, db, tenant, "key")), want) // the statement has no condition on the tenant
	}
	var n int
	is.NoErr(db.QueryRowContext(t.Context(), "SELECT count(*) FROM tc_colors").Scan(&n))
	is.Equal(n, 0) // not a context of For
	err := bunx.Write(t.Context(), db, "evil", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, "UPDATE tc_colors SET color = '#000' WHERE tenant_id = 'acme'")
		is.NoErr(err)
		_, err = c.Exec(ctx, "INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ('acme', 'x', 'User', '')")
		return err
	})
	is.True(err != nil) // it cannot write them either
	ctx, c := bunx.For(t.Context(), db, "acme")
	var color string
	is.NoErr(c.One(ctx, "Color", "SELECT color FROM tc_colors", nil, &color))
	is.Equal(color, "#fff")
}

// TestEditsQueue reads with a lock in each of twenty concurrent transactions.
func TestEditsQueue(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		is.NoErr(put(t.Context(), db, "n", time.Now()))
		done := make(chan error)
		for range 20 {
			go func() {
				done <- bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
					var s string
					if err := c.One(
						ctx, "Color", "SELECT search FROM tc_colors WHERE key = $1"+c.ForUpdate(), []any{"n"},
						&s,
					); err != nil {
						return err
					}
					_, err := c.Exec(ctx, "UPDATE tc_colors SET search = $1 WHERE key = $2", s+"x", "n")
					return err
				})
			}()
		}
		for range 20 {
			is.NoErr(<-done)
		}
		ctx, c := bunx.For(t.Context(), db, "acme")
		is.NoErr(c.One(
			ctx, "Color", "SELECT key FROM tc_colors WHERE search = $1", []any{"nxxxxxxxxxxxxxxxxxxxx"},
			new(string),
		))
	})
}

func TestFound(t *testing.T) {
	is, failed := is.New(t), errors.New("no")
	is.NoErr(bunx.Found(1, nil, "Color"))
	is.Equal(errs.CodeOf(bunx.Found(0, nil, "Color")), errs.NotFound)
	is.Equal(bunx.Found(0, failed, "Color"), failed)
}

func TestValues(t *testing.T) {
	is := is.New(t)
	is.Equal(bunx.Values(1, 1), "($1)")
	is.Equal(bunx.Values(2, 3), "($1,$2,$3),($4,$5,$6)")
}

// TestCommitAfterItsContext: if the context ends before the commit, the error is that of the
// context, and nothing is written.
func TestCommitAfterItsContext(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		ctx, cancel := context.WithCancel(t.Context())
		err := bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, `UPDATE tc_tenants SET name = 'changed' WHERE tenant_id = 'acme'`)
			cancel()
			for err == nil { // until the transaction has been rolled back
				_, err = c.Exec(
					context.WithoutCancel(ctx),
					`UPDATE tc_tenants SET name = 'changed' WHERE tenant_id = 'acme'`,
				)
			}
			is.True(errors.Is(err, sql.ErrTxDone))
			return nil
		})
		is.True(errors.Is(err, context.Canceled))
		var name string
		ctx, c := bunx.For(t.Context(), db, "acme")
		is.NoErr(c.Row(ctx, `SELECT name FROM tc_tenants WHERE tenant_id = 'acme'`).Scan(&name))
		is.True(name != "changed")
	})
}
