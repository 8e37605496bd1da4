package httpapi

import (
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// agentRoutes serves the agents of apps and their runs.
type agentRoutes struct{ *api }

// routes returns the rows of apps' agents, unless the host keeps apps itself.
func (a agentRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const (
		all  = "/api/apps/:id/agents"
		one  = all + "/:agent"
		runs = one + "/runs"
		run  = runs + "/:runId"
	)
	return []rest.Route{
		{
			Method:  get,
			Pattern: all,
			Name:    "listAgents",
			Grants:  programs,
			Heavy:   rest.Brief,
			Query:   none,
			Summary: "The agents of an app",
			Gives:   openapi.OK(openapi.Whole[agentWithStatus]("inf:app-agent", "inf:app")),
			Fails:   []int{403, 404},
			Handle:  a.listAgents,
		},
		{
			Method:  get,
			Pattern: one,
			Name:    "getAgent",
			Grants:  programs,
			Summary: "One agent of an app",
			Gives:   openapi.OK(openapi.One[agentWithStatus]()),
			Fails:   []int{404},
			Handle:  a.getAgent,
		},
		{
			Method:  put,
			Pattern: one,
			Name:    "putAgent",
			Grants:  programs,
			Row:     "agent",
			Writes:  rest.InTx,
			Summary: "Override what the manifest has for an agent",
			Takes:   openapi.Update[agentInput, agentWithStatus](),
			Gives:   openapi.OK(openapi.One[agentWithStatus]()),
			Fails:   []int{400, 404},
			Handle:  a.putAgent,
		},
		{
			Method:  post,
			Pattern: one + "/_trigger",
			Name:    "triggerAgent",
			Grants:  programs,
			Writes:  rest.InTx,
			Summary: "Start an agent",
			Takes:   openapi.Input[triggerInput](),
			Gives:   openapi.Created(openapi.One[runWithStepsBody]()),
			Fails:   []int{403, 404, 409},
			Handle:  a.triggerAgent,
		},
		{
			Method:  get,
			Pattern: runs,
			Name:    "listAgentRuns",
			Grants:  programs,
			Query:   append(slices.Clone(paged), "state", "trigger"),
			Summary: "The runs of an agent",
			Gives:   openapi.OK(openapi.Page[runBody]("inf:app-agent-run")),
			Fails:   []int{400, 404},
			Handle:  a.listAgentRuns,
		},
		{
			Method:  get,
			Pattern: run,
			Name:    "getAgentRun",
			Grants:  programs,
			Summary: "One run of an agent with its steps",
			Gives:   openapi.OK(openapi.One[runWithStepsBody]()),
			Fails:   []int{404},
			Handle:  a.getAgentRun,
		},
		{
			Method:  post,
			Pattern: run + "/_cancel",
			Name:    "cancelAgentRun",
			Grants:  programs,
			Writes:  rest.InTx,
			Options: rest.NoOptions{},
			Summary: "End a run of an agent",
			Gives:   openapi.OK(openapi.One[runWithStepsBody]()),
			Fails:   []int{409},
			Handle:  a.cancelAgentRun,
		},
	}
}

// agentSettings are what the manifest has for an agent, its overrides, or what it runs with, as the
// API writes them.
type agentSettings struct {
	Enabled      *bool    `json:"enabled"`
	Model        *string  `json:"model"`
	Instructions *string  `json:"instructions"`
	Cron         []string `json:"cron" null:"true"`
	Zone         *string  `json:"zone"`
}

// agentBody is an agent as the API writes it.
type agentBody struct {
	Tenant       string        `json:"tenant"`
	AppID        string        `json:"appId"`
	Name         string        `json:"name"`
	Description  string        `json:"description"`
	Enabled      bool          `json:"enabled"`
	Model        string        `json:"model"` // "" for the default one
	Instructions string        `json:"instructions"`
	Tools        []string      `json:"tools"`
	On           []string      `json:"on"`
	Cron         []string      `json:"cron"`
	Zone         string        `json:"zone"` // "" for UTC
	OnFailure    *string       `json:"onFailure"`
	Overrides    agentSettings `json:"overrides"`
	CreatedAt    hal.Time      `json:"createdAt"`
	UpdatedAt    hal.Time      `json:"updatedAt"`
}

// agentStatus is what is known of an agent's runs. It changes without the agent.
type agentStatus struct {
	NextAt  *hal.Time      `json:"nextAt"`
	LastRun *runBody       `json:"lastRun"`
	Runs    map[string]int `json:"runs"`
}

// agentWithStatus is an agent with what is known of its runs.
type agentWithStatus struct {
	agentBody
	agentStatus
}

// Relations implements openapi.Related.
func (agentWithStatus) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-agent-runs", "inf:app-agents", "inf:trigger"}}
}

