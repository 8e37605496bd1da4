package bunstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

var runs = bunx.NewTable("tc_agent_runs", "r", []bunx.Column[agents.Run]{
	{Name: "tenant_id", Key: true, Field: func(r *agents.Run) any { return &r.Tenant }},
	{Name: "id", Key: true, Field: func(r *agents.Run) any { return &r.ID }},
	{Name: "app_id", Once: true, Field: func(r *agents.Run) any { return &r.App }},
	{Name: "agent", Once: true, Field: func(r *agents.Run) any { return &r.Agent }},
	{Name: "started_by", Once: true, Field: func(r *agents.Run) any { return (*string)(&r.Trigger) }},
	{Name: "event_id", Once: true, Field: func(r *agents.Run) any { return &r.EventID }},
	{Name: "run_id", Once: true, Field: func(r *agents.Run) any { return &r.RunID }},
	{Name: "user_id", Once: true, Field: func(r *agents.Run) any { return &r.UserID }},
	{Name: "input", Once: true, Field: func(r *agents.Run) any { return bunx.JSON(&r.Input) }},
	{Name: "depth", Once: true, Field: func(r *agents.Run) any { return &r.Depth }},
	{Name: "model", Field: func(r *agents.Run) any { return &r.Model }},
	{Name: "steps", Field: func(r *agents.Run) any { return &r.Steps }},
	{Name: "input_tokens", Field: func(r *agents.Run) any { return &r.Usage.InputTokens }},
	{Name: "output_tokens", Field: func(r *agents.Run) any { return &r.Usage.OutputTokens }},
	{Name: "size", Field: func(r *agents.Run) any { return &r.Size }},
	{Name: "lease", Field: func(r *agents.Run) any { return &r.Lease }},
	{Name: "state", Field: func(r *agents.Run) any { return (*string)(&r.State) }},
	{Name: "attempts", Field: func(r *agents.Run) any { return &r.Attempts }},
	{Name: "error", Field: func(r *agents.Run) any { return &r.Error }},
	{Name: "result", Field: func(r *agents.Run) any { return &r.Result }},
	{Name: "created_at", Once: true, Field: func(r *agents.Run) any { return bunx.TimeOf(&r.CreatedAt) }},
	{Name: "updated_at", Field: func(r *agents.Run) any { return bunx.TimeOf(&r.UpdatedAt) }},
	{Name: "started_at", Field: func(r *agents.Run) any { return bunx.TimeOrNull(&r.StartedAt) }},
	{Name: "ended_at", Field: func(r *agents.Run) any { return bunx.TimeOrNull(&r.EndedAt) }},
})

var steps = bunx.NewTable("tc_agent_steps", "s", []bunx.Column[agents.Step]{
	{Name: "tenant_id", Key: true, Field: func(s *agents.Step) any { return &s.Tenant }},
	{Name: "run_id", Key: true, Field: func(s *agents.Step) any { return &s.Run }},
	{Name: "n", Key: true, Field: func(s *agents.Step) any { return &s.N }},
	{Name: "kind", Field: func(s *agents.Step) any { return (*string)(&s.Kind) }},
	{Name: "content", Field: func(s *agents.Step) any { return &s.Text }},
	{Name: "calls", Field: func(s *agents.Step) any { return bunx.JSONArray(&s.Calls) }},
	{Name: "input_tokens", Field: func(s *agents.Step) any { return &s.Usage.InputTokens }},
	{Name: "output_tokens", Field: func(s *agents.Step) any { return &s.Usage.OutputTokens }},
	{Name: "call_id", Field: func(s *agents.Step) any { return &s.CallID }},
	{Name: "tool", Field: func(s *agents.Step) any { return &s.Tool }},
	{Name: "arguments", Field: func(s *agents.Step) any { return &s.Arguments }},
	{Name: "result", Field: func(s *agents.Step) any { return &s.Result }},
	{Name: "failed", Field: func(s *agents.Step) any { return &s.Failed }},
	{Name: "log", Field: func(s *agents.Step) any { return &s.Log }},
	{Name: "started_at", Field: func(s *agents.Step) any { return bunx.TimeOf(&s.StartedAt) }},
	{Name: "ended_at", Field: func(s *agents.Step) any { return bunx.TimeOrNull(&s.EndedAt) }},
})

