package mcp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// What a server may not do.
var (
	errSlow      = errors.New("the server has not answered in time")
	errLarge     = errors.New("the server has sent too much")
	errOtherHost = errors.New("a request to another host than the server's")
	errRequests  = errors.New("too many requests to the server")
	errOld       = errors.New("an answer to a call that has ended")
)

// What a server can make of one call, or of a connection.
const (
	maxRequests   = 64    // such as answers to what it asks for
	maxParts      = 50000 // objects, arrays and their elements: they take more memory than their bytes
	maxLines      = 5000  // of streams of events: each event has one or more
	connectFactor = 2     // so much more may come while connecting
)

// link makes the requests to one server: with its headers, only to its host, and within a budget of
// requests and of bytes that are read.
type link struct {
	base         http.RoundTripper
	scheme, host string
	header       http.Header

	mu       sync.Mutex
	budget   int   // counts budgets
	bytes    int64 // left of the budget
	parts    int
	lines    int
	requests int
	failed   error // the last failure since the budget was set
	status   int   // of the last answer that is a refusal
}

// allow sets the budget: factor times that of a call.
func (l *link) allow(bytes int64, factor int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.budget++
	l.bytes, l.parts, l.lines, l.requests = bytes*int64(factor), maxParts*factor, maxLines*factor, maxRequests*factor
	l.failed, l.status = nil, 0
}

// left returns how many bytes are left of the budget.
func (l *link) left() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// failure returns the status of the last refusal, and what has failed since the budget was set.
func (l *link) failure() (status int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.failed
}

// fail notes a failure.
func (l *link) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
	return err
}

// begin takes a request from the budget, and returns which one that is.
func (l *link) begin() (budget int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests--; l.requests < 0 {
		err = errRequests
	}
	return l.budget, err
}

// RoundTrip implements http.RoundTripper.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != l.scheme || r.URL.Host != l.host {
		return nil, l.fail(errOtherHost)
	}
	budget, err := l.begin()
	if err != nil {
		return nil, l.fail(err)
	}
	r = r.Clone(r.Context())
	for name, values := range l.header {
		r.Header[name] = values
	}
	res, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, l.fail(err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		l.mu.Lock()
		l.status = res.StatusCode
		l.mu.Unlock()
	}
	res.Body = &metered{res.Body, l, budget, strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")}
	return res, nil
}

// metered is the body of an answer, which counts for the budget.
type metered struct {
	io.ReadCloser
	of     *link
	budget int
	events bool
}

// Read implements io.Reader.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if over := m.of.spend(p[:n], m.budget, m.events); over != nil {
		return 0, over
	}
	return n, err
}

// spend takes what was read from the budget. Once it is used up, or too many requests were made,
// nothing more is read; nor is an answer of a call before, which would use up the budget of this
// one.
func (l *link) spend(read []byte, budget int, events bool) error {
	parts := bytes.Count(read, []byte(",")) + bytes.Count(read, []byte("{")) + bytes.Count(read, []byte("["))
	lines := bytes.Count(read, []byte("\n"))
	l.mu.Lock()
	defer l.mu.Unlock()
	if budget != l.budget {
		return errOld
	}
	l.bytes -= int64(len(read))
	l.parts -= parts
	if events {
		l.lines -= lines
	}
	var over error
	switch {
	case l.requests < 0:
		over = errRequests
	case l.bytes < 0 || l.parts < 0 || l.lines < 0:
		over = errLarge
	}
	if l.failed == nil {
		l.failed = over
	}
	return over
}
