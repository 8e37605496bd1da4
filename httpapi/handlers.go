package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/manifest"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// handlerCall is a call of a handler of an app.
type handlerCall struct {
	app     apps.Running
	access  manifest.Manifest // which calls the handler's fetch may make
	who     actor.Actor       // as whom the handler calls the service
	viewed  bool              // who is a viewer of the app, and not its owner: see capped
	route   handlers.Route
	request handlers.Request
	tool    handlers.ToolCall // of a tool of an agent

	readOnly bool // the caller's token can only read: nothing that the handler calls writes
	byCookie bool // a browser may have added what names the caller to a GET: fetch can only read
	send     bool // a draft's notifications and e-mails are sent, and are those of its app
}

// handlersApp returns an app as package handlers has it.
func handlersApp(app apps.App) handlers.App {
	return handlers.App{Tenant: app.Tenant, ID: app.ID, Draft: app.EditingID != nil}
}

// drainTime is how long a handler that goes on after its answer has when the server stops.
const drainTime = 3 * time.Second

// runHandler runs a handler and returns its answer, as soon as there is one: the handler can go on
// behind it. Errors: errs.Unavailable if too many scripts run; what the handler does wrong is none.
func (a *api) runHandler(ctx context.Context, c handlerCall) (handlers.Response, error) {
	return a.detached(ctx, false, func(
		running context.Context, respond func(handlers.Response),
	) (handlers.Response, error) {
		in := handlers.Invocation{
			App:     handlersApp(c.app.App),
			Route:   c.route,
			Request: c.request,
			Env:     c.app.Env,
			Respond: respond,
		}
		defer a.bind(c, &in)()
		out, err := a.Webhooks.Unchecked().Serve(actor.With(running, c.who), in)
		if err == nil && out.Result.Outcome == jsvm.Canceled && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out.Response, err
	})
}

// bind sets what a handler can call, and returns what must be called when it has ended.
func (a *api) bind(c handlerCall, in *handlers.Invocation) (end func()) {
	datasets := make(map[string]string, len(c.app.Datasets))
	for _, d := range c.app.Datasets {
		in.Datasets = append(in.Datasets, d.Alias)
		datasets[d.Alias] = d.DatasetID
	}
	for _, d := range c.access.Datasets { // reading one that is not bound is an error with its alias
		if datasets[d.Alias] == "" {
			in.Datasets = append(in.Datasets, d.Alias)
		}
	}
	w := &workspace{of: a.Workspaces, tenant: c.app.Tenant, app: c.app.ID, readOnly: c.readOnly}
	in.Functions = map[string]jsvm.Function{
		"query": w.query, "fetch": a.fetchOf(c),
		"dataset": a.Datasets.Function(datasets), "markdown": a.toHTML, "extractText": a.toText,
	}
	made := effects{}
	draft := c.app.EditingID != nil
	for name, f := range a.Messages.Functions(c.app.ID) {
		if draft && c.send && name != "emit" {
			f = a.Messages.Functions(*c.app.EditingID)[name]
		}
		in.Functions[name] = func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			call := messages.Call{Depth: c.tool.Depth, Unsent: draft && !c.send}
			if c.tool.IdempotencyKey != "" {
				call.Key = made.key(c.tool.IdempotencyKey, name, args)
			}
			return f(messages.WithCall(ctx, call), args)
		}
		if c.readOnly {
			in.Functions[name] = func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return nil, errs.New(errs.Forbidden, "%s: this token can only read.", name)
			}
		}
	}
	if c.viewed {
		for name, f := range in.Functions {
			in.Functions[name] = a.capping(c, f)
		}
	}
	return w.close
}

// effects counts what one call of a tool emits and sends.
type effects struct {
	mu    sync.Mutex
	times map[string]int
}

// key returns the key of a call of a function. When the tool is called again with its key, the same
// call has the same one, also if its calls are made in another order.
func (e *effects) key(tool, function string, args json.RawMessage) string {
	sum := sha256.Sum256([]byte(function + string(args)))
	of := hex.EncodeToString(sum[:])
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.times == nil {
		e.times = map[string]int{}
	}
	e.times[of]++
	return fmt.Sprintf("%s/%s/%d", tool, of, e.times[of])
}

// handled replies with the answer of a handler. A large one is sent from memory as far as that is
// free, else from a temporary file.
func handled(r handlers.Response) rest.Reply {
	return rest.Reply{Status: r.Status, Header: r.Headers, Serve: func(w *rest.Response, _ *http.Request) error {
		body := r.Body
		r.Body = nil // nothing keeps one that is sent from a file
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Status == http.StatusNoContent || r.Status == http.StatusNotModified {
			w.Header().Del("Content-Length")
		}
		w.WriteHeader(r.Status)
		if len(body) > rest.Small && w.Memory.Hold(len(body)) != nil {
			w.WriteSpooled(body)
		} else {
			_, _ = w.Write(body) // a client that has gone needs no answer
		}
		return nil
	}}
}

