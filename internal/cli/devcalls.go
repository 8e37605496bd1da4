package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// callLog prints calls of handlers.
type callLog struct {
	t  terminal
	mu sync.Mutex
}

func (l *callLog) print(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprint(l.t.out, text)
	return err
}

// handlerCall is a request to a handler.
type handlerCall struct {
	log    *callLog
	begin  time.Time
	area   string
	method string
	path   string

	mu       sync.Mutex
	answered bool
	status   int
	running  int
	results  []jsvm.Result // the last one is that of the request's own handler
	errors   []error
}

type callKey struct{}

// serve serves a request, and prints it if it is a call of a handler.
func (l *callLog) serve(w http.ResponseWriter, r *http.Request, app http.Handler) {
	area, path := handlerPath(r.URL.EscapedPath())
	if area == "" {
		app.ServeHTTP(w, r)
		return
	}
	c := &handlerCall{log: l, begin: time.Now(), area: area, method: r.Method, path: path}
	recorder := &statusRecorder{ResponseWriter: w}
	app.ServeHTTP(recorder, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	c.update(func() { c.answered, c.status = true, recorder.status })
}

// handlerPath returns the area of handlers of a path, and the path within it. area is "" for any
// other path.
func handlerPath(path string) (area, rest string) {
	of, below := strings.CutPrefix(path, "/api/apps/")
	if !below {
		return "", ""
	}
	_, of, _ = strings.Cut(of, "/")
	if rest, ok := strings.CutPrefix(of, "_hook"); ok && (rest == "" || rest[0] == '/') {
		return "webhook", "/" + strings.TrimPrefix(rest, "/")
	}
	if _, rest, ok := strings.Cut(of, "/api/_server"); ok && strings.HasPrefix(of, "view/") && (rest == "" ||
		rest[0] == '/') {
		return "server", "/" + strings.TrimPrefix(rest, "/")
	}
	return "", ""
}

// update changes the call, and prints it when it has its answer and no handler is running.
func (c *handlerCall) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	if c.answered && c.running == 0 {
		_ = c.log.print(c.text())
	}
}

func (c *handlerCall) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %s %d", c.begin.Format(time.TimeOnly), c.area, c.method, harmless(c.path), c.status)
	if n := len(c.results); n > 0 {
		r := c.results[n-1]
		fmt.Fprintf(
			&b, " %.1f ms %.1f MiB", float64(r.Duration)/float64(time.Millisecond),
			float64(r.PeakMemory)/(1<<20),
		)
	}
	b.WriteByte('\n')
	for _, r := range c.results {
		for _, line := range r.Logs {
			indented(&b, fmt.Sprintf("%-5s %s", line.Level, line.Text))
		}
		if r.LogsDropped > 0 {
			indented(&b, fmt.Sprintf("and %d lines more", r.LogsDropped))
		}
		if r.Error != nil {
			indented(&b, strings.TrimRight(r.Error.Error()+"\n"+r.Error.Stack, "\n"))
		}
	}
	for _, err := range c.errors {
		indented(&b, err.Error())
	}
	c.results, c.errors = nil, nil
	return b.String()
}

func indented(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(b, "         %s\n", harmless(strings.ReplaceAll(line, "\t", "    ")))
	}
}

// loggedRuntime records the results of the handlers of a request.
type loggedRuntime struct{ jsvm.Runtime }

// Run implements jsvm.Runtime.
func (l loggedRuntime) Run(ctx context.Context, p *jsvm.Program, c jsvm.Call) (jsvm.Result, error) {
	call, ok := ctx.Value(callKey{}).(*handlerCall)
	if !ok {
		return l.Runtime.Run(ctx, p, c)
	}
	call.update(func() { call.running++ })
	result, err := l.Runtime.Run(ctx, p, c)
	call.update(func() {
		if call.running--; err != nil {
			call.errors = append(call.errors, err)
			return
		}
		call.results = append(call.results, result)
	})
	return result, err
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (s *statusRecorder) WriteHeader(status int) {
	if s.status < 200 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *statusRecorder) Write(b []byte) (int, error) {
	if s.status < 200 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(b)
}

// Unwrap returns the underlying writer for http.ResponseController.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
