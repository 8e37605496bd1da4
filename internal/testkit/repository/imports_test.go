package repository_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/testkit/repository"

	"github.com/matryer/is"
)

// layers are the layers of the module from the lowest up: a package may import its own layer and
// those in its row. A name is a folder of the module; "." is the root; a /... at the end includes
// all folders below. Test files may import any package.
var layers = []layer{
	{"values", "errs actor entity paging hal", ""},
	{"helpers", "internal/clock internal/text/... internal/limits/... internal/secure/... internal/tracing", "values"},
	{"seams", "ai/...", "values helpers"},
	{"sql", "internal/sqldb/...", "values helpers"},
	{
		"machinery",
		"internal/drafts/... internal/handlers/... internal/jobs/queue internal/transfer/... internal/workspaces/...",
		"values helpers seams sql",
	},
	{"who", "tenants principals sessions domains/... internal/directory/...", "values helpers machinery"},
	{"content", "colors aiinstr inputs comments content/... files", "values helpers machinery who"},
	{
		"programs", "apps/... webhooks assistants/... internal/chat/... internal/scripts",
		"values helpers seams machinery who content",
	},
	{"bundles", "bundles/...", "values helpers machinery who content programs"},
	{"http", "httpapi internal/rest/...", "values helpers seams machinery who content programs bundles"},
	{
		"stores", "internal/store/... internal/jobs/... database/... javascript",
		"values helpers sql machinery who content programs bundles",
	},
	{"watching", "metrics", "values"},
	{"root", ".", "values helpers seams sql machinery who content programs bundles http stores"},
	{
		"programs that run", "cmd/... internal/cli/... internal/bench internal/testkit/... examples/...",
		"values helpers seams sql machinery who content programs bundles http stores watching root",
	},
}

// nouns are the packages of one noun each. Those of one layer do not import each other. If one
// needs another, it declares a small interface, and the root passes the other's Service.
const nouns = "aiinstr apps apps/agents apps/messages assistants bundles colors comments " +
	"content domains files inputs principals sessions tenants webhooks"

// neighbors are the nouns that may import one of their own layer: each pair is the importer and the
// imported.
var neighbors = []string{
	"sessions principals", // it looks up users in principals
	"domains principals",  // the entries of a directory become users and teams
}

// mayBeImportedBy restricts which packages may import a package of others, by the beginning of its
// path.
var mayBeImportedBy = []rule{
	{"github.com/uptrace/bun/driver/ github.com/lib/pq", drivers},
	{"modernc.org/sqlite", drivers + " internal/workspaces/sqlite"},
	{"github.com/jackc/pgx", drivers + " internal/workspaces/postgres"},
	{
		"github.com/uptrace/bun",
		drivers + " . internal/store/... internal/sqldb/... internal/jobs/... internal/testkit/...",
	},
	{"modernc.org/libquickjs github.com/evanw/esbuild github.com/nlnwa/whatwg-url", "internal/handlers/quickjs"},
	{"github.com/elastic/go-seccomp-bpf", "internal/secure/subprocess"},
	{"github.com/yuin/goldmark github.com/microcosm-cc/bluemonday", "internal/text/markdown"},
	{"github.com/ledongthuc/pdf", "internal/text/doctext"},
	{"github.com/openai/openai-go", "ai/openai"},
	{"github.com/prometheus/", "metrics internal/cli"},
	{"go.opentelemetry.io/", ". internal/tracing internal/bench examples/..."},
	{"github.com/modelcontextprotocol/go-sdk", "assistants/mcp"},
	{
		"net/http",
		". httpapi internal/rest/... ai/openai ai/aitest assistants/mcp internal/cli examples/... internal/bench " +
			"domains/saml domains/oidc internal/secure/certs internal/secure/egress internal/tracing internal/testkit/...",
	},
	{"github.com/netresearch/go-cron", "internal/jobs/queue"},
	{"filippo.io/age", "internal/secure/agefile"},
	{"github.com/wneessen/go-mail", "apps/messages/smtp"},
	{
		"testing github.com/matryer/is pgregory.net/rapid",
		"ai/aitest bundles/drivertest content/datasets/datasetstest domains/drivertest " +
			"internal/workspaces/workspacestest internal/testkit/...",
	},
}

