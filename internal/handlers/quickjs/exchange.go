package quickjs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// An exchange is one request to a child and all that belongs to it. The child is not trusted:
// whatever it sends, the exchange ends in time, holds no more than its limits allow, and calls
// nothing but the functions that the caller has passed.
type exchange struct {
	rt        *Runtime
	task      *task
	process   *process
	limits    jsvm.Limits
	functions map[string]jsvm.Function
	respond   func(json.RawMessage)

	id       uint64
	started  time.Time
	result   jsvm.Result
	compiled *compiled
	logBytes int
	answered bool // the early result has come
	unsent   bool // the child had ended before it got the request
	crashed  bool // the child has ended by itself

	working sync.WaitGroup // functions that run
	running chan struct{}  // a token for each of them

	turning sync.Mutex // held while the script is let go on, see deliver
	waiting bool       // the script waits and does not compute
	sent    int        // answers
	waits   int        // of the script so far
	alarm   *time.Timer

	mu       sync.Mutex
	reason   jsvm.Outcome // why it was stopped, "" if it was not
	took     string       // with the outcome Timeout: which time is over, such as "10s of its own"
	peak     int64        // memory of a child that had to be killed
	ended    bool         // no more answers are sent
	finished bool         // the child is no longer ours
}

// run sends the request, serves the child until it ends, and leaves in x.result what became of it.
// It reports whether the child can be used again.
func (x *exchange) run(ctx context.Context, request kind, body *encoder) (reusable bool) {
	p := x.process
	x.id = rand.Uint64() // a child cannot know the next one
	x.started = time.Now()
	x.running = make(chan struct{}, parallelCalls+1) // a synchronous one comes on top
	level, _ := ctx.Value(levelKey{}).(int)
	calls, cancel := context.WithDeadline(context.WithValue(ctx, levelKey{}, level+1), x.started.Add(x.limits.Time))
	defer cancel()
	var timer *time.Timer
	armed := make(chan struct{})
	timer = time.AfterFunc(min(slice, x.limits.Time, x.limits.Active), func() {
		<-armed
		left, over := x.limits.Time-time.Since(x.started), false
		x.whileRunning(func() {
			again, used := x.rt.scheduler.check(x.task)
			switch over = left <= 0 || used >= x.limits.Active; {
			case over && left > 0:
				x.took = x.limits.Active.String() + " of its own"
			case !over && !x.ended:
				timer.Reset(min(left, again, x.limits.Active-used))
			}
		})
		if over {
			x.stop(jsvm.Timeout, cancel)
		}
	})
	close(armed)
	x.rt.scheduler.attach(x.task, p, func() { x.stop(jsvm.Evicted, cancel) })
	unwatch := context.AfterFunc(ctx, func() { x.stop(jsvm.Canceled, cancel) })

	err := p.conn.write(request, x.id, body)
	if x.unsent = err != nil; err == nil {
		err = x.serve(calls)
	}
	if err != nil && x.stopped() == "" && !p.ours.Load() {
		p.wait(x.rt.o.Grace) // if it ends by itself, it has written why
		x.crashed = !errors.Is(err, errFrame)
	}
	if err != nil {
		p.kill()
	}
	timer.Stop()
	unwatch()
	x.mu.Lock()
	x.ended = true
	switch { // a function may have seen the end of its context, and the script its error, before stop was called
	case x.reason != "" || x.result.Outcome != jsvm.Thrown:
	case ctx.Err() != nil:
		x.reason = jsvm.Canceled
	case calls.Err() != nil:
		x.reason = jsvm.Timeout
	}
	x.mu.Unlock()
	cancel()
	if len(x.running) > 0 { // one may be blocked as the child does not read its answer
		time.AfterFunc(x.rt.o.Grace, func() { x.whileRunning(p.kill) })
	}
	x.working.Wait()
	x.silence()
	x.conclude(err)
	x.rt.scheduler.detach(x.task)
	return err == nil && p.alive() && p.restorePriority()
}

