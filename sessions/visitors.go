package sessions

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// AppKind is the kind of entities that tokens of the type AppView are for.
const AppKind entity.Kind = "app"

// AssistantKind is the kind of entities that tokens of the type Chat are for.
const AssistantKind entity.Kind = "assistant"

// Assistants checks who may share assistants. *assistants.Service implements it, with the errors of
// Apps.
type Assistants interface {
	// CheckShare returns the id of an assistant that the caller may share, also with a token that
	// can only read.
	CheckShare(ctx context.Context, id string) (string, error)
	// Sharing calls do with the id of an assistant that the caller may share, in a transaction in
	// which nobody else changes or removes it.
	Sharing(ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error) error
}

// Apps checks who may share and change apps. *apps.Service implements it. All methods return
// errs.NotFound for an app that the caller does not see, errs.Forbidden for a caller who may not do
// that, and errs.Invalid for a draft.
type Apps interface {
	// CheckShare returns the id of an app that the caller may share, also with a token that can
	// only read.
	CheckShare(ctx context.Context, id string) (string, error)
	// Sharing calls do with the id of an app that the caller may share, in a transaction in which
	// nobody else changes or removes the app. It returns errs.Invalid if roles has something else
	// than ids of roles of the app's manifest.
	Sharing(ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error) error
	// CheckInspect returns the id of an app that the caller may change, also with a token that can
	// only read.
	CheckInspect(ctx context.Context, id string) (string, error)
	// Writing calls do with the id of an app that the caller may change, in a transaction in which
	// nobody else changes or removes the app.
	Writing(ctx context.Context, id string, do func(ctx context.Context, id string) error) error
}

// tokensOf is a type of tokens of the entities of a kind, and who manages them.
type tokensOf struct {
	kind      entity.Kind
	tokenType string
	change    entity.Kind
	row       string // the noun of guard
	writes    bool   // they do more than read
	readable  func(ctx context.Context, id string) (string, error)
	writing   func(ctx context.Context, id string, do func(ctx context.Context, id string) error) error
}

// sharing is writing for those who may share an entity.
func sharing(of Assistants) func(context.Context, string, func(context.Context, string) error) error {
	return func(ctx context.Context, id string, do func(ctx context.Context, id string) error) error {
		return of.Sharing(ctx, id, nil, do)
	}
}

// views are the tokens that show apps to visitors.
func (s *Service) views() tokensOf {
	return tokensOf{
		kind:      AppKind,
		tokenType: AppView,
		change:    KindAppToken,
		row:       "app-token",
		readable:  s.o.Apps.CheckShare,
		writing:   sharing(s.o.Apps),
	}
}

// chats are the tokens with which their holders talk to assistants.
func (s *Service) chats() tokensOf {
	return tokensOf{
		kind:      AssistantKind,
		tokenType: Chat,
		change:    KindAssistantToken,
		row:       "assistant-token",
		readable:  s.o.Assistants.CheckShare,
		writing:   sharing(s.o.Assistants),
	}
}

// webhooks are the tokens that let others call webhooks.
func (s *Service) webhooks() tokensOf {
	return tokensOf{
		kind:      AppKind,
		tokenType: Webhook,
		change:    KindWebhookToken,
		row:       "webhook-token",
		readable:  s.o.Apps.CheckInspect,
		writing:   s.o.Apps.Writing,
	}
}

// appData is Token.Data of an AppView.
type appData struct {
	Roles []string `json:"roles"` // ids of roles of the app's manifest, ordered
	// rules of the app's manifest when the token was made; nil in tokens of earlier releases
	Access []string `json:"access"`
}

// CreateAppToken creates a token that shows an app to visitors as if they had some roles of its
// manifest, and keeps the calls that the manifest allows now as texts: Visitor has them. It returns
// the token with its credential, which cannot be read again. It is for those who may share the app.
// It lives as long as it, the app and its creator do, and is refused while the creator may not
// share the app. A caller with a token cannot make one. Errors: errs.NotFound; errs.Forbidden;
// errs.Invalid naming the field, also for an unknown role and for a draft; errs.Conflict for a
// manifest that cannot be read.
func (s *Service) CreateAppToken(
	ctx context.Context, app string, n NewToken, roles, access []string,
) (t Token, credential string, err error) {
	roles = append([]string{}, roles...) // an empty list for none
	slices.Sort(roles)
	roles = slices.Compact(roles)
	return s.createTokenOf(ctx, s.views(), visitorKind, n, appData{roles, append([]string{}, access...)}, func(
		ctx context.Context, do func(ctx context.Context, id string) error,
	) error {
		return s.o.Apps.Sharing(ctx, app, roles, do)
	})
}

