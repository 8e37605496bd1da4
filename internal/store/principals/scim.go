package bunstore

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// identity is a row of tc_scim_users.
type identity struct {
	tenant, username string
	scim.Identity
}

var identityTable = bunx.NewTable("tc_scim_users", "s", []bunx.Column[identity]{
	{Name: "tenant_id", Key: true, Value: func(i *identity) any { return i.tenant }},
	{Name: "username", Key: true, Field: func(i *identity) any { return &i.username }},
	{Name: "id", Field: func(i *identity) any { return &i.ID }},
	{Name: "external_id", Field: func(i *identity) any { return bunx.TextOrNull(&i.ExternalID) }},
	{Name: "gone", Field: func(i *identity) any { return &i.Gone }},
	{Name: "changed_at", Field: func(i *identity) any { return bunx.TimeOf(&i.ChangedAt) }},
})

// person is a user with its identity, if any.
type person struct {
	user
	scim.Identity
	changedAt *time.Time
}

func (p person) person() scim.Person {
	all := scim.Person{
		DirectoryUser: directoryUser(p.user),
		Identity:      p.Identity,
		CreatedAt:     p.CreatedAt,
		UpdatedAt:     p.UpdatedAt,
	}
	if p.changedAt != nil {
		all.ChangedAt = *p.changedAt
	}
	return all
}

// scimUsers is userTable with the columns of a person.
var scimUsers = userTable.Only(append([]string{"username", "superuser", "created_at", "updated_at"},
	directoryColumns...)...)

var selectPerson = `SELECT ` + scimUsers.Qualified + `, s.id, s.external_id, coalesce(s.gone, false), s.changed_at`

// If people and groups are found by another column, the domain is compared in an expression. By the
// bare column PostgreSQL could read all rows of the domain, which it assumes to be few in the
// minute after a scan.
const (
	personFromUser = ` FROM tc_users u LEFT JOIN tc_scim_users s ON s.tenant_id = u.tenant_id ` +
		`AND s.username = u.username WHERE u.tenant_id = $1 AND u.domain = $2`
	personFromIdentity = ` FROM tc_scim_users s JOIN tc_users u ON u.tenant_id = s.tenant_id ` +
		`AND u.username = s.username WHERE s.tenant_id = $1 AND u.domain || '' = $2`
	personIsThere = ` AND coalesce(s.gone, false) = false`
	personOrder   = ` ORDER BY u.folded`
)

func scanPerson(rows *sql.Rows) (scim.Person, error) {
	var p person
	dest := append(
		scimUsers.Dest(&p.user), bunx.TextOrNull(&p.ID), bunx.TextOrNull(&p.ExternalID), &p.Gone,
		bunx.TimeOrNull(&p.changedAt),
	)
	err := rows.Scan(dest...)
	return p.person(), err
}

// People implements scim.Store.
func (s *Store) People(ctx context.Context, tenant, domain string, by scim.Key, value string) ([]scim.Person, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	query := map[scim.Key]string{
		scim.ByID:         personFromIdentity + ` AND s.id = $3`,
		scim.ByExternalID: personFromIdentity + ` AND s.external_id = $3`,
		scim.ByName:       personFromUser + ` AND u.folded = $3`,
		scim.ByEmail:      personFromUser + ` AND lower(u.email) = $3`,
	}[by]
	if by == scim.ByEmail {
		value = lowerASCII(value)
	}
	rows, err := c.Rows(ctx, selectPerson+query+personOrder+` LIMIT 20001`, tenant, domain, value)
	all, err := bunx.Scan(rows, err, scanPerson)
	return all, bunx.Err(err, "User")
}

// PeoplePage implements scim.Store.
func (s *Store) PeoplePage(
	ctx context.Context, tenant, domain string, offset, limit int,
) (page []scim.Person, total int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	if err := c.One(
		ctx, "User", `SELECT count(*)`+personFromUser+personIsThere, []any{tenant, domain}, &total,
	); err != nil {
		return nil, 0, err
	}
	page = []scim.Person{}
	if limit > 0 && offset < total {
		rows, failed := c.Rows(
			ctx, selectPerson+personFromUser+personIsThere+personOrder+` LIMIT $3 OFFSET $4`, tenant, domain,
			limit, offset,
		)
		page, err = bunx.Scan(rows, failed, scanPerson)
	}
	return page, total, bunx.Err(err, "User")
}

