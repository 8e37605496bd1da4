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
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// AppKind is the kind of entities that tokens of the type AppView are for.
const AppKind entity.Kind = "app"

// Apps checks who may share apps. *apps.Service implements it. All methods return errs.NotFound for an app that the caller does not
// see, errs.Forbidden for a caller who may not share it, and errs.Invalid for a draft.
type Apps interface {
	// Sharable returns the id of an app that the caller may share, also with a token that can only read.
	Sharable(ctx context.Context, id string) (string, error)
	// Sharing calls do with the id of an app that the caller may share, in a transaction in which nobody else changes or removes the
	// app. It returns errs.Invalid if roles has something else than ids of roles of the app's manifest.
	Sharing(ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error) error
}

// appData is Token.Data of an AppView.
type appData struct {
	Roles []string `json:"roles"` // ids of roles of the app's manifest, ordered
}

// CreateAppToken creates a token that shows an app to visitors as if they had some roles of its manifest, and returns it with its
// credential, which cannot be read again. It is for those who may share the app. It lives as long as it, the app and its creator
// do, and is refused while the creator may not share the app. A caller with a token cannot make one. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid naming the field, also for an unknown role and for a draft; errs.Conflict for a manifest that
// cannot be read.
func (s *Service) CreateAppToken(ctx context.Context, app string, n NewToken, roles []string) (t Token, credential string, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Token{}, "", err
	}
	if a.Token != "" {
		return Token{}, "", errs.New(errs.Forbidden, "A token cannot make tokens. Log in with a password.")
	}
	roles = append([]string{}, roles...) // an empty list for none
	slices.Sort(roles)
	roles = slices.Compact(roles)
	err = s.o.Apps.Sharing(ctx, app, roles, func(ctx context.Context, id string) error {
		now := s.now()
		if err := n.accept(now); err != nil {
			return err
		}
		data, err := json.Marshal(appData{roles})
		if err != nil {
			return err
		}
		secret := s.o.NewSecret()
		t = Token{
			ID: s.o.NewID(), Type: AppView, Username: a.User, SecretHash: hash(secret), ReadOnly: true, Notes: n.Notes, Restrict: n.Restrict, CIDR: n.CIDR,
			Data: data, Entity: entity.Key{Kind: AppKind, ID: id}, ExpiresAt: n.ExpiresAt, CreatedAt: now, UpdatedAt: now,
		}
		credential = strings.Join([]string{visitorKind, a.Tenant, t.ID, secret}, ".")
		return s.o.Store.InsertToken(ctx, a.Tenant, t)
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, credential, nil
}

// AppTokens returns a page of the tokens that show an app to visitors, newest first, to those who may share it. Their counters are up
// to date. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) AppTokens(ctx context.Context, app string, q paging.Query) (paging.Page[Token], error) {
	a, of, err := s.sharable(ctx, app)
	if err != nil {
		return paging.Page[Token]{}, err
	}
	return s.o.Store.EntityTokens(ctx, a.Tenant, of, AppView, q)
}

// AppToken returns one of the tokens that show an app to visitors, as AppTokens does. Errors: errs.NotFound; errs.Forbidden; errs.Invalid
// for a draft.
func (s *Service) AppToken(ctx context.Context, app, id string) (Token, error) {
	a, of, err := s.sharable(ctx, app)
	if err != nil {
		return Token{}, err
	}
	if !wellFormed([]string{id}) { // cannot exist, and the database may refuse the text
		return Token{}, errs.New(errs.NotFound, "Token not found.")
	}
	return s.o.Store.EntityToken(ctx, a.Tenant, of, AppView, strings.ToLower(id))
}

// sharable returns the caller and the app, and writes the counters of tokens.
func (s *Service) sharable(ctx context.Context, app string) (actor.Actor, entity.Key, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return actor.Actor{}, entity.Key{}, err
	}
	id, err := s.o.Apps.Sharable(ctx, app)
	if err != nil {
		return actor.Actor{}, entity.Key{}, err
	}
	return a, entity.Key{Kind: AppKind, ID: id}, s.uses.Flush(ctx, a.Tenant)
}

// DeleteAppToken revokes a token that shows an app to visitors, with every page that was opened with it. It is for those who may share
// the app. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) DeleteAppToken(ctx context.Context, app, id string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return s.o.Apps.Sharing(ctx, app, nil, func(ctx context.Context, app string) error {
		of := entity.Key{Kind: AppKind, ID: app}
		if !wellFormed([]string{id}) {
			return errs.New(errs.NotFound, "Token not found.")
		}
		if guard.Of(ctx, "app-token") != nil { // a token never changes, so only its existence counts
			t, err := s.o.Store.EntityToken(ctx, a.Tenant, of, AppView, strings.ToLower(id))
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "app-token", t); err != nil {
				return err
			}
		}
		return s.o.Store.DeleteEntityToken(ctx, a.Tenant, of, AppView, strings.ToLower(id))
	})
}

// Visitor is somebody whose credential is a token of an app.
type Visitor struct {
	Token   string      // id of the token
	App     string      // id of the app
	Roles   []string    // of the app's manifest, as they were chosen for the token
	Inviter actor.Actor // the user who made the token, with the rights of the moment and ReadOnly; the visitor is not this user
}

// Visitor returns the holder of a token of an app, by its credential and the address of the request. The caller checks that the inviter may share the
// app. It returns the same errs.Unauthenticated for every reason, after the same work for a token that does not exist and one with
// another secret.
func (u Unchecked) Visitor(ctx context.Context, credential string, from netip.Addr) (Visitor, error) {
	parts := strings.Split(credential, ".")
	if len(credential) > maxCredential || len(parts) != 4 || parts[0] != visitorKind || !wellFormed(parts) {
		return Visitor{}, unauthenticated()
	}
	return u.visitor(ctx, parts[1], parts[2], from, func(t Token) bool {
		return subtle.ConstantTimeCompare([]byte(hash(parts[3])), []byte(t.SecretHash)) == 1
	})
}

// ResumeVisitor returns what Visitor would return now for the token with an id. The caller has checked that the request comes from somebody
// who has been let in with it.
func (u Unchecked) ResumeVisitor(ctx context.Context, tenant, id string, from netip.Addr) (Visitor, error) {
	if !wellFormed([]string{tenant, id}) {
		return Visitor{}, unauthenticated()
	}
	return u.visitor(ctx, tenant, id, from, func(Token) bool { return true })
}

func (u Unchecked) visitor(ctx context.Context, tenant, id string, from netip.Addr, genuine func(Token) bool) (Visitor, error) {
	t, inviter, err := u.s.use(ctx, tenant, id, from, func(t Token) bool {
		same := genuine(t)
		return t.Type == AppView && t.Entity.Kind == AppKind && same
	})
	if err != nil {
		return Visitor{}, err
	}
	var data appData
	if err := json.Unmarshal(t.Data, &data); err != nil {
		return Visitor{}, err
	}
	return Visitor{Token: t.ID, App: t.Entity.ID, Roles: data.Roles, Inviter: inviter}, nil
}
