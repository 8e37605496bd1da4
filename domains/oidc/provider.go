package oidc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

// realm is a domain whose people log in at an OpenID provider.
type realm struct {
	config
	client *http.Client
	denied bool // connections to the issuer's address
	clock  clock.Clock
	found  shared[*provider]
}

// Check implements domains.Realm.
func (r *realm) Check() error {
	if r.denied {
		return domains.DeniedAddress("issuer")
	}
	return nil
}

// provider is the discovered provider: its addresses and its keys.
type provider struct {
	issuer      string // as it calls itself: with or without a slash at the end
	oauth       *oauth2.Config
	keys        *keySet
	userinfo    string   // "" for none
	logout      string   // end_session_endpoint, "" for none
	notifies    bool     // it sends notices of logouts
	namesIssuer bool     // every answer names the issuer (RFC 9207)
	methods     []string // how clients may authenticate, nil: it does not say
	until       time.Time
}

// cacheTime is how long the discovery document and the keys are cached: a key that the provider
// withdraws is not accepted for longer.
const cacheTime = time.Hour

// provider returns the discovered provider. Errors: errs.Upstream.
func (r *realm) provider(ctx context.Context) (*provider, error) {
	found, err := r.found.get(ctx, func(p *reading[*provider]) bool {
		return r.clock.Now().Before(p.value.until)
	}, r.clock.Now, r.discover)
	if err != nil {
		return nil, r.fault(err)
	}
	return found.value, nil
}

// document is the part of a discovery document that a login and a logout need.
type document struct {
	Issuer      string   `json:"issuer"`
	Auth        string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Keys        string   `json:"jwks_uri"`
	Userinfo    string   `json:"userinfo_endpoint"`
	Logout      string   `json:"end_session_endpoint"`
	Methods     []string `json:"token_endpoint_auth_methods_supported"`
	NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	Backchannel bool     `json:"backchannel_logout_supported"`
}

// badEndpoint is the error of a discovery document of the configured issuer that lacks an address.
type badEndpoint struct{ member, address string }

func (b badEndpoint) Error() string {
	return fmt.Sprintf("its %s %q is not an https address", b.member, b.address)
}

// otherIssuer is the error of a discovery document of another issuer than the configured one.
type otherIssuer string

func (o otherIssuer) Error() string {
	return fmt.Sprintf("the provider there calls itself %q", string(o))
}

// documentAddress returns the address of an issuer's discovery document.
func documentAddress(issuer string) string {
	return strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
}

// discover reads the discovery document. The client's time-out ends it, as it serves more than one
// caller.
func (r *realm) discover() (*provider, error) {
	until := r.clock.Now().Add(cacheTime)
	body, _, err := fetch(context.Background(), r.client, documentAddress(r.issuer), nil)
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, fmt.Errorf("the answer is no discovery document: %w", err)
	}
	if d.Issuer == "" || d.Auth == "" && d.Token == "" && d.Keys == "" {
		return nil, errors.New("the answer is no discovery document")
	}
	if strings.TrimSuffix(d.Issuer, "/") != strings.TrimSuffix(r.issuer, "/") {
		return nil, otherIssuer(d.Issuer)
	}
	for _, e := range [][2]string{
		{"authorization_endpoint", d.Auth}, {"token_endpoint", d.Token}, {"jwks_uri", d.Keys},
	} {
		if !r.isEndpoint(e[1]) {
			return nil, badEndpoint{e[0], e[1]}
		}
	}
	if !r.isEndpoint(d.Logout) {
		d.Logout = "" // a login does not depend on it
	}
	return &provider{
		issuer: d.Issuer,
		oauth: &oauth2.Config{ClientID: r.clientID, ClientSecret: r.clientSecret,
			Scopes: r.scopes, Endpoint: oauth2.Endpoint{
				AuthURL: d.Auth, TokenURL: d.Token, AuthStyle: authStyle(r.clientSecret, d.Methods),
			}},
		keys:        &keySet{client: r.client, at: d.Keys, now: r.clock.Now},
		userinfo:    d.Userinfo,
		logout:      d.Logout,
		notifies:    d.Backchannel,
		namesIssuer: d.NamesIssuer,
		methods:     d.Methods,
		until:       until,
	}, nil
}

// isEndpoint reports whether an address of a discovery document is one that a browser or this
// service may be sent to.
func (r *realm) isEndpoint(address string) bool {
	u, err := url.Parse(address)
	return err == nil && isSafe(u, isPlain(r.issuer)) && u.Fragment == ""
}

// Discover implements domains.Discoverer.
func (r *realm) Discover(ctx context.Context) error {
	_, err := r.found.get(ctx, func(*reading[*provider]) bool { return false }, r.clock.Now, r.discover)
	if err != nil {
		return errs.Wrap(
			errs.Invalid, reason(err.Error()), "issuer must be the address of a provider that answers: %s",
			r.explain(err),
		)
	}
	return nil
}

// explain returns why the discovery document cannot be had, and what an administrator can do.
func (r *realm) explain(err error) string {
	at := documentAddress(r.issuer)
	if other, ok := errors.AsType[otherIssuer](err); ok {
		return fmt.Sprintf(
			"the provider at %s calls itself %s: type that as issuer", at, reason(strconv.Quote(string(other))),
		)
	}
	if bad, ok := errors.AsType[badEndpoint](err); ok {
		return fmt.Sprintf("%s: %s", at, reason(bad.Error()))
	}
	why := unusable(err)
	if why == notProvider {
		why += ". Type the issuer as the provider's documentation has it, often with the tenant or realm in its path"
	}
	return at + ": " + why
}

// notProvider is what is told of an address that does not answer as a provider. It is the same
// whatever the answer is, and without an answer: the address may be that of another server in this
// network, and an administrator here must not learn what is there.
const notProvider = "no OpenID provider answers there: look at the name, the port and the firewall"

// unusable returns why an address cannot be used: what is wrong with its TLS, or notProvider.
func unusable(err error) string {
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return notProvider
	}
	if why := certs.Explain(err); why != "" {
		return why
	}
	return notProvider
}

// wasSent reports whether an error is of the connection and not of the answer.
func wasSent(err error) bool {
	_, sent := errors.AsType[*url.Error](err)
	return sent || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// authStyle returns how this client authenticates at the token endpoint. If the provider does not
// list its methods, both are tried; otherwise only one is, as a code is good for one use.
func authStyle(secret string, methods []string) oauth2.AuthStyle {
	switch {
	case secret == "":
		return oauth2.AuthStyleInParams // a public client gives its id alone
	case slices.Contains(methods, "client_secret_basic"):
		return oauth2.AuthStyleInHeader
	case slices.Contains(methods, "client_secret_post"):
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleAutoDetect
}

// fault returns the error for a provider that cannot be reached or whose answer is invalid.
func (r *realm) fault(cause error, secrets ...string) error {
	what := "gives an answer that cannot be used"
	if wasSent(cause) {
		what = "cannot be reached"
	}
	if why := certs.Explain(cause); why != "" {
		cause = fmt.Errorf("%s (%w)", why, cause)
	}
	return errs.Wrap(errs.Upstream, reason(cause.Error(), secrets...), "The OpenID provider %s %s.", r.issuer, what)
}
