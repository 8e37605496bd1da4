package apps

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
)

// Handlers builds and installs what apps run on the server. *handlers.Service implements it.
type Handlers interface {
	Build(ctx context.Context, app HandlerApp, files fs.FS, tools bool) (*Build, error)
	Install(ctx context.Context, app HandlerApp, b *Build) error
}

// Agents installs the agents of apps. *agents.Installed implements it.
type Agents interface {
	// Check returns errs.Invalid, naming the agent, for agents of a manifest that cannot be
	// installed with the tools of an app.
	Check(all []ManifestAgent, tools []Route) error
	// Install makes the agents of a manifest those of an app, in the transaction in ctx.
	Install(ctx context.Context, app HandlerApp, all []ManifestAgent, tools []Route) error
}

// Workspaces runs the migrations of apps: the pending ones of migrations/*.sql. *workspaces.Service
// implements it.
type Workspaces interface {
	Migrate(ctx context.Context, tenant, app string, files fs.FS) (applied []string, err error)
	// Doubts returns sentences about migrations that were applied as other text, or are applied in
	// another order.
	Doubts(ctx context.Context, tenant, app string, files fs.FS) ([]string, error)
}

// Deployed is what a deploy has done.
type Deployed struct {
	Routes     []Route  // that the app runs now
	Agents     []string // names of the agents that the app has now
	Migrations []string // that were applied
	Warnings   []string // about files that are no routes, and what was not done
}

// prepared is a deploy before it switches.
type prepared struct {
	Deployed
	files  *libraries.Snapshot
	build  *Build
	agents []manifest.Agent
}

// tools returns the tools that the agents can have.
func (p prepared) tools() (all []Route) {
	for _, r := range p.Routes {
		if r.Area == handlers.Tools {
			all = append(all, r)
		}
	}
	return all
}

// runs reports whether a file can have to do with what an app runs.
func runs(name string) bool {
	switch path.Ext(name) {
	case ".js", ".mjs", ".cjs", ".json":
		return true
	}
	return strings.HasPrefix(name, "migrations/")
}

// installs reports whether a file can have to do with what a deploy installs.
func installs(name string) bool { return runs(name) || slices.Contains(manifest.Files(), name) }

// HandlerFiles returns what finds the files of an app or draft, and a text that changes with those
// that can have to do with what it runs. A Service needs the engine of handlers, which needs it.
func HandlerFiles(
	store Store, files *Files,
) func(ctx context.Context, app HandlerApp) (all fs.FS, version string, err error) {
	return func(ctx context.Context, of HandlerApp) (fs.FS, string, error) {
		app, err := store.Head(ctx, of.Tenant, Lookup{ID: of.ID})
		if err != nil {
			return nil, "", err
		}
		all, err := files.Snapshot(ctx, of.Tenant, app.LibraryID)
		if err != nil {
			return nil, "", err
		}
		return all, all.Digest(runs), nil
	}
}

// deploys reports whether there is something to do for a file in a deploy.
func deploys(name string) bool {
	folder, _, _ := strings.Cut(name, "/")
	return folder == string(handlers.Server) || folder == string(handlers.Webhooks) || folder == "migrations"
}

// readableAgents returns the agents of a manifest, none if it cannot be read: force publishes that,
// and nobody views the app then.
func (s *Service) readableAgents(
	ctx context.Context, tenant, library string,
) (all []manifest.Agent, readable bool, err error) {
	m, err := s.nextManifest(ctx, tenant, library)
	if errs.CodeOf(err) == errs.Conflict {
		return nil, false, nil
	}
	return m.Agents, true, err
}

// prepare compiles what an app is to run from the files of from, the app itself or its draft, and
// runs the pending migrations. If there is something to do, it calls check before.
func (s *Service) prepare(
	ctx context.Context, app, from App, o PublishOptions, check func() error,
) (p prepared, err error) {
	p.build = &Build{}
	library, readable := from.LibraryID, true
	if p.files, err = s.files.Snapshot(ctx, app.Tenant, library); err != nil {
		return p, err
	}
	if s.o.Agents != nil {
		if p.agents, readable, err = s.readableAgents(ctx, app.Tenant, library); err != nil {
			return p, err
		}
	}
	if !p.files.Has(deploys) && len(p.agents) == 0 && readable { // one that cannot be read would remove all agents
		return p, nil
	}
	if err := check(); err != nil {
		return p, err
	}
	for _, a := range p.agents {
		p.Agents = append(p.Agents, a.Name)
	}
	if s.o.Handlers != nil {
		if p.build, err = s.o.Handlers.Build(
			ctx, HandlerApp{Tenant: app.Tenant, ID: app.ID}, p.files, len(p.agents) > 0,
		); err != nil {
			return p, err
		}
		p.Routes, p.Warnings = p.build.Routes, p.build.Warnings
		doubts, err := s.doubts(ctx, app, from, p.Routes)
		if err != nil {
			return p, err
		}
		p.Warnings = append(p.Warnings, doubts...)
	}
	if s.o.Agents != nil {
		if err := s.o.Agents.Check(p.agents, p.tools()); err != nil {
			return p, err
		}
	}
	var doubts []string
	p.Migrations, doubts, err = s.migrate(ctx, app, p.files, o.Strict)
	p.Warnings = append(p.Warnings, doubts...)
	return p, err
}

