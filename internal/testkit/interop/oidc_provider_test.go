//go:build interop

package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// oidcProvider is panva's oidc-provider, with TLS and a separate certificate authority.
type oidcProvider struct {
	issuer, caCert, dir string
	port                int
	setup               map[string]any
}

// oidcClients are the clients of the provider: how each authenticates, and the algorithm of its ID
// tokens.
var oidcClients = map[string][2]string{
	"basic": {"client_secret_basic", "ES256"}, "post": {"client_secret_post", "RS256"}, "public": {"none", "PS256"},
}

func clientSecret(name string) string {
	if oidcClients[name][0] == "none" {
		return ""
	}
	return "the secret of " + name + " +%&:/"
}

// newOIDCProvider installs the provider for a service at an address.
func newOIDCProvider(t *testing.T, service string) *oidcProvider {
	t.Helper()
	is, p := is.New(t), &oidcProvider{dir: t.TempDir(), port: freePort(t, "127.0.0.1")}
	for _, name := range []string{"package.json", "package-lock.json", "server.js"} {
		text, err := os.ReadFile(filepath.Join("testdata", "oidc-provider", name))
		is.NoErr(err)
		write(t, filepath.Join(p.dir, name), string(text))
	}
	run(t, p.dir, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline")
	ca := newAuthority(t)
	cert, key := filepath.Join(p.dir, "cert.pem"), filepath.Join(p.dir, "key.pem")
	ca.issue(t, cert, key, "127.0.0.1", "localhost")
	p.issuer, p.caCert = fmt.Sprintf("https://127.0.0.1:%d", p.port), ca.PEM
	var clients []map[string]any
	for name, how := range oidcClients {
		at := service + "/api/login/" + name + "/"
		client := map[string]any{
			"client_id":                           name,
			"redirect_uris":                       []string{at + "callback?tenant=acme"},
			"post_logout_redirect_uris":           []string{at + "loggedout?tenant=acme"},
			"backchannel_logout_uri":              at + "backchannel-logout?tenant=acme",
			"backchannel_logout_session_required": name == "basic",
			"token_endpoint_auth_method":          how[0], "id_token_signed_response_alg": how[1],
			"response_types": []string{"code"}, "grant_types": []string{"authorization_code"},
		}
		if secret := clientSecret(name); secret != "" {
			client["client_secret"] = secret
		}
		clients = append(clients, client)
	}
	p.setup = map[string]any{
		"issuer":  p.issuer,
		"port":    p.port,
		"cert":    cert,
		"key":     key,
		"clients": clients,
		"groups":  []string{"editors", "staff"},
	}
	return p
}

// start starts the provider with new keys, at the same address each time.
func (p *oidcProvider) start(t *testing.T, userinfo bool) {
	t.Helper()
	is := is.New(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	is.NoErr(err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	id := rand.Text()
	p.setup["keys"] = []jose.JSONWebKey{
		{Key: rsaKey, KeyID: "rsa-" + id, Use: "sig"}, {Key: ecKey, KeyID: "ec-" + id, Use: "sig"},
	}
	p.setup["userinfo"] = userinfo
	text, err := json.Marshal(p.setup)
	is.NoErr(err)
	s := serve(t, p.dir, []string{"PROVIDER=" + string(text)}, "node", "server.js")
	trusted := x509.NewCertPool()
	is.True(trusted.AppendCertsFromPEM([]byte(p.caCert)))
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true},
	}
	s.wait(t, func() error {
		answer, err := client.Get(p.issuer + "/.well-known/openid-configuration")
		if err == nil {
			answer.Body.Close()
		}
		return err
	})
}

func (p *oidcProvider) config(client string) map[string]any {
	return map[string]any{
		"issuer": p.issuer + "/", "clientID": client, "clientSecret": clientSecret(client), "caCert": p.caCert,
		"scopes": []string{"openid", "profile", "email", "groups"},
		"claims": map[string]string{"groups": "groups", "id": "oid"},
	}
}

// person is a browser without scripts, which agrees to everything that a provider requests.
type person struct {
	http.Client
	name string
}

func newPerson(t *testing.T, name string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	is.New(t).NoErr(err)
	return &person{name: name, Client: http.Client{
		Jar:       jar,
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}}
}

var (
	formOf   = regexp.MustCompile(`<form[^>]*\saction="([^"]*)"`)
	hiddenOf = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// visit opens an address, or sends a form to it, and submits the provider's forms. It returns the
// last address and page.
func (p *person) visit(t *testing.T, address string, form url.Values) (*url.URL, string) {
	t.Helper()
	is := is.New(t)
	for range 6 {
		method, body := http.MethodGet, io.Reader(nil)
		if form != nil {
			method, body = http.MethodPost, strings.NewReader(form.Encode())
		}
		r, err := http.NewRequestWithContext(t.Context(), method, address, body)
		is.NoErr(err)
		r.Header.Set("Accept", "application/json;q=0.5, text/html")
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
		}
		answer, err := p.Do(r)
		is.NoErr(err)
		raw, err := io.ReadAll(answer.Body)
		is.NoErr(err)
		is.NoErr(answer.Body.Close())
		at, page := answer.Request.URL, string(raw)
		action := formOf.FindStringSubmatch(page)
		if action == nil || at.Scheme != "https" { // the pages of the service use http
			return at, page
		}
		to, err := at.Parse(html.UnescapeString(action[1]))
		is.NoErr(err)
		form = url.Values{"login": {p.name}, "password": {"any"}, "logout": {"yes"}}
		for _, field := range hiddenOf.FindAllStringSubmatch(page, -1) {
			form.Set(field[1], html.UnescapeString(field[2]))
		}
		address = to.String()
	}
	t.Fatal("the provider asks and asks")
	return nil, ""
}

// oidcService is the whole service at an address, with a domain for each client of a provider.
type oidcService struct {
	url string
	log logtest.Buffer
	app *tenantcontent.App
}

// as returns the user of the browser at the service, or "".
func (s *oidcService) as(t *testing.T, p *person) string {
	t.Helper()
	_, body := p.visit(t, s.url+"/api/session", nil)
	var in struct{ User string }
	is.New(t).NoErr(json.Unmarshal([]byte(body), &in))
	return in.User
}

// enter logs a person in at a domain.
func (s *oidcService) enter(t *testing.T, p *person, domain string) {
	t.Helper()
	_, body := p.visit(t, s.url+"/api/login/"+domain+"/sso?tenant=acme&returnTo=/api/session", nil)
	if !strings.Contains(body, `"user":"`+p.name+`"`) {
		t.Fatalf("%s is not let in at %s: %s\n%s", p.name, domain, body, s.log.String())
	}
}

// TestOIDCProvider: people log in at panva's oidc-provider with each client authentication and each
// kind of key. Their groups and ids are reported, new keys are found, and a logout here or there
// ends both sessions.
func TestOIDCProvider(t *testing.T) {
	is, s := is.New(t), &oidcService{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.app.ServeHTTP(w, r)
	}))
	defer server.Close()
	s.url = server.URL
	var err error
	s.app, err = tenantcontent.Open(tenantcontent.Config{
		DomainDrivers: []domains.Driver{ldap.AD{}, ldap.LDAP{}, saml.Driver{}, oidc.Driver{}},
		AllowNetworks: egress.Loopback(), DB: dbtest.SQLite(t),
		SecretKey: tenantcontent.NewSecretKey(), BaseURL: s.url, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	is.NoErr(err)
	_, err = s.app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
		Tenant: "acme", Username: "admin", Password: "a superuser's password",
	})
	is.NoErr(err)
	l, err := s.app.Sessions.Login(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "local", Username: "admin", Password: "a superuser's password",
	})
	is.NoErr(err)
	p := newOIDCProvider(t, s.url)
	t.Run("ID tokens", func(t *testing.T) { // the provider ends with each of these
		p.start(t, false)
		for name := range oidcClients {
			s.add(t, l.Token, name, p.config(name))
		}
		for name := range oidcClients {
			t.Run(name, func(t *testing.T) { testRoundTrip(t, s, name) })
		}
		t.Run("back-channel", func(t *testing.T) { testBackchannel(t, s, p) })
		t.Run("trial", func(t *testing.T) { testTrial(t, s, p) })
		t.Run("claims", func(t *testing.T) { testClaims(t, s, p) })
	})
	t.Run("userinfo and new keys", func(t *testing.T) {
		p.start(t, true)
		for name := range oidcClients { // the domains know the previous keys
			s.enter(t, newPerson(t, "lee-"+name), name)
		}
		testClaims(t, s, p)
	})
	is.True(!strings.Contains(s.log.String(), "the secret of"))
}

