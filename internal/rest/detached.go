package rest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/paging"
)

// DrainTime is how long what goes on after its answer has when the server stops: see Detached.
const DrainTime = 3 * time.Second

// Detached runs what may go on after it has answered, such as a script, and returns its answer as
// soon as there is one. It ends with ctx as long as it has not answered, unless it goesOn. Drain
// waits for its end: it ends one that goes on after its answer when DrainTime is over, and one that
// has not answered shortly before Drain returns, with an errs.Unavailable.
func Detached[T any](
	ctx context.Context, t *Transfers, goesOn bool, run func(ctx context.Context, respond func(T)) (T, error),
) (T, error) {
	type result struct {
		answer T
		err    error
	}
	own := paging.WithLimits(context.WithoutCancel(ctx), paging.Limits{}) // what the request holds ends with its answer
	running, cancel := context.WithCancelCause(own)
	unfollow := func() bool { return true }
	if !goesOn {
		unfollow = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	}
	answered := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answered) })
	stopDraining := context.AfterFunc(t.Stopping, func() {
		endDetached(t, running, cancel, answered)
	})
	early, done := make(chan T, 1), make(chan result, 1)
	t.Running.Add(1)
	go func() {
		defer t.Running.Add(-1)
		defer cancel(nil)
		defer stopDraining()
		defer unfollow()
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
			}
		}()
		out, err := run(running, func(out T) {
			unfollow() // the client has its answer
			answer()
			early <- out
		})
		if errors.Is(context.Cause(running), errStopping) {
			err = errStopping
		}
		done <- result{out, err}
	}()
	select {
	case answer := <-early:
		return answer, nil
	case r := <-done:
		select {
		case answer := <-early: // both were there
			return answer, nil
		default:
		}
		return r.answer, r.err
	}
}

// endDetached ends what is detached of a server that stops, with cancel.
func endDetached(t *Transfers, running context.Context, cancel context.CancelCauseFunc, answered <-chan struct{}) {
	select {
	case <-running.Done():
		return
	case <-t.Ending.Done():
		cancel(errStopping)
		return
	case <-answered:
	}
	timer := time.NewTimer(DrainTime)
	defer timer.Stop()
	select {
	case <-running.Done():
	case <-t.Ending.Done():
		cancel(context.Canceled)
	case <-timer.C:
		cancel(context.Canceled)
	}
}
