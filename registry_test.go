package tenantcontent_test

import (
	"github.com/tenantcontent/tenantcontent/internal/testkit/repository"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
)

// globalKinds belong to nobody and are known to bundles alone.
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
