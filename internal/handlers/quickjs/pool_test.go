package quickjs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

func newRuntime(t *testing.T, o Options) *Runtime {
	t.Helper()
	rt, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func compiledProgram(t *testing.T, rt *Runtime, source string) *jsvm.Program {
	t.Helper()
	p, err := rt.Compile(t.Context(), jsvm.Source{Entry: "a.js", Files: jsvm.Files{"a.js": source}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gate is a function of the host that waits.
type gate struct {
	entered chan string
	open    chan struct{}
}

func newGate() *gate { return &gate{make(chan string, 100), make(chan struct{})} }

func (g *gate) functions() map[string]jsvm.Function {
	return map[string]jsvm.Function{"wait": func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		g.entered <- string(args)
		select {
		case <-g.open:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	}}
}

const waiting = "export async function main(name, host) { await host.wait(name); return name }"

func TestNewNeedsChild(t *testing.T) {
	is := is.New(t)
	called.Store(false)
	defer called.Store(true)
	_, err := New(Options{})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.Contains(errs.MessageOf(err), "quickjs.Child() must be the first call"))
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{Processes: 1}, {Processes: -1},
		{Limits: jsvm.Limits{Memory: 1000}}, {Limits: jsvm.Limits{Memory: 1 << 40}}, {Limits: jsvm.Limits{Time: -1}},
		{Limits: jsvm.Limits{Output: 1 << 30}}, {Limits: jsvm.Limits{Calls: -1}}, {Queue: -1}, {Grace: -1},
	} {
		_, err := New(o)
		is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	}
}

// slowFiles takes a second to open a file.
type slowFiles struct{ jsvm.Files }

func (f slowFiles) Open(name string) (fs.File, error) {
	time.Sleep(time.Second)
	return f.Files.Open(name)
}

func TestCompileTime(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{CompileTime: 100 * time.Millisecond})
	_, err := rt.Compile(t.Context(), jsvm.Source{
		Entry: "a.js",
		Files: slowFiles{jsvm.Files{"a.js": "export const a = 1"}},
	})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(errs.MessageOf(err), "a.js takes more than 100ms to compile.")
}

// TestOneTenantHoldsHalf: the other half of the processes stays free for others, however much one
// tenant wants.
func TestOneTenantHoldsHalf(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 4, Queue: 16, QueueTime: time.Minute, Spare: -1})
	p := compiledProgram(t, rt, waiting)
	g := newGate()
	var working sync.WaitGroup
	run := func(tenant, key string) {
		working.Go(func() {
			r, err := rt.Run(t.Context(), p, jsvm.Call{
				Function: "main", Args: []json.RawMessage{[]byte(`"` + tenant + `"`)},
				Functions: g.functions(), Tenant: tenant, Key: key,
			})
			if err != nil || r.Outcome != jsvm.OK {
				t.Error(err, r.Error)
			}
		})
	}
	for range 6 {
		run("flood", "app")
	}
	waitFor(t, "two run and four wait", func() bool { return len(g.entered) == 2 && rt.Stats().Waiting == 4 })
	_, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main", Tenant: "flood", Key: "app"}) // a quarter of the queue
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.Equal(errs.MessageOf(err), busy)
	run("quiet", "app")
	run("other", "app")
	waitFor(t, "others run", func() bool { return len(g.entered) == 4 })
	run("third", "app")
	waitFor(t, "all are busy", func() bool { return rt.Stats().Waiting == 5 })
	close(g.open)
	working.Wait()
	is.Equal(rt.Stats().Waiting, 0)
	is.Equal(rt.Stats().Evicted, int64(0))
}

