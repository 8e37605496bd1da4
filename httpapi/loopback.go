package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
)

// Loopback answers the calls that scripts make of the routes of a Handler, in this process. What
// runs scripts needs it before there is a Handler, which needs what runs scripts: so a Loopback is
// made first, and New connects it.
type Loopback struct{ to *api }

// Call implements scripts.API. Errors: errs.Unavailable also before New has connected it.
func (l *Loopback) Call(ctx context.Context, r scripts.Request) (scripts.Answer, error) {
	if l.to == nil {
		return scripts.Answer{}, errs.New(errs.Unavailable, "fetch: the routes are not served yet.")
	}
	return l.to.callInside(ctx, r)
}

// callInside serves a request of a script and returns its answer.
func (a *api) callInside(ctx context.Context, call scripts.Request) (answer scripts.Answer, err error) {
	plain, err := url.PathUnescape(call.Path)
	if err != nil {
		return answer, errs.New(errs.Invalid, "fetch: the path is not properly escaped")
	}
	at := &url.URL{Path: a.mount + "/api/" + plain, RawPath: a.mount + "/api/" + call.Path, RawQuery: call.Query}
	r := (&http.Request{
		Method:     call.Method,
		URL:        at,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header(call.Header),
		Body:       http.NoBody,
	}).
		WithContext(context.WithValue(ctx, viewerKey{}, call.Who))
	if call.Body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(call.Body)), int64(len(call.Body))
	}
	rec := &recorder{header: http.Header{}}
	defer func() {
		if p := recover(); p != nil { // what ServeHTTP lets net/http do: cut the connection
			err = errs.Wrap(
				errs.Unavailable, fmt.Errorf("panic: %v", p),
				"fetch: the call failed in the middle of its answer.",
			)
		}
	}()
	out := a.newResponse(rec)
	out.ID, out.Viewed = rest.RequestID(r), true
	if rest.IsRead(r.Method) {
		r = r.WithContext(a.readLimits(r.Context(), out))
	}
	out.Sender = rest.NewSender(out, r)
	defer out.End()
	if err := a.serve(out, r); err != nil {
		a.fail(out, r, err)
	}
	if rec.long {
		return answer, errs.New(errs.TooLarge, "fetch: the answer has more than %d MiB.", scripts.MaxFetched>>20)
	}
	return scripts.Answer{Status: rec.status, Header: textproto.MIMEHeader(rec.header), Body: rec.body}, nil
}

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	status int
	body   []byte
	long   bool
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements io.Writer. It fails beyond scripts.MaxFetched, so that the answer is not made to
// its end.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if len(r.body)+len(b) > scripts.MaxFetched {
		r.long = true
		return 0, errs.New(errs.TooLarge, "too long for a handler")
	}
	r.body = append(r.body, b...)
	return len(b), nil
}
