package saml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
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

// read returns the assertion of a response if the response is valid in every respect.
func (p *provider) read(document []byte, e expected) (assertion, error) {
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
	covered, err := p.signed(root)
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

// shape checks that a response is unambiguous, so that what is signed is what is read: it has one assertion, unique ids, and
// nothing that some parsers skip. It also refuses weak signatures and encrypted elements.
type shape struct {
	assertions int
	ids        map[string]bool
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
		return s.element(t)
	}
	return nil
}

func (s *shape) element(t xml.StartElement) error {
	switch t.Name.Local {
	case "EncryptedAssertion", "EncryptedID", "EncryptedAttribute":
		return errors.New("it is encrypted, and this service has no key: switch encryption off at the provider")
	case "Assertion":
		if s.assertions++; s.assertions > 1 {
			return errors.New("it has more than one assertion")
		}
	}
	for _, a := range t.Attr {
		switch {
		case strings.EqualFold(a.Name.Local, "ID"):
			if s.ids[a.Value] {
				return fmt.Errorf("it has the id %q twice", a.Value)
			}
			s.ids[a.Value] = true
		case a.Name.Local == dsig.AlgorithmAttr && strings.HasSuffix(a.Value, "sha1"):
			return errors.New("it is signed with SHA-1, which can be forged: choose SHA-256 at the provider")
		}
	}
	return nil
}