func (a agentRoutes) agent(who actor.Actor, v agents.Shown) hal.Resource {
	self, of := a.href("apps", v.App, "agents", v.Name), v.Settings()
	links := hal.Self(self).With(
		"inf:app-agents", a.href("apps", v.App, "agents"),
	).With("inf:app", a.href("apps", v.App)).
		With("inf:app-agent-runs", self+"/runs")
	links = whenWriting(who, links, hal.Links{"inf:trigger": {Href: self + "/_trigger"}})
	o := v.Overrides
	body := agentBody{
		Tenant: v.Tenant, AppID: v.App, Name: v.Name,
		Description: v.Definition.Description, Enabled: of.Enabled, Model: of.Model, Instructions: of.Instructions,
		Tools: listed(v.Definition.Tools), On: listed(v.Definition.On),
		Cron: listed(of.Cron), Zone: of.Zone, OnFailure: orNull(v.Definition.OnFailure),
		Overrides: agentSettings{o.Enabled, o.Model, o.Instructions, o.Cron, o.Zone},
		CreatedAt: hal.Time(v.CreatedAt), UpdatedAt: hal.Time(v.UpdatedAt),
	}
	status := agentStatus{NextAt: hal.OrNull(v.Next), Runs: map[string]int{}}
	for _, state := range agents.States() {
		status.Runs[string(state)] = v.Counts[state]
	}
	if v.Last != nil {
		last := newRunBody(*v.Last)
		status.LastRun = &last
	}
	return hal.Resource{Links: links, Row: v.Agent, Beside: status, Value: agentWithStatus{body, status}}
}

// listed returns a list that is [] when it is empty.
func listed(all []string) []string { return append([]string{}, all...) }

// runBody is a run as the API writes it.
type runBody struct {
	ID           string          `json:"id"`
	AppID        string          `json:"appId"`
	Agent        string          `json:"agent"`
	Trigger      string          `json:"trigger"` // event, cron, manual or failure
	EventID      *string         `json:"eventId"`
	RunID        *string         `json:"runId"` // whose failure has started it
	UserID       *string         `json:"userId"`
	Input        json.RawMessage `json:"input"`
	Depth        int             `json:"depth"`
	State        string          `json:"state"`
	Attempts     int             `json:"attempts"`
	Error        *string         `json:"error"`
	Result       *string         `json:"result"`
	Model        *string         `json:"model"`
	Answers      int             `json:"answers"`
	InputTokens  int             `json:"inputTokens"`
	OutputTokens int             `json:"outputTokens"`
	CreatedAt    hal.Time        `json:"createdAt"`
	UpdatedAt    hal.Time        `json:"updatedAt"`
	StartedAt    *hal.Time       `json:"startedAt"`
	EndedAt      *hal.Time       `json:"endedAt"`
}

// Relations implements openapi.Related.
func (runBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-agent", "inf:app-agent-runs", "inf:cancel"}}
}

func newRunBody(r agents.Run) runBody {
	return runBody{
		ID: r.ID, AppID: r.App, Agent: r.Agent, Trigger: string(r.Trigger),
		EventID: r.EventID, RunID: r.RunID, UserID: r.UserID, Input: r.Input, Depth: r.Depth,
		State: string(r.State), Attempts: r.Attempts, Error: r.Error,
		Result: r.Result, Model: orNull(r.Model), Answers: r.Steps,
		InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens,
		CreatedAt: hal.Time(r.CreatedAt), UpdatedAt: hal.Time(r.UpdatedAt),
		StartedAt: hal.OrNull(r.StartedAt), EndedAt: hal.OrNull(r.EndedAt),
	}
}

func (a agentRoutes) runLinks(who actor.Actor, r agents.Run) hal.Links {
	of := a.href("apps", r.App, "agents", r.Agent)
	links := hal.Self(of+"/runs/"+hal.Segment(r.ID)).With("inf:app-agent", of).With(
		"inf:app-agent-runs", of+"/runs",
	).With("inf:app", a.href("apps", r.App))
	if !r.State.Ended() {
		links = whenWriting(who, links, hal.Links{"inf:cancel": {Href: of + "/runs/" + hal.Segment(r.ID) + "/_cancel"}})
	}
	if r.EventID != nil {
		links.With("inf:app-event", a.href("apps", r.App, "events", *r.EventID))
	}
	return links
}

