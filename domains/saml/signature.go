package saml

import (
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"
)

// errKey is the error of a signature that no key fits: the provider may have a new one.
var errKey = errors.New("no key of the provider's metadata fits")

// signedAssertion returns the assertion of a response as a signature covers it, its own or that of
// the response. Every signature that is there must be good. That of a response is checked before an
// assertion in it is decrypted.
func (p *provider) signedAssertion(response *etree.Element, o *opener, s *shape) (*etree.Element, error) {
	whole, err := p.verify(response)
	if err != nil {
		return nil, fmt.Errorf("the signature of the response: %w", err)
	}
	inner, base := child(response, assertionSpace, "Assertion"), response
	if whole != nil {
		base = whole
	}
	encrypted := child(base, assertionSpace, "EncryptedAssertion")
	if encrypted != nil {
		if inner, err = decrypted(base, o, s); err != nil {
			return nil, err
		}
	}
	if inner == nil {
		return nil, errors.New("the response has no assertion")
	}
	// As it came: the response's canonical form may have lost namespaces that this signature needs.
	assertion, err := p.verify(inner)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the signature of the assertion: %w", err)
	case assertion != nil:
		return assertion, nil
	case whole != nil && encrypted != nil:
		return detached(inner)
	case whole != nil:
		return detached(child(whole, assertionSpace, "Assertion"))
	}
	return nil, errors.New("neither the response nor its assertion is signed")
}

// verify returns an element as its signature covers it, nil when it has none.
func (p *provider) verify(el *etree.Element) (*etree.Element, error) {
	el, err := detached(el)
	if err != nil {
		return nil, err
	}
	signature := child(el, dsig.Namespace, dsig.SignatureTag)
	if signature == nil {
		return nil, nil
	}
	// Which key it is says the metadata, not the message: every one is tried.
	if info := child(signature, dsig.Namespace, dsig.KeyInfoTag); info != nil {
		signature.RemoveChild(info)
	}
	failed := errKey
	for _, key := range p.keys {
		check := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{key}})
		covered, err := check.Validate(el)
		if err == nil {
			return covered, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// detached returns a copy of an element that declares all namespaces that it knows.
func detached(el *etree.Element) (*etree.Element, error) {
	around, err := etreeutils.NSBuildParentContext(el)
	if err != nil {
		return nil, err
	}
	return etreeutils.NSDetatch(around, el)
}