func TestFullQueueIsUnavailable(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, Queue: 100, QueueTime: 10 * time.Millisecond})
	p := compiledProgram(t, rt, waiting)
	g := newGate()
	done := make(chan error)
	go func() {
		_, err := rt.Run(context.Background(), p, jsvm.Call{
			Function:  "main",
			Args:      []json.RawMessage{[]byte("1")},
			Functions: g.functions(),
			Tenant:    "a",
		})
		done <- err
	}()
	<-g.entered
	_, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main", Tenant: "a"})
	is.Equal(errs.CodeOf(err), errs.Unavailable) // after 10 ms
	close(g.open)
	is.NoErr(<-done)
}

// TestKilledProcessIsReplaced: the next call finds a process that has started already.
func TestKilledProcessIsReplaced(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, Grace: 10 * time.Millisecond, Spare: 1})
	p := compiledProgram(
		t, rt,
		"export const main = () => [].indexOf.call({length: 2 ** 53 - 1}, 1)\nexport const well = () => 1",
	)
	waitFor(t, "a spare one", func() bool { return rt.Stats().Idle == 2 })
	before := rt.ProcessIDs()
	r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main", Limits: jsvm.Limits{Time: 30 * time.Millisecond}})
	is.NoErr(err)
	is.Equal(r.Outcome, jsvm.Timeout)
	is.True(r.Killed)
	waitFor(t, "its end", func() bool { return len(rt.ProcessIDs()) == 1 })
	r, err = rt.Run(t.Context(), p, jsvm.Call{Function: "well"})
	is.NoErr(err)
	is.Equal(string(r.Value), "1")
	waitFor(t, "another spare one", func() bool { return rt.Stats().Idle == 2 })
	is.True(slices.ContainsFunc(rt.ProcessIDs(), func(pid int) bool { return slices.Contains(before, pid) }))
	is.Equal(rt.Stats().Started, int64(3))
	is.Equal(rt.Stats().Killed, int64(1))
}

// TestIdleProcessThatDies: something else ends an idle process, such as the kernel when memory is
// short.
func TestIdleProcessThatDies(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, Spare: -1})
	p := compiledProgram(t, rt, "export const main = () => 1")
	for _, pid := range rt.ProcessIDs() {
		child, err := os.FindProcess(pid)
		is.NoErr(err)
		is.NoErr(child.Kill())
	}
	waitFor(t, "its end is seen", func() bool { return rt.Stats().Processes == 0 })
	r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main"})
	is.NoErr(err)
	is.Equal(r.Outcome, jsvm.OK)
}

// TestProcessThatDiesAtWork: the outcome says so, and the caller is not left waiting.
func TestProcessThatDiesAtWork(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, Spare: -1})
	p := compiledProgram(t, rt, waiting)
	g := newGate()
	go func() {
		<-g.entered
		for _, pid := range rt.ProcessIDs() {
			if child, err := os.FindProcess(pid); err == nil {
				child.Kill()
			}
		}
	}()
	r, err := rt.Run(t.Context(), p, jsvm.Call{
		Function:  "main",
		Args:      []json.RawMessage{[]byte("1")},
		Functions: g.functions(),
	})
	is.NoErr(err)
	is.Equal(r.Outcome, jsvm.Killed)
	is.Equal(r.Error.Message, "The process of the script ended unexpectedly.")
}

func TestIdleProcessesAreEnded(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 4, IdleTime: 20 * time.Millisecond, Spare: 1})
	p := compiledProgram(t, rt, waiting)
	g := newGate()
	var working sync.WaitGroup
	for i := range 4 {
		working.Go(func() {
			rt.Run(t.Context(), p, jsvm.Call{
				Function:  "main",
				Args:      []json.RawMessage{[]byte("1")},
				Functions: g.functions(),
				Tenant:    strconv.Itoa(i),
			})
		})
	}
	waitFor(t, "four run", func() bool { return len(g.entered) == 4 })
	close(g.open)
	working.Wait()
	waitFor(t, "one is left", func() bool { return rt.Stats().Processes == 1 && len(rt.ProcessIDs()) == 1 })
	is.Equal(rt.Stats().Idle, 1)
}

