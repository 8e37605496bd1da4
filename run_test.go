package tenantcontent_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const password = "correct horse battery"

// ownTokens names the personal tokens of the caller.
var ownTokens = sessions.TokensOf{Type: sessions.Personal}

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
	_, err := app.Sessions.Login(ctx, principals.Credentials{
		Tenant: tenant, Domain: "local", Username: "jo", Password: password,
	})
	is.NoErr(err)
	_, err = app.Uploads.Create(ctx, files.Draft{Filename: "a.txt"}, strings.NewReader("a"))
	is.NoErr(err)
	_, err = app.Downloads.Create(ctx, files.Draft{Filename: "b.txt"}, func(w io.Writer) error {
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
			_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
				Tenant: tenant, Username: "jo", Password: password,
			})
			is.NoErr(err)
			fill(t, app, tenant)
			soon := now.Add(time.Hour)
			ctx := as(t.Context(), tenant)
			_, _, err = app.Sessions.CreateToken(ctx, ownTokens, sessions.NewToken{ExpiresAt: &soon})
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
		_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		})
		is.NoErr(err)
		_, credential, err := app.Sessions.CreateToken(as(t.Context(), "acme"), ownTokens, sessions.NewToken{})
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
		_, err = app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		})
		is.NoErr(err)
		fill(t, app, "acme")
		_, credential, err := app.Sessions.CreateToken(as(t.Context(), "acme"), ownTokens, sessions.NewToken{})
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

// TestSweepsAreFoundByIndex checks that every ready sweep declares what is due, and that it is
// found by an index that begins with the time, or by the primary key, whatever the number of
// tenants. Only ready jobs are read all: an index of theirs would cost every job.
func TestSweepsAreFoundByIndex(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		var tables []string
		for _, s := range app.Registry().Sweeps() {
			is.True(len(s.Due) > 0)
			for _, due := range s.Due {
				if due.Table == "tc_jobs" && due.Column == "due_at" {
					continue
				}
				tables = append(tables, due.Table)
				bound := `'2026-11-16T09:00:00Z'`
				query := strings.NewReplacer("$1", bound, "$2", bound, "$3", `'acme'`).Replace(sweep.Query(due))
				plan := explain(t, db, query)
				indexed := regexp.MustCompile(`(?i)(Index Cond: .*|USING .*(INDEX|KEY) .*)\b` + due.Column + `\b`)
				if !indexed.MatchString(plan) || strings.Contains(plan, "Sort") ||
					strings.Contains(plan, "TEMP B-TREE") {
					t.Errorf("%s:\n%s", query, plan)
				}
			}
		}
		policies, err := os.ReadFile("internal/store/migrations/rls.sql")
		is.NoErr(err)
		for _, table := range tables {
			if table != "tc_tenants" && !strings.Contains(string(policies), "'"+table+"'") {
				t.Errorf("internal/store/migrations/rls.sql has no policy that lets a sweep see %s", table)
			}
		}
		_, list, _ := strings.Cut(string(policies), "A sweep looks")
		for _, table := range regexp.MustCompile(`'(tc_[a-z_]+)'`).FindAllStringSubmatch(list, -1) {
			is.True(slices.Contains(tables, table[1]))
		}
	})
}

// explain returns the plan of a statement. PostgreSQL would rather read tables that are empty from
// end to end.
func explain(t *testing.T, db *bun.DB, query string) string {
	t.Helper()
	is := is.New(t)
	var plan []string
	is.NoErr(bunx.InTx(t.Context(), db, func(ctx context.Context) error {
		ctx, c := bunx.For(ctx, db, bunx.AllTenants)
		explain := "EXPLAIN QUERY PLAN "
		if c.Postgres() {
			explain = "EXPLAIN "
			for _, off := range []string{"enable_seqscan", "enable_sort", "enable_bitmapscan"} {
				if _, err := c.Exec(ctx, "SET LOCAL "+off+" = off"); err != nil {
					return err
				}
			}
		}
		rows, err := c.Rows(ctx, explain+query)
		plan, err = bunx.Scan(rows, err, func(rows *sql.Rows) (line string, err error) {
			if c.Postgres() {
				return line, rows.Scan(&line)
			}
			return line, rows.Scan(new(any), new(any), new(any), &line)
		})
		return err
	}))
	return strings.Join(plan, "\n")
}

