package tenantcontent_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/types"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite" // the driver of a host's own database

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver/kitchen"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/secure/agefile"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/repository"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestMain begins as the main function of a program does that opens an App.
func TestMain(m *testing.M) {
	javascript.Child()
	agefile.SetWorkFactor(10)
	os.Exit(m.Run())
}

// TestHostSQLite: a host's own SQLite database has to have one connection, and works with it.
func TestHostSQLite(t *testing.T) {
	is := is.New(t)
	own, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "own.db")+"?_pragma=foreign_keys(1)")
	is.NoErr(err)
	db := bun.NewDB(own, sqlitedialect.New())
	t.Cleanup(func() { _ = db.Close() })
	c := tenantcontent.Config{DB: db, SecretKey: tenantcontent.NewSecretKey()}
	for _, connections := range []int{0, 2} {
		db.SetMaxOpenConns(connections)
		_, err = tenantcontent.Open(c)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(err.Error(), "SetMaxOpenConns(1)") && strings.Contains(err.Error(), "one writer"))
	}
	db.SetMaxOpenConns(1)
	is.NoErr(tenantcontent.Migrate(t.Context(), db))
	app, err := tenantcontent.Open(c)
	is.NoErr(err)
	_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "acme"}, password)
	is.NoErr(err)
	_, err = app.Sessions.Login(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "local", Username: "admin", Password: password,
	})
	is.NoErr(err)
}

// nils are implementations of the interfaces of a Config. Tests use nil pointers to them.
type (
	nilDriver     struct{ bundles.Driver }
	nilDomain     struct{ domains.Driver }
	nilSource     struct{ datasets.Source }
	nilModel      struct{ ai.Provider }
	nilScripts    struct{ tenantcontent.Scripts }
	nilMail       struct{ messages.Sender }
	nilWorkspaces struct{ workspaces.Driver }
	nilTransferer struct{ entity.Transferer }
)