// TestProgramsTakeNoProcess: programs that are not in use cost nothing, and a process keeps a
// bounded number of them.
func TestProgramsTakeNoProcess(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, Spare: -1})
	var programs []*jsvm.Program
	for i := range 100 {
		programs = append(programs, compiledProgram(t, rt, "export const main = () => "+strconv.Itoa(i)))
	}
	for range 2 {
		for i, p := range programs {
			r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main"})
			is.NoErr(err)
			is.Equal(string(r.Value), strconv.Itoa(i))
		}
	}
	is.Equal(rt.Stats().Processes, 1)
	rt.pool.mu.Lock()
	defer rt.pool.mu.Unlock()
	is.True(len(rt.pool.idle[0].programs) < 40)
}

func TestCloseLeavesNothing(t *testing.T) {
	is := is.New(t)
	before := goleak.IgnoreCurrent()
	rt := newRuntime(t, Options{Processes: 2})
	p := compiledProgram(t, rt, "export const main = () => 1")
	_, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main"})
	is.NoErr(err)
	pids := rt.ProcessIDs()
	is.NoErr(rt.Close())
	is.Equal(rt.Stats().Processes, 0)
	for _, pid := range pids {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		is.True(errors.Is(err, os.ErrNotExist))
	}
	goleak.VerifyNone(t, before)
}

// TestPrelude: the host decides how exports are called.
func TestPrelude(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, Prelude: `host => {
	const { freeze } = Object
	const env = freeze({NAME: 'value'})
	return (f, [request]) => f({request, env, query: (sql, params = []) => host.call('query', sql, params), ` +
		`now: () => host.callSync('now'), log: host.log, crypto: host.crypto})
}`})
	p := compiledProgram(t, rt, `export async function POST({request, env, query, now, log}) {
	const slow = query('slow')
	log.warn('both')
	return [request.n, env.NAME, await query('select $1', [5]), now(), await slow]
}
export const config = {timeout: 5}`)
	r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "POST",
		Args: []json.RawMessage{[]byte(`{"n":1}`)}, Functions: map[string]jsvm.Function{
			"query": func(_ context.Context, args json.RawMessage) (json.RawMessage, error) { return args, nil },
			"now":   func(context.Context, json.RawMessage) (json.RawMessage, error) { return []byte(`"then"`), nil },
		}})
	is.NoErr(err)
	is.Equal(string(r.Value), `[1,"value",["select $1",[5]],"then",["slow",[]]]`)
	is.Equal(r.Logs[0].Level, "warn")
	many := compiledProgram(t, rt, `export async function POST({query, now}) {
	const all = Array.from({length: 40}, (_, i) => query(i))
	return [now(), (await Promise.all(all)).length]
}`)
	release := make(chan struct{})
	r, err = rt.Run(t.Context(), many, jsvm.Call{Function: "POST",
		Args: []json.RawMessage{[]byte(`{}`)}, Functions: map[string]jsvm.Function{
			"query": func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
				<-release
				return args, nil
			},
			"now": func(context.Context, json.RawMessage) (json.RawMessage, error) {
				close(release)
				return nil, nil
			},
		}})
	is.NoErr(err)
	is.Equal(string(r.Value), `[null,40]`) // a synchronous call comes on top of those that are under way
	broken := newRuntime(t, Options{Processes: 2, Prelude: "host => ("})
	_, err = broken.Compile(t.Context(), jsvm.Source{Entry: "a.js", Files: jsvm.Files{"a.js": ""}})
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.True(strings.Contains(err.Error(), "prelude"))
}

