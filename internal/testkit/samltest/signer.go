package samltest

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"slices"
	"strings"
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

// Two keys for all tests, because generating one takes longer than a test.
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
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    around.Add(-30 * time.Minute),
		NotAfter:     around.Add(30 * time.Minute),
	}
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

// Descriptor returns the key in the form for metadata.
func (s Signer) Descriptor() crewjam.KeyDescriptor {
	return crewjam.KeyDescriptor{Use: "signing", KeyInfo: crewjam.KeyInfo{X509Data: crewjam.X509Data{
		X509Certificates: []crewjam.X509Certificate{{Data: base64.StdEncoding.EncodeToString(s.Cert.Raw)}},
	}}}
}

// Sign adds a signature to an element without one, after the issuer, as SAML requires.
func (s Signer) Sign(t testing.TB, el *etree.Element, method string) {
	t.Helper()
	is := is.New(t)
	c := dsig.NewDefaultSigningContext(dsig.TLSCertKeyStore(tls.Certificate{
		Certificate: [][]byte{s.Cert.Raw},
		PrivateKey:  s.Key,
		Leaf:        s.Cert,
	}))
	c.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	is.NoErr(c.SetSignatureMethod(method))
	signature, err := c.ConstructSignature(el, true)
	is.NoErr(err)
	el.InsertChildAt(1, signature)
}

// Encryption has the algorithms for encrypting.
type Encryption struct {
	Content string // such as aes256-gcm or aes128-cbc
	Key     string // of RSA-OAEP: the hash; "" for SHA-1. rsa15 for RSA 1.5
	Beside  bool   // put the key beside the content instead of in it
}

const (
	xmlenc   = "http://www.w3.org/2001/04/xmlenc#"
	xmlenc11 = "http://www.w3.org/2009/xmlenc11#"
)

// Encrypt encrypts a document for a certificate, as an EncryptedAssertion.
func Encrypt(t testing.TB, to *x509.Certificate, plain []byte, how Encryption) *etree.Element {
	t.Helper()
	is := is.New(t)
	size, mode, space := map[string]int{
		"aes128": 16,
		"aes192": 24,
		"aes256": 32,
	}[how.Content[:6]], how.Content[7:], xmlenc
	key := make([]byte, size)
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	is.NoErr(err)
	var content []byte
	if mode == "gcm" {
		space = xmlenc11
		aead, err := cipher.NewGCMWithRandomNonce(block)
		is.NoErr(err)
		content = aead.Seal(nil, nil, plain, nil)
	} else {
		padding := aes.BlockSize - len(plain)%aes.BlockSize
		padded := append(slices.Clone(plain), make([]byte, padding)...)
		padded[len(padded)-1] = byte(padding)
		content = make([]byte, aes.BlockSize+len(padded))
		_, _ = rand.Read(content[:aes.BlockSize])
		cipher.NewCBCEncrypter(block, content[:aes.BlockSize]).CryptBlocks(content[aes.BlockSize:], padded)
	}

	encrypted := etree.NewElement("saml:EncryptedAssertion")
	encrypted.CreateAttr("xmlns:saml", "urn:oasis:names:tc:SAML:2.0:assertion")
	data := encrypted.CreateElement("xenc:EncryptedData")
	data.CreateAttr("xmlns:xenc", xmlenc)
	data.CreateAttr("Type", xmlenc+"Element")
	data.CreateElement("xenc:EncryptionMethod").CreateAttr("Algorithm", space+how.Content)
	info := data.CreateElement("ds:KeyInfo")
	info.CreateAttr("xmlns:ds", dsig.Namespace)
	data.CreateElement("xenc:CipherData").CreateElement("xenc:CipherValue").SetText(
		base64.StdEncoding.EncodeToString(content),
	)
	if how.Beside {
		info.CreateElement("ds:RetrievalMethod").CreateAttr("URI", "#key")
		info = encrypted
	}
	info.AddChild(encryptedKey(t, to, key, how))
	return encrypted
}

func encryptedKey(t testing.TB, to *x509.Certificate, key []byte, how Encryption) *etree.Element {
	t.Helper()
	public, _ := to.PublicKey.(*rsa.PublicKey)
	el := etree.NewElement("xenc:EncryptedKey")
	el.CreateAttr("xmlns:xenc", xmlenc)
	el.CreateAttr("Id", "key")
	method := el.CreateElement("xenc:EncryptionMethod")
	part := func(name, space, algorithm string) {
		p := method.CreateElement(name)
		prefix, _, _ := strings.Cut(name, ":")
		p.CreateAttr("xmlns:"+prefix, space)
		p.CreateAttr("Algorithm", algorithm)
	}
	var wrapped []byte
	var err error
	switch how.Key {
	case "rsa15":
		method.CreateAttr("Algorithm", xmlenc+"rsa-1_5")
		//lint:ignore SA1019 the service has to refuse it
		wrapped, err = rsa.EncryptPKCS1v15(rand.Reader, public, key)
	case "sha256":
		method.CreateAttr("Algorithm", xmlenc11+"rsa-oaep")
		part("ds:DigestMethod", dsig.Namespace, xmlenc+"sha256")
		part("xenc11:MGF", xmlenc11, xmlenc11+"mgf1sha256")
		wrapped, err = rsa.EncryptOAEP(crypto.SHA256.New(), rand.Reader, public, key, nil)
	default:
		method.CreateAttr("Algorithm", xmlenc+"rsa-oaep-mgf1p")
		part("ds:DigestMethod", dsig.Namespace, dsig.Namespace+"sha1")
		wrapped, err = rsa.EncryptOAEP(crypto.SHA1.New(), rand.Reader, public, key, nil)
	}
	is.New(t).NoErr(err)
	el.CreateElement("xenc:CipherData").CreateElement("xenc:CipherValue").SetText(
		base64.StdEncoding.EncodeToString(wrapped),
	)
	return el
}
