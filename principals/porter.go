package principals

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/port"
)

// The kinds of content that users and teams are for comments and bundles.
const (
	KindUser entity.Kind = "user"
	KindTeam entity.Kind = "team"
)

// PorterStore is the part of a Store that moves users and teams between tenants, many at once.
type PorterStore interface {
	// Known gives those of some principal ids, Everyone's too, that are there.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// UserIDs and TeamIDs give the ids of all users and all teams, ordered.
	UserIDs(ctx context.Context, tenant string) ([]string, error)
	TeamIDs(ctx context.Context, tenant string) ([]string, error)
	// SomeUsers and SomeTeams give those of some that are there, in any order.
	SomeUsers(ctx context.Context, tenant string, usernames []string) ([]User, error)
	SomeTeams(ctx context.Context, tenant string, ids []string) ([]Team, error)
	// TeamsWithSlugs gives the ids of the teams that have some slugs, by slug.
	TeamsWithSlugs(ctx context.Context, tenant string, slugs []string) (map[string]string, error)
	// MembersOf gives the memberships of some teams, without names, ordered by team and username.
	MembersOf(ctx context.Context, tenant string, teamIDs []string) ([]Membership, error)
	// PutUsers adds users without passwords, or overwrites what those that are there have of names, email, timezone, data,
	// user fields, global permissions, source, source id and UpdatedAt, and Enabled but for superusers. It makes nobody a
	// superuser. It fails with errs.Conflict when a name is taken by another spelling of it.
	PutUsers(ctx context.Context, tenant string, all []User) error
	// PutTeams adds teams or overwrites those whose ids are there, all but Domain and CreatedAt; there are the latter's
	// ids. A slug must be free, or belong to one that is overwritten. It fails with errs.Conflict.
	PutTeams(ctx context.Context, tenant string, all []Team, there []string) error
	// PutMembers adds memberships or sets the roles of those that are there.
	PutMembers(ctx context.Context, tenant string, all []Membership) error
	// DeleteUsers removes users with their memberships and gives the number of those that were there and their pictures.
	DeleteUsers(ctx context.Context, tenant string, usernames []string) (n int, pictures []string, err error)
	// DeleteTeams removes teams with their memberships and gives the number of those that were there.
	DeleteTeams(ctx context.Context, tenant string, ids []string) (int, error)
}

// Known gives those of some principal ids of a tenant, Everyone's too, that are there. It asks for no actor.
func (s *Service) Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	return s.store.Known(ctx, tenant, ids)
}

// Types gives what a host can do with teams and users: find them and ship them; teams can be commented. It needs of the
// options Store and Blobs. Content is not theirs to pass on: whoever removes principals reassigns it first.
func Types(o Options) []entity.Type {
	s := New(o)
	return []entity.Type{
		{
			Kind: KindUser, Porter: userPorter{s}, Find: s.findUsers,
			Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				u, err := s.user(ctx, tenant, id)
				return entity.Ref{Kind: KindUser, ID: u.Username, Name: u.Label()}, err
			},
		},
		{
			Kind: KindTeam, Porter: teamPorter{s}, Commented: true, Find: s.findTeams,
			Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				t, err := s.team(ctx, tenant, id)
				return entity.Ref{Kind: KindTeam, ID: t.ID, Name: t.Name}, err
			},
		},
	}
}

