package oidc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

// faulty fails the test unless an error is the provider's fault, and says so.
func faulty(t *testing.T, p *idp, err error, says string) {
	t.Helper()
	is := is.New(t)
	is.Equal(errs.CodeOf(err), errs.Upstream)
	is.True(strings.HasPrefix(errs.MessageOf(err), "The OpenID provider "+p.URL+" "))
	if !strings.Contains(err.Error(), says) {
		t.Errorf("got %q, want %q", err, says)
	}
}

func TestBrokenProvider(t *testing.T) {
	huge := `{"issuer": "` + strings.Repeat("x", 5<<20) + `"}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, huge)
	is.New(t).NoErr(err)
	is.New(t).NoErr(z.Close())
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		says  string
	}{
		"is slow": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client has gone
			<-r.Context().Done()
		}, "cannot be reached"},
		"sends drop by drop": {func(w http.ResponseWriter, r *http.Request) {
			for _, err := w.Write([]byte("{")); err == nil && r.Context().Err() == nil; _, err = w.Write([]byte(" ")) {
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}, "context"},
		"sends 5 MB": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, huge)
		}, "cannot be used"},
		"sends 5 MB in a few KB": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
		}, "cannot be used"},
		"sends HTML": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<!DOCTYPE html><title>Sign in</title>"+strings.Repeat("<br>", 1000))
		}, "cannot be used"},
		"sends an empty answer": {func(http.ResponseWriter, *http.Request) {}, "cannot be used"},
		"has an error": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(
				w, "oops "+r.FormValue("code")+r.Header.Get("Authorization")+strings.Repeat("x", 1000),
				http.StatusBadGateway,
			)
		}, "502"},
		"breaks off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cannot be reached"},
		"redirects in circles": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, "redirect"},
	} {
		for _, path := range []string{document, "/token", "/keys", "/userinfo"} {
			t.Run(path+" "+name, func(t *testing.T) {
				p := newProvider(t)
				p.Broken[path] = c.serve
				driver := oidc.Driver{Now: p.Now}
				if strings.HasPrefix(name, "is slow") || strings.HasPrefix(name, "sends drop by drop") {
					driver.Client = &http.Client{Timeout: 300 * time.Millisecond}
				}
				_, err := login(t, p.openWith(t, driver, groupsOf("groups")), nil)
				faulty(t, p, err, c.says)
				is.New(t).True(p.Count(path) <= 4) // redirects are followed three times at most
			})
		}
	}
}

func TestProviderIsAway(t *testing.T) {
	p := newProvider(t)
	realm := p.open(t, nil)
	p.Close()
	_, err := login(t, realm, nil)
	faulty(t, p, err, "cannot be reached")
}

func TestDocumentsThatAreNotGood(t *testing.T) {
	for name, edit := range map[string]func(object){
		"another issuer":               func(d object) { d["issuer"] = "https://other.example.com" },
		"an issuer with two slashes":   func(d object) { d["issuer"] = d["issuer"].(string) + "//" },
		"no issuer":                    func(d object) { delete(d, "issuer") },
		"no authorization endpoint":    func(d object) { delete(d, "authorization_endpoint") },
		"no token endpoint":            func(d object) { delete(d, "token_endpoint") },
		"no keys":                      func(d object) { delete(d, "jwks_uri") },
		"a script as an endpoint":      func(d object) { d["authorization_endpoint"] = "javascript:alert(1)" },
		"a fragment in an endpoint":    func(d object) { d["authorization_endpoint"] = "https://example.com/#x" },
		"a token endpoint without TLS": func(d object) { d["token_endpoint"] = "http://example.com/token" },
		"keys without TLS":             func(d object) { d["jwks_uri"] = "http://example.com/keys" },
		"members of another type":      func(d object) { d["jwks_uri"] = 7 },
		"methods of another type":      func(d object) { d["token_endpoint_auth_methods_supported"] = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.EditDocument = edit
			_, _, err := p.open(t, nil).Begin(t.Context(), at, "state")
			faulty(t, p, err, "")
		})
	}
}

func TestUserinfoAtNoAddress(t *testing.T) {
	for _, address := range []string{":", "ftp://example.com", "http://example.com/userinfo", "/userinfo"} {
		t.Run(address, func(t *testing.T) {
			p := newProvider(t)
			p.EditDocument = func(d object) { d["userinfo_endpoint"] = address }
			_, err := login(t, p.open(t, groupsOf("groups")), nil)
			faulty(t, p, err, "")
		})
	}
}

func TestTokenAnswersThatAreNotGood(t *testing.T) {
	for name, edit := range map[string]func(object){
		"no ID token":               func(a object) { delete(a, "id_token") },
		"an ID token of a type":     func(a object) { a["id_token"] = 7 },
		"no access token":           func(a object) { delete(a, "access_token") },
		"an error with a good code": func(a object) { a["error"] = "invalid_scope" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.EditTokens = edit
			_, err := login(t, p.open(t, nil), nil)
			faulty(t, p, err, "")
		})
	}
}

func TestWrongSecret(t *testing.T) {
	p := newProvider(t)
	_, err := login(t, p.open(t, object{"clientSecret": "wrong secret"}), nil)
	faulty(t, p, err, "look at the domain's clientID and clientSecret")
	is.New(t).True(!strings.Contains(err.Error(), "wrong secret"))
}

// TestErrorsForCodes: what is the provider's own fault sends nobody to the secret.
func TestErrorsForCodes(t *testing.T) {
	for code, want := range map[string]string{
		"invalid_client":          "look at the domain's clientID and clientSecret",
		"unauthorized_client":     "look at the domain's clientID and clientSecret",
		"server_error":            "has a fault of its own: try again later",
		"temporarily_unavailable": "has a fault of its own: try again later",
		"invalid_request":         "does not take the request for tokens",
		"unsupported_grant_type":  "does not take the request for tokens",
	} {
		for _, status := range []int{http.StatusBadRequest, http.StatusInternalServerError} {
			t.Run(code, func(t *testing.T) {
				p := newProvider(t)
				p.Broken["/token"] = func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					_, _ = w.Write([]byte(`{"error": "` + code + `"}`))
				}
				_, err := login(t, p.open(t, nil), nil)
				faulty(t, p, err, want)
			})
		}
	}
}

func TestSecretsThatAProviderQuotes(t *testing.T) {
	for name, status := range map[string]int{
		"as an error": http.StatusBadRequest,
		"as a fault":  http.StatusInternalServerError,
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.Broken["/token"] = func(w http.ResponseWriter, r *http.Request) {
				_, password, _ := r.BasicAuth()
				said := secret + password + r.FormValue("code") + r.FormValue("code_verifier")
				if status == http.StatusBadRequest {
					oidctest.Reply(w, status, object{"error": "invalid_grant", "error_description": said})
					return
				}
				http.Error(w, said, status)
			}
			_, err := login(t, p.open(t, nil), nil) // which looks for them
			is.New(t).True(err != nil)
			is.New(t).True(strings.Contains(err.Error(), "********"))
		})
	}
}

// TestShortSecret: a very short secret stays in the reasons of the log, where it would be
// recognized by the places that are masked.
func TestShortSecret(t *testing.T) {
	p := newProvider(t)
	p.Broken["/token"] = func(w http.ResponseWriter, r *http.Request) {
		oidctest.Reply(w, http.StatusBadRequest, object{
			"error":             "invalid_grant",
			"error_description": "AADSTS70008: the code is expired",
		})
	}
	_, err := login(t, p.open(t, object{"clientSecret": "is"}), nil)
	is.New(t).True(strings.Contains(err.Error(), "AADSTS70008: the code is expired"))
}

func TestNothingLeavesTLS(t *testing.T) {
	var serve http.HandlerFunc
	safe := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r) }))
	defer safe.Close()
	p := &idp{&oidctest.Provider{Server: safe}}
	plain := newProvider(t) // on this machine, as only a provider on this machine may be

	for name, c := range map[string]struct {
		serve http.HandlerFunc
		says  string
	}{
		"a redirect": {http.RedirectHandler(plain.URL, http.StatusFound).ServeHTTP, "not https"},
		"an endpoint": {func(w http.ResponseWriter, _ *http.Request) {
			oidctest.Reply(w, http.StatusOK, object{
				"issuer": safe.URL, "authorization_endpoint": plain.URL,
				"token_endpoint": safe.URL, "jwks_uri": safe.URL,
			})
		}, "not an https address"},
	} {
		t.Run(name, func(t *testing.T) {
			serve = c.serve
			_, _, err := p.openWith(t, oidc.Driver{Client: safe.Client()}, nil).Begin(t.Context(), at, "state")
			faulty(t, p, err, c.says)
			is.New(t).Equal(plain.Count("/"), 0)
		})
	}
}

func TestHostForbidsAddresses(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	dialer := func(_ context.Context, _, addr string) (net.Conn, error) {
		return nil, errors.New("forbidden: " + addr)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer}}

	_, _, err := p.openWith(t, oidc.Driver{Client: client}, nil).Begin(t.Context(), at, "state")

	faulty(t, p, err, "forbidden")
	is.Equal(p.Count(document), 0)
	is.True(client.CheckRedirect == nil && client.Timeout == 0) // the host's client is its own
}

func TestHostForbidsRedirects(t *testing.T) {
	p := newProvider(t)
	p.Broken[document] = http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("forbidden") }}

	_, _, err := p.openWith(t, oidc.Driver{Client: client}, nil).Begin(t.Context(), at, "state")

	faulty(t, p, err, "forbidden")
	is.New(t).Equal(p.Count("/elsewhere"), 0)
}

func TestSecretsAreNotRedirected(t *testing.T) {
	for name, c := range map[string]struct{ path, method string }{
		"in the header":   {"/token", "client_secret_basic"},
		"in the body":     {"/token", "client_secret_post"},
		"an access token": {"/userinfo", "client_secret_basic"},
	} {
		for _, status := range []int{http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				p := newProvider(t)
				p.Methods = []string{c.method}
				p.Broken[c.path] = http.RedirectHandler("/elsewhere", status).ServeHTTP
				_, err := login(t, p.open(t, groupsOf("groups")), nil)
				faulty(t, p, err, "not followed")
				is.New(t).Equal(p.Count("/elsewhere"), 0)
			})
		}
	}
}

// transport is a http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequestsEnd(t *testing.T) {
	p := newProvider(t)
	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: time.Minute} {
		t.Run(given.String(), func(t *testing.T) {
			is := is.New(t)
			var left []time.Duration
			look := func(r *http.Request) (*http.Response, error) {
				until, _ := r.Context().Deadline()
				left = append(left, time.Until(until))
				return http.DefaultTransport.RoundTrip(r)
			}
			client := &http.Client{Transport: transport(look), Timeout: given}
			_, err := login(t, p.openWith(t, oidc.Driver{Client: client}, nil), nil)
			is.NoErr(err)
			is.Equal(len(left), 4) // document, token, keys, userinfo
			for _, d := range left {
				is.True(d > 0 && d <= want)
			}
		})
	}
}

func TestZeroDriver(t *testing.T) {
	p := newProvider(t)
	_, err := login(t, p.openWith(t, oidc.Driver{}, nil), nil)
	is.New(t).NoErr(err)
}

func TestDiscoveryMayRedirect(t *testing.T) {
	p := newProvider(t)
	p.Broken[document] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/moved", http.StatusFound)
	}
	p.Broken["/moved"] = func(w http.ResponseWriter, r *http.Request) { p.ServeDocument(w, r) }
	_, err := login(t, p.open(t, nil), nil)
	is.New(t).NoErr(err)
}

func TestDocumentIsKept(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	realm := p.open(t, nil)
	begin := func() error { _, _, err := realm.Begin(t.Context(), at, "state"); return err }
	is.Equal(p.Count(document), 0) // Open asks nobody

	is.NoErr(begin())
	p.Set(func() { p.Ahead += 59 * time.Minute })
	is.NoErr(begin())
	is.Equal(p.Count(document), 1)

	p.Set(func() { p.Ahead += time.Minute; p.Broken[document] = http.NotFound })
	faulty(t, p, begin(), "404")
	p.Set(func() { delete(p.Broken, document) })
	is.NoErr(begin()) // a failure is not kept
	is.Equal(p.Count(document), 3)
}

// waiting is a context that tells when somebody waits, as who waits looks for its end, too.
type waiting struct {
	context.Context
	tell func()
}

func (w waiting) Done() <-chan struct{} {
	w.tell()
	return w.Context.Done()
}

func TestManyWaitForOneDocument(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	asked, release := make(chan struct{}, 30), make(chan struct{})
	p.Broken[document] = func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-release
		p.ServeDocument(w, r)
	}
	realm := p.open(t, nil)
	begin := func(ctx context.Context, to chan<- error) {
		_, _, err := realm.Begin(ctx, at, "state")
		to <- err
	}
	first, others := make(chan error, 1), make(chan error, 20)
	ctx, leave := context.WithCancel(t.Context())
	go begin(ctx, first)
	<-asked
	var all sync.WaitGroup
	all.Add(cap(others))
	for range cap(others) {
		go begin(waiting{t.Context(), sync.OnceFunc(all.Done)}, others)
	}
	all.Wait() // for the first one's document, or, if they were wrong, for one of their own
	leave()
	faulty(t, p, <-first, "canceled") // it does not wait, and takes nobody with it
	close(release)
	for range cap(others) {
		is.NoErr(<-others)
	}
	is.Equal(p.Count(document), 1)
}

func TestLoginEndsWithItsContext(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	realm := p.open(t, nil)
	location, memory, err := realm.Begin(t.Context(), at, "state")
	is.NoErr(err)
	params := visit(t, location)
	ctx, cancel := context.WithCancel(t.Context())
	p.Set(func() {
		p.Broken["/token"] = func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			cancel()
			<-r.Context().Done()
		}
	})
	_, err = realm.Finish(ctx, at, memory, domains.Answer{Params: params, State: "state"})
	faulty(t, p, err, "canceled")
}
