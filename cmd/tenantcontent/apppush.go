package main

import (
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

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/libraries"
)

type appPushCommand struct {
	Folder string `arg:"" help:"Folder with the files of the app." placeholder:"FOLDER"`
	App    string `help:"Id or owner:slug of the app (default: the one that the folder was pushed to; at first a new one)." placeholder:"APP"`
	Name   string `help:"Name of a new app (default: that of the folder)." placeholder:"NAME"`
	Type   string `default:"report" enum:"report,app" help:"Type of a new app: report, or app, which needs a license." placeholder:"TYPE"`
	Draft  bool   `help:"Push into the draft of the app and leave it open: publish nothing."`
	Delete bool   `help:"Remove the files that are only on the server. Without it they are listed and stay."`
	Force  bool   `help:"Take over the draft that somebody else edits, and publish over changes that were made to the app since it began."`
}

// push is one run of the command.
type push struct {
	*appPushCommand
	*appCommands
	folder *appFolder
	local  []localFile // ordered by path
	out    *outcome
	shown  *progress
}

// comparison is the server's answer to _compare.
type comparison struct {
	ID           string   `json:"id"`
	EditingID    *string  `json:"editingId"`
	DraftID      *string  `json:"draftId"`
	Missing      []string `json:"missing"`
	Differs      []string `json:"differs"`
	Extra        []string `json:"extra"`
	MaxFileBytes int64    `json:"maxFileBytes"`
}

