package agents

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fields"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Queue is what this package needs of the queue. queue.Service implements it.
type Queue interface {
	Put(ctx context.Context, jobs ...Job) error
	Hurry(ctx context.Context, tenant string, ids ...string) error
	Schedule(ctx context.Context, all ...Schedule) error
	Unschedule(ctx context.Context, tenant, kind string, keys ...string) error
	Schedules(ctx context.Context, tenant, kind string, keys ...string) ([]Schedule, error)
}

// Apps says who may see and change the agents of an app. apps.Service implements it.
type Apps interface {
	// CheckInternals returns the id of an app whose insides the caller may see, or errs.NotFound or
	// errs.Forbidden.
	CheckInternals(ctx context.Context, id string) (string, error)
	// CheckWrite returns the id of an app that the caller may change. Errors: as CheckInternals,
	// and errs.Invalid for a draft.
	CheckWrite(ctx context.Context, id string) (string, error)
	// Writing calls do with the id of an app that the caller may change, in a transaction in which
	// the others do not change it. Errors: as CheckWrite, and those of do.
	Writing(ctx context.Context, id string, do func(ctx context.Context, id string) error) error
}

// App is an app whose agents run.
type App struct {
	Name  string
	Owner string            // principal id; "" while its agents run as nobody: see apps.App.RunsAs
	Env   map[string]string // values of its variables, in the clear
}

// Tools runs the tools of apps. handlers.Service implements it.
type Tools interface {
	Routes(ctx context.Context, app HandlerApp, area Area) ([]Route, error)
	RunTool(ctx context.Context, in Invocation, t ToolCall) (Result, error)
}

// Options configure a Service. All but Provider are required.
type Options struct {
	Installed *Installed
	Apps      Apps
	Tools     Tools
	// Provider runs language models; while it refuses with errs.Busy, a run waits. nil or ai.None:
	// runs wait for a node that has one.
	Provider ai.Provider
	// App returns an app that is there and not deleted, or errs.NotFound.
	App func(ctx context.Context, tenant, id string) (App, error)
	// Owner returns the actor that the agents of an owner's apps run as. Errors: errs.NotFound,
	// errs.Unauthenticated.
	Owner func(ctx context.Context, tenant, principal string) (actor.Actor, error)
	// Enabled reports whether a tenant has AI on.
	Enabled func(ctx context.Context, tenant string) (bool, error)
	// Bind sets what a tool can call, and returns what ends that. ctx has the actor that the tool
	// runs as.
	Bind func(ctx context.Context, in *Invocation, t ToolCall) (end func(), err error)
	Feed *entity.Changes // nil: changes are not announced
}

// Kind is the kind of agents in changes. The id of one is that of its app, a slash and its name.
const Kind entity.Kind = "agent"

// Service implements the rules for agents over a Store.
type Service struct {
	o       Options
	in      *Installed
	clock   clock.Clock      // of in
	store   Store            // of in
	calling *limiter.Limiter // of tools, by tenant

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc // by run, of this node
}

// New returns a Service.
func New(o Options) *Service {
	in := o.Installed
	return &Service{
		o: o, in: in, clock: in.clock, store: in.o.Store, running: map[string]context.CancelCauseFunc{},
		calling: limiter.New(limiter.Options{PerKey: int64(in.o.Limits.Tools), Timeout: tryTime}),
	}
}

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Limits returns the limits in force.
func (u Unchecked) Limits() Limits { return u.s.in.o.Limits }

// Shown is an agent with what is known of its runs.
type Shown struct {
	Agent
	Summary
	Next *time.Time // when its schedule starts it next; nil for never
}

// List returns the agents of an app, ordered by name, to those who see its insides. A draft has
// none. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) List(ctx context.Context, app string) (id string, all []Shown, err error) {
	a, id, err := s.inside(ctx, app)
	if err != nil {
		return "", nil, err
	}
	rows, err := s.store.Agents(ctx, a.Tenant, id)
	if err != nil || len(rows) == 0 {
		return id, nil, err
	}
	all, err = s.shown(ctx, id, rows...)
	return id, all, err
}

