package quickjs_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// testVM checks a Runtime. open returns one whose highest limits are those given, that can run at
// least two scripts at once, and that the test closes.
func testVM(t *testing.T, open func(t *testing.T, highest jsvm.Limits) jsvm.Runtime) {
	s := &suite{open: open}
	for _, test := range []struct {
		name string
		f    func(*suite, *testing.T)
	}{
		{"Results", (*suite).results}, {"Errors", (*suite).errors},
		{"Compile", (*suite).compile}, {"Refused", (*suite).refused},
		{"Fresh", (*suite).fresh}, {"Functions", (*suite).functions},
		{"FunctionLimits", (*suite).functionLimits}, {"Respond", (*suite).respond},
		{"Logs", (*suite).logs}, {"LogLimits", (*suite).logLimits},
		{"Globals", (*suite).globals}, {"Arguments", (*suite).arguments},
		{"Verify", (*suite).verifies}, {"Encrypt", (*suite).encrypts},
		{"Nothing", (*suite).nothing}, {"Limits", (*suite).limits}, {"Active", (*suite).active},
		{"Cancel", (*suite).cancel}, {"Parallel", (*suite).parallel}, {"Close", (*suite).close},
	} {
		t.Run(test.name, func(t *testing.T) { test.f(s, t) })
	}
}

// testAttacks checks that a Runtime survives scripts that try to take its time, its memory or its
// processes, and that what runs next is unharmed. open is that of testVM.
func testAttacks(t *testing.T, open func(t *testing.T, highest jsvm.Limits) jsvm.Runtime) {
	s := &suite{open: open}
	t.Run("Compile", s.compileAttacks)
	t.Run("Run", s.attacks)
}

// suite holds what the checks share.
type suite struct {
	open func(t *testing.T, highest jsvm.Limits) jsvm.Runtime
}

// usual are limits that a correct script stays far below on a slow machine, too.
func usual() jsvm.Limits {
	return jsvm.Limits{
		Time: 20 * time.Second, Memory: 64 << 20, Output: 1 << 20,
		LogBytes: 16 << 10, LogLines: 100, Calls: 100, CallBytes: 1 << 20,
	}
}

func (s *suite) runtime(t *testing.T, highest jsvm.Limits) jsvm.Runtime {
	t.Helper()
	rt := s.open(t, highest)
	t.Cleanup(func() { is.New(t).NoErr(rt.Close()) })
	return rt
}

func compile(t *testing.T, rt jsvm.Runtime, source string) *jsvm.Program {
	t.Helper()
	p, err := rt.Compile(t.Context(), jsvm.Source{Entry: "main.js", Files: jsvm.Files{"main.js": source}})
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	return p
}

