package samltest

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"io"
	"net/url"
	"testing"

	"github.com/beevik/etree"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"
)

// hashes are the hash functions of the algorithms of SignQuery.
var hashes = map[string]crypto.Hash{
	dsig.RSASHA1SignatureMethod:   crypto.SHA1,
	dsig.RSASHA256SignatureMethod: crypto.SHA256, dsig.RSASHA512SignatureMethod: crypto.SHA512,
}

// Query returns the query of a message with HTTP-Redirect, unsigned. parameter is SAMLRequest or
// SAMLResponse.
func Query(t testing.TB, parameter string, el *etree.Element, relayState string) string {
	t.Helper()
	is := is.New(t)
	tree := etree.NewDocument()
	tree.SetRoot(el.Copy())
	document, err := tree.WriteToBytes()
	is.NoErr(err)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	is.NoErr(err)
	_, err = w.Write(document)
	is.NoErr(err)
	is.NoErr(w.Close())
	query := parameter + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(packed.Bytes()))
	if relayState != "" {
		query += "&RelayState=" + url.QueryEscape(relayState)
	}
	return query
}

// SignQuery signs a query.
func (s Signer) SignQuery(t testing.TB, query, method string) string {
	t.Helper()
	query += "&SigAlg=" + url.QueryEscape(method)
	h := hashes[method].New()
	_, _ = io.WriteString(h, query) // never returns an error
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.Key, hashes[method], h.Sum(nil))
	is.New(t).NoErr(err)
	return query + "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
}

// Message returns the message in such a query.
func Message(t testing.TB, query url.Values, parameter string) *etree.Element {
	t.Helper()
	is := is.New(t)
	packed, err := base64.StdEncoding.DecodeString(query.Get(parameter))
	is.NoErr(err)
	document, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	is.NoErr(err)
	tree := etree.NewDocument()
	is.NoErr(tree.ReadFromBytes(document))
	return tree.Root()
}
