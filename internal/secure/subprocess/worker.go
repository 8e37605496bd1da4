package subprocess

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// A Worker runs a function in child processes, each of which does one job at a time. A job that
// takes too much time or memory is ended with its child.
type Worker struct {
	Name string // for the environment variable by which a child is recognized
	What string // for messages, such as "The document"
	// Work does a job in the child. The message of its error is for the author of the input. A
	// panic means that the input is damaged.
	Work func(in []byte) ([]byte, error)

	Time   time.Duration // of one job
	Memory int64         // that a child may allocate
	Input  int           // most bytes of a job
	Output int           // most bytes of a result

	called  atomic.Bool
	once    sync.Once
	limit   *limiter.Limiter
	starter Starter
	mu      sync.Mutex
	idle    []*worker
}

// worker is a child process, as the parent uses it.
type worker struct {
	*Process
	r    *bufio.Reader
	reap *time.Timer
}

// idleTime is the time after which a child without a job is ended.
const idleTime = 30 * time.Second

func (w *Worker) variable() string {
	return "TENANTCONTENT_" + strings.ToUpper(w.Name) + "_CHILD"
}

// Child must be called first in the main function of a program whose Worker has jobs. In a child it
// does the jobs and does not return.
func (w *Worker) Child() {
	if os.Getenv(w.variable()) == "" {
		w.called.Store(true)
		return
	}
	debug.SetTraceback("none")
	debug.SetGCPercent(50)
	end := Inherited()
	runtime.GC() // so that what it starts exists before the sandbox
	Confine(w.Memory)
	if _, err := end.W.Write([]byte{ready}); err != nil {
		os.Exit(0)
	}
	if err := w.serve(bufio.NewReader(end.R), end.W); !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A message consists of its length, the status in a child's answers, and the bytes.
const (
	done    = 0
	refused = 1
	ready   = 0xff // the first message of a child is this byte
)

// largeJob is the size of a job after which a child returns unused memory to the system.
const largeJob = 1 << 20

// serve does the jobs of the parent until the connection ends.
func (w *Worker) serve(r io.Reader, out io.Writer) error {
	for {
		size, err := w.serveOne(r, out)
		if err != nil {
			return err
		}
		if size > largeJob {
			debug.FreeOSMemory()
		}
	}
}

// serveOne does one job and returns the size of its input or result.
func (w *Worker) serveOne(r io.Reader, out io.Writer) (int, error) {
	in, err := receive(r, w.Input)
	if err != nil {
		return 0, err
	}
	status := byte(done)
	result, err := w.try(in)
	if err == nil && len(result) > w.Output {
		err = errs.New(errs.Invalid, "%s results in more than %d bytes.", w.What, w.Output)
	}
	if err != nil {
		status, result = refused, []byte(cmp.Or(errs.MessageOf(err), err.Error()))
	}
	_, err = out.Write(append([]byte{status}, framed(result)...))
	return max(len(in), len(result)), err
}

func (w *Worker) try(in []byte) (result []byte, err error) {
	defer func() {
		if e := recover(); e != nil {
			result, err = nil, errs.New(errs.Invalid, "%s is damaged and cannot be read.", w.What)
		}
	}()
	return w.Work(in)
}

// Do does a job on behalf of a tenant. It returns errs.TooLarge if the input is too large,
// errs.Invalid if Work refuses it or takes too much time or memory, and errs.Unavailable if too
// many jobs wait.
func (w *Worker) Do(ctx context.Context, tenant string, in []byte) ([]byte, error) {
	if !w.called.Load() {
		return nil, fmt.Errorf(
			"subprocess: the program has not called the function Child of %s at the start of main", w.Name,
		)
	}
	if len(in) > w.Input {
		return nil, errs.New(errs.TooLarge, "%s has %d bytes, where %d are allowed.", w.What, len(in), w.Input)
	}
	w.once.Do(func() {
		n := int64(max(runtime.GOMAXPROCS(0), 2))
		w.limit = limiter.New(limiter.Options{
			Capacity:    n,
			PerKey:      n / 2,
			Timeout:     10 * time.Second,
			Queue:       256,
			QueuePerKey: 128,
		})
	})
	release, err := w.limit.Acquire(ctx, 1, tenant)
	if err != nil {
		return nil, limiter.Unavailable(err, "Too many documents are read at the moment. Try again later.")
	}
	defer release()
	p, fresh, err := w.get()
	if err != nil {
		return nil, err
	}
	result, err := w.exchange(ctx, p, in)
	if errors.Is(err, errGone) && !fresh && ctx.Err() == nil { // an idle child had ended by itself
		if p, err = w.start(); err != nil {
			return nil, err
		}
		result, err = w.exchange(ctx, p, in)
	}
	if errors.Is(err, errGone) {
		err = errs.Wrap(
			errs.Invalid, err, "%s is damaged, or needs more than %d MiB of memory to be read.", w.What,
			w.Memory>>20,
		)
	}
	return result, err
}

// errGone is returned by exchange if the child has ended.
var errGone = errors.New("subprocess: the child has ended")

// exchange makes p do a job, and keeps it for the next one unless it had to be killed.
func (w *Worker) exchange(ctx context.Context, p *worker, in []byte) ([]byte, error) {
	var timeout atomic.Bool
	timer := time.AfterFunc(w.Time, func() {
		timeout.Store(true)
		p.Kill()
	})
	unwatch := context.AfterFunc(ctx, p.Kill)
	_, err := p.Conn.W.Write(framed(in))
	var status byte
	var result []byte
	if err == nil {
		status, err = p.r.ReadByte()
	}
	if err == nil {
		result, err = receive(p.r, max(w.Output, maxMessage))
	}
	inTime, wanted := timer.Stop(), unwatch()
	if err == nil && inTime && wanted && status <= refused && p.r.Buffered() == 0 {
		w.put(p)
	} else {
		p.end()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && timeout.Load():
		return nil, errs.New(errs.Invalid, "%s takes more than %s to be read.", w.What, w.Time)
	case err != nil || status > refused:
		return nil, fmt.Errorf("%w: %v; it wrote: %q", errGone, err, p.Stderr())
	case status == refused:
		return nil, errs.New(errs.Invalid, "%s", strings.ToValidUTF8(string(result[:min(len(result), maxMessage)]), ""))
	}
	return result, nil
}

// maxMessage is the most bytes of an error's text.
const maxMessage = 1 << 10

// get returns an idle child, or starts one.
func (w *Worker) get() (p *worker, fresh bool, err error) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		p := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		p.reap.Stop()
		return p, false, nil
	}
	w.mu.Unlock()
	p, err = w.start()
	return p, true, err
}

