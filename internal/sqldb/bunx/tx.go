package bunx

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
)

type txKey = cache.TxKey

// running is a transaction in a context.
type running struct {
	db     *bun.DB
	idb    bun.IDB // the transaction, for built statements
	tx     *sql.Tx
	tenant string  // of the last statement
	growth *growth // nil: not Long, or not on PostgreSQL

	host   bool        // the host began it and ends it: see WithTx
	apart  atomic.Bool // it may see other rows than concurrent transactions
	busy   atomic.Bool // a part of the host's transaction is running
	undone atomic.Bool // the database has ended the host's transaction, so no part can be undone

	mu    sync.Mutex
	ended bool
	after []func()
	last  map[any]LastWrite // see BeforeCommit
}

func (r *running) conn() Conn {
	return Conn{IDB: r.idb, DB: r.db, fixed: withHooks(r.db, r.tx), inTx: true, growth: r.growth}
}

// Uncached implements cache.Tx.
func (r *running) Uncached() bool { return r != nil && r.apart.Load() }

// transaction returns the transaction of a context if it uses the same *sql.DB, else nil.
func transaction(ctx context.Context, db *bun.DB) *running {
	if r, _ := ctx.Value(txKey{}).(*running); r != nil && (r.db == db || r.db.DB == db.DB) {
		return r
	}
	return nil
}

// WithoutTx returns a context whose statements run outside the transaction of ctx, for work that
// continues after its end.
func WithoutTx(ctx context.Context) context.Context {
	if r, _ := ctx.Value(txKey{}).(*running); r == nil {
		return ctx
	}
	return context.WithValue(ctx, txKey{}, (*running)(nil))
}

// HasTx reports whether a context has a transaction.
func HasTx(ctx context.Context) bool {
	r, _ := ctx.Value(txKey{}).(*running)
	return r != nil
}

// LastWrite is a write at the end of a transaction.
type LastWrite interface {
	Write(ctx context.Context) error
}

