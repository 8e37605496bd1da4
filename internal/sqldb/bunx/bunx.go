// Package bunx contains the shared code of the Stores over bun: transactions in a context, the
// tenant of a statement, row locks, pages, times, and the translation of driver errors into errs.
//
// Only bunstore packages, internal packages and the root import it. It links no SQL driver.
package bunx

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Conn runs statements in the pool or in the transaction of a context.
//
// The embedded bun.IDB builds statements. Rows, Row and Exec run fixed text with arguments $1, $2
// and so on, which the driver keeps prepared. They are faster, and meant for frequent reads and
// writes.
type Conn struct {
	bun.IDB
	DB     *bun.DB
	fixed  fixed
	inTx   bool
	growth *growth
}

// fixed has the methods that *sql.DB and *sql.Tx share.
type fixed interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

type tenantKey struct{}
type workKey struct{}
type dryRunKey struct{}

// TxConn returns the Conn of a transaction that is not in a context.
func TxConn(db *bun.DB, tx bun.Tx) Conn { return (&running{db: db, idb: tx, tx: tx.Tx}).conn() }

// AllTenants is the tenant of statements over all tenants. With row-level security they see only
// the tables of the queue.
const AllTenants = "*"

// For returns the Conn for statements of one tenant, and the context to run them with. Each Store
// method calls it first. Row-level security, if it is on, reads the tenant from that context, so a
// statement with another context sees no rows.
func For(ctx context.Context, db *bun.DB, tenant string) (context.Context, Conn) {
	if tenant != Tenant(ctx) {
		ctx = context.WithValue(ctx, tenantKey{}, tenant)
	}
	if r := transaction(ctx, db); r != nil {
		r.tenant = tenant
		c := r.conn()
		if r.db != db { // with the hooks of db
			c.IDB, c.DB, c.fixed = sqlTx{DB: db, tx: r.tx}, db, withHooks(db, r.tx)
		}
		return ctx, c
	}
	return ctx, Conn{IDB: db, DB: db, fixed: withHooks(db, db.DB)}
}

// Tenant returns the tenant that For put into a context, or "". Package postgres passes Tenant to
// the driver.
func Tenant(ctx context.Context) string {
	t, _ := ctx.Value(tenantKey{}).(string)
	return t
}

// Work is the duration that the statements of a context may have. Package postgres closes a
// connection to a PostgreSQL that does not answer for longer. The values are those of pgsafe.Work.
type Work int

// The kinds of work.
const (
	Short     Work = iota // the usual work of a request
	Long                  // an import, restore, deploy or scan
	Unbounded             // a migration
)

// WithWork returns a context for statements, and for a transaction that begins with it, of the
// given kind of work.
func WithWork(ctx context.Context, w Work) context.Context {
	return context.WithValue(ctx, workKey{}, w)
}

// WorkOf returns the kind of work of a context, by default Short.
func WorkOf(ctx context.Context) Work {
	w, _ := ctx.Value(workKey{}).(Work)
	return w
}

// InTx runs fn in a transaction and commits it if fn returns nil. In a transaction of the same
// database, fn joins it. In a transaction of WithTx, a failure undoes only what fn did. If the
// answer to the COMMIT is not read, because the connection is lost or ctx ends, the error is
// errs.Unconfirmed: the change may have been made. All writes use it, because a write outside a
// transaction would block checkpoints of a SQLite database.
func InTx(ctx context.Context, db *bun.DB, fn func(ctx context.Context) error) error {
	if r := transaction(ctx, db); r != nil {
		if r.host {
			return r.part(ctx, fn)
		}
		return fn(ctx)
	}
	tenant, err := inTx(ctx, db, fn)
	return named(ctx, db, tenant, err)
}

// inTx is InTx outside of a transaction. It also returns the tenant of the last statement.
func inTx(ctx context.Context, db *bun.DB, fn func(ctx context.Context) error) (tenant string, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", Err(err, "")
	}
	d := deferredOf(db)
	if IsDryRun(ctx) {
		d = nil
	}
	defer d.writeSoon(ctx, db) // after the rollback
	r := &running{db: db, idb: tx, tx: tx.Tx}
	defer func() { tenant = r.tenant }()
	if WorkOf(ctx) == Long && db.Dialect().Name() == dialect.PG {
		r.growth = &growth{}
	}
	done := false
	defer func() { // also when fn panics
		if !done {
			_ = tx.Rollback()
		}
	}()
	if err := r.watchClient(ctx); err != nil {
		return "", ended(ctx, Err(err, ""))
	}
	if err := d.write(ctx, r); err != nil {
		return "", ended(ctx, err)
	}
	own := context.WithValue(ctx, txKey{}, r)
	if err := fn(own); err != nil {
		return "", ended(ctx, err)
	}
	if r.growth == nil { // it counts the rows of statements
		own = context.WithValue(own, closingKey{}, true)
	}
	if err := r.writeLast(own); err != nil {
		return "", ended(ctx, err)
	}
	changed, err := r.growth.changed(ctx, r.conn())
	if err != nil {
		return "", ended(ctx, Err(err, ""))
	}
	done = true
	begun := ctx.Err() == nil && !marks(db)
	if err := tx.Commit(); err != nil {
		return "", unconfirmed(Err(ended(ctx, err), ""), sent(err, begun))
	}
	r.committed()
	analyze(ctx, db, changed)
	return "", nil
}

