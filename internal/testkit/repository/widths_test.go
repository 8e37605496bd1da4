package repository_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/repository"
)

// The most columns of a line, a tab counted as four.
const (
	codeColumns    = 120
	commentColumns = 100
)

// directive matches a comment for a tool, which cannot be wrapped.
var directive = regexp.MustCompile(`^//[a-z]+:`)

// TestWidths: comments on separate lines have at most 100 columns, and code has at most 120. Lines
// that cannot be wrapped may be longer: one long word, the tag of a field, a string of several
// lines, preformatted text, the output of an example, and in tests strings of more than 40
// columns together. In a long line, two rules of one comment had been read as one.
func TestWidths(t *testing.T) {
	for _, f := range repository.Sources(t) {
		text, err := os.ReadFile(f.Path)
		is.New(t).NoErr(err)
		lines := strings.Split(string(text), "\n")
		for _, n := range tooWide(lines, f.AST, f.Line, f.Test) {
			t.Errorf("%s:%d: a line of %d columns", f.Path, n, columns(lines[n-1]))
		}
	}
}

// tooWide returns the numbers of the lines that are too wide.
func tooWide(lines []string, f *ast.File, line func(token.Pos) int, test bool) (wide []int) {
	comments, texts, literals := map[int]bool{}, map[int]bool{}, map[int]int{} // by line
	for _, group := range f.Comments {
		for _, c := range group.List {
			for n := line(c.Pos()); n <= line(c.End()); n++ {
				comments[n] = strings.HasPrefix(strings.TrimSpace(lines[n-1]), "//")
				texts[n] = texts[n] || directive.MatchString(c.Text) || strings.HasPrefix(c.Text, "//\t") ||
					len(strings.Fields(c.Text)) <= 2
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				texts[line(n.Tag.Pos())] = true
			}
		case *ast.BasicLit:
			first, last := line(n.Pos()), line(n.End())
			if n.Kind == token.STRING {
				literals[first] += len(n.Value)
			}
			if n.Kind == token.STRING && (first < last || test && literals[first] > 40) {
				for n := first; n <= last; n++ {
					texts[n] = true
				}
			}
		}
		return true
	})
	for _, d := range f.Decls { // the output of an example is compared literally
		if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
			for n := line(fn.Pos()); n <= line(fn.End()); n++ {
				texts[n] = true
			}
		}
	}
	for i, l := range lines {
		most := codeColumns
		if comments[i+1] {
			most = commentColumns
		}
		if columns(l) > most && !texts[i+1] {
			wide = append(wide, i+1)
		}
	}
	return wide
}

// columns returns the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}
