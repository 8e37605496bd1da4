package quickjs_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// attack is a script that tries to take time, memory or the process. Whatever becomes of it, Run
// returns in time and what runs next is unharmed.
type attack struct{ name, statements string }

func attackList() []attack {
	return []attack{
		// Time, in code of the script.
		{"loop", "for (;;);"},
		{"loop that catches", "for (;;) try { for (;;); } catch {} finally { continue }"},
		{"microtasks", "for (;;) await null"},
		{
			"microtasks that multiply",
			"const f = () => { Promise.resolve().then(f); Promise.resolve().then(f) }; f(); await new Promise(() => {})",
		},
		{"thenable", "const t = {then(r) { r(t) }}; return t"},
		{"async iteration", "for await (const x of (async function* () { for (;;) yield 1 })());"},
		{"timers", "const f = () => { setTimeout(f, 0); setTimeout(f, 0) }; f(); await new Promise(() => {})"},
		{"interval", "setInterval(() => {}, 0); await new Promise(() => {})"},
		{"generator", "return [...(function* () { for (;;) yield 1 })()].length"},
		{"getter", "const o = {get x() { return this.x }}; return o.x"},
		{"proxy", "const p = new Proxy({}, {get: (t, k, r) => r[k], ownKeys: () => { for (;;); }}); return p"},
		{"comparator", "return [3, 1, 2].sort(() => { for (;;); })"},
		{"toJSON", "return {toJSON() { for (;;); }}"},
		{"valueOf", "return 1 + {valueOf() { for (;;); }}"},
		{"at load", "}\nfor (;;);\n{"},
		{"in an error", "throw {get message() { for (;;); }}"},
		{"in a log", "console.log({get x() { for (;;); }})"},
		{"in an eval", "eval('for (;;);')"},
		{"bound functions", "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null, 1); return f()"},
		// Time, in code of the engine.
		{"regular expression", "return /^(a+)+$/.test('a'.repeat(50) + 'b')"},
		{"regular expression with references", "return /^(a*)*\\1*b$/.test('a'.repeat(2000))"},
		{"lookbehind", "return /(?<=(x+x+)+y)z/.test('x'.repeat(50) + 'z')"},
		{"replace", "return 'a'.repeat(5e6).replace(/a*?b/g, '')"},
		{"split", "return 'a'.repeat(5e6).split(/a*?b/)"},
		{"indexOf", "return [].indexOf.call({length: 2 ** 53 - 1}, 1)"},
		{"lastIndexOf", "return [].lastIndexOf.call({length: 2 ** 53 - 1}, 1)"},
		{"includes", "return [].includes.call({length: 2 ** 53 - 1}, 1)"},
		{"reverse", "return [].reverse.call({length: 2 ** 53 - 1})"},
		{"fill", "return [].fill.call({length: 2 ** 53 - 1}, 1)"},
		{"join", "return [].join.call({length: 2 ** 32 - 1}, '')"},
		{"copyWithin", "return [].copyWithin.call({length: 2 ** 53 - 1}, 1, 0)"},
		{"unshift", "return [].unshift.call({length: 2 ** 53 - 2, 0: 1}, 1)"},
		{"shift", "return [].shift.call({length: 2 ** 53 - 1})"},
		{"splice", "return [].splice.call({length: 2 ** 53 - 1}, 0, 1)"},
		{"from", "return Array.from({length: 2 ** 53 - 1})"},
		{"raw", "return String.raw({raw: {length: 2 ** 53 - 1}})"},
		{"every", "return [].every.call({length: 2 ** 53 - 1}, x => x)"},
		{"sparse sort", "const a = []; a[2 ** 32 - 2] = 1; return a.sort()"},
		{"sparse concat", "const a = []; a[2 ** 32 - 2] = 1; return a.concat(a)"},
		{"typed array", "const a = new Uint8Array(4e6); for (;;) a.sort(() => 0)"},
		{"big power", "return (2n ** (2n ** 40n)).toString()"},
		{"big text", "return (3n ** 2000000n).toString().length"},
		{"big product", "let x = 3n ** 100000n; for (;;) x *= x"},
		{"big quotient", "const x = 7n ** 3000000n; return (x / (3n ** 1000000n)) % 10n"},
		{"big parsed", "return BigInt('9'.repeat(3000000)) % 7n"},
		{"locale", "return 'x'.repeat(1e7).localeCompare('x'.repeat(1e7) + 'y')"},
		{"normalize", "return 'e\\u0301'.repeat(2e6).normalize('NFC').length"},
		{"wait", "return Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)"},
		// Memory.
		{"array", "const a = []; for (;;) a.push(a.length)"},
		{"long array", "return new Array(2 ** 32 - 1).fill(0)"},
		{"arrays", "let a = []; for (;;) a = [a, a, a, a]"},
		{"objects", "const o = {}; for (let i = 0; ; i++) o['k' + i] = {}"},
		{"string", "let s = 'x'; for (;;) s += s"},
		{"strings", "const a = []; for (let i = 0; ; i++) a.push(('' + i).repeat(1000))"},
		{"repeat", "return 'x'.repeat(2 ** 29).length"},
		{"pad", "return 'x'.padStart(2 ** 29, 'ab').length"},
		{"buffer", "return new ArrayBuffer(2 ** 40)"},
		{"buffers", "const a = []; for (;;) a.push(new ArrayBuffer(1e6))"},
		{"growing buffer", "const b = new ArrayBuffer(1, {maxByteLength: 2 ** 36}); b.resize(2 ** 36)"},
		{"shared buffers", "const a = []; for (;;) a.push(new SharedArrayBuffer(1e6))"},
		{"map", "const m = new Map(); for (let i = 0; ; i++) m.set(i, m)"},
		{"symbols", "const a = []; for (let i = 0; ; i++) a.push(Symbol.for('s' + i))"},
		{"closures", "let f = () => 0; for (;;) { const g = f; f = () => g() }"},
		{"promises", "const a = []; for (;;) a.push(new Promise(() => {}))"},
		{"weak references", "const a = []; for (;;) a.push(new WeakRef({}))"},
		{"cycles", "for (;;) { const a = {}; a.a = a; a.b = new Array(1000).fill(a) }"},
		{"garbage", "for (;;) 'x'.repeat(1e6) + 'y'"},
		{"memory that is caught", "const a = []; for (;;) try { for (;;) a.push(new ArrayBuffer(1e6)) } catch {}"},
		{"code", "return new Function('return ' + '['.repeat(1e5) + ']'.repeat(1e5))()"},
		{"long code", "return eval('1' + '+1'.repeat(1e6))"},
		{"long expression", "return new RegExp('(a'.repeat(1e5) + ')'.repeat(1e5))"},
		{"many captures", "return new RegExp('(a)'.repeat(1e5)).exec('a'.repeat(1e5))"},
		{"text of bytes", "return base64Encode('x'.repeat(1e7)).length"},
		{"clone", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return structuredClone(a)"},
		// The stack.
		{"recursion", "const f = () => f() + 1; return f()"},
		{"recursion that catches", "const f = () => { try { f() } catch { f() } }; f()"},
		{"recursion in a callback", "const f = () => [1].map(f); return f()"},
		{"recursion in toString", "const o = {toString() { return `${o}` }}; return `${o}`"},
		{"recursion in a proxy", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x"},
		{"recursion in a prototype", "let o = {}; for (let i = 0; i < 1e5; i++) o = Object.create(o); return o.x"},
		{"recursion in a replacement", "const f = s => s.replace(/x/, f); return f('x')"},
		{"nested JSON", "return JSON.parse('['.repeat(1e6))"},
		{"nested result", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a"},
		{"nested log", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; console.log(a)"},
		{"nested generators", "function* f(n) { yield* f(n + 1) }; return [...f(0)]"},
		// What leaves the script.
		{"result", "return 'x'.repeat(1e7)"},
		{"result of escapes", "return '\\u0001'.repeat(2e6)"},
		{"error", "throw new Error('x'.repeat(1e7))"},
		{"stack of an error", "const e = new Error(); e.stack = 'x'.repeat(1e7); throw e"},
		{"logs", "for (;;) console.log('x'.repeat(1000))"},
		{"empty logs", "for (;;) console.log()"},
		{"log", "console.log('x'.repeat(1e7))"},
		{"calls", "for (;;) await host.echo('x')"},
		{"calls at once", "for (;;) host.echo('x')"},
		{"calls that are caught", "for (;;) try { await host.echo('x') } catch {}"},
		{"responses", "for (;;) host.respond('x')"},
		{"rejections", "for (;;) Promise.reject(new Error('x'))"},
		// The Runtime's own code in the script's world.
		{
			"changed JSON",
			"JSON.stringify = () => '{'; JSON.parse = () => { for (;;); }; Object.prototype.toJSON = () => 1; " +
				"return {}",
		},
		{
			"changed promises",
			"Promise.prototype.then = function () { for (;;); }; Object.defineProperty(Promise.prototype, " +
				"'constructor', {get() { for (;;); }}); return 1",
		},
		{
			"changed arrays",
			"Array.prototype[Symbol.iterator] = function* () { for (;;) yield 1 }; console.log([1, 2]); await " +
				"host.echo(1)",
		},
		{"changed objects", "Object.prototype.then = function (r) { for (;;); }; return {}"},
		{"changed maps", "Map.prototype.get = Map.prototype.set = () => { throw 1 }; await host.echo(1)"},
		{
			"getters everywhere",
			"for (const k of ['id', 'resolve', 'reject', 'at', 'f', 'value']) " +
				"Object.defineProperty(Object.prototype, k, {get() { for (;;); }, set() {}}); await host.echo(1)",
		},
	}
}

func (s *suite) attacks(t *testing.T) {
	limits := jsvm.Limits{
		Time: 50 * time.Millisecond, Memory: 16 << 20, Output: 1 << 20,
		LogBytes: 16 << 10, LogLines: 100, Calls: 100, CallBytes: 1 << 20,
	}
	rt := s.runtime(t, usual())
	healthy := compile(
		t, rt,
		"export async function main(n, host) { console.log('well'); return [n, await host.echo(1), typeof seen, "+
			"({}).then === undefined] }",
	)
	functions := map[string]jsvm.Function{"echo": func(
		_ context.Context, args json.RawMessage,
	) (json.RawMessage, error) {
		return args, nil
	}}
	list := attackList()
	next := make(chan attack)
	var working sync.WaitGroup
	for range 4 { // so that a killed process and its replacement do not hold up the others
		working.Go(func() {
			for a := range next {
				t.Run(a.name, func(t *testing.T) {
					is := is.New(t)
					p := compile(
						t, rt, "export async function main(host) {\nglobalThis.seen = 1\n"+a.statements+"\n}\n",
					)
					start := time.Now()
					r := run(t, rt, p, jsvm.Call{Functions: functions, Limits: limits, Tenant: a.name})
					took := time.Since(start)
					if took > 50*limits.Time+10*time.Second {
						t.Errorf("%s took %s", a.name, took)
					}
					switch r.Outcome {
					case jsvm.OK:
						is.True(json.Valid(r.Value) || r.Value == nil)
					case jsvm.Thrown, jsvm.Timeout, jsvm.Memory, jsvm.Killed:
						is.True(r.Error != nil && len(r.Error.Message) < 64<<10 && len(r.Error.Stack) < 64<<10)
					default:
						t.Errorf("%s: the outcome %q", a.name, r.Outcome)
					}
					is.True(len(r.Value) <= limits.Output)
					is.True(len(r.Logs) <= limits.LogLines)
					is.True(r.Calls <= limits.Calls)
					t.Logf(
						"%s in %s, peak %d KiB, killed %t: %v", r.Outcome, took.Round(time.Millisecond),
						r.PeakMemory>>10, r.Killed, r.Error,
					)
					after := run(t, rt, healthy, jsvm.Call{
						Args:      []json.RawMessage{[]byte("1")},
						Functions: functions,
						Tenant:    "healthy " + a.name,
					})
					is.Equal(after.Outcome, jsvm.OK)
					is.Equal(string(after.Value), `[1,[1],"undefined",true]`)
					is.Equal(len(after.Logs), 1)
				})
			}
		})
	}
	for _, a := range list {
		next <- a
	}
	close(next)
	working.Wait()
}
