// Package sessions logs users in and out, manages API tokens, and authenticates requests: it turns
// credentials into an actor.
//
//	login, err := app.Sessions.Login(ctx, "acme", "local", "jo", password)
//	a, err := app.Sessions.Authenticate(ctx, credential, address)
//	ctx = actor.With(ctx, a)
//	own := sessions.TokensOf{Type: sessions.Personal}
//	token, credential, err := app.Sessions.CreateToken(ctx, own, sessions.NewToken{ReadOnly: true})
//	err = app.Sessions.DeleteToken(ctx, own, token.ID)
//
// httpapi, the root and hosts import it. It stores no passwords, and of a session or token only a
// hash, so that its rows are no credentials. What a provider of single sign-on wants to see again
// at a logout is sealed.
package sessions

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/limits/tally"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Session is a user who is logged in.
type Session struct {
	ID        string // hash of the secret that the user holds
	Username  string
	CreatedAt time.Time
	ExpiresAt time.Time
	// PasswordSetAt is that of the user when the session began, zero for a user without a password.
	// It is compared for being the same, as clocks can go back.
	PasswordSetAt time.Time
	// Provider is the session at a provider that it began with, nil for none. Store.InsertSession
	// writes it, Store.ProviderSession alone reads it.
	Provider *StoredProviderSession
}

// Holder is the user of a session or token, with the current rights.
type Holder struct {
	Username      string
	Enabled       bool
	Superuser     bool
	AI            bool
	PasswordSetAt time.Time             // zero for none
	Teams         map[string]actor.Role // team id to role
}

// Store keeps sessions and tokens. The tests beside its bun-backed store say what every
// implementation must do.
type Store interface {
	// InsertSession fails with errs.Conflict when the tenant has no such user. It does not wait for
	// others that write: the session may be kept in memory until they have ended, where the other
	// methods find it. It is dropped then if the user has gone, or if an attempt to log in which
	// waited beside it turns out wrong: see principals.Store.
	InsertSession(ctx context.Context, tenant string, s Session) error
	// Session returns a session and its user. It fails with errs.NotFound.
	Session(ctx context.Context, tenant, id string) (Session, Holder, error)
	// DeleteSession removes a session. One that does not exist is no error.
	DeleteSession(ctx context.Context, tenant, id string) error
	// EndSession is DeleteSession of a session that is no session any more at once, and is removed
	// later if the database is busy with the changes of others. If that is not done in time it
	// returns an errs.Unavailable of errs.ErrDatabaseBusy: the end of the session would be lost
	// with the process.
	EndSession(ctx context.Context, tenant, id string) error
	// ProviderSession returns the Provider of a session. It fails with errs.NotFound when there is
	// no session, or it has none.
	ProviderSession(ctx context.Context, tenant, session string) (StoredProviderSession, error)
	// DeleteProviderSessions removes the sessions that began at a domain's provider and returns
	// their number: those with a subject, "" for any, and one of ids, none for any. Without a
	// subject and ids it removes none.
	DeleteProviderSessions(ctx context.Context, tenant, domain, subject string, ids []string) (int, error)
	// DeleteSessionsOfDomains removes all sessions that began at the providers of some domains.
	DeleteSessionsOfDomains(ctx context.Context, tenant string, domains []string) error
	// Holder returns a user. It fails with errs.NotFound.
	Holder(ctx context.Context, tenant, username string) (Holder, error)
	// InsertToken fails with errs.Conflict when the tenant has no such user.
	InsertToken(ctx context.Context, tenant string, t Token) error
	// Token returns a token and its user. It fails with errs.NotFound.
	Token(ctx context.Context, tenant, id string) (Token, Holder, error)
	// Tokens returns a page of the tokens of one type that are for an entity or, if they are
	// Personal, of a user: -createdAt (the default) or createdAt.
	Tokens(ctx context.Context, tenant string, of TokensOf, q paging.Query) (paging.Page[Token], error)
	// TokenOf returns one of them. It fails with errs.NotFound.
	TokenOf(ctx context.Context, tenant string, of TokensOf, id string) (Token, error)
	// DeleteToken removes one of them. It fails with errs.NotFound.
	DeleteToken(ctx context.Context, tenant string, of TokensOf, id string) error
	// DeleteTokensOf removes all tokens of some entities of a kind.
	DeleteTokensOf(ctx context.Context, tenant string, kind entity.Kind, ids []string) error
	// LiveTokens returns how many tokens of a user have not expired at a time.
	LiveTokens(ctx context.Context, tenant, username string, at time.Time) (int, error)
	// DeleteTokens removes the tokens of a user and returns their number.
	DeleteTokens(ctx context.Context, tenant, username string) (int, error)
	// EndLogins removes the sessions and the personal tokens of some users. Tokens for apps and
	// assistants are theirs, and stay.
	EndLogins(ctx context.Context, tenant string, usernames []string) error
	// Count adds to the counters of tokens. LastAccessedAt never decreases. Tokens that no longer
	// exist are skipped.
	Count(ctx context.Context, tenant string, uses map[string]Use) error
	// OfUsers returns how many tokens some users have, and how many sessions that have not ended at
	// a time.
	OfUsers(ctx context.Context, tenant string, usernames []string, at time.Time) (tokens, sessions int, err error)
	// Sweep removes the sessions that ended before a time and returns their number.
	Sweep(ctx context.Context, tenant string, before time.Time) (int, error)
	// CountTokens returns how many API tokens a tenant has.
	CountTokens(ctx context.Context, tenant string) (int, error)
}

