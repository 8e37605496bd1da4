package limiter_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// TestFairSubkeys: a second key with many waiting callers does not delay the first caller of
// another one.
func TestFairSubkeys(t *testing.T) {
	is := is.New(t)
	l := limiter.New(limiter.Options{Capacity: 1, FairSubkeys: true, Timeout: time.Minute})
	release, err := l.Acquire(t.Context(), 1, "acme", "first")
	is.NoErr(err)
	served := make(chan string)
	var callers sync.WaitGroup
	wait := func(tenant, network string, waiting int) {
		callers.Go(func() {
			release, err := l.Acquire(t.Context(), 1, tenant, network)
			if err != nil {
				t.Error(err)
			}
			served <- tenant[:1] + network
			release()
		})
		for l.Waiting() < waiting {
			time.Sleep(time.Millisecond)
		}
	}
	for i, who := range []string{"acme 1", "acme 1", "acme 1", "acme 2", "acme 2", "evil 1", "acme 3"} {
		tenant, network, _ := strings.Cut(who, " ")
		wait(tenant, network, i+1)
	}
	release()
	var order []string
	for range 7 {
		order = append(order, <-served)
	}
	callers.Wait()
	is.Equal(strings.Join(order, " "), "a1 e1 a2 a3 a1 a2 a1")
	is.Equal(l.Keys(), 0)
}