// TestScriptsWithinScripts: a function that a script calls runs another script, also while the
// tenant holds all that it may.
func TestScriptsWithinScripts(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, QueueTime: 10 * time.Second})
	p := compiledProgram(
		t, rt, "export const main = async (depth, host) => depth === 0 ? 'deep' : host.again(depth - 1)",
	)
	var again jsvm.Function
	run := func(ctx context.Context, depth json.RawMessage) (jsvm.Result, error) {
		return rt.Run(ctx, p, jsvm.Call{
			Function:  "main",
			Args:      []json.RawMessage{depth},
			Functions: map[string]jsvm.Function{"again": again},
			Tenant:    "a",
		})
	}
	again = func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		r, err := run(ctx, args[1:len(args)-1])
		if err == nil && r.Outcome != jsvm.OK {
			err = errs.New(errs.Invalid, "%s", r.Error.Message)
		}
		return r.Value, err
	}
	r, err := run(t.Context(), []byte("3"))
	is.NoErr(err)
	is.Equal(string(r.Value), `"deep"`)
	r, err = run(t.Context(), []byte("4"))
	is.NoErr(err)
	is.Equal(r.Outcome, jsvm.Thrown)
	is.Equal(r.Error.Message, "Scripts call each other more than 3 deep.")
}

// TestChildHasNothing reads from the outside what a process has.
func TestChildHasNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	is := is.New(t)
	t.Setenv("SECRET_OF_THE_SERVER", "x")
	open, err := os.Create(filepath.Join(t.TempDir(), "open"))
	is.NoErr(err)
	defer open.Close()
	rt := newRuntime(t, Options{Processes: 2, Spare: -1})
	compiledProgram(t, rt, "export const main = 1")
	proc := "/proc/" + strconv.Itoa(rt.ProcessIDs()[0]) + "/"
	environment, err := os.ReadFile(proc + "environ")
	is.NoErr(err)
	var names []string
	for v := range bytes.SplitSeq(bytes.TrimRight(environment, "\x00"), []byte{0}) {
		name, _, _ := strings.Cut(string(v), "=")
		names = append(names, name)
	}
	is.Equal(names, []string{marker, "TZ", "GOMAXPROCS", "GODEBUG"})
	cwd, err := os.Readlink(proc + "cwd")
	is.NoErr(err)
	is.Equal(cwd, "/")
	if subprocess.Instrumented {
		return // the race detector needs the rest
	}
	files, err := os.ReadDir(proc + "fd")
	is.NoErr(err)
	for _, f := range files {
		to, _ := os.Readlink(proc + "fd/" + f.Name())
		switch {
		case strings.HasPrefix(to, "socket:") && (f.Name() == "0" || f.Name() == "1"):
		case strings.HasPrefix(to, "pipe:") && f.Name() == "2":
		case strings.HasPrefix(to, "anon_inode:"): // Go's own, to wait for the others
		default:
			t.Errorf("the process has %s open", to)
		}
	}
	status, err := os.ReadFile(proc + "status")
	is.NoErr(err)
	is.True(strings.Contains(string(status), "NoNewPrivs:\t1"))
	is.True(strings.Contains(string(status), "Seccomp:\t2"))
	if os.Geteuid() == 0 {
		is.True(strings.Contains(string(status), "Uid:\t65534\t65534\t65534\t65534"))
	}
	limits, err := os.ReadFile(proc + "limits")
	is.NoErr(err)
	for _, name := range []string{"Max core file size", "Max file size"} {
		_, rest, _ := strings.Cut(string(limits), name)
		is.Equal(strings.Fields(rest)[0], "0")
	}
}