// Authenticator authenticates users of a domain by their passwords. domains.Unchecked implements it
// and, for the domain local only, principals.Unchecked. Authenticate returns errs.Unauthenticated
// if it refuses.
type Authenticator interface {
	Authenticate(ctx context.Context, c principals.Credentials) (principals.User, error)
}

// Tenants returns the tenants. tenants.Unchecked implements it.
type Tenants interface {
	IDs(ctx context.Context) ([]string, error)
}

// Options configure a Service. Store, Directory and Tenants are required.
type Options struct {
	Store         Store
	Authenticator Authenticator
	Tenants       Tenants
	Lifetime      time.Duration    // of a session; default 12 hours
	Refusal       time.Duration    // a login at an unknown tenant takes as long; default 0
	Now           func() time.Time // default time.Now
	NewID         func() string    // of a token; default UUIDv7
	NewSecret     func() string    // default 32 random bytes in base64url
	// Keys is required for sessions that begin at a provider.
	Keys Sealer
	// Apps is required for the tokens of apps.
	Apps Apps
	// Assistants is required for the tokens of assistants.
	Assistants Assistants
	// Domains is required for the tokens of domains.
	Domains Domains
	// Changes returns how often this process has changed what a tenant's credentials depend on: the
	// number grows when the stores of sessions and principals commit. Credentials are kept in
	// memory for up to a second while it stays the same. Default nil: every credential is looked
	// up.
	Changes func(tenant string) uint64
	Feed    *entity.Changes // nil: changes are not announced
	// Observer is notified of look-ups of credentials, logins at unknown tenants, and logins that
	// are refused because there are too many; may be nil.
	Observer entity.Observer
}

// Service implements login, logout, sessions and tokens over a Store.
type Service struct {
	o     Options
	clock clock.Clock
	// by token: a request does not write, and a process that is killed loses what it counted since
	// the last flush
	uses     *tally.Tally[string, Use]
	pending  *limiter.Limiter // of logins, by client network and tenant
	known    *knownTenants
	tokensOf map[string]tokensOf // by type
	sessions *cache.Cache[lookup[Session]]
	tokens   *cache.Cache[lookup[Token]]
	holders  *cache.Cache[Holder]
}

// lookup is the cached result of looking a credential up. Requests share it, so the holder's teams
// must not be changed.
type lookup[T any] struct {
	of     T
	holder Holder
}

