package principals

import (
	"cmp"
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// settleTime is how long recording an attempt may take after its caller has gone.
const settleTime = 10 * time.Second

// Recording an attempt holds a database connection while it waits for other writers of the same
// user, such as an import. So few attempts of a tenant are recorded at once, fewer than passwords
// are hashed.
const (
	maxCounting   = 4
	maxAllCounted = 16
)

// Credentials are what a user types to log in.
type Credentials struct {
	Tenant   string
	Domain   string // id of the domain that checks the password
	Username string // in any spelling
	Password string
}

// PasswordChange is what a user types to change a password.
type PasswordChange struct {
	Current string // "" if a superuser sets another user's
	New     string
}

// Authenticate checks a password. Users are found ignoring case; only those of the domain Local can
// pass. The count is a transaction of its own: do not call it inside one.
//
// Every refusal is the same errs.Unauthenticated "Unable to log in" with the reason as its cause:
// unknown tenant, user or domain, no, wrong or expired password, disabled, locked. A password is
// hashed only when it may be right: the caller equalizes the time of refusals. Failures are counted
// by the client's network (actor.OriginOf): ten in a row lock the user for that network, a hundred
// within 15 minutes for all networks but those of the user's logins within 30 days; a lock lasts 15
// minutes, nothing is counted meanwhile, and afterwards its count starts again. A password that was
// right is refused when the last wrong one arrived before it was counted. Other errors mean that
// nothing could be found out.
func (p Unchecked) Authenticate(ctx context.Context, c Credentials) (User, error) {
	l, err := p.s.passes(ctx, c)
	if err != nil {
		return User{}, err
	}
	u, err := p.s.store.User(ctx, c.Tenant, l.Username)
	if u.PasswordSetAt = nil; !l.SetAt.IsZero() { // that of the password that was right
		u.PasswordSetAt = &l.SetAt
	}
	return p.s.seen(u), err
}

// passes checks and counts a password, and returns the login that it belongs to. Errors: refusals
// as in Authenticate.
func (s *Service) passes(ctx context.Context, c Credentials) (right Login, passed error) {
	tenant, domain, username, password := c.Tenant, c.Domain, c.Username, c.Password
	if !escapes.StorableWithin(tenant, 255) || !escapes.StorableWithin(username, maxOldUsername) {
		tenant, username = "", "" // nobody's; looked for all the same
	}
	if utf8.RuneCountInString(password) > maxRunes {
		password = "" // nobody's either
	}
	folded, err := s.key(ctx, tenant, username)
	if err != nil {
		return Login{}, err
	}
	network := actor.OriginOf(ctx).Network()
	l, correct, admitted, err := s.check(ctx, tenant, domain, folded, password)
	if err != nil {
		return Login{}, err
	}
	caller := ctx
	defer func() { // after all places are left
		if errs.CodeOf(passed) == errs.Unauthenticated {
			s.pause(caller, admitted)
		}
	}()
	if domain != Local {
		return Login{}, refusedFor(l.closed(domain, s.clock.Now()))
	}
	ctx = context.WithoutCancel(ctx) // the attempt counts even if the client hangs up now
	leave, err := s.counting.Acquire(ctx, 1, tenant)
	if err != nil {
		return Login{}, limiter.Unavailable(err, "Too many people of this tenant log in at the moment. Try again.")
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	correct = correct && password != ""
	// it may be kept in memory, the password not
	attempt := s.attempt(domain, func(now *Login) bool { return correct && now.Hash == l.Hash })
	err = s.store.Attempt(ctx, tenant, folded, network, attempt.edit)
	refused, lock := attempt.refused, attempt.lock
	switch {
	case errs.CodeOf(err) == errs.NotFound:
		return Login{}, refusedFor(cmp.Or(l.closed(domain, s.clock.Now()), err))
	case err != nil:
		return Login{}, err
	case refused != nil:
		s.noteLock(ctx, "user locked", tenant, l.Username, lock)
		return Login{}, refusedFor(refused)
	}
	return l, nil
}

// attempt is one to log in. The first call of edit decides on it.
type attempt struct {
	s       *Service
	domain  string
	right   func(now *Login) bool // whether the credentials are right
	at      time.Time
	decided bool
	refused error
	lock    string // what it has locked: see Login.fail
	after   Login
}

func (s *Service) attempt(domain string, right func(now *Login) bool) *attempt {
	return &attempt{s: s, domain: domain, right: right}
}

// errOutdated is returned by a later call of attempt.edit for somebody who was let in and would not
// be any more.
var errOutdated = errs.New(errs.Conflict, "The login was changed after the attempt.")

// edit is for Store.Attempt.
func (a *attempt) edit(now *Login) error {
	at := a.at
	if !a.decided {
		at = a.s.clock.Stamp()
	}
	refused, lock := now.closed(a.domain, at), ""
	switch {
	case refused != nil:
	case a.right(now):
		now.succeed(at)
	default:
		refused = errors.New("the password is wrong")
		lock = now.fail(at)
	}
	if a.decided && a.refused == nil && refused != nil {
		return errOutdated
	}
	if !a.decided {
		a.decided, a.at, a.refused, a.lock, a.after = true, at, refused, lock, *now
	}
	return nil
}

// check looks a login up and hashes the password in one place of the hasher, so that a thousand
// logins at once do not take every database connection. It returns the zero Login if there is none.
// For nobody, and for a login that is closed, it does not hash but takes as long: on a busy machine
// that is longer than the refusal, and would tell who exists.
func (s *Service) check(
	ctx context.Context, tenant, domain, folded, password string,
) (l Login, right bool, admitted time.Time, err error) {
	leave, err := s.passwords.enter(ctx, tenant)
	if err != nil {
		return Login{}, false, admitted, err
	}
	defer leave()
	admitted = time.Now()
	l, err = s.store.Login(ctx, tenant, folded, actor.OriginOf(ctx).Network())
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return Login{}, false, admitted, err
	}
	if domain != Local {
		return l, false, admitted, nil
	}
	if l.closed(domain, s.clock.Now()) != nil {
		pause(ctx, s.passwords.lastTook())
		return l, false, admitted, nil
	}
	return l, s.passwords.check(l.Hash, password), admitted, nil
}

// pause waits until Options.Refusal has passed since the password left the queue. The time in the
// queue does not depend on whether the user exists. It holds no place of a limiter meanwhile.
func (s *Service) pause(ctx context.Context, admitted time.Time) {
	pause(ctx, time.Until(admitted.Add(s.refusal)))
}

// pause waits for d, or until the client has gone.
func pause(ctx context.Context, d time.Duration) {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
}

// SetPassword changes a password and so ends the user's sessions. A user may change their own and
// has to know the current one, which counts as a login does; a superuser sets that of others, whose
// failures and lock it ends. The functions also run in the same transaction.
// Errors: errs.Forbidden, also for a wrong current password; errs.NotFound; errs.Invalid for a
// password of less than 8 or more than 256 characters, for one's own without the current one, or
// when the user's domain is not Local.
func (s *Service) SetPassword(
	ctx context.Context, username string, change PasswordChange, also ...func(context.Context) error,
) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	if err := s.selfOrSuperuser(ctx, a, username); err != nil {
		return err
	}
	if a.User != username {
		return s.setPassword(ctx, a.Tenant, username, change.New, also...)
	}
	if err := s.takesPassword(ctx, a.Tenant, username, change.New); err != nil {
		return err
	}
	if change.Current == "" {
		return errs.New(errs.Invalid, "currentPassword is required")
	}
	own := Credentials{Tenant: a.Tenant, Domain: Local, Username: username, Password: change.Current}
	if _, err := s.passes(ctx, own); errs.CodeOf(err) == errs.Unauthenticated {
		return errs.Wrap(errs.Forbidden, err, "The current password is wrong, or the user is locked.")
	} else if err != nil {
		return err
	}
	return s.setPassword(ctx, a.Tenant, username, change.New, also...)
}

