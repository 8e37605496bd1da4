package sessions

import (
	"context"
	"crypto/subtle"
	"net/netip"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/paging"
)

// DomainKind is the kind of what tokens of the type SCIM are for.
const DomainKind entity.Kind = "domain"

// Domains checks who may change authentication domains. *domains.Service implements it: see there
// for the errors.
type Domains interface {
	// CheckInspect returns the id of a domain to a superuser, also with a token that can only read.
	CheckInspect(ctx context.Context, id string) (string, error)
	// Changing calls do with the id of a domain for a superuser, in a transaction in which nobody
	// else changes or removes it.
	Changing(ctx context.Context, id string, do func(ctx context.Context, id string) error) error
	// Provisioning is Changing for a domain whose users a provider of identities may keep.
	Provisioning(ctx context.Context, id string, do func(ctx context.Context, id string) error) error
}

// provisioners are the tokens with which providers of identities keep the users of domains.
func (s *Service) provisioners() tokensOf {
	return tokensOf{
		kind:      DomainKind,
		tokenType: SCIM,
		change:    KindDomainToken,
		row:       "domain-token",
		writes:    true,
		readable:  s.o.Domains.CheckInspect,
		writing:   s.o.Domains.Changing,
	}
}

// CreateDomainToken creates a token with which a provider of identities keeps the users and groups
// of a domain by SCIM, and returns it with its credential, which cannot be read again. It is for
// superusers. It lives as long as it, the domain and its creator do, and is refused while its
// creator is not an enabled superuser. A caller with a token cannot make one. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid naming the field, also for the domain local;
// errs.Conflict for a domain that is scanned.
func (s *Service) CreateDomainToken(
	ctx context.Context, domain string, n NewToken,
) (t Token, credential string, err error) {
	return s.createTokenOf(ctx, s.provisioners(), provisionerKind, n, nil, func(
		ctx context.Context, do func(ctx context.Context, id string) error,
	) error {
		return s.o.Domains.Provisioning(ctx, domain, do)
	})
}

// DomainTokens returns a page of the tokens of a domain, newest first, to superusers. Their
// counters are up to date. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) DomainTokens(ctx context.Context, domain string, q paging.Query) (paging.Page[Token], error) {
	return s.tokensOf(ctx, s.provisioners(), domain, q)
}

// DomainToken returns one of the tokens of a domain, as DomainTokens does. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) DomainToken(ctx context.Context, domain, id string) (Token, error) {
	return s.tokenOf(ctx, s.provisioners(), domain, id)
}

// DeleteDomainToken revokes a token of a domain. It is for superusers. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) DeleteDomainToken(ctx context.Context, domain, id string) error {
	return s.deleteTokenOf(ctx, s.provisioners(), domain, id)
}

// Provisioner is a provider of identities whose credential is a token of a domain.
type Provisioner struct {
	Tenant, Domain string
	Token          string // id of the token
}

// Provisioner returns the holder of a token of a domain, by its credential and the address of the
// request. It returns the same errs.Unauthenticated for every reason, after the same work for a
// token that does not exist and one with another secret.
func (u Unchecked) Provisioner(ctx context.Context, credential string, from netip.Addr) (Provisioner, error) {
	parts := strings.Split(credential, ".")
	if len(credential) > maxCredential || len(parts) != 4 || parts[0] != provisionerKind || !wellFormed(parts) {
		return Provisioner{}, unauthenticated()
	}
	t, creator, err := u.s.use(ctx, parts[1], parts[2], from, func(t Token) bool {
		same := subtle.ConstantTimeCompare([]byte(hash(parts[3])), []byte(t.SecretHash)) == 1
		return t.Type == SCIM && t.Entity.Kind == DomainKind && same
	})
	if err == nil && !creator.Superuser {
		err = unauthenticated()
	}
	if err != nil {
		return Provisioner{}, err
	}
	return Provisioner{Tenant: parts[1], Domain: t.Entity.ID, Token: t.ID}, nil
}
