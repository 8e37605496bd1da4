package scripts

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// workspace is the SQL database of an app in one call of a handler: one connection, made for the
// first query.
type workspace struct {
	of          *workspaces.Service
	tenant, app string
	readOnly    bool // the caller's token can only read

	mu   sync.Mutex // one query at a time
	conn workspaces.Conn
}

// query is the function query(statement, params).
func (w *workspace) query(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	list, err := jsvm.Arguments("query", args, 2)
	if err != nil {
		return nil, err
	}
	statement, params := "", json.RawMessage(nil)
	if jsonfill.IsNull(list[0]) || json.Unmarshal(list[0], &statement) != nil {
		return nil, errs.New(errs.Invalid, "query: the first argument must be a string, the statement")
	}
	if !jsonfill.IsNull(list[1]) {
		params = list[1]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if w.conn == nil {
		var err error
		if w.conn, err = w.of.Connect(ctx, w.tenant, w.app); err != nil {
			return nil, err
		}
	}
	if !w.readOnly {
		return w.conn.Query(ctx, statement, params)
	}
	rows, err := w.conn.Query(workspaces.WithReadOnly(ctx), statement, params)
	if errors.Is(err, workspaces.ErrWrites) {
		err = errs.New(errs.Forbidden, "query: this token can only read, and the statement writes.")
	}
	return rows, err
}

func (w *workspace) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close()
	}
}
