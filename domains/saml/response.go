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
func (p *provider) read(document []byte, e expected, o *opener) (assertion, error) {
	s := newShape()
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
	return p.assertion(root, e, o, s)
}

// assertion returns the assertion of a response if it is valid in every respect.
func (p *provider) assertion(response *etree.Element, e expected, o *opener, s *shape) (assertion, error) {
	covered, err := p.signedAssertion(response, o, s)
	if err == nil {
		err = o.nameID(child(covered, assertionSpace, "Subject"), s)
	}
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

// decrypted returns the assertion in the EncryptedAssertion of a response, in its place in a copy
// of the response.
func decrypted(response *etree.Element, o *opener, s *shape) (*etree.Element, error) {
	s.assertions = 0
	return o.open(child(response.Copy(), assertionSpace, "EncryptedAssertion"), "Assertion", s)
}

// shape checks that a response is unambiguous, so that what is signed is what is read: it has one
// assertion, unique ids, and nothing that some parsers skip. It also refuses weak signatures, and
// attributes that are encrypted by themselves. What is encrypted is seen after what is around it.
type shape struct {
	assertions int
	names      int // encrypted by themselves
	ids        map[string]bool
	inside     bool       // of what was decrypted
	path       []xml.Name // of the elements around
}

func newShape() *shape { return &shape{ids: map[string]bool{}} }

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
	case "EncryptedAttribute":
		return errors.New("an attribute is encrypted by itself: let the provider encrypt whole assertions, or nothing")
	case "EncryptedID":
		if s.names++; s.names > 1 || !s.isSubject() {
			return errors.New("it has an encrypted NameID that is not of its subject")
		}
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

// isSubject reports whether the element around is one whose NameID says who it is about.
func (s *shape) isSubject() bool {
	return len(s.path) > 0 && (s.path[len(s.path)-1] == xml.Name{
		Space: assertionSpace,
		Local: "Subject",
	} || s.path[len(s.path)-1] == xml.Name{Space: saml2, Local: "LogoutRequest"})
}

// encryption reports whether the element around is how something is encrypted, where SHA-1 does no
// harm.
func (s *shape) encryption() bool {
	return len(s.path) > 0 && s.path[len(s.path)-1] == xml.Name{Space: encSpace, Local: "EncryptionMethod"}
}
