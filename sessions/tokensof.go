package sessions

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// The types of tokens. Only a Personal token authenticates its user. A token lives as long as what
// it is for and its creator do, and is refused while the creator may not make it any more.
const (
	// Personal tokens act for their user on every route. Every user makes their own.
	Personal = "personal"
	// AppView tokens show one app to visitors, as if they had some roles of its manifest. Callers
	// with the right to share the app make them.
	AppView = "app-view"
	// Chat tokens let their holders talk to one assistant. Callers with the right
	// to share it make them.
	Chat = "assistant-chat"
	// SCIM tokens let a provider of identities keep the users and groups of one domain, but not of
	// local and of one that is scanned. Superusers make them.
	SCIM = "scim"
	// Webhook tokens let others call the webhooks of one app: see package webhooks, which makes
	// their credentials of the app's secret. Callers with the right to change the app make them,
	// also by a token that is not ReadOnly.
	Webhook = "webhook"
)

// The kinds of entities that tokens are for.
const (
	AppKind       entity.Kind = "app"
	AssistantKind entity.Kind = "assistant"
	DomainKind    entity.Kind = "domain"
)

// The kinds of tokens in changes. The id of those of an entity is the entity's, a slash and their
// own.
const (
	KindToken          entity.Kind = "token"
	KindAppToken       entity.Kind = "appToken"
	KindAssistantToken entity.Kind = "assistantToken"
	KindDomainToken    entity.Kind = "domainToken"
	KindWebhookToken   entity.Kind = "webhookToken"
)

// TokensOf names the tokens of one type that are for one entity.
type TokensOf struct {
	Type string // Personal, AppView, Chat, SCIM or Webhook
	// EntityID is the id of the app, assistant or domain. The Personal tokens are the caller's and
	// have "", and in a Store the username.
	EntityID string
}

// Entity returns what the tokens are for: an entity, or the user of Personal tokens.
func (of TokensOf) Entity() entity.Key {
	kind := entity.KindUser
	switch of.Type {
	case AppView, Webhook:
		kind = AppKind
	case Chat:
		kind = AssistantKind
	case SCIM:
		kind = DomainKind
	}
	return entity.Key{Kind: kind, ID: of.EntityID}
}

// tokensOf has the rules for tokens of one type.
type tokensOf struct {
	change     entity.Kind // of the tokens in changes
	row        string      // the noun of guard
	credential string      // the kind of their credentials; "" for those that have none
	readOnly   bool        // they only read, whatever their creators want
	mayMake    func(a actor.Actor) bool
	// readable returns the exact id of what the tokens are for to those who may see them
	readable func(ctx context.Context, id string) (string, error)
	writing  within
	making   within // writing for a new token
}

// within calls do with the exact id of what tokens are for, if the caller may change the tokens and
// give them the roles, in a transaction that locks it.
type within func(ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error) error

// withoutRoles is a within for tokens that have no roles.
func withoutRoles(
	write func(ctx context.Context, id string, do func(ctx context.Context, id string) error) error,
) within {
	return func(ctx context.Context, id string, _ []string, do func(ctx context.Context, id string) error) error {
		return write(ctx, id, do)
	}
}

// newTokensOf returns the rules by type, for the types whose entities the host keeps.
func newTokensOf(o Options) map[string]tokensOf {
	withSession := func(a actor.Actor) bool { return a.Token == "" }
	all := map[string]tokensOf{Personal: {
		change:     KindToken,
		row:        "token",
		credential: tokenKind,
		mayMake:    withSession,
		readable:   caller,
		writing:    withoutRoles(ofCaller),
		making:     withoutRoles(ofCaller),
	}}
	if o.Apps != nil {
		all[AppView] = tokensOf{
			change:     KindAppToken,
			row:        "app-token",
			credential: visitorKind,
			readOnly:   true,
			mayMake:    withSession,
			readable:   o.Apps.CheckShare,
			writing:    o.Apps.Sharing,
			making:     o.Apps.Sharing,
		}
		all[Webhook] = tokensOf{
			change:   KindWebhookToken,
			row:      "webhook-token",
			mayMake:  func(a actor.Actor) bool { return !a.ReadOnly },
			readable: o.Apps.CheckInspect,
			writing:  withoutRoles(o.Apps.Writing),
			making:   withoutRoles(o.Apps.Writing),
		}
	}
	if o.Assistants != nil {
		all[Chat] = tokensOf{
			change:     KindAssistantToken,
			row:        "assistant-token",
			credential: chatKind,
			readOnly:   true,
			mayMake:    withSession,
			readable:   o.Assistants.CheckShare,
			writing:    o.Assistants.Sharing,
			making:     o.Assistants.Sharing,
		}
	}
	if o.Domains != nil {
		all[SCIM] = tokensOf{
			change:     KindDomainToken,
			row:        "domain-token",
			credential: provisionerKind,
			mayMake:    withSession,
			readable:   o.Domains.CheckInspect,
			writing:    withoutRoles(o.Domains.Changing),
			making:     withoutRoles(o.Domains.Provisioning),
		}
	}
	return all
}

// rulesOf returns the rules of a type of tokens. It returns errs.Invalid for an unknown type, and
// for one whose entities the host does not keep.
func (s *Service) rulesOf(of TokensOf) (tokensOf, error) {
	rules, ok := s.tokensOf[of.Type]
	if !ok {
		return tokensOf{}, errs.New(
			errs.Invalid, "type must be one of %s", strings.Join(slices.Sorted(maps.Keys(s.tokensOf)), ", "),
		)
	}
	return rules, nil
}

// caller returns the username of the caller, whose Personal tokens are for no entity.
func caller(ctx context.Context, id string) (string, error) {
	a, err := actor.From(ctx)
	if err == nil && id != "" {
		err = errs.New(errs.Invalid, "entityId must be empty for tokens of the type %q", Personal)
	}
	return a.User, err
}

func ofCaller(ctx context.Context, id string, do func(ctx context.Context, id string) error) error {
	username, err := caller(ctx, id)
	if err != nil {
		return err
	}
	return do(ctx, username)
}

// Apps checks who may share and change apps. *apps.Service implements it. All methods return
// errs.NotFound for an app that the caller does not see, errs.Forbidden for a caller who may not do
// that, and errs.Invalid for a draft.
type Apps interface {
	Assistants
	// CheckInspect returns the id of an app that the caller may change, also with a token that can
	// only read.
	CheckInspect(ctx context.Context, id string) (string, error)
	// Writing calls do with the id of an app that the caller may change, in a transaction in which
	// nobody else changes or removes the app.
	Writing(ctx context.Context, id string, do func(ctx context.Context, id string) error) error
}

// Assistants checks who may share assistants. *assistants.Service implements it, with the errors of
// Apps.
type Assistants interface {
	// CheckShare returns the id of an assistant or app that the caller may share, also with a token
	// that can only read.
	CheckShare(ctx context.Context, id string) (string, error)
	// Sharing calls do with the id of an assistant or app that the caller may share, in a
	// transaction that locks it. It returns errs.Invalid if roles has
	// something else than ids of roles of the app's manifest.
	Sharing(ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error) error
}

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
