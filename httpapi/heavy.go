package httpapi

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

	"github.com/tenantcontent/tenantcontent/internal/limiter"
)

// heaviness is how much a request computes.
type heaviness int

const (
	light heaviness = iota
	// brief requests compute between reads of the body or writes of the answer: a search, a long page, an export, an
	// upload. They take a place for each of these stretches.
	brief
	// long requests compute after the body has been read, in one transaction: an import, a restore, a deploy. They take a
	// place from then on.
	long
)

const (
	// manyRows is the limit of a page, or the number of rows before it, from which on it is heavy.
	manyRows = 200
	manySkip = 10_000
	// maxHeavyWaiting is how many heavy requests of one tenant wait at once.
	maxHeavyWaiting = 256
)

// heavy bounds how many heavy requests compute at once, in turn by tenant, so that light ones always find a processor and a
// connection. Brief ones have places of their own: they would wait for seconds behind long ones.
type heavy struct {
	brief, long *limiter.Limiter
	transfers   *transfers
}

// newHeavy makes half as many places of each sort as there are processors.
func newHeavy(t *transfers) heavy {
	n := int64(max(1, runtime.NumCPU()/2))
	o := limiter.Options{Capacity: n, Timeout: maxWait, QueuePerKey: maxHeavyWaiting}
	ofOneTenant := o
	ofOneTenant.PerKey = 1 // they would wait for each other in the database
	return heavy{brief: limiter.New(o), long: limiter.New(ofOneTenant), transfers: t}
}

// weigh returns how heavy a request is: as the route table has it, and brief for a search, a long page or one far from the
// beginning of its list. Parameters count where the route has them: a stranger could hold a place with others, on a route
// that waits for the network.
func weigh(route *Route, r *http.Request) heaviness {
	if route.Heavy != light || route.Public || r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.Contains(r.URL.RawQuery, "=") {
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
		return brief
	}
	return light
}

// place is the place of one heavy request. A nil place is a light one's.
type place struct {
	ctx    context.Context
	in     *limiter.Limiter
	tenant string

	mu      sync.Mutex // an answer may begin in a goroutine of its own
	release func()     // nil while the request has no place: it waits for its client
	left    bool
}

// place waits for the place of a request. The caller leaves it. Errors: errs.Unavailable.
func (h heavy) place(r *request, w heaviness) (*place, error) {
	if w == light {
		return nil, nil
	}
	p := &place{ctx: r.Context(), in: h.brief, tenant: r.who.Tenant}
	if w == long {
		p.in = h.long
	}
	ctx, done := p.ctx, func() {}
	if isRead(r.Method) {
		ctx, done = h.transfers.waiting(ctx)
	}
	defer done()
	var err error
	if p.release, err = p.in.Acquire(ctx, 1, p.tenant); err != nil {
		return nil, limiter.Unavailable(err, "Too much that takes long is under way in this tenant, or in all. Try again.")
	}
	r.place = p
	if w == brief { // an import or the like keeps its place for the transaction that it waits for
		r.Request = r.WithContext(limiter.WithYield(p.ctx, p.rest))
	}
	if r.ContentLength != 0 {
		r.Body = &restingBody{r.Body, p, w == brief}
	}
	return p, nil
}

// rest frees the place while the request waits for its client, for memory or for SQLite's one writer.
func (p *place) rest() {
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

// resume takes a place again, however many of the tenant wait. A request that has been admitted goes on without one when
// none becomes free in time: what it has done would be lost.
func (p *place) resume() {
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

// leave frees the place for good.
func (p *place) leave() {
	if p == nil {
		return
	}
	p.rest()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
}

// restingBody is the body of a heavy request, which has no place while it waits for the client.
type restingBody struct {
	io.ReadCloser
	place   *place
	between bool // it has one between two reads; else from the end of the body on
}

func (b *restingBody) Read(p []byte) (int, error) {
	b.place.rest()
	n, err := b.ReadCloser.Read(p)
	if b.between || errors.Is(err, io.EOF) {
		b.place.resume()
	}
	return n, err
}
