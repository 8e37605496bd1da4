package bunstore

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// texts reads rows of one text.
func texts(rows *sql.Rows, err error) ([]string, error) {
	return bunx.Scan(rows, err, bunx.Text)
}

// Known implements principals.TransferStore.
func (s *Store) Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	known, err := bunx.TextSet(c.Find(ctx, bunx.Lookup{
		Columns: `id`,
		Table:   `tc_principals`,
		Where:   `tenant_id = $1`,
		Key:     `id`,
	}, ids, tenant))
	return known, bunx.Err(err, "Principal")
}

// UserIDs implements principals.TransferStore.
func (s *Store) UserIDs(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	ids, err := texts(c.Rows(ctx, `SELECT username FROM tc_users WHERE tenant_id = $1 ORDER BY username`, tenant))
	return ids, bunx.Err(err, "User")
}

// TeamIDs implements principals.TransferStore.
func (s *Store) TeamIDs(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	ids, err := texts(c.Rows(ctx, `SELECT id FROM tc_teams WHERE tenant_id = $1 ORDER BY id`, tenant))
	return ids, bunx.Err(err, "Team")
}

// SomeUsers implements principals.TransferStore.
func (s *Store) SomeUsers(ctx context.Context, tenant string, usernames []string) ([]principals.User, error) {
	if len(usernames) == 0 {
		return nil, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, _, err := userTable.Bounded(ctx, userTable.Rows(c).Where("u.tenant_id = ?", tenant).
		Where("u.username IN (?)", bun.List(usernames)), paging.BatchMeter(ctx))
	return users(rows), bunx.Err(err, "User")
}

// SomeTeams implements principals.TransferStore.
func (s *Store) SomeTeams(ctx context.Context, tenant string, ids []string) ([]principals.Team, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := teamTable.All(
		ctx, teamTable.Rows(c).Where("t.tenant_id = ?", tenant).Where("t.id IN (?)", bun.List(ids)),
	)
	return teams(rows), bunx.Err(err, "Team")
}

// TeamsWithSlugs implements principals.TransferStore.
func (s *Store) TeamsWithSlugs(ctx context.Context, tenant string, slugs []string) (map[string]string, error) {
	ids := map[string]string{}
	if len(slugs) == 0 {
		return ids, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Find(ctx, bunx.Lookup{
		Columns: `slug, id`,
		Table:   `tc_teams`,
		Where:   `tenant_id = $1`,
		Key:     `slug`,
	}, slugs, tenant)
	return ids, bunx.Err(bunx.ScanMap(rows, err, ids), "Team")
}

// MembersOf implements principals.TransferStore.
func (s *Store) MembersOf(ctx context.Context, tenant string, teamIDs []string) ([]principals.Membership, error) {
	if len(teamIDs) == 0 {
		return nil, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectMembers+c.OneOf(2)+` ORDER BY team_id, username`, tenant, bunx.Keys(teamIDs))
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (principals.Membership, error) {
		m, err := memberTable.Scan(rows)
		return m.Membership, err
	})
	return all, bunx.Err(err, "Member")
}

var selectMembers = memberTable.Select(`AS m WHERE tenant_id = $1 AND ` + hasTeam + ` AND team_id `)

// PutUsers implements principals.TransferStore.
func (s *Store) PutUsers(ctx context.Context, tenant string, all []principals.User) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([]user, len(all))
	for i, u := range all {
		u.Tenant, u.Superuser = tenant, false
		rows[i] = user{User: u}
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := userTable.Insert(ctx, c, userTable.OnConflict+` WHERE NOT tc_users.superuser`, rows...)
		return bunx.Err(err, "A user with this name")
	})
}

// PutTeams implements principals.TransferStore. A team can take the slug of another team that is
// written with it. So the teams in yield first get their ids as slugs, which no other team can
// have.
func (s *Store) PutTeams(ctx context.Context, tenant string, all []principals.Team, yield []string) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([]team, len(all))
	for i, t := range all {
		t.Tenant = tenant
		rows[i] = team{Team: t}
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if len(yield) > 0 {
			_, err := c.Exec(
				ctx, `UPDATE tc_teams SET slug = id WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant,
				bunx.Keys(yield),
			)
			if err != nil {
				return bunx.Err(err, "Team")
			}
		}
		ids := make([]string, len(rows))
		for i, t := range rows {
			ids[i] = t.ID
		}
		// A new team with the id of an earlier one is another team: see RemoveMembersOf.
		_, err := c.Exec(
			ctx,
			`DELETE FROM tc_memberships AS m WHERE m.tenant_id = $1 AND m.team_id `+c.OneOf(2)+` AND NOT `+hasTeam,
			tenant, bunx.Keys(ids),
		)
		if err != nil {
			return bunx.Err(err, "Member")
		}
		_, err = teamTable.Insert(ctx, c, teamTable.OnConflict, rows...)
		return bunx.Err(err, slugTaken)
	})
}

// PutMembers implements principals.TransferStore.
func (s *Store) PutMembers(ctx context.Context, tenant string, all []principals.Membership) error {
	if len(all) == 0 {
		return nil
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := insertMembers(ctx, c, memberTable.OnConflict, tenant, all...)
		return err
	})
}

// DeleteUsers implements principals.TransferStore.
func (s *Store) DeleteUsers(
	ctx context.Context, tenant string, usernames []string,
) (accounts, pictures []string, err error) {
	if len(usernames) == 0 {
		return nil, nil, nil
	}
	err = s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := lockUsers(ctx, c, tenant, usernames); err != nil {
			return err
		}
		rows, err := c.Rows(ctx, `DELETE FROM tc_users WHERE tenant_id = $1 AND username `+c.OneOf(2)+
			` RETURNING username, coalesce(avatar_id, '')`, tenant, bunx.Keys(usernames))
		names, err := bunx.Scan(rows, err, func(rows *sql.Rows) (name string, err error) {
			var picture string
			err = rows.Scan(&name, &picture)
			if picture != "" {
				pictures = append(pictures, picture)
			}
			return name, err
		})
		if err != nil {
			return bunx.Err(err, "User")
		}
		accounts, err = c.CloseAccounts(ctx, tenant, names)
		return err
	})
	return accounts, pictures, err
}

// lockUsers locks the rows of users in the same order as bunx.HoldUsers, so that they do not
// deadlock.
func lockUsers(ctx context.Context, c bunx.Conn, tenant string, usernames []string) error {
	if !c.Postgres() {
		return nil
	}
	_, err := bunx.TextSet(c.Rows(
		ctx,
		`SELECT username FROM tc_users WHERE tenant_id = $1 AND username `+c.OneOf(2)+` ORDER BY username FOR UPDATE`,
		tenant, bunx.Keys(usernames),
	))
	return bunx.Err(err, "User")
}

// DeleteTeams implements principals.TransferStore.
func (s *Store) DeleteTeams(ctx context.Context, tenant string, ids []string) (n int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	err = s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		n, err = c.Exec(ctx, `DELETE FROM tc_teams WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant, bunx.Keys(ids))
		return bunx.Err(err, "Team")
	})
	return n, err
}
