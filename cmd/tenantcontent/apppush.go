package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tenantcontent/tenantcontent/apps/manifest"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
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
	page   string // path of the page that viewers see first, as far as the folder shows
	noPage bool   // neither the folder nor the app has it
}

// comparison is the server's answer to _compare.
type comparison struct {
	Tenant       string            `json:"tenant"`
	ID           string            `json:"id"`
	EditingID    *string           `json:"editingId"`
	DraftID      *string           `json:"draftId"`
	Missing      []string          `json:"missing"`
	Differs      []string          `json:"differs"`
	Extra        []string          `json:"extra"`
	Digests      map[string]string `json:"digests"` // of those that differ or are in addition
	MaxFileBytes int64             `json:"maxFileBytes"`
}

// Run sends what has changed to the draft of the app and publishes it, so that viewers never see a half of it. A push that ends
// early leaves the draft open, and the next one goes on with it.
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

// pushed is the result of a push.
type pushed struct {
	Tenant    string   `json:"tenant"`
	App       string   `json:"app"`
	URL       string   `json:"url"`   // of the page of the app, or of the draft that was pushed into
	Draft     *string  `json:"draft"` // that is open
	Published bool     `json:"published"`
	Deployed  *runs    `json:"deployed"` // what the app runs since it was published or deployed; null for a push that did neither
	DryRun    bool     `json:"dryRun"`
	New       []string `json:"new"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Kept      []string `json:"onlyOnServer"`
	Left      []string `json:"changedOnServer"`
	Others    []string `json:"addedOnServer"`
	Ignored   []string `json:"ignored"` // of the folder
	Unchanged int      `json:"unchanged"`
}

// runs is the server's answer to a deploy.
type runs struct {
	Routes []struct {
		Area    string   `json:"area"`
		Path    string   `json:"path"`
		File    string   `json:"file"`
		Methods []string `json:"methods"`
	} `json:"routes"`
	Agents     []string `json:"agents"`     // names
	Migrations []string `json:"migrations"` // that were applied
	Warnings   []string `json:"warnings"`
}

func (r runs) text() string {
	var b strings.Builder
	if len(r.Migrations) > 0 {
		fmt.Fprintf(&b, "\nMigrations applied:%s", strings.TrimSuffix(listedPaths(r.Migrations), "\n"))
	}
	if len(r.Routes) > 0 {
		b.WriteString("\nHandlers:")
	}
	for _, route := range r.Routes {
		if route.Area == "tools" {
			fmt.Fprintf(&b, "\n  tool %s (%s)", harmless(strings.TrimPrefix(route.Path, "/")), harmless(route.File))
			continue
		}
		at := "view/api/_server"
		if route.Area == "webhooks" {
			at = "_hook"
		}
		fmt.Fprintf(&b, "\n  %s %s (%s)", harmless(strings.Join(route.Methods, ", ")), harmless(at+strings.TrimSuffix(route.Path, "/")), harmless(route.File))
	}
	if len(r.Agents) > 0 {
		fmt.Fprintf(&b, "\nAgents: %s", harmless(strings.Join(r.Agents, ", ")))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s", harmless(w))
	}
	return b.String()
}

func (r pushed) text(p *push) string {
	var b strings.Builder
	list := func(what string, paths []string) {
		if len(paths) > 0 {
			fmt.Fprintf(&b, "%s:%s\n", what, listedPaths(paths))
		}
	}
	list("Changed by somebody else since your last push or pull, not here, and left alone (app pull brings these changes)", r.Left)
	list("Added by somebody else, and kept (app pull brings them; --delete with --force removes them)", r.Others)
	list("Only on the server, and kept (--delete removes them)", r.Kept)
	if p.Verbose {
		list("Ignored", r.Ignored)
	} else if len(r.Ignored) > 0 {
		fmt.Fprintf(&b, "%d ignored (--verbose lists them)\n", len(r.Ignored))
	}
	if p.noPage {
		fmt.Fprintf(&b, "Warning: there is no %s, which viewers see first%s\n", harmless(p.page), p.elsewhere())
	}
	app := harmless(r.App) + ofTenant(r.Tenant)
	counts := fmt.Sprintf("%d new, %d changed, %d removed, %d unchanged", len(r.New), len(r.Changed), len(r.Removed), r.Unchanged)
	switch {
	case r.DryRun && r.App == "":
		fmt.Fprintf(&b, "A push would make a new app: %s.", counts)
	case r.DryRun:
		fmt.Fprintf(&b, "A push to the app %s would be: %s.", app, counts)
	case r.Published:
		fmt.Fprintf(&b, "Published the app %s: %s.", app, counts)
	case p.Draft:
		fmt.Fprintf(&b, "Pushed into the draft %s of the app %s: %s.\nTo publish it: tenantcontent app push %s, or POST %s%s",
			harmless(*r.Draft), app, counts, harmless(p.Folder), strings.TrimRight(p.Server, "/"), harmless(hal.Href("apps", r.App, "draft", "_commit")))
	default:
		fmt.Fprintf(&b, "Nothing to push to the app %s: %s.", app, counts)
		if r.Draft != nil {
			fmt.Fprintf(&b, "\nIt has a draft, %s, which stays as it is.", harmless(*r.Draft))
		}
	}
	if r.Deployed != nil {
		if !r.Published {
			b.WriteString("\nDeployed the app.")
		}
		b.WriteString(r.Deployed.text())
		if p.Deploy && len(r.Deployed.Routes) == 0 {
			b.WriteString("\nIt has no handlers.")
		}
	}
	if r.URL != "" {
		fmt.Fprintf(&b, "\nView: %s", harmless(r.URL))
	}
	return b.String()
}

// result returns the result of a plan; viewed is the id of the app or draft whose page is to be looked at.
func (p *push) result(todo plan, c comparison, draft *string, viewed string) (pushed, error) {
	server, err := p.address()
	if err != nil {
		return pushed{}, err
	}
	paths := func(files []localFile) []string {
		all := make([]string, len(files))
		for i, file := range files {
			all[i] = file.path
		}
		return all
	}
	list := func(all []string) []string { return append([]string{}, all...) }
	return pushed{Tenant: c.Tenant, App: c.ID, URL: server + hal.Href("apps", viewed, "view"), Draft: draft, New: paths(todo.added), Changed: paths(todo.changed),
		Removed: list(todo.removed), Kept: list(todo.kept), Left: list(todo.left), Others: list(todo.others), Ignored: list(p.folder.ignored), Unchanged: todo.unchanged}, nil
}

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
	switch {
	case p.Deploy && p.Draft:
		return result, errs.New(errs.Invalid, "--draft publishes nothing, and a draft runs its handlers without a deploy: leave out --draft or --deploy")
	case id != "" && (p.Name != "" || p.Slug != "" || p.Type != newType):
		return result, errs.New(errs.Invalid, "--name, --slug and --type are for a new app, and this push is to the app %s: leave them out", harmless(id))
	case id == "":
		todo, err := p.planNew(ctx)
		if err != nil {
			return result, err
		}
		if p.DryRun {
			if result, err = p.result(todo, comparison{}, nil, ""); err != nil {
				return result, err
			}
			result.DryRun, result.URL = true, ""
			p.findPage(comparison{})
			return result, p.show(result)
		}
		if id, err = p.create(ctx); err != nil {
			return result, err
		}
	}
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
	p.findPage(c)
	switch {
	case p.DryRun:
		if result, err = p.result(todo, c, c.DraftID, c.ID); err != nil {
			return result, err
		}
		result.DryRun = true
		return result, p.show(result)
	case todo.empty() && !p.Draft:
		if err := p.saveSynced(c, p.folder.state.Draft, todo); err != nil {
			return result, err
		}
		if result, err = p.result(todo, c, c.DraftID, c.ID); err != nil || !p.Deploy {
			return result, err
		}
		return result, p.deploy(ctx, &result)
	}
	return p.edit(ctx, c, todo)
}

// deploy deploys the app as it is published.
func (p *push) deploy(ctx context.Context, result *pushed) error {
	p.shown.begin("deploying", 0)
	var answer struct{ Deployed *runs }
	if err := p.call(ctx, http.MethodPost, hal.Href("apps", result.App, "_deploy"), map[string]bool{"strict": p.Strict}, &answer); err != nil {
		if ctx.Err() != nil {
			return interrupted("the app may be deployed: deploy it again")
		}
		return err
	}
	result.Deployed = answer.Deployed
	return nil
}

// show prints what a push would do.
func (p *push) show(r pushed) error {
	for _, some := range []struct {
		sign  string
		paths []string
	}{{"+", r.New}, {"~", r.Changed}, {"-", r.Removed}} {
		for _, path := range some.paths {
			p.out.file(some.sign, path)
		}
	}
	return nil
}

// findPage sets noPage unless the folder or the app has the page that viewers see first.
func (p *push) findPage(c comparison) {
	p.noPage = !slices.Contains(c.Extra, p.page) && !slices.ContainsFunc(p.local, func(f localFile) bool { return f.path == p.page })
}

// elsewhere returns, as it stands behind a sentence, where the page that viewers see first may be.
func (p *push) elsewhere() string {
	for _, file := range p.local {
		if folder, ok := strings.CutSuffix(file.path, "/"+p.page); ok {
			return ": did you mean " + harmless(filepath.Join(p.Folder, filepath.FromSlash(folder))) + "?"
		}
	}
	return " unless the app names another page as its entryPoint."
}

// checkManifest refuses a manifest that the server could not read, which would close the app to all viewers.
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
			return errs.New(errs.Invalid, "%s\nNothing was sent, as nobody could view the app with this manifest: correct it, or push it as it is with --force.", harmless(errs.MessageOf(err)))
		}
		p.page = cmp.Or(m.EntryPoint, p.page)
		return nil // the first one counts
	}
	return nil
}

// first refuses the first push of a folder to an app that has other files.
func (p *push) first(c comparison) error {
	extra := slices.ContainsFunc(c.Extra, func(path string) bool { return !p.folder.ignores(path) })
	if p.folder.state.App != "" || p.Force || len(c.Differs) == 0 && !extra {
		return nil
	}
	return errs.New(errs.Conflict, "the app %s%s has other files than %s, which was never pushed to it or pulled from it: pull it to a new folder and work there, or push with --force to overwrite what differs",
		harmless(c.ID), ofTenant(c.Tenant), harmless(p.Folder))
}

// planNew returns the plan for an app that is to be made. Its error names the files that the server would refuse.
func (p *push) planNew(ctx context.Context) (plan, error) {
	var limits struct {
		Files struct {
			AppFileBytes int64 `json:"appFileBytes"`
		} `json:"files"`
	}
	if err := p.call(ctx, http.MethodGet, hal.Href("limits"), nil, &limits); err != nil {
		return plan{}, err
	}
	c := comparison{MaxFileBytes: limits.Files.AppFileBytes}
	for _, file := range p.local {
		c.Missing = append(c.Missing, file.path)
	}
	return p.plan(c, nil)
}

// newType is the type of a new app unless --type names another one.
const newType = "report"

// create makes a new app, whose id is in the state of the folder from then on.
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
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == http.StatusConflict && p.Slug == "" { // another app has the slug
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
	if same.Server == s.Server && same.Tenant == s.Tenant && same.App == s.App && same.Draft == s.Draft && maps.Equal(same.Files, s.Files) && slices.Equal(same.Sent, s.Sent) {
		return nil
	}
	return p.folder.saveState(s)
}

// saveSynced stores what the folder and the published app have in common, and the draft that pushes have begun.
func (p *push) saveSynced(c comparison, draft string, todo plan) error {
	return p.updateState(c.Tenant, c.ID, func(s *state) {
		s.Draft, s.Files = draft, todo.known
		if draft == "" {
			s.Sent = nil
		}
	})
}

// The most that one comparison has. More files are compared with several requests.
const (
	maxCompared      = libraries.MaxCompared
	maxComparedBytes = 700 << 10 // of paths and digests, as a body has 1 MiB at most
)

// compare returns how the files of an app or draft differ from the folder's.
func (p *push) compare(ctx context.Context, id string) (whole comparison, err error) {
	for rest, first := p.local, true; len(rest) > 0; first = false {
		some, bytes := map[string]string{}, 0
		for len(rest) > 0 && len(some) < maxCompared && bytes < maxComparedBytes {
			some[rest[0].path] = rest[0].sha256
			bytes += 2*len(rest[0].path) + len(rest[0].sha256) // quotes in a path are escaped
			rest = rest[1:]
		}
		var c comparison
		if err := p.call(ctx, http.MethodPost, hal.Href("apps", id, "_compare"), map[string]any{"files": some}, &c); err != nil {
			return comparison{}, err
		}
		if first {
			if whole = c; whole.Digests == nil {
				whole.Digests = map[string]string{}
			}
			continue
		}
		whole.Missing, whole.Differs = append(whole.Missing, c.Missing...), append(whole.Differs, c.Differs...)
		for _, path := range c.Differs {
			whole.Digests[path] = c.Digests[path]
		}
		also := make(map[string]bool, len(c.Extra)) // in addition to the other files, too
		for _, path := range c.Extra {
			also[path] = true
		}
		whole.Extra = slices.DeleteFunc(whole.Extra, func(path string) bool { return !also[path] })
	}
	return whole, nil
}

// plan is what a push does.
type plan struct {
	added, changed []localFile
	removed        []string
	kept           []string          // only on the server; the folder had them at the last push or pull
	left           []string          // changed or removed by others, and not changed here
	others         []string          // added by others
	known          map[string]string // SHA-256 by path of what folder and app have in common afterwards
	unchanged      int
}

// has reports whether the app has a file that the folder does not have.
func (t plan) has(path string) bool {
	return slices.Contains(t.removed, path) || slices.Contains(t.kept, path) || slices.Contains(t.others, path)
}

func (t plan) empty() bool { return len(t.added)+len(t.changed)+len(t.removed) == 0 }

// plan returns what makes an app like the folder, without what others have changed since the last push or pull. published is the plan
// for the published app if c is a draft that an earlier push has begun, which may already have what that one has sent, and nil
// otherwise. Its error names the files that the server would refuse and those that were changed on both sides.
func (p *push) plan(c comparison, published *plan) (todo plan, err error) {
	missing, differs := map[string]bool{}, map[string]bool{}
	for _, path := range c.Missing {
		missing[path] = true
	}
	for _, path := range c.Differs {
		differs[path] = true
	}
	todo.known = map[string]string{}
	wrong, both := &problems{}, &problems{}
	for _, file := range p.local {
		had, isKnown := p.folder.state.Files[file.path]
		foreign := false // changed by others
		switch {
		case p.Force:
		case missing[file.path] && published == nil:
			foreign = isKnown
		case missing[file.path]:
			foreign = slices.Contains(published.left, file.path)
		case differs[file.path]:
			foreign = !p.folder.state.known(file.path, c.Digests[file.path])
		}
		switch {
		case foreign && had == file.sha256:
			todo.left = append(todo.left, file.path)
			todo.known[file.path] = had
			continue
		case foreign && missing[file.path]:
			both.add(file.path, "was changed here, and removed on the server")
		case foreign && isKnown:
			both.add(file.path, "was changed here, and on the server")
		case foreign:
			both.add(file.path, "is new here, and somebody else has added another one")
		case missing[file.path]:
			todo.added = append(todo.added, file)
		case differs[file.path]:
			todo.changed = append(todo.changed, file)
		default:
			todo.unchanged++
			todo.known[file.path] = file.sha256
			continue
		}
		todo.known[file.path] = file.sha256
		if file.size > c.MaxFileBytes {
			wrong.add(file.path, "has %s; a file of an app must have at most %s", size(file.size).about(), size(c.MaxFileBytes).about())
		}
	}
	for _, path := range c.Extra {
		digest := c.Digests[path]
		had, isKnown := p.folder.state.Files[path]
		same := p.folder.state.known(path, digest)
		switch {
		case p.folder.ignores(path):
		case published != nil && !published.has(path) && slices.Contains(p.folder.state.Sent, digest): // an earlier push has sent it, and nobody has published it
			todo.removed = append(todo.removed, path)
		case p.Delete && (p.Force || same):
			todo.removed = append(todo.removed, path)
		case p.Delete && isKnown:
			both.add(path, "was removed here, and changed on the server")
		case same || isKnown:
			todo.kept = append(todo.kept, path)
			todo.known[path] = cmp.Or(had, digest)
		default:
			todo.others = append(todo.others, path)
		}
	}
	clashes(p.local, todo.kept, todo.others, wrong)
	return todo, refusals(wrong, both)
}

// refusals returns the error for files that the server would refuse and for those that were changed on both sides, nil for none.
func refusals(wrong, both *problems) error {
	const refused = "nothing was sent, as the server would refuse these files"
	if len(both.all) == 0 {
		return wrong.err(refused)
	}
	text := both.text("nothing was sent, as these files were changed on the server since your last push or pull: pull first, or overwrite them with --force")
	if len(wrong.all) == 0 {
		return errs.New(errs.Conflict, "%s", text)
	}
	return errs.New(errs.Invalid, "%s\n%s", wrong.text(refused), text)
}

// edit begins a draft or goes on with one, makes it like the folder, and publishes it unless it is to stay open. c is how the
// published app differs, and published what there is to do with it.
func (p *push) edit(ctx context.Context, c comparison, published plan) (result pushed, err error) {
	if d := c.DraftID; d != nil && *d != p.folder.state.Draft && !p.Draft && !p.Force {
		return result, errs.New(errs.Conflict, "the app has a draft, %s, that no push of this folder has begun%s, and with it what somebody has not published: "+
			"push into it with --draft, publish it together with these files with --force, or wait until it is published or discarded", harmless(*d), p.editor(ctx, c.ID))
	}
	var draft struct {
		ID              string  `json:"id"`
		EditingHeld     bool    `json:"editingHeld"`
		EditingLockedBy foreign `json:"editingLockedBy"`
	}
	edit := hal.Href("apps", c.ID, "_edit")
	if err := p.call(ctx, http.MethodPost, edit, map[string]bool{"force": p.Force}, &draft); err != nil {
		return result, err
	}
	if !draft.EditingHeld {
		return result, errs.New(errs.Conflict, "the draft is being edited by %s in another session: wait, or take it over with --force", draft.EditingLockedBy)
	}
	begun := &published
	if draft.ID != p.folder.state.Draft {
		begun = nil
	}
	err = p.updateState(c.Tenant, c.ID, func(s *state) {
		s.Draft = draft.ID
		if p.Force { // which settles what differs now
			s.Files = maps.Clone(published.known)
			for _, path := range c.Differs {
				s.Files[path] = c.Digests[path]
			}
			for _, path := range c.Missing {
				delete(s.Files, path)
			}
		}
	})
	if err != nil {
		return result, err
	}
	renewing, end := context.WithCancel(ctx)
	defer end()
	go p.renew(renewing, edit)

	todo, err := p.draft(ctx, c, draft.ID, begun)
	if err != nil {
		return result, p.failed(err)
	}
	viewed := c.ID
	if p.Draft {
		viewed = draft.ID
	}
	if result, err = p.result(todo, c, &draft.ID, viewed); err != nil || p.Draft {
		return result, err
	}
	p.shown.begin("publishing", 0)
	var answer struct{ Deployed *runs }
	if err := p.call(ctx, http.MethodPost, hal.Href("apps", c.ID, "draft", "_commit"), map[string]bool{"force": p.Force, "strict": p.Strict}, &answer); err != nil {
		if ctx.Err() != nil {
			return result, interrupted("the app may be published: the next push shows whether it is")
		}
		if errs.CodeOf(err) == errs.Unavailable {
			return result, errs.Wrap(errs.Unavailable, err, "the server did not answer whether it has published: the next push shows it")
		}
		return result, p.failed(err)
	}
	result.Published, result.Draft, result.Deployed = true, nil, answer.Deployed
	return result, p.saveSynced(c, "", todo)
}

// editor returns who edits the draft of an app, as it stands in a sentence, "" if nobody does.
func (p *push) editor(ctx context.Context, app string) string {
	var draft struct {
		EditingLockedBy foreign `json:"editingLockedBy"`
	}
	if err := p.call(ctx, http.MethodGet, hal.Href("apps", app, "draft"), nil, &draft); err != nil || draft.EditingLockedBy == "" {
		return ""
	}
	return fmt.Sprintf(" and %s is editing", draft.EditingLockedBy)
}

// draft makes a draft of app like the folder. begun is the plan for the published app if an earlier push has begun the draft.
func (p *push) draft(ctx context.Context, app comparison, id string, begun *plan) (plan, error) {
	c, err := p.compare(ctx, id)
	if err != nil {
		return plan{}, err
	}
	todo, err := p.plan(c, begun)
	if err != nil {
		return plan{}, err
	}
	var bytes int64
	sent := slices.Clone(p.folder.state.Sent)
	for _, file := range slices.Concat(todo.added, todo.changed) {
		bytes += file.size
		sent = append(sent, file.sha256)
	}
	slices.Sort(sent)
	if err := p.updateState(app.Tenant, app.ID, func(s *state) { s.Sent = slices.Compact(sent) }); err != nil { // first, for a push that is killed
		return plan{}, err
	}
	p.shown.begin("sending", bytes)
	err = parallel(ctx, todo.removed, func(ctx context.Context, path string) error { // first, as new files may need their places
		return p.remove(ctx, id, path)
	})
	if err != nil {
		return plan{}, err
	}
	sign := func(sign string) func(context.Context, localFile) error {
		return func(ctx context.Context, file localFile) error {
			err := p.put(ctx, id, file)
			if err == nil {
				p.out.file(sign, file.path)
			}
			return err
		}
	}
	if err := parallel(ctx, todo.added, sign("+")); err != nil {
		return plan{}, err
	}
	return todo, parallel(ctx, todo.changed, sign("~"))
}

// parallel calls do with all, several at once, until one fails.
func parallel[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, one := range all {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}

// failed adds to an error that the draft stays, and what --force can do.
func (p *push) failed(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	hint := "Nothing is published: the next push goes on."
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		return errs.New(errs.CodeOf(err), "%v\n%s", err, hint)
	}
	if refused.code == http.StatusConflict && !p.Force {
		hint += " --force takes over the draft, and publishes over changes."
	}
	return &refusal{refused.code, fmt.Sprintf("%v\n%s", err, hint), refused.message}
}

// remove removes a file of a draft. That it is gone already is as good.
func (p *push) remove(ctx context.Context, draft, path string) error {
	err := p.call(ctx, http.MethodDelete, contentOf(draft, path), nil, nil)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == http.StatusNotFound {
		err = nil
	}
	if err == nil {
		p.out.file("-", path)
	}
	return err
}

func contentOf(app, path string) string {
	return hal.Href(append([]string{"apps", app, "contents"}, strings.Split(path, "/")...)...)
}

// put sends a file to a draft.
func (p *push) put(ctx context.Context, draft string, file localFile) error {
	var stored struct {
		SHA256 string `json:"sha256"`
	}
	err := again(ctx, func() error {
		opened, err := p.folder.Open(file.name())
		if err != nil {
			return errs.New(errs.Invalid, "%s: cannot be read: %v", harmless(file.path), cause(err))
		}
		defer func() { _ = opened.Close() }()
		body := io.NopCloser(io.TeeReader(opened, p.shown)) // net/http may read it for a while after an early answer
		res, err := p.send(ctx, outgoing{http.MethodPut, contentOf(draft, file.path), body, file.size, "application/octet-stream"})
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if err := json.NewDecoder(res.Body).Decode(&stored); err != nil {
			return errs.Wrap(errs.Unavailable, err, "%s answered what is no JSON", p.Server)
		}
		_, err = io.Copy(io.Discard, res.Body)
		return err
	})
	switch refused, ok := errors.AsType[*refusal](err); {
	case ok:
		return &refusal{refused.code, harmless(file.path) + ": " + refused.text, harmless(file.path) + ": " + refused.message}
	case err != nil && ctx.Err() == nil && p.changed(file):
		return errs.Wrap(errs.Conflict, err, "%s was changed while it was sent: push again", harmless(file.path))
	case err == nil && stored.SHA256 != file.sha256:
		return errs.New(errs.Conflict, "%s was changed while it was sent: push again", harmless(file.path))
	}
	return err
}

// changed reports whether a file has another size than it had when it was compared.
func (p *push) changed(file localFile) bool {
	info, err := p.folder.Stat(file.name())
	return err != nil || info.Size() != file.size
}

// renewal is how often a push renews its lock of the draft, which lives for five minutes.
const renewal = time.Minute

// renew renews the lock of a draft until ctx ends. That it cannot shows in the requests that need the lock.
func (p *push) renew(ctx context.Context, edit string) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = p.call(ctx, http.MethodPost, edit, nil, nil)
		}
	}
}
