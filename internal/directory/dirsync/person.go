package dirsync

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Mapping maps a group to a team that does not come from a directory. The people of the group are
// members of the team.
type Mapping struct {
	Group string
	Team  string // id or slug
	Role  actor.Role
}

// PersonOptions are the options of SyncPerson.
type PersonOptions struct {
	Source   string    // id of the driver
	Existing bool      // do not create teams for new groups
	Map      []Mapping // groups for which no teams are created
}

// PersonTeam is a team with the role of one user in it, or NoRole.
type PersonTeam struct {
	principals.Team
	Role actor.Role
}

// thePerson is the id of the only person of a snapshot.
const thePerson = "person"

// SyncPerson updates the teams of one user to the groups that a provider has reported at a login,
// as Sync does for all users. The groups become teams of the domain. The user joins them, and
// leaves the teams of other groups. The user may be of another domain. Teams keep their names.
//
// The user is a member of the teams of o.Map with the highest role of the mapped groups, and leaves
// those of which no group is reported. If nothing changes, SyncPerson runs one statement and writes
// nothing. It returns warnings.
//
// Errors: errs.Invalid for the domain Local; errs.NotFound for the tenant or the domain.
func (s *Service) SyncPerson(
	ctx context.Context, tenant, domain, username string, groups []string, o PersonOptions,
) (warnings []string, err error) {
	p, err := s.planPerson(ctx, tenant, domain, username, groups, o)
	if err != nil || p.none() {
		return p.warnings(), err
	}
	err = s.o.Store.InTx(ctx, func(ctx context.Context) error {
		if err := s.o.Principals.LockDomain(ctx, tenant, domain); err != nil {
			return err
		}
		if p, err = s.planPerson(ctx, tenant, domain, username, groups, o); err != nil { // in the transaction
			return err
		}
		w := writer{s.o.Store, s.o.Principals, tenant, s.clock.Stamp(), nil}
		if err := p.write(ctx, w); err != nil {
			return err
		}
		if len(p.left) > 0 {
			if err := s.o.Store.DeleteMembers(ctx, tenant, p.left); err != nil {
				return err
			}
		}
		for _, m := range p.mapped {
			m.CreatedAt = w.at
			if err := s.o.Store.PutMember(ctx, tenant, m); err != nil {
				return err
			}
		}
		return nil
	})
	return p.warnings(), err
}

// UnknownTeams returns those of some ids and slugs that are not teams of a tenant.
func (s *Service) UnknownTeams(ctx context.Context, tenant string, teams []string) (unknown []string, err error) {
	keys := make([]string, len(teams))
	for i, t := range teams {
		keys[i] = teamKey(t)
	}
	rows, err := s.o.Store.PersonTeams(ctx, tenant, "", "", "", nil, keys)
	for i, key := range keys {
		if err == nil && !slices.ContainsFunc(rows, func(t PersonTeam) bool { return key == t.ID || key == t.Slug }) {
			unknown = append(unknown, teams[i])
		}
	}
	return unknown, err
}

// personPlan is a plan for the groups of one person, with the changes in mapped teams.
type personPlan struct {
	*plan
	mapped []principals.Membership // new, or with another role
	left   []MemberKey
}

func (p personPlan) none() bool {
	return p.plan == nil || len(p.join)+len(p.leave)+len(p.newTeams)+len(p.oldTeams)+len(p.mapped)+len(p.left) == 0
}

func (p personPlan) warnings() []string {
	if p.plan == nil {
		return nil
	}
	return p.sentences()
}

