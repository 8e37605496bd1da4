package principals

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Dependents counts what some users have that is not in their archives.
type Dependents struct {
	Passwords       int
	SuperuserRights int
	Permissions     int // global ones
	MFA             int // settings that are on
	AIConsents      int
	AIMessages      int
	Pictures        int
	Memberships     map[string]int // by team
}

// DependentStore is the part of a Store that counts what goes with users and teams.
type DependentStore interface {
	// Dependents counts what some users have.
	Dependents(ctx context.Context, tenant string, usernames []string) (Dependents, error)
	// MemberCounts returns how many members some teams have, by id; those without any are left out.
	MemberCounts(ctx context.Context, tenant string, teamIDs []string) (map[string]int, error)
	// Superusers returns which of some users are superusers, enabled or not.
	Superusers(ctx context.Context, tenant string, usernames []string) ([]string, error)
}

// Hooks returns what is counted and swept of users and teams. The Service itself renames and
// deletes what it has of them.
func (p Unchecked) Hooks() entity.Hooks {
	s := p.s
	return entity.Hooks{
		Dependents: func(
			ctx context.Context, tenant string, kind entity.Kind, ids []string, _ time.Time,
		) ([]entity.Dependent, error) {
			if kind != KindUser {
				return nil, nil
			}
			d, err := s.store.Dependents(ctx, tenant, ids)
			return d.counts(), err
		},
		Additions: s.additions,
		RemoveRest: func(ctx context.Context, tenant string, of entity.Key, n int) (bool, error) {
			if of.Kind != KindTeam {
				return false, nil
			}
			return s.store.RemoveMembersOf(ctx, tenant, of.ID, n)
		},
		Counts: s.counts,
		Due:    []entity.Due{{Table: "tc_login_networks", Column: "expires_at"}},
		Sweep: func(ctx context.Context, tenant string) (int, error) { // of networks that nobody logs in from any more
			return s.store.SweepNetworks(ctx, tenant, s.clock.Stamp())
		},
	}
}

// counts counts the users and teams of all domains.
func (s *Service) counts(ctx context.Context, tenant string) ([]entity.TenantCount, error) {
	domains, err := s.store.DomainCounts(ctx, tenant)
	users, teams := entity.TenantCount{Of: "users", Rank: 10}, entity.TenantCount{Of: "teams", Rank: 20}
	for _, n := range domains {
		users.N, teams.N = users.N+n.Users, teams.N+n.Teams
	}
	return []entity.TenantCount{users, teams}, err
}

func (d Dependents) counts() []entity.Dependent {
	all := []entity.Dependent{
		{Count: entity.Count{N: d.Passwords, Of: "password"}, Rank: 1},
		{Count: entity.Count{N: d.SuperuserRights, Of: "superuser right"}, Rank: 1},
		{Count: entity.Count{N: d.Permissions, Of: "global permission"}, Rank: 1},
		{Count: entity.Count{N: d.MFA, Of: "multi-factor setting"}, Rank: 1},
		{Count: entity.Count{N: d.AIConsents, Of: "AI consent"}, Rank: 1},
		{Count: entity.Count{N: d.AIMessages, Of: "AI message"}, Rank: 1},
	}
	for _, team := range slices.Sorted(maps.Keys(d.Memberships)) {
		all = append(all, entity.Dependent{
			Count: entity.Count{N: d.Memberships[team], Of: "team membership"},
			Rank:  4, Holder: entity.Key{Kind: KindTeam, ID: team},
		})
	}
	return append(all, entity.Dependent{Count: entity.Count{N: d.Pictures, Of: "picture"}, Rank: 4})
}

// additions counts the members of teams.
func (s *Service) additions(
	ctx context.Context, tenant string, kind entity.Kind, ids []string,
) (map[string][]entity.Dependent, error) {
	if kind != KindTeam {
		return nil, nil
	}
	members, err := s.store.MemberCounts(ctx, tenant, ids)
	all := make(map[string][]entity.Dependent, len(members))
	for id, n := range members {
		all[id] = []entity.Dependent{{Count: entity.Count{N: n, Of: "member"}, Rank: 1}}
	}
	return all, err
}