func (w *Worker) start() (*worker, error) {
	c, err := w.starter.Start(w.variable(), "1")
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "No process for documents could be started.")
	}
	SetPriority(c.Pid, 10) // requests have priority
	p := &worker{Process: c, r: bufio.NewReader(c.Conn.R)}
	timer := time.AfterFunc(startTime, c.Kill)
	defer timer.Stop()
	if first, err := p.r.ReadByte(); err != nil || first != ready {
		p.end()
		return nil, errs.New(errs.Unavailable, "No process for documents could be started: it wrote %q.", p.Stderr())
	}
	return p, nil
}

// startTime is how long a child may take to start on a loaded machine.
const startTime = 30 * time.Second

// put keeps a child for the next job, for at most idleTime.
func (w *Worker) put(p *worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.reap = time.AfterFunc(idleTime, func() {
		w.mu.Lock()
		at := slices.Index(w.idle, p)
		if at >= 0 {
			w.idle = slices.Delete(w.idle, at, at+1)
		}
		w.mu.Unlock()
		if at >= 0 {
			p.end()
		}
	})
	w.idle = append(w.idle, p)
}

// end kills a child and waits for its end.
func (p *worker) end() {
	p.Kill()
	p.Wait()
	p.Conn.Close()
}

// framed returns b with its length before it.
func framed(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...)
}

// receive reads a message of at most limit bytes.
func receive(r io.Reader, limit int) ([]byte, error) {
	var h [4]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(h[:])
	if n > math.MaxInt32 || int(n) > limit {
		return nil, fmt.Errorf("subprocess: a message of %d bytes, where %d are allowed", n, limit)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