var (
	selectRun    = runs.Select(`WHERE tenant_id = $1 AND app_id = $2 AND agent = $3 AND id = $4`)
	selectAnyRun = runs.Select(`WHERE tenant_id = $1 AND id = $2`)
	selectSteps  = steps.Select(`WHERE tenant_id = $1 AND run_id = $2 ORDER BY n`)
	beginRun     = `UPDATE tc_agent_runs SET lease = $1, attempts = $2, state = 'running', started_at = coalesce(started_at, $3), updated_at = $3
		WHERE tenant_id = $4 AND id = $5 AND ended_at IS NULL RETURNING ` + runs.Names
	// The last run of each agent: ids increase with time.
	selectLast = runs.Select(`WHERE tenant_id = $1 AND id IN (SELECT max(id) FROM tc_agent_runs ` +
		`WHERE tenant_id = $1 AND app_id = $2 GROUP BY agent)`)
)

// InsertRun implements agents.Store.
func (s *Store) InsertRun(ctx context.Context, tenant string, r agents.Run) error {
	r.Tenant = tenant
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := runs.Insert(ctx, c, "", r)
		return bunx.Err(err, aRun)
	})
}

// Run implements agents.Store.
func (s *Store) Run(ctx context.Context, tenant, app, agent, id string) (agents.Run, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return scannedRun(c.Row(ctx, selectRun, tenant, app, agent, id))
}

// AnyRun implements agents.Store.
func (s *Store) AnyRun(ctx context.Context, tenant, id string) (agents.Run, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return scannedRun(c.Row(ctx, selectAnyRun, tenant, id))
}

func scannedRun(row *sql.Row) (agents.Run, error) {
	r, err := runs.Scan(row)
	if err != nil {
		return agents.Run{}, bunx.Err(err, aRun)
	}
	return r, nil
}

// Summaries implements agents.Store.
func (s *Store) Summaries(ctx context.Context, tenant, app string) (map[string]agents.Summary, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectLast, tenant, app)
	last, err := bunx.Scan(rows, err, func(rows *sql.Rows) (agents.Run, error) { return runs.Scan(rows) })
	if err != nil {
		return nil, bunx.Err(err, aRun)
	}
	all := make(map[string]agents.Summary, len(last))
	for _, r := range last {
		all[r.Agent] = agents.Summary{Last: &r, Counts: map[agents.State]int{}}
	}
	type count struct {
		agent string
		state agents.State
		n     int
	}
	rows, err = c.Rows(
		ctx,
		`SELECT agent, state, count(*) FROM tc_agent_runs WHERE tenant_id = $1 AND app_id = $2 GROUP BY agent, state`,
		tenant, app,
	)
	counts, err := bunx.Scan(rows, err, func(rows *sql.Rows) (n count, err error) {
		err = rows.Scan(&n.agent, (*string)(&n.state), &n.n)
		return n, err
	})
	for _, n := range counts {
		if of, there := all[n.agent]; there { // an agent's first run may have been added since
			of.Counts[n.state] = n.n
		}
	}
	return all, bunx.Err(err, aRun)
}

// Waiting implements agents.Store.
func (s *Store) Waiting(ctx context.Context, tenant, app string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(
		ctx, aRun,
		`SELECT count(*) FROM tc_agent_runs WHERE tenant_id = $1 AND app_id = $2 AND ended_at IS NULL`,
		[]any{tenant, app}, &n,
	)
	return n, err
}

// Unfinished implements agents.Store.
func (s *Store) Unfinished(ctx context.Context, tenant, app, agent string, t agents.Trigger) (bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	n := 0
	err := c.One(ctx, aRun,
		`SELECT count(*) FROM tc_agent_runs WHERE tenant_id = $1 AND app_id = $2 AND ended_at IS NULL `+
			`AND agent = $3 AND started_by = $4`,
		[]any{tenant, app, agent, string(t)}, &n)
	return n > 0, err
}

