package tenantcontent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/agefile"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/store/tenantrows"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const (
	passphrase = "a passphrase of some words"
	rowsEach   = 7
)

// stocked returns an App whose tenant mover has rows in all tables.
func stocked(t *testing.T, db *bun.DB, now func() time.Time) *tenantcontent.App {
	t.Helper()
	app := open(t, db, now)
	_, err := app.Tenants.Unchecked().Rekey(t.Context()) // dbtest adds tenants without a key check
	is.New(t).NoErr(err)
	stock(t, app, db)
	return app
}

// stock adds the tenant mover with rows in all tables.
func stock(t *testing.T, app *tenantcontent.App, db *bun.DB) {
	t.Helper()
	is := is.New(t)
	_, err := app.AddTenant(t.Context(), tenants.Tenant{
		ID:       "mover",
		Name:     "Mover & Sons",
		Settings: tenants.Settings{AI: true, DeployFrom: tenants.Sources("acme")},
	}, password)
	is.NoErr(err)
	all, err := tenantrows.Tables(t.Context(), db)
	is.NoErr(err)
	is.True(len(all) > 50)
	for _, table := range all {
		if table.Name != "tc_principals" && !unfilled(table.Name) { // the database makes their rows itself
			is.NoErr(fillTable(t, app, db, table))
		}
	}
	counts, err := tenantrows.Count(t.Context(), db, "mover", all)
	is.NoErr(err)
	for _, table := range all {
		is.True(counts[table.Name] >= rowsEach || unfilled(table.Name)) // every table has rows
	}
}

// unfilled reports whether a table has what the database, or work in the background, makes of the
// rows of others.
func unfilled(table string) bool {
	return table == "tc_totals" || strings.HasPrefix(table, "tc_search_")
}

// rich are columns of texts that mean nothing.
var rich = []string{"name", "message", "title", "body", "description", "content", "excerpt", "instructions"}

// fillTable adds rows to a table. The texts of the keys are the same in all tables, so that rows
// refer to rows.
func fillTable(t *testing.T, app *tenantcontent.App, db *bun.DB, table tenantrows.Table) error {
	return bunx.Write(t.Context(), db, "mover", func(ctx context.Context, c bunx.Conn) error {
		for n := range rowsEach {
			names, args := []string{"tenant_id"}, []any{"mover"}
			for _, col := range table.Columns {
				if col.Name == table.Self || n == 3 && nullable(t, db, table.Name, col.Name) {
					continue
				}
				names, args = append(names, col.Name), append(args, filled(t, app, table, col, n))
			}
			if _, err := c.Exec(ctx, `INSERT INTO `+table.Name+` (`+strings.Join(names, ", ")+`) VALUES `+
				bunx.Values(1, len(names)), args...); err != nil {
				return fmt.Errorf("%s: %w", table.Name, err)
			}
		}
		if table.Self == "" {
			return nil
		}
		for n := range rowsEach - 1 { // each refers to one that comes after it
			if _, err := c.Exec(
				ctx,
				fmt.Sprintf(
					`UPDATE %s SET %s = $1 WHERE tenant_id = 'mover' AND %s = $2`, table.Name, table.Self,
					table.Key[0],
				),
				key("", n+1), key("", n),
			); err != nil {
				return err
			}
		}
		return nil
	})
}

// key returns the text of the keys of a row. Those of teams are others than those of users, as both
// are principals.
func key(column string, n int) string {
	if column == "team_id" {
		return fmt.Sprint("team ", n)
	}
	return fmt.Sprint("row ", n)
}

func filled(t *testing.T, app *tenantcontent.App, table tenantrows.Table, col tenantrows.Column, n int) any {
	for _, s := range app.Registry().Sealed() {
		if s.Table == table.Name && s.Column == col.Name {
			sealed, err := app.Seal("mover", s.Table, s.Column, key(s.Key, n), []byte{0, byte(n), 0xff, '"'})
			is.New(t).NoErr(err)
			return sealed
		}
	}
	switch {
	case col.Name == "position": // of a change, in the key
		return n
	case col.Type == tenantrows.Integer:
		return n % 2
	case col.Type == tenantrows.Bool:
		return n%2 == 1
	case col.Type == tenantrows.Time || strings.HasSuffix(col.Name, "_at") || col.Name == "last_viewed_feed":
		return bunx.At(time.Date(2026, 11, 20, 20, 31, n, 123456000, time.UTC))
	case col.Type == tenantrows.Bytes:
		return bytes.Repeat([]byte{0, 0xff, byte(n)}, n*1000) // one is empty
	case slices.Contains(rich, col.Name):
		return fmt.Sprintf("<Grüße & \"%d\">\n\u2028\\ 🎨", n)
	case table.Name == "tc_teams":
		return key("team_id", n)
	}
	return key(col.Name, n)
}

func nullable(t *testing.T, db *bun.DB, table, column string) (null bool) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "")
	query := `SELECT NOT "notnull" AND pk = 0 FROM pragma_table_info($1) WHERE name = $2`
	if c.Postgres() {
		query = `SELECT NOT attnotnull FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2`
	}
	is.New(t).NoErr(c.Row(ctx, query, table, column).Scan(&null))
	return null
}

