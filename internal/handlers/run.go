package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// Invocation is one call of a handler.
type Invocation struct {
	ID      string
	App     App
	Route   Route // from Match
	Request Request
	Env     map[string]string // values of the app's variables, in the clear

	// Functions are what the handler can call beside log and respond: query, fetch, emit, notify,
	// email, markdown and extractText are in its context if they are there; dataset(alias, what,
	// argument), with what being fields, rows or count, is behind the members of context.
	Functions map[string]jsvm.Function
	Datasets  []string // aliases that context has

	// Respond is called with the early answer, at most once and while the handler runs on; nil if
	// nobody waits.
	Respond func(Response)
	Limits  jsvm.Limits // Time is the route's Timeout unless it is set
}

// Outcome is what became of an invocation.
type Outcome struct {
	// Response is the answer: the early one if there was one, else what the handler returned, or
	// the plain 500 or 504 of one that failed.
	Response  Response
	Responded bool        // the answer was an early one, which Respond has got
	Result    jsvm.Result // how the handler ended, which can be badly after an early answer
}

// data is the argument of the module that calls a handler or tool.
type data struct {
	Method   string            `json:"method"`
	Request  *requestBody      `json:"request,omitempty"`
	Tool     *toolBody         `json:"tool,omitempty"`
	Env      map[string]string `json:"env"`
	Datasets []string          `json:"datasets"`
}

// encode returns the data as the module gets it, with the variables and datasets of an invocation.
func (d data) encode(in Invocation) (json.RawMessage, error) {
	d.Env, d.Datasets = in.Env, in.Datasets
	if d.Env == nil {
		d.Env = map[string]string{}
	}
	if d.Datasets == nil {
		d.Datasets = []string{}
	}
	return json.Marshal(d)
}

// Run runs a handler. What the handler does, also when it fails, is in the Outcome. Run returns
// errs.Unavailable if too many scripts run, errs.NotFound for a route that is not deployed any
// more, errs.Unsupported, errs.TooLarge and errs.Invalid for a body that cannot be decoded as its
// header content-encoding says, and other errors when the service fails.
func (s *Service) Run(ctx context.Context, in Invocation) (Outcome, error) {
	request, err := in.Request.encode(s.o.Decode)
	if err != nil {
		return Outcome{}, err
	}
	arg, err := data{Method: FunctionOf(in.Request.Method), Request: &request}.encode(in)
	if err != nil {
		return Outcome{}, err
	}
	early := early{respond: in.Respond}
	call := jsvm.Call{
		Function: "invoke", Args: []json.RawMessage{arg}, Functions: in.Functions, Respond: early.send,
		Limits: in.Limits, Tenant: in.App.Tenant, Key: in.App.ID,
	}
	if call.Limits.Time == 0 {
		call.Limits.Time = in.Route.Timeout()
	}
	result, err := s.call(ctx, in.App, in.Route, call)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Result: result}
	if out.Response, out.Responded = early.response(); out.Responded {
		out.Result.Logs = append(out.Result.Logs, early.logs...)
		if early.err != nil && out.Result.Outcome == jsvm.OK {
			out.fail(early.err)
		}
		return out, nil
	}
	if result.Outcome != jsvm.OK {
		out.Response = failure(result.Outcome)
		return out, nil
	}
	r, dropped, err := responseOf(result.Value)
	out.Response, out.Result.Logs = r, append(out.Result.Logs, dropLogs(dropped)...)
	if err != nil {
		out.fail(err)
		out.Response = failed
	}
	return out, nil
}

// fail makes the outcome that of a handler whose answer cannot be sent.
func (o *Outcome) fail(err error) {
	o.Result.Outcome, o.Result.Value = jsvm.Thrown, nil
	o.Result.Error = &jsvm.Error{Name: "TypeError", Message: err.Error()}
}

// dropLogs returns a line of the log for headers that were left out.
func dropLogs(dropped []string) []jsvm.Log {
	if len(dropped) == 0 {
		return nil
	}
	return []jsvm.Log{{
		Time:  time.Now(),
		Level: "warn",
		Text:  "Headers that a handler cannot set were left out: " + strings.Join(dropped, ", "),
	}}
}

