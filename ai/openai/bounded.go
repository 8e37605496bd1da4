package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bounded makes requests whose answers are bounded in time and bytes.
type bounded struct {
	client             *http.Client
	begin, idle, total time.Duration
	most               int64
}

// refusal is the error of a request that a server has answered with another status than 200.
type refusal struct {
	status int
	body   string        // its beginning
	after  time.Duration // from Retry-After, or 0
}

// Error returns the status and the body.
func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.body) }

// The causes of an answer's end.
var (
	errBegin = errors.New("the server has not begun its answer in time")
	errIdle  = errors.New("the server has stopped in the middle of its answer")
	errTotal = errors.New("the answer takes too long")
	errLarge = errors.New("the answer is too large")
)

const (
	maxRefusal = 16 << 10 // bytes of a refusal that are read
	maxAfter   = time.Hour
)

// Do implements option.HTTPClient.
func (b *bounded) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	body := &boundedBody{cancel: cancel, idle: b.idle, left: b.total, most: b.most}
	stop := time.AfterFunc(b.begin, func() { cancel(errBegin) })
	res, err := b.client.Do(r.WithContext(ctx))
	begun := stop.Stop()
	if err == nil && !begun {
		_ = res.Body.Close()
		err = errBegin
	}
	if err != nil {
		if r.Context().Err() == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		cancel(nil)
		return nil, err
	}
	body.from, body.ctx = res.Body, ctx
	if res.StatusCode != http.StatusOK {
		defer func() { _ = body.Close() }()
		text, err := io.ReadAll(io.LimitReader(body, maxRefusal))
		if err != nil && len(text) == 0 {
			text = []byte(err.Error())
		}
		return nil, &refusal{status: res.StatusCode, body: string(text), after: retryAfter(res.Header, time.Now())}
	}
	res.Body = body
	if !strings.HasSuffix(r.URL.Path, chatPath) {
		return res, nil
	}
	lines := bufio.NewReaderSize(body, 4<<10)
	if beginsObject(lines) {
		if err := streamed(res, lines, body); err != nil {
			return nil, err
		}
		return res, nil
	}
	res.Header.Set("Content-Type", "text/event-stream")
	res.Body = &eventBody{boundedBody: body, lines: lines, done: doneOf(r.Context())}
	return res, nil
}

// chatPath is the end of the URLs whose answers are streams.
const chatPath = "/chat/completions"

// beginsObject reports whether an answer begins as a JSON object, and not as an event.
func beginsObject(lines *bufio.Reader) bool {
	for n := 1; n <= 64; n++ {
		b, err := lines.Peek(n)
		if err != nil {
			return false
		}
		if c := b[n-1]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c == '{'
		}
	}
	return false
}

// doneKey is the context key of a variable that is set when the stream has ended with the event
// [DONE].
type doneKey struct{}

func withDone(ctx context.Context) (context.Context, *bool) {
	done := new(bool)
	return context.WithValue(ctx, doneKey{}, done), done
}

func doneOf(ctx context.Context) *bool {
	if done, ok := ctx.Value(doneKey{}).(*bool); ok {
		return done
	}
	return new(bool)
}

// retryAfter reads the header Retry-After, in seconds or as a time.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	after := time.Duration(0)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < maxAfter.Seconds() {
		after = time.Duration(seconds * float64(time.Second))
	} else if at, err := http.ParseTime(text); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, 0), maxAfter)
}

// boundedBody is the body of an answer. Only the time in which its reader waits for the server is
// counted.
type boundedBody struct {
	from   io.ReadCloser
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	idle   time.Duration
	left   time.Duration // time left for the whole answer
	most   int64
	read   int64
	once   sync.Once
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTotal
	}
	allowed, cause := b.idle, errIdle
	if b.left < allowed {
		allowed, cause = b.left, errTotal
	}
	began := time.Now()
	stop := time.AfterFunc(allowed, func() { b.cancel(cause) })
	n, err := b.from.Read(p)
	stop.Stop()
	b.left -= time.Since(began)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	if b.read += int64(n); b.read > b.most {
		return n, errLarge
	}
	return n, err
}

// Close ends the request.
func (b *boundedBody) Close() (err error) {
	b.once.Do(func() {
		b.cancel(nil)
		err = b.from.Close()
	})
	return err
}

// eventBody reads a stream of events up to the one that ends it. It removes comments, and the empty
// events that would remain, because the client would decode those as JSON.
type eventBody struct {
	*boundedBody
	lines  *bufio.Reader
	rest   []byte // of a line, valid until the next one is read
	inside bool   // a line was longer than the buffer, and its rest follows
	drop   bool   // the line is a comment
	event  bool   // a line was read since the last empty one
	ended  bool
	failed error
	done   *bool // set at the end of the stream
}

var doneLine = []byte("data: [DONE]")

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.failed != nil {
			return 0, b.failed
		}
		if b.ended {
			return 0, io.EOF
		}
		b.next()
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// next reads a line, or a part of a long one.
func (b *eventBody) next() {
	line, err := b.lines.ReadSlice('\n')
	whole := !errors.Is(err, bufio.ErrBufferFull)
	if err != nil && whole {
		b.failed = err
	}
	begins := !b.inside
	b.inside = !whole
	if !begins {
		if !b.drop {
			b.rest = line
		}
		return
	}
	text := bytes.TrimRight(line, "\r\n")
	switch b.drop = false; {
	case bytes.HasPrefix(text, []byte(":")):
		b.drop = true
	case len(text) == 0:
		if b.event {
			b.rest = line
		}
		b.event = false
	case bytes.Equal(text, doneLine) || bytes.Equal(text, []byte("data:[DONE]")):
		b.ended, *b.done = true, true
		b.finish()
	default:
		b.event, b.rest = true, line
	}
}

// finish reads what a server sends after the last event, so that the connection can be reused.
// Usually all of it has arrived already.
func (b *eventBody) finish() {
	b.idle, b.most = min(b.idle, 50*time.Millisecond), b.read+4<<10
	_, _ = io.Copy(io.Discard, b.lines)
}
