package saml

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	crewjam "github.com/crewjam/saml"

	"github.com/tenantcontent/tenantcontent/errs"
)

// provider is an identity provider as its metadata describes it.
type provider struct {
	entityID string
	login    endpoint
	// Where it takes requests to log somebody out, and the responses to its own; empty for nowhere.
	logout, loggedOut endpoint
	signed            bool // it wants requests signed
	keys              []*x509.Certificate
	ends              time.Time     // when the metadata must not be used any more; zero for never
	keep              time.Duration // how long it says it may be kept; 0 when it does not
}

// endpoint is an address that takes messages by a binding.
type endpoint struct{ binding, location string }

// posts reports whether messages go there with a form.
func (e endpoint) posts() bool { return e.binding == crewjam.HTTPPostBinding }

// saml2 is the protocol, as metadata and its elements name it.
const saml2 = "urn:oasis:names:tc:SAML:2.0:protocol"

// readProvider reads metadata: of one identity provider, or of several entities of which one is
// one. An error is the predicate of a sentence about the document.
func readProvider(document []byte) (*provider, error) {
	entities, err := readEntities(document)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotMetadata, err)
	}
	var found []crewjam.EntityDescriptor
	for _, e := range entities {
		if role(e) != nil {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("must describe one SAML 2.0 identity provider (IDPSSODescriptor), not %d", len(found))
	}
	return newProvider(found[0], role(found[0]))
}

// role returns an entity's role of an identity provider, nil for none.
func role(e crewjam.EntityDescriptor) *crewjam.IDPSSODescriptor {
	for i, d := range e.IDPSSODescriptors {
		if strings.Contains(d.ProtocolSupportEnumeration, saml2) {
			return &e.IDPSSODescriptors[i]
		}
	}
	return nil
}

// newProvider checks what a login needs.
func newProvider(e crewjam.EntityDescriptor, d *crewjam.IDPSSODescriptor) (*provider, error) {
	p := &provider{entityID: e.EntityID, ends: e.ValidUntil, keep: e.CacheDuration}
	if d.ValidUntil != nil {
		p.ends = earlier(p.ends, *d.ValidUntil)
	}
	if p.entityID == "" || len(p.entityID) > maxEntityID {
		return nil, fmt.Errorf("must have an entityID of at most %d bytes", maxEntityID)
	}
	p.signed = d.WantAuthnRequestsSigned != nil && *d.WantAuthnRequestsSigned
	p.login = choose(d.SingleSignOnServices)
	if p.login.location == "" {
		return nil, errors.New("must have a SingleSignOnService with the binding HTTP-Redirect or HTTP-POST and " +
			"an https address")
	}
	p.logout = choose(d.SingleLogoutServices)
	p.loggedOut = choose(answering(d.SingleLogoutServices))
	var err error
	p.keys, err = signingKeys(d.KeyDescriptors)
	return p, err
}

// choose returns the first secure address with the binding HTTP-Redirect, else the first one with
// HTTP-POST.
func choose(all []crewjam.Endpoint) endpoint {
	for _, binding := range []string{crewjam.HTTPRedirectBinding, crewjam.HTTPPostBinding} {
		for _, e := range all {
			if u, err := url.Parse(e.Location); e.Binding == binding && err == nil && u.Host != "" && secure(u) {
				return endpoint{binding, e.Location}
			}
		}
	}
	return endpoint{}
}

// answering returns endpoints as those of responses, which may have another address.
func answering(all []crewjam.Endpoint) []crewjam.Endpoint {
	all = slices.Clone(all)
	for i, e := range all {
		all[i].Location = cmp.Or(e.ResponseLocation, e.Location)
	}
	return all
}

// signingKeys returns the certificates whose keys sign.
func signingKeys(descriptors []crewjam.KeyDescriptor) ([]*x509.Certificate, error) {
	var keys []*x509.Certificate
	for _, k := range descriptors {
		if k.Use != "" && k.Use != "signing" {
			continue
		}
		for _, c := range k.KeyInfo.X509Data.X509Certificates {
			der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.Data), ""))
			if err != nil {
				return nil, errors.New("must have its X509Certificates in base64")
			}
			key, err := x509.ParseCertificate(der)
			if err != nil {
				return nil, errors.New("must have X509Certificates that can be read")
			}
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("must have an X509Certificate for signing")
	}
	return keys, nil
}

// readEntities reads one entity, or all of a list of them.
func readEntities(document []byte) ([]crewjam.EntityDescriptor, error) {
	root, err := parse(document, func(xml.Token) error { return nil })
	if err != nil {
		return nil, err
	}
	if root.Tag != "EntitiesDescriptor" {
		var one crewjam.EntityDescriptor
		err := xml.Unmarshal(document, &one)
		return []crewjam.EntityDescriptor{one}, err
	}
	var list crewjam.EntitiesDescriptor
	if err := xml.Unmarshal(document, &list); err != nil {
		return nil, err
	}
	return flatten(list, time.Time{}), nil
}

// flatten returns the entities of a list and of the lists in it; none is valid longer than its
// list.
func flatten(list crewjam.EntitiesDescriptor, ends time.Time) []crewjam.EntityDescriptor {
	if list.ValidUntil != nil {
		ends = earlier(ends, *list.ValidUntil)
	}
	all := list.EntityDescriptors
	for i := range all {
		all[i].ValidUntil = earlier(all[i].ValidUntil, ends)
	}
	for _, inner := range list.EntitiesDescriptors {
		all = append(all, flatten(inner, ends)...)
	}
	return all
}

// earlier returns the earlier one of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// current returns p unless its time is over. Errors: errs.Upstream.
func (p *provider) current() (*provider, error) {
	if !p.ends.IsZero() && !time.Now().Before(p.ends) {
		return nil, errs.New(
			errs.Upstream, "The SAML metadata of %s ended on %s (validUntil); get it anew.", p.entityID,
			p.ends.Format(time.RFC3339),
		)
	}
	return p, nil
}
