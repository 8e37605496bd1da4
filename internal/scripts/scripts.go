// Package scripts has what the scripts of apps can call: query, fetch, dataset, emit, notify,
// email, markdown and extractText, each with the rights of whom the script runs for.
//
// The root builds one Binder, which httpapi calls for the routes of an app's server, and webhooks
// and agents for theirs.
package scripts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// Options configure a Binder. Apps, Datasets and Messages are required; without one of the others
// what needs it is refused.
type Options struct {
	Apps       *apps.Service
	Datasets   *datasets.Service
	Messages   *messages.Service
	Workspaces *workspaces.Service // nil: apps have no SQL databases
	// Owner returns the owner of an app, a user or a team, with the rights of now, or
	// errs.Unauthenticated or errs.NotFound for an owner that may not act. An app has at most the
	// tenant-wide rights of this actor, and without an owner those of a member. nil: no app has an
	// owner.
	Owner func(ctx context.Context, tenant, principal string) (actor.Actor, error)
	// Markdown returns a text in Markdown as safe HTML, and Extract the text of a document: see
	// jsvm.Parts.
	Markdown func(ctx context.Context, text string) (html string, err error)
	Extract  func(ctx context.Context, contentType, name string, data []byte) (text string, err error)
	// API answers fetch.
	API API
}

// Binder sets what scripts can call.
type Binder struct{ o Options }

// New returns a Binder.
func New(o Options) *Binder { return &Binder{o} }

// Call is a call of a script of an app.
type Call struct {
	App    apps.Running
	Access manifest.Manifest // which calls fetch may make
	Who    actor.Actor       // as whom the script calls the service
	Viewed bool              // Who is a viewer of the app, and not its owner: see Capped
	Tool   handlers.ToolCall // of a tool of an agent

	ReadOnly bool // the caller's token can only read: nothing that the script calls writes
	ByCookie bool // a browser may have added what names the caller to a GET: fetch can only read
	Send     bool // a draft's notifications and e-mails are sent, and are those of its app
}

// AppOf returns an app as package handlers has it.
func AppOf(app apps.App) handlers.App {
	return handlers.App{Tenant: app.Tenant, ID: app.ID, Draft: app.EditingID != nil}
}

// BindOwner sets what a webhook or tool can call, as the actor in ctx, which is the owner of its
// app, and returns what must be called when it has ended. A team only reads.
func (b *Binder) BindOwner(ctx context.Context, in *handlers.Invocation, t handlers.ToolCall) (end func(), err error) {
	who, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	app, err := b.o.Apps.Unchecked().Running(ctx, in.App.Tenant, in.App.ID)
	if err != nil {
		return nil, err
	}
	access, err := b.o.Apps.Unchecked().Manifest(ctx, app.App)
	if err != nil && errs.CodeOf(err) != errs.Conflict { // with one that cannot be read no call is allowed
		return nil, err
	}
	_, isTeam := who.Teams[who.User]
	who.ReadOnly = isTeam
	return b.Bind(Call{App: app, Access: access, Who: who, Tool: t}, in), nil
}

// Bind sets what a script can call, and returns what must be called when it has ended.
func (b *Binder) Bind(c Call, in *handlers.Invocation) (end func()) {
	datasets := make(map[string]string, len(c.App.Datasets))
	for _, d := range c.App.Datasets {
		in.Datasets = append(in.Datasets, d.Alias)
		datasets[d.Alias] = d.DatasetID
	}
	for _, d := range c.Access.Datasets { // reading one that is not bound is an error with its alias
		if datasets[d.Alias] == "" {
			in.Datasets = append(in.Datasets, d.Alias)
		}
	}
	w := &workspace{of: b.o.Workspaces, tenant: c.App.Tenant, app: c.App.ID, readOnly: c.ReadOnly}
	in.Functions = b.messages(c)
	in.Functions["fetch"] = b.fetch(c)
	in.Functions["dataset"] = b.o.Datasets.Function(datasets)
	if c.Viewed {
		for name, f := range in.Functions {
			in.Functions[name] = b.capping(c, f)
		}
	}
	// These need no rights of the viewer: the database is the app's own.
	in.Functions["query"] = w.query
	in.Functions["markdown"], in.Functions["extractText"] = b.markdown, b.extractText
	return w.close
}

// messages returns emit, notify and email for a script.
func (b *Binder) messages(c Call) map[string]jsvm.Function {
	all, made := map[string]jsvm.Function{}, effects{}
	draft := c.App.EditingID != nil
	for name, f := range b.o.Messages.Functions(c.App.ID) {
		if draft && c.Send && name != "emit" {
			f = b.o.Messages.Functions(*c.App.EditingID)[name]
		}
		all[name] = func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			call := messages.Call{Depth: c.Tool.Depth, Unsent: draft && !c.Send}
			if c.Tool.IdempotencyKey != "" {
				call.Key = made.key(c.Tool.IdempotencyKey, name, args)
			}
			return f(messages.WithCall(ctx, call), args)
		}
		if c.ReadOnly {
			all[name] = func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return nil, errs.New(errs.Forbidden, "%s: this token can only read.", name)
			}
		}
	}
	return all
}

// effects counts what one call of a tool emits and sends.
type effects struct {
	mu    sync.Mutex
	times map[string]int
}

// key returns the key of a call of a function. When the tool is called again with its key, the same
// call has the same one, also if its calls are made in another order.
func (e *effects) key(tool, function string, args json.RawMessage) string {
	sum := sha256.Sum256([]byte(function + string(args)))
	of := hex.EncodeToString(sum[:])
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.times == nil {
		e.times = map[string]int{}
	}
	e.times[of]++
	return fmt.Sprintf("%s/%s/%d", tool, of, e.times[of])
}
