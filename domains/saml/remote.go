package saml

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// metadata returns the provider at the moment. Errors: errs.Upstream.
type metadata func(ctx context.Context) (*provider, error)

// remote is metadata at an address. It is fetched when it is needed and then kept, so that many logins at once fetch it
// once.
type remote struct {
	client *http.Client
	url    *url.URL
	lock   chan struct{} // a mutex that a context can end waiting for; it protects the fields below
	kept   *provider
	err    error
	until  time.Time
}

// How long what an address answered is kept: as long as the metadata's cacheDuration says, within bounds, so that a
// provider's new key is known after an hour; and a failure long enough for those who waited for it.
const (
	minKeep     = time.Minute
	maxKeep     = time.Hour
	keepFailure = 3 * time.Second
)

// provider returns the cached provider, or fetches it.
func (r *remote) provider(ctx context.Context) (*provider, error) {
	select {
	case r.lock <- struct{}{}:
		defer func() { <-r.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !time.Now().Before(r.until) {
		p, err := r.fetch(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err() // says nothing about the address: the next one asks again
		}
		r.kept, r.err, r.until = p, err, time.Now().Add(keepFailure)
		if err == nil {
			r.until = time.Now().Add(p.lifetime())
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.kept.current()
}

// lifetime is how long fetched metadata is kept.
func (p *provider) lifetime() time.Duration {
	if p.keep <= 0 {
		return maxKeep
	}
	return min(max(p.keep, minKeep), maxKeep)
}

// fetch reads the metadata from its address.
func (r *remote) fetch(ctx context.Context) (*provider, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	document, err := r.get(ctx)
	if err != nil {
		return nil, errs.Wrap(errs.Upstream, err, "The SAML metadata of %s cannot be fetched.", r.url.Host)
	}
	p, err := readProvider(document)
	if err != nil {
		return nil, errs.New(errs.Upstream, "The answer of %s %s.", r.url.Host, err)
	}
	return p, nil
}

func (r *remote) get(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/samlmetadata+xml, application/xml, text/xml")
	res, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d instead of 200", res.StatusCode)
	}
	document, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if len(document) > maxDocument {
		return nil, errTooLong
	}
	return document, err
}
