package httpapi

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tenantcontent/tenantcontent/handlers"
	"github.com/tenantcontent/tenantcontent/paging"
)

// detached runs a handler, which may go on after it has answered, and returns its answer as soon as there is one. Drain waits for its end, and
// ends it a while after the server begins to stop. It ends with ctx as long as it has not answered, unless it goesOn.
func (a *api) detached(
	ctx context.Context, goesOn bool, run func(ctx context.Context, respond func(handlers.Response)) (handlers.Response, error),
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
	stopDraining := context.AfterFunc(a.transfers.stopping, func() { time.AfterFunc(drainTime, func() { cancel(context.Canceled) }) })
	early, done := make(chan handlers.Response, 1), make(chan result, 1)
	a.transfers.running.Add(1)
	go func() {
		defer a.transfers.running.Add(-1)
		defer cancel(nil)
		defer stopDraining()
		defer unfollow()
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
			}
		}()
		answer, err := run(running, func(answer handlers.Response) {
			unfollow() // the client has its answer
			early <- answer
		})
		done <- result{answer, err}
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
