// Package limiter limits concurrent work fairly between tenants and users.
//
// Nouns and httpapi import it.
package limiter

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// ErrBusy is returned by Acquire if the caller's waiting time ended, or too many callers wait.
var ErrBusy = errors.New("the limit is reached, and no place became free in time")

// Unavailable returns errs.Unavailable with the sentence if err is ErrBusy, and err itself
// otherwise.
func Unavailable(err error, sentence string) error {
	if errors.Is(err, ErrBusy) {
		return errs.Wrap(errs.Unavailable, err, "%s", sentence)
	}
	return err
}

// Options configure a Limiter. A limit of 0 means unlimited.
type Options struct {
	Capacity  int64 // most weight at once
	Reserve   int64 // part of Capacity for first keys with nothing in use; less than Capacity
	PerKey    int64 // most weight at once for a first key, such as a tenant
	PerSubkey int64 // most weight at once for a second key within its first key, such as a user of the tenant

	// FairSubkeys serves the waiting callers of a first key in turn by their second key, instead of
	// in order of arrival.
	FairSubkeys bool

	Timeout     time.Duration // how long a caller waits; 0: it does not wait
	Queue       int           // most waiting callers; default 10,000
	QueuePerKey int           // most waiting callers with the same first key; default Queue

	// Observer is notified of callers that wait or are refused, as entity.TurnWork of this Kind,
	// unless their context has ended before; may be nil.
	Observer entity.Observer
	Kind     string
}

// Limiter admits callers up to its limits and makes the others wait. Waiting callers are served in
// turn by their first key, and in order of arrival for the same key. A caller whose second key is
// at its limit delays only callers with the same keys.
//
// So a key with a thousand waiting callers does not delay the first caller of another key. Callers
// with small weights do not overtake one with a large weight forever. Unused keys do not take
// memory.
type Limiter struct {
	o Options

	mu      sync.Mutex
	used    int64
	waiting int
	keys    map[string]*key
	ring    list.List // of *key: those with waiting callers, the next to be served first
}

// key is the state of a first key in use.
type key struct {
	name    string
	used    int64
	subkeys map[string]int64 // weight in use, if not 0
	waiting list.List        // of *waiter, in order of arrival
	served  map[string]int64 // with FairSubkeys: a count by which the second keys were last served
	serves  int64
	place   *list.Element // in Limiter.ring; nil without waiting callers
}

type waiter struct {
	weight   int64
	subkey   string
	admitted chan struct{} // closed when the caller is admitted
	in       bool
}

// New returns a Limiter.
func New(o Options) *Limiter {
	if o.Queue == 0 {
		o.Queue = 10_000
	}
	if o.QueuePerKey == 0 {
		o.QueuePerKey = o.Queue
	}
	return &Limiter{o: o, keys: map[string]*key{}}
}

// Acquire waits until weight fits all limits and returns the function that releases it; further
// calls of that function do nothing. It uses at most two keys: the first and the second key of
// Options. A weight above a limit counts as that limit, so such a caller is admitted when nothing
// else is in use. A weight of less than 1 counts as 1.
//
// A caller that fits is admitted even if ctx has ended. Acquire returns ErrBusy if Options.Timeout
// passes or too many callers wait. It returns the cause of ctx if ctx ends: a context with the
// cause ErrBusy limits the time of several calls together.
func (l *Limiter) Acquire(ctx context.Context, weight int64, keys ...string) (release func(), err error) {
	return l.acquire(ctx, weight, false, keys...)
}

// Reacquire is Acquire for a caller that was admitted before and has released its weight. It waits
// even if too many callers do.
func (l *Limiter) Reacquire(ctx context.Context, weight int64, keys ...string) (release func(), err error) {
	return l.acquire(ctx, weight, true, keys...)
}

func (l *Limiter) acquire(ctx context.Context, weight int64, again bool, keys ...string) (release func(), err error) {
	first, second := "", ""
	if len(keys) > 0 {
		first = keys[0]
	}
	if len(keys) > 1 {
		second = keys[1]
	}
	w := &waiter{weight: l.clamp(weight), subkey: second}
	l.mu.Lock()
	k := l.keys[first]
	if k == nil {
		k = &key{name: first}
		l.keys[first] = k
	}
	if l.waiting == 0 && l.fits(k, w) {
		l.enter(k, w)
		l.mu.Unlock()
		return l.releaser(k, w), nil
	}
	at := l.enqueue(k, w)
	l.serve()
	in := w.in
	full := !again && (l.waiting > l.o.Queue || k.waiting.Len() > l.o.QueuePerKey)
	if !in && (full || l.o.Timeout <= 0) {
		l.leave(k, at)
		l.serve()
		l.mu.Unlock()
		return nil, l.observed(ctx, func(context.Context) error { return ErrBusy })
	}
	l.mu.Unlock()
	if !in {
		err = l.observed(ctx, func(ctx context.Context) error { return l.wait(ctx, w) })
	}
	if err == nil {
		return l.releaser(k, w), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.in { // admitted since
		l.free(k, w)
	} else {
		l.leave(k, at)
	}
	l.serve()
	return nil, err
}

// observed calls wait and notifies the Observer.
func (l *Limiter) observed(ctx context.Context, wait func(context.Context) error) error {
	if l.o.Observer == nil || ctx.Err() != nil {
		return wait(ctx)
	}
	start := time.Now()
	ctx = entity.Begin(ctx, l.o.Observer, entity.TurnWork, l.o.Kind)
	err := wait(ctx)
	outcome := entity.OK
	switch {
	case errors.Is(err, ErrBusy):
		outcome = string(errs.Unavailable)
	case err != nil:
		outcome = string(errs.Canceled)
	}
	entity.Observe(ctx, l.o.Observer, entity.Observation{
		Work: entity.TurnWork, Kind: l.o.Kind, Outcome: outcome, Start: start,
	})
	return err
}

// Keys returns the number of first keys in use.
func (l *Limiter) Keys() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys)
}

