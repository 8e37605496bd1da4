package bunx_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// states are SQLSTATEs of each class that is about the server, with the fault and code for callers.
var states = []struct {
	state string
	fault bunx.Fault
	code  errs.Code
}{
	{"08000", bunx.Away, errs.Unavailable},
	{"08003", bunx.Away, errs.Unavailable}, {"08006", bunx.Away, errs.Unavailable},
	{"08001", bunx.Away, errs.Unavailable},
	{"08004", bunx.Away, errs.Unavailable}, {"08P01", bunx.Away, errs.Unavailable},
	{"22P05", bunx.NoFault, errs.Invalid},
	{"25002", bunx.NoFault, errs.Unavailable},
	{"25003", bunx.NoFault, errs.Unavailable}, {"25004", bunx.NoFault, errs.Unavailable},
	{"25005", bunx.NoFault, errs.Unavailable},
	{"25007", bunx.NoFault, errs.Unavailable}, {"25008", bunx.NoFault, errs.Unavailable},
	{"25P04", bunx.Away, errs.Unavailable},
	{"55P02", bunx.NoFault, errs.Unavailable}, {"55P04", bunx.NoFault, errs.Unavailable},
	{"58P03", bunx.Damaged, errs.Unavailable},
	// Codes that no version defines yet are decided by their class.
	{"08999", bunx.Away, errs.Unavailable},
	{"25999", bunx.NoFault, errs.Unavailable}, {"53999", bunx.Away, errs.Unavailable},
	{"55999", bunx.NoFault, errs.Unavailable}, {"57999", bunx.Away, errs.Unavailable},
	{"58999", bunx.Damaged, errs.Unavailable}, {"XX999", bunx.Damaged, errs.Unavailable},
	{"25000", bunx.NoFault, errs.Unavailable},
	{"25001", bunx.NoFault, errs.Unavailable}, {"25006", bunx.ReadOnly, errs.Unavailable},
	{"25P01", bunx.NoFault, errs.Unavailable},
	{"25P02", bunx.NoFault, errs.Unavailable}, {"25P03", bunx.Away, errs.Unavailable},
	{"26000", bunx.NoFault, errs.Unavailable},
	{"28000", bunx.Away, errs.Unavailable},
	{"28P01", bunx.Away, errs.Unavailable}, {"3D000", bunx.Away, errs.Unavailable},
	{"3F000", bunx.Unmigrated, errs.Unavailable},
	{"42P01", bunx.Unmigrated, errs.Unavailable}, {"42703", bunx.Unmigrated, errs.Unavailable},
	{"40000", bunx.NoFault, errs.Unavailable},
	{"40001", bunx.NoFault, errs.Unavailable}, {"40P01", bunx.NoFault, errs.Unavailable},
	{"42501", bunx.ReadOnly, errs.Unavailable}, {"42P05", bunx.NoFault, errs.Unavailable},
	{"53000", bunx.Away, errs.Unavailable}, {"53100", bunx.DiskFull, errs.Full}, {"53200", bunx.Away, errs.Unavailable},
	{"53300", bunx.Away, errs.Unavailable}, {"53400", bunx.Away, errs.Unavailable},
	{"54000", bunx.NoFault, errs.TooLarge}, {"54001", bunx.NoFault, errs.TooLarge},
	{"55000", bunx.NoFault, errs.Unavailable},
	{"55006", bunx.NoFault, errs.Unavailable}, {"55P03", bunx.NoFault, errs.Unavailable},
	{"57000", bunx.Away, errs.Unavailable},
	{"57014", bunx.NoFault, errs.Unavailable}, {"57P01", bunx.Away, errs.Unavailable},
	{"57P02", bunx.Away, errs.Unavailable},
	{"57P03", bunx.Away, errs.Unavailable}, {"57P04", bunx.Away, errs.Unavailable},
	{"57P05", bunx.Away, errs.Unavailable},
	{"58000", bunx.Damaged, errs.Unavailable},
	{"58030", bunx.Damaged, errs.Unavailable}, {"58P01", bunx.Damaged, errs.Unavailable},
	{"58P02", bunx.Damaged, errs.Unavailable}, {"72000", bunx.NoFault, errs.Unavailable},
	{"XX000", bunx.Damaged, errs.Unavailable},
	{"XX001", bunx.Damaged, errs.Unavailable}, {"XX002", bunx.Damaged, errs.Unavailable},
	{"42601", bunx.NoFault, errs.Internal},
	{"22023", bunx.NoFault, errs.Internal}, {"P0001", bunx.NoFault, errs.Internal},
}

