package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// The files of this program in a folder. All their names begin with ownFiles.
const (
	stateFile  = ".tenantcontent.json"
	ignoreFile = ".tenantcontentignore"
	ownFiles   = ".tenantcontent-"
	ownFolder  = ".tenantcontent" // of the command dev
)

// ignoredFiles are the patterns of ignored files, unless ignoreFile includes them.
var ignoredFiles = []string{"node_modules/", ".env", ".env.*", ".DS_Store", "._*", "Thumbs.db", "desktop.ini"}

// state is the content of the stateFile of a folder.
type state struct {
	Server string `json:"server"`           // the only address to push to and pull from
	Tenant string `json:"tenant,omitempty"` // of the app; "" in a file of an earlier version
	App    string `json:"app"`              // id
	Draft  string `json:"draft,omitempty"`  // id of the draft that pushes have begun and not published
	// SHA-256 by path of the app's files that were here at the last push or pull
	Files map[string]string `json:"files,omitempty"`
	Sent  []string          `json:"sent,omitempty"` // SHA-256 of files sent to drafts and not published
}

// known reports whether a file of the app, with its SHA-256, was pushed or pulled by this folder.
// If the server has no digest, the one of the folder is assumed.
func (s state) known(path, digest string) bool {
	had, ok := s.Files[path]
	return ok && (digest == had || digest == "") || slices.Contains(s.Sent, digest)
}

// appFolder is a folder with the files of an app. Paths and symbolic links do not leave it.
type appFolder struct {
	*os.Root
	patterns gitignore.Matcher
	stateIn  string // file of the state; "": only in memory
	state    state
	ignored  []string // files and folders that the last call of files has ignored by patterns
}

// openFolder opens a folder and reads its ignore file. It reads its state from the file stateIn; if
// that is "", the state is only in memory.
func openFolder(name, stateIn string) (*appFolder, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "cannot read the folder %s: %v", name, err)
	}
	f := &appFolder{Root: root, stateIn: stateIn}
	if err := errors.Join(f.readState(), f.readIgnored()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

func (f *appFolder) readState() error {
	if f.stateIn == "" {
		return nil
	}
	raw, err := f.ReadFile(f.stateIn)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &f.state)
	}
	if err == nil && (f.state.App == "" || f.state.Server == "") {
		err = errors.New("it names no app or no server")
	}
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot read %s: %v", f.at(f.stateIn), err)
	}
	return nil
}

// saveState writes the state file.
func (f *appFolder) saveState(s state) error {
	if f.stateIn == "" {
		f.state = s
		return nil
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temporary := ownFiles + "state"
	if err = f.WriteFile(temporary, append(raw, '\n'), 0o644); err == nil {
		err = f.Rename(temporary, f.stateIn)
	}
	if err != nil {
		return errs.Wrap(
			errs.Invalid, err, "cannot write %s, which is to remember the app %s: %v", f.at(f.stateIn),
			harmless(s.App), err,
		)
	}
	f.state = s
	return nil
}

func (f *appFolder) readIgnored() error {
	raw, err := f.ReadFile(ignoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errs.Wrap(errs.Invalid, err, "cannot read %s: %v", f.at(ignoreFile), err)
	}
	lines := append(slices.Clone(ignoredFiles), strings.Split(strings.TrimPrefix(string(raw), "\ufeff"), "\n")...)
	var patterns []gitignore.Pattern
	for _, line := range lines {
		if line = strings.TrimSuffix(line, "\r"); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, gitignore.ParsePattern(line, nil))
		}
	}
	f.patterns = gitignore.NewMatcher(patterns)
	return nil
}

// ignores reports whether pushes and pulls ignore a file.
func (f *appFolder) ignores(name string) bool {
	parts := strings.Split(name, "/")
	for i := range parts {
		if f.ignoresOne(parts[:i+1], i+1 < len(parts)) {
			return true
		}
	}
	return false
}

// ignoresOne is ignores for a file or folder in a folder that is not ignored.
func (f *appFolder) ignoresOne(parts []string, isFolder bool) bool {
	return reserved(parts[len(parts)-1]) || f.patterns.Match(parts, isFolder)
}

// reserved reports whether a name is one of this program or of Git, in any spelling that a file
// system may resolve to it. Files of an app must not be written there, because Git runs files in
// its folder.
func reserved(name string) bool {
	name, _, _ = strings.Cut(name, ":") // an alternate stream on Windows
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) { // which some file systems ignore
			return -1
		}
		return r
	}, name)
	name = fold.Text(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1" || name == ownFolder || name == stateFile || name == ignoreFile ||
		strings.HasPrefix(name, ownFiles)
}

