package domains

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/principals"
)

// signIn returns the user of a person who has logged in at a domain's provider, by the domain's
// rules. It returns a refusal for who is not allowed in.
func (s *Service) signIn(ctx context.Context, d Domain, who SignedIn) (principals.User, error) {
	o, err := s.openWithRules(d)
	if err != nil {
		return principals.User{}, err
	}
	u, err := s.admit(ctx, d, o.rules, who)
	if err == nil {
		err = s.joinTeams(ctx, d, o.rules.Teams, u, who)
	}
	return u, err
}

// admit returns the user of a person.
func (s *Service) admit(ctx context.Context, d Domain, r rules, who SignedIn) (principals.User, error) {
	if err := r.Allow.admits(who); err != nil {
		return principals.User{}, refusal(err)
	}
	if r.Accounts == "" {
		return s.o.Principals.Admit(ctx, d.Tenant, principals.Source{Domain: d.ID, Driver: d.Type}, who.Identity)
	}
	if who.Disabled || who.Locked {
		return principals.User{}, refusal(errors.New("the provider has disabled the person"))
	}
	account, err := s.account(ctx, d.Tenant, r, who)
	if err != nil {
		return principals.User{}, err
	}
	check := func(ctx context.Context, u principals.User) error {
		return s.stillThere(ctx, d.Tenant, r.Accounts, u, who.Username)
	}
	if account.Username != "" { // by which the directory was asked
		check = nil
	}
	return s.o.Principals.AdmitAs(ctx, d.Tenant, r.Accounts, account, check)
}

// maxGroups is how many groups of a person become teams.
const maxGroups = 1000

// joinTeams has a user join the teams of the groups that the provider has reported, and leave
// others. If it has reported none, teams stay as they are.
func (s *Service) joinTeams(ctx context.Context, d Domain, r teamRules, u principals.User, who SignedIn) error {
	why := who.NoGroups
	if len(who.Groups) > maxGroups {
		why = fmt.Sprintf("the person has %d groups, and at most %d become teams", len(who.Groups), maxGroups)
	}
	if why != "" {
		s.o.Log.InfoContext(
			ctx, "teams of a login stay as they are", "reason", why, "tenant", d.Tenant, "domain", d.ID,
			"username", u.Username,
		)
		return nil
	}
	if who.Groups == nil {
		return nil
	}
	o := PersonOptions{Source: d.Type, Existing: r.Create != nil && !*r.Create}
	for _, m := range r.Map {
		o.Map = append(o.Map, dirsync.Mapping{Group: m.Group, Team: m.Team, Role: m.role})
	}
	warnings, err := s.o.Directories.SyncPerson(ctx, d.Tenant, d.ID, u.Username, who.Groups, o)
	for _, w := range warnings {
		if !s.isNews(warning{place{d.Tenant, d.ID}, w}) {
			continue
		}
		s.o.Log.InfoContext(
			ctx, "teams of a login", "reason", w, "tenant", d.Tenant, "domain", d.ID, "username", u.Username,
		)
	}
	if errs.CodeOf(err) == errs.NotFound { // the domain, or the user, is just deleted
		err = refusal(err)
	}
	return err
}

// warning is a warning about the teams of a domain, which may be the same at each login.
type warning struct {
	of   place
	text string
}

// A warning is logged once in an hour, of the last maxWarned.
const (
	warnedFor = time.Hour
	maxWarned = 1000
)

// isNews reports whether a warning was not logged within the hour.
func (s *Service) isNews(w warning) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if at, there := s.warned[w]; there && now.Before(at.Add(warnedFor)) {
		return false
	}
	if len(s.warned) >= maxWarned {
		clear(s.warned)
	}
	s.warned[w] = now
	return true
}

