package saml

import (
	"context"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent/domains"
)

// The namespaces of XML Encryption, and its algorithms that are taken. RSA 1.5 is none of them, as
// it tells an attacker too much, nor is Triple DES.
const (
	encSpace   = "http://www.w3.org/2001/04/xmlenc#"
	enc11Space = "http://www.w3.org/2009/xmlenc11#"

	oaepMGF1 = encSpace + "rsa-oaep-mgf1p" // with SHA-1 in MGF1
	oaep     = enc11Space + "rsa-oaep"
)

// ciphers are the algorithms of content, best first, with the bytes of their keys.
var ciphers = []struct {
	algorithm string
	size      int
	open      func(cipher.Block, []byte) ([]byte, error)
}{
	{enc11Space + "aes256-gcm", 32, openGCM},
	{enc11Space + "aes128-gcm", 16, openGCM},
	{enc11Space + "aes192-gcm", 24, openGCM},
	{encSpace + "aes256-cbc", 32, openCBC},
	{encSpace + "aes128-cbc", 16, openCBC},
	{encSpace + "aes192-cbc", 24, openCBC},
}

// crypto/x509 links all of these. SHA-1 does no harm in OAEP, whose default it is.
var digests = map[string]crypto.Hash{
	"": crypto.SHA1, dsig.Namespace + "sha1": crypto.SHA1, encSpace + "sha256": crypto.SHA256,
	"http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384, encSpace + "sha512": crypto.SHA512,
}

var maskDigests = map[string]crypto.Hash{
	"": crypto.SHA1, enc11Space + "mgf1sha1": crypto.SHA1, enc11Space + "mgf1sha256": crypto.SHA256,
	enc11Space + "mgf1sha384": crypto.SHA384, enc11Space + "mgf1sha512": crypto.SHA512,
}

// maxDecryptions is how many keys are decrypted for one message: as many as a domain has keys, of
// which the right one is mostly the first. Each costs as much as a hundred checks of signatures.
const maxDecryptions = 3

// opener decrypts what is encrypted in one message.
type opener struct {
	keys  []domains.KeyPair
	left  int               // keys that may still be decrypted
	known map[string][]byte // decrypted keys, by what they were
	used  bool              // something is encrypted
}

// newOpener returns an opener with keys: first those that the metadata offers, or has offered.
func newOpener(k domains.Keys) *opener {
	o := &opener{left: maxDecryptions, known: map[string][]byte{}}
	for _, pair := range []*domains.KeyPair{k.Current, k.Previous, k.Next} {
		if pair != nil {
			o.keys = append(o.keys, *pair)
		}
	}
	return o
}

// slowly calls fn. Where something had to be decrypted, a failure takes as long as any: how long
// the work took would tell whoever sends changed ciphertexts what is in them.
func (o *opener) slowly(ctx context.Context, fn func() error) error {
	began := time.Now()
	err := fn()
	if err != nil && o.used {
		soonest := time.NewTimer(time.Until(began.Add(domains.MinRefusal)))
		defer soonest.Stop()
		select {
		case <-soonest.C:
		case <-ctx.Done():
		}
	}
	return err
}

// open puts what is in an encrypted element, an element with a name, in its place: it may use
// namespaces that are declared there.
func (o *opener) open(place *etree.Element, name string, s *shape) (*etree.Element, error) {
	o.used = true
	plain, err := o.decrypt(place)
	if err != nil {
		return nil, err
	}
	s.inside = true
	inner, err := parse(plain, s.see)
	if err != nil || inner.Tag != name {
		return nil, errDecrypt // the plain text of a damaged ciphertext is nothing to talk about
	}
	around := place.Parent()
	around.InsertChildAt(place.Index(), inner)
	around.RemoveChild(place)
	if inner.NamespaceURI() != assertionSpace {
		return nil, errDecrypt
	}
	return inner, nil
}

// nameID decrypts the EncryptedID of an element, if it has one. A signature over the element has
// been checked.
func (o *opener) nameID(of *etree.Element, s *shape) error {
	if of == nil {
		return nil
	}
	place := child(of, assertionSpace, "EncryptedID")
	if place == nil {
		return nil
	}
	_, err := o.open(place, "NameID", s)
	return err
}

// errDecrypt is the one error for whatever is wrong with a ciphertext: which it is would help to
// guess what is in it.
var errDecrypt = errors.New("the assertion or the NameID cannot be decrypted: does the provider have this " +
	"domain's present certificate, and is nothing damaged on the way?")

// decrypt returns what is in an EncryptedAssertion or EncryptedID.
func (o *opener) decrypt(encrypted *etree.Element) ([]byte, error) {
	if len(o.keys) == 0 {
		return nil, errors.New("it is encrypted, and this domain has no key yet: save it or roll its keys, and " +
			"let the provider read its metadata")
	}
	data := child(encrypted, encSpace, "EncryptedData")
	if data == nil {
		return nil, errDecrypt
	}
	algorithm := methodOf(data)
	content, err := cipherValue(data)
	if err != nil {
		return nil, err
	}
	for _, c := range ciphers {
		if c.algorithm != algorithm {
			continue
		}
		key, err := o.contentKey(encrypted, data, c.size)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, errDecrypt
		}
		return c.open(block, content)
	}
	return nil, errors.New("it is encrypted with an algorithm that is not taken: choose AES with GCM (or CBC) at " +
		"the provider")
}