// at returns the name of a file of the folder for people.
func (f *appFolder) at(name string) string {
	return harmless(filepath.Join(f.Name(), filepath.FromSlash(name)))
}

// localFile is a file of a folder.
type localFile struct {
	path   string // in the app, in Unicode's form NFC
	onDisk string // in the folder, if it differs: file systems of macOS have names in NFD
	size   int64
	sha256 string
}

// name returns the name of the file in the folder.
func (l localFile) name() string { return filepath.FromSlash(cmp.Or(l.onDisk, l.path)) }

// problems are errors of single files.
type problems struct {
	mu  sync.Mutex
	all []string
}

func (p *problems) add(name, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, harmless(name)+": "+fmt.Sprintf(format, args...))
}

// err returns the problems as one error, or nil.
func (p *problems) err(what string) error {
	if len(p.all) == 0 {
		return nil
	}
	return errs.New(errs.Invalid, "%s", p.text(what))
}

// text returns the problems below a heading.
func (p *problems) text(what string) string {
	const most = 20
	slices.Sort(p.all)
	lines := p.all
	if more := len(lines) - most; more > 0 {
		lines = append(slices.Clone(lines[:most]), fmt.Sprintf("and %d more", more))
	}
	return what + ":\n  " + strings.Join(lines, "\n  ")
}

// files returns the files of the folder that are not ignored, ordered by path, with their digests.
// Its error names all files that cannot be in an app.
func (f *appFolder) files(ctx context.Context) ([]localFile, error) {
	var all []localFile
	f.ignored = nil
	wrong := &problems{}
	err := fs.WalkDir(f.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case name == "." && err != nil:
			return errs.Wrap(errs.Invalid, err, "cannot read the folder %s: %v", f.Name(), err)
		case name == ".":
			return nil
		case f.ignoresOne(strings.Split(name, "/"), entry.IsDir()):
			if !reserved(entry.Name()) {
				f.ignored = append(f.ignored, name)
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil:
			wrong.add(name, "cannot be read: %v", cause(err))
			return nil
		case entry.IsDir():
			return nil
		}
		file := localFile{path: norm.NFC.String(name), onDisk: name}
		if says := unfit(file.path, entry.Type()); says != "" {
			wrong.add(name, "%s", says)
			return nil
		}
		all = append(all, file)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b localFile) int { return strings.Compare(a.path, b.path) })
	clashes(all, nil, nil, wrong)
	if err := f.digest(ctx, all, wrong); err != nil {
		return nil, err
	}
	return all, wrong.err("nothing was sent, as the app cannot have these files (" + ignoreFile + " leaves files out)")
}

// unfit returns why a file cannot be in an app, or "".
func unfit(name string, mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "is a symbolic link: put the file itself there"
	case !mode.IsRegular():
		return "is no plain file"
	}
	return errs.MessageOf(libraries.ValidPath(name))
}

// clashes adds problems for files whose paths differ only in case, or of which one is a folder of
// another one. It compares them with each other and with files that remain in the app: those that
// the folder had, and those of others.
func clashes(all []localFile, kept, others []string, wrong *problems) {
	files := make(map[string]string, len(all)+len(kept)+len(others))
	folders := map[string]string{}
	add := func(name, says string) {
		folded := fold.Text(name)
		if other, ok := files[folded]; ok {
			wrong.add(name, "cannot be beside %s, %s", harmless(other), says)
			return
		}
		if other, ok := folders[folded]; ok {
			wrong.add(name, "cannot be beside %s, %s", harmless(other), says)
		}
		for folder := path.Dir(folded); folder != "."; folder = path.Dir(folder) {
			if other, ok := files[folder]; ok {
				wrong.add(name, "cannot be beside %s, %s", harmless(other), says)
			}
			folders[folder] = name
		}
		files[folded] = name
	}
	for _, file := range all {
		add(file.path, "which differs in case alone")
	}
	for _, name := range kept {
		add(name, "which is only on the server: --delete removes it")
	}
	for _, name := range others {
		add(name, "which somebody else has added: --delete with --force removes it")
	}
}

// digest sets the sizes and digests of files.
func (f *appFolder) digest(ctx context.Context, all []localFile, wrong *problems) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := f.digestOne(&all[i]); err != nil {
				wrong.add(all[i].path, "cannot be read: %v", err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (f *appFolder) digestOne(file *localFile) (err error) {
	opened, err := f.Open(file.name())
	if err != nil {
		return cause(err)
	}
	defer func() { _ = opened.Close() }()
	sum := sha256.New()
	if file.size, err = io.Copy(sum, opened); err != nil {
		return cause(err)
	}
	file.sha256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// cause returns the error of a file without its path.
func cause(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}
