package sessions

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Token is an API token: a credential without a session, of the user who made it.
type Token struct {
	ID             string // UUID
	Type           string // Personal, AppView, Chat, SCIM or Webhook
	Username       string // the user who made it and for whom it acts
	SecretHash     string // never leaves the store and this package; "" for a Webhook
	ReadOnly       bool   // GET and HEAD alone
	Notes          *string
	Restrict       *string // "cidr" or nil
	Host           *string
	CIDR           *string // where it may be used from, when Restrict is "cidr"
	Data           json.RawMessage
	Entity         entity.Key // that it is for; zero for a personal token
	Requests       int64      // how often it was used
	Blocked        int64      // how often it was refused for its address or time
	LastAccessedAt *time.Time
	ExpiresAt      *time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// Version changes with every change of the row except its counters.
func (t Token) Version() string {
	return guard.Version(
		t.ID, t.ReadOnly, t.Notes, t.Restrict, t.Host, t.CIDR, t.Data, string(t.Entity.Kind), t.Entity.ID,
		t.ExpiresAt, t.CreatedAt, t.UpdatedAt,
	)
}

// Use is what is added to a token's counters.
type Use struct {
	Requests, Blocked int64
	LastAccessedAt    time.Time // zero: leave as it is
}

// NewToken has the fields of a token that its creator sets.
type NewToken struct {
	ReadOnly  bool // only for a Personal token; what those of other types may do is their type's
	Notes     *string
	Restrict  *string
	CIDR      *string
	ExpiresAt *time.Time
	// Roles and Access are only for an AppView: ids of roles of the app's manifest, which visitors
	// have, and the calls that the manifest allows now as texts, which they can make. Visitor has
	// both.
	Roles  []string
	Access []string
}

// appData is Token.Data of an AppView.
type appData struct {
	Roles []string `json:"roles"` // ids of roles of the app's manifest, ordered
	// rules of the app's manifest when the token was made; nil in tokens of earlier releases
	Access []string `json:"access"`
}

// CreateToken creates a token and returns it with its credential, which cannot be read again and is
// "" for a Webhook. The types of tokens say who makes them. Errors: errs.Invalid naming the field,
// also for an unknown role and for what cannot have such tokens, such as a draft; errs.NotFound;
// errs.Forbidden, also for a caller with a token, which makes Webhook tokens at most; errs.Conflict
// for a manifest that cannot be read, and for a domain that is scanned.
func (s *Service) CreateToken(ctx context.Context, of TokensOf, n NewToken) (t Token, credential string, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Token{}, "", err
	}
	rules, err := s.rulesOf(of)
	if err != nil {
		return Token{}, "", err
	}
	if !rules.mayMake(a) {
		return Token{}, "", errTokenOfToken
	}
	if err := n.fit(of.Type); err != nil {
		return Token{}, "", err
	}
	err = rules.making(ctx, of.EntityID, n.Roles, func(ctx context.Context, id string) error {
		now := s.clock.Stamp()
		if err := n.accept(now); err != nil {
			return err
		}
		t = Token{
			ID: s.clock.NewID(), Type: of.Type, Username: a.User,
			ReadOnly: n.ReadOnly || rules.readOnly, Notes: n.Notes, Restrict: n.Restrict, CIDR: n.CIDR,
			ExpiresAt: n.ExpiresAt, CreatedAt: now, UpdatedAt: now,
		}
		these := TokensOf{Type: of.Type, EntityID: id}
		if of.Type != Personal {
			t.Entity = these.Entity()
		}
		if of.Type == AppView {
			if t.Data, err = json.Marshal(appData{n.Roles, n.Access}); err != nil {
				return err
			}
		}
		if rules.credential != "" {
			secret := s.o.NewSecret()
			t.SecretHash = hash(secret)
			credential = strings.Join([]string{rules.credential, a.Tenant, t.ID, secret}, ".")
		}
		created := entity.Subject{Kind: rules.change, ID: t.ID, Action: entity.ActionCreate}
		return s.announce(ctx, a.Tenant, created, these, func(ctx context.Context) error {
			return s.o.Store.InsertToken(ctx, a.Tenant, t)
		})
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, credential, nil
}

// fit checks that only fields of tokens of a type are set, and orders the roles of an AppView.
func (n *NewToken) fit(tokenType string) error {
	if n.ReadOnly && tokenType != Personal {
		return errs.New(errs.Invalid, "readOnly is only for tokens of the type %q", Personal)
	}
	if tokenType != AppView {
		if len(n.Roles) > 0 || len(n.Access) > 0 {
			return errs.New(errs.Invalid, "roles and access are only for tokens of the type %q", AppView)
		}
		return nil
	}
	roles := append([]string{}, n.Roles...) // an empty list for none
	slices.Sort(roles)
	n.Roles, n.Access = slices.Compact(roles), append([]string{}, n.Access...)
	return nil
}

var errTokenOfToken = errs.New(errs.Forbidden, "A token cannot make tokens. Log in with a password.")

// accept checks a new token, and truncates its expiry to the precision of every database.
func (n *NewToken) accept(now time.Time) error {
	if n.Notes != nil && !escapes.StorableWithin(*n.Notes, 1000) {
		return errs.New(errs.Invalid, "notes must be UTF-8 without NUL and have at most 1000 characters")
	}
	if n.Restrict != nil && *n.Restrict != "cidr" {
		return errs.New(errs.Invalid, `restrict must be "cidr" or null`)
	}
	if (n.Restrict != nil) != (n.CIDR != nil) {
		return errs.New(errs.Invalid, `restrict "cidr" and cidr go together`)
	}
	if n.CIDR != nil {
		if _, err := parseRange(*n.CIDR); err != nil {
			return errs.New(errs.Invalid, "cidr must be an address range such as 192.0.2.0/24 or 2001:db8::/32")
		}
	}
	if n.ExpiresAt != nil {
		end := n.ExpiresAt.UTC().Truncate(time.Microsecond)
		if !end.After(now) || end.Year() > 9999 {
			return errs.New(errs.Invalid, "expiresAt must be in the future, and before the year 10000")
		}
		n.ExpiresAt = &end
	}
	return nil
}

// parseRange reads a range of addresses; an IPv4 range in IPv6 form (::ffff:192.0.2.0/120) is one
// of IPv4.
func parseRange(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err == nil && p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, err
}

// admits reports whether the token may be used at this time and from this address. Without a known
// address a token that is restricted to a range is refused.
func (t Token) admits(now time.Time, from netip.Addr) bool {
	if t.ExpiresAt != nil && !now.Before(*t.ExpiresAt) {
		return false
	}
	if t.Restrict == nil {
		return true
	}
	if t.CIDR == nil {
		return false
	}
	within, err := parseRange(*t.CIDR)
	return err == nil && within.Contains(from.Unmap().WithZone(""))
}

// Tokens returns a page of tokens, newest first. Their counters are up to date. Errors:
// errs.Invalid, also for what cannot have such tokens, such as a draft; errs.NotFound;
// errs.Forbidden.
func (s *Service) Tokens(ctx context.Context, of TokensOf, q paging.Query) (paging.Page[Token], error) {
	a, of, err := s.readable(ctx, of)
	if err != nil {
		return paging.Page[Token]{}, err
	}
	return s.o.Store.Tokens(ctx, a.Tenant, of, q)
}

// Token returns one token. Its counters are up to date. Errors: those of Tokens.
func (s *Service) Token(ctx context.Context, of TokensOf, id string) (Token, error) {
	a, of, err := s.readable(ctx, of)
	if err != nil {
		return Token{}, err
	}
	if !wellFormed([]string{id}) { // cannot exist, and the database may refuse the text
		return Token{}, errs.New(errs.NotFound, "Token not found.")
	}
	return s.o.Store.TokenOf(ctx, a.Tenant, of, strings.ToLower(id))
}

// announce runs a write of a token and announces the change.
func (s *Service) announce(
	ctx context.Context, tenant string, change entity.Subject, of TokensOf, write func(ctx context.Context) error,
) error {
	if of.Type != Personal {
		change.ID = s.o.Feed.Part(of.EntityID, change.ID)
	}
	return s.o.Feed.In(ctx, nil, tenant, change, write)
}

// readable returns the caller and the tokens with the exact id, and writes the counters of tokens.
func (s *Service) readable(ctx context.Context, of TokensOf) (actor.Actor, TokensOf, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return actor.Actor{}, of, err
	}
	rules, err := s.rulesOf(of)
	if err != nil {
		return actor.Actor{}, of, err
	}
	if of.EntityID, err = rules.readable(ctx, of.EntityID); err != nil {
		return actor.Actor{}, of, err
	}
	return a, of, s.uses.Flush(ctx, a.Tenant)
}

// DeleteToken revokes a token at once, with every page that was opened with it. Errors: those of
// Tokens.
func (s *Service) DeleteToken(ctx context.Context, of TokensOf, id string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	rules, err := s.rulesOf(of)
	if err != nil {
		return err
	}
	return rules.writing(ctx, of.EntityID, nil, func(ctx context.Context, entityID string) error {
		if !wellFormed([]string{id}) {
			return errs.New(errs.NotFound, "Token not found.")
		}
		these, id := TokensOf{Type: of.Type, EntityID: entityID}, strings.ToLower(id)
		if guard.Of(ctx, rules.row) != nil { // a token never changes, so only its existence counts
			t, err := s.o.Store.TokenOf(ctx, a.Tenant, these, id)
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, rules.row, t); err != nil {
				return err
			}
		}
		deleted := entity.Subject{Kind: rules.change, ID: id, Action: entity.ActionDelete}
		return s.announce(ctx, a.Tenant, deleted, these, func(ctx context.Context) error {
			return s.o.Store.DeleteToken(ctx, a.Tenant, these, id)
		})
	})
}

