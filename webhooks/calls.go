package webhooks

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/signatures"
)

// Call is a call of a webhook whose key was accepted.
type Call struct {
	Method string
	Path   string // below the app's webhooks, with a slash before it
	Query  map[string][]string
	Header map[string][]string // by any spelling of the names
	// Body reads the body. It is called once the path is that of a route.
	Body func() ([]byte, error)
	// Respond is called with the early answer of a handler, which runs on; nil if nobody waits.
	Respond func(Response)

	// postpone is called when the handler cannot run now, and nothing of it has run; nil refuses
	// the call.
	postpone func(cause error) (Response, error)
	counted  bool // the call has been counted before
}

// What a handler gets of a call is without these.
var (
	hiddenHeaders = []string{"cookie", "proxy-authorization"}
	hiddenQuery   = []string{"token", "app_token"}
)

// request returns the request of a call as its handler gets it, but for the route's parameters.
func (c Call) request(body []byte) handlers.Request {
	r := handlers.Request{
		Method: c.Method, Path: c.Path,
		Query: make(map[string][]string, len(c.Query)), Headers: handlers.JoinHeaders(c.Header, hiddenHeaders...),
		Body: body, RawBody: true, Roles: []string{},
	}
	r.ContentType = r.Headers["content-type"]
	for name, values := range c.Query {
		r.Query[name] = values
	}
	for _, name := range hiddenQuery {
		delete(r.Query, name)
	}
	return r
}

// Handle finds the handler of a call, checks the signature that its config demands, runs it as the
// owner of the app, and records the call. It returns the answer; responded is true if Respond has
// got it. What a handler does wrong is a plain answer and no error.
//
// Errors: errs.NotFound for a path that no route has, and handlers' own for a method that it does
// not have; those of Body and Options.Bind; errs.Unauthenticated for a signature; errs.Unavailable
// if too many scripts run.
func (u Unchecked) Handle(ctx context.Context, by Caller, c Call) (answer Response, responded bool, err error) {
	s := u.s
	e := Entry{
		Invocation: Invocation{
			ID:        s.clock.NewID(),
			App:       by.target.App,
			Area:      handlers.Webhooks,
			Method:    handlers.FunctionOf(c.Method),
			Path:      cut(storable(c.Path), maxPath),
			StartedAt: s.clock.Stamp(),
		},
	}
	in := HandlerCall{ID: e.ID, App: HandlerApp{Tenant: by.tenant, ID: by.target.App}, Env: by.target.Env}
	refuse := func(err error) (Response, bool, error) {
		s.refuse(ctx, by.tenant, e, err)
		return Response{}, false, err
	}
	route, params, err := s.o.Handlers.Match(ctx, in.App, handlers.Webhooks, c.Method, c.Path)
	if err != nil {
		e.NoRoute = true
		return refuse(err)
	}
	e.Path, in.Route = cut(route.Path, maxPath), route
	body, err := c.Body()
	if err != nil {
		return refuse(err)
	}
	in.Request = c.request(body)
	in.Request.Params, in.Request.User = params, &by.owner.User
	begun := s.clock.Now() // without the time that the sender took
	if scheme := handlers.Member(route.Config, "verify"); scheme != nil {
		switch err := verify(scheme, in, begun); errs.CodeOf(err) {
		case "":
		case errs.Unauthenticated:
			return refuse(err)
		default:
			return s.fail(ctx, by.tenant, e, begun, errs.MessageOf(err)), false, nil
		}
	}
	kept := string(handlers.Member(route.Config, "keep")) == "true"
	if kept {
		if err := s.keep(ctx, by.tenant, e.Invocation, in.Request); err != nil {
			return refuse(err)
		}
	}
	if string(handlers.Member(route.Config, "later")) == "true" && s.o.Queue != nil {
		c.postpone = func(cause error) (Response, error) {
			return s.postpone(ctx, by.tenant, e, in.Request, kept, cause)
		}
	}
	return s.run(ctx, by, c, e, in, begun)
}

// verify checks what the sender has signed.
func verify(config json.RawMessage, in HandlerCall, now time.Time) error {
	scheme, err := signatures.Parse(config)
	if err != nil {
		return err
	}
	secret, there := in.Env[scheme.Variable()]
	if !there {
		return errs.New(
			errs.Invalid,
			"config.verify.secret: the app has no variable %s. Set it with PUT /api/apps/{id}/environment/%s.",
			scheme.Variable(), scheme.Variable(),
		)
	}
	return scheme.Verify(secret, func(name string) string { return in.Request.Headers[name] }, in.Request.Body, now)
}

// CheckConfig returns errs.Invalid for a config of a webhook that cannot be deployed.
func CheckConfig(raw json.RawMessage) error {
	if json.Unmarshal(raw, &map[string]json.RawMessage{}) != nil {
		return errs.New(errs.Invalid, "config must be an object")
	}
	for _, name := range []string{"keep", "later"} {
		switch string(handlers.Member(raw, name)) {
		case "", "null", "true", "false":
		default:
			return errs.New(errs.Invalid, "config.%s must be true or false", name)
		}
	}
	scheme := handlers.Member(raw, "verify")
	if scheme == nil {
		return nil
	}
	_, err := signatures.Parse(scheme)
	return err
}

// CheckRoute returns errs.Invalid for a handler whose config no webhook can have, naming its file.
func CheckRoute(r Route) error {
	if r.Area != handlers.Webhooks {
		return nil
	}
	if err := CheckConfig(r.Config); err != nil {
		return errs.New(errs.Invalid, "%s:1:1: %s.", r.File, errs.MessageOf(err))
	}
	return nil
}

