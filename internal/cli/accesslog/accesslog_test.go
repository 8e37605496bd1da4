package accesslog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/matryer/is"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/cli/accesslog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is a stream and log that several goroutines use. A gate that is not nil is waited for
// before each write, and fail is the error of each.
type output struct {
	mu   sync.Mutex
	b    bytes.Buffer
	fail error
	gate chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	if o.gate != nil {
		<-o.gate
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		n, _ := o.b.Write(p[:len(p)/2]) // half of it, as of a disk that is full then
		return n, o.fail
	}
	return o.b.Write(p)
}

func (o *output) set(fail error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = fail
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func logger(to *output) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }

func request(route string) entity.Observation {
	return entity.Observation{
		Work: entity.RequestWork, Kind: "GET " + route, Method: "GET", Status: 200, Outcome: entity.OK,
		Start: time.Date(2026, 11, 28, 12, 30, 1, 2500, time.UTC), Duration: 1500 * time.Microsecond,
		Tenant: "acme", User: "jo", UserAgent: "curl/8.5.0", Received: 12, Sent: 345,
	}
}

// lines returns the lines, each of which is an object.
func lines(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q is not a line of JSON: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

func TestLineHasAllMembers(t *testing.T) {
	is, to := is.New(t), &output{}
	l := accesslog.New(to, logger(&output{}))
	ctx := actor.WithOrigin(t.Context(), actor.Origin{Address: netip.MustParseAddr("203.0.113.7"), Request: "r-1"})
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
	l.Observe(ctx, request("/api/colors/{key}"))
	l.Observe(ctx, entity.Observation{Work: entity.StatementWork, Kind: "SELECT"})
	is.NoErr(l.Close())
	is.Equal(to.String(), `{"time":"2026-11-28T12:30:01.000002Z","method":"GET","route":"/api/colors/{key}",`+
		`"status":200,"outcome":"ok","duration":0.001500,"received":12,"bytes":345,"tenant":"acme","user":"jo",`+
		`"client":"203.0.113.7","request":"r-1","trace_id":"01000000000000000000000000000000",`+
		`"user_agent":"curl/8.5.0"}`+"\n")
}

// TestTextsOfCallersAreBounded: what a caller sends makes neither a second line, nor a command of a
// terminal, nor a long one.
func TestTextsOfCallersAreBounded(t *testing.T) {
	is, to := is.New(t), &output{}
	l := accesslog.New(to, logger(&output{}))
	agents := []string{
		"a\r\n{\"forged\":1}", "\x1b[2J\x07\x00", "quote\" back\\slash", "\x7f\u009b\u2028\u202e", "\xff\xfe",
		strings.Repeat("x", 10_000), strings.Repeat("é", 200), strings.Repeat("\x80", 300), "Grüße 漢字 😀",
		"\U000e0041",
	}
	for _, agent := range agents {
		o := request("/api/colors")
		o.UserAgent, o.Method = agent, strings.Repeat("M", 70)
		l.Observe(t.Context(), o)
	}
	is.NoErr(l.Close())
	all := lines(t, to.String())
	is.Equal(len(all), len(agents))
	for _, c := range to.String() {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("a line has %U", c)
		}
	}
	is.Equal(all[0]["user_agent"], agents[0])
	is.Equal(all[2]["user_agent"], agents[2])
	is.Equal(all[8]["user_agent"], agents[8])
	is.Equal(all[5]["user_agent"], strings.Repeat("x", 256)+"…")
	is.Equal(all[6]["user_agent"], strings.Repeat("é", 128)+"…")
	is.Equal(all[0]["method"], strings.Repeat("M", 16)+"…")
}

// TestLinesAreWrittenEachSecond: also when there are few.
func TestLinesAreWrittenEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, to := is.New(t), &output{}
		l := accesslog.New(to, logger(&output{}))
		l.Observe(t.Context(), request("/a"))
		synctest.Wait()
		is.Equal(to.String(), "") // it waits for more
		time.Sleep(time.Second)
		synctest.Wait()
		is.Equal(len(lines(t, to.String())), 1)
		for range 300 { // more than what is written at once
			l.Observe(t.Context(), request("/b"))
		}
		synctest.Wait()
		is.True(len(to.String()) >= 64<<10) // without a wait
		is.NoErr(l.Close())
		is.Equal(len(lines(t, to.String())), 301)
	})
}

