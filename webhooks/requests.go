package webhooks

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// A request that is kept is encrypted under a key of its own, which is sealed for the invocation: a
// change of the key of the program seals the small key again and leaves the large request as it is.

// Where the keys are sealed.
const (
	sealedTable  = "tc_webhook_requests"
	sealedColumn = "key_sealed"
)

// head is what is kept of a request beside its body.
type head struct {
	Method  string              `json:"method"`
	Path    string              `json:"path"`
	Query   map[string][]string `json:"query"`
	Headers map[string]string   `json:"headers"`
}

// keep stores a request until it can be run again no more.
func (s *Service) keep(ctx context.Context, tenant string, v Invocation, r handlers.Request) error {
	top, err := json.Marshal(head{r.Method, r.Path, r.Query, r.Headers})
	if err != nil {
		return err
	}
	plain := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(top)+len(r.Body)), uint32(len(top)))
	plain = append(append(plain, top...), r.Body...)
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never returns an error
	box, err := boxOf(key)
	if err != nil {
		return err
	}
	k := Kept{App: v.App, ID: v.ID, ReceivedAt: v.StartedAt, Request: box.Seal(nil, nil, plain, []byte(v.ID))}
	if k.KeySealed, err = s.o.Keys.Seal(tenant, sealedTable, sealedColumn, v.ID, key); err != nil {
		return err
	}
	return s.o.Store.Keep(ctx, tenant, k, s.o.Limits.Kept, s.o.Limits.KeptBytes)
}

func boxOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// open returns a request that is kept.
func (s *Service) open(tenant string, k Kept) (handlers.Request, error) {
	key, err := s.o.Keys.Open(tenant, sealedTable, sealedColumn, k.ID, k.KeySealed)
	if err != nil {
		return handlers.Request{}, err
	}
	box, err := boxOf(key)
	if err != nil {
		return handlers.Request{}, err
	}
	plain, err := box.Open(nil, nil, k.Request, []byte(k.ID))
	if err != nil {
		return handlers.Request{}, err
	}
	if len(plain) < 4 || uint32(len(plain)-4) < binary.BigEndian.Uint32(plain) {
		return handlers.Request{}, errors.New("a request that is kept is too short")
	}
	size := 4 + binary.BigEndian.Uint32(plain)
	var top head
	if err := json.Unmarshal(plain[4:size], &top); err != nil {
		return handlers.Request{}, err
	}
	return handlers.Request{
		Method: top.Method, Path: top.Path, Query: top.Query,
		Headers: top.Headers, Body: plain[size:], ContentType: top.Headers["content-type"],
		RawBody: true, Roles: []string{}, Replay: true,
	}, nil
}

// Replay runs the handler of an invocation, whose request was kept, once more, as the owner of the
// app has it now, and returns the record of that. The signature of the sender is not checked again.
// The caller must be allowed to change the app.
//
// Errors: errs.NotFound, also for an invocation whose request is not kept; errs.Forbidden;
// errs.Invalid for a draft; errs.Conflict if no route has the path and method any more, or the
// owner is disabled or gone; errs.Unavailable if too many scripts run.
func (s *Service) Replay(ctx context.Context, app, id string) (Invocation, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Invocation{}, err
	}
	tenant := a.Tenant
	if app, err = s.o.Apps.CheckWrite(ctx, app); err != nil {
		return Invocation{}, err
	}
	id, ok := uuids.Parse(id)
	if !ok {
		return Invocation{}, notFound()
	}
	kept, err := s.o.Store.Kept(ctx, tenant, app, id)
	if errs.CodeOf(err) == errs.NotFound {
		err = errs.New(
			errs.NotFound,
			"There is no such call, or its request is not kept: those of handlers with config.keep: true are, for "+
				"a while.",
		)
	}
	if err != nil {
		return Invocation{}, err
	}
	e := Entry{
		Invocation: Invocation{
			ID: s.clock.NewID(), App: app, Area: handlers.Webhooks, StartedAt: s.clock.Stamp(), ReplayOf: &id,
		},
	}
	caller, in, err := s.again(ctx, tenant, kept, &e)
	if err != nil {
		return Invocation{}, err
	}
	if _, _, err := s.run(ctx, caller, Call{}, e, in, s.clock.Now()); err != nil {
		return Invocation{}, err
	}
	return s.Invocation(ctx, app, e.ID)
}

// again returns what runs the handler with a request that is kept, and sets method and path of the
// entry. Errors: errs.Conflict if no route has the path and method any more, or the owner of the
// app is disabled or gone.
func (s *Service) again(ctx context.Context, tenant string, kept Kept, e *Entry) (Caller, HandlerCall, error) {
	in := HandlerCall{ID: e.ID, App: HandlerApp{Tenant: tenant, ID: kept.App}}
	var err error
	if in.Request, err = s.open(tenant, kept); err != nil {
		return Caller{}, in, err
	}
	e.Method, e.Path = handlers.FunctionOf(in.Request.Method), cut(storable(in.Request.Path), maxPath)
	at, err := s.target(ctx, tenant, kept.App)
	if err != nil {
		return Caller{}, in, err
	}
	owner, err := s.o.Owner(ctx, tenant, at.target.Owner)
	if !at.there || errs.CodeOf(err) == errs.Unauthenticated {
		return Caller{}, in, errs.New(
			errs.Conflict,
			"The owner of the app is disabled or gone, or has not deployed it since somebody else passed it on: "+
				"nobody can be the one as whom the webhook runs.",
		)
	}
	if err != nil {
		return Caller{}, in, err
	}
	in.Env, in.Request.User = at.target.Env, &owner.User
	if in.Route, in.Request.Params, err = s.o.Handlers.Match(
		ctx, in.App, handlers.Webhooks, in.Request.Method, in.Request.Path,
	); err != nil {
		if code := errs.CodeOf(err); code == errs.NotFound || code == errs.MethodNotAllowed {
			err = errs.New(errs.Conflict, "The app has no webhook %s %s any more.", in.Request.Method, in.Request.Path)
		}
		return Caller{}, in, err
	}
	e.Path = cut(in.Route.Path, maxPath)
	return Caller{tenant, at.target, owner}, in, nil
}
