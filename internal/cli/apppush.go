package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
)

type appPushCommand struct {
	Folder  string `arg:"" help:"Folder with the files of the app." placeholder:"FOLDER"`
	App     string `help:"Id or owner:slug of the app (default: the one that the folder was pushed to; at first a new one)." placeholder:"APP"`
	Name    string `help:"Name of a new app (default: that of the folder)." placeholder:"NAME"`
	Slug    string `help:"Slug of a new app (default: one from its name, if that is free)." placeholder:"SLUG"`
	Type    string `default:"report" enum:"report,app" help:"Type of a new app: report, or app, which needs a license." placeholder:"TYPE"`
	Draft   bool   `help:"Push into the draft of the app and leave it open: publish nothing."`
	Deploy  bool   `help:"Deploy the app also if there is nothing to publish, as after an import. What is published is deployed in any case."`
	Strict  bool   `help:"Fail where a migration has changed since it was applied, or comes before one that was applied. Without it the app is published with a warning."`
	Delete  bool   `help:"Remove the files that are no longer here, but were at the last push or pull. Without it they are listed and stay."`
	Verbose bool   `help:"List the files and folders that are ignored."`
	DryRun  bool   `help:"Print what a push would do, and send nothing."`
	Force   bool   `help:"Overwrite what others have published since the last push or pull, take over a draft that somebody else edits, and publish a manifest that cannot be read. With --delete, also remove the files that others have added."`
}

// push is one run of the command.
type push struct {
	*appPushCommand
	*appCommands
	folder *appFolder
	local  []localFile // ordered by path
	out    *outcome
	shown  *progress
	page   string // path of the first page for viewers, according to the folder
	noPage bool   // neither the folder nor the app has the page
}

