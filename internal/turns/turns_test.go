package turns_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

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
	var at [2]atomic.Int64
	var most atomic.Int64
	var doing sync.WaitGroup
	for i := range 200 {
		doing.Go(func() {
			leave, err := all.Take(t.Context(), i%2)
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), at[i%2].Add(1)))
			time.Sleep(time.Millisecond / 10)
			at[i%2].Add(-1)
			leave()
		})
	}
	doing.Wait()
	is.True(most.Load() <= 3)
	is.Equal(all.Keys(), 0)
}
