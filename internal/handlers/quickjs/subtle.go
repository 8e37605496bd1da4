package quickjs

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math/big"
	"strconv"

	lib "modernc.org/libquickjs"
)

// What crypto.subtle computes. A key is DER, PKCS #8 of a private and SPKI of a public one, which
// each call reads anew.

// webHashes are the hashes of the Web Cryptography API.
var webHashes = map[string]struct {
	id  crypto.Hash
	new func() hash.Hash
}{
	"SHA-1": {crypto.SHA1, sha1.New}, "SHA-256": {crypto.SHA256, sha256.New},
	"SHA-384": {crypto.SHA384, sha512.New384}, "SHA-512": {crypto.SHA512, sha512.New},
}

// curves are the curves by the names of JSON Web Keys.
var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// keyInfo is what a script sees of a key.
type keyInfo struct {
	Type     string `json:"-"` // "public" or "private"
	Bits     int    `json:"bits,omitempty"`
	Exponent string `json:"exponent,omitempty"` // base64, without leading zeros
	Curve    string `json:"curve,omitempty"`
}

// describeKey returns the DER of a key of a kind, "RSA", "EC" or "OKP", and what is to be seen of
// it.
func describeKey(kind string, key any) (info keyInfo, der []byte, err error) {
	info.Type = "private"
	public := key
	if private, ok := key.(crypto.Signer); ok {
		public = private.Public()
		der, err = x509.MarshalPKCS8PrivateKey(key)
	} else {
		info.Type = "public"
		der, err = x509.MarshalPKIXPublicKey(key)
	}
	if err != nil {
		return info, nil, errors.New("the key is of a kind that is not supported")
	}
	switch k := public.(type) {
	case *rsa.PublicKey:
		if size := k.N.BitLen(); size < minRSA || size > maxRSA {
			return info, nil, fmt.Errorf("the RSA key has %d bits, where %d to %d are allowed", size, minRSA, maxRSA)
		}
		if kind == "RSA" {
			info.Bits, info.Exponent = k.N.BitLen(), base64.StdEncoding.EncodeToString(big.NewInt(int64(k.E)).Bytes())
			return info, der, nil
		}
	case *ecdsa.PublicKey:
		if kind == "EC" && curves[k.Curve.Params().Name] != nil {
			info.Curve = k.Curve.Params().Name
			return info, der, nil
		}
	case ed25519.PublicKey:
		if kind == "OKP" {
			info.Curve = "Ed25519"
			return info, der, nil
		}
	}
	return info, nil, errors.New("the key is of another kind than the algorithm needs")
}

// importedKey reads a key in one of the formats of importKey.
func importedKey(format string, data []byte, kind, curve string) (any, error) {
	switch format {
	case "spki":
		return x509.ParsePKIXPublicKey(data)
	case "pkcs8":
		return x509.ParsePKCS8PrivateKey(data)
	case "raw":
		if kind == "OKP" && len(data) == ed25519.PublicKeySize {
			return ed25519.PublicKey(data), nil
		}
		if c := curves[curve]; kind == "EC" && c != nil {
			return ecdsa.ParseUncompressedPublicKey(c, data)
		}
		return nil, errors.New("a raw key is that of a curve, with all of its bytes")
	case "jwk":
		return privateOrPublic(data)
	}
	return nil, fmt.Errorf("the format %s is not supported: use raw, spki, pkcs8 or jwk", format)
}

// webKey is a JSON Web Key.
type webKey struct {
	Type  string `json:"kty"`
	Curve string `json:"crv,omitempty"`
	N     string `json:"n,omitempty"`
	E     string `json:"e,omitempty"`
	X     string `json:"x,omitempty"`
	Y     string `json:"y,omitempty"`
	D     string `json:"d,omitempty"`
	P     string `json:"p,omitempty"`
	Q     string `json:"q,omitempty"`
	DP    string `json:"dp,omitempty"`
	DQ    string `json:"dq,omitempty"`
	QI    string `json:"qi,omitempty"`
}