// admits returns the reason why a person is not allowed in, nil if there is none.
func (a allow) admits(who SignedIn) error {
	if a.Groups != nil && !anyOf(a.Groups, who.Groups) {
		switch {
		case who.NoGroups != "":
			return fmt.Errorf("config.allow.groups: the provider has left the groups out: %s", who.NoGroups)
		case who.Groups == nil:
			return errors.New("config.allow.groups: the provider says nothing of groups: see attributes.groups " +
				"and claims.groups")
		}
		return errors.New("config.allow.groups: the person is in none of these groups")
	}
	if a.Domains != nil {
		at := strings.LastIndexByte(who.Email, '@')
		switch {
		case at < 0 || !who.EmailVerified:
			return errors.New("config.allow.domains: the provider vouches for no e-mail address of the person")
		case !slices.Contains(a.Domains, strings.ToLower(who.Email[at+1:])):
			return errors.New("config.allow.domains: the e-mail address is of none of these domains")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Claims)) {
		if !anyOf(a.Claims[name], who.Claims[name]) {
			return fmt.Errorf("config.allow.claims.%s: the provider sends none of these texts", name)
		}
	}
	return nil
}

func anyOf(wanted, has []string) bool {
	return slices.ContainsFunc(has, func(text string) bool { return slices.Contains(wanted, text) })
}

// account returns what the user of a person is found by in the domain that the rules name.
func (s *Service) account(ctx context.Context, tenant string, r rules, who SignedIn) (principals.Account, error) {
	switch r.AccountsBy {
	case byEmail:
		if who.Email == "" || !who.EmailVerified {
			return principals.Account{}, refusal(
				errors.New("config.accountsBy: the provider vouches for no e-mail address of the person"),
			)
		}
		return principals.Account{Email: who.Email}, nil
	case byID:
		if who.AccountID == "" {
			return principals.Account{}, refusal(
				errors.New("config.accountsBy: the provider sends no id: see attributes.id and claims.id"),
			)
		}
		return principals.Account{SourceIDs: sameIDs(who.AccountID)}, nil
	}
	known, err := s.accountName(ctx, tenant, r.Accounts, who.Username)
	switch {
	case err != nil:
		return principals.Account{}, err
	case known.Username == "":
		return principals.Account{}, refusal(fmt.Errorf(
			"config.accountsBy: %q is no name of the domain %s", who.Username, r.Accounts,
		))
	case known.Disabled || known.Locked:
		return principals.Account{}, refusal(errLockedThere)
	}
	return principals.Account{Username: known.Username, EntryID: known.ID}, nil
}

// accountName returns the person of a domain who has a name: with the short name, "" if it is none
// of the domain. A directory that is a Finder is asked, whatever form the name has: it knows whose
// it is, and whether the person is disabled there since the last scan.
func (s *Service) accountName(ctx context.Context, tenant, domain, name string) (Identity, error) {
	d, realm, err := s.accountRealm(ctx, tenant, domain)
	if err != nil {
		return Identity{}, err
	}
	if directory, ok := realm.(Finder); ok {
		return s.found(ctx, d, directory, name)
	}
	if names, ok := realm.(AccountNames); ok {
		name = names.Account(name)
	}
	return Identity{Username: name}, nil
}

// accountRealm returns a domain whose users log in at another one; a nil Realm if it has no
// directory that could be asked, such as one without a configuration. Errors: a refusal if there is
// no such domain.
func (s *Service) accountRealm(ctx context.Context, tenant, domain string) (Domain, Realm, error) {
	d, err := s.get(ctx, tenant, domain)
	if errs.CodeOf(err) == errs.NotFound {
		return Domain{}, nil, refusal(err)
	}
	if err != nil {
		return Domain{}, nil, err
	}
	realm, err := s.open(d)
	if errs.CodeOf(err) == errs.Invalid {
		return d, nil, nil
	}
	return d, realm, err
}

