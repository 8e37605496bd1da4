package bunstore

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// team is a row of tc_teams.
type team struct {
	principals.Team
	label string // as it is stored
}

func (r team) team() principals.Team { return r.Team }

func teams(rows []team) []principals.Team {
	all := make([]principals.Team, len(rows))
	for i, r := range rows {
		all[i] = r.Team
	}
	return all
}

// teamTable has the columns of a team. An import does not overwrite columns with Keep.
var teamTable = bunx.NewTable("tc_teams", "t", []bunx.Column[team]{
	{Name: "tenant_id", Key: true, Field: func(t *team) any { return &t.Tenant }},
	{Name: "id", Key: true, Field: func(t *team) any { return &t.ID }},
	{Name: "name", Field: func(t *team) any { return &t.Name }},
	{Name: "slug", Field: func(t *team) any { return &t.Slug }},
	{Name: "label", Field: func(t *team) any {
		return &t.label
	}, Value: func(t *team) any { return fold.Text(t.Name) }},
	{Name: "search", Value: func(t *team) any { return fold.Search(t.Name, t.Slug, or(t.Description)) }},
	{Name: "description", Field: func(t *team) any { return &t.Description }},
	{Name: "domain", Keep: true, Field: func(t *team) any { return &t.Domain }},
	{Name: "color", Field: func(t *team) any { return &t.Color }},
	{Name: "icon", Field: func(t *team) any { return &t.Icon }},
	{Name: "material_icon", Field: func(t *team) any { return &t.MaterialIcon }},
	{Name: "source", Field: func(t *team) any { return &t.Source }},
	{Name: "source_id", Field: func(t *team) any { return &t.SourceID }},
	{Name: "directory_gone", Keep: true, Field: func(t *team) any { return &t.DirectoryGone }},
	{Name: "created_at", Keep: true, Field: func(t *team) any { return bunx.TimeOf(&t.CreatedAt) }},
	{Name: "updated_at", Field: func(t *team) any { return bunx.TimeOf(&t.UpdatedAt) }},
})

var teamList = bunx.List[team]{
	Table: teamTable, Key: "id", Order: "name", Search: "search",
	Sorts: []bunx.Sort[team]{
		{Field: "name", Column: "label", Value: func(r team) string { return r.label }},
		{Field: "createdAt", Column: "created_at", Value: func(r team) string { return bunx.At(r.CreatedAt).String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r team) string { return bunx.At(r.UpdatedAt).String() }},
	},
}

// Team implements principals.Store.
func (s *Store) Team(ctx context.Context, tenant, key string) (principals.Team, error) {
	query := selectTeam
	if !uuids.Valid(key) {
		query = selectTeamBySlug
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := oneTeam(ctx, c, query, tenant, key)
	return r.Team, err
}

var (
	selectTeam       = teamTable.Select(`WHERE tenant_id = $1 AND id = $2`)
	selectTeamBySlug = teamTable.Select(`WHERE tenant_id = $1 AND slug = $2`)
)

func oneTeam(ctx context.Context, c bunx.Conn, query, tenant, key string) (team, error) {
	r, err := teamTable.Scan(c.Row(ctx, query, tenant, key))
	return r, bunx.Err(err, "Team")
}

// Teams implements principals.Store.
func (s *Store) Teams(ctx context.Context, tenant string, q paging.Query) (paging.Page[principals.Team], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := bunx.Part{
		Where: "t.tenant_id = $1",
		Args:  []any{tenant},
		Total: bunx.Total("teams", bunx.Whole),
		Index: &bunx.Index{List: "teams"},
	}
	page, err := bunx.Page(ctx, c, teamList, all, func(r team) string { return r.ID }, q)
	return paging.Map(page, team.team), err
}

const slugTaken = "A team with this slug"

// InsertTeam implements principals.Store.
func (s *Store) InsertTeam(ctx context.Context, tenant string, t principals.Team) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		t.Tenant = tenant
		_, err := teamTable.Insert(ctx, c, "", team{Team: t})
		return bunx.Err(err, slugTaken)
	})
}

// UpdateTeam implements principals.Store.
func (s *Store) UpdateTeam(
	ctx context.Context, tenant, id string, edit func(*principals.Team) error,
) (principals.Team, error) {
	var t principals.Team
	err := s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		r, err := oneTeam(ctx, c, selectTeam+c.ForUpdate(), tenant, id)
		if err != nil {
			return err
		}
		t = r.Team
		was := t
		if err := edit(&t); err != nil {
			return err
		}
		if err := guard.Check(ctx, "team", was); err != nil {
			return err
		}
		t.Tenant, t.ID = tenant, id
		_, err = teamTable.Update(ctx, c, &team{Team: t})
		return bunx.Err(err, slugTaken)
	})
	if err != nil {
		return principals.Team{}, err
	}
	return t, nil
}

