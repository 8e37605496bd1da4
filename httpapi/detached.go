package httpapi

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/paging"
)

// detached runs a handler, which may go on after it has answered, and returns its answer as soon as
// there is one. It ends with ctx as long as it has not answered, unless it goesOn. Drain waits for
// its end: it ends one that goes on after its answer when drainTime is over, and one that has not
// answered shortly before Drain returns, with errStopping.
func (a *api) detached(
	ctx context.Context, goesOn bool, run func(
		ctx context.Context, respond func(handlers.Response),
	) (handlers.Response, error),
) (handlers.Response, error) {
	type result struct {
		answer handlers.Response
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
	stopDraining := context.AfterFunc(a.transfers.Stopping, func() {
		endHandler(&a.transfers, running, cancel, answered)
	})
	early, done := make(chan handlers.Response, 1), make(chan result, 1)
	a.transfers.Running.Add(1)
	go func() {
		defer a.transfers.Running.Add(-1)
		defer cancel(nil)
		defer stopDraining()
		defer unfollow()
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
			}
		}()
		out, err := run(running, func(out handlers.Response) {
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

// endHandler ends a handler of a server that stops, with cancel.
func endHandler(t *rest.Transfers, running context.Context, cancel context.CancelCauseFunc, answered <-chan struct{}) {
	select {
	case <-running.Done():
		return
	case <-t.Ending.Done():
		cancel(errStopping)
		return
	case <-answered:
	}
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-running.Done():
	case <-t.Ending.Done():
		cancel(context.Canceled)
	case <-timer.C:
		cancel(context.Canceled)
	}
}
