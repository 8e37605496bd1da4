package sessions

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/paging"
)

// The types of tokens.
const (
	Personal = "personal"       // acts for its user on every route
	AppView  = "app-view"       // shows one app to visitors, and authenticates nobody
	Chat     = "assistant-chat" // lets its holders talk to one assistant, and authenticates nobody
	SCIM     = "scim"           // lets a provider of identities keep the users of one domain, and authenticates nobody
	// lets others call the webhooks of one app, and authenticates nobody; its credential is made of
	// the app's secret
	Webhook = "webhook"
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

// The kinds of tokens in changes. The id of those of an entity is the entity's, a slash and their
// own.
const (
	KindToken          entity.Kind = "token"
	KindAppToken       entity.Kind = "appToken"
	KindAssistantToken entity.Kind = "assistantToken"
	KindDomainToken    entity.Kind = "domainToken"
	KindWebhookToken   entity.Kind = "webhookToken"
)

// Use is what is added to a token's counters.
type Use struct {
	Requests, Blocked int64
	LastAccessedAt    time.Time // zero: leave as it is
}

// NewToken has the fields of a token that its creator sets.
type NewToken struct {
	ReadOnly  bool
	Notes     *string
	Restrict  *string
	CIDR      *string
	ExpiresAt *time.Time
}

// CreateToken creates a personal token for the caller and returns it with its credential, which
// cannot be read again. A token cannot create tokens. Errors: errs.Invalid naming the field;
// errs.Forbidden for a caller with a token.
func (s *Service) CreateToken(ctx context.Context, n NewToken) (t Token, credential string, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Token{}, "", err
	}
	if a.Token != "" {
		return Token{}, "", errTokenOfToken
	}
	now := s.clock.Stamp()
	if err := n.accept(now); err != nil {
		return Token{}, "", err
	}
	secret := s.o.NewSecret()
	t = Token{
		ID: s.clock.NewID(), Type: Personal, Username: a.User,
		SecretHash: hash(secret), ReadOnly: n.ReadOnly, Notes: n.Notes,
		Restrict: n.Restrict, CIDR: n.CIDR, ExpiresAt: n.ExpiresAt, CreatedAt: now, UpdatedAt: now,
	}
	if err := s.insertToken(ctx, a.Tenant, KindToken, t); err != nil {
		return Token{}, "", err
	}
	return t, strings.Join([]string{tokenKind, a.Tenant, t.ID, secret}, "."), nil
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

// Tokens returns a page of the caller's tokens, newest first. Their counters are up to date.
func (s *Service) Tokens(ctx context.Context, q paging.Query) (paging.Page[Token], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Token]{}, err
	}
	if err := s.uses.Flush(ctx, a.Tenant); err != nil {
		return paging.Page[Token]{}, err
	}
	return s.o.Store.Tokens(ctx, a.Tenant, a.User, q)
}

// Token returns one of the caller's tokens. Its counters are up to date. Errors: errs.NotFound.
func (s *Service) Token(ctx context.Context, id string) (Token, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Token{}, err
	}
	if !wellFormed([]string{id}) {
		return Token{}, errs.New(errs.NotFound, "Token not found.")
	}
	if err := s.uses.Flush(ctx, a.Tenant); err != nil {
		return Token{}, err
	}
	return s.o.Store.UserToken(ctx, a.Tenant, a.User, strings.ToLower(id))
}

// DeleteToken revokes one of the caller's tokens at once. Errors: errs.NotFound.
func (s *Service) DeleteToken(ctx context.Context, id string) error {
	if of := (entity.Subject{Kind: KindToken, ID: id, Action: entity.ActionDelete}); s.o.Feed.Wanted(ctx, of) {
		return s.o.Feed.Do(ctx, of, func(ctx context.Context) error { return s.DeleteToken(ctx, id) })
	}
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	if !wellFormed([]string{id}) { // cannot exist, and the database may refuse the text
		return errs.New(errs.NotFound, "Token not found.")
	}
	if guard.Of(ctx, "token") != nil { // a token never changes, so only its existence counts
		t, err := s.o.Store.UserToken(ctx, a.Tenant, a.User, strings.ToLower(id))
		if err != nil {
			return err
		}
		if err := guard.Check(ctx, "token", t); err != nil {
			return err
		}
	}
	return s.o.Store.DeleteToken(ctx, a.Tenant, a.User, strings.ToLower(id))
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
