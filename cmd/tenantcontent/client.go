package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tenantcontent/tenantcontent/errs"
)

// client calls a running server.
type client struct {
	Server string `env:"TENANTCONTENT_SERVER" default:"http://127.0.0.1:8080" help:"URL of the server." placeholder:"URL"`
	Token  string `env:"TENANTCONTENT_TOKEN" help:"API token or session. Better set in the environment." placeholder:"TOKEN"`
	JSON   bool   `name:"json" help:"Print the answer as JSON, for scripts."`
}

// send makes a request and gives the answer when it is 2xx. An answer that is not becomes an error with the server's
// message.
func (c client) send(ctx context.Context, method, path string, body io.Reader, size int64) (*http.Response, error) {
	if c.Token == "" {
		return nil, errs.New(errs.Invalid, "no token: set TENANTCONTENT_TOKEN to an API token (POST /api/tokens makes one)")
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
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "cannot reach %s", c.Server)
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	var problem struct {
		Message string `json:"message"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&problem); err != nil || problem.Message == "" {
		problem.Message = "no message"
	}
	return nil, &refusal{res.StatusCode, fmt.Sprintf("%s answered %s: %s", c.Server, res.Status, problem.Message)}
}

// refusal is an answer of the server that is not 2xx.
type refusal struct {
	code int // HTTP status
	text string
}

func (r *refusal) Error() string { return r.text }

// answer prints what the server said: as it came for scripts, as text for people.
func (c client) answer(t terminal, raw []byte, text string) error {
	if c.JSON {
		return say(t, "%s", raw)
	}
	return say(t, "%s", text)
}

// progress shows how many bytes of a reader have been read, when a person watches a terminal. It shows no rate, which is
// that of the machine's buffers as long as they take all. finish ends the display.
func (t terminal) progress(r io.Reader, size int64, what string) (body io.Reader, finish func() error) {
	f, ok := t.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return r, func() error { return nil }
	}
	bar := progressbar.NewOptions64(size, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what+" (bytes)"),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	return io.TeeReader(r, bar), bar.Finish
}
