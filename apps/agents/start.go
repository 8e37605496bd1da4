package agents

import (
	"context"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Listens reports whether an event of an app starts one of its agents.
func (i *Installed) Listens(ctx context.Context, tenant, app, event string) (bool, error) {
	all, err := i.deployed(ctx, tenant, app)
	for _, a := range all {
		if a.listens(event) {
			return true, err
		}
	}
	return false, err
}

// deployed returns the agents of an app as they were a second ago at most.
func (i *Installed) deployed(ctx context.Context, tenant, app string) ([]Agent, error) {
	return i.agents.Get(ctx, tenant, app, func() ([]Agent, error) { return i.o.Store.Agents(ctx, tenant, app) })
}

// EventInput returns the input of a run that an event starts. It returns errs.Invalid for an event
// without a name.
func EventInput(event string, payload json.RawMessage) (json.RawMessage, error) {
	if event == "" {
		return nil, errs.New(errs.Invalid, "event must be the name of an event")
	}
	return json.Marshal(struct {
		Event   string          `json:"event"`
		Payload json.RawMessage `json:"payload"`
	}{event, payload})
}

// Emitted starts a run of each agent that an event starts, in the transaction in ctx. Errors:
// errs.Busy if too many runs of the app wait.
func (i *Installed) Emitted(ctx context.Context, e Event) error {
	if e.Depth > MaxDepth {
		return errs.New(
			errs.Invalid, "Agents and events have started each other %d deep, and no more are started.",
			MaxDepth,
		)
	}
	all, err := i.o.Store.Agents(ctx, e.Tenant, e.App)
	if err != nil {
		return err
	}
	input, err := EventInput(e.Name, e.Payload)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !a.listens(e.Name) {
			continue
		}
		if _, err := i.start(ctx, Run{
			Tenant:  e.Tenant,
			App:     e.App,
			Agent:   a.Name,
			Trigger: ByEvent,
			EventID: &e.ID,
			Input:   input,
			Depth:   e.Depth,
		}); err != nil {
			return err
		}
	}
	return nil
}

// start adds a run and its job, in the transaction in ctx or one of its own. Errors: errs.Busy.
func (i *Installed) start(ctx context.Context, r Run) (Run, error) {
	waiting, err := i.o.Store.Waiting(ctx, r.Tenant, r.App)
	if err != nil {
		return Run{}, err
	}
	if waiting >= i.o.Limits.Waiting {
		return Run{}, errs.New(
			errs.Busy, "%d runs of the app's agents wait, and no more can be started until some have ended.",
			waiting,
		)
	}
	r = i.newRun(r)
	return r, i.o.Store.InTx(ctx, func(ctx context.Context) error {
		if err := i.o.Store.InsertRun(ctx, r.Tenant, r); err != nil {
			return err
		}
		return i.o.Queue.Put(ctx, Job{Tenant: r.Tenant, ID: r.ID, Kind: JobRun})
	})
}

// newRun sets what a new run has.
func (i *Installed) newRun(r Run) Run {
	if r.ID == "" {
		r.ID = i.clock.NewID()
	}
	if r.Input == nil {
		r.Input = json.RawMessage("null")
	}
	r.CreatedAt = i.clock.Stamp()
	r.UpdatedAt, r.State, r.Size = r.CreatedAt, Pending, len(r.Input)
	return r
}

// failure is the input of the agent that is started because another one has failed.
type failure struct {
	Agent string          `json:"agent"`
	Run   string          `json:"run"`
	Error string          `json:"error"`
	Input json.RawMessage `json:"input"`
}

// failed starts the agent that the definition of a dead run's agent names, unless it is gone or
// disabled, or the chain is too deep.
func (s *Service) failed(ctx context.Context, r Run, why string) error {
	a, err := s.store.Agent(ctx, r.Tenant, r.App, r.Agent)
	if errs.CodeOf(err) == errs.NotFound || err == nil && (a.Definition.OnFailure == "" || r.Depth >= MaxDepth) {
		return nil
	}
	if err != nil {
		return err
	}
	next, err := s.store.Agent(ctx, r.Tenant, r.App, a.Definition.OnFailure)
	if errs.CodeOf(err) == errs.NotFound || err == nil && !next.Settings().Enabled {
		return nil
	}
	if err != nil {
		return err
	}
	input, err := json.Marshal(failure{r.Agent, r.ID, why, r.Input})
	if err != nil {
		return err
	}
	if len(input) > MaxInput { // the failed run has it
		if input, err = json.Marshal(failure{r.Agent, r.ID, why, json.RawMessage("null")}); err != nil {
			return err
		}
	}
	_, err = s.in.start(ctx, Run{
		Tenant:  r.Tenant,
		App:     r.App,
		Agent:   next.Name,
		Trigger: ByFailure,
		RunID:   &r.ID,
		Input:   input,
		Depth:   r.Depth + 1,
	})
	if errs.CodeOf(err) == errs.Busy {
		return nil // the failed run says enough
	}
	return err
}
