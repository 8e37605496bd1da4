package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
)

// Loopback answers the calls that scripts make of the routes of a Handler, in this process. What
// runs scripts needs it before there is a Handler, which needs what runs scripts: so a Loopback is
// made first, and New connects it.
type Loopback struct{ to *api }

// Call implements scripts.API. Errors: errs.Unavailable also before New has connected it.
func (l *Loopback) Call(ctx context.Context, call scripts.Request) (scripts.Answer, error) {
	if l.to == nil {
		return scripts.Answer{}, errs.New(errs.Unavailable, "fetch: the routes are not served yet.")
	}
	at := &url.URL{RawPath: l.to.mount + "/api/" + call.Path, RawQuery: call.Query}
	var err error
	if at.Path, err = url.PathUnescape(at.RawPath); err != nil {
		return scripts.Answer{}, errs.New(errs.Invalid, "fetch: the path is not properly escaped")
	}
	r := (&http.Request{
		Method:     call.Method,
		URL:        at,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header(call.Header),
		Body:       http.NoBody,
	}).WithContext(ctx)
	if call.Body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(call.Body)), int64(len(call.Body))
	}
	answer, err := l.to.Engine.Call(r, forApp(call.Who), scripts.MaxFetched)
	switch errs.CodeOf(err) {
	case errs.TooLarge:
		err = errs.New(errs.TooLarge, "fetch: the answer has more than %d MiB.", scripts.MaxFetched>>20)
	case errs.Unavailable:
		err = errs.Wrap(errs.Unavailable, err, "fetch: the call failed in the middle of its answer.")
	}
	return scripts.Answer{Status: answer.Status, Header: textproto.MIMEHeader(answer.Header), Body: answer.Body}, err
}