// TestWorkspaces: the workspaces of apps and drafts go with them, with their tenant, or when they
// are swept; and their passwords are among the secrets that are encrypted again.
func TestWorkspaces(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, folder := is.New(t), t.TempDir()
		first, second := tenantcontent.NewSecretKey(), tenantcontent.NewSecretKey()
		driver, err := engines.OpenWorkspaces(folder, "", 0)
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(driver.Close()) })
		c := tenantcontent.Config{DB: opener(t), SecretKey: first, Workspaces: driver}
		app, err := tenantcontent.Open(c)
		is.NoErr(err)
		_, err = app.AddTenant(
			t.Context(), tenants.Tenant{ID: "own", Settings: tenants.Settings{Licenses: []string{"apps"}}},
			password,
		)
		is.NoErr(err)
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "own", User: "admin", Superuser: true})
		made := func(slug string) string {
			a, err := app.Apps.Create(ctx, apps.App{Name: slug, Slug: &slug, Type: "report"})
			is.NoErr(err)
			return a.ID
		}
		query := func(id, statement string) string {
			conn, err := app.Workspaces().Connect(ctx, "own", id)
			is.NoErr(err)
			defer func() { is.NoErr(conn.Close()) }()
			rows, err := conn.Query(ctx, statement, nil)
			if err != nil {
				return errs.MessageOf(err)
			}
			return string(rows)
		}
		files := func() int {
			all, err := filepath.Glob(filepath.Join(folder, "*", "*.sqlite"))
			is.NoErr(err)
			return len(all)
		}
		purged, kept := made("purged"), made("kept")
		draft, err := app.Apps.Edit(ctx, kept, false)
		is.NoErr(err)
		for _, id := range []string{purged, kept, draft.ID, "0192b2a0-0000-7000-8000-000000000009"} {
			// the last one is not an app
			is.Equal(query(id, "CREATE TABLE t (k integer)"), "[]")
		}
		is.Equal(files(), 4)
		is.NoErr(app.Apps.Delete(ctx, purged))
		is.NoErr(app.Sweep(ctx))
		is.Equal(files(), 3) // an app that can be restored keeps its workspace
		is.Equal(query(purged, "SELECT k FROM t"), "[]")
		is.NoErr(app.Apps.Purge(ctx, purged))
		is.Equal(files(), 2)
		is.NoErr(app.Apps.Discard(ctx, kept))
		is.Equal(files(), 1)

		c.SecretKey = second + "," + first
		n, err := tenantcontent.Rekey(ctx, c)
		is.NoErr(err)
		is.True(n > 0)
		c.SecretKey = second
		app, err = tenantcontent.Open(c)
		is.NoErr(err)
		is.Equal(query(kept, "SELECT k FROM t"), "[]")

		is.NoErr(app.Tenants.Unchecked().Delete(t.Context(), "own", tenants.DeleteOptions{}))
		is.Equal(files(), 0)
		left, err := os.ReadDir(folder)
		is.NoErr(err)
		is.Equal(len(left), 0)
	})
}

// recorder is an Observer that keeps what it is told of.
type recorder struct {
	mu  sync.Mutex
	all []entity.Observation
}

// Observe implements entity.Observer.
func (r *recorder) Observe(_ context.Context, o entity.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, o)
}

// take returns what it was told of some work as "tenant kind outcome status", and forgets all.
func (r *recorder) take(work entity.Work) (some []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.all {
		if o.Work == work {
			some = append(some, fmt.Sprintf("%s %s %s %d", o.Tenant, o.Kind, o.Outcome, o.Status))
		}
	}
	r.all = nil
	return some
}

