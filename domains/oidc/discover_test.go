package oidc_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

// TestIssuerWithSlash: a slash at the end is the same issuer, in whichever place it is, and people
// are the same.
func TestIssuerWithSlash(t *testing.T) {
	is := is.New(t)
	for _, c := range [][2]string{{"", "/"}, {"/", ""}, {"/", "/"}} {
		p := newProvider(t)
		p.EditDocument = func(d object) { d["issuer"] = p.URL + c[1] }
		p.EditClaims = func(claims object) { claims["iss"] = p.URL + c[1] }
		who, err := login(t, p.open(t, object{"issuer": p.URL + c[0]}), nil)
		is.NoErr(err)
		is.Equal(who.ID, p.URL+c[1]+"#0017")
		p.Set(func() { p.EditClaims = func(claims object) { claims["iss"] = p.URL + "/other" } })
		_, err = login(t, p.open(t, object{"issuer": p.URL + c[0]}), nil)
		refused(t, err, "different provider")
	}
}

// TestDiscover: saving says in words what is wrong with an issuer, and keeps what it has read.
func TestDiscover(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	realm := p.open(t, nil)
	is.NoErr(realm.(domains.Discoverer).Discover(t.Context()))
	_, err := login(t, realm, nil)
	is.NoErr(err)
	is.Equal(p.Count(document), 1)
	is.NoErr(realm.(domains.Discoverer).Discover(t.Context())) // whatever is known
	is.Equal(p.Count(document), 2)

	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(p.ServeDocument))
	defer secure.Close()
	const notProviderYet = "no OpenID provider answers there: look at the name, the port and the firewall. " +
		"Type the issuer"
	for name, c := range map[string]struct {
		issuer string
		broken func(d object)
		says   string
	}{
		"away":        {away.URL, nil, notProviderYet},
		"no document": {p.URL + "/realms/x", nil, notProviderYet},
		"another issuer": {p.URL, func(d object) {
			d["issuer"] = "https://real.example.com"
		}, `calls itself "https://real.example.com": type that`},
		"no issuer": {p.URL, func(d object) {
			delete(d, "issuer")
		}, "no OpenID provider answers there: look at the name, the port and the firewall. Type the issuer"},
		"no keys":       {p.URL, func(d object) { delete(d, "jwks_uri") }, "jwks_uri"},
		"own authority": {secure.URL, nil, "caCert"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p.Set(func() { p.EditDocument = c.broken })
			realm := p.open(t, object{"issuer": c.issuer})
			err := realm.(domains.Discoverer).Discover(t.Context())
			is.Equal(errs.CodeOf(err), errs.Invalid)
			message := errs.MessageOf(err)
			if !strings.HasPrefix(message, "issuer must be ") || !strings.Contains(message, c.says) ||
				len(message) > 1000 {
				t.Error(message)
			}
			steps := realm.(domains.Tester).Test(t.Context(), at, "")
			is.Equal(len(steps), 1)
			is.True(!steps[0].OK && strings.Contains(steps[0].Message, c.says))
		})
	}
}

// TestOwnAuthority: with caCert a provider behind an authority of its own can be reached, and a new
// one wants the secret again.
func TestOwnAuthority(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(p.Config.Handler.ServeHTTP))
	defer secure.Close()
	ca := "Subject: CN=mine\n" + string(pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE",
		Bytes: secure.Certificate().Raw,
	}))
	p.EditDocument = func(d object) {
		for name, value := range d {
			if text, ok := value.(string); ok {
				d[name] = strings.Replace(text, p.URL, secure.URL, 1)
			}
		}
	}
	realm := p.open(t, object{"issuer": secure.URL, "caCert": ca})
	is.NoErr(realm.(domains.Discoverer).Discover(t.Context()))
	open := func(members object) (domains.Realm, error) {
		config := object{"issuer": "https://login.example.com", "clientID": "x", "clientSecret": "y"}
		for name, value := range members {
			config[name] = value
		}
		raw, err := json.Marshal(config)
		is.NoErr(err)
		return oidc.Driver{}.Open(raw)
	}
	without, err := open(nil)
	is.NoErr(err)
	with, err := open(object{"caCert": ca})
	is.NoErr(err)
	is.Equal(with.(domains.SecretSender).Redirects(without), "caCert")
	is.Equal(without.(domains.SecretSender).Redirects(with), "")
	is.Equal(with.(domains.SecretSender).Redirects(with), "")
	_, err = open(object{"caCert": "mine"})
	is.True(strings.HasPrefix(errs.MessageOf(err), "caCert "))
	_, err = open(object{"caCert": 7})
	is.Equal(errs.MessageOf(err), "caCert must be a string")
	raw, err := json.Marshal(object{"issuer": p.URL, "clientID": "x", "caCert": ca})
	is.NoErr(err)
	_, err = oidc.Driver{Client: &http.Client{Transport: transport(http.DefaultTransport.RoundTrip)}}.Open(raw)
	is.True(strings.HasPrefix(errs.MessageOf(err), "caCert must be left out"))
}

