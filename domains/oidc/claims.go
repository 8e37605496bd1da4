package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/secure/redact"
)

// claims are the claims of a provider about a person.
type claims map[string]any

// text returns a claim that is a string, and "" for any other and for text with NUL, which
// databases do not store.
func (c claims) text(name string) string {
	s, _ := c.value(name).(string)
	if strings.IndexByte(s, 0) >= 0 {
		return ""
	}
	return s
}

// errorKeeper is a key set that keeps its last payload and error, of which the verifier returns
// only the text.
type errorKeeper struct {
	goidc.KeySet
	payload []byte
	err     error
}

// VerifySignature returns the payload of a token.
func (n *errorKeeper) VerifySignature(ctx context.Context, jwt string) (payload []byte, err error) {
	n.payload, n.err = n.KeySet.VerifySignature(ctx, jwt)
	return n.payload, n.err
}

// elsewhere returns the name of a claim that a token leaves to another place without saying to
// which, "" for none. The verifier refuses such a token.
func elsewhere(payload []byte) string {
	var token struct {
		Names   map[string]string          `json:"_claim_names"`
		Sources map[string]json.RawMessage `json:"_claim_sources"`
	}
	_ = json.Unmarshal(payload, &token) // what can be read of it
	for _, name := range slices.Sorted(maps.Keys(token.Names)) {
		if _, there := token.Sources[token.Names[name]]; !there {
			return name
		}
	}
	return ""
}

// verify returns the claims of the ID token that came with an access token. Errors:
// errs.Unauthenticated when it is not for this login; errs.Upstream if there is none, or if the
// provider's keys cannot be read.
func (r *realm) verify(ctx context.Context, p *provider, token *oauth2.Token, nonce string) (claims, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, r.fault(errors.New("there is no id_token"))
	}
	id, c, err := r.parse(ctx, p, p.keys, raw)
	if err != nil {
		return nil, err
	}
	_, named := c["azp"]
	switch {
	case (named || len(id.Audience) > 1) && c.text("azp") != r.clientID:
		return nil, refuse("the ID token is for another client")
	case c.text("nonce") != nonce:
		return nil, refuse("the ID token is for another login")
	case c.text("sub") != id.Subject || !isSubject(id.Subject):
		return nil, refuse("the ID token has no sub of 1 to 255 characters")
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		return nil, refuse("the ID token is for another access token")
	}
	return c, nil
}

// parse returns a token of the provider for this client, and its claims: it has checked the
// signature, iss, aud and times. Errors: errs.Unauthenticated; errs.Upstream if the provider's keys
// cannot be read.
func (r *realm) parse(ctx context.Context, p *provider, by goidc.KeySet, raw string) (*goidc.IDToken, claims, error) {
	keys := &errorKeeper{KeySet: by}
	check := &goidc.Config{ClientID: r.clientID, SkipExpiryCheck: true} // which knows no skew
	for _, a := range algorithms {
		check.SupportedSigningAlgs = append(check.SupportedSigningAlgs, string(a))
	}
	token, err := goidc.NewVerifier(p.issuer, keys, check).Verify(ctx, raw)
	switch {
	case keys.err != nil && !errors.Is(keys.err, errForged):
		return nil, nil, r.fault(keys.err)
	case err != nil && elsewhere(keys.payload) != "":
		return nil, nil, refuse("the token leaves the claim %s to another place (_claim_names) and does not say "+
			"which (_claim_sources): an overage that is malformed; have the provider "+
			"send only the groups that are assigned to this application (%s)", elsewhere(keys.payload), err)
	case err != nil:
		return nil, nil, refuse("%s", redact.Text(err.Error(), raw))
	}
	var c claims
	if err := token.Claims(&c); err != nil {
		return nil, nil, refuse("%s", err)
	}
	now := r.clock.Now()
	notBefore, err := c.time("nbf")
	switch {
	case err != nil:
		return nil, nil, refuse("the token's nbf is no time")
	case token.Expiry.IsZero() || !now.Before(token.Expiry.Add(domains.ClockSkew)):
		return nil, nil, refuse(
			"the token has expired at %s (it is %s here)", token.Expiry.UTC().Format(time.RFC3339),
			now.UTC().Format(time.RFC3339),
		)
	case notBefore.After(now.Add(domains.ClockSkew)):
		return nil, nil, refuse(
			"the token is for use not before %s (it is %s here)", notBefore.Format(time.RFC3339),
			now.UTC().Format(time.RFC3339),
		)
	case token.IssuedAt.Unix() <= 0 || token.IssuedAt.After(now.Add(domains.ClockSkew)):
		return nil, nil, refuse(
			"the token was issued at no time, or in the future: at %s (it is %s here)",
			token.IssuedAt.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339),
		)
	}
	return token, c, nil
}

// time returns a claim that is a time in seconds, and the zero time if there is none.
func (c claims) time(name string) (time.Time, error) {
	value, there := c[name]
	seconds, ok := value.(float64)
	if !there {
		return time.Time{}, nil
	}
	if !ok || seconds < 0 || seconds > 1<<40 {
		return time.Time{}, errors.New("no time")
	}
	return time.Unix(int64(seconds), 0).UTC(), nil
}

// isSubject reports whether a sub is valid by the standard, so that no two are stored as one.
func isSubject(s string) bool {
	bad := func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, bad)
}

// complete adds the claims of the userinfo endpoint if ones that are wanted are missing. Its
// failure is none when nothing depends on them.
// Errors: errs.Unauthenticated if they are of another person; errs.Upstream.
func (r *realm) complete(ctx context.Context, p *provider, token *oauth2.Token, c claims) error {
	var missing []string
	for _, name := range slices.Concat(r.needed, slices.Collect(maps.Values(r.claims))) {
		if name != "" && c.isMissing(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 || p.userinfo == "" {
		return nil
	}
	more, err := r.ask(ctx, p, token)
	if err != nil {
		if !slices.ContainsFunc(missing, func(name string) bool { return slices.Contains(r.needed, name) }) {
			return nil
		}
		return r.fault(err, token.AccessToken)
	}
	if more.text("sub") != c.text("sub") {
		return refuse("userinfo speaks of somebody else")
	}
	if c.text("email") == "" {
		delete(c, "email_verified") // it is said of that address
		delete(c, emailOwned)
	} else {
		delete(more, "email_verified")
		delete(more, emailOwned)
	}
	for name, value := range more {
		if c.text(name) == "" && (c[name] == nil || slices.Contains(missing, name)) {
			c[name] = value
		}
	}
	return nil
}

// ask returns the claims of the userinfo endpoint, whose response may be a signed token.
func (r *realm) ask(ctx context.Context, p *provider, token *oauth2.Token) (claims, error) {
	body, kind, err := fetch(ctx, r.client, p.userinfo, token)
	if err != nil {
		return nil, err
	}
	if kind == "application/jwt" {
		if body, err = p.keys.VerifySignature(ctx, strings.TrimSpace(string(body))); err != nil {
			return nil, err
		}
	}
	var c claims
	err = json.Unmarshal(body, &c)
	return c, err
}

// qualified returns an id of a sub that is unique over all issuers. An issuer has no #.
func qualified(issuer, sub string) string {
	id := issuer + "#" + sub
	if len(id) <= 255 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}
