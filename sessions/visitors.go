package sessions

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
)

// UseToken counts a use of a token whose holder the caller has authenticated, such as one of
// webhooks by its signature. It returns the same errs.Unauthenticated if it is not there, is of
// another type or entity, has expired, or may not be used from the address.
func (u Unchecked) UseToken(ctx context.Context, tenant string, of TokensOf, id string, from netip.Addr) error {
	if !wellFormed([]string{tenant, id}) {
		return unauthenticated()
	}
	t, _, err := u.s.admit(ctx, tenant, strings.ToLower(id), from, func(t Token) bool {
		return t.Type == of.Type && t.Entity == of.Entity()
	})
	if err == nil {
		u.s.count(tenant, t)
	}
	return err
}

// Visitor is somebody whose credential is a token of an app or an assistant.
type Visitor struct {
	Token string   // id of the token
	App   string   // id of the app, of a Chat that of the assistant
	Roles []string // of the app's manifest, as they were chosen for the token
	// rules of the app's manifest when the token was made; nil for a Chat and for a token of an
	// earlier release
	Access []string
	// the user who made the token, with the rights of the moment and ReadOnly; the visitor is not
	// this user
	Inviter actor.Actor
}

// Visitor returns the holder of a token of an app, by its credential and the address of the
// request. The caller checks that the inviter may share the app. It returns the same
// errs.Unauthenticated for every reason, after the same work for a token that does not exist and
// one with another secret.
func (u Unchecked) Visitor(ctx context.Context, credential string, from netip.Addr) (Visitor, error) {
	return u.holder(ctx, visitorKind, AppKind, AppView, credential, from)
}

// IsChat reports whether a credential is that of a token of an assistant, which Chatter takes.
func IsChat(credential string) bool { return strings.HasPrefix(credential, chatKind+".") }

// Chatter is Visitor for a token of an assistant.
func (u Unchecked) Chatter(ctx context.Context, credential string, from netip.Addr) (Visitor, error) {
	return u.holder(ctx, chatKind, AssistantKind, Chat, credential, from)
}

func (u Unchecked) holder(
	ctx context.Context, credentialKind string, kind entity.Kind, tokenType, credential string, from netip.Addr,
) (Visitor, error) {
	parts := strings.Split(credential, ".")
	if len(credential) > maxCredential || len(parts) != 4 || parts[0] != credentialKind || !wellFormed(parts) {
		return Visitor{}, unauthenticated()
	}
	return u.visitor(ctx, parts[1], parts[2], from, func(t Token) bool {
		same := subtle.ConstantTimeCompare([]byte(hash(parts[3])), []byte(t.SecretHash)) == 1
		return t.Type == tokenType && t.Entity.Kind == kind && same
	})
}

// ResumeVisitor returns what Visitor would return now for the token with an id. The caller has
// checked that the request comes from somebody who has been let in with it.
func (u Unchecked) ResumeVisitor(ctx context.Context, tenant, id string, from netip.Addr) (Visitor, error) {
	if !wellFormed([]string{tenant, id}) {
		return Visitor{}, unauthenticated()
	}
	return u.visitor(ctx, tenant, id, from, func(t Token) bool { return t.Type == AppView && t.Entity.Kind == AppKind })
}

func (u Unchecked) visitor(
	ctx context.Context, tenant, id string, from netip.Addr, genuine func(Token) bool,
) (Visitor, error) {
	t, inviter, err := u.s.use(ctx, tenant, id, from, genuine)
	if err != nil {
		return Visitor{}, err
	}
	var data appData
	if len(t.Data) > 0 {
		if err := json.Unmarshal(t.Data, &data); err != nil {
			return Visitor{}, err
		}
	}
	return Visitor{Token: t.ID, App: t.Entity.ID, Roles: data.Roles, Access: data.Access, Inviter: inviter}, nil
}
