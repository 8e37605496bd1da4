package tenantcontent_test

import (
	"context"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const password = "correct horse battery"

// open returns an App on a database, with the superuser jo in both tenants.
func open(t *testing.T, db *bun.DB, now func() time.Time) *tenantcontent.App {
	t.Helper()
	is := is.New(t)
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB: db, SecretKey: tenantcontent.NewSecretKey(), Now: now,
		DomainDrivers: []domains.Driver{ldap.LDAP{}},
	})
	is.NoErr(err)
	return app
}

func as(ctx context.Context, tenant string) context.Context {
	return actor.With(ctx, actor.Actor{Tenant: tenant, User: "jo", Superuser: true})
}

// fill makes a session, an upload and a download of jo, each of which expires.
func fill(t *testing.T, app *tenantcontent.App, tenant string) {
	t.Helper()
	is, ctx := is.New(t), as(t.Context(), tenant)
	_, err := app.Sessions.Login(ctx, tenant, "local", "jo", password)
	is.NoErr(err)
	_, err = app.Uploads.Create(ctx, "a.txt", "", strings.NewReader("a"))
	is.NoErr(err)
	_, err = app.Downloads.Create(ctx, "b.txt", "", func(w io.Writer) error {
		_, err := io.WriteString(w, "b")
		return err
	})
	is.NoErr(err)
}

// rows counts the rows of the tables that are swept, and of tokens and chunks.
func rows(t *testing.T, db *bun.DB, tenant string) (n [6]int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, tenant)
	for i, table := range []string{
		"tc_sessions", "tc_uploads", "tc_downloads", "tc_blobs", "tc_blob_chunks", "tc_tokens",
	} {
		is.New(t).NoErr(c.Row(ctx, "SELECT count(*) FROM "+table+" WHERE tenant_id = $1", tenant).Scan(&n[i]))
	}
	return n
}

func TestSweepRemovesWhatHasExpiredAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		now := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
		app := open(t, db, func() time.Time { return now })
		for _, tenant := range []string{"acme", "evil"} {
			_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), tenant, "jo", password)
			is.NoErr(err)
			fill(t, app, tenant)
			soon := now.Add(time.Hour)
			_, _, err = app.Sessions.CreateToken(as(t.Context(), tenant), sessions.NewToken{ExpiresAt: &soon})
			is.NoErr(err)
		}
		now = now.Add(13 * time.Hour)
		fill(t, app, "acme")
		is.NoErr(app.Sweep(t.Context()))
		// the old session is gone, the token is there to be seen
		is.Equal(rows(t, db, "acme"), [6]int{1, 2, 2, 4, 4, 1})
		is.Equal(rows(t, db, "evil"), [6]int{0, 1, 1, 2, 2, 1})
		now = now.Add(11 * time.Hour)
		is.NoErr(app.Sweep(t.Context()))
		is.Equal(rows(t, db, "acme"), [6]int{1, 1, 1, 2, 2, 1})
		is.Equal(rows(t, db, "evil"), [6]int{0, 0, 0, 0, 0, 1})
	})
}

func TestRunLeavesNoGoroutineAndNoCounter(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), "acme", "jo", password)
		is.NoErr(err)
		_, credential, err := app.Sessions.CreateToken(as(t.Context(), "acme"), sessions.NewToken{})
		is.NoErr(err)
		_, err = app.Tenants.Unchecked().Rekey(t.Context()) // dbtest adds tenants without a key check
		is.NoErr(err)
		before := goleak.IgnoreCurrent()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		_, err = app.Sessions.Authenticate(t.Context(), credential, netip.Addr{})
		is.NoErr(err)
		stop()
		is.NoErr(<-ended)
		goleak.VerifyNone(t, before)
		var requests int
		ctx, c := bunx.For(t.Context(), db, "acme")
		is.NoErr(c.Row(ctx, "SELECT requests FROM tc_tokens WHERE tenant_id = 'acme'").Scan(&requests))
		is.Equal(requests, 1) // written by the last round
	})
}

func TestRunFlushesEachSecondAndSweepsEachMinute(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.db")
	synctest.Test(t, func(t *testing.T) { // a clock of its own, which jumps
		is := is.New(t)
		db, err := engines.Open("sqlite:" + file)
		is.NoErr(err)
		defer func() { _ = db.Close() }()
		is.NoErr(tenantcontent.Migrate(t.Context(), db))
		app := open(t, db, time.Now)
		_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "acme"}, password)
		is.NoErr(err)
		_, err = app.Principals.Unchecked().AddSuperuser(t.Context(), "acme", "jo", password)
		is.NoErr(err)
		fill(t, app, "acme")
		_, credential, err := app.Sessions.CreateToken(as(t.Context(), "acme"), sessions.NewToken{})
		is.NoErr(err)

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { app.Run(ctx); close(ended) }()
		_, err = app.Sessions.Authenticate(t.Context(), credential, netip.Addr{})
		is.NoErr(err)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		var requests int
		is.NoErr(db.QueryRow("SELECT requests FROM tc_tokens").Scan(&requests))
		is.Equal(requests, 1)

		time.Sleep(12*time.Hour - time.Minute) // it is due after 12 h
		synctest.Wait()
		is.Equal(rows(t, db, "acme"), [6]int{1, 1, 1, 2, 2, 1})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		is.Equal(rows(t, db, "acme"), [6]int{0, 1, 1, 2, 2, 1})
		stop()
		<-ended
	})
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	db := dbtest.SQLite(t)
	key := tenantcontent.NewSecretKey()
	for name, c := range map[string]tenantcontent.Config{
		"no database": {SecretKey: key},
		"no key":      {DB: db},
		"bad key":     {DB: db, SecretKey: "secret"},
		"bad base":    {DB: db, SecretKey: key, BaseURL: "content.example.com"},
		"bad file":    {DB: db, SecretKeyFile: filepath.Join(t.TempDir(), "file", "\x00")},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			app, err := tenantcontent.Open(c)
			is.True(err != nil)
			is.True(app == nil)
			is.True(!strings.Contains(err.Error(), key))
			is.True(strings.HasSuffix(name, "key") == strings.Contains(err.Error(), "Config.SecretKey"))
			is.True(strings.HasSuffix(name, "key") == strings.Contains(err.Error(), "openssl rand -base64 32"))
		})
	}
}