func (s *Service) findUsers(ctx context.Context, tenant string, usernames []string) (map[string]entity.Ref, error) {
	found := map[string]entity.Ref{}
	for batch := range port.Chunks(usernames) {
		some, err := s.store.SomeUsers(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		for _, u := range some {
			found[u.Username] = entity.Ref{Kind: KindUser, ID: u.Username, Name: u.Label()}
		}
	}
	return found, nil
}

func (s *Service) findTeams(ctx context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
	found := map[string]entity.Ref{}
	for batch := range port.Chunks(ids) {
		some, err := s.store.SomeTeams(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		for _, t := range some {
			found[t.ID] = entity.Ref{Kind: KindTeam, ID: t.ID, Name: t.Name}
		}
	}
	return found, nil
}

// userPorter moves users. Passwords, locks, sessions, pictures and what only they themselves say stay behind, and nobody
// becomes a superuser.
type userPorter struct{ s *Service }

// userColumns are a user on its way.
type userColumns struct {
	Domain      string          `json:"domain"`
	DisplayName *string         `json:"displayName"`
	FamilyName  *string         `json:"familyName"`
	GivenName   *string         `json:"givenName"`
	MiddleName  *string         `json:"middleName"`
	Email       *string         `json:"email"`
	Timezone    *string         `json:"timezone"`
	Enabled     bool            `json:"enabled"`
	AI          bool            `json:"ai"`
	JobCreation bool            `json:"jobCreation"`
	AllTeams    bool            `json:"viewAllTeams"`
	AllUsers    bool            `json:"viewAllUsers"`
	Script      bool            `json:"painlessScriptCreation"`
	Source      *string         `json:"source"`
	SourceID    *string         `json:"sourceId"`
	Data        json.RawMessage `json:"data"`
	UserFields  json.RawMessage `json:"userFields"`
	CreatedAt   string          `json:"createdAt"`
	UpdatedAt   string          `json:"updatedAt"`
}

// IDs implements entity.Porter.
func (p userPorter) IDs(ctx context.Context, tenant string) ([]string, error) {
	return p.s.store.UserIDs(ctx, tenant)
}

// Needs implements entity.Porter: a user needs nothing.
func (p userPorter) Needs(ctx context.Context, tenant string, ids []string) (map[string][]entity.Key, error) {
	needs := map[string][]entity.Key{}
	for batch := range port.Chunks(ids) {
		some, err := p.s.store.SomeUsers(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		for _, u := range some {
			needs[u.Username] = nil
		}
	}
	return needs, nil
}

// Export implements entity.Porter.
func (p userPorter) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return port.Export(ids, func(batch []string) (map[string]entity.Row, error) {
		some, err := p.s.store.SomeUsers(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		rows := make(map[string]entity.Row, len(some))
		for _, u := range some {
			may := u.GlobalPermissions
			rows[u.Username], err = port.Row(KindUser, u.Username, userColumns{
				u.Domain, u.DisplayName, u.FamilyName, u.GivenName, u.MiddleName, u.Email, u.Timezone, u.Enabled, may.AI, may.JobCreation,
				may.ViewAllTeams, may.ViewAllUsers, may.PainlessScriptCreation, u.Source, u.SourceID, u.Data, u.UserFields,
				port.Time(u.CreatedAt), port.Time(u.UpdatedAt),
			})
			if err != nil {
				return nil, err
			}
		}
		return rows, nil
	}, func(id string) error { return errs.New(errs.NotFound, "user %s not found.", id) })
}

// Import implements entity.Porter. What is there keeps its domain, password and lock; a superuser stays one, and enabled
// as it is. A name that somebody has in another spelling is errs.Conflict.
func (p userPorter) Import(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing) (arrivals []entity.Arrival, warnings []string, err error) {
	if err := port.Check(KindUser, rows); err != nil {
		return nil, nil, err
	}
	err = p.s.store.InTx(ctx, func(ctx context.Context) error {
		for batch := range port.Chunks(rows) {
			some, err := p.land(ctx, tenant, batch, l)
			if err != nil {
				return err
			}
			arrivals = append(arrivals, some...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return arrivals, nil, nil
}

func (p userPorter) land(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing) ([]entity.Arrival, error) {
	all, folded := make([]User, len(rows)), make([]string, len(rows))
	spelled := map[string]string{} // folded to exact name, of the rows
	for i, r := range rows {
		var err error
		if all[i], err = p.s.readUser(tenant, r); err != nil {
			return nil, err
		}
		folded[i] = fold.Text(r.ID)
		if other, ok := spelled[folded[i]]; ok {
			return nil, nameTaken(r.ID, other)
		}
		spelled[folded[i]] = r.ID
	}
	there, err := p.s.store.UsersNamed(ctx, tenant, folded)
	if err != nil {
		return nil, err
	}
	for _, u := range there {
		if name := spelled[fold.Text(u.Username)]; name != u.Username {
			return nil, nameTaken(name, u.Username)
		}
	}
	arrivals, err := port.Arrive(rows, port.In(there, func(u User) string { return u.Username }), l.Rule)
	if err != nil {
		return nil, err
	}
	write := make([]User, 0, len(all))
	for i, u := range all {
		if arrivals[i] != entity.Skipped {
			write = append(write, u)
		}
	}
	return arrivals, p.s.store.PutUsers(ctx, tenant, write)
}

func nameTaken(name, other string) error {
	return errs.New(errs.Conflict, "user %s: the name belongs to %s.", name, other)
}

// readUser checks a row of another tenant.
func (s *Service) readUser(tenant string, r entity.Row) (User, error) {
	c, now := port.Read(r), s.stamp()
	u := User{
		Tenant: tenant, Username: r.ID, Domain: c.Text("domain"), DisplayName: c.TextOrNull("displayName"), FamilyName: c.TextOrNull("familyName"),
		GivenName: c.TextOrNull("givenName"), MiddleName: c.TextOrNull("middleName"), Email: c.TextOrNull("email"),
		Timezone: c.TextOrNull("timezone"), Enabled: c.Flag("enabled", true), Source: c.TextOrNull("source"), SourceID: c.TextOrNull("sourceId"),
		Data: c.JSON("data"), UserFields: c.JSON("userFields"), CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
		GlobalPermissions: GlobalPermissions{
			AI: c.Flag("ai", false), JobCreation: c.Flag("jobCreation", false), ViewAllTeams: c.Flag("viewAllTeams", false),
			ViewAllUsers: c.Flag("viewAllUsers", false), PainlessScriptCreation: c.Flag("painlessScriptCreation", false),
		},
	}
	if c.Err() != nil {
		return User{}, c.Err()
	}
	return u, port.Why(r.Key, u.accept())
}

// Remove implements entity.Porter. It fails with errs.Conflict when the tenant would be left without an enabled
// superuser.
func (p userPorter) Remove(ctx context.Context, tenant string, ids []string) (int, error) {
	n := 0
	err := p.s.store.InTx(ctx, func(ctx context.Context) error {
		if err := p.s.store.LockTenant(ctx, tenant); err != nil {
			return err
		}
		before, err := p.s.store.OtherSuperusers(ctx, tenant, "")
		if err != nil {
			return err
		}
		for batch := range port.Chunks(ids) {
			if err := p.s.forgetAll(ctx, tenant, KindUser, batch...); err != nil {
				return err
			}
			some, pictures, err := p.s.store.DeleteUsers(ctx, tenant, batch)
			if err != nil {
				return err
			}
			for _, id := range pictures {
				if err := p.s.blobs.Delete(ctx, tenant, id); err != nil {
					return err
				}
			}
			n += some
		}
		after, err := p.s.store.OtherSuperusers(ctx, tenant, "")
		if err == nil && before > 0 && after == 0 {
			err = errLastSuperuser
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// teamPorter moves teams with the roles of their members.
type teamPorter struct{ s *Service }

// teamColumns are a team on its way.
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

// IDs implements entity.Porter.
func (p teamPorter) IDs(ctx context.Context, tenant string) ([]string, error) {
	return p.s.store.TeamIDs(ctx, tenant)
}

// Needs implements entity.Porter: a team needs nothing. Its members are shipped by those who want them there.
func (p teamPorter) Needs(ctx context.Context, tenant string, ids []string) (map[string][]entity.Key, error) {
	needs := map[string][]entity.Key{}
	for batch := range port.Chunks(ids) {
		some, err := p.s.store.SomeTeams(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		for _, t := range some {
			needs[t.ID] = nil
		}
	}
	return needs, nil
}

// Export implements entity.Porter.
func (p teamPorter) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return port.Export(ids, func(batch []string) (map[string]entity.Row, error) {
		some, err := p.s.store.SomeTeams(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		members, err := p.s.store.MembersOf(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		of := map[string]map[string]string{}
		for _, t := range some {
			of[t.ID] = map[string]string{}
		}
		for _, m := range members {
			if of[m.TeamID] != nil {
				of[m.TeamID][m.Username] = m.Role.String()
			}
		}
		rows := make(map[string]entity.Row, len(some))
		for _, t := range some {
			rows[t.ID], err = port.Row(KindTeam, t.ID, teamColumns{
				t.Name, t.Slug, t.Description, t.Domain, t.Color, t.Icon, t.MaterialIcon, t.Source, t.SourceID, of[t.ID],
				port.Time(t.CreatedAt), port.Time(t.UpdatedAt),
			})
			if err != nil {
				return nil, err
			}
		}
		return rows, nil
	}, func(id string) error { return errs.New(errs.NotFound, "team %s not found.", id) })
}

// landingTeam is a team of an import and its members.
type landingTeam struct {
	Team
	members map[string]actor.Role
}

// Import implements entity.Porter. A team that is written gets the members of its row that are users here, and no others;
// those that are not are left out with a warning. A slug that another team has is errs.Conflict.
func (p teamPorter) Import(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing) (arrivals []entity.Arrival, warnings []string, err error) {
	if err := port.Check(KindTeam, rows); err != nil {
		return nil, nil, err
	}
	err = p.s.store.InTx(ctx, func(ctx context.Context) error {
		for batch := range port.Chunks(rows) {
			some, err := p.land(ctx, tenant, batch, l, &warnings)
			if err != nil {
				return err
			}
			arrivals = append(arrivals, some...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return arrivals, warnings, nil
}

func (p teamPorter) land(ctx context.Context, tenant string, rows []entity.Row, l entity.Landing, warnings *[]string) ([]entity.Arrival, error) {
	all := make([]landingTeam, len(rows))
	for i, r := range rows {
		var err error
		if all[i], err = p.s.readTeam(tenant, r); err != nil {
			return nil, err
		}
	}
	there, err := p.s.store.SomeTeams(ctx, tenant, port.IDs(rows))
	if err != nil {
		return nil, err
	}
	arrivals, err := port.Arrive(rows, port.In(there, func(t Team) string { return t.ID }), l.Rule)
	if err != nil {
		return nil, err
	}
	var write []landingTeam
	var over []string
	for i, t := range all {
		if arrivals[i] == entity.Skipped {
			continue
		}
		write = append(write, t)
		if arrivals[i] == entity.Updated {
			over = append(over, t.ID)
		}
	}
	if err := p.put(ctx, tenant, write, over); err != nil {
		return nil, err
	}
	return arrivals, p.enroll(ctx, tenant, write, warnings)
}

// put writes teams whose slugs no other team has and keeps.
func (p teamPorter) put(ctx context.Context, tenant string, write []landingTeam, over []string) error {
	slugs, teams, of := make([]string, len(write)), make([]Team, len(write)), map[string]string{}
	for i, t := range write {
		slugs[i], teams[i] = t.Slug, t.Team
		if other, ok := of[t.Slug]; ok {
			return slugTaken(t.ID, t.Slug, other)
		}
		of[t.Slug] = t.ID
	}
	taken, err := p.s.store.TeamsWithSlugs(ctx, tenant, slugs)
	if err != nil {
		return err
	}
	leaves := port.In(over, func(id string) string { return id })
	for _, t := range teams {
		if other, ok := taken[t.Slug]; ok && other != t.ID && !leaves(other) {
			return slugTaken(t.ID, t.Slug, other)
		}
	}
	return p.s.store.PutTeams(ctx, tenant, teams, over)
}

func slugTaken(id, slug, other string) error {
	return errs.New(errs.Conflict, "team %s: the slug %s belongs to %s.", id, slug, other)
}

// enroll makes the members of teams those that the rows name.
func (p teamPorter) enroll(ctx context.Context, tenant string, teams []landingTeam, warnings *[]string) error {
	var names, ids []string
	for _, t := range teams {
		ids = append(ids, t.ID)
		for name := range t.members {
			names = append(names, name)
		}
	}
	known := map[string]bool{}
	slices.Sort(names)
	for batch := range port.Chunks(slices.Compact(names)) {
		some, err := p.s.store.SomeUsers(ctx, tenant, batch)
		if err != nil {
			return err
		}
		for _, u := range some {
			known[u.Username] = true
		}
	}
	before, err := p.s.store.MembersOf(ctx, tenant, ids)
	if err != nil {
		return err
	}
	had, now := map[Membership]bool{}, p.s.stamp()
	wants := map[string]map[string]actor.Role{}
	for _, t := range teams {
		wants[t.ID] = t.members
	}
	for _, m := range before {
		had[Membership{TeamID: m.TeamID, Username: m.Username, Role: m.Role}] = true
		if _, stays := wants[m.TeamID][m.Username]; !stays {
			if err := p.s.store.DeleteMember(ctx, tenant, m.TeamID, m.Username); err != nil {
				return err
			}
		}
	}
	var write []Membership
	for _, t := range teams {
		for _, name := range slices.Sorted(maps.Keys(t.members)) {
			m := Membership{TeamID: t.ID, Username: name, Role: t.members[name]}
			switch {
			case !known[name]:
				*warnings = append(*warnings, fmt.Sprintf("team %s: its member %s is not a user here and is left out.", t.ID, port.Short(name)))
			case !had[m]:
				m.CreatedAt = now
				write = append(write, m)
			}
		}
	}
	for batch := range port.Chunks(write) {
		if err := p.s.store.PutMembers(ctx, tenant, batch); err != nil {
			return err
		}
	}
	return nil
}

// readTeam checks a row of another tenant.
func (s *Service) readTeam(tenant string, r entity.Row) (landingTeam, error) {
	if id, err := uuid.Parse(r.ID); err != nil || id.String() != r.ID {
		return landingTeam{}, port.Bad(r.Key, "the id must be a UUID in lower case")
	}
	c, now := port.Read(r), s.stamp()
	t := landingTeam{members: map[string]actor.Role{}, Team: Team{
		Tenant: tenant, ID: r.ID, Name: c.Text("name"), Slug: c.Text("slug"), Description: c.TextOrNull("description"), Domain: c.Text("domain"),
		Color: c.TextOrNull("color"), Icon: c.TextOrNull("icon"), MaterialIcon: c.TextOrNull("materialIcon"), Source: c.TextOrNull("source"),
		SourceID: c.TextOrNull("sourceId"), CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
	}}
	members := c.Texts("members")
	if c.Err() != nil {
		return landingTeam{}, c.Err()
	}
	for name, role := range members {
		parsed, err := actor.ParseRole(role)
		if err == nil {
			err = ValidUsername(name)
		}
		if err != nil {
			return landingTeam{}, port.Bad(r.Key, "members: %s: %s", port.Short(name), strings.TrimSuffix(errs.MessageOf(err), "."))
		}
		t.members[name] = parsed
	}
	return t, port.Why(r.Key, t.accept())
}

// Remove implements entity.Porter.
func (p teamPorter) Remove(ctx context.Context, tenant string, ids []string) (int, error) {
	n := 0
	err := p.s.store.InTx(ctx, func(ctx context.Context) error {
		for batch := range port.Chunks(ids) {
			if err := p.s.forgetAll(ctx, tenant, KindTeam, batch...); err != nil {
				return err
			}
			some, err := p.s.store.DeleteTeams(ctx, tenant, batch)
			if err != nil {
				return err
			}
			n += some
		}
		return nil
	})
	return n, err
}
