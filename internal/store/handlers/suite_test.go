package bunstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// InTx runs a function in one transaction, which the methods of the Store join.
type InTx func(ctx context.Context, fn func(ctx context.Context) error) error

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) (handlers.Store, InTx)) {
	for name, check := range map[string]func(*testing.T, handlers.Store, InTx){
		"RoundTrip":          testRoundTrip,
		"Programs":           testPrograms,
		"Replace":            testReplace,
		"Sweep":              testSweep,
		"Calls":              testCalls,
		"Isolation":          testIsolation,
		"FailedTxWritesNone": testFailedTx,
		"CanceledWritesNone": testCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			s, inTx := open(t)
			check(t, s, inTx)
		})
	}
}

func route(area handlers.Area, path, hash string) handlers.Route {
	return handlers.Route{
		Area:    area,
		Path:    path,
		File:    string(area) + path + ".js",
		Methods: []string{"GET"},
		Config:  json.RawMessage("{}"),
		Hash:    hash,
	}
}

func program(hash, engine string) handlers.Program {
	return handlers.Program{Hash: hash, Program: jsvm.Program{
		Engine: engine, Hash: "of " + engine,
		Entry: "entry.js", Exports: []string{"describe", "invoke"}, Files: []string{"a.js", "b \"c\".js"},
		Code: []byte("\x00\xff'\\" + engine), Map: []byte{0, 1, 2, 255},
	}}
}

func deploy(t *testing.T, s handlers.Store, tenant, app string, at time.Time, hashes ...string) {
	t.Helper()
	d := handlers.Deployment{At: at}
	var added []handlers.Program
	for _, h := range hashes {
		d.Routes = append(d.Routes, route(handlers.Server, "/"+h, h))
		added = append(added, program(h, "e 1"))
	}
	is.New(t).NoErr(s.Put(t.Context(), tenant, app, d, added))
}

// paths returns the paths of an app's routes.
func paths(t *testing.T, s handlers.Store, tenant, app string) string {
	t.Helper()
	routes, err := s.Routes(t.Context(), tenant, app)
	is.New(t).NoErr(err)
	var all []string
	for _, r := range routes {
		all = append(all, r.Path)
	}
	return strings.Join(all, " ")
}

// engines returns the engines of a program.
func engines(t *testing.T, s handlers.Store, tenant, hash string) string {
	t.Helper()
	programs, err := s.Programs(t.Context(), tenant, hash)
	is.New(t).NoErr(err)
	var all []string
	for _, p := range programs {
		all = append(all, p.Engine)
	}
	return strings.Join(all, ", ")
}

