package quickjs

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// A scheme is how a signature is made: with which kind of key, and of which digest of the data.
type scheme struct {
	rsa, pss, ecdsa, ed25519 bool
	digest                   crypto.Hash
}

// schemes are the algorithms of crypto.verify by name in lower case: those of JSON Web Signatures,
// and those of Node.js, where the kind of the key decides.
var schemes = map[string]scheme{
	"ed25519": {ed25519: true}, "eddsa": {ed25519: true},
	"rs256": {rsa: true, digest: crypto.SHA256},
	"rs384": {rsa: true, digest: crypto.SHA384}, "rs512": {rsa: true, digest: crypto.SHA512},
	"ps256": {pss: true, digest: crypto.SHA256},
	"ps384": {pss: true, digest: crypto.SHA384}, "ps512": {pss: true, digest: crypto.SHA512},
	"es256": {ecdsa: true, digest: crypto.SHA256},
	"es384": {ecdsa: true, digest: crypto.SHA384}, "es512": {ecdsa: true, digest: crypto.SHA512},
	"rsa-sha256": {rsa: true, digest: crypto.SHA256},
	"rsa-sha384": {rsa: true, digest: crypto.SHA384}, "rsa-sha512": {rsa: true, digest: crypto.SHA512},
	"sha256": {rsa: true, ecdsa: true, digest: crypto.SHA256},
	"sha384": {rsa: true, ecdsa: true, digest: crypto.SHA384},
	"sha512": {rsa: true, ecdsa: true, digest: crypto.SHA512},
}

// verifySignature reports whether one of the signatures is right. It returns an error if the
// algorithm is not known, or the key cannot be read or is one of another kind.
func verifySignature(algorithm string, key, data []byte, signatures ...[]byte) (bool, error) {
	name := strings.ReplaceAll(strings.ToLower(algorithm), "sha-", "sha")
	s, ok := schemes[name]
	if !ok {
		return false, fmt.Errorf(
			"the algorithm %q is not supported: use Ed25519, RS256, PS256, ES256 or sha256, or those with 384 or 512",
			algorithm,
		)
	}
	public, err := publicKey(key)
	if err != nil {
		return false, err
	}
	var digest []byte
	if s.digest != 0 {
		digest = sum(s.digest.New, data)
	}
	var verify func(signature []byte) bool
	switch k := public.(type) {
	case ed25519.PublicKey:
		if s.ed25519 {
			verify = func(signature []byte) bool { return ed25519.Verify(k, data, signature) }
		}
	case *rsa.PublicKey:
		switch {
		case s.rsa:
			verify = func(signature []byte) bool { return rsa.VerifyPKCS1v15(k, s.digest, digest, signature) == nil }
		case s.pss:
			verify = func(signature []byte) bool { return rsa.VerifyPSS(k, s.digest, digest, signature, nil) == nil }
		}
	case *ecdsa.PublicKey:
		if s.ecdsa {
			verify = func(signature []byte) bool { return verifyECDSA(k, digest, signature) }
		}
	}
	if verify == nil {
		return false, fmt.Errorf("the key is of another kind than the algorithm %s needs", algorithm)
	}
	for _, signature := range signatures {
		if verify(signature) {
			return true, nil
		}
	}
	return false, nil
}

// verifyECDSA reports whether a signature is right: both numbers one after the other, as in JSON
// Web Signatures, or in ASN.1, as with OpenSSL.
func verifyECDSA(k *ecdsa.PublicKey, digest, signature []byte) bool {
	return verifyPair(k, digest, signature) || ecdsa.VerifyASN1(k, digest, signature)
}

// verifyPair is verifyECDSA for both numbers one after the other.
func verifyPair(k *ecdsa.PublicKey, digest, signature []byte) bool {
	size := (k.Curve.Params().BitSize + 7) / 8
	return len(signature) == 2*size &&
		ecdsa.Verify(k, digest, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
}

var errKey = errors.New("the key is no public key: use PEM, a JSON Web Key, or the 32 bytes of an Ed25519 key in " +
	"hex or base64")

// The bounds of RSA keys: smaller ones are not safe, larger ones are slow.
const minRSA, maxRSA = 1024, 8192

// publicKey reads a public key: PEM of a key or certificate, a JSON Web Key, or an Ed25519 key's 32
// bytes, also in hex or base64.
func publicKey(b []byte) (any, error) {
	var public any
	var err error
	text := bytes.TrimSpace(b)
	switch {
	case len(b) == ed25519.PublicKeySize:
		return ed25519.PublicKey(b), nil
	case bytes.HasPrefix(text, []byte("{")):
		public, err = publicWebKey(text)
	case bytes.HasPrefix(text, []byte("-----BEGIN")):
		block, _ := pem.Decode(text)
		switch {
		case block == nil:
			return nil, errors.New("the key is no correct PEM")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil, errors.New("the key is a private one: signatures are verified with the public key")
		case block.Type == "RSA PUBLIC KEY":
			public, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case block.Type == "CERTIFICATE":
			var c *x509.Certificate
			if c, err = x509.ParseCertificate(block.Bytes); err == nil {
				public = c.PublicKey
			}
		default:
			public, err = x509.ParsePKIXPublicKey(block.Bytes)
		}
	default:
		raw := exactly(string(text), ed25519.PublicKeySize)
		if raw == nil {
			return nil, errKey
		}
		return ed25519.PublicKey(raw), nil
	}
	if err != nil {
		return nil, fmt.Errorf("the key cannot be read: %w", err)
	}
	switch k := public.(type) {
	case ed25519.PublicKey:
		return k, nil
	case *ecdsa.PublicKey:
		return k, nil
	case *rsa.PublicKey:
		if size := k.N.BitLen(); size < minRSA || size > maxRSA {
			return nil, fmt.Errorf("the RSA key has %d bits, where %d to %d are allowed", size, minRSA, maxRSA)
		}
		return k, nil
	}
	return nil, errors.New("the key is of a kind that is not supported: use RSA, ECDSA or Ed25519")
}

// publicWebKey reads a public JSON Web Key.
func publicWebKey(text []byte) (any, error) {
	var k webKey
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, errors.New("it is no JSON object with texts")
	}
	if k.D != "" {
		return nil, errors.New("it is a private key: signatures are verified with the public key")
	}
	return k.public()
}