// MoveToLocal moves a user of another domain to Local, where a password is set, and so ends the
// user's sessions. It needs a superuser. What the user has of the old domain is removed as by
// UpdateUser. The functions also run in the same transaction.
// Errors: errs.Forbidden; errs.NotFound; errs.Invalid for a password as SetPassword, and for a user
// of Local.
func (s *Service) MoveToLocal(
	ctx context.Context, username, password string, also ...func(context.Context) error,
) error {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	if err := validPassword(password); err != nil {
		return err
	}
	if u, err := s.user(ctx, a.Tenant, username); err != nil || u.Domain == Local {
		return cmp.Or(
			err, errs.New(errs.Invalid, "domain must be left out: the user is of the domain %s already", Local),
		)
	}
	hash, err := s.passwords.hash(ctx, password)
	if err != nil {
		return err
	}
	of := entity.Subject{Kind: KindUser, ID: username, Action: entity.ActionUpdate}
	return s.feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, a.Tenant); err != nil {
			return err
		}
		_, err := s.store.UpdateUser(ctx, a.Tenant, username, func(u *User) error {
			was := *u
			u.Domain, u.UpdatedAt = Local, s.clock.Stamp()
			u.leave(was)
			return nil
		})
		if err != nil {
			return err
		}
		key, err := s.key(ctx, a.Tenant, username)
		if err == nil {
			err = s.store.EditLogin(ctx, a.Tenant, key, "", s.newPassword(hash))
		}
		for _, and := range also {
			if err == nil {
				err = and(ctx)
			}
		}
		return err
	})
}

