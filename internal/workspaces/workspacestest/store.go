package workspacestest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// InTx runs fn in a transaction of the store's database.
type InTx func(ctx context.Context, fn func(ctx context.Context) error) error

// TestStore checks a Store. open returns an empty one with the tenants acme and evil.
func TestStore(t *testing.T, open func(t *testing.T) (workspaces.Store, InTx)) {
	is, ctx := is.New(t), t.Context()
	s, inTx := open(t)
	at := time.Date(2026, 11, 20, 20, 31, 0, 123456000, time.UTC)
	_, _, err := s.Get(ctx, "acme", one.App)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	first := workspaces.Record{App: one.App, Engine: "sqlite", Sealed: "first", CreatedAt: at}
	added, lasting, err := s.Add(ctx, "acme", first)
	is.NoErr(err)
	is.True(lasting)
	is.Equal(added, first)
	second := first
	second.Sealed, second.CreatedAt = "second", at.Add(time.Hour)
	added, _, err = s.Add(ctx, "acme", second)
	is.NoErr(err)
	is.Equal(added, first) // is there already
	added, _, err = s.Add(ctx, "evil", second)
	is.NoErr(err)
	is.Equal(added, second) // another tenant's

	undone, committed, rolledBack := errors.New("undone"), false, false
	err = inTx(ctx, func(ctx context.Context) error {
		s.AfterCommit(ctx, func() { rolledBack = true })
		_, lasting, err := s.Add(
			ctx, "acme", workspaces.Record{App: two.App, Engine: "sqlite", Sealed: "x", CreatedAt: at},
		)
		is.NoErr(err)
		is.True(!lasting)
		_, lasting, err = s.Get(ctx, "acme", two.App)
		is.NoErr(err)
		is.True(!lasting)
		return undone
	})
	is.Equal(err, undone)
	is.NoErr(inTx(ctx, func(ctx context.Context) error {
		s.AfterCommit(ctx, func() { committed = true })
		is.True(!committed)
		return nil
	}))
	is.True(committed && !rolledBack)
	engines, err := s.Engines(ctx, "acme")
	is.NoErr(err)
	is.Equal(engines, map[string]int{"sqlite": 1})
	all, err := s.Loose(ctx, "acme")
	is.NoErr(err)
	is.Equal(all, []string{one.App})
	is.NoErr(s.Remove(ctx, "acme", []string{one.App, two.App}))
	all, err = s.Loose(ctx, "acme")
	is.NoErr(err)
	is.Equal(len(all), 0)
	got, lasting, err := s.Get(ctx, "evil", one.App)
	is.NoErr(err)
	is.True(lasting)
	is.Equal(got, second)
}
