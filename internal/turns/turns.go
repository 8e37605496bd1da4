// Package turns lets a few do something at once and has the others wait, each key apart: those of one key do not hold up
// those of another. Nouns and httpapi import it.
package turns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// ErrLate is for who has waited in vain.
var ErrLate = errors.New("no turn came in time")

// Busy gives errs.Unavailable with a sentence in the place of ErrLate, and any other error, or none, as it is.
func Busy(err error, sentence string) error {
	if errors.Is(err, ErrLate) {
		return errs.Wrap(errs.Unavailable, err, "%s", sentence)
	}
	return err
}

// Turns are those of all keys. Use New.
type Turns[K comparable] struct {
	each int
	all  chan struct{} // nil: no bound
	wait time.Duration

	mu sync.Mutex
	at map[K]*queue // of keys that somebody has a turn of, or waits for
}

// queue is the turns of one key.
type queue struct {
	taken chan struct{}
	users int // who have a turn or wait for one
}

// New makes turns: each for one key at once, all for all keys together (0: any number); wait is how long one waits (0: not at
// all).
func New[K comparable](each, all int, wait time.Duration) *Turns[K] {
	t := &Turns[K]{each: each, wait: wait, at: map[K]*queue{}}
	if all > 0 {
		t.all = make(chan struct{}, all)
	}
	return t
}

// Take waits for a turn, and gives how to end it. A context that ends with the cause ErrLate bounds several Takes together.
// Errors: ErrLate; the context's own cause.
func (t *Turns[K]) Take(ctx context.Context, key K) (leave func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.wait, ErrLate)
	defer cancel()
	q := t.join(key)
	if err := enter(ctx, q.taken); err != nil {
		t.quit(key, q)
		return nil, err
	}
	if t.all != nil {
		if err := enter(ctx, t.all); err != nil {
			<-q.taken
			t.quit(key, q)
			return nil, err
		}
	}
	return func() {
		if t.all != nil {
			<-t.all
		}
		<-q.taken
		t.quit(key, q)
	}, nil
}

// Keys gives the number of keys that somebody has a turn of, or waits for.
func (t *Turns[K]) Keys() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.at)
}

func enter(ctx context.Context, taken chan struct{}) error {
	select {
	case taken <- struct{}{}: // also when there is no time to wait
		return nil
	default:
	}
	select {
	case taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *Turns[K]) join(key K) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.at[key]
	if q == nil {
		q = &queue{taken: make(chan struct{}, t.each)}
		t.at[key] = q
	}
	q.users++
	return q
}

// quit forgets the queue with its last user.
func (t *Turns[K]) quit(key K, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.at, key)
	}
}