// BeforeCommit adds something to the LastWrite with a key, which the transaction in ctx writes last
// before its commit. fresh makes the first LastWrite with the key. If the write fails,
// the transaction is rolled back. The write is made at once outside of a transaction and in one of
// WithTx.
func BeforeCommit(ctx context.Context, key any, fresh func() LastWrite, add func(LastWrite)) error {
	r, _ := ctx.Value(txKey{}).(*running)
	if r == nil || r.host {
		last := fresh()
		add(last)
		return last.Write(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last[key] == nil {
		if r.last == nil {
			r.last = map[any]LastWrite{}
		}
		r.last[key] = fresh()
	}
	add(r.last[key])
	return nil
}

type closingKey struct{}

// IsLast reports whether ctx is that of a statement of BeforeCommit. The result of such a statement
// is not used, so it may be sent with the COMMIT. Package postgres passes IsLast to the driver.
func IsLast(ctx context.Context) bool { return ctx.Value(closingKey{}) != nil }

// writeLast makes the writes of BeforeCommit. ctx has the transaction.
func (r *running) writeLast(ctx context.Context) error {
	for _, last := range r.last {
		if err := last.Write(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AfterCommit runs f after the commit of the transaction in ctx, or at once outside a transaction.
// It does not run f if the transaction is rolled back. In a transaction of WithTx, f runs when
// Committed is called. Functions run in the order of their registration. A function that runs
// statements must use WithoutTx.
func AfterCommit(ctx context.Context, f func()) {
	if r, _ := ctx.Value(txKey{}).(*running); r == nil || !r.later(f) {
		f()
	}
}

// later registers functions that run after the commit. It reports false if the transaction has been
// committed.
func (r *running) later(f ...func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.after = append(r.after, f...)
	return true
}

// committed runs the functions of AfterCommit.
func (r *running) committed() {
	r.mu.Lock()
	after := r.after
	r.ended, r.after = true, nil
	r.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// Notifier calls a function after the commits that change rows of a tenant. The zero Notifier does
// nothing.
type Notifier struct{ changed func(tenant string) }

// Set sets the function.
func (n *Notifier) Set(changed func(tenant string)) { n.changed = changed }

// AfterCommit calls the function after the commit of the transaction in ctx: see AfterCommit.
func (n *Notifier) AfterCommit(ctx context.Context, tenant string) {
	if r, _ := ctx.Value(txKey{}).(*running); r != nil {
		r.apart.Store(true)
	}
	if n.changed != nil {
		AfterCommit(ctx, func() { n.changed(tenant) })
	}
}

// Write is Write that calls the function after the commit.
func (n *Notifier) Write(
	ctx context.Context, db *bun.DB, tenant string, fn func(ctx context.Context, c Conn) error,
) error {
	return Write(ctx, db, tenant, func(ctx context.Context, c Conn) error {
		n.AfterCommit(ctx, tenant)
		return fn(ctx, c)
	})
}

// WithTx returns a context whose statements are part of a transaction of the host, which the host
// commits or rolls back. Each InTx in it is a savepoint: if it fails, what it did is undone, and
// the transaction can continue. Functions registered with AfterCommit run in Committed.
// Errors: errs.Invalid if the transaction does not belong to a bun.DB, or ctx already has a
// transaction of the same database.
func WithTx(ctx context.Context, tx bun.Tx) (context.Context, error) {
	if tx.Tx == nil {
		return nil, errs.New(errs.Invalid, "The transaction is empty: begin it with bun.DB.BeginTx.")
	}
	db := tx.NewRaw("").DB()
	if db == nil {
		return nil, errs.New(
			errs.Invalid,
			"The transaction has no bun.DB: begin it with bun.DB.BeginTx, or pass its *sql.Tx to WithSQLTx.",
		)
	}
	return withTx(ctx, &running{db: db, idb: tx, tx: tx.Tx, host: true})
}

// WithSQLTx is WithTx for a transaction of the *sql.DB of db.
// Errors: those of WithTx; errs.Invalid for a transaction of another *sql.DB.
func WithSQLTx(ctx context.Context, db *bun.DB, tx *sql.Tx) (context.Context, error) {
	switch {
	case db == nil:
		return nil, errs.New(errs.Invalid, "The bun.DB of the transaction is nil.")
	case tx == nil:
		return nil, errs.New(errs.Invalid, "The transaction is nil.")
	case !ofPool(tx, db.DB):
		return nil, errs.New(
			errs.Invalid,
			"The transaction is not one of this database: begin it with BeginTx of the same *sql.DB.",
		)
	}
	return withTx(ctx, &running{db: db, idb: sqlTx{DB: db, tx: tx}, tx: tx, host: true})
}

func withTx(ctx context.Context, r *running) (context.Context, error) {
	if transaction(ctx, r.db) != nil {
		return nil, errs.New(errs.Invalid, "The context has a transaction of this database already.")
	}
	r.apart.Store(true) // its snapshot may be older than that of others
	return context.WithValue(ctx, txKey{}, r), nil
}

// pool is the field of a sql.Tx that holds the *sql.DB that began it.
var pool, hasPool = reflect.TypeFor[sql.Tx]().FieldByName("db")

// ofPool reports whether a pool began a transaction. Package sql has no method for that. It reports
// true if sql.Tx has no such field.
func ofPool(tx *sql.Tx, db *sql.DB) bool {
	if !hasPool || pool.Type != reflect.TypeFor[*sql.DB]() {
		return true
	}
	return reflect.ValueOf(tx).Elem().FieldByIndex(pool.Index).Pointer() == reflect.ValueOf(db).Pointer()
}

// Committed runs, once, the functions that AfterCommit registered in a transaction of WithTx. The
// host must call it after the commit. After a rollback it must not, and the functions are dropped.
// Errors: errs.Invalid if ctx is not one of WithTx, or its transaction has not ended.
func Committed(ctx context.Context) error {
	r, _ := ctx.Value(txKey{}).(*running)
	if r == nil || !r.host {
		return errs.New(errs.Invalid, "The context is not one of WithTx or WithSQLTx.")
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := r.tx.ExecContext(ctx, "SELECT 1"); !errors.Is(err, sql.ErrTxDone) {
		return errs.New(errs.Invalid, "The transaction has not ended: call Committed after Commit.")
	}
	r.committed()
	deferredOf(r.db).writeSoon(WithoutTx(ctx), r.db)
	return nil
}

// The statements for a part of a transaction. Parts run one after the other and share the name of
// the savepoint.
const (
	beginPart   = "SAVEPOINT tenantcontent"
	endPart     = "RELEASE SAVEPOINT tenantcontent"
	undoPart    = "ROLLBACK TO SAVEPOINT tenantcontent"
	brokenWhole = "The database has ended the transaction: roll it back."
)

// part runs fn as a part of the host's transaction, which is undone if fn fails.
func (r *running) part(ctx context.Context, fn func(ctx context.Context) error) error {
	if !r.busy.CompareAndSwap(false, true) {
		return errs.New(
			errs.Invalid,
			"The transaction is in use by another call: a transaction takes one call at a time, and what InTx "+
				"runs uses the context that it is passed.",
		)
	}
	defer r.busy.Store(false)
	if r.undone.Load() {
		return errs.New(errs.Unavailable, brokenWhole)
	}
	p := &running{db: r.db, idb: r.idb, tx: r.tx}
	p.apart.Store(true)
	if WorkOf(ctx) == Long && r.db.Dialect().Name() == dialect.PG {
		p.growth = &growth{}
	}
	if err := r.control(ctx, beginPart); err != nil {
		return err
	}
	done := false
	defer func() { // also when fn panics
		if !done {
			r.undo(ctx)
		}
	}()
	own := context.WithValue(ctx, txKey{}, p)
	err := fn(own)
	if err == nil {
		err = p.writeLast(own)
	}
	var changed []string
	if err == nil {
		if changed, err = p.growth.changed(ctx, p.conn()); err != nil {
			err = Err(err, "")
		}
	}
	if err == nil {
		err = r.control(ctx, endPart)
	}
	if done = err == nil; !done {
		r.undo(ctx)
		done = true
		return named(ctx, r.db, p.tenant, ended(ctx, err))
	}
	if r.later(p.after...); len(changed) > 0 {
		r.later(func() { analyze(WithoutTx(context.WithoutCancel(ctx)), r.db, changed) })
	}
	return nil
}

// control runs a statement about savepoints.
func (r *running) control(ctx context.Context, statement string) error {
	_, err := r.conn().fixed.ExecContext(ctx, statement)
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil {
		return errs.Wrap(errs.Invalid, err, "The transaction of this context has ended.")
	}
	return ended(ctx, Err(err, ""))
}

// undo undoes a part. If that fails, no other part can begin.
func (r *running) undo(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if r.control(ctx, undoPart) != nil || r.control(ctx, endPart) != nil {
		r.undone.Store(true)
	}
}

// sqlTx is a transaction that bun has not begun, for built statements.
type sqlTx struct {
	*bun.DB
	tx *sql.Tx
}

var _ bun.IDB = sqlTx{}

// ExecContext implements bun.IConn.
func (t sqlTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.NewRaw(query, args...).Exec(ctx)
}

// QueryContext implements bun.IConn.
func (t sqlTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return withHooks(t.DB, t.tx).QueryContext(ctx, t.format(query, args))
}

// QueryRowContext implements bun.IConn.
func (t sqlTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return withHooks(t.DB, t.tx).QueryRowContext(ctx, t.format(query, args))
}

func (t sqlTx) format(query string, args []any) string {
	return t.DB.QueryGen().FormatQuery(query, args...)
}

// errNested returns the error for operations that a transaction not begun by bun does not support.
func errNested() error {
	return errs.New(errs.Invalid, "A transaction of WithSQLTx begins no other one: use InTx.")
}

// BeginTx implements bun.IDB.
func (t sqlTx) BeginTx(context.Context, *sql.TxOptions) (bun.Tx, error) {
	return bun.Tx{}, errNested()
}

// RunInTx implements bun.IDB.
func (t sqlTx) RunInTx(context.Context, *sql.TxOptions, func(context.Context, bun.Tx) error) error {
	return errNested()
}

// NewValues implements bun.IDB.
func (t sqlTx) NewValues(model any) *bun.ValuesQuery { return t.DB.NewValues(model).Conn(t.tx) }

// NewSelect implements bun.IDB.
func (t sqlTx) NewSelect() *bun.SelectQuery { return t.DB.NewSelect().Conn(t.tx) }

// NewInsert implements bun.IDB.
func (t sqlTx) NewInsert() *bun.InsertQuery { return t.DB.NewInsert().Conn(t.tx) }

// NewUpdate implements bun.IDB.
func (t sqlTx) NewUpdate() *bun.UpdateQuery { return t.DB.NewUpdate().Conn(t.tx) }

// NewDelete implements bun.IDB.
func (t sqlTx) NewDelete() *bun.DeleteQuery { return t.DB.NewDelete().Conn(t.tx) }

// NewMerge implements bun.IDB.
func (t sqlTx) NewMerge() *bun.MergeQuery { return t.DB.NewMerge().Conn(t.tx) }

// NewRaw implements bun.IDB.
func (t sqlTx) NewRaw(query string, args ...any) *bun.RawQuery {
	return t.DB.NewRaw(query, args...).Conn(t.tx)
}

// NewCreateTable implements bun.IDB.
func (t sqlTx) NewCreateTable() *bun.CreateTableQuery { return t.DB.NewCreateTable().Conn(t.tx) }

// NewDropTable implements bun.IDB.
func (t sqlTx) NewDropTable() *bun.DropTableQuery { return t.DB.NewDropTable().Conn(t.tx) }

// NewCreateIndex implements bun.IDB.
func (t sqlTx) NewCreateIndex() *bun.CreateIndexQuery { return t.DB.NewCreateIndex().Conn(t.tx) }

// NewDropIndex implements bun.IDB.
func (t sqlTx) NewDropIndex() *bun.DropIndexQuery { return t.DB.NewDropIndex().Conn(t.tx) }

// NewTruncateTable implements bun.IDB.
func (t sqlTx) NewTruncateTable() *bun.TruncateTableQuery { return t.DB.NewTruncateTable().Conn(t.tx) }

// NewAddColumn implements bun.IDB.
func (t sqlTx) NewAddColumn() *bun.AddColumnQuery { return t.DB.NewAddColumn().Conn(t.tx) }

// NewDropColumn implements bun.IDB.
func (t sqlTx) NewDropColumn() *bun.DropColumnQuery { return t.DB.NewDropColumn().Conn(t.tx) }