// errDryRun ends a dry run after fn has succeeded.
var errDryRun = errors.New("bunx: the end of a dry run")

// DryRun runs fn as InTx does, and rolls back what it did, so fn does and reads the same as in
// InTx. On SQLite it runs in a private copy of the database (internal/sqldb/sqlitesafe): it does
// not wait for writers, and they do not wait for it. On PostgreSQL it holds locks on what fn
// changes until it ends. Errors: those of fn; errs.Invalid, before fn runs, if ctx has a
// transaction.
func DryRun(ctx context.Context, db *bun.DB, fn func(ctx context.Context) error) error {
	if transaction(ctx, db) != nil {
		return errs.New(errs.Invalid, "A dry run must not run in another transaction.")
	}
	err := InTx(context.WithValue(ctx, dryRunKey{}, true), db, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return err
		}
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		return nil
	}
	return err
}

// IsDryRun reports whether a context is one of DryRun. Package sqlite passes it to the driver.
func IsDryRun(ctx context.Context) bool { return ctx.Value(dryRunKey{}) != nil }

// ended returns the error of the context for a transaction that was rolled back because its context
// ended.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return Err(ctx.Err(), "")
	}
	return err
}

// Write is InTx for statements of one tenant.
func Write(ctx context.Context, db *bun.DB, tenant string, fn func(ctx context.Context, c Conn) error) error {
	return InTx(ctx, db, func(ctx context.Context) error {
		ctx, c := For(ctx, db, tenant)
		return fn(ctx, c)
	})
}

// WriteOne is Write for fn that runs one statement. On PostgreSQL it does not send BEGIN and
// COMMIT, because a single statement is a transaction. fn must not call AfterCommit. If the answer
// to the statement is not read, because the connection is lost or ctx ends, the error is
// errs.Unconfirmed.
func WriteOne(ctx context.Context, db *bun.DB, tenant string, fn func(ctx context.Context, c Conn) error) error {
	own, c := For(ctx, db, tenant)
	switch {
	case !c.Postgres() || c.inTx:
		return Write(ctx, db, tenant, fn)
	case marks(db):
		err := fn(own, c)
		return named(ctx, db, tenant, unconfirmed(err, sent(err, false)))
	case cancels(db):
		conn, err := db.Conn(ctx)
		if err != nil {
			return Err(err, "")
		}
		defer func() { _ = conn.Close() }()
		err = fn(own, Conn{IDB: conn, DB: db, fixed: withHooks(db, conn.Conn)})
		_ = conn.Close() // named may need it
		return named(ctx, db, tenant, unconfirmed(err, sent(err, true)))
	}
	err := Write(ctx, db, tenant, fn) // a statement whose client disconnected is ended with its transaction
	return unconfirmed(err, errs.CodeOf(err) != errs.Unconfirmed && sent(err, false))
}

// Rows runs fixed text that returns rows. The caller must close them.
func (c Conn) Rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.fixed.QueryContext(ctx, query, args...)
}

// Row runs fixed text that returns at most one row.
func (c Conn) Row(ctx context.Context, query string, args ...any) *sql.Row {
	return c.fixed.QueryRowContext(ctx, query, args...)
}

// Exec runs fixed text that returns no rows, and returns the number of rows it changed.
func (c Conn) Exec(ctx context.Context, query string, args ...any) (int, error) {
	res, err := c.fixed.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err == nil && c.growth != nil {
		err = c.growth.add(ctx, c, int(n))
	}
	return int(n), err
}

// One runs fixed text and scans its only row. It returns errs.NotFound about what if
// the result is empty.
func (c Conn) One(ctx context.Context, what, query string, args []any, dest ...any) error {
	return Err(c.Row(ctx, query, args...).Scan(dest...), what)
}

// Postgres reports whether the statement runs on PostgreSQL.
func (c Conn) Postgres() bool { return c.DB.Dialect().Name() == dialect.PG }