// whileRunning calls f with the child unless the exchange is finished.
func (x *exchange) whileRunning(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.finished {
		f()
	}
}

// stop stops the script, and kills the child if it does not end within the time of grace.
func (x *exchange) stop(reason jsvm.Outcome, cancel func()) {
	x.mu.Lock()
	if x.reason != "" || x.ended {
		x.mu.Unlock()
		return
	}
	x.reason = reason
	x.mu.Unlock()
	cancel()
	x.rt.scheduler.finish(x.task)
	time.AfterFunc(x.rt.o.Grace, func() {
		x.whileRunning(func() {
			if !x.ended {
				x.peak = subprocess.ResidentPeak(x.process.Pid)
				x.process.kill()
			}
		})
	})
	// may block until the child is killed; its error shows in serve
	_ = x.process.conn.write(kindCancel, x.id, newEncoder(0))
}

func (x *exchange) stopped() jsvm.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reason
}

// conclude sets the outcome.
func (x *exchange) conclude(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.finished = true
	r := &x.result
	if err != nil {
		r.Error = nil // whatever the child said
	}
	switch {
	case err == nil && (r.Outcome == jsvm.Timeout || r.Outcome == jsvm.Thrown && x.reason != ""):
		r.Outcome, r.Error = jsvm.Timeout, nil
		if x.reason != "" {
			r.Outcome = x.reason
		}
	case err != nil && errors.Is(err, errFrame):
		x.rt.o.Logger.Error("a JavaScript process was killed", "err", err, "pid", x.process.Pid)
		r.Outcome, r.Killed = jsvm.Killed, true
	case err != nil && x.reason != "":
		r.Outcome, r.Killed, r.PeakMemory = x.reason, true, x.peak
	case err != nil && !x.crashed: // by Close
		r.Outcome, r.Killed = jsvm.Killed, true
	case err != nil:
		r.Outcome = x.process.ending()
		if r.Outcome == jsvm.Killed {
			x.rt.o.Logger.Warn(
				"a JavaScript process has ended by itself", "err", err, "pid", x.process.Pid, "stderr",
				x.process.Stderr(),
			)
		}
	}
	if r.Outcome == jsvm.OK {
		r.Error = nil
		return
	}
	r.Value = nil
	switch {
	case r.Error != nil && r.Error.Message != "":
	case r.Outcome == jsvm.Timeout:
		r.Error = &jsvm.Error{
			Name:    "TimeoutError",
			Message: fmt.Sprintf("The script took more than %s.", cmp.Or(x.took, x.limits.Time.String())),
		}
	case r.Outcome == jsvm.Canceled:
		r.Error = &jsvm.Error{Name: "AbortError", Message: "The caller has gone away."}
	case r.Outcome == jsvm.Evicted:
		r.Error = &jsvm.Error{
			Name: "AbortError",
			Message: "The script was stopped in favour of others: those of its tenant or app had most of the " +
				"places or memory.",
		}
	case r.Outcome == jsvm.Memory:
		r.Error = &jsvm.Error{Name: "InternalError", Message: "out of memory"}
	case r.Outcome == jsvm.Killed:
		r.Error = &jsvm.Error{Name: "InternalError", Message: "The process of the script ended unexpectedly."}
	}
}

// limit returns the longest body of a frame.
func (x *exchange) limit(k kind) int {
	switch k {
	case kindLogs:
		return 2*logBuffer + x.limits.LogBytes + 32*min(x.limits.LogLines, maxBytes)
	case kindCall:
		return x.limits.CallBytes + 1<<10
	case kindRespond:
		return x.limits.Output + 64
	case kindWait:
		return 32
	case kindEnd:
		return x.limits.Output + 4*maxErrorText
	case kindCompiled:
		return 32*x.rt.o.MaxSource + 1<<20
	}
	return 0
}

