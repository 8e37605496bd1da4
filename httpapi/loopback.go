package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
)

// Loopback answers what services ask the routes of a Handler in this process: the calls of scripts,
// and how the entities look that have changed. They need it before there is a Handler, which needs
// them: so a Loopback is made first, and New connects it.
type Loopback struct{ to *api }

// Show returns the JSON that a GET of an entity shows a superuser of a tenant, and its own id;
// nothing for a kind without a GET. row is the entity if it has just been written, else nil.
// Errors: errs.NotFound; errs.Unavailable before New has connected it.
func (l *Loopback) Show(
	ctx context.Context, tenant string, of entity.Key, row any,
) (id string, shown json.RawMessage, err error) {
	if l.to == nil {
		return "", nil, errs.New(errs.Unavailable, "The routes are not served yet.")
	}
	return l.to.show(ctx, tenant, of, row)
}

// Call implements scripts.API. It unescapes the path once, as net/http does for a request that it
// has received. Errors: errs.Unavailable also before New has connected it.
func (l *Loopback) Call(ctx context.Context, call scripts.Request) (scripts.Answer, error) {
	if l.to == nil {
		return scripts.Answer{}, errs.New(errs.Unavailable, "The routes are not served yet.")
	}
	at := &url.URL{RawPath: l.to.mount + "/api/" + call.Path, RawQuery: call.Query}
	var err error
	if at.Path, err = url.PathUnescape(at.RawPath); err != nil {
		return scripts.Answer{}, errs.Wrap(errs.Invalid, err, "The path is not properly escaped.")
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
	return scripts.Answer{Status: answer.Status, Header: textproto.MIMEHeader(answer.Header), Body: answer.Body}, err
}
