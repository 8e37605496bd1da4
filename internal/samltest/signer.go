package samltest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"
)

// Signer is a key with its certificate.
type Signer struct {
	Key  *rsa.PrivateKey
	Cert *x509.Certificate
}

// Two keys for all tests: making one takes longer than a test.
var (
	ours   = sync.OnceValue(func() Signer { return NewSigner(time.Now()) })
	theirs = sync.OnceValue(func() Signer { return NewSigner(time.Now()) })
)

// Ours returns the key of the provider.
func Ours() Signer { return ours() }

// Theirs returns the key of a stranger.
func Theirs() Signer { return theirs() }

// NewSigner returns a key whose certificate is valid for an hour around a time.
func NewSigner(around time.Time) Signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: around.Add(-30 * time.Minute), NotAfter: around.Add(30 * time.Minute)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return Signer{key, cert}
}

// Descriptor is the key as metadata has it.
func (s Signer) Descriptor() crewjam.KeyDescriptor {
	return crewjam.KeyDescriptor{Use: "signing", KeyInfo: crewjam.KeyInfo{X509Data: crewjam.X509Data{
		X509Certificates: []crewjam.X509Certificate{{Data: base64.StdEncoding.EncodeToString(s.Cert.Raw)}},
	}}}
}

// Sign puts a signature into an element that has none, after the issuer, as SAML has it.
func (s Signer) Sign(t testing.TB, el *etree.Element, method string) {
	t.Helper()
	is := is.New(t)
	c := dsig.NewDefaultSigningContext(dsig.TLSCertKeyStore(tls.Certificate{Certificate: [][]byte{s.Cert.Raw}, PrivateKey: s.Key, Leaf: s.Cert}))
	c.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	is.NoErr(c.SetSignatureMethod(method))
	signature, err := c.ConstructSignature(el, true)
	is.NoErr(err)
	el.InsertChildAt(1, signature)
}