// TestChildEndsWithItsServer runs a second server, which is killed.
func TestChildEndsWithItsServer(t *testing.T) {
	if pid := os.Getenv("JSVM_TEST_SERVER"); pid != "" {
		rt := newRuntime(t, Options{Processes: 2, Spare: -1})
		compiledProgram(t, rt, "export const main = 1")
		loop := compiledProgram(t, rt, "export const main = () => { for (;;); }")
		go rt.Run(t.Context(), loop, jsvm.Call{Function: "main"})
		os.WriteFile(pid, []byte(strconv.Itoa(rt.ProcessIDs()[0])), 0o600)
		select {}
	}
	if runtime.GOOS != "linux" {
		return
	}
	is := is.New(t)
	file := filepath.Join(t.TempDir(), "pid")
	server := exec.Command(os.Args[0], "-test.run", "^TestChildEndsWithItsServer$")
	server.Env = append(os.Environ(), "JSVM_TEST_SERVER="+file)
	is.NoErr(server.Start())
	var pid []byte
	waitFor(t, "the server has a child", func() bool { pid, _ = os.ReadFile(file); return len(pid) > 0 })
	is.NoErr(server.Process.Kill())
	server.Wait()
	waitFor(t, "the child has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + string(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ") // nobody may be there to wait for it
	})
}

// TestSlowScriptYields: a script that computes for long has the lowest priority, and its process
// the usual one for the next.
func TestSlowScriptYields(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 2, Spare: -1})
	p := compiledProgram(t, rt, "export const main = () => { for (;;); }\nexport const well = () => 1")
	nice := func() string {
		ids := rt.ProcessIDs()
		if len(ids) == 0 {
			return ""
		}
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(ids[0]) + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 16 {
			return fields[16]
		}
		return ""
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		r, err := rt.Run(ctx, p, jsvm.Call{Function: "main"})
		if err == nil && r.Outcome != jsvm.Canceled {
			err = r.Error
		}
		ended <- err
	}()
	waitFor(t, "a lower priority", func() bool { return nice() == "19" })
	cancel()
	is.NoErr(<-ended)
	_, err := rt.Run(t.Context(), p, jsvm.Call{Function: "well"})
	is.NoErr(err)
	is.Equal(nice(), "0")
}

// TestProcessServesOneTenant: what a tenant's script leaves in its process is in no process that
// works for another one.
func TestProcessServesOneTenant(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 4, Idle: 2, Spare: 1})
	p := compiledProgram(t, rt, "export const main = () => 1")
	run := func(tenant string) *process {
		t.Helper()
		r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main", Tenant: tenant})
		is.NoErr(err)
		is.Equal(r.Outcome, jsvm.OK)
		rt.pool.mu.Lock()
		defer rt.pool.mu.Unlock()
		child := rt.pool.idle[len(rt.pool.idle)-1]
		is.Equal(child.tenant, tenant)
		return child
	}
	left := map[string]*process{}
	for range 2 { // the compilation was of no tenant
		for _, tenant := range []string{"a", "b"} {
			child := run(tenant)
			is.True(left[tenant] == nil || left[tenant] == child) // the tenant's own one again
			left[tenant] = child
		}
	}
	is.True(left["a"].Pid != left["b"].Pid)
	c := run("c")
	is.True(c != left["a"] && c != left["b"])
	<-left["a"].dead // more than two are idle: the one that was used longest ago ends
	is.True(left["b"].alive())
	is.True(run("a") != left["a"])
}

// TestWaitingScriptLetsOthersCompute: scripts that wait for a function or a timer hold no slot, and
// go on when there is one.
func TestWaitingScriptLetsOthersCompute(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 32, Computing: 2})
	p := compiledProgram(t, rt, `export async function main(name, host) { await host.wait(name); return name }
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms, ms))
export const quick = () => 1`)
	g := newGate()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan jsvm.Result, 100)
	call := func(function, key, arg string) {
		go func() {
			r, err := rt.Run(ctx, p, jsvm.Call{
				Function:  function,
				Args:      []json.RawMessage{[]byte(arg)},
				Functions: g.functions(),
				Tenant:    "acme",
				Key:       key,
			})
			if err != nil {
				t.Error(err)
			}
			ended <- r
		}()
	}
	for i := range 4 {
		call("main", "slow", strconv.Itoa(i))
		call("sleep", "slower", "1000000")
	}
	waitFor(t, "all wait", func() bool {
		rt.scheduler.mu.Lock()
		defer rt.scheduler.mu.Unlock()
		paused := 0
		for one := range rt.scheduler.placed {
			if one.phase == phasePaused {
				paused++
			}
		}
		return paused == 8
	})
	for range 20 {
		r, err := rt.Run(ctx, p, jsvm.Call{Function: "quick", Tenant: "acme", Key: "other"})
		is.NoErr(err)
		is.Equal(string(r.Value), "1")
	}
	close(g.open)
	for range 4 {
		is.Equal((<-ended).Outcome, jsvm.OK)
	}
	cancel()
	for range 4 {
		is.Equal((<-ended).Outcome, jsvm.Canceled)
	}
	is.Equal(rt.scheduler.slots, 0)
}

