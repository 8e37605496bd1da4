// Package bunstore stores agents of apps and their runs in PostgreSQL or SQLite. The root imports
// it.
package bunstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements agents.Store.
type Store struct {
	db       *bun.DB
	notifier bunx.Notifier
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Notify makes the store call changed after each commit that changes agents.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

const anAgent, aRun, aStep = "Agent", "Run", "Step"

// agent is a row of tc_agents.
type agent struct {
	agents.Agent
	definition, overrides json.RawMessage
}

var agentTable = bunx.NewTable("tc_agents", "a", []bunx.Column[agent]{
	{Name: "tenant_id", Key: true, Field: func(a *agent) any { return &a.Tenant }},
	{Name: "app_id", Key: true, Field: func(a *agent) any { return &a.App }},
	{Name: "name", Key: true, Field: func(a *agent) any { return &a.Name }},
	{Name: "definition", Field: func(a *agent) any { return bunx.JSON(&a.definition) }},
	{Name: "overrides", Field: func(a *agent) any { return bunx.JSON(&a.overrides) }},
	{Name: "created_at", Once: true, Field: func(a *agent) any { return bunx.TimeOf(&a.CreatedAt) }},
	{Name: "updated_at", Field: func(a *agent) any { return bunx.TimeOf(&a.UpdatedAt) }},
})

var selectAgent = agentTable.Select(`WHERE tenant_id = $1 AND app_id = $2 AND name = $3`)

func newAgent(tenant string, a agents.Agent) (row agent, err error) {
	row.Agent = a
	row.Tenant = tenant
	if row.definition, err = json.Marshal(a.Definition); err != nil {
		return row, err
	}
	row.overrides, err = json.Marshal(a.Overrides)
	return row, err
}

func (a agent) decoded() (agents.Agent, error) {
	if err := json.Unmarshal(a.definition, &a.Definition); err != nil {
		return agents.Agent{}, err
	}
	return a.Agent, json.Unmarshal(a.overrides, &a.Overrides)
}

// InTx implements agents.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// AfterCommit implements agents.Store.
func (s *Store) AfterCommit(ctx context.Context, f func()) { bunx.AfterCommit(ctx, f) }

// batch is the number of apps in one statement.
const batch = 500

// Agents implements agents.Store.
func (s *Store) Agents(ctx context.Context, tenant string, apps ...string) (all []agents.Agent, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	for some := range slices.Chunk(slices.Sorted(slices.Values(apps)), batch) {
		rows, err := c.Rows(ctx, agentTable.Select(`WHERE tenant_id = $1 AND app_id IN `+bunx.In(2, len(some))+
			` ORDER BY app_id, name`), bunx.Args(some, tenant)...)
		found, err := bunx.Scan(rows, err, func(rows *sql.Rows) (agents.Agent, error) {
			a, err := agentTable.Scan(rows)
			if err != nil {
				return agents.Agent{}, err
			}
			return a.decoded()
		})
		if err != nil {
			return nil, bunx.Err(err, anAgent)
		}
		all = append(all, found...)
	}
	return all, nil
}

// Agent implements agents.Store.
func (s *Store) Agent(ctx context.Context, tenant, app, name string) (agents.Agent, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return oneAgent(ctx, c, "", tenant, app, name)
}

func oneAgent(ctx context.Context, c bunx.Conn, lock, tenant, app, name string) (agents.Agent, error) {
	a, err := agentTable.Scan(c.Row(ctx, selectAgent+lock, tenant, app, name))
	if err != nil {
		return agents.Agent{}, bunx.Err(err, anAgent)
	}
	return a.decoded()
}

// PutAgents implements agents.Store.
func (s *Store) PutAgents(ctx context.Context, tenant string, all []agents.Agent) error {
	rows := make([]agent, len(all))
	for i, a := range all {
		var err error
		if rows[i], err = newAgent(tenant, a); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := agentTable.Insert(ctx, c, agentTable.OnConflict, rows...)
		return bunx.Err(err, anAgent)
	})
}

// RemoveAgents implements agents.Store.
func (s *Store) RemoveAgents(ctx context.Context, tenant, app string, names []string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.ExecIn(
			ctx, `DELETE FROM tc_agents WHERE tenant_id = $1 AND app_id = $2 AND name IN `, names, tenant, app,
		)
		return bunx.Err(err, anAgent)
	})
}

