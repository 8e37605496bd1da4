package oidc

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/tenantcontent/tenantcontent/domains"
)

// sessionMemory is what a logout at the provider needs to know of a login.
type sessionMemory struct {
	Issuer string `json:"issuer"`
	Token  string `json:"token,omitempty"` // ID token; "" if it is too long for an address
}

const (
	maxHint        = 6 << 10 // bytes of an ID token that is sent in an address
	maxLogoutToken = 16 << 10
	maxSession     = 1024 // bytes of a sid
	// maxNotice is how long a logout token is good after it was made, whatever its exp: its record
	// is kept as long.
	maxNotice = 15 * time.Minute
)

// session returns the session at the provider that an ID token is of.
func (r *realm) session(p *provider, c claims, token *oauth2.Token) (domains.ProviderSession, error) {
	m := sessionMemory{Issuer: p.issuer}
	if raw, _ := token.Extra("id_token").(string); len(raw) <= maxHint {
		m.Token = raw
	}
	kept, err := json.Marshal(m)
	s := domains.ProviderSession{Subject: c.text("sub"), ID: c.text("sid"), Memory: kept}
	if len(s.ID) > maxSession {
		s.ID = ""
	}
	return s, err
}

// BeginLogout implements domains.LogoutAtProvider (OpenID Connect RP-Initiated Logout 1.0).
func (r *realm) BeginLogout(
	ctx context.Context, at domains.Endpoints, session []byte, state string,
) (location string, kept []byte, err error) {
	var m sessionMemory
	p, err := r.provider(ctx)
	if err != nil || p.logout == "" {
		return "", nil, err
	}
	if err := json.Unmarshal(session, &m); err != nil || m.Issuer != p.issuer {
		return "", nil, nil // the domain has got another provider meanwhile
	}
	to, err := url.Parse(p.logout)
	if err != nil {
		return "", nil, r.fault(err)
	}
	query := to.Query()
	query.Set("client_id", r.clientID)
	query.Set("post_logout_redirect_uri", at.LoggedOut)
	query.Set("state", state)
	if m.Token != "" {
		query.Set("id_token_hint", m.Token)
	}
	to.RawQuery = query.Encode()
	return to.String(), nil, nil
}

// FinishLogout implements domains.LogoutAtProvider: the answer has no more than the state.
func (r *realm) FinishLogout(context.Context, domains.Endpoints, []byte, domains.Answer) error {
	return nil
}

// ReceiveLogout implements domains.LogoutReceiver (OpenID Connect Back-Channel Logout 1.0).
func (r *realm) ReceiveLogout(
	ctx context.Context, _ domains.Endpoints, notice domains.Answer,
) (domains.LogoutNotice, error) {
	none := domains.LogoutNotice{}
	raw := notice.Params["logout_token"]
	if len(raw) != 1 || len(raw[0]) > maxLogoutToken {
		return none, refuse("there is no logout_token, or several, or a long one")
	}
	ctx, cancel := context.WithTimeout(goidc.ClientContext(ctx, r.client), finishTimeout)
	defer cancel()
	p, err := r.provider(ctx)
	if err != nil {
		return none, err
	}
	token, c, err := r.parse(ctx, p, strangersKeys{p.keys}, raw[0])
	if err != nil {
		return none, err
	}
	_, hasNonce := c["nonce"]
	events, _ := c["events"].(map[string]any)
	_, isLogout := events["http://schemas.openid.net/event/backchannel-logout"].(map[string]any)
	until := token.IssuedAt.Add(maxNotice)
	if token.Expiry.Before(until) {
		until = token.Expiry
	}
	until = until.Add(domains.ClockSkew)
	sub, sid := c.text("sub"), c.text("sid")
	_, hasSub := c["sub"]
	_, hasSID := c["sid"]
	switch {
	case !isLogout:
		return none, refuse("the token has no event of a logout")
	case hasNonce:
		return none, refuse("the token has a nonce, which is for ID tokens")
	case c.text("jti") == "" || len(c.text("jti")) > maxSession:
		return none, refuse("the logout token has no jti")
	case hasSub && !isSubject(sub) || hasSub && sub != token.Subject,
		hasSID && (sid == "" || len(sid) > maxSession), !hasSub && !hasSID:
		return none, refuse("the logout token has neither a sub nor a sid, or a bad one")
	case !r.clock.Now().Before(until):
		return none, refuse(
			"the logout token was issued at %s, which is too long ago",
			token.IssuedAt.UTC().Format(time.RFC3339),
		)
	}
	n := domains.LogoutNotice{Subject: sub, ID: p.issuer + " " + c.text("jti"), Until: until}
	if hasSID {
		n.Sessions = []string{sid}
	}
	return n, nil
}