// drivers are the packages that may link a SQL driver. The library links none: a host brings its
// own.
const drivers = "database/... internal/cli examples/... internal/sqldb/pgsafe internal/sqldb/sqlitesafe " +
	"internal/testkit/... internal/bench"

// blank are the packages that may be imported for their side effects: parts of the standard
// library.
var blank = []string{"embed", "time/tzdata"}

type (
	layer struct{ name, folders, below string }
	rule  struct{ who, whom string }
)

func TestImports(t *testing.T) {
	checked := 0
	for _, f := range repository.Sources(t) {
		if f.Test {
			continue
		}
		checked++
		for _, spec := range f.AST.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			is.New(t).NoErr(err)
			if wrong := complaint(f.Folder, imported); wrong != "" {
				t.Errorf("%s: %s", f.Path, wrong)
			}
			if spec.Name != nil && (spec.Name.Name == "_" && !slices.Contains(blank, imported) ||
				spec.Name.Name == ".") {
				t.Errorf("%s imports %s as %s: name it, or pass it as a value", f.Path, imported, spec.Name)
			}
		}
	}
	is.New(t).True(checked > 50) // the sources were found
}

func TestNoInit(t *testing.T) {
	for _, f := range repository.Sources(t) {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has a func init: make it a value that somebody passes", f.Path)
			}
		}
	}
}

