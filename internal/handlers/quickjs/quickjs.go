// Package quickjs is the ready jsvm.Runtime: it runs scripts with QuickJS, translated to Go, in
// processes that can be killed.
//
// No engine in the process of a server can be trusted with what tenants write: some loops inside of
// built-in functions cannot be interrupted, and a lack of memory ends the process. So a Runtime
// starts the program again as its children, each of which runs one invocation at a time, and kills
// those that do not stop by themselves. A child has no environment, no file, no connection and no
// right to open one; a pair of sockets to the server is all it has. What comes from there is
// checked: a child whose engine was broken into can do no more than a script.
//
// Each invocation begins with a copy of the engine's memory as it was after the program was loaded,
// which takes some microseconds, and leaves nothing behind.
//
// A program that uses the package calls Child first in its main function.
package quickjs

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"time"

	"modernc.org/libquickjs"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// Options configure a Runtime. The zero value has sensible defaults.
type Options struct {
	// Processes is the most scripts at once, each in a child, with those that wait; at least 2. By
	// default one for each 32 MiB of Memory, but 8 to 256. A quarter of it, but 2 at least, comes
	// on top for the scripts that functions of the host run on behalf of other scripts, and as much
	// again for each of two deeper levels. One tenant has at most half of them, and one key at most
	// a quarter, while others want none.
	Processes int
	// Memory is how many bytes of memory the scripts that run may have together; by default half of
	// the machine's, or 2 GiB where that is not known. Above it, scripts of the tenant that has
	// most are ended.
	Memory int64
	// Computing is how many scripts compute at once at usual priority; by default twice the number
	// of processors, but 4 to 32. One tenant has at most half of them. A script that computes for
	// more than 100 milliseconds without waiting goes on at the lowest priority, and is suspended
	// while as many others as there are processors do so, whose tenant or key has used less CPU
	// time lately.
	Computing int

	// Spare is how many children are ready for tenants that have none; by default 2, and none if it
	// is negative.
	Spare int
	// Idle is how many children wait for the next script of their tenant; by default half of
	// Processes.
	Idle int
	// IdleTime is after how long idle children of tenants are ended; by default a minute.
	IdleTime time.Duration

	// Queue is how many calls wait at once to begin, by default 4,096. One tenant takes at most
	// half of it, and one key a quarter. Further calls fail with errs.Unavailable.
	Queue int
	// QueueTime is how long a call waits; by default 10 seconds. Then it fails with
	// errs.Unavailable.
	QueueTime time.Duration

	// Limits are the highest and default limits of an invocation. By default 30 seconds, of
	// which it can be active all the time, 128 MiB of memory, results of 8 MiB, 64 KiB and 1,000
	// lines of logs, and 1,000 calls of the host's functions with 4 MiB each.
	Limits jsvm.Limits
	// Grace is how long after its end a script may take to stop before its process is killed; by
	// default 100 milliseconds.
	Grace time.Duration

	// CompileTime is the CPU time that Compile may take, with the time that it waits for files; by
	// default 20 seconds.
	CompileTime time.Duration
	// MaxFiles and MaxSource are how many files one script imports, and how many bytes they have
	// together; by default 1,000 and 4 MiB.
	MaxFiles  int
	MaxSource int

	// Prelude is JavaScript of the host that decides how exports are called: an expression whose
	// value is a function. It is called once with an object that has the functions
	//
	//	call(name, ...args)     calls a Function of the Call and returns a promise of its result
	//	callSync(name, ...args) calls one and returns its result; nothing else of the script runs meanwhile
	//	respond(value)          sends the early result
	//	log(...args)            logs, also log.debug, log.info, log.warn and log.error
	//	crypto, base64Encode, base64Decode, base64UrlEncode, base64UrlDecode
	//
	// and returns the function (f, args, functions) that calls the export f with what it should
	// get. Its globals are the script's; what it needs of them it takes when it is called first,
	// before a script can change them.
	Prelude string

	Logger *slog.Logger // by default slog.Default()
}

