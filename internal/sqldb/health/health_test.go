package health_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/health"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
)

// monitor returns a Monitor with its log. The test sets its clock.
func monitor(db *bun.DB) (m *health.Monitor, now *time.Time, log *logtest.Buffer) {
	at, text := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC), &logtest.Buffer{}
	return health.New(db, slog.New(slog.NewTextHandler(text, nil)), func() time.Time { return at }), &at, text
}

// TestWritable: a database that accepts writes has no error, even while another transaction writes.
func TestWritable(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		m, now, log := monitor(db)
		is.NoErr(m.Writable(t.Context()))
		is.NoErr(bunx.InTx(t.Context(), db, func(context.Context) error {
			*now = now.Add(2 * time.Second)
			is.NoErr(m.Writable(context.Background()))
			return nil
		}))
		is.Equal(log.String(), "")
	})
}

// TestReadOnlyPostgres: one line is logged, however often the database is checked.
func TestReadOnlyPostgres(t *testing.T) {
	dbtest.Server(t)
	is, url := is.New(t), dbtest.PostgresURL(t)
	before, err := engines.Open(url)
	is.NoErr(err)
	_, err = before.ExecContext(
		t.Context(),
		"CREATE TABLE tc_leases (name text PRIMARY KEY, holder text NOT NULL, ends_at timestamptz NOT NULL, "+
			"done_at timestamptz)",
	)
	is.NoErr(err)
	is.NoErr(before.Close())
	db, err := engines.Open(url + "&default_transaction_read_only=on")
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	m, now, log := monitor(db)
	for range 3 {
		err = m.Writable(t.Context())
		is.Equal(errs.CodeOf(err), errs.Unavailable)
		is.Equal(bunx.FaultOf(err), bunx.ReadOnly)
		*now = now.Add(2 * time.Second)
	}
	is.Equal(strings.Count(log.String(), "level=ERROR"), 1)
	is.True(strings.Contains(log.String(), "since=2026-11-26T09:00:00"))
	is.True(m.Saw(bunx.Err(err, ""))) // requests that fail because of it are not logged
}

// TestFullDisk: a write that fails for lack of space is noticed even if a small one succeeds. The
// end of the fault is noticed, too.
func TestFullDisk(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	m, now, log := monitor(db)
	is.NoErr(m.Writable(t.Context()))
	var pages int
	is.NoErr(db.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages))
	limit := func(n int) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", n))
		is.NoErr(err)
	}
	limit(pages)
	err := bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx, "INSERT INTO tc_leases (name, holder, ends_at) VALUES ('large', $1, '')",
			strings.Repeat("x", 1<<20),
		)
		return bunx.Err(err, "Lease")
	})
	is.Equal(errs.CodeOf(err), errs.Full)
	is.True(!m.Saw(err)) // the first one
	*now = now.Add(2 * time.Second)
	m.Check(t.Context())
	err = m.Writable(t.Context())
	is.Equal(errs.CodeOf(err), errs.Full)
	is.True(m.Saw(err))
	limit(pages * 10)
	*now = now.Add(time.Minute)
	m.Check(t.Context())
	is.NoErr(m.Writable(t.Context()))
	is.Equal(strings.Count(log.String(), "level=ERROR"), 1)
	is.Equal(strings.Count(log.String(), "level=INFO"), 1)
	is.True(strings.Contains(log.String(), "for=1m0s"))
}

// TestGoneFile: writes to a file that was removed fail, and reads succeed.
func TestGoneFile(t *testing.T) {
	is, folder := is.New(t), filepath.Join(t.TempDir(), "data")
	db, err := engines.Open("sqlite:" + filepath.Join(folder, "a.db"))
	is.NoErr(err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(
		t.Context(),
		"CREATE TABLE tc_leases (name text PRIMARY KEY, holder text NOT NULL, ends_at text NOT NULL, done_at text)",
	)
	is.NoErr(err)
	m, now, log := monitor(db)
	is.NoErr(m.Writable(t.Context()))
	is.NoErr(os.Rename(folder, folder+".moved"))
	*now = now.Add(2 * time.Second)
	err = m.Writable(t.Context())
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.True(strings.Contains(log.String(), "a.db was removed or replaced"))
	_, err = db.ExecContext(t.Context(), "DELETE FROM tc_leases")
	is.Equal(bunx.FaultOf(err), bunx.ReadOnly)
	is.NoErr(os.Rename(folder+".moved", folder))
	*now = now.Add(2 * time.Second)
	is.NoErr(m.Writable(t.Context()))
}

// malformed is SQLite's error for a damaged page.
type malformed struct{}

func (malformed) Error() string { return "database disk image is malformed" }
func (malformed) Code() int     { return 11 }

// TestDamage: a statement that finds a damaged page is logged in one line, and the database is not
// ready for a while. Errors of other databases, such as workspaces, are ignored.
func TestDamage(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	m, now, log := monitor(db)
	is.True(!m.Saw(errs.Wrap(errs.Unavailable, malformed{}, "The workspace cannot be opened: try again later.")))
	is.NoErr(m.Writable(t.Context()))
	*now = now.Add(2 * time.Second)
	for range 3 {
		is.True(m.Saw(bunx.Err(malformed{}, "")))
	}
	is.Equal(strings.Count(log.String(), "level=ERROR"), 1)
	is.True(strings.Contains(m.Writable(t.Context()).Error(), "damaged"))
	*now = now.Add(11 * time.Minute)
	is.NoErr(m.Writable(t.Context()))
}
