// Package oidc is the domain driver OIDC: people log in at an OpenID Connect provider, where their
// browser is sent.
//
// The root, cmd and hosts import it. It speaks the authorization code flow with PKCE, a nonce and
// the provider's own keys.
//
// A person's claims come from the ID token and, if one that is needed is missing there, from one
// request to the userinfo endpoint. Whoever logs out here logs out at the provider, too, if that
// has an address for it, and the provider may tell that somebody has logged out there.
//
// Source: OpenID Connect Core 1.0, Discovery 1.0, RP-Initiated Logout 1.0 and Back-Channel Logout
// 1.0; RFC 9207.
package oidc

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// Driver is the driver OIDC. Its zero value is ready.
//
// Its configuration is {issuer, clientID, clientSecret, scopes, claims, caCert}.
//
//   - issuer: the provider's own issuer identifier, with or without a slash at the end: an https
//     address (http for this machine only: localhost or a loopback address) without user, query and
//     fragment, of at most 1,024 bytes. Its discovery document is below it.
//   - clientID: the id of this service at the provider, 1 to 1,024 bytes.
//   - clientSecret: left out or empty for a public client.
//   - scopes: at most 50 scopes to ask for, openid always among them; default openid, profile,
//     email.
//   - claims: the claims that {username, email, displayName, timezone, givenName, familyName} are
//     taken from; defaults preferred_username, email, name, zoneinfo, given_name, family_name. An
//     empty one is not asked for; username must not be empty. A person without that claim is called
//     by preferred_username, or else by sub. Where it is email, an address that the provider does
//     not call verified is refused. A name with dots is that of a claim or, if that is missing, of
//     the members of one: realm_access.roles.
//   - claims.groups: the claim with the person's groups: texts, objects with a name, or one text.
//     Default none: groups are not asked for.
//   - claims.id: the claim with an id of the person that never changes, in place of sub, such as
//     oid. A person without it is refused.
//   - caCert: certificates in PEM to trust beside those of the system.
//
// null is the same as left out. No request is made to the provider before the first login.
type Driver struct {
	// Client makes the requests to providers; a host that must protect its own network sets one
	// whose dialer refuses private addresses. Its Timeout is for each request, 0 is 10 seconds.
	// Default: one over http.DefaultTransport. In any case an answer has at most 1 MiB, at most
	// three redirects are followed, and requests without TLS go only to a provider on this machine.
	Client *http.Client
	// Denied reports whether connections to the host of an address are denied, so that a domain
	// there says so; nil: none are.
	Denied func(address string) bool
	Now    func() time.Time // default time.Now
}

// Info describes the driver.
func (Driver) Info() domains.Info {
	defaults := map[string]string{}
	for _, a := range attributes {
		defaults[a.name] = a.claim
	}
	return domains.Info{
		ID:             "OIDC",
		Name:           "OpenID Connect",
		Group:          "Single sign-on",
		LoginComponent: "oidc-login",
		EditComponent:  map[string]any{"name": "oidc-edit"},
		LoginMethod:    http.MethodGet,
		Members: append([]string{
			"issuer", "clientID", "clientSecret", "scopes", "caCert", "claims", "claims.groups", "claims.id",
		},
			domains.MemberNames("claims", defaults)...),
		Secrets:  []string{"clientSecret"},
		Defaults: defaults,
	}
}

// Open reads a configuration: see Driver. Errors: errs.Invalid naming the member.
func (d Driver) Open(raw json.RawMessage) (domains.Realm, error) {
	c, err := read(raw)
	if err != nil {
		return nil, err
	}
	client, err := guarded(d.Client, isPlain(c.issuer), c.trusted)
	if err != nil {
		return nil, err
	}
	denied := d.Denied != nil && d.Denied(c.issuer)
	return &realm{config: c, client: client, denied: denied, clock: clock.New(d.Now, nil)}, nil
}

// Within implements domains.Bounded.
func (d Driver) Within(denied []netip.Prefix, _ *slog.Logger) domains.Driver {
	if d.Client == nil {
		d.Client = egress.Client(denied)
	}
	if d.Denied == nil {
		d.Denied = egress.Denied(denied)
	}
	return d
}
