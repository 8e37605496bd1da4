package sessions

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services, for its command line and for logins,
// whose user is not known yet. Do not pass the others what a request says before it has been
// checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Tenant returns the tenant of a login that names this one: itself, and for "" the only tenant,
// else "default".
func (u Unchecked) Tenant(ctx context.Context, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	ids, err := u.s.o.Tenants.IDs(ctx)
	if err != nil {
		return "", err
	}
	if len(ids) == 1 {
		return ids[0], nil
	}
	return "default", nil
}

// Credential returns a name of the session or API token of an actor, "" for a host's actor. It is
// no secret: nobody can log in with it.
func Credential(a actor.Actor) string {
	switch {
	case a.Session != "":
		return sessionKind + "." + a.Session
	case a.Token != "":
		return tokenKind + "." + a.Token
	}
	return ""
}

// Resume returns the actor that Authenticate would return now for the session or API token that
// Credential has named: with the rights of the moment, and for a token only at an address where it
// may be used. The caller has checked that the request comes from the holder.
// Errors: errs.Unauthenticated when it has ended, or its user is disabled or gone.
func (u Unchecked) Resume(ctx context.Context, tenant, credential string, from netip.Addr) (actor.Actor, error) {
	switch kind, id, _ := strings.Cut(credential, "."); {
	case !wellFormed([]string{tenant, id}):
	case kind == sessionKind:
		return u.s.session(ctx, tenant, id)
	case kind == tokenKind:
		return u.s.token(ctx, tenant, id, from, func(Token) bool { return true })
	}
	return actor.Actor{}, unauthenticated()
}

// ActorOf returns the actor of a user with the rights of the moment, which may be those of a second
// ago if another process has changed them since. It returns errs.Unauthenticated if the user is
// disabled or gone.
func (u Unchecked) ActorOf(ctx context.Context, tenant, username string) (actor.Actor, error) {
	holder, err := u.s.holders.Get(ctx, tenant, username, func() (Holder, error) {
		return u.s.o.Store.Holder(ctx, tenant, username)
	})
	if err != nil {
		return actor.Actor{}, hide(err)
	}
	return holder.actor(tenant)
}

// tokenKinds are the kinds of entities that tokens are for.
var tokenKinds = []entity.Kind{AppKind, AssistantKind, DomainKind}

// FlushAll writes the counted uses of tokens of every tenant.
func (u Unchecked) FlushAll(ctx context.Context) error { return u.s.uses.FlushAll(ctx) }

// Hooks returns the count of tokens, the column of what providers want to see again, and what is
// done with sessions and tokens: those of renamed users follow them, those of deleted ones go by
// themselves, sessions and personal tokens end when their users are disabled, tokens go with the
// entity that they are for, sessions with the domain at whose provider they began, and Sweep
// removes the sessions that have ended.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Counts: entity.CountRows(100, "API tokens", u.s.o.Store.CountTokens),
		Sealed: []entity.SealedColumn{{Table: providerTable, Column: providerColumn, Key: "session_id"}},
		Dependents: func(
			ctx context.Context, tenant string, kind entity.Kind, ids []string, at time.Time,
		) ([]entity.Dependent, error) {
			if kind != entity.KindUser {
				return nil, nil
			}
			tokens, sessions, err := u.s.o.Store.OfUsers(ctx, tenant, ids, at)
			return []entity.Dependent{
				{Count: entity.Count{N: tokens, Of: "API token"}, Rank: 3},
				{Count: entity.Count{N: sessions, Of: "session"}, Rank: 3},
			}, err
		},
		Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			of := map[entity.Kind][]string{}
			for _, k := range gone {
				if slices.Contains(tokenKinds, k.Kind) {
					of[k.Kind] = append(of[k.Kind], k.ID)
				}
			}
			for kind, ids := range of {
				if err := u.s.o.Store.DeleteTokensOf(ctx, tenant, kind, ids); err != nil {
					return err
				}
			}
			if ids := of[DomainKind]; len(ids) > 0 {
				return u.s.o.Store.DeleteSessionsOfDomains(ctx, tenant, ids)
			}
			return nil
		},
		Disabled: u.s.o.Store.EndLogins,
		Due:      []entity.Due{{Table: "tc_sessions", Column: "expires_at"}},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return u.s.o.Store.Sweep(ctx, tenant, u.s.clock.Stamp())
		},
	}
}