// Run sends what has changed to the draft of the app and publishes it, so that viewers never see a half of it. A push that ends
// early leaves the draft open, and the next one goes on with it.
func (p *appPushCommand) Run(ctx context.Context, a *appCommands, t terminal) error {
	f, err := openFolder(p.Folder)
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
	App       string   `json:"app"`
	Draft     *string  `json:"draft"` // that is open
	Published bool     `json:"published"`
	New       []string `json:"new"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Kept      []string `json:"onlyOnServer"`
	Unchanged int      `json:"unchanged"`
}

func (r pushed) text(p *push) string {
	var b strings.Builder
	if len(r.Kept) > 0 {
		fmt.Fprintf(&b, "Only on the server, and kept (--delete removes them):%s\n", listedPaths(r.Kept))
	}
	counts := fmt.Sprintf("%d new, %d changed, %d removed, %d unchanged", len(r.New), len(r.Changed), len(r.Removed), r.Unchanged)
	switch {
	case r.Published:
		fmt.Fprintf(&b, "Published the app %s: %s.", harmless(r.App), counts)
	case p.Draft:
		fmt.Fprintf(&b, "Pushed into the draft %s of the app %s: %s.\nTo publish it: tenantcontent app push %s, or POST %s%s",
			harmless(*r.Draft), harmless(r.App), counts, harmless(p.Folder), strings.TrimRight(p.Server, "/"), harmless(hal.Href("apps", r.App, "draft", "_commit")))
	default:
		fmt.Fprintf(&b, "Nothing to push to the app %s: %s.", harmless(r.App), counts)
		if r.Draft != nil {
			fmt.Fprintf(&b, "\nIt has a draft, %s, which stays as it is.", harmless(*r.Draft))
		}
	}
	return b.String()
}

func (p *push) run(ctx context.Context, id string) (result pushed, err error) {
	if p.local, err = p.folder.files(ctx); err != nil {
		return result, err
	}
	if len(p.local) == 0 {
		return result, errs.New(errs.Invalid, "%s has no files to push", p.Folder)
	}
	p.shown.begin("comparing", 0)
	if id == "" {
		if id, err = p.create(ctx); err != nil {
			return result, err
		}
	}
	c, err := p.compare(ctx, id)
	if err != nil {
		return result, p.folder.unknown(err)
	}
	if err := p.folder.check(p.App, c.ID, c.EditingID); err != nil {
		return result, err
	}
	todo, err := p.plan(c)
	if err != nil {
		return result, err
	}
	if todo.empty() && !p.Draft {
		return todo.result(c.ID, c.DraftID), p.synchronized(c.ID, p.folder.state.Draft)
	}
	return p.edit(ctx, c)
}

// create makes a new app, which the folder remembers from then on.
func (p *push) create(ctx context.Context) (string, error) {
	name := p.Name
	if name == "" {
		whole, err := filepath.Abs(p.Folder)
		if err != nil {
			return "", errs.Wrap(errs.Invalid, err, "cannot read the folder %s: %v", p.Folder, err)
		}
		name = filepath.Base(whole)
	}
	var app struct{ ID string }
	if err := p.call(ctx, http.MethodPost, hal.Href("apps"), map[string]string{"type": p.Type, "name": name}, &app); err != nil {
		return "", err
	}
	return app.ID, p.remember(app.ID, func(*state) {})
}

// remember changes the state of the folder.
func (p *push) remember(app string, change func(*state)) error {
	s := p.folder.state
	server, err := p.address()
	if err != nil {
		return err
	}
	s.Server, s.App = server, app
	change(&s)
	if same := p.folder.state; same.Server == s.Server && same.App == s.App && same.Draft == s.Draft && maps.Equal(same.Files, s.Files) {
		return nil
	}
	return p.folder.remember(s)
}

// synchronized notes that the folder and the published app have the same files, and which draft pushes have begun.
func (p *push) synchronized(app, draft string) error {
	files := make(map[string]string, len(p.local))
	for _, file := range p.local {
		files[file.path] = file.sha256
	}
	return p.remember(app, func(s *state) { s.Draft, s.Files = draft, files })
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
			whole = c
			continue
		}
		whole.Missing, whole.Differs = append(whole.Missing, c.Missing...), append(whole.Differs, c.Differs...)
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
	removed, kept  []string
	unchanged      int
}

func (t plan) empty() bool { return len(t.added)+len(t.changed)+len(t.removed) == 0 }

func (t plan) result(app string, draft *string) pushed {
	paths := func(files []localFile) []string {
		all := make([]string, len(files))
		for i, file := range files {
			all[i] = file.path
		}
		return all
	}
	list := func(all []string) []string { return append([]string{}, all...) }
	return pushed{App: app, Draft: draft, New: paths(t.added), Changed: paths(t.changed), Removed: list(t.removed), Kept: list(t.kept), Unchanged: t.unchanged}
}

// plan returns what makes an app like the folder. Its error names the files that the server would refuse.
func (p *push) plan(c comparison) (todo plan, err error) {
	missing, differs := map[string]bool{}, map[string]bool{}
	for _, path := range c.Missing {
		missing[path] = true
	}
	for _, path := range c.Differs {
		differs[path] = true
	}
	wrong := &problems{}
	for _, file := range p.local {
		switch {
		case missing[file.path]:
			todo.added = append(todo.added, file)
		case differs[file.path]:
			todo.changed = append(todo.changed, file)
		default:
			todo.unchanged++
			continue
		}
		if file.size > c.MaxFileBytes {
			wrong.add(file.path, "has %s; a file of an app must have at most %s", size(file.size).about(), size(c.MaxFileBytes).about())
		}
	}
	for _, path := range c.Extra {
		switch {
		case p.folder.ignores(path):
		case p.Delete:
			todo.removed = append(todo.removed, path)
		default:
			todo.kept = append(todo.kept, path)
		}
	}
	clashes(p.local, todo.kept, wrong)
	return todo, wrong.err("nothing was sent, as the server would refuse these files")
}

// edit begins a draft or goes on with one, makes it like the folder, and publishes it unless it is to stay open. c is how the
// published app differs.
func (p *push) edit(ctx context.Context, c comparison) (result pushed, err error) {
	if d := c.DraftID; d != nil && *d != p.folder.state.Draft && !p.Draft && !p.Force {
		return result, errs.New(errs.Conflict, "the app has a draft, %s, that no push of this folder has begun, and with it what somebody has not published: "+
			"push into it with --draft, publish it together with these files with --force, or wait until it is published or discarded", harmless(*d))
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
	if err := p.remember(c.ID, func(s *state) { s.Draft = draft.ID }); err != nil {
		return result, err
	}
	renewing, end := context.WithCancel(ctx)
	defer end()
	go p.renew(renewing, edit)

	todo, err := p.draft(ctx, draft.ID)
	if err != nil {
		return result, p.failed(err)
	}
	result = todo.result(c.ID, &draft.ID)
	if p.Draft {
		return result, nil
	}
	p.shown.begin("publishing", 0)
	if err := p.call(ctx, http.MethodPost, hal.Href("apps", c.ID, "draft", "_commit"), map[string]bool{"force": p.Force}, nil); err != nil {
		if ctx.Err() != nil {
			return result, interrupted("the app may be published: the next push shows whether it is")
		}
		if errs.CodeOf(err) == errs.Unavailable {
			return result, errs.Wrap(errs.Unavailable, err, "the server did not answer whether it has published: the next push shows it")
		}
		return result, p.failed(err)
	}
	result.Published, result.Draft = true, nil
	return result, p.synchronized(c.ID, "")
}

// draft makes a draft like the folder.
func (p *push) draft(ctx context.Context, id string) (plan, error) {
	c, err := p.compare(ctx, id)
	if err != nil {
		return plan{}, err
	}
	todo, err := p.plan(c)
	if err != nil {
		return plan{}, err
	}
	var bytes int64
	for _, file := range slices.Concat(todo.added, todo.changed) {
		bytes += file.size
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
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == http.StatusConflict && !p.Force {
		hint += " --force takes over the draft, and publishes over changes."
	}
	return errs.New(errs.CodeOf(err), "%v\n%s", err, hint)
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
		opened, err := p.folder.Open(filepath.FromSlash(file.path))
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
		return &refusal{refused.code, harmless(file.path) + ": " + refused.text}
	case err != nil && ctx.Err() == nil && p.changed(file):
		return errs.Wrap(errs.Conflict, err, "%s was changed while it was sent: push again", harmless(file.path))
	case err == nil && stored.SHA256 != file.sha256:
		return errs.New(errs.Conflict, "%s was changed while it was sent: push again", harmless(file.path))
	}
	return err
}

// changed reports whether a file has another size than it had when it was compared.
func (p *push) changed(file localFile) bool {
	info, err := p.folder.Stat(filepath.FromSlash(file.path))
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