// New returns a Service.
func New(o Options) *Service {
	if o.Lifetime == 0 {
		o.Lifetime = 12 * time.Hour
	}
	if o.NewSecret == nil {
		o.NewSecret = newSecret
	}
	times := clock.New(o.Now, o.NewID)
	s := &Service{
		clock: times,
		pending: limiter.New(limiter.Options{
			Capacity: maxPending, PerKey: maxPendingFrom, PerSubkey: maxPendingAt, Observer: o.Observer, Kind: "login",
		}),
		known: newKnownTenants(o.Tenants, times), tokensOf: newTokensOf(o),
		o: o, uses: tally.New(Use.plus, func(ctx context.Context, tenant string, counted map[string]Use) error {
			return o.Store.Count(ctx, tenant, counted)
		}),
		sessions: cache.New[lookup[Session]](o.Changes),
		tokens:   cache.New[lookup[Token]](o.Changes), holders: cache.New[Holder](o.Changes),
	}
	if o.Observer != nil {
		hit := func(ctx context.Context, tenant string) {
			start := time.Now()
			s.observeLookup(s.beginLookup(ctx, "cache"), tenant, "cache", nil, start)
		}
		s.sessions.OnHit(hit)
		s.tokens.OnHit(hit)
	}
	return s
}

// beginLookup notifies the Observer of a look-up of a credential that begins.
func (s *Service) beginLookup(ctx context.Context, source string) context.Context {
	return entity.Begin(ctx, s.o.Observer, entity.CredentialWork, source)
}

// observeLookup notifies the Observer of a look-up of a credential that ends.
func (s *Service) observeLookup(ctx context.Context, tenant, source string, err error, start time.Time) {
	entity.Observe(ctx, s.o.Observer, entity.Observation{
		Work: entity.CredentialWork, Tenant: tenant, Kind: source, Outcome: entity.Outcome(err), Start: start,
	})
}

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A credential has a kind, the tenant (so that it is looked up as one row of one tenant) and a
// secret, separated by dots. That of a token also has its id.
const (
	sessionKind = "tcs"
	tokenKind   = "tct"
	visitorKind = "tcv" // of an AppView
	chatKind    = "tca" // of a Chat

	provisionerKind = "tcp" // of a SCIM

	maxCredential = 512 // bytes
)

// wellFormed reports whether the parts of a credential have only characters of tenant ids, UUIDs
// and base64url.
func wellFormed(parts []string) bool {
	for _, p := range parts {
		if p == "" || strings.IndexFunc(p, odd) >= 0 {
			return false
		}
	}
	return true
}

