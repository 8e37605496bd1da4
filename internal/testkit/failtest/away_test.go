package failtest_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// traffic has running callers, each with a different color; every fourth writes.
type traffic struct {
	good, refused atomic.Int64
	lastRefused   atomic.Int64 // unix nanoseconds
	cancel        context.CancelFunc
	running       sync.WaitGroup
}

func (w *world) traffic(t *testing.T) *traffic {
	f := &traffic{}
	ctx, cancel := context.WithCancel(t.Context())
	f.cancel = cancel
	t.Cleanup(f.stop)
	for i := range callers {
		f.running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				method := http.MethodGet
				if i%4 == 0 && n%2 == 0 {
					method = http.MethodPut
				}
				ok, err := w.color(ctx, method, fmt.Sprintf("k-%d", i))
				switch {
				case ctx.Err() != nil:
					return
				case err != nil:
					t.Error(err)
					return
				case ok:
					f.good.Add(1)
				default:
					f.refused.Add(1)
					f.lastRefused.Store(time.Now().UnixNano())
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	return f
}

func (f *traffic) stop() {
	f.cancel()
	f.running.Wait()
}

// some waits until a counter has grown by n.
func some(t *testing.T, n *atomic.Int64, by int64) {
	t.Helper()
	before := n.Load()
	for deadline := time.Now().Add(time.Minute); n.Load() < before+by; time.Sleep(time.Millisecond) {
		if t.Failed() || time.Now().After(deadline) {
			t.Fatalf("%d of %d after a minute", n.Load()-before, by)
		}
	}
}

func TestServerIsKilledAndComesBack(t *testing.T) {
	is, cluster := is.New(t), dbtest.Server(t)
	u := plainURL(t)
	w := newWorld(t, u, u)
	f := w.traffic(t)
	some(t, &f.good, 500)
	cluster.Kill()
	some(t, &f.refused, 100)
	status, body, err := w.do(t.Context(), "GET", "/readyz", "")
	is.NoErr(err)
	is.Equal(status, http.StatusServiceUnavailable)
	is.NoErr(properly503(body))
	status, _, err = w.do(t.Context(), "GET", "/healthz", "")
	is.NoErr(err)
	is.Equal(status, http.StatusOK) // the process is healthy
	time.Sleep(1200 * time.Millisecond)
	some(t, &f.refused, 100) // sessions are not treated as ended either, after cached ones have expired

	began := time.Now()
	is.NoErr(cluster.Restart(context.WithoutCancel(t.Context())))
	back := time.Now()
	some(t, &f.good, 500)
	time.Sleep(time.Second)
	last := time.Unix(0, f.lastRefused.Load())
	t.Logf(
		"last 503 %s after Restart was called, which took %s; %d good, %d refused", last.Sub(began),
		back.Sub(began), f.good.Load(), f.refused.Load(),
	)
	recovered := last.Sub(back)
	is.True(recovered < 20*time.Second)
	refused := f.refused.Load()
	some(t, &f.good, 500)
	is.Equal(f.refused.Load(), refused)
	f.stop()
	w.idle(t)
}

func TestShutDownOfTheServer(t *testing.T) { // a regular stop, as for an upgrade
	is, cluster := is.New(t), dbtest.Server(t)
	u := plainURL(t)
	w := newWorld(t, u, u)
	f := w.traffic(t)
	some(t, &f.good, 200)
	cluster.Shutdown()
	some(t, &f.refused, 50)
	is.NoErr(cluster.Restart(context.WithoutCancel(t.Context())))
	some(t, &f.good, 500)
	f.stop()
}

// TestServerIsFrozen: a server whose processes are stopped does not block callers, and is used
// again when they continue.
func TestServerIsFrozen(t *testing.T) {
	is, cluster := is.New(t), dbtest.Server(t)
	u := plainURL(t)
	w := newWorld(t, u, with(with(with(u, "read_timeout", "500ms"), "write_timeout", "500ms"), "connect_timeout", "1"))
	f := w.traffic(t)
	some(t, &f.good, 200)
	cluster.Freeze()
	defer cluster.Thaw()
	some(t, &f.refused, 50) // each is a 503 of the service
	status, body, err := w.do(t.Context(), "GET", "/readyz", "")
	is.NoErr(err)
	is.Equal(status, http.StatusServiceUnavailable)
	is.NoErr(properly503(body))
	cluster.Thaw()
	some(t, &f.good, 200)
	f.stop()
	w.idle(t)
}