// Begin implements agents.Store.
func (s *Store) Begin(
	ctx context.Context, tenant, id, lease string, attempts int, now time.Time,
) (r agents.Run, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		r, err = scannedRun(c.Row(ctx, beginRun, lease, attempts, bunx.At(now), tenant, id))
		return err
	})
	return r, err
}

// Steps implements agents.Store.
func (s *Store) Steps(ctx context.Context, tenant, run string) ([]agents.Step, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectSteps, tenant, run)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (agents.Step, error) {
		s, err := steps.Scan(rows)
		if len(s.Calls) == 0 {
			s.Calls = nil
		}
		return s, err
	})
	return all, bunx.Err(err, aStep)
}

// fenced changes the row of a run that is Running with a lease. If it is not, it returns
// errs.Conflict, so that the transaction changes nothing.
func fenced(ctx context.Context, c bunx.Conn, tenant, id, lease, set string, args ...any) error {
	n, err := c.Exec(ctx, `UPDATE tc_agent_runs SET `+set+
		` WHERE tenant_id = $1 AND id = $2 AND lease = $3 AND state = 'running'`,
		append([]any{tenant, id, lease}, args...)...)
	return lost(n, err)
}

// AddStep implements agents.Store.
func (s *Store) AddStep(ctx context.Context, tenant, lease, model string, step agents.Step) error {
	step.Tenant = tenant
	answers := 0
	if step.Kind == agents.Answer {
		answers = 1
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		err := fenced(ctx, c, tenant, step.Run, lease,
			`size = size + $4, steps = steps + $5, input_tokens = input_tokens + $6, output_tokens = output_tokens + $7,
			model = CASE WHEN $8 = '' THEN model ELSE $8 END, updated_at = $9`,
			step.Size(), answers, step.Usage.InputTokens, step.Usage.OutputTokens, model, bunx.At(step.StartedAt))
		if err != nil {
			return err
		}
		_, err = steps.Insert(ctx, c, "", step)
		return bunx.Err(err, aStep)
	})
}

// EndStep implements agents.Store.
func (s *Store) EndStep(ctx context.Context, tenant, lease string, step agents.Step) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		err := fenced(
			ctx, c, tenant, step.Run, lease, `size = size + $4, updated_at = $5`,
			len(step.Result)+len(step.Log), bunx.AtOrNull(step.EndedAt),
		)
		if err != nil {
			return err
		}
		n, err := c.Exec(ctx,
			`UPDATE tc_agent_steps SET result = $1, failed = $2, log = $3, ended_at = $4 WHERE tenant_id = $5 `+
				`AND run_id = $6 AND n = $7`,
			step.Result, step.Failed, step.Log, bunx.AtOrNull(step.EndedAt), tenant, step.Run, step.N)
		return bunx.Found(n, err, aStep)
	})
}

// Settle implements agents.Store.
func (s *Store) Settle(ctx context.Context, tenant, id, lease string, p agents.Progress, now time.Time) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return fenced(ctx, c, tenant, id, lease,
			`state = $4, error = $5, result = $6, size = size + $7, ended_at = $8, updated_at = $9`,
			string(p.State), p.Error, p.Result,
			len(text(p.Error))+len(text(p.Result)), bunx.AtOrNull(p.EndedAt), bunx.At(now))
	})
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// End implements agents.Store.
func (s *Store) End(ctx context.Context, tenant, id string, p agents.Progress, now time.Time) (ended bool, err error) {
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx,
			`UPDATE tc_agent_runs SET state = $1, error = $2, ended_at = $3, updated_at = $4 WHERE tenant_id = $5 `+
				`AND id = $6 AND ended_at IS NULL`,
			string(p.State), p.Error, bunx.AtOrNull(p.EndedAt), bunx.At(now), tenant, id)
		ended = n > 0
		return bunx.Err(err, aRun)
	})
	return ended, err
}

// Reopen implements agents.Store.
func (s *Store) Reopen(ctx context.Context, tenant, id string, now time.Time) error {
	return bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx,
			`UPDATE tc_agent_runs SET state = 'pending', attempts = 0, error = NULL, ended_at = NULL, updated_at = $1
			WHERE tenant_id = $2 AND id = $3 AND state = 'dead'`, bunx.At(now), tenant, id)
		return bunx.Found(n, err, aRun)
	})
}
