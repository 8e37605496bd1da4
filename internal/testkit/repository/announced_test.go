package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// silent are the methods of services that write and announce no change, each with its reason.
var silent = map[string]string{
	"apps/agents.Trigger":          "runs are no entities",
	"apps/agents.Runs":             "only reads: Trigger is a field of its filter",
	"domains.Authenticate":         "what a log-in notes of its domain is not shown",
	"comments.SetAllRead":          "what a user has read is no entity",
	"comments.SetRead":             "what a user has read is no entity",
	"principals.MarkFeedViewed":    "what a user has read is no entity",
	"sessions.EndProviderSessions": "sessions are no entities",
	"sessions.LogoutStored":        "sessions are no entities",
}

// TestServicesAnnounceWhatTheyWrite: a method of a service that writes to its store announces a
// change, or calls what does. It distinguishes methods by their names only.
func TestServicesAnnounceWhatTheyWrite(t *testing.T) {
	writing, found := 0, []string{}
	all := services(t)
	for name, files := range all {
		folder, service := path.Split(name)
		if folder == "internal/drafts/" {
			continue
		}
		if service == "Service" {
			name = strings.TrimSuffix(folder, "/")
		}
		p := newFeedCheck(files)
		if folder == "apps/" || folder == "assistants/" {
			p = newFeedCheck(slices.Concat(files, all["internal/drafts/Service"]))
		}
		for _, m := range methodsOf(files) {
			of := receiver(m)
			if slices.Contains([]string{"Hooks", "Type", "Types", "Workers"}, m.Name.Name) {
				continue // what they have is called after, or within, what was announced
			}
			if !m.Name.IsExported() || of != service && of != "Unchecked" && of != "Unchecked"+service {
				continue
			}
			if writes, announces := p.of(m); writes {
				if writing++; !announces {
					found = append(found, name+"."+m.Name.Name)
				}
			}
		}
	}
	is.New(t).True(writing > 80) // the walk found the code
	slices.Sort(found)
	for _, name := range found {
		if silent[name] == "" {
			t.Errorf("%s writes and announces no change: let it, as docs/changes.md says", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(silent)) {
		if !slices.Contains(found, name) {
			t.Errorf("%s is in silent, but it announces, does not write or does not exist", name)
		}
	}
}

func TestFeedCheckNoticesSilentMethods(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
		func (s *Service) Itself() error { if s.feed.Wanted(ctx, of) { return s.feed.Do(ctx, of, f) }; return `+
		`s.store.Delete(ctx) }
		func (s *Service) ByMethod() error { return s.o.Feed.In(ctx, nil, "acme", of, s.write) }
		func (s *Service) ByRegistry() error { s.store.Remove(ctx); return s.registry.Deleted(ctx, "acme") }
		func (s *Service) write() error { return s.o.Store.Shares().Put(ctx) }
		func (s *Service) Reads() error { return s.store.Get(ctx) }
		func (s *Service) Silent() error { return s.store.Insert(ctx) }
		func (s *Service) SilentByMethod() error { return s.run(s.write) }
		func (s *Service) run(f func() error) error { return f() }
	`, parser.SkipObjectResolution)
	is.New(t).NoErr(err)
	p := newFeedCheck([]*ast.File{f})
	var writing, quiet []string
	for _, m := range methodsOf([]*ast.File{f}) {
		writes, announces := p.of(m)
		switch {
		case !m.Name.IsExported() || !writes:
		case announces:
			writing = append(writing, m.Name.Name)
		default:
			quiet = append(quiet, m.Name.Name)
		}
	}
	is.New(t).Equal(writing, []string{"Itself", "ByMethod", "ByRegistry"})
	is.New(t).Equal(quiet, []string{"Silent", "SilentByMethod"})
}

func methodsOf(files []*ast.File) (all []*ast.FuncDecl) {
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Body != nil {
				all = append(all, fn)
			}
		}
	}
	return all
}

// feedCheck has the functions of some files by their names.
type feedCheck struct {
	functions map[string][]*ast.FuncDecl
	imports   map[string]bool // the last parts of their paths
}

func newFeedCheck(files []*ast.File) feedCheck {
	p := feedCheck{functions: map[string][]*ast.FuncDecl{}, imports: map[string]bool{}}
	for _, f := range files {
		for _, i := range f.Imports {
			p.imports[path.Base(strings.Trim(i.Path.Value, `"`))] = true
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				p.functions[fn.Name.Name] = append(p.functions[fn.Name.Name], fn)
			}
		}
	}
	return p
}

// writeVerbs begin the names of the methods of stores that write.
var writeVerbs = []string{
	"Insert", "Put", "Add", "Set", "Update", "Edit", "Delete", "Remove", "Rename", "Mark", "Decide", "Hide", "Import",
}

// fields are names of methods that are rather those of fields, and of constructors.
var fields = []string{"Hooks", "Key", "New", "Type", "Types", "Workers", "run"}

// of reports whether a function, or one that it names, writes to a store and announces a change.
func (p feedCheck) of(fn *ast.FuncDecl) (writes, announces bool) {
	seen := map[*ast.FuncDecl]bool{}
	var walk func(fn *ast.FuncDecl)
	walk = func(fn *ast.FuncDecl) {
		if seen[fn] {
			return
		}
		seen[fn] = true
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				name, of := n.Sel.Name, chain(n.X)
				switch {
				case of["store"]:
					if slices.ContainsFunc(writeVerbs, func(v string) bool { return strings.HasPrefix(name, v) }) {
						writes = true
					}
				case of["feed"] && name != "Was", name == "Record" && of["entity"],
					(of["registry"] || of["content"]) && (name == "Deleted" || strings.HasPrefix(name, "Reassign")):
					announces = true
				default:
					if of, ok := n.X.(*ast.Ident); ok && p.imports[of.Name] || slices.Contains(fields, name) {
						break
					}
					for _, called := range p.functions[name] {
						walk(called)
					}
				}
			case *ast.Ident:
				for _, called := range p.functions[n.Name] {
					if called.Recv == nil {
						walk(called)
					}
				}
			}
			return true
		})
	}
	walk(fn)
	return writes, announces
}

// chain returns the names in an expression such as s.o.Store.Shares(), in lower case.
func chain(e ast.Expr) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[strings.ToLower(id.Name)] = true
		}
		return true
	})
	return names
}
