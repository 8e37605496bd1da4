package quickjs_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// failing is a file system with a file that cannot be read.
type failing struct{ jsvm.Files }

// Open opens a file.
func (f failing) Open(name string) (fs.File, error) {
	if name == "lib/locked.js" {
		return nil, errors.New("disk on fire at /secret/path")
	}
	return f.Files.Open(name)
}

func echo(_ context.Context, args json.RawMessage) (json.RawMessage, error) { return args, nil }

func (s *suite) functions(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	var late atomic.Int32
	functions := map[string]jsvm.Function{
		"echo": echo,
		"none": func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil },
		"taken": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, errs.New(errs.Conflict, "It is taken.")
		},
		"fails": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("password=secret")
		},
		"panics": func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("secret") },
		"slow": func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			time.Sleep(time.Duration(args[1]-'0') * time.Millisecond)
			late.Add(1)
			return args, nil
		},
	}
	for _, c := range []struct{ source, want string }{
		{"return host.echo(1, 'ä', null, {x: [1]})", `[1,"ä",null,{"x":[1]}]`},
		{"return [await host.none(), typeof await host.none()]", `[null,"undefined"]`},
		{"return Promise.all([9, 5, 0].map(n => host.slow(n)))", `[[9],[5],[0]]`},
		{"return Promise.race([host.slow(9), host.slow(1)])", `[1]`},
		{
			"return (await Promise.all(Array.from({length: 60}, (_, i) => host.echo(i)))).flat().reduce((a, b) => a + b)",
			`1770`,
		},
		{
			"try { await host.taken() } catch (e) { return [e instanceof Error, e.message, e.code] }",
			`[true,"It is taken.","conflict"]`,
		},
		{
			"try { await host.fails() } catch (e) { return [e.message, e.code] }",
			`["The call of fails failed.","internal"]`,
		},
		{"try { await host.panics() } catch (e) { return e.message }", `"The call of panics failed."`},
		{"return [typeof host.other, Object.keys(host).includes('echo')]", `["undefined",true]`},
		{"host.slow(5).then(() => host.slow(1)); return 'at once'", `"at once"`}, // the calls are not lost
	} {
		t.Run(c.source, func(t *testing.T) {
			is := is.New(t)
			before := late.Load()
			r := run(
				t, rt, compile(t, rt, "export async function main(host) {\n"+c.source+"\n}"),
				jsvm.Call{Functions: functions},
			)
			if r.Outcome != jsvm.OK {
				t.Fatal(r.Error)
			}
			is.Equal(string(r.Value), c.want)
			if strings.HasPrefix(c.source, "host.slow") {
				is.Equal(late.Load(), before+2)
			}
		})
	}
	r := run(
		t, rt, compile(t, rt, "export async function main(host) { host.fails(); await host.echo(1) }"),
		jsvm.Call{Functions: functions},
	)
	is.Equal(r.Outcome, jsvm.OK)
	is.Equal(r.Calls, 2)
	is.Equal(len(r.Logs), 1) // the rejection that nobody handled
	contains(t, r.Logs[0].Text, "Unhandled rejection: Error: The call of fails failed.")
}

func (s *suite) functionLimits(t *testing.T) {
	rt := s.runtime(t, usual())
	var calls atomic.Int32
	functions := map[string]jsvm.Function{
		"echo": func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			calls.Add(1)
			return echo(ctx, args)
		},
		"large": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return []byte(`"` + strings.Repeat("x", 1<<20) + `"`), nil
		},
		"deaf": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	for _, c := range []struct {
		name, statements string
		outcome          jsvm.Outcome
	}{
		{"number", "for (;;) await host.echo(1)", jsvm.Thrown},
		{"number at once", "await Promise.all(Array.from({length: 1000}, () => host.echo(1)))", jsvm.Thrown},
		{"arguments", "await host.echo('x'.repeat(2 ** 20))", jsvm.Thrown},
		{"result", "await host.large()", jsvm.Thrown},
		{"no answer", "await host.deaf()", jsvm.Timeout},
		{"no answer, caught", "for (;;) try { await host.deaf() } catch {}", jsvm.Timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			calls.Store(0)
			limits := jsvm.Limits{}
			if c.outcome == jsvm.Timeout {
				limits.Time = 50 * time.Millisecond
			}
			r := run(
				t, rt, compile(t, rt, "export async function main(host) {\n"+c.statements+"\n}"),
				jsvm.Call{Functions: functions, Limits: limits},
			)
			is.Equal(r.Outcome, c.outcome)
			is.True(r.Error != nil)
			is.True(calls.Load() <= 100)
			is.True(r.Calls <= 100)
		})
	}
}

