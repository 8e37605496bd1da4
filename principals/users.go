package principals

import (
	"cmp"
	"context"
	"iter"
	"reflect"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Users returns a page of the tenant's users to any session, sorted by username (the default),
// displayName, createdAt or updatedAt. Errors: errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Users(ctx context.Context, q paging.Query) (paging.Page[User], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[User]{}, err
	}
	page, err := s.store.Users(ctx, a.Tenant, q)
	return paging.Map(page, s.seen), err
}

// AllUsers returns all users of the tenant to any session, ordered by username. It reads page after
// page; an error ends it.
func (s *Service) AllUsers(ctx context.Context) iter.Seq2[User, error] {
	return paging.All(paging.Query{Limit: paging.MaxLimit}, func(q paging.Query) (paging.Page[User], error) {
		return s.Users(ctx, q)
	})
}

// User returns one user to any session. Errors: errs.NotFound.
func (s *Service) User(ctx context.Context, username string) (User, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return User{}, err
	}
	return s.user(ctx, a.Tenant, username)
}

func (s *Service) user(ctx context.Context, tenant, username string) (User, error) {
	if ValidOldUsername(username) != nil { // cannot exist, and the database may refuse the text
		return User{}, errs.New(errs.NotFound, "User not found.")
	}
	u, err := s.store.User(ctx, tenant, username)
	return s.seen(u), err
}

// find returns the user with a name in any spelling: see CanonicalName. It returns errs.NotFound if
// there is none.
func (s *Service) find(ctx context.Context, tenant, name string) (User, error) {
	u, err := s.user(ctx, tenant, name)
	if errs.CodeOf(err) != errs.NotFound {
		return u, err
	}
	spelled, failed := s.canonicalName(ctx, tenant, name)
	if failed != nil || spelled == name {
		return u, cmp.Or(failed, err)
	}
	return s.user(ctx, tenant, spelled)
}

// UsersByName returns the users with the given names, ignoring case, by their exact names, to any
// session. It runs one statement. Names that no user has are left out.
func (s *Service) UsersByName(ctx context.Context, names []string) (map[string]User, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	var folded []string
	for _, name := range names {
		if ValidOldUsername(name) == nil {
			folded = append(folded, keys(name)...)
		}
	}
	slices.Sort(folded)
	found, err := s.store.UsersNamed(ctx, a.Tenant, slices.Compact(folded))
	users := make(map[string]User, len(found))
	for _, u := range found {
		users[u.Username] = s.seen(u)
	}
	return users, err
}

// keys returns the folded names that a user of a name may have: see key.
func keys(name string) []string {
	key, old := fold.Name(name), fold.Text(name)
	if key == old {
		return []string{key}
	}
	return []string{key, old}
}

// key returns the folded name of a user. It is fold.Name, except for a user whose name is older
// than that rule and collides with another user's by it.
func (s *Service) key(ctx context.Context, tenant, username string) (string, error) {
	all := keys(username)
	if len(all) == 1 {
		return all[0], nil
	}
	users, err := s.store.UsersNamed(ctx, tenant, all[1:])
	if err == nil && len(users) > 0 {
		return all[1], nil
	}
	return all[0], err
}

// CanonicalName returns the exact name of the user with a name, to any session: of the user with
// that spelling, else of the one with an equivalent spelling. A name that no user has is returned
// as it is.
func (s *Service) CanonicalName(ctx context.Context, name string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	return s.canonicalName(ctx, a.Tenant, name)
}

func (s *Service) canonicalName(ctx context.Context, tenant, name string) (string, error) {
	if ValidOldUsername(name) != nil {
		return name, nil
	}
	users, err := s.store.UsersNamed(ctx, tenant, keys(name))
	spelled := name
	for _, u := range users {
		if u.Username == name {
			return name, nil
		}
		spelled = u.Username
	}
	return spelled, err
}

// DisplayNames is like UsersByName and returns only the display names, nil for none.
func (s *Service) DisplayNames(ctx context.Context, names []string) (map[string]*string, error) {
	users, err := s.UsersByName(ctx, names)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]*string, len(users))
	for name, u := range users {
		shown[name] = u.DisplayName
	}
	return shown, nil
}

