package saml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent/domains"
)

// assertionSpace is the namespace of assertions.
const assertionSpace = "urn:oasis:names:tc:SAML:2.0:assertion"

// assertion is one as it was signed.
type assertion struct {
	crewjam.Assertion
	audiences []audiences // every one must have this service; crewjam's type keeps one audience of each
}

type audiences struct {
	Audience []string `xml:"Audience"`
}

// read returns the assertion of a response if the response is valid in every respect. keys decrypt it.
func (p *provider) read(document []byte, e expected, keys []domains.KeyPair) (assertion, error) {
	s := shape{ids: map[string]bool{}}
	root, err := parse(document, s.see)
	if err != nil {
		return assertion{}, fmt.Errorf("the response cannot be taken: %w", err)
	}
	var r crewjam.Response
	if err := xml.Unmarshal(document, &r); err != nil {
		return assertion{}, fmt.Errorf("this is no response: %w", err)
	}
	if err := e.response(r, child(root, dsig.Namespace, dsig.SignatureTag) != nil); err != nil {
		return assertion{}, err
	}
	a, err := p.assertion(root, e, keys, &s)
	if err != nil && child(root, assertionSpace, "EncryptedAssertion") != nil {
		err = fmt.Errorf("%w%w", errOpened, err)
	}
	return a, err
}

// errOpened marks what went wrong with a response that has something encrypted.
var errOpened = errors.New("")

// assertion returns the assertion of a response if it is valid in every respect.
func (p *provider) assertion(response *etree.Element, e expected, keys []domains.KeyPair, s *shape) (assertion, error) {
	covered, err := p.signedAssertion(response, keys, s)
	if err != nil {
		return assertion{}, err
	}
	a, err := decode(covered)
	if err != nil {
		return assertion{}, err
	}
	return a, e.assertion(a)
}

// decode reads an assertion that a signature covers.
func decode(covered *etree.Element) (assertion, error) {
	tree := etree.NewDocument()
	tree.SetRoot(covered)
	text, err := tree.WriteToBytes()
	if err != nil {
		return assertion{}, err
	}
	var a assertion
	if err := xml.Unmarshal(text, &a.Assertion); err != nil {
		return assertion{}, err
	}
	var more struct {
		Restrictions []audiences `xml:"Conditions>AudienceRestriction"`
	}
	err = xml.Unmarshal(text, &more)
	a.audiences = more.Restrictions
	return a, err
}

// decrypted returns the assertion in the EncryptedAssertion of a response, in its place in a copy of the response: it may use namespaces
// that are declared there.
func decrypted(response *etree.Element, keys []domains.KeyPair, s *shape) (*etree.Element, error) {
	around := response.Copy()
	place := child(around, assertionSpace, "EncryptedAssertion")
	plain, err := decrypt(place, keys)
	if err != nil {
		return nil, err
	}
	s.assertions, s.inside = 0, true
	inner, err := parse(plain, s.see)
	if err != nil || inner.Tag != "Assertion" {
		return nil, errDecrypt // the plain text of a damaged ciphertext is nothing to talk about
	}
	around.InsertChildAt(place.Index(), inner)
	around.RemoveChild(place)
	if inner.NamespaceURI() != assertionSpace {
		return nil, errDecrypt
	}
	return inner, nil
}

// shape checks that a response is unambiguous, so that what is signed is what is read: it has one assertion, unique ids, and
// nothing that some parsers skip. It also refuses weak signatures and elements that are encrypted by themselves. What is in an
// encrypted assertion is seen after what is around it.
type shape struct {
	assertions int
	ids        map[string]bool
	inside     bool       // of what was decrypted
	path       []xml.Name // of the elements around
}

func (s *shape) see(token xml.Token) error {
	switch t := token.(type) {
	case xml.Comment:
		return errors.New("it has a comment")
	case xml.ProcInst:
		if t.Target != "xml" {
			return errors.New("it has a processing instruction")
		}
	case xml.StartElement:
		if err := s.element(t); err != nil {
			return err
		}
		s.path = append(s.path, t.Name)
	case xml.EndElement:
		s.path = s.path[:len(s.path)-1]
	}
	return nil
}

func (s *shape) element(t xml.StartElement) error {
	switch t.Name.Local {
	case "EncryptedID", "EncryptedAttribute":
		return errors.New("its NameID or an attribute is encrypted by itself: let the provider encrypt whole assertions, or nothing")
	case "Assertion", "EncryptedAssertion":
		if s.assertions++; s.assertions > 1 {
			return errors.New("it has more than one assertion")
		}
		if s.inside && t.Name.Local != "Assertion" {
			return errors.New("it is encrypted twice")
		}
	}
	for _, a := range t.Attr {
		switch {
		case strings.EqualFold(a.Name.Local, "ID"):
			if s.ids[a.Value] {
				return fmt.Errorf("it has the id %q twice", a.Value)
			}
			s.ids[a.Value] = true
		case a.Name.Local == dsig.AlgorithmAttr && strings.HasSuffix(a.Value, "sha1") && !s.encryption():
			return errors.New("it is signed with SHA-1, which can be forged: choose SHA-256 at the provider")
		}
	}
	return nil
}

// encryption reports whether the element around is how something is encrypted, where SHA-1 does no harm.
func (s *shape) encryption() bool {
	return len(s.path) > 0 && s.path[len(s.path)-1] == xml.Name{Space: encSpace, Local: "EncryptionMethod"}
}