// public returns the public part of a key.
func (k webKey) public() (any, error) {
	number := func(s string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			return nil
		}
		return b
	}
	switch k.Type {
	case "OKP":
		if x := number(k.X); k.Curve == "Ed25519" && len(x) == ed25519.PublicKeySize {
			return ed25519.PublicKey(x), nil
		}
	case "RSA":
		n, e := number(k.N), number(k.E)
		exponent := new(big.Int).SetBytes(e)
		if len(n) > 0 && len(n) <= maxRSA/8 && exponent.IsInt64() && exponent.Int64() >= 3 &&
			exponent.Int64() < 1<<31 && exponent.Bit(0) == 1 {
			return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent.Int64())}, nil
		}
	case "EC":
		curve, x, y := curves[k.Curve], number(k.X), number(k.Y)
		if curve == nil {
			break
		}
		if size := (curve.Params().BitSize + 7) / 8; len(x) == size && len(y) == size {
			return ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, x...), y...))
		}
	}
	return nil, errors.New("it is no correct JSON Web Key of the type RSA, EC (P-256, P-384, P-521) or OKP (Ed25519)")
}

// exactly returns the n bytes that text stands for in hex or base64, nil if it stands for none.
func exactly(text string, n int) []byte {
	if b, err := hex.DecodeString(text); err == nil && len(b) == n {
		return b
	}
	if b, err := fromBase64(text); err == nil && len(b) == n {
		return b
	}
	return nil
}

// sealed begins every text that encrypt returns: the version of its format.
const sealed = "v1."

// secretCipher returns AES-256-GCM with a key of 32 bytes, also in hex or base64. A passphrase is
// refused: it would have to be stretched.
func secretCipher(key []byte) (cipher.AEAD, error) {
	const size = 32
	if len(key) != size {
		key = exactly(strings.TrimSpace(string(key)), size)
	}
	if key == nil {
		return nil, errors.New("the key must be 32 bytes, or these in hex or base64, such as from openssl rand " +
			"-base64 32")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// encrypt encrypts data with AES-256-GCM and returns text: the version, a random nonce and the
// encrypted data in base64.
func encrypt(key, data []byte) (string, error) {
	aead, err := secretCipher(key)
	if err != nil {
		return "", err
	}
	return sealed + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, data, nil)), nil
}

// decrypt returns what encrypt has encrypted with the same key.
func decrypt(key []byte, text string) ([]byte, error) {
	aead, err := secretCipher(key)
	if err != nil {
		return nil, err
	}
	encoded, ok := strings.CutPrefix(text, sealed)
	if !ok {
		return nil, errors.New("the text was not made by encrypt")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, errors.New("the text was not made by encrypt")
	}
	data, err := aead.Open(nil, nil, b, nil)
	if err != nil {
		return nil, errors.New("the text was changed, or encrypted with another key")
	}
	return data, nil
}

// nativeVerify verifies a signature with a public key: algorithm, key, data, signature as bytes or
// as a string in hex or base64.
func nativeVerify(m *vm, in arguments) value {
	signatures := [][]byte{in.b[2]}
	if isString(in.all[3]) {
		text := strings.TrimSpace(string(in.b[2]))
		signatures = nil
		if b, err := hex.DecodeString(text); err == nil {
			signatures = append(signatures, b)
		}
		if b, err := fromBase64(text); err == nil {
			signatures = append(signatures, b)
		}
	}
	right, err := verifySignature(in.s[0], in.b[0], in.b[1], signatures...)
	if err != nil {
		return m.throw("%s", err)
	}
	return newBool(right)
}

func nativeEncrypt(m *vm, in arguments) value {
	text, err := encrypt(in.b[0], in.b[1])
	if err != nil {
		return m.throw("%s", err)
	}
	return m.newString(text)
}

func nativeDecrypt(m *vm, in arguments) value {
	return m.orThrow(decrypt(in.b[0], in.s[0]))
}