// CreateUser adds a user, without a password when it is "". It needs a superuser. Fields that only
// the service sets (Tenant, lock, attempts, PasswordSetAt, times of the row) are ignored. A user
// without a domain gets Local.
// Errors: errs.Forbidden; errs.Conflict for a taken name, ignoring case; errs.Invalid naming the
// field, also for a password in another domain than Local; errs.Conflict for a domain where the
// user could not log in.
func (s *Service) CreateUser(ctx context.Context, u User, password string) (User, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return User{}, err
	}
	hash, err := s.newHash(ctx, &u, password)
	if err != nil {
		return User{}, err
	}
	return s.addUser(ctx, a.Tenant, u, hash)
}

// AddSuperuser adds an enabled superuser to the domain Local, whatever c.Domain is. Errors:
// errs.NotFound for the tenant; errs.Conflict, errs.Invalid as CreateUser. Do not call it inside a
// transaction, as the password may wait long to be hashed: see NewSuperuser.
func (p Unchecked) AddSuperuser(ctx context.Context, c Credentials) (User, error) {
	add, err := p.NewSuperuser(ctx, c.Username, c.Password)
	if err != nil {
		return User{}, err
	}
	return add(ctx, c.Tenant)
}

// NewSuperuser hashes the password of an enabled superuser, and returns a function that adds the
// user as AddSuperuser does and may be called inside a transaction. Errors: errs.Invalid.
func (p Unchecked) NewSuperuser(
	ctx context.Context, username, password string,
) (add func(ctx context.Context, tenant string) (User, error), err error) {
	if err := validPassword(password); err != nil {
		return nil, err
	}
	u := User{Username: username, Superuser: true, Enabled: true}
	hash, err := p.s.newHash(ctx, &u, password)
	return func(ctx context.Context, tenant string) (User, error) { return p.s.addUser(ctx, tenant, u, hash) }, err
}

// newHash checks a new user, and hashes the password, "" for none. It must not run in a
// transaction, as it is slow.
func (s *Service) newHash(ctx context.Context, u *User, password string) (string, error) {
	if err := ValidUsername(u.Username); err != nil {
		return "", err
	}
	if err := u.accept(); err != nil || password == "" {
		return "", err
	}
	if err := mayHavePassword(*u); err != nil {
		return "", err
	}
	if err := validPassword(password); err != nil {
		return "", err
	}
	return s.passwords.hash(ctx, password)
}

func (s *Service) addUser(ctx context.Context, tenant string, u User, hash string) (User, error) {
	u.Tenant, u.Locked, u.LockedAt, u.LoginAttempts, u.PasswordSetAt, u.DirectoryDisabled, u.DirectoryLocked,
		u.EmailTyped =
		tenant, false, nil, 0, nil, false, false, false
	u.CreatedAt = s.clock.Stamp()
	u.UpdatedAt = u.CreatedAt
	of := entity.Subject{Kind: KindUser, ID: u.Username, Action: entity.ActionCreate}
	err := s.feed.In(ctx, s.store.InTx, tenant, of, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, tenant); err != nil {
			return err
		}
		if err := s.checkNewDomain(ctx, tenant, Local, u.Domain); err != nil {
			return err
		}
		if err := s.checkUsable(ctx, tenant, u.Domain); err != nil {
			return err
		}
		if err := s.store.InsertUser(ctx, tenant, u); err != nil || hash == "" {
			return err
		}
		return s.store.EditLogin(ctx, tenant, fold.Name(u.Username), "", func(l *Login) error {
			l.Hash, l.SetAt = hash, u.CreatedAt
			return nil
		})
	})
	if err != nil {
		return User{}, err
	}
	if hash != "" {
		u.PasswordSetAt = &u.CreatedAt
	}
	return u, nil
}