// serve handles what the child sends until it sends the end.
func (x *exchange) serve(ctx context.Context) error {
	for {
		f, err := x.process.conn.read(x.limit)
		if err != nil {
			return err
		}
		if f.id != x.id {
			return fmt.Errorf("%w: a frame %q of another exchange", errFrame, f.kind)
		}
		switch {
		case f.kind == kindLogs:
			err = x.logs(f.body)
		case f.kind == kindCall:
			err = x.call(ctx, f.body)
		case f.kind == kindRespond && !x.answered:
			err = x.early(f.body)
		case f.kind == kindWait:
			err = x.wait(ctx, f.body)
		case f.kind == kindEnd && x.compiled == nil:
			err = x.end(f.body)
		case f.kind == kindCompiled && x.compiled != nil:
			err = x.compiled.decode(f.body)
		default:
			err = fmt.Errorf("%w: a frame %q at the wrong time", errFrame, f.kind)
		}
		if err != nil {
			return err
		}
		if f.kind == kindEnd || f.kind == kindCompiled {
			if x.process.conn.r.Buffered() > 0 {
				return fmt.Errorf("%w: more after the end", errFrame)
			}
			return nil
		}
	}
}

// isJSON reports whether b is JSON in UTF-8.
func isJSON(b []byte) bool { return utf8.Valid(b) && rawjson.Valid(b) }

// logLevels are the names of the levels of logs, by their numbers.
var logLevels = []string{"debug", "info", "warn", "error"}

func (x *exchange) logs(body []byte) error {
	d := &decoder{b: body}
	dropped, n := d.int(), d.int()
	for range n {
		at, level, text := d.int64(), d.int(), d.string()
		x.logBytes += len(text)
		if d.err != nil || level >= len(logLevels) || len(x.result.Logs) >= x.limits.LogLines ||
			x.logBytes > x.limits.LogBytes {
			return fmt.Errorf("%w: more logs than allowed, or malformed ones", errFrame)
		}
		now := time.Now()
		t := time.UnixMicro(at)
		if t.Before(x.started) || t.After(now) {
			t = now
		}
		x.result.Logs = append(x.result.Logs, jsvm.Log{
			Time:  t.UTC(),
			Level: logLevels[level],
			Text:  strings.ToValidUTF8(text, "\ufffd"),
		})
	}
	x.result.LogsDropped += dropped
	return d.done()
}

// call starts a function that the child calls. Its answer is sent when it returns.
func (x *exchange) call(ctx context.Context, body []byte) error {
	d := &decoder{b: body}
	number, name, args := d.int(), d.string(), d.bytes()
	if err := d.done(); err != nil {
		return err
	}
	f := x.functions[name]
	if number != x.result.Calls+1 || number > x.limits.Calls || f == nil || x.compiled == nil && !isJSON(args) {
		return fmt.Errorf("%w: a call that is not allowed", errFrame)
	}
	select {
	case x.running <- struct{}{}:
	default:
		return fmt.Errorf("%w: too many calls at once", errFrame)
	}
	x.result.Calls++
	x.working.Go(func() {
		value, err := x.invoke(ctx, name, f, args)
		a := newEncoder(32 + len(value)).int(number)
		if err != nil {
			message, code := x.failure(ctx, name, err)
			a.bool(true).optional([]byte(message)).string(code)
		} else {
			a.bool(false).optional(value).string("")
		}
		<-x.running // the answer makes room for the next call
		x.deliver(ctx, kindAnswer, a)
	})
	return nil
}

// wait frees what the script computes with while it waits. It is woken when its next timer is due.
func (x *exchange) wait(ctx context.Context, body []byte) error {
	d := &decoder{b: body}
	answers, timed, delay := d.int(), d.bool(), d.int64()
	if err := d.done(); err != nil {
		return err
	}
	x.turning.Lock()
	defer x.turning.Unlock()
	switch {
	case x.stopped() != "" || answers < x.sent: // it goes on at once
		return nil
	case x.waiting || answers > x.sent:
		return fmt.Errorf("%w: a wait that cannot be", errFrame)
	}
	x.waiting = true
	x.waits++
	x.rt.scheduler.pause(x.task)
	if timed && delay < int64(x.limits.Time/time.Microsecond) {
		n := x.waits
		x.alarm = time.AfterFunc(time.Duration(delay)*time.Microsecond, func() { x.wake(ctx, n) })
	}
	return nil
}