func TestObserver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		const canary = "canary7f3a"
		is, db, seen := is.New(t), open(t), &recorder{}
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "ours", User: "admin", Superuser: true, AI: true})
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(),
			Observer: seen, DomainDrivers: []domains.Driver{ldap.LDAP{}},
			AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Authenticate:  func(r *http.Request) (actor.Actor, error) { return actor.From(ctx) },
		})
		is.NoErr(err)
		_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "ours"}, password)
		is.NoErr(err)

		is.True(len(seen.take(entity.StatementWork)) > 0)
		serve := func(method, path, body string) []string {
			t.Helper()
			app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body)))
			seen.mu.Lock()
			all := slices.Clone(seen.all)
			seen.mu.Unlock()
			for _, o := range all {
				is.True(!o.Start.IsZero() && o.Duration > 0 && o.Duration < time.Minute)
				is.True(!strings.Contains(fmt.Sprint(o), canary)) // neither the path nor an argument of a statement
				if o.Work == entity.StatementWork {
					is.True(o.Tenant == "ours" || o.Tenant == "")
				}
			}
			return seen.take(entity.RequestWork)
		}
		is.Equal(
			serve("PUT", "/api/colors/"+canary, `{"color": "#ff0000"}`),
			[]string{"ours PUT /api/colors/{key} ok 200"},
		)
		is.Equal(
			serve("PUT", "/api/colors/"+canary, `{"color": "`+canary+`"}`),
			[]string{"ours PUT /api/colors/{key} invalid 400"},
		)
		is.Equal(serve("GET", "/api/"+canary, ""), []string{"  not_found 404"})

		_, err = app.Colors.Get(ctx, canary)
		is.NoErr(err)
		is.Equal(seen.take(entity.StatementWork), []string{"ours SELECT ok 0"})
		tx, err := db.BeginTx(ctx, nil) // of the host, whose bun.DB has no Observer
		is.NoErr(err)
		within, err := tenantcontent.WithTx(ctx, tx)
		is.NoErr(err)
		_, err = app.Colors.Get(within, canary)
		is.NoErr(err)
		is.NoErr(tx.Rollback())
		is.Equal(seen.take(entity.StatementWork), []string{"ours SELECT ok 0"})

		b, err := app.Bundles.Create(ctx, bundles.Bundle{Name: canary})
		is.NoErr(err)
		_, err = app.Bundles.CreateEntry(ctx, b.ID, bundles.Entry{Type: "global", EntityID: "color"})
		is.NoErr(err)
		export, err := app.Bundles.Export(ctx, b.ID)
		is.NoErr(err)
		var archive bytes.Buffer
		is.NoErr(export.Write(ctx, &archive))
		is.Equal(seen.take(entity.ArchiveWork), []string{"ours export ok 0"})
		_, err = app.Bundles.Import(ctx, bytes.NewReader(archive.Bytes()), bundles.ImportOptions{})
		is.NoErr(err)
		_, err = app.Bundles.Restore(ctx, strings.NewReader("no archive"), bundles.ImportOptions{})
		is.True(err != nil)
		is.Equal(seen.take(entity.ArchiveWork), []string{"ours import ok 0", "ours restore invalid 0"})

		name := "dir"
		d, err := app.Domains.Create(ctx, domains.Domain{Name: &name, Type: "LDAP", Config: json.RawMessage(
			`{"url": "ldap://127.0.0.1:1", "baseDN": "dc=example,dc=org", "bindDN": "cn=` + canary +
				`,dc=example,dc=org", "bindPassword": "` + canary + `"}`)})
		is.NoErr(err)
		_, err = app.Domains.ScanDomain(ctx, d.ID, domains.ScanOptions{})
		is.True(err != nil) // the port is closed
		scans := seen.take(entity.ScanWork)
		is.Equal(len(scans), 1)
		is.True(strings.HasPrefix(scans[0], "ours LDAP ") && !strings.Contains(scans[0], "ok"))

		log := func(tenant, domain, secret string) string {
			t.Helper()
			_, err := app.Sessions.Login(t.Context(), principals.Credentials{
				Tenant: tenant, Domain: domain, Username: "admin", Password: secret,
			})
			got := seen.take(entity.LoginWork)
			is.Equal(len(got), 1)
			is.Equal(err == nil, strings.Contains(got[0], " ok "))
			return got[0]
		}
		is.Equal(log("ours", domains.Local, password), "ours local ok 0")
		is.Equal(log("ours", domains.Local, canary), "ours local unauthenticated 0")
		is.Equal(log("ours", "no-such-domain", canary), "ours  unauthenticated 0")
		is.Equal(log(canary, domains.Local, canary), "  unauthenticated 0")
		is.True(strings.HasPrefix(log("ours", d.ID, canary), "ours LDAP ")) // the directory is away
		login, err := app.Sessions.Login(t.Context(), principals.Credentials{
			Tenant: "ours", Domain: domains.Local, Username: "admin", Password: password,
		})
		is.NoErr(err)
		seen.take(entity.CredentialWork)
		for range 2 {
			_, err = app.Sessions.Authenticate(t.Context(), login.Token, netip.Addr{})
			is.NoErr(err)
		}
		is.Equal(seen.take(entity.CredentialWork), []string{"ours database ok 0", "ours cache ok 0"})
	})
}

