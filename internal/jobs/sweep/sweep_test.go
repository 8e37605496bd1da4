package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	expired = []entity.Due{{Table: "tc_confirmations", Column: "expires_at"}}
)

// confirm adds n confirmations of a tenant that expire at a time.
func confirm(t *testing.T, db *bun.DB, tenant, prefix string, n int, at time.Time) {
	t.Helper()
	is.New(t).NoErr(bunx.Write(t.Context(), db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for i := range n {
			_, err := c.Exec(ctx,
				`INSERT INTO tc_confirmations (tenant_id, id, assistant_id, asked, decision, expires_at) `+
					`VALUES ($1, $2, '', '', '', $3)`,
				tenant, fmt.Sprint(prefix, i), bunx.At(at))
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// sweeper returns a Sweeper with one sweep of the confirmations, and a record of the calls.
func sweeper(db *bun.DB, now *time.Time, due []entity.Due, fail ...string) (*sweep.Sweeper, *[]string) {
	var did []string
	one := entity.Sweep{Due: due, Tenant: func(ctx context.Context, tenant string) (int, error) {
		did = append(did, tenant)
		if slices.Contains(fail, tenant) {
			return 0, errors.New("no")
		}
		return bunx.DeleteSteps(ctx, db, tenant, "tc_confirmations", "id", "expires_at <= $2", bunx.At(*now))
	}}
	all := func(context.Context) ([]string, error) { return []string{"acme", "evil"}, nil }
	return sweep.New(db, func() []entity.Sweep {
		return []entity.Sweep{one}
	}, all, none, func() time.Time { return *now }), &did
}

func none(context.Context) ([]string, error) { return nil, nil }

// TestLeavesHiddenTenants: due rows of a tenant that is being imported are kept, because rows that
// protect them may be missing. Other tenants are swept.
func TestLeavesHiddenTenants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		confirm(t, db, "acme", "old", 1, monday)
		confirm(t, db, "evil", "old", 1, monday)
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(
				ctx, `UPDATE tc_tenants SET hidden = 'importing', hidden_at = $1 WHERE tenant_id = 'acme'`,
				bunx.At(monday),
			)
			return err
		}))
		var did []string
		called := func(of string) func(context.Context, string) (int, error) {
			return func(_ context.Context, tenant string) (int, error) {
				did = append(did, of+tenant)
				return 0, nil
			}
		}
		all := []entity.Sweep{
			{Due: expired, Tenant: called("rows of ")},
			{
				Due: []entity.Due{{
					Table:  "tc_tenants",
					Column: "hidden_at",
					Where:  "hidden IS NOT NULL",
					Hidden: true,
				}},
				Tenant: called("tenant "),
			},
		}
		hidden := func(context.Context) ([]string, error) { return []string{"acme"}, nil }
		is.NoErr(sweep.New(db, func() []entity.Sweep {
			return all
		}, none, hidden, func() time.Time { return monday.Add(time.Hour) }).Run(t.Context()))
		is.Equal(did, []string{"rows of evil", "tenant acme"})
	})
}

// TestSweepsTenantsWithRows: if each row is due, the sweep is called for each tenant that has some.
func TestSweepsTenantsWithRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), monday
		s, did := sweeper(db, &now, []entity.Due{{Table: "tc_confirmations", Column: "tenant_id"}})
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, nil)
		confirm(t, db, "evil", "a", 3, monday.Add(time.Hour))
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, []string{"evil"})
		confirm(t, db, "acme", "a", 3, monday.Add(time.Hour))
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, []string{"evil", "acme", "evil"})
	})
}

// TestSweepsWhatIsDue: a sweep is only called for tenants with due rows. A tenant whose sweep fails
// does not prevent the others.
func TestSweepsWhatIsDue(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), monday
		s, did := sweeper(db, &now, expired)
		confirm(t, db, "evil", "later", 1, monday.Add(time.Hour))
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, nil)
		confirm(t, db, "acme", "old", 1501, monday.Add(-time.Hour)) // pages, and steps
		now = monday.Add(time.Hour)
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, []string{"acme", "evil"})
		for _, tenant := range *did {
			n, err := bunx.Count(t.Context(), db, tenant, "tc_confirmations")
			is.NoErr(err)
			is.Equal(n, 0)
		}

		confirm(t, db, "acme", "old", 1501, monday)
		confirm(t, db, "evil", "old", 1, monday.Add(time.Minute))
		s, did = sweeper(db, &now, expired, "acme")
		err := s.Run(t.Context())
		is.True(strings.Contains(err.Error(), "tenant acme: no"))
		is.Equal(*did, []string{"acme", "evil"})

		s, did = sweeper(db, &now, nil) // a sweep without Due
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, []string{"acme", "evil"})
	})
}

