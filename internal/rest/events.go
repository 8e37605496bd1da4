package rest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// defaultHeartbeat is how often a stream of events sends something: proxies cut connections that
// are silent for a minute.
const defaultHeartbeat = 15 * time.Second

// errStopping ends the streams of a server that stops.
var errStopping = errs.New(errs.Unavailable, "The server stops. Ask again.")

// Events replies with server-sent events, which run sends: their name and what is encoded as
// their data. send waits until the client's connection has taken the event, and fails when the
// client has gone; the context of run ends then, and a while after the server begins to stop. An
// error of run before the first event, and before the first heartbeat, is an ordinary answer; a
// later one is the event error, whose data are the body of such an answer.
func (e *Engine) Events(run func(
	ctx context.Context, send func(name string, data any) error,
) error) (Reply, error) {
	header := map[string]string{
		"Content-Type": "text/event-stream",
		// proxies neither pack the stream nor hold it back
		"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no",
	}
	return Reply{Status: http.StatusOK, Serve: func(w *Response, r *http.Request) error {
		ctx, cancel := e.Transfers.Stoppable(r.Context())
		defer cancel(nil)
		s := &eventStream{w: w, header: header, gone: cancel}
		w.Out = w.Transfers.Begin(w.Control.SetWriteDeadline)
		tail := s.beat(e.o.Heartbeat)
		defer tail()
		err := run(ctx, s.send)
		tail()
		switch {
		case err == nil:
			return s.begin()
		case s.failed != nil, s.begun && ClientGone(r):
			w.Failure = err
			panic(http.ErrAbortHandler)
		case !s.begun:
			return err
		}
		status, message := PlainProblem(err)
		e.logFailure(e.o.Log, w, r, status, err)
		// a client that has gone needs none
		_ = s.send("error", Problem{StatusCode: status, Error: http.StatusText(status), Message: message})
		return nil
	}}, nil
}

// Stoppable returns a context that also ends, with an errs.Unavailable, a while after the server
// begins to stop: Config.LastIdle.
func (t *Transfers) Stoppable(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.Stopping, func() { time.AfterFunc(t.Drained, func() { cancel(errStopping) }) })
	return ctx, func(cause error) {
		stop()
		cancel(cause)
	}
}

// eventStream is a stream of events while it is sent.
type eventStream struct {
	w      *Response
	header map[string]string
	gone   context.CancelCauseFunc // called when the client does not take an event

	mu     sync.Mutex // heartbeats have a goroutine of their own
	begun  bool
	failed error // why the client did not take an event
}

// send sends an event.
func (s *eventStream) send(name string, data any) error {
	encoded, err := hal.Append(nil, data)
	if err != nil {
		return err
	}
	event := make([]byte, 0, len(name)+len(encoded)+len("event: \ndata: \n\n"))
	event = append(append(event, "event: "...), name...)
	event = append(append(event, "\ndata: "...), encoded...)
	return s.write(append(event, "\n\n"...))
}

// begin sends the headers, if nothing has been sent.
func (s *eventStream) begin() error { return s.write(nil) }

// write sends bytes at once. Each write has a deadline of its own, and between two there is none.
func (s *eventStream) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if !s.begun {
		for name, value := range s.header {
			s.w.Header().Set(name, value)
		}
		s.w.WriteHeader(http.StatusOK)
		s.begun = true
	}
	_, err := s.w.Write(p)
	if err == nil {
		_, err = s.w.Out.Step(func() (int, error) { return 0, s.w.Control.Flush() })
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.failed = err
		s.gone(err)
		return err
	}
	s.w.Out.Rest()
	return nil
}

// beat sends a comment now and then, until the function that it returns is called.
func (s *eventStream) beat(interval time.Duration) (end func()) {
	ended := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				_ = s.write([]byte(":\n\n"))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		beating.Wait()
	})
}
