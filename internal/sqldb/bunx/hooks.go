package bunx

import (
	"context"
	"database/sql"
	"errors"
	"reflect"

	"github.com/uptrace/bun"
)

// hooked runs fixed text with the query hooks of a bun.DB, as bun does for statements that it
// builds.
type hooked struct {
	fixed
	db *bun.DB
}

// withHooks returns f with the hooks of db, if it has any. The hooks get the text without
// arguments, because bun would format them into it.
func withHooks(db *bun.DB, f fixed) fixed {
	if hasHooks(db) {
		return hooked{f, db}
	}
	return f
}

// queryHooks is the field of a bun.DB that holds its hooks.
var queryHooks, hasField = reflect.TypeFor[bun.DB]().FieldByName("queryHooks")

// hasHooks reports whether a bun.DB may have hooks. bun has no method for that. Statements without
// hooks must not be slower because of them.
func hasHooks(db *bun.DB) bool {
	if !hasField || queryHooks.Type.Kind() != reflect.Slice {
		return true
	}
	return reflect.ValueOf(db).Elem().FieldByIndex(queryHooks.Index).Len() > 0
}

// run makes bun call the hooks before and after do.
func (h hooked) run(ctx context.Context, query string, do call) (sql.Result, error) {
	return h.db.NewRaw(query).Conn(do).Exec(ctx)
}

// QueryContext implements fixed.
func (h hooked) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	_, err = h.run(ctx, query, func(ctx context.Context) (sql.Result, error) {
		var err error
		rows, err = h.fixed.QueryContext(ctx, query, args...)
		return nil, err
	})
	return rows, err
}

// QueryRowContext implements fixed.
func (h hooked) QueryRowContext(ctx context.Context, query string, args ...any) (row *sql.Row) {
	_, _ = h.run(ctx, query, func(ctx context.Context) (sql.Result, error) { // the row holds the error
		row = h.fixed.QueryRowContext(ctx, query, args...)
		return nil, row.Err()
	})
	return row
}

// ExecContext implements fixed.
func (h hooked) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return h.run(ctx, query, func(ctx context.Context) (sql.Result, error) {
		return h.fixed.ExecContext(ctx, query, args...)
	})
}

// call is a bun.IConn whose ExecContext runs a statement with its arguments.
type call func(ctx context.Context) (sql.Result, error)

// ExecContext implements bun.IConn.
func (do call) ExecContext(ctx context.Context, _ string, _ ...any) (sql.Result, error) {
	return do(ctx)
}

// QueryContext implements bun.IConn.
func (call) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.New("bunx: a statement of fixed text is run by ExecContext")
}

// QueryRowContext implements bun.IConn.
func (call) QueryRowContext(context.Context, string, ...any) *sql.Row { return nil }
