package tenantcontent_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// begin returns an App with a tenant of its own, in a database that is empty except for it, and its
// key.
func begin(t *testing.T, db *bun.DB) (app *tenantcontent.App, key string) {
	t.Helper()
	is, key := is.New(t), tenantcontent.NewSecretKey()
	is.NoErr(bunx.Write(t.Context(), db, "", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, "DELETE FROM tc_tenants")
		return err
	}))
	app, err := tenantcontent.Open(tenantcontent.Config{DB: db, SecretKey: key})
	is.NoErr(err)
	_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "mine"}, password)
	is.NoErr(err)
	return app, key
}

// cut ends the connection that holds the lock, as the server sees it, and returns how many there
// were.
func cut(t *testing.T, db *bun.DB, purpose string) int {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "")
	n, err := c.Exec(
		ctx,
		`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name LIKE $1 || ' (%'`,
		purpose,
	)
	is.New(t).NoErr(err)
	return n
}

func TestRunKeepsRekeyAway(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		app, key := begin(t, db)
		ring := tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey() + "," + key}
		is.NoErr(app.Lock(t.Context(), "early"))
		_, err := tenantcontent.Rekey(t.Context(), ring)
		is.Equal(errs.CodeOf(err), errs.Conflict)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- app.Run(ctx) }()
		stop()
		is.NoErr(<-ended)
		_, err = tenantcontent.Rekey(t.Context(), ring) // the end of Run has given it back
		is.NoErr(err)
		is.Equal(errs.CodeOf(app.Run(t.Context())), errs.Invalid) // it has the old key
	})
}

// TestLockIsTakenAgain when its connection dies, and Run ends when the key was changed in between.
func TestLockIsTakenAgain(t *testing.T) {
	dbtest.Server(t)
	is, db := is.New(t), dbtest.Postgres(t)
	app, key := begin(t, db)
	is.NoErr(app.Lock(t.Context(), "again"))
	ended := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- app.Run(ctx) }()
	is.Equal(cut(t, db, "again"), 1)
	taken := 0
	for deadline := time.Now().Add(20 * time.Second); taken == 0 &&
		time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		plain, c := bunx.For(t.Context(), db, "")
		is.NoErr(c.Row(
			plain, `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'again (%'`,
		).Scan(&taken))
	}
	is.Equal(taken, 1)
	stop()
	is.NoErr(<-ended)

	is.NoErr(app.Lock(t.Context(), "lost"))
	is.Equal(cut(t, db, "lost"), 1)
	_, err := tenantcontent.Rekey(
		t.Context(), tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey() + "," + key},
	)
	is.NoErr(err)
	is.Equal(errs.CodeOf(app.Run(t.Context())), errs.Invalid)
}
