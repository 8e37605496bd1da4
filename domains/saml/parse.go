package saml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"github.com/beevik/etree"
	xrv "github.com/mattermost/xml-roundtrip-validator"
)

// Bounds of documents from outside; real ones have some 10 KiB, a hundred elements and ten levels.
// They bound the work, too, which grows with the product of some of them.
const (
	maxDocument   = 1 << 20 // bytes
	maxElements   = 5000
	maxDepth      = 25
	maxAttributes = 30 // of one element
)

var errTooLong = fmt.Errorf("it has more than %d bytes", maxDocument)

// parse reads a well-formed document in UTF-8 without a document type, and so without entities. see
// is called for each token, and may refuse it.
func parse(document []byte, see func(xml.Token) error) (*etree.Element, error) {
	if len(document) > maxDocument {
		return nil, errTooLong
	}
	if err := walk(document, see); err != nil {
		return nil, err
	}
	if err := xrv.Validate(bytes.NewReader(document)); err != nil {
		return nil, err
	}
	tree := etree.NewDocument()
	if err := tree.ReadFromBytes(document); err != nil {
		return nil, err
	}
	return tree.Root(), nil
}

func walk(document []byte, see func(xml.Token) error) error {
	depth, roots, elements := 0, 0, 0
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.Token()
		switch {
		case err == io.EOF && roots != 1:
			return fmt.Errorf("it has %d root elements instead of one", roots)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth == 1 {
				roots++
			}
			if elements++; elements > maxElements || depth > maxDepth || len(t.Attr) > maxAttributes {
				return errors.New("it has too many elements, levels or attributes")
			}
		case xml.EndElement:
			depth--
		case xml.Directive:
			return errors.New("it has a document type or another directive")
		}
		if err := see(token); err != nil {
			return err
		}
	}
}

// child returns the first child of that name, nil for none.
func child(el *etree.Element, namespace, name string) *etree.Element {
	for _, c := range el.ChildElements() {
		if c.Tag == name && c.NamespaceURI() == namespace {
			return c
		}
	}
	return nil
}