// workspace is the SQL database of an app in one call of a handler: one connection, made for the
// first query.
type workspace struct {
	of          *workspaces.Service
	tenant, app string
	readOnly    bool // the caller's token can only read

	mu   sync.Mutex // one query at a time
	conn workspaces.Conn
}

// query is the function query(statement, params).
func (w *workspace) query(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	list, err := jsvm.Arguments("query", args, 2)
	if err != nil {
		return nil, err
	}
	statement, params := "", json.RawMessage(nil)
	if rest.IsNull(list[0]) || json.Unmarshal(list[0], &statement) != nil {
		return nil, errs.New(errs.Invalid, "query: the first argument must be a string, the statement")
	}
	if !rest.IsNull(list[1]) {
		params = list[1]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if w.conn == nil {
		var err error
		if w.conn, err = w.of.Connect(ctx, w.tenant, w.app); err != nil {
			return nil, err
		}
	}
	if !w.readOnly {
		return w.conn.Query(ctx, statement, params)
	}
	rows, err := w.conn.Query(workspaces.WithReadOnly(ctx), statement, params)
	if errors.Is(err, workspaces.ErrWrites) {
		err = errs.New(errs.Forbidden, "query: this token can only read, and the statement writes.")
	}
	return rows, err
}

func (w *workspace) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close()
	}
}

// toHTML is the function markdown(text).
func (a *api) toHTML(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	list, err := jsvm.Arguments("markdown", args, 1)
	if err != nil {
		return nil, err
	}
	text := ""
	if rest.IsNull(list[0]) || json.Unmarshal(list[0], &text) != nil {
		return nil, errs.New(errs.Invalid, "markdown: the argument must be a string")
	}
	safe, err := a.Markdown(ctx, text)
	if err != nil {
		return nil, err
	}
	return json.Marshal(safe)
}

// document is what extractText reads; a file of a form is one.
type document struct {
	Content     *string            `json:"content"`
	Encoding    rest.Field[string] `json:"encoding"`
	ContentType rest.Field[string] `json:"contentType"`
	Filename    rest.Field[string] `json:"filename"`
	Size        rest.Field[int]    `json:"size"` // of a file of a form, which nothing needs
}

// toText is the function extractText(document, options), with a document {content, encoding,
// contentType, filename} and options that have some of these. entry.js makes documents of texts and
// bytes.
func (a *api) toText(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	list, err := jsvm.Arguments("extractText", args, 2)
	if err != nil {
		return nil, err
	}
	var d document
	for i, what := range []string{"the document", "the options"} {
		if i > 0 && rest.IsNull(list[i]) {
			continue
		}
		var by rest.Filler
		if err := by.Fill(list[i], &d, ""); err != nil || !bytes.HasPrefix(list[i], []byte("{")) {
			return nil, errs.New(
				errs.Invalid,
				"extractText: %s must have content, encoding, contentType and filename, which are strings",
				what,
			)
		}
		if err := by.RefuseOptions("extractText"); err != nil {
			return nil, err
		}
	}
	if d.Content == nil {
		return nil, errs.New(
			errs.Invalid, "extractText: the first argument must be a string, bytes, or an object with content",
		)
	}
	var encoding, contentType, filename string
	d.Encoding.Apply(&encoding)
	d.ContentType.Apply(&contentType)
	d.Filename.Apply(&filename)
	content := []byte(*d.Content)
	switch encoding {
	case "":
	case "base64":
		if content, err = base64.StdEncoding.DecodeString(*d.Content); err != nil {
			return nil, errs.New(errs.Invalid, "extractText: the content is not base64")
		}
	default:
		return nil, errs.New(errs.Invalid, `extractText: encoding must be "base64", or left out`)
	}
	text, err := a.Extract(ctx, contentType, filename, content)
	if err != nil {
		return nil, err
	}
	return json.Marshal(text)
}

// The bounds of a handler's fetch.
const (
	maxFetchHops   = 3
	maxFetched     = 4 << 20 // bytes of an answer
	maxFetchedPath = 4 << 10
)

// hopsKey is the key of how many handlers called each other by fetch, in the context of the last.
type hopsKey struct{}

// fetchHeaders are the headers that a handler can send with fetch.
var fetchHeaders = []string{"accept", "content-type", "idempotency-key", "if-match", "if-none-match"}

// fetchOptions is the second argument of fetch.
type fetchOptions struct {
	Method  rest.Field[string]            `json:"method"`
	Body    json.RawMessage               `json:"body"`
	Headers rest.Field[map[string]string] `json:"headers"`
}

// fetched is what fetch returns.
type fetched struct {
	Status   int               `json:"status"`
	Body     json.RawMessage   `json:"body"`               // parsed if it is JSON, else its text; null for none
	Encoding string            `json:"encoding,omitempty"` // base64 if it is no text
	Headers  map[string]string `json:"headers"`
}

