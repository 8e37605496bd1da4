package bunx_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// seen is a query hook that records its calls.
type seen struct {
	before, after []string
	errs          []error
}

type markKey struct{}

// BeforeQuery implements bun.QueryHook.
func (s *seen) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	s.before = append(s.before, e.Query)
	return context.WithValue(ctx, markKey{}, e.Query)
}

// AfterQuery implements bun.QueryHook.
func (s *seen) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	if ctx.Value(markKey{}) != e.Query {
		panic("the context is another one")
	}
	s.after, s.errs = append(s.after, e.Query), append(s.errs, e.Err)
}

// TestHooksSeeEveryStatement: hooks are called for fixed text, inside and outside of transactions,
// and for built statements.
func TestHooksSeeEveryStatement(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, counter := dbtest.CountedTx(t, open)
		hook := &seen{}
		db = db.WithQueryHook(hook)
		counter.Take()
		insert := func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(
				ctx, "INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ($1, $2, 'User', '?')",
				"acme", "jo?",
			)
			return bunx.Err(err, "User")
		}
		is.NoErr(bunx.WriteOne(t.Context(), db, "acme", insert))
		is.Equal(errs.CodeOf(bunx.Write(t.Context(), db, "acme", insert)), errs.Conflict)
		ctx, c := bunx.For(t.Context(), db, "acme")
		var label string
		is.NoErr(c.One(
			ctx, "User", "SELECT label FROM tc_principals WHERE tenant_id = $1 AND id = $2",
			[]any{"acme", "jo?"}, &label,
		))
		is.Equal(label, "?")
		is.Equal(
			errs.CodeOf(c.One(ctx, "User", "SELECT label FROM tc_principals WHERE id = $1", []any{"none"}, &label)),
			errs.NotFound,
		)
		is.Equal(
			sorted(t)(c.Rows(ctx, "SELECT id FROM tc_principals WHERE tenant_id = $1", "acme")),
			[]string{"*", "jo?"},
		)
		n, err := c.NewSelect().Table("tc_principals").Where("tenant_id = ?", "acme").Count(ctx)
		is.NoErr(err)
		is.Equal(int(n), 2)
		is.NoErr(bunx.DryRun(t.Context(), db, func(ctx context.Context) error {
			ctx, c := bunx.For(ctx, db, "acme")
			return c.One(
				ctx, "User", "SELECT label FROM tc_principals WHERE tenant_id = $1 AND id = $2",
				[]any{"acme", "jo?"}, &label,
			)
		}))

		is.Equal(hook.before, hook.after)
		var statements []string
		for _, s := range hook.before {
			if s != "COMMIT" && s != "ROLLBACK" {
				statements = append(statements, s)
			}
		}
		is.Equal(statements, counter.Take())
		is.True(slices.ContainsFunc(hook.errs, func(err error) bool { return err != nil })) // the duplicate id
	})
}

func TestUnknownTenantIsNamed(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		insert := func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(
				ctx,
				"INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ('nobody', 'jo', 'User', '')",
			)
			return bunx.Err(err, "User")
		}
		for _, err := range []error{
			bunx.WriteOne(t.Context(), db, "nobody", insert),
			bunx.Write(t.Context(), db, "nobody", insert),
			bunx.InTx(t.Context(), db, func(ctx context.Context) error {
				return bunx.WriteOne(ctx, db, "nobody", insert)
			}),
		} {
			is.Equal(errs.CodeOf(err), errs.Conflict)
			is.Equal(errs.MessageOf(err), `Tenant "nobody" not found.`)
		}
		own := errors.New("x")
		is.Equal(bunx.Write(t.Context(), db, "nobody", func(context.Context, bunx.Conn) error { return own }), own)
	})
}
