package webhooks

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// Serve runs the handler of a server route, and records the call if it failed or has logged
// something: of an app or draft, some in a minute. What its viewer or the program has ended is not
// recorded. It returns what handlers.Run does.
func (u Unchecked) Serve(ctx context.Context, in HandlerCall) (Outcome, error) {
	s, begun := u.s, u.s.clock.Stamp()
	out, err := s.o.Handlers.Run(ctx, in)
	if err == nil && (out.Result.Outcome == jsvm.Canceled || out.Result.Outcome == jsvm.OK &&
		len(out.Result.Logs) == 0) {
		return out, nil
	}
	if !s.served.allow(in.App.Tenant+"/"+in.App.ID, begun, 1, s.o.Limits.Served) {
		return out, err
	}
	e := Entry{Invocation: Invocation{
		ID: s.clock.NewID(), App: in.App.ID, Area: handlers.Server,
		Method: handlers.FunctionOf(in.Request.Method), Path: cut(in.Route.Path, maxPath), StartedAt: begun,
	}}
	took := s.clock.Now().Sub(begun).Truncate(time.Microsecond)
	if err != nil {
		e.fail(err, took)
	} else {
		s.end(&e, out, took)
		s.boundTexts(in.App.Tenant, &e)
	}
	s.record(ctx, in.App.Tenant, e)
	return out, err
}

// ServedInvocations returns the last calls of the server routes of an app or draft that failed or
// have logged something, newest first and without logs, to those who may change it, also with a
// token that can only read. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) ServedInvocations(ctx context.Context, app string) ([]Invocation, error) {
	a, id, err := s.readable(ctx, app, s.o.Apps.CheckRecords)
	if err != nil {
		return nil, err
	}
	return s.o.Store.Recent(ctx, a.Tenant, id, handlers.Server, Filter{}, s.o.Limits.Recent)
}

// ServedInvocation returns one of ServedInvocations with its logs. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) ServedInvocation(ctx context.Context, app, id string) (Invocation, error) {
	a, app, err := s.readable(ctx, app, s.o.Apps.CheckRecords)
	if err != nil {
		return Invocation{}, err
	}
	id, ok := uuids.Parse(id)
	if !ok {
		return Invocation{}, notFound()
	}
	v, err := s.o.Store.Invocation(ctx, a.Tenant, app, id)
	if err == nil && v.Area != handlers.Server {
		return Invocation{}, notFound()
	}
	return v, err
}