// PublishOptions are those of Deploy and Commit.
type PublishOptions struct {
	Force  bool // Commit: publish over changes of the app, and a manifest that cannot be read
	Strict bool // fail before anything is done where migrations would be doubted in the warnings
}

// doubts returns warnings about rules of the manifest of an app or its draft that allow nothing,
// variables that it requires and that have no value, and roles of handlers that it does not
// declare, so that nobody can have them.
func (s *Service) doubts(ctx context.Context, app, from App, routes []Route) (warnings []string, err error) {
	m, err := s.nextManifest(ctx, app.Tenant, from.LibraryID)
	if errs.CodeOf(err) == errs.Conflict { // which force publishes, and nobody views the app then
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	unset, err := s.unset(from, app.ID, m)
	warnings = append(s.o.Manifests.Useless(m), unset...)
	for _, r := range routes {
		for _, id := range r.Roles() {
			if !m.HasRole(id) {
				warnings = append(
					warnings,
					r.File+": config.roles has "+strconv.Quote(id)+
						", which is no role of the manifest, so nobody has it.",
				)
			}
		}
	}
	return warnings, err
}

// migrate runs the pending migrations of an app, and returns what is doubtful about some. Strict
// makes the first doubt an error.
func (s *Service) migrate(
	ctx context.Context, app App, files *libraries.Snapshot, strict bool,
) (applied, doubts []string, err error) {
	if s.o.Workspaces == nil || !files.Has(func(name string) bool { return strings.HasPrefix(name, "migrations/") }) {
		return nil, nil, nil
	}
	doubts, err = s.o.Workspaces.Doubts(ctx, app.Tenant, app.ID, files)
	if err != nil {
		return nil, nil, err
	}
	if strict && len(doubts) > 0 {
		return nil, nil, errs.New(errs.Invalid, "%s", strings.Join(doubts, "\n"))
	}
	applied, err = s.o.Workspaces.Migrate(ctx, app.Tenant, app.ID, files)
	return applied, doubts, err
}

// install makes an app run what was prepared, if the files of the library are still the same. The
// app is locked.
func (s *Service) install(ctx context.Context, app App, library string, p prepared) error {
	now, err := s.files.Snapshot(ctx, app.Tenant, library)
	if err != nil {
		return err
	}
	if now.Digest(installs) != p.files.Digest(installs) {
		return errs.New(errs.Conflict, "The files have changed while they were compiled: try again.")
	}
	of := HandlerApp{Tenant: app.Tenant, ID: app.ID}
	if s.o.Handlers != nil {
		if err := s.o.Handlers.Install(ctx, of, p.build); err != nil {
			return err
		}
	}
	if s.o.Agents == nil {
		return nil
	}
	return s.o.Agents.Install(ctx, of, p.agents, p.tools())
}

// Deploy compiles the handlers of an app, runs its pending migrations, and makes it run the
// handlers, with the manifest in its files, from now on. When it fails the app runs what it ran
// before; a migration that fails leaves those before it applied. An app that came from another
// tenant becomes the caller's, as whom its handlers run. It needs the permission write.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft, a manifest, a handler or a
// migration that is wrong, naming file and line; errs.Conflict for files that change meanwhile;
// errs.Unavailable if too many scripts run.
func (s *Service) Deploy(ctx context.Context, id string, o PublishOptions) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	app, grant, err := s.rules.FindHead(ctx, a, id)
	switch {
	case err != nil:
		return Shown{}, err
	case app.EditingID != nil:
		return Shown{}, s.rules.IsDraft("publish it with _commit, which deploys its handlers, too")
	}
	if err := toWrite.check(a, app, grant); err != nil {
		return Shown{}, err
	}
	if err := s.readableManifest(ctx, app); err != nil {
		return Shown{}, err
	}
	p, err := s.prepare(ctx, app, app, o, func() error { return nil })
	if err != nil {
		return Shown{}, err
	}
	of := entity.Subject{Kind: Kind, ID: app.ID, Action: entity.ActionDeploy}
	err = s.o.Feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		if _, err := s.store.Hold(ctx, a.Tenant, []string{a.User}); err != nil { // who may become the owner
			return err
		}
		v, err = s.changeShown(ctx, app.ID, toWrite, func(ctx context.Context, who drafts.Caller, app *App) error {
			now := s.rules.Stamp()
			app.DeployedAt = &now
			if app.IsManaged {
				app.OwnerID = a.User
			}
			app.deployedBy(a)
			if err := s.install(ctx, *app, app.LibraryID, p); err != nil {
				return err
			}
			return s.deployManifest(ctx, *app)
		})
		return err
	})
	v.Deployed = &p.Deployed
	return v, err
}

