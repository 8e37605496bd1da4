// Package saml is the domain driver for single sign-on by SAML 2.0: the Web Browser SSO profile,
// with requests by HTTP-Redirect or HTTP-POST and the response by HTTP-POST. Hosts import it.
//
// A login succeeds with an assertion that a key of the provider's metadata has signed, itself or
// with the response around it, with SHA-256 or better. It must be the only one in the response, for
// this service (audience), this address (recipient), this login (InResponseTo) and this moment,
// give or take three minutes. It may be encrypted for a key of the domain: by RSA-OAEP, with AES in
// GCM, or in CBC, which has no checksum, so that nothing of it is believed before a signature is
// checked, every damage is one error, and a refusal takes as long as any.
//
// A login that begins at the provider is refused unless the configuration says idpInitiated. Then
// an assertion that answers no request logs in whoever brings it, once: its id is stored until it
// is too old. So somebody who has an unused assertion, such as one of their own, can have another
// browser log in with it, which the protocol cannot prevent.
//
// A person's id is that of attributes.id where it is configured; else the NameID where its format
// is persistent; else the username, which then must never pass to somebody else, with the kind of
// attribute or NameID that it came from; never a transient NameID. It is qualified by the
// provider's entity id, so that nobody of another provider is taken for somebody of this one.
//
// Single logout goes both ways, by the same bindings, where the provider has an endpoint for it:
// requests of the provider must be signed, and so is what goes there. For one message three keys
// are decrypted at most.
//
// Not supported: logouts by SOAP, artifacts, attributes that are encrypted by themselves, and
// signatures on metadata: what comes over TLS is trusted.
//
// The types are crewjam/saml's, the signatures goxmldsig's. crewjam's ParseXMLResponse is not used:
// it reads the assertion as it came rather than as it was signed, takes an absent audience or
// confirmation for a fitting one, panics without a subject, and reads clock and skew from globals.
// Nor is its package xmlenc: it panics on short ciphertexts, takes RSA 1.5, and knows one of the
// three sizes of AES-GCM.
package saml

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// Driver is the driver SAML. Its zero value is ready, and its realms are FormLogin, UnaskedLogin,
// FormLogout, LogoutReceiver, Metadata, Discoverer and Tester.
//
// Its configuration is {metadataURL | metadataXML, caCert, entityID, signRequests,
// idpInitiated, trustEmail, attributes}.
//
//   - metadataURL: where the provider's metadata is: an https address without user and password
//     (http for this machine only: localhost or a loopback address). It is fetched when somebody
//     logs in, and kept as long as it says, for a minute at least and an hour at most; again when a
//     signature fits no key of it, a minute later at the earliest. While the address does not
//     answer, what it answered last is used, until its validUntil.
//   - metadataXML: the metadata itself, instead.
//   - caCert: certificates in PEM of authorities that are trusted beside the system's when metadata
//     is fetched.
//   - entityID: what the provider calls this service, a URI of at most 1,024 bytes; default the
//     address of the metadata of this service.
//   - signRequests: requests are signed in any case; otherwise if the metadata says
//     WantAuthnRequestsSigned.
//   - idpInitiated: logins may begin at the provider. See the package's comment.
//   - trustEmail: the provider vouches that an e-mail address is the person's.
//   - attributes: the attributes that {username, email, displayName, timezone, givenName,
//     familyName, groups, id} are taken from, by Name or else by FriendlyName. One that is left out
//     is found under the names that providers usually send, but groups only where a rule for
//     logging in is about them. An empty one is not read; username must not be empty, and the
//     provider must send one value of it. id is for an id that never changes: people who have
//     logged in before it is set become others.
//
// null is as good as left out. Metadata must be of one provider that speaks SAML 2.0, with an
// address (https, or on this machine) for HTTP-Redirect or HTTP-POST and a certificate for signing.
// A list of entities may stand around it.
type Driver struct {
	// Client fetches metadata from the addresses in configurations; a host that must protect its
	// own network sets one whose dialer refuses private addresses. Default: one over
	// http.DefaultTransport. In any case an answer has at most 1 MiB and takes at most ten seconds,
	// and redirects are not followed.
	Client *http.Client
	// Denied reports whether connections to the host of an address are denied, so that a domain
	// there says so; nil: none are.
	Denied func(address string) bool
}

// defaults are the attributes of a new domain, under the names that LDAP directories give them.
// Where a configuration leaves one out, the other usual names count, too.
var defaults = map[string]string{
	"username": "uid", "email": "mail", "displayName": "displayName", "timezone": "timezone",
	"givenName": "givenName", "familyName": "sn",
}

// attributeKeys are the members of attributes.
var attributeKeys = append(slices.Sorted(maps.Keys(defaults)), "groups", "id")

// Info describes the driver.
func (Driver) Info() domains.Info {
	return domains.Info{
		ID:             "SAML",
		Name:           "SAML",
		Group:          "Single sign-on",
		LoginComponent: "saml-login",
		EditComponent:  map[string]any{"name": "saml-edit"},
		LoginMethod:    http.MethodGet,
		AnswersByForm:  true,
		Members:        memberNames(),
		Defaults:       maps.Clone(defaults),
	}
}

// memberNames returns what a configuration may have.
func memberNames() []string {
	names := []string{
		"metadataURL", "metadataXML", "caCert", "entityID", "signRequests", "idpInitiated", "trustEmail",
		"attributes",
	}
	for _, key := range attributeKeys {
		names = append(names, "attributes."+key)
	}
	return names
}

// Open reads a configuration: see Driver. Errors: errs.Invalid naming the member.
func (d Driver) Open(config json.RawMessage) (domains.Realm, error) {
	return d.OpenWithKeys(config, domains.Keys{})
}

// OpenWithKeys implements domains.KeyedDriver.
func (d Driver) OpenWithKeys(config json.RawMessage, keys domains.Keys) (domains.Realm, error) {
	return d.open(config, keys)
}

// timeout is how long the metadata of a provider is waited for.
const timeout = 10 * time.Second

// client returns the client that fetches metadata. A redirect is an answer like others: who follows
// it asks an address that nobody has configured. It returns errs.Invalid if the host's client
// cannot be told which certificates to trust.
func (d Driver) client(trusted certs.Trusted) (*http.Client, error) {
	var c http.Client
	if d.Client != nil {
		c = *d.Client
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var err error
	c.Transport, err = trusted.Transport(c.Transport, "caCert")
	return &c, err
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
