package sessions

import (
	"context"
	"crypto/subtle"
	"net/netip"
	"strings"
)

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
