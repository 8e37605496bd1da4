package tenantcontent_test

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// host is a program with an App and a table of its own.
type host struct {
	*is.I
	app *tenantcontent.App
	db  *bun.DB
	ctx context.Context // of the superuser of the tenant acme
}

func eachHost(t *testing.T, test func(t *testing.T, h host)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		h := host{I: is.New(t), db: open(t)}
		var err error
		h.app, err = tenantcontent.Open(tenantcontent.Config{DB: h.db, SecretKey: tenantcontent.NewSecretKey()})
		h.NoErr(err)
		_, err = h.db.ExecContext(t.Context(), `CREATE TABLE host_orders (id text PRIMARY KEY)`)
		h.NoErr(err)
		t.Cleanup(func() { _, _ = h.db.Exec(`DROP TABLE host_orders`) })
		for _, tenant := range []string{"ours", "theirs"} {
			_, err = h.app.AddTenant(
				t.Context(), tenants.Tenant{ID: tenant, Settings: tenants.Settings{AI: true}}, password,
			)
			h.NoErr(err)
		}
		h.ctx = h.of(t.Context(), "ours")
		test(t, h)
	})
}

// of returns a context of the superuser of a tenant.
func (h host) of(ctx context.Context, tenant string) context.Context {
	return actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true, AI: true})
}

// orders returns how many rows the host's table has.
func (h host) orders() (n int) {
	h.NoErr(h.db.QueryRowContext(context.Background(), `SELECT count(*) FROM host_orders`).Scan(&n))
	return n
}

// stored returns how many colors, users and comments a tenant has.
func (h host) stored(ctx context.Context) [3]int {
	colors, err := h.app.Colors.List(ctx, paging.Query{})
	h.NoErr(err)
	users, err := h.app.Principals.Users(ctx, paging.Query{})
	h.NoErr(err)
	reports, err := h.app.Content.List(ctx, "report", paging.Query{})
	h.NoErr(err)
	return [3]int{colors.Total, users.Total, reports.Total}
}

// TestTransactionOfHost: what services of both tenants do in a transaction of the host, and what
// the host does itself, is there together or not at all.
func TestTransactionOfHost(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		for _, commit := range []bool{false, true} {
			before, beforeTheirs := h.stored(h.ctx), h.stored(h.of(t.Context(), "theirs"))
			tx, err := h.db.BeginTx(h.ctx, nil)
			h.NoErr(err)
			within, err := tenantcontent.WithTx(h.ctx, tx)
			h.NoErr(err)
			_, err = tx.ExecContext(within, `INSERT INTO host_orders (id) VALUES ('1')`)
			h.NoErr(err)
			_, err = h.app.Colors.Put(within, "red", "#ff0000")
			h.NoErr(err)
			_, err = h.app.Principals.CreateUser(within, principals.User{Username: "jo"}, password)
			h.NoErr(err)
			report, err := h.app.Content.Create(within, content.Entity{Kind: "report", Name: "Sales"})
			h.NoErr(err)
			_, err = h.app.Comments.Create(within, "report", report.ID, "Look.")
			h.NoErr(err)
			_, err = h.app.Colors.Put(h.of(within, "theirs"), "green", "#00ff00")
			h.NoErr(err)
			_, err = h.app.Colors.Put(within, "blue", "no color")
			h.Equal(errs.CodeOf(err), errs.Invalid)
			_, err = h.app.Principals.CreateUser(within, principals.User{Username: "jo"}, password)
			h.Equal(errs.CodeOf(err), errs.Conflict) // and the transaction goes on
			want := [3]int{before[0] + 1, before[1] + 1, before[2] + 1}
			h.Equal(h.stored(within), want)
			if commit {
				h.NoErr(tx.Commit())
				h.NoErr(tenantcontent.Committed(within))
				h.Equal(h.stored(h.ctx), want)
				h.Equal(h.stored(h.of(t.Context(), "theirs"))[0], beforeTheirs[0]+1)
				h.Equal(h.orders(), 1)
				page, err := h.app.Comments.List(h.ctx, "report", report.ID, paging.Query{})
				h.NoErr(err)
				h.Equal(page.Total, 1)
				continue
			}
			h.NoErr(tx.Rollback())
			h.Equal(h.stored(h.ctx), before)
			h.Equal(h.stored(h.of(t.Context(), "theirs")), beforeTheirs)
			h.Equal(h.orders(), 0)
		}
	})
}

