package saml

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

// source is where the metadata of a provider comes from.
type source interface {
	// provider returns the provider at the moment. Errors: errs.Upstream.
	provider(ctx context.Context) (*provider, error)
	// renewed returns a provider that is newer than known, which lacks something that came from it;
	// known if there is no newer one.
	// Errors: that of ctx.
	renewed(ctx context.Context, known *provider) (*provider, error)
	// discover reads the metadata now. Errors: errs.Invalid naming the member of the configuration.
	discover(ctx context.Context) (*provider, error)
	// known returns the provider as it was read last, without reading it; nil for never.
	known() *provider
}

// pasted is metadata in the configuration.
type pasted struct{ of *provider }

func (p pasted) provider(context.Context) (*provider, error) { return p.of.current() }

func (p pasted) renewed(context.Context, *provider) (*provider, error) { return p.of, nil }

func (p pasted) known() *provider { return p.of }

func (p pasted) discover(context.Context) (*provider, error) {
	if _, err := p.of.current(); err != nil {
		return nil, errs.New(
			errs.Invalid, "metadataXML must be replaced: it ended on %s (validUntil)",
			p.of.ends.Format(time.RFC3339),
		)
	}
	return p.of, nil
}

// remote is metadata at an address. It is fetched when it is needed and then kept, so that many
// logins at once fetch it once. While the address does not answer, what it answered last is used.
type remote struct {
	client *http.Client
	url    *url.URL
	last   atomic.Pointer[provider]
	// a mutex that a context can end waiting for; it protects the fields below, and changes of last
	lock  chan struct{}
	err   error // of the last try
	tried time.Time
	until time.Time // the next try
}

// How long what an address answered is kept: as long as the metadata's cacheDuration says, within
// bounds, so that a provider's new key is known after an hour; and a failure long enough for those
// who waited for it. minKeep is also the time between two tries to find a key that is missing, and
// between those of an address that does not answer while there is an older answer.
const (
	minKeep     = time.Minute
	maxKeep     = time.Hour
	keepFailure = 3 * time.Second
)

func (r *remote) known() *provider { return r.last.Load() }

// usable returns the last provider, nil if its time is over.
func (r *remote) usable() *provider {
	if p := r.last.Load(); p != nil {
		if _, err := p.current(); err == nil {
			return p
		}
	}
	return nil
}

// acquire locks r.
func (r *remote) acquire(ctx context.Context) error {
	select {
	case r.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *remote) release() { <-r.lock }

// provider returns the cached provider, or fetches it. Who finds another one fetching does not wait
// while there is an older answer.
func (r *remote) provider(ctx context.Context) (*provider, error) {
	select {
	case r.lock <- struct{}{}:
	default:
		if p := r.usable(); p != nil {
			return p, nil
		}
		if err := r.acquire(ctx); err != nil {
			return nil, err
		}
	}
	defer r.release()
	if !time.Now().Before(r.until) {
		if err := r.try(ctx); err != nil {
			return nil, err
		}
	}
	if p := r.usable(); p != nil || r.err == nil {
		return r.last.Load().current()
	}
	return nil, r.err
}

func (r *remote) renewed(ctx context.Context, known *provider) (*provider, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	if r.last.Load() == known && time.Since(r.tried) >= minKeep {
		if err := r.try(ctx); err != nil {
			return nil, err
		}
	}
	if p := r.usable(); p != nil {
		return p, nil
	}
	return known, nil
}

func (r *remote) discover(ctx context.Context) (*provider, error) {
	err := r.acquire(ctx)
	if err == nil {
		defer r.release()
		err = r.try(ctx)
	}
	if err == nil {
		err = r.err
	}
	var p *provider
	if err == nil {
		p, err = r.last.Load().current()
	}
	if errs.CodeOf(err) == errs.Upstream {
		return nil, errs.Wrap(
			errs.Invalid, err, "metadataURL must be an address with the provider's metadata. %s",
			errs.MessageOf(err),
		)
	}
	return p, err
}

// try fetches the metadata, and remembers how that ended. It returns the error of ctx, which says
// nothing about the address.
func (r *remote) try(ctx context.Context) error {
	p, err := r.fetch(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.tried, r.err = time.Now(), err
	switch {
	case err == nil:
		r.last.Store(p)
		r.until = r.tried.Add(p.lifetime())
	case r.usable() != nil:
		r.until = r.tried.Add(minKeep)
	default:
		r.until = r.tried.Add(keepFailure)
	}
	return nil
}

// lifetime is how long fetched metadata is kept.
func (p *provider) lifetime() time.Duration {
	keep := p.keep
	if keep <= 0 {
		keep = maxKeep
	}
	if !p.ends.IsZero() {
		keep = min(keep, time.Until(p.ends))
	}
	return min(max(keep, minKeep), maxKeep)
}

// fetch reads the metadata from its address.
func (r *remote) fetch(ctx context.Context) (*provider, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	document, err := r.get(ctx)
	if err != nil {
		return nil, r.failed(err)
	}
	p, err := readProvider(document)
	if errors.Is(err, errNotMetadata) {
		return nil, r.failed(err)
	}
	if err != nil {
		return nil, errs.New(errs.Upstream, "The answer of %s %s.", r.url.Host, err)
	}
	return p, nil
}

// failed returns the error for metadata that cannot be had. Of a server that answers something
// else, or nothing, the sentence is the same: the address may be that of another server in this
// network, and an administrator here must not learn what is there.
func (r *remote) failed(err error) error {
	why := certs.Explain(err)
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain || why == "" || errors.Is(err, errNotMetadata) {
		why = "no SAML metadata is there: look at the name, the port and the firewall"
	}
	return errs.Wrap(errs.Upstream, err, "The SAML metadata of %s cannot be fetched: %s.", r.url.Host, why)
}

// errNotMetadata is the error of an answer that is not SAML metadata.
var errNotMetadata = errors.New("must be SAML metadata")

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
		return nil, fmt.Errorf("%w: status %d instead of 200", errNotMetadata, res.StatusCode)
	}
	document, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if len(document) > maxDocument {
		err = errTooLong
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMetadata, err)
	}
	return document, nil
}