// Get returns an agent to those who see the insides of its app. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) Get(ctx context.Context, app, name string) (Shown, error) {
	a, app, err := s.inside(ctx, app)
	if err != nil {
		return Shown{}, err
	}
	row, err := s.store.Agent(ctx, a.Tenant, app, name)
	if err != nil {
		return Shown{}, err
	}
	all, err := s.shown(ctx, app, row)
	if err != nil {
		return Shown{}, err
	}
	return all[0], nil
}

// shown returns agents of an app with what is known of them.
func (s *Service) shown(ctx context.Context, app string, rows ...Agent) ([]Shown, error) {
	known, err := s.store.Summaries(ctx, rows[0].Tenant, app)
	if err != nil {
		return nil, err
	}
	var keys []string
	of := map[string]int{} // the agents of schedules
	for i, row := range rows {
		for _, c := range row.schedules() {
			keys = append(keys, c.Key)
			of[c.Key] = i
		}
	}
	all := make([]Shown, len(rows))
	for i, row := range rows {
		all[i] = Shown{Agent: row, Summary: known[row.Name]}
	}
	if len(keys) == 0 { // none would be all
		return all, nil
	}
	schedules, err := s.in.o.Queue.Schedules(ctx, rows[0].Tenant, JobRun, keys...)
	if err != nil {
		return nil, err
	}
	for _, c := range schedules {
		if v := &all[of[c.Key]]; v.Next == nil || c.Next.Before(*v.Next) {
			v.Next = &c.Next
		}
	}
	return all, nil
}

// Update sets what edit changes of the overrides of an agent. It needs the permission write on
// the app. Errors: errs.NotFound; errs.Forbidden; errs.Invalid naming the field, or for a draft;
// errs.Stale.
func (s *Service) Update(ctx context.Context, app, name string, edit func(*Overrides)) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	err = s.o.Apps.Writing(ctx, app, func(ctx context.Context, app string) error {
		of := entity.Subject{Kind: Kind, ID: s.o.Feed.Part(app, name), Action: entity.ActionUpdate}
		return s.o.Feed.In(ctx, nil, a.Tenant, of, func(ctx context.Context) (err error) {
			v, err = s.override(ctx, a.Tenant, app, name, edit)
			return err
		})
	})
	return v, err
}

func (s *Service) override(ctx context.Context, tenant, app, name string, edit func(*Overrides)) (Shown, error) {
	var was Agent
	now, err := s.store.Update(ctx, tenant, app, name, func(row *Agent) error {
		was = *row
		edit(&row.Overrides)
		row.Overrides.dropNew(was)
		row.UpdatedAt = s.clock.Stamp()
		return row.Overrides.check(s.clock.Stamp())
	})
	if err != nil {
		return Shown{}, err
	}
	if err := s.in.reschedule(ctx, tenant, []Agent{was}, []Agent{now}); err != nil {
		return Shown{}, err
	}
	all, err := s.shown(ctx, app, now)
	if err != nil {
		return Shown{}, err
	}
	return all[0], nil
}

// dropNew takes back what has been set that the agent ran with before, without an override: what
// was read can be sent back.
func (o *Overrides) dropNew(was Agent) {
	before, ran := was.Overrides, was.Settings()
	if before.Enabled == nil && o.Enabled != nil && *o.Enabled == ran.Enabled {
		o.Enabled = nil
	}
	for _, text := range []struct {
		was, now **string
		ran      string
	}{
		{&before.Model, &o.Model, ran.Model}, {&before.Instructions, &o.Instructions, ran.Instructions},
		{&before.Zone, &o.Zone, ran.Zone},
	} {
		if *text.was == nil && *text.now != nil && **text.now == text.ran {
			*text.now = nil
		}
	}
	if before.Cron == nil && slices.Equal(o.Cron, ran.Cron) {
		o.Cron = nil
	}
}

// check returns errs.Invalid naming a field that cannot be set.
func (o Overrides) check(now time.Time) error {
	if o.Model != nil && (!escapes.StorableWithin(*o.Model, MaxModel)) {
		return errs.New(errs.Invalid, "model must be a name of at most %d characters", MaxModel)
	}
	if o.Instructions != nil && (len(*o.Instructions) > MaxInstructions || !escapes.Storable(*o.Instructions)) {
		return errs.New(errs.Invalid, "instructions must be text of at most %d bytes", MaxInstructions)
	}
	zone := ""
	if o.Zone != nil {
		zone = *o.Zone
		if _, err := queue.Next("@daily", zone, now); err != nil {
			return errs.New(errs.Invalid, "zone: %s", errs.MessageOf(err))
		}
	}
	return checkCron(o.Cron, zone, now)
}