// stillThere returns a refusal if the directory of a domain does not know a user who was found by
// an id or an e-mail address, or has disabled or locked the person. The directory is asked for the
// user's name and, as somebody renamed there has another one until the next scan, for the name that
// the provider sends.
func (s *Service) stillThere(ctx context.Context, tenant, domain string, u principals.User, name string) error {
	d, realm, err := s.accountRealm(ctx, tenant, domain)
	directory, ok := realm.(Finder)
	if err != nil || !ok {
		return err
	}
	for _, name := range []string{u.Username, name} {
		who, err := s.found(ctx, d, directory, name)
		switch {
		case err != nil:
			return err
		case who.ID == "" || u.SourceID != nil && *u.SourceID != who.ID:
			continue // nobody's, or another person's
		case who.Disabled || who.Locked:
			return refusal(errLockedThere)
		}
		return nil
	}
	return refusal(fmt.Errorf(
		"the directory of the domain %s does not know the user %s any more, or by another name: scan it", d.ID,
		u.Username,
	))
}

var errLockedThere = errors.New("the directory has disabled or locked the person")

// found returns the person whom a directory finds by a name; without a username if there is none.
func (s *Service) found(ctx context.Context, d Domain, directory Finder, name string) (Identity, error) {
	limited, cancel := context.WithTimeout(ctx, s.checkTime)
	defer cancel()
	who, err := directory.Find(limited, name)
	switch {
	case errs.CodeOf(err) == errs.NotFound:
		s.o.Log.InfoContext(
			ctx, "a name of single sign-on is nobody's in the directory", "tenant", d.Tenant, "domain", d.ID,
			"username", name, "reason", errs.MessageOf(err),
		)
		return Identity{}, nil
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		err = errs.Wrap(
			errs.Upstream, err, "The directory of the domain %s has not said in %v who %s is.", d.ID,
			s.checkTime, name,
		)
	}
	return who, err
}

// sameIDs returns the spellings of an id under which a directory may have stored it: as it is, and
// of a GUID all forms. A directory's GUID comes as text, in either case and with or without braces,
// or as AD FS and Entra send it: the base64 of its bytes, of which the first three numbers are
// little-endian.
func sameIDs(id string) []string {
	all := []string{id}
	g, ok := parseGUID(id)
	if !ok {
		return all
	}
	text := fmt.Sprintf("%x-%x-%x-%x-%x", g[:4], g[4:6], g[6:8], g[8:10], g[10:])
	for _, form := range []string{text, "{" + text + "}", hex.EncodeToString(g[:])} {
		all = append(all, form, strings.ToUpper(form))
	}
	microsofts := g.swapped()
	all = append(all, base64.StdEncoding.EncodeToString(microsofts[:]))
	slices.Sort(all)
	return slices.Compact(all)
}

// guid is a GUID with its bytes in the order of its text.
type guid [16]byte

var guidForm = regexp.MustCompile(`^(?:\{[0-9A-Fa-f-]{36}\}|[0-9A-Fa-f-]{36}|[0-9A-Fa-f]{32})$`)

// parseGUID reads a GUID in any of its forms.
func parseGUID(id string) (g guid, ok bool) {
	if raw, err := base64.StdEncoding.DecodeString(id); err == nil && len(raw) == len(g) {
		return guid(raw).swapped(), true
	}
	if !guidForm.MatchString(id) {
		return g, false
	}
	raw, err := hex.DecodeString(strings.NewReplacer("-", "", "{", "", "}", "").Replace(id))
	if err != nil || len(raw) != len(g) {
		return g, false
	}
	return guid(raw), true
}

// swapped returns the GUID with its bytes in Microsoft's order, and back.
func (g guid) swapped() guid {
	swapped := g
	binary.LittleEndian.PutUint32(swapped[:], binary.BigEndian.Uint32(g[:]))
	binary.LittleEndian.PutUint16(swapped[4:], binary.BigEndian.Uint16(g[4:]))
	binary.LittleEndian.PutUint16(swapped[6:], binary.BigEndian.Uint16(g[6:]))
	return swapped
}
