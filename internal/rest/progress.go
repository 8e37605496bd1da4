package rest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// The least that a client must do to keep its connection: take or send a byte within Config.Idle,
// and after that minRate on average. The time that this server computes does not count.
const (
	DefaultIdle = 30 * time.Second
	minRate     = 1 << 10 // bytes a second

	chunkSize = 16 << 10 // bytes of an answer that are written at once, each with a deadline of its own
	tinySize  = 2 << 10  // an answer that net/http keeps in its buffer until the handler has returned
)

// Transfers tracks the bodies and answers of all requests while they are sent.
type Transfers struct {
	idle     time.Duration // of Config
	Drained  time.Duration // idle while the server stops
	draining atomic.Bool
	Running  atomic.Int64 // requests being served

	Stopping context.Context // ends with the call of Drain
	stop     context.CancelFunc
	Ending   context.Context // ends lastAnswers before Drain returns
	end      context.CancelFunc

	mu  sync.Mutex
	all map[*transfer]struct{}
}

// Start makes transfers ready for their first request.
func (t *Transfers) Start(idle, drained time.Duration) {
	t.idle, t.Drained = idle, drained
	t.Stopping, t.stop = context.WithCancel(context.Background())
	t.Ending, t.end = context.WithCancel(context.Background())
}

// transfer is a body that comes in, or an answer that goes out. Its deadlines are those of the
// connection.
type transfer struct {
	of       *Transfers
	deadline func(time.Time) error // recorders in tests have none

	mu    sync.Mutex // Drain has a goroutine of its own
	bytes int64
	spent time.Duration // waiting for the client
}

// Waiting returns a context for a read that waits for a limiter. It is canceled with ErrBusy when
// the server stops, so that the client is told to try again. The caller must call done.
func (t *Transfers) Waiting(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.Stopping, func() { cancel(limiter.ErrBusy) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Begin returns a transfer that Drain can end. The caller ends it.
func (t *Transfers) Begin(deadline func(time.Time) error) *transfer {
	one := &transfer{of: t, deadline: deadline}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[*transfer]struct{}{}
	}
	t.all[one] = struct{}{}
	return one
}

// end removes a transfer. A nil transfer is ignored.
func (one *transfer) end() {
	if one != nil {
		one.of.mu.Lock()
		defer one.of.mu.Unlock()
		delete(one.of.all, one)
	}
}

// Step does one read or write of a transfer within the time that the client has for it.
func (one *transfer) Step(do func() (int, error)) (int, error) {
	begun := one.extend()
	n, err := do()
	one.mu.Lock()
	defer one.mu.Unlock()
	one.bytes += int64(n)
	one.spent += time.Since(begun)
	return n, err
}

// extend sets the deadline of the next step.
func (one *transfer) extend() time.Time {
	one.mu.Lock()
	defer one.mu.Unlock()
	allowed, now := one.of.timeout(), time.Now()
	if earned := time.Duration(one.bytes) * time.Second / minRate; one.spent > earned {
		allowed -= min(allowed, one.spent-earned)
	}
	_ = one.deadline(now.Add(allowed))
	return now
}

// Rest takes the deadline back until the next step: the answer waits for something else than the
// client.
func (one *transfer) Rest() {
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.of.draining.Load() {
		_ = one.deadline(time.Time{})
	}
}

// timeout returns how long a client may send and take nothing.
func (t *Transfers) timeout() time.Duration {
	if t.draining.Load() {
		return min(t.idle, t.Drained)
	}
	return t.idle
}

// lastAnswers is how long, before Drain returns, the answers have that handlers are ended for.
const lastAnswers = 2 * time.Second

// Drain waits until no request runs, for at most as long as ctx lasts, and returns the cause of ctx
// if some still do then. From its call on, clients that take or send nothing for a short while are
// cut, and reads that wait for memory or for their place are answered 503. So are handlers that
// have not answered when ctx is about to end.
func (t *Transfers) Drain(ctx context.Context) error {
	t.draining.Store(true)
	t.stop()
	t.mu.Lock()
	for one := range t.all {
		one.extend()
	}
	t.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok {
		defer time.AfterFunc(time.Until(deadline)-lastAnswers, t.end).Stop()
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for t.Running.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Write writes a part of an answer, in chunks: a client that takes nothing, or too little, is cut.
// It waits for the client, and the request has no place meanwhile.
func (w *Response) Write(p []byte) (int, error) {
	w.Place.Yield()
	defer w.Place.Resume()
	if w.Out == nil && len(p) <= tinySize {
		// with the deadline of WriteHeader, which net/http takes back when all is sent
		n, err := w.ResponseWriter.Write(p)
		w.sent += int64(n)
		return n, err
	}
	if w.Out == nil {
		w.Out = w.Transfers.Begin(w.Control.SetWriteDeadline)
	}
	written := 0
	for len(p) > 0 {
		chunk := p[:min(len(p), chunkSize)]
		n, err := w.Out.Step(func() (int, error) { return w.ResponseWriter.Write(chunk) })
		written += n
		w.sent += int64(n)
		if err != nil {
			w.cut = true
			return written, err
		}
		p = p[len(chunk):]
	}
	return written, nil
}

// flush sends what net/http has buffered, while Drain can still cut a client that does not take it.
func (w *Response) flush() {
	if w.Out != nil && !w.cut {
		_, err := w.Out.Step(func() (int, error) { return 0, w.Control.Flush() })
		w.cut = err != nil && w.Status != 0 && err != http.ErrNotSupported
	}
}
