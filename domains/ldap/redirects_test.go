package ldap

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
)

// certificate returns a new certificate in PEM, as JSON text.
func certificate(t *testing.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.New(t).NoErr(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	is.New(t).NoErr(err)
	text, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	is.New(t).NoErr(err)
	return string(text)
}

// TestRedirects: which changes of a configuration send the bind password elsewhere, or let others
// read it.
func TestRedirects(t *testing.T) {
	cert, other := certificate(t), certificate(t)
	for _, c := range []struct{ before, after, want string }{
		{`"url": "ldap://a"`, `"url": "ldap://a"`, ""},
		{`"url": "ldap://a"`, `"url": "LDAP://A.:389/", "userFilter": "(a=b)"`, ""},
		{`"url": "ldaps://a"`, `"url": "ldaps://a:636"`, ""},
		{`"url": "ldap://a"`, `"url": "ldap://a", "startTLS": true`, ""},
		{`"url": "ldap://a", "startTLS": true`, `"url": "ldap://a"`, "startTLS"},
		{`"url": "ldap://a"`, `"url": "ldap://b"`, "url"},
		{`"url": "ldap://a"`, `"url": "ldap://a:390"`, "url"},
		{`"url": "ldaps://a"`, `"url": "ldap://a:636"`, "url"},
		{`"url": "ldaps://a"`, `"url": "ldaps://a", "caCert": ` + cert, "caCert"},
		{`"url": "ldaps://a", "caCert": ` + cert, `"url": "ldaps://a", "caCert": ` + other, "caCert"},
		{
			`"url": "ldaps://a", "caCert": ` + cert,
			`"url": "ldaps://a", "caCert": ` + strings.Replace(cert, `"`, `"\n`, 1), "",
		},
		{`"url": "ldap://a"`, `"url": "ldap://a", "hosts": ["b"]`, "hosts"},
		{`"url": "ldap://a", "hosts": ["b"]`, `"url": "ldap://b", "hosts": ["ldap://A:389"]`, ""},
		{`"url": "ldap://a", "hosts": ["b", "c"]`, `"url": "ldap://c"`, ""},
		{`"url": "ldap://a", "hosts": ["b"]`, `"url": "ldap://b", "hosts": ["d"]`, "hosts"},
		{`"url": "ldaps://a", "hosts": ["b"]`, `"url": "ldap://b", "startTLS": true`, "url"},
		{`"url": "ldaps://a", "caCert": ` + cert, `"url": "ldaps://a"`, ""}, // fewer are trusted than before
	} {
		open := func(d domains.Driver, config string) domains.Realm {
			r, err := d.Open(json.RawMessage(`{"baseDN": "dc=x", "bindDN": "cn=y", "bindPassword": "z", ` + config +
				`}`))
			is.New(t).NoErr(err)
			return r
		}
		if got := open(LDAP{}, c.after).(domains.SecretSender).Redirects(open(AD{}, c.before)); got != c.want {
			t.Errorf("%.40s to %.40s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}
