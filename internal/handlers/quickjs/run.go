package quickjs

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// A run is an invocation in a child.
type run struct {
	*invocation
	id       uint64
	child    *child
	started  time.Time
	deadline time.Time
	stop     atomic.Bool // set when the server cancels it, or its time is over

	calls     int // of the host's functions so far
	inflight  int // of them not answered yet
	waits     waits
	responded bool
	answers   []answer // that came while the script waited for another one
	logs      *logs

	rejections []rejection // of promises that nobody handles
	positions  positions
}

// answer is what a function of the host returned.
type answer struct {
	call   int
	failed bool
	value  []byte // JSON or nil, or the error's message
	code   string // of the error
}

func (a *answer) decode(b []byte) error {
	d := &decoder{b: b}
	a.call, a.failed, a.value, a.code = d.int(), d.bool(), d.optional(), d.string()
	return d.done()
}

// rejection is a rejected promise, by its address, and its reason.
type rejection struct {
	promise uintptr
	reason  value
}

// maxRejections is how many rejections of an invocation are kept.
const maxRejections = 20

func (r *run) send(k kind, e *encoder) { r.child.send(k, r.id, e) }

// over reports whether the script must stop.
func (r *run) over() bool {
	if !r.stop.Load() && time.Now().After(r.deadline) {
		r.stop.Store(true)
	}
	return r.stop.Load()
}

// engineInterrupt is called by the engine every few thousand instructions. A script that is stopped
// cannot catch that.
func engineInterrupt(*libc.TLS, uintptr, uintptr) int32 {
	if r := machine.run; r != nil && r.over() {
		return 1
	}
	return 0
}

// engineRejection is called by the engine when a promise is rejected that nobody handles, and when
// somebody does after all.
func engineRejection(_ *libc.TLS, ctx uintptr, promise, reason value, handled int32, _ uintptr) {
	r := machine.run
	if r == nil {
		return
	}
	at := slices.IndexFunc(r.rejections, func(x rejection) bool { return x.promise == object(promise) })
	switch {
	case handled != 0 && at >= 0:
		r.rejections = slices.Delete(r.rejections, at, at+1)
	case handled == 0 && at < 0 && len(r.rejections) < maxRejections:
		lib.XDupValue(machine.tls, ctx, promise) // keeps its address its own
		r.rejections = append(r.rejections, rejection{object(promise), lib.XDupValue(machine.tls, ctx, reason)})
	}
}

// await waits for the answer to a call. It returns false when the script is out of time.
func (r *run) await(call int) (answer, bool) {
	for {
		if at := slices.IndexFunc(r.answers, func(a answer) bool { return a.call == call }); at >= 0 {
			a := r.answers[at]
			r.answers = slices.Delete(r.answers, at, at+1)
			return a, true
		}
		if r.over() {
			return answer{}, false
		}
		r.receive(-1)
	}
}

// receive waits for an answer, for d unless that is negative, and keeps it.
func (r *run) receive(d time.Duration) {
	f, ok := r.waits.next(r.child, r.id, d, time.Until(r.deadline))
	if !ok {
		return
	}
	var a answer
	if f.kind == kindAnswer && f.id == r.id && a.decode(f.body) == nil {
		r.answers = append(r.answers, a)
	}
}

// waits is how an exchange waits for frames of the server. What comes at once is waited for as if
// the process computed; before a longer wait the server is told, so that others can compute.
type waits struct {
	answers int           // that have come
	brief   time.Duration // that it has waited without telling
}

const (
	briefWait  = time.Millisecond
	briefWaits = 50 * time.Millisecond // of an exchange
)

// next returns the next frame. It reports false if there is none when d has passed, unless that is
// negative, or all the time that is left.
func (w *waits) next(c *child, id uint64, d, left time.Duration) (f frame, ok bool) {
	most := left
	if d >= 0 {
		most = min(d, left)
	}
	defer func() {
		if ok && f.kind == kindAnswer && f.id == id {
			w.answers++
		}
	}()
	select {
	case f = <-c.frames:
		return f, true
	default:
	}
	if brief := min(most, briefWait, briefWaits-w.brief); brief > 0 {
		begun := time.Now()
		if f, ok = c.within(brief); ok {
			w.brief += time.Since(begun)
			return f, true
		}
		w.brief += brief
		most, left, d = most-brief, left-brief, max(d-brief, -1)
	}
	if most <= 0 {
		return frame{}, false
	}
	e := newEncoder(16).int(w.answers)
	if d >= 0 && d < left {
		e.bool(true).uint(uint64(d.Microseconds() + 1))
	} else {
		e.bool(false).uint(0)
	}
	c.send(kindWait, id, e)
	return c.within(left) // the server sends something earlier
}

