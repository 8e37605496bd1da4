package tally_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/limits/tally"
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
	is.NoErr(counts.FlushAll(ctx)) // without counts
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
	is.True(errors.Is(counts.FlushAll(ctx), away)) // the counts of acme are written nevertheless
	is.Equal(written, map[string]int{"acme a": 400, "acme b": 2})
	failing = ""
	counts.Add("evil", "a", 1)
	is.NoErr(counts.FlushAll(ctx))
	is.NoErr(counts.FlushAll(ctx)) // nothing is written twice
	is.Equal(written, map[string]int{"acme a": 400, "acme b": 2, "evil a": 401})
}

// TestFailedFlushKeepsOrder: what was counted during a failed write is added to what was counted
// before, not the other way round.
func TestFailedFlushKeepsOrder(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	away, written := errors.New("away"), map[string]string{}
	var counts *tally.Tally[string, string]
	counts = tally.New(func(have, more string) string {
		return have + more
	}, func(_ context.Context, _ string, counted map[string]string) error {
		if counted["a"] == "early" {
			counts.Add("acme", "a", " late")
			counts.Add("acme", "b", "new")
			return away
		}
		written = counted
		return nil
	})
	counts.Add("acme", "a", "early")
	is.True(errors.Is(counts.Flush(ctx, "acme"), away))
	is.NoErr(counts.Flush(ctx, "acme"))
	is.Equal(written, map[string]string{"a": "early late", "b": "new"})
}

// TestFlushWaits: a Flush waits for another one of the same tenant until its context ends. When it
// returns nil, all is written.
func TestFlushWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, ctx := is.New(t), t.Context()
		written, release := 0, make(chan struct{})
		counts := tally.New(sum, func(ctx context.Context, tenant string, counted map[string]int) error {
			if tenant == "locked" {
				select {
				case <-release:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			written += counted["a"]
			return nil
		})
		counts.Add("locked", "a", 1)
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() {
				if err := counts.Flush(ctx, "locked"); err != nil || written != 1 {
					t.Errorf("Flush returned %v with %d of 1 written", err, written)
				}
			})
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		is.True(errors.Is(counts.Flush(short, "locked"), context.DeadlineExceeded))
		close(release)
		running.Wait()
	})
}

// TestFlushAllAtOnce: a tenant that cannot be written does not delay others, and its write ends
// after a timeout.
func TestFlushAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		var mu sync.Mutex
		written := map[string]bool{}
		counts := tally.New(sum, func(ctx context.Context, tenant string, _ map[string]int) error {
			if tenant == "locked" {
				<-ctx.Done()
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			written[tenant] = true
			return nil
		})
		tenants := []string{"a", "b", "locked", "c", "d", "e"}
		for _, tenant := range tenants {
			counts.Add(tenant, "a", 1)
		}
		var failed error
		go func() { failed = counts.FlushAll(t.Context()) }()
		synctest.Wait()
		mu.Lock()
		is.Equal(len(written), len(tenants)-1)
		mu.Unlock()
		time.Sleep(time.Minute) // on the clock of synctest
		synctest.Wait()
		is.True(errors.Is(failed, context.DeadlineExceeded))
	})
}

// TestKeysAreBounded: the number of keys is limited while writes fail.
func TestKeysAreBounded(t *testing.T) {
	is, written := is.New(t), 0
	fail := errors.New("away")
	var counts *tally.Tally[int, int]
	counts = tally.New(sum, func(_ context.Context, _ string, counted map[int]int) error {
		if written = len(counted); fail != nil {
			counts.Add("acme", -1, 5) // during the write
		}
		return fail
	})
	dropped := 0
	counts.OnDrop(func(n int) { dropped += n })
	for key := range 110_000 {
		counts.Add("acme", key, 1)
	}
	is.Equal(dropped, 10_000)
	is.True(errors.Is(counts.Flush(t.Context(), "acme"), fail))
	is.Equal(written, 100_000)
	is.Equal(dropped, 10_005)
	fail = nil
	is.NoErr(counts.Flush(t.Context(), "acme"))
	is.Equal(written, 100_000) // it was kept
}
