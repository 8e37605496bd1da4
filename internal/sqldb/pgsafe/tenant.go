package pgsafe

import (
	"context"
	"database/sql/driver"
	"strings"
)

const (
	tenantSetting = "tenantcontent.tenant"
	setTenant     = "select set_config('" + tenantSetting + "', $1, false)"
)

// tenantState is the state of the connection's setting for the tenant.
type tenantState struct {
	of func(context.Context) string // nil: not used

	current string // the last value that was set
	known   bool   // whether the server has that value
	inTx    bool   // it was set in the open transaction: a rollback resets it
}

// useTenant sets the tenant of the context of a statement. It does nothing for transaction control,
// which must work in a failed transaction and reads no rows.
func (c *conn) useTenant(ctx context.Context, query string) error {
	if c.tenant.of == nil {
		return nil
	}
	switch keyword(query) {
	case "rollback", "abort", "commit", "end", "savepoint", "release":
		if !several(query) {
			return nil
		}
	}
	return c.switchTenant(ctx)
}

func (c *conn) switchTenant(ctx context.Context) error {
	if c.tenant.of == nil {
		return nil
	}
	want := c.tenant.of(ctx)
	if c.tenant.known && c.tenant.current == want {
		return nil
	}
	args := []driver.NamedValue{{Ordinal: 1, Value: want}}
	if err := check(setTenant, args); err != nil {
		return err
	}
	c.tenant.known = false
	err := c.prepared(ctx, setTenant, args, func(s *statement) error {
		_, err := s.ExecContext(ctx, args)
		return err
	})
	if err != nil {
		return err
	}
	c.tenant.known, c.tenant.current, c.tenant.inTx = true, want, c.inTx
	return nil
}

// after marks the value as unknown if query may have changed it by rolling back to a savepoint or
// changing settings.
func (t *tenantState) after(query string) {
	if t.of == nil {
		return
	}
	switch keyword(query) {
	case "rollback", "abort", "commit", "end", "begin", "start", "prepare", "set", "reset", "discard", "do", "call":
		t.known = false
	default:
		t.known = t.known && !several(query)
	}
}

// several reports whether query may contain more than one statement.
func several(query string) bool { return strings.IndexByte(query, ';') >= 0 }
