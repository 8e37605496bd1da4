package bunstore_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/sessions"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestAuthenticationReadsUsersOnce: an authentication with a plan for a tenant of 8 users may read
// all users once, until autovacuum has analyzed what a directory has added. It reads the session
// and then the user, and does not look up a session for each user.
func TestAuthenticationReadsUsersOnce(t *testing.T) {
	is := is.New(t)
	const users = 1000
	db := dbtest.Postgres(t)
	dbtest.WithoutStatistics(t, db, "tc_users", "tc_sessions", "tc_memberships", "tc_teams")
	run := func(statement string, args ...any) {
		t.Helper()
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, statement, args...)
			return err
		}))
	}
	grow := func(from, to int) {
		run(`INSERT INTO tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled, may_ai, may_create_jobs,
			may_view_all_teams, may_view_all_users, may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at)
			SELECT 'acme', 'u-' || i, 'u-' || i, 'u-' || i, 'u-' || i, 'local', false, true, false, false, false, false, false,
			'{}', '{}', 0, false, false, now(), now() FROM generate_series($1::integer, $2) i`, from, to)
		run(`INSERT INTO tc_memberships (tenant_id, team_id, username, role, created_at) SELECT 'acme', '01932e00-0000-7000-8000-000000000001', 'u-' || i, 1, now()
			FROM generate_series($1::integer, $2) i`, from, to)
		run(`INSERT INTO tc_sessions (tenant_id, id, username, created_at, expires_at)
			SELECT 'acme', 's-' || i, 'u-' || i, now(), now() + interval '1 hour' FROM generate_series($1::integer, $2) i`,
			from, to)
	}
	run(`INSERT INTO tc_teams (tenant_id, id, name, slug, label, search, domain, created_at, updated_at)
		SELECT 'acme', '01932e00-0000-7000-8000-000000000001', 'Team', 'team', 'team', 'team', 'local', now(), now()`)
	s := bunstore.New(db)
	read := func() int {
		return dbtest.RowsRead(t, db, "acme", func(ctx context.Context) error {
			_, h, err := s.Session(ctx, "acme", "s-7")
			is.Equal(h.Username, "u-7")
			is.Equal(len(h.Teams), 1)
			return err
		})
	}
	db.SetMaxOpenConns(1) // one connection, which keeps the plan
	grow(1, 8)
	for range 10 {
		read()
	}
	grow(9, users)
	if n := read(); n > users+20 {
		t.Errorf("an authentication reads %d rows", n)
	}
}
