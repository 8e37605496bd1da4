package scripts

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// API answers calls of the service's own routes, in this process.
type API interface {
	// Call returns the answer to a request. Errors: errs.Invalid for a path that is not properly
	// escaped; errs.TooLarge for an answer whose body has more than MaxFetched bytes;
	// errs.Unavailable for one that ends in the middle.
	Call(ctx context.Context, r Request) (Answer, error)
}

// Request is a call of a route.
type Request struct {
	Who    actor.Actor
	Method string // in upper case
	Path   string // below /api/, escaped
	Query  string // without its question mark
	Header textproto.MIMEHeader
	Body   string
}

// Answer is the answer to a Request.
type Answer struct {
	Status int
	Header textproto.MIMEHeader
	Body   []byte
}

// The bounds of a script's fetch.
const (
	MaxHops        = 3       // scripts that call each other
	MaxFetched     = 4 << 20 // bytes of an answer
	maxFetchedPath = 4 << 10
)

// hopsKey is the key of how many scripts called each other by fetch, in the context of the last.
type hopsKey struct{}

// fetchHeaders are the headers that a script can send with fetch.
var fetchHeaders = []string{"accept", "content-type", "idempotency-key", "if-match", "if-none-match"}

// fetchedHeaders are those of an answer that it gets.
var fetchedHeaders = []string{
	"Content-Type", "Etag", "Location", "Last-Modified", "Content-Disposition", "Retry-After", "Allow",
}

// fetchOptions is the second argument of fetch.
type fetchOptions struct {
	Method  jsonfill.Field[string]            `json:"method"`
	Body    json.RawMessage                   `json:"body"`
	Headers jsonfill.Field[map[string]string] `json:"headers"`
}

// fetched is what fetch returns.
type fetched struct {
	Status   int               `json:"status"`
	Body     json.RawMessage   `json:"body"`               // parsed if it is JSON, else its text; null for none
	Encoding string            `json:"encoding,omitempty"` // base64 if it is no text
	Headers  map[string]string `json:"headers"`
}

// fetch returns the function fetch(path, {method, body, headers}) of a script: a call of this
// service, in process, with the rights of the caller, that the manifest allows.
func (b *Binder) fetch(c Call) jsvm.Function {
	return func(ctx context.Context, args json.RawMessage) (_ json.RawMessage, err error) {
		c := c // each call has its own
		hops, _ := ctx.Value(hopsKey{}).(int)
		if hops >= MaxHops {
			return nil, errs.New(errs.Invalid, "fetch: handlers call each other more than %d deep.", MaxHops)
		}
		if c.Viewed {
			if c.Who, err = actor.From(ctx); err != nil { // with the rights of now
				return nil, err
			}
		}
		r, err := fetchRequest(c, args)
		if err != nil {
			return nil, err
		}
		if b.o.API == nil {
			return nil, errs.New(errs.Unavailable, "fetch: this program serves no routes.")
		}
		answer, err := b.o.API.Call(context.WithValue(ctx, hopsKey{}, hops+1), r)
		if err != nil {
			return nil, errs.Wrap(errs.CodeOf(err), err, "fetch: %s", errs.MessageOf(err))
		}
		out := fetched{Status: answer.Status, Headers: map[string]string{}}
		for _, name := range fetchedHeaders {
			if value := answer.Header.Get(name); value != "" {
				out.Headers[strings.ToLower(name)] = value
			}
		}
		out.Body, out.Encoding = scriptBody(answer.Header.Get("Content-Type"), answer.Body)
		return json.Marshal(out)
	}
}

// fetchRequest returns the request that the arguments of fetch mean.
func fetchRequest(c Call, args json.RawMessage) (Request, error) {
	refuse := func(format string, args ...any) (Request, error) {
		return Request{}, errs.New(errs.Invalid, "fetch: "+format, args...)
	}
	list, err := jsvm.Arguments("fetch", args, 2)
	if err != nil {
		return Request{}, err
	}
	target, o := "", fetchOptions{}
	if json.Unmarshal(list[0], &target) != nil || target == "" {
		return refuse("the first argument must be a path below /api/, such as \"datasets\"")
	}
	if !jsonfill.IsNull(list[1]) {
		var by jsonfill.Filler
		if by.Fill(list[1], &o, "") != nil {
			return refuse("the second argument must be an object with method, body and headers, whose values are " +
				"strings")
		}
		if err := by.RefuseOptions("fetch"); err != nil {
			return Request{}, err
		}
	}
	if len(target) > maxFetchedPath || strings.ContainsAny(target, "#\x00\r\n") {
		return refuse("the path must have at most %d characters, and no # or line breaks", maxFetchedPath)
	}
	path, query, _ := strings.Cut(target, "?")
	if strings.Contains(path, "://") || strings.HasPrefix(path, "//") {
		return refuse("%.100q is no path below /api/: there is no other network", target)
	}
	path = strings.TrimPrefix(strings.TrimPrefix(path, "/"), "api/")
	method, headers := "", map[string]string{}
	o.Method.Apply(&method)
	o.Headers.Apply(&headers)
	method = cmp.Or(strings.ToUpper(method), "GET")
	reads := method == "GET" || method == "HEAD"
	if err := CheckCall(c.Access, method, path); err != nil {
		return Request{}, err
	}
	if c.ByCookie && !reads {
		return Request{}, errs.New(
			errs.Forbidden,
			"fetch: a GET that a browser makes with its cookie can only read: export POST for %s %s, and let the "+
				"page call that.",
			method, path,
		)
	}
	r := Request{Who: c.Who, Method: method, Path: path, Query: query, Header: textproto.MIMEHeader{}}
	if c.Tool.IdempotencyKey != "" {
		r.Header.Set("Idempotency-Key", c.Tool.IdempotencyKey)
	}
	for name, value := range headers {
		lower := strings.ToLower(name)
		if !slices.Contains(fetchHeaders, lower) || strings.ContainsAny(value, "\r\n\x00") {
			return refuse("the header %.100q cannot be sent: only %s can", name, strings.Join(fetchHeaders, ", "))
		}
		r.Header.Set(name, value)
	}
	if len(o.Body) == 0 || string(o.Body) == "null" || reads {
		return r, nil
	}
	r.Body = string(o.Body)
	text := ""
	if json.Unmarshal(o.Body, &text) == nil { // a string is sent as it is
		r.Body = text
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// CheckCall returns errs.Forbidden for a call that a manifest does not allow. The path is below
// /api/, and escaped.
func CheckCall(m manifest.Manifest, method, path string) error {
	if m.Allows(method, path) {
		return nil
	}
	return errs.New(
		errs.Forbidden, "The manifest of the app does not allow %s %s: add it to access in %s.", method, path,
		manifest.Files()[0],
	)
}

// scriptBody returns the JSON of a body for a script.
func scriptBody(contentType string, body []byte) (value json.RawMessage, encoding string) {
	t, _, _ := strings.Cut(contentType, ";")
	switch {
	case len(body) == 0:
		return json.RawMessage("null"), ""
	case (t == "application/json" || strings.HasSuffix(t, "+json")) && json.Valid(body):
		return body, ""
	case utf8.Valid(body):
		value, _ = json.Marshal(string(body))
		return value, ""
	}
	value, _ = json.Marshal(base64.StdEncoding.EncodeToString(body))
	return value, "base64"
}
