package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
)

// JobRun is the kind of the jobs of runs.
const JobRun = "agent"

// tick is the payload of a job that a schedule puts; that of another job is null.
type tick struct {
	App   string `json:"app"`
	Agent string `json:"agent"`
}

// Installed are the agents that deploys have installed. It installs agents and starts runs, which a
// Service carries out, and checks no permission. apps and messages need it, whose Services the
// Service of agents needs.
type Installed struct {
	o      InstalledOptions
	clock  clock.Clock
	agents *cache.Cache[[]Agent] // by app
}

// InstalledOptions configure an Installed. Store and Queue are required.
type InstalledOptions struct {
	Store Store
	Queue Queue
	// Changes returns how often this process has changed the agents of a tenant: see cache.New.
	Changes func(tenant string) uint64
	Limits  Limits
	Now     func() time.Time // default time.Now
	NewID   func() string    // default UUIDv7
}

// NewInstalled returns an Installed.
func NewInstalled(o InstalledOptions) *Installed {
	o.Limits = o.Limits.withDefaults()
	return &Installed{o, clock.New(o.Now, o.NewID), cache.New[[]Agent](o.Changes)}
}

// Check returns errs.Invalid, naming the agent, for agents of a manifest that cannot be installed
// with the tools of their app: for a tool that is not there, and a cron expression that is not
// understood.
func (i *Installed) Check(all []Declared, tools []Route) error {
	_, err := i.definitions(all, tools)
	return err
}

// definitions returns the definitions of a manifest's agents by name. Errors: errs.Invalid.
func (i *Installed) definitions(all []Declared, tools []Route) (map[string]Definition, error) {
	out := make(map[string]Definition, len(all))
	for _, a := range all {
		d := Definition{
			Description:  a.Description,
			Instructions: a.Instructions,
			Model:        a.Model,
			On:           a.On,
			Cron:         a.Cron,
			OnFailure:    a.OnFailure,
		}
		refuse := func(err error) (map[string]Definition, error) {
			return nil, errs.New(errs.Invalid, "%s: agents.%s: %s", manifest.Files()[0], a.Name, errs.MessageOf(err))
		}
		if len(d.Instructions) > MaxInstructions {
			return refuse(errs.New(errs.Invalid, "the instructions have more than %d bytes", MaxInstructions))
		}
		if err := checkCron(d.Cron, "", i.clock.Stamp()); err != nil {
			return refuse(err)
		}
		for _, name := range a.Tools {
			at := slices.IndexFunc(tools, func(t Route) bool { return t.File == name || t.ToolName() == name })
			switch {
			case at < 0:
				return refuse(errs.New(
					errs.Invalid,
					"there is no tool %s: name a file such as tools/orders.js that exports a function as default",
					name,
				))
			case !slices.Contains(d.Tools, tools[at].File):
				d.Tools = append(d.Tools, tools[at].File)
			}
		}
		out[a.Name] = d
	}
	return out, nil
}

// Install makes the agents of a manifest those of an app, with its tools. Those that are there keep
// their overrides; those that the manifest does not have any more are removed, with their schedules
// and overrides. It joins the transaction in ctx. Errors: as Check.
func (i *Installed) Install(ctx context.Context, app HandlerApp, all []Declared, tools []Route) error {
	wanted, err := i.definitions(all, tools)
	if err != nil {
		return err
	}
	old, err := i.o.Store.Agents(ctx, app.Tenant, app.ID)
	if err != nil || len(old) == 0 && len(wanted) == 0 {
		return err
	}
	now := i.clock.Stamp()
	var changed []Agent
	var gone []string
	for _, a := range old {
		d, there := wanted[a.Name]
		switch delete(wanted, a.Name); {
		case !there:
			gone = append(gone, a.Name)
		case !same(a.Definition, d):
			a.Definition, a.UpdatedAt = d, now
			changed = append(changed, a)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		changed = append(changed, Agent{
			Tenant:     app.Tenant,
			App:        app.ID,
			Name:       name,
			Definition: wanted[name],
			CreatedAt:  now,
			UpdatedAt:  now,
		})
	}
	touched := slices.DeleteFunc(slices.Clone(old), func(a Agent) bool {
		return !slices.Contains(gone, a.Name) && !slices.ContainsFunc(changed, func(c Agent) bool {
			return c.Name == a.Name
		})
	})
	if err := i.reschedule(ctx, app.Tenant, touched, changed); err != nil {
		return err
	}
	if len(gone) > 0 {
		if err := i.o.Store.RemoveAgents(ctx, app.Tenant, app.ID, gone); err != nil {
			return err
		}
	}
	return i.o.Store.PutAgents(ctx, app.Tenant, changed)
}

func same(a, b Definition) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// schedules returns the schedules of an agent; none of one that is disabled.
func (a Agent) schedules() (all []Schedule) {
	of := a.Settings()
	if !of.Enabled {
		return nil
	}
	payload, _ := json.Marshal(tick{a.App, a.Name}) // strings can be encoded
	for i, expression := range of.Cron {
		all = append(all, Schedule{
			Tenant:  a.Tenant,
			Kind:    JobRun,
			Key:     fmt.Sprintf("%s/%s/%d", a.App, a.Name, i),
			Cron:    expression,
			Zone:    of.Zone,
			Payload: payload,
		})
	}
	return all
}

// reschedule replaces the schedules of some agents of a tenant. One that is the same goes on:
// @every 24h would never come where it began anew with each change of its agent.
func (i *Installed) reschedule(ctx context.Context, tenant string, old, now []Agent) error {
	was, keep := map[string]Schedule{}, map[string]bool{}
	for _, a := range old {
		for _, c := range a.schedules() {
			was[c.Key] = c
		}
	}
	var put []Schedule
	for _, a := range now {
		for _, c := range a.schedules() {
			if before, there := was[c.Key]; !there || before.Cron != c.Cron || before.Zone != c.Zone {
				put = append(put, c)
			}
			keep[c.Key] = true
		}
	}
	var gone []string
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if !keep[key] {
			gone = append(gone, key)
		}
	}
	if len(gone) > 0 { // none would be all
		if err := i.o.Queue.Unschedule(ctx, tenant, JobRun, gone...); err != nil {
			return err
		}
	}
	if len(put) == 0 {
		return nil
	}
	return i.o.Queue.Schedule(ctx, put...)
}
