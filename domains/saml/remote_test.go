package saml_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/errs"
)

// web answers requests for metadata without a network, so that time can be the tests' own.
type web struct {
	asked  atomic.Int32
	answer func(*http.Request) (*http.Response, error)
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.asked.Add(1)
	return w.answer(r)
}

// page answers with a status and a body.
func page(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// open opens a domain whose metadata comes from w.
func (w *web) open(t *testing.T) login {
	t.Helper()
	r, err := saml.Driver{Client: &http.Client{Transport: w}}.Open(json.RawMessage(`{"metadataURL": "https://idp.example/metadata"}`))
	is.New(t).NoErr(err)
	return r.(login)
}

func begin(ctx context.Context, r login) error {
	_, _, err := r.Begin(ctx, at, "s")
	return err
}

func TestFetchedOnce(t *testing.T) {
	p := newIDP(t)
	for name, c := range map[string]struct {
		change func(*crewjam.EntityDescriptor)
		kept   time.Duration
	}{
		"no word":      {func(e *crewjam.EntityDescriptor) { e.CacheDuration = 0 }, time.Hour},
		"ten minutes":  {func(e *crewjam.EntityDescriptor) { e.CacheDuration = 10 * time.Minute }, 10 * time.Minute},
		"a second":     {func(e *crewjam.EntityDescriptor) { e.CacheDuration = time.Second }, time.Minute},
		"two days":     {func(e *crewjam.EntityDescriptor) { e.CacheDuration = 48 * time.Hour }, time.Hour},
		"less than 0":  {func(e *crewjam.EntityDescriptor) { e.CacheDuration = -time.Hour }, time.Hour},
		"ends earlier": {func(e *crewjam.EntityDescriptor) { e.ValidUntil = time.Now().Add(30 * time.Minute) }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			is := is.New(t)
			w := &web{answer: page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) {
				e.ValidUntil = time.Now().Add(24 * time.Hour)
				c.change(e)
			}))}
			r := w.open(t)
			is.Equal(w.asked.Load(), int32(0)) // Open asks nobody
			is.NoErr(begin(t.Context(), r))
			if c.kept == 0 {
				time.Sleep(31 * time.Minute)
				is.Equal(errs.CodeOf(begin(t.Context(), r)), errs.Upstream)
				return
			}
			time.Sleep(c.kept - time.Second)
			is.NoErr(begin(t.Context(), r))
			is.Equal(w.asked.Load(), int32(1))
			time.Sleep(2 * time.Second)
			is.NoErr(begin(t.Context(), r))
			if w.asked.Load() != 2 {
				t.Errorf("%s: asked %d times", name, w.asked.Load())
			}
		})
	}
}

// Many logins at once are one request; when it fails they all know, and those that come later ask again.
func TestFetchedTogether(t *testing.T) {
	p := newIDP(t)
	for _, status := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			is := is.New(t)
			answer := page(status, p.Metadata(t, nil))
			w := &web{}
			w.answer = func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				return answer(r)
			}
			r := w.open(t)
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if err := begin(t.Context(), r); (err == nil) != (status == http.StatusOK) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			is.Equal(w.asked.Load(), int32(1))
			w.answer = page(http.StatusOK, p.Metadata(t, nil))
			time.Sleep(3 * time.Second)
			is.NoErr(begin(t.Context(), r))
		})
	}
}

// Whoever leaves takes nobody along: not who waits with them, nor what is kept.
func TestFetchCancelled(t *testing.T) {
	p := newIDP(t)
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		answer := page(http.StatusOK, p.Metadata(t, nil))
		w := &web{answer: func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(5 * time.Second):
				return answer(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}}
		r := w.open(t)
		first, leave := context.WithCancel(t.Context())
		second, leaveToo := context.WithTimeout(t.Context(), 2*time.Second)
		defer leaveToo()
		var all sync.WaitGroup
		all.Go(func() { is.True(errors.Is(begin(first, r), context.Canceled)) })
		synctest.Wait()
		all.Go(func() { is.True(errors.Is(begin(second, r), context.DeadlineExceeded)) })
		all.Go(func() { is.NoErr(begin(t.Context(), r)) })
		time.Sleep(time.Second)
		leave()
		all.Wait()
		is.True(w.asked.Load() <= 3)
	})
}

func TestFetchFails(t *testing.T) {
	p := newIDP(t)
	for name, c := range map[string]struct {
		why    string
		answer func(*http.Request) (*http.Response, error)
	}{
		"nobody there":    {"cannot be fetched", func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }},
		"not found":       {"status 404", page(http.StatusNotFound, p.Metadata(t, nil))},
		"elsewhere":       {"status 302", redirect},
		"too much":        {"bytes", page(http.StatusOK, strings.Repeat(" ", 1<<20)+p.Metadata(t, nil))},
		"without end":     {"bytes", endless},
		"breaks off":      {"unexpected EOF", brokenOff},
		"a page":          {"The answer of idp.example must be SAML metadata", page(http.StatusOK, "<html><p>Welcome<br></html>")},
		"another service": {"must describe one", page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) { e.IDPSSODescriptors = nil }))},
		"signed requests": {"must not want signed", page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) {
			yes := true
			e.IDPSSODescriptors[0].WantAuthnRequestsSigned = &yes
		}))},
		"ended": {"validUntil", page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) { e.ValidUntil = time.Now().Add(-time.Second) }))},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := (&web{answer: c.answer}).open(t)
			err := begin(t.Context(), r)
			is.Equal(errs.CodeOf(err), errs.Upstream)
			if !strings.Contains(err.Error(), c.why) {
				t.Errorf("failed with %q, want %q", err, c.why)
			}
			_, err = finish(t, r)
			is.Equal(errs.CodeOf(err), errs.Upstream)
		})
	}
}

// An answer that never comes is given up after ten seconds.
func TestFetchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		w := &web{answer: func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		before := time.Now()
		is.Equal(errs.CodeOf(begin(t.Context(), w.open(t))), errs.Upstream)
		is.Equal(time.Since(before), 10*time.Second)
	})
}

func redirect(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "idp.example" {
		return nil, errors.New("the redirect was followed")
	}
	return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"http://169.254.169.254/"}}, Body: http.NoBody}, nil
}

func endless(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(spaces{})}, nil
}

// spaces are without end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte(" "), len(p))), nil }

func brokenOff(*http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader("<EntityDescriptor"), broken{})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// finish brings nothing back: whether the provider is known comes first.
func finish(t *testing.T, r login) (domains.Identity, error) {
	who, err := r.Finish(t.Context(), at, []byte("id-1"), domains.Answer{})
	return who.Identity, err
}