func (a agentRoutes) agentRun(who actor.Actor, r agents.Run) hal.Resource {
	return hal.Resource{Links: a.runLinks(who, r), Row: r, Value: newRunBody(r)}
}

// stepBody is a step of a run as the API writes it; members that are not of its kind are null.
type stepBody struct {
	N            int         `json:"n"`
	Kind         string      `json:"kind"` // answer or tool
	Text         *string     `json:"text"`
	Calls        []callEvent `json:"calls" null:"true"`
	InputTokens  *int        `json:"inputTokens"`
	OutputTokens *int        `json:"outputTokens"`
	CallID       *string     `json:"callId"`
	Tool         *string     `json:"tool"`
	Arguments    *string     `json:"arguments"`
	Result       *string     `json:"result"` // null until the call has ended
	Failed       bool        `json:"failed"`
	Log          *string     `json:"log"`
	StartedAt    hal.Time    `json:"startedAt"`
	EndedAt      *hal.Time   `json:"endedAt"`
}

func newStepBody(s agents.Step) stepBody {
	b := stepBody{
		N:         s.N,
		Kind:      string(s.Kind),
		Failed:    s.Failed,
		StartedAt: hal.Time(s.StartedAt),
		EndedAt:   hal.OrNull(s.EndedAt),
	}
	if s.Kind == agents.ToolStep {
		b.CallID, b.Tool, b.Arguments, b.Log = &s.CallID, &s.Tool, &s.Arguments, &s.Log
		if s.EndedAt != nil {
			b.Result = &s.Result
		}
		return b
	}
	b.Text, b.InputTokens, b.OutputTokens, b.Calls = &s.Text, &s.Usage.InputTokens, &s.Usage.OutputTokens, []callEvent{}
	for _, c := range s.Calls {
		b.Calls = append(b.Calls, callEvent{c.ID, c.Name, c.Arguments})
	}
	return b
}

// runWithStepsBody is a run with its steps.
type runWithStepsBody struct {
	runBody
	Steps []stepBody `json:"steps"`
}

// runWithSteps encodes a run with its steps.
func (a agentRoutes) runWithSteps(who actor.Actor, r agents.Run, steps []agents.Step) hal.Resource {
	all := make([]stepBody, len(steps))
	for i, s := range steps {
		all[i] = newStepBody(s)
	}
	return hal.Resource{Links: a.runLinks(who, r), Row: r, Value: runWithStepsBody{newRunBody(r), all}}
}

// listAgents serves GET /api/apps/{id}/agents: 200 and the agents that the app has deployed,
// ordered by name, each as getAgent answers it. A draft has none. 403 for those who may only run
// the app; 404.
func (a agentRoutes) listAgents(r *rest.Request) (rest.Reply, error) {
	app, all, err := a.Agents.List(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]hal.Resource, len(all))
	for i, v := range all {
		rows[i] = a.agent(r.Who, v)
	}
	links := hal.Self(a.href("apps", app, "agents")).With("inf:app", a.href("apps", app))
	return rest.OK(hal.Collection(links, hal.Page{Count: len(rows), Total: len(rows)}, "inf:app-agent", rows, nil))
}

