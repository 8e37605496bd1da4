package principals

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Account identifies a user of a domain for a login at another one. One of the fields Username,
// Email and SourceIDs is set.
type Account struct {
	Username  string   // in any spelling
	EntryID   string   // with Username: the id of the directory's entry that has the name now, "" if it was not asked
	Email     string   // that is known to be the person's
	SourceIDs []string // spellings of one id, which is the source id or, by SCIM, the externalId
}

// String returns what is looked for, for the log.
func (a Account) String() string {
	switch {
	case len(a.SourceIDs) > 0:
		return "the source id " + logged(a.SourceIDs[0])
	case a.Email != "":
		return "the e-mail address " + logged(a.Email) + " (what users have typed does not count)"
	}
	return "the name " + logged(a.Username)
}

// AdmitAs logs in the user of a domain as whom a person has been authenticated at another one. It
// creates and changes no user, and nothing of the tie is stored. check is called with the user who
// fits, to ask the directory; its error is returned as it is. nil asks nobody.
//
// It returns errs.Invalid for the domain Local, and errs.Unauthenticated "Unable to log in" if not
// exactly one user of the domain fits, or who fits is disabled, locked or expired, or was locked in
// the directory when it was last asked.
func (p Unchecked) AdmitAs(
	ctx context.Context, tenant, domain string, who Account, check func(ctx context.Context, u User) error,
) (User, error) {
	s := p.s
	if err := foreign(domain); err != nil {
		return User{}, err
	}
	found, err := s.accounts(ctx, tenant, domain, who)
	switch {
	case err != nil:
		return User{}, err
	case len(found) == 0:
		return User{}, refusedFor(fmt.Errorf(
			"no user of the domain %s has %s: scan it, or see what the provider sends", domain, who,
		))
	case len(found) > 1:
		return User{}, refusedFor(fmt.Errorf("several users of the domain %s have %s", domain, who))
	case who.EntryID != "" && found[0].SourceID != nil && *found[0].SourceID != who.EntryID:
		return User{}, refusedFor(fmt.Errorf("the name is that of another entry's user: scan the domain, or if "+
			"the person was created there anew, PUT "+
			"/api/users/%s {\"sourceId\": null}", logged(found[0].Username)))
	case found[0].DirectoryLocked:
		return User{}, refusedFor(
			errors.New("the directory has locked the user: a scan, or a login with the password there, finds out " +
				"when that has ended"),
		)
	}
	if check != nil {
		if err := check(ctx, found[0]); err != nil {
			return User{}, err
		}
	}
	u, err := s.enter(ctx, found[0])
	if errs.CodeOf(err) == errs.NotFound { // who is just deleted
		err = refusedFor(err)
	}
	return u, err
}

// Accounts reports whether a domain has a user with a name, in any spelling.
func (p Unchecked) Accounts(ctx context.Context, tenant, domain, username string) (bool, error) {
	found, err := p.s.accounts(ctx, tenant, domain, Account{Username: username})
	return len(found) == 1, err
}

// accounts returns the users of a domain who fit, two at most.
func (s *Service) accounts(ctx context.Context, tenant, domain string, who Account) ([]User, error) {
	switch {
	case len(who.SourceIDs) > 0:
		return s.store.UsersFrom(ctx, tenant, domain, who.SourceIDs)
	case who.Email != "":
		return s.store.UsersWithEmail(ctx, tenant, domain, who.Email)
	}
	u, err := s.find(ctx, tenant, who.Username)
	if errs.CodeOf(err) == errs.NotFound || err == nil && u.Domain != domain {
		return nil, nil
	}
	return []User{u}, err
}