// dumped returns all rows of a tenant by table, with secrets opened, as both engines have them
// alike.
func dumped(t *testing.T, app *tenantcontent.App, db *bun.DB, tenant string) map[string][]string {
	t.Helper()
	is := is.New(t)
	all, err := tenantrows.Tables(t.Context(), db)
	is.NoErr(err)
	dump := map[string][]string{}
	for _, table := range append(all, tenantrows.Table{Name: "tc_tenants", Columns: []tenantrows.Column{
		{Name: "name", Type: tenantrows.Text}, {Name: "settings", Type: tenantrows.Text},
		{Name: "created_at", Type: tenantrows.Time}, {Name: "updated_at", Type: tenantrows.Time},
	}}) {
		columns := make([]string, len(table.Columns))
		for i, c := range table.Columns {
			columns[i] = c.Name
		}
		query := `SELECT ` + strings.Join(columns, ", ") + ` FROM ` + table.Name + ` WHERE tenant_id = $1`
		if table.Name == "tc_totals" { // slots are the engine's
			query = `SELECT list, part, 0, CAST(sum(n) AS bigint) FROM tc_totals WHERE tenant_id = $1 ` +
				`GROUP BY list, part HAVING sum(n) <> 0`
		}
		ctx, c := bunx.For(t.Context(), db, tenant)
		rows, err := c.Rows(ctx, query, tenant)
		lines, err := bunx.Scan(rows, err, func(rows *sql.Rows) (string, error) {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				return "", err
			}
			return line(t, app, tenant, table, values), nil
		})
		is.NoErr(err)
		slices.Sort(lines)
		if len(lines) > 0 {
			dump[table.Name] = lines
		}
	}
	return dump
}

// line returns the values of a row as text.
func line(t *testing.T, app *tenantcontent.App, tenant string, table tenantrows.Table, values []any) string {
	t.Helper()
	is := is.New(t)
	text := map[string]string{}
	for i, col := range table.Columns {
		switch v := (*values[i].(*any)).(type) {
		case nil:
			text[col.Name] = "NULL"
		case bool:
			text[col.Name] = map[bool]string{true: "1", false: "0"}[v]
		case time.Time:
			text[col.Name] = bunx.At(v).String()
		case []byte:
			if text[col.Name] = string(v); col.Type == tenantrows.Bytes {
				text[col.Name] = hex.EncodeToString(v)
			}
		default:
			text[col.Name] = fmt.Sprint(v)
		}
	}
	for _, s := range app.Registry().Sealed() {
		if s.Table == table.Name && text[s.Column] != "NULL" && table.Name != "tc_tenants" {
			plain, err := app.OpenSecret(tenant, s.Table, s.Column, text[s.Key], text[s.Column])
			is.NoErr(err)
			text[s.Column] = hex.EncodeToString(plain)
		}
	}
	return fmt.Sprint(text)
}

// same compares dumps.
func same(t *testing.T, got, want map[string][]string) {
	t.Helper()
	for table := range want {
		if !slices.Equal(got[table], want[table]) {
			t.Errorf("%s:\n%s\nwant\n%s", table, strings.Join(got[table], "\n"), strings.Join(want[table], "\n"))
		}
	}
	is.New(t).Equal(len(got), len(want))
}

// nothing checks that there is no trace of the tenant mover.
func nothing(t *testing.T, app *tenantcontent.App, db *bun.DB) {
	t.Helper()
	is := is.New(t)
	is.Equal(dumped(t, app, db, "mover"), map[string][]string{})
	_, err := app.Tenants.Unchecked().Lookup(t.Context(), "mover")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

// exported returns an export of the tenant mover.
func exported(t *testing.T, app *tenantcontent.App) []byte {
	t.Helper()
	var file bytes.Buffer
	_, err := app.ExportTenant(
		t.Context(), "mover", &file,
		tenantcontent.TenantTransfer{Passphrase: passphrase, WithoutWorkspaces: true},
	)
	is.New(t).NoErr(err)
	return file.Bytes()
}

// TestImportQuota: a tenant that stores more than one may here is not imported, before anything of
// it is there if the export tells how much that is, unless the operator says so.
func TestImportQuota(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, from, to := is.New(t), open(t), open(t)
		source := stocked(t, from, nil)
		stored, err := source.Storage(t.Context(), "mover")
		is.NoErr(err)
		used := stored.Files + stored.Records
		is.True(used > 1000)
		file := exported(t, source)
		var untold bytes.Buffer // as a version wrote it that did not tell
		sealed, err := agefile.Encrypt(&untold, passphrase)
		is.NoErr(err)
		_, err = tenantrows.Export(t.Context(), from, "mover", sealed, tenantrows.Options{
			Secrets: tenantrows.Secrets{Columns: source.Registry().Sealed(), Open: source.OpenSecret},
			Without: []string{"tc_deployments", "tc_workspaces"}, Rows: func(int) {},
		})
		is.NoErr(err)
		is.NoErr(sealed.Close())

		key := tenantcontent.NewSecretKey()
		target := func(quota int64) *tenantcontent.App {
			app, err := tenantcontent.Open(tenantcontent.Config{DB: to, SecretKey: key, TenantQuota: quota})
			is.NoErr(err)
			return app
		}
		app := target(used - 1)
		_, err = app.Tenants.Unchecked().Rekey(t.Context())
		is.NoErr(err)
		o := tenantcontent.TenantTransfer{Passphrase: passphrase}
		for _, c := range []struct {
			file  []byte
			taken bool
		}{{file, false}, {file, false}, {untold.Bytes(), true}, {untold.Bytes(), true}} {
			moved, err := app.ImportTenant(t.Context(), bytes.NewReader(c.file), o)
			is.Equal(errs.CodeOf(err), errs.Full)
			is.True(strings.Contains(err.Error(), "The storage of the tenant "))
			is.True(strings.Contains(err.Error(), "--no-quota"))
			is.Equal(moved.Rows > 0, c.taken)
			_, err = app.Tenants.Unchecked().Lookup(t.Context(), "mover")
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		o.WithoutQuota = true
		_, err = app.ImportTenant(t.Context(), bytes.NewReader(file), o)
		is.NoErr(err)
		u, err := app.Storage(t.Context(), "mover")
		is.NoErr(err)
		is.Equal(u.Used(), u.Allowed+1)
		is.NoErr(app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{}))
		// it just fits
		_, err = target(used).ImportTenant(
			t.Context(), bytes.NewReader(file), tenantcontent.TenantTransfer{Passphrase: passphrase},
		)
		is.NoErr(err)
	})
}