// methodOf returns the algorithm of an encrypted element, "" for none.
func methodOf(el *etree.Element) string {
	if m := child(el, encSpace, "EncryptionMethod"); m != nil {
		return m.SelectAttrValue(dsig.AlgorithmAttr, "")
	}
	return ""
}

// cipherValue returns the ciphertext of an encrypted element.
func cipherValue(el *etree.Element) ([]byte, error) {
	data := child(el, encSpace, "CipherData")
	if data == nil {
		return nil, errDecrypt
	}
	value := child(data, encSpace, "CipherValue")
	if value == nil {
		return nil, errDecrypt // a reference to an address, which nobody follows
	}
	content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value.Text()), ""))
	if err != nil {
		return nil, errDecrypt
	}
	return content, nil
}

// wrappedKey is the key of a content, encrypted.
type wrappedKey struct {
	text    []byte
	options *rsa.OAEPOptions
}

// contentKey returns the key of the content: one of the encrypted keys in the content's KeyInfo or
// beside it. It decrypts none of too many.
func (o *opener) contentKey(encrypted, data *etree.Element, size int) ([]byte, error) {
	var all []wrappedKey
	for _, around := range []*etree.Element{child(data, dsig.Namespace, dsig.KeyInfoTag), encrypted} {
		if around == nil {
			continue
		}
		for _, el := range around.ChildElements() {
			if el.Tag != "EncryptedKey" || el.NamespaceURI() != encSpace {
				continue
			}
			if len(all) == maxDecryptions {
				return nil, fmt.Errorf("it is encrypted with more than %d keys", maxDecryptions)
			}
			options, err := oaepOptions(el)
			if err != nil {
				return nil, err
			}
			text, err := cipherValue(el)
			if err != nil {
				return nil, err
			}
			all = append(all, wrappedKey{text, options})
		}
	}
	for i, pair := range o.keys {
		for _, wrapped := range all {
			if key := o.unwrap(pair, wrapped); len(key) == size {
				o.keys[0], o.keys[i] = o.keys[i], o.keys[0] // what else is encrypted has been so for this one, too
				return key, nil
			}
		}
	}
	return nil, errDecrypt
}

// unwrap decrypts a key, unless it has been decrypted before, or too many have been; nil if it
// cannot be.
func (o *opener) unwrap(pair domains.KeyPair, w wrappedKey) []byte {
	id := fmt.Sprintf("%p %d %d %s", pair.Key, w.options.Hash, w.options.MGFHash, w.text)
	if key, ok := o.known[id]; ok {
		return key
	}
	if o.left == 0 {
		return nil
	}
	o.left--
	key, err := pair.Key.Decrypt(nil, w.text, w.options)
	if err != nil {
		key = nil
	}
	o.known[id] = key
	return key
}

// oaepOptions returns how a key is encrypted.
func oaepOptions(el *etree.Element) (*rsa.OAEPOptions, error) {
	method := child(el, encSpace, "EncryptionMethod")
	algorithm := methodOf(el)
	if algorithm != oaep && algorithm != oaepMGF1 {
		return nil, errors.New("its key is encrypted with an algorithm that is not taken, such as RSA 1.5: choose " +
			"RSA-OAEP at the provider")
	}
	digest, mask := "", ""
	if d := child(method, dsig.Namespace, dsig.DigestMethodTag); d != nil {
		digest = d.SelectAttrValue(dsig.AlgorithmAttr, "")
	}
	if m := child(method, enc11Space, "MGF"); m != nil && algorithm == oaep {
		mask = m.SelectAttrValue(dsig.AlgorithmAttr, "")
	}
	hash, known := digests[digest]
	maskHash, maskKnown := maskDigests[mask]
	if !known || !maskKnown || child(method, encSpace, "OAEPparams") != nil {
		return nil, errors.New("its key is encrypted with parameters of RSA-OAEP that are not taken")
	}
	return &rsa.OAEPOptions{Hash: hash, MGFHash: maskHash}, nil
}

func openGCM(block cipher.Block, content []byte) ([]byte, error) {
	aead, err := cipher.NewGCM(block)
	if err != nil || len(content) < aead.NonceSize() {
		return nil, errDecrypt
	}
	plain, err := aead.Open(nil, content[:aead.NonceSize()], content[aead.NonceSize():], nil)
	if err != nil {
		return nil, errDecrypt
	}
	return plain, nil
}

// openCBC decrypts what has no checksum: nothing of it counts before a signature over the assertion
// has been checked. Its last byte is the length of the padding, whose other bytes may be anything.
func openCBC(block cipher.Block, content []byte) ([]byte, error) {
	if len(content) < 2*aes.BlockSize || len(content)%aes.BlockSize != 0 {
		return nil, errDecrypt
	}
	plain := make([]byte, len(content)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, content[:aes.BlockSize]).CryptBlocks(plain, content[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errDecrypt
	}
	return plain[:len(plain)-padding], nil
}
