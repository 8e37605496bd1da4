package saml

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent/domains"
)

// message is a request or response that a browser takes to the provider.
type message struct {
	parameter  string // SAMLRequest or SAMLResponse
	element    *etree.Element
	relayState string
	key        *domains.KeyPair // signs it; nil: it goes unsigned
}

// to returns where the browser goes with a message, and the form that it posts there, nil for none.
func (m message) to(e endpoint) (location string, form url.Values, err error) {
	if !e.posts() {
		location, err = m.redirect(e.location)
		return location, nil, err
	}
	element := m.element
	if m.key != nil {
		if element, err = signed(element, *m.key); err != nil {
			return "", nil, err
		}
	}
	document, err := documentOf(element)
	if err != nil {
		return "", nil, err
	}
	form = url.Values{m.parameter: {base64.StdEncoding.EncodeToString(document)}}
	if m.relayState != "" {
		form.Set("RelayState", m.relayState)
	}
	return e.location, form, nil
}

// signed returns a copy of an element with its signature behind its first child, the issuer.
func signed(el *etree.Element, by domains.KeyPair) (*etree.Element, error) {
	el = el.Copy()
	c, err := dsig.NewSigningContext(by.Key, [][]byte{by.Certificate.Raw})
	if err != nil {
		return nil, err
	}
	c.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	if err := c.SetSignatureMethod(dsig.RSASHA256SignatureMethod); err != nil {
		return nil, err
	}
	signature, err := c.ConstructSignature(el, true)
	if err != nil {
		return nil, err
	}
	el.InsertChildAt(1, signature)
	return el, nil
}

// documentOf writes an element as a document of its own.
func documentOf(el *etree.Element) ([]byte, error) {
	tree := etree.NewDocument()
	tree.SetRoot(el.Copy())
	return tree.WriteToBytes()
}

// redirect returns an address with the message in its query. The signature is over the query as it
// is written.
func (m message) redirect(location string) (string, error) {
	document, err := documentOf(m.element)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(document); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	query := m.parameter + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(packed.Bytes()))
	if m.relayState != "" {
		query += "&RelayState=" + url.QueryEscape(m.relayState)
	}
	if m.key != nil {
		query += "&SigAlg=" + url.QueryEscape(dsig.RSASHA256SignatureMethod)
		sum := sha256.Sum256([]byte(query))
		signature, err := rsa.SignPKCS1v15(rand.Reader, m.key.Key, crypto.SHA256, sum[:])
		if err != nil {
			return "", err
		}
		query += "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
	}
	separator := "?"
	if strings.Contains(location, "?") {
		separator = "&"
	}
	return location + separator + query, nil
}