// privateOrPublic reads a JSON Web Key.
func privateOrPublic(text []byte) (any, error) {
	var k webKey
	var more struct {
		Other json.RawMessage `json:"oth"`
	}
	if json.Unmarshal(text, &k) != nil || json.Unmarshal(text, &more) != nil || more.Other != nil {
		return nil, errors.New("it is no JSON Web Key with texts")
	}
	key, err := k.public()
	if err != nil || k.D == "" {
		return key, err
	}
	secret, err := base64.RawURLEncoding.DecodeString(k.D)
	if err != nil {
		return nil, errors.New("its d is no base64url")
	}
	switch public := key.(type) {
	case ed25519.PublicKey:
		if len(secret) == ed25519.SeedSize {
			private := ed25519.NewKeyFromSeed(secret)
			if public.Equal(private.Public()) {
				return private, nil
			}
		}
	case *ecdsa.PublicKey:
		private, err := ecdsa.ParseRawPrivateKey(public.Curve, secret)
		if err == nil && private.PublicKey.Equal(public) {
			return private, nil
		}
	case *rsa.PublicKey:
		p, err1 := base64.RawURLEncoding.DecodeString(k.P)
		q, err2 := base64.RawURLEncoding.DecodeString(k.Q)
		if err1 != nil || err2 != nil || len(p) == 0 || len(q) == 0 || len(p)+len(q)+len(secret) > maxRSA/2 {
			break
		}
		private := &rsa.PrivateKey{
			PublicKey: *public,
			D:         new(big.Int).SetBytes(secret),
			Primes:    []*big.Int{new(big.Int).SetBytes(p), new(big.Int).SetBytes(q)},
		}
		private.Precompute()
		if private.Validate() == nil {
			return private, nil
		}
	}
	return nil, errors.New("its private and public parts do not belong together")
}

// keyOf reads the DER of a key.
func keyOf(der []byte) (any, error) {
	if key, err := x509.ParsePKIXPublicKey(der); err == nil {
		return key, nil
	}
	return x509.ParsePKCS8PrivateKey(der)
}

// array returns an array of values.
func (m *vm) array(values ...value) value {
	list := lib.XJS_NewArray(m.tls, m.ctx)
	for i, v := range values {
		lib.XJS_SetPropertyUint32(m.tls, m.ctx, list, uint32(i), v)
	}
	return list
}

// nativeImportKey reads a key: format, bytes or JSON, kind, curve. It returns an array: type, JSON
// of its keyInfo, DER.
func nativeImportKey(m *vm, in arguments) value {
	key, err := importedKey(in.s[0], in.b[0], in.s[1], in.s[2])
	if err != nil {
		return m.throw("the key cannot be read: %s", err)
	}
	info, der, err := describeKey(in.s[1], key)
	if err != nil {
		return m.throw("%s", err)
	}
	text, _ := json.Marshal(info) // texts and numbers can always be encoded
	return m.array(m.newString(info.Type), m.newString(string(text)), m.newBuffer(der))
}

// nativeExportKey writes a key: format, type, DER. It returns bytes, or JSON for the format jwk.
func nativeExportKey(m *vm, in arguments) value {
	key, err := keyOf(in.b[0])
	if err != nil {
		return m.throw("%s", err)
	}
	switch {
	case in.s[0] == "spki" && in.s[1] == "public", in.s[0] == "pkcs8" && in.s[1] == "private":
		return m.newBuffer(in.b[0])
	case in.s[0] == "raw" && in.s[1] == "public":
		switch k := key.(type) {
		case ed25519.PublicKey:
			return m.newBuffer(k)
		case *ecdsa.PublicKey:
			if b, err := k.Bytes(); err == nil {
				return m.newBuffer(b)
			}
		}
	case in.s[0] == "jwk":
		text, err := json.Marshal(webKeyOf(key))
		if err != nil {
			return m.throw("%s", err)
		}
		return m.newString(string(text))
	}
	return m.throw("a %s key of this kind cannot be exported as %s", in.s[1], in.s[0])
}

// webKeyOf returns a key as a JSON Web Key.
func webKeyOf(key any) (k webKey) {
	number := base64.RawURLEncoding.EncodeToString
	public := key
	switch private := key.(type) {
	case *rsa.PrivateKey:
		private.Precompute()
		size := (private.N.BitLen() + 7) / 8
		k.D = number(private.D.FillBytes(make([]byte, size)))
		k.P, k.Q = number(private.Primes[0].Bytes()), number(private.Primes[1].Bytes())
		k.DP, k.DQ, k.QI =
			number(private.Precomputed.Dp.Bytes()), number(private.Precomputed.Dq.Bytes()),
			number(private.Precomputed.Qinv.Bytes())
		public = &private.PublicKey
	case *ecdsa.PrivateKey:
		if b, err := private.Bytes(); err == nil {
			k.D = number(b)
		}
		public = &private.PublicKey
	case ed25519.PrivateKey:
		k.D = number(private.Seed())
		public = private.Public()
	}
	switch p := public.(type) {
	case *rsa.PublicKey:
		k.Type, k.N, k.E = "RSA", number(p.N.Bytes()), number(big.NewInt(int64(p.E)).Bytes())
	case *ecdsa.PublicKey:
		k.Type, k.Curve = "EC", p.Curve.Params().Name
		if b, err := p.Bytes(); err == nil {
			half := len(b) / 2
			k.X, k.Y = number(b[1:1+half]), number(b[1+half:])
		}
	case ed25519.PublicKey:
		k.Type, k.Curve, k.X = "OKP", "Ed25519", number(p)
	}
	return k
}