// early is the early answer of a handler.
type early struct {
	respond func(Response)

	mu   sync.Mutex
	sent *Response
	logs []jsvm.Log
	err  error // why it could not be sent as it is
}

// send sends an answer. One that cannot be sent is the plain 500.
func (e *early) send(value json.RawMessage) {
	r, dropped, err := responseOf(value)
	if err != nil {
		r = failed
	}
	e.mu.Lock()
	e.sent, e.logs, e.err = &r, dropLogs(dropped), err
	e.mu.Unlock()
	if e.respond != nil {
		e.respond(r)
	}
}

func (e *early) response() (Response, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent == nil {
		return Response{}, false
	}
	return *e.sent, true
}

// call runs the program of a route, which is compiled again if it is of another engine.
func (s *Service) call(ctx context.Context, app App, r Route, c jsvm.Call) (jsvm.Result, error) {
	if s.o.Observer == nil {
		return s.run(ctx, app, r, c)
	}
	start, kind := time.Now(), string(r.Area)+" "+r.Path
	ctx = entity.Begin(ctx, s.o.Observer, entity.HandlerWork, kind)
	result, err := s.run(ctx, app, r, c)
	outcome := entity.Outcome(err)
	if err == nil {
		outcome = string(result.Outcome)
	}
	entity.Observe(ctx, s.o.Observer, entity.Observation{
		Work: entity.HandlerWork, Tenant: app.Tenant, Kind: kind, Outcome: outcome, Start: start,
	})
	return result, err
}

func (s *Service) run(ctx context.Context, app App, r Route, c jsvm.Call) (jsvm.Result, error) {
	if r.program != nil {
		return s.o.Runtime.Run(ctx, r.program, c)
	}
	programs, err := s.load(ctx, app.Tenant, r.Hash)
	if err != nil {
		return jsvm.Result{}, err
	}
	for _, p := range programs {
		result, err := s.o.Runtime.Run(ctx, p, c)
		if errs.CodeOf(err) != errs.Conflict {
			return result, err
		}
	}
	p, err := s.recompile(ctx, app, r)
	if err != nil {
		return jsvm.Result{}, err
	}
	return s.o.Runtime.Run(ctx, p, c)
}

// load returns the programs of a hash, from memory if they are there.
func (s *Service) load(ctx context.Context, tenant, hash string) ([]*jsvm.Program, error) {
	if programs, ok := s.programs.Get(tenant, hash); ok {
		return programs, nil
	}
	stored, err := s.o.Store.Programs(ctx, tenant, hash)
	if err != nil || len(stored) == 0 {
		return nil, err
	}
	programs := make([]*jsvm.Program, len(stored))
	size := 0
	for i := range stored {
		programs[i] = &stored[i].Program
		size += programSize(programs[i])
	}
	s.programs.Put(tenant, hash, programs, size)
	return programs, nil
}

// recompile compiles a route's program for the engine of now from the sources of the deployment.
func (s *Service) recompile(ctx context.Context, app App, r Route) (*jsvm.Program, error) {
	id := r.Hash + "/recompiled"
	if programs, ok := s.programs.Get(app.Tenant, id); ok {
		return programs[0], nil
	}
	files, err := s.o.Store.Sources(ctx, app.Tenant, app.ID)
	if err != nil {
		return nil, err
	}
	texts := jsvm.Files{}
	for name, content := range files {
		texts[name] = string(content)
	}
	p, err := s.compile(ctx, app, &sources{files: texts, read: map[string][]byte{}}, r.File)
	if err != nil {
		if errs.CodeOf(err) == errs.Invalid {
			err = errs.New(errs.Conflict, "The app must be deployed again: %s", errs.MessageOf(err))
		}
		return nil, err
	}
	routes, err := s.o.Store.Routes(ctx, app.Tenant, app.ID)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(routes, func(now Route) bool { return now.File == r.File && now.Hash == r.Hash }) {
		// deployed again meanwhile
		return nil, errs.New(errs.NotFound, "The app has no such route any more.")
	}
	p.Hash = r.Hash // of the sources, also if another version of this package made it of another module for the handler
	s.programs.Put(app.Tenant, id, []*jsvm.Program{&p.Program}, programSize(&p.Program))
	if err := s.o.Store.Add(ctx, app.Tenant, p, s.clock.Stamp()); err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return &p.Program, nil
}
