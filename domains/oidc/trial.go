package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/tenantcontent/tenantcontent/domains"
)

// Test implements domains.Tester. It cannot look for a person: only a log-in tells who that is.
func (r *realm) Test(ctx context.Context, at domains.Endpoints, _ string) []domains.Step {
	ctx, cancel := context.WithTimeout(goidc.ClientContext(ctx, r.client), finishTimeout)
	defer cancel()
	found, err := r.found.get(ctx, func(*reading[*provider]) bool { return false }, r.clock.Now, r.discover)
	if err != nil {
		return []domains.Step{{Name: "discovery", Message: "Discovery fails: " + r.explain(err) + "."}}
	}
	p := found.value
	steps := []domains.Step{{Name: "discovery",
		OK: true,
		Message: fmt.Sprintf("The provider is %s. Log-ins go to %s, codes to %s. It takes a client's secret by "+
			"%s. %s %s Register %s there as redirect URI.",
			p.issuer, p.oauth.Endpoint.AuthURL,
			p.oauth.Endpoint.TokenURL, cmp.Or(strings.Join(p.methods, ", "), "a way that it does not say"),
			p.sayUserinfo(), p.sayLogout(at), at.Callback)}}
	keys, err := p.keys.keys.get(ctx, func(*reading[[]jose.JSONWebKey]) bool { return false }, r.clock.Now, p.keys.read)
	switch {
	case err != nil:
		return append(steps, domains.Step{
			Name:    "keys",
			Message: fmt.Sprintf("The keys at %s cannot be read: %s.", p.keys.at, unusable(err)),
		})
	case len(keys.value) == 0:
		return append(steps, domains.Step{
			Name: "keys",
			Message: fmt.Sprintf(
				"None of the keys at %s can check a signature: RSA keys of 2,048 to 8,192 bits, ECDSA and Ed25519 "+
					"keys can.",
				p.keys.at,
			),
		})
	}
	var kinds []string
	for _, key := range keys.value {
		kinds = append(kinds, cmp.Or(key.Algorithm, fmt.Sprintf("%T", key.Key)))
	}
	steps = append(steps, domains.Step{
		Name: "keys",
		OK:   true,
		Message: fmt.Sprintf(
			"It signs with %s: %s.", domains.Number(len(kinds), "key", "keys"),
			reason(strings.Join(kinds, ", ")),
		),
	})
	return append(steps, r.testClient(ctx, p, at))
}

func (p *provider) sayUserinfo() string {
	if p.userinfo == "" {
		return "It has no userinfo: all claims must be in the ID token."
	}
	return "Claims that are not in the ID token come from " + p.userinfo + "."
}

func (p *provider) sayLogout(at domains.Endpoints) string {
	said := "It offers no logout."
	if p.logout != "" {
		said = fmt.Sprintf("It logs people out at %s: register %s as post logout redirect URI.", p.logout, at.LoggedOut)
	}
	if p.notifies {
		said += fmt.Sprintf(" It tells of logouts: register %s as back-channel logout URI.", at.BackchannelLogout)
	}
	return said
}

// testClient finds out whether the provider knows clientID and clientSecret: it asks for the tokens
// of a code that nobody has got.
func (r *realm) testClient(ctx context.Context, p *provider, at domains.Endpoints) domains.Step {
	step := domains.Step{Name: "client"}
	code, verifier := rand.Text(), oauth2.GenerateVerifier()
	_, err := p.oauth.Exchange(ctx, code, callback(at), oauth2.VerifierOption(verifier))
	answer, answered := errors.AsType[*oauth2.RetrieveError](err)
	if !answered || !isTokenError(answer.ErrorCode) {
		step.Message = fmt.Sprintf(
			"The provider's address for codes, %s, cannot be used: %s.", p.oauth.Endpoint.TokenURL,
			unusable(err),
		)
		return step
	}
	says := reason(
		strings.TrimSuffix(answer.ErrorCode+": "+answer.ErrorDescription, ": "), r.clientSecret,
		url.QueryEscape(r.clientSecret), code, verifier,
	)
	switch answer.ErrorCode {
	case "invalid_grant":
		step.OK, step.Message = true, "The provider accepts clientID and clientSecret."
	case "invalid_client", "unauthorized_client":
		step.Message = fmt.Sprintf(
			"The provider refuses clientID or clientSecret (%s): look at both, and at whether it wants a secret "+
				"from this client.",
			says,
		)
	default:
		step.OK, step.Message = true, fmt.Sprintf(
			"Whether the provider accepts clientID and clientSecret shows at the first log-in alone: to a code "+
				"that nobody has got it says %s.",
			says,
		)
	}
	return step
}

// isTokenError reports whether a text is an error of OAuth, which nobody but a provider answers.
func isTokenError(code string) bool {
	switch code {
	// RFC 6749
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
		"invalid_scope", "access_denied",
		// later ones
		"server_error", "temporarily_unavailable", "invalid_target", "invalid_dpop_proof", "use_dpop_nonce",
		"interaction_required",
		// of large providers
		"redirect_uri_mismatch", "invalid_code", "bad_verification_code", "incorrect_client_credentials":
		return true
	}
	return false
}
