package turns_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/turns"
)

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		all := turns.New[string](2, 3, time.Second)
		take := func(key string) func() {
			t.Helper()
			leave, err := all.Take(t.Context(), key)
			is.NoErr(err)
			return leave
		}
		late := func(key string) {
			t.Helper()
			begun := time.Now()
			_, err := all.Take(t.Context(), key)
			is.True(errors.Is(err, turns.ErrLate))
			is.Equal(time.Since(begun), time.Second)
		}
		first, second := take("a"), take("a")
		late("a")
		other := take("b") // is not held up by a
		late("b")          // all three are taken
		late("c")
		is.Equal(all.Keys(), 2)

		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := all.Take(gone, "c")
		is.Equal(err, context.DeadlineExceeded)

		time.AfterFunc(time.Millisecond, first)
		third := take("a") // waits
		for _, leave := range []func(){second, third, other} {
			leave()
		}
		is.Equal(all.Keys(), 0)
	})
}

// TestNoneIsLost: who waits in vain for the bound of all keys gives back the turn of the own one.
func TestNoneIsLost(t *testing.T) {
	is := is.New(t)
	all := turns.New[string](2, 2, 0)
	take := func(key string) func() {
		t.Helper()
		leave, err := all.Take(t.Context(), key)
		is.NoErr(err)
		return leave
	}
	for range 3 {
		first, other := take("a"), take("b")
		_, err := all.Take(t.Context(), "a")
		is.Equal(err, turns.ErrLate)
		other()
		second := take("a")
		_, err = all.Take(t.Context(), "b")
		is.Equal(err, turns.ErrLate) // a has both
		second()
		first()
		is.Equal(all.Keys(), 0)
	}
}

// TestTwoTogether: a context bounds how long one waits for two turns, one after the other.
func TestTwoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		one, other := turns.New[string](1, 0, time.Minute), turns.New[string](1, 0, time.Minute)
		leave, err := one.Take(t.Context(), "a")
		is.NoErr(err)
		_, err = other.Take(t.Context(), "a")
		is.NoErr(err)
		time.AfterFunc(700*time.Millisecond, leave)
		begun := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, turns.ErrLate)
		defer cancel()
		_, err = one.Take(ctx, "a")
		is.NoErr(err)
		_, err = other.Take(ctx, "a")
		is.Equal(err, turns.ErrLate)
		is.Equal(time.Since(begun), time.Second)
	})
}

func TestBusy(t *testing.T) {
	is := is.New(t)
	is.NoErr(turns.Busy(nil, "Too many."))
	is.Equal(turns.Busy(context.Canceled, "Too many."), context.Canceled)
	err := turns.Busy(turns.ErrLate, "Too many.")
	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.Equal(errs.MessageOf(err), "Too many.")
	is.True(errors.Is(err, turns.ErrLate))
}

func TestNoBoundForAll(t *testing.T) {
	is := is.New(t)
	all := turns.New[int](1, 0, time.Second)
	for key := range 1000 {
		_, err := all.Take(t.Context(), key)
		is.NoErr(err)
	}
}

func TestNeverMore(t *testing.T) {
	is := is.New(t)
	all := turns.New[int](3, 5, time.Minute)
	var mu sync.Mutex
	var at, most [2]int
	together, mostTogether := 0, 0
	count := func(key, n int) {
		mu.Lock()
		defer mu.Unlock()
		at[key] += n
		together += n
		most[key], mostTogether = max(most[key], at[key]), max(mostTogether, together)
	}
	var doing sync.WaitGroup
	for i := range 200 {
		doing.Go(func() {
			leave, err := all.Take(t.Context(), i%2)
			if err != nil {
				t.Error(err)
				return
			}
			count(i%2, 1)
			time.Sleep(time.Millisecond / 10)
			count(i%2, -1)
			leave()
		})
	}
	doing.Wait()
	is.True(most[0] <= 3 && most[1] <= 3)
	is.True(mostTogether <= 5)
	is.Equal(all.Keys(), 0)
}
