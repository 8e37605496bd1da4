package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/paging"
)

type appPullCommand struct {
	Folder string `arg:"" optional:"" default:"." help:"Folder to write to; it is made if it is not there." placeholder:"FOLDER"`
	App    string `help:"Id or owner:slug of the app (default: the one of the folder)." placeholder:"APP"`
	Delete bool   `help:"Remove the files that the app no longer has, if they were not changed here. Without it they are listed and stay."`
	Force  bool   `help:"Overwrite files that were changed here."`
}

// pull is one run of the command.
type pull struct {
	*appPullCommand
	*appCommands
	folder *appFolder
	out    *outcome
	shown  *progress
}

// serverFile is a file of an app.
type serverFile struct {
	Path   string  `json:"path"`
	Size   int64   `json:"size"`
	SHA256 *string `json:"sha256"` // nil for a file from before digests were stored
	part   string  // name of its temporary file in the folder
}

// pulled is the result of a pull.
type pulled struct {
	Tenant    string   `json:"tenant"`
	App       string   `json:"app"`
	New       []string `json:"new"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Kept      []string `json:"onlyHere"`
	Mine      []string `json:"changedHere"`
	Unchanged int      `json:"unchanged"`
}

func (r pulled) text() string {
	kept := ""
	if len(r.Kept) > 0 {
		kept = fmt.Sprintf(
			"The app has no more, and this folder keeps (--delete removes them):%s\n", listedPaths(r.Kept),
		)
	}
	if len(r.Mine) > 0 {
		kept += fmt.Sprintf("Changed here alone, and kept (app push sends them):%s\n", listedPaths(r.Mine))
	}
	return fmt.Sprintf(
		"%sPulled the app %s: %d new, %d changed, %d removed, %d unchanged.", kept,
		harmless(r.App)+ofTenant(r.Tenant), len(r.New), len(r.Changed), len(r.Removed), r.Unchanged,
	)
}

// Run reads all changed files into temporary files and renames them at the end, so that a pull that
// fails changes nothing.
func (p *appPullCommand) Run(ctx context.Context, a *appCommands, t terminal) error {
	_, missing := os.Stat(p.Folder)
	if err := os.MkdirAll(p.Folder, 0o755); err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot write to the folder %s: %v", p.Folder, err)
	}
	f, err := openFolder(p.Folder, stateFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	run := &pull{appPullCommand: p, appCommands: a, folder: f, out: &outcome{t: t, quiet: a.JSON}, shown: t.progress()}
	run.out.shown = run.shown != nil
	result, err := run.run(ctx)
	run.shown.finish()
	run.out.flush()
	if err != nil {
		if missing != nil {
			_ = os.Remove(p.Folder) // fails if it is not empty
		}
		return stopped(ctx, err, "nothing was written")
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return a.answer(t, raw, result.text())
}

func (p *pull) run(ctx context.Context) (result pulled, err error) {
	id, err := p.target(p.folder, p.App)
	if err != nil {
		return result, err
	}
	if id == "" {
		return result, errs.New(errs.Invalid, "%s is of no app yet: name one with --app", p.Folder)
	}
	p.shown.begin("comparing", 0)
	var app struct {
		Tenant    string  `json:"tenant"`
		ID        string  `json:"id"`
		EditingID *string `json:"editingId"`
	}
	if err := p.call(ctx, http.MethodGet, hal.Href("apps", id), nil, &app); err != nil {
		return result, p.folder.unknown(p.App, err)
	}
	if err := p.folder.check(p.App, app.Tenant, app.ID, app.EditingID); err != nil {
		return result, err
	}
	all, err := p.files(ctx, app.ID)
	if err != nil {
		return result, err
	}
	todo, err := p.plan(all)
	if err != nil {
		return result, err
	}
	if err := p.fetch(ctx, app.ID, &todo); err != nil {
		return result, err
	}
	if err := p.finish(app.Tenant, app.ID, all, todo); err != nil {
		return result, err
	}
	return todo.result(app.Tenant, app.ID), nil
}

// files returns the files of an app that are not ignored, ordered by path.
func (p *pull) files(ctx context.Context, app string) ([]*serverFile, error) {
	var all []*serverFile
	for query := (url.Values{"limit": {strconv.Itoa(paging.MaxLimit)}}).Encode(); query != ""; {
		var page struct {
			Links struct {
				Next struct{ Href string } `json:"next"`
			} `json:"_links"`
			Embedded struct {
				Files []*serverFile `json:"inf:content"`
			} `json:"_embedded"`
		}
		if err := p.call(ctx, http.MethodGet, hal.Href("apps", app, "contents")+"?"+query, nil, &page); err != nil {
			return nil, err
		}
		next, err := url.Parse(page.Links.Next.Href) // without its host
		if err != nil || next.RawQuery == query {
			return nil, errs.New(errs.Unavailable, "%s answered a list without end", p.Server)
		}
		query = next.RawQuery
		for _, f := range page.Embedded.Files {
			if f != nil && !p.folder.ignores(f.Path) {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// pullPlan is what a pull will do.
type pullPlan struct {
	added, changed []*serverFile
	removed, kept  []string
	mine           []string // changed only here
	// SHA-256 by path of files that are kept, unchanged here, and no longer in the app
	gone      map[string]string
	unchanged int
}

func (t pullPlan) result(tenant, app string) pulled {
	paths := func(files []*serverFile) []string {
		all := make([]string, len(files))
		for i, f := range files {
			all[i] = f.Path
		}
		return all
	}
	list := func(all []string) []string { return append([]string{}, all...) }
	return pulled{
		tenant, app, paths(t.added), paths(t.changed), list(t.removed), list(t.kept), list(t.mine), t.unchanged,
	}
}

// plan returns the changes that make the folder equal to the app. Its error names the files that a
// folder cannot contain, or those that were changed here.
func (p *pull) plan(all []*serverFile) (todo pullPlan, err error) {
	wrong, mine, there := &problems{}, &problems{}, map[string]bool{}
	todo.gone = map[string]string{}
	for _, f := range all {
		there[f.Path] = true
		if says := p.unfit(f.Path); says != "" {
			wrong.add(f.Path, "%s", says)
			continue
		}
		here := localFile{path: f.Path}
		switch err := p.folder.digestOne(&here); {
		case errors.Is(err, fs.ErrNotExist):
			todo.added = append(todo.added, f)
		case err != nil:
			wrong.add(f.Path, "cannot be read: %v", err)
		case f.SHA256 != nil && *f.SHA256 == here.sha256:
			todo.unchanged++
		default:
			was, had := p.folder.state.Files[f.Path]
			switch {
			case p.Force || had && here.sha256 == was:
				todo.changed = append(todo.changed, f)
			case f.SHA256 != nil && p.folder.state.known(f.Path, *f.SHA256):
				todo.mine = append(todo.mine, f.Path)
			case had:
				mine.add(f.Path, "was changed here, and in the app")
			default:
				mine.add(f.Path, "is here already and differs")
			}
		}
	}
	for name, was := range p.folder.state.Files {
		if there[name] || p.folder.ignores(name) || p.unfit(name) != "" {
			continue
		}
		here := localFile{path: name}
		switch err := p.folder.digestOne(&here); {
		case err != nil: // it does not exist
		case p.Delete && (here.sha256 == was || p.Force):
			todo.removed = append(todo.removed, name)
		default:
			todo.kept = append(todo.kept, name)
			if here.sha256 == was {
				todo.gone[name] = was
			}
		}
	}
	slices.Sort(todo.removed)
	slices.Sort(todo.kept)
	if err := wrong.err("nothing was written, as this folder cannot hold these files of the app"); err != nil {
		return todo, err
	}
	if len(mine.all) > 0 {
		return todo, errs.New(
			errs.Conflict, "%s",
			mine.text("nothing was written, as these files differ from the app: keep a copy of yours, and "+
				"overwrite them with --force"),
		)
	}
	return todo, nil
}

// unfit returns why a file of an app cannot be written to the folder, or "".
func (p *pull) unfit(name string) string {
	if err := libraries.ValidPath(name); err != nil {
		return errs.MessageOf(err)
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || len(name) > 1 && name[1] == ':' {
		return "would be outside of the folder, or is the name of a device"
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if info, err := p.folder.Lstat(filepath.FromSlash(folder)); err == nil && !info.IsDir() {
			return harmless(folder) + " is no folder here"
		}
	}
	info, err := p.folder.Lstat(filepath.FromSlash(name))
	switch {
	case err != nil: // it does not exist
		return ""
	case info.IsDir():
		return "is a folder here"
	case !info.Mode().IsRegular():
		return "is no plain file here"
	}
	return ""
}

// pulling is the folder of temporary files, in the folder. The next pull removes it if a pull was
// killed.
const pulling = ownFiles + "pull"

// fetch downloads the files of a plan to temporary files.
func (p *pull) fetch(ctx context.Context, app string, todo *pullPlan) (err error) {
	all := slices.Concat(todo.added, todo.changed)
	if len(all) == 0 {
		return nil
	}
	if err := errors.Join(p.folder.RemoveAll(pulling), p.folder.Mkdir(pulling, 0o755)); err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot write to the folder %s: %v", p.Folder, err)
	}
	defer func() {
		if err != nil {
			_ = p.folder.RemoveAll(pulling)
		}
	}()
	var bytes int64
	for i, f := range all {
		f.part = filepath.Join(pulling, strconv.Itoa(i))
		bytes += f.Size
	}
	p.shown.begin("receiving", bytes)
	return parallel(ctx, all, func(ctx context.Context, f *serverFile) error {
		return again(ctx, func() error { return p.download(ctx, app, f) })
	})
}

// download downloads a file to its temporary file.
func (p *pull) download(ctx context.Context, app string, f *serverFile) error {
	res, err := p.send(ctx, outgoing{method: http.MethodGet, path: contentOf(app, f.Path)})
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == http.StatusNotFound {
		return errs.Wrap(errs.Conflict, err, "%s was removed from the app meanwhile: pull again", harmless(f.Path))
	}
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	part, err := p.folder.Create(f.part)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot write to the folder %s: %v", p.Folder, cause(err))
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(part, sum, p.shown), res.Body)
	if err = errors.Join(err, part.Close()); err != nil {
		return err
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if f.SHA256 != nil && *f.SHA256 != digest {
		return errs.New(errs.Conflict, "%s was changed in the app meanwhile: pull again", harmless(f.Path))
	}
	f.SHA256 = &digest
	return nil
}

// finish renames the temporary files, removes the files that the app no longer has, and saves the
// state of the folder.
func (p *pull) finish(tenant, app string, all []*serverFile, todo pullPlan) error {
	failed := func(name string, err error) error {
		return errs.Wrap(
			errs.Invalid, err, "cannot write %s: %v\nA part of the app is written: pull again.",
			p.folder.at(name), cause(err),
		)
	}
	for _, some := range []struct {
		sign  string
		files []*serverFile
	}{{"+", todo.added}, {"~", todo.changed}} {
		for _, f := range some.files {
			name := filepath.FromSlash(f.Path)
			err := p.folder.MkdirAll(filepath.Dir(name), 0o755)
			if err == nil {
				err = p.folder.Rename(f.part, name)
			}
			if err != nil {
				return failed(f.Path, err)
			}
			p.out.file(some.sign, f.Path)
		}
	}
	for _, name := range todo.removed {
		if err := p.folder.Remove(filepath.FromSlash(name)); err != nil {
			return failed(name, err)
		}
		p.out.file("-", name)
	}
	if err := p.folder.RemoveAll(pulling); err != nil {
		return failed(pulling, err)
	}
	server, err := p.address()
	if err != nil {
		return err
	}
	s := p.folder.state
	s.Server, s.Tenant, s.App, s.Files = server, tenant, app, todo.gone
	for _, f := range all {
		s.Files[f.Path] = *f.SHA256
	}
	return p.folder.saveState(s)
}
