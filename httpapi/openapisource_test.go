package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
)

// sourceFile has the texts and examples of the description.
const sourceFile = "openapi.json.gz"

// maxExample is how many bytes an example has at most.
const maxExample = 4 << 10

// TestOpenAPISource keeps openapi.json.gz equal to the comments of handlers and types and to the
// transcripts.
func TestOpenAPISource(t *testing.T) {
	is := is.New(t)
	want := readSource(t)
	raw, err := json.Marshal(want)
	is.NoErr(err)
	if *update {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		is.NoErr(err)
		_, err = z.Write(raw)
		is.NoErr(err)
		is.NoErr(z.Close())
		if got, err := httpapi.OpenAPISource(); err != nil || !sameSource(got, want) {
			is.NoErr(os.WriteFile(sourceFile, out.Bytes(), 0o644))
		}
		return
	}
	got, err := httpapi.OpenAPISource()
	is.NoErr(err)
	for name, route := range want.Routes {
		if !reflect.DeepEqual(got.Routes[name], route) {
			t.Fatalf("%s differs of the route %s: go test ./httpapi -run OpenAPI -update, twice, rewrites it", sourceFile, name)
		}
	}
	if !sameSource(got, want) {
		t.Fatalf("%s differs: go test ./httpapi -run OpenAPI -update, twice, rewrites it", sourceFile)
	}
}

func sameSource(a, b rest.Source) bool { return reflect.DeepEqual(a, b) }

// readSource reads the comments and transcripts.
func readSource(t *testing.T) rest.Source {
	s := rest.Source{Routes: map[string]rest.RouteSource{}, Types: map[string]openapi.Text{}}
	handlers, types := comments(t)
	for _, r := range httpapi.Routes() {
		text := handlers[handlerOf(r)]
		if _, after, ok := strings.Cut(text, " serves "); ok {
			if _, does, ok := strings.Cut(after, ": "); ok {
				text = does
			}
		}
		if text == "" {
			t.Errorf("the handler of %s has no comment", r.Name)
		}
		s.Routes[r.Name] = rest.RouteSource{Text: sentence(text)}
	}
	for _, name := range httpapi.DescribedTypes() {
		if text, ok := types[name]; ok {
			s.Types[name] = text
		}
	}
	for _, x := range exchanges(t) {
		addExample(t, s.Routes, x)
	}
	raw, err := json.Marshal(s)
	is.New(t).NoErr(err)
	s = rest.Source{}
	is.New(t).NoErr(json.Unmarshal(raw, &s))
	return s
}

// handlerOf returns the receiver and name of the handler of a route, such as colorRoutes.putColor.
func handlerOf(r rest.Route) string {
	name := runtime.FuncForPC(reflect.ValueOf(r.Handle).Pointer()).Name()
	parts := strings.Split(strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], "-fm"), ".")
	return strings.Trim(parts[1], "(*)") + "." + parts[2]
}

// sentence returns a text that begins with a capital letter and ends with a period.
func sentence(text string) string {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	return strings.TrimSuffix(text, ".") + "."
}

// addExample adds an exchange that succeeds as the example of its route, unless there is one that
// is better: of two answers with rows, or without, the shorter one.
func addExample(t *testing.T, routes map[string]rest.RouteSource, x exchange) {
	route, known := routes[x.route]
	if !known || x.status >= "4" || !x.isJSON() && x.answer != "" || x.method == "HEAD" {
		return
	}
	var gives, takes json.RawMessage
	if x.isJSON() && json.Valid([]byte(x.json())) {
		gives = compact(t, x.json())
	}
	if sends := x.sends(); json.Valid([]byte(sends)) {
		takes = compact(t, sends)
	}
	if len(gives) > maxExample || len(takes) > maxExample {
		return
	}
	status, _ := strconv.Atoi(x.status)
	if route.Status != 0 && (rank(gives) < rank(route.Gives) ||
		rank(gives) == rank(route.Gives) && len(gives)+len(takes) >= len(route.Gives)+len(route.Takes)) {
		return
	}
	route.Gives, route.Takes, route.Status = gives, takes, status
	routes[x.route] = route
}

// rank returns 0 for no answer, 1 for one without rows, and 2 for another one.
func rank(answer json.RawMessage) int {
	switch {
	case answer == nil:
		return 0
	case bytes.Contains(answer, []byte(`":[]}`)) || string(answer) == "[]":
		return 1
	}
	return 2
}

func compact(t *testing.T, text string) json.RawMessage {
	var out bytes.Buffer
	is.New(t).NoErr(json.Compact(&out, []byte(text)))
	return out.Bytes()
}

// comments returns the comments of the methods of this package, and those of the structs of the
// module.
func comments(t *testing.T) (methods map[string]string, types map[string]openapi.Text) {
	methods, types = map[string]string{}, map[string]openapi.Text{}
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata") {
			if d != nil && d.IsDir() && err == nil {
				return filepath.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if f.Name.Name == "httpapi" && decl.Recv != nil && decl.Doc != nil {
					methods[receiverOf(decl)+"."+decl.Name.Name] = decl.Doc.Text()
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						addType(types, f.Name.Name+"."+spec.Name.Name, decl, spec)
					}
				}
			}
		}
		return nil
	})
	is.New(t).NoErr(err)
	return methods, types
}

func receiverOf(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// addType adds the comments of a type.
func addType(types map[string]openapi.Text, name string, decl *ast.GenDecl, spec *ast.TypeSpec) {
	text := openapi.Text{}
	doc := spec.Doc
	if doc == nil {
		doc = decl.Doc
	}
	if doc != nil {
		text.Text = typeText(spec.Name.Name, doc.Text())
	}
	if fields, ok := spec.Type.(*ast.StructType); ok {
		for _, f := range fields.Fields.List {
			for _, n := range f.Names {
				said := f.Comment.Text()
				if f.Doc != nil {
					said = strings.TrimPrefix(f.Doc.Text(), n.Name+" ")
					said = strings.TrimPrefix(strings.TrimPrefix(said, "is "), "are ")
				}
				if said = sentence(said); said != "" {
					if text.Fields == nil {
						text.Fields = map[string]string{}
					}
					text.Fields[n.Name] = said
				}
			}
		}
	}
	types[name] = text
}

// typeText returns the first paragraph of the comment of a type without its name.
func typeText(name, text string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	for _, begin := range []string{name + " is ", name + " are ", name + " "} {
		if rest, ok := strings.CutPrefix(text, begin); ok {
			text = rest
			break
		}
	}
	for _, end := range []string{" as the API writes it", " as the API writes it,"} {
		text = strings.Replace(text, end, "", 1)
	}
	if before, _, ok := strings.Cut(text, ". It is encoded by hand"); ok {
		text = before
	}
	return sentence(text)
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// appenders returns the names of the types of this package that encode themselves by hand.
func appenders(t *testing.T) (names []string) {
	methods, _ := comments(t)
	for _, name := range sortedKeys(methods) {
		if of, ok := strings.CutSuffix(name, ".AppendJSON"); ok {
			names = append(names, of)
		}
	}
	return names
}
