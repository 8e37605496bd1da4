package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limiter"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Memory bounds how many bytes the large answers that are on their way hold at once, and, apart from these, the large
// bodies. A request beyond that waits for Wait and is then answered 503. Small answers, of up to 64 KiB, do not count. Of the
// bodies' share a third is for tenants that hold nothing of it yet: slow senders of a few tenants do not take it from all.
type Memory struct {
	User, Tenant, All int64         // bytes; default 12, 24 and 72 MiB
	Wait              time.Duration // default 3 seconds
	Page              int           // bytes of the rows of a page; default paging.MaxBytes
}

// maxWaiting bounds who waits for memory.
const maxWaiting, maxWaitingOf = 1000, 200

// small is the most bytes that do not count.
const small = 64 << 10

func (m Memory) limiter(reserve int64) *limiter.Limiter {
	return limiter.New(limiter.Options{
		Capacity: m.All, Reserve: reserve, PerKey: m.Tenant, PerSubkey: m.User, Timeout: m.Wait, Queue: maxWaiting, QueuePerKey: maxWaitingOf,
	})
}

func (m Memory) withDefaults() Memory {
	if m.User == 0 {
		m.User = 12 << 20
	}
	if m.Tenant == 0 {
		m.Tenant = 24 << 20
	}
	if m.All == 0 {
		m.All = 72 << 20
	}
	if m.Wait == 0 {
		m.Wait = 3 * time.Second
	}
	return m
}

// errNoMemory ends the making of an answer that is too large at the moment. It is made again when there is memory for it.
var errNoMemory = errs.New(errs.Unavailable, "Too many large answers are on their way at the moment. Try again.")

// memory is what one request holds of a limiter.
type memory struct {
	limiter  *limiter.Limiter
	keys     [2]string // tenant and user
	most     int64     // that one user can have
	held     int64
	used     int64
	releases []func()
}

// ended is a context to acquire with what is free, without waiting.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// hold counts n more bytes. It fails with errNoMemory when they are not free.
func (m *memory) hold(n int) error {
	if m.used += int64(n); m.used <= m.held || m.held >= m.most {
		return nil
	}
	if m.acquire(ended, m.used-m.held) != nil {
		return errNoMemory
	}
	return nil
}

// wait gives back what is held, and waits for what hold failed to get, and a page at least.
func (m *memory) wait(ctx context.Context) error {
	need := max(m.used, paging.MaxBytes)
	m.release()
	return limiter.Unavailable(m.acquire(ctx, need), errs.MessageOf(errNoMemory))
}

func (m *memory) acquire(ctx context.Context, n int64) error {
	n = min(n, m.most-m.held)
	release, err := m.limiter.Acquire(ctx, n, m.keys[0], m.keys[1])
	if err != nil {
		return err
	}
	m.held += n
	m.releases = append(m.releases, release)
	return nil
}

// release frees everything.
func (m *memory) release() {
	for _, release := range m.releases {
		release()
	}
	m.held, m.used, m.releases = 0, 0, nil
}

// answer calls the handler and writes what it gives. The large answer to a read that finds no memory is made again when
// there is some: until then it holds neither memory nor a connection to the database.
func (a *api) answer(w *response, route *Route, r *request) error {
	w.memory.keys, r.bodies.keys = [2]string{r.who.Tenant, r.who.User}, [2]string{r.who.Tenant, r.who.User}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return a.answerOnce(w, route, r)
	}
	w.counted = true
	plain := r.Request
	r.Request = plain.WithContext(paging.WithLimits(plain.Context(), paging.Limits{MaxBytes: a.Memory.Page, Hold: w.memory.hold}))
	for range 3 {
		err := a.answerOnce(w, route, r)
		if !errors.Is(err, errNoMemory) {
			return err
		}
		w.place.rest()
		ctx, done := a.transfers.waiting(plain.Context())
		err = w.memory.wait(ctx)
		if done(); err != nil {
			return err
		}
		w.place.resume()
	}
	return a.answerOnce(w, route, r)
}

func (a *api) answerOnce(w *response, route *Route, r *request) error {
	answer, err := a.call(route, r)
	if err != nil {
		return err
	}
	return answer.write(w, r.Request)
}
