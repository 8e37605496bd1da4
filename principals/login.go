package principals

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/limiter"
)

// Ten failures in a row lock a user for 15 minutes (DECISIONS, section 1).
const (
	maxAttempts = 10
	lockTime    = 15 * time.Minute
)

// settleTime is how long the note of an attempt may take after its caller has gone.
const settleTime = 10 * time.Second

// The note of an attempt waits for whoever writes to the same user, such as an import, with a connection to the database.
// So few of a tenant do at once, and not all turns of the passwords are theirs.
const (
	maxCounting   = 4
	maxAllCounted = 16
)

// Authenticate checks a password without an actor, for sessions. Users are found ignoring case; only those of the
// domain Local can pass.
//
// Every refusal is the same errs.Unauthenticated "Unable to log in" after exactly one hashing: unknown tenant, user or
// domain, no, wrong or expired password, disabled, locked. Ten refused passwords in a row lock the user for 15 minutes;
// while it is locked nothing is counted, and afterwards the count starts again. A password that was right is refused
// when the tenth wrong one arrived before it was counted. Other errors mean that nothing could be found out.
//
// The count is a transaction of its own: do not call it inside one.
func (s *Service) Authenticate(ctx context.Context, tenant, domain, username, password string) (User, error) {
	found, err := s.passes(ctx, tenant, domain, username, password)
	if err != nil {
		return User{}, err
	}
	if found == "" {
		return User{}, errRefused
	}
	u, err := s.store.User(ctx, tenant, found)
	return s.seen(u), err
}

// passes checks and counts a password. It gives the user's name, "" when the password is refused.
func (s *Service) passes(ctx context.Context, tenant, domain, username, password string) (string, error) {
	if !plain(tenant, 255) || !plain(username, maxUsername) {
		tenant, username = "", "" // nobody's; looked for all the same
	}
	if utf8.RuneCountInString(password) > maxRunes {
		password = "" // nobody's either
	}
	folded := fold.Text(username)
	l, right, err := s.check(ctx, tenant, folded, password)
	if err != nil {
		return "", err
	}
	if domain != Local || !l.open(s.now()) {
		folded = "" // neither counted nor let in; the way is the same, so that its time tells nothing
	}
	ctx = context.WithoutCancel(ctx) // a caller that hangs up now shall not have tried for nothing
	leave, err := s.counting.Acquire(ctx, 1, tenant)
	if err != nil {
		return "", limiter.Unavailable(err, "Too many people of this tenant log in at the moment. Try again.")
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	found := ""
	err = s.store.EditLogin(ctx, tenant, folded, func(now *Login) error {
		switch {
		case !now.open(s.now()): // it was closed meanwhile
		case right && password != "" && now.Hash == l.Hash:
			now.Attempts, now.LockedAt = 0, time.Time{}
			found = now.Username
		default:
			now.fail(s.stamp())
		}
		return nil
	})
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return "", err
	}
	return found, nil
}

// check looks a login up and hashes the password, in the one turn: a thousand logins at once shall not take every connection
// to the database. It gives no login, and takes its time, when there is none.
func (s *Service) check(ctx context.Context, tenant, folded, password string) (l Login, right bool, err error) {
	leave, err := s.passwords.enter(ctx)
	if err != nil {
		return Login{}, false, err
	}
	defer leave()
	l, err = s.store.Login(ctx, tenant, folded)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return Login{}, false, err
	}
	return l, s.passwords.check(l.Hash, password), nil
}

// open reports whether a right password would do.
func (l Login) open(now time.Time) bool {
	return l.Domain == Local && l.Hash != "" && l.free(now)
}

// free reports whether nothing but a wrong password would keep the user out.
func (l Login) free(now time.Time) bool {
	return l.Enabled && !locked(l.LockedAt, now) && (l.ExpiresAt.IsZero() || now.Before(l.ExpiresAt))
}

// fail counts a failure. A lock that has run out starts the count again.
func (l *Login) fail(now time.Time) {
	if !l.LockedAt.IsZero() {
		l.Attempts, l.LockedAt = 0, time.Time{}
	}
	l.Attempts++
	if l.Attempts >= maxAttempts {
		l.LockedAt = now
	}
}

func locked(at, now time.Time) bool { return !at.IsZero() && now.Before(at.Add(lockTime)) }

// seen fills in what depends on the time.
func (s *Service) seen(u User) User {
	u.Locked = u.LockedAt != nil && locked(*u.LockedAt, s.now())
	return u
}

// SetPassword changes a password and so ends the user's sessions. A user may change their own and has to know the
// current one, which counts as a login does; a superuser sets that of others, whose failures and lock it ends.
// What else belongs to the change, also, runs in its transaction.
// Errors: errs.Forbidden, also for a wrong current password; errs.NotFound; errs.Invalid for a password of less than 8
// or more than 256 characters, or when the user's domain is not Local.
func (s *Service) SetPassword(ctx context.Context, username, current, password string, also ...func(context.Context) error) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	if err := s.selfOrSuperuser(ctx, a, username); err != nil {
		return err
	}
	if a.User != username {
		return s.SetPasswordOf(ctx, a.Tenant, username, password, also...)
	}
	if err := s.takesPassword(ctx, a.Tenant, username, password); err != nil {
		return err
	}
	found, err := s.passes(ctx, a.Tenant, Local, username, current)
	if err != nil {
		return err
	}
	if found == "" {
		return errs.New(errs.Forbidden, "The current password is wrong, or the user is locked.")
	}
	return s.SetPasswordOf(ctx, a.Tenant, username, password, also...)
}

// SetPasswordOf sets a password without an actor, for the command line. Errors: errs.NotFound, errs.Invalid as in
// SetPassword.
func (s *Service) SetPasswordOf(ctx context.Context, tenant, username, password string, also ...func(context.Context) error) error {
	if err := s.takesPassword(ctx, tenant, username, password); err != nil {
		return err
	}
	hash, err := s.passwords.hash(ctx, password)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		err := s.store.EditLogin(ctx, tenant, fold.Text(username), s.newPassword(hash))
		for _, and := range also {
			if err == nil {
				err = and(ctx)
			}
		}
		return err
	})
}

// takesPassword refuses a bad password, and any for a user who is not there or not in the domain Local.
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

// newPassword is the edit that sets a hash, "" for none.
func (s *Service) newPassword(hash string) func(*Login) error {
	return func(l *Login) error {
		if l.Domain != Local && hash != "" { // it has moved meanwhile
			return mayHavePassword(User{Domain: l.Domain})
		}
		l.Hash, l.SetAt, l.ExpiresAt = hash, s.stamp(), time.Time{}
		l.Attempts, l.LockedAt = 0, time.Time{}
		return nil
	}
}
