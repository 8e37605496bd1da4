package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

const (
	timeout      = 10 * time.Second // of a request
	maxAnswer    = 1 << 20          // bytes
	maxRedirects = 3
)

// guarded returns a client over base, which may be nil, that has a time-out, reads at most
// maxAnswer, and sends nothing unencrypted.
//
// Errors: errs.Invalid if the host's client cannot be told which certificates to trust.
func guarded(base *http.Client, plain bool, trusted certs.Trusted) (*http.Client, error) {
	c := http.Client{}
	if base != nil {
		c = *base
	}
	if c.Timeout == 0 {
		c.Timeout = timeout
	}
	way, err := trusted.Transport(c.Transport, "caCert")
	if err != nil {
		return nil, err
	}
	c.Transport = guard{next: way, plain: plain}
	then := c.CheckRedirect
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case via[0].Method != http.MethodGet || via[0].Header.Get("Authorization") != "":
			return errors.New("a redirect of a request with a secret is not followed")
		case len(via) > maxRedirects:
			return fmt.Errorf("there are more than %d redirects", maxRedirects)
		case then != nil:
			return then(r, via)
		}
		return nil
	}
	return &c, nil
}

// badStatus is the error of an answer with another status than 200.
type badStatus struct{ status, body string }

func (b badStatus) Error() string { return b.status + ": " + b.body }

// fetch returns the response to a GET, which may carry an access token, and its content type.
func fetch(ctx context.Context, client *http.Client, address string, token *oauth2.Token) ([]byte, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", err
	}
	if token != nil {
		token.SetAuthHeader(r)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }() // read only
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = badStatus{answer.Status, string(body)}
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return body, kind, err
}

// guard is a transport that sends requests, also those that a redirect leads to, to safe addresses
// alone.
type guard struct {
	next  http.RoundTripper
	plain bool
}

// RoundTrip sends a request.
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isSafe(r.URL, g.plain) {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, errors.New("the address is not https")
	}
	answer, err := g.next.RoundTrip(r)
	if err == nil {
		answer.Body = &bounded{answer.Body, maxAnswer}
	}
	return answer, err
}

// bounded is a body that fails when it has more bytes than are left.
type bounded struct {
	io.ReadCloser
	left int
}

// Read reads on.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return n, err
}
