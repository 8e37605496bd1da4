package principals

import (
	"context"
	"errors"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/fold"
)

var errRefused = errs.New(errs.Unauthenticated, "Unable to log in")

// refusedFor is errRefused with the reason, which is for the log.
func refusedFor(reason error) error {
	if reason == nil {
		return errRefused
	}
	if errs.MessageOf(reason) == errs.MessageOf(errRefused) { // it is one already
		return reason
	}
	return errs.Wrap(errs.Unauthenticated, reason, "%s", errs.MessageOf(errRefused))
}

// Try is a password login that somebody else checks, such as a directory, followed by Admit. Failures of a user of the
// domain are counted and lock as in Authenticate; only check's errs.Unauthenticated is one, and its other errors are passed
// on. The user is the one with the source id that check gives with its refusal, else the one of the name that was typed.
// What is tried at names without any user here is not counted.
//
// A user of the domain with that name who is locked, disabled or expired is refused without check, at once: the caller sees to the
// time. For every other name check is called, and takes the time that it takes: also for one that nobody has, or that a user
// of another domain has, so nobody learns of those; a user who is found by the source id alone is refused after it.
// Every refusal is errs.Unauthenticated "Unable to log in".
//
// The counts are transactions of their own: do not call it inside one.
func (s *Service) Try(ctx context.Context, tenant, domain, source, username string, check func(ctx context.Context) (Identity, error)) (User, error) {
	if err := foreign(domain); err != nil {
		return User{}, err
	}
	folded := ""
	if plain(tenant, 255) && plain(username, maxOldUsername) {
		var err error
		if folded, err = s.key(ctx, tenant, username); err != nil {
			return User{}, err
		}
	} else {
		tenant = "" // nobody's
	}
	l, err := s.store.Login(ctx, tenant, folded, actor.OriginOf(ctx).Network())
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return User{}, err
	}
	ours := err == nil && l.Domain == domain
	if why := l.closed(domain, s.now()); ours && why != nil {
		return User{}, refusedFor(why)
	}
	who, err := check(ctx)
	switch {
	case errs.CodeOf(err) == errs.Unauthenticated:
		if !ours {
			folded = ""
		}
		return User{}, s.failed(ctx, tenant, domain, folded, who.ID, refusedFor(err))
	case err != nil:
		return User{}, err
	}
	return s.Admit(ctx, tenant, domain, source, who)
}

// failed counts a failure of the user with a source id, else of the one with a folded name, and gives then. Both may be "".
// It counts also when the caller has hung up.
func (s *Service) failed(ctx context.Context, tenant, domain, folded, sourceID string, then error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if validSourceID(sourceID) {
		u, err := s.store.UserFrom(ctx, tenant, domain, sourceID)
		switch {
		case err == nil:
			if folded, err = s.key(ctx, tenant, u.Username); err != nil {
				return err
			}
		case errs.CodeOf(err) != errs.NotFound:
			return err
		}
	}
	username, lock := "", ""
	err := s.store.EditLogin(ctx, tenant, folded, actor.OriginOf(ctx).Network(), func(l *Login) error {
		if l.closed(domain, s.now()) == nil {
			username, lock = l.Username, l.fail(s.stamp())
		}
		return nil
	})
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	s.noteLock(ctx, "user locked", tenant, username, lock)
	return then
}

// Admit returns the user of somebody whom a domain has let in, with the profile and the name that the domain knows: the user
// of the domain with the source id; else the one of that name without a source id, who is tied to it; else a new one
// without rights. A user whose new name cannot be had keeps the old one. Nothing is written when nothing differs. It joins
// the transaction in ctx, and two first logins at once make one user.
//
// Errors: errs.Invalid for the domain Local; errs.Unauthenticated "Unable to log in" for somebody who is disabled there or
// here, locked or expired here, has no id, or would need a user's name that is bad, or that a user of another domain or
// with another source id has; also when the tenant has no such domain any more.
func (s *Service) Admit(ctx context.Context, tenant, domain, source string, who Identity) (User, error) {
	if err := foreign(domain); err != nil {
		return User{}, err
	}
	if !validSourceID(who.ID) || who.Disabled {
		return User{}, refusedFor(errors.New("the entry has no id, or is disabled"))
	}
	scribe := newScribe(source, func(string, ...any) {})
	u, err := s.store.UserFrom(ctx, tenant, domain, who.ID)
	if err == nil {
		err = s.mayEnter(ctx, u)
	}
	if err == nil && s.upToDate(scribe, u, who) {
		return s.enter(ctx, u)
	}
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return User{}, err
	}
	// A user whom this found is gone at once when the domain is, and then there is no session for it.
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, tenant); err != nil {
			return err
		}
		if err := s.stillThere(ctx, tenant, domain); err != nil { // it may be deleted since it let somebody in
			return err
		}
		u, err = s.admit(ctx, tenant, domain, scribe, who)
		return err
	})
	switch {
	case errs.CodeOf(err) == errs.NotFound: // the tenant, or a domain or user that is just deleted
		return User{}, refusedFor(err)
	case err != nil:
		return User{}, err
	}
	return s.enter(ctx, u)
}

