package main

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
	"unicode"

	"github.com/tenantcontent/tenantcontent/errs"
)

// client calls a running server.
type client struct {
	Server string `env:"TENANTCONTENT_SERVER" default:"http://127.0.0.1:8080" help:"URL of the server." placeholder:"URL"`
	Token  string `env:"TENANTCONTENT_TOKEN" help:"API token or session. Better set in the environment." placeholder:"TOKEN"`
	JSON   bool   `name:"json" help:"Print the answer as JSON, for scripts."`
}

// send makes a request and returns the answer when it is 2xx. An answer that is not becomes an error with the server's
// message.
func (c client) send(ctx context.Context, method, path string, body io.Reader, size int64) (*http.Response, error) {
	if c.Token == "" {
		return nil, errs.New(errs.Invalid, "no token: set TENANTCONTENT_TOKEN to an API token (POST /api/tokens makes one)")
	}
	if u, err := url.Parse(c.Server); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errs.Wrap(errs.Invalid, err, "the server's URL %q must be http:// or https:// and a host, such as http://127.0.0.1:8080", c.Server)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.Server, "/")+path, body)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the server's URL %q cannot be used", c.Server)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if body != nil {
		req.ContentLength = size
		req.Header.Set("Content-Type", "application/gzip")
	}
	res, err := http.DefaultClient.Do(req)
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
	var problem struct {
		Message foreign `json:"message"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&problem); err != nil || problem.Message == "" {
		problem.Message = "no message"
	}
	return nil, &refusal{res.StatusCode, fmt.Sprintf("%s answered %d %s: %s", c.Server, res.StatusCode, http.StatusText(res.StatusCode), problem.Message)}
}

// whole is the body of a response. Its error for a body that ends early refers to the server's log, as a response that has
// begun cannot report an error.
type whole struct {
	io.ReadCloser
	request string // X-Request-Id
}

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return n, err
	}
	return n, errs.Wrap(errs.Unavailable, err, "the answer was cut off; the server's log says why (request %s)", harmless(w.request))
}

// refusal is a response that is not 2xx.
type refusal struct {
	code int // HTTP status
	text string
}

func (r *refusal) Error() string { return r.text }

// answer prints a response, as JSON or as text.
func (c client) answer(t terminal, raw []byte, text string) error {
	if !c.JSON {
		return say(t, "%s", text)
	}
	var compact bytes.Buffer // so that control characters are in its texts alone, where JSON has escapes for them
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

// harmless escapes the characters that control a terminal, also line ends, and those that change the direction of text, as
// JSON does.
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