// UpdateUser changes a user. A superuser may change all but the name and what the service keeps for
// itself; Locked ends or begins a lock of 15 minutes for all networks. A user who leaves the domain
// Local loses the password, and one who leaves another domain its source id: see CheckMove and
// MoveToLocal. Sessions and personal tokens of a user who is disabled end; one whom a directory has
// disabled or locked stays disabled whatever it finds later if edit sets DirectoryDisabled to
// false. Users may change their own profile: names, timezone, data, user fields, consent, avatar
// and feed, and email unless people log in by it (Domains.CheckEmail). edit replaces what it
// changes and writes through no pointer.
//
// Errors: errs.Forbidden; errs.NotFound; errs.Invalid naming the field; errs.Conflict if the tenant
// would have no enabled superuser, or the user could not log in at the domain; edit's own.
func (s *Service) UpdateUser(ctx context.Context, username string, edit func(*User) error) (User, error) {
	if of := (entity.Subject{Kind: KindUser, ID: username, Action: entity.ActionUpdate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, nil, func(ctx context.Context) (User, error) {
			return s.UpdateUser(ctx, username, edit)
		})
	}
	a, err := actor.From(ctx)
	if err != nil {
		return User{}, err
	}
	if err := s.selfOrSuperuser(ctx, a, username); err != nil {
		return User{}, err
	}
	var u User
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		others, err := s.otherSuperusers(ctx, a, username)
		if err != nil {
			return err
		}
		left, locked, unlocked, disabled := false, false, false, false
		u, err = s.store.UpdateUser(ctx, a.Tenant, username, func(u *User) error {
			was := s.seen(*u)
			*u = was
			if err := edit(u); err != nil {
				return err
			}
			if err := s.acceptEdit(a, was, u, others); err != nil {
				return err
			}
			left = was.Domain == Local && u.Domain != Local
			locked, unlocked = !was.Locked && u.Locked, was.Locked && !u.Locked
			disabled = (was.Enabled || was.DirectoryLocked) && !u.Enabled && !u.DirectoryLocked
			if err := s.acceptEmail(ctx, a, was, u); err != nil {
				return err
			}
			return s.acceptMove(ctx, a.Tenant, was, u)
		})
		if err == nil && disabled {
			err = Unchecked{s}.Disabled(ctx, a.Tenant, username)
		}
		if err != nil {
			return err
		}
		key, err := s.key(ctx, a.Tenant, username)
		switch {
		case err != nil:
			return err
		case left:
			err = s.store.EditLogin(ctx, a.Tenant, key, "", s.newPassword(""))
		case locked: // for all networks, also the known ones
			err = s.store.EditLogin(ctx, a.Tenant, key, "", func(l *Login) error { l.Forget = true; return nil })
			s.noteLock(ctx, "user locked", a.Tenant, username, "user")
		case unlocked:
			err = s.store.EditLogin(ctx, a.Tenant, key, "", func(l *Login) error { l.unlock(); return nil })
			s.noteLock(ctx, "user unlocked", a.Tenant, username, "user")
		default:
			return nil
		}
		if err != nil {
			return err
		}
		u, err = s.store.User(ctx, a.Tenant, username)
		return err
	})
	if err != nil {
		return User{}, err
	}
	return s.seen(u), nil
}

// Move is a user who is to move to another domain.
type Move struct {
	Username string
	Domain   string // where the user is to move
	SourceID string // of the user in the new domain, "" for none
}

// CheckMove asks the directory of a domain whether it knows a user who is to move there with
// UpdateUser: the next scan would disable a user whom it does not know. It asks for superusers, and
// for users of another domain. Do not call it inside a transaction, as a directory may be slow.
//
// Errors: errs.NotFound; errs.Invalid for a domain that the tenant does not have; errs.Conflict,
// with the reason, for a domain where the user could not log in, or whose directory does not know
// the user; errs.Upstream when it cannot be asked.
func (s *Service) CheckMove(ctx context.Context, to Move) error {
	a, err := actor.From(ctx)
	if err != nil || !a.Superuser || s.domains == nil || to.Domain == Local {
		return err
	}
	u, err := s.user(ctx, a.Tenant, to.Username)
	if err != nil || u.Domain == to.Domain {
		return err
	}
	if err := s.checkNewDomain(ctx, a.Tenant, u.Domain, to.Domain); err != nil {
		return err
	}
	if err := s.checkUsable(ctx, a.Tenant, to.Domain); err != nil {
		return err
	}
	if to.SourceID == orEmpty(u.SourceID) { // that of the domain before, which the user loses
		to.SourceID = ""
	}
	err = s.domains.CheckUser(ctx, a.Tenant, to)
	if code := errs.CodeOf(err); code == errs.Conflict || code == errs.Upstream {
		err = errs.Wrap(code, err, "%s With check=false the user moves all the same.", errs.MessageOf(err))
	}
	return err
}

// MarkFeedViewed records that a user has seen the feed now. It is for the user and superusers. It
// locks only the user. Errors: errs.Forbidden; errs.NotFound.
func (s *Service) MarkFeedViewed(ctx context.Context, username string) (User, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return User{}, err
	}
	if err := s.selfOrSuperuser(ctx, a, username); err != nil {
		return User{}, err
	}
	if err := s.store.MarkFeedViewed(ctx, a.Tenant, username, s.clock.Stamp()); err != nil {
		return User{}, err
	}
	return s.user(ctx, a.Tenant, username)
}