// Waiting returns the number of waiting callers.
func (l *Limiter) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// wait returns nil when the caller is admitted, and an error if its waiting time ends before that.
func (l *Limiter) wait(ctx context.Context, w *waiter) error {
	timeout := time.NewTimer(l.o.Timeout)
	defer timeout.Stop()
	select {
	case <-w.admitted:
		return nil
	case <-timeout.C:
		return ErrBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Limiter) clamp(weight int64) int64 {
	weight = max(weight, 1)
	for _, bound := range []int64{l.o.Capacity, l.o.PerKey, l.o.PerSubkey} {
		if bound > 0 {
			weight = min(weight, bound)
		}
	}
	return weight
}

func under(used, weight, bound int64) bool { return bound <= 0 || used+weight <= bound }

func (l *Limiter) fits(k *key, w *waiter) bool {
	return l.room(k, w) && under(k.used, w.weight, l.o.PerKey) &&
		under(k.subkeys[w.subkey], w.weight, l.o.PerSubkey)
}

// room reports whether Capacity and Reserve have room for a caller of k.
func (l *Limiter) room(k *key, w *waiter) bool {
	bound := l.o.Capacity
	if k.used > 0 {
		bound -= l.o.Reserve
	}
	return under(l.used, w.weight, bound)
}

func (l *Limiter) enter(k *key, w *waiter) {
	w.in = true
	l.used += w.weight
	k.used += w.weight
	if l.o.PerSubkey > 0 {
		if k.subkeys == nil {
			k.subkeys = map[string]int64{}
		}
		k.subkeys[w.subkey] += w.weight
	}
}

func (l *Limiter) free(k *key, w *waiter) {
	l.used -= w.weight
	k.used -= w.weight
	if left := k.subkeys[w.subkey] - w.weight; left > 0 {
		k.subkeys[w.subkey] = left
	} else {
		delete(k.subkeys, w.subkey)
	}
	l.forget(k)
}

func (l *Limiter) releaser(k *key, w *waiter) func() {
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !w.in {
			return
		}
		w.in = false
		l.free(k, w)
		l.serve()
	}
}

func (l *Limiter) enqueue(k *key, w *waiter) *list.Element {
	w.admitted = make(chan struct{})
	l.waiting++
	if k.place == nil {
		k.place = l.ring.PushBack(k)
	}
	return k.waiting.PushBack(w)
}

// leave removes a waiting caller.
func (l *Limiter) leave(k *key, at *list.Element) {
	k.waiting.Remove(at)
	l.waiting--
	if k.waiting.Len() == 0 {
		l.ring.Remove(k.place)
		k.place = nil
	}
	l.forget(k)
}

func (l *Limiter) forget(k *key) {
	if k.used == 0 && k.waiting.Len() == 0 {
		delete(l.keys, k.name)
	}
}

// serve admits waiting callers, one of each key in turn, until no caller fits. It stops at a caller
// that lacks only Capacity, so that smaller ones do not overtake it.
func (l *Limiter) serve() {
	for passed, e := 0, l.ring.Front(); e != nil && passed < l.ring.Len(); {
		if l.o.Capacity > 0 && l.used >= l.o.Capacity {
			return
		}
		k, next := e.Value.(*key), e.Next()
		at := l.next(k)
		switch {
		case at == nil:
			passed++
		case !under(l.used, at.Value.(*waiter).weight, l.o.Capacity):
			return
		default:
			w := at.Value.(*waiter)
			l.enter(k, w)
			if l.o.FairSubkeys {
				k.note(w.subkey)
			}
			l.ring.MoveToBack(e)
			l.leave(k, at)
			close(w.admitted)
			passed = 0
		}
		if e = next; e == nil {
			e = l.ring.Front()
		}
	}
}

// next returns the first waiting caller of k that fits the limits of its keys, or nil.
func (l *Limiter) next(k *key) *list.Element {
	var full, seen map[string]bool
	var best *list.Element
	for at := k.waiting.Front(); at != nil; at = at.Next() {
		w := at.Value.(*waiter)
		switch {
		case full[w.subkey] || seen[w.subkey]:
		case !under(k.subkeys[w.subkey], w.weight, l.o.PerSubkey):
			if full == nil {
				full = map[string]bool{}
			}
			full[w.subkey] = true
		case !under(k.used, w.weight, l.o.PerKey), !l.room(k, w) && under(l.used, w.weight, l.o.Capacity):
			return best
		case !l.o.FairSubkeys:
			return at
		default:
			if best == nil || k.served[w.subkey] < k.served[best.Value.(*waiter).subkey] {
				best = at
			}
			if k.served[w.subkey] == 0 { // no caller can precede it
				return best
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[w.subkey] = true
		}
	}
	return best
}

// maxServed is the most second keys of a first key for which served has an entry.
const maxServed = 10_000

// note records that a second key has just been served.
func (k *key) note(subkey string) {
	if k.served == nil || len(k.served) >= maxServed {
		k.served = map[string]int64{}
	}
	k.serves++
	k.served[subkey] = k.serves
}