// deployCopy deploys the copy of an app, of the caller, and returns it as it is then. An app that
// came from another tenant, or was never deployed, has run nothing that somebody here has chosen to
// run, and its copy runs nothing either. Deployed is nil for a copy that has nothing to deploy, and
// has a warning for one that is not deployed.
func (s *Service) deployCopy(ctx context.Context, of App, v Shown) Shown {
	files, err := s.files.Snapshot(ctx, v.Tenant, v.LibraryID)
	var agents []manifest.Agent
	if err == nil {
		agents, _, err = s.readableAgents(ctx, v.Tenant, v.LibraryID)
	}
	if err == nil && !files.Has(deploys) && len(agents) == 0 {
		return v
	}
	var why string
	switch {
	case of.IsManaged:
		why = "The app that it is a copy of came from another tenant."
	case of.DeployedAt == nil:
		why = "The app that it is a copy of was not deployed."
	default:
		var deployed Shown
		if err == nil {
			if deployed, err = s.Deploy(ctx, v.ID, PublishOptions{}); err == nil {
				return deployed
			}
		}
		why = errs.MessageOf(err)
	}
	v.Deployed = &Deployed{
		Warnings: []string{"The copy runs no handlers and agents until it is deployed, with POST /api/apps/" + v.ID +
			"/_deploy. " + why},
	}
	return v
}

// readableManifest returns errs.Invalid for an app that cannot be deployed as the manifest in its
// files cannot be read.
func (s *Service) readableManifest(ctx context.Context, app App) error {
	_, err := s.nextManifest(ctx, app.Tenant, app.LibraryID)
	if errs.CodeOf(err) == errs.Conflict {
		return errs.New(errs.Invalid, "%s", errs.MessageOf(err))
	}
	return err
}

// Migrate runs the pending migrations of an app or draft. It returns their names, and sentences
// about those that were applied as other text or are applied in another order, which are errors
// with strict. It needs the permission write. It returns errs.NotFound; errs.Forbidden;
// errs.Invalid for a migration that fails, naming the file; errs.Conflict for a draft that somebody
// else edits.
func (s *Service) Migrate(ctx context.Context, id string, strict bool) (applied, warnings []string, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, nil, err
	}
	app, grant, err := s.rules.FindHead(ctx, a, id)
	if err != nil {
		return nil, nil, err
	}
	if err := toWrite.check(a, app, grant); err != nil {
		return nil, nil, err
	}
	if app.EditingID != nil {
		if err := app.Lock.Check(a, s.rules.Stamp()); err != nil {
			return nil, nil, err
		}
	}
	files, err := s.files.Snapshot(ctx, a.Tenant, app.LibraryID)
	if err != nil {
		return nil, nil, err
	}
	return s.migrate(ctx, app, files, strict)
}

// Running is what the handlers of an app run with.
type Running struct {
	App                   // without Defn
	Env map[string]string // the values of the app's variables, in the clear: for the handlers alone
}

// Running returns what the handlers of an app or draft run with, as it was a second ago at most.
// Errors: errs.NotFound.
func (u Unchecked) Running(ctx context.Context, tenant, id string) (Running, error) {
	return u.s.running.Get(ctx, tenant, id, func() (Running, error) {
		app, err := u.s.store.Head(ctx, tenant, Lookup{ID: id})
		if err != nil {
			return Running{}, err
		}
		env, err := u.s.values(app)
		app.Sealed = ""
		return Running{app, env}, err
	})
}