// getAgent serves GET /api/apps/{id}/agents/{agent}: 200 and what the agent runs with, what of it
// overrides the manifest, when its schedule starts it next, its last run, and how many runs are in
// each state; 403; 404.
func (a agentRoutes) getAgent(r *rest.Request) (rest.Reply, error) {
	v, err := a.Agents.Get(r.Context(), r.Param("id"), r.Param("agent"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.agent(r.Who, v))
}

// agentInput is the body of a write to an agent.
type agentInput struct {
	Enabled      rest.Field[bool]            `json:"enabled"`
	Model        rest.Field[string]          `json:"model"`
	Instructions rest.Field[string]          `json:"instructions"`
	Cron         rest.Field[json.RawMessage] `json:"cron"`
	Zone         rest.Field[string]          `json:"zone"`
}

// putAgent serves PUT /api/apps/{id}/agents/{agent} {enabled?, model?, instructions?, cron?,
// zone?}: 200 and the agent. A member that is there overrides what the manifest has, null takes
// that back, and a deploy keeps it; cron is an expression or a list of them. 400 naming the field,
// and for a draft; 403 for those who may not change the app; 404.
func (a agentRoutes) putAgent(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[agentInput](r, agentWithStatus{})
	if err != nil {
		return rest.Reply{}, err
	}
	var cron []string
	if in.Cron.Value != nil {
		if cron, err = cronList(*in.Cron.Value); err != nil {
			return rest.Reply{}, err
		}
	}
	v, err := a.Agents.Update(r.Context(), r.Param("id"), r.Param("agent"), func(o *agents.Overrides) {
		in.Enabled.ApplyOrNull(&o.Enabled)
		in.Model.ApplyOrNull(&o.Model)
		in.Instructions.ApplyOrNull(&o.Instructions)
		in.Zone.ApplyOrNull(&o.Zone)
		if in.Cron.Set {
			o.Cron = cron
		}
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.agent(r.Who, v))
}

// cronList reads an expression or a list of them.
func cronList(raw json.RawMessage) ([]string, error) {
	var one *string
	var all []*string
	if json.Unmarshal(raw, &one) == nil && one != nil {
		return []string{*one}, nil
	}
	if json.Unmarshal(raw, &all) != nil || slices.Contains(all, nil) {
		return nil, errs.New(errs.Invalid, "cron must be a string or an array of strings")
	}
	out := make([]string, len(all))
	for i, expression := range all {
		out[i] = *expression
	}
	return out, nil
}

// triggerInput is what an agent is started with: an input, or an event and its payload as the agent
// would get them of the event.
type triggerInput struct {
	Input   rest.Field[json.RawMessage] `json:"input"`
	Event   *string                     `json:"event"`
	Payload rest.Field[json.RawMessage] `json:"payload"`
}

// input returns the input of the run, nil for none.
func (in triggerInput) input() (input json.RawMessage, err error) {
	switch {
	case in.Event == nil && in.Payload.Set:
		return nil, errs.New(errs.Invalid, "event is required with a payload; without an event, send {input}")
	case in.Event == nil:
		in.Input.Apply(&input)
		return input, nil
	case in.Input.Set:
		return nil, errs.New(errs.Invalid, "input must be left out with an event: send {input}, or {event, payload}")
	}
	payload := json.RawMessage("null")
	in.Payload.Apply(&payload)
	return agents.EventInput(*in.Event, payload)
}

// triggerAgent serves POST /api/apps/{id}/agents/{agent}/_trigger {input?}: 201 and the run, which
// a node begins when it has room. input is any JSON of at most 64 KiB. 400 for a draft and where AI
// is off; 403 for those who may not change the app; 404; 409 for an agent that is disabled; 429 if
// too many runs of the app wait; 503 without a language model.
func (a agentRoutes) triggerAgent(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[triggerInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	input, err := in.input()
	if err != nil {
		return rest.Reply{}, err
	}
	run, err := a.Agents.Trigger(r.Context(), r.Param("id"), r.Param("agent"), input)
	if err != nil {
		return rest.Reply{}, err
	}
	res := a.runWithSteps(r.Who, run, nil)
	return rest.Created(res.Links["self"].Href, res)
}

// listAgentRuns serves GET /api/apps/{id}/agents/{agent}/runs: 200 and a page of its runs, 100
// unless limit says otherwise, newest first unless sort says otherwise (createdAt); state and
// trigger select. An agent that is gone has its runs still. 400 for a state or trigger that there
// is not; 403; 404.
func (a agentRoutes) listAgentRuns(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	f := agents.Filter{State: agents.State(query.Get("state")), Trigger: agents.Trigger(query.Get("trigger"))}
	page, err := a.Agents.Runs(r.Context(), r.Param("id"), r.Param("agent"), f, q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:app-agent-run", nil, func(run agents.Run) hal.Resource {
		return a.agentRun(r.Who, run)
	}))
}

// getAgentRun serves GET /api/apps/{id}/agents/{agent}/runs/{runId}: 200 and the run with its
// steps: the answers of the model and the calls of tools; 403; 404.
func (a agentRoutes) getAgentRun(r *rest.Request) (rest.Reply, error) {
	run, steps, err := a.Agents.Run(r.Context(), r.Param("id"), r.Param("agent"), r.Param("runId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.runWithSteps(r.Who, run, steps))
}

// cancelAgentRun serves POST /api/apps/{id}/agents/{agent}/runs/{runId}/_cancel: 200 and the run,
// which is canceled. A tool that works is stopped; what it has done stays. 400 for a draft; 403 for
// those who may not change the app; 404; 409 for a run that has ended.
func (a agentRoutes) cancelAgentRun(r *rest.Request) (rest.Reply, error) {
	run, steps, err := a.Agents.Cancel(r.Context(), r.Param("id"), r.Param("agent"), r.Param("runId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.runWithSteps(r.Who, run, steps))
}
