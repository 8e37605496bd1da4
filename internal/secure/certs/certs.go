// Package certs reads certificates that administrators write into a configuration, and explains to
// them why TLS with a server fails. Drivers of domains import it.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// MaxBytes is the most bytes of the text of certificates.
const MaxBytes = 256 << 10

// Trusted are the certificates of servers, or of authorities, that a configuration trusts in
// addition to those of the system.
type Trusted struct {
	Pool *x509.CertPool // with those of the system; nil: only those
	DER  []string       // those of the configuration
}

// Lacks reports whether other has a certificate that t does not have.
func (t Trusted) Lacks(other Trusted) bool {
	had := make(map[string]bool, len(t.DER))
	for _, der := range t.DER {
		had[der] = true
	}
	for _, der := range other.DER {
		if !had[der] {
			return true
		}
	}
	return false
}

// Transport returns next, or http.DefaultTransport if next is nil. If t has certificates, it
// returns a copy of it that also trusts them. member is the member of the configuration that has
// the certificates. It returns errs.Invalid if next is of a type that cannot be copied.
func (t Trusted) Transport(next http.RoundTripper, member string) (http.RoundTripper, error) {
	if next == nil {
		next = http.DefaultTransport
	}
	if t.Pool == nil {
		return next, nil
	}
	own, ok := next.(*http.Transport)
	ours, traced := next.(egress.Transport)
	if traced {
		own = ours.Transport
	}
	if !ok && !traced {
		return nil, errs.New(
			errs.Invalid,
			"%s must be left out: the program that this service is part of has its own way to connect", member,
		)
	}
	own = own.Clone()
	if own.TLSClientConfig == nil {
		own.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	own.TLSClientConfig.RootCAs = t.Pool
	own.DisableKeepAlives = true // the connections of a realm that is dropped are never closed
	if traced {
		return egress.Transport{Transport: own}, nil
	}
	return own, nil
}

// block matches one PEM block, even if its lines are indented or joined.
var block = regexp.MustCompile(`-----BEGIN ([A-Z0-9 ]+)-----([^-]*)(-----END ([A-Z0-9 ]+)-----)?`)

// Read reads the PEM certificates in the text of a member of a configuration. It ignores other text
// around them, such as comments, "Bag Attributes" and a byte order mark, and accepts indented or
// joined lines. It returns the zero Trusted for "". It returns errs.Invalid, with a message that
// begins with the name of the member.
func Read(member, text string) (Trusted, error) {
	if text == "" {
		return Trusted{}, nil
	}
	if len(text) > MaxBytes {
		return Trusted{}, errs.New(errs.Invalid, "%s must be of at most %d bytes", member, MaxBytes)
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // the system does not have any
		pool = x509.NewCertPool()
	}
	all := Trusted{Pool: pool}
	for _, found := range block.FindAllStringSubmatch(text, -1) {
		kind, body, end := found[1], found[2], found[4]
		switch {
		case strings.Contains(kind, "PRIVATE KEY"):
			return Trusted{}, errs.New(
				errs.Invalid,
				"%s must be certificates in PEM: a private key is among them, which must stay where it belongs",
				member,
			)
		case kind == "CERTIFICATE REQUEST", kind == "NEW CERTIFICATE REQUEST", kind == "PKCS7",
			kind == "TRUSTED CERTIFICATE":
			return Trusted{}, errs.New(
				errs.Invalid, "%s must be certificates in PEM, with -----BEGIN CERTIFICATE-----: a %s is none",
				member, kind,
			)
		case kind != "CERTIFICATE" && kind != "X509 CERTIFICATE":
			continue // parameters, revocation lists
		}
		nth := strconv.Itoa(len(all.DER) + 1)
		der, err := base64.StdEncoding.DecodeString(base64Only.Replace(strings.Join(strings.Fields(body), "")))
		if end != kind || err != nil {
			return Trusted{}, errs.New(
				errs.Invalid, "%s must be certificates in PEM: number %s is incomplete or not in base64",
				member, nth,
			)
		}
		cert, err := x509.ParseCertificate(der)
		switch {
		case err != nil && hasNegativeSerial(der):
			return Trusted{}, errs.Wrap(errs.Invalid, err,
				"%s must be certificates with a positive serial number: that of number %s is negative, which "+
					"RFC 5280 forbids. Issue it again with a positive one", member, nth)
		case err != nil:
			return Trusted{}, errs.Wrap(
				errs.Invalid, err, "%s must be certificates in PEM: number %s cannot be read (%s)", member, nth,
				short(err.Error()),
			)
		}
		all.Pool.AddCert(cert)
		all.DER = append(all.DER, string(der))
	}
	if len(all.DER) == 0 {
		return Trusted{}, errs.New(
			errs.Invalid, "%s must be certificates in PEM, with -----BEGIN CERTIFICATE-----", member,
		)
	}
	return all, nil
}

// base64Only removes remains of copies from JSON and from Windows.
var base64Only = strings.NewReplacer(`\r`, "", `\n`, "", "\ufeff", "")

// hasNegativeSerial reports whether a certificate that cannot be parsed has a negative serial
// number.
func hasNegativeSerial(der []byte) bool {
	var outer struct{ TBS, Algorithm, Signature asn1.RawValue }
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		return false
	}
	rest := outer.TBS.Bytes
	for range 2 { // the version, and the serial number
		var v asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &v); err != nil {
			return false
		}
		if v.Class == asn1.ClassUniversal && v.Tag == asn1.TagInteger {
			serial := new(big.Int)
			_, err := asn1.Unmarshal(v.FullBytes, &serial)
			return err == nil && serial.Sign() < 0
		}
	}
	return false
}