// wake lets a script go on that waits for the nth time.
func (x *exchange) wake(ctx context.Context, n int) {
	x.turning.Lock()
	defer x.turning.Unlock()
	if x.waiting && x.waits == n {
		x.send(ctx, kindWake, newEncoder(0))
	}
}

// deliver sends an answer to the script.
func (x *exchange) deliver(ctx context.Context, k kind, body *encoder) {
	x.turning.Lock()
	defer x.turning.Unlock()
	x.send(ctx, k, body)
	x.sent++
}

// send sends a frame to the script. If the script waits, it may compute first. The caller holds
// x.turning.
func (x *exchange) send(ctx context.Context, k kind, body *encoder) {
	if x.waiting {
		x.rt.scheduler.resume(ctx, x.task)
		x.waiting = false
	}
	x.mu.Lock()
	ended := x.ended
	x.mu.Unlock()
	if !ended {
		_ = x.process.conn.write(k, x.id, body) // an error shows in serve
	}
}

// silence ends that the script is woken.
func (x *exchange) silence() {
	x.turning.Lock()
	defer x.turning.Unlock()
	x.waiting = false
	if x.alarm != nil {
		x.alarm.Stop()
	}
}

// invoke calls a function of the host. A panic is an error: it must not end the server.
func (x *exchange) invoke(
	ctx context.Context, name string, f jsvm.Function, args json.RawMessage,
) (value json.RawMessage, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("jsvm: panic in the function %s: %v\n%s", name, e, debug.Stack())
		}
	}()
	value, err = f(ctx, args)
	switch {
	case err != nil || x.compiled != nil:
		return value, err
	case len(value) == 0:
		return nil, nil
	case len(value) > x.limits.CallBytes:
		return nil, errs.New(
			errs.TooLarge, "The result of %s has %d bytes of JSON, where %d are allowed.", name, len(value),
			x.limits.CallBytes,
		)
	case !isJSON(value):
		return nil, fmt.Errorf("jsvm: the result of the function %s is no JSON", name)
	}
	return value, nil
}

// failure returns what the script sees of an error: message and code.
func (x *exchange) failure(ctx context.Context, name string, err error) (message, code string) {
	switch message = errs.MessageOf(err); {
	case message != "" && errs.CodeOf(err) != errs.Internal:
		return message, string(errs.CodeOf(err))
	case ctx.Err() == nil:
		x.rt.o.Logger.Error("a function called by a script failed", "function", name, "err", err)
	}
	return "The call of " + name + " failed.", string(errs.Internal)
}

func (x *exchange) early(body []byte) error {
	d := &decoder{b: body}
	value := d.optional()
	if err := d.done(); err != nil {
		return err
	}
	if value != nil && !isJSON(value) {
		return fmt.Errorf("%w: a response that is no JSON", errFrame)
	}
	x.answered = true
	if x.respond != nil {
		x.respond(value)
	}
	return nil
}

func (x *exchange) end(body []byte) error {
	var e ending
	if err := e.decode(body); err != nil {
		return err
	}
	switch e.outcome {
	case jsvm.OK, jsvm.Thrown, jsvm.Timeout, jsvm.Memory, notLoaded:
	default:
		return fmt.Errorf("%w: the outcome %q", errFrame, e.outcome)
	}
	if e.value != nil && !isJSON(e.value) {
		return fmt.Errorf("%w: a result that is no JSON", errFrame)
	}
	for _, s := range []*string{&e.err.Name, &e.err.Message, &e.err.Stack} {
		*s = strings.ToValidUTF8(*s, "\ufffd")
	}
	r := &x.result
	r.Outcome, r.Value, r.Error, r.PeakMemory = e.outcome, e.value, &e.err, e.peak
	return nil
}

// notLoaded is the outcome of an invocation whose program could not be read.
const notLoaded jsvm.Outcome = "not loaded"