// TestObserverOfTasks: each round of background work is told, and whether it has succeeded.
func TestObserverOfTasks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, seen := is.New(t), &recorder{}
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: open(t), SecretKey: tenantcontent.NewSecretKey(), Observer: seen,
		})
		is.NoErr(err)
		_, err = app.Tenants.Unchecked().Rekey(t.Context()) // the tenants of dbtest have no check of the key
		is.NoErr(err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		time.Sleep(1500 * time.Millisecond)
		stop()
		is.NoErr(<-ended)
		told := seen.take(entity.TaskWork)
		for _, task := range []string{"webhook_calls", "token_uses", "deferred_logins", "app_views", "app_calls"} {
			is.True(slices.Contains(told, " "+task+" ok 0"))
		}
	})
}

// TestWithdraw: an App that was withdrawn is not ready, and serves.
func TestWithdraw(t *testing.T) {
	is := is.New(t)
	app := open(t, dbtest.SQLite(t), nil)
	get := func(path string) int {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		return w.Code
	}
	is.Equal(get("/readyz"), http.StatusOK)
	app.Withdraw()
	is.Equal(get("/readyz"), http.StatusServiceUnavailable)
	is.Equal(get("/readyz?for=read"), http.StatusServiceUnavailable)
	is.Equal(get("/healthz"), http.StatusOK)
	is.Equal(errs.CodeOf(app.Ready(t.Context())), errs.Unavailable)
}

// modelOf is a Provider that fails, makes images and lists models.
type modelOf struct{ ai.None }

// Chat implements ai.Provider.
func (modelOf) Chat(context.Context, ai.Request, func(ai.Part) error) (ai.Answer, error) {
	return ai.Answer{}, context.DeadlineExceeded
}

// lister is a Provider that lists models.
type lister struct{ modelOf }

// Models implements ai.Lister.
func (lister) Models() []string { return []string{"small"} }

// imager is a Provider that lists models and makes images.
type imager struct{ lister }

// Image implements ai.Imager.
func (imager) Image(context.Context, ai.ImageRequest) (ai.Image, error) { return ai.Image{}, nil }

// TestObserverOfModels keeps what a Provider can do beside chats.
func TestObserverOfModels(t *testing.T) {
	is, seen := is.New(t), &recorder{}
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "ours", User: "admin"})
	is.Equal(tenantcontent.Observed(nil, seen), nil)
	is.Equal(tenantcontent.Observed(ai.None{}, seen), ai.None{})
	for _, c := range []struct {
		p              ai.Provider
		images, models bool
	}{{modelOf{}, false, false}, {lister{}, false, true}, {imager{}, true, true}} {
		p := tenantcontent.Observed(c.p, seen)
		_, err := p.Chat(ctx, ai.Request{}, nil)
		is.Equal(err, context.DeadlineExceeded)
		is.Equal(seen.take(entity.ModelWork), []string{"ours chat internal 0"})
		images, ok := p.(ai.Imager)
		is.Equal(ok, c.images)
		if ok {
			_, err := images.Image(ctx, ai.ImageRequest{})
			is.NoErr(err)
			is.Equal(seen.take(entity.ModelWork), []string{"ours image ok 0"})
		}
		models, ok := p.(ai.Lister)
		is.Equal(ok, c.models)
		if ok {
			is.Equal(models.Models(), []string{"small"})
		}
	}
}

// TestNoObserverCostsNothing counts allocations.
func TestNoObserverCostsNothing(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	is.Equal(testing.AllocsPerRun(100, func() {
		start := time.Now()
		entity.Observe(ctx, nil, entity.Observation{
			Work:    entity.JobWork,
			Tenant:  "ours",
			Kind:    "k",
			Outcome: entity.Outcome(nil),
			Start:   start,
		})
	}), 0.0)
}