func checkCron(all []string, zone string, now time.Time) error {
	if len(all) > MaxSchedules {
		return errs.New(errs.Invalid, "cron must have at most %d expressions", MaxSchedules)
	}
	for _, expression := range all {
		if len(expression) > 200 {
			return errs.New(errs.Invalid, "cron: an expression has at most 200 characters")
		}
		if _, err := queue.Next(expression, zone, now); err != nil {
			return err
		}
	}
	return nil
}

// Runs returns a page of the runs of an agent, also of one that is gone, newest first. The caller
// must be allowed to see the insides of its app. Errors: errs.NotFound for an agent that does not
// exist and has no runs; errs.Forbidden; errs.Invalid for a filter, sort or cursor that does not
// fit.
func (s *Service) Runs(ctx context.Context, app, name string, f Filter, q paging.Query) (paging.Page[Run], error) {
	a, app, err := s.inside(ctx, app)
	if err != nil {
		return paging.Page[Run]{}, err
	}
	if f.State != "" && !slices.Contains(States(), f.State) {
		return paging.Page[Run]{}, errs.New(
			errs.Invalid, "state must be pending, running, failed, done, dead or canceled",
		)
	}
	if f.Trigger != "" && !slices.Contains(Triggers(), f.Trigger) {
		return paging.Page[Run]{}, errs.New(errs.Invalid, "trigger must be event, cron, manual or failure")
	}
	if !named(name) {
		return paging.Page[Run]{}, errs.New(errs.NotFound, "Agent not found.")
	}
	page, err := s.store.Runs(ctx, a.Tenant, app, name, f, q)
	if err == nil && page.Total == 0 {
		_, err = s.store.Agent(ctx, a.Tenant, app, name)
	}
	return page, err
}

// named reports whether a text can be the name of an agent.
func named(name string) bool { return len(name) <= 128 && escapes.Storable(name) }

// Run returns a run of an agent with its steps to those who see the insides of its app. Errors:
// errs.NotFound; errs.Forbidden.
func (s *Service) Run(ctx context.Context, app, name, id string) (Run, []Step, error) {
	a, app, err := s.inside(ctx, app)
	if err != nil {
		return Run{}, nil, err
	}
	r, err := s.run(ctx, a.Tenant, app, name, id)
	if err != nil {
		return Run{}, nil, err
	}
	steps, err := s.store.Steps(ctx, a.Tenant, r.ID)
	return r, steps, err
}

func (s *Service) run(ctx context.Context, tenant, app, name, id string) (Run, error) {
	id, ok := uuids.Parse(id)
	if !ok || !named(name) {
		return Run{}, errs.New(errs.NotFound, "Run not found.")
	}
	return s.store.Run(ctx, tenant, app, name, id)
}

// Trigger starts an agent with an input, any JSON. It needs the permission write on the app.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for an input that is too large, for a draft,
// and where AI is off; errs.Conflict for an agent that is disabled; errs.Busy if too many runs of
// the app wait; errs.Unavailable without a language model.
func (s *Service) Trigger(ctx context.Context, app, name string, input json.RawMessage) (Run, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Run{}, err
	}
	if app, err = s.o.Apps.CheckWrite(ctx, app); err != nil {
		return Run{}, err
	}
	agent, err := s.store.Agent(ctx, a.Tenant, app, name)
	if err != nil {
		return Run{}, err
	}
	if err := s.ready(ctx, a.Tenant); err != nil {
		return Run{}, err
	}
	if input, err = fields.JSON("input", input, MaxInput); err != nil {
		return Run{}, err
	}
	if !agent.Settings().Enabled {
		return Run{}, errs.New(errs.Conflict, "The agent is disabled.")
	}
	return s.in.start(ctx, Run{Tenant: a.Tenant, App: app, Agent: name, Trigger: ByHand, UserID: &a.User, Input: input})
}

// ready returns why no agent of a tenant can run here.
func (s *Service) ready(ctx context.Context, tenant string) error {
	on, err := s.o.Enabled(ctx, tenant)
	if err == nil && !on {
		err = errOff
	}
	if err != nil {
		return err
	}
	return ai.Configured(s.o.Provider)
}

