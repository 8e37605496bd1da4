package principals

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// DomainContent counts the users and teams of every domain that has any.
func (p Unchecked) DomainContent(ctx context.Context, tenant string) (map[string]DomainCounts, error) {
	return p.s.store.DomainCounts(ctx, tenant)
}

// RemoveDomain deletes the users and teams of a domain with memberships, sessions, tokens, files
// and pictures. What they own passes to another user or team. It joins the transaction in ctx, or
// is one.
//
// Errors: errs.Invalid for the domain Local, or when to is Everyone or nobody; errs.Conflict when
// to is of the domain, when the tenant would be left without an enabled superuser, or when
// something that they own cannot be passed on; errs.NotFound for the tenant.
func (p Unchecked) RemoveDomain(ctx context.Context, tenant, domain, to string) error {
	s := p.s
	if err := foreign(domain); err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, tenant); err != nil {
			return err
		}
		if err := s.checkHeir(ctx, tenant, domain, to); err != nil {
			return err
		}
		users, teams, err := s.store.DomainPrincipals(ctx, tenant, domain)
		if err != nil {
			return err
		}
		going := slices.Concat(users, teams)
		if err := s.store.LockPrincipals(ctx, tenant, append(going, to)); err != nil {
			return err
		}
		if err := s.passOnAll(ctx, tenant, going, to); err != nil {
			return err
		}
		for some := range transfer.Chunks(teams) {
			if _, err := s.dropTeams(ctx, tenant, some); err != nil {
				return err
			}
		}
		for some := range transfer.Chunks(users) {
			if _, err := s.dropUsers(ctx, tenant, some); err != nil {
				return err
			}
		}
		return s.forgetAll(ctx, tenant, kindDomain, domain)
	})
}

// kindDomain is the kind of what goes with a domain in other packages: its tokens.
const kindDomain entity.Kind = "domain"

// foreign returns errs.Invalid for the domain Local, whose users come from no directory or
// provider.
func foreign(domain string) error {
	if domain == Local {
		return errs.New(errs.Invalid, "Users of the domain %s come from nowhere else.", Local)
	}
	return acceptDomain(&domain)
}

// lockDomain locks a tenant that has a domain: see Unchecked.LockDomain.
func (s *Service) lockDomain(ctx context.Context, tenant, domain string) error {
	if err := foreign(domain); err != nil {
		return err
	}
	if err := s.store.LockTenant(ctx, tenant); err != nil {
		return err
	}
	err := s.checkNewDomain(ctx, tenant, Local, domain)
	if errs.CodeOf(err) == errs.Invalid {
		return errs.New(errs.NotFound, "Domain not found.")
	}
	return err
}

// checkHeir returns an error if to is not a user or team, or is one of the domain.
func (s *Service) checkHeir(ctx context.Context, tenant, domain, to string) error {
	p, err := s.principal(ctx, tenant, to)
	if errs.CodeOf(err) == errs.NotFound || err == nil && p.Type == TypeEveryone {
		return errs.New(errs.Invalid, "What the domain's users and teams own must pass to a user or team.")
	}
	if err != nil {
		return err
	}
	of := ""
	if p.Type == TypeTeam {
		t, err := s.store.Team(ctx, tenant, p.ID)
		if err != nil {
			return err
		}
		of = t.Domain
	} else {
		u, err := s.store.User(ctx, tenant, p.ID)
		if err != nil {
			return err
		}
		of = u.Domain
	}
	if of == domain {
		return errs.New(
			errs.Conflict, "What the domain's users and teams own cannot pass to %s, who is one of them.", to,
		)
	}
	return nil
}

// passOnAll moves what some locked principals own to another one. It finds the owners first: of
// many principals, few are.
func (s *Service) passOnAll(ctx context.Context, tenant string, from []string, to string) error {
	if s.content == nil {
		return nil
	}
	owners, err := s.content.Owners(ctx, tenant, from)
	if err != nil {
		return err
	}
	for _, id := range from {
		if !owners[id] {
			continue
		}
		if err := s.passOn(ctx, tenant, id, to); err != nil {
			return err
		}
	}
	return nil
}