// TestFaultsOfPostgres has a server report each SQLSTATE, to pgsafe and to pgx.
func TestFaultsOfPostgres(t *testing.T) {
	dbtest.Server(t)
	for name, open := range map[string]dbtest.Opener{"pgsafe": dbtest.Postgres, "pgx": dbtest.PGX} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			for _, s := range states {
				is := is.New(t)
				raise := fmt.Sprintf(`DO $$ BEGIN RAISE 'injected' USING ERRCODE = '%s'; END $$`, s.state)
				for _, err := range []error{exec(t.Context(), db, raise),
					bunx.WriteOne(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
						_, err := c.Exec(ctx, raise)
						return bunx.Err(err, "Thing")
					})} {
					if fault, code := bunx.FaultOf(err), errs.CodeOf(err); fault != s.fault || code != s.code {
						t.Errorf("%s: %q and %s, want %q and %s: %v", s.state, fault, code, s.fault, s.code, err)
					}
				}
				is.NoErr(exec(t.Context(), db, "SELECT 1")) // the pool can still be used
			}
		})
	}
}

// TestUnknownOutcome: if the server does not know how a statement ended, the error says that the
// change may have been made.
func TestUnknownOutcome(t *testing.T) {
	dbtest.Server(t)
	for name, open := range map[string]dbtest.Opener{"pgsafe": dbtest.Postgres, "pgx": dbtest.PGX} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			for _, state := range []string{"08007", "40003"} {
				err := bunx.WriteOne(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
					_, err := c.Exec(
						ctx, fmt.Sprintf(`DO $$ BEGIN RAISE 'injected' USING ERRCODE = '%s'; END $$`, state),
					)
					return bunx.Err(err, "Thing")
				})
				is.New(t).Equal(errs.CodeOf(err), errs.Unconfirmed)
			}
		})
	}
}

// TestPolicyViolationIsInternal: writing a row of another tenant is an error of the program, not of
// the database.
func TestPolicyViolationIsInternal(t *testing.T) {
	dbtest.Server(t)
	is, db := is.New(t), dbtest.Postgres(t)
	err := exec(
		t.Context(), db,
		"INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ('evil', 'x', 'User', '')",
	)
	is.Equal(errs.CodeOf(err), errs.Internal)
	is.Equal(bunx.FaultOf(err), bunx.NoFault)
}

// liteError is an error of SQLite's driver.
type liteError int

func (liteError) Error() string { return "injected" }
func (e liteError) Code() int   { return int(e) }

