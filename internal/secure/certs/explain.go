package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// Explain returns why TLS with a server failed and what its administrator can do. The text follows
// a colon and ends without a period. It is "" if err is not about TLS, such as a refused
// connection. Explain also explains connections that this service denies. Texts of certificates are
// quoted and shortened.
func Explain(err error) string {
	if errors.Is(err, egress.ErrDenied) {
		return "connections to its address are denied: " + egress.Remedy
	}
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok && e.Cert != nil {
		return unknownAuthority(e)
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok && e.Certificate != nil {
		return wrongName(e)
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Cert != nil {
		return invalid(e)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server does not speak TLS at this port. Name the port of TLS, or use the scheme without it"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return "the server has ended it (" + short(e.Err.Error()) +
			"). It must offer TLS 1.2 or newer, and must not ask for a certificate of this service"
	}
	if err == nil {
		return ""
	}
	switch text := err.Error(); { // crypto/tls has these only as texts
	case strings.Contains(text, "negative serial number"):
		return "the server's certificate has a negative serial number, which RFC 5280 forbids and Go does not read. " +
			"Issue it again with a positive one (openssl: -set_serial or -CAcreateserial; Windows: a new request " +
			"at the authority)"
	case strings.Contains(text, "failed to parse certificate"):
		return "the server's certificate cannot be read (" + short(text) + "). Issue it again"
	case strings.Contains(text, "unsupported protocol version"),
		strings.Contains(text, "protocol version not supported"):
		return "the server offers only versions of TLS before 1.2. Switch on TLS 1.2 or newer there"
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "):
		return "the handshake is refused (" + short(text) + ")"
	}
	return ""
}

func unknownAuthority(e x509.UnknownAuthorityError) string {
	hint := ""
	if _, why, ok := strings.Cut(e.Error(), "possibly because of "); ok {
		switch {
		case strings.Contains(why, "cannot sign"):
			return fmt.Sprintf("the certificate %s is signed by %s, which is not the certificate of an authority: "+
				"issue that one again with the basic constraint CA:TRUE",
				quoted(e.Cert.Subject.String()), quoted(e.Cert.Issuer.String()))
		case strings.Contains(why, "insecure algorithm"):
			return fmt.Sprintf(
				"the certificate %s is signed in a way that is not secure any more, such as with SHA-1: issue it "+
					"again with SHA-256",
				quoted(e.Cert.Subject.String()),
			)
		}
		hint = " (" + short(why) + ")"
	}
	if e.Cert.Subject.String() == e.Cert.Issuer.String() {
		return fmt.Sprintf(
			"the certificate %s is signed by itself, and not trusted here%s: set caCert to this certificate, in PEM",
			quoted(e.Cert.Subject.String()), hint,
		)
	}
	return fmt.Sprintf("the certificate %s is signed by %s, which is not trusted here%s: set caCert to the "+
		"certificate of that authority, in PEM, "+
		"with those of authorities between them if the server does not send these", quoted(e.Cert.Subject.String()),
		quoted(e.Cert.Issuer.String()), hint)
}

func wrongName(e x509.HostnameError) string {
	names := slices.Clone(e.Certificate.DNSNames)
	for _, ip := range e.Certificate.IPAddresses {
		names = append(names, ip.String())
	}
	kind := "DNS"
	if net.ParseIP(e.Host) != nil {
		kind = "IP"
	}
	if len(names) == 0 {
		return fmt.Sprintf("the certificate %s has no subject alternative name (SAN), and its common name does "+
			"not count any more: issue it again "+
			"with the SAN %s:%s", quoted(e.Certificate.Subject.String()), kind, e.Host)
	}
	more := ""
	if len(names) > 10 {
		names, more = names[:10], " and others"
	}
	for i := range names {
		names[i] = quoted(names[i])
	}
	return fmt.Sprintf("the certificate is for %s%s, not for %s: connect by a name that it has, or issue it again "+
		"with the SAN %s:%s",
		strings.Join(names, ", "), more, quoted(e.Host), kind, e.Host)
}

func invalid(e x509.CertificateInvalidError) string {
	of := "the certificate " + quoted(e.Cert.Subject.String())
	day := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
	switch e.Reason {
	case x509.Expired:
		if time.Now().Before(e.Cert.NotBefore) {
			return of + " is not valid before " + day(e.Cert.NotBefore) +
				": see whether the clocks of both machines are right"
		}
		return of + " has expired on " + day(e.Cert.NotAfter) + ": renew it"
	case x509.IncompatibleUsage:
		return of + " is not for servers: issue it again with the extended key usage serverAuth"
	case x509.NotAuthorizedToSign:
		return of + " has signed another one, but is not that of an authority: issue it again with the basic " +
			"constraint CA:TRUE"
	}
	return of + " is not valid (" + short(e.Error()) + ")"
}

// quoted returns a text of a certificate for a message.
func quoted(s string) string { return strconv.Quote(short(s)) }

// short returns the beginning of a text, in one line.
func short(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
