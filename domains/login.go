package domains

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/principals"
)

// pending is a login in progress at a provider. It is kept in a cookie of its browser, sealed for
// its state, so that nothing is stored for callers who have not logged in.
type pending struct {
	Domain   string    `json:"d"`
	Memory   []byte    `json:"m"` // what the driver wants to know again
	ReturnTo string    `json:"r"` // Return.To
	Errors   bool      `json:"f,omitempty"`
	Ends     time.Time `json:"e"`
}

func (p pending) back() Return { return Return{To: p.ReturnTo, Errors: p.Errors} }

// The table and column that a pending login is sealed for; the row is the state's hash. There is no
// such table.
const (
	pendingTable  = "cookie"
	pendingColumn = "login"
)

// maxPending is how many bytes of a cookie every browser stores.
const maxPending = 3800

// loginTimeout is how long a login at a provider may take.
const loginTimeout = 10 * time.Minute

// kept is how long the record of a used login is stored after loginTimeout: longer than a statement
// may wait.
const kept = time.Minute

func newSecret() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// refusal returns the error of every login that fails. The cause is logged.
func refusal(cause error) error {
	if errs.MessageOf(cause) == "Unable to log in" { // it is one already
		return cause
	}
	return errs.Wrap(errs.Unauthenticated, cause, "Unable to log in")
}

const (
	maxCheck = 15 * time.Second
	// MinRefusal is how long a refused login takes at least, beside its wait for other logins.
	MinRefusal = 150 * time.Millisecond
)

// Authenticate checks a name and a password, for sessions: with principals for the domain local,
// and with the domain's directory for others. The first login creates the user.
//
// A directory has 15 seconds to answer, whatever the configuration, and serves at most 8 logins of
// a domain and 12 of a tenant at once. Every refusal takes 150 milliseconds at least, so that its
// duration does not reveal whether the domain or user exists. For a user who is locked or disabled
// here the directory is not asked, so that attempts do not lock the person there.
//
// Errors: errs.Unauthenticated "Unable to log in", the same for every reason; errs.Upstream if the
// directory cannot be reached; errs.Unavailable after 30 seconds if too many other logins use it.
// An empty password is never sent to a directory.
func (u Unchecked) Authenticate(
	ctx context.Context, c principals.Credentials,
) (principals.User, error) {
	start := time.Now()
	ctx = entity.Begin(ctx, u.s.o.Observer, entity.LoginWork, "")
	admitted, driver := start, ""
	user, err := u.s.authenticate(ctx, c, &admitted, &driver)
	u.s.observeLogin(ctx, c.Tenant, driver, start, err)
	if errs.CodeOf(err) == errs.Unauthenticated {
		soonest := time.NewTimer(time.Until(admitted.Add(u.s.limits.refusal)))
		defer soonest.Stop()
		select {
		case <-soonest.C:
		case <-ctx.Done(): // the client has gone
		}
	}
	return user, err
}

func (s *Service) authenticate(
	ctx context.Context, c principals.Credentials, admitted *time.Time, driver *string,
) (principals.User, error) {
	tenant, domain, username, password := c.Tenant, c.Domain, c.Username, c.Password
	if domain == Local {
		*driver = Local
		return s.o.Principals.Authenticate(ctx, c)
	}
	d, _, err := s.asks(ctx, tenant, domain)
	if *driver = d.Type; err != nil {
		return principals.User{}, err
	}
	if username == "" || password == "" || !plain(username) || !escapes.Storable(password) {
		return principals.User{}, refusal(errors.New("the name or the password is empty, or not a text"))
	}
	// The place is held to the end: a thousand first logins at once also wait for each other in the
	// database, and must not take every connection meanwhile.
	leave, err := s.takePlace(ctx, place{tenant, domain})
	if err != nil {
		return principals.User{}, err
	}
	defer leave()
	*admitted = time.Now()
	d, login, err := s.asks(ctx, tenant, domain) // as it is after the wait
	if err != nil {
		return principals.User{}, err
	}
	asked, account := false, username
	if names, ok := login.(AccountNames); ok {
		// failures count against one user, whatever form of the name was typed
		account = cmp.Or(names.Account(username), username)
	}
	u, err := s.o.Principals.LoginWith(ctx, tenant, principals.Source{Domain: domain, Driver: d.Type}, account,
		func(ctx context.Context) (Identity, error) {
			asked = true
			who, err := s.check(ctx, login, username, password)
			if err == nil {
				err = s.setIDs(ctx, d, IDAttributes{People: who.IDAttribute})
			}
			return who, err
		})
	if !asked && errs.CodeOf(err) == errs.Unauthenticated {
		if _, failed := s.check(ctx, login, rand.Text(), rand.Text()); failed != nil &&
			errs.CodeOf(failed) != errs.Unauthenticated {
			err = failed
		}
	}
	return u, hidden(err)
}