// createTokenOf creates a token of an entity with data, and returns it with its credential, which
// begins with kind. within calls what it gets with the id of the entity.
func (s *Service) createTokenOf(ctx context.Context, of tokensOf, kind string, n NewToken, data any,
	within func(
		ctx context.Context, do func(ctx context.Context, id string) error,
	) error) (t Token, credential string, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Token{}, "", err
	}
	if a.Token != "" {
		return Token{}, "", errTokenOfToken
	}
	err = within(ctx, func(ctx context.Context, id string) error {
		now := s.clock.Stamp()
		if err := n.accept(now); err != nil {
			return err
		}
		var raw json.RawMessage
		if data != nil {
			if raw, err = json.Marshal(data); err != nil {
				return err
			}
		}
		secret := s.o.NewSecret()
		t = Token{
			ID: s.clock.NewID(), Type: of.tokenType, Username: a.User, SecretHash: hash(secret),
			ReadOnly: !of.writes, Notes: n.Notes, Restrict: n.Restrict, CIDR: n.CIDR,
			Data: raw, Entity: entity.Key{Kind: of.kind, ID: id},
			ExpiresAt: n.ExpiresAt, CreatedAt: now, UpdatedAt: now,
		}
		credential = strings.Join([]string{kind, a.Tenant, t.ID, secret}, ".")
		return s.insertToken(ctx, a.Tenant, of.change, t)
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, credential, nil
}

// insertToken adds a token of an entity, or a personal one.
func (s *Service) insertToken(ctx context.Context, tenant string, kind entity.Kind, t Token) error {
	change := entity.Subject{Kind: kind, ID: t.ID, Action: entity.ActionCreate}
	if t.Entity.ID != "" {
		change.ID = s.o.Feed.Part(t.Entity.ID, t.ID)
	}
	return s.o.Feed.In(ctx, nil, tenant, change, func(ctx context.Context) error {
		return s.o.Store.InsertToken(ctx, tenant, t)
	})
}

// CreateAssistantToken creates a token whose holders talk to an assistant, and returns it with its
// credential, which cannot be read again. It is for those who may share the assistant. It lives as
// long as it, the assistant and its creator do. A caller with a token cannot make one.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field, also for a draft.
func (s *Service) CreateAssistantToken(
	ctx context.Context, assistant string, n NewToken,
) (t Token, credential string, err error) {
	of := s.chats()
	return s.createTokenOf(ctx, of, chatKind, n, nil, func(
		ctx context.Context, do func(ctx context.Context, id string) error,
	) error {
		return of.writing(ctx, assistant, do)
	})
}

// AssistantTokens returns a page of the tokens of an assistant, newest first, to those who may
// share it. Their counters are up to date.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) AssistantTokens(ctx context.Context, assistant string, q paging.Query) (paging.Page[Token], error) {
	return s.tokensOf(ctx, s.chats(), assistant, q)
}

// AssistantToken returns one of the tokens of an assistant, as AssistantTokens does. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) AssistantToken(ctx context.Context, assistant, id string) (Token, error) {
	return s.tokenOf(ctx, s.chats(), assistant, id)
}

// DeleteAssistantToken revokes a token of an assistant. It is for those who may share the
// assistant. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) DeleteAssistantToken(ctx context.Context, assistant, id string) error {
	return s.deleteTokenOf(ctx, s.chats(), assistant, id)
}

// AppTokens returns a page of the tokens that show an app to visitors, newest first, to those who
// may share it. Their counters are up to date. Errors: errs.NotFound; errs.Forbidden; errs.Invalid
// for a draft.
func (s *Service) AppTokens(ctx context.Context, app string, q paging.Query) (paging.Page[Token], error) {
	return s.tokensOf(ctx, s.views(), app, q)
}

// AppToken returns one of the tokens that show an app to visitors, as AppTokens does. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) AppToken(ctx context.Context, app, id string) (Token, error) {
	return s.tokenOf(ctx, s.views(), app, id)
}

// DeleteAppToken revokes a token that shows an app to visitors, with every page that was opened
// with it. It is for those who may share the app. Errors: errs.NotFound; errs.Forbidden;
// errs.Invalid for a draft.
func (s *Service) DeleteAppToken(ctx context.Context, app, id string) error {
	return s.deleteTokenOf(ctx, s.views(), app, id)
}

