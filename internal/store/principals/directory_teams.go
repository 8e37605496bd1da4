package bunstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// DomainTeams implements dirsync.Store.
func (s *Store) DomainTeams(ctx context.Context, tenant, domain string) ([]principals.Team, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := teamTable.All(
		ctx, teamTable.Rows(c).Where("t.tenant_id = ?", tenant).Where("t.domain = ?", domain).OrderExpr("t.id"),
	)
	return teams(rows), bunx.Err(err, "Team")
}

// Slugs implements principals.Store and dirsync.Store.
func (s *Store) Slugs(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	slugs, err := texts(c.Rows(ctx, `SELECT slug FROM tc_teams WHERE tenant_id = $1`, tenant))
	return slugs, bunx.Err(err, "Team")
}

// PersonTeams implements dirsync.Store.
func (s *Store) PersonTeams(
	ctx context.Context, tenant, domain, source, username string, sourceIDs, keys []string,
) ([]dirsync.PersonTeam, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT `+teamTable.Qualified+`, coalesce(m.role, 0) FROM tc_teams t
		LEFT JOIN tc_memberships m ON m.tenant_id = t.tenant_id AND m.team_id = t.id AND m.username = $2
		WHERE t.tenant_id = $1 AND t.id IN (
			SELECT o.id FROM tc_memberships x JOIN tc_teams o ON o.tenant_id = x.tenant_id AND o.id = x.team_id
				WHERE x.tenant_id = $1 AND x.username = $2 AND o.domain = $3 AND o.source = $4 AND o.source_id IS NOT NULL
			UNION ALL SELECT id FROM tc_teams WHERE tenant_id = $1 AND domain = $3 AND source = $4 AND source_id `+
		c.OneOf(5)+`
			UNION ALL SELECT id FROM tc_teams WHERE tenant_id = $1 AND slug `+c.OneOf(6)+`
			UNION ALL SELECT id FROM tc_teams WHERE tenant_id = $1 AND id `+c.OneOf(6)+`) ORDER BY t.id`,
		tenant, username, domain, source, bunx.Keys(sourceIDs), bunx.Keys(keys))
	found, err := bunx.Scan(rows, err, func(rows *sql.Rows) (dirsync.PersonTeam, error) {
		var t team
		var role int
		err := rows.Scan(append(teamTable.Dest(&t), &role)...)
		return dirsync.PersonTeam{Team: t.Team, Role: actor.Role(role)}, err
	})
	return found, bunx.Err(err, "Team")
}

// DomainMembers implements dirsync.Store.
func (s *Store) DomainMembers(ctx context.Context, tenant, domain string, each func(dirsync.MemberKey)) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.NewSelect().TableExpr("tc_teams AS t").Join("JOIN tc_memberships AS m ON m.tenant_id = "+
		"t.tenant_id AND m.team_id = t.id").
		ColumnExpr("m.team_id, m.username").Where("t.tenant_id = ?", tenant).Where("t.domain = ?", domain).Rows(ctx)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var member dirsync.MemberKey
		if err = rows.Scan(&member.TeamID, &member.Username); err == nil {
			each(member)
		}
		return none, err
	})
	return bunx.Err(err, "Member")
}

// AddMembers implements announced.TeamStore.
func (s *Store) AddMembers(ctx context.Context, tenant string, all []principals.Membership) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(all, batch) {
			if _, err := insertMembers(ctx, c, memberExists, tenant, some...); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteMembers implements announced.TeamStore.
func (s *Store) DeleteMembers(ctx context.Context, tenant string, all []announced.MemberKey) error {
	if len(all) == 0 {
		return nil
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(all, batch) {
			var teams, names []string
			for _, member := range some {
				teams, names = append(teams, member.TeamID), append(names, member.Username)
			}
			_, err := c.Exec(ctx, `DELETE FROM tc_memberships WHERE tenant_id = $1 AND `+c.Match(
				2, "team_id", "username",
			),
				tenant, bunx.Keys(teams, names))
			if err != nil {
				return bunx.Err(err, "Member")
			}
		}
		return nil
	})
}

// DomainPrincipals implements principals.DomainStore.
func (s *Store) DomainPrincipals(ctx context.Context, tenant, domain string) (usernames, teamIDs []string, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	usernames, err = texts(c.Rows(
		ctx, `SELECT username FROM tc_users WHERE tenant_id = $1 AND domain = $2 ORDER BY username`, tenant,
		domain,
	))
	if err != nil {
		return nil, nil, bunx.Err(err, "User")
	}
	teamIDs, err = texts(c.Rows(
		ctx, `SELECT id FROM tc_teams WHERE tenant_id = $1 AND domain = $2 ORDER BY id`, tenant, domain,
	))
	return usernames, teamIDs, bunx.Err(err, "Team")
}

// DomainCounts implements principals.DomainStore.
func (s *Store) DomainCounts(ctx context.Context, tenant string) (map[string]principals.DomainCounts, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx,
		`SELECT domain, count(*), 0, count(source_id) FROM tc_users WHERE tenant_id = $1 GROUP BY domain
		UNION ALL SELECT domain, 0, count(*), count(source_id) FROM tc_teams WHERE tenant_id = $1 GROUP BY domain`,
		tenant)
	counts := map[string]principals.DomainCounts{}
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var domain string
		var n principals.DomainCounts
		err = rows.Scan(&domain, &n.Users, &n.Teams, &n.Identified)
		sum := counts[domain]
		counts[domain] = principals.DomainCounts{
			Users:      sum.Users + n.Users,
			Teams:      sum.Teams + n.Teams,
			Identified: sum.Identified + n.Identified,
		}
		return none, err
	})
	return counts, bunx.Err(err, "Domain")
}
