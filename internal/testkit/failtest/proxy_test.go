package failtest_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
)

// proxy forwards connections between the service and PostgreSQL, and cuts them.
type proxy struct {
	*url.URL
	oneIn atomic.Int64 // cut one of so many parts of an answer, at random, in half; 0: never
	after atomic.Int64 // cut the connection after so many more bytes, once; 0: never
	cuts  atomic.Int64
	bytes atomic.Int64 // number of bytes of answers so far
}

func newProxy(t *testing.T, to *url.URL) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = l.Close() })
	here := *to
	here.Host = l.Addr().String()
	p := &proxy{URL: &here}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c, to.Host)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn, to string) {
	defer func() { _ = c.Close() }()
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	go func() {
		_, _ = io.Copy(s, c)
		_ = s.Close()
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := s.Read(buf)
		p.bytes.Add(int64(n))
		oneIn, after := p.oneIn.Load(), p.after.Load()
		cut := oneIn > 0 && rand.Int64N(oneIn) == 0
		if after > 0 {
			p.after.Store(max(after-int64(n), 0))
			cut = cut || after <= int64(n)
		}
		if cut {
			n /= 2
			p.cuts.Add(1)
		}
		if _, failed := c.Write(buf[:n]); failed != nil || err != nil || cut {
			return
		}
	}
}

func TestConnectionsCutInTheMiddleOfAnswers(t *testing.T) {
	is, u := is.New(t), plainURL(t)
	p := newProxy(t, u)
	w := newWorld(t, u, p.URL)
	f := w.traffic(t)
	some(t, &f.good, 200)
	p.oneIn.Store(50)
	some(t, &p.cuts, 100)
	some(t, &f.good, 200)
	p.oneIn.Store(0)
	stopped := time.Now()
	some(t, &f.good, 500)
	recovered := time.Unix(0, f.lastRefused.Load()).Sub(stopped)
	t.Logf(
		"%d cuts, %d good, %d refused, right again after %s", p.cuts.Load(), f.good.Load(), f.refused.Load(),
		max(recovered, 0),
	)
	is.True(recovered < 20*time.Second)
	is.True(f.refused.Load() > 0)
	f.stop()
	w.idle(t)
}

func TestListCutInTheMiddleIsNotTakenForWhole(t *testing.T) {
	is, u := is.New(t), plainURL(t)
	p := newProxy(t, u)
	w := newWorld(t, u, p.URL)
	_, err := w.db.ExecContext(t.Context(),
		`INSERT INTO tc_colors (tenant_id, key, color, search, created_at, updated_at)
		SELECT 'acme', 'many-' || i, '#123456', 'many-' || i, now(), now() FROM generate_series(1, 40000) i`)
	is.NoErr(err)
	for range 3 {
		before := p.bytes.Load()
		status, text, err := w.do(t.Context(), "GET", "/api/colors-list", "")
		is.NoErr(err)
		is.Equal(status, http.StatusOK)
		is.Equal(strings.Count(text, `"key":`), 40000+callers)
		is.True(strings.HasSuffix(text, "}]"))

		p.after.Store((p.bytes.Load() - before) * 3 / 4)
		_, _, err = w.do(t.Context(), "GET", "/api/colors-list", "")
		is.True(err != nil) // the caller gets an error

		p.after.Store(1 << 10)
		status, _, err = w.do(t.Context(), "GET", "/api/colors-list", "")
		is.NoErr(err)
		// before the first byte
		is.True(status == http.StatusUnprocessableEntity || status == http.StatusServiceUnavailable)
		is.Equal(p.after.Load(), int64(0))
	}
	is.Equal(p.cuts.Load(), int64(6))
	w.idle(t)
}

func TestCallersWhoHangUpLeakNoConnection(t *testing.T) {
	is, u := is.New(t), plainURL(t)
	w := newWorld(t, u, with(u, "pool_max_conns", "8"))
	_, err := w.db.ExecContext(t.Context(),
		`INSERT INTO tc_colors (tenant_id, key, color, search, created_at, updated_at)
		SELECT 'acme', 'many-' || i, '#123456', 'many-' || i, now(), now() FROM generate_series(1, 20000) i`)
	is.NoErr(err)
	hung := atomic.Int64{}
	done := make(chan struct{})
	for i := range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := range 30 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(100*time.Millisecond))))
				method, path, body := "GET", "/api/colors-list", ""
				switch n % 3 {
				case 0:
					method, path, body = "PUT", fmt.Sprintf("/api/colors/k-%d", i), `{"color":"#123456"}`
				case 1:
					method, path, body = "POST", "/api/uploads?filename=x", strings.Repeat("x", 3<<20)
				}
				if _, _, err := w.do(ctx, method, path, body); err != nil {
					hung.Add(1)
				}
				cancel()
			}
		}()
	}
	for range callers {
		<-done
	}
	t.Logf("%d of %d hung up", hung.Load(), callers*30)
	is.True(hung.Load() > 50) // some were interrupted in the middle
	w.idle(t)
	for i := range callers {
		ok, err := w.color(t.Context(), "GET", fmt.Sprintf("k-%d", i))
		is.NoErr(err)
		is.True(ok)
	}
	var open int // the server has ended the transactions, with their locks
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		is.NoErr(w.db.QueryRowContext(t.Context(),
			`SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'
			AND usename = current_user`).Scan(&open))
		if open == 0 || time.Now().After(deadline) {
			break
		}
	}
	is.Equal(open, 0)
}

func TestStatementBehindALock(t *testing.T) {
	for _, c := range []struct{ setting, lock, method string }{
		{"lock_timeout", "UPDATE tc_colors SET color = '#000' WHERE key = 'k-0'", "PUT"},
		{"statement_timeout", "LOCK TABLE tc_colors IN ACCESS EXCLUSIVE MODE", "GET"},
	} {
		t.Run(c.setting, func(t *testing.T) {
			is, u := is.New(t), plainURL(t)
			w := newWorld(t, u, with(u, c.setting, "2000")) // also for the request that must succeed
			tx, err := w.db.BeginTx(t.Context(), nil)
			is.NoErr(err)
			_, err = tx.ExecContext(t.Context(), c.lock)
			is.NoErr(err)
			began := time.Now()
			ok, err := w.color(t.Context(), c.method, "k-0")
			is.NoErr(err)
			is.Equal(ok, false) // a 503 of the service
			took := time.Since(began)
			// without the setting it would be lock_timeout's usual 10 s
			is.True(took >= 1900*time.Millisecond && took < 9*time.Second)
			is.NoErr(tx.Rollback())
			ok, err = w.color(t.Context(), c.method, "k-0")
			is.NoErr(err)
			is.True(ok)
			w.idle(t)
		})
	}
}