// SetPassword sets the password of a user of the domain Local, whatever c.Domain is, as a superuser
// does with Service.SetPassword. The functions also run in the same transaction. Errors:
// errs.NotFound; errs.Invalid.
func (p Unchecked) SetPassword(ctx context.Context, c Credentials, also ...func(context.Context) error) error {
	return p.s.setPassword(ctx, c.Tenant, c.Username, c.Password, also...)
}

func (s *Service) setPassword(
	ctx context.Context, tenant, username, password string, also ...func(context.Context) error,
) error {
	if err := s.takesPassword(ctx, tenant, username, password); err != nil {
		return err
	}
	hash, err := s.passwords.hash(ctx, password)
	if err != nil {
		return err
	}
	unlocks := false
	of := entity.Subject{Kind: KindUser, ID: username, Action: entity.ActionUpdate}
	err = s.feed.In(ctx, s.store.InTx, tenant, of, func(ctx context.Context) error {
		key, err := s.key(ctx, tenant, username)
		if err != nil {
			return err
		}
		err = s.store.EditLogin(ctx, tenant, key, "", func(l *Login) error {
			unlocks = l.lockedAnywhere(s.clock.Now())
			return s.newPassword(hash)(l)
		})
		for _, and := range also {
			if err == nil {
				err = and(ctx)
			}
		}
		return err
	})
	if err == nil && unlocks {
		s.noteLock(ctx, "user unlocked", tenant, username, "user")
	}
	return err
}

// takesPassword returns an error for an invalid password, and if the user does not exist or is not
// in the domain Local.
func (s *Service) takesPassword(ctx context.Context, tenant, username, password string) error {
	if err := validPassword(password); err != nil {
		return err
	}
	u, err := s.user(ctx, tenant, username)
	if err != nil {
		return err
	}
	return mayHavePassword(u)
}

func mayHavePassword(u User) error {
	if !u.ManagesPassword() {
		return errs.New(errs.Invalid, "Users of the domain %s have no password here.", u.Domain)
	}
	return nil
}

// newPassword returns an edit that sets a hash, "" for none.
func (s *Service) newPassword(hash string) func(*Login) error {
	return func(l *Login) error {
		if l.Domain != Local && hash != "" { // it has moved meanwhile
			return mayHavePassword(User{Domain: l.Domain})
		}
		at := s.clock.Stamp()
		if at.Equal(l.SetAt) { // sessions are told apart by it
			at = at.Add(time.Microsecond)
		}
		l.Hash, l.SetAt, l.ExpiresAt = hash, at, time.Time{}
		l.unlock()
		return nil
	}
}