// EachPerson implements scim.Store.
func (s *Store) EachPerson(ctx context.Context, tenant, domain string, each func(scim.Person) bool) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectPerson+personFromUser+personIsThere+personOrder, tenant, domain)
	if err != nil {
		return bunx.Err(err, "User")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		p, err := scanPerson(rows)
		if err != nil {
			return bunx.Err(err, "User")
		}
		if !each(p) {
			return nil
		}
	}
	return bunx.Err(errors.Join(rows.Err(), rows.Close()), "User")
}

// Usernames implements scim.Store.
func (s *Store) Usernames(ctx context.Context, tenant, domain string, ids []string) (map[string]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	names := map[string]string{}
	for some := range slices.Chunk(ids, batch) {
		rows, err := c.NewSelect().TableExpr("tc_scim_users AS s").Join("JOIN tc_users AS u ON u.tenant_id = "+
			"s.tenant_id AND u.username = s.username").
			ColumnExpr("s.id, s.username").Where(
			"s.tenant_id = ?", tenant,
		).Where("u.domain || '' = ?", domain).Where("NOT s.gone").Where("s.id IN (?)", bun.List(some)).Rows(ctx)
		if err := bunx.ScanMap(rows, err, names); err != nil {
			return nil, bunx.Err(err, "User")
		}
	}
	return names, nil
}

// Identify implements scim.Store.
func (s *Store) Identify(ctx context.Context, tenant string, ids map[string]string, at time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(ids)), batch) {
			users, err := someDirectoryUsers(ctx, c, tenant, some) // they cannot be deleted now
			if err != nil {
				return err
			}
			var rows []identity
			for _, u := range users {
				rows = append(rows, identity{tenant, u.Username, scim.Identity{ID: ids[u.Username], ChangedAt: at}})
			}
			if _, err := identityTable.Insert(ctx, c, ` ON CONFLICT DO NOTHING`, rows...); err != nil {
				return bunx.Err(err, "User")
			}
		}
		return nil
	})
}

// Identities implements scim.Store.
func (s *Store) Identities(ctx context.Context, tenant string, usernames []string) (map[string]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	ids := map[string]string{}
	for some := range slices.Chunk(usernames, batch) {
		rows, err := c.NewSelect().Table("tc_scim_users").ColumnExpr("username, id").Where("tenant_id = ?", tenant).
			Where("username IN (?)", bun.List(some)).Rows(ctx)
		if err := bunx.ScanMap(rows, err, ids); err != nil {
			return nil, bunx.Err(err, "User")
		}
	}
	return ids, nil
}

// SetIdentity implements scim.Store.
func (s *Store) SetIdentity(ctx context.Context, tenant, username string, i scim.Identity) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := identityTable.Insert(ctx, c, identityTable.OnConflict, identity{tenant, username, i})
		return bunx.Err(err, "User")
	})
}

// groupsOf are the teams of a domain that an identity provider maintains.
const (
	groupsOf = `WHERE tenant_id = $1 AND domain = $2 AND source = '` + scim.Source + `'`
	groupOf  = `WHERE tenant_id = $1 AND domain || '' = $2 AND source = '` + scim.Source + `'`
)

const (
	groupIsThere = ` AND NOT directory_gone`
	groupOrder   = ` ORDER BY label, id`
)

var (
	groupKeys = map[scim.Key]string{
		scim.ByID:         teamTable.Select(groupOf + ` AND id = $3`),
		scim.ByExternalID: teamTable.Select(groupsOf + ` AND source_id = $3 ORDER BY id || ''`),
		scim.ByName:       teamTable.Select(groupOf + ` AND label = $3 ORDER BY id`),
	}
	selectGroups     = teamTable.Select(groupsOf + groupIsThere + groupOrder)
	selectGroupsPage = selectGroups + ` LIMIT $3 OFFSET $4`
	countGroups      = `SELECT count(*) FROM tc_teams ` + groupsOf + groupIsThere
)

