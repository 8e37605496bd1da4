package principals

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// The kinds of users and teams, for comments and bundles.
const (
	KindUser = entity.KindUser
	KindTeam = entity.KindTeam
)

// TransferStore is the part of a Store that moves users and teams between tenants, many at once.
type TransferStore interface {
	// Known returns the given principal ids, Everyone's too, that exist.
	Known(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// UserIDs and TeamIDs return the ids of all users and all teams, ordered.
	UserIDs(ctx context.Context, tenant string) ([]string, error)
	TeamIDs(ctx context.Context, tenant string) ([]string, error)
	// SomeUsers and SomeTeams return the given ones that exist, in any order; of a paging.WithBatch
	// perhaps the first alone.
	SomeUsers(ctx context.Context, tenant string, usernames []string) ([]User, error)
	SomeTeams(ctx context.Context, tenant string, ids []string) ([]Team, error)
	// TeamsWithSlugs returns the ids of the teams that have some slugs, by slug.
	TeamsWithSlugs(ctx context.Context, tenant string, slugs []string) (map[string]string, error)
	// MembersOf returns the memberships of some teams, without names, ordered by team and username.
	MembersOf(ctx context.Context, tenant string, teamIDs []string) ([]Membership, error)
	// PutUsers adds users without passwords. Of users that exist it overwrites names, email,
	// timezone, data, user fields and UpdatedAt, and nothing of superusers. It changes no rights of
	// existing users and makes no superusers. It fails with errs.Conflict if a user has another
	// spelling of a name.
	PutUsers(ctx context.Context, tenant string, all []User) error
	// PutTeams adds teams or overwrites those whose ids exist, all but Domain and CreatedAt. A slug
	// must be free, or belong to one that is overwritten, whose id is then among yield. It fails
	// with errs.Conflict.
	PutTeams(ctx context.Context, tenant string, all []Team, yield []string) error
	// PutMembers adds memberships or sets the roles of those that exist.
	PutMembers(ctx context.Context, tenant string, all []Membership) error
	// DeleteUsers is DeleteUser for some users. It returns the accounts of those who existed and
	// the ids of their pictures.
	DeleteUsers(ctx context.Context, tenant string, usernames []string) (accounts, pictures []string, err error)
	// DeleteTeams is DeleteTeam for some teams, and returns how many existed.
	DeleteTeams(ctx context.Context, tenant string, ids []string) (int, error)
}

// Types returns the entity types of teams and users: they can be looked up and moved by bundles,
// and teams can be commented. Removing a principal through its type does not reassign what it owns:
// the caller does.
func (p Unchecked) Types() []entity.Type {
	s := p.s
	return []entity.Type{
		{
			Kind: KindUser, Transferer: s.userTransferer(), Owns: true, Protected: s.store.Superusers,
			Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				u, err := s.find(ctx, tenant, id)
				return u.ref(), err
			},
			Find: func(ctx context.Context, tenant string, usernames []string) (map[string]entity.Ref, error) {
				return transfer.Find(ctx, tenant, usernames, s.store.SomeUsers, User.ref)
			},
		},
		{
			Kind: KindTeam, Transferer: s.teamTransferer(), Commented: true, Owns: true,
			Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				t, err := s.team(ctx, tenant, id)
				return t.ref(), err
			},
			Find: func(ctx context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
				return transfer.Find(ctx, tenant, ids, s.store.SomeTeams, Team.ref)
			},
		},
	}
}

func (u User) ref() entity.Ref {
	return entity.Ref{Kind: KindUser, ID: u.Username, Name: u.Label(), External: !u.ManagesPassword()}
}

func (t Team) ref() entity.Ref { return entity.Ref{Kind: KindTeam, ID: t.ID, Name: t.Name} }