func testRoundTrip(t *testing.T, s handlers.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	want := []handlers.Route{
		route(handlers.Server, "/", "h1"),
		{
			Area:    handlers.Server,
			Path:    "/a/:x",
			File:    "server/a/[x].js",
			Methods: []string{"GET", "POST"},
			Config:  json.RawMessage(`{"timeout":5000,"roles":["ü 🎨","a'b"]}`),
			Hash:    "h2",
		},
		route(handlers.Webhooks, "/", "h1"),
	}
	fieldtest.Full(t, want[1])
	sources := map[string][]byte{
		"a.js":        []byte("\xff\x00'"),
		"server/ü.js": []byte(strings.Repeat("x", 100_000)),
		"empty.js":    {},
	}
	is.NoErr(s.Put(ctx, "acme", "app", handlers.Deployment{
		Routes:  []handlers.Route{want[2], want[1], want[0]},
		Sources: sources,
		At:      monday,
	}, nil))
	got, err := s.Routes(ctx, "acme", "app")
	is.NoErr(err)
	is.Equal(got, want) // ordered
	stored, err := s.Sources(ctx, "acme", "app")
	is.NoErr(err)
	is.Equal(len(stored), len(sources))
	for name, content := range sources {
		is.Equal(string(stored[name]), string(content))
	}
	for _, app := range []string{"APP", "other", ""} {
		is.Equal(paths(t, s, "acme", app), "")
		_, err := s.Sources(ctx, "acme", app)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	is.NoErr(s.Remove(ctx, "acme", []string{"app", "missing"}))
	is.NoErr(s.Remove(ctx, "acme", []string{"app"}))
	is.Equal(paths(t, s, "acme", "app"), "")
}

func testPrograms(t *testing.T, s handlers.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	want := program("h", "e 1")
	fieldtest.Full(t, want.Program)
	is.NoErr(s.Add(ctx, "acme", want, monday))
	got, err := s.Programs(ctx, "acme", "h")
	is.NoErr(err)
	is.Equal(got, []handlers.Program{want})
	other := want
	other.Code = []byte("other") // which is ignored: a program with this hash exists
	is.NoErr(s.Add(ctx, "acme", other, monday))
	got, err = s.Programs(ctx, "acme", "h")
	is.NoErr(err)
	is.Equal(got, []handlers.Program{want})
	is.NoErr(s.Add(ctx, "acme", program("h", "e 2"), tuesday))
	is.Equal(engines(t, s, "acme", "h"), "e 2, e 1")
	is.Equal(engines(t, s, "acme", "none"), "")
}

func testReplace(t *testing.T, s handlers.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	deploy(t, s, "acme", "app", monday, "a", "b")
	deploy(t, s, "acme", "other", monday, "b", "c")
	deploy(t, s, "acme", "app", tuesday, "b", "d")
	is.Equal(paths(t, s, "acme", "app"), "/b /d")
	is.Equal(paths(t, s, "acme", "other"), "/b /c")
	deploy(t, s, "acme", "app", tuesday)
	is.Equal(paths(t, s, "acme", "app"), "")
	deploy(t, s, "acme", "app", tuesday, "a")
	is.NoErr(s.Undeploy(ctx, "acme", "missing"))
	is.NoErr(s.Undeploy(ctx, "evil", "other"))
	is.Equal(paths(t, s, "acme", "app")+paths(t, s, "acme", "other"), "/a/b /c")
	is.NoErr(s.Undeploy(ctx, "acme", "app"))
	is.Equal(paths(t, s, "acme", "app"), "")
	_, err := s.Sources(ctx, "acme", "app")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

// testSweep: programs that have a route, or that were used a moment ago, are kept.
func testSweep(t *testing.T, s handlers.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	deploy(t, s, "acme", "app", monday, "a", "b", "c")
	deploy(t, s, "acme", "other", monday, "b")
	is.NoErr(s.Remove(ctx, "acme", []string{"app"}))
	n, err := s.Sweep(ctx, "acme", monday, "2026-11-01")
	is.NoErr(err)
	is.Equal(n, 0)
	is.NoErr(s.Add(ctx, "acme", program("c", "e 1"), tuesday))
	n, err = s.Sweep(ctx, "acme", tuesday, "2026-11-01")
	is.NoErr(err)
	is.Equal(n, 1)
	is.Equal(engines(t, s, "acme", "a")+"|"+engines(t, s, "acme", "b")+"|"+engines(t, s, "acme", "c"), "|e 1|e 1")

	var many []string // in steps
	for i := range 101 {
		many = append(many, fmt.Sprint("many", i))
	}
	deploy(t, s, "acme", "app", monday, many...)
	is.NoErr(s.Remove(ctx, "acme", []string{"app"}))
	n, err = s.Sweep(entity.WithSteps(ctx, 1), "acme", tuesday, "2026-11-01")
	is.Equal(err, entity.ErrMore)
	is.Equal(n, 100)
	n, err = s.Sweep(entity.WithSteps(ctx, 1), "acme", tuesday, "2026-11-01")
	is.NoErr(err)
	is.Equal(n, 1)
}

func testCalls(t *testing.T, s handlers.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	of := func(day, area, method, path string) handlers.Call {
		return handlers.Call{App: "app", Day: day, Area: area, Method: method, Path: path}
	}
	call := of("2026-11-16", "server", "GET", "/ü/:x")
	add := func(tenant string, all map[handlers.Call]handlers.Calls) { is.NoErr(s.AddCalls(ctx, tenant, all)) }
	add("acme", nil)
	add("acme", map[handlers.Call]handlers.Calls{
		call:                                     {N: 1, Failed: 1, Milliseconds: 5},
		of("2026-11-17", "api", "GET", "colors"): {N: 7},
	})
	add("acme", map[handlers.Call]handlers.Calls{
		call:                                {N: 2, Milliseconds: 1},
		of("2026-11-16", "api", "PUT", "x"): {N: 1},
		of("2026-11-16", "api", "GET", "x"): {N: 1},
	})
	other := call
	other.App = "other"
	add("acme", map[handlers.Call]handlers.Calls{other: {N: 9}})
	add("evil", map[handlers.Call]handlers.Calls{call: {N: 100}})
	want := []handlers.CallsOf{
		{Call: of("2026-11-16", "api", "GET", "x"), Calls: handlers.Calls{N: 1}},
		{Call: of("2026-11-16", "api", "PUT", "x"), Calls: handlers.Calls{N: 1}},
		{Call: call, Calls: handlers.Calls{N: 3, Failed: 1, Milliseconds: 6}},
		{Call: of("2026-11-17", "api", "GET", "colors"), Calls: handlers.Calls{N: 7}},
	}
	read := func(tenant, since string) []handlers.CallsOf {
		all, err := s.Calls(ctx, tenant, "app", since)
		is.NoErr(err)
		return all
	}
	is.Equal(read("acme", "2026-11-16"), want)
	is.Equal(read("acme", "2026-11-17"), want[3:])
	n, err := s.Sweep(ctx, "acme", monday, "2026-11-17")
	is.NoErr(err)
	is.Equal(n, 4)
	is.Equal(read("acme", ""), want[3:])
	is.NoErr(s.Remove(ctx, "acme", []string{"app"}))
	is.Equal(len(read("acme", "")), 0)
	is.Equal(len(read("evil", "")), 1)
}

func testIsolation(t *testing.T, s handlers.Store, _ InTx) {
	is, ctx := is.New(t), t.Context()
	deploy(t, s, "acme", "app", monday, "a")
	is.Equal(paths(t, s, "evil", "app"), "")
	is.Equal(engines(t, s, "evil", "a"), "")
	_, err := s.Sources(ctx, "evil", "app")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.NoErr(s.Remove(ctx, "evil", []string{"app"}))
	deploy(t, s, "evil", "app", tuesday, "b")
	n, err := s.Sweep(ctx, "evil", tuesday.Add(time.Hour), "2026-12-01")
	is.NoErr(err)
	is.Equal(n, 0)
	is.Equal(paths(t, s, "acme", "app"), "/a")
	is.Equal(engines(t, s, "acme", "a"), "e 1")
	is.Equal(engines(t, s, "acme", "b"), "")
}

func testFailedTx(t *testing.T, s handlers.Store, inTx InTx) {
	is, fault := is.New(t), errors.New("fault")
	deploy(t, s, "acme", "app", monday, "a")
	err := inTx(t.Context(), func(ctx context.Context) error {
		is.NoErr(s.Put(ctx, "acme", "app", handlers.Deployment{
			Routes: []handlers.Route{route(handlers.Server, "/b", "b")},
			At:     tuesday,
		}, []handlers.Program{program("b", "e 1")}))
		routes, err := s.Routes(ctx, "acme", "app")
		is.NoErr(err)
		is.Equal(routes[0].Path, "/b") // the transaction sees its own writes
		is.NoErr(s.Remove(ctx, "acme", []string{"app"}))
		return fault
	})
	is.Equal(err, fault)
	is.Equal(paths(t, s, "acme", "app"), "/a")
	is.Equal(engines(t, s, "acme", "b"), "")
}

func testCanceled(t *testing.T, s handlers.Store, _ InTx) {
	is := is.New(t)
	deploy(t, s, "acme", "app", monday, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Put(ctx, "acme", "app", handlers.Deployment{At: tuesday}, nil), context.Canceled))
	is.True(errors.Is(s.Remove(ctx, "acme", []string{"app"}), context.Canceled))
	is.Equal(paths(t, s, "acme", "app"), "/a")
}
