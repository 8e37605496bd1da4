package scim

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/principals"
)

const (
	// maxMembers is the most members of the groups of a page together. A page ends earlier, but has
	// at least one group.
	maxMembers = 20_000
	// maxGroup is the most members of a group that is read with its members.
	maxGroup = 100_000
)

func errNoGroup() error { return errs.New(errs.NotFound, "Group not found.") }

func groupOf(t principals.Team) Group {
	g := Group{ID: t.ID, Name: t.Name, Created: t.CreatedAt, Modified: t.UpdatedAt}
	if t.SourceID != nil {
		g.ExternalID = *t.SourceID
	}
	return g
}

// Group returns a group of the client's domain by id, with the members if members is set. Errors:
// errs.NotFound; errs.Invalid for a group with too many members to show.
func (s *Service) Group(ctx context.Context, c Client, id string, members bool) (Group, error) {
	t, err := s.team(ctx, c, id)
	if err != nil {
		return Group{}, err
	}
	return s.withMembers(ctx, c, groupOf(t), members)
}

func (s *Service) withMembers(ctx context.Context, c Client, g Group, members bool) (Group, error) {
	all := []Group{g}
	if members {
		var err error
		if all, err = s.addMembers(ctx, c, all); err != nil {
			return Group{}, err
		}
	}
	return all[0], nil
}

// addMembers sets the members of groups, and returns the groups that fit a page.
func (s *Service) addMembers(ctx context.Context, c Client, groups []Group) ([]Group, error) {
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
	}
	if len(groups) == 0 {
		return groups, nil
	}
	counts, err := s.o.Store.MemberCounts(ctx, c.Tenant, ids)
	if err != nil {
		return nil, err
	}
	sum := 0
	for i, g := range groups {
		if sum += counts[g.ID]; i > 0 && sum > maxMembers {
			groups, ids = groups[:i], ids[:i]
			break
		}
		if sum > maxGroup {
			return nil, invalid(
				TooMany, "The group %s has more than %d members: read it with excludedAttributes=members.",
				g.ID, maxGroup,
			)
		}
	}
	all, err := s.o.Store.GroupMembers(ctx, c.Tenant, c.Domain, ids)
	if err == nil {
		err = identify(ctx, s, c, all, memberID)
	}
	if err != nil {
		return nil, err
	}
	place := make(map[string]int, len(groups))
	for i, g := range groups {
		place[g.ID], groups[i].Members = i, []Ref{}
	}
	for _, m := range all {
		if i := place[m.TeamID]; !m.Gone {
			groups[i].Members = append(groups[i].Members, Ref{m.ID, m.Label})
		}
	}
	return groups, nil
}

func (s *Service) team(ctx context.Context, c Client, id string) (principals.Team, error) {
	key, ok := uuids.Parse(id)
	if !ok {
		return principals.Team{}, errNoGroup()
	}
	all, err := s.o.Store.Groups(ctx, c.Tenant, c.Domain, ByID, key)
	if err == nil && (len(all) == 0 || all[0].DirectoryGone) {
		err = errNoGroup()
	}
	if err != nil {
		return principals.Team{}, err
	}
	return all[0], nil
}

// CreateGroup adds a group, a team of the client's domain. If the provider has deleted a matching
// group, its team becomes the new group, with its content. A deleted group matches if it has the
// same externalId, or if neither has one and the names are equal. Errors: errs.Invalid with a
// scimType; errs.Conflict for a name that another group of the domain has.
func (s *Service) CreateGroup(ctx context.Context, c Client, change GroupChange) (g Group, err error) {
	var edit groupEdit
	if err := change(&edit); err != nil {
		return Group{}, err
	}
	if err := edit.accept(); err != nil {
		return Group{}, err
	}
	err = s.writing(ctx, c, func(ctx context.Context) error {
		before, err := s.former(ctx, c, edit.Group)
		if err != nil {
			return err
		}
		if before == "" {
			before, err = s.insertTeam(ctx, c, edit.Group)
		}
		if err != nil {
			return err
		}
		if err := s.changeMembers(ctx, c, before, edit); err != nil {
			return err
		}
		t, err := s.touch(ctx, c, before, &edit.Group)
		g = groupOf(t)
		return err
	})
	if err != nil {
		return Group{}, err
	}
	return s.withMembers(ctx, c, g, true)
}

// former returns the id of the team of a deleted group that a new one replaces, or "". It returns
// errs.Conflict for a name that is taken.
func (s *Service) former(ctx context.Context, c Client, g Group) (string, error) {
	if err := s.checkName(ctx, c, "", g.Name); err != nil {
		return "", err
	}
	by, value := ByName, g.Name
	if g.ExternalID != "" {
		by, value = ByExternalID, g.ExternalID
	}
	all, err := s.o.Store.Groups(ctx, c.Tenant, c.Domain, by, value)
	for _, t := range all {
		if t.DirectoryGone && groupOf(t).ExternalID == g.ExternalID {
			return t.ID, nil
		}
	}
	return "", err
}

// checkName returns errs.Conflict if a group with another id has the name.
func (s *Service) checkName(ctx context.Context, c Client, id, name string) error {
	all, err := s.o.Store.Groups(ctx, c.Tenant, c.Domain, ByName, name)
	for _, t := range all {
		if !t.DirectoryGone && t.ID != id {
			return taken("displayName %s is that of another group", shown(name))
		}
	}
	return err
}