// IndexedBy returns the text to write after a table in FROM to make SQLite use the index
// table_index. SQLite does not know the sizes of tables and would choose another one. The text is
// empty for PostgreSQL.
func (c Conn) IndexedBy(table, index string) string {
	if c.Postgres() {
		return ""
	}
	return " INDEXED BY " + table + "_" + index
}

// InTx reports whether the statement runs in a transaction that the context carries.
func (c Conn) InTx() bool { return c.inTx }

// ForUpdate returns the clause that locks the rows of a SELECT until the transaction ends. It is
// empty for SQLite, which has one writer.
func (c Conn) ForUpdate() string {
	if c.inTx && c.Postgres() {
		return " FOR UPDATE"
	}
	return ""
}

// ForChange is ForUpdate for rows whose keys do not change. Other transactions can insert rows that
// refer to them, and wait only if such a row is deleted. Two ForChange wait for each other.
func (c Conn) ForChange() string {
	if c.inTx && c.Postgres() {
		return " FOR NO KEY UPDATE"
	}
	return ""
}

// Lock makes a built SELECT lock the rows it reads until the transaction ends.
func (c Conn) Lock(q *bun.SelectQuery) *bun.SelectQuery {
	if c.inTx && c.Postgres() {
		return q.For("UPDATE")
	}
	return q
}

// LockTenant locks a tenant until the transaction in ctx ends: other callers of LockTenant wait.
// Inserts that refer to the tenant do not wait, as they would with FOR UPDATE. On SQLite the
// transaction is the only writer anyway.
func LockTenant(ctx context.Context, db *bun.DB, tenant string) error {
	ctx, c := For(ctx, db, tenant)
	query := `SELECT tenant_id FROM tc_tenants WHERE tenant_id = $1`
	if c.Postgres() {
		query += ` FOR NO KEY UPDATE`
	}
	return c.One(ctx, "Tenant", query, []any{tenant}, &tenant)
}

// Found returns errs.NotFound about what if n is 0 and err is nil. It translates err as Err does.
func Found(n int, err error, what string) error {
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	return Err(err, what)
}

// Scan reads all rows of fixed text with a function that reads one row.
func Scan[T any](rows *sql.Rows, err error, row func(*sql.Rows) (T, error)) ([]T, error) {
	return ScanBatch(rows, err, row, func(T) bool { return false })
}

// Text reads a row of one text, for Scan.
func Text(rows *sql.Rows) (text string, err error) {
	err = rows.Scan(&text)
	return text, err
}

// TextSet returns the texts in rows of one text as a set.
func TextSet(rows *sql.Rows, err error) (map[string]bool, error) {
	all, err := Scan(rows, err, Text)
	set := make(map[string]bool, len(all))
	for _, text := range all {
		set[text] = true
	}
	return set, err
}

// ScanMap adds the rows of a text and a value to a map.
func ScanMap[V any](rows *sql.Rows, err error, into map[string]V) error {
	_, err = Scan(rows, err, func(rows *sql.Rows) (key string, err error) {
		var value V
		err = rows.Scan(&key, &value)
		into[key] = value
		return key, err
	})
	return err
}

// ScanBatch is Scan that ends with the first row that full reports true of.
func ScanBatch[T any](rows *sql.Rows, err error, row func(*sql.Rows) (T, error), full func(T) bool) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []T
	for rows.Next() {
		r, err := row(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		if full(r) {
			break
		}
	}
	return all, errors.Join(rows.Err(), rows.Close())
}

// Values returns the VALUES rows of a bulk insert with fixed text: ($1,$2),($3,$4),… The text
// depends only on the number of rows, so it is prepared once.
func Values(rows, columns int) string {
	var b strings.Builder
	n := 1
	for r := range rows {
		for c := range columns {
			switch {
			case c > 0:
				b.WriteByte(',')
			case r > 0:
				b.WriteString("),(")
			default:
				b.WriteByte('(')
			}
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
			n++
		}
	}
	b.WriteByte(')')
	return b.String()
}

// TakesWriters reports whether several callers can write to a database at the same time: to any
// PostgreSQL, and to a SQLite with one connection or whose driver queues writers
// (internal/sqldb/sqlitesafe).
func TakesWriters(db *bun.DB) bool {
	_, queue := db.Driver().(interface{ QueuesWriters() })
	return queue || db.Dialect().Name() != dialect.SQLite || db.Stats().MaxOpenConnections == 1
}

// Count returns the number of rows that a tenant has in a table.
func Count(ctx context.Context, db *bun.DB, tenant, table string) (n int, err error) {
	ctx, c := For(ctx, db, tenant)
	err = c.One(ctx, "Row", `SELECT count(*) FROM `+table+` WHERE tenant_id = $1`, []any{tenant}, &n)
	return n, err
}
