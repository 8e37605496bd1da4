package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
)

// accessLine is a line of the access log.
type accessLine struct {
	Time      time.Time `json:"time"`
	Method    string    `json:"method"`
	Route     string    `json:"route"`
	Status    int       `json:"status"`
	Duration  float64   `json:"duration"`
	Received  int64     `json:"received"`
	Bytes     int64     `json:"bytes"`
	Tenant    string    `json:"tenant"`
	User      string    `json:"user"`
	Client    string    `json:"client"`
	Request   string    `json:"request"`
	TraceID   string    `json:"trace_id"`
	UserAgent string    `json:"user_agent"`
}

func accessLines(t *testing.T, path string) (text string, all []accessLine) {
	t.Helper()
	raw, err := os.ReadFile(path)
	is.New(t).NoErr(err)
	for line := range strings.Lines(string(raw)) {
		var one accessLine
		is.New(t).NoErr(json.Unmarshal([]byte(line), &one))
		all = append(all, one)
	}
	return string(raw), all
}

// TestAccessLog: each request has a line, although the log has none at its level, and no line has a
// secret, a query or a path.
func TestAccessLog(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, path := is.New(t), filepath.Join(t.TempDir(), "access.log")
		s := spawn(t, append(flags, "--access-log="+path, "--trusted-proxies=127.0.0.1")...)
		token := s.login(t, "", "admin", password)
		const canary = "canary7f3a"
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		send := func(method, target, body string) int {
			r, err := http.NewRequestWithContext(t.Context(), method, s.url+target, strings.NewReader(body))
			is.NoErr(err)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("X-Forwarded-For", "198.51.100.9, 203.0.113.7")
			r.Header.Set("X-Request-Id", "from-the-proxy")
			r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
			r.Header.Set("User-Agent", "test/1 "+strings.Repeat("x", 500))
			res, err := http.DefaultClient.Do(r)
			is.NoErr(err)
			defer func() { _ = res.Body.Close() }()
			_, _ = io.Copy(io.Discard, res.Body)
			return res.StatusCode
		}
		is.Equal(send("PUT", "/api/colors/"+canary, `{"color":"#f00"}`), http.StatusOK)
		is.Equal(send("GET", "/api/colors?q="+canary, ""), http.StatusOK)
		is.Equal(send("GET", "/api/"+canary, ""), http.StatusNotFound)
		is.Equal(send("PUT", "/api/colors/"+canary, `{"color":"`+canary+`"}`), http.StatusBadRequest)
		is.Equal(s.stop(), 0) // what is buffered is written

		text, all := accessLines(t, path)
		for _, secret := range []string{canary, token, password, "?"} {
			is.True(!strings.Contains(text, secret))
		}
		is.True(len(all) >= 5) // with the log-in
		all = all[len(all)-4:]
		put := all[0]
		is.True(time.Since(put.Time) < time.Minute && put.Duration > 0)
		put.Time, put.Duration = time.Time{}, 0
		is.True(put.Bytes > 100)
		put.Bytes = 0
		is.Equal(put, accessLine{
			Method: "PUT", Route: "/api/colors/{key}", Status: 200, Received: 16, Tenant: "default", User: "admin",
			Client: "203.0.113.7", Request: "from-the-proxy", TraceID: trace,
			UserAgent: "test/1 " + strings.Repeat("x", 249) + "…",
		})
		is.Equal(all[1].Route, "/api/colors")
		is.Equal(all[2].Route, "")
		is.Equal(all[2].Status, http.StatusNotFound)
		is.Equal(all[3].Status, http.StatusBadRequest)
		is.True(!strings.Contains(s.stderr.String(), "from-the-proxy"))
	})
}

