package rest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"
)

// TestEarly: an early stream that fails soon is answered with its failure, one that takes longer
// has begun by then, and is cut.
func TestEarly(t *testing.T) {
	failure := errors.New("it does not fit")
	for name, c := range map[string]struct {
		size  int
		takes time.Duration
		err   error
		sent  int // of size, before the stream is over
	}{
		"soon":             {10, 99 * time.Millisecond, nil, 0},
		"late":             {10, 101 * time.Millisecond, nil, 10},
		"fails soon":       {10, 99 * time.Millisecond, failure, 0},
		"fails late":       {10, 101 * time.Millisecond, failure, 10},
		"long":             {streamBuffer, 0, nil, streamBuffer},
		"long, fails soon": {streamBuffer, 0, failure, streamBuffer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a clock of its own, which jumps
				is, rec := is.New(t), httptest.NewRecorder()
				out := NewResponse(rec, &Transfers{}, nil, Memory{})
				answer := Reply{Status: http.StatusOK, Early: true, Stream: func(w io.Writer) error {
					_, err := w.Write(make([]byte, c.size))
					is.NoErr(err)
					time.Sleep(c.takes)
					synctest.Wait()
					is.Equal(rec.Body.Len(), c.sent)
					is.Equal(rec.Flushed, c.sent == 10) // what is short needs a push
					return c.err
				}}
				defer func() {
					is.Equal(recover() != nil, c.err != nil && c.sent > 0)
					if c.err != nil {
						is.Equal(rec.Body.Len(), c.sent) // nothing more comes
						return
					}
					is.Equal(rec.Body.Len(), c.size)
				}()
				is.Equal(answer.Write(out, nil), c.err)
				is.Equal(out.Status == 0, c.err != nil) // the failure is still to be answered
			})
		})
	}
}

// TestEarlyPanic: what panics before anything is sent is answered, and a timer that has just fired
// sends nothing beside that.
func TestEarlyPanic(t *testing.T) {
	is, rec := is.New(t), httptest.NewRecorder()
	var out *delayedStream
	answer := Reply{Status: http.StatusOK, Early: true, Stream: func(w io.Writer) error {
		out = w.(*delayedStream)
		panic("broken")
	}}
	func() {
		defer func() { is.Equal(recover(), "broken") }()
		_ = answer.Write(NewResponse(rec, &Transfers{}, nil, Memory{}), nil)
	}()
	out.begin()
	is.True(!rec.Flushed)
}
