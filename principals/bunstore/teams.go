package bunstore

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// team is the table's shape.
type team struct {
	bun.BaseModel `bun:"table:tc_teams,alias:t"`

	TenantID      string `bun:",pk"`
	ID            string `bun:"id,pk"`
	Name          string
	Slug          string
	Label         string
	Search        string
	Description   *string
	Domain        string
	Color         *string
	Icon          *string
	MaterialIcon  *string
	Source        *string
	SourceID      *string `bun:"source_id"`
	DirectoryGone bool
	CreatedAt     bunx.Time
	UpdatedAt     bunx.Time
}

func teamRow(tenant string, t principals.Team) team {
	return team{
		TenantID: tenant, ID: t.ID, Name: t.Name, Slug: t.Slug, Label: fold.Text(t.Name),
		Search:      fold.Search(t.Name, t.Slug, or(t.Description)),
		Description: t.Description, Domain: t.Domain, Color: t.Color, Icon: t.Icon, MaterialIcon: t.MaterialIcon,
		Source: t.Source, SourceID: t.SourceID, DirectoryGone: t.DirectoryGone, CreatedAt: bunx.At(t.CreatedAt), UpdatedAt: bunx.At(t.UpdatedAt),
	}
}

func (r team) team() principals.Team {
	return principals.Team{
		Tenant: r.TenantID, ID: r.ID, Name: r.Name, Slug: r.Slug, Description: r.Description, Domain: r.Domain,
		Color: r.Color, Icon: r.Icon, MaterialIcon: r.MaterialIcon, Source: r.Source, SourceID: r.SourceID, DirectoryGone: r.DirectoryGone,
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

var teamList = bunx.List[team]{
	Key: "id", Order: "name", Search: "search",
	Sorts: []bunx.Sort[team]{
		{Field: "name", Column: "label", Value: func(r team) string { return r.Label }},
		{Field: "createdAt", Column: "created_at", Value: func(r team) string { return r.CreatedAt.String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r team) string { return r.UpdatedAt.String() }},
	},
}

// Team implements principals.Store.
func (s *Store) Team(ctx context.Context, tenant, key string) (principals.Team, error) {
	column := "id"
	if !uuids.Valid(key) {
		column = "slug"
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := oneTeam(ctx, c.NewSelect(), tenant, column, key)
	return r.team(), err
}

func oneTeam(ctx context.Context, q *bun.SelectQuery, tenant, column, key string) (team, error) {
	var r team
	err := q.Model(&r).Where("t.tenant_id = ?", tenant).Where("t.? = ?", bun.Ident(column), key).Scan(ctx)
	return r, bunx.Err(err, "Team")
}

// Teams implements principals.Store.
func (s *Store) Teams(ctx context.Context, tenant string, q paging.Query) (paging.Page[principals.Team], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*team)(nil)).Where("t.tenant_id = ?", tenant)
	page, err := bunx.Page(ctx, rows, teamList, func(r team) string { return r.ID }, q)
	return paging.Map(page, team.team), err
}

const slugTaken = "A team with this slug"

// InsertTeam implements principals.Store.
func (s *Store) InsertTeam(ctx context.Context, tenant string, t principals.Team) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		r := teamRow(tenant, t)
		_, err := c.NewInsert().Model(&r).Exec(ctx)
		return bunx.Err(err, slugTaken)
	})
}

// UpdateTeam implements principals.Store.
func (s *Store) UpdateTeam(ctx context.Context, tenant, id string, edit func(*principals.Team) error) (principals.Team, error) {
	var t principals.Team
	err := s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		r, err := oneTeam(ctx, c.Lock(c.NewSelect()), tenant, "id", id)
		if err != nil {
			return err
		}
		t = r.team()
		was := t
		if err := edit(&t); err != nil {
			return err
		}
		if err := guard.Check(ctx, "team", was); err != nil {
			return err
		}
		t.Tenant, t.ID = tenant, id
		r = teamRow(tenant, t)
		_, err = c.NewUpdate().Model(&r).WherePK().Exec(ctx)
		return bunx.Err(err, slugTaken)
	})
	if err != nil {
		return principals.Team{}, err
	}
	return t, nil
}

