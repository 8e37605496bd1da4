package oidc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/redact"
)

// memory is the state of a login for Finish. It has the issuer, as the domain may have got another
// one meanwhile.
type memory struct {
	Issuer   string `json:"issuer"`
	Verifier string `json:"verifier"`
	Nonce    string `json:"nonce"`
}

// finishTimeout is how long all requests of a Finish may take.
const finishTimeout = 30 * time.Second

// Begin sends the browser to the provider. Errors: errs.Upstream.
func (r *realm) Begin(ctx context.Context, at domains.Endpoints, state string) (string, []byte, error) {
	p, err := r.provider(ctx)
	if err != nil {
		return "", nil, err
	}
	m := memory{Issuer: r.issuer, Verifier: oauth2.GenerateVerifier(), Nonce: rand.Text()}
	kept, err := json.Marshal(m)
	if err != nil {
		return "", nil, err
	}
	return p.oauth.AuthCodeURL(
		state, callback(at), goidc.Nonce(m.Nonce), oauth2.S256ChallengeOption(m.Verifier),
	), kept, nil
}

// Finish exchanges the code that the browser brought, and verifies the identity that the provider
// reports.
//
// The claims come from the ID token; when one that is configured is not in it, the rest comes from
// the userinfo endpoint, if the provider has one. That it fails is an error only if the person's
// name, id or groups, or a rule, depend on it. The username of a person without the username claim
// is preferred_username, or else sub, which the provider never uses again. Where usernames are
// e-mail addresses (claims.username is email), one that the provider does not call verified is
// refused. Errors: errs.Unauthenticated; errs.Upstream.
func (r *realm) Finish(
	ctx context.Context, at domains.Endpoints, kept []byte, answer domains.Answer,
) (domains.SignedIn, error) {
	ctx, cancel := context.WithTimeout(goidc.ClientContext(ctx, r.client), finishTimeout)
	defer cancel()
	var m memory
	if err := json.Unmarshal(kept, &m); err != nil || m.Issuer != r.issuer || m.Verifier == "" || m.Nonce == "" {
		return domains.SignedIn{}, refuse("the login was begun at another issuer")
	}
	p, err := r.provider(ctx)
	if err != nil {
		return domains.SignedIn{}, err
	}
	code, err := r.code(p, answer.Params)
	if err != nil {
		return domains.SignedIn{}, err
	}
	token, err := r.exchange(ctx, p, at, code, m.Verifier)
	if err != nil {
		return domains.SignedIn{}, err
	}
	c, err := r.verify(ctx, p, token, m.Nonce)
	if err != nil {
		return domains.SignedIn{}, err
	}
	session, err := r.session(p, c, token)
	if err != nil {
		return domains.SignedIn{}, err
	}
	if err := r.complete(ctx, p, token, c); err != nil {
		return domains.SignedIn{}, err
	}
	who, err := r.signedIn(p, c)
	who.Session = session
	return who, err
}

// code takes the code out of the parameters when this provider sent them, and not another one that
// the browser was lured to (RFC 9207).
func (r *realm) code(p *provider, params url.Values) (string, error) {
	for _, name := range []string{"iss", "error", "code"} {
		if len(params[name]) > 1 {
			return "", refuse("the parameter %s came twice", name)
		}
	}
	switch {
	case params.Has("iss") && params.Get("iss") != p.issuer, !params.Has("iss") && p.namesIssuer:
		return "", refuse("the answer is of the issuer %q", params.Get("iss"))
	case params.Has("error"):
		return "", refuse("the provider says %s: %s", params.Get("error"), params.Get("error_description"))
	case params.Get("code") == "":
		return "", refuse("there is no code")
	}
	return params.Get("code"), nil
}

// exchange returns the tokens for a code. Errors: errs.Unauthenticated for a code that is not good;
// errs.Upstream.
func (r *realm) exchange(
	ctx context.Context, p *provider, at domains.Endpoints, code, verifier string,
) (*oauth2.Token, error) {
	token, err := p.oauth.Exchange(ctx, code, callback(at), oauth2.VerifierOption(verifier))
	if err == nil {
		return token, nil
	}
	secrets := []string{r.clientSecret, url.QueryEscape(r.clientSecret), code, verifier}
	answer, answered := errors.AsType[*oauth2.RetrieveError](err)
	if !answered || answer.ErrorCode == "" {
		return nil, r.fault(err, secrets...)
	}
	cause := reason(answer.ErrorCode+": "+answer.ErrorDescription, secrets...)
	if answer.ErrorCode == "invalid_grant" {
		return nil, refuse("the code is not good: %s", cause)
	}
	advice := "refuses this service: look at the domain's clientID and clientSecret"
	switch answer.ErrorCode {
	case "invalid_client", "unauthorized_client":
	case "server_error", "temporarily_unavailable":
		advice = "has a fault of its own: try again later, and look at its log"
	default:
		advice = "does not take the request for tokens: look at its log, and at how this service is registered there"
	}
	return nil, errs.Wrap(errs.Upstream, cause, "The OpenID provider %s %s.", r.issuer, advice)
}

func callback(at domains.Endpoints) oauth2.AuthCodeOption {
	return oauth2.SetAuthURLParam("redirect_uri", at.Callback)
}

// refuse returns the error of every login that fails. Its reason is for the log.
func refuse(format string, args ...any) error {
	return errs.Wrap(errs.Unauthenticated, reason(fmt.Sprintf(format, args...)), "Unable to log in")
}

// maxReason is how many bytes of a reason are logged, as most of it is text of the provider.
const maxReason = 300

// reason returns a short text for the log without the secrets that a provider may quote.
func reason(text string, secrets ...string) error {
	text = redact.Text(text, secrets...)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return errors.New(text)
}
