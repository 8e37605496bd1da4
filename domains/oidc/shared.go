package oidc

import (
	"context"
	"sync"
	"time"
)

// shared caches a value that is read from the provider. Concurrent callers wait for one reading,
// which continues if one of them goes away.
type shared[T any] struct {
	mu   sync.Mutex
	last *reading[T]
}

// reading is one reading of the value, for all who wait for it.
type reading[T any] struct {
	at    time.Time     // when it began
	done  chan struct{} // closed when the rest is set
	value T
	err   error
}

// get returns the last reading that worked when it is good, or a new one. Errors: those of read,
// and ctx's.
func (s *shared[T]) get(
	ctx context.Context, good func(*reading[T]) bool, now func() time.Time, read func() (T, error),
) (*reading[T], error) {
	r := s.begin(good, now, read)
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *shared[T]) begin(good func(*reading[T]) bool, now func() time.Time, read func() (T, error)) *reading[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && (!s.last.over() || s.last.err == nil && good(s.last)) {
		return s.last
	}
	r := &reading[T]{at: now(), done: make(chan struct{})}
	s.last = r
	go func() {
		defer close(r.done)
		r.value, r.err = read()
	}()
	return r
}

func (r *reading[T]) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
