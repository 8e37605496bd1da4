package quickjs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// pool keeps the children of a Runtime. A child is a tenant's from its first script on, and works
// for no other one. How many are in use is limited by Runtime.scheduler.
type pool struct {
	o Options

	mu       sync.Mutex
	all      map[*process]bool // those that have started
	idle     []*process        // those of tenants that wait, the one that has waited longest first
	spare    []*process        // those of no tenant
	starting int
	warming  int // of them those that will be spare
	closed   bool
	reaping  bool
	started  int64
	killed   int64

	background sync.WaitGroup
	unconfined sync.Once // to log it
	starter    subprocess.Starter
	starts     *limiter.Limiter // of children for calls that wait for them
}

// errStops is what calls get after Close.
var errStops = errs.New(errs.Unavailable, "Scripts are not run any more: the server stops.")

func newPool(o Options) *pool {
	return &pool{o: o, all: map[*process]bool{}, starts: limiter.New(limiter.Options{
		Capacity: int64(o.Computing), PerKey: int64(max(o.Computing/2, 1)), FairSubkeys: true, Timeout: startTime,
	})}
}

// call is what a child is wanted for.
type call struct {
	tenant, key, hash string
	more              bool // whether the key has others at work
}

// keeping is how long an idle child is left to the key that used it last when another one wants it
// that has some at work: a key with many long calls takes none that others use again and again.
const keeping = time.Second

// ready returns an idle child of the tenant, if possible one that has the program, or one of no
// tenant, which is the tenant's from now on. Without either it returns nil.
func (l *pool) ready(c call) (*process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errStops
	}
	at := -1
	for i := len(l.idle) - 1; i >= 0; i-- {
		p := l.idle[i]
		if p.tenant != c.tenant || c.more && p.key != c.key && time.Since(p.idleSince) < keeping {
			continue
		}
		if c.hash == "" || p.has(c.hash) {
			at = i
			break
		}
		if at < 0 {
			at = i
		}
	}
	if at >= 0 {
		p := l.idle[at]
		l.idle = slices.Delete(l.idle, at, at+1)
		p.key = c.key
		return p, nil
	}
	l.warm()
	n := len(l.spare)
	if n == 0 {
		return nil, nil
	}
	p := l.spare[n-1]
	l.spare = l.spare[:n-1]
	p.tenant, p.key = c.tenant, c.key
	l.warm()
	return p, nil
}

// add starts a child for a call, unless one is ready by the time that it may. Many
// starts of one tenant do not delay those of others, nor many of one key those of the tenant's
// other keys.
func (l *pool) add(ctx context.Context, c call) (*process, error) {
	release, err := l.starts.Acquire(ctx, 1, c.tenant, c.key)
	if err != nil {
		return nil, limiter.Unavailable(err, busy)
	}
	defer release()
	if p, err := l.ready(c); p != nil || err != nil {
		return p, err
	}
	l.mu.Lock()
	l.starting++
	l.mu.Unlock()
	p, err := l.start()
	if err != nil {
		return nil, err
	}
	p.tenant, p.key = c.tenant, c.key
	if ctx.Err() != nil {
		l.put(p, true)
		return nil, context.Cause(ctx)
	}
	return p, nil
}

// warm starts children, so that there are Spare ones of no tenant. The caller holds l.mu.
func (l *pool) warm() {
	for !l.closed && len(l.spare)+l.warming < l.o.Spare {
		l.starting++
		l.warming++
		l.background.Go(func() {
			p, err := l.start()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.warming--
			switch {
			case err == nil && (l.closed || !p.alive()):
				p.kill()
			case err == nil:
				l.spare = append(l.spare, p)
			case !errors.Is(err, errStops):
				l.o.Logger.Error("no JavaScript process could be started", "err", err)
			}
		})
	}
}

// put takes a child back. One that cannot be used again is killed.
func (l *pool) put(p *process, reusable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reusable && !l.closed && p.alive() {
		l.keepIdle(p)
		return
	}
	if !reusable {
		l.killed++
	}
	p.kill()
	l.warm()
}

