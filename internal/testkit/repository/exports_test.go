package repository_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/repository"
)

// TestNoExportedVariables: packages export constants and functions instead of variables, which
// others could set. Variables for errors are allowed, as in the standard library. It has found
// bundles.Columns, comments.Parents and egress.Default.
func TestNoExportedVariables(t *testing.T) {
	for _, f := range repository.Sources(t) {
		if f.Test {
			continue
		}
		for _, name := range exportedVariables(f.AST) {
			t.Errorf("%s: the variable %s is exported: make it a constant or a function", f.Path, name)
		}
	}
}

// unnamed are the packages whose types the signatures of a package may contain without an alias:
// what the root builds and passes on.
var unnamed = map[string]string{
	"httpapi": "handlers scim scripts workspaces",
}

// TestNoInternalTypesInPublicPackages: an importer of a package can name all types of its exported
// identifiers.
func TestNoInternalTypesInPublicPackages(t *testing.T) {
	checked := map[string]bool{}
	for _, f := range repository.Sources(t) {
		if f.Test || strings.HasPrefix(f.Folder, "internal/") || strings.HasPrefix(f.Folder, "cmd/") {
			continue
		}
		checked[f.Folder] = true
		for _, use := range internalTypes(f.AST) {
			_, of, _ := strings.Cut(use, " has ")
			if inside, _, _ := strings.Cut(of, "."); slices.Contains(strings.Fields(unnamed[f.Folder]), inside) {
				continue
			}
			t.Errorf("%s: %s, which other modules cannot name", f.Path, use)
		}
	}
	is.New(t).True(len(checked) > 25) // the sources were found
}

func TestExportRulesBite(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
		import ("errors"; "m/internal/cache"; b "m/internal/bunx"; "m/public")
		var Bad = 1
		var ( good, Worse = 1, 2 ; ErrGood = errors.New("x") )
		const Good = 1

		func (t T) Method(c *cache.Counter) {}
		func (h hidden) Method(c cache.Counter) {}
		func Result() (a, b map[string][]b.Row) { var local cache.Counter; return nil, local }
		func hidden(cache.Counter) {}
		type T struct { Field func(cache.Counter); field cache.Counter; Public public.T; b.Embedded }
		type I interface { Do(b.Row); do(b.Row) }
		type Alias = cache.Counter
		type small struct { Field cache.Counter }
		type Generic[V cache.Counter] struct{}
		var Typed cache.Counter`, parser.SkipObjectResolution)
	is := is.New(t)
	is.NoErr(err)
	is.Equal(exportedVariables(f), []string{"Bad", "Worse", "Typed"})
	is.Equal(internalTypes(f), []string{
		"Method has cache.Counter", "Result has b.Row",
		"T.Field has cache.Counter", "T.Embedded has b.Embedded", "I.Do has b.Row",
		"Generic has cache.Counter", "Typed has cache.Counter",
	})
}

// exportedVariables returns a file's exported variables, except errors with their usual names.
func exportedVariables(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() && !strings.HasPrefix(name.Name, "Err") {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// internalTypes returns the positions at which the exported identifiers of a file have types of
// packages below internal.
func internalTypes(f *ast.File) (uses []string) {
	internal := map[string]bool{}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.Contains(imported, "/internal/") {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		internal[name] = true
	}
	look := func(where string, at ast.Node) {
		ast.Inspect(at, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
					uses = append(uses, where+" has "+x.Name+"."+s.Sel.Name)
				}
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && !s.Assign.IsValid() { // an alias is a name for it
						lookIntoType(s, look)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && s.Type != nil {
						look(s.Names[0].Name, s.Type)
					}
				}
			}
		}
	}
	return uses
}

// lookIntoType calls look with the exported parts of a type.
func lookIntoType(s *ast.TypeSpec, look func(where string, at ast.Node)) {
	if s.TypeParams != nil {
		look(s.Name.Name, s.TypeParams)
	}
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		look(s.Name.Name, s.Type)
		return
	}
	for _, field := range fields.List {
		names := field.Names
		if len(names) == 0 { // embedded
			names = []*ast.Ident{embedded(field.Type)}
		}
		for _, name := range names {
			if name.IsExported() {
				look(s.Name.Name+"."+name.Name, field.Type)
			}
		}
	}
}

// embedded returns the name of an embedded field.
func embedded(t ast.Expr) *ast.Ident {
	switch t := t.(type) {
	case *ast.StarExpr:
		return embedded(t.X)
	case *ast.IndexExpr:
		return embedded(t.X)
	case *ast.SelectorExpr:
		return t.Sel
	case *ast.Ident:
		return t
	}
	return ast.NewIdent("_")
}
