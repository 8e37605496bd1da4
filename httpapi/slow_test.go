package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

// TestBodyThatNeverComes announces a body and sends none: who reads no body answers all the same, and soon.
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