// CreateWebhookToken creates a token that lets others call the webhooks of an app. It is for those
// who may change the app. It lives as long as it, the app and its creator do. A token that can only
// read makes none. Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field, also for a
// draft.
func (s *Service) CreateWebhookToken(ctx context.Context, app string, n NewToken) (t Token, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Token{}, err
	}
	if a.ReadOnly {
		return Token{}, errTokenOfToken
	}
	err = s.o.Apps.Writing(ctx, app, func(ctx context.Context, id string) error {
		now := s.clock.Stamp()
		if err := n.accept(now); err != nil {
			return err
		}
		t = Token{
			ID: s.clock.NewID(), Type: Webhook, Username: a.User, Notes: n.Notes, Restrict: n.Restrict, CIDR: n.CIDR,
			Entity: entity.Key{Kind: AppKind, ID: id}, ExpiresAt: n.ExpiresAt, CreatedAt: now, UpdatedAt: now,
		}
		return s.insertToken(ctx, a.Tenant, KindWebhookToken, t)
	})
	return t, err
}

// WebhookTokens returns a page of the tokens of the webhooks of an app, newest first, to those who
// may change it, also with a token that can only read. Their counters are up to date. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) WebhookTokens(ctx context.Context, app string, q paging.Query) (paging.Page[Token], error) {
	return s.tokensOf(ctx, s.webhooks(), app, q)
}

// WebhookToken returns one of the tokens of the webhooks of an app, as WebhookTokens does. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) WebhookToken(ctx context.Context, app, id string) (Token, error) {
	return s.tokenOf(ctx, s.webhooks(), app, id)
}

// DeleteWebhookToken revokes a token of the webhooks of an app. It is for those who may change the
// app. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) DeleteWebhookToken(ctx context.Context, app, id string) error {
	return s.deleteTokenOf(ctx, s.webhooks(), app, id)
}

func (s *Service) tokensOf(ctx context.Context, of tokensOf, app string, q paging.Query) (paging.Page[Token], error) {
	a, key, err := s.readable(ctx, of, app)
	if err != nil {
		return paging.Page[Token]{}, err
	}
	return s.o.Store.EntityTokens(ctx, a.Tenant, key, of.tokenType, q)
}

func (s *Service) tokenOf(ctx context.Context, of tokensOf, app, id string) (Token, error) {
	a, key, err := s.readable(ctx, of, app)
	if err != nil {
		return Token{}, err
	}
	if !wellFormed([]string{id}) { // cannot exist, and the database may refuse the text
		return Token{}, errs.New(errs.NotFound, "Token not found.")
	}
	return s.o.Store.EntityToken(ctx, a.Tenant, key, of.tokenType, strings.ToLower(id))
}

// readable returns the caller and the entity, and writes the counters of tokens.
func (s *Service) readable(ctx context.Context, of tokensOf, app string) (actor.Actor, entity.Key, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return actor.Actor{}, entity.Key{}, err
	}
	id, err := of.readable(ctx, app)
	if err != nil {
		return actor.Actor{}, entity.Key{}, err
	}
	return a, entity.Key{Kind: of.kind, ID: id}, s.uses.Flush(ctx, a.Tenant)
}

func (s *Service) deleteTokenOf(ctx context.Context, of tokensOf, app, id string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return of.writing(ctx, app, func(ctx context.Context, app string) error {
		key := entity.Key{Kind: of.kind, ID: app}
		if !wellFormed([]string{id}) {
			return errs.New(errs.NotFound, "Token not found.")
		}
		if guard.Of(ctx, of.row) != nil { // a token never changes, so only its existence counts
			t, err := s.o.Store.EntityToken(ctx, a.Tenant, key, of.tokenType, strings.ToLower(id))
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, of.row, t); err != nil {
				return err
			}
		}
		id := strings.ToLower(id)
		change := entity.Subject{Kind: of.change, ID: s.o.Feed.Part(app, id), Action: entity.ActionDelete}
		return s.o.Feed.In(ctx, nil, a.Tenant, change, func(ctx context.Context) error {
			return s.o.Store.DeleteEntityToken(ctx, a.Tenant, key, of.tokenType, id)
		})
	})
}

// UseWebhookToken counts a use of a token of the webhooks of an app, whose signature the caller has
// checked. It returns the same errs.Unauthenticated if it is not there, is of another app, has
// expired, or may not be used from the address.
func (u Unchecked) UseWebhookToken(ctx context.Context, tenant, id, app string, from netip.Addr) error {
	if !wellFormed([]string{tenant, id}) {
		return unauthenticated()
	}
	t, _, err := u.s.admit(ctx, tenant, strings.ToLower(id), from, func(t Token) bool {
		return t.Type == Webhook && t.Entity == (entity.Key{Kind: AppKind, ID: app})
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