// withWorkspaces is open with workspaces in SQLite files below a folder.
func withWorkspaces(t *testing.T, db *bun.DB, folder string, quota int64) *tenantcontent.App {
	t.Helper()
	is := is.New(t)
	driver, err := engines.OpenWorkspaces(folder, "", quota)
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(driver.Close()) })
	app, err := tenantcontent.Open(tenantcontent.Config{
		DB:         db,
		SecretKey:  tenantcontent.NewSecretKey(),
		Workspaces: driver,
	})
	is.NoErr(err)
	return app
}

// inWorkspace runs a statement in the workspace of an app of the tenant mover.
func inWorkspace(t *testing.T, app *tenantcontent.App, id, statement string) string {
	t.Helper()
	is := is.New(t)
	conn, err := app.Workspaces().Connect(t.Context(), "mover", id)
	is.NoErr(err)
	defer func() { is.NoErr(conn.Close()) }()
	rows, err := conn.Query(t.Context(), statement, nil)
	is.NoErr(err)
	return string(rows)
}

// ofMover changes rows of the tenant mover.
func ofMover(t *testing.T, db *bun.DB, statement string) {
	t.Helper()
	is.New(t).NoErr(bunx.Write(t.Context(), db, "mover", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, statement)
		return err
	}))
}

// The apps of mover that have workspaces.
const (
	movedApp = "0192b2a0-0000-7000-8000-000000000001"
	emptyApp = "0192b2a0-0000-7000-8000-000000000002"
)

