package confirmations_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/store/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

const assistant = "0192b2a0-0000-7000-8000-000000000001"

// clock is a clock that tests advance.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.passed.Load())) }

func (c *clock) pass(d time.Duration) { c.passed.Add(int64(d)) }

// each runs a test with two Services over one database, and the context of user jo of tenant acme.
func each(t *testing.T, test func(t *testing.T, ctx context.Context, one, two *confirmations.Service, c *clock)) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		db, c := open(t), &clock{}
		o := confirmations.Options{Store: bunstore.New(db), Poll: 5 * time.Millisecond, Now: c.now}
		test(
			t, actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo"}), confirmations.New(o),
			confirmations.New(o), c,
		)
	})
}

func TestAsk(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, one, two *confirmations.Service, c *clock) {
		is := is.New(t)
		id := ""
		ask := func(then func() error) (bool, error) {
			return one.Ask(ctx, assistant, "jo", func(c confirmations.Confirmation) error {
				id = c.ID
				return then()
			})
		}
		for _, approve := range []bool{true, false} {
			approved, err := ask(func() error { return two.Decide(ctx, assistant, "jo", id, approve) })
			is.NoErr(err)
			is.Equal(approved, approve)
			is.Equal(errs.CodeOf(two.Decide(ctx, assistant, "jo", id, true)), errs.NotFound) // has ended
		}

		evil := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "jo"})
		approved, err := ask(func() error {
			is.Equal(errs.CodeOf(two.Decide(evil, assistant, "jo", id, true)), errs.NotFound)
			is.Equal(errs.CodeOf(two.Decide(ctx, assistant, "eve", id, true)), errs.NotFound)
			is.Equal(errs.CodeOf(two.Decide(ctx, "another", "jo", id, true)), errs.NotFound)
			is.Equal(errs.CodeOf(two.Decide(ctx, assistant, "jo", "another", true)), errs.NotFound)
			is.NoErr(two.Decide(ctx, assistant, "jo", id, false))
			is.Equal(errs.CodeOf(two.Decide(ctx, assistant, "jo", id, true)), errs.NotFound) // already decided
			return nil
		})
		is.NoErr(err)
		is.True(!approved)

		approved, err = ask(func() error { // not decided in time
			c.pass(confirmations.DefaultLifetime)
			is.Equal(errs.CodeOf(two.Decide(ctx, assistant, "jo", id, true)), errs.NotFound)
			return nil
		})
		is.NoErr(err)
		is.True(!approved)

		gone := errors.New("the client has gone")
		approved, err = ask(func() error { return gone })
		is.Equal(err, gone)
		is.True(!approved)
		is.Equal(errs.CodeOf(two.Decide(ctx, assistant, "jo", id, true)), errs.NotFound)

		_, err = one.Ask(t.Context(), assistant, "jo", func(confirmations.Confirmation) error { return nil })
		is.True(err != nil) // no actor
		is.True(one.Decide(t.Context(), assistant, "jo", id, true) != nil)
	})
}

// TestAskEnds: if the context ends, Ask returns its cause, even if the person has just approved.
func TestAskEnds(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, one, two *confirmations.Service, _ *clock) {
		is := is.New(t)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(ctx)
		id := ""
		approved, err := one.Ask(ctx, assistant, "jo", func(c confirmations.Confirmation) error {
			id = c.ID
			is.NoErr(two.Decide(ctx, assistant, "jo", id, true))
			cancel(gone)
			return nil
		})
		is.Equal(err, gone)
		is.True(!approved)
		is.Equal(errs.CodeOf(two.Decide(context.WithoutCancel(ctx), assistant, "jo", id, true)), errs.NotFound)
	})
}

// TestBound: the number of waiting questions per person is limited. A new question is accepted
// after one is decided.
func TestBound(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, one, two *confirmations.Service, _ *clock) {
		is := is.New(t)
		shown, ended := make(chan string), make(chan error)
		ask := func(who string) {
			_, err := one.Ask(ctx, assistant, who, func(c confirmations.Confirmation) error {
				shown <- c.ID
				return nil
			})
			ended <- err
		}
		ids := make([]string, confirmations.MaxWaiting)
		for i := range ids {
			go ask("jo")
			ids[i] = <-shown
		}
		go ask("jo")
		is.Equal(errs.CodeOf(<-ended), errs.Busy)
		go ask("eve")
		eves := <-shown
		is.NoErr(two.Decide(ctx, assistant, "jo", ids[0], true))
		is.NoErr(<-ended)
		go ask("jo")
		ids[0] = <-shown
		is.NoErr(two.Decide(ctx, assistant, "eve", eves, true))
		is.NoErr(<-ended)
		for _, id := range ids {
			is.NoErr(two.Decide(ctx, assistant, "jo", id, false))
			is.NoErr(<-ended)
		}
	})
}

// TestSweep: rows that a killed server has left are removed, but only after the time by which the
// clocks of servers may differ.
func TestSweep(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		is, c := is.New(t), &clock{}
		store := bunstore.New(open(t))
		s := confirmations.New(confirmations.Options{Store: store, Now: c.now})
		left := confirmations.Confirmation{
			ID:        "left",
			Assistant: assistant,
			Asked:     "jo",
			ExpiresAt: c.now().Add(time.Minute),
		}
		is.NoErr(store.Add(t.Context(), "acme", left, 1, c.now()))
		for _, passes := range []struct {
			time time.Duration
			want int
		}{{2 * time.Minute, 0}, {time.Hour, 1}, {0, 0}} {
			c.pass(passes.time)
			n, err := s.Unchecked().Hooks().Sweep(t.Context(), "acme")
			is.NoErr(err)
			is.Equal(n, passes.want)
		}
	})
}

// TestWaitingOfATenant: waiting calls in one tenant, for any number of people, do not prevent calls
// in others.
func TestWaitingOfATenant(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, one, _ *confirmations.Service, _ *clock) {
		is := is.New(t)
		ctx, end := context.WithCancel(ctx)
		var asked sync.WaitGroup
		shown := make(chan struct{}, confirmations.MaxOfTenant)
		show := func(confirmations.Confirmation) error {
			shown <- struct{}{}
			return nil
		}
		for i := range confirmations.MaxOfTenant {
			asked.Go(func() { _, _ = one.Ask(ctx, assistant, fmt.Sprint("visitor ", i), show) })
		}
		defer asked.Wait()
		defer end()
		for range confirmations.MaxOfTenant {
			<-shown
		}
		_, err := one.Ask(ctx, assistant, "visitor", show)
		is.Equal(errs.CodeOf(err), errs.Busy)
		gone := errors.New("gone")
		_, err = one.Ask(actor.With(
			ctx, actor.Actor{Tenant: "evil", User: "jo"},
		), assistant, "visitor", func(confirmations.Confirmation) error {
			return gone
		})
		is.Equal(err, gone)
	})
}