func (s *suite) respond(t *testing.T) {
	rt := s.runtime(t, usual())
	for _, c := range []struct{ name, statements, early, value string }{
		{
			"waits for nobody", "host.respond({status: 202}); await host.wait(); return 'later'",
			`{"status":202}`, `"later"`,
		},
		{"first wins", "host.respond(1); host.respond(2); await host.wait()", `1`, ``},
		{"nothing", "host.respond(); await host.wait()", ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			early := make(chan string, 10)
			var got string
			r := run(t, rt, compile(t, rt, "export async function main(host) {\n"+c.statements+"\n}"), jsvm.Call{
				Respond: func(v json.RawMessage) { early <- string(v) },
				Functions: map[string]jsvm.Function{"wait": func(
					context.Context, json.RawMessage,
				) (json.RawMessage, error) {
					got = <-early // the response is there before the script ends
					return nil, nil
				}},
			})
			is.Equal(r.Outcome, jsvm.OK)
			is.Equal(got, c.early)
			is.Equal(string(r.Value), c.value)
			is.Equal(len(early), 0)
		})
	}
	is := is.New(t)
	r := run(t, rt, compile(t, rt, "export function main(host) { host.respond('x'.repeat(2 ** 20)) }"), jsvm.Call{})
	is.Equal(r.Outcome, jsvm.Thrown) // too long
	r = run(
		t, rt, compile(t, rt, "export function main(host) { host.respond(1); throw new Error('after') }"),
		jsvm.Call{Respond: func(json.RawMessage) {}},
	)
	is.Equal(r.Outcome, jsvm.Thrown)
	is.Equal(r.Error.Message, "after")
}

func (s *suite) logs(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	r := run(t, rt, compile(t, rt, `export async function main(host) {
	console.log('text', 1, {a: [1, 'x', null], 'b c': undefined}, [new Map([[1, 2]]), new Set(['x'])])
	host.log('own'); host.log.debug('d'); host.log.info('i'); host.log.warn('w'); host.log.error('e')
	console.debug('d'); console.info('i'); console.warn('w'); console.error(new TypeError('bad'))
	const loop = {}; loop.loop = loop
	console.log(loop, 1n, Symbol('s'), () => 1, new Date(0), /x/g, new Uint8Array(3))
	console.log({get x() { throw 1 }})
	console.assert(true, 'not shown'); console.assert(false, 'shown')
	console.count(); console.count()
	setTimeout(() => { throw new Error('in a timer') }, 1)
	await new Promise(r => setTimeout(r, 5))
}`), jsvm.Call{})
	if r.Outcome != jsvm.OK {
		t.Fatal(r.Error)
	}
	var got []string
	for _, l := range r.Logs {
		line, _, _ := strings.Cut(l.Text, "\n")
		got = append(got, l.Level+" "+line)
		is.True(time.Since(l.Time) < time.Minute)
	}
	is.Equal(got, []string{
		`info text 1 {a: [1, "x", null], "b c": undefined} [Map {1 => 2}, Set {"x"}]`,
		"info own", "debug d", "info i", "warn w", "error e", "debug d", "info i", "warn w", "error TypeError: bad",
		"info {loop: [circular]} 1n Symbol(s) [function anonymous] 1970-01-01T00:00:00.000Z /x/g [Uint8Array of 3 bytes]",
		"info [unprintable]",
		"error Assertion failed shown", "info default: 1", "info default: 2", "error Uncaught Error: in a timer",
	})
}