// planPerson passes a snapshot of one person through the stages of Sync.
func (s *Service) planPerson(
	ctx context.Context, tenant, domain, username string, groups []string, o PersonOptions,
) (personPlan, error) {
	own := slices.Clone(groups)
	slices.Sort(own)
	own = slices.DeleteFunc(slices.Compact(own), func(g string) bool {
		return g == "" || slices.ContainsFunc(o.Map, func(m Mapping) bool { return m.Group == g })
	})
	var keys []string
	for _, m := range o.Map {
		keys = append(keys, teamKey(m.Team))
	}
	rows, err := s.o.Store.PersonTeams(ctx, tenant, domain, o.Source, username, own, keys)
	if err != nil {
		return personPlan{}, err
	}
	from := &personReader{ctx: ctx, store: s.o.Store, tenant: tenant, source: o.Source, username: username}
	all := Snapshot{People: []principals.Identity{{ID: thePerson, Username: username}}}
	had := map[string]bool{}
	for _, t := range rows {
		if t.Domain != domain || t.SourceID == nil || t.Source == nil || *t.Source != o.Source {
			continue
		}
		from.own = append(from.own, t)
		had[*t.SourceID] = true
		g := Group{ID: *t.SourceID, Name: t.Name}
		if t.Description != nil {
			g.Description = *t.Description
		}
		if slices.Contains(own, g.ID) {
			g.Members = []string{thePerson}
		}
		all.Groups = append(all.Groups, g)
	}
	for _, id := range own {
		if !had[id] && !o.Existing {
			all.Groups = append(all.Groups, Group{ID: id, Name: id, Members: []string{thePerson}})
		}
	}
	p, err := s.plan(from, newSnapshot(domain, o.Source, all))
	if err != nil {
		return personPlan{}, err
	}
	made := personPlan{plan: p}
	made.mapTeams(rows, username, groups, o.Map)
	return made, nil
}

// mapTeams plans the memberships in the teams of a mapping.
func (p *personPlan) mapTeams(rows []PersonTeam, username string, groups []string, all []Mapping) {
	found := map[string]bool{}
	for _, t := range rows {
		role, named := actor.NoRole, false
		for _, m := range all {
			if key := teamKey(m.Team); key != t.ID && key != t.Slug {
				continue
			}
			found[m.Team], named = true, true
			if slices.Contains(groups, m.Group) {
				role = max(role, m.Role)
			}
		}
		switch {
		case !named:
		case t.SourceID != nil || orNone(t.Source) == principals.SourceSCIM:
			// a group of SCIM may have no externalId, as those of Okta
			p.warn("the team %s of teams.map has its people from a directory or provider, and is left alone.", t.Slug)
		case role == actor.NoRole && t.Role != actor.NoRole:
			p.left = append(p.left, MemberKey{TeamID: t.ID, Username: username})
		case role != t.Role:
			p.mapped = append(p.mapped, principals.Membership{TeamID: t.ID, Username: username, Role: role})
		}
	}
	for _, m := range all {
		if !found[m.Team] {
			found[m.Team] = true
			p.warn("the team %s of teams.map does not exist.", shown(m.Team))
		}
	}
}

// teamKey returns an id in the stored form, and a slug unchanged.
func teamKey(key string) string {
	if id, ok := uuids.Parse(key); ok {
		return id
	}
	return key
}

// personReader is a reader of one user and the teams that matter to it.
type personReader struct {
	ctx                      context.Context
	store                    Store
	tenant, source, username string
	own                      []PersonTeam // teams of the domain for its groups
}

func (r *personReader) users(each func(principals.DirectoryUser)) error {
	each(principals.DirectoryUser{Username: r.username, Source: r.source, SourceID: thePerson, Enabled: true})
	return nil
}

func (r *personReader) holders([]string) (map[string]principals.Holder, error) {
	return nil, nil // the user keeps the name
}

func (r *personReader) superusers() (int, error) { return 0, nil } // users are not disabled

func (r *personReader) teams() ([]principals.Team, error) {
	all := make([]principals.Team, len(r.own))
	for i, t := range r.own {
		all[i] = t.Team
	}
	return all, nil
}

func (r *personReader) slugs() ([]string, error) { return r.store.Slugs(r.ctx, r.tenant) }

func (r *personReader) members(each func(MemberKey)) error {
	for _, t := range r.own {
		if t.Role != actor.NoRole {
			each(MemberKey{TeamID: t.ID, Username: r.username})
		}
	}
	return nil
}

func orNone(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
