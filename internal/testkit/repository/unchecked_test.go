package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/repository"
)

// withoutActor are the methods of services that check no permission, each with its reason. All
// others that a program may need without an actor are methods of the Unchecked of their package.
var withoutActor = map[string]string{
	"bundles.Column":            "has no context: describes a driver, whoever asks",
	"bundles.Known":             "has no context: describes a driver, whoever asks",
	"content/datasets.Function": "has no context: what it returns checks the actor",
	"domains.Info":              "has no context: describes a driver, whoever asks",
	"sessions.Authenticate":     "checks a session or token",
	"sessions.Login":            "checks a password",
}

// TestServicesCheckTheActor: a method of a service checks the actor before it passes the context on
// to anything else. It has found All and SetOwner of apps, which read first.
func TestServicesCheckTheActor(t *testing.T) {
	methods, unchecked := 0, []string{}
	all := services(t)
	for name, files := range all {
		folder, service := path.Split(name)
		if service == "Service" {
			name = strings.TrimSuffix(folder, "/")
		}
		p := newActorCheck(service, files, all["internal/drafts/Service"]...)
		for _, m := range p.methods {
			if !m.Name.IsExported() || m.Name.Name == "Unchecked" {
				continue
			}
			if methods++; !p.checks(m) {
				unchecked = append(unchecked, name+"."+m.Name.Name)
			}
		}
	}
	is.New(t).True(methods > 100) // the sources were found
	slices.Sort(unchecked)
	for _, name := range unchecked {
		if withoutActor[name] == "" {
			t.Errorf("%s does not begin with actor.From or actor.Allowed: let it, or move it to Unchecked", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(withoutActor)) {
		if !slices.Contains(unchecked, name) {
			t.Errorf("%s is in withoutActor, but it checks the actor or does not exist", name)
		}
	}
}

func TestActorCheckNoticesUncheckedMethods(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
		func (s *Service) From(ctx context.Context) error { a, err := actor.From(ctx); if err != nil { return err }; return s.store.Get(ctx, a.Tenant) }
		func (s *Service) Allowed(ctx context.Context) error { if _, err := actor.Allowed(ctx, actor.Superuser); err != nil { return err }; return nil }
		func (s *Service) ByMethod(ctx context.Context) error { return s.From(ctx) }
		func (s *Service) ByFunction(ctx context.Context) error { return find(ctx) }
		func (s *Service) Iterator(ctx context.Context) iter.Seq[int] { return func(yield func(int) bool) { if _, err := actor.From(ctx); err != nil { return } } }
		func (s *Service) Kept(ctx context.Context) error { var err error; s.a, err = actor.From(ctx); if err == nil { err = s.store.Get(ctx) }; return err }
		func (s *Service) Given(a actor.Actor) bool { return a.Superuser }
		func find(ctx context.Context) error { _, err := actor.From(ctx); return err }

		func (s *Service) Blank(ctx context.Context) error { _, _ = actor.From(ctx); return s.store.Get(ctx, "acme") }
		func (s *Service) NoResult(ctx context.Context) error { actor.From(ctx); return s.store.Get(ctx, "acme") }
		func (s *Service) Overwritten(ctx context.Context) error { a, err := actor.From(ctx); b, err := s.store.Get(ctx, a.Tenant); return err }
		func (s *Service) NoResultOfMethod(ctx context.Context) error { s.From(ctx); return s.store.Get(ctx, "acme") }
		func (s *Service) AnyTenant(ctx context.Context, tenant string) error { if _, err := actor.From(ctx); err != nil { return err }; return s.store.Get(ctx, tenant) }
		func (s *Service) GivenWithContext(ctx context.Context, a actor.Actor) error { return s.store.Get(ctx, a.Tenant) }
		func (s *Service) Nothing(ctx context.Context) error { return nil }
		func (s *Service) NoContext() entity.Type { return entity.Type{} }
		func (s *Service) Store(ctx context.Context, tenant string) error { return s.store.Get(ctx, tenant) }
		func (s *Service) Late(ctx context.Context) error { s.store.Delete(ctx, "acme"); _, err := actor.From(ctx); return err }
		func (s *Service) Loop(ctx context.Context) error { return s.Loop(ctx) }
		func (s *Service) OtherMethod(ctx context.Context) error { return s.store.From(ctx) }
		func (s *Service) Branch(ctx context.Context, all bool) error { if all { actor.From(ctx) }; return s.store.Get(ctx) }
		func (s *Service) BranchOfTwo(ctx context.Context, all bool) error { if all { actor.From(ctx) } else { s.store.Get(ctx) }; return nil }
		func (s *Service) EarlyBranch(ctx context.Context, all bool) error { if all { s.store.Get(ctx) }; _, err := actor.From(ctx); return err }
		func (s *Service) Case(ctx context.Context, all bool) error { switch { case all: actor.From(ctx) }; return nil }
		func (o *Other) From(ctx context.Context) error { _, err := actor.From(ctx); return err }
		func (s *Service) hidden(ctx context.Context) error { return nil }
	`, parser.SkipObjectResolution)
	is.New(t).NoErr(err)
	p := newActorCheck("Service", []*ast.File{f})
	var checked []string
	for _, m := range p.methods {
		if p.checks(m) {
			checked = append(checked, m.Name.Name)
		}
	}
	is.New(t).Equal(checked, []string{"From", "Allowed", "ByMethod", "ByFunction", "Iterator", "Kept", "Given"})
}

// services returns the files of the package of each service of App, by the package's folder and the
// name of the service's type.
func services(t *testing.T) map[string][]*ast.File {
	t.Helper()
	files := map[string][]*ast.File{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[tenantcontent.App]()) {
		if !f.IsExported() || f.Type.Kind() != reflect.Pointer {
			continue
		}
		if folder, ours := strings.CutPrefix(f.Type.Elem().PkgPath(), repository.Module+"/"); ours {
			files[folder+"/"+f.Type.Elem().Name()] = nil
		}
	}
	is.New(t).Equal(len(files), 20)
	files["internal/drafts/Service"] = nil // its Service and Reader are embedded by those of some nouns
	for _, f := range repository.Sources(t) {
		for name := range files {
			if path.Dir(name) == f.Folder && !f.Test {
				files[name] = append(files[name], f.AST)
			}
		}
	}
	return files
}

// actorCheck has the functions of one package and the methods of its Service.
type actorCheck struct {
	// by name; those of the Service begin with a dot, those of drafts.Rules and Presenter with the
	// type
	functions map[string]*ast.FuncDecl
	methods   []*ast.FuncDecl
}

func newActorCheck(service string, files []*ast.File, drafts ...*ast.File) actorCheck {
	p := actorCheck{functions: map[string]*ast.FuncDecl{}}
	for _, f := range drafts {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil &&
				slices.Contains([]string{"Rules", "Presenter", "Service", "Reader"}, receiver(fn)) {
				p.functions[receiver(fn)+"."+fn.Name.Name] = fn
			}
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			switch fn, ok := d.(*ast.FuncDecl); {
			case !ok:
			case fn.Recv == nil:
				p.functions[fn.Name.Name] = fn
			case receiver(fn) == service, receiver(fn) == "Reader":
				p.functions["."+fn.Name.Name] = fn
				p.methods = append(p.methods, fn)
			}
		}
	}
	return p
}

// receiver returns the type of a method's receiver.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// checks reports whether a function checks an actor. Either it has an actor as parameter and no
// context. Or it first passes its context to actor.From, actor.Allowed, or another function that
// checks, and handles the error at once. It must not have a parameter tenant, because the tenant is
// the actor's.
func (p actorCheck) checks(fn *ast.FuncDecl, callers ...*ast.FuncDecl) bool {
	if slices.Contains(callers, fn) {
		return false
	}
	given, withContext := false, false
	for _, param := range fn.Type.Params.List {
		given = given || repository.Selects(param.Type, "actor", "Actor")
		withContext = withContext || repository.Selects(param.Type, "context", "Context")
		if slices.ContainsFunc(param.Names, func(name *ast.Ident) bool { return name.Name == "tenant" }) {
			return false
		}
	}
	if given && !withContext {
		return true
	}
	body := unrecorded(fn.Body)
	first, always := firstWithContext(body)
	if !always || !usesError(body, first) {
		return false
	}
	if repository.Selects(first.Fun, "actor", "From") || repository.Selects(first.Fun, "actor", "Allowed") {
		return true
	}
	var called *ast.FuncDecl
	switch f := first.Fun.(type) {
	case *ast.Ident:
		called = p.functions[f.Name]
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && fn.Recv != nil && len(fn.Recv.List[0].Names) == 1 &&
			x.Name == fn.Recv.List[0].Names[0].Name {
			called = p.functions["."+f.Sel.Name]
		}
		if t := ofDrafts(f.X); t != "" {
			called = p.functions[t+"."+f.Sel.Name]
		}
	}
	return called != nil && p.checks(called, append(callers, fn)...)
}

// unrecorded returns a body without the statement that records the call of the function itself, if
// that is the first, or the second after the one that names what is recorded: entity.Record asks
// for the actor.
func unrecorded(body *ast.BlockStmt) *ast.BlockStmt {
	for i, statement := range body.List[:min(2, len(body.List))] {
		guard, ok := statement.(*ast.IfStmt)
		if !ok {
			continue
		}
		if call, ok := guard.Cond.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Wanted" {
				return &ast.BlockStmt{List: body.List[i+1:]}
			}
		}
	}
	return body
}

// ofDrafts returns the type of an expression that is the drafts.Rules or Presenter of a service, or
// of a method in their package.
func ofDrafts(e ast.Expr) string {
	name := ""
	switch x := e.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	return map[string]string{
		"r":         "Rules",
		"rules":     "Rules",
		"p":         "Presenter",
		"presenter": "Presenter",
		"common":    "Service",
		"reader":    "Reader",
	}[name]
}

// usesError reports whether the last result of a call, an error, is returned, or assigned and used
// in the same or the next statement.
func usesError(body *ast.BlockStmt, call *ast.CallExpr) (used bool) {
	var named string
	assigns := func(s ast.Stmt) bool { // assigns the results of call, the last one to named
		a, ok := s.(*ast.AssignStmt)
		if !ok || len(a.Rhs) != 1 || a.Rhs[0] != call {
			return false
		}
		last, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
		if ok {
			named = last.Name
		}
		return ok && named != "_"
	}
	reads := func(n ast.Node) (found bool) {
		if n == nil {
			return false
		}
		ast.Inspect(n, func(n ast.Node) bool {
			x, ok := n.(*ast.Ident)
			found = found || ok && x.Name == named
			return true
		})
		return found
	}
	statements := func(list []ast.Stmt) {
		for i, s := range list[:max(len(list)-1, 0)] {
			if !assigns(s) {
				continue
			}
			switch next := list[i+1].(type) {
			case *ast.IfStmt:
				used = used || reads(next.Cond) && (next.Init == nil || !overwrites(next.Init, named))
			case *ast.ReturnStmt:
				used = used || reads(next)
			case *ast.SwitchStmt:
				used = used || reads(next)
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ReturnStmt:
			used = used || slices.Contains(n.Results, ast.Expr(call))
		case *ast.IfStmt:
			used = used || n.Init != nil && assigns(n.Init) && reads(n.Cond)
		case *ast.BlockStmt:
			statements(n.List)
		case *ast.CaseClause:
			statements(n.Body)
		}
		return true
	})
	return used
}

// overwrites reports whether a statement assigns to a name.
func overwrites(s ast.Stmt, name string) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool {
		x, ok := e.(*ast.Ident)
		return ok && x.Name == name
	})
}

// firstWithContext returns the first call with the argument ctx, or nil, and whether it is always
// made, in no branch and no loop.
func firstWithContext(body *ast.BlockStmt) (first *ast.CallExpr, always bool) {
	var path []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		call, ok := n.(*ast.CallExpr)
		if first == nil && ok && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
			x, ok := arg.(*ast.Ident)
			return ok && x.Name == "ctx"
		}) {
			first, always = call, true
			below := append(path[min(1, len(path)):len(path):len(path)], n)
			for i, parent := range path {
				switch parent := parent.(type) {
				case *ast.IfStmt:
					always = always && below[i] != parent.Body && below[i] != parent.Else
				case *ast.CaseClause, *ast.CommClause, *ast.ForStmt, *ast.RangeStmt:
					always = false
				}
			}
		}
		path = append(path, n)
		return true
	})
	return first, always
}