// observeLogin notifies the Observer of a login that ends. driver is "" if it is not known.
func (s *Service) observeLogin(ctx context.Context, tenant, driver string, start time.Time, err error) {
	entity.Observe(ctx, s.o.Observer, entity.Observation{
		Work: entity.LoginWork, Tenant: tenant, Kind: driver, Outcome: entity.Outcome(err), Start: start,
	})
}

// asks returns a domain and its PasswordLogin. It returns the refusal of a login if there is none.
func (s *Service) asks(ctx context.Context, tenant, domain string) (Domain, PasswordLogin, error) {
	d, err := s.get(ctx, tenant, domain)
	if err == nil {
		var realm Realm
		if realm, err = s.open(d); err == nil {
			if login, ok := realm.(PasswordLogin); ok {
				return d, login, nil
			}
			err = errs.New(errs.Invalid, "The domain %s is not for logins with a password.", d.ID)
		}
	}
	switch errs.CodeOf(err) {
	case errs.NotFound, errs.Invalid:
		err = refusal(err)
	}
	return Domain{}, nil, err
}

// check checks a password with a directory, with a time-out.
func (s *Service) check(ctx context.Context, login PasswordLogin, username, password string) (Identity, error) {
	limited, cancel := context.WithTimeout(ctx, s.checkTime)
	defer cancel()
	who, err := login.Login(limited, username, password)
	if err != nil && errs.CodeOf(err) != errs.Unauthenticated && limited.Err() != nil && ctx.Err() == nil {
		err = errs.Wrap(errs.Upstream, err, "The directory has not checked the password in %v.", s.checkTime)
	}
	return who, err
}

// hidden removes the directory's own message from an error for callers who have not logged in.
func hidden(err error) error {
	switch errs.CodeOf(err) {
	case errs.Unauthenticated:
		return refusal(err)
	case errs.Upstream:
		return errs.Wrap(
			errs.Upstream, err,
			"The directory or provider of this domain cannot be asked at the moment. Try again.",
		)
	}
	return err
}

// Started is a login that was sent to a provider.
type Started struct {
	Location string     // where the browser goes
	Form     url.Values // what it posts there; nil: it is redirected
	State    string     // comes back with it
	Browser  string     // kept by the browser meanwhile, so that no other one can finish this login
	Ends     time.Time
}

// errNoSSO returns the error for every tenant and domain without a redirect login. The reason is
// logged.
func errNoSSO(why error) error {
	return errs.Wrap(errs.NotFound, why, "There is no single sign-on here.")
}

// redirects returns a domain that logs in by redirects, with its realm.
func (s *Service) redirects(ctx context.Context, tenant, domain string) (Domain, RedirectLogin, error) {
	d, err := s.get(ctx, tenant, domain)
	if err != nil {
		if errs.CodeOf(err) == errs.NotFound {
			err = errNoSSO(err)
		}
		return Domain{}, nil, err
	}
	realm, err := s.open(d)
	if err != nil {
		if errs.CodeOf(err) == errs.Invalid {
			err = errNoSSO(err)
		}
		return Domain{}, nil, err
	}
	login, ok := realm.(RedirectLogin)
	if !ok {
		return Domain{}, nil, errNoSSO(errs.New(errs.Invalid, "The domain %s is not for single sign-on.", d.ID))
	}
	return d, login, nil
}

// Return is where a browser goes after a login at a provider.
type Return struct {
	To     string // a path at this service, "" for none
	Errors bool   // also after a login that failed
}

