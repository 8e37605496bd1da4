package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// realm is a domain whose people log in at an OpenID provider.
type realm struct {
	config
	client *http.Client
	denied bool // connections to the issuer's address
	now    func() time.Time
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
	oauth       *oauth2.Config
	keys        *keySet
	userinfo    string // "" for none
	logout      string // end_session_endpoint, "" for none
	namesIssuer bool   // every answer names the issuer (RFC 9207)
	until       time.Time
}

// cacheTime is how long the discovery document and the keys are cached: a key that the provider withdraws is not accepted
// for longer.
const cacheTime = time.Hour

// provider returns the discovered provider. Errors: errs.Upstream.
func (r *realm) provider(ctx context.Context) (*provider, error) {
	found, err := r.found.get(ctx, func(p *reading[*provider]) bool { return r.now().Before(p.value.until) }, r.now, r.discover)
	if err != nil {
		return nil, r.fault(err)
	}
	return found.value, nil
}

// discover reads the discovery document. The client's time-out ends it, as it serves more than one caller.
func (r *realm) discover() (*provider, error) {
	until := r.now().Add(cacheTime)
	found, err := goidc.NewProvider(goidc.ClientContext(context.Background(), r.client), r.issuer) // refuses another issuer's
	if err != nil {
		return nil, err
	}
	var more struct {
		Keys        string   `json:"jwks_uri"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Logout      string   `json:"end_session_endpoint"`
	}
	if err := found.Claims(&more); err != nil {
		return nil, err
	}
	at := found.Endpoint()
	for _, address := range []string{at.AuthURL, at.TokenURL, more.Keys} {
		if u, err := url.Parse(address); err != nil || !isSafe(u, isPlain(r.issuer)) || u.Fragment != "" {
			return nil, fmt.Errorf("%q is not an https address", address)
		}
	}
	if u, err := url.Parse(more.Logout); err != nil || !isSafe(u, isPlain(r.issuer)) || u.Fragment != "" {
		more.Logout = "" // a login does not depend on it
	}
	at.AuthStyle = authStyle(r.clientSecret, more.Methods)
	return &provider{
		oauth:       &oauth2.Config{ClientID: r.clientID, ClientSecret: r.clientSecret, Endpoint: at, Scopes: r.scopes},
		keys:        &keySet{client: r.client, at: more.Keys, now: r.now},
		userinfo:    found.UserInfoEndpoint(),
		logout:      more.Logout,
		namesIssuer: more.NamesIssuer,
		until:       until,
	}, nil
}

// authStyle returns how this client authenticates at the token endpoint. If the provider does not list its methods, both are
// tried; otherwise only one is, as a code is good for one use.
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
	if _, sent := errors.AsType[*url.Error](cause); sent || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		what = "cannot be reached"
	}
	return errs.Wrap(errs.Upstream, reason(cause.Error(), secrets...), "The OpenID provider %s %s.", r.issuer, what)
}