// TestTransactionSeesItsChanges: what is cached outside of a transaction is neither what is read in
// it nor read from it.
func TestTransactionSeesItsChanges(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		allowed := func(ctx context.Context) bool {
			_, err := h.app.AIInstructions.Allowed(ctx)
			return err == nil
		}
		h.True(allowed(h.ctx)) // cached
		tx, err := h.db.BeginTx(h.ctx, nil)
		h.NoErr(err)
		within, err := tenantcontent.WithTx(h.ctx, tx)
		h.NoErr(err)
		_, err = h.app.Tenants.Update(within, func(s *tenants.Tenant) error {
			s.Settings.AI = false
			return nil
		})
		h.NoErr(err)
		h.True(!allowed(within))
		h.NoErr(tx.Rollback())
		h.True(allowed(h.ctx))
		h.NoErr(h.app.InTx(h.ctx, func(ctx context.Context) error {
			h.True(allowed(ctx))
			_, err := h.app.Tenants.Update(ctx, func(s *tenants.Tenant) error {
				s.Settings.AI = false
				return nil
			})
			h.True(!allowed(ctx))
			return err
		}))
		h.True(!allowed(h.ctx))
	})
}

// TestOutsideTransactions: dry runs and requests are no part of a transaction of the host.
func TestOutsideTransactions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		h := host{I: is.New(t), db: open(t)}
		var err error
		h.app, err = tenantcontent.Open(tenantcontent.Config{DB: h.db, SecretKey: tenantcontent.NewSecretKey()})
		h.NoErr(err)
		_, err = h.app.AddTenant(t.Context(), tenants.Tenant{ID: "ours"}, password)
		h.NoErr(err)
		ctx := h.of(t.Context(), "ours")
		tx, err := h.db.BeginTx(ctx, nil)
		h.NoErr(err)
		within, err := tenantcontent.WithTx(ctx, tx)
		h.NoErr(err)
		answer := httptest.NewRecorder()
		h.app.ServeHTTP(answer, httptest.NewRequestWithContext(within, "GET", "/api/colors-list", nil))
		h.Equal(answer.Code, 401)
		h.NoErr(tx.Rollback())
		answer = httptest.NewRecorder()
		// the transaction has ended
		h.app.ServeHTTP(answer, httptest.NewRequestWithContext(within, "GET", "/readyz", nil))
		h.Equal(answer.Code, 200)
	})
}

// TestMigrateInTransaction makes the tables in a transaction of the host.
func TestMigrateInTransaction(t *testing.T) {
	for engine, url := range map[string]string{
		"sqlite":   "sqlite:" + filepath.Join(t.TempDir(), "empty.db"),
		"postgres": dbtest.PostgresURL(t),
	} {
		t.Run(engine, func(t *testing.T) {
			is := is.New(t)
			db, err := engines.Open(url)
			is.NoErr(err)
			t.Cleanup(func() { _ = db.Close() })
			for _, commit := range []bool{false, true} {
				tx, err := db.BeginTx(t.Context(), nil)
				is.NoErr(err)
				within, err := tenantcontent.WithTx(t.Context(), tx)
				is.NoErr(err)
				is.NoErr(tenantcontent.Migrate(within, db))
				if commit {
					is.NoErr(tx.Commit())
					is.NoErr(tenantcontent.Committed(within))
				} else {
					is.NoErr(tx.Rollback())
				}
				_, err = db.ExecContext(t.Context(), `SELECT 1 FROM tc_colors`)
				is.Equal(err == nil, commit)
			}
		})
	}
}
