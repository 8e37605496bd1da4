// Package bunstore stores confirmations in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Store implements confirmations.Store.
type Store struct{ db *bun.DB }

var _ confirmations.Store = Store{}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) Store { return Store{db} }

// row is a row of tc_confirmations.
type row struct {
	tenant string
	confirmations.Confirmation
}

var table = bunx.NewTable("tc_confirmations", "c", []bunx.Column[row]{
	{Name: "tenant_id", Key: true, Value: func(r *row) any { return r.tenant }},
	{Name: "id", Key: true, Field: func(r *row) any { return &r.ID }},
	{Name: "assistant_id", Field: func(r *row) any { return &r.Assistant }},
	{Name: "asked", Field: func(r *row) any { return &r.Asked }},
	{Name: "decision", Field: func(r *row) any { return (*string)(&r.Decision) }},
	{Name: "expires_at", Field: func(r *row) any { return bunx.TimeOf(&r.ExpiresAt) }},
})

var insert = table.InsertOne("")

const (
	what         = "Confirmation"
	countWaiting = `SELECT count(*) FROM tc_confirmations WHERE tenant_id = $1 AND asked = $2 AND expires_at > $3`
	decide       = `UPDATE tc_confirmations SET decision = $1 WHERE tenant_id = $2 AND id = $3 ` +
		`AND assistant_id = $4 AND asked = $5 AND decision = '' AND expires_at > $6`
	selectOne = `SELECT decision FROM tc_confirmations WHERE tenant_id = $1 AND id = $2`
	take      = `DELETE FROM tc_confirmations WHERE tenant_id = $1 AND id = $2 RETURNING decision`
)

// Add implements confirmations.Store.
func (s Store) Add(ctx context.Context, tenant string, added confirmations.Confirmation, most int, at time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n := 0
		if err := c.One(ctx, what, countWaiting, []any{tenant, added.Asked, bunx.At(at)}, &n); err != nil {
			return err
		}
		if n >= most {
			return errs.New(
				errs.Busy, "%d calls wait for your confirmation. Decide on one, or wait until it is over.", n,
			)
		}
		_, err := c.Exec(ctx, insert, table.Args(&row{tenant, added})...)
		return bunx.Err(err, what)
	})
}

// Decide implements confirmations.Store.
func (s Store) Decide(ctx context.Context, tenant string, d confirmations.Confirmation, at time.Time) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, decide, string(d.Decision), tenant, d.ID, d.Assistant, d.Asked, bunx.At(at))
		return bunx.Found(n, err, what)
	})
}

// Decision implements confirmations.Store.
func (s Store) Decision(ctx context.Context, tenant, id string) (decision confirmations.Decision, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, what, selectOne, []any{tenant, id}, (*string)(&decision))
	return decision, err
}

// Take implements confirmations.Store.
func (s Store) Take(ctx context.Context, tenant, id string) (decision confirmations.Decision, err error) {
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return c.One(ctx, what, take, []any{tenant, id}, (*string)(&decision))
	})
	return decision, err
}

// Sweep implements confirmations.Store.
func (s Store) Sweep(ctx context.Context, tenant string, before time.Time) (n int, err error) {
	return bunx.DeleteSteps(ctx, s.db, tenant, "tc_confirmations", "id", `expires_at < $2`, bunx.At(before))
}
