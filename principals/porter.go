package principals

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/port"
)

// The kinds of content that users and teams are for comments and bundles.
const (
	KindUser entity.Kind = "user"
	KindTeam entity.Kind = "team"
)

// PorterStore is the part of a Store that moves users and teams between tenants, many at once.
type PorterStore interface {
	// Known returns the given principal ids, Everyone's too, that exist.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// UserIDs and TeamIDs give the ids of all users and all teams, ordered.
	UserIDs(ctx context.Context, tenant string) ([]string, error)
	TeamIDs(ctx context.Context, tenant string) ([]string, error)
	// SomeUsers and SomeTeams give the given ones that exist, in any order.
	SomeUsers(ctx context.Context, tenant string, usernames []string) ([]User, error)
	SomeTeams(ctx context.Context, tenant string, ids []string) ([]Team, error)
	// TeamsWithSlugs returns the ids of the teams that have some slugs, by slug.
	TeamsWithSlugs(ctx context.Context, tenant string, slugs []string) (map[string]string, error)
	// MembersOf returns the memberships of some teams, without names, ordered by team and username.
	MembersOf(ctx context.Context, tenant string, teamIDs []string) ([]Membership, error)
	// PutUsers adds users without passwords, or overwrites what those that exist have of names, email, timezone, data,
	// user fields and UpdatedAt, except for superusers, who stay as they are. Nobody who is there gets rights, loses them or is
	// somebody else, and nobody becomes a superuser. It fails with errs.Conflict when a name is taken by another spelling of
	// it.
	PutUsers(ctx context.Context, tenant string, all []User) error
	// PutTeams adds teams or overwrites those whose ids are there, all but Domain and CreatedAt. A slug must be free, or
	// belong to one that is overwritten, whose id is then among yield. It fails with errs.Conflict.
	PutTeams(ctx context.Context, tenant string, all []Team, yield []string) error
	// PutMembers adds memberships or sets the roles of those that exist.
	PutMembers(ctx context.Context, tenant string, all []Membership) error
	// DeleteUsers removes users with their memberships and gives the number of those that were there and their pictures.
	DeleteUsers(ctx context.Context, tenant string, usernames []string) (n int, pictures []string, err error)
	// DeleteTeams removes teams with their memberships and gives the number of those that were there.
	DeleteTeams(ctx context.Context, tenant string, ids []string) (int, error)
}

// Known returns the given principal ids of a tenant, Everyone's too, that exist. It needs no actor.
func (s *Service) Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	return s.store.Known(ctx, tenant, ids)
}

// Username returns the exact name of the user of a tenant who is meant by a name, in any spelling of it. It returns
// errs.NotFound if there is none. It needs no actor.
func (s *Service) Username(ctx context.Context, tenant, name string) (string, error) {
	u, err := s.meant(ctx, tenant, name)
	return u.Username, err
}

// Types returns what a host can do with teams and users: find them and ship them; teams can be commented. It needs of the
// options Store and Blobs. Content is not theirs to pass on: whoever removes principals reassigns it first.
func Types(o Options) []entity.Type {
	s := New(o)
	return []entity.Type{
		{
			Kind: KindUser, Porter: s.userPorter(),
			Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				u, err := s.meant(ctx, tenant, id)
				return u.ref(), err
			},
			Find: func(ctx context.Context, tenant string, usernames []string) (map[string]entity.Ref, error) {
				return port.Find(ctx, tenant, usernames, s.store.SomeUsers, User.ref)
			},
		},
		{
			Kind: KindTeam, Porter: s.teamPorter(), Commented: true,
			Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				t, err := s.team(ctx, tenant, id)
				return t.ref(), err
			},
			Find: func(ctx context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
				return port.Find(ctx, tenant, ids, s.store.SomeTeams, Team.ref)
			},
		},
	}
}

func (u User) ref() entity.Ref {
	return entity.Ref{Kind: KindUser, ID: u.Username, Name: u.Label(), External: !u.ManagesPassword()}
}

func (t Team) ref() entity.Ref { return entity.Ref{Kind: KindTeam, ID: t.ID, Name: t.Name} }
