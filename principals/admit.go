package principals

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

var errRefused = errs.New(errs.Unauthenticated, "Unable to log in")

// refusedFor returns errRefused with a cause for the log.
func refusedFor(reason error) error {
	if reason == nil {
		return errRefused
	}
	if errs.MessageOf(reason) == errs.MessageOf(errRefused) { // already refused
		return reason
	}
	return errs.Wrap(errs.Unauthenticated, reason, "%s", errs.MessageOf(errRefused))
}

// Source is a domain that authenticates people.
type Source struct {
	Domain string // its id
	Driver string // the id of its driver
}

// LoginWith logs a user in with a password that check verifies, for instance at a directory, and
// calls Admit. The user is the one with the source id that check returns with its refusal, else the
// one with the given name. Failures of a user of the domain are counted and lock as in
// Authenticate. Only errs.Unauthenticated from check is a failure; its other errors are returned as
// they are. Do not call it inside a transaction.
//
// A user of the domain who is locked, disabled or expired here is refused without a call of check:
// the caller equalizes the time of refusals. For every other name, including unknown ones and those
// of users of other domains, check is called, so that its duration does not reveal who exists. A
// user found only by the source id is refused after check. A refusal with an Identity that is
// Disabled disables its user as a scan does. Every refusal is errs.Unauthenticated "Unable to log
// in".
func (p Unchecked) LoginWith(
	ctx context.Context, tenant string, from Source, username string,
	check func(ctx context.Context) (Identity, error),
) (User, error) {
	s, domain := p.s, from.Domain
	if err := foreign(domain); err != nil {
		return User{}, err
	}
	folded := ""
	if escapes.StorableWithin(tenant, 255) && escapes.StorableWithin(username, maxOldUsername) {
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
	if why := l.closed(domain, s.clock.Now()); ours && why != nil {
		return User{}, refusedFor(why)
	}
	who, err := check(ctx)
	switch {
	case errs.CodeOf(err) == errs.Unauthenticated:
		if who.Disabled {
			if err := s.disableFrom(ctx, tenant, domain, who.ID); err != nil {
				return User{}, err
			}
		}
		if !ours {
			folded = ""
		}
		return User{}, s.failed(ctx, tenant, domain, folded, who.ID, refusedFor(err))
	case err != nil:
		return User{}, err
	}
	return p.Admit(ctx, tenant, from, who)
}

// failed counts a failure of the user with the source id, else of the one with the folded name, and
// returns then. Both may be "". It counts even if the client has hung up.
func (s *Service) failed(ctx context.Context, tenant, domain, folded, sourceID string, then error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if profile.ValidID(sourceID) {
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
	attempt := s.attempt(domain, func(*Login) bool { return false })
	err := s.store.Attempt(ctx, tenant, folded, actor.OriginOf(ctx).Network(), attempt.edit)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	s.noteLock(ctx, "user locked", tenant, attempt.after.Username, attempt.lock)
	return then
}

// Admit returns the user of a person whom a domain has authenticated, with the profile and name
// that the domain reports. It is the user of the domain with the source id, else the user with that
// name and no source id, who gets it, else a new user without rights. A user whose new name is not
// available keeps the old one, and one whom a provider keeps by SCIM the name and profile. A user
// whom the directory has only locked is enabled again: it lets the person in. Admit writes nothing
// if nothing differs. It joins the transaction in ctx; two first logins at once create one user.
//
// It returns errs.Invalid for the domain Local, and errs.Unauthenticated "Unable to log in" for a
// person who is disabled there or here, is locked there or here, has expired here, has no id, or
// whose new user would need a name that is invalid or that another user has, and when the tenant no
// longer has the domain.
func (p Unchecked) Admit(ctx context.Context, tenant string, from Source, who Identity) (User, error) {
	s, domain := p.s, from.Domain
	if err := foreign(domain); err != nil {
		return User{}, err
	}
	switch {
	case !profile.ValidID(who.ID):
		return User{}, refusedFor(errors.New("the entry has no id"))
	case who.Disabled:
		if err := s.disableFrom(ctx, tenant, domain, who.ID); err != nil {
			return User{}, err
		}
		return User{}, refusedFor(errors.New("the domain has disabled the person"))
	case who.Locked:
		return User{}, refusedFor(errors.New("the domain has locked the person"))
	}
	writer := profile.NewWriter(from.Driver, nil)
	u, err := s.store.UserFrom(ctx, tenant, domain, who.ID)
	if err == nil {
		err = s.mayEnter(ctx, u)
	}
	if err == nil && s.upToDate(writer, u, who) {
		return s.enter(ctx, u)
	}
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return User{}, err
	}
	// Deleting the domain deletes its users, and then no session can be made for one found here.
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.lockDomain(ctx, tenant, domain); err != nil { // it may be deleted since it let somebody in
			return err
		}
		u, err = s.admit(ctx, tenant, domain, writer, who)
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

// disableFrom disables the user with a source id as a scan does: the domain has said that it no
// longer lets the person in. The last enabled superuser stays. It does so even if the client has
// hung up.
func (s *Service) disableFrom(ctx context.Context, tenant, domain, sourceID string) error {
	if !profile.ValidID(sourceID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	u, err := s.store.UserFrom(ctx, tenant, domain, sourceID)
	if errs.CodeOf(err) == errs.NotFound || err == nil && !u.Enabled && !u.DirectoryLocked {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.lockDomain(ctx, tenant, domain); err != nil {
			return err
		}
		others, err := s.store.OtherSuperusers(ctx, tenant, u.Username)
		if err != nil || u.Superuser && others == 0 {
			return err
		}
		disabled := false
		err = s.store.EditDirectoryUsers(ctx, tenant, []string{u.Username}, s.clock.Stamp(), func(u *DirectoryUser) {
			if disabled = u.Lasts() && u.SourceID == sourceID; disabled {
				u.Disable()
			}
		})
		if err != nil || !disabled {
			return err
		}
		return s.Unchecked().Disabled(ctx, tenant, u.Username)
	})
	if errs.CodeOf(err) == errs.NotFound { // the tenant, or the domain
		return nil
	}
	return err
}

// admit finds or creates the user and updates it, in a transaction that has locked the tenant.
func (s *Service) admit(
	ctx context.Context, tenant, domain string, writer *profile.Writer, who Identity,
) (User, error) {
	free, holder, err := s.nameFor(ctx, tenant, who.Username)
	if err != nil {
		return User{}, err
	}
	u, err := s.store.UserFrom(ctx, tenant, domain, who.ID)
	if errs.CodeOf(err) == errs.NotFound {
		switch {
		case free:
			return s.insertAdmitted(ctx, tenant, domain, writer.NewUser(who))
		case holder.Username == "":
			return User{}, refusedFor(fmt.Errorf(
				"no user can have the name %s: %s", logged(who.Username),
				errs.MessageOf(ValidUsername(who.Username)),
			))
		case holder.Domain != domain:
			return User{}, refusedFor(fmt.Errorf(
				"the name is that of the user %s of the domain %s", logged(holder.Username), holder.Domain,
			))
		}
		u, err = s.store.User(ctx, tenant, holder.Username)
		if err == nil && u.SourceID != nil {
			err = refusedFor(fmt.Errorf("the name is that of another entry's user: if the person was created "+
				"there anew, PUT "+
				"/api/users/%s {\"sourceId\": null}", logged(u.Username)))
		}
	}
	if err == nil {
		err = s.mayEnter(ctx, u)
	}
	if err != nil {
		return u, err
	}
	now, name := s.clock.Stamp(), u.Username
	if (free || holder.Username == name) && name != who.Username && orEmpty(u.Source) != SourceSCIM {
		name = who.Username
		if err := s.rename(ctx, tenant, map[string]string{u.Username: name}, now); err != nil {
			return User{}, err
		}
	}
	err = s.store.EditDirectoryUsers(ctx, tenant, []string{name}, now, func(u *DirectoryUser) {
		if report(writer, u, who); u.DirectoryLocked {
			u.Enable()
		}
	})
	if err != nil {
		return User{}, err
	}
	return s.store.User(ctx, tenant, name)
}

// report copies what the domain reports of a person who logs in. Of a user whom a provider keeps by
// SCIM it copies the id alone: the provider decides on the name and the profile.
func report(writer *profile.Writer, u *DirectoryUser, who Identity) {
	if u.Source == SourceSCIM {
		u.SourceID = who.ID
		return
	}
	writer.Update(u, who)
}

// nameFor reports whether a username is free, and returns its holder otherwise. An invalid one is
// neither free nor held.
func (s *Service) nameFor(ctx context.Context, tenant, name string) (free bool, holder Holder, err error) {
	if ValidUsername(name) != nil {
		return false, Holder{}, nil
	}
	folded := fold.Name(name)
	holders, err := s.store.Holders(ctx, tenant, []string{folded})
	holder, held := holders[folded]
	return !held && err == nil, holder, err
}

// insertAdmitted creates a user without a password.
func (s *Service) insertAdmitted(ctx context.Context, tenant, domain string, u DirectoryUser) (User, error) {
	err := s.store.AddDirectoryUsers(ctx, tenant, domain, []DirectoryUser{u}, s.clock.Stamp())
	if err != nil {
		return User{}, err
	}
	return s.store.User(ctx, tenant, u.Username)
}

// upToDate reports whether a user has the profile that the domain reports.
func (s *Service) upToDate(writer *profile.Writer, u User, who Identity) bool {
	is := DirectoryUser{
		Source: orEmpty(u.Source), SourceID: orEmpty(u.SourceID),
		DisplayName: orEmpty(u.DisplayName), FamilyName: orEmpty(u.FamilyName),
		GivenName: orEmpty(u.GivenName), MiddleName: orEmpty(u.MiddleName),
		Email: orEmpty(u.Email), Timezone: orEmpty(u.Timezone),
	}
	was := is
	report(writer, &is, who)
	return is == was && !u.DirectoryLocked && (u.Username == who.Username || is.Source == SourceSCIM)
}

// mayEnter returns a refusal if a user whose credentials were verified may not log in, else nil.
func (s *Service) mayEnter(ctx context.Context, u User) error {
	key, err := s.key(ctx, u.Tenant, u.Username)
	if err != nil {
		return err
	}
	l, err := s.store.Login(ctx, u.Tenant, key, actor.OriginOf(ctx).Network())
	if err != nil {
		return err
	}
	if why := l.closed(u.Domain, s.clock.Now()); why != nil {
		return refusedFor(why)
	}
	return nil
}

// enter records the login of a user whose credentials were verified, even if the client has hung
// up. It returns a refusal if another attempt has locked the user meanwhile.
func (s *Service) enter(ctx context.Context, u User) (User, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	key, err := s.key(ctx, u.Tenant, u.Username)
	if err != nil {
		return User{}, err
	}
	attempt := s.attempt(u.Domain, func(*Login) bool { return true })
	err = s.store.Attempt(ctx, u.Tenant, key, actor.OriginOf(ctx).Network(), attempt.edit)
	switch l := attempt.after; {
	case err != nil:
		return User{}, err
	case attempt.refused != nil:
		return User{}, refusedFor(attempt.refused)
	default:
		u.LoginAttempts, u.LockedAt = l.Attempts, nil
		if !l.LockedAt.IsZero() {
			u.LockedAt = &l.LockedAt
		}
	}
	return s.seen(u), nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
