package tenantcontent_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

// TestRunWritesLoginsThatWait: a log-in during which another process writes lasts when the server
// has stopped.
func TestRunWritesLoginsThatWait(t *testing.T) {
	is, path := is.New(t), "sqlite:"+filepath.Join(t.TempDir(), "t.db")
	pool := func() *bun.DB {
		db, err := engines.Open(path)
		is.NoErr(err)
		return db
	}
	db := pool()
	is.NoErr(tenantcontent.Migrate(t.Context(), db))
	app := open(t, db, nil)
	_, _, err := app.FirstStart(t.Context(), password)
	is.NoErr(err)
	other := pool()
	defer func() { is.NoErr(other.Close()) }()
	token := ""
	is.NoErr(bunx.InTx(t.Context(), other, func(context.Context) error {
		l, err := app.Sessions.Login(t.Context(), "default", "local", "admin", password)
		token = l.Token
		return err
	}))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	is.NoErr(app.Run(stopped))
	is.NoErr(db.Close())

	db = pool()
	defer func() { is.NoErr(db.Close()) }()
	_, err = open(t, db, nil).Sessions.Authenticate(t.Context(), token, netip.Addr{})
	is.NoErr(err)
}