// within returns a frame that comes within d.
func (c *child) within(d time.Duration) (frame, bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case f := <-c.frames:
		return f, true
	case <-timer.C:
		return frame{}, false
	}
}

// invoke runs an invocation of a loaded program to its end.
func (m *vm) invoke(r *run, p *program) *ending {
	r.positions.sourceMap = p.sourceMap
	m.prepared(p.snapshot)
	m.heap.limit = r.limits.Memory
	m.current = nil
	m.reseed()
	m.run = r
	end := m.settled(r, p)
	if r.stop.Load() && end.outcome != jsvm.OK {
		end = &ending{outcome: jsvm.Timeout}
	}
	if end.outcome != jsvm.Timeout {
		m.reportRejections(r)
	}
	m.run = nil
	r.logs.flush()
	end.err.Stack = cut(r.positions.text(end.err.Stack))
	end.peak = m.heap.peak
	return end
}

// settled runs the script until its result is there and all calls of the host's functions are
// answered.
func (m *vm) settled(r *run, p *program) *ending {
	loaded := lib.XJS_EvalFunction(m.tls, m.ctx, p.module)
	if isException(loaded) {
		return m.failed(m.thrown())
	}
	namespace := lib.XJS_GetModuleNamespace(m.tls, m.ctx, object(p.module))
	if isException(namespace) {
		return m.failed(m.thrown())
	}
	names := lib.XJS_NewArray(m.tls, m.ctx)
	for i, n := range r.functions {
		lib.XJS_SetPropertyUint32(m.tls, m.ctx, names, uint32(i), m.newString(n))
	}
	promise, err := m.call(m.start, loaded, namespace, m.newString(r.function), m.newString(string(r.args)), names)
	if err != nil {
		return m.failed(err)
	}
	for {
		if err := m.jobs(r); err != nil {
			return m.failed(err)
		}
		if r.over() {
			return &ending{outcome: jsvm.Timeout}
		}
		pending := lib.XJS_PromiseState(m.tls, m.ctx, promise) == lib.EJS_PROMISE_PENDING
		if !pending && r.inflight == 0 {
			return m.result(r, promise)
		}
		if err := m.wait(r, pending); err != nil {
			return m.failed(err)
		}
	}
}

// jobs runs what promises have queued.
func (m *vm) jobs(r *run) error {
	for n := 1; ; n++ {
		switch done := lib.XJS_ExecutePendingJob(m.tls, m.rt, m.out); {
		case done == 0:
			return nil
		case done < 0:
			if e := m.thrown(); !r.over() {
				return e
			}
			return nil
		case n%256 == 0 && r.over():
			return nil
		}
	}
}

// wait waits for an answer or a timer and passes it to the script.
func (m *vm) wait(r *run, pending bool) error {
	delay := -1.0
	if pending {
		v, err := m.call(m.next)
		if err != nil {
			return err
		}
		delay, _ = m.number(v)
	}
	if r.inflight == 0 && delay < 0 {
		if m.heap.refused {
			e := outOfMemory()
			return &e
		}
		return &jsvm.Error{Name: "Error", Message: "The handler waits for a promise that nothing can settle any more."}
	}
	if len(r.answers) == 0 {
		d := time.Duration(-1)
		if delay >= 0 {
			d = time.Duration(min(delay*float64(time.Millisecond), float64(r.limits.Time)))
		}
		r.receive(d)
	}
	if len(r.answers) == 0 {
		if delay < 0 || r.over() {
			return nil
		}
		if _, err := m.call(m.fire); err != nil && !r.over() {
			r.logs.add(levelError, "Uncaught "+errorText(err))
		}
		return nil
	}
	a := r.answers[0]
	r.answers = r.answers[1:]
	r.inflight--
	_, err := m.call(
		m.settle, m.newNumber(float64(a.call)), newBool(a.failed), m.optional(a.value), m.newString(a.code),
	)
	return err
}