var errOff = errs.New(errs.Invalid, "AI is not enabled on the system")

// Cancel ends a run that has not ended. A call of a tool that is under way is stopped, and what it
// has done stays. It needs the permission write on the app. Errors: errs.NotFound; errs.Forbidden;
// errs.Invalid for a draft; errs.Conflict for a run that has ended.
func (s *Service) Cancel(ctx context.Context, app, name, id string) (Run, []Step, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Run{}, nil, err
	}
	if app, err = s.o.Apps.CheckWrite(ctx, app); err != nil {
		return Run{}, nil, err
	}
	r, err := s.run(ctx, a.Tenant, app, name, id)
	if err != nil {
		return Run{}, nil, err
	}
	ended, err := s.end(ctx, r, Canceled, "It was canceled.")
	if err != nil {
		return Run{}, nil, err
	}
	if !ended {
		return Run{}, nil, errs.New(errs.Conflict, "The run has ended already.")
	}
	s.store.AfterCommit(ctx, func() { s.stop(r.ID) })
	if err := s.in.o.Queue.Hurry(ctx, a.Tenant, r.ID); err != nil { // its schedule waits for the job
		return Run{}, nil, err
	}
	if r, err = s.store.AnyRun(ctx, a.Tenant, r.ID); err != nil {
		return Run{}, nil, err
	}
	steps, err := s.store.Steps(ctx, a.Tenant, r.ID)
	return r, steps, err
}

// end ends a run, whoever works on it, and reports whether it had not ended.
func (s *Service) end(ctx context.Context, r Run, state State, why string) (bool, error) {
	now := s.clock.Stamp()
	why = escapes.Cut(why, maxError)
	return s.store.End(ctx, r.Tenant, r.ID, Progress{State: state, Error: &why, EndedAt: &now}, now)
}

// stop ends the work of this node on a run. Another node looks for itself: see watch.
func (s *Service) stop(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[run]; cancel != nil {
		cancel(errEnded)
	}
}

func (s *Service) inside(ctx context.Context, id string) (a actor.Actor, app string, err error) {
	if a, err = actor.From(ctx); err != nil {
		return a, "", err
	}
	app, err = s.o.Apps.CheckInternals(ctx, id)
	return a, app, err
}

// How long runs are kept.
const (
	keptFor  = 30 * 24 * time.Hour // after their end
	waitsFor = 30 * 24 * time.Hour // until nobody tries any more
)

// kindApp is the kind of the apps whose agents these are.
const kindApp entity.Kind = "app"

// Hooks returns what happens to agents when apps and people change: those of a purged app go with
// it, with their runs and schedules. Runs that have ended are kept for 30 days, the last 1,000 of
// each app.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{Renamed: u.s.store.RenameUsers, Deleted: u.s.deleted, Sweep: u.s.sweep, Due: []entity.Due{
		{Table: "tc_agent_runs", Column: "created_at", Where: "ended_at IS NULL", Age: waitsFor},
		{Table: "tc_agent_runs", Column: "ended_at", Where: "ended_at IS NOT NULL", Age: keptFor},
		{Table: "tc_agent_runs", Column: "ended_at", Where: "ended_at IS NOT NULL", Since: true},
	}}
}

func (s *Service) deleted(ctx context.Context, tenant string, gone ...entity.Key) error {
	if apps := entity.IDs(gone, kindApp); len(apps) > 0 {
		all, err := s.store.Agents(ctx, tenant, apps...)
		if err != nil {
			return err
		}
		if err := s.in.reschedule(ctx, tenant, all, nil); err != nil {
			return err
		}
		if err := s.store.DeleteApps(ctx, tenant, apps); err != nil {
			return err
		}
	}
	people := entity.IDs(gone, entity.KindUser, entity.KindTeam)
	if len(people) == 0 {
		return nil
	}
	return s.store.ForgetUsers(ctx, tenant, people)
}

func (s *Service) sweep(ctx context.Context, tenant string) (int, error) {
	now := s.clock.Stamp()
	if _, err := s.store.Expire(
		ctx, tenant, now.Add(-waitsFor), now, "It was not carried out within 30 days.",
	); err != nil {
		return 0, err
	}
	return s.store.Sweep(ctx, tenant, now.Add(-keptFor), s.in.o.Limits.Kept, s.in.o.Limits.Bytes)
}
