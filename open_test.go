package tenantcontent_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite" // the driver of a host's own database

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestHostSQLite: a host's own SQLite database has to have one connection, and works with it.
func TestHostSQLite(t *testing.T) {
	is := is.New(t)
	own, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "own.db")+"?_pragma=foreign_keys(1)")
	is.NoErr(err)
	db := bun.NewDB(own, sqlitedialect.New())
	t.Cleanup(func() { _ = db.Close() })
	c := tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey()}
	for _, connections := range []int{0, 2} {
		db.SetMaxOpenConns(connections)
		_, err = tenantcontent.Open(c)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(err.Error(), "SetMaxOpenConns(1)") && strings.Contains(err.Error(), "one writer"))
	}
	db.SetMaxOpenConns(1)
	is.NoErr(tenantcontent.Migrate(t.Context(), db))
	app, err := tenantcontent.Open(c)
	is.NoErr(err)
	_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "acme"}, password)
	is.NoErr(err)
	_, err = app.Sessions.Login(t.Context(), "acme", "local", "admin", password)
	is.NoErr(err)
}