// TestTenantMovesBetweenEngines, with every row of every table and the SQL databases of apps, and
// back again.
func TestTenantMovesBetweenEngines(t *testing.T) {
	dbtest.Server(t)
	for name, pair := range map[string][2]dbtest.Opener{
		"sqlite to postgres": {dbtest.SQLite, dbtest.Postgres},
		"postgres to sqlite": {dbtest.Postgres, dbtest.SQLite},
	} {
		t.Run(name, func(t *testing.T) {
			is, from, to := is.New(t), pair[0](t), pair[1](t)
			folder := t.TempDir()
			source, target := withWorkspaces(
				t, from, filepath.Join(folder, "from"), 0,
			), withWorkspaces(t, to, filepath.Join(folder, "to"), 0)
			_, err := source.Tenants.Unchecked().Rekey(t.Context())
			is.NoErr(err)
			_, err = target.Tenants.Unchecked().Rekey(t.Context())
			is.NoErr(err)
			stock(t, source, from)
			var file bytes.Buffer
			o := tenantcontent.TenantTransfer{Passphrase: passphrase}
			_, err = source.ExportTenant(t.Context(), "mover", &file, o)
			is.Equal(errs.CodeOf(err), errs.Conflict) // it has databases of apps that were made with another engine
			is.Equal(file.Len(), 0)
			_, err = source.ExportTenant(t.Context(), "mover", &file, tenantcontent.TenantTransfer{Passphrase: "short"})
			is.Equal(errs.CodeOf(err), errs.Invalid)
			_, err = source.ExportTenant(t.Context(), "nobody", &file, o)
			is.Equal(errs.CodeOf(err), errs.NotFound)

			ofMover(t, from, `UPDATE tc_workspaces SET engine = 'sqlite' WHERE tenant_id = 'mover'`)
			inWorkspace(
				t, source, movedApp,
				"CREATE TABLE things (id integer PRIMARY KEY, name text UNIQUE, bytes blob)",
			)
			inWorkspace(
				t, source, movedApp,
				"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "+
					"WHERE i < 3000) INSERT INTO things SELECT i, 'thing ' || i, randomblob(100) FROM n",
			)
			inWorkspace(t, source, emptyApp, "SELECT 1")
			_, err = source.ExportTenant(t.Context(), "mover", io.Discard, o)
			is.Equal(errs.CodeOf(err), errs.Conflict) // the others are not where workspaces are
			is.True(strings.Contains(err.Error(), "the SQL database of the app row "))
			ofMover(t, from, `DELETE FROM tc_workspaces WHERE tenant_id = 'mover' AND app_id LIKE 'row %'`)
			const all = "SELECT count(*) AS n, min(name) AS a, max(name) AS b, hex(max(bytes)) AS c FROM things"
			things := inWorkspace(t, source, movedApp, all)
			noted := 0
			o.Progress = func(n int) { noted += n }
			sent, err := source.ExportTenant(t.Context(), "mover", &file, o)
			is.NoErr(err)
			is.Equal(noted, sent.Rows)
			is.Equal(sent.Workspaces, 2)
			is.True(!bytes.Contains(file.Bytes(), []byte("row 1")))
			is.Equal(len(sent.Left), 2)
			is.True(strings.Contains(sent.Left[0], "may deploy into it, acme:"))
			is.True(strings.HasPrefix(sent.Left[1], "the record of what deploys"))

			before := dumped(t, target, to, "acme")
			for _, other := range []*tenantcontent.App{
				open(t, to, time.Now), withWorkspaces(t, to, filepath.Join(folder, "small"), 64<<10),
			} {
				_, err = other.ImportTenant(t.Context(), bytes.NewReader(file.Bytes()), o)
				// without workspaces, or with small ones
				is.True(errs.CodeOf(err) == errs.Conflict || errs.CodeOf(err) == errs.TooLarge)
				nothing(t, other, to)
			}
			left, err := filepath.Glob(filepath.Join(folder, "small", "*", "*"))
			is.NoErr(err)
			is.Equal(len(left), 0)

			added := func(more string) func(*testing.T, string) string {
				return func(_ *testing.T, lines string) string { return lines + more }
			}
			for _, c := range []struct {
				edit    func(t *testing.T, lines string) string
				message string
			}{
				{
					withValue("tc_workspaces", "engine", `"postgres"`),
					"tc_workspaces.engine is not the sqlite of its header",
				},
				{replaced(`"files":"sqlite"`, `"files":""`), "the export is damaged"},
				{
					added(`{"file":"` + emptyApp + `"}` + "\n\"AAAA\"\n"),
					`the file of "` + emptyApp + `" comes twice, or without its row`,
				},
				{
					added(`{"file":"0192b2a0-0000-7000-8000-000000000003"}` + "\n\"AAAA\"\n"),
					"comes twice, or without its row",
				},
			} {
				made := rewritten(t, file.Bytes(), func(lines string) string { return c.edit(t, lines) })
				_, err := target.ImportTenant(t.Context(), bytes.NewReader(made), o)
				if errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.message) {
					t.Errorf("%v, want %s", err, c.message)
				}
				nothing(t, target, to)
				left, err := filepath.Glob(filepath.Join(folder, "to", "*", "*"))
				is.NoErr(err)
				is.Equal(len(left), 0)
			}
			got, err := target.ImportTenant(t.Context(), bytes.NewReader(file.Bytes()), o)
			is.NoErr(err)
			is.Equal(got, sent)
			want := dumped(t, source, from, "mover")
			is.True(len(want) > 50)
			delete(want, "tc_deployments") // acme is somebody else there
			is.True(strings.Contains(want["tc_tenants"][0], `"deployFrom":["acme"]`))
			want["tc_tenants"][0] = strings.Replace(
				want["tc_tenants"][0], `"deployFrom":["acme"]`, `"deployFrom":[]`, 1,
			)
			same(t, dumped(t, target, to, "mover"), want)
			same(t, dumped(t, target, to, "acme"), before)
			is.Equal(inWorkspace(t, target, movedApp, all), things)
			is.Equal(inWorkspace(t, target, emptyApp, "SELECT 1 AS n"), `[{"n":1}]`)
			_, err = target.Sessions.Login(t.Context(), principals.Credentials{
				Tenant: "mover", Domain: "local", Username: "admin", Password: password,
			})
			is.NoErr(err)
			_, err = target.Tenants.Unchecked().Rekey(t.Context())
			is.NoErr(err)
			is.NoErr(target.CheckKeys(t.Context()))

			is.NoErr(target.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{}))
			left, err = filepath.Glob(filepath.Join(folder, "to", "*"))
			is.NoErr(err)
			is.Equal(len(left), 0)
			o.WithoutWorkspaces, o.Progress = true, nil
			got, err = target.ImportTenant(t.Context(), bytes.NewReader(file.Bytes()), o)
			is.NoErr(err)
			is.Equal(got.Workspaces, 0)
			is.True(strings.HasPrefix(got.Left[2], "the SQL databases of its apps"))
			is.Equal(got.Rows, sent.Rows-2)
			sent, err = source.ExportTenant(t.Context(), "mover", io.Discard, o)
			is.NoErr(err)
			is.Equal(sent.Rows, got.Rows)
			is.True(strings.HasPrefix(sent.Left[0], "2 SQL databases of apps"))
		})
	}
}

// TestExportLosesNoWorkspace: it fails when the tenant is deleted meanwhile, and is without the
// workspace of an app that is.
func TestExportLosesNoWorkspace(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := withWorkspaces(t, db, filepath.Join(t.TempDir(), "workspaces"), 0)
		_, err := app.Tenants.Unchecked().Rekey(t.Context())
		is.NoErr(err)
		stock(t, app, db)
		ofMover(t, db, `DELETE FROM tc_workspaces WHERE tenant_id = 'mover'`)
		inWorkspace(t, app, movedApp, "CREATE TABLE things (id integer PRIMARY KEY)")
		inWorkspace(t, app, emptyApp, "SELECT 1")
		beside := func(do func() error) (tenantcontent.TenantMoved, error) {
			o, once := tenantcontent.TenantTransfer{Passphrase: passphrase}, sync.OnceFunc(func() { is.NoErr(do()) })
			o.Progress = func(int) { once() }
			return app.ExportTenant(t.Context(), "mover", io.Discard, o)
		}
		moved, err := beside(func() error { return app.Workspaces().Drop(t.Context(), "mover", []string{emptyApp}) })
		is.NoErr(err)
		is.Equal(moved.Workspaces, 1)
		_, err = beside(func() error {
			return app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{})
		})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.Equal(errs.MessageOf(err), "the tenant mover was deleted while it was exported")
	})
}