// maxMadeRSA is how many bits an RSA key that a script makes has at most.
const maxMadeRSA = 4096

// nativeGenerateKey makes a key: kind, and bits or curve. It returns an array: DER of the private
// and of the public key, JSON of their keyInfo.
func nativeGenerateKey(m *vm, in arguments) value {
	var key crypto.Signer
	var err error
	switch bits, _ := strconv.Atoi(in.s[1]); {
	case in.s[0] == "OKP":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case in.s[0] == "EC" && curves[in.s[1]] != nil:
		key, err = ecdsa.GenerateKey(curves[in.s[1]], rand.Reader)
	case in.s[0] == "RSA" && bits >= 2048 && bits <= maxMadeRSA && bits%8 == 0:
		key, err = rsa.GenerateKey(rand.Reader, bits)
	default:
		return m.throw(
			"the size or curve %s is not supported: use 2048 to %d bits, P-256, P-384 or P-521", in.s[1],
			maxMadeRSA,
		)
	}
	if err != nil {
		return m.throw("%s", err)
	}
	info, private, err := describeKey(in.s[0], key)
	if err != nil {
		return m.throw("%s", err)
	}
	_, public, err := describeKey(in.s[0], key.Public())
	if err != nil {
		return m.throw("%s", err)
	}
	text, _ := json.Marshal(info) // texts and numbers can always be encoded
	return m.array(m.newBuffer(private), m.newBuffer(public), m.newString(string(text)))
}

// signWith signs data as an algorithm of the Web Cryptography API does.
func signWith(algorithm, hashName string, key any, data []byte, salt int) ([]byte, error) {
	digest, id := digestOf(hashName, data)
	if algorithm == "RSA-PSS" && salt <= 0 {
		return nil, errSalt
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		switch algorithm {
		case "RSASSA-PKCS1-v1_5":
			return rsa.SignPKCS1v15(nil, k, id, digest)
		case "RSA-PSS":
			return rsa.SignPSS(rand.Reader, k, id, digest, &rsa.PSSOptions{SaltLength: salt, Hash: id})
		}
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, k, digest)
		if err != nil {
			return nil, err
		}
		size := (k.Curve.Params().BitSize + 7) / 8
		b := make([]byte, 2*size)
		r.FillBytes(b[:size])
		s.FillBytes(b[size:])
		return b, nil
	case ed25519.PrivateKey:
		return ed25519.Sign(k, data), nil
	}
	return nil, errors.New("the key cannot sign with this algorithm")
}

// verifyWith reports whether a signature is right, as an algorithm of the Web Cryptography API has
// it.
func verifyWith(algorithm, hashName string, key any, signature, data []byte, salt int) (bool, error) {
	digest, id := digestOf(hashName, data)
	if algorithm == "RSA-PSS" && salt <= 0 {
		return false, errSalt
	}
	switch k := key.(type) {
	case *rsa.PublicKey:
		switch algorithm {
		case "RSASSA-PKCS1-v1_5":
			return rsa.VerifyPKCS1v15(k, id, digest, signature) == nil, nil
		case "RSA-PSS":
			return rsa.VerifyPSS(k, id, digest, signature, &rsa.PSSOptions{SaltLength: salt}) == nil, nil
		}
	case *ecdsa.PublicKey:
		return verifyPair(k, digest, signature), nil
	case ed25519.PublicKey:
		return ed25519.Verify(k, data, signature), nil
	}
	return false, errors.New("the key cannot verify with this algorithm")
}

// errSalt is the error of RSA-PSS without a salt, which crypto/rsa takes for one of any length.
var errSalt = errors.New("saltLength must be 1 or more")

func digestOf(name string, data []byte) ([]byte, crypto.Hash) {
	h, ok := webHashes[name]
	if !ok {
		return nil, 0
	}
	return sum(h.new, data), h.id
}

// nativeSign signs: algorithm, hash, DER, data, length of the salt.
func nativeSign(m *vm, in arguments) value {
	salt, _ := m.number(in.all[4])
	key, err := keyOf(in.b[0])
	if err != nil {
		return m.throw("%s", err)
	}
	return m.orThrow(signWith(in.s[0], in.s[1], key, in.b[1], int(salt)))
}

