package domains

import (
	"context"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

const (
	maxAsking   = 64               // logins of one process that ask directories and providers at once
	maxAskingAt = 8                // of these, at one domain: a directory that hangs holds up its own people alone
	maxWait     = 30 * time.Second // for a place: a thousand people at once all get in, one after the other
)

// places are those of the logins that ask directories and providers.
type places struct {
	all  chan struct{}
	wait time.Duration // how long a login waits for its place

	mu sync.Mutex
	at map[place]*queue // of the domains at which somebody logs in at the moment
}

// queue is the places at one domain.
type queue struct {
	taken  chan struct{}
	logins int // that have a place or wait for one
}

func newPlaces() *places {
	return &places{all: make(chan struct{}, maxAsking), wait: maxWait, at: map[place]*queue{}}
}

// take gives a place, and how to leave it. Errors: errs.Unavailable when none gets free in time; the context's own.
func (p *places) take(ctx context.Context, at place) (leave func(), err error) {
	limit := time.NewTimer(p.wait)
	defer limit.Stop()
	q := p.join(at)
	if err := enter(ctx, q.taken, limit.C); err != nil {
		p.quit(at, q)
		return nil, err
	}
	if err := enter(ctx, p.all, limit.C); err != nil {
		<-q.taken
		p.quit(at, q)
		return nil, err
	}
	return func() {
		<-p.all
		<-q.taken
		p.quit(at, q)
	}, nil
}

func enter(ctx context.Context, places chan struct{}, late <-chan time.Time) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late:
		return errs.New(errs.Unavailable, "Too many people log in at this domain at the moment. Try again.")
	}
}

func (p *places) join(at place) *queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.at[at]
	if q == nil {
		q = &queue{taken: make(chan struct{}, maxAskingAt)}
		p.at[at] = q
	}
	q.logins++
	return q
}

// quit forgets the queue with its last login.
func (p *places) quit(at place, q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.logins--; q.logins == 0 {
		delete(p.at, at)
	}
}