// TestImportSaysWhatIsLeft, and how to remove it, when it fails and cannot remove it itself.
func TestImportSaysWhatIsLeft(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	file := rewritten(t, exported(t, stocked(t, dbtest.SQLite(t), time.Now)), func(lines string) string {
		return lines + `{"table":"tc_tenants"}` + "\n"
	})
	app := open(t, db, time.Now)
	ofMover(
		t, db,
		`CREATE TRIGGER stays BEFORE DELETE ON tc_colors WHEN OLD.tenant_id = 'mover' BEGIN `+
			`SELECT RAISE(ABORT, 'it stays'); END`,
	)
	_, err := app.ImportTenant(t.Context(), bytes.NewReader(file), tenantcontent.TenantTransfer{Passphrase: passphrase})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(
		errs.MessageOf(err),
		"the export is damaged. What had arrived of the tenant mover is hidden, and could not be removed: `tenant "+
			"delete mover` removes it, or a running server in ten minutes",
	)
	is.True(strings.Contains(err.Error(), "it stays") && !strings.Contains(err.Error(), "\n"))
	ofMover(t, db, `DROP TRIGGER stays`)
	is.NoErr(app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{})) // at once
	nothing(t, app, db)
}

// TestExportNamesValueThatIsNone: SQLite takes any text as a time.
func TestExportNamesValueThatIsNone(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	app := stocked(t, db, time.Now)
	ofMover(t, db, `UPDATE tc_colors SET created_at = 'x' WHERE tenant_id = 'mover'`)
	_, err := app.ExportTenant(
		t.Context(), "mover", io.Discard,
		tenantcontent.TenantTransfer{Passphrase: passphrase, WithoutWorkspaces: true},
	)
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.Equal(errs.MessageOf(err), "tc_colors.created_at has a value that is no time: correct it, and export again")
}

// TestImportIsWholeOrNothing, whatever is wrong with the file, the passphrase or the database.
func TestImportIsWholeOrNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is := is.New(t)
		file := exported(t, stocked(t, dbtest.SQLite(t), time.Now))
		db, now := opener(t), time.Now()
		app := open(t, db, func() time.Time { return now })
		fails := func(file []byte, o tenantcontent.TenantTransfer, code errs.Code, message string) {
			t.Helper()
			_, err := app.ImportTenant(t.Context(), bytes.NewReader(file), o)
			if errs.CodeOf(err) != code || !strings.Contains(err.Error(), message) {
				t.Errorf("%v, want %v %s", err, code, message)
			}
		}
		o := tenantcontent.TenantTransfer{Passphrase: passphrase}
		fails(
			file, tenantcontent.TenantTransfer{Passphrase: "another passphrase"}, errs.Invalid,
			"the passphrase is not",
		)
		fails([]byte("PK\x03\x04"), o, errs.Invalid, "no export of a tenant")
		fails(file[:len(file)-1], o, errs.Invalid, "cut or changed")
		changed := bytes.Clone(file)
		changed[len(changed)-20] ^= 1
		fails(changed, o, errs.Invalid, "cut or changed")
		nothing(t, app, db)

		version := func(query string) {
			is.NoErr(bunx.Write(t.Context(), db, "", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(ctx, query)
				return err
			}))
		}
		version(`INSERT INTO tc_migrations (name, migrated_at) VALUES ('9999_later', '')`)
		fails(file, o, errs.Invalid, "without the migration 9999_later")
		version(`DELETE FROM tc_migrations WHERE name = '9999_later' OR name LIKE '0041%'`)
		fails(file, o, errs.Invalid, "the database lacks the migration 0041")
		nothing(t, app, db)
		version(`INSERT INTO tc_migrations (name, migrated_at) VALUES ('0041_due', '')`)

		ctx, cancel := context.WithCancel(t.Context())
		rows := 0
		o.Progress = func(n int) {
			if rows += n; rows > 100 {
				cancel()
			}
		}
		_, err := app.ImportTenant(ctx, bytes.NewReader(file), o)
		is.True(errors.Is(err, context.Canceled))
		nothing(t, app, db)

		// of one that is killed here
		_, err = app.Tenants.Unchecked().Begin(t.Context(), tenants.Tenant{ID: "mover", Name: "mover"})
		is.NoErr(err)
		o.Progress = nil
		fails(file, o, errs.Conflict, "is being imported")
		err = app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.NoErr(app.Sweep(t.Context()))
		fails(file, o, errs.Conflict, "is being imported")
		now = now.Add(11 * time.Minute)
		is.NoErr(app.Sweep(t.Context()))
		nothing(t, app, db)

		for _, table := range []string{
			"tc_totals", "tc_search_lists", "tc_principals", "tc_deployments", "tc_tenants", "tc_leases",
		} {
			// no export has them
			plain, err := agefile.Decrypt(bytes.NewReader(file), passphrase)
			is.NoErr(err)
			text, err := io.ReadAll(plain)
			is.NoErr(err)
			head, _, _ := strings.Cut(string(text), "\n")
			var made bytes.Buffer
			w, err := agefile.Encrypt(&made, passphrase)
			is.NoErr(err)
			_, err = fmt.Fprintf(w, "%s\n{\"table\":%q}\n", head, table)
			is.NoErr(err)
			is.NoErr(w.Close())
			fails(made.Bytes(), o, errs.Invalid, "the export is damaged")
		}
		nothing(t, app, db)

		_, err = app.ImportTenant(t.Context(), bytes.NewReader(file), o)
		is.NoErr(err)
		fails(file, o, errs.Conflict, "exists already")
	})
}