// keepIdle adds a child to the idle ones. If there are too many, the one that has waited longest of
// the tenant with most is ended. The caller holds l.mu.
func (l *pool) keepIdle(p *process) {
	p.idleSince = time.Now()
	l.idle = append(l.idle, p)
	if len(l.idle) > l.o.Idle {
		most, of := 0, map[string]int{}
		for _, other := range l.idle {
			of[other.tenant]++
			most = max(most, of[other.tenant])
		}
		at := slices.IndexFunc(l.idle, func(other *process) bool { return of[other.tenant] == most })
		l.idle[at].kill()
		l.idle = slices.Delete(l.idle, at, at+1)
	}
	if !l.reaping && len(l.idle) > 0 {
		l.reaping = true
		time.AfterFunc(l.o.IdleTime, l.reap)
	}
}

// reap ends the children of tenants that have been idle for IdleTime.
func (l *pool) reap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.idle) > 0 && time.Since(l.idle[0].idleSince) >= l.o.IdleTime {
		l.idle[0].kill()
		l.idle = l.idle[1:]
	}
	if l.reaping = !l.closed && len(l.idle) > 0; l.reaping {
		time.AfterFunc(max(l.o.IdleTime-time.Since(l.idle[0].idleSince), l.o.IdleTime/10), l.reap)
	}
}

func (l *pool) close() {
	l.mu.Lock()
	l.closed = true
	for p := range l.all {
		p.kill()
	}
	l.idle, l.spare = nil, nil
	l.mu.Unlock()
	l.background.Wait()
	l.starter.Close()
}

func (l *pool) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *pool) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		Processes: len(l.all) + l.starting,
		Idle:      len(l.idle) + len(l.spare),
		Started:   l.started,
		Killed:    l.killed,
	}
}

func (l *pool) pids() (ids []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.all {
		ids = append(ids, p.Pid)
	}
	slices.Sort(ids)
	return ids
}

// process is a child as the server sees it.
type process struct {
	*subprocess.Process
	end       func() // kills it
	conn      *conn
	confined  string // what keeps it in
	tenant    string // for which it works
	key       string // for which it has worked last
	idleSince time.Time
	lowered   bool
	programs  []cached // in the child, the one that was used longest ago first
	dead      chan struct{}
	killOnce  sync.Once
	ours      atomic.Bool // whether we killed it
}

// cached is a program that a child has loaded.
type cached struct {
	hash string
	size int
}

// startTime is how long a child may take to start on a loaded machine.
const startTime = 30 * time.Second

// start starts a child and waits until it is ready. The caller has counted it in l.starting.
func (l *pool) start() (*process, error) {
	p, err := l.launch()
	l.mu.Lock()
	l.starting--
	closed := l.closed
	if err == nil {
		l.all[p] = true
		l.started++
		l.background.Go(func() { l.watch(p) })
	}
	l.mu.Unlock()
	if err == nil && closed {
		p.kill()
		return nil, errStops
	}
	if err == nil {
		err = p.greet(l.o.Prelude)
	}
	if err == nil && runtime.GOOS == "linux" && !subprocess.Instrumented && !strings.Contains(p.confined, "seccomp") {
		l.unconfined.Do(func() {
			l.o.Logger.Warn(
				"the system calls of JavaScript processes are not filtered: this system has no seccomp",
				"confined", p.confined,
			)
		})
	}
	if err != nil && l.isClosed() {
		return nil, errStops
	}
	if err != nil && p != nil {
		p.wait(time.Second)
		p.kill()
		<-p.dead
		err = fmt.Errorf("%w; it wrote: %q", err, p.Stderr())
	}
	if err != nil && errs.CodeOf(err) == errs.Internal {
		err = errs.Wrap(errs.Unavailable, err, "No process for scripts could be started.")
	}
	return p, err
}

// launch starts the program as a child.
func (l *pool) launch() (*process, error) {
	c, err := l.starter.Start(marker, strconv.FormatInt(l.o.Limits.Memory+l.o.Limits.Memory/4+16<<20, 10))
	if errors.Is(err, subprocess.ErrClosed) {
		return nil, errStops
	}
	if err != nil {
		return nil, err
	}
	return &process{Process: c, conn: newConn(c.Conn.R, c.Conn.W), end: c.Kill, dead: make(chan struct{})}, nil
}

