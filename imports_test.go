package tenantcontent_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
)

// The import rules of ARCHITECTURE.md. A name is a folder below the module, "." its root; * stands for one segment and
// a /... at the end for the folder and all below it; ^ is the folder above the importing one. Test files are free.

// nouns are the packages of one noun each. They do not import each other; what one needs of another it declares as a
// small interface, and the root passes the other's Service.
const nouns = "agents aiinstr apps assistants bundles colors comments confirmations content domains downloads inputs messages principals sessions tenants uploads webhooks"

// domainDrivers are the ready drivers of authentication domains.
const domainDrivers = "domains/local domains/ldap domains/saml domains/oidc"

// base is what every noun and its stores and suites lean on.
const base = "errs actor datasets drafts entity paging blobs files handlers libraries queue shares jsvm internal/cache internal/escapes internal/fields internal/fold internal/guard internal/transfer internal/rawjson internal/slug internal/limiter internal/spool internal/tally internal/uuids"

// mayImport says which of our packages a package may import. The first row that fits a package counts.
var mayImport = []rule{
	{"internal/dbtest internal/exampletest internal/bench internal/interop cmd/... examples/...", "..."},

	{"errs internal/egress internal/cache internal/escapes internal/fold internal/rawjson internal/redact internal/pgsafe internal/pgtest internal/needs internal/spool internal/tally internal/uuids internal/trigrams internal/timetext internal/fieldtest", ""},
	{"internal/slapd", "internal/needs"},
	{"internal/certs", "errs internal/egress"},
	{"internal/sqlitesafe", "internal/limiter internal/spool internal/timetext"},
	{"actor blobs entity hal paging internal/guard internal/keyring internal/limiter", "errs"},
	{"ai", "errs"},
	{"ai/aitest ai/chat", "errs ai"},
	{"ai/openai", "errs ai internal/egress internal/redact"},
	{"internal/subprocess", "errs internal/limiter"},
	{"internal/doctext internal/markdown", "actor errs internal/subprocess"},
	{"internal/sqltext", "errs"},
	{"internal/connpool", "errs internal/limiter"},
	{"internal/tenantsql", "errs workspaces internal/sqltext"},
	{"workspaces", "errs entity internal/limiter internal/uuids"},
	{"workspaces/sqlite", "errs workspaces internal/connpool internal/limiter internal/sqlitesafe internal/sqltext internal/tenantsql internal/timetext"},
	{"workspaces/postgres", "errs workspaces internal/connpool internal/limiter internal/sqltext internal/tenantsql"},
	{"jsvm", "errs"},
	{"jsvm/quickjs", "errs jsvm internal/limiter internal/rawjson internal/subprocess"},
	{"webhooks/signatures", "errs"},
	{"messages/smtp", "errs messages"},
	{"handlers", "errs entity jsvm internal/cache internal/limiter internal/rawjson internal/tally"},
	{"datasets", "errs actor entity internal/cache internal/fold internal/limiter internal/rawjson"},
	{"shares", "errs actor internal/guard"},
	{"drafts", "errs actor entity libraries paging shares internal/escapes internal/fields internal/guard internal/transfer internal/uuids"},
	{"queue", "errs entity internal/escapes"},
	{"quotas", "errs blobs"},
	{"files libraries", "errs blobs entity paging internal/cache internal/guard internal/uuids"},
	{"apps/manifest", "errs libraries shares internal/escapes"},
	{"apps/view", "errs"},
	{"internal/datatools", "errs ai ai/chat datasets"},
	{"apps/assist", "errs ai ai/chat apps/manifest datasets internal/datatools"},
	{"assistants/conversation", "errs actor ai ai/chat assistants datasets entity jsvm libraries paging internal/datatools internal/doctext internal/limiter"},
	{"assistants/mcp", "errs ai ai/chat assistants assistants/conversation entity internal/egress internal/rawjson"},
	{"internal/bunx", "entity errs paging internal/fold internal/rawjson internal/trigrams"},
	{"internal/transfer", "errs entity paging internal/escapes internal/rawjson internal/slug internal/uuids"},
	{"internal/slug", "internal/fold internal/uuids"},
	{"internal/fields", "errs internal/escapes internal/rawjson internal/slug internal/uuids"},
	{"internal/migrations", "errs internal/bunx internal/fold"},
	{"internal/dblock internal/health", "errs internal/bunx"},
	{"internal/sweep", "errs entity internal/bunx"},
	{"internal/removal", "errs entity queue internal/bunx"},
	{"internal/indexer", "errs internal/bunx internal/trigrams"},
	{"internal/tenantrows", "errs entity internal/bunx"},
	{"tenants/bunstore", base + " tenants internal/bunx internal/tenantrows"},
	{"database", "actor errs internal/bunx internal/pgsafe internal/sqlitesafe internal/tenantrows workspaces workspaces/sqlite workspaces/postgres"},

	{"sessions sessions/sessionstest", base + " principals sessions paging/pagingtest internal/fieldtest"},                // it asks principals who a user is
	{"domains domains/domainstest", base + " principals principals/dirsync domains paging/pagingtest internal/fieldtest"}, // what a directory says becomes users and teams
	{domainDrivers + " domains/drivertest", "errs domains internal/certs internal/redact"},
	{"bundles", base + " bundles/archive"},
	{"principals", base + " principals/profile"},
	{"principals/profile", "errs internal/escapes"},
	{"principals/dirsync principals/dirsync/dirsynctest", base + " principals principals/profile principals/dirsync"},
	{"principals/scim principals/scim/scimtest", base + " principals principals/profile principals/scim"},
	{"principals/bunstore", base + " principals principals/dirsync principals/scim internal/bunx"},
	{"internal/draftstore", base + " shares/bunstore internal/bunx"},
	{"apps/bunstore", base + " apps internal/draftstore internal/bunx"},
	{"assistants/bunstore", base + " assistants internal/draftstore internal/bunx"},
	{"apps", base + " apps/manifest"},
	{"agents", base + " ai apps/manifest"},
	{"agents/agentstest", base + " ai ^ internal/fieldtest paging/pagingtest"},
	{"agents/bunstore", base + " ^ ai internal/bunx"},
	{"webhooks", base + " webhooks/signatures"},
	{nouns + " bundles/archive", base},
	{"*/bunstore", base + " ^ internal/bunx internal/keyring"},
	{"*/*test", base + " ^ internal/transfertest internal/fieldtest paging/pagingtest"}, // the suites that every store must pass

	{"httpapi", base + " quotas ai ai/chat apps/assist assistants/conversation workspaces internal/doctext internal/markdown hal apps/manifest apps/view principals/scim " + nouns},
	{".", base + " quotas ai apps/manifest assistants/conversation hal httpapi " + nouns + " principals/dirsync principals/scim " + domainDrivers + " jsvm/quickjs internal/doctext internal/markdown */bunstore internal/bunx internal/dblock internal/egress internal/cache internal/health internal/indexer internal/keyring internal/migrations internal/removal internal/sweep internal/tenantrows workspaces"},
}