// rewritten returns an export with other lines, and the end that they need.
func rewritten(t *testing.T, file []byte, edit func(lines string) string) []byte {
	t.Helper()
	is := is.New(t)
	plain, err := agefile.Decrypt(bytes.NewReader(file), passphrase)
	is.NoErr(err)
	text, err := io.ReadAll(plain)
	is.NoErr(err)
	lines := edit(string(text[:bytes.LastIndex(text, []byte(`{"end"`))]))
	rows, table := 0, false
	for line := range strings.Lines(lines) {
		if table = table && line[0] == '[' || strings.HasPrefix(line, `{"table"`); table && line[0] == '[' {
			rows++
		}
	}
	var made bytes.Buffer
	w, err := agefile.Encrypt(&made, passphrase)
	is.NoErr(err)
	_, err = fmt.Fprintf(w, "%s{\"end\":{\"rows\":%d,\"sha256\":\"%x\"}}\n", lines, rows, sha256.Sum256([]byte(lines)))
	is.NoErr(err)
	is.NoErr(w.Close())
	return made.Bytes()
}

// section returns the columns of a table in the lines of an export, and its first row.
func section(t *testing.T, lines, table string) (columns, row string) {
	t.Helper()
	_, rest, ok := strings.Cut(lines, `{"table":"`+table+`","columns":`)
	is.New(t).True(ok)
	columns, rest, _ = strings.Cut(rest, "}\n")
	row, _, _ = strings.Cut(rest, "\n")
	return columns, row
}

// withValue replaces the value of a column in the first row of a table by some JSON.
func withValue(table, column, value string) func(t *testing.T, lines string) string {
	return func(t *testing.T, lines string) string {
		is := is.New(t)
		columns, row := section(t, lines, table)
		var names []string
		var values []json.RawMessage
		is.NoErr(json.Unmarshal([]byte(columns), &names))
		is.NoErr(json.Unmarshal([]byte(row), &values))
		at := slices.Index(names, column)
		is.True(at >= 0)
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = string(v)
		}
		texts[at] = value
		return strings.Replace(lines, columns+"}\n"+row, columns+"}\n["+strings.Join(texts, ",")+"]", 1)
	}
}

// replaced replaces the first of some text.
func replaced(old, by string) func(t *testing.T, lines string) string {
	return func(t *testing.T, lines string) string {
		is.New(t).True(strings.Contains(lines, old))
		return strings.Replace(lines, old, by, 1)
	}
}

// TestImportRefusesWhatNoExportHas, which an engine would take and others stumble over: nothing of
// it is left, and the queue of all tenants goes on.
func TestImportRefusesWhatNoExportHas(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		db := opener(t)
		file := exported(t, stocked(t, dbtest.SQLite(t), time.Now))
		app := open(t, db, time.Now)
		const clock = "has a text that is no time of the years 1 to 9999"
		for name, c := range map[string]struct {
			edit    func(t *testing.T, lines string) string
			message string
		}{
			"no time":  {withValue("tc_jobs", "wake_at", `"0garbage"`), "tc_jobs.wake_at " + clock},
			"infinity": {withValue("tc_jobs", "due_at", `"infinity"`), "tc_jobs.due_at " + clock},
			"before the era": {
				withValue("tc_users", "last_viewed_feed", `"0044-03-15 BC"`),
				"tc_users.last_viewed_feed " + clock,
			},
			"late": {
				withValue("tc_users", "created_at", `"294000-01-01T00:00:00Z"`), "tc_users.created_at " + clock,
			},
			"year 0": {
				withValue("tc_users", "created_at", `"0000-01-01T00:00:00.000000Z"`),
				"tc_users.created_at " + clock,
			},
			"year 10000 in UTC": {
				withValue("tc_users", "created_at", `"9999-12-31T23:59:59-01:00"`),
				"tc_users.created_at " + clock,
			},
			"number as time": {
				withValue("tc_users", "created_at", `1`), "tc_users.created_at has something else than a text",
			},
			"header": {
				replaced(`"createdAt":"2`, `"createdAt":"x2`), "createdAt of its header " + clock,
			},
			"NUL": {withValue("tc_jobs", "kind", `"a\u0000b"`), "tc_jobs.kind has a text with NUL"},
			"no UTF-8": {
				withValue("tc_jobs", "kind", "\"a\xff\""),
				"tc_jobs.kind has a text with NUL, or that is no UTF-8",
			},
			"text as number": {
				withValue("tc_jobs", "tries", `"1"`), "tc_jobs.tries has something else than a whole number",
			},
			"fraction": {
				withValue("tc_jobs", "tries", `1.5`), "tc_jobs.tries has something else than a whole number",
			},
			"array": {
				withValue("tc_jobs", "tries", `[1]`), "tc_jobs.tries has something else than a whole number",
			},
			"object as text": {
				withValue("tc_jobs", "kind", `{"a":1}`), "tc_jobs.kind has something else than a text",
			},
			"column twice": {
				replaced(`{"table":"tc_colors","columns":["key",`, `{"table":"tc_colors","columns":["key","key",`),
				`tc_colors has no column "key", or twice`,
			},
			"no column": {
				replaced(`{"table":"tc_colors","columns":["key",`, `{"table":"tc_colors","columns":["`+"\u2028"+`\n",`),
				`tc_colors has no column "\u2028\n", or twice`,
			},
			"secret without its key": {
				replaced(`{"table":"tc_domains","columns":["id",`, `{"table":"tc_domains","columns":[`),
				"tc_domains lacks columns",
			},
			"long line": {func(_ *testing.T, lines string) string {
				return lines + "[" + strings.Repeat("1,", 33<<20) + "1]\n"
			}, "it has a line of more than 64 MiB"},
			"more values than columns": {func(t *testing.T, lines string) string {
				_, row := section(t, lines, "tc_jobs")
				return strings.Replace(lines, row, strings.TrimSuffix(row, "]")+strings.Repeat(",1", 1<<20)+"]", 1)
			}, "the export is damaged"},
			"no base64": {
				withValue("tc_blob_chunks", "bytes", `"%"`),
				"tc_blob_chunks.bytes has a text that is no base64",
			},
		} {
			t.Run(name, func(t *testing.T) {
				is := is.New(t)
				made := rewritten(t, file, func(lines string) string { return c.edit(t, lines) })
				_, err := app.ImportTenant(
					t.Context(), bytes.NewReader(made), tenantcontent.TenantTransfer{Passphrase: passphrase},
				)
				if errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.message) ||
					strings.Contains(err.Error(), "\n") {
					t.Errorf("%v, want %s", err, c.message)
				}
				nothing(t, app, db)
				_, _, err = queuestore.New(db).Next(t.Context())
				is.NoErr(err)
			})
		}
		is := is.New(t)
		_, err := app.ImportTenant(t.Context(), bytes.NewReader(rewritten(t, file, func(lines string) string {
			return lines
		})), tenantcontent.TenantTransfer{Passphrase: passphrase})
		is.NoErr(err)
	})
}

