package tenantcontent

import (
	"context"
	"io/fs"
	"maps"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/directory/local"
	"github.com/tenantcontent/tenantcontent/internal/directory/owners"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/jobs/removal"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	agentstore "github.com/tenantcontent/tenantcontent/internal/store/agents"
	instructionstore "github.com/tenantcontent/tenantcontent/internal/store/aiinstr"
	appstore "github.com/tenantcontent/tenantcontent/internal/store/apps"
	assistantstore "github.com/tenantcontent/tenantcontent/internal/store/assistants"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	bundlestore "github.com/tenantcontent/tenantcontent/internal/store/bundles"
	changestore "github.com/tenantcontent/tenantcontent/internal/store/changes"
	colorstore "github.com/tenantcontent/tenantcontent/internal/store/colors"
	commentstore "github.com/tenantcontent/tenantcontent/internal/store/comments"
	confirmationstore "github.com/tenantcontent/tenantcontent/internal/store/confirmations"
	contentstore "github.com/tenantcontent/tenantcontent/internal/store/content"
	domainstore "github.com/tenantcontent/tenantcontent/internal/store/domains"
	filestore "github.com/tenantcontent/tenantcontent/internal/store/files"
	handlerstore "github.com/tenantcontent/tenantcontent/internal/store/handlers"
	librarystore "github.com/tenantcontent/tenantcontent/internal/store/libraries"
	messagestore "github.com/tenantcontent/tenantcontent/internal/store/messages"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	quotastore "github.com/tenantcontent/tenantcontent/internal/store/quotas"
	sessionstore "github.com/tenantcontent/tenantcontent/internal/store/sessions"
	tenantstore "github.com/tenantcontent/tenantcontent/internal/store/tenants"
	webhookstore "github.com/tenantcontent/tenantcontent/internal/store/webhooks"
	workspacestore "github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// ground is what all services stand on: the machinery, which knows no noun, and the stores that
// more than one layer needs.
type ground struct {
	Config
	keys      *keyring.Ring
	engine    jsvm.Parts
	loopback  *httpapi.Loopback // httpapi.New connects it
	registry  *entity.Registry  // register and fill fill it
	hostKinds []entity.Kind

	// These count changes of users, teams, sessions and tokens, of tenants and their domains, and
	// of apps, their shares and the files of libraries.
	rights, settings, shown *cache.Counter

	queue      *queue.Service
	removals   *removal.Remover
	quotas     *tenants.Quotas
	stored     *blobstore.Store
	blobs      tenants.Blobs
	changes    *changestore.Store
	feed       *entity.Changes
	workspaces *workspaces.Service

	directory  *principalstore.Store
	apps       *appstore.Store
	assistants *assistantstore.Store
}

// newGround makes what all services stand on.
func newGround(c Config, keys *keyring.Ring, engine jsvm.Parts) ground {
	g := ground{
		Config: c, keys: keys, engine: engine, loopback: &httpapi.Loopback{},
		registry: entity.NewRegistry(), hostKinds: kinds(c.Entities),
		rights: &cache.Counter{}, settings: &cache.Counter{}, shown: &cache.Counter{},
	}
	g.queue = queue.New(queue.Options{
		Store:    queuestore.New(c.DB),
		Node:     c.Queue,
		Observer: c.Observer,
		Log:      c.Log,
		Now:      c.Now,
		NewID:    c.NewID,
	})
	g.removals = removal.New(removal.Options{DB: c.DB, Jobs: g.queue, Entities: g.registry, Now: c.Now})
	g.quotas = tenants.NewQuotas(tenants.QuotaOptions{
		Store:      quotastore.New(c.DB),
		Bytes:      c.TenantQuota,
		Workspaces: c.TenantWorkspaces,
		Now:        c.Now,
	})
	g.stored = blobstore.New(c.DB)
	g.blobs = g.quotas.Blobs(g.stored)
	g.changes, g.feed = feed(c, g.loopback)
	g.directory = principalstore.New(c.DB).Notify(g.rights.Bump)
	g.apps = appstore.New(c.DB).Notify(g.shown.Bump)
	g.assistants = assistantstore.New(c.DB)
	g.workspaces = workspaces.New(workspaces.Options{
		Driver: c.Workspaces, Store: workspacestore.New(c.DB), Admit: g.quotas.CheckWorkspace, Room: g.quotas.Left,
		Keys: keys, Kind: apps.Kind, Exist: g.apps.Exist, Log: c.Log, Now: c.Now,
	})
	return g
}

// feed returns where services announce their changes, which shown shows, and what keeps them.
func feed(c Config, shown *httpapi.Loopback) (*changestore.Store, *entity.Changes) {
	times := clock.New(c.Now, c.NewID)
	kept := changestore.New(c.DB, times.NewID)
	o := entity.ChangesOptions{
		Show: shown.Show, Before: c.Before, After: c.After, Now: times.Now,
		InTx: func(ctx context.Context, fn func(ctx context.Context) error) error { return bunx.InTx(ctx, c.DB, fn) },
		AfterCommit: func(ctx context.Context, f func(ctx context.Context)) {
			bunx.AfterCommit(ctx, func() { f(bunx.WithoutTx(ctx)) })
		},
	}
	if c.KeepChanges {
		o.Keep = kept.Keep
	}
	return kept, entity.NewChanges(o)
}

// libraryOf returns the files of the libraries of a kind.
func (g ground) libraryOf(kind entity.Kind) *libraries.Files {
	return libraries.New(libraries.Options{
		Feed: g.feed, Kind: kind + "File",
		Store: librarystore.New(g.DB, kind).Notify(g.shown.Bump), Changes: g.shown.Of, Blobs: g.blobs,
		Limit: g.MaxUpload, Now: g.Now, NewID: g.NewID,
	})
}

// identity has the services of callers.
type identity struct {
	principals *principals.Service
	tenants    *tenants.Service
	domains    *domains.Service
	scim       *scim.Service
}

// identity builds the services of users, teams, tenants and the domains where people log in.
func (g ground) identity() (who identity, err error) {
	lookup, err := domains.NewLookup(domains.LookupOptions{
		Store: domainstore.New(g.DB).Notify(g.settings.Bump), Keys: g.keys, Drivers: drivers(g.Config),
	})
	if err != nil {
		return who, err
	}
	who.principals = principals.New(principals.Options{
		Feed:  g.feed,
		Store: g.directory, Blobs: g.blobs, Content: g.registry, HostKinds: g.hostKinds, Removals: g.removals,
		Domains: lookup, Refusal: domains.MinRefusal, Log: g.Log, Now: g.Now, NewID: g.NewID,
	})
	who.tenants = tenants.New(tenants.Options{
		Feed:  g.feed,
		Store: tenantstore.New(g.DB).Notify(g.settings.Bump), Changes: g.settings.Of, Keys: g.keys, Hooks: g.registry,
		KnownDomain: lookup.CheckKnown, Username: who.principals.Unchecked().Username,
		CheckDelete: g.workspaces.CheckReachable, OpenLicenses: g.OpenLicenses, Now: g.Now,
	})
	who.domains = domains.New(domains.Options{
		Feed:   g.feed,
		Lookup: lookup, Principals: who.principals.Unchecked(), Tenants: who.tenants.Unchecked(),
		Directories: dirsync.New(dirsync.Options{
			Feed:  g.feed,
			Store: g.directory, Principals: who.principals.Unchecked(), Now: g.Now, NewID: g.NewID,
		}),
		Queue: g.queue, Log: g.Log, Changes: g.settings.Of, Now: g.Now, Observer: g.Observer,
	})
	who.scim = scim.New(scim.Options{
		Feed:       g.feed,
		Store:      g.directory,
		Principals: who.principals.Unchecked(),
		Now:        g.Now,
		NewID:      g.NewID,
		Log:        g.Log,
	})
	return who, nil
}

// kept is the content of tenants.
type kept struct {
	inputs         *inputs.Service
	colors         *colors.Service
	aiInstructions *aiinstr.Service
	uploads        *files.Uploads
	downloads      *files.Downloads
	content        *content.Service
	libraries      *libraries.Files // of content
	datasets       *datasets.Service
	comments       *comments.Service
}

// content builds the services of what tenants keep.
func (g ground) content(who identity) (what kept, err error) {
	if what.inputs, err = inputs.New(g.InputEditors...); err != nil {
		return what, err
	}
	what.colors = colors.New(colors.Options{Store: colorstore.New(g.DB), Feed: g.feed, Now: g.Now})
	what.aiInstructions = aiinstr.New(aiinstr.Options{
		Store: instructionstore.New(g.DB), Settings: who.tenants.Unchecked(), Directory: g.directory,
		Feed: g.feed, Now: g.Now, NewID: g.NewID,
	})
	what.uploads = files.NewUploads(files.Options{
		Feed:  g.feed,
		Store: filestore.Uploads(g.DB), Blobs: g.blobs, Limit: g.MaxUpload,
		Quota: g.UserQuota, Now: g.Now, NewID: g.NewID,
	})
	what.downloads = files.NewDownloads(files.Options{
		Feed:  g.feed,
		Store: filestore.Downloads(g.DB),
		Blobs: g.blobs,
		Now:   g.Now,
		NewID: g.NewID,
	})
	what.libraries = g.libraryOf(content.Library)
	what.content = content.New(content.Options{
		Store: contentstore.New(g.DB), Files: what.libraries, Reserved: g.ownLibraries,
		Directory: g.directory, Registry: g.registry, HostKinds: g.hostKinds, Feed: g.feed,
		CanonicalName: who.principals.Unchecked().CanonicalName, Now: g.Now, NewID: g.NewID,
	})
	what.datasets = datasets.New(datasets.Options{Content: what.content, Source: g.Datasets})
	store := commentstore.New(g.DB)
	what.comments = comments.New(comments.Options{
		Feed:  g.feed,
		Store: store, Queue: store, Entities: g.registry, Users: who.principals,
		Removals: g.removals, KeepFor: g.KeepActivities, Now: g.Now, NewID: g.NewID,
	})
	return what, nil
}

// ownLibraries returns which of some ids are those of libraries of apps and assistants.
func (g ground) ownLibraries(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	of, err := g.apps.Libraries(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	more, err := g.assistants.Libraries(ctx, tenant, ids)
	maps.Copy(of, more)
	return of, err
}

// programs has the services of what tenants run, and of the sessions and tokens of its users.
type programs struct {
	handlers      *handlers.Service
	apps          *apps.Service
	assistants    *assistants.Service
	confirmations *confirmations.Service
	conversations *conversation.Service
	sessions      *sessions.Service
	messages      *messages.Service
	agents        *agents.Service
	webhooks      *webhooks.Service
	scripts       *scripts.Binder
	models        ai.Provider // for chats of callers, with their places
}

// programs builds the services of apps and assistants, and of what these run.
func (g ground) programs(who identity, what kept) (run programs, err error) {
	var deployed, installed cache.Counter
	places := chat.NewPlaces(chat.DefaultWait)
	run.models = places.For(g.AI, "")
	canonical := who.principals.Unchecked().CanonicalName
	appFiles := g.libraryOf(apps.Kind)
	run.handlers = handlers.New(handlers.Options{
		Store: handlerstore.New(g.DB).Notify(deployed.Bump), Runtime: g.engine.Runtime, Decode: g.engine.Decode,
		Changes: deployed.Of, DraftChanges: g.shown.Of, Check: webhooks.CheckRoute,
		Files: apps.HandlerFiles(g.apps, appFiles),
		Prepare: func(ctx context.Context, draft handlers.App, files fs.FS) error {
			_, err := g.workspaces.Migrate(ctx, draft.Tenant, draft.ID, files)
			return err
		},
		Now: g.Now, Observer: g.Observer,
	})
	inApps := agents.NewInstalled(agents.InstalledOptions{
		Store: agentstore.New(g.DB).Notify(installed.Bump), Changes: installed.Of, Queue: g.queue,
		Limits: g.Agents, Now: g.Now, NewID: g.NewID,
	})
	run.apps = apps.New(apps.Options{
		Feed:  g.feed,
		Store: g.apps, Changes: g.shown.Of, Files: appFiles, Deployed: g.libraryOf("app-manifest"),
		MaxFile: g.MaxAppFile, Manifests: httpapi.Manifests(), Handlers: run.handlers, Agents: inApps,
		Workspaces: g.workspaces, Directory: g.directory, Keys: g.keys, Licensed: who.tenants.Unchecked().Licensed,
		AI: g.AI, CheckAI: what.aiInstructions.CheckAllowed,
		Registry: g.registry, CanonicalName: canonical, Now: g.Now, NewID: g.NewID,
	})
	skills, err := conversation.SkillTypes(g.AI, g.engine.Runtime, g.Skills)
	if err != nil {
		return run, err
	}
	run.assistants = assistants.New(assistants.Options{
		Feed:  g.feed,
		Store: g.assistants, Files: g.libraryOf(assistants.Kind), MaxFile: g.MaxAppFile,
		Directory: g.directory, Keys: g.keys, Allowed: what.aiInstructions.CheckAllowed, Skills: skills,
		CheckFilter: what.datasets.CheckFilter, Registry: g.registry, CanonicalName: canonical,
		Now: g.Now, NewID: g.NewID,
	})
	run.confirmations = confirmations.New(confirmations.Options{
		Store: confirmationstore.New(g.DB),
		Feed:  g.feed,
		Now:   g.Now,
	})
	run.conversations = conversation.New(conversation.Options{
		Provider: run.models, Scripts: g.engine.Runtime, Extract: g.engine.Extract,
		Skills: g.Skills, Assistants: run.assistants, Content: what.content, Datasets: what.datasets,
		Expand: what.aiInstructions.Expand, Log: g.Log,
	})
	run.sessions = sessions.New(sessions.Options{
		Feed:  g.feed,
		Store: sessionstore.New(g.DB).Notify(g.rights.Bump), Changes: g.rights.Of,
		Authenticator: who.domains.Unchecked(), Tenants: who.tenants.Unchecked(), Apps: run.apps,
		Assistants: run.assistants, Domains: who.domains, Refusal: domains.MinRefusal,
		Lifetime: g.SessionLifetime, Keys: g.keys, Now: g.Now, NewID: g.NewID, Observer: g.Observer,
	})
	run.messages = messages.New(messages.Options{
		Feed:  g.feed,
		Store: messagestore.New(g.DB), Users: who.principals, Inbox: what.comments.Unchecked(), Apps: run.apps,
		Agents: inApps, Queue: g.queue, Sender: g.Mail, Now: g.Now, NewID: g.NewID,
	})
	owner := owners.New(owners.Options{
		Tenants: who.tenants.Unchecked(), Principals: who.principals,
		ActorOf: g.actorOf(run.sessions), Changes: g.rights.Of,
	})
	run.scripts = scripts.New(scripts.Options{
		Apps: run.apps, Datasets: what.datasets, Messages: run.messages, Workspaces: g.workspaces,
		Owner: owner.Actor, Markdown: g.engine.Markdown, Extract: g.engine.Extract, API: g.loopback,
	})
	run.agents = agents.New(agents.Options{
		Feed:      g.feed,
		Installed: inApps, Apps: run.apps, Tools: run.handlers, Provider: places.For(g.AI, "agents"),
		App: agentApp(run.apps), Owner: owner.Agent, Enabled: who.tenants.Unchecked().AIEnabled,
		Bind: run.scripts.BindOwner,
	})
	run.webhooks = webhooks.New(webhooks.Options{
		Store: webhookstore.New(g.DB), Apps: run.apps, Handlers: run.handlers, Keys: g.keys,
		UseToken: run.sessions.Unchecked().UseToken, Target: target(run.apps), Owner: owner.Owner,
		Bind: func(ctx context.Context, in *handlers.Invocation) (end func(), err error) {
			return run.scripts.BindOwner(ctx, in, handlers.ToolCall{})
		},
		Queue: g.queue, Changes: g.shown.Of, Limits: g.Webhooks, Log: g.Log, Now: g.Now, NewID: g.NewID,
	})
	return run, nil
}

// actorOf returns what finds a user with the rights of the moment: those of Config.Resume if the
// host authenticates its users itself.
func (c Config) actorOf(
	s *sessions.Service,
) func(ctx context.Context, tenant, username string) (actor.Actor, error) {
	switch {
	case c.Authenticate == nil || c.KeepLogins && c.Resume == nil:
		return s.Unchecked().ActorOf
	case c.Resume != nil:
		return c.Resume
	}
	return func(context.Context, string, string) (actor.Actor, error) {
		return actor.Actor{}, errs.New(
			errs.Unauthenticated, "the host does not say what the owner of the app may do: see Config.Resume",
		)
	}
}

// agentApp returns what finds the apps whose agents run.
func agentApp(s *apps.Service) func(ctx context.Context, tenant, id string) (agents.App, error) {
	return func(ctx context.Context, tenant, id string) (agents.App, error) {
		running, err := s.Unchecked().Running(ctx, tenant, id)
		if err == nil && running.DeletedAt != nil {
			err = errs.New(errs.NotFound, "App not found.")
		}
		return agents.App{Name: running.Name, Owner: running.RunsAs(), Env: running.Env}, err
	}
}

// target returns what finds the apps whose webhooks are called.
func target(s *apps.Service) func(ctx context.Context, tenant, id string) (webhooks.Target, error) {
	return func(ctx context.Context, tenant, id string) (webhooks.Target, error) {
		h, err := s.Unchecked().Hooked(ctx, tenant, id)
		return webhooks.Target(h), err
	}
}

// bundles builds the service of content that moves between tenants and servers. The kinds are
// registered.
func (g ground) bundles(who identity, what kept) (*bundles.Service, error) {
	return bundles.New(bundles.Options{
		Feed:  g.feed,
		Store: bundlestore.New(g.DB), Tenants: who.tenants.Unchecked(), Downloads: what.downloads.Unchecked(),
		Principals: who.principals.Unchecked(), Content: g.registry,
		Global:  []entity.Type{what.colors.Unchecked().Type(), what.aiInstructions.Unchecked().Type()},
		Drivers: g.BundleDrivers, Notify: what.comments.Unchecked().Deliver,
		Limits: g.ArchiveLimits, Size: g.MaxArchive, Time: g.MaxImportTime,
		Now: g.Now, NewID: g.NewID, Observer: g.Observer,
	})
}

// register adds all kinds to the registry. bundles reads them when it is built.
func (g ground) register(who identity, what kept, run programs) error {
	types := slices.Concat(
		who.principals.Unchecked().Types(),
		[]entity.Type{what.aiInstructions.Unchecked().Type()},
		what.content.Unchecked().Types(),
		[]entity.Type{run.assistants.Unchecked().Type(), run.apps.Unchecked().Type()},
	)
	return g.registry.Add(replaced(types, g.Entities)...)
}

// fill adds all hooks to the registry, and all workers to the queue.
func (g ground) fill(who identity, what kept, run programs, bundles *bundles.Service) error {
	g.registry.AddHooks(
		who.principals.Unchecked().Hooks(), run.apps.Unchecked().Hooks(), run.assistants.Unchecked().Hooks(),
		run.confirmations.Unchecked().Hooks(), who.tenants.Unchecked().Hooks(),
		what.uploads.Unchecked().Hooks(), what.downloads.Unchecked().Hooks(),
		what.colors.Unchecked().Hooks(), what.aiInstructions.Unchecked().Hooks(),
		what.content.Unchecked().Hooks(), what.libraries.Hooks(),
		what.comments.Unchecked().Hooks(), run.messages.Unchecked().Hooks(), run.agents.Unchecked().Hooks(),
		who.domains.Unchecked().Hooks(), run.sessions.Unchecked().Hooks(), bundles.Unchecked().Hooks(),
		g.workspaces.Hooks(), run.handlers.Hooks(), g.queue.Hooks(),
		g.changes.Hooks(g.feed, g.removals.Later, clock.New(g.Now, nil)), g.removals.Hooks(),
		run.webhooks.Unchecked().Hooks(),
		entity.Hooks{Counts: entity.CountRows(80, "files", g.stored.Count)},
	)
	return g.queue.Add(slices.Concat(
		[]queue.Worker{g.removals.Worker()}, run.messages.Unchecked().Workers(), run.agents.Unchecked().Workers(),
		run.webhooks.Unchecked().Workers(), who.domains.Unchecked().Workers(), g.Workers,
	)...)
}

// replaced returns the ready types except those of which the host has its own, and the host's
// after them.
func replaced(ready, own []entity.Type) []entity.Type {
	mine := kinds(own)
	ready = slices.DeleteFunc(slices.Clone(ready), func(t entity.Type) bool { return slices.Contains(mine, t.Kind) })
	return append(ready, own...)
}

// drivers returns the driver of local passwords, and those of a Config after it. Those that connect
// to servers which tenants name connect within the networks of the Config.
func drivers(c Config) []domains.Driver {
	denied := egress.Denials(egress.Local(), c.AllowNetworks, c.DenyNetworks)
	all := []domains.Driver{local.Driver{}}
	for _, d := range c.DomainDrivers {
		if bounded, ok := d.(domains.Bounded); ok {
			d = bounded.Within(denied, c.Log)
		}
		if d.Info().ID == all[0].Info().ID {
			all[0] = d
			continue
		}
		all = append(all, d)
	}
	return all
}

func kinds(types []entity.Type) []entity.Kind {
	kinds := make([]entity.Kind, len(types))
	for i, t := range types {
		kinds[i] = t.Kind
	}
	return kinds
}