// mayBeImportedBy says who alone may import a package of others, by its beginning.
var mayBeImportedBy = []rule{
	{"github.com/uptrace/bun/driver/ github.com/lib/pq", drivers},
	{"modernc.org/sqlite", drivers + " workspaces/sqlite"},
	{"github.com/jackc/pgx", drivers + " workspaces/postgres"},
	{"github.com/uptrace/bun", drivers + " . */bunstore internal/..."},
	{"modernc.org/libquickjs github.com/evanw/esbuild github.com/nlnwa/whatwg-url", "jsvm/quickjs"},
	{"github.com/elastic/go-seccomp-bpf", "internal/subprocess"},
	{"github.com/yuin/goldmark github.com/microcosm-cc/bluemonday", "internal/markdown"},
	{"github.com/ledongthuc/pdf", "internal/doctext"},
	{"github.com/openai/openai-go", "ai/openai"},
	{"github.com/modelcontextprotocol/go-sdk", "assistants/mcp"},
	{"net/http", ". httpapi ai/openai ai/aitest assistants/mcp cmd/... examples/... internal/bench domains/saml domains/oidc internal/certs internal/egress internal/samltest internal/oidctest"},
	{"github.com/netresearch/go-cron", "queue"},
	{"filippo.io/age", "internal/tenantrows"},
	{"github.com/wneessen/go-mail", "messages/smtp"},
	{"testing github.com/matryer/is pgregory.net/rapid", "*/*test principals/dirsync/dirsynctest principals/scim/scimtest internal/dbtest internal/fieldtest internal/needs internal/slapd"},
}

// drivers are who may link a SQL driver. The library links none: a host brings its own.
const drivers = "database cmd/... examples/... internal/pgsafe internal/sqlitesafe internal/pgtest internal/dbtest internal/bench"

// blank are the packages that may be imported for their effect: parts of the language's own library.
var blank = []string{"embed", "time/tzdata"}

type rule struct{ who, whom string }

const module = "github.com/tenantcontent/tenantcontent"

func TestImports(t *testing.T) {
	checked := 0
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		checked++
		for _, spec := range f.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			is.New(t).NoErr(err)
			if wrong := complaint(f.folder, imported); wrong != "" {
				t.Errorf("%s: %s", f.path, wrong)
			}
			if spec.Name != nil && (spec.Name.Name == "_" && !slices.Contains(blank, imported) || spec.Name.Name == ".") {
				t.Errorf("%s imports %s as %s: name it, or pass it as a value", f.path, imported, spec.Name)
			}
		}
	}
	is.New(t).True(checked > 50) // the walk found the code
}

func TestNoInit(t *testing.T) {
	for _, f := range sources(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has a func init: make it a value that somebody passes", f.path)
			}
		}
	}
}