// TestAccessLogThatCannotBeOpened: the server does not start, and names the file.
func TestAccessLogThatCannotBeOpened(t *testing.T) {
	is := is.New(t)
	missing := filepath.Join(t.TempDir(), "missing", "access.log")
	var said bytes.Buffer
	code := Run(t.Context(), append([]string{"serve", "--listen=127.0.0.1:0", "--access-log=" + missing},
		onSQLite(t)...), strings.NewReader(""), io.Discard, &said)
	is.True(code != 0)
	is.True(strings.Contains(said.String(), "--access-log: cannot write "+missing))
}

// TestAccessLogOnStderr: the lines stand between those of the log.
func TestAccessLogOnStderr(t *testing.T) {
	is := is.New(t)
	s := spawn(t, append(onSQLite(t), "--access-log=stderr")...)
	status, _ := getFrom(t, s.url+"/healthz", "")
	is.Equal(status, http.StatusOK)
	is.Equal(s.stop(), 0)
	is.True(strings.Contains(s.stderr.String(), `"method":"GET","route":"/healthz","status":200`))
}

// TestUnreadyBeforeItStops: after the signal, /readyz is 503 while requests are served, also on new
// connections, for the time that is configured.
func TestUnreadyBeforeItStops(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is := is.New(t)
		const delay = 2 * time.Second
		s := spawn(t, append(flags, fmt.Sprintf("--shutdown-delay=%s", delay))...)
		token := s.login(t, "", "admin", password)
		status, _ := getFrom(t, s.url+"/readyz", "")
		is.Equal(status, http.StatusOK)
		began := time.Now()
		is.NoErr(s.cmd.Process.Signal(syscall.SIGTERM))
		for status == http.StatusOK && time.Since(began) < delay {
			status, _ = getFrom(t, s.url+"/readyz", "")
		}
		is.Equal(status, http.StatusServiceUnavailable)
		status, body := getFrom(t, s.url+"/readyz?for=read", "")
		is.Equal(status, http.StatusServiceUnavailable)
		is.True(strings.Contains(body, "This server is stopping"))
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")) // it still listens
		is.NoErr(err)
		defer func() { _ = c.Close() }()
		_, err = fmt.Fprintf(c,
			"PUT /api/colors/red HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 16\r\n\r\n"+
				`{"color":"#f00"}`, token)
		is.NoErr(err)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		is.NoErr(err)
		is.Equal(res.StatusCode, http.StatusOK)
		s.refuses(t)
		is.True(time.Since(began) >= delay)
		for s.cmd.ProcessState == nil && !strings.Contains(s.stderr.String(), "stopped") {
			time.Sleep(10 * time.Millisecond)
		}
		is.True(strings.Contains(s.stderr.String(), "/readyz is 503"))
	})
}

// TestSecondSignalEndsTheDelay: at once.
func TestSecondSignalEndsTheDelay(t *testing.T) {
	is, s := is.New(t), spawn(t, append(onSQLite(t), "--shutdown-delay=5m")...)
	is.NoErr(s.cmd.Process.Signal(syscall.SIGTERM))
	for !strings.Contains(s.stderr.String(), "/readyz is 503") {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	is.Equal(s.stop(), -1) // by the signal
	is.True(time.Since(began) < 5*time.Second)
}

func TestDefaultOfShutdownDelay(t *testing.T) {
	is, some := is.New(t), stopDelay(time.Minute)
	for listen, want := range map[string]time.Duration{
		"127.0.0.1:8080": 0, "localhost:0": 0, "[::1]:80": 0, ":8080": defaultDelay, "0.0.0.0:80": defaultDelay,
		"10.0.0.1:80": defaultDelay, "example.com:80": defaultDelay,
	} {
		s := serveCommand{config: config{Listen: listen}}
		is.Equal(s.shutdownDelay(), want)
		s.ShutdownDelay = &some
		is.Equal(s.shutdownDelay(), time.Minute)
	}
	for text, ok := range map[string]bool{
		"0s": true, "10s": true, "10m": true, "11m": false, "-1s": false, "x": false,
	} {
		is.Equal(some.UnmarshalText([]byte(text)) == nil, ok)
	}
}