// TestObserverOfJobsAndHandlers: each try of a job is told, and each run of a handler.
func TestObserverOfJobsAndHandlers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, seen := is.New(t), open(t), &recorder{}
		done := make(chan struct{})
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), Observer: seen,
			Scripts: javascript.New(javascript.Options{}),
			Workers: []tenantcontent.Worker{{
				Kind: "mine", Backoff: func(int) time.Duration { return time.Millisecond },
				Do: func(_ context.Context, j queue.Job) error {
					if j.Tries == 1 {
						return errs.New(errs.Unavailable, "canary7f3a")
					}
					close(done)
					return nil
				},
			}},
		})
		is.NoErr(err)
		defer func() { is.NoErr(app.Close()) }()
		_, err = app.AddTenant(
			t.Context(), tenants.Tenant{ID: "ours", Settings: tenants.Settings{Licenses: []string{"apps"}}}, password,
		)
		is.NoErr(err)
		_, err = app.Tenants.Unchecked().Rekey(t.Context()) // the tenants of dbtest have no check of the key
		is.NoErr(err)

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		is.NoErr(app.Queue().Put(t.Context(), queue.Job{Tenant: "ours", Kind: "mine"}))
		select {
		case <-done:
		case err := <-ended:
			t.Fatalf("Run ended before the job was done: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("the job was not done")
		}
		stop()
		select {
		case err := <-ended:
			is.NoErr(err)
		case <-time.After(time.Minute):
			t.Fatal("Run has not ended")
		}
		is.Equal(seen.take(entity.JobWork), []string{"ours mine unavailable 0", "ours mine ok 0"})

		admin := actor.With(t.Context(), actor.Actor{Tenant: "ours", User: "admin", Superuser: true})
		shop, err := app.Apps.Create(admin, apps.App{Name: "Shop", Type: "app"})
		is.NoErr(err)
		for name, code := range map[string]string{
			"webhooks/ping.js":     `export function GET() { return {body: "pong"} }`,
			"webhooks/[action].js": `export function GET() { throw new Error("canary7f3a") }`,
		} {
			_, err := app.Apps.PutFile(admin, shop.ID, entity.File{
				Path: name, ContentType: "text/javascript",
			}, strings.NewReader(code))
			is.NoErr(err)
		}
		_, err = app.Apps.Deploy(admin, shop.ID, apps.PublishOptions{})
		is.NoErr(err)
		hooks := sessions.TokensOf{Type: sessions.Webhook, EntityID: shop.ID}
		token, _, err := app.Sessions.CreateToken(admin, hooks, sessions.NewToken{})
		is.NoErr(err)
		key, err := app.Webhooks.Keys(admin, shop.ID)
		is.NoErr(err)
		text, err := key(token.ID, token.CreatedAt)
		is.NoErr(err)
		for _, c := range []struct {
			path   string
			status int
			want   string
		}{
			{"ping", http.StatusOK, "ours webhooks /ping ok 0"},
			{"canary7f3a", http.StatusInternalServerError, "ours webhooks /:action thrown 0"},
		} {
			answer := httptest.NewRecorder()
			app.ServeHTTP(
				answer, httptest.NewRequest(http.MethodGet, "/api/apps/"+shop.ID+"/_hook/"+c.path+"?token="+text, nil),
			)
			is.Equal(answer.Code, c.status)
			is.Equal(seen.take(entity.HandlerWork), []string{c.want})
		}
	})
}

// TestObserverOfTenantArchives: whole tenants that are exported and imported are told.
func TestObserverOfTenantArchives(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, seen := is.New(t), &recorder{}
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: open(t), SecretKey: tenantcontent.NewSecretKey(), Observer: seen,
		})
		is.NoErr(err)
		_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "ours"}, password)
		is.NoErr(err)
		var archive bytes.Buffer
		o := tenantcontent.TenantTransfer{Passphrase: "a long passphrase"}
		_, err = app.ExportTenant(t.Context(), "ours", &archive, o)
		is.NoErr(err)
		_, err = app.ExportTenant(t.Context(), "ours", &archive, tenantcontent.TenantTransfer{})
		is.True(err != nil) // no passphrase
		is.Equal(seen.take(entity.ArchiveWork), []string{"ours tenant export ok 0", "ours tenant export invalid 0"})

		_, err = app.ImportTenant(t.Context(), bytes.NewReader(archive.Bytes()), o)
		is.True(err != nil) // the tenant is there
		is.NoErr(app.Tenants.Unchecked().Delete(t.Context(), "ours", tenants.DeleteOptions{}))
		_, err = app.ImportTenant(t.Context(), bytes.NewReader(archive.Bytes()), o)
		is.NoErr(err)
		_, err = app.ImportTenant(t.Context(), strings.NewReader("no export"), o)
		is.True(err != nil)
		is.Equal(seen.take(entity.ArchiveWork), []string{
			"ours tenant import conflict 0", "ours tenant import ok 0", " tenant import invalid 0",
		})
	})
}