// TestTrial: a configuration is tried out without a person, and a wrong secret shows.
func TestTrial(t *testing.T) {
	at := at
	at.LoggedOut, at.BackchannelLogout = "https://here.example.com/loggedout", "https://here.example.com/backchannel"
	for name, c := range map[string]struct {
		config object
		edit   func(*idp)
		steps  string // names, with a ! where it fails
		says   []string
	}{
		"all is well": {
			nil, func(*idp) {}, "discovery keys client",
			[]string{
				at.Callback, at.LoggedOut, at.BackchannelLogout, "client_secret_basic", "ES256",
				"accepts clientID",
			},
		},
		"no logout": {nil, func(p *idp) {
			p.EditDocument = func(d object) { delete(d, "end_session_endpoint"); delete(d, "userinfo_endpoint") }
		},
			"discovery keys client", []string{"offers no logout", "no userinfo"}},
		"another secret": {
			object{"clientSecret": "wrong"}, func(*idp) {}, "discovery keys !client",
			[]string{"refuses clientID or clientSecret (invalid_client)"},
		},
		"no keys": {nil, func(p *idp) {
			p.Broken["/keys"] = http.NotFound
		}, "discovery !keys", []string{"no OpenID provider answers there"}},
		"weak keys": {nil, func(p *idp) {
			p.Keys = []jose.JSONWebKey{}
		}, "discovery !keys", []string{"None of the keys"}},
		"it will not say": {nil, func(p *idp) {
			p.Broken["/token"] = func(w http.ResponseWriter, _ *http.Request) {
				oidctest.Reply(w, http.StatusBadRequest, object{"error": "invalid_request"})
			}
		}, "discovery keys client", []string{"at the first log-in alone"}},
		"broken": {nil, func(p *idp) {
			p.Broken["/token"] = http.NotFound
		}, "discovery keys !client", []string{"cannot be used"}},
	} {
		t.Run(name, func(t *testing.T) {
			is, p := is.New(t), newProvider(t)
			c.edit(p)
			var names []string
			said := ""
			for _, step := range p.open(t, c.config).(domains.Tester).Test(t.Context(), at, "jo") {
				if said += step.Message + "\n"; step.OK {
					names = append(names, step.Name)
				} else {
					names = append(names, "!"+step.Name)
				}
			}
			is.Equal(strings.Join(names, " "), c.steps)
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("%q is not in %s", part, said)
				}
			}
			is.True(!strings.Contains(said, secret))
		})
	}
}

// TestTrialOfAnotherServer: what another server answers at an address that somebody has configured,
// or that a discovery document names, is not told to an administrator: neither a status nor a body,
// nor what kind of answer it is.
func TestTrialOfAnotherServer(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter){
		"not JSON":  func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>intranet")) },
		"nothing":   func(w http.ResponseWriter) {},
		"an object": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"intranet": 1}`)) },
		"a list":    func(w http.ResponseWriter) { _, _ = w.Write([]byte(`["intranet"]`)) },
		"an issuer": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"issuer": "intranet"}`)) },
		"forbidden": func(w http.ResponseWriter) { http.Error(w, "intranet", http.StatusForbidden) },
		"a failure": func(w http.ResponseWriter) { http.Error(w, "intranet", http.StatusInternalServerError) },
		"an error": func(w http.ResponseWriter) {
			oidctest.Reply(w, 400, object{"error": "intranet", "error_description": "intranet"})
		},
		"much": func(w http.ResponseWriter) { _, _ = w.Write([]byte(strings.Repeat("intranet", 1<<18))) },
		"a redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "ftp://intranet")
			w.WriteHeader(302)
		},
		"a bad redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://[intranet")
			w.WriteHeader(302)
		},
		"no HTTP": func(w http.ResponseWriter) {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = c.Write([]byte("SSH-2.0-intranet\r\n"))
				_ = c.Close()
			}
		},
	}
	for _, step := range []string{"discovery", "keys", "client"} {
		told := map[string]string{}
		for name, answer := range answers {
			p := newProvider(t)
			config := object{}
			switch step {
			case "discovery":
				config["issuer"] = p.URL + "/elsewhere"
				p.Broken["/elsewhere/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) {
					answer(w)
				}
			case "keys":
				p.Broken["/keys"] = func(w http.ResponseWriter, _ *http.Request) { answer(w) }
			case "client":
				p.Broken["/token"] = func(w http.ResponseWriter, _ *http.Request) { answer(w) }
			}
			steps := p.open(t, config).(domains.Tester).Test(t.Context(), at, "")
			last := steps[len(steps)-1]
			message := strings.ReplaceAll(last.Message, p.URL, "")
			if last.OK || last.Name != step || strings.Contains(message, "intranet") {
				t.Errorf("%s, %s: %+v", step, name, last)
			}
			told[message] = name
		}
		if len(told) != 1 {
			t.Errorf("%s is told apart: %v", step, told)
		}
	}
}