// LiveTokens returns how many tokens of a user of the caller's tenant have not expired. It is for
// the user and superusers. It returns errs.Forbidden.
func (s *Service) LiveTokens(ctx context.Context, username string) (int, error) {
	a, err := ofUser(ctx, username)
	if err != nil {
		return 0, err
	}
	return s.o.Store.LiveTokens(ctx, a.Tenant, username, s.clock.Now())
}

// RevokeTokens revokes all tokens of a user of the caller's tenant at once, in the transaction in
// ctx if there is one, and returns their number. It is for the user and superusers. It returns
// errs.Forbidden.
func (s *Service) RevokeTokens(ctx context.Context, username string) (int, error) {
	of := entity.Subject{Kind: entity.KindUser, ID: username, Action: entity.ActionUpdate}
	if s.o.Feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.o.Feed, of, nil, func(ctx context.Context) (int, error) {
			return s.RevokeTokens(ctx, username)
		})
	}
	a, err := ofUser(ctx, username)
	if err != nil {
		return 0, err
	}
	return s.o.Store.DeleteTokens(ctx, a.Tenant, username)
}

// ofUser returns the caller, who must be a user or a superuser.
func ofUser(ctx context.Context, username string) (actor.Actor, error) {
	a, err := actor.From(ctx)
	if err == nil && a.User != username {
		err = a.Require(actor.Superuser)
	}
	return a, err
}

// plus returns the sum of the uses of one token.
func (u Use) plus(more Use) Use {
	u.Requests += more.Requests
	u.Blocked += more.Blocked
	if more.LastAccessedAt.After(u.LastAccessedAt) {
		u.LastAccessedAt = more.LastAccessedAt
	}
	return u
}
