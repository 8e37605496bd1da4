package bunstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Dependents implements principals.Store.
func (s *Store) Dependents(ctx context.Context, tenant string, usernames []string) (principals.Dependents, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := principals.Dependents{Memberships: map[string]int{}}
	for some := range slices.Chunk(usernames, batch) {
		var d principals.Dependents
		err := c.One(ctx, "User", `SELECT count(password_hash), count(CASE WHEN superuser THEN 1 END), count(avatar_id),
			count(CASE WHEN may_ai THEN 1 END) + count(CASE WHEN may_create_jobs THEN 1 END) + count(CASE WHEN may_view_all_teams THEN 1 END) +
			count(CASE WHEN may_view_all_users THEN 1 END) + count(CASE WHEN may_script THEN 1 END),
			count(CASE WHEN mfa THEN 1 END), count(CASE WHEN ai_consent THEN 1 END), count(ai_message)
			FROM tc_users WHERE tenant_id = $1 AND username IN `+bunx.In(2, len(some)), bunx.Args(some, tenant),
			&d.Passwords, &d.SuperuserRights, &d.Pictures, &d.Permissions, &d.MFA, &d.AIConsents, &d.AIMessages)
		if err != nil {
			return principals.Dependents{}, err
		}
		all.Passwords += d.Passwords
		all.SuperuserRights += d.SuperuserRights
		all.Pictures += d.Pictures
		all.Permissions += d.Permissions
		all.MFA += d.MFA
		all.AIConsents += d.AIConsents
		all.AIMessages += d.AIMessages
		err = count(ctx, c, `SELECT team_id, count(*) FROM tc_memberships m WHERE tenant_id = $1 AND username IN `+
			bunx.In(2, len(some))+
			` AND `+hasTeam+` GROUP BY team_id`, bunx.Args(some, tenant), all.Memberships)
		if err != nil {
			return principals.Dependents{}, err
		}
	}
	return all, nil
}

// MemberCounts implements principals.Store.
func (s *Store) MemberCounts(ctx context.Context, tenant string, teamIDs []string) (map[string]int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := map[string]int{}
	for some := range slices.Chunk(teamIDs, batch) {
		err := count(ctx, c, `SELECT team_id, count(*) FROM tc_memberships m WHERE tenant_id = $1 AND team_id IN `+
			bunx.In(2, len(some))+
			` AND `+hasTeam+` GROUP BY team_id`, bunx.Args(some, tenant), all)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// count adds to by the numbers that a query returns with teams.
func count(ctx context.Context, c bunx.Conn, query string, args []any, by map[string]int) error {
	rows, err := c.Rows(ctx, query, args...)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (team string, err error) {
		var n int
		err = rows.Scan(&team, &n)
		by[team] += n
		return team, err
	})
	return bunx.Err(err, "Membership")
}

// Superusers implements principals.Store.
func (s *Store) Superusers(ctx context.Context, tenant string, usernames []string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var all []string
	for some := range slices.Chunk(usernames, batch) {
		names, err := texts(c.Rows(ctx,
			`SELECT username FROM tc_users WHERE tenant_id = $1 AND superuser AND username IN `+bunx.In(2, len(some)),
			bunx.Args(some, tenant)...))
		if err != nil {
			return nil, bunx.Err(err, "User")
		}
		all = append(all, names...)
	}
	return all, nil
}