// TestOneReaderOfIDs: ids are only parsed by internal/text/uuids, because uuid.Parse accepts other
// forms.
func TestOneReaderOfIDs(t *testing.T) {
	readers := []string{"Parse", "ParseBytes", "MustParse", "Validate"}
	for _, f := range repository.Sources(t) {
		if f.Folder == "internal/text/uuids" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "uuid" && slices.Contains(readers, s.Sel.Name) {
					t.Errorf("%s uses uuid.%s: read ids with internal/text/uuids", f.Path, s.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestComments(t *testing.T) {
	comments, folders := map[string]int{}, map[string]bool{}
	for _, f := range repository.Sources(t) {
		folders[f.Folder] = true
		if f.AST.Doc != nil {
			comments[f.Folder]++
		}
		if f.Test || f.AST.Name.Name == "main" || strings.HasSuffix(f.Path, "_other.go") {
			// these repeat names for other systems
			continue
		}
		for _, name := range bare(f.AST) {
			t.Errorf("%s: %s has no doc comment, or one that does not begin with its name", f.Path, name)
		}
	}
	for folder := range folders {
		if comments[folder] != 1 {
			t.Errorf("%s has %d package comments, want one", folder, comments[folder])
		}
	}
}

func TestRulesBite(t *testing.T) {
	for _, c := range []struct {
		folder, imported string
		ok               bool
	}{
		{"colors", repository.Module + "/actor", true},
		{"colors", repository.Module + "/inputs", false},
		{"colors", repository.Module + "/tenants", true},
		{"tenants", repository.Module + "/colors", false},
		{"sessions", repository.Module + "/principals", true},
		{"principals", repository.Module + "/sessions", false},
		{"domains", repository.Module + "/internal/directory/dirsync", true},
		{"colors", repository.Module + "/internal/store/colors", false},
		{"internal/store/colors", repository.Module + "/colors", true},
		{"internal/store/colors", repository.Module + "/httpapi", false},
		{"httpapi", repository.Module + "/internal/sqldb/bunx", false},
		{"httpapi", repository.Module + "/internal/store/colors", false},
		{"httpapi", repository.Module, false},
		{"internal/cli", repository.Module + "/database/sqlite", true},
		{"actor", repository.Module + "/colors", false},
		{"anew", repository.Module + "/errs", false}, // in no layer
		{"colors", "net/http", false},
		{"colors", "net/http/httptest", false},
		{"colors", "net/netip", true},
		{"colors", "github.com/uptrace/bun", false},
		{"internal/store/colors", "github.com/uptrace/bun", true},
		{"internal/store/colors", "github.com/uptrace/bun/driver/pgdriver", false},
		{".", "modernc.org/sqlite", false},
		{"database/sqlite", "modernc.org/sqlite", true},
		{"internal/handlers/quickjs", "modernc.org/libquickjs", true},
		{"internal/handlers", "modernc.org/libquickjs", false},
		{"ai/openai", "github.com/openai/openai-go/v3/option", true},
		{"ai", "github.com/openai/openai-go/v3", false},
		{"internal/workspaces/sqlite", "modernc.org/sqlite", true},
		{"internal/workspaces", "modernc.org/sqlite", false},
		{"colors", "testing", false},
	} {
		t.Run(c.folder+" imports "+c.imported, func(t *testing.T) {
			is.New(t).Equal(complaint(c.folder, c.imported) == "", c.ok)
		})
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
		func Bare() {}
		// Named is not.
		func (T) Named() {}
		// Something else.
		type T struct{}
		func (t) Hidden() {}
		const ( A = 1; b = 2 // B
		)
		// These are.
		const ( C = 1 )`, parser.ParseComments)
	is.New(t).NoErr(err)
	is.New(t).Equal(bare(f), []string{"Bare", "T", "A"})
}

// layerOf returns the first layer that contains a folder, or nil.
func layerOf(folder string) *layer {
	for i := range layers {
		if fits(folder, layers[i].folders) {
			return &layers[i]
		}
	}
	return nil
}

// complaint describes what is wrong with an import, or returns "".
func complaint(folder, imported string) string {
	if rest, ours := strings.CutPrefix(imported, repository.Module); ours && (rest == "" || rest[0] == '/') {
		target := cmp.Or(strings.TrimPrefix(rest, "/"), ".")
		from, to := layerOf(folder), layerOf(target)
		switch {
		case from == nil:
			return folder + " is in no layer"
		case to == nil:
			return target + " is in no layer"
		case from == to && fits(folder, nouns) && fits(target, nouns) && !slices.Contains(neighbors, folder+" "+target):
			return fmt.Sprintf(
				"%s must not import its neighbor %s: declare a small interface, or add the pair to neighbors",
				folder, target,
			)
		case from != to && !slices.Contains(strings.Fields(from.below), to.name) && from.name != "programs that run":
			return fmt.Sprintf(
				"%s (%s) must not import %s (%s): imports point down (see layers)", folder, from.name, target,
				to.name,
			)
		}
		return ""
	}
	for _, r := range mayBeImportedBy {
		begins := func(prefix string) bool {
			return imported == prefix || strings.HasPrefix(imported, strings.TrimRight(prefix, "/")+"/")
		}
		if slices.ContainsFunc(strings.Fields(r.who), begins) {
			if !fits(folder, r.whom) {
				return fmt.Sprintf("%s must not import %s (see mayBeImportedBy)", folder, imported)
			}
			return ""
		}
	}
	return ""
}

// fits reports whether a folder is among patterns.
func fits(folder, patterns string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool {
		if above, tree := strings.CutSuffix(p, "..."); tree {
			return strings.HasPrefix(folder+"/", above)
		}
		return folder == p
	})
}

// bare returns the exported functions, methods, types, variables and constants without a doc
// comment. In a group the group's comment or one on the line is enough.
func bare(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) && !about(d.Doc, d.Name.Name) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && !about(d.Doc, s.Name.Name) && !about(s.Doc, s.Name.Name) {
						names = append(names, s.Name.Name)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, s.Names[0].Name)
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// about reports whether the comment begins with the name, or with an article and the name.
func about(doc *ast.CommentGroup, name string) bool {
	if doc == nil {
		return false
	}
	words := append(strings.Fields(doc.Text()), "", "")
	return words[0] == name || (words[0] == "A" || words[0] == "An" || words[0] == "The") &&
		strings.TrimRight(words[1], ",") == name
}
