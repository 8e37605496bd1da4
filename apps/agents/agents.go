// Package agents runs the agents of apps: language models that events, schedules and people start,
// and that work with the tools of their app.
//
//	run, err := app.Agents.Trigger(ctx, id, "triage", json.RawMessage(`{"order": 7}`))
//	run, steps, err := app.Agents.Run(ctx, id, "triage", run.ID)
//	_, _, err = app.Agents.Cancel(ctx, id, "triage", run.ID)
//
// A run is a job of the queue. Each answer of the model and each call of a tool is stored as a step
// when it happens, so that a run whose node dies goes on elsewhere from what is stored. httpapi,
// the root and hosts import it; internal/store/agents stores its rows.
package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Definition is what the manifest of an app declared of an agent when the app was deployed.
type Definition struct {
	Description  string   `json:"description"`
	Instructions string   `json:"instructions"`
	Model        string   `json:"model"` // "" for the default one
	Tools        []string `json:"tools"` // their files, such as tools/orders.js
	On           []string `json:"on"`    // events that start it
	Cron         []string `json:"cron"`
	OnFailure    string   `json:"onFailure"` // the agent that is started when all tries have failed; "" for none
}

// Overrides are what people have set for an agent in place of what its manifest has; nil for what
// the manifest has. A deploy keeps them.
type Overrides struct {
	Enabled      *bool    `json:"enabled"`
	Model        *string  `json:"model"`
	Instructions *string  `json:"instructions"`
	Cron         []string `json:"cron"` // nil for none; an empty list has no times
	Zone         *string  `json:"zone"` // of Cron, an IANA name; UTC without it
}

