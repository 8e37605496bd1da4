package sessions

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// ProviderSession is the session at a provider of single sign-on that a session began with.
type ProviderSession struct {
	Domain  string // whose provider it is
	Subject string // the person, as the provider's notices of a logout name them
	ID      string // of the provider's session in such notices; "" for none
	Memory  []byte // what the driver of the domain needs to log the person out there; nil for nothing
}

// StoredProviderSession is a ProviderSession as a Store keeps it.
type StoredProviderSession struct {
	Domain  string
	Subject string // hash
	ID      string // hash, "" for none
	Sealed  string // Memory, "" for none
}

// The table and column that Memory is sealed for; the row is the session's id.
const (
	providerTable  = "tc_provider_sessions"
	providerColumn = "memory"
)

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring
// implements it.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
}

// Start starts a session of a user who has logged in at a provider, with the session there. It
// returns errs.Unauthenticated if the user is gone.
func (u Unchecked) Start(ctx context.Context, tenant string, user principals.User, at ProviderSession) (Login, error) {
	return u.s.start(ctx, tenant, user, u.s.clock.Stamp(), &at)
}

// store returns the stored form of the session at a provider that a session began with.
func (s *Service) store(tenant, session string, at ProviderSession) (*StoredProviderSession, error) {
	stored := &StoredProviderSession{Domain: at.Domain, Subject: hash(at.Subject)}
	if at.ID != "" {
		stored.ID = hash(at.ID)
	}
	if len(at.Memory) == 0 {
		return stored, nil
	}
	var err error
	stored.Sealed, err = s.o.Keys.Seal(tenant, providerTable, providerColumn, session, at.Memory)
	return stored, err
}

// ProviderSession returns the Domain and the Memory of the session at a provider that the caller's
// session began with. It returns errs.NotFound for a caller who has logged in otherwise, or has no
// session.
func (s *Service) ProviderSession(ctx context.Context) (ProviderSession, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return ProviderSession{}, err
	}
	if a.Session == "" {
		return ProviderSession{}, errs.New(errs.NotFound, "The caller has no session.")
	}
	stored, err := s.o.Store.ProviderSession(ctx, a.Tenant, a.Session)
	if err != nil {
		return ProviderSession{}, err
	}
	at := ProviderSession{Domain: stored.Domain}
	if stored.Sealed != "" {
		at.Memory, err = s.o.Keys.Open(a.Tenant, providerTable, providerColumn, a.Session, stored.Sealed)
	}
	return at, err
}

// EndProviderSessions ends the sessions that began at a domain's provider, with all that depends on
// them: those of a subject, "" for any, whose ProviderSession.ID is one of ids, none for any.
// Without a subject and ids it ends none. It returns their number.
func (u Unchecked) EndProviderSessions(ctx context.Context, tenant, domain, subject string, ids []string) (int, error) {
	if subject != "" {
		subject = hash(subject)
	}
	hashed := make([]string, len(ids))
	for i, id := range ids {
		hashed[i] = hash(id)
	}
	return u.s.o.Store.DeleteProviderSessions(ctx, tenant, domain, subject, hashed)
}