// add creates a domain, for which the service queries the provider.
func (s *oidcService) add(t *testing.T, token, name string, config map[string]any) {
	t.Helper()
	is := is.New(t)
	body, err := json.Marshal(map[string]any{"name": name, "type": "OIDC", "config": config})
	is.NoErr(err)
	r, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, s.url+"/api/domains", strings.NewReader(string(body)),
	)
	is.NoErr(err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	is.NoErr(err)
	said, err := io.ReadAll(answer.Body)
	is.NoErr(err)
	is.NoErr(answer.Body.Close())
	if answer.StatusCode >= 300 {
		t.Fatalf("%s: %s", name, said)
	}
}

// testRoundTrip logs a person in and out at both sides: the provider confirms, and the browser
// returns.
func testRoundTrip(t *testing.T, s *oidcService, name string) {
	is := is.New(t)
	jo := newPerson(t, "jo-"+name)
	s.enter(t, jo, name)
	is.Equal(s.as(t, jo), "jo-"+name)
	at, _ := jo.visit(t, s.url+"/api/logout", url.Values{"provider": {"true"}, "returnTo": {"/healthz"}})
	is.Equal(at.String(), s.url+"/healthz")
	is.Equal(s.as(t, jo), "")
	jo.name = "kim-" + name
	s.enter(t, jo, name) // the provider has ended jo's session, and requires a login
}

