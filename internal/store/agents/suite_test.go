package bunstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) agents.Store) {
	for name, check := range map[string]func(*testing.T, agents.Store){
		"Agents": testAgents, "ParallelEditsAllLand": testParallelEdits, "RoundTrip": testRoundTrip,
		"Pages": testPages, "Summaries": testSummaries, "Steps": testSteps,
		"Fences": testFences, "Ends": testEnds, "People": testPeople,
		"Apps": testApps, "Sweep": testSweep, "FailedTxWritesNone": testFailedTx,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

func agent(app, name string) agents.Agent {
	return agents.Agent{
		Tenant:     "acme",
		App:        app,
		Name:       name,
		Definition: agents.Definition{Instructions: "Work."},
		CreatedAt:  monday,
		UpdatedAt:  monday,
	}
}

func run(n int, app, of string) agents.Run {
	user := "jo"
	return agents.Run{
		Tenant: "acme", ID: id(n), App: app, Agent: of,
		Trigger: agents.ByHand, UserID: &user, Input: json.RawMessage(`{"n":1}`), Size: 10,
		Progress:  agents.Progress{State: agents.Pending},
		CreatedAt: monday.Add(time.Duration(n) * time.Second), UpdatedAt: monday,
	}
}

// dead returns a run that ended at a time.
func dead(r agents.Run, at time.Time) agents.Run {
	why := "why"
	r.State, r.Error, r.EndedAt = agents.Dead, &why, &at
	return r
}

func put(t *testing.T, s agents.Store, tenant string, all ...agents.Run) {
	t.Helper()
	for _, r := range all {
		is.New(t).NoErr(s.InsertRun(t.Context(), tenant, r))
	}
}

func testAgents(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	off, text := false, "ü '; --"
	full := agent("shop", "full")
	full.Definition = agents.Definition{
		Description:  text,
		Instructions: text,
		Model:        "m",
		Tools:        []string{"tools/a.js"},
		On:           []string{"a.b"},
		Cron:         []string{"@daily"},
		OnFailure:    "b",
	}
	full.Overrides = agents.Overrides{
		Enabled:      &off,
		Model:        &text,
		Instructions: &text,
		Cron:         []string{"@hourly", "0 8 * * *"},
		Zone:         &text,
	}
	full.UpdatedAt = tuesday
	fieldtest.Full(t, full)
	is.NoErr(s.PutAgents(ctx, "acme", []agents.Agent{full, agent("shop", "b"), agent("other", "c")}))
	is.NoErr(s.PutAgents(ctx, "acme", nil))
	is.NoErr(s.PutAgents(ctx, "evil", []agents.Agent{agent("shop", "b")}))
	got, err := s.Agent(ctx, "acme", "shop", "full")
	is.NoErr(err)
	is.Equal(got, full)
	all, err := s.Agents(ctx, "acme", "shop")
	is.NoErr(err)
	is.Equal(all, []agents.Agent{agent("shop", "b"), full})
	all, err = s.Agents(ctx, "acme", "shop", "none", "other")
	is.NoErr(err)
	is.Equal(all, []agents.Agent{agent("other", "c"), agent("shop", "b"), full})
	for _, at := range [][3]string{{"evil", "shop", "full"}, {"acme", "other", "full"}, {"acme", "shop", "none"}} {
		_, err := s.Agent(ctx, at[0], at[1], at[2])
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Update(ctx, at[0], at[1], at[2], func(*agents.Agent) error { return nil })
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}

	again := full // a deploy replaces it, except for its creation time
	again.Definition.Model, again.CreatedAt = "n", tuesday.Add(time.Hour)
	is.NoErr(s.PutAgents(ctx, "acme", []agents.Agent{again}))
	got, err = s.Agent(ctx, "acme", "shop", "full")
	is.NoErr(err)
	is.Equal([]any{got.Definition.Model, got.CreatedAt}, []any{"n", monday})

	fault := errors.New("fault")
	_, err = s.Update(ctx, "acme", "shop", "b", func(a *agents.Agent) error { a.Overrides.Model = &text; return fault })
	is.Equal(err, fault)
	got, err = s.Update(ctx, "acme", "shop", "b", func(a *agents.Agent) error {
		a.App, a.Name, a.Overrides.Enabled, a.UpdatedAt = "evil", "evil", &off, tuesday
		return nil
	})
	is.NoErr(err)
	stored, err := s.Agent(ctx, "acme", "shop", "b")
	is.NoErr(err)
	is.Equal(stored, got)
	is.Equal([]any{
		got.Name, got.App, *got.Overrides.Enabled, got.Overrides.Model == nil,
	}, []any{"b", "shop", false, true})

	is.NoErr(s.RemoveAgents(ctx, "acme", "shop", []string{"b", "none", "c"}))
	all, err = s.Agents(ctx, "acme", "shop")
	is.NoErr(err)
	is.Equal(len(all), 1)
	for tenant, app := range map[string]string{"acme": "other", "evil": "shop"} {
		all, err := s.Agents(ctx, tenant, app)
		is.NoErr(err)
		is.Equal(len(all), 1)
	}
}

func testParallelEdits(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	is.NoErr(s.PutAgents(ctx, "acme", []agents.Agent{agent("shop", "a")}))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := s.Update(ctx, "acme", "shop", "a", func(a *agents.Agent) error {
				a.Overrides.Cron = append(a.Overrides.Cron, "@daily")
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	a, err := s.Agent(ctx, "acme", "shop", "a")
	is.NoErr(err)
	is.Equal(len(a.Overrides.Cron), 20)
}

func testRoundTrip(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	r, event, of := dead(run(1, "shop", "a"), tuesday), id(7), id(8)
	r.EventID, r.RunID, r.Depth, r.Model, r.Steps, r.Usage, r.Lease, r.Attempts = &event, &of, 2, "gpt", 3, ai.Usage{
		InputTokens:  5,
		OutputTokens: 6,
	}, "lease", 2
	r.Result, r.StartedAt = &event, &tuesday
	fieldtest.Full(t, r)
	put(t, s, "acme", r, run(2, "shop", "a"))
	got, err := s.Run(ctx, "acme", "shop", "a", id(1))
	is.NoErr(err)
	is.Equal(got, r)
	got, err = s.AnyRun(ctx, "acme", id(2))
	is.NoErr(err)
	is.Equal(got, run(2, "shop", "a"))
	for _, at := range [][4]string{
		{"evil", "shop", "a", id(1)}, {"acme", "other", "a", id(1)}, {"acme", "shop", "b", id(1)},
		{"acme", "shop", "a", id(9)},
	} {
		_, err := s.Run(ctx, at[0], at[1], at[2], at[3])
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	_, err = s.AnyRun(ctx, "evil", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testPages(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	cron := run(3, "shop", "a")
	cron.Trigger = agents.ByCron
	put(
		t, s, "acme", run(1, "shop", "a"), dead(run(2, "shop", "a"), tuesday), cron, run(4, "shop", "b"),
		run(5, "other", "a"),
	)
	put(t, s, "evil", run(6, "shop", "a"))
	ids := func(f agents.Filter, q paging.Query) (all []string) {
		if q.Limit == 0 {
			q.Limit = 10
		}
		page, err := s.Runs(ctx, "acme", "shop", "a", f, q)
		is.NoErr(err)
		for _, r := range page.Rows {
			all = append(all, r.ID)
		}
		return all
	}
	is.Equal(ids(agents.Filter{}, paging.Query{}), []string{id(3), id(2), id(1)})
	is.Equal(ids(agents.Filter{}, paging.Query{Sort: "createdAt", Limit: 2}), []string{id(1), id(2)})
	is.Equal(ids(agents.Filter{State: agents.Dead}, paging.Query{}), []string{id(2)})
	is.Equal(ids(agents.Filter{Trigger: agents.ByCron}, paging.Query{}), []string{id(3)})
	is.Equal(ids(agents.Filter{State: agents.Dead, Trigger: agents.ByCron}, paging.Query{}), nil)
	_, err := s.Runs(ctx, "acme", "shop", "a", agents.Filter{}, paging.Query{Limit: 5, Sort: "agent"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func testSummaries(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	put(
		t, s, "acme", run(1, "shop", "a"), dead(run(2, "shop", "a"), tuesday), run(3, "shop", "b"),
		run(4, "other", "a"),
	)
	put(t, s, "evil", run(5, "shop", "a"))
	all, err := s.Summaries(ctx, "acme", "shop")
	is.NoErr(err)
	is.Equal(len(all), 2)
	is.Equal(*all["a"].Last, dead(run(2, "shop", "a"), tuesday))
	is.Equal(all["a"].Counts, map[agents.State]int{agents.Pending: 1, agents.Dead: 1})
	is.Equal(all["b"].Counts, map[agents.State]int{agents.Pending: 1})
	n, err := s.Waiting(ctx, "acme", "shop")
	is.NoErr(err)
	is.Equal(n, 2)
	for _, c := range []struct {
		agent   string
		trigger agents.Trigger
		want    bool
	}{{"a", agents.ByHand, true}, {"a", agents.ByCron, false}, {"c", agents.ByHand, false}} {
		got, err := s.Unfinished(ctx, "acme", "shop", c.agent, c.trigger)
		is.NoErr(err)
		is.Equal(got, c.want)
	}
}

func testSteps(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", run(1, "shop", "a"))
	r, err := s.Begin(ctx, "acme", id(1), "one", 1, tuesday)
	is.NoErr(err)
	is.Equal(
		[]any{r.State, r.Lease, r.Attempts, *r.StartedAt, r.UpdatedAt},
		[]any{agents.Running, "one", 1, tuesday, tuesday},
	)
	answer := agents.Step{
		Tenant: "acme", Run: id(1), N: 1,
		Kind: agents.Answer, Text: "ü",
		Calls:     []ai.ToolCall{{ID: "c", Name: "find", Arguments: `{"a":1}`}},
		Usage:     ai.Usage{InputTokens: 3, OutputTokens: 4},
		StartedAt: monday, EndedAt: &tuesday,
	}
	call := agents.Step{
		Tenant:    "acme",
		Run:       id(1),
		N:         2,
		Kind:      agents.ToolStep,
		CallID:    "c",
		Tool:      "find",
		Arguments: `{"a":1}`,
		StartedAt: monday,
	}
	is.NoErr(s.AddStep(ctx, "acme", "one", "gpt", answer))
	is.NoErr(s.AddStep(ctx, "acme", "one", "", call))
	all, err := s.Steps(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(all, []agents.Step{answer, call})
	call.Result, call.Failed, call.Log, call.EndedAt = "Error: x", true, "info: y", &tuesday
	is.NoErr(s.EndStep(ctx, "acme", "one", call))
	all, err = s.Steps(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(all, []agents.Step{answer, call})
	r, err = s.AnyRun(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal([]any{r.Model, r.Steps, r.Usage, r.Size}, []any{
		"gpt", 1, ai.Usage{InputTokens: 3, OutputTokens: 4}, 10 + answer.Size() + call.Size(),
	})
	all, err = s.Steps(ctx, "evil", id(1))
	is.NoErr(err)
	is.Equal(len(all), 0)

	both := answer // fieldtest needs one with all fields
	both.CallID, both.Tool, both.Arguments, both.Result, both.Failed, both.Log, both.N =
		"c", "t", "{}", "r", true, "l", 3
	fieldtest.Full(t, both)
	is.NoErr(s.AddStep(ctx, "acme", "one", "", both))
	all, err = s.Steps(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(all[2], both)
}

// testFences: only the holder of the lease writes to a run.
func testFences(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", run(1, "shop", "a"))
	_, err := s.Begin(ctx, "acme", id(1), "one", 1, monday)
	is.NoErr(err)
	r, err := s.Begin(ctx, "acme", id(1), "two", 2, tuesday) // the first lease has ended
	is.NoErr(err)
	is.Equal([]any{*r.StartedAt, r.Attempts}, []any{monday, 2})
	step := agents.Step{Tenant: "acme", Run: id(1), N: 1, Kind: agents.ToolStep, StartedAt: monday}
	refused := func(tenant, lease string) {
		t.Helper()
		is.Equal(errs.CodeOf(s.AddStep(ctx, tenant, lease, "", step)), errs.Conflict)
		is.Equal(errs.CodeOf(s.EndStep(ctx, tenant, lease, step)), errs.Conflict)
		is.Equal(
			errs.CodeOf(s.Settle(ctx, tenant, id(1), lease, agents.Progress{State: agents.Done}, monday)),
			errs.Conflict,
		)
	}
	refused("acme", "one")
	refused("evil", "two")
	is.NoErr(s.AddStep(ctx, "acme", "two", "", step))
	is.Equal(errs.CodeOf(s.AddStep(ctx, "acme", "two", "", step)), errs.Conflict) // a step with this number exists
	text := "x"
	is.NoErr(s.Settle(
		ctx, "acme", id(1), "two", agents.Progress{State: agents.Done, Result: &text, EndedAt: &tuesday},
		tuesday,
	))
	refused("acme", "two")
	r, err = s.AnyRun(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(
		[]any{r.State, *r.Result, *r.EndedAt, r.Attempts, *r.StartedAt, r.Size},
		[]any{agents.Done, "x", tuesday, 2, monday, 11},
	)
	_, err = s.Begin(ctx, "acme", id(1), "three", 3, tuesday)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	all, err := s.Steps(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(len(all), 1)
}

func testEnds(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", run(1, "shop", "a"))
	why := "why"
	end := agents.Progress{State: agents.Dead, Error: &why, EndedAt: &tuesday}
	for _, c := range []struct {
		tenant string
		want   bool
	}{{"evil", false}, {"acme", true}, {"acme", false}} {
		ended, err := s.End(ctx, c.tenant, id(1), end, tuesday)
		is.NoErr(err)
		is.Equal(ended, c.want)
	}
	want := dead(run(1, "shop", "a"), tuesday)
	want.UpdatedAt = tuesday
	got, err := s.AnyRun(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(got, want)
	is.Equal(errs.CodeOf(s.Reopen(ctx, "evil", id(1), monday)), errs.NotFound)
	is.NoErr(s.Reopen(ctx, "acme", id(1), monday))
	got, err = s.AnyRun(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(got, run(1, "shop", "a"))
	is.Equal(errs.CodeOf(s.Reopen(ctx, "acme", id(1), monday)), errs.NotFound)
}

func testPeople(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", run(1, "shop", "a"))
	put(t, s, "evil", run(1, "shop", "a"))
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "joan"}))
	for tenant, want := range map[string]string{"acme": "joan", "evil": "jo"} {
		r, err := s.AnyRun(ctx, tenant, id(1))
		is.NoErr(err)
		is.Equal(*r.UserID, want)
	}
	is.NoErr(s.ForgetUsers(ctx, "acme", []string{"jo", "joan"}))
	r, err := s.AnyRun(ctx, "acme", id(1))
	is.NoErr(err)
	is.True(r.UserID == nil)
	r, err = s.AnyRun(ctx, "evil", id(1))
	is.NoErr(err)
	is.Equal(*r.UserID, "jo")
}

func testApps(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	for _, tenant := range []string{"acme", "evil"} {
		is.NoErr(s.PutAgents(ctx, tenant, []agents.Agent{agent("shop", "a"), agent("other", "a")}))
		put(t, s, tenant, run(1, "shop", "a"), run(2, "other", "a"))
	}
	_, err := s.Begin(ctx, "acme", id(1), "l", 1, monday)
	is.NoErr(err)
	is.NoErr(s.AddStep(ctx, "acme", "l", "", agents.Step{
		Tenant:    "acme",
		Run:       id(1),
		N:         1,
		Kind:      agents.ToolStep,
		StartedAt: monday,
	}))
	is.NoErr(s.DeleteApps(ctx, "acme", []string{"shop", "none"}))
	for _, c := range []struct {
		tenant, app string
		n           int
	}{{"acme", "shop", 0}, {"acme", "other", 1}, {"evil", "shop", 1}} {
		all, err := s.Agents(ctx, c.tenant, c.app)
		is.NoErr(err)
		page, err := s.Runs(ctx, c.tenant, c.app, "a", agents.Filter{}, paging.Query{Limit: 5})
		is.NoErr(err)
		is.Equal([]int{len(all), page.Total}, []int{c.n, c.n})
	}
	steps, err := s.Steps(ctx, "acme", id(1))
	is.NoErr(err)
	is.Equal(len(steps), 0)
}

func testSweep(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	for n := range 6 {
		r := dead(run(n, "shop", "a"), monday.Add(time.Duration(n)*time.Hour))
		r.Size = 100
		put(t, s, "acme", r)
		put(t, s, "evil", r)
	}
	put(t, s, "acme", run(8, "shop", "a"), run(9, "other", "a"))
	left := func(tenant string) (ids []string) {
		page, err := s.Runs(ctx, tenant, "shop", "a", agents.Filter{}, paging.Query{Limit: 10, Sort: "createdAt"})
		is.NoErr(err)
		for _, r := range page.Rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	// the first is old, and four of the others are kept
	n, err := s.Sweep(ctx, "acme", monday.Add(time.Minute), 4, 1000)
	is.NoErr(err)
	is.Equal(n, 2)
	n, err = s.Sweep(ctx, "acme", monday, 4, 250)
	is.NoErr(err)
	is.Equal(n, 2)
	is.Equal(left("acme"), []string{id(4), id(5), id(8)})
	is.Equal(len(left("evil")), 6)
	n, err = s.Expire(ctx, "acme", monday, tuesday, "late")
	is.NoErr(err)
	is.Equal(n, 0)
	n, err = s.Expire(ctx, "acme", tuesday, tuesday, "late")
	is.NoErr(err)
	is.Equal(n, 2)
	r, err := s.AnyRun(ctx, "acme", id(8))
	is.NoErr(err)
	is.Equal([]any{r.State, *r.Error, *r.EndedAt, r.UpdatedAt}, []any{agents.Dead, "late", tuesday, tuesday})
}

func testFailedTx(t *testing.T, s agents.Store) {
	is, ctx := is.New(t), t.Context()
	fault := errors.New("fault")
	committed := 0
	is.Equal(s.InTx(ctx, func(ctx context.Context) error {
		s.AfterCommit(ctx, func() { committed++ })
		if err := s.InsertRun(ctx, "acme", run(1, "shop", "a")); err != nil {
			return err
		}
		if err := s.PutAgents(ctx, "acme", []agents.Agent{agent("shop", "a")}); err != nil {
			return err
		}
		return fault
	}), fault)
	is.Equal(committed, 0)
	is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
		s.AfterCommit(ctx, func() { committed++ })
		return nil
	}))
	s.AfterCommit(ctx, func() { committed++ })
	is.Equal(committed, 2)
	_, err := s.AnyRun(ctx, "acme", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	all, err := s.Agents(ctx, "acme", "shop")
	is.NoErr(err)
	is.Equal(len(all), 0)
}