// blocking is a reader that stands still in the middle.
type blocking struct {
	before, behind  io.Reader
	blocked, resume chan struct{}
}

// block returns a reader of an export that stands still before its last bytes. Random bytes make it
// longer than what is read at once.
func block(t *testing.T, file []byte) *blocking {
	file = rewritten(t, file, func(lines string) string {
		columns, row := section(t, lines, "tc_jobs")
		head, noise := `{"table":"tc_jobs","columns":`+columns+"}\n", make([]byte, 100_000)
		lines += head
		for n := range 10 {
			_, _ = rand.Read(noise)
			one := head + row + "\n"
			for column, value := range map[string]string{
				"id":      fmt.Sprintf(`"noise %d"`, n),
				"key":     "null",
				"payload": fmt.Sprintf(`"%x"`, noise),
			} {
				one = withValue("tc_jobs", column, value)(t, one)
			}
			lines += strings.TrimPrefix(one, head)
		}
		return lines
	})
	at := len(file) - 10
	return &blocking{bytes.NewReader(file[:at]), bytes.NewReader(file[at:]), make(chan struct{}), make(chan struct{})}
}

// Read implements io.Reader.
func (b *blocking) Read(p []byte) (int, error) {
	if n, err := b.before.Read(p); n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	select {
	case <-b.resume:
	default:
		close(b.blocked)
		<-b.resume
	}
	return b.behind.Read(p)
}

// TestImportThatStoodStillIsTakenOver: once a delete goes on with the tenant, the import adds
// nothing and does not end well.
func TestImportThatStoodStillIsTakenOver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		file := exported(t, stocked(t, dbtest.SQLite(t), time.Now))
		for name, takeOver := range map[string]func(app *tenantcontent.App, progress func(int)) error{
			"delete": func(app *tenantcontent.App, progress func(int)) error {
				return app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{Progress: progress})
			},
			"delete, and import again": func(app *tenantcontent.App, progress func(int)) error {
				if err := app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{}); err != nil {
					return err
				}
				_, err := app.ImportTenant(
					t.Context(), bytes.NewReader(file),
					tenantcontent.TenantTransfer{Passphrase: passphrase, Progress: progress},
				)
				return err
			},
			"sweep": func(app *tenantcontent.App, progress func(int)) error {
				progress(0)
				return app.Sweep(t.Context())
			},
		} {
			t.Run(name, func(t *testing.T) {
				is, db := is.New(t), opener(t)
				var clock atomic.Int64 // the seconds that have passed
				begin := time.Now()
				app := open(t, db, func() time.Time { return begin.Add(time.Duration(clock.Load()) * time.Second) })
				_, err := app.Tenants.Unchecked().Rekey(t.Context())
				is.NoErr(err)
				r, failed := block(t, file), make(chan error, 1)
				go func() {
					_, err := app.ImportTenant(t.Context(), r, tenantcontent.TenantTransfer{Passphrase: passphrase})
					failed <- err
				}()
				<-r.blocked
				clock.Add(11 * 60) // of which nothing was noted
				resume := sync.OnceFunc(func() {
					close(r.resume)
					if name != "sweep" { // which has not begun
						err := <-failed
						is.Equal(errs.CodeOf(err), errs.Conflict)
						is.True(strings.Contains(err.Error(), "Import it again"))
						failed <- err
						_, err = app.Tenants.Unchecked().Lookup(t.Context(), "mover")
						is.Equal(errs.CodeOf(err), errs.NotFound)
					}
				})
				is.NoErr(takeOver(app, func(int) { resume() }))
				err = <-failed
				rows := dumped(t, app, db, "mover")
				switch {
				case name == "delete, and import again":
					is.Equal(len(rows["tc_jobs"]), rowsEach) // none of the other file
				case name == "sweep" && err == nil: // it came too late
					// more if the sweep found the tenant whole, and put some
					is.True(len(rows["tc_jobs"]) >= rowsEach+10)
				default:
					nothing(t, app, db)
				}
			})
		}
	})
}

