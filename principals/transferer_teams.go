package principals

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// teamWithMembers is a team with the roles of its members, by username.
type teamWithMembers struct {
	Team
	members map[string]actor.Role
}

// teamTransferer moves teams with the roles of their members, but not the members themselves. A
// team that is written gets those members of its row that are users of the tenant, and no others. A
// deploy from another tenant does not change members, and does not overwrite a team that no deploy
// of that tenant made.
func (s *Service) teamTransferer() entity.Transferer {
	return transfer.Transferer[teamWithMembers]{
		Kind: KindTeam, ID: func(t teamWithMembers) string { return t.ID },
		All: s.store.TeamIDs, Some: s.withMembers, Row: toTeamColumns, Read: s.readTeam,
		Natural: func(t teamWithMembers) string { return t.Slug }, Taken: s.store.TeamsWithSlugs,
		Rename: func(t *teamWithMembers, slug string) { t.Slug = slug },
		Guard: func(t teamWithMembers, l entity.ImportOptions) string {
			if l.DeployedTeams[t.ID] {
				return ""
			}
			return "is a team here"
		},
		Put: s.putTeams, Drop: s.dropTeams, InTx: s.store.InTx,
	}
}

// teamColumns are the columns of a team in an archive.
type teamColumns struct {
	Name         string            `json:"name"`
	Slug         string            `json:"slug"`
	Description  *string           `json:"description"`
	Domain       string            `json:"domain"`
	Color        *string           `json:"color"`
	Icon         *string           `json:"icon"`
	MaterialIcon *string           `json:"materialIcon"`
	Source       *string           `json:"source"`
	SourceID     *string           `json:"sourceId"`
	Members      map[string]string `json:"members"` // username to role
	CreatedAt    string            `json:"createdAt"`
	UpdatedAt    string            `json:"updatedAt"`
}

func toTeamColumns(t teamWithMembers) any {
	members := make(map[string]string, len(t.members))
	for name, role := range t.members {
		members[name] = role.String()
	}
	return teamColumns{
		t.Name, t.Slug, t.Description, t.Domain, t.Color, t.Icon, t.MaterialIcon, t.Source, t.SourceID, members,
		transfer.Time(t.CreatedAt), transfer.Time(t.UpdatedAt),
	}
}

// readTeam checks a row of another tenant.
func (s *Service) readTeam(tenant string, r entity.Row) (teamWithMembers, error) {
	c, now := transfer.ReadUUID(r), s.clock.Stamp()
	t := teamWithMembers{members: map[string]actor.Role{}, Team: Team{
		Tenant: tenant, ID: r.ID, Name: c.Text("name"),
		Slug: c.Text("slug"), Description: c.TextOrNull("description"), Domain: c.Text("domain"),
		Color: c.TextOrNull("color"), Icon: c.TextOrNull("icon"),
		MaterialIcon: c.TextOrNull("materialIcon"), Source: c.TextOrNull("source"),
		SourceID: c.TextOrNull("sourceId"), CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}}
	members := c.Texts("members")
	for name, role := range members {
		parsed, err := actor.ParseRole(role)
		if err == nil {
			err = ValidOldUsername(name)
		}
		if err != nil {
			return teamWithMembers{}, transfer.Bad(
				r.Key, "members: %s: %s", transfer.Short(name), strings.TrimSuffix(errs.MessageOf(err), "."),
			)
		}
		t.members[name] = parsed
	}
	err := c.Accept(t.accept)
	return t, err
}

