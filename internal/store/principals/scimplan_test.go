package bunstore_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestProvidersReadWhatTheyAskForSize: statements for an identity provider find people and groups
// by the identifying column. They do not read all people and groups of the domain, which PostgreSQL
// assumes to be few until autovacuum has analyzed the tables.
func TestProvidersReadWhatTheyAskForSize(t *testing.T) {
	is := is.New(t)
	db := dbtest.Postgres(t)
	dbtest.WithoutStatistics(t, db, "tc_users", "tc_memberships", "tc_teams", "tc_scim_users")
	const id = "01932e00-0000-7000-8000-00000000"
	for _, insert := range []string{
		`INSERT INTO tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled, may_ai, may_create_jobs,
			may_view_all_teams, may_view_all_users, may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at)
			SELECT 'acme', 'u-' || i, 'u-' || i, 'u-' || i, 'u-' || i, 'local', false, true, false, false, false, false, false,
			'{}', '{}', 0, false, false, now(), now() FROM generate_series(1000, 9999) i`,
		`INSERT INTO tc_scim_users (tenant_id, username, id, gone, changed_at) SELECT 'acme', 'u-' || i, '` + id +
			`' || i, false, now() FROM generate_series(1000, 9999) i`,
		`INSERT INTO tc_teams (tenant_id, id, name, slug, label, search, domain, source, created_at, updated_at)
			SELECT 'acme', '` + id +
			`' || i, 'Team', 't-' || i, 't-' || i, 'team', 'local', 'scim', now(), now() ` +
			`FROM generate_series(1000, 9999) i`,
		`INSERT INTO tc_memberships (tenant_id, team_id, username, role, created_at) SELECT 'acme', '` + id +
			`' || i, 'u-' || i, 1, now() FROM generate_series(1000, 9999) i`,
	} {
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, insert)
			return err
		}))
	}
	s := bunstore.New(db)
	for name, read := range map[string]func(context.Context) (found int, err error){
		"members of a group": func(ctx context.Context) (int, error) {
			all, err := s.GroupMembers(ctx, "acme", "local", []string{id + "7777"})
			return len(all), err
		},
		"groups of a user": func(ctx context.Context) (int, error) {
			all, err := s.UserGroups(ctx, "acme", "local", []string{"u-7777"})
			return len(all), err
		},
		"a user by id": func(ctx context.Context) (int, error) {
			all, err := s.People(ctx, "acme", "local", scim.ByID, id+"7777")
			return len(all), err
		},
		"names by ids": func(ctx context.Context) (int, error) {
			all, err := s.Usernames(ctx, "acme", "local", []string{id + "7777"})
			return len(all), err
		},
		"a group by id": func(ctx context.Context) (int, error) {
			all, err := s.Groups(ctx, "acme", "local", scim.ByID, id+"7777")
			return len(all), err
		},
		"a group by name": func(ctx context.Context) (int, error) {
			all, err := s.Groups(ctx, "acme", "local", scim.ByName, "t-7777")
			return len(all), err
		},
	} {
		n := dbtest.RowsRead(t, db, "acme", func(ctx context.Context) error {
			found, err := read(ctx)
			is.Equal(found, 1)
			return err
		})
		if n > 20 {
			t.Errorf("%s: %d rows are read", name, n)
		}
	}
}