// Groups implements scim.Store.
func (s *Store) Groups(
	ctx context.Context, tenant, domain string, by scim.Key, value string,
) ([]principals.Team, error) {
	if by == scim.ByName {
		value = fold.Text(value)
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, groupKeys[by], tenant, domain, value)
	all, err := bunx.Scan(rows, err, scanTeam)
	return all, bunx.Err(err, "Team")
}

func scanTeam(rows *sql.Rows) (principals.Team, error) {
	t, err := teamTable.Scan(rows)
	return t.Team, err
}

// GroupsPage implements scim.Store.
func (s *Store) GroupsPage(
	ctx context.Context, tenant, domain string, offset, limit int,
) (page []principals.Team, total int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	if err := c.One(ctx, "Team", countGroups, []any{tenant, domain}, &total); err != nil {
		return nil, 0, err
	}
	page = []principals.Team{}
	if limit > 0 && offset < total {
		rows, failed := c.Rows(ctx, selectGroupsPage, tenant, domain, limit, offset)
		page, err = bunx.Scan(rows, failed, scanTeam)
	}
	return page, total, bunx.Err(err, "Team")
}

// EachGroup implements scim.Store.
func (s *Store) EachGroup(ctx context.Context, tenant, domain string, each func(principals.Team) bool) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectGroups, tenant, domain)
	_, err = bunx.ScanBatch(rows, err, func(rows *sql.Rows) (more bool, err error) {
		t, err := teamTable.Scan(rows)
		return err == nil && each(t.Team), err
	}, func(more bool) bool { return !more })
	return bunx.Err(err, "Team")
}

// GroupMembers implements scim.Store.
func (s *Store) GroupMembers(ctx context.Context, tenant, domain string, teamIDs []string) ([]scim.Member, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var all []scim.Member
	for some := range slices.Chunk(teamIDs, batch) {
		q := c.NewSelect().TableExpr("tc_memberships AS m").Join("JOIN tc_users AS u ON u.tenant_id = m.tenant_id "+
			"AND u.username = m.username").
			Join("LEFT JOIN tc_scim_users AS s ON s.tenant_id = m.tenant_id AND s.username = m.username").
			ColumnExpr("m.team_id, '', m.username, s.id, coalesce(s.gone, false), coalesce(u.display_name, "+
				"u.username)").
			Where(
				"m.tenant_id = ?", tenant,
			).Where(
			"m.team_id IN (?)", bun.List(some),
		).Where("u.domain || '' = ?", domain).OrderExpr("m.team_id, m.username")
		rows, err := q.Rows(ctx)
		members, err := bunx.Scan(rows, err, scanMember)
		if err != nil {
			return nil, bunx.Err(err, "Member")
		}
		all = append(all, members...)
	}
	return all, nil
}

func scanMember(rows *sql.Rows) (m scim.Member, err error) {
	err = rows.Scan(&m.TeamID, &m.TeamName, &m.Username, bunx.TextOrNull(&m.ID), &m.Gone, &m.Label)
	return m, err
}

// UserGroups implements scim.Store.
func (s *Store) UserGroups(ctx context.Context, tenant, domain string, usernames []string) ([]scim.Member, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var all []scim.Member
	for some := range slices.Chunk(usernames, batch) {
		q := c.NewSelect().TableExpr("tc_memberships AS m").Join("JOIN tc_teams AS t ON t.tenant_id = m.tenant_id "+
			"AND t.id = m.team_id").
			ColumnExpr("m.team_id, t.name, m.username, NULL, false, ''").Where(
			"m.tenant_id = ?", tenant,
		).Where("m.username IN (?)", bun.List(some)).
			Where(
				"t.domain || '' = ?", domain,
			).Where("t.source = ?", scim.Source).Where("NOT t.directory_gone").OrderExpr("m.username, m.team_id")
		rows, err := q.Rows(ctx)
		members, err := bunx.Scan(rows, err, scanMember)
		if err != nil {
			return nil, bunx.Err(err, "Member")
		}
		all = append(all, members...)
	}
	return all, nil
}