func errorText(err error) string {
	if e, ok := err.(*jsvm.Error); ok && e.Stack != "" {
		return e.Error() + "\n" + strings.TrimRight(e.Stack, "\n")
	}
	return err.Error()
}

// result returns the ending for a settled promise.
func (m *vm) result(r *run, promise value) *ending {
	v := lib.XJS_PromiseResult(m.tls, m.ctx, promise)
	if lib.XJS_PromiseState(m.tls, m.ctx, promise) == lib.EJS_PROMISE_REJECTED {
		r.rejections = slices.DeleteFunc(r.rejections, func(x rejection) bool { return x.promise == object(promise) })
		e := m.describe(v)
		return m.failed(&e)
	}
	end := &ending{outcome: jsvm.OK}
	if isString(v) {
		s, ok := m.stringOf(v)
		if !ok {
			return m.failed(m.thrown())
		}
		if len(s) > r.limits.Output {
			return &ending{outcome: jsvm.Thrown, err: *tooLong("The result", len(s), r.limits.Output)}
		}
		end.value = []byte(s)
	}
	return end
}

// failed returns the ending for an error: a lack of memory is its own outcome.
func (m *vm) failed(err error) *ending {
	e, ok := err.(*jsvm.Error)
	if !ok {
		e = &jsvm.Error{Name: "Error", Message: err.Error()}
	}
	if m.heap.refused && e.Message == "out of memory" {
		return &ending{outcome: jsvm.Memory, err: *e}
	}
	return &ending{outcome: jsvm.Thrown, err: *e}
}

func (m *vm) reportRejections(r *run) {
	for _, x := range r.rejections {
		e := m.describe(x.reason)
		r.logs.add(levelError, "Unhandled rejection: "+errorText(&e))
	}
}

// logs collects the lines of an invocation and sends them when something else is sent, when there
// are many, or some milliseconds later, also while the script runs: those of a script that is
// killed are not lost.
type logs struct {
	run   *run
	mu    sync.Mutex
	timer *time.Timer
	lines *encoder
	count int // in lines
	total int // lines of the invocation
	bytes int // of the invocation
	drops int // not sent yet
}

const (
	levelError = 3
	logDelay   = 20 * time.Millisecond
	logBuffer  = 16 << 10
)

func (l *logs) add(level int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if level >= levelError && l.total < l.run.limits.LogLines && len(text) < maxErrorText {
		text = l.run.positions.text(text)
	}
	limits := l.run.limits
	if l.total >= limits.LogLines || l.bytes+len(text) > limits.LogBytes {
		l.drops++
	} else {
		if l.lines == nil {
			l.lines = newEncoder(256)
		}
		l.lines.uint(uint64(time.Now().UnixMicro())).int(level).string(text)
		l.count++
		l.total++
		l.bytes += len(text)
	}
	switch {
	case l.lines != nil && len(l.lines.b) > logBuffer:
		l.sendLocked()
	case l.timer == nil:
		l.timer = time.AfterFunc(logDelay, l.flush)
	}
}

func (l *logs) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sendLocked()
}

func (l *logs) sendLocked() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if l.count == 0 && l.drops == 0 {
		return
	}
	size := 0
	if l.lines != nil {
		size = len(l.lines.b)
	}
	e := newEncoder(16 + size).int(l.drops).int(l.count)
	if l.lines != nil {
		e.b = append(e.b, l.lines.b[frameHeader:]...)
	}
	l.lines, l.count, l.drops = nil, 0, 0
	l.run.send(kindLogs, e)
}

// tooLong returns the error for a result that is too long.
func tooLong(what string, n, allowed int) *jsvm.Error {
	return &jsvm.Error{
		Name:    "RangeError",
		Message: fmt.Sprintf("%s has %d bytes of JSON, where %d are allowed.", what, n, allowed),
	}
}

func newRun(c *child, id uint64, inv *invocation) *run {
	now := time.Now()
	r := &run{invocation: inv, id: id, child: c, started: now, deadline: now.Add(inv.limits.Time)}
	r.logs = &logs{run: r}
	return r
}