// Agent is an agent that an app has deployed.
type Agent struct {
	Tenant     string
	App        string // id
	Name       string // [A-Za-z0-9][A-Za-z0-9_.-]{0,127}
	Definition Definition
	Overrides  Overrides
	CreatedAt  time.Time // UTC, whole microseconds
	UpdatedAt  time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (a Agent) Version() string {
	definition, _ := json.Marshal(a.Definition)
	overrides, _ := json.Marshal(a.Overrides)
	return guard.Version(
		a.App, a.Name, json.RawMessage(definition), json.RawMessage(overrides), a.CreatedAt, a.UpdatedAt,
	)
}

// Settings are what an agent runs with: its definition with the overrides.
type Settings struct {
	Enabled      bool
	Model        string
	Instructions string
	Cron         []string
	Zone         string // "" for UTC
}

// Settings returns what the agent runs with.
func (a Agent) Settings() Settings {
	s := Settings{
		Enabled:      true,
		Model:        a.Definition.Model,
		Instructions: a.Definition.Instructions,
		Cron:         a.Definition.Cron,
	}
	o := a.Overrides
	if o.Enabled != nil {
		s.Enabled = *o.Enabled
	}
	if o.Model != nil {
		s.Model = *o.Model
	}
	if o.Instructions != nil {
		s.Instructions = *o.Instructions
	}
	if o.Cron != nil {
		s.Cron = o.Cron
	}
	if o.Zone != nil {
		s.Zone = *o.Zone
	}
	return s
}

// State is where a run is.
type State string

// The states. Done, Dead and Canceled are the last ones.
const (
	Pending  State = "pending"  // it waits
	Running  State = "running"  // a node works on it
	Failed   State = "failed"   // a try has failed, and it waits for another one
	Done     State = "done"     // the agent has ended it
	Dead     State = "dead"     // it has failed and is not tried again
	Canceled State = "canceled" // it was ended by somebody, or its agent is gone
)

// States returns all states in the order of a run's life.
func States() []State { return []State{Pending, Running, Failed, Done, Dead, Canceled} }

// Ended reports whether nothing happens to a run in this state any more.
func (s State) Ended() bool { return s == Done || s == Dead || s == Canceled }

// Trigger is what has started a run.
type Trigger string

// The triggers.
const (
	ByEvent   Trigger = "event"
	ByCron    Trigger = "cron"
	ByHand    Trigger = "manual"
	ByFailure Trigger = "failure"
)

// Triggers returns all triggers.
func Triggers() []Trigger { return []Trigger{ByEvent, ByCron, ByHand, ByFailure} }

// Progress is how far a run has come.
type Progress struct {
	State     State
	Attempts  int
	Error     *string // why the last try has failed, or why the run has ended; nil for none
	Result    *string // the last answer of the model; nil until then
	StartedAt *time.Time
	EndedAt   *time.Time // nil while something can happen to it
}

// Run is one run of an agent.
type Run struct {
	Tenant  string
	ID      string // UUIDv7, lower case; also that of its job
	App     string // id
	Agent   string // name; the agent may be gone
	Trigger Trigger
	EventID *string         // the event that has started it
	RunID   *string         // the run whose failure has started it
	UserID  *string         // who has started it by hand; nil for a deleted one
	Input   json.RawMessage // at most MaxInput bytes; null for none
	Depth   int             // how many agents and events have started each other before it
	Model   string          // as its server names it; "" until it has answered
	Steps   int             // answers of the model
	Usage   ai.Usage
	Size    int    // bytes of its texts and those of its steps
	Lease   string // of the job that works on it: who writes has this one
	Progress
	CreatedAt time.Time // UTC, whole microseconds
	UpdatedAt time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (r Run) Version() string {
	return guard.Version(r.ID, r.App, r.Agent, string(r.Trigger), r.EventID, r.RunID, r.UserID, r.Input,
		r.Depth, r.Model, r.Steps, r.Usage.InputTokens, r.Usage.OutputTokens,
		r.Size, string(r.State), r.Attempts, r.Error, r.Result, r.StartedAt, r.EndedAt, r.CreatedAt, r.UpdatedAt)
}

// StepKind is what a step is.
type StepKind string

// The kinds of steps.
const (
	Answer   StepKind = "answer" // of the model
	ToolStep StepKind = "tool"   // a call of a tool
)

// Step is one step of a run.
type Step struct {
	Tenant    string
	Run       string // id
	N         int    // from 1, in the order they were begun
	Kind      StepKind
	Text      string        // of an answer
	Calls     []ai.ToolCall // of an answer: the steps that follow do them; nil for none
	Usage     ai.Usage      // of an answer
	CallID    string        // of a call
	Tool      string        // of a call: the name that the model has called
	Arguments string        // of a call, as the model wrote them
	Result    string        // of a call, as the model reads it
	Failed    bool          // the result is an error
	Log       string        // of a call: what the tool has logged
	StartedAt time.Time     // UTC, whole microseconds
	EndedAt   *time.Time    // UTC, whole microseconds; nil for a call that was begun
}

// Size returns how many bytes of a run a step takes.
func (s Step) Size() int {
	n := len(s.Text) + len(s.CallID) + len(s.Tool) + len(s.Arguments) + len(s.Result) + len(s.Log)
	for _, c := range s.Calls {
		n += len(c.ID) + len(c.Name) + len(c.Arguments)
	}
	return n
}

// Filter selects runs; the zero value selects all.
type Filter struct {
	State   State   // "" for all
	Trigger Trigger // "" for all
}

// Summary is what the runs of an agent amount to.
type Summary struct {
	Last   *Run          // nil for none
	Counts map[State]int // of those in each state; without those of which there are none
}

// Store keeps agents and their runs. The tests beside its bun-backed store define what every
// implementation must do.
type Store interface {
	// Agents returns the agents of some apps, ordered by app and name.
	Agents(ctx context.Context, tenant string, apps ...string) ([]Agent, error)
	// Agent returns one. It fails with errs.NotFound.
	Agent(ctx context.Context, tenant, app, name string) (Agent, error)
	// PutAgents adds or replaces agents of a tenant.
	PutAgents(ctx context.Context, tenant string, all []Agent) error
	// RemoveAgents removes agents of an app; their runs stay.
	RemoveAgents(ctx context.Context, tenant, app string, names []string) error
	// Update calls edit with an agent and stores the result; no other Update of it comes between.
	// It fails with errs.NotFound, with errs.Stale, and with the error of edit.
	Update(ctx context.Context, tenant, app, name string, edit func(*Agent) error) (Agent, error)

	// InsertRun adds a run.
	InsertRun(ctx context.Context, tenant string, r Run) error
	// Runs returns a page of the runs of an agent: -createdAt (the default) or createdAt.
	Runs(ctx context.Context, tenant, app, agent string, f Filter, q paging.Query) (paging.Page[Run], error)
	// Run returns one of an agent. It fails with errs.NotFound.
	Run(ctx context.Context, tenant, app, agent, id string) (Run, error)
	// AnyRun returns one of any agent. It fails with errs.NotFound.
	AnyRun(ctx context.Context, tenant, id string) (Run, error)
	// Summaries summarizes the runs of the agents of an app that have some, by agent.
	Summaries(ctx context.Context, tenant, app string) (map[string]Summary, error)
	// Waiting returns how many runs of an app have not ended.
	Waiting(ctx context.Context, tenant, app string) (int, error)
	// Unfinished reports whether an agent has a run of a trigger that has not ended.
	Unfinished(ctx context.Context, tenant, app, agent string, t Trigger) (bool, error)

	// Begin makes a lease the one that writes to a run, which is Running from then on, and returns
	// the run. It fails with errs.NotFound for one that has ended.
	Begin(ctx context.Context, tenant, id, lease string, attempts int, now time.Time) (Run, error)
	// Steps returns the steps of a run in their order.
	Steps(ctx context.Context, tenant, run string) ([]Step, error)
	// AddStep adds a step to a run, and what it has used up. It fails with errs.Conflict, and
	// writes nothing, unless the run is Running with the lease.
	AddStep(ctx context.Context, tenant, lease, model string, s Step) error
	// EndStep stores how a call has ended. It fails as AddStep does.
	EndStep(ctx context.Context, tenant, lease string, s Step) error
	// Settle changes how far a run has come. It fails as AddStep does.
	Settle(ctx context.Context, tenant, id, lease string, p Progress, now time.Time) error
	// End ends a run that has not ended, even while a node works on it, and reports whether it did.
	// p has no Result or StartedAt.
	End(ctx context.Context, tenant, id string, p Progress, now time.Time) (bool, error)
	// Reopen makes a run that is Dead Pending again.
	Reopen(ctx context.Context, tenant, id string, now time.Time) error

	// RenameUsers replaces usernames; names maps old ones to new ones, and no new one is an old
	// one.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error
	// ForgetUsers removes the names of some principals.
	ForgetUsers(ctx context.Context, tenant string, ids []string) error
	// DeleteApps removes the agents and runs of some apps.
	DeleteApps(ctx context.Context, tenant string, apps []string) error
	// Expire ends, as Dead, what was made before a time and has not ended.
	Expire(ctx context.Context, tenant string, before, now time.Time, reason string) (int, error)
	// Sweep removes what ended before a time, and of each app what ended first beyond the last keep
	// runs, and beyond some bytes.
	Sweep(ctx context.Context, tenant string, before time.Time, keep, bytes int) (int, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// AfterCommit calls f when the transaction in ctx has been committed, at once when there is
	// none.
	AfterCommit(ctx context.Context, f func())
}

// The bounds of agents and their runs.
const (
	MaxInput        = 64 << 10  // bytes of a run's input
	MaxInstructions = 64 << 10  // bytes
	MaxModel        = 200       // characters of a model's name
	MaxSchedules    = 10        // of an agent
	MaxAnswer       = 256 << 10 // bytes, with its calls
	MaxCalls        = 32        // of one answer
	MaxResult       = 64 << 10  // bytes that a tool returns
	maxLog          = 4 << 10
	maxError        = 2 << 10
)

// MaxDepth is how many agents, and events that they emit, can start each other: what a run of this
// depth would start is not started.
const MaxDepth = 3

// MaxSteps is how many answers of the model a run has. With the last one no tool can be called.
const MaxSteps = 20

// Limits bound what agents use up. 0 stands for a default.
type Limits struct {
	Waiting  int // runs of an app that have not ended; default 1,000
	Kept     int // runs of an app that have ended and are kept; default 1,000
	Bytes    int // of them, with their steps; default 64 MiB
	RunBytes int // of one run, with its steps; default 2 MiB
	AtOnce   int // runs at once on a node; default 16
	Tenant   int // of them of a tenant; default 4. Their requests to a model take the places of one user's chats
	// tools of a tenant at once on a node, so that slow ones leave room for its webhooks; default
	// half the number of processors, at least 1
	Tools int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Waiting: cmp.Or(l.Waiting, 1000), Kept: cmp.Or(l.Kept, 1000),
		Bytes: cmp.Or(l.Bytes, 64<<20), RunBytes: cmp.Or(l.RunBytes, 2<<20),
		AtOnce: cmp.Or(l.AtOnce, 16),
		Tenant: cmp.Or(l.Tenant, 4), Tools: cmp.Or(l.Tools, max(runtime.GOMAXPROCS(0)/2, 1)),
	}
}

// listens reports whether an event starts an agent.
func (a Agent) listens(event string) bool {
	return a.Settings().Enabled && slices.Contains(a.Definition.On, event)
}