// testBackchannel logs a person out at the provider itself.
func testBackchannel(t *testing.T, s *oidcService, p *oidcProvider) {
	is := is.New(t)
	pat, other := newPerson(t, "pat"), newPerson(t, "pat")
	s.enter(t, pat, "basic")
	s.enter(t, other, "basic")
	at, _ := pat.visit(t, p.issuer+"/session/end", nil)
	is.True(strings.HasPrefix(at.String(), p.issuer))
	for range 600 { // the notification follows the answer
		if s.as(t, pat) == "" {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	is.Equal(s.as(t, pat), "")
	is.Equal(s.as(t, other), "pat") // another session at the provider
}

// open opens a domain of a client of the provider, separately from the service.
func (p *oidcProvider) open(t *testing.T, client, secret string) domains.Realm {
	t.Helper()
	config := p.config(client)
	config["clientSecret"] = secret
	text, err := json.Marshal(config)
	is.New(t).NoErr(err)
	realm, err := oidc.Driver{}.Open(text)
	is.New(t).NoErr(err)
	return realm
}

func testTrial(t *testing.T, s *oidcService, p *oidcProvider) {
	for name := range oidcClients {
		for _, step := range p.open(
			t, name, clientSecret(name),
		).(domains.Tester).Test(t.Context(), endpointsOf(s.url, name), "") {
			if !step.OK || step.Name == "client" && !strings.Contains(step.Message, "accepts clientID") {
				t.Errorf("%s %s: %s", name, step.Name, step.Message)
			}
		}
	}
	steps := p.open(t, "basic", "wrong").(domains.Tester).Test(t.Context(), endpointsOf(s.url, "basic"), "")
	if last := steps[len(steps)-1]; last.OK || !strings.Contains(last.Message, "refuses") {
		t.Errorf("%s: %s", last.Name, last.Message)
	}
}

// testClaims checks the identity that the driver reads from the claims of the provider.
func testClaims(t *testing.T, s *oidcService, p *oidcProvider) {
	is := is.New(t)
	realm := p.open(t, "post", clientSecret("post")).(domains.RedirectLogin)
	location, memory, err := realm.Begin(t.Context(), endpointsOf(s.url, "post"), "a state")
	is.NoErr(err)
	lou, back := newPerson(t, "lou"), &url.URL{}
	lou.Transport = spy{lou.Transport, s.url, back}
	lou.visit(t, location, nil)
	params := back.Query()
	params.Del("tenant")
	who, err := realm.Finish(
		t.Context(), endpointsOf(s.url, "post"), memory, domains.Answer{Params: params, State: "a state"},
	)
	is.NoErr(err)
	is.Equal(who.ID, p.issuer+"#oid=oid-lou")
	is.Equal(who.AccountID, "oid-lou")
	is.Equal(who.Username, "lou")
	is.Equal(who.Email, "lou@example.com")
	is.True(who.EmailVerified)
	is.True(slices.Equal(who.Groups, []string{"editors", "staff"}))
}

// spy records the address at the service to which a provider sends the browser.
type spy struct {
	http.RoundTripper
	service string
	back    *url.URL
}

// RoundTrip sends a request.
func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		if to, failed := answer.Location(); failed == nil && strings.HasPrefix(to.String(), s.service) {
			*s.back = *to
		}
	}
	return answer, err
}

func endpointsOf(service, domain string) domains.Endpoints {
	at := func(last string) string { return service + "/api/login/" + domain + "/" + last + "?tenant=acme" }
	return domains.Endpoints{
		Callback:          at("callback"),
		LoggedOut:         at("loggedout"),
		BackchannelLogout: at("backchannel-logout"),
	}
}