// Begin starts a login at a domain's provider. Errors: errs.NotFound, the same for every reason;
// errs.Invalid for a back.To that is no path, and for one that is too long; errs.Upstream.
func (u Unchecked) Begin(ctx context.Context, tenant, domain string, at Endpoints, back Return) (Started, error) {
	if !IsPath(back.To) {
		return Started{}, errs.New(errs.Invalid, "returnTo must be a path of this service, such as /apps")
	}
	d, login, err := u.s.redirects(ctx, tenant, domain)
	if err != nil {
		return Started{}, err
	}
	now := u.s.clock.Stamp()
	begun := Started{State: newState(now, u.s.o.NewSecret()), Ends: now.Add(loginTimeout)}
	location, form, memory, err := begin(ctx, login, at, begun.State)
	if err != nil {
		return Started{}, hidden(err)
	}
	begun.Location, begun.Form = location, form
	p := pending{Domain: d.ID, Memory: memory, ReturnTo: back.To, Errors: back.Errors, Ends: begun.Ends}
	begun.Browser, err = u.s.keep(tenant, begun.State, p)
	if err != nil || len(begun.Browser) <= maxPending {
		return begun, err
	}
	p.ReturnTo = ""
	without, err := u.s.keep(tenant, begun.State, p)
	switch {
	case err != nil:
	case len(without) > maxPending:
		err = fmt.Errorf("domains: the driver %s wants to know too much again: %d bytes", d.Type, len(memory))
	default:
		err = errs.New(errs.Invalid, "returnTo is too long for a login at this domain")
	}
	return Started{}, err
}

// keep seals a login for the cookie of its browser.
func (s *Service) keep(tenant, state string, p pending) (string, error) {
	var plain bytes.Buffer
	to := json.NewEncoder(&plain)
	to.SetEscapeHTML(false) // a path has many &
	if err := to.Encode(p); err != nil {
		return "", err
	}
	return s.sealer.Seal(tenant, pendingTable, pendingColumn, hash(state), plain.Bytes())
}

