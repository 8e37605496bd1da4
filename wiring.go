package tenantcontent

import (
	"context"
	"encoding/json"
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
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/directory/local"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/indexer"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/jobs/removal"
	"github.com/tenantcontent/tenantcontent/internal/jobs/sweep"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	agentstore "github.com/tenantcontent/tenantcontent/internal/store/agents"
	instructionstore "github.com/tenantcontent/tenantcontent/internal/store/aiinstr"
	appstore "github.com/tenantcontent/tenantcontent/internal/store/apps"
	assistantstore "github.com/tenantcontent/tenantcontent/internal/store/assistants"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	bundlestore "github.com/tenantcontent/tenantcontent/internal/store/bundles"
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

// ownLibraries returns which of some ids are those of libraries of apps and assistants.
func (app *App) ownLibraries(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	of, err := app.Apps.Unchecked().Libraries(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	more, err := app.Assistants.Unchecked().Libraries(ctx, tenant, ids)
	maps.Copy(of, more)
	return of, err
}

// build builds the services, each after those that it needs, and fills the registry.
func (app *App) build(c Config, keys *keyring.Ring, engine jsvm.Parts, agentModels ai.Provider) (err error) {
	// These count changes of users, teams, sessions and tokens, of tenants and their domains, and
	// of apps, their shares and the files of libraries; and deployed and installed those of what
	// apps run.
	var rights, settings, shown, deployed, installed cache.Counter
	app.quotas = tenants.NewQuotas(tenants.QuotaOptions{
		Store:      quotastore.New(c.DB),
		Bytes:      c.TenantQuota,
		Workspaces: c.TenantWorkspaces,
		Now:        c.Now,
	})
	stored := blobstore.New(c.DB)
	blobs, directory, logins :=
		app.quotas.Blobs(stored), principalstore.New(c.DB).Notify(rights.Bump),
		domainstore.New(c.DB).Notify(settings.Bump)
	listeners := app.listeners(c)
	if app.Inputs, err = inputs.New(c.InputEditors...); err != nil {
		return err
	}
	app.Colors = colors.New(colors.Options{Store: colorstore.New(c.DB), Feed: listeners, Now: c.Now})
	app.queue = queue.New(queue.Options{
		Store:    queuestore.New(c.DB),
		Node:     c.Queue,
		Observer: c.Observer,
		Log:      c.Log,
		Now:      c.Now,
		NewID:    c.NewID,
	})
	removals := removal.New(removal.Options{DB: c.DB, Jobs: app.queue, Entities: app.registry, Now: c.Now})
	lookup, err := domains.NewLookup(domains.LookupOptions{Store: logins, Keys: keys, Drivers: drivers(c)})
	if err != nil {
		return err
	}
	app.Principals = principals.New(principals.Options{
		Feed:  listeners,
		Store: directory, Blobs: blobs, Content: app.registry,
		HostKinds: kinds(c.Entities), Removals: removals, Domains: lookup,
		Refusal: domains.MinRefusal, Log: c.Log, Now: c.Now, NewID: c.NewID,
	})
	app.Tenants = tenants.New(tenants.Options{
		Feed:  listeners,
		Store: tenantstore.New(c.DB).Notify(settings.Bump), Changes: settings.Of, Keys: keys, Hooks: app.registry,
		KnownDomain: lookup.CheckKnown, Username: app.Principals.Unchecked().Username,
		OpenLicenses: c.OpenLicenses, Now: c.Now,
	})
	app.AIInstructions = aiinstr.New(aiinstr.Options{
		Store: instructionstore.New(c.DB), Settings: app.Tenants.Unchecked(), Directory: directory,
		Feed: listeners, Now: c.Now, NewID: c.NewID,
	})
	app.Uploads = files.NewUploads(files.Options{
		Feed:  listeners,
		Store: filestore.Uploads(c.DB), Blobs: blobs, Limit: c.MaxUpload,
		Quota: c.UserQuota, Now: c.Now, NewID: c.NewID,
	})
	app.Downloads = files.NewDownloads(files.Options{
		Feed:  listeners,
		Store: filestore.Downloads(c.DB),
		Blobs: blobs,
		Now:   c.Now,
		NewID: c.NewID,
	})
	others := append(app.Principals.Unchecked().Types(), app.AIInstructions.Unchecked().Type())
	filesOf := func(kind entity.Kind) *libraries.Files {
		return libraries.New(libraries.Options{
			Feed: listeners, Kind: kind + "File",
			Store: librarystore.New(c.DB, kind).Notify(shown.Bump), Changes: shown.Of, Blobs: blobs,
			Limit: c.MaxUpload, Now: c.Now, NewID: c.NewID,
		})
	}
	libraryFiles := filesOf(content.Library)
	app.workspaces = workspaces.New(workspaces.Options{
		Driver: c.Workspaces, Store: workspacestore.New(c.DB), Admit: app.quotas.CheckWorkspace, Room: app.quotas.Left,
		Keys: keys, Kind: apps.Kind, Log: c.Log, Now: c.Now,
		Exist: func(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
			return app.Apps.Unchecked().Exist(ctx, tenant, ids)
		},
	})
	app.deployments = handlers.New(handlers.Options{
		Store: handlerstore.New(c.DB).Notify(deployed.Bump), Runtime: engine.Runtime, Changes: deployed.Of,
		DraftChanges: shown.Of, Check: checkWebhook, Now: c.Now, Observer: c.Observer,
		Files: func(ctx context.Context, draft handlers.App) (fs.FS, string, error) {
			return app.Apps.Unchecked().HandlerFiles(ctx, draft.Tenant, draft.ID)
		},
		Prepare: func(ctx context.Context, draft handlers.App, files fs.FS) error {
			_, err := app.workspaces.Migrate(ctx, draft.Tenant, draft.ID, files)
			return err
		},
	})
	app.Apps = apps.New(apps.Options{
		Feed:   listeners,
		Agents: installer{app},
		Chats: func(ctx context.Context) (bool, error) {
			if ai.Configured(c.AI) != nil {
				return false, nil
			}
			_, err := app.AIInstructions.Allowed(ctx)
			if code := errs.CodeOf(err); code == errs.Invalid || code == errs.Forbidden {
				return false, nil
			}
			return err == nil, err
		},
		Handlers: app.deployments, Workspaces: app.workspaces,
		Store: appstore.New(c.DB).Notify(shown.Bump), Changes: shown.Of, Files: filesOf(apps.Kind),
		Deployed: filesOf("app-manifest"), MaxFile: c.MaxAppFile, Manifests: httpapi.Manifests(),
		Directory: directory, Keys: keys, Licensed: app.Tenants.Unchecked().Licensed,
		Registry: app.registry, CanonicalName: app.Principals.Unchecked().CanonicalName, Now: c.Now, NewID: c.NewID,
	})
	skillTypes, err := conversation.SkillTypes(c.AI, engine.Runtime, c.Skills)
	if err != nil {
		return err
	}
	app.owner = app.owners(c, rights.Of)
	app.Agents = agents.New(agents.Options{
		Feed:  listeners,
		Store: agentstore.New(c.DB).Notify(installed.Bump), Changes: installed.Of, Queue: app.queue,
		Apps: app.Apps, Tools: app.deployments, Provider: agentModels,
		App: app.agentApp, Owner: agentOwners(app.owner), Enabled: app.Tenants.Unchecked().AIEnabled,
		Bind: func(ctx context.Context, in *handlers.Invocation, t handlers.ToolCall) (end func(), err error) {
			return app.binder.BindOwner(ctx, in, t)
		},
		Limits: c.Agents, Now: c.Now, NewID: c.NewID,
	})
	app.Assistants = assistants.New(assistants.Options{
		Feed:  listeners,
		Store: assistantstore.New(c.DB), Files: filesOf(assistants.Kind),
		MaxFile: c.MaxAppFile, Directory: directory, Keys: keys,
		Allowed: func(ctx context.Context) error {
			_, err := app.AIInstructions.Allowed(ctx)
			return err
		},
		Skills: skillTypes, CheckFilter: func(ctx context.Context, dataset string, filter json.RawMessage) error {
			return app.Datasets.CheckFilter(ctx, dataset, filter)
		},
		Registry: app.registry, CanonicalName: app.Principals.Unchecked().CanonicalName, Now: c.Now, NewID: c.NewID,
	})
	app.Confirmations = confirmations.New(confirmations.Options{
		Store: confirmationstore.New(c.DB),
		Feed:  listeners,
		Now:   c.Now,
	})
	ownTypes := []entity.Type{app.Assistants.Unchecked().Type(), app.Apps.Unchecked().Type()}
	app.Content = content.New(content.Options{
		Store: contentstore.New(c.DB), Files: libraryFiles, Reserved: app.ownLibraries,
		Directory: directory, Registry: app.registry, Feed: listeners,
		Others:        replaced(slices.Concat(others, ownTypes), c.Entities),
		CanonicalName: app.Principals.Unchecked().CanonicalName,
		Now:           c.Now, NewID: c.NewID,
	})
	// assistants and apps need what comes before them
	types := slices.Concat(others, app.Content.Unchecked().Types(), ownTypes)
	if err := app.registry.Add(replaced(types, c.Entities)...); err != nil {
		return err
	}
	app.Datasets = datasets.New(datasets.Options{
		Content: storedDatasets{app, slices.Contains(kinds(c.Entities), content.Dataset)},
		Source:  c.Datasets,
	})
	app.Conversations = conversation.New(conversation.Options{
		Provider: c.AI, Scripts: engine.Runtime, Extract: engine.Extract,
		Skills: c.Skills, Assistants: app.Assistants, Datasets: app.Datasets, Expand: app.AIInstructions.Expand,
		Entity: seenEntities{app, kinds(c.Entities)}.entity, Log: c.Log,
	})
	commentStore := commentstore.New(c.DB)
	app.Comments = comments.New(comments.Options{
		Feed:  listeners,
		Store: commentStore, Queue: commentStore, Entities: app.registry, Users: app.Principals,
		Removals: removals, KeepFor: c.KeepActivities, Now: c.Now, NewID: c.NewID,
	})
	app.Messages = messages.New(messages.Options{
		Feed:  listeners,
		Store: messagestore.New(c.DB), Users: app.Principals, Inbox: app.Comments.Unchecked(), Apps: listening{app},
		Queue: app.queue, Sender: c.Mail, Start: app.start, Now: c.Now, NewID: c.NewID,
	})
	app.binder = scripts.New(scripts.Options{
		Apps: app.Apps, Datasets: app.Datasets, Messages: app.Messages, Workspaces: app.workspaces,
		Owner: func(ctx context.Context, tenant, principal string) (actor.Actor, error) {
			owner, err := app.owner(ctx, tenant, principal)
			return owner.Actor, err
		},
		Markdown: engine.Markdown, Extract: engine.Extract, API: app.loopback,
	})
	app.Domains = domains.New(domains.Options{
		Feed:   listeners,
		Lookup: lookup, Principals: app.Principals.Unchecked(), Tenants: app.Tenants.Unchecked(),
		Directories: dirsync.New(dirsync.Options{
			Feed:  listeners,
			Store: directory, Principals: app.Principals.Unchecked(), Now: c.Now, NewID: c.NewID,
		}),
		Queue: app.queue, Log: c.Log, Changes: settings.Of, Now: c.Now, Observer: c.Observer,
	})
	app.scim = scim.New(scim.Options{
		Feed:       listeners,
		Store:      directory,
		Principals: app.Principals.Unchecked(),
		Now:        c.Now,
		NewID:      c.NewID,
		Log:        c.Log,
	})
	app.Sessions = sessions.New(sessions.Options{
		Feed:  listeners,
		Store: sessionstore.New(c.DB).Notify(rights.Bump), Changes: rights.Of,
		Authenticator: app.Domains.Unchecked(), Tenants: app.Tenants.Unchecked(), Apps: app.Apps,
		Assistants: app.Assistants, Domains: app.Domains, Refusal: domains.MinRefusal,
		Lifetime: c.SessionLifetime, Keys: keys, Now: c.Now, NewID: c.NewID,
	})
	app.Webhooks = webhooks.New(webhooks.Options{
		Store: webhookstore.New(c.DB), Apps: app.Apps,
		Handlers: app.deployments, Keys: keys, UseToken: app.Sessions.Unchecked().UseWebhookToken,
		Target: func(ctx context.Context, tenant, id string) (webhooks.Target, error) {
			h, err := app.Apps.Unchecked().Hooked(ctx, tenant, id)
			return webhooks.Target(h), err
		},
		Owner: app.owner, Changes: shown.Of, Limits: c.Webhooks, Log: c.Log, Now: c.Now, NewID: c.NewID,
		Queue: app.queue, Bind: func(ctx context.Context, in *handlers.Invocation) (end func(), err error) {
			return app.binder.BindOwner(ctx, in, handlers.ToolCall{})
		},
	})
	app.Bundles, err = bundles.New(bundles.Options{
		Feed:  listeners,
		Store: bundlestore.New(c.DB), Tenants: app.Tenants.Unchecked(), Downloads: app.Downloads.Unchecked(),
		Principals: app.Principals.Unchecked(), Content: app.registry,
		Global:  []entity.Type{app.Colors.Unchecked().Type(), app.AIInstructions.Unchecked().Type()},
		Drivers: c.BundleDrivers, Notify: app.Comments.Unchecked().NotifyUsers,
		Limits: c.ArchiveLimits, Size: c.MaxArchive, Time: c.MaxImportTime,
		Now: c.Now, NewID: c.NewID, Observer: c.Observer,
	})
	if err != nil {
		return err
	}
	app.registry.AddHooks(
		app.Principals.Unchecked().Hooks(), app.Apps.Unchecked().Hooks(), app.Assistants.Unchecked().Hooks(),
		app.Confirmations.Unchecked().Hooks(), app.Tenants.Unchecked().Hooks(),
		app.Uploads.Unchecked().Hooks(), app.Downloads.Unchecked().Hooks(),
		app.Colors.Unchecked().Hooks(), app.AIInstructions.Unchecked().Hooks(),
		app.Content.Unchecked().Hooks(), libraryFiles.Hooks(),
		app.Comments.Unchecked().Hooks(), app.Messages.Unchecked().Hooks(), app.Agents.Unchecked().Hooks(),
		app.Domains.Unchecked().Hooks(), app.Sessions.Unchecked().Hooks(), app.Bundles.Unchecked().Hooks(),
		app.workspaces.Hooks(), app.deployments.Hooks(), app.queue.Hooks(),
		app.changeHooks(c, listeners, removals), removals.Hooks(), app.Webhooks.Unchecked().Hooks(),
		entity.Hooks{Counts: entity.CountRows(80, "files", stored.Count)},
	)
	app.indexer = indexer.New(c.DB, c.Now)
	app.sweeper = sweep.New(
		c.DB, app.registry.Sweeps, app.Tenants.Unchecked().IDs, app.Tenants.Unchecked().HiddenIDs, c.Now,
	)
	return app.queue.Add(slices.Concat(
		[]queue.Worker{removals.Worker()}, app.Messages.Unchecked().Workers(), app.Agents.Unchecked().Workers(),
		app.Webhooks.Unchecked().Workers(), app.Domains.Unchecked().Workers(), c.Workers,
	)...)
}

// replaced returns the ready types except those of which the host has its own, and the host's
// behind them.
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
