package rest

import (
	"context"
	"errors"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// answer calls the handler and writes its reply. Without memory for the large answer to a
// read, answer waits for some, with neither memory nor a database connection, and calls the handler
// again.
func (e *Engine) answer(w *Response, r *Request) error {
	r.Answer = &w.Memory
	r.Count(r.Who.Tenant, r.Who.User)
	if !IsRead(r.Method) {
		return e.answerOnce(w, r)
	}
	w.Repeatable = true
	for range 3 {
		err := e.answerOnce(w, r)
		if !errors.Is(err, ErrNoMemory) {
			return err
		}
		w.Place.Yield()
		ctx, done := e.Transfers.Waiting(r.Context())
		err = w.Memory.Wait(ctx, e.o.Memory.Wait)
		if done(); err != nil {
			return err
		}
		w.Place.Resume()
	}
	return e.answerOnce(w, r)
}

func (e *Engine) answerOnce(w *Response, r *Request) error {
	answer, err := e.call(r)
	r.WarnOfDropped(w, e.o.Log)
	if err != nil {
		return err
	}
	return answer.Write(w, r.Request)
}

// call runs the handler, in one transaction if the route is transactional. The reply is written
// after the commit, so that a 2xx means that the change is stored.
func (e *Engine) call(r *Request) (Reply, error) {
	var err error
	if r.Route.Options != nil {
		err = r.ReadOptions(r.Route)
	} else {
		err = r.CheckQuery(r.Route)
	}
	if err != nil {
		return Reply{}, err
	}
	g, err := r.Guarded(r.Route)
	if err != nil {
		return Reply{}, err
	}
	writes := r.Route.Writes
	if writes == Unbound || writes == ByService && g == nil {
		return handleGuarded(r, g)
	}
	if err := r.ReadAhead(); err != nil {
		return Reply{}, err
	}
	if writes == InSlot && g == nil {
		return r.Route.Handle(r)
	}
	return r.InTx(func() (Reply, error) { return handleGuarded(r, g) })
}

// handleGuarded runs the handler of a conditional write in the transaction of its context, if it
// has one. A write that no store has checked wrote to a row that does not exist, which is for the
// condition to decide too; without a transaction the store itself decides that.
func handleGuarded(r *Request, g *guard.Guard) (Reply, error) {
	if g == nil {
		return r.Route.Handle(r)
	}
	plain := r.Ctx
	defer func() { r.Ctx = plain }()
	r.Ctx = guard.With(plain, g)
	answer, err := r.Route.Handle(r)
	if err != nil {
		return Reply{}, err
	}
	return answer, g.Missing()
}

// Slot waits for one of the slots for writes of the caller's tenant, unless the request has one. A
// handler calls it when it has checked its input, and has what it waits for from its client or
// another server. leave is never nil. Errors: errs.Unavailable.
func (r *Request) Slot() (leave func(), err error) {
	if r.slotted {
		return func() {}, nil
	}
	free, err := r.engine.Writing.Acquire(r.Context(), 1, r.Who.Tenant)
	if err != nil {
		return func() {}, limiter.Unavailable(err, "Too much is written in this tenant at the moment. Try again.")
	}
	r.slotted = true
	return func() { r.slotted = false; free() }, nil
}

// InSlot waits for a slot for writes and calls do.
func (r *Request) InSlot(do func() (Reply, error)) (Reply, error) {
	leave, err := r.Slot()
	if err != nil {
		return Reply{}, err
	}
	defer leave()
	return do()
}

// InTx waits for a slot for writes and calls do in one transaction.
func (r *Request) InTx(do func() (Reply, error)) (answer Reply, err error) {
	return r.InSlot(func() (Reply, error) {
		plain := r.Ctx
		err = r.engine.o.InTx(plain, func(ctx context.Context) error {
			r.Ctx = ctx
			answer, err = do()
			return err
		})
		r.Ctx = plain
		return answer, err
	})
}