// TestSweepsWhatHasHappenedSince: a sweep with Since looks for rows since the last completed sweep.
func TestSweepsWhatHasHappenedSince(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), monday
		since := []entity.Due{{Table: "tc_confirmations", Column: "expires_at", Since: true}}
		confirm(t, db, "acme", "a", 1, monday.Add(-24*time.Hour))
		s, did := sweeper(db, &now, since, "acme")
		is.True(s.Run(t.Context()) != nil) // the first sweep looks at all rows
		is.Equal(*did, []string{"acme"})
		s, did = sweeper(db, &now, since, "acme")
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, nil)
		confirm(t, db, "evil", "b", 1, monday.Add(-time.Minute)) // from a clock that is slow
		is.NoErr(s.Run(t.Context()))
		is.Equal(*did, []string{"evil"})
	})
}

// TestTenantsTakeTurns: a tenant with many due rows is swept some steps at a time, and other
// tenants and sweeps are served in between.
func TestTenantsTakeTurns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), monday.Add(time.Hour)
		confirm(t, db, "acme", "old", 6001, monday)
		confirm(t, db, "evil", "old", 1, monday.Add(time.Minute)) // found last
		var did []string
		due := func(name string, each func(ctx context.Context, tenant string) (int, error)) entity.Sweep {
			return entity.Sweep{Due: expired, Tenant: func(ctx context.Context, tenant string) (int, error) {
				left, err := bunx.Count(ctx, db, "acme", "tc_confirmations")
				is.NoErr(err)
				did = append(did, fmt.Sprint(name, " ", tenant, " ", left))
				return each(ctx, tenant)
			}}
		}
		all := []entity.Sweep{
			due("rows", func(ctx context.Context, tenant string) (int, error) {
				return bunx.DeleteSteps(ctx, db, tenant, "tc_confirmations", "id", "expires_at <= $2", bunx.At(now))
			}),
			due("none", func(context.Context, string) (int, error) { return 0, nil }),
		}
		s := sweep.New(db, func() []entity.Sweep { return all }, nil, none, func() time.Time { return now })
		is.NoErr(s.Run(t.Context()))
		is.Equal(did, []string{
			"rows acme 6001", "rows evil 4001", "none acme 4001", "rows acme 4001", "rows acme 2001",
			"rows acme 1",
		})
		n, err := bunx.Count(t.Context(), db, "acme", "tc_confirmations")
		is.NoErr(err)
		is.Equal(n, 0)
	})
}

// TestOneProcessAtATime: other processes do nothing while one sweeps, and take over from one that
// has ended.
func TestOneProcessAtATime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), monday
		other, did := sweeper(db, &now, expired)
		one := sweep.New(db, func() []entity.Sweep {
			ran, err := other.RunAlone(t.Context(), "other")
			is.NoErr(err)
			is.True(!ran) // another process sweeps
			return nil
		}, nil, none, func() time.Time { return now })
		ran, err := one.RunAlone(t.Context(), "one")
		is.NoErr(err)
		is.True(ran)
		ran, err = other.RunAlone(t.Context(), "other")
		is.NoErr(err)
		is.True(!ran) // another process has just swept
		now = now.Add(time.Minute)
		confirm(t, db, "acme", "a", 1, monday)
		ran, err = other.RunAlone(t.Context(), "other")
		is.NoErr(err)
		is.True(ran)
		is.Equal(*did, []string{"acme"})

		now = now.Add(time.Minute)
		is.NoErr(bunx.Write(t.Context(), db, "", func(ctx context.Context, c bunx.Conn) error {
			// the holder of the lease was killed
			_, err := c.Exec(ctx, `UPDATE tc_leases SET holder = 'gone', ends_at = $1`, bunx.At(now.Add(time.Second)))
			return err
		}))
		ran, err = one.RunAlone(t.Context(), "one")
		is.NoErr(err)
		is.True(!ran)
		now = now.Add(2 * time.Second)
		ran, err = other.RunAlone(t.Context(), "other")
		is.NoErr(err)
		is.True(ran)
	})
}