// admit finds, ties or makes the user and brings it up to date, as the only one in the tenant who does.
func (s *Service) admit(ctx context.Context, tenant, domain string, scribe *scribe, who Identity) (User, error) {
	free, holder, err := s.nameFor(ctx, tenant, who.Username)
	if err != nil {
		return User{}, err
	}
	u, err := s.store.UserFrom(ctx, tenant, domain, who.ID)
	if errs.CodeOf(err) == errs.NotFound {
		switch {
		case free:
			return s.greet(ctx, tenant, domain, scribe.fresh(who))
		case holder.Domain != domain:
			return User{}, refusedFor(errors.New("no user can have this name, or one of another domain has it"))
		}
		u, err = s.store.User(ctx, tenant, holder.Username)
		if err == nil && u.SourceID != nil {
			err = refusedFor(errors.New("the name is that of another entry's user"))
		}
	}
	if err == nil {
		err = s.mayEnter(ctx, u)
	}
	if err != nil {
		return u, err
	}
	now, name := s.stamp(), u.Username
	if (free || holder.Username == name) && name != who.Username {
		name = who.Username
		if err := s.rename(ctx, tenant, map[string]string{u.Username: name}, now); err != nil {
			return User{}, err
		}
	}
	err = s.store.EditDirectoryUsers(ctx, tenant, []string{name}, now, func(u *DirectoryUser) { scribe.profile(u, who) })
	if err != nil {
		return User{}, err
	}
	return s.store.User(ctx, tenant, name)
}

// nameFor says whether a username can be had, or who has it. A bad one is neither free nor anybody's.
func (s *Service) nameFor(ctx context.Context, tenant, name string) (free bool, holder Holder, err error) {
	if ValidUsername(name) != nil {
		return false, Holder{}, nil
	}
	folded := fold.Name(name)
	holders, err := s.store.Holders(ctx, tenant, []string{folded})
	holder, held := holders[folded]
	return !held && err == nil, holder, err
}

// greet makes a user.
func (s *Service) greet(ctx context.Context, tenant, domain string, u DirectoryUser) (User, error) {
	if err := s.store.AddDirectoryUsers(ctx, tenant, domain, []DirectoryUser{u}, s.stamp()); err != nil {
		return User{}, err
	}
	return s.store.User(ctx, tenant, u.Username)
}

// upToDate reports whether a user has what the domain knows.
func (s *Service) upToDate(scribe *scribe, u User, who Identity) bool {
	is := DirectoryUser{
		Source: orEmpty(u.Source), SourceID: orEmpty(u.SourceID), DisplayName: orEmpty(u.DisplayName), FamilyName: orEmpty(u.FamilyName),
		GivenName: orEmpty(u.GivenName), MiddleName: orEmpty(u.MiddleName), Email: orEmpty(u.Email), Timezone: orEmpty(u.Timezone),
	}
	was := is
	scribe.profile(&is, who)
	return is == was && u.Username == who.Username
}

// mayEnter returns the refusal of a user whom somebody else has checked, and nil if nothing speaks against the login.
func (s *Service) mayEnter(ctx context.Context, u User) error {
	key, err := s.key(ctx, u.Tenant, u.Username)
	if err != nil {
		return err
	}
	l, err := s.store.Login(ctx, u.Tenant, key, actor.OriginOf(ctx).Network())
	if err != nil {
		return err
	}
	if why := l.closed(u.Domain, s.now()); why != nil {
		return refusedFor(why)
	}
	return nil
}

// enter notes the login of a user whom somebody else has checked, also when the caller has hung up. It is refused when a
// failure that locks was faster.
func (s *Service) enter(ctx context.Context, u User) (User, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	var why error
	key, err := s.key(ctx, u.Tenant, u.Username)
	if err != nil {
		return User{}, err
	}
	err = s.store.EditLogin(ctx, u.Tenant, key, actor.OriginOf(ctx).Network(), func(l *Login) error {
		if why = l.closed(u.Domain, s.now()); why == nil {
			l.succeed(s.stamp())
			u.LoginAttempts, u.LockedAt = l.Attempts, nil
			if !l.LockedAt.IsZero() {
				u.LockedAt = &l.LockedAt
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return User{}, err
	case why != nil:
		return User{}, refusedFor(why)
	}
	return s.seen(u), nil
}