// DeleteTeam implements principals.Store.
func (s *Store) DeleteTeam(ctx context.Context, tenant, id string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "team") != nil {
			r, err := oneTeam(ctx, c, selectTeam+c.ForUpdate(), tenant, id)
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "team", r.Team); err != nil {
				return err
			}
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_teams WHERE tenant_id = $1 AND id = $2`, tenant, id)
		return bunx.Found(n, err, "Team")
	})
}

// member is a row of tc_memberships with the columns that a list of members shows.
type member struct {
	tenant string
	principals.Membership
	key, label string // the sort columns: of the user for a team, of the team for a user
}

// memberTable has the columns of a membership.
var memberTable = bunx.NewTable("tc_memberships", "m", []bunx.Column[member]{
	{Name: "tenant_id", Key: true, Value: func(m *member) any { return m.tenant }},
	{Name: "team_id", Key: true, Field: func(m *member) any { return &m.TeamID }},
	{Name: "username", Key: true, Field: func(m *member) any { return &m.Username }},
	{Name: "role", Field: func(m *member) any { return (*int)(&m.Role) }},
	{Name: "created_at", Once: true, Field: func(m *member) any { return bunx.TimeOf(&m.CreatedAt) }},
})

const memberExists = ` ON CONFLICT (tenant_id, team_id, username) DO NOTHING`

// insertMembers adds memberships. It returns errs.Conflict if a team or user does not exist.
func insertMembers(
	ctx context.Context, c bunx.Conn, onConflict, tenant string, all ...principals.Membership,
) (int, error) {
	if len(all) == 0 {
		return 0, nil
	}
	rows, ids := make([]member, len(all)), make([]string, len(all))
	for i, m := range all {
		rows[i], ids[i] = member{tenant: tenant, Membership: m}, m.TeamID
	}
	query := `SELECT id FROM tc_teams WHERE tenant_id = $1 AND id ` + c.OneOf(2) + ` ORDER BY id`
	if c.Postgres() {
		query += ` FOR KEY SHARE`
	}
	held, err := bunx.TextSet(c.Rows(ctx, query, tenant, bunx.Keys(slices.Compact(slices.Sorted(slices.Values(ids))))))
	if err != nil {
		return 0, bunx.Err(err, "Team")
	}
	for _, id := range ids {
		if !held[id] { // no foreign key ensures it, because the rows of a deleted team remain for a while
			return 0, errs.New(errs.Conflict, "The team %s does not exist.", id)
		}
	}
	n, err := memberTable.Insert(ctx, c, onConflict, rows...)
	return n, bunx.Err(err, "Member")
}

// hasTeam is the condition that the team of a membership m has not been deleted. $1 is the tenant.
const hasTeam = `EXISTS (SELECT 1 FROM tc_teams t WHERE t.tenant_id = $1 AND t.id = m.team_id)`

// RemoveMembersOf implements principals.Store.
func (s *Store) RemoveMembersOf(ctx context.Context, tenant, teamID string, n int) (more bool, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		some, err := c.Exec(
			ctx,
			`DELETE FROM tc_memberships WHERE `+c.Some("tc_memberships m", `team_id = $2 AND NOT `+hasTeam, n),
			tenant, teamID,
		)
		more = some >= n
		return bunx.Err(err, "Member")
	})
	return more, err
}

// joined returns memberTable with the columns of the team and the user. key and label are the sort
// columns.
func joined(key, label string) *bunx.Table[member] {
	return memberTable.With(
		bunx.Column[member]{Name: "t.name", Field: func(m *member) any { return &m.TeamName }},
		bunx.Column[member]{Name: "u.display_name", Field: func(m *member) any { return &m.DisplayName }},
		bunx.Column[member]{Name: key, Field: func(m *member) any { return &m.key }},
		bunx.Column[member]{Name: label, Field: func(m *member) any { return &m.label }},
	)
}

var (
	memberKey     = func(r member) string { return r.key }
	memberLabel   = func(r member) string { return r.label }
	memberCreated = bunx.Sort[member]{Field: "createdAt", Column: "m.created_at", Value: func(r member) string {
		return bunx.At(r.CreatedAt).String()
	}}

	memberList = bunx.List[member]{
		Table: joined("u.folded", "u.label"), Join: withNames, Key: "u.folded", Order: "displayName",
		Sorts: []bunx.Sort[member]{
			{Field: "displayName", Column: "u.label", Value: memberLabel},
			{Field: "username", Column: "u.folded", Value: memberKey}, memberCreated,
		},
	}
	membershipList = bunx.List[member]{
		Table: joined("t.id", "t.label"), Join: withNames, Key: "t.id", Order: "teamName",
		Sorts: []bunx.Sort[member]{{Field: "teamName", Column: "t.label", Value: memberLabel}, memberCreated},
	}
)

// withNames joins the team and the user of a membership.
const withNames = ` JOIN tc_teams AS t ON t.tenant_id = m.tenant_id AND t.id = m.team_id ` +
	`JOIN tc_users AS u ON u.tenant_id = m.tenant_id AND u.username = m.username`

// Members implements principals.Store.
func (s *Store) Members(
	ctx context.Context, tenant, teamID string, q paging.Query,
) (paging.Page[principals.Membership], error) {
	return s.memberPage(ctx, tenant, "team_id", teamID, bunx.Total("members", "= $2"), memberList, q)
}

// Memberships implements principals.Store.
func (s *Store) Memberships(
	ctx context.Context, tenant, username string, q paging.Query,
) (paging.Page[principals.Membership], error) {
	return s.memberPage(ctx, tenant, "username", username, memberships, membershipList, q)
}

// memberships is the number of teams of a user, without deleted ones that still have rows.
var memberships = bunx.Total("memberships", "= $2") +
	` - (SELECT count(*) FROM tc_memberships m WHERE m.tenant_id = $1 AND m.username = $2 AND NOT ` + hasTeam + `)`

// memberPage reads a page of the memberships that have a value in a column. total is an expression
// for their number.
func (s *Store) memberPage(
	ctx context.Context, tenant, column, value, total string, l bunx.List[member], q paging.Query,
) (paging.Page[principals.Membership], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	of := bunx.Part{Where: "m.tenant_id = $1 AND m." + column + " = $2", Args: []any{tenant, value}, Total: total}
	page, err := bunx.Page(ctx, c, l, of, memberKey, q)
	return paging.Map(page, func(r member) principals.Membership { return r.Membership }), err
}

// PutMember implements principals.Store.
func (s *Store) PutMember(ctx context.Context, tenant string, m principals.Membership) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		exists, err := checkMember(ctx, c, tenant, m.TeamID, m.Username)
		if err != nil {
			return err
		}
		if g := guard.Of(ctx, "member"); g != nil && !exists {
			return addMember(ctx, c, tenant, m, g)
		}
		_, err = insertMembers(ctx, c, memberTable.OnConflict, tenant, m)
		return err
	})
}

// checkMember checks the guard of a write to a membership, if there is one, and reports whether the
// membership exists.
func checkMember(ctx context.Context, c bunx.Conn, tenant, teamID, username string) (exists bool, err error) {
	if guard.Of(ctx, "member") == nil {
		return false, nil
	}
	m, err := memberTable.Scan(c.Row(ctx, selectMember+c.ForUpdate(), tenant, teamID, username))
	if err = bunx.Err(err, "Member"); errs.CodeOf(err) == errs.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, guard.Check(ctx, "member", m.Membership)
}

var selectMember = memberTable.Select(`WHERE tenant_id = $1 AND team_id = $2 AND username = $3`)

// addMember adds a membership. The membership must not exist, unless the guard allows that.
func addMember(ctx context.Context, c bunx.Conn, tenant string, m principals.Membership, g *guard.Guard) error {
	if err := g.Missing(); err != nil {
		return err
	}
	n, err := insertMembers(ctx, c, memberExists, tenant, m)
	if err == nil && n == 0 { // another transaction added it since
		return guard.Stale()
	}
	return err
}

// Member implements principals.Store.
func (s *Store) Member(ctx context.Context, tenant, teamID, username string) (principals.Membership, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := memberList.Table.All(ctx, memberTable.Rows(c).
		Join("JOIN tc_teams AS t ON t.tenant_id = m.tenant_id AND t.id = m.team_id").
		Join("JOIN tc_users AS u ON u.tenant_id = m.tenant_id AND u.username = m.username").
		Where("m.tenant_id = ?", tenant).Where("m.team_id = ?", teamID).Where("m.username = ?", username))
	if err = bunx.Found(len(rows), err, "Member"); err != nil {
		return principals.Membership{}, err
	}
	return rows[0].Membership, nil
}

// DeleteMember implements principals.Store.
func (s *Store) DeleteMember(ctx context.Context, tenant, teamID, username string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if _, err := checkMember(ctx, c, tenant, teamID, username); err != nil {
			return err
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_memberships WHERE tenant_id = $1 AND team_id = $2 AND username = $3`,
			tenant, teamID, username)
		return bunx.Found(n, err, "Member")
	})
}