// selfOrSuperuser returns errs.Forbidden if the caller may not change this user. Every session may
// see users, so one who does not exist is errs.NotFound for all.
func (s *Service) selfOrSuperuser(ctx context.Context, a actor.Actor, username string) error {
	if ValidOldUsername(username) != nil {
		return errs.New(errs.NotFound, "User not found.")
	}
	if a.User == username || a.Superuser {
		return nil
	}
	if _, err := s.user(ctx, a.Tenant, username); err != nil {
		return err
	}
	return a.Require(actor.Superuser)
}

// otherSuperusers locks the tenant and counts the enabled superusers beside a user, so that two
// callers cannot remove the last two at once. It also locks the tenant for users who edit
// themselves: whatever locks several users or teams locks the tenant first, so that no two can
// deadlock.
func (s *Service) otherSuperusers(ctx context.Context, a actor.Actor, username string) (int, error) {
	if err := s.store.LockTenant(ctx, a.Tenant); err != nil || !a.Superuser {
		return 0, err
	}
	return s.store.OtherSuperusers(ctx, a.Tenant, username)
}

// acceptEdit restores the fields that no edit may change and checks the rest.
func (s *Service) acceptEdit(a actor.Actor, was User, u *User, others int) error {
	if u.Username != was.Username {
		return errs.New(errs.Invalid, "username cannot be changed")
	}
	u.Tenant, u.CreatedAt, u.UpdatedAt = was.Tenant, was.CreatedAt, was.UpdatedAt
	u.LockedAt, u.LoginAttempts, u.PasswordSetAt = was.LockedAt, was.LoginAttempts, was.PasswordSetAt
	u.DirectoryDisabled = was.DirectoryDisabled && u.DirectoryDisabled && u.Enabled == was.Enabled
	u.DirectoryLocked = was.DirectoryLocked && u.DirectoryDisabled
	u.EmailTyped = was.EmailTyped
	if err := u.accept(); err != nil {
		return err
	}
	if !a.Superuser && !reflect.DeepEqual(was, withProfile(*u, was)) {
		return errs.New(errs.Forbidden, "Only a superuser may change more than the profile.")
	}
	if was.Superuser && was.Enabled && others == 0 && !staysAbleToLogIn(was, *u) {
		return errLastSuperuser
	}
	now, pictureOnly := s.clock.Stamp(), onlyPicture(was, *u)
	switch {
	case was.Locked && !u.Locked:
		u.LockedAt, u.LoginAttempts = nil, 0
	case !was.Locked && u.Locked:
		u.LockedAt = &now
	}
	if !pictureOnly {
		u.UpdatedAt = now
	}
	return nil
}

// onlyPicture reports whether an edit changed the picture of a user and nothing else, which is no
// new version of the user.
func onlyPicture(was, u User) bool {
	changed := !reflect.DeepEqual(u.AvatarID, was.AvatarID)
	u.AvatarID, u.AvatarUpdatedAt = was.AvatarID, was.AvatarUpdatedAt
	return changed && reflect.DeepEqual(u, was)
}

// checkNewDomain returns errs.Invalid if the domain of a user or team changes to one that the
// tenant does not have.
func (s *Service) checkNewDomain(ctx context.Context, tenant, from, to string) error {
	if s.domains == nil || to == from || to == Local {
		return nil
	}
	return s.domains.CheckKnown(ctx, tenant, to)
}

// acceptEmail notes whether a new e-mail address is the user's own word. It returns errs.Forbidden
// for such a one if somebody could log in by it.
func (s *Service) acceptEmail(ctx context.Context, a actor.Actor, was User, u *User) error {
	if orEmpty(u.Email) == orEmpty(was.Email) {
		return nil
	}
	u.EmailTyped = !a.Superuser && u.Email != nil
	if s.domains == nil || a.Superuser || u.Domain == Local {
		return nil
	}
	return s.domains.CheckEmail(ctx, a.Tenant, u.Domain)
}

// acceptMove checks the domain that a user gets. With it, the user loses the id in the old one, so
// that the new one ties the user by name at the next login or scan.
func (s *Service) acceptMove(ctx context.Context, tenant string, was User, u *User) error {
	if u.Domain == was.Domain {
		return nil
	}
	if u.Domain == Local {
		return errs.New(
			errs.Invalid,
			"domain cannot become local without a password: PUT /api/users/{username}/password with {\"domain\": "+
				"\"local\", \"password\": …}",
		)
	}
	if err := s.checkNewDomain(ctx, tenant, was.Domain, u.Domain); err != nil {
		return err
	}
	if err := s.checkUsable(ctx, tenant, u.Domain); err != nil {
		return err
	}
	u.leave(was)
	return nil
}