// Update implements agents.Store.
func (s *Store) Update(
	ctx context.Context, tenant, app, name string, edit func(*agents.Agent) error,
) (a agents.Agent, err error) {
	err = s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if a, err = oneAgent(ctx, c, c.ForUpdate(), tenant, app, name); err != nil {
			return err
		}
		was := a
		if err := edit(&a); err != nil {
			return err
		}
		if err := guard.Check(ctx, "agent", was); err != nil {
			return err
		}
		a.Tenant, a.App, a.Name, a.CreatedAt = was.Tenant, was.App, was.Name, was.CreatedAt
		row, err := newAgent(tenant, a)
		if err != nil {
			return err
		}
		n, err := agentTable.Update(ctx, c, &row)
		return bunx.Found(n, err, anAgent)
	})
	if err != nil {
		return agents.Agent{}, err
	}
	return a, nil
}

// DeleteApps implements agents.Store. The database deletes the steps with their runs.
func (s *Store) DeleteApps(ctx context.Context, tenant string, apps []string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, table := range []string{"tc_agents", "tc_agent_runs"} {
			if _, err := c.ExecIn(
				ctx, `DELETE FROM `+table+` WHERE tenant_id = $1 AND app_id IN `, apps, tenant,
			); err != nil {
				return bunx.Err(err, anAgent)
			}
		}
		return nil
	})
}

// RenameUsers implements agents.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(c.Rename(ctx, tenant, "tc_agent_runs", "user_id", names), aRun)
	})
}

// ForgetUsers implements agents.Store.
func (s *Store) ForgetUsers(ctx context.Context, tenant string, ids []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.ExecIn(
			ctx, `UPDATE tc_agent_runs SET user_id = NULL WHERE tenant_id = $1 AND user_id IN `, ids, tenant,
		)
		return bunx.Err(err, aRun)
	})
}

// Expire implements agents.Store.
func (s *Store) Expire(ctx context.Context, tenant string, before, now time.Time, reason string) (n int, err error) {
	return bunx.Steps(ctx, s.db, tenant,
		`UPDATE tc_agent_runs SET state = 'dead', error = $1, ended_at = $2, updated_at = $2
			WHERE tenant_id = $3 AND id IN
		(SELECT id FROM tc_agent_runs WHERE tenant_id = $3 AND ended_at IS NULL AND created_at < $4`+bunx.StepLimit+`)`,
		reason,
		bunx.At(now), tenant, bunx.At(before))
}

// Sweep implements agents.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time, keep, bytes int) (n int, err error) {
	const ended = `id IN (SELECT id FROM (SELECT id,
		row_number() OVER (PARTITION BY app_id ORDER BY ended_at DESC, id DESC) AS place,
			sum(size) OVER (PARTITION BY app_id ORDER BY ended_at DESC, id DESC) AS bytes
		FROM tc_agent_runs WHERE tenant_id = $1 AND ended_at IS NOT NULL) AS ended WHERE place > $2 OR bytes > $3)`
	for _, q := range []struct {
		where string
		args  []any
	}{
		{`ended_at < $2`, []any{bunx.At(before)}},
		{ended, []any{keep, bytes}},
	} {
		some, err := bunx.DeleteSteps(ctx, s.db, tenant, "tc_agent_runs", "id", q.where, q.args...)
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

// lost returns errs.Conflict if a fenced statement has changed no row.
func lost(n int, err error) error {
	if err == nil && n == 0 {
		return errs.New(errs.Conflict, "The run is no longer that of this node.")
	}
	return bunx.Err(err, aRun)
}

var _ agents.Store = (*Store)(nil)

// runPage is how runs are listed.
var runPage = bunx.List[agents.Run]{
	Table: runs, Key: "id", Order: "-createdAt",
	Sorts: []bunx.Sort[agents.Run]{
		{Field: "createdAt", Column: "created_at", Value: func(r agents.Run) string {
			return bunx.At(r.CreatedAt).String()
		}},
	},
}

// Runs implements agents.Store.
func (s *Store) Runs(
	ctx context.Context, tenant, app, agent string, f agents.Filter, q paging.Query,
) (paging.Page[agents.Run], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	// an app has at most 1,000
	of := bunx.Part{Where: "r.tenant_id = $1 AND r.app_id = $2 AND r.agent = $3", Args: []any{tenant, app, agent}}
	if f.State != "" {
		of = of.And("r.state = @", string(f.State))
	}
	if f.Trigger != "" {
		of = of.And("r.started_by = @", string(f.Trigger))
	}
	return bunx.Page(ctx, c, runPage, of, func(r agents.Run) string { return r.ID }, q)
}
