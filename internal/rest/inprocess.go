package rest

import (
	"fmt"
	"net/http"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Recorded is the answer to a request that this process has made.
type Recorded struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call serves a request of this process, whose path has the mount, and returns the answer. Errors:
// errs.TooLarge for a body of more than most bytes; errs.Unavailable for an answer that ends in the
// middle.
func (e *Engine) Call(r *http.Request, as *As, most int) (answer Recorded, err error) {
	rec := &recorder{header: http.Header{}, most: most}
	defer func() {
		if p := recover(); p != nil { // what Answer lets net/http do: cut the connection
			err = errs.Wrap(
				errs.Unavailable, fmt.Errorf("panic: %v", p), "The call failed in the middle of its answer.",
			)
		}
	}()
	out := NewResponse(rec, &e.Transfers, e.answers, e.o.Memory)
	out.ID = RequestID(r)
	if IsRead(r.Method) {
		r = r.WithContext(e.readLimits(r.Context(), out))
	}
	out.Sender = NewSender(out, r)
	defer out.End()
	if err := e.Serve(out, r, as); err != nil {
		e.fail(out, r, err)
	}
	if rec.long {
		return answer, errs.New(errs.TooLarge, "The answer has more than %d bytes.", most)
	}
	return Recorded{rec.status, rec.header, rec.body}, nil
}

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   []byte
	most   int // bytes of body
	long   bool
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements io.Writer. It fails beyond its most, so that the answer is not made to
// its end.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if len(r.body)+len(b) > r.most {
		r.long = true
		return 0, errs.New(errs.TooLarge, "too long")
	}
	r.body = append(r.body, b...)
	return len(b), nil
}