// TestStartingProcessLetsOthersCompute: while the processes of an app start, other apps of its
// tenant compute, and further calls of it wait for the processes that it has.
func TestStartingProcessLetsOthersCompute(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 32, Computing: 2, Spare: -1})
	p := compiledProgram(t, rt, `export async function main(name, host) { await host.wait(name); return name }`)
	ended := make(chan jsvm.Result, 100)
	run := func(g *gate) {
		r, err := rt.Run(t.Context(), p, jsvm.Call{
			Function: "main", Args: []json.RawMessage{[]byte("1")}, Functions: g.functions(),
			Tenant: "acme", Key: "busy",
		})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}
	first, others := newGate(), newGate()
	go run(first)
	<-first.entered // it has the only process
	start, err := rt.pool.starts.Acquire(t.Context(), 1, "acme", "another")
	is.NoErr(err)
	for range 3 {
		go run(others)
	}
	waitFor(t, "one waits for a process, and the others for it", func() bool {
		rt.scheduler.mu.Lock()
		defer rt.scheduler.mu.Unlock()
		starting := 0
		for one := range rt.scheduler.placed {
			if one.phase == phaseStarting {
				starting++
			}
		}
		return starting == 1 && rt.scheduler.waiting == 2
	})
	close(first.open)
	is.Equal((<-ended).Outcome, jsvm.OK)
	open := newGate()
	close(open.open)
	for range 5 {
		r, err := rt.Run(t.Context(), p, jsvm.Call{
			Function: "main", Args: []json.RawMessage{[]byte("2")}, Functions: open.functions(),
			Tenant: "acme", Key: "other",
		})
		is.NoErr(err)
		is.Equal(string(r.Value), "2")
	}
	started := rt.Stats().Started
	greedy, err := rt.pool.ready(call{"acme", "busy", p.Hash, true})
	is.NoErr(err)
	is.Equal(greedy, nil) // it is left to the other app for a while
	close(others.open)
	start()
	for range 3 {
		is.Equal((<-ended).Outcome, jsvm.OK)
	}
	is.Equal(rt.Stats().Started, started+1) // one process was enough for the three
	rt.scheduler.mu.Lock()
	a, b := rt.scheduler.accounts(&task{tenant: "acme", app: "busy"})
	slots := [3]int{rt.scheduler.slots, a.slots, b.slots}
	rt.scheduler.mu.Unlock()
	is.Equal(slots, [3]int{})
}

// TestTimersOfWaitingScripts: the server wakes a script for its timers, in order and also while
// answers come.
func TestTimersOfWaitingScripts(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 4})
	p := compiledProgram(t, rt, `export async function main(_, host) {
	const seen = []
	const after = (ms) => new Promise((done) => setTimeout(() => { seen.push(ms); done() }, ms))
	await Promise.all([after(60), after(20), after(0), after(40)])
	for (let i = 0; i < 100; i++) { await after(1); await host.echo(i) }
	const slow = host.sleep(30), ticks = []
	const interval = setInterval(() => ticks.push(1), 4)
	await slow
	clearInterval(interval)
	return [seen.slice(0, 4), seen.length, ticks.length > 1]
}`)
	r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "main",
		Args: []json.RawMessage{[]byte("0")}, Functions: map[string]jsvm.Function{
			"echo": func(_ context.Context, args json.RawMessage) (json.RawMessage, error) { return args, nil },
			"sleep": func(context.Context, json.RawMessage) (json.RawMessage, error) {
				time.Sleep(60 * time.Millisecond)
				return nil, nil
			},
		}})
	is.NoErr(err)
	is.Equal(r.Error, nil)
	is.Equal(string(r.Value), "[[0,20,40,60],104,true]")
}

