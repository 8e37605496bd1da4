package dbtest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestEachDatabaseIsMigratedAndOfItsOwn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, a, b := is.New(t), open(t), open(t)
		for _, db := range []*bun.DB{a, b} {
			pending, err := migrations.Pending(t.Context(), db)
			is.NoErr(err)
			is.Equal(len(pending), 0)
			for _, tenant := range []string{"acme", "evil"} {
				is.Equal(principals(t, db, tenant), 1)
			}
		}
		is.NoErr(bunx.Write(t.Context(), a, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(
				ctx, "INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ('acme', 'x', 'User', '')",
			)
			return err
		}))
		is.Equal(principals(t, a, "acme"), 2)
		is.Equal(principals(t, b, "acme"), 1)
	})
}

func principals(t *testing.T, db *bun.DB, tenant string) (n int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, tenant)
	if err := c.One(ctx, "", "SELECT count(*) FROM tc_principals WHERE tenant_id = $1", []any{tenant}, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPostgresUserIsBound: a superuser or a user that bypasses policies would see every tenant.
func TestPostgresUserIsBound(t *testing.T) {
	dbtest.Server(t)
	is, db := is.New(t), dbtest.Postgres(t)
	var free bool
	is.NoErr(db.QueryRowContext(
		t.Context(), "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user",
	).Scan(&free))
	is.True(!free)
	is.Equal(principals(t, db, "acme"), 1)
	var n int
	is.NoErr(db.QueryRowContext(t.Context(), "SELECT count(*) FROM tc_principals").Scan(&n))
	is.Equal(n, 0)
}

func TestCounted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, count := dbtest.Counted(t, open)
		is.Equal(len(count.Take()), 0) // migrating is not recorded
		is.Equal(principals(t, db, "acme"), 1)
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.NewUpdate().Table("tc_principals").Set("label = 'x'").Where("tenant_id = 'acme'").Exec(ctx)
			return err
		}))
		all := count.Take()
		is.Equal(len(all), 2) // fixed text and built statements, without BEGIN and COMMIT
		is.Equal(all[0], "SELECT count(*) FROM tc_principals WHERE tenant_id = $1")
		is.True(strings.HasPrefix(all[1], "UPDATE"))
		is.Equal(len(count.Take()), 0)
	})
}
