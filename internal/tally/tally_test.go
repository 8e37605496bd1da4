package tally_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/tally"
)

func sum(have, more int) int { return have + more }

func TestFlush(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	var mu sync.Mutex
	written, failing := map[string]int{}, ""
	away := errors.New("away")
	counts := tally.New(sum, func(_ context.Context, tenant string, counted map[string]int) error {
		if tenant == failing {
			return away
		}
		mu.Lock()
		defer mu.Unlock()
		for key, n := range counted {
			written[tenant+" "+key] += n
		}
		return nil
	})
	is.NoErr(counts.FlushAll(ctx)) // of nothing
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				counts.Add("acme", "a", 1)
				counts.Add("evil", "a", 1)
				if err := counts.Flush(ctx, "acme"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	is.Equal(written, map[string]int{"acme a": 400})
	counts.Add("acme", "b", 2)
	failing = "evil"
	is.True(errors.Is(counts.FlushAll(ctx), away)) // acme's are written all the same
	is.Equal(written, map[string]int{"acme a": 400, "acme b": 2})
	failing = ""
	counts.Add("evil", "a", 1)
	is.NoErr(counts.FlushAll(ctx))
	is.NoErr(counts.FlushAll(ctx)) // nothing is written twice
	is.Equal(written, map[string]int{"acme a": 400, "acme b": 2, "evil a": 401})
}