// TestEndlessScriptsAreSuspended: they hold up no other script, and are as well as others ended at
// their time-out, also when they are suspended.
func TestEndlessScriptsAreSuspended(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 64})
	p := compiledProgram(t, rt, "export const loop = () => { for (;;); }\nexport const quick = () => 1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan jsvm.Outcome, 100)
	loop := func(tenant string, d time.Duration) {
		go func() {
			r, err := rt.Run(ctx, p, jsvm.Call{
				Function: "loop",
				Tenant:   tenant,
				Key:      "a",
				Limits:   jsvm.Limits{Time: d},
			})
			if err != nil {
				t.Error(err)
			}
			ended <- r.Outcome
		}()
	}
	for tenant := range 4 {
		for range 4 {
			loop("hostile "+strconv.Itoa(tenant), time.Hour)
		}
	}
	waitFor(t, "all are slow", func() bool {
		rt.scheduler.mu.Lock()
		defer rt.scheduler.mu.Unlock()
		return len(rt.scheduler.slow) == 16
	})
	if runtime.GOOS == "linux" {
		is.Equal(rt.Stats().Suspended, max(16-runtime.GOMAXPROCS(0), 0))
	}
	for _, tenant := range []string{"ninth", "hostile 1"} {
		for range 20 {
			r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "quick", Tenant: tenant, Key: "other"})
			is.NoErr(err)
			is.Equal(r.Outcome, jsvm.OK)
		}
	}
	for tenant := range 4 {
		loop("hostile "+strconv.Itoa(tenant), 300*time.Millisecond)
	}
	for range 4 {
		is.Equal(<-ended, jsvm.Timeout)
	}
	used, of := rt.CPUTime("hostile 1")
	is.True(used > 0 && of["a"] > 0)
	cancel()
	for range 16 {
		is.Equal(<-ended, jsvm.Canceled)
	}
	is.Equal(rt.Stats().Suspended, 0)
}

// TestScriptIsEvicted: with no place free, one of the tenant with most is ended in favour of a
// tenant that has none.
func TestScriptIsEvicted(t *testing.T) {
	is := is.New(t)
	rt := newRuntime(t, Options{Processes: 4})
	p := compiledProgram(t, rt, "export const loop = () => { for (;;); }\nexport const quick = () => 1")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan jsvm.Result, 100)
	for i, tenant := range []string{"a", "a", "b", "c"} {
		go func() {
			r, err := rt.Run(ctx, p, jsvm.Call{Function: "loop", Tenant: tenant})
			if err != nil {
				t.Error(err)
			}
			ended <- r
		}()
		waitFor(t, "it is slow", func() bool {
			rt.scheduler.mu.Lock()
			defer rt.scheduler.mu.Unlock()
			return len(rt.scheduler.slow) == i+1
		})
	}
	r, err := rt.Run(t.Context(), p, jsvm.Call{Function: "quick", Tenant: "d"})
	is.NoErr(err)
	is.Equal(r.Outcome, jsvm.OK)
	r = <-ended
	is.Equal(r.Outcome, jsvm.Evicted)
	is.True(strings.Contains(r.Error.Message, "in favour of others"))
	is.Equal(rt.Stats().Evicted, int64(1))
	cancel()
	for range 3 {
		is.Equal((<-ended).Outcome, jsvm.Canceled)
	}
}