func (o Options) withDefaults() Options {
	if o.Memory == 0 {
		o.Memory = cmp.Or(subprocess.MachineMemory()/2, 2<<30)
	}
	set(&o.Processes, int(min(max(o.Memory/usualSize, 8), 256)))
	set(&o.Computing, min(max(2*runtime.GOMAXPROCS(0), 4), 32))
	set(&o.Spare, 2)
	o.Spare = max(o.Spare, 0)
	set(&o.Idle, o.Processes/2)
	set(&o.IdleTime, time.Minute)
	set(&o.Queue, 4096)
	set(&o.QueueTime, 10*time.Second)
	set(&o.Grace, 100*time.Millisecond)
	set(&o.CompileTime, 20*time.Second)
	set(&o.MaxFiles, 1000)
	set(&o.MaxSource, 4<<20)
	set(&o.Limits.Time, 30*time.Second)
	set(&o.Limits.Active, o.Limits.Time)
	set(&o.Limits.Memory, 128<<20)
	set(&o.Limits.Output, 8<<20)
	set(&o.Limits.LogBytes, 64<<10)
	set(&o.Limits.LogLines, 1000)
	set(&o.Limits.Calls, 1000)
	set(&o.Limits.CallBytes, 4<<20)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func set[T int | int64 | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

// usualSize is the memory of a child whose script needs little.
const usualSize = 32 << 20

// The bounds of Options: what has to fit into a frame, and what the engine needs.
const (
	minMemory = 2 << 20
	maxMemory = 4 << 30
	maxBytes  = 256 << 20
)

func (o Options) check() error {
	switch {
	case o.Processes < 2:
		return errs.New(errs.Invalid, "Processes must be 2 at least: one tenant takes at most half of them.")
	case o.Computing < 1 || o.Memory < 0 || o.Idle < 0:
		return errs.New(errs.Invalid, "Computing must be 1 at least, and Memory and Idle cannot be negative.")
	case o.Limits.Memory < minMemory || o.Limits.Memory > maxMemory:
		return errs.New(errs.Invalid, "Limits.Memory must be between 2 MiB and 4 GiB.")
	case min(o.Limits.Time, o.Limits.Active, o.Grace, o.CompileTime, o.QueueTime, o.IdleTime) < 0:
		return errs.New(errs.Invalid, "No time can be negative.")
	}
	for _, n := range []int{
		o.Limits.Output, o.Limits.LogBytes, o.Limits.LogLines, o.Limits.Calls, o.Limits.CallBytes, o.MaxSource,
		o.MaxFiles, o.Queue,
	} {
		if n < 0 || n > maxBytes {
			return errs.New(errs.Invalid, "No limit of bytes or calls can be negative or above 256 MiB.")
		}
	}
	return nil
}

// engineName identifies the bytecode.
func engineName() string { return "quickjs " + libquickjs.MCONFIG_VERSION }

// Runtime runs scripts in children of the program. It starts them when they are needed.
type Runtime struct {
	o         Options
	scheduler *scheduler
	pool      *pool
}

// levels is how deep invocations can be within each other: a function that a script calls may run
// another script. Each level has its own places, so that those who hold some never wait for each
// other.
const levels = 4

// levelKey is the key of the level in a context.
type levelKey struct{}

var _ jsvm.Runtime = (*Runtime)(nil)

// New returns a Runtime. It starts nothing. It returns errs.Invalid if an option is out of bounds,
// and an error if the program has not called Child.
func New(o Options) (*Runtime, error) {
	if !called.Load() {
		return nil, errs.New(errs.Invalid,
			"quickjs.Child() must be the first call of the program's main function (in tests: of TestMain): "+
				"scripts run in processes of the same program, which would otherwise run main a second time.")
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Runtime{o: o, pool: newPool(o), scheduler: newScheduler(o.scheduling())}, nil
}

// scheduling returns the options of the scheduler.
func (o Options) scheduling() schedulerOptions {
	within := max(o.Processes/4, 2)
	return schedulerOptions{
		places: [levels]int{o.Processes, within, within, within}, slots: o.Computing, cores: runtime.GOMAXPROCS(0),
		queue: o.Queue, timeout: o.QueueTime, memory: o.Memory, most: o.Limits.Memory + usualSize,
	}
}

// Close kills all children.
func (rt *Runtime) Close() error {
	rt.pool.close()
	return nil
}

// Stats are numbers about a Runtime at one moment.
type Stats struct {
	Processes int // children, starting ones, too
	Idle      int
	Waiting   int   // calls that wait to begin, and scripts that wait to go on
	Suspended int   // scripts that have computed for long, and wait for others that do
	Evicted   int64 // scripts that were ended in favour of others
	Started   int64 // children since New
	Killed    int64 // of them those that were killed because they did not stop, and those that ended by themselves
}

// Stats returns numbers about the Runtime.
func (rt *Runtime) Stats() Stats {
	s := rt.pool.stats()
	s.Waiting, s.Suspended, s.Evicted = rt.scheduler.counts()
	return s
}

// CPUTime returns the CPU time that the scripts of a tenant, and those of each of its keys, have
// used in about the last minute.
func (rt *Runtime) CPUTime(tenant string) (all time.Duration, keys map[string]time.Duration) {
	return rt.scheduler.lately(tenant)
}

// Shares returns what the Options amount to.
func (rt *Runtime) Shares() jsvm.Shares {
	tenant, key := mostPlaces(rt.o.Processes)
	o := rt.o.scheduling()
	return jsvm.Shares{
		Scripts: rt.o.Processes, OfTenant: tenant, OfKey: key, Computing: rt.o.Computing,
		Slice: slice, Window: window, TenantCPU: o.tenantBudget(), KeyCPU: o.appBudget(),
	}
}

// ProcessIDs returns the ids of the children, for measurements.
func (rt *Runtime) ProcessIDs() []int { return rt.pool.pids() }

const busy = "Too many scripts run at the moment. Try again later."

// acquire waits until a script may begin and returns a child for it, and the function to be called
// with the child when it is not used any more.
func (rt *Runtime) acquire(
	ctx context.Context, tenant, key, hash string,
) (*task, *process, func(reusable bool), error) {
	level, _ := ctx.Value(levelKey{}).(int)
	if level >= levels {
		return nil, nil, nil, errs.New(errs.Invalid, "Scripts call each other more than %d deep.", levels-1)
	}
	t := &task{tenant: tenant, app: key, level: level}
	if err := rt.scheduler.begin(ctx, t); err != nil {
		return nil, nil, nil, limiter.Unavailable(err, busy)
	}
	c := call{tenant, key, hash, rt.scheduler.more(t)}
	p, err := rt.pool.ready(c)
	if p == nil && err == nil {
		rt.scheduler.starting(t)
		if p, err = rt.pool.add(ctx, c); err == nil {
			rt.scheduler.resume(ctx, t)
		}
	}
	if err != nil {
		rt.scheduler.end(t)
		return nil, nil, nil, err
	}
	return t, p, func(reusable bool) {
		rt.pool.put(p, reusable)
		rt.scheduler.end(t)
	}, nil
}

// Run implements jsvm.Runtime.
func (rt *Runtime) Run(ctx context.Context, p *jsvm.Program, c jsvm.Call) (jsvm.Result, error) {
	switch {
	case p.Engine != engineName():
		return jsvm.Result{}, errs.New(
			errs.Conflict, "The script was compiled by %s, and this is %s: compile it again.", p.Engine,
			engineName(),
		)
	case !slices.Contains(p.Exports, c.Function):
		return jsvm.Result{}, errs.New(errs.NotFound, "%s exports no %s.", p.Entry, c.Function)
	}
	args, err := encodeArgs(c.Args)
	if err != nil {
		return jsvm.Result{}, err
	}
	limits := c.Limits.Within(rt.o.Limits)
	limits.Memory = max(limits.Memory, minMemory)
	inv := &invocation{
		hash:      p.Hash,
		function:  c.Function,
		args:      args,
		functions: slices.Sorted(maps.Keys(c.Functions)),
		limits:    limits,
	}
	asked := time.Now()
	for {
		x, err := rt.invoke(ctx, p, c, inv)
		switch {
		case err != nil:
			return jsvm.Result{}, err
		case x.unsent && ctx.Err() == nil:
			continue // an idle child has ended: the next one is another
		case x.result.Outcome == notLoaded:
			return jsvm.Result{}, errs.New(errs.Conflict, "The compiled script is damaged: compile it again.")
		}
		r := x.result
		r.Waited, r.Duration = x.started.Sub(asked), time.Since(x.started)
		return r, nil
	}
}

// invoke runs a program in a child.
func (rt *Runtime) invoke(ctx context.Context, p *jsvm.Program, c jsvm.Call, inv *invocation) (*exchange, error) {
	task, child, done, err := rt.acquire(ctx, c.Tenant, c.Key, p.Hash)
	if err != nil {
		return nil, err
	}
	x := &exchange{rt: rt, task: task, process: child, limits: inv.limits, functions: c.Functions, respond: c.Respond}
	known, forget := child.load(p)
	inv.forget, inv.code, inv.sourceMap = forget, nil, nil
	if !known {
		inv.code, inv.sourceMap = p.Code, p.Map
	}
	reusable := x.run(ctx, kindRun, inv.encode())
	done(reusable && x.result.Outcome != notLoaded)
	return x, nil
}

// encodeArgs returns the arguments as a JSON array.
func encodeArgs(args []json.RawMessage) ([]byte, error) {
	size := 2
	for _, a := range args {
		size += len(a) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, a := range args {
		if !rawjson.Valid(a) {
			return nil, errs.New(errs.Invalid, "Argument %d of the call is no JSON.", i+1)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, a...)
	}
	if len(b) > maxBytes {
		return nil, errs.New(errs.TooLarge, "The arguments of the call are too long.")
	}
	return append(b, ']'), nil
}

// Limits returns the highest and default limits of an invocation.
func (rt *Runtime) Limits() jsvm.Limits { return rt.o.Limits }