// TestFullDisk: requests go on, the log and the warnings tell of it, and what was not written comes
// when there is room, each line once and whole.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, to, log := is.New(t), &output{}, &output{}
		l := accesslog.New(to, logger(log))
		is.Equal(l.Warnings(), nil)
		to.set(&os.PathError{Op: "write", Path: "/secret/place", Err: os.ErrDeadlineExceeded})
		for range 3 {
			l.Observe(t.Context(), request("/a"))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		is.Equal(strings.Count(log.String(), "the access log cannot be written"), 1)
		is.Equal(len(l.Warnings()), 1)
		is.True(!strings.Contains(l.Warnings()[0], "/secret/place"))
		to.set(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		is.Equal(len(lines(t, to.String())), 3)
		is.Equal(strings.Count(log.String(), "the access log is written again"), 1)
		is.Equal(l.Warnings(), nil)
		is.Equal(l.Lost(), int64(0))

		to.set(os.ErrClosed)
		l.Observe(t.Context(), request("/a"))
		err := l.Close()
		is.True(err != nil && strings.Contains(err.Error(), "1 lines of the access log are lost"))
	})
}

// TestSlowDiskMemory: while nothing is written, requests do not wait, memory is bounded, and lines
// that are lost are counted.
func TestSlowDiskMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, log := is.New(t), &output{}
		to := &output{gate: make(chan struct{})}
		l := accesslog.New(to, logger(log))
		const n = 60_000
		for range n {
			l.Observe(t.Context(), request("/api/colors"))
		}
		lost := l.Lost()
		is.True(lost > 0 && lost < n)
		close(to.gate)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		is.Equal(len(lines(t, to.String())), int(n-lost))
		is.True(strings.Contains(log.String(), "the access log loses lines"))
		err := l.Close()
		is.True(err != nil && strings.Contains(err.Error(), "lines of the access log are lost"))
	})
}

// TestRotation: a file that was moved away is followed by a new one, and one that was cut goes on.
func TestRotation(t *testing.T) {
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "access.log")
	is.NoErr(os.WriteFile(path, []byte("{}\n"), 0o600))
	l, err := accesslog.Open(path, logger(&output{}))
	is.NoErr(err)
	read := func(path string) string {
		text, err := os.ReadFile(path)
		is.NoErr(err)
		return string(text)
	}
	wait := func(path string, want int) {
		t.Helper()
		for range 1000 {
			if text, err := os.ReadFile(path); err == nil && strings.Count(string(text), "\n") == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s has no %d lines", path, want)
	}
	l.Observe(t.Context(), request("/one"))
	wait(path, 2) // appended
	is.NoErr(os.Rename(path, path+".1"))
	l.Observe(t.Context(), request("/two"))
	wait(path, 1)
	wait(path+".1", 2)
	is.True(strings.Contains(read(path), "/two"))
	is.NoErr(os.Truncate(path, 0)) // copytruncate
	l.Observe(t.Context(), request("/three"))
	wait(path, 1)
	is.True(strings.HasPrefix(read(path), "{"))
	is.NoErr(l.Close())

	_, err = accesslog.Open(filepath.Join(t.TempDir(), "missing", "access.log"), logger(&output{}))
	is.True(err != nil)
}

func TestObserveAllocatesLittle(t *testing.T) {
	l := accesslog.New(&output{}, logger(&output{}))
	ctx := actor.WithOrigin(t.Context(), actor.Origin{Address: netip.MustParseAddr("203.0.113.7"), Request: "r-1"})
	o := request("/api/colors")
	for range 100 {
		l.Observe(ctx, o)
	}
	if n := testing.AllocsPerRun(100, func() { l.Observe(ctx, o) }); n > 1 {
		t.Errorf("a line costs %v allocations", n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkObserve(b *testing.B) {
	l, err := accesslog.Open(filepath.Join(b.TempDir(), "access.log"), slog.Default())
	if err != nil {
		b.Fatal(err)
	}
	o := request("/api/colors/{key}")
	b.ReportAllocs()
	for b.Loop() {
		l.Observe(context.Background(), o)
	}
	_ = l.Close()
}
