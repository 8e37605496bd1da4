package principals

import (
	"context"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// When failed logins lock a user, and for how long. Failures from one network do not lock the user
// for others, unless there are very many; those do not lock the user for networks of recent logins.
const (
	maxAttempts = 10  // in a row from one network lock the user for that network
	maxRecent   = 100 // within lockTime, from all networks, lock the user for all but known networks
	lockTime    = 15 * time.Minute
	knownTime   = 30 * 24 * time.Hour // how long a network is known after a login from it
	failureTime = 24 * time.Hour      // how long failures in a row are remembered
)

// MaxNetworks is how many networks of a user are stored for their logins, and how many for their
// failures alone. It is more than the networks from which failures can come before the user is
// locked.
const MaxNetworks = maxRecent + maxAttempts

// ExpiresAt returns the time from which n has no effect.
func (n NetworkLogin) ExpiresAt() time.Time {
	known, failed := n.LoggedInAt.Add(knownTime), n.FailedAt.Add(failureTime)
	if known.After(failed) {
		return known
	}
	return failed
}

// closed returns the reason why the user cannot log in at a domain at this time, whatever the
// password; nil if there is none.
func (l Login) closed(domain string, now time.Time) error {
	switch {
	case l.Username == "":
		return errs.New(errs.NotFound, "there is no such user")
	case l.Domain != domain:
		return errs.New(errs.NotFound, "the user is of the domain %s", logged(l.Domain))
	case !l.Enabled && !(l.DirectoryLocked && domain != Local): // a lock may have ended: the directory knows
		if domain != Local {
			return errs.New(
				errs.Forbidden,
				"the user is disabled here: a scan enables whom the directory has disabled and enabled again, a "+
					"superuser whom a superuser has disabled",
			)
		}
		return errs.New(errs.Forbidden, "the user is disabled")
	case locked(l.Network.LockedAt, now):
		return errs.New(errs.Forbidden, "the user is locked for this network")
	case locked(l.LockedAt, now) && !l.known(now):
		return errs.New(errs.Forbidden, "the user is locked")
	case !l.ExpiresAt.IsZero() && !now.Before(l.ExpiresAt):
		return errs.New(errs.Forbidden, "the password or the user has expired")
	case domain == Local && l.Hash == "":
		return errs.New(errs.Forbidden, "the user has no password")
	}
	return nil
}

// known reports whether the user has logged in from the network lately.
func (l Login) known(now time.Time) bool {
	return !l.Network.LoggedInAt.IsZero() && now.Before(l.Network.LoggedInAt.Add(knownTime))
}

// fail counts a failure, and returns what it locked: "", "network" or "user". A lock that has run
// out starts its count again.
func (l *Login) fail(now time.Time) (lock string) {
	if n := &l.Network; !n.LockedAt.IsZero() || !now.Before(n.FailedAt.Add(failureTime)) {
		n.Attempts, n.LockedAt = 0, time.Time{}
	}
	if !l.LockedAt.IsZero() && !locked(l.LockedAt, now) {
		l.Attempts, l.LockedAt, l.Recent = 0, time.Time{}, nil
	}
	l.Attempts++
	l.Network.Attempts++
	l.Network.FailedAt = now
	if l.Network.Attempts >= maxAttempts {
		l.Network.LockedAt, lock = now, "network"
	}
	if !l.LockedAt.IsZero() { // the network is a known one
		return lock
	}
	l.Recent = append(slices.DeleteFunc(slices.Clone(l.Recent), func(at time.Time) bool {
		return !now.Before(at.Add(lockTime))
	}), now)
	if len(l.Recent) >= maxRecent {
		l.LockedAt, l.Recent, lock = now, nil, "user"
	}
	return lock
}

// succeed records a login. It resets the failures of its network only, and ends no lock of other
// networks.
func (l *Login) succeed(now time.Time) {
	if !locked(l.LockedAt, now) {
		l.LockedAt = time.Time{}
	}
	l.Attempts, l.Network = 0, NetworkLogin{LoggedInAt: now}
}

// unlock resets the failures and locks of all networks.
func (l *Login) unlock() {
	l.Attempts, l.LockedAt, l.Recent, l.Unlock = 0, time.Time{}, nil, true
}

// lockedAnywhere reports whether the user is locked for all networks or for any one. l must come
// from an EditLogin without a network.
func (l *Login) lockedAnywhere(now time.Time) bool {
	return locked(l.LockedAt, now) || locked(l.NetworkLock, now)
}

func locked(at, now time.Time) bool { return !at.IsZero() && now.Before(at.Add(lockTime)) }

// seen sets the fields of a user that depend on the time.
func (s *Service) seen(u User) User {
	u.Locked = u.LockedAt != nil && locked(*u.LockedAt, s.clock.Now())
	return u
}

// Unlock resets the failures and locks of a user, for all networks. It needs a superuser. Errors:
// errs.Forbidden; errs.NotFound.
func (s *Service) Unlock(ctx context.Context, username string) error {
	if of := (entity.Subject{Kind: KindUser, ID: username, Action: entity.ActionUpdate}); s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.Unlock(ctx, username) })
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	ends := false
	key, err := s.key(ctx, a.Tenant, username)
	if err != nil {
		return err
	}
	err = s.store.EditLogin(ctx, a.Tenant, key, "", func(l *Login) error {
		if l.Username != username {
			return errs.New(errs.NotFound, "User not found.")
		}
		ends = l.lockedAnywhere(s.clock.Now())
		l.unlock()
		return nil
	})
	if err == nil && ends {
		s.noteLock(ctx, "user unlocked", a.Tenant, username, "user")
	}
	return err
}

// noteLock logs that a user was locked or unlocked, for one network or as a user; nothing for "".
func (s *Service) noteLock(ctx context.Context, what, tenant, username, scope string) {
	if scope == "" {
		return
	}
	from, by := actor.OriginOf(ctx), ""
	if a, err := actor.From(ctx); err == nil {
		by = a.User
	}
	client := ""
	if from.Address.IsValid() {
		client = from.Address.String()
	}
	args := []any{
		"tenant", tenant, "username", logged(username), "scope", scope, "by", logged(by), "request",
		from.Request, "client", client,
	}
	if scope == "network" {
		args = append(args, "network", from.Network())
	}
	s.log.InfoContext(ctx, what, args...)
}

// logged returns a name for the log, without control characters.
func logged(name string) string {
	for _, c := range name {
		if c == utf8.RuneError || !strconv.IsPrint(c) {
			quoted := strconv.Quote(name)
			return quoted[1 : len(quoted)-1]
		}
	}
	return name
}
