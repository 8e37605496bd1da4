// Package repository has the tests that read the sources of the whole module: which package imports
// which, what is exported, and that no service, table or hook is forgotten. Its code parses the
// sources, also for other tests.
package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Module is the path of the module.
const Module = "github.com/tenantcontent/tenantcontent"

// Source is one parsed file.
type Source struct {
	Path, Folder string
	Test         bool
	AST          *ast.File
	// Line returns the line of a position.
	Line func(token.Pos) int
}

// Sources parses every Go file below the working folder, which must be that of the module. It does
// not run go list, because the test cache would not notice changes of its output.
func Sources(t testing.TB) []Source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parsed parses the files once, because that takes a second with the race detector.
var parsed = sync.OnceValues(func() (all []Source, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
			name == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(p)
		all = append(all, Source{
			Path: slash, Folder: path.Dir(slash), Test: strings.HasSuffix(slash, "_test.go"), AST: f,
			Line: func(at token.Pos) int { return files.Position(at).Line },
		})
		return nil
	})
	return all, err
})

// Selects reports whether an expression is pkg.name.
func Selects(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
