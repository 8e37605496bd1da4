package saml_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
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
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
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
		return &http.Response{
			StatusCode: status,
			Header:     http.Header{},
			Body:       io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// open opens a domain whose metadata comes from w.
func (w *web) open(t *testing.T) login {
	t.Helper()
	r, err := saml.Driver{
		Client: &http.Client{Transport: w},
	}.Open(json.RawMessage(`{"metadataURL": "https://idp.example/metadata"}`))
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

// Many logins at once are one request; when it fails they all know, and those that come later ask
// again.
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
		"nobody there": {"cannot be fetched", func(*http.Request) (*http.Response, error) {
			return nil, errors.New("connection refused")
		}},
		"not found":   {"status 404", page(http.StatusNotFound, p.Metadata(t, nil))},
		"elsewhere":   {"status 302", redirect},
		"too much":    {"bytes", page(http.StatusOK, strings.Repeat(" ", 1<<20)+p.Metadata(t, nil))},
		"without end": {"bytes", endless},
		"breaks off":  {"unexpected EOF", brokenOff},
		"a page":      {"must be SAML metadata", page(http.StatusOK, "<html><p>Welcome<br></html>")},
		"another service": {"must describe one", page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) {
			e.IDPSSODescriptors = nil
		}))},
		"ended": {"validUntil", page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) {
			e.ValidUntil = time.Now().Add(-time.Second)
		}))},
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
	return &http.Response{
		StatusCode: http.StatusFound,
		Header:     http.Header{"Location": {"http://169.254.169.254/"}},
		Body:       http.NoBody,
	}, nil
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

// An answer that was good serves until its time is over, while the address does not answer.
func TestLastGood(t *testing.T) {
	p := newIDP(t)
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		w := &web{answer: page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) {
			e.ValidUntil = time.Now().Add(3 * time.Hour)
		}))}
		r := w.open(t)
		is.NoErr(begin(t.Context(), r))
		w.answer = page(http.StatusServiceUnavailable, "")
		time.Sleep(61 * time.Minute)
		for range 10 {
			is.NoErr(begin(t.Context(), r))
		}
		is.Equal(w.asked.Load(), int32(2)) // and in a minute again
		time.Sleep(time.Minute)
		is.NoErr(begin(t.Context(), r))
		is.Equal(w.asked.Load(), int32(3))
		time.Sleep(2 * time.Hour)
		is.Equal(errs.CodeOf(begin(t.Context(), r)), errs.Upstream)
		w.answer = page(http.StatusOK, p.Metadata(t, nil))
		time.Sleep(3 * time.Second)
		is.NoErr(begin(t.Context(), r))
	})
}

// Nobody waits for an address that hangs while there is an older answer, but the one who asks it.
func TestNobodyWaits(t *testing.T) {
	p := newIDP(t)
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		w := &web{answer: page(http.StatusOK, p.Metadata(t, nil))}
		r := w.open(t)
		is.NoErr(begin(t.Context(), r))
		time.Sleep(2 * time.Hour)
		w.answer = func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		before := time.Now()
		var all sync.WaitGroup
		all.Go(func() { is.NoErr(begin(t.Context(), r)) })
		synctest.Wait()
		is.NoErr(begin(t.Context(), r))
		is.Equal(time.Since(before), time.Duration(0))
		all.Wait()
		is.Equal(time.Since(before), 10*time.Second)
	})
}

// A provider's new key is found when something is signed with it, with one request a minute at the
// most.
func TestNewKey(t *testing.T) {
	p := newIDP(t)
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		with := func(keys ...samltest.Signer) func(*http.Request) (*http.Response, error) {
			return page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) {
				e.ValidUntil = time.Now().Add(24 * time.Hour)
				e.IDPSSODescriptors[0].KeyDescriptors = nil
				for _, key := range keys {
					e.IDPSSODescriptors[0].KeyDescriptors = append(
						e.IDPSSODescriptors[0].KeyDescriptors, key.Descriptor(),
					)
				}
			}))
		}
		old, newer := samltest.NewSigner(time.Now()), samltest.NewSigner(time.Now())
		w := &web{answer: with(old)}
		r := w.open(t)
		service, _, err := r.Metadata(at)
		is.NoErr(err)
		try := func(key samltest.Signer) error {
			location, memory, err := r.Begin(t.Context(), at, "acme.state")
			is.NoErr(err)
			v := p.visit(t, r, location, memory, service)
			a := v.assertion(nil)
			key.Sign(t, a, sha256)
			_, err = v.finish(t, v.response(a))
			return err
		}
		is.NoErr(try(old))
		is.True(try(newer) != nil)
		is.Equal(w.asked.Load(), int32(1)) // a second ago
		w.answer = with(newer, old)
		time.Sleep(time.Minute)
		is.NoErr(try(newer))
		is.NoErr(try(old))
		is.Equal(w.asked.Load(), int32(2))
		for range 5 {
			is.True(try(samltest.Theirs()) != nil)
		}
		is.Equal(w.asked.Load(), int32(2))
		time.Sleep(time.Minute)
		for range 5 {
			is.True(try(samltest.Theirs()) != nil)
		}
		is.Equal(w.asked.Load(), int32(3))
	})
}

// On saving, metadata is read whatever is known, and a reason is for the administrator.
func TestDiscover(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	w := &web{answer: page(http.StatusOK, p.Metadata(t, nil))}
	r := w.open(t).(domains.Discoverer)
	is.NoErr(r.Discover(t.Context()))
	is.NoErr(r.Discover(t.Context()))
	is.Equal(w.asked.Load(), int32(2))
	for name, c := range map[string]struct {
		why    string
		answer func(*http.Request) (*http.Response, error)
	}{
		"not found": {"no SAML metadata is there", page(http.StatusNotFound, "")},
		"a page":    {"no SAML metadata is there", page(http.StatusOK, "<html/>")},
		"no XML":    {"no SAML metadata is there", page(http.StatusOK, `{"intranet": 1}`)},
		"too much":  {"no SAML metadata is there", endless},
		"cut":       {"no SAML metadata is there", brokenOff},
		"elsewhere": {"no SAML metadata is there", redirect},
		"nobody": {"cannot be fetched", func(*http.Request) (*http.Response, error) {
			return nil, errors.New("connection refused to 10.0.0.7")
		}},
		"ended": {"validUntil", page(http.StatusOK, p.Metadata(t, func(e *crewjam.EntityDescriptor) {
			e.ValidUntil = time.Now().Add(-time.Second)
		}))},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w.answer = c.answer
			err := w.open(t).(domains.Discoverer).Discover(t.Context())
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), "metadataURL must "))
			is.True(strings.Contains(errs.MessageOf(err), c.why))
			is.True(!strings.Contains(errs.MessageOf(err), "10.0.0.7"))
		})
	}
}

// A provider behind an authority of its own is reached with caCert alone.
func TestOwnAuthority(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, p.Metadata(t, nil))
	}))
	t.Cleanup(web.Close)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	err := begin(t.Context(), open(t, map[string]any{"metadataURL": web.URL}))
	is.Equal(errs.CodeOf(err), errs.Upstream)
	is.True(strings.Contains(errs.MessageOf(err), "set caCert"))
	is.NoErr(begin(t.Context(), open(t, map[string]any{"metadataURL": web.URL, "caCert": ca})))
}
