package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/tenantcontent/tenantcontent/errs"
)

// client sends requests to a running server.
type client struct {
	Server string `env:"TENANTCONTENT_SERVER" default:"http://127.0.0.1:8080" help:"URL of the server." placeholder:"URL"`
	Token  string `env:"TENANTCONTENT_TOKEN" help:"API token or session. Better set in the environment." placeholder:"TOKEN"`
	JSON   bool   `name:"json" help:"Print the answer as JSON, for scripts."`
}

// atOnce is the most concurrent requests of a command.
const atOnce = 4

// connections is the HTTP client for all requests of a command. It does not follow redirects, so
// that a token is only sent to the address for which it was given.
var connections = &http.Client{
	Transport:     pooled(),
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func pooled() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = atOnce
	return t
}

// outgoing is a request to make.
type outgoing struct {
	method, path string
	body         io.Reader // or nil
	size         int64     // of body in bytes; -1 if it is unknown
	contentType  string    // of body
}

// address returns the URL of the server without a slash at its end.
func (c client) address() (string, error) {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errs.Wrap(
			errs.Invalid, err,
			"the server's URL %q must be http:// or https:// and a host, such as http://127.0.0.1:8080",
			c.Server,
		)
	}
	if u.User != nil {
		return "", errs.New(errs.Invalid, "the server's URL must have no user and password: the token is enough")
	}
	return strings.TrimRight(c.Server, "/"), nil
}

// send sends a request and returns a 2xx response. Other responses become errors with the message
// of the server.
func (c client) send(ctx context.Context, o outgoing) (*http.Response, error) {
	if c.Token == "" {
		return nil, errs.New(
			errs.Invalid, "no token: set TENANTCONTENT_TOKEN to an API token (POST /api/tokens makes one)",
		)
	}
	server, err := c.address()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, o.method, server+o.path, o.body)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the server's URL %q cannot be used", c.Server)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if o.body != nil {
		req.ContentLength = o.size
		req.Header.Set("Content-Type", o.contentType)
	}
	res, err := connections.Do(req)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "cannot reach %s", c.Server)
	}
	if res.StatusCode < 300 {
		res.Body = &whole{res.Body, res.Header.Get("X-Request-Id")}
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	return nil, c.refused(res)
}

// refused returns the error for a response that is not 2xx.
func (c client) refused(res *http.Response) error {
	if to := res.Header.Get("Location"); res.StatusCode < 400 && to != "" {
		return &refusal{code: res.StatusCode,
			text: fmt.Sprintf("%s answered %d %s: it sends to %s, and the token was not given for another address: "+
				"name the right one with --server", c.Server,
				res.StatusCode, http.StatusText(res.StatusCode), harmless(to))}
	}
	var problem struct {
		Message foreign `json:"message"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&problem); err != nil || problem.Message == "" {
		problem.Message = "no message"
	}
	hint := ""
	if res.StatusCode == http.StatusUnauthorized {
		hint = "\nCheck TENANTCONTENT_TOKEN: POST /api/tokens makes a token."
	}
	text := fmt.Sprintf(
		"%s answered %d %s: %s%s", c.Server, res.StatusCode, http.StatusText(res.StatusCode), problem.Message,
		hint,
	)
	return &refusal{res.StatusCode, text, string(problem.Message)}
}

// tries is the most times that a request is sent while the server is busy.
const tries = 5

// call sends a request with a JSON body, if body is not nil, and decodes the answer into into, if
// that is not nil. It tries again if the server is busy.
func (c client) call(ctx context.Context, method, path string, body, into any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return again(ctx, func() error {
		o := outgoing{method: method, path: path}
		if body != nil {
			o.body, o.size, o.contentType = bytes.NewReader(raw), int64(len(raw)), "application/json"
		}
		res, err := c.send(ctx, o)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if into == nil {
			_, err := io.Copy(io.Discard, res.Body) // so that the connection can be reused
			return err
		}
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			return errs.Wrap(errs.Unavailable, err, "%s answered what is no JSON", c.Server)
		}
		_, err = io.Copy(io.Discard, res.Body)
		return err
	})
}

// again calls do until the server is not busy, at most a few times.
func again(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		refused, is := errors.AsType[*refusal](err)
		if !is || n == tries || refused.code != http.StatusTooManyRequests &&
			refused.code != http.StatusServiceUnavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(n) * time.Second):
		}
	}
}

// whole is the body of a response. If the body ends early, its error refers to the server's log,
// because a response that has begun cannot report an error.
type whole struct {
	io.ReadCloser
	request string // X-Request-Id
}

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return n, err
	}
	return n, errs.Wrap(
		errs.Unavailable, err, "the answer was cut off; the server's log says why (request %s)",
		harmless(w.request),
	)
}

// refusal is a response that is not 2xx.
type refusal struct {
	code    int // HTTP status
	text    string
	message string // message of the server, safe for terminals, or ""
}

func (r *refusal) Error() string { return r.text }

// answer prints a response, as JSON or as text.
func (c client) answer(t terminal, raw []byte, text string) error {
	if !c.JSON {
		return say(t, "%s", text)
	}
	var compact bytes.Buffer // so that control characters are only in strings, in which JSON escapes them
	if err := json.Compact(&compact, raw); err != nil {
		return err
	}
	return say(t, "%s", harmless(compact.String()))
}

// foreign is text from a server or an archive. It is escaped for terminals when it is decoded.
type foreign string

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *foreign) UnmarshalText(text []byte) error {
	*f = foreign(harmless(string(text)))
	return nil
}

// harmless escapes characters that control a terminal, including line ends, and those that change
// the direction of text, as JSON does.
func harmless(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