func run(t *testing.T, rt jsvm.Runtime, p *jsvm.Program, c jsvm.Call) jsvm.Result {
	t.Helper()
	if c.Function == "" {
		c.Function = "main"
	}
	r, err := rt.Run(t.Context(), p, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// value runs the export main of a source and returns its result, which must be OK.
func value(t *testing.T, rt jsvm.Runtime, source string, args ...string) string {
	t.Helper()
	c := jsvm.Call{}
	for _, a := range args {
		c.Args = append(c.Args, json.RawMessage(a))
	}
	r := run(t, rt, compile(t, rt, source), c)
	if r.Outcome != jsvm.OK {
		t.Fatalf("%s: %v\n%s", r.Outcome, r.Error, source)
	}
	return string(r.Value)
}

// body returns the source of a module whose export main has the statements.
func body(statements string) string {
	return "export async function main(arg1, arg2) {\n" + statements + "\n}\n"
}

func (s *suite) results(t *testing.T) {
	rt := s.runtime(t, usual())
	for _, c := range []struct{ source, want string }{
		{body("return 42"), `42`},
		{body("return 'ä\\u0000\\ud800'"), `"ä\u0000\ud800"`},
		{body("return null"), `null`},
		{
			body("return {a: [1, 'x', true, null, undefined], b: undefined, c: new Date(0)}"),
			`{"a":[1,"x",true,null,null],"c":"1970-01-01T00:00:00.000Z"}`,
		},
		{body("return undefined"), ``},
		{body("return () => 1"), ``},
		{body("return [arg1.x, arg2]"), `[1,"two"]`},
		{body("await null; return new Promise(r => setTimeout(r, 1, 'later'))"), `"later"`},
		{"export function main() { return 'sync' }", `"sync"`},
		{"const main = {timeout: 500, list: [1]}\nexport { main }", `{"timeout":500,"list":[1]}`},
		{"export const main = Promise.resolve(7)", `7`},
		{"const x = await Promise.resolve(3)\nexport const main = () => x", `3`},
		{"export default 1\nexport class main extends Array { static toJSON() { return 1 } }\nmain.x = 1", ``},
	} {
		t.Run(c.source, func(t *testing.T) {
			if c.want == "" {
				r := run(t, rt, compile(t, rt, c.source), jsvm.Call{Args: []json.RawMessage{
					[]byte(`{"x":1}`), []byte(`"two"`),
				}})
				if r.Outcome == jsvm.OK && r.Value != nil {
					t.Fatalf("value %s, want none", r.Value)
				}
				return
			}
			is.New(t).Equal(value(t, rt, c.source, `{"x":1}`, `"two"`), c.want)
		})
	}
	is := is.New(t)
	r := run(t, rt, compile(t, rt, body("return 1")), jsvm.Call{})
	is.True(r.Duration > 0)
	is.True(r.PeakMemory > 0)
	is.True(r.Error == nil)
	_, err := rt.Run(t.Context(), compile(t, rt, body("")), jsvm.Call{Function: "other"})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = rt.Run(
		t.Context(), compile(t, rt, body("")),
		jsvm.Call{Function: "main", Args: []json.RawMessage{[]byte("{")}},
	)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	foreign := *compile(t, rt, body(""))
	foreign.Engine = "another"
	_, err = rt.Run(t.Context(), &foreign, jsvm.Call{Function: "main"})
	is.Equal(errs.CodeOf(err), errs.Conflict)
	damaged := *compile(t, rt, body("return 'damaged'"))
	damaged.Code = append([]byte(nil), damaged.Code...)
	damaged.Code[len(damaged.Code)/2] ^= 0xff
	_, err = rt.Run(t.Context(), &damaged, jsvm.Call{Function: "main"})
	is.Equal(errs.CodeOf(err), errs.Conflict)
}

func (s *suite) errors(t *testing.T) {
	rt := s.runtime(t, usual())
	for _, c := range []struct{ statements, name, message string }{
		{"throw new TypeError('no')", "TypeError", "no"},
		{"class Own extends Error { name = 'Own' }\nthrow new Own('mine')", "Own", "mine"},
		{"null.x", "TypeError", ""},
		{"throw 'text'", "", "text"},
		{"throw {code: 3}", "", "{code: 3}"},
		{"throw undefined", "", "undefined"},
		{"throw null", "", "null"},
		{"return 1n", "TypeError", ""},
		{"const o = {}; o.o = o; return o", "TypeError", ""},
		{"await new Promise(() => {})", "Error", "The handler waits for a promise that nothing can settle any more."},
		{"throw {get message() { throw 1 }, get name() { throw 2 }}", "", ""},
		{"throw new Proxy({}, {get() { throw 1 }})", "", ""},
	} {
		t.Run(c.statements, func(t *testing.T) {
			is := is.New(t)
			r := run(t, rt, compile(t, rt, body(c.statements)), jsvm.Call{})
			is.Equal(r.Outcome, jsvm.Thrown)
			is.True(r.Value == nil)
			if c.name != "" {
				is.Equal(r.Error.Name, c.name)
			}
			if c.message != "" {
				is.Equal(r.Error.Message, c.message)
			}
		})
	}
	is := is.New(t)
	p, err := rt.Compile(t.Context(), jsvm.Source{Entry: "hooks/a.js", Files: jsvm.Files{
		"hooks/a.js":   "import { fail } from '../lib/fail.js'\n\nexport function main() {\n  fail()\n}",
		"lib/fail.js":  "// a comment\n\nexport const fail = () => {\n  throw new Error('here')\n}",
		"hooks/top.js": "undefinedName()\nexport const main = 1",
	}})
	is.NoErr(err)
	contains(t, run(t, rt, p, jsvm.Call{}).Error.Stack, "lib/fail.js:4:")
	contains(t, run(t, rt, p, jsvm.Call{}).Error.Stack, "hooks/a.js:4:")
	p, err = rt.Compile(t.Context(), jsvm.Source{Entry: "a.js", Files: jsvm.Files{
		"a.js": "import './b.js'\nexport const main = () => {\n  console.error(new Error('logged'))\n  " +
			"Promise.reject(new Error('lost'))\n}",
		"b.js": "1",
	}})
	is.NoErr(err)
	logged := run(t, rt, p, jsvm.Call{}).Logs
	is.Equal(len(logged), 2)
	contains(t, logged[0].Text, "a.js:3:")
	contains(t, logged[1].Text, "a.js:4:")
	p = compile(t, rt, "undefinedName()\nexport const main = 1")
	r := run(t, rt, p, jsvm.Call{})
	is.Equal(r.Outcome, jsvm.Thrown) // while the module is evaluated
	is.Equal(r.Error.Name, "ReferenceError")
}

func (s *suite) fresh(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	pollute := compile(t, rt, `let count = 0
export function main() {
	count++
	globalThis.seen = (globalThis.seen ?? 0) + 1
	const before = [count, seen, Object.prototype.polluted === undefined, [].push === Array.prototype.push, JSON.stringify(1), typeof Map]
	Object.prototype.polluted = 'yes'
	Object.prototype.toJSON = function () { return 'polluted' }
	Array.prototype.push = () => 0
	Promise.prototype.then = () => { throw new Error('polluted') }
	delete globalThis.Map
	delete Object.prototype.toJSON
	JSON.stringify = () => 'polluted'
	return before
}`)
	other := compile(t, rt, body("return [typeof seen, ({}).polluted === undefined, JSON.stringify(1), typeof Map]"))
	for range 5 { // in all processes that a Runtime may have
		is.Equal(string(run(t, rt, pollute, jsvm.Call{}).Value), `[1,1,true,true,"1","function"]`)
		is.Equal(string(run(t, rt, other, jsvm.Call{}).Value), `["undefined",true,"1","function"]`)
	}
	random := compile(t, rt, body("return [Math.random(), crypto.randomUUID()]"))
	seen := map[string]bool{}
	for range 10 {
		var v []any
		is.NoErr(json.Unmarshal(run(t, rt, random, jsvm.Call{}).Value, &v))
		for _, x := range v {
			b, _ := json.Marshal(x)
			is.True(!seen[string(b)])
			seen[string(b)] = true
		}
	}
}

func (s *suite) cancel(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	p := compile(
		t, rt,
		"export async function main(kind, host) { host.log('begun'); await host.begun(); if (kind) for (;;); "+
			"await host.wait(); return 1 }",
	)
	for _, kind := range []string{"0", "1"} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		start := time.Now()
		r, err := rt.Run(ctx, p, jsvm.Call{
			Function: "main", Args: []json.RawMessage{[]byte(kind)}, Functions: map[string]jsvm.Function{
				"begun": func(context.Context, json.RawMessage) (json.RawMessage, error) {
					time.AfterFunc(5*time.Millisecond, cancel)
					return nil, nil
				},
				"wait": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
					<-ctx.Done()
					ended = true
					return nil, ctx.Err()
				},
			},
		})
		is.NoErr(err)
		is.Equal(r.Outcome, jsvm.Canceled)
		is.True(time.Since(start) < 10*time.Second)
		is.Equal(ended, kind == "0") // Run waited for the function
		is.Equal(len(r.Logs), 1)
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := rt.Run(ctx, p, jsvm.Call{Function: "main"})
	is.True(err != nil || r.Outcome == jsvm.Canceled)
	is.Equal(value(t, rt, body("return 1")), `1`)
}

func (s *suite) close(t *testing.T) {
	is := is.New(t)
	rt := s.open(t, usual())
	p := compile(t, rt, body("for (;;);"))
	done := make(chan jsvm.Result)
	go func() {
		r, _ := rt.Run(context.Background(), p, jsvm.Call{Function: "main"})
		done <- r
	}()
	time.Sleep(time.Millisecond) // either order is right
	is.NoErr(rt.Close())
	is.True((<-done).Outcome != jsvm.OK)
	_, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main"})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	_, err = rt.Compile(t.Context(), jsvm.Source{Entry: "a.js", Files: jsvm.Files{"a.js": ""}})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.NoErr(rt.Close())
}

// active checks that a script is stopped when it has computed or waited for Limits.Active.
func (s *suite) active(t *testing.T) {
	is := is.New(t)
	highest := usual()
	highest.Time = 10 * time.Minute // a busy machine takes long
	rt := s.runtime(t, highest)
	for _, statement := range []string{"for (;;);", "for (;;) await new Promise((done) => setTimeout(done, 200))"} {
		r := run(t, rt, compile(t, rt, body(statement)), jsvm.Call{Limits: jsvm.Limits{Active: time.Second}})
		is.Equal(r.Outcome, jsvm.Timeout)
		is.Equal(r.Error.Error(), "TimeoutError: The script took more than 1s of its own.")
	}
}
