package httpapi_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestBodyThatNeverComes announces a body and sends none: who reads no body answers all the same,
// and soon.
func TestBodyThatNeverComes(t *testing.T) {
	w := newWorld(t, dbtest.SQLite)
	server := httptest.NewServer(w.http)
	defer server.Close()
	for request, want := range map[string]int{
		"POST /nope":              http.StatusNotFound,
		"POST /api/colors-export": http.StatusUnauthorized,
		"GET /healthz":            http.StatusOK,
	} {
		t.Run(request, func(t *testing.T) {
			is := is.New(t)
			conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
			is.NoErr(err)
			defer func() { _ = conn.Close() }()
			is.NoErr(conn.SetDeadline(time.Now().Add(10 * time.Second)))
			_, err = io.WriteString(conn, request+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
			is.NoErr(err)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			is.NoErr(err)
			is.Equal(res.StatusCode, want)
			is.NoErr(res.Body.Close())
		})
	}
}

// TestManyWrites: a tenant that writes a lot at once does not take the database from the others.
func TestManyWrites(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	var inside atomic.Int64
	free := make(chan struct{})
	w.rebuilt(t, func(c *httpapi.Config) {
		c.InTx = func(ctx context.Context, fn func(context.Context) error) error {
			inside.Add(1)
			<-free
			return w.app.InTx(ctx, fn)
		}
	})
	write := func(user string) *http.Request { return w.request(t, user, "POST", "/api/reports", `{"name": "R"}`) }
	var writing sync.WaitGroup
	send := func(r *http.Request) {
		writing.Go(func() {
			if a := w.send(r); a.status != http.StatusCreated {
				t.Error(a.status, a.body)
			}
		})
	}
	until := func(n int64) {
		t.Helper()
		for begun := time.Now(); inside.Load() != n; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Fatalf("%d are in a transaction, not %d", inside.Load(), n)
			}
		}
	}
	for range 40 {
		send(write("admin"))
	}
	until(8)
	send(write("eve"))
	until(9)
	close(free)
	writing.Wait()
	is.Equal(inside.Load(), int64(41))
}