// IsPath reports whether s is empty or a path that a browser resolves at the same service.
func IsPath(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "" && u.Host == "" && len(s) <= 1024 && plain(s) &&
		s[0] == '/' && !strings.HasPrefix(s, "//") && !strings.Contains(s, `\`)
}

// newState returns the state of a login: when it began, so that one that comes back too late can be
// told from one whose browser has lost its cookie, and a secret. The time is believed for that
// alone.
func newState(at time.Time, secret string) string {
	return strconv.FormatInt(at.Unix(), 36) + "." + secret
}

// begunAt returns when the login of a state began. It reports false for one that is not of
// newState.
func begunAt(state string) (at time.Time, ok bool) {
	when, secret, found := strings.Cut(state, ".")
	seconds, err := strconv.ParseInt(when, 36, 64)
	return time.Unix(seconds, 0), found && err == nil && secret != "" && len(state) <= maxState
}

// maxState is how many bytes a state has at most.
const maxState = 255

// Finished is a login that came back from a provider. Finish returns it also with an error, with
// what is known of it: of User the name alone that the provider calls the person.
type Finished struct {
	Tenant string
	User   principals.User
	Return Return
	Fault  Fault
	// Session is the session at the provider.
	Session ProviderSession
}

// Fault is why a login cannot be finished, where that is no matter of the person's rights: whoever
// logs in may be told.
type Fault string

// The faults of a login.
const (
	FaultNoCookie Fault = "no_cookie"     // the browser has not brought the cookie that it got when the login began
	FaultExpired  Fault = "login_expired" // it began more than ten minutes ago
	FaultUsed     Fault = "login_used"    // it has been finished before, whether it succeeded or not
)

// Finish completes a login that Begin started, after a check of what the provider sends. tenant and
// domain are those of the address that the provider sent the browser to, and browser is what the
// browser has kept. The first login creates the user. A login can be finished once, by its own
// browser, whether it succeeds or not. As with Authenticate, at most 8 of a domain and 12 of a
// tenant run at once.
// Errors: errs.Unauthenticated "Unable to log in", the same for every reason; errs.Upstream;
// errs.Unavailable if the login has not been used and may be tried again.
func (u Unchecked) Finish(
	ctx context.Context, tenant, domain string, at Endpoints, state, browser string, params url.Values,
) (done Finished, err error) {
	start := time.Now()
	ctx = entity.Begin(ctx, u.s.o.Observer, entity.LoginWork, "")
	var d Domain
	defer func() { u.s.observeLogin(ctx, tenant, d.Type, start, err) }()
	p, fault, err := u.s.pending(ctx, tenant, domain, state, browser)
	if done = (Finished{Tenant: tenant, Return: p.back(), Fault: fault}); err != nil {
		return done, err
	}
	leave, err := u.s.takePlace(ctx, place{tenant, domain})
	if err != nil {
		return done, err
	}
	defer leave()
	if done.Fault, err = u.s.use(ctx, tenant, domain, state, p); err != nil {
		return done, err
	}
	var login RedirectLogin
	if d, login, err = u.s.redirects(ctx, tenant, domain); err != nil {
		if errs.CodeOf(err) == errs.NotFound {
			err = refusal(err)
		}
		return done, err
	}
	who, err := login.Finish(ctx, at, p.Memory, Answer{Params: params, State: state})
	if err != nil {
		return done, hidden(err)
	}
	err = u.s.settle(ctx, d, who, &done)
	return done, err
}

// pending opens the sealed login that a browser has kept.
func (s *Service) pending(
	ctx context.Context, tenant, domain, state, browser string,
) (p pending, fault Fault, err error) {
	begun, ours := begunAt(state)
	switch {
	case state == "":
		return p, "", refusal(errors.New("an answer that nobody asked for: it has no state. Log-ins begin at this " +
			"service, at /api/login/" + domain +
			"/sso: make that the address of the tile or bookmark that people use"))
	case !ours || len(browser) > maxPending:
		return p, "", refusal(
			errors.New("an answer that nobody asked for: no login of this service has its state, or a cookie of " +
				"its length"),
		)
	case browser == "":
		return s.lost(ctx, tenant, state, begun)
	}
	plain, err := s.sealer.Open(tenant, pendingTable, pendingColumn, hash(state), browser)
	if err == nil {
		err = json.Unmarshal(plain, &p)
	}
	if err != nil {
		err = fmt.Errorf(
			"the cookie of the login does not open: the login is another tenant's, its cookie was changed, or it "+
				"was begun with another secret key: %w",
			err,
		)
		return pending{}, "", refusal(err)
	}
	return p, "", nil
}

// lost returns the fault and the error of a login without its cookie, which browsers remove when
// the login has been finished or has expired.
func (s *Service) lost(ctx context.Context, tenant, state string, begun time.Time) (pending, Fault, error) {
	if !s.clock.Now().Before(begun.Add(loginTimeout)) {
		return pending{}, FaultExpired, refusal(errExpired)
	}
	switch used, err := s.store.LoginUsed(ctx, tenant, hash(state)); {
	case err != nil:
		return pending{}, "", err
	case used:
		return pending{}, FaultUsed, refusal(errUsed)
	}
	return pending{}, FaultNoCookie, refusal(errors.New("the browser has not brought the cookie of this login"))
}

var (
	errExpired = errors.New("the login was begun more than ten minutes ago: whoever logs in must begin again")
	errUsed    = errors.New("the login was used before: its answer came twice, as when a page is loaded again or " +
		"somebody else has it")
)

// use makes a login used.
func (s *Service) use(ctx context.Context, tenant, domain, state string, p pending) (Fault, error) {
	if !s.clock.Now().Before(p.Ends) {
		// checked after the wait: once it has expired, Sweep may have removed the record of its use
		return FaultExpired, refusal(errExpired)
	}
	err := s.store.UseLogin(ctx, tenant, p.Domain, hash(state), p.Ends.Add(kept))
	switch {
	case errs.CodeOf(err) == errs.Conflict:
		if used, failed := s.store.LoginUsed(ctx, tenant, hash(state)); failed != nil || !used {
			return "", cmp.Or(
				failed,
				refusal(fmt.Errorf("the domain %s, where the login was begun, is not there any more", p.Domain)),
			)
		}
		return FaultUsed, refusal(errUsed)
	case err != nil:
		return "", err
	case p.Domain != domain:
		return "", refusal(fmt.Errorf(
			"the login was begun at the domain %s, and its answer came to another one: register the address of "+
				"each domain at its provider",
			p.Domain,
		))
	}
	return "", nil
}

// Metadata returns a document that describes this service to a domain's provider, which reads it by
// itself.
// Errors: errs.NotFound, the same for every reason.
func (u Unchecked) Metadata(
	ctx context.Context, tenant, domain string, at Endpoints,
) (document []byte, contentType string, err error) {
	_, login, err := u.s.redirects(ctx, tenant, domain)
	if err != nil {
		return nil, "", err
	}
	m, ok := login.(Metadata)
	if !ok {
		return nil, "", errNoSSO(errs.New(errs.Invalid, "The domain %s has no metadata.", domain))
	}
	return m.Metadata(at)
}