// DeleteTeam implements principals.Store.
func (s *Store) DeleteTeam(ctx context.Context, tenant, id string) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "team") != nil {
			r, err := oneTeam(ctx, c.Lock(c.NewSelect()), tenant, "id", id)
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "team", r.team()); err != nil {
				return err
			}
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_teams WHERE tenant_id = $1 AND id = $2`, tenant, id)
		return bunx.Found(n, err, "Team")
	})
}

// member is a row of tc_memberships with what a list of members shows beside it.
type member struct {
	bun.BaseModel `bun:"table:tc_memberships,alias:m"`

	TeamID      string
	Username    string
	Role        actor.Role
	CreatedAt   bunx.Time
	TeamName    string  `bun:",scanonly"`
	DisplayName *string `bun:",scanonly"`
	Key         string  `bun:",scanonly"` // folded username in a team, team id of a user
	Label       string  `bun:",scanonly"` // of the user in a team, of the team of a user
	Total       int     `bun:",scanonly"`
}

func (r member) membership() principals.Membership {
	return principals.Membership{
		TeamID: r.TeamID, TeamName: r.TeamName, Username: r.Username, DisplayName: r.DisplayName, Role: r.Role, CreatedAt: r.CreatedAt.Time,
	}
}

var (
	memberKey     = func(r member) string { return r.Key }
	memberLabel   = func(r member) string { return r.Label }
	memberCreated = bunx.Sort[member]{Field: "createdAt", Column: "m.created_at", Value: func(r member) string { return r.CreatedAt.String() }}

	memberList = bunx.List[member]{
		Key: "u.folded", Order: "displayName",
		Sorts: []bunx.Sort[member]{
			{Field: "displayName", Column: "u.label", Value: memberLabel}, {Field: "username", Column: "u.folded", Value: memberKey}, memberCreated,
		},
	}
	membershipList = bunx.List[member]{
		Key: "t.id", Order: "teamName",
		Sorts: []bunx.Sort[member]{{Field: "teamName", Column: "t.label", Value: memberLabel}, memberCreated},
	}
)

// Members implements principals.Store.
func (s *Store) Members(ctx context.Context, tenant, teamID string, q paging.Query) (paging.Page[principals.Membership], error) {
	return s.memberPage(ctx, tenant, "team_id", teamID, "u.folded", "u.label", memberList, q)
}

// Memberships implements principals.Store.
func (s *Store) Memberships(ctx context.Context, tenant, username string, q paging.Query) (paging.Page[principals.Membership], error) {
	return s.memberPage(ctx, tenant, "username", username, "t.id", "t.label", membershipList, q)
}

// memberPage reads a page of the memberships whose column has a value. They are counted without the joins.
func (s *Store) memberPage(ctx context.Context, tenant, column, value, key, label string, l bunx.List[member], q paging.Query) (paging.Page[principals.Membership], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	kept := c.NewSelect().Table("tc_memberships").ColumnExpr("count(*)").Where("tenant_id = ?", tenant).Where("? = ?", bun.Ident(column), value)
	rows := c.NewSelect().Model((*member)(nil)).
		ColumnExpr("t.name AS team_name, u.display_name, ? AS key, ? AS label", bun.Ident(key), bun.Ident(label)).
		Join("JOIN tc_teams AS t ON t.tenant_id = m.tenant_id AND t.id = m.team_id").
		Join("JOIN tc_users AS u ON u.tenant_id = m.tenant_id AND u.username = m.username").
		Where("m.tenant_id = ?", tenant).Where("m.? = ?", bun.Ident(column), value)
	page, err := bunx.Counted(ctx, rows, kept, "Member", l, memberKey, func(r member) int { return r.Total }, q)
	return paging.Map(page, member.membership), err
}

// PutMember implements principals.Store.
func (s *Store) PutMember(ctx context.Context, tenant string, m principals.Membership) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		exists, err := checkMember(ctx, c, tenant, m.TeamID, m.Username)
		if err != nil {
			return err
		}
		if g := guard.Of(ctx, "member"); g != nil && !exists {
			return addMember(ctx, c, tenant, m, g)
		}
		_, err = c.Exec(ctx, `INSERT INTO tc_memberships (tenant_id, team_id, username, role, created_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (tenant_id, team_id, username) DO UPDATE SET role = excluded.role`,
			tenant, m.TeamID, m.Username, int(m.Role), bunx.At(m.CreatedAt))
		return bunx.Err(err, "Member")
	})
}

// checkMember checks the guard of a write to a membership, if it has one, and reports whether the membership exists.
func checkMember(ctx context.Context, c bunx.Conn, tenant, teamID, username string) (exists bool, err error) {
	if guard.Of(ctx, "member") == nil {
		return false, nil
	}
	m := principals.Membership{TeamID: teamID, Username: username}
	var created bunx.Time
	err = c.One(ctx, "Member", `SELECT role, created_at FROM tc_memberships WHERE tenant_id = $1 AND team_id = $2 AND username = $3`+c.ForUpdate(),
		[]any{tenant, teamID, username}, &m.Role, &created)
	if errs.CodeOf(err) == errs.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m.CreatedAt = created.Time
	return true, guard.Check(ctx, "member", m)
}

// addMember adds a membership that must not exist, unless its guard does not admit that.
func addMember(ctx context.Context, c bunx.Conn, tenant string, m principals.Membership, g *guard.Guard) error {
	if err := g.Missing(); err != nil {
		return err
	}
	n, err := c.Exec(ctx, `INSERT INTO tc_memberships (tenant_id, team_id, username, role, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, team_id, username) DO NOTHING`, tenant, m.TeamID, m.Username, int(m.Role), bunx.At(m.CreatedAt))
	if err == nil && n == 0 { // somebody else added it meanwhile
		return guard.Stale()
	}
	return bunx.Err(err, "Member")
}

// Member implements principals.Store.
func (s *Store) Member(ctx context.Context, tenant, teamID, username string) (principals.Membership, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r := member{TeamID: teamID, Username: username}
	err := c.One(ctx, "Member", `SELECT t.name, u.display_name, m.role, m.created_at FROM tc_memberships m
		JOIN tc_teams t ON t.tenant_id = m.tenant_id AND t.id = m.team_id
		JOIN tc_users u ON u.tenant_id = m.tenant_id AND u.username = m.username
		WHERE m.tenant_id = $1 AND m.team_id = $2 AND m.username = $3`,
		[]any{tenant, teamID, username}, &r.TeamName, &r.DisplayName, &r.Role, &r.CreatedAt)
	if err != nil {
		return principals.Membership{}, err
	}
	return r.membership(), nil
}

// DeleteMember implements principals.Store.
func (s *Store) DeleteMember(ctx context.Context, tenant, teamID, username string) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		if _, err := checkMember(ctx, c, tenant, teamID, username); err != nil {
			return err
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_memberships WHERE tenant_id = $1 AND team_id = $2 AND username = $3`,
			tenant, teamID, username)
		return bunx.Found(n, err, "Member")
	})
}
