package domains

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// signIn returns the user of a person who has logged in at a domain's provider, by the domain's rules. It returns a refusal for who is not allowed in.
func (s *Service) signIn(ctx context.Context, d Domain, who SignedIn) (principals.User, error) {
	o, err := s.openWithRules(d)
	if err != nil {
		return principals.User{}, err
	}
	r := o.rules
	if err := r.Allow.admits(who); err != nil {
		return principals.User{}, refusal(err)
	}
	if r.Accounts == "" {
		return s.o.Principals.Admit(ctx, d.Tenant, d.ID, d.Type, who.Identity)
	}
	if who.Disabled {
		return principals.User{}, refusal(errors.New("the provider has disabled the person"))
	}
	account, err := s.account(ctx, d.Tenant, r, who)
	if err != nil {
		return principals.User{}, err
	}
	return s.o.Principals.AdmitAs(ctx, d.Tenant, r.Accounts, account)
}

// admits returns the reason why a person is not allowed in, nil if there is none.
func (a allow) admits(who SignedIn) error {
	if a.Groups != nil && !anyOf(a.Groups, who.Groups) {
		switch {
		case who.NoGroups != "":
			return fmt.Errorf("config.allow.groups: the provider has left the groups out: %s", who.NoGroups)
		case who.Groups == nil:
			return errors.New("config.allow.groups: the provider says nothing of groups: see attributes.groups and claims.groups")
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
			return principals.Account{}, refusal(errors.New("config.accountsBy: the provider vouches for no e-mail address of the person"))
		}
		return principals.Account{Email: who.Email}, nil
	case byID:
		if who.AccountID == "" {
			return principals.Account{}, refusal(errors.New("config.accountsBy: the provider sends no id: see attributes.id and claims.id"))
		}
		return principals.Account{SourceIDs: sameIDs(who.AccountID)}, nil
	}
	name, err := s.accountName(ctx, tenant, r.Accounts, who.Username)
	if err == nil && name == "" {
		err = refusal(fmt.Errorf("config.accountsBy: %q is no name of the domain %s", who.Username, r.Accounts))
	}
	return principals.Account{Username: name}, err
}

// accountName returns the short name of a person in a domain; "" if it is none of the domain.
func (s *Service) accountName(ctx context.Context, tenant, domain, name string) (string, error) {
	d, err := s.get(ctx, tenant, domain)
	if err != nil {
		if errs.CodeOf(err) == errs.NotFound {
			err = refusal(err)
		}
		return "", err
	}
	if realm, err := s.open(d); err == nil {
		if names, ok := realm.(AccountNames); ok {
			return names.Account(name), nil
		}
	}
	return name, nil // also of a directory that nobody can ask any more
}

// sameIDs returns the spellings of an id under which a directory may have stored it: as it is, and of a GUID all forms. A directory's GUID comes as
// text, in either case and with or without braces, or as AD FS and Entra send it: the base64 of its bytes, of which the first three numbers are
// little-endian.
func sameIDs(id string) []string {
	all := []string{id}
	guid, ok := parseGUID(id)
	if !ok {
		return all
	}
	text := guid.String()
	hex := strings.ReplaceAll(text, "-", "")
	for _, form := range []string{text, "{" + text + "}", hex} {
		all = append(all, form, strings.ToUpper(form))
	}
	all = append(all, base64.StdEncoding.EncodeToString(swapped(guid)))
	slices.Sort(all)
	return slices.Compact(all)
}

// parseGUID reads a GUID in any of its forms.
func parseGUID(id string) (uuid.UUID, bool) {
	if raw, err := base64.StdEncoding.DecodeString(id); err == nil && len(raw) == 16 {
		return uuid.UUID(swapped(uuid.UUID(raw))), true
	}
	if !slices.Contains([]int{32, 36, 38}, len(id)) || len(id) == 38 && (id[0] != '{' || id[37] != '}') {
		return uuid.UUID{}, false
	}
	guid, err := uuid.Parse(id)
	return guid, err == nil
}

// swapped turns the bytes of a GUID in the order of its text into Microsoft's, and back.
func swapped(guid uuid.UUID) []byte {
	b := slices.Clone(guid[:])
	binary.LittleEndian.PutUint32(b, binary.BigEndian.Uint32(guid[:]))
	binary.LittleEndian.PutUint16(b[4:], binary.BigEndian.Uint16(guid[4:]))
	binary.LittleEndian.PutUint16(b[6:], binary.BigEndian.Uint16(guid[6:]))
	return b
}