// TestWaitingImportIsNotTakenOver: it is noted while no rows arrive.
func TestWaitingImportIsNotTakenOver(t *testing.T) {
	tenantcontent.SetKeepAliveInterval(t, time.Millisecond)
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		file := exported(t, stocked(t, dbtest.SQLite(t), time.Now))
		var clock atomic.Int64
		begin := time.Now()
		app := open(t, db, func() time.Time { return begin.Add(time.Duration(clock.Load()) * time.Second) })
		r, done := block(t, file), make(chan error)
		go func() {
			_, err := app.ImportTenant(t.Context(), r, tenantcontent.TenantTransfer{Passphrase: passphrase})
			done <- err
		}()
		<-r.blocked
		for range 3 {
			clock.Add(9 * 60)
			ctx, c := bunx.For(t.Context(), db, "mover")
			for noted := false; !noted; {
				is.NoErr(c.Row(
					ctx, `SELECT hidden_at >= $1 FROM tc_tenants WHERE tenant_id = 'mover'`,
					bunx.At(begin.Add(time.Duration(clock.Load())*time.Second)),
				).Scan(&noted))
			}
			err := app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{})
			is.Equal(errs.CodeOf(err), errs.Conflict)
			is.True(strings.Contains(
				err.Error(), clockText(begin.Add(time.Duration(clock.Load())*time.Second+10*time.Minute)),
			))
			is.NoErr(app.Sweep(t.Context()))
		}
		close(r.resume)
		is.NoErr(<-done)
		_, err := app.Tenants.Unchecked().Lookup(t.Context(), "mover")
		is.NoErr(err)
	})
}

func clockText(at time.Time) string { return at.UTC().Format(time.DateTime) + " UTC" }

// TestDeleteEndsWithTheTenant: a second delete of a tenant at the same time removes nothing of a
// new tenant with the id, whether that was added or imported.
func TestDeleteEndsWithTheTenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		file := exported(t, stocked(t, dbtest.SQLite(t), time.Now))
		for name, again := range map[string]func(app *tenantcontent.App, db *bun.DB) error{
			"added": func(app *tenantcontent.App, db *bun.DB) error { stock(t, app, db); return nil },
			"imported": func(app *tenantcontent.App, _ *bun.DB) error {
				_, err := app.ImportTenant(
					t.Context(), bytes.NewReader(file),
					tenantcontent.TenantTransfer{Passphrase: passphrase, WithoutWorkspaces: true},
				)
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				is, db, now := is.New(t), opener(t), time.Now()
				app := stocked(t, db, func() time.Time { return now })
				_, err := app.Tenants.Unchecked().Rekey(t.Context())
				is.NoErr(err)
				var added map[string][]string
				once := sync.OnceFunc(func() {
					is.NoErr(app.Tenants.Unchecked().Delete(t.Context(), "mover", tenants.DeleteOptions{Leave: true}))
					is.NoErr(again(app, db))
					added = dumped(t, app, db, "mover")
					now = now.Add(2 * time.Minute) // so that the delete notes that it goes on
				})
				is.NoErr(app.Tenants.Unchecked().Delete(
					t.Context(), "mover", tenants.DeleteOptions{Leave: true, Progress: func(int) { once() }},
				))
				is.True(len(added) > 50)
				same(t, dumped(t, app, db, "mover"), added)
				_, err = app.Tenants.Unchecked().Lookup(t.Context(), "mover")
				is.NoErr(err)
			})
		}
	})
}

// TestTenantIsDeletedInSteps: whenever that is interrupted, nothing of the tenant is served, and in
// the end nothing of it is there.
func TestTenantIsDeletedInSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db, now := is.New(t), opener(t), time.Now()
		app := stocked(t, db, func() time.Time { return now })
		login, err := app.Sessions.Login(t.Context(), principals.Credentials{
			Tenant: "mover", Domain: "local", Username: "admin", Password: password,
		})
		is.NoErr(err)
		acme := dumped(t, app, db, "acme")
		steps := 0
		for ; steps < 1000; steps++ {
			now = now.Add(2 * time.Second) // logins know the tenants for a second
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			o := tenants.DeleteOptions{Leave: true, Progress: func(int) {
				if n++; n > 2 {
					cancel()
				}
			}}
			err := app.Tenants.Unchecked().Delete(ctx, "mover", o)
			cancel()
			if err == nil {
				break
			}
			is.True(errors.Is(err, context.Canceled))
			if steps > 5 {
				continue
			}
			_, err = app.Tenants.Unchecked().Lookup(t.Context(), "mover")
			is.Equal(errs.CodeOf(err), errs.NotFound)
			_, err = app.Sessions.Authenticate(t.Context(), login.Token, netip.Addr{})
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			_, err = app.Sessions.Login(t.Context(), principals.Credentials{
				Tenant: "mover", Domain: "local", Username: "admin", Password: password,
			})
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "mover"}, password)
			is.Equal(errs.MessageOf(err), "The tenant mover is being deleted: its id is free when that has ended.")
			if steps == 5 { // a server goes on with it
				is.NoErr(app.Sweep(t.Context()))
				_, err := app.Tenants.Unchecked().Begin(t.Context(), tenants.Tenant{ID: "mover", Name: "mover"})
				is.Equal(errs.CodeOf(err), errs.Conflict) // not yet
				now = now.Add(11 * time.Minute)
				is.NoErr(app.Sweep(t.Context()))
				nothing(t, app, db)
				stock(t, app, db)
			}
		}
		is.True(steps > 10 && steps < 1000)
		nothing(t, app, db)
		same(t, dumped(t, app, db, "acme"), acme)
		_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "mover"}, password)
		is.NoErr(err)
	})
}