func (s *suite) logLimits(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	r := run(t, rt, compile(t, rt, body("for (let i = 0; i < 5000; i++) console.log('line', i)")), jsvm.Call{})
	is.Equal(r.Outcome, jsvm.OK)
	is.Equal(len(r.Logs), 100)
	is.Equal(r.LogsDropped, 4900)
	r = run(
		t, rt,
		compile(
			t, rt,
			body("console.log('x'.repeat(15000)); console.log('y'.repeat(15000)); console.log('z'); "+
				"console.log('💥'.repeat(10))"),
		),
		jsvm.Call{},
	)
	is.Equal(len(r.Logs), 3)
	is.Equal(r.LogsDropped, 1)
	r = run(
		t, rt, compile(t, rt, body("console.log('before'); for (;;);")),
		jsvm.Call{Limits: jsvm.Limits{Time: 50 * time.Millisecond}},
	)
	is.Equal(r.Outcome, jsvm.Timeout)
	is.Equal(len(r.Logs), 1)
	// A loop in the engine's own code: the process is killed, and the line is there.
	r = run(
		t, rt, compile(t, rt, body("console.log('before'); [].indexOf.call({length: 2 ** 53 - 1}, 1)")),
		jsvm.Call{Limits: jsvm.Limits{Time: 200 * time.Millisecond}},
	)
	is.Equal(r.Outcome, jsvm.Timeout)
	is.Equal(len(r.Logs), 1)
}

func (s *suite) limits(t *testing.T) {
	is := is.New(t)
	highest := usual()
	highest.Time, highest.Memory, highest.Output = 100*time.Millisecond, 8<<20, 1000
	rt := s.runtime(t, highest)
	huge := jsvm.Limits{
		Time:      time.Hour,
		Memory:    1 << 40,
		Output:    1 << 30,
		LogBytes:  1 << 30,
		LogLines:  1 << 30,
		Calls:     1 << 30,
		CallBytes: 1 << 30,
	}
	r := run(t, rt, compile(t, rt, body("for (;;);")), jsvm.Call{Limits: huge}) // nobody goes beyond the highest ones
	is.Equal(r.Outcome, jsvm.Timeout)
	is.True(r.Duration >= 100*time.Millisecond)
	is.True(r.Duration < 10*time.Second)
	r = run(t, rt, compile(t, rt, body("const a = []; for (;;) a.push(new ArrayBuffer(1e6))")), jsvm.Call{Limits: huge})
	is.Equal(r.Outcome, jsvm.Memory)
	is.True(r.PeakMemory > 4<<20)
	is.True(r.PeakMemory < 80<<20)
	r = run(t, rt, compile(t, rt, body("return 'x'.repeat(999)")), jsvm.Call{Limits: huge})
	is.Equal(r.Outcome, jsvm.Thrown)
	contains(t, r.Error.Message, "1001 bytes")
	is.Equal(run(t, rt, compile(t, rt, body("return 'x'.repeat(998)")), jsvm.Call{}).Outcome, jsvm.OK)
}

func (s *suite) parallel(t *testing.T) {
	rt := s.runtime(t, usual())
	p := compile(t, rt, "export async function main(n, host) { return [n, await host.echo(n)] }")
	var working sync.WaitGroup
	for i := range 50 {
		working.Go(func() {
			is := is.New(t)
			n, _ := json.Marshal(i)
			r, err := rt.Run(t.Context(), p, jsvm.Call{
				Function: "main", Args: []json.RawMessage{n},
				Functions: map[string]jsvm.Function{"echo": echo}, Tenant: string(rune('a' + i%3)),
			})
			is.NoErr(err)
			is.Equal(string(r.Value), "["+string(n)+",["+string(n)+"]]")
		})
	}
	working.Wait()
}
