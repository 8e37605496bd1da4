//go:build interop

package interop

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// simpleSAMLphp is Debian's, served by PHP's web server through a TLS proxy with a separate
// certificate authority. jo logs in there with the password secret.
type simpleSAMLphp struct {
	url, dir, ca string
	roots        *x509.CertPool
	away         bool // answer with 503
}

func startSimpleSAMLphp(t *testing.T) *simpleSAMLphp {
	t.Helper()
	is := is.New(t)
	p := &simpleSAMLphp{dir: t.TempDir(), roots: x509.NewCertPool()}
	is.NoErr(os.CopyFS(p.dir, os.DirFS("testdata/simplesamlphp")))
	for _, dir := range []string{"data/tmp", "log", "cert"} {
		is.NoErr(os.MkdirAll(filepath.Join(p.dir, dir), 0o700))
	}
	key, err := x509.MarshalPKCS8PrivateKey(samltest.Ours().Key)
	is.NoErr(err)
	write(t, filepath.Join(p.dir, "cert/idp.pem"), pemOf("PRIVATE KEY", key))
	write(t, filepath.Join(p.dir, "cert/idp.crt"), pemOf("CERTIFICATE", samltest.Ours().Cert.Raw))

	port := freePort(t, "127.0.0.1")
	ca := newAuthority(t)
	p.ca = ca.PEM
	is.True(p.roots.AppendCertsFromPEM([]byte(ca.PEM)))
	certFile, keyFile := filepath.Join(p.dir, "tls.crt"), filepath.Join(p.dir, "tls.key")
	ca.issue(t, certFile, keyFile, "localhost")
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	is.NoErr(err)
	behind := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host
	}}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	web.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	web.StartTLS()
	t.Cleanup(web.Close)
	p.url = strings.Replace(web.URL, "127.0.0.1", "localhost", 1)

	s := serve(t, p.dir, []string{
		"SSP_URL=" + p.url + "/", "SIMPLESAMLPHP_CONFIG_DIR=" + filepath.Join(p.dir, "config"),
		"PHP_CLI_SERVER_WORKERS=4",
	},
		"php", "-S", behind.Host, "-t", "/usr/share/simplesamlphp/www")
	s.wait(t, func() error {
		res, err := p.browser(t).Get(p.metadata())
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", res.StatusCode)
		}
		return nil
	})
	return p
}

func (p *simpleSAMLphp) metadata() string { return p.url + "/saml2/idp/metadata.php" }

// browser returns a client that trusts the authority and is not logged in.
func (p *simpleSAMLphp) browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	is.New(t).NoErr(err)
	return &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.roots}}}
}

// register registers a domain of the service at the provider. The provider requires signed
// requests, encrypts assertions and NameIDs for the domain's key, and sends messages about logouts
// with a binding.
func (p *simpleSAMLphp) register(t *testing.T, s *service, domain, binding string) {
	t.Helper()
	var answer struct {
		Keys []struct{ Certificate string }
	}
	s.call(t, "GET", "/api/domains/"+domain+"/keys", nil, http.StatusOK, &answer)
	block, _ := pem.Decode([]byte(answer.Keys[0].Certificate))
	at := "http://localhost/api/login/" + domain
	write(t, filepath.Join(p.dir, "metadata/saml20-sp-remote.php"), fmt.Sprintf(`<?php
$metadata['%s/metadata?tenant=acme'] = ['AssertionConsumerService' => '%s/acs?tenant=acme', 'validate.authnrequest' => true, 'assertion.encryption' => true, 'nameid.encryption' => true,
 'SingleLogoutService' => [['Binding' => 'urn:oasis:names:tc:SAML:2.0:bindings:%s', 'Location' => '%s/slo?tenant=acme']],
 'keys' => [['type' => 'X509Certificate', 'signing' => true, 'encryption' => true, 'X509Certificate' => '%s']]];
`, at, at, binding, at, base64.StdEncoding.EncodeToString(block.Bytes)))
}

