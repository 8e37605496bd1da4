package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// heaviness classifies requests by how much they compute.
type heaviness int

const (
	// Light requests compute for so short a time that they need no place.
	Light heaviness = iota
	// Brief requests compute between reads of the body or writes of the answer: a search, a long
	// page, an export, an upload. They take a place for each of these stretches.
	Brief
	// Long requests compute after the body has been read, in one transaction: an import, a restore,
	// a deploy. They take a place from then on.
	Long
	// Scan requests are long ones that first wait for another server, a directory. They take a
	// place when that has ended.
	Scan
)

const (
	// manyRows is the limit of a page, or the number of rows before it, from which on it is heavy.
	manyRows = 200
	manySkip = 10_000
	// maxHeavyWaiting is how many heavy requests of one tenant wait at once.
	maxHeavyWaiting = 256
)

// Heavy limits how many heavy requests compute at once, fairly by tenant, so that light ones always
// find a processor and a connection. Brief requests have a limiter of their own: they would wait
// for seconds behind long ones.
type Heavy struct {
	Brief, Long *limiter.Limiter
	Transfers   *Transfers
}

// NewHeavy returns a heavy with half as many places of each class as there are processors. The
// Observer, which may be nil, is notified of requests that wait.
func NewHeavy(t *Transfers, observer entity.Observer) Heavy {
	n := int64(max(1, runtime.NumCPU()/2))
	o := limiter.Options{
		Capacity: n, Timeout: MaxWait, QueuePerKey: maxHeavyWaiting, Observer: observer, Kind: "heavy",
	}
	ofOneTenant := o
	ofOneTenant.PerKey, ofOneTenant.Kind = 1, "long" // they would wait for each other in the database
	return Heavy{Brief: limiter.New(o), Long: limiter.New(ofOneTenant), Transfers: t}
}

// Weigh returns how heavy a request is: what the route table says, or brief for a search, a long
// page or one far from the beginning of its list. Parameters that the route does not have are
// ignored: with them a caller without a session could hold a place on a route that waits for the
// network.
func Weigh(route *Route, r *http.Request) heaviness {
	if route.Heavy != Light || route.Public || r.Method != http.MethodGet && r.Method != http.MethodHead ||
		!strings.Contains(r.URL.RawQuery, "=") {
		return route.Heavy
	}
	query := r.URL.Query()
	given := func(name string) string {
		if !slices.Contains(route.Query, name) {
			return ""
		}
		return query.Get(name)
	}
	limit, _ := strconv.Atoi(given("limit"))
	start, _ := strconv.Atoi(given("start"))
	if given("q") != "" || limit > manyRows || start > manySkip {
		return Brief
	}
	return Light
}

// place is the place of one heavy request in a limiter. A light request has a nil place.
type place struct {
	ctx    context.Context
	in     *limiter.Limiter
	tenant string

	mu      sync.Mutex // an answer may begin in a goroutine of its own
	release func()     // nil while the request has no place: it waits for its client
	left    bool
}

// Place waits for a place for a request. The caller must call leave. It returns errs.Unavailable if
// none becomes free in time.
func (h Heavy) Place(r *Request, w heaviness) (*place, error) {
	if w == Light {
		return nil, nil
	}
	p := &place{ctx: r.Context(), in: h.Brief, tenant: r.Who.Tenant}
	if w == Long {
		p.in = h.Long
	}
	if w == Scan {
		p.in, r.place = h.Long, p
		r.Ctx = limiter.WithResume(p.ctx, p.Resume)
		return p, nil
	}
	ctx, done := p.ctx, func() {}
	if IsRead(r.Method) {
		ctx, done = h.Transfers.Waiting(ctx)
	}
	defer done()
	var err error
	if p.release, err = p.in.Acquire(ctx, 1, p.tenant); err != nil {
		return nil, limiter.Unavailable(
			err, "Too much that takes long is under way in this tenant, or in all. Try again.",
		)
	}
	r.place = p
	if w == Brief { // an import or the like keeps its place for the transaction that it waits for
		r.Ctx = limiter.WithYield(p.ctx, p.Yield)
	}
	if r.ContentLength != 0 {
		r.Body = &yieldingBody{r.Body, p, w == Brief}
	}
	return p, nil
}

// Yield frees the place while the request waits for its client, for memory or for SQLite's one
// writer.
func (p *place) Yield() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.release != nil {
		p.release()
		p.release = nil
	}
}

// Resume takes a place again, however many requests of the tenant wait. If none becomes free in
// time, the request continues without one, so that its work is not lost.
func (p *place) Resume() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.release != nil || p.left {
		return
	}
	if release, err := p.in.Reacquire(p.ctx, 1, p.tenant); err == nil {
		p.release = release
	}
}

// Leave frees the place for good.
func (p *place) Leave() {
	if p == nil {
		return
	}
	p.Yield()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
}

// yieldingBody is the body of a heavy request, which has no place while it waits for the client.
type yieldingBody struct {
	io.ReadCloser
	place   *place
	between bool // it has one between two reads; else from the end of the body on
}

func (b *yieldingBody) Read(p []byte) (int, error) {
	b.place.Yield()
	n, err := b.ReadCloser.Read(p)
	if b.between || errors.Is(err, io.EOF) {
		b.place.Resume()
	}
	return n, err
}

// written is a body that waits at its end for a slot to write, so that a slow sender has none.
type written struct {
	io.Reader
	slot  func() (leave func(), err error)
	ended func() // leaves the slot; nil before
}

// NewWritten returns the bytes of a file as a body that waits for a slot at its end.
func NewWritten(r *Request, content io.Reader) *written {
	return &written{Reader: content, slot: func() (func(), error) {
		r.place.Yield() // the rest waits for others and computes little
		return r.Slot()
	}}
}

// MaxWait is how long a request waits for a place, or for a slot for writes.
const MaxWait = 30 * time.Second

func (b *written) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.ended == nil && errors.Is(err, io.EOF) {
		leave, failed := b.slot()
		if failed != nil {
			return n, failed
		}
		b.ended = leave
	}
	return n, err
}

// Leave leaves the slot, if the body has one.
func (b *written) Leave() {
	if b.ended != nil {
		b.ended()
	}
}