// nativeVerifyWith verifies: algorithm, hash, DER, signature, data, length of the salt.
func nativeVerifyWith(m *vm, in arguments) value {
	salt, _ := m.number(in.all[5])
	key, err := keyOf(in.b[0])
	if err != nil {
		return m.throw("%s", err)
	}
	right, err := verifyWith(in.s[0], in.s[1], key, in.b[1], in.b[2], int(salt))
	if err != nil {
		return m.throw("%s", err)
	}
	return newBool(right)
}

// nativeAES encrypts or decrypts: algorithm, whether it encrypts, key, iv, data, additional data,
// bits of the tag.
func nativeAES(m *vm, in arguments) value {
	bits, _ := m.number(in.all[6])
	return m.orThrow(aesOf(in.s[0], isTrue(in.all[1]), in.b[0], in.b[1], in.b[2], in.b[3], int(bits)))
}

func aesOf(name string, seal bool, key, iv, data, more []byte, bits int) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if name == "AES-CBC" {
		return cbc(block, seal, iv, data)
	}
	if len(iv) == 0 || bits%8 != 0 || bits < 96 || bits > 128 || bits != 128 && len(iv) != 12 {
		return nil, errors.New("the iv has 12 bytes, and the tag 96 to 128 bits")
	}
	var aead cipher.AEAD
	if bits == 128 {
		aead, err = cipher.NewGCMWithNonceSize(block, len(iv))
	} else {
		aead, err = cipher.NewGCMWithTagSize(block, bits/8)
	}
	if err != nil {
		return nil, err
	}
	if seal {
		return aead.Seal(nil, iv, data, more), nil
	}
	plain, err := aead.Open(nil, iv, data, more)
	if err != nil {
		return nil, errors.New("the data were changed, or encrypted with another key")
	}
	return plain, nil
}

// cbc encrypts or decrypts with padding as PKCS #7 has it.
func cbc(block cipher.Block, seal bool, iv, data []byte) ([]byte, error) {
	const size = aes.BlockSize
	if len(iv) != size {
		return nil, errors.New("the iv has 16 bytes")
	}
	if seal {
		pad := size - len(data)%size
		out := append(make([]byte, 0, len(data)+pad), data...)
		for range pad {
			out = append(out, byte(pad))
		}
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, out)
		return out, nil
	}
	wrong := errors.New("the data were changed, or encrypted with another key")
	if len(data) == 0 || len(data)%size != 0 {
		return nil, wrong
	}
	out := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, data)
	pad := int(out[len(out)-1])
	if pad == 0 || pad > size {
		return nil, wrong
	}
	good := 1
	for _, b := range out[len(out)-pad:] {
		good &= subtle.ConstantTimeByteEq(b, byte(pad))
	}
	if good == 0 {
		return nil, wrong
	}
	return out[:len(out)-pad], nil
}

// nativeOAEP encrypts or decrypts with RSA: whether it encrypts, hash, DER, data, label.
func nativeOAEP(m *vm, in arguments) value {
	key, err := keyOf(in.b[0])
	if err != nil {
		return m.throw("%s", err)
	}
	var out []byte
	h := webHashes[in.s[0]].new()
	switch k := key.(type) {
	case *rsa.PublicKey:
		out, err = rsa.EncryptOAEP(h, rand.Reader, k, in.b[1], in.b[2])
	case *rsa.PrivateKey:
		out, err = rsa.DecryptOAEP(h, nil, k, in.b[1], in.b[2])
	}
	return m.orThrow(out, err)
}

// maxIterations bounds what PBKDF2 computes in one call.
const maxIterations = 10_000_000

// nativeDerive derives bytes: PBKDF2 or HKDF, hash, key, salt, info, iterations, number of bytes.
func nativeDerive(m *vm, in arguments) value {
	iterations, _ := m.number(in.all[5])
	size, _ := m.number(in.all[6])
	if !(iterations >= 1 && iterations <= maxIterations) {
		return m.throw("iterations must be 1 to %d", maxIterations)
	}
	var out []byte
	var err error
	if h := webHashes[in.s[1]].new; in.s[0] == "HKDF" {
		out, err = hkdf.Key(h, in.b[0], in.b[1], string(in.b[2]), int(size))
	} else {
		out, err = pbkdf2.Key(h, string(in.b[0]), in.b[1], int(iterations), int(size))
	}
	return m.orThrow(out, err)
}