// TestBadConfig: Open refuses what no App can work with, naming the field, and does not panic.
func TestBadConfig(t *testing.T) {
	db := dbtest.SQLite(t)
	lookup := func(context.Context, string, string) (entity.Ref, error) { return entity.Ref{}, nil }
	dish := func(plural string) entity.Type {
		return entity.Type{Kind: "dish", Plural: plural, Commented: true, Lookup: lookup}
	}
	type config = tenantcontent.Config
	for _, c := range []struct {
		set  func(c *config)
		want string
	}{
		{func(c *config) { c.DB = nil }, "Config.DB is required"},
		{func(c *config) {
			c.BundleDrivers = []bundles.Driver{kitchen.Recipes{}, nil}
		}, "Config.BundleDrivers[1] is nil"},
		{func(c *config) {
			c.BundleDrivers = []bundles.Driver{(*nilDriver)(nil)}
		}, "Config.BundleDrivers[0] is a nil *tenantcontent_test.nilDriver"},
		{func(c *config) { c.DomainDrivers = []domains.Driver{nil} }, "Config.DomainDrivers[0] is nil"},
		{func(c *config) {
			c.DomainDrivers = []domains.Driver{(*nilDomain)(nil)}
		}, "Config.DomainDrivers[0] is a nil *"},
		{func(c *config) { c.Datasets = (*nilSource)(nil) }, "Config.Datasets is a nil *"},
		{func(c *config) { c.AI = (*nilModel)(nil) }, "Config.AI is a nil *"},
		{func(c *config) { c.Scripts = (*nilScripts)(nil) }, "Config.Scripts is a nil *"},
		{func(c *config) { c.Mail = (*nilMail)(nil) }, "Config.Mail is a nil *"},
		{func(c *config) { c.Workspaces = (*nilWorkspaces)(nil) }, "Config.Workspaces is a nil *"},
		{func(c *config) {
			c.Entities = []entity.Type{{Kind: "dish", Transferer: (*nilTransferer)(nil)}}
		}, "Config.Entities[0].Transferer is a nil *"},
		{func(c *config) { c.Entities = []entity.Type{{}} }, "entity kind \"\" is empty"},
		{func(c *config) { c.InputEditors = []inputs.Editor{{}} }, "An input editor needs an id."},
		{func(c *config) { c.Workers = []queue.Worker{{Kind: "mine"}} }, "The worker for the kind mine must have"},
		{func(c *config) {
			c.Workers = []queue.Worker{{Kind: "mine", Tries: -1}}
		}, "Config.Workers[0].Tries must not be negative: it is -1"},
		{func(c *config) { c.Queue.Grace = -time.Second }, "Config.Queue.Grace must not be negative: it is -1s"},
		{func(c *config) { c.AllowNetworks = make([]netip.Prefix, 1) }, "Config.AllowNetworks[0] is not a network"},
		{func(c *config) { c.DenyNetworks = make([]netip.Prefix, 1) }, "Config.DenyNetworks[0] is not a network"},
		{func(c *config) { c.TrustedProxies = make([]netip.Prefix, 1) }, "Config.TrustedProxies[0] is not a network"},
		{func(c *config) {
			c.Resume = func(context.Context, string, string) (actor.Actor, error) { return actor.Actor{}, nil }
		}, "Config.Resume is set and Config.Authenticate is not"},
		{func(c *config) {
			c.Entities = []entity.Type{dish("users")}
		}, `the Plural "users" of the kind "dish" is taken by the kind "user"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("reports")}
		}, `the Plural "reports" of the kind "dish" is taken by the kind "report"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("reports"), {Kind: "report"}}
		}, `the Plural "reports" of the kind "dish" is taken by the kind "report"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("tags")}
		}, `the Plural "tags" of the kind "dish" is taken by the kind "tag"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("apps")}
		}, `the Plural "apps" of the kind "dish" is taken by the kind "app"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("colors")}
		}, `the Plural "colors" of the kind "dish" is taken by the route GET /api/colors`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("comments")}
		}, `the Plural "comments" of the kind "dish" is taken by the route `},
		{func(c *config) {
			c.Entities = []entity.Type{dish("meals"), {Kind: "meal", Commented: true, Lookup: lookup}}
		}, `the Plural "meals" of the kind "meal" is taken by the kind "dish"`},
		{func(c *config) {
			c.Entities = []entity.Type{{Kind: "color", Commented: true, Lookup: lookup}}
		}, `the Plural "colors" of the kind "color" is taken by`},
	} {
		t.Run(c.want, func(t *testing.T) {
			is := is.New(t)
			config := config{DB: db, SecretKey: tenantcontent.NewSecretKey()}
			c.set(&config)
			_, err := tenantcontent.Open(config)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			if !strings.Contains(errs.MessageOf(err), c.want) {
				t.Errorf("the error %q does not contain %q", errs.MessageOf(err), c.want)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		is := is.New(t)
		_, err := tenantcontent.Open(config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), KeepActivities: -1,
			Authenticate: func(*http.Request) (actor.Actor, error) { return actor.Actor{}, nil },
			Entities: []entity.Type{
				dish("dishes"), {Kind: "app", Commented: true, Lookup: lookup},
				{Kind: "tag", Commented: true, Lookup: lookup},
			},
		})
		is.NoErr(err)
	})
}

// TestNegativeLimits: each number of a Config, also of its structs, is refused when it is negative.
func TestNegativeLimits(t *testing.T) {
	is := is.New(t)
	base := tenantcontent.Config{DB: dbtest.SQLite(t), SecretKey: tenantcontent.NewSecretKey()}
	numbers := 0
	var each func(name string, index []int, in reflect.Type)
	each = func(name string, index []int, in reflect.Type) {
		for i := range in.NumField() {
			f, at := in.Field(i), append(index[:len(index):len(index)], i)
			switch path := name + "." + f.Name; f.Type.Kind() {
			case reflect.Struct:
				each(path, at, f.Type)
			case reflect.Int, reflect.Int64:
				if path == "Config.KeepActivities" {
					continue
				}
				numbers++
				c := base
				reflect.ValueOf(&c).Elem().FieldByIndex(at).SetInt(-1)
				_, err := tenantcontent.Open(c)
				is.Equal(errs.CodeOf(err), errs.Invalid)
				is.True(strings.HasPrefix(errs.MessageOf(err), path+" must not be negative"))
			}
		}
	}
	each("Config", nil, reflect.TypeFor[tenantcontent.Config]())
	is.True(numbers > 25)
}

// globalKinds have no owner, and only bundles know them.
var globalKinds = []entity.Kind{colors.Kind}

// hooksElsewhere are the packages whose Hooks are not of a service's Unchecked, each with how they
// are added.
var hooksElsewhere = map[string]string{
	"internal/drafts/libraries": "what.libraries.Hooks()",
	"internal/workspaces":       "g.workspaces.Hooks()",
	"internal/handlers":         "run.handlers.Hooks()",
	"internal/jobs/queue":       "g.queue.Hooks()",
	"internal/jobs/removal":     "g.removals.Hooks()",
	"internal/store/changes":    "g.changes.Hooks(g.feed, g.removals.Later, clock.New(g.Now, nil))",
}

// TestRegistryIsComplete: fill adds the hooks of each package that has some, and the kinds of
// each service.
func TestRegistryIsComplete(t *testing.T) {
	is := is.New(t)
	added, packages := []string{}, map[string]bool{} // the arguments of AddHooks; who has hooks
	for _, f := range repository.Sources(t) {
		if f.Test {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && f.Path == "wiring.go" && s.Sel.Name == "AddHooks" {
					for _, arg := range n.Args {
						added = append(added, types.ExprString(arg))
					}
				}
			case *ast.FuncDecl:
				if r := n.Type.Results; n.Recv != nil && n.Name.Name == "Hooks" && r != nil && len(r.List) == 1 &&
					repository.Selects(r.List[0].Type, "entity", "Hooks") {
					packages[f.Folder] = true
				}
			}
			return true
		})
	}
	app, _, remove := exampletest.Open()
	defer remove()
	kinds, types := append(app.Registry().Kinds(), globalKinds...), 0
	has := func(u reflect.Value, method string) []reflect.Value {
		if m := u.MethodByName(method); m.IsValid() {
			return m.Call(nil)
		}
		return nil
	}
	services := reflect.ValueOf(app.Services)
	for i := range services.NumField() {
		name, s := services.Type().Field(i).Name, services.Field(i)
		if s.Kind() != reflect.Pointer {
			continue
		}
		unchecked := has(s, "Unchecked")
		if unchecked == nil {
			continue
		}
		folder := strings.TrimPrefix(s.Type().Elem().PkgPath(), repository.Module+"/")
		if u := unchecked[0]; u.MethodByName("Hooks").IsValid() {
			if !slices.ContainsFunc(added, func(arg string) bool { // such as who.principals.Unchecked().Hooks()
				of, ok := strings.CutSuffix(arg, ".Unchecked().Hooks()")
				return ok && strings.EqualFold(of[strings.LastIndex(of, ".")+1:], name)
			}) {
				t.Errorf("fill does not add the hooks of %s", name)
			}
			delete(packages, folder)
		}
		for _, v := range slices.Concat(has(unchecked[0], "Type"), has(unchecked[0], "Types")) {
			some, ok := v.Interface().([]entity.Type)
			if !ok {
				some = []entity.Type{v.Interface().(entity.Type)}
			}
			for _, kind := range some {
				if types++; !slices.Contains(kinds, kind.Kind) {
					t.Errorf("fill does not register the kind %s of %s", kind.Kind, name)
				}
			}
		}
	}
	is.True(types > 10) // the walk found them
	is.True(len(added) > 10)
	for folder := range packages {
		how, ok := hooksElsewhere[folder]
		if !ok || how != "" && !slices.Contains(added, how) {
			t.Errorf("fill does not add the hooks of the package %s", folder)
		}
	}
	is.Equal(len(packages), len(hooksElsewhere))
}

// TestTenantHooks: what is counted of a tenant has its order, and a change of the key of the
// program reaches every secret that is kept.
func TestTenantHooks(t *testing.T) {
	is := is.New(t)
	app, ctx, remove := exampletest.Open()
	defer remove()
	counts, err := app.Registry().TenantCounts(ctx, "acme")
	is.NoErr(err)
	var of []string
	for _, c := range counts {
		of = append(of, c.Of)
	}
	is.Equal(of, []string{
		"users", "teams", "items of content", "apps", "assistants", "bundles",
		"colors", "AI instructions", "comments", "files", "domains", "API tokens",
	})
	is.Equal(app.Registry().Sealed(), []entity.SealedColumn{
		{Table: "tc_apps", Column: "env_sealed", Key: "id"}, {Table: "tc_apps", Column: "webhook_secret", Key: "id"},
		{Table: "tc_assistants", Column: "secrets_sealed", Key: "id"},
		{Table: "tc_tenants", Column: "key_check", Key: "tenant_id"},
		{Table: "tc_domains", Column: "secrets", Key: "id"}, {Table: "tc_domains", Column: "keys_sealed", Key: "id"},
		{Table: "tc_provider_sessions", Column: "memory", Key: "session_id"},
		{Table: "tc_workspaces", Column: "password", Key: "app_id"},
		{Table: "tc_webhook_requests", Column: "key_sealed", Key: "id"},
	})
}

// TestRunWritesLoginsThatWait: a log-in during which another process writes lasts when the server
// has stopped.
func TestRunWritesLoginsThatWait(t *testing.T) {
	is, path := is.New(t), "sqlite:"+filepath.Join(t.TempDir(), "t.db")
	pool := func() *bun.DB {
		db, err := engines.Open(path)
		is.NoErr(err)
		return db
	}
	db := pool()
	is.NoErr(tenantcontent.Migrate(t.Context(), db))
	app := open(t, db, nil)
	_, _, err := app.FirstStart(t.Context(), password)
	is.NoErr(err)
	other := pool()
	defer func() { is.NoErr(other.Close()) }()
	token := ""
	is.NoErr(bunx.InTx(t.Context(), other, func(context.Context) error {
		l, err := app.Sessions.Login(t.Context(), principals.Credentials{
			Tenant: "default", Domain: "local", Username: "admin", Password: password,
		})
		token = l.Token
		return err
	}))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	is.NoErr(app.Run(stopped))
	is.NoErr(db.Close())

	db = pool()
	defer func() { is.NoErr(db.Close()) }()
	_, err = open(t, db, nil).Sessions.Authenticate(t.Context(), token, netip.Addr{})
	is.NoErr(err)
}

// An App is an http.Handler. See examples/embed for a whole program.
func ExampleApp_ServeHTTP() {
	app, _, remove := exampletest.Open()
	defer remove()
	answer := httptest.NewRecorder()
	app.ServeHTTP(answer, httptest.NewRequest("GET", "/api/colors-list", nil))
	var body struct{ Error, Message string }
	_ = json.Unmarshal(answer.Body.Bytes(), &body)
	fmt.Println(answer.Code, body.Error)
	fmt.Println(body.Message)
	// Output:
	// 401 Unauthorized
	// The session or token is missing, not valid or has expired. Log in first.
}