// withMembers returns teams with their members.
func (s *Service) withMembers(ctx context.Context, tenant string, ids []string) ([]teamWithMembers, error) {
	some, err := s.store.SomeTeams(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	all, err := s.store.MembersOf(ctx, tenant, ids)
	members := map[string]map[string]actor.Role{}
	teams := make([]teamWithMembers, len(some))
	for i, t := range some {
		members[t.ID] = map[string]actor.Role{}
		teams[i] = teamWithMembers{t, members[t.ID]}
	}
	for _, m := range all {
		if of := members[m.TeamID]; of != nil {
			of[m.Username] = m.Role
		}
	}
	return teams, err
}

// putTeams writes teams and sets their members to those in the rows.
func (s *Service) putTeams(ctx context.Context, b *transfer.Batch[teamWithMembers]) error {
	teams, names := make([]Team, len(b.Write)), []string{}
	arriving := actions{s: s, tenant: b.Tenant, domains: map[string]string{}}
	for i, t := range b.Write {
		old, there := b.There[t.ID]
		if b.CrossTenant() { // its id in a directory may be that of another team here
			t.Source, t.SourceID = old.Source, old.SourceID
		}
		if !there {
			var err error
			if t.Domain, err = arriving.domain(ctx, t.Domain); err != nil {
				return err
			}
		}
		teams[i] = t.Team
		names = slices.AppendSeq(names, maps.Keys(t.members))
	}
	if err := s.store.PutTeams(ctx, b.Tenant, teams, b.Yield); err != nil || b.CrossTenant() {
		return err
	}
	known, err := transfer.Known(ctx, s.store, b.Tenant, names)
	if err != nil {
		return err
	}
	var join []Membership
	for _, t := range b.Write {
		before := b.There[t.ID].members
		dismissed, err := s.removeMembers(ctx, b.Tenant, t, before)
		if err != nil {
			return err
		}
		join = append(join, s.memberships(b, t, before, known, dismissed)...)
	}
	for batch := range transfer.Chunks(join) {
		if err := s.store.PutMembers(ctx, b.Tenant, batch); err != nil {
			return err
		}
	}
	return nil
}

// removeMembers removes the members of a team that its row does not have, and returns their names.
func (s *Service) removeMembers(
	ctx context.Context, tenant string, t teamWithMembers, before map[string]actor.Role,
) (gone []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := t.members[name]; stays {
			continue
		}
		if err := s.store.DeleteMember(ctx, tenant, t.ID, name); err != nil {
			return nil, err
		}
		gone = append(gone, name)
	}
	return gone, nil
}

// named is the most users that a warning about roles names.
const named = 10

// memberships returns the memberships to write for a team, and warns of users who get more or fewer
// rights than before.
func (s *Service) memberships(
	b *transfer.Batch[teamWithMembers], t teamWithMembers, before map[string]actor.Role, known map[string]bool,
	dismissed []string,
) (join []Membership) {
	var raised, lowered []string
	for _, name := range dismissed {
		lowered = append(lowered, name+" is no member")
	}
	for _, name := range slices.Sorted(maps.Keys(t.members)) {
		role := t.members[name]
		switch {
		case !known[name]:
			b.Warn("team %s: its member %s is not a user here and is left out.", t.ID, transfer.Short(name))
			continue
		case role > before[name]:
			raised = append(raised, fmt.Sprintf("%s is %s", name, role))
		case role == before[name]:
			continue
		default:
			lowered = append(lowered, fmt.Sprintf("%s is %s", name, role))
		}
		join = append(join, Membership{TeamID: t.ID, Username: name, Role: role, CreatedAt: s.clock.Stamp()})
	}
	warnRoles(b, t, "higher", raised)
	warnRoles(b, t, "lower", lowered)
	return join
}

// warnRoles adds one warning about the users of a team whose roles have changed.
func warnRoles(b *transfer.Batch[teamWithMembers], t teamWithMembers, which string, roles []string) {
	n := len(roles)
	if n == 0 {
		return
	}
	list := strings.Join(roles[:min(n, named)], ", ")
	if n > named {
		list += ", …"
	}
	b.Warn("team %s: %s got a %s role in it than before: %s.", t.ID, entity.Count{N: n, Of: "user"}, which, list)
}

// dropTeams removes teams with their memberships.
func (s *Service) dropTeams(ctx context.Context, tenant string, ids []string) (int, error) {
	if err := s.forgetAll(ctx, tenant, KindTeam, ids...); err != nil {
		return 0, err
	}
	n, err := s.store.DeleteTeams(ctx, tenant, ids)
	if err != nil {
		return 0, err
	}
	return n, s.removeRest(ctx, tenant, KindTeam, ids...)
}
