// Package tenantsql is what the ready drivers of workspaces share: a connection that checks
// statements before a Backend runs them, and the order of migrations.
package tenantsql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// Bounds returns the bounds of a driver with some connections: a tenant has at most half of them, a
// workspace at most an eighth.
func Bounds(
	size int64, result workspaces.Limits, statement time.Duration, connections int, measure time.Duration,
) workspaces.Bounds {
	return workspaces.Bounds{
		Size: size, Result: result, Time: statement, Tokens: sqltext.MaxTokens,
		Measure: measure, Connections: connections,
		PerTenant: max(1, connections/2), PerWorkspace: max(1, connections/8),
	}
}

// Backend runs statements on one connection to a workspace, for one caller at a time.
type Backend interface {
	// Query runs a statement of the tenant, whose placeholders fit the values, and returns its
	// rows. One that changes rows and returns some changes nothing if its result is too large.
	Query(ctx context.Context, s sqltext.Statement, values []any) (json.RawMessage, error)
	// Applied returns the digests of the migrations that have been run, by their names.
	Applied(ctx context.Context) (map[string]string, error)
	// Once calls fn in a transaction, together with the record of a migration, unless it is
	// recorded already. Of two callers one waits.
	Once(ctx context.Context, m workspaces.Migration, fn func() error) error
	// Run runs a statement of a migration.
	Run(ctx context.Context, s sqltext.Statement) error
	// Line returns how many lines below the first one of a statement its fault is.
	Line(s sqltext.Statement, err error) int
}

// Options configure a Conn.
type Options struct {
	Dialect sqltext.Dialect
	Time    time.Duration // of a statement, if its context has no earlier end
}

// Conn implements workspaces.Conn over a Backend.
type Conn[B Backend] struct {
	Backend B
	o       Options
	release func()

	mu     sync.Mutex
	closed bool
}

// NewConn returns a connection. Its Close calls release, once.
func NewConn[B Backend](b B, o Options, release func()) *Conn[B] {
	return &Conn[B]{Backend: b, o: o, release: release}
}

// Close implements workspaces.Conn.
func (c *Conn[B]) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.release()
	}
	return nil
}

// Connector returns a connection to a workspace, and makes a missing workspace. A driver of which
// it is a part implements the methods of workspaces.Driver that need one connection only.
type Connector[B Backend] func(ctx context.Context, w workspaces.Workspace) (*Conn[B], error)

// Connect implements workspaces.Driver.
func (connect Connector[B]) Connect(ctx context.Context, w workspaces.Workspace) (workspaces.Conn, error) {
	c, err := connect(ctx, w)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Migrate implements workspaces.Driver.
func (connect Connector[B]) Migrate(
	ctx context.Context, w workspaces.Workspace, all []workspaces.Migration,
) (applied []string, err error) {
	c, err := connect(ctx, w)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.Migrate(ctx, all)
}

// Applied implements workspaces.Driver.
func (connect Connector[B]) Applied(ctx context.Context, w workspaces.Workspace) (map[string]string, error) {
	c, err := connect(ctx, w)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.Backend.Applied(ctx)
}

// Query implements workspaces.Conn.
func (c *Conn[B]) Query(ctx context.Context, statement string, params json.RawMessage) (json.RawMessage, error) {
	s, err := sqltext.Single(c.o.Dialect, statement)
	if err != nil {
		return nil, err
	}
	values, err := workspaces.Params(params)
	if err != nil {
		return nil, err
	}
	if err := s.Parameters(len(values)); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errs.New(errs.Invalid, "The connection to the workspace is closed.")
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Time)
	defer cancel()
	return c.Backend.Query(ctx, s, values)
}

// Migrate runs those of some migrations that have not been run: see workspaces.Driver.
func (c *Conn[B]) Migrate(ctx context.Context, all []workspaces.Migration) (applied []string, err error) {
	before, err := c.Backend.Applied(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if _, ok := before[m.Name]; ok {
			continue
		}
		ran, err := c.migrate(ctx, m)
		if err != nil {
			return applied, err
		}
		if ran {
			applied = append(applied, m.Name)
		}
	}
	return applied, nil
}

// migrate runs a migration, unless another caller has run it meanwhile.
func (c *Conn[B]) migrate(ctx context.Context, m workspaces.Migration) (ran bool, err error) {
	fault := func(line int, err error) error {
		return &workspaces.FileError{File: m.File, Err: &workspaces.Error{Line: line, Err: err}}
	}
	statements, err := sqltext.Split(c.o.Dialect, m.SQL)
	if err != nil {
		return false, fault(0, err)
	}
	err = c.Backend.Once(ctx, m, func() error {
		ran = true
		for _, s := range statements {
			if err := s.Parameters(0); err != nil {
				return fault(s.Line, errs.New(errs.Invalid, "A migration has no parameters: write the values into it."))
			}
			ctx, cancel := context.WithTimeout(ctx, c.o.Time)
			err := c.Backend.Run(ctx, s)
			cancel()
			if err != nil {
				return fault(s.Line+c.Backend.Line(s, err), err)
			}
		}
		return nil
	})
	return ran && err == nil, err
}

// Digest returns a name for some texts, in hex, that none of them is a part of.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = h.Write([]byte(p + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