// run runs the handler of a call, and records it.
func (s *Service) run(
	ctx context.Context, by Caller, c Call, e Entry, in HandlerCall, begun time.Time,
) (Response, bool, error) {
	ctx = actor.With(ctx, by.owner.Actor)
	end := func() {}
	if s.o.Bind != nil {
		var err error
		if end, err = s.o.Bind(ctx, &in); err != nil {
			s.refuse(ctx, by.tenant, e, err)
			return Response{}, false, err
		}
	}
	defer end()
	calls := 1
	if c.counted {
		calls = 0
	}
	in.Respond = func(r Response) { // the answer is complete: its record is there at once
		early := e
		early.Calls, calls = calls, 0
		early.finish(r.Status, s.clock.Now().Sub(begun))
		e.Errors, e.Spent = early.Errors, early.Spent
		s.record(ctx, by.tenant, early)
		if c.Respond != nil {
			c.Respond(r)
		}
	}
	out, err := s.o.Handlers.Run(ctx, in)
	counted := Entry{Errors: e.Errors, Spent: e.Spent}
	e.Calls, e.Errors, e.Spent = calls, 0, 0
	if err != nil && c.postpone != nil && errs.CodeOf(err) == errs.Unavailable {
		answer, err := c.postpone(err)
		return answer, false, err
	}
	if err != nil {
		e.fail(err, s.clock.Now().Sub(begun))
		if e.Calls > 0 { // it is not recorded yet
			s.countRefusal(by.tenant, &e)
		}
		s.record(ctx, by.tenant, e)
		return Response{}, false, err
	}
	result := out.Result
	if result.Outcome == jsvm.Canceled && !out.Responded {
		why := stopped
		e.Error = &why
		e.finish(503, s.clock.Now().Sub(begun))
		s.record(ctx, by.tenant, e)
		return Response{}, false, errs.New(errs.Unavailable, "The service is stopping. Try again.")
	}
	s.end(&e, out, s.clock.Now().Sub(begun))
	s.boundTexts(by.tenant, &e)
	e.Errors, e.Spent = e.Errors-counted.Errors, e.Spent-counted.Spent
	s.record(ctx, by.tenant, e)
	return out.Response, out.Responded, nil
}

// end sets how a call ended whose handler has run.
func (s *Service) end(e *Entry, out Outcome, took time.Duration) {
	e.Memory, e.Logs, e.LogsDropped = out.Result.PeakMemory, logs(out.Result.Logs), out.Result.LogsDropped
	if text := s.errorOf(out.Result); text != "" {
		e.Error = &text
	}
	e.finish(out.Response.Status, took)
}

// fail sets how a call ended whose handler could not be run, because of err.
func (e *Entry) fail(err error, took time.Duration) {
	text := storable(errs.MessageOf(err))
	if errs.CodeOf(err) == errs.Internal {
		text = "The service failed; its log has the reason."
	}
	e.Error = &text
	e.finish(statusOf(err), took)
}

// finish sets how a call ended.
func (e *Entry) finish(status int, took time.Duration) {
	e.Status, e.Duration = status, max(0, took.Truncate(time.Microsecond))
	e.Spent, e.Errors = e.Duration, 0
	if e.Error != nil || status >= 500 {
		e.Errors = 1
	}
}

// stopped is the error of a handler that the program has stopped.
const stopped = "The handler was stopped: the service stops."

// errorOf returns why a handler failed, "" if it did not.
func (s *Service) errorOf(r jsvm.Result) string {
	text := ""
	switch {
	case r.Outcome == jsvm.OK:
		return ""
	case r.Outcome == jsvm.Canceled:
		return stopped
	case r.Error != nil:
		text = r.Error.Error()
		for line := range strings.Lines(r.Error.Stack) {
			if !strings.Contains(line, handlers.EntryName) { // the service's own
				text += "\n" + strings.TrimRight(line, "\n")
			}
		}
	}
	if text == "" {
		text = string(r.Outcome)
	}
	return cut(storable(text), s.o.Limits.ErrorBytes)
}

// fail records a call whose handler could not be run, and returns the plain answer.
func (s *Service) fail(ctx context.Context, tenant string, e Entry, begun time.Time, why string) Response {
	why = cut(storable(why), s.o.Limits.ErrorBytes)
	e.Error, e.Calls = &why, 1
	e.finish(500, s.clock.Now().Sub(begun))
	s.countRefusal(tenant, &e)
	s.record(ctx, tenant, e)
	return handlers.Failed()
}

// refuse records a call that gets to no handler. Beyond some a minute they are only counted, so
// that a stranger who has an address does not fill the table.
func (s *Service) refuse(ctx context.Context, tenant string, e Entry, err error) {
	why := cut(storable(errs.MessageOf(err)), s.o.Limits.ErrorBytes)
	if why == "" {
		why = "The service failed; its log has the reason."
	}
	e.Error, e.Calls = &why, 1
	e.finish(statusOf(err), 0)
	s.countRefusal(tenant, &e)
	s.record(ctx, tenant, e)
}

// statusOf returns the status that a refusal is answered with.
func statusOf(err error) int {
	switch errs.CodeOf(err) {
	case errs.Invalid:
		return 400
	case errs.Unauthenticated:
		return 401
	case errs.NotFound:
		return 404
	case errs.MethodNotAllowed:
		return 405
	case errs.TooLarge:
		return 413
	case errs.Unsupported:
		return 415
	case errs.Unavailable, errs.Unconfirmed, errs.Canceled:
		return 503
	case errs.Full:
		return 507
	}
	return 500
}
