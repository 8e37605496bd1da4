package rest

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Memory limits how many bytes large answers hold at once while they are sent and, separately,
// large bodies that have been received. A request beyond the limit waits for Wait and is then
// answered 503. Answers and bodies of up to 64 KiB do not count. A third of the memory for bodies
// is reserved for tenants that hold none. The answer to a write, which has been done by then, is
// sent from a temporary file when it exceeds the limit. A file that is sent counts with what is
// read of it at once, and an export, which waits for ten times Wait, with what it holds while its
// client receives nothing.
//
// A large body is in a temporary file while it is received. Such files have at most eight times as
// many bytes of a user and of a tenant, and 32 times as many in all; a request beyond that is
// answered 503 at once.
type Memory struct {
	User, Tenant, All int64         // bytes; default 12, 24 and 72 MiB
	Wait              time.Duration // default 3 seconds
	Page              int           // bytes of the rows of a page; default paging.MaxBytes
}

// maxWaiting is how many requests may wait for memory, in all and of one tenant.
const maxWaiting, maxWaitingOf = 1000, 200

// Small is the most bytes that do not count.
const Small = 64 << 10

// How many times as many bytes of bodies may be in temporary files as in memory.
const (
	onDisk    = 8 // of a user and of a tenant
	allOnDisk = 32
)

// Disk returns the limits of temporary files.
func (m Memory) Disk() Memory {
	m.User, m.Tenant, m.All = onDisk*m.User, onDisk*m.Tenant, allOnDisk*m.All
	return m
}

// Answers returns the limiter of answers. It lets those wait longest that cannot be made twice; see
// Response.await.
func (m Memory) Answers(observer entity.Observer) *limiter.Limiter {
	m.Wait *= 10
	return m.Limiter(0, observer, "answer")
}

// Limiter returns a limiter of bytes, which keeps reserve bytes for each key that holds nothing. It
// notifies observer, which may be nil, of each wait as a turn of a kind.
func (m Memory) Limiter(reserve int64, observer entity.Observer, kind string) *limiter.Limiter {
	return limiter.New(limiter.Options{
		Observer: observer, Kind: kind,
		Capacity: m.All, Reserve: reserve, PerKey: m.Tenant,
		PerSubkey: m.User, Timeout: m.Wait, Queue: maxWaiting, QueuePerKey: maxWaitingOf,
	})
}

// WithDefaults returns the limits with the default in place of each that is 0.
func (m Memory) WithDefaults() Memory {
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

// ErrNoMemory ends the encoding of an answer for which there is not enough memory. The answer is
// encoded again when there is.
var ErrNoMemory = errs.New(errs.Unavailable, "Too many large answers are on their way at the moment. Try again.")

// memory is the memory that one request holds of a limiter.
type memory struct {
	limiter  *limiter.Limiter
	keys     [2]string // tenant and user
	most     int64     // that one user can have
	held     int64
	used     int64
	exact    bool // used is all that the answer will hold
	releases []func()
}

// canceled is a context that is done, for an Acquire that does not wait.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Hold acquires n more bytes. It returns ErrNoMemory if they are not free.
func (m *memory) Hold(n int) error {
	if m.used += int64(n); m.used <= m.held || m.held >= m.most {
		return nil
	}
	if m.acquire(canceled, m.used-m.held) != nil {
		return ErrNoMemory
	}
	return nil
}

// Wait releases what is held, and waits until as much as hold failed to acquire is free: at least
// one page, unless m.exact.
func (m *memory) Wait(ctx context.Context, timeout time.Duration) error {
	need := m.used
	if !m.exact {
		need = max(need, paging.MaxBytes)
	}
	m.Release()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, limiter.ErrBusy)
	defer cancel()
	return limiter.Unavailable(m.acquire(ctx, need), errs.MessageOf(ErrNoMemory))
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

// await acquires n bytes for an answer that cannot be made twice. It waits ten times as long as a
// read does.
func (w *Response) await(ctx context.Context, n int64) error {
	w.Place.Yield()
	defer w.Place.Resume()
	ctx, done := w.Transfers.Waiting(ctx)
	defer done()
	return limiter.Unavailable(w.Memory.acquire(ctx, n), errs.MessageOf(ErrNoMemory))
}

// Release releases everything that is held.
func (m *memory) Release() {
	for _, release := range m.releases {
		release()
	}
	m.held, m.used, m.exact, m.releases = 0, 0, false, nil
}