// Run uploads the changes to the draft of the app and publishes it, so that viewers never see a
// part of them. A push that ends early leaves the draft open, and the next one continues with it.
func (p *appPushCommand) Run(ctx context.Context, a *appCommands, t terminal) error {
	f, err := openFolder(p.Folder, stateFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	id, err := a.target(f, p.App)
	if err != nil {
		return err
	}
	run := &push{appPushCommand: p, appCommands: a, folder: f, out: &outcome{t: t, quiet: a.JSON}, shown: t.progress()}
	run.out.shown = run.shown != nil
	run.shown.begin("reading "+harmless(p.Folder), 0)
	result, err := run.run(ctx, id)
	run.shown.finish()
	run.out.flush()
	if err != nil {
		return stopped(ctx, err, "nothing is published; the next push goes on")
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return a.answer(t, raw, result.text(run))
}

// run pushes the folder to the app with an id, "" for a new one.
func (p *push) run(ctx context.Context, id string) (result pushed, err error) {
	if p.local, err = p.folder.files(ctx); err != nil {
		return result, err
	}
	if len(p.local) == 0 {
		return result, errs.New(errs.Invalid, "%s has no files to push", p.Folder)
	}
	if err := p.checkManifest(); err != nil {
		return result, err
	}
	p.shown.begin("comparing", 0)
	if err := p.fits(id); err != nil {
		return result, err
	}
	if id == "" {
		todo, err := p.planNew(ctx)
		if err != nil {
			return result, err
		}
		if p.DryRun {
			return p.dryRun(todo, comparison{})
		}
		if id, err = p.create(ctx); err != nil {
			return result, err
		}
	}
	return p.update(ctx, id)
}

// fits returns errs.Invalid for flags that do not fit each other, or the app with an id.
func (p *push) fits(id string) error {
	switch {
	case p.Deploy && p.Draft:
		return errs.New(
			errs.Invalid,
			"--draft publishes nothing, and a draft runs its handlers without a deploy: leave out --draft or --deploy",
		)
	case id != "" && (p.Name != "" || p.Slug != "" || p.Type != newType):
		return errs.New(
			errs.Invalid,
			"--name, --slug and --type are for a new app, and this push is to the app %s: leave them out",
			harmless(id),
		)
	}
	return nil
}

// update makes an app like the folder.
func (p *push) update(ctx context.Context, id string) (result pushed, err error) {
	c, err := p.compare(ctx, id)
	if err != nil {
		return result, p.folder.unknown(p.App, err)
	}
	if err := p.folder.check(p.App, c.Tenant, c.ID, c.EditingID); err != nil {
		return result, err
	}
	if err := p.first(c); err != nil {
		return result, err
	}
	todo, err := p.plan(c, nil)
	if err != nil {
		return result, err
	}
	if p.DryRun {
		return p.dryRun(todo, c)
	}
	p.findPage(c)
	if !todo.empty() || p.Draft {
		return p.edit(ctx, c, todo)
	}
	if err := p.saveSynced(c, p.folder.state.Draft, todo); err != nil {
		return result, err
	}
	if result, err = p.result(todo, c, c.DraftID, c.ID); err != nil || !p.Deploy {
		return result, err
	}
	return result, p.deploy(ctx, &result)
}

// dryRun shows and returns what a push would do to an app, of a new one without an address.
func (p *push) dryRun(todo plan, c comparison) (pushed, error) {
	p.findPage(c)
	result, err := p.result(todo, c, c.DraftID, c.ID)
	if err != nil {
		return result, err
	}
	if result.DryRun = true; c.ID == "" {
		result.URL = ""
	}
	return result, p.show(result)
}

// deploy deploys the published app.
func (p *push) deploy(ctx context.Context, result *pushed) error {
	p.shown.begin("deploying", 0)
	var answer struct{ Deployed *runs }
	if err := p.call(
		ctx, http.MethodPost, hal.Href("apps", result.App, "_deploy"), map[string]bool{"strict": p.Strict},
		&answer,
	); err != nil {
		if ctx.Err() != nil {
			return interrupted("the app may be deployed: deploy it again")
		}
		return err
	}
	result.Deployed = answer.Deployed
	return nil
}

// findPage sets noPage unless the folder or the app has the first page for viewers.
func (p *push) findPage(c comparison) {
	p.noPage = !slices.Contains(c.Extra, p.page) && !slices.ContainsFunc(p.local, func(f localFile) bool {
		return f.path == p.page
	})
}

// elsewhere returns where the first page for viewers may be, as the end of a sentence.
func (p *push) elsewhere() string {
	for _, file := range p.local {
		if folder, ok := strings.CutSuffix(file.path, "/"+p.page); ok {
			return ": did you mean " + harmless(filepath.Join(p.Folder, filepath.FromSlash(folder))) + "?"
		}
	}
	return " unless the app names another page as its entryPoint."
}

// checkManifest refuses a manifest that the server cannot read, with which the app would be closed
// to all viewers.
func (p *push) checkManifest() error {
	p.page = "index.html"
	for _, name := range manifest.Files() {
		if p.Force || !slices.ContainsFunc(p.local, func(f localFile) bool { return f.path == name }) {
			continue
		}
		opened, err := p.folder.Open(name)
		if err != nil {
			return errs.New(errs.Invalid, "%s: cannot be read: %v", name, cause(err))
		}
		raw, err := io.ReadAll(io.LimitReader(opened, manifest.MaxSize+1))
		if err := errors.Join(err, opened.Close()); err != nil {
			return errs.New(errs.Invalid, "%s: cannot be read: %v", name, cause(err))
		}
		m, err := httpapi.Manifests().Read(name, raw)
		if err != nil {
			return errs.New(
				errs.Invalid,
				"%s\nNothing was sent, as nobody could view the app with this manifest: correct it, or push it as "+
					"it is with --force.",
				harmless(errs.MessageOf(err)),
			)
		}
		p.page = cmp.Or(m.EntryPoint, p.page)
		return nil // only the first one is used
	}
	return nil
}

// newType is the type of a new app unless --type names another one.
const newType = "report"

// create creates a new app and stores its id in the state of the folder.
func (p *push) create(ctx context.Context) (string, error) {
	name := p.Name
	if name == "" {
		whole, err := filepath.Abs(p.Folder)
		if err != nil {
			return "", errs.Wrap(errs.Invalid, err, "cannot read the folder %s: %v", p.Folder, err)
		}
		name = filepath.Base(whole)
	}
	body := map[string]string{"type": p.Type, "name": name, "slug": p.Slug}
	if p.Slug == "" {
		body["slug"] = slug.Of(name, "app")
	}
	var app struct{ Tenant, ID string }
	err := p.call(ctx, http.MethodPost, hal.Href("apps"), body, &app)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == http.StatusConflict && p.Slug == "" {
		// the slug is taken
		delete(body, "slug")
		err = p.call(ctx, http.MethodPost, hal.Href("apps"), body, &app)
	}
	if err != nil {
		return "", err
	}
	return app.ID, p.updateState(app.Tenant, app.ID, func(*state) {})
}

// updateState changes the state of the folder.
func (p *push) updateState(tenant, app string, change func(*state)) error {
	s := p.folder.state
	server, err := p.address()
	if err != nil {
		return err
	}
	s.Server, s.Tenant, s.App = server, tenant, app
	change(&s)
	same := p.folder.state
	if same.Server == s.Server && same.Tenant == s.Tenant && same.App == s.App && same.Draft == s.Draft &&
		maps.Equal(same.Files, s.Files) && slices.Equal(same.Sent, s.Sent) {
		return nil
	}
	return p.folder.saveState(s)
}

// saveSynced saves which files the folder and the published app have in common, and the draft that
// pushes have begun.
func (p *push) saveSynced(c comparison, draft string, todo plan) error {
	return p.updateState(c.Tenant, c.ID, func(s *state) {
		s.Draft, s.Files = draft, todo.known
		if draft == "" {
			s.Sent = nil
		}
	})
}