func TestFaultsOfSQLite(t *testing.T) {
	for _, c := range []struct {
		lite  int
		fault bunx.Fault
		code  errs.Code
	}{
		{1, bunx.NoFault, errs.Internal}, {3, bunx.ReadOnly, errs.Unavailable}, {4, bunx.NoFault, errs.Unavailable},
		{5, bunx.NoFault, errs.Unavailable}, {6, bunx.NoFault, errs.Unavailable}, {7, bunx.Away, errs.Unavailable},
		{8, bunx.ReadOnly, errs.Unavailable}, {9, bunx.NoFault, errs.Unavailable}, {10, bunx.Damaged, errs.Unavailable},
		{11, bunx.Damaged, errs.Unavailable}, {13, bunx.DiskFull, errs.Full}, {14, bunx.Damaged, errs.Unavailable},
		{15, bunx.Away, errs.Unavailable}, {17, bunx.NoFault, errs.Unavailable}, {18, bunx.NoFault, errs.TooLarge},
		{26, bunx.Damaged, errs.Unavailable},
		{8 | 5<<8, bunx.ReadOnly, errs.Unavailable},
		{10 | 3<<8, bunx.Damaged, errs.Unavailable}, {517, bunx.NoFault, errs.Unavailable},
	} {
		is := is.New(t)
		is.Equal(bunx.FaultOf(liteError(c.lite)), c.fault)
		is.Equal(errs.CodeOf(bunx.Err(liteError(c.lite), "Thing")), c.code)
		is.Equal(bunx.FaultOf(bunx.Err(liteError(c.lite), "Thing")), c.fault) // also when it is translated
	}
}

// TestFaultsOfFiles damages a SQLite file, fills it, and makes it read-only.
func TestFaultsOfFiles(t *testing.T) {
	is := is.New(t)
	add := func(path string, before ...string) error {
		db, err := engines.Open("sqlite:" + path)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		return bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			for _, query := range before {
				if _, err := c.Exec(ctx, query); err != nil {
					return bunx.Err(err, "Thing")
				}
			}
			_, err := c.Exec(ctx, "INSERT INTO t SELECT randomblob(10000) FROM t")
			return bunx.Err(err, "Thing")
		})
	}
	path := filepath.Join(t.TempDir(), "a.db")
	is.NoErr(add(path, "CREATE TABLE t (b blob)", "INSERT INTO t VALUES (randomblob(10000)), (randomblob(100000))"))

	err := add(path, "PRAGMA max_page_count = 1")
	is.Equal(bunx.FaultOf(err), bunx.DiskFull)
	is.Equal(errs.CodeOf(err), errs.Full)
	is.Equal(bunx.FaultOf(add(path, "PRAGMA query_only = on")), bunx.ReadOnly)

	whole, err := os.ReadFile(path)
	is.NoErr(err)
	// the header is not damaged
	is.NoErr(os.WriteFile(path, append(whole[:4096:4096], make([]byte, len(whole)-4096)...), 0o600))
	err = add(path)
	is.Equal(bunx.FaultOf(err), bunx.Damaged)
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.NoErr(os.WriteFile(
		path,
		[]byte("This is a text, not a database, and it is longer than the header of one would be, as it has more "+
			"than a hundred bytes."),
		0o600,
	))
	err = add(path)
	if errs.CodeOf(err) != errs.Invalid { // package sqlite checks it when it opens the file
		t.Error(err)
	}
}

// TestUnmigrated: the error about a database without tables explains what to do.
func TestUnmigrated(t *testing.T) {
	test := func(t *testing.T, url string) {
		is := is.New(t)
		db, err := engines.Open(url)
		is.NoErr(err)
		defer func() { _ = db.Close() }()
		ctx, c := bunx.For(t.Context(), db, "acme")
		err = c.One(ctx, "Color", "SELECT key FROM tc_colors WHERE tenant_id = $1", []any{"acme"}, new(string))
		is.Equal(bunx.FaultOf(err), bunx.Unmigrated)
		is.Equal(errs.CodeOf(err), errs.Unavailable)
		is.Equal(
			errs.MessageOf(err),
			"The database lacks a table or column of this version. The operator of this server has to run: "+
				"tenantcontent migrate",
		)
	}
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, dbtest.PostgresURL(t)) })
}

func TestNoFault(t *testing.T) {
	is := is.New(t)
	for _, err := range []error{nil, sql.ErrNoRows, context.Canceled, errs.New(errs.Conflict, "x")} {
		is.Equal(bunx.FaultOf(err), bunx.NoFault)
	}
	is.Equal(bunx.FaultOf(context.DeadlineExceeded), bunx.Away)
}