// page reads a page of the provider, and returns its address and the fields of its form.
func page(t *testing.T, res *http.Response, err error) (at, text string, fields url.Values) {
	t.Helper()
	is := is.New(t)
	is.NoErr(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	is.NoErr(err)
	_, fields = samltest.Form(body)
	return res.Request.URL.String(), string(body), fields
}

// enter logs jo in at the provider's page, and returns the form for this service.
func (p *simpleSAMLphp) enter(t *testing.T, b *http.Client, res *http.Response, err error) url.Values {
	t.Helper()
	at, text, fields := page(t, res, err)
	if fields.Get("SAMLResponse") == "" {
		res, err = b.PostForm(at, url.Values{
			"username":  {"jo"},
			"password":  {"secret"},
			"AuthState": fields["AuthState"],
		})
		_, text, fields = page(t, res, err)
	}
	if fields.Get("SAMLResponse") == "" {
		t.Fatalf("the provider does not let jo in at %s: %s", at, text)
	}
	return fields
}

// begin begins a login at the service. It returns the address and form for the browser, and the
// cookie.
func (s *service) begin(t *testing.T, domain string) (location string, form url.Values, cookie string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.app.ServeHTTP(
		w,
		httptest.NewRequestWithContext(
			t.Context(), "GET", "http://localhost/api/login/"+domain+"/sso?tenant=acme", nil,
		),
	)
	cookie, _, _ = strings.Cut(w.Header().Get("Set-Cookie"), ";")
	switch w.Code {
	case http.StatusFound:
		return w.Header().Get("Location"), nil, cookie
	case http.StatusOK:
		location, form = samltest.Form(w.Body.Bytes())
		return location, form, cookie
	}
	t.Fatalf("no login: %d %s\n%s", w.Code, w.Body, s.log.String())
	return "", nil, ""
}

// finish posts a form to the service.
func (s *service) finish(t *testing.T, domain, cookie string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(
		t.Context(), "POST", "http://localhost/api/login/"+domain+"/acs?tenant=acme",
		strings.NewReader(form.Encode()),
	)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	w := httptest.NewRecorder()
	s.app.ServeHTTP(w, r)
	return w
}

// TestSimpleSAMLphp: signed requests with both bindings, encrypted assertions, changed keys,
// unavailable metadata, and logins that begin at the provider.
func TestSimpleSAMLphp(t *testing.T) {
	is, p, s := is.New(t), startSimpleSAMLphp(t), newService(t)
	var problem struct{ Message string }
	s.call(t, "POST", "/api/domains", map[string]any{
		"name":   "Work",
		"type":   "SAML",
		"config": map[string]any{"metadataURL": p.metadata()},
	}, http.StatusBadRequest, &problem)
	is.True(strings.Contains(problem.Message, "set caCert"))
	config := map[string]any{
		"metadataURL":  p.metadata(),
		"caCert":       p.ca,
		"signRequests": true,
		"attributes":   map[string]string{"groups": "groups"},
	}
	s.call(
		t, "POST", "/api/domains", map[string]any{"name": "Work", "type": "SAML", "config": config},
		http.StatusOK, &struct{}{},
	)
	p.register(t, s, "work", "HTTP-Redirect")
	enter := func() {
		t.Helper()
		b := p.browser(t)
		location, form, cookie := s.begin(t, "work")
		res, err := send(b, location, form)
		answer := p.enter(t, b, res, err)
		document, err := base64.StdEncoding.DecodeString(answer.Get("SAMLResponse"))
		is.NoErr(err)
		is.True(strings.Contains(string(document), "EncryptedAssertion"))
		if w := s.finish(t, "work", cookie, answer); w.Code != http.StatusOK {
			t.Fatalf("jo cannot log in: %d %s\n%s", w.Code, w.Body, s.log.String())
		}
		if w := s.finish(t, "work", cookie, answer); w.Code != http.StatusUnauthorized {
			t.Fatalf("an answer is good twice: %d", w.Code)
		}
	}
	enter()
	var jo struct{ Username, Email, DisplayName string }
	s.call(t, "GET", "/api/users/jo", nil, http.StatusOK, &jo)
	is.Equal(jo.Email, "jo@example.com")
	is.Equal(jo.DisplayName, "Jo Doe")

	// An unsigned request is refused there, which shows that the signatures of the others are
	// checked.
	location, _, _ := s.begin(t, "work")
	unsigned, _, _ := strings.Cut(location, "&SigAlg=")
	res, err := p.browser(t).Get(unsigned)
	_, text, fields := page(t, res, err)
	is.True(fields.Get("AuthState") == "" && !strings.Contains(text, `name="password"`))

	// Keys are changed while the provider encrypts for the previous one.
	var keys struct{ Keys []struct{ Use string } }
	s.call(t, "POST", "/api/domains/work/keys/_roll", map[string]any{}, http.StatusOK, &keys)
	enter()
	s.call(t, "POST", "/api/domains/work/keys/_roll", map[string]any{}, http.StatusOK, &keys)
	is.Equal(keys.Keys[1].Use, "previous")
	p.register(t, s, "work", "HTTP-Redirect") // now it has the new one
	enter()

	// While the metadata is unavailable, the previous one is used.
	location, _, cookie := s.begin(t, "work")
	b := p.browser(t)
	res, err = b.Get(location)
	answer := p.enter(t, b, res, err)
	p.away = true
	is.Equal(s.finish(t, "work", cookie, answer).Code, http.StatusOK)
	s.begin(t, "work")
	p.away = false

	// Logins that begin at the provider.
	tile := p.url + "/saml2/idp/SSOService.php?" + url.Values{
		"spentityid": {"http://localhost/api/login/work/metadata?tenant=acme"},
		"RelayState": {"/api/session"},
	}.Encode()
	begun := func() url.Values {
		t.Helper()
		b := p.browser(t)
		res, err := b.Get(tile)
		return p.enter(t, b, res, err)
	}
	is.Equal(s.finish(t, "work", "", begun()).Code, http.StatusUnauthorized)
	config["idpInitiated"] = true
	put := func() {
		t.Helper()
		s.call(
			t, "PUT", "/api/domains/work", map[string]any{"id": "work", "type": "SAML", "config": config},
			http.StatusOK, &struct{}{},
		)
	}
	put()
	form := begun()
	w := s.finish(t, "work", "", form)
	is.Equal(w.Code, http.StatusSeeOther)
	is.Equal(w.Header().Get("Location"), "http://localhost/api/session")
	is.Equal(s.finish(t, "work", "", form).Code, http.StatusUnauthorized) // only once

	// Requests with HTTP-POST, with a signature in the XML.
	res, err = p.browser(t).Get(p.metadata())
	_, metadata, _ := page(t, res, err)
	delete(config, "metadataURL")
	delete(config, "caCert")
	config["metadataXML"] = withoutRedirect(metadata)
	put()
	if _, form, _ := s.begin(t, "work"); form == nil {
		t.Fatal("the request goes by HTTP-Redirect")
	}
	enter()
}

// TestSimpleSAMLphpLogout: people log out of both, wherever they begin, with both bindings and with
// encrypted NameIDs.
func TestSimpleSAMLphpLogout(t *testing.T) {
	is, p, s := is.New(t), startSimpleSAMLphp(t), newService(t)
	config := map[string]any{"metadataURL": p.metadata(), "caCert": p.ca, "signRequests": true}
	s.call(
		t, "POST", "/api/domains", map[string]any{"name": "Work", "type": "SAML", "config": config},
		http.StatusOK, &struct{}{},
	)
	for _, binding := range []string{"HTTP-Redirect", "HTTP-POST"} {
		if binding == "HTTP-POST" {
			res, err := p.browser(t).Get(p.metadata())
			_, metadata, _ := page(t, res, err)
			s.call(t, "PUT", "/api/domains/work", map[string]any{
				"id":     "work",
				"type":   "SAML",
				"config": map[string]any{"metadataXML": withoutRedirect(metadata), "signRequests": true},
			},
				http.StatusOK, &struct{}{})
		}
		p.register(t, s, "work", binding)
		b, mine := p.browser(t), map[string]string{}
		b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Host == "localhost" { // a request to this service
				return http.ErrUseLastResponse
			}
			return nil
		}
		enter := func() (token string) {
			t.Helper()
			location, form, cookie := s.begin(t, "work")
			res, err := send(b, location, form)
			answer := p.enter(t, b, res, err)
			var in session
			is.NoErr(json.Unmarshal(s.finish(t, "work", cookie, answer).Body.Bytes(), &in))
			return in.Token
		}
		// here passes the browser's request of the provider to this service, and returns the
		// answer.
		here := func(res *http.Response, err error) *httptest.ResponseRecorder {
			t.Helper()
			to := ""
			if err == nil {
				to = res.Header.Get("Location")
			}
			_, text, fields := page(t, res, err)
			if to == "" {
				to, _ = samltest.Form([]byte(text))
			}
			if !strings.HasPrefix(to, "http://localhost/api/login/work/slo?tenant=acme") {
				t.Fatalf("the provider does not send the browser back: %s", text)
			}
			delete(fields, "") // the field of its button
			return s.visit(t, to, fields, mine)
		}
		there := func(w *httptest.ResponseRecorder) (*http.Response, error) {
			t.Helper()
			if w.Code == http.StatusSeeOther { // with HTTP-Redirect
				return b.Get(w.Header().Get("Location"))
			}
			action, form := samltest.Form(w.Body.Bytes())
			if w.Code != http.StatusOK || action == "" {
				t.Fatalf("%d %s\n%s", w.Code, w.Body, s.log.String())
			}
			return b.PostForm(action, form)
		}
		known := func() bool { // a redirect to the provider
			t.Helper()
			location, form, _ := s.begin(t, "work")
			res, err := send(b, location, form)
			_, _, fields := page(t, res, err)
			return fields.Get("SAMLResponse") != ""
		}

		token := enter()
		is.True(s.alive(t, token) && known())
		mine["sid"] = token
		out := s.visit(t, "http://localhost/api/logout?provider=true&returnTo=/apps", url.Values{}, mine)
		is.Equal(out.Code == http.StatusOK, binding == "HTTP-POST") // a page that posts a form
		is.True(!s.alive(t, token))
		back := here(there(out))
		is.Equal(back.Code, http.StatusSeeOther)
		is.Equal(back.Header().Get("Location"), "http://localhost/apps")
		is.True(!known())

		token, other := enter(), s.token
		res, err := there(here(b.Get(p.url + "/saml2/idp/initSLO.php?RelayState=" + url.QueryEscape(p.url+"/"))))
		_, text, _ := page(t, res, err)
		is.True(!strings.Contains(text, "Error"))
		is.True(!s.alive(t, token) && s.alive(t, other))
		is.True(!known())
	}
}

// send sends a browser's request, with or without a form.
func send(b *http.Client, to string, form url.Values) (*http.Response, error) {
	if form == nil {
		return b.Get(to)
	}
	return b.PostForm(to, form)
}

// visit sends a browser's request to the service, with a form if it has fields or the address is
// that of a logout, and stores the cookies.
func (s *service) visit(
	t *testing.T, to string, form url.Values, cookies map[string]string,
) *httptest.ResponseRecorder {
	t.Helper()
	method := "GET"
	if len(form) > 0 || strings.Contains(to, "/api/logout") {
		method = "POST"
	}
	r := httptest.NewRequestWithContext(t.Context(), method, to, strings.NewReader(form.Encode()))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	s.app.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		cookies[c.Name] = c.Value
	}
	return w
}

// alive reports whether a session still exists.
func (s *service) alive(t *testing.T, token string) bool {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/session", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.app.ServeHTTP(w, r)
	return w.Code == http.StatusOK
}

// withoutRedirect returns metadata whose provider accepts requests only with HTTP-POST.
func withoutRedirect(metadata string) string {
	var kept []string
	for _, line := range strings.Split(metadata, "\n") {
		if !strings.Contains(line, "Service") || !strings.Contains(line, "HTTP-Redirect") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