// TestOneReaderOfIDs keeps ids to the one spelling that internal/uuids reads: uuid.Parse and its like read others, too.
func TestOneReaderOfIDs(t *testing.T) {
	readers := []string{"Parse", "ParseBytes", "MustParse", "Validate"}
	for _, f := range sources(t) {
		if f.folder == "internal/uuids" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "uuid" && slices.Contains(readers, s.Sel.Name) {
					t.Errorf("%s uses uuid.%s: read ids with internal/uuids", f.path, s.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestComments(t *testing.T) {
	comments, folders := map[string]int{}, map[string]bool{}
	for _, f := range sources(t) {
		folders[f.folder] = true
		if f.ast.Doc != nil {
			comments[f.folder]++
		}
		if f.test || f.ast.Name.Name == "main" || strings.HasSuffix(f.path, "_other.go") { // these repeat names for other systems
			continue
		}
		for _, name := range bare(f.ast) {
			t.Errorf("%s: %s has no doc comment, or one that does not begin with its name", f.path, name)
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
		{"colors", module + "/actor", true},
		{"colors", module + "/inputs", false},
		{"sessions", module + "/principals", true},
		{"principals", module + "/sessions", false},
		{"principals", module + "/principals/dirsync", false},
		{"domains", module + "/principals/dirsync", true},
		{"sessions", module + "/principals/dirsync", false},
		{"colors", module + "/colors/bunstore", false},
		{"colors/bunstore", module + "/colors", true},
		{"colors/bunstore", module + "/tenants", false},
		{"colors/colorstest", module + "/colors", true},
		{"httpapi", module + "/internal/bunx", false},
		{"httpapi", module + "/colors/bunstore", false},
		{"httpapi", module, false},
		{".", module + "/database", false},
		{"cmd/tenantcontent", module + "/database", true},
		{"actor", module + "/colors", false},
		{"anew", module + "/errs", false}, // in no row
		{"colors", "net/http", false},
		{"colors", "net/http/httptest", false},
		{"colors", "net/netip", true},
		{"colors", "github.com/uptrace/bun", false},
		{"colors/bunstore", "github.com/uptrace/bun", true},
		{"colors/bunstore", "github.com/uptrace/bun/driver/pgdriver", false},
		{".", "modernc.org/sqlite", false},
		{"database", "modernc.org/sqlite", true},
		{"jsvm/quickjs", "modernc.org/libquickjs", true},
		{"jsvm", "modernc.org/libquickjs", false},
		{"ai/openai", "github.com/openai/openai-go/v3/option", true},
		{"ai", "github.com/openai/openai-go/v3", false},
		{"ai", module + "/ai/openai", false},
		{".", module + "/ai/openai", false},
		{"jsvm", module + "/jsvm/quickjs", false},
		{"workspaces/sqlite", "modernc.org/sqlite", true},
		{"workspaces", "modernc.org/sqlite", false},
		{"workspaces", module + "/workspaces/sqlite", false},
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

// complaint says what is wrong about an import, "" when nothing is.
func complaint(folder, imported string) string {
	if rest, ours := strings.CutPrefix(imported, module); ours && (rest == "" || rest[0] == '/') {
		target := strings.TrimPrefix(rest, "/")
		if target == "" {
			target = "."
		}
		for _, r := range mayImport {
			if !fits(folder, folder, r.who) {
				continue
			}
			if !fits(folder, target, r.whom) {
				return fmt.Sprintf("%s must not import %s: imports point down (see mayImport)", folder, target)
			}
			return ""
		}
		return fmt.Sprintf("%s is in no row of mayImport", folder)
	}
	for _, r := range mayBeImportedBy {
		begins := func(prefix string) bool {
			return imported == prefix || strings.HasPrefix(imported, strings.TrimRight(prefix, "/")+"/")
		}
		if slices.ContainsFunc(strings.Fields(r.who), begins) {
			if !fits(folder, folder, r.whom) {
				return fmt.Sprintf("%s must not import %s (see mayBeImportedBy)", folder, imported)
			}
			return ""
		}
	}
	return ""
}

// fits reports whether a folder is among patterns; ^ is the one above from.
func fits(from, folder, patterns string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool {
		above, tree := strings.CutSuffix(p, "...")
		switch {
		case tree:
			return strings.HasPrefix(folder+"/", above)
		case p == "^":
			return folder == path.Dir(from)
		}
		ok, err := path.Match(p, folder)
		return ok && err == nil
	})
}

// bare lists the exported functions, methods, types, variables and constants without a doc comment. In a group the
// group's comment or one on the line is enough.
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
	return words[0] == name || (words[0] == "A" || words[0] == "An" || words[0] == "The") && strings.TrimRight(words[1], ",") == name
}

// source is one parsed file.
type source struct {
	path, folder string
	test         bool
	ast          *ast.File
}

// sources parses every Go file of the module. It runs no go list, whose answer the test cache would not know about.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	is.New(t).NoErr(err)
	return all
}

// parsed parses once: parsing lasts a second with the race detector.
var parsed = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(p)
		all = append(all, source{path: slash, folder: path.Dir(slash), test: strings.HasSuffix(slash, "_test.go"), ast: f})
		return nil
	})
	return all, err
})