func (s *Service) insertTeam(ctx context.Context, c Client, g Group) (id string, err error) {
	at, source := s.clock.Stamp(), Source
	t := principals.Team{
		Tenant: c.Tenant, ID: s.clock.NewID(), Name: g.Name, Domain: c.Domain,
		Source: &source, SourceID: orNull(g.ExternalID), CreatedAt: at, UpdatedAt: at,
	}
	if t.Slug, err = s.o.Principals.FreeSlug(ctx, c.Tenant, slug.Of(t.Name, "team")); err != nil {
		return "", err
	}
	return t.ID, s.o.Store.InsertTeam(ctx, c.Tenant, t)
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// accept checks and trims the values of a client. It returns errs.Invalid naming the attribute.
func (g *groupEdit) accept() error {
	name, err := profile.CleanTeamName(g.Name)
	if err != nil {
		return invalid(
			InvalidValue, "displayName must be 1 to %d characters without control characters", profile.MaxName,
		)
	}
	g.Name = name
	if !escapes.StorableWithin(g.ExternalID, maxExternalID) {
		return invalid(InvalidValue, "externalId must have at most %d characters", maxExternalID)
	}
	return nil
}

// UpdateGroup changes a group of the client's domain, and returns it with the members if members is
// set. It does not read the members in order to add or remove some. Errors: errs.NotFound;
// errs.Stale; errs.Invalid with a scimType, also for a member that is not a user of the domain;
// errs.Conflict for a name that another group of the domain has.
func (s *Service) UpdateGroup(
	ctx context.Context, c Client, id string, on Condition, change GroupChange, members bool,
) (g Group, err error) {
	err = s.writing(ctx, c, func(ctx context.Context) error {
		t, err := s.team(ctx, c, id)
		if err != nil {
			return err
		}
		was := groupOf(t)
		if err := on.check(was.Version()); err != nil {
			return err
		}
		edit := groupEdit{Group: was}
		if err := change(&edit); err != nil {
			return err
		}
		if err := edit.accept(); err != nil {
			return err
		}
		if edit.Name != was.Name {
			if err := s.checkName(ctx, c, t.ID, edit.Name); err != nil {
				return err
			}
		}
		if err := s.changeMembers(ctx, c, t.ID, edit); err != nil {
			return err
		}
		t, err = s.touch(ctx, c, t.ID, &edit.Group)
		g = groupOf(t)
		return err
	})
	if err != nil {
		return Group{}, err
	}
	return s.withMembers(ctx, c, g, members)
}

// touch writes a group with a new time of its last change. If g is nil, it changes only the time.
func (s *Service) touch(ctx context.Context, c Client, id string, g *Group) (principals.Team, error) {
	return s.o.Store.UpdateTeam(ctx, c.Tenant, id, func(t *principals.Team) error {
		if g != nil {
			source := Source
			t.Name, t.Source, t.SourceID, t.DirectoryGone = g.Name, &source, orNull(g.ExternalID), false
		}
		at := s.clock.Stamp()
		if !at.After(t.UpdatedAt) { // so that each change has a new version
			at = t.UpdatedAt.Add(time.Microsecond)
		}
		t.UpdatedAt = at
		return nil
	})
}

// changeMembers adds and removes members. New ones get the role member; others keep theirs. It
// returns errs.Invalid if a new member is not a user of the domain.
func (s *Service) changeMembers(ctx context.Context, c Client, teamID string, g groupEdit) error {
	ids := make([]string, 0, len(g.members))
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		key, ok := uuids.Parse(id)
		if !ok {
			if g.members[id] {
				return errNoMember(id)
			}
			continue
		}
		ids = append(ids, key)
	}
	names, err := s.o.Store.Usernames(ctx, c.Tenant, c.Domain, ids)
	if err != nil {
		return err
	}
	at := s.clock.Stamp()
	var add []principals.Membership
	var remove []announced.MemberKey
	stay := map[string]bool{}
	for _, id := range ids {
		name, there := names[id]
		switch {
		case !there && g.members[id]:
			return errNoMember(id)
		case !there:
		case g.members[id]:
			stay[name] = true
			add = append(add, principals.Membership{TeamID: teamID, Username: name, Role: actor.Member, CreatedAt: at})
		default:
			remove = append(remove, announced.MemberKey{TeamID: teamID, Username: name})
		}
	}
	if g.cleared {
		all, err := s.o.Store.GroupMembers(ctx, c.Tenant, c.Domain, []string{teamID})
		if err != nil {
			return err
		}
		remove = nil
		for _, m := range all {
			if !stay[m.Username] {
				remove = append(remove, announced.MemberKey{TeamID: teamID, Username: m.Username})
			}
		}
	}
	if err := s.o.Store.DeleteMembers(ctx, c.Tenant, remove); err != nil {
		return err
	}
	return s.o.Store.AddMembers(ctx, c.Tenant, add)
}

func errNoMember(id string) error {
	return invalid(InvalidValue, "members: %s is not the id of a user of this domain", shown(id))
}

// DeleteGroup removes the users of the client's domain from a group. The team is kept, because
// content must have an owner, but the group is errs.NotFound from then on. Errors: errs.NotFound;
// errs.Stale.
func (s *Service) DeleteGroup(ctx context.Context, c Client, id string, on Condition) error {
	return s.writing(ctx, c, func(ctx context.Context) error {
		t, err := s.team(ctx, c, id)
		if err != nil {
			return err
		}
		if err := on.check(groupOf(t).Version()); err != nil {
			return err
		}
		if err := s.changeMembers(ctx, c, t.ID, groupEdit{cleared: true}); err != nil {
			return err
		}
		_, err = s.o.Store.UpdateTeam(ctx, c.Tenant, t.ID, func(t *principals.Team) error {
			t.DirectoryGone, t.UpdatedAt = true, s.clock.Stamp()
			return nil
		})
		return err
	})
}