// leave removes what a user has of the domain before, unless it was changed together with the
// domain.
func (u *User) leave(was User) {
	if reflect.DeepEqual(u.Source, was.Source) && reflect.DeepEqual(u.SourceID, was.SourceID) {
		u.Source, u.SourceID = nil, nil
	}
}

// checkUsable returns errs.Conflict if a user of a domain could not log in.
func (s *Service) checkUsable(ctx context.Context, tenant, domain string) error {
	if s.domains == nil || domain == Local {
		return nil
	}
	return s.domains.CheckUsable(ctx, tenant, domain)
}

// staysAbleToLogIn reports whether a superuser can still log in after an edit.
func staysAbleToLogIn(was, u User) bool {
	return u.Superuser && u.Enabled && u.Domain == was.Domain && (was.Locked || !u.Locked) &&
		(u.PasswordExpiresAt == nil || was.PasswordExpiresAt != nil &&
			!u.PasswordExpiresAt.Before(*was.PasswordExpiresAt))
}

var errLastSuperuser = errs.New(
	errs.Conflict, "The last enabled superuser cannot be deleted, disabled, demoted or kept from logging in.",
)

// withProfile returns u with the profile of another: the fields that users may change of their own.
func withProfile(u, profile User) User {
	u.DisplayName, u.FamilyName, u.GivenName, u.MiddleName =
		profile.DisplayName, profile.FamilyName, profile.GivenName, profile.MiddleName
	u.Email, u.Timezone, u.Data, u.UserFields = profile.Email, profile.Timezone, profile.Data, profile.UserFields
	u.AIConsent, u.LastViewedFeed = profile.AIConsent, profile.LastViewedFeed
	u.AvatarID, u.AvatarUpdatedAt = profile.AvatarID, profile.AvatarUpdatedAt
	return u
}

// forgetAll removes what belongs to deleted users or teams in other packages and is not reassigned.
func (s *Service) forgetAll(ctx context.Context, tenant string, kind entity.Kind, ids ...string) error {
	if s.content == nil {
		return nil
	}
	return s.content.Deleted(ctx, tenant, entity.Keys(kind, ids...)...)
}

// Removals removes the rows of what is deleted. *removal.Remover of internal/jobs/removal
// implements it.
type Removals interface {
	// Remove removes what Hooks.RemoveRest can, in the transaction in ctx or later.
	Remove(ctx context.Context, tenant string, gone ...entity.Key) error
}

// removeRest removes what deleted users, by their accounts, or teams had, now or later.
func (s *Service) removeRest(ctx context.Context, tenant string, kind entity.Kind, ids ...string) error {
	if s.removals == nil {
		return nil
	}
	return s.removals.Remove(ctx, tenant, entity.Keys(kind, ids...)...)
}

// DeleteUser removes a user with memberships, sessions and tokens. It needs a superuser. What the
// user owns passes to reassignTo, a user or team, in the same transaction. Of feed, notifications
// and other rows that can be many nobody sees any more; they are removed later.
// Errors: errs.Forbidden; errs.NotFound; errs.Invalid when reassignTo is the user, Everyone or
// nobody; errs.Conflict when the user owns content and reassignTo is "", or when it is the last
// enabled superuser.
func (s *Service) DeleteUser(ctx context.Context, username, reassignTo string) error {
	if of := (entity.Subject{Kind: KindUser, ID: username, Action: entity.ActionDelete}); s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.DeleteUser(ctx, username, reassignTo) })
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		others, err := s.otherSuperusers(ctx, a, username)
		if err != nil {
			return err
		}
		u, err := s.user(ctx, a.Tenant, username)
		if err != nil {
			return err
		}
		if u.Superuser && u.Enabled && others == 0 {
			return errLastSuperuser
		}
		if err := s.release(ctx, a.Tenant, username, reassignTo); err != nil {
			return err
		}
		if err := s.forgetAll(ctx, a.Tenant, KindUser, username); err != nil {
			return err
		}
		if u.AvatarID != nil {
			if err := s.blobs.Delete(ctx, a.Tenant, *u.AvatarID); err != nil {
				return err
			}
		}
		account, err := s.store.DeleteUser(ctx, a.Tenant, username)
		if err != nil {
			return err
		}
		return s.removeRest(ctx, a.Tenant, KindUser, account)
	})
}