// watch waits for the end of a child.
func (l *pool) watch(p *process) {
	p.Wait()
	l.mu.Lock()
	delete(l.all, p)
	for _, list := range []*[]*process{&l.idle, &l.spare} {
		if at := slices.Index(*list, p); at >= 0 {
			*list = slices.Delete(*list, at, at+1)
			l.killed++
		}
	}
	l.mu.Unlock()
	close(p.dead)
	p.Conn.Close()
}

// greet exchanges the first frames.
func (p *process) greet(prelude string) error {
	timer := time.AfterFunc(startTime, p.kill)
	defer timer.Stop()
	if err := p.conn.write(kindHello, 0, newEncoder(len(prelude)+16).string(prelude)); err != nil {
		return fmt.Errorf("jsvm: greeting the process: %w", err)
	}
	f, err := p.conn.read(func(kind) int { return 4 << 10 })
	if err != nil {
		return fmt.Errorf(
			"jsvm: the process has not started: is Child the first call of main, and is nothing printed before it? %w",
			err,
		)
	}
	d := &decoder{b: f.body}
	version, engine := d.int(), d.string()
	p.confined = d.string()
	if f.kind != kindHello || d.done() != nil || version != protocol || engine != engineName() {
		return fmt.Errorf("%w: no greeting, or that of another version", errFrame)
	}
	return nil
}

func (p *process) alive() bool {
	select {
	case <-p.dead:
		return false
	default:
		return !p.ours.Load()
	}
}

func (p *process) kill() {
	p.killOnce.Do(func() {
		p.ours.Store(true)
		p.end()
	})
}

// wait waits up to d for the end of the process.
func (p *process) wait(d time.Duration) {
	select {
	case <-p.dead:
	case <-time.After(d):
	}
}

// ending returns the outcome for a process that ended by itself.
func (p *process) ending() jsvm.Outcome {
	if p.OutOfMemory() {
		return jsvm.Memory
	}
	return jsvm.Killed
}

// process is the controller of the invocation that it carries out.
var _ controller = (*process)(nil)

func (p *process) cpu() (time.Duration, bool) { return subprocess.CPUTime(p.Pid) }
func (p *process) memory() int64              { return subprocess.Resident(p.Pid) }
func (p *process) suspend() bool              { return p.Suspend() }
func (p *process) proceed()                   { p.Continue() }
func (p *process) raise()                     { p.restorePriority() }

// lower gives the process the lowest priority.
func (p *process) lower() {
	if !p.lowered {
		p.lowered = subprocess.SetPriority(p.Pid, lowestPriority)
	}
}

// lowestPriority is the nice value of processes that compute for long.
const lowestPriority = 19

// restorePriority reports whether the process has its usual priority again. Without a privilege it
// cannot be raised.
func (p *process) restorePriority() bool {
	if p.lowered {
		p.lowered = !subprocess.SetPriority(p.Pid, subprocess.UsualPriority())
	}
	return !p.lowered
}

// cacheSize is how many bytes of programs a child keeps.
const cacheSize = 5 << 20

func (p *process) has(hash string) bool {
	return slices.ContainsFunc(p.programs, func(c cached) bool { return c.hash == hash })
}

// load reports whether the child has a program. If not, it counts it as loaded from now on, and
// returns the hashes of those that the child must forget.
func (p *process) load(program *jsvm.Program) (known bool, forget []string) {
	if at := slices.IndexFunc(p.programs, func(c cached) bool { return c.hash == program.Hash }); at >= 0 {
		c := p.programs[at]
		p.programs = append(slices.Delete(p.programs, at, at+1), c)
		return true, nil
	}
	p.programs = append(p.programs, cached{program.Hash, 256<<10 + 4*len(program.Code) + len(program.Map)})
	total := 0
	for _, c := range p.programs {
		total += c.size
	}
	for total > cacheSize && len(p.programs) > 1 {
		forget = append(forget, p.programs[0].hash)
		total -= p.programs[0].size
		p.programs = p.programs[1:]
	}
	return false, forget
}