// fetchOf returns the function fetch(path, {method, body, headers}) of a handler: a call of this
// service, in process, with the rights of the caller, that the manifest allows.
func (a *api) fetchOf(c handlerCall) jsvm.Function {
	return func(ctx context.Context, args json.RawMessage) (_ json.RawMessage, err error) {
		c := c // each call has its own
		hops, _ := ctx.Value(hopsKey{}).(int)
		if hops >= maxFetchHops {
			return nil, errs.New(errs.Invalid, "fetch: handlers call each other more than %d deep.", maxFetchHops)
		}
		if c.viewed {
			if c.who, err = actor.From(ctx); err != nil { // with the rights of now
				return nil, err
			}
		}
		r, err := a.fetchRequest(context.WithValue(ctx, hopsKey{}, hops+1), c, args)
		if err != nil {
			return nil, err
		}
		answer, err := a.callInside(r)
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	}
}

// fetchRequest returns the request that the arguments of fetch mean.
func (a *api) fetchRequest(ctx context.Context, c handlerCall, args json.RawMessage) (*http.Request, error) {
	refuse := func(format string, args ...any) (*http.Request, error) {
		return nil, errs.New(errs.Invalid, "fetch: "+format, args...)
	}
	list, err := jsvm.Arguments("fetch", args, 2)
	if err != nil {
		return nil, err
	}
	target, o := "", fetchOptions{}
	if json.Unmarshal(list[0], &target) != nil || target == "" {
		return refuse("the first argument must be a path below /api/, such as \"datasets\"")
	}
	if !rest.IsNull(list[1]) {
		var by rest.Filler
		if by.Fill(list[1], &o, "") != nil {
			return refuse("the second argument must be an object with method, body and headers, whose values are " +
				"strings")
		}
		if err := by.RefuseOptions("fetch"); err != nil {
			return nil, err
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
	method = cmp.Or(strings.ToUpper(method), http.MethodGet)
	if err := allowedCall(c.access, method, path); err != nil {
		return nil, err
	}
	if c.byCookie && !rest.IsRead(method) {
		return nil, errs.New(
			errs.Forbidden,
			"fetch: a GET that a browser makes with its cookie can only read: export POST for %s %s, and let the "+
				"page call that.",
			method, path,
		)
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return refuse("the path is not properly escaped")
	}
	at := &url.URL{Path: a.mount + "/api/" + plain, RawPath: a.mount + "/api/" + path, RawQuery: query}
	r := (&http.Request{
		Method:     method,
		URL:        at,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{},
		Body:       http.NoBody,
	}).
		WithContext(context.WithValue(ctx, viewerKey{}, c.who))
	if c.tool.IdempotencyKey != "" {
		r.Header.Set("Idempotency-Key", c.tool.IdempotencyKey)
	}
	for name, value := range headers {
		lower := strings.ToLower(name)
		if !slices.Contains(fetchHeaders, lower) || strings.ContainsAny(value, "\r\n\x00") {
			return refuse("the header %.100q cannot be sent: only %s can", name, strings.Join(fetchHeaders, ", "))
		}
		r.Header.Set(name, value)
	}
	if len(o.Body) == 0 || string(o.Body) == "null" || rest.IsRead(method) {
		return r, nil
	}
	body, text := string(o.Body), ""
	if json.Unmarshal(o.Body, &text) == nil { // a string is sent as it is
		body = text
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return r, nil
}

// allowedCall returns errs.Forbidden for a call that a manifest does not allow.
func allowedCall(m manifest.Manifest, method, path string) error {
	if m.Allows(method, path) {
		return nil
	}
	return errs.New(
		errs.Forbidden, "The manifest of the app does not allow %s %s: add it to access in %s.", method, path,
		manifest.Files()[0],
	)
}

// callInside serves a request in process and returns its answer. Errors: errs.TooLarge for a long
// one; errs.Unavailable for one that ends in the middle.
func (a *api) callInside(r *http.Request) (answer fetched, err error) {
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
		return fetched{}, errs.New(errs.TooLarge, "fetch: the answer has more than %d MiB.", maxFetched>>20)
	}
	answer = fetched{Status: rec.status, Headers: map[string]string{}}
	for _, name := range []string{
		"Content-Type", "Etag", "Location", "Last-Modified", "Content-Disposition", "Retry-After", "Allow",
	} {
		if value := rec.header.Get(name); value != "" {
			answer.Headers[strings.ToLower(name)] = value
		}
	}
	answer.Body, answer.Encoding = scriptBody(rec.header.Get("Content-Type"), rec.body)
	return answer, nil
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

// Write implements io.Writer. It fails beyond maxFetched, so that the answer is not made to its
// end.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if len(r.body)+len(b) > maxFetched {
		r.long = true
		return 0, errs.New(errs.TooLarge, "too long for a handler")
	}
	r.body = append(r.body, b...)
	return len(b), nil
}
