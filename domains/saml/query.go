package saml

import (
	"bytes"
	"compress/flate"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	dsig "github.com/russellhaering/goxmldsig"
)

// query is a message by HTTP-Redirect as it came.
type query struct {
	message    string // in base64
	relayState string
	algorithm  string
	signature  string // in base64, "" for none
	signed     string // the part of the query that the signature is over
}

// readQuery finds a message and its signature in a query. The parameters of the protocol must be
// there once, and spelled as they are: what is signed is their text in the query, and what is read
// is that text.
func readQuery(parameter, raw string) (q query, err error) {
	values := map[string]*string{
		parameter:    &q.message,
		"RelayState": &q.relayState,
		"SigAlg":     &q.algorithm,
		"Signature":  &q.signature,
	}
	came := map[string]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		to, known := values[name]
		if !known {
			if plain, err := url.QueryUnescape(name); err != nil || values[plain] != nil {
				return query{}, fmt.Errorf("the query has a parameter %q", name)
			}
			continue
		}
		if _, twice := came[name]; twice {
			return query{}, fmt.Errorf("the query has %s twice", name)
		}
		came[name] = pair
		if *to, err = url.QueryUnescape(value); err != nil {
			return query{}, err
		}
	}
	if q.message == "" || len(q.message) > maxDocument {
		return query{}, fmt.Errorf("there is no %s of a sensible size", parameter)
	}
	var signed []string
	for _, name := range []string{parameter, "RelayState", "SigAlg"} {
		if pair, ok := came[name]; ok {
			signed = append(signed, pair)
		}
	}
	q.signed = strings.Join(signed, "&")
	return q, nil
}

// querySignatures are the algorithms of signatures that are taken.
var querySignatures = map[string]x509.SignatureAlgorithm{
	dsig.RSASHA256SignatureMethod: x509.SHA256WithRSA,
	dsig.RSASHA384SignatureMethod: x509.SHA384WithRSA, dsig.RSASHA512SignatureMethod: x509.SHA512WithRSA,
}

// verifyQuery checks the signature of a query. A key counts as long as its certificate.
func (p *provider) verifyQuery(q query) error {
	algorithm, ok := querySignatures[q.algorithm]
	if !ok {
		return fmt.Errorf("it is signed with %q: choose RSA with SHA-256 at the provider", q.algorithm)
	}
	signature, err := base64.StdEncoding.DecodeString(q.signature)
	if err != nil {
		return fmt.Errorf("the signature is not in base64: %w", err)
	}
	now := time.Now()
	for _, key := range p.keys {
		if !now.Before(key.NotBefore) && !now.After(key.NotAfter) &&
			key.CheckSignature(algorithm, []byte(q.signed), signature) == nil {
			return nil
		}
	}
	return errKey
}

// document returns the XML of the message.
func (q query) document() ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(q.message)
	if err != nil {
		return nil, err
	}
	document, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxDocument+1))
	if err == nil && len(document) > maxDocument {
		err = errTooLong
	}
	return document, err
}