func odd(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// Login is a new session.
type Login struct {
	Token     string // the credential; it is not stored and cannot be read again
	ExpiresAt time.Time
	Tenant    string
	User      principals.User
}

// Login checks a password and starts a session. c.Tenant may be empty: see Unchecked.Tenant.
// Errors: errs.Unauthenticated "Unable to log in", the same for every reason; errs.Busy when too
// many log in from the client's network, at the tenant or at all, whoever they are; errs.Upstream
// when the domain's directory cannot be asked.
func (s *Service) Login(ctx context.Context, c principals.Credentials) (Login, error) {
	tenant, err := s.Unchecked().Tenant(ctx, c.Tenant)
	if err != nil {
		return Login{}, err
	}
	c.Tenant = tenant
	leave, err := s.pending.Acquire(ctx, 1, actor.OriginOf(ctx).Network(), tenant)
	if errors.Is(err, limiter.ErrBusy) {
		return Login{}, errs.Wrap(errs.Busy, err, "Too many people log in at the moment. Try again later.")
	}
	if err != nil {
		return Login{}, err
	}
	defer leave()
	known, err := s.known.has(ctx, tenant)
	if err != nil {
		return Login{}, err
	}
	if !known {
		start := time.Now()
		entity.Observe(
			entity.Begin(ctx, s.o.Observer, entity.LoginWork, ""), s.o.Observer,
			entity.Observation{Work: entity.LoginWork, Outcome: string(errs.Unauthenticated), Start: start},
		)
		pause(ctx, s.o.Refusal)
		return Login{}, errs.Wrap(
			errs.Unauthenticated, errs.New(errs.NotFound, "there is no such tenant"), "Unable to log in",
		)
	}
	now := s.clock.Stamp() // before the password is checked: a change from now on ends this session, too
	user, err := s.o.Authenticator.Authenticate(ctx, c)
	if err != nil {
		return Login{}, refused(err)
	}
	return s.start(ctx, tenant, user, now, nil)
}

// start starts a session. at is the session at a provider that it begins with, nil for none.
func (s *Service) start(
	ctx context.Context, tenant string, user principals.User, now time.Time, at *ProviderSession,
) (Login, error) {
	secret := s.o.NewSecret()
	session := Session{ID: hash(secret), Username: user.Username, CreatedAt: now, ExpiresAt: now.Add(s.o.Lifetime)}
	if user.PasswordSetAt != nil {
		session.PasswordSetAt = *user.PasswordSetAt
	}
	if at != nil {
		var err error
		if session.Provider, err = s.store(tenant, session.ID, *at); err != nil {
			return Login{}, err
		}
	}
	login := entity.Subject{Kind: entity.KindUser, ID: user.Username, Action: entity.ActionLogin}
	err := s.o.Feed.In(ctx, nil, tenant, login, func(ctx context.Context) error {
		return s.o.Store.InsertSession(ctx, tenant, session)
	})
	if err != nil {
		return Login{}, refused(err)
	}
	return Login{
		Token: sessionKind + "." + tenant + "." + secret, ExpiresAt: session.ExpiresAt, Tenant: tenant, User: user,
	}, nil
}

// refused returns the common refusal if the user was deleted during the login, and other errors as
// they are.
func refused(err error) error {
	switch errs.CodeOf(err) {
	case errs.NotFound, errs.Conflict:
		return errs.Wrap(errs.Unauthenticated, err, "Unable to log in")
	}
	return err
}

// Logout ends the caller's session. An API token or a host's own actor has none to end. While the
// database is busy with a long change of others the session has ended, too, but that is not stored,
// and Logout returns errs.Unavailable.
func (s *Service) Logout(ctx context.Context) error {
	a, err := actor.From(ctx)
	if err != nil || a.Session == "" {
		return err
	}
	return s.o.Store.EndSession(ctx, a.Tenant, a.Session)
}

// LogoutStored is Logout that leaves the session as it is if its end cannot be stored: for a logout
// at a provider, which is repeated as a whole.
func (s *Service) LogoutStored(ctx context.Context) error {
	a, err := actor.From(ctx)
	if err != nil || a.Session == "" {
		return err
	}
	return s.o.Store.DeleteSession(ctx, a.Tenant, a.Session)
}

// unauthenticated returns the error for every invalid credential.
func unauthenticated() error {
	return errs.New(errs.Unauthenticated, "The session or token is missing, not valid or has expired. Log in first.")
}

// Authenticate returns the actor of a credential that came from an address. It runs one statement,
// and none for a malformed credential. It returns the same errs.Unauthenticated for every reason.
func (s *Service) Authenticate(ctx context.Context, credential string, from netip.Addr) (actor.Actor, error) {
	if len(credential) > maxCredential {
		return actor.Actor{}, unauthenticated()
	}
	parts := strings.Split(credential, ".")
	switch {
	case !wellFormed(parts):
	case len(parts) == 3 && parts[0] == sessionKind:
		return s.session(ctx, parts[1], hash(parts[2]))
	case len(parts) == 4 && parts[0] == tokenKind:
		return s.token(ctx, parts[1], parts[2], from, func(t Token) bool {
			return subtle.ConstantTimeCompare([]byte(hash(parts[3])), []byte(t.SecretHash)) == 1
		})
	}
	return actor.Actor{}, unauthenticated()
}

// outdated reports whether the user has another password than the one that the session began under.
func (x Session) outdated(holder Holder) bool {
	if x.PasswordSetAt.IsZero() { // there was none
		return x.CreatedAt.Before(holder.PasswordSetAt)
	}
	return !x.PasswordSetAt.Equal(holder.PasswordSetAt)
}

// session returns the actor of the session with an id.
func (s *Service) session(ctx context.Context, tenant, id string) (actor.Actor, error) {
	found, err := s.sessions.Get(ctx, tenant, id, func() (l lookup[Session], err error) {
		start, ctx := time.Now(), s.beginLookup(ctx, "database")
		l.of, l.holder, err = s.o.Store.Session(ctx, tenant, id)
		s.observeLookup(ctx, tenant, "database", err, start)
		return l, err
	})
	if err != nil {
		return actor.Actor{}, hide(err)
	}
	session, holder := found.of, found.holder
	if !s.clock.Stamp().Before(session.ExpiresAt) || session.outdated(holder) {
		return actor.Actor{}, unauthenticated()
	}
	a, err := holder.actor(tenant)
	a.Session = session.ID
	return a, err
}

// token returns the actor of the personal token with an id, if it is genuine.
func (s *Service) token(
	ctx context.Context, tenant, id string, from netip.Addr, genuine func(Token) bool,
) (actor.Actor, error) {
	_, a, err := s.use(ctx, tenant, id, from, func(t Token) bool {
		same := genuine(t)
		return t.Type == Personal && same
	})
	return a, err
}

// use returns the token with an id and its user, if it is genuine, and counts the use. It calls
// genuine with the zero Token if there is none, so that a refusal lasts as long. Errors:
// errs.Unauthenticated, the same for every reason.
func (s *Service) use(
	ctx context.Context, tenant, id string, from netip.Addr, genuine func(Token) bool,
) (Token, actor.Actor, error) {
	t, holder, err := s.admit(ctx, tenant, id, from, genuine)
	if err != nil {
		return Token{}, actor.Actor{}, err
	}
	a, err := holder.actor(tenant)
	if err != nil {
		return Token{}, actor.Actor{}, err
	}
	s.count(tenant, t)
	a.Token, a.ReadOnly = t.ID, t.ReadOnly
	return t, a, nil
}

// admit is use that counts refusals alone, whatever has become of the user.
func (s *Service) admit(
	ctx context.Context, tenant, id string, from netip.Addr, genuine func(Token) bool,
) (Token, Holder, error) {
	found, err := s.tokens.Get(ctx, tenant, id, func() (l lookup[Token], err error) {
		start, ctx := time.Now(), s.beginLookup(ctx, "database")
		l.of, l.holder, err = s.o.Store.Token(ctx, tenant, id)
		s.observeLookup(ctx, tenant, "database", err, start)
		return l, err
	})
	if err != nil {
		genuine(Token{})
		return Token{}, Holder{}, hide(err)
	}
	if !genuine(found.of) {
		return Token{}, Holder{}, unauthenticated()
	}
	if !found.of.admits(s.clock.Stamp(), from) {
		s.uses.Add(tenant, id, Use{Blocked: 1})
		return Token{}, Holder{}, unauthenticated()
	}
	return found.of, found.holder, nil
}

// count counts a use of a token.
func (s *Service) count(tenant string, t Token) {
	s.uses.Add(tenant, t.ID, Use{Requests: 1, LastAccessedAt: s.clock.Stamp()})
}

// hide returns the error for invalid credentials if there is no such session, and other errors as
// they are.
func hide(err error) error {
	if errs.CodeOf(err) == errs.NotFound {
		return unauthenticated()
	}
	return err
}

func (h Holder) actor(tenant string) (actor.Actor, error) {
	if !h.Enabled {
		return actor.Actor{}, unauthenticated()
	}
	return actor.Actor{
		Tenant:    tenant,
		User:      h.Username,
		Superuser: h.Superuser,
		AI:        h.AI || h.Superuser,
		Teams:     h.Teams,
	}, nil
}
