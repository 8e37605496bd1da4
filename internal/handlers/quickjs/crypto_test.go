package quickjs_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// verifies checks the signatures that scripts verify with public keys.
func (s *suite) verifies(t *testing.T) {
	rt := s.runtime(t, usual())
	p := compile(t, rt, "export const main = (algorithm, key, data, signature, bytes) => {\n"+
		"try { return crypto.verify(algorithm, key, data, bytes === true ? base64Decode(signature, 'bytes') : "+
		"signature) } catch (e) { return `${e.name}: ${e.message}` } }")
	verify := func(t *testing.T, args ...any) string {
		t.Helper()
		c := jsvm.Call{}
		for _, a := range args {
			b, err := json.Marshal(a)
			is.New(t).NoErr(err)
			c.Args = append(c.Args, b)
		}
		r := run(t, rt, p, c)
		if r.Outcome != jsvm.OK {
			t.Fatal(r.Error)
		}
		return string(r.Value)
	}
	is := is.New(t)

	const data = "the data ä"
	small, large := sha256.Sum256([]byte(data)), sha512.Sum512([]byte(data))
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	is.NoErr(err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	edPublic, edKey, err := ed25519.GenerateKey(rand.Reader)
	is.NoErr(err)
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	pkix := func(key any) string {
		b, err := x509.MarshalPKIXPublicKey(key)
		is.NoErr(err)
		return block("PUBLIC KEY", b)
	}
	number := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	pkcs, err := rsa.SignPKCS1v15(nil, rsaKey, crypto.SHA256, small[:])
	is.NoErr(err)
	pss, err := rsa.SignPSS(rand.Reader, rsaKey, crypto.SHA512, large[:], nil)
	is.NoErr(err)
	der, err := ecdsa.SignASN1(rand.Reader, ecKey, small[:])
	is.NoErr(err)
	r, v, err := ecdsa.Sign(rand.Reader, ecKey, small[:])
	is.NoErr(err)
	raw := append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...)
	ed := ed25519.Sign(edKey, []byte(data))
	point, err := ecKey.PublicKey.Bytes()
	is.NoErr(err)
	certificate, err := x509.CreateCertificate(
		rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, &ecKey.PublicKey,
		ecKey,
	)
	is.NoErr(err)
	rsaWeb := map[string]any{"kty": "RSA", "n": number(rsaKey.N.Bytes()), "e": "AQAB", "alg": "RS256", "use": "sig"}
	ecWeb := map[string]any{"kty": "EC", "crv": "P-256", "x": number(point[1:33]), "y": number(point[33:])}
	edWeb := map[string]any{"kty": "OKP", "crv": "Ed25519", "x": number(edPublic)}

	for _, c := range []struct {
		name, algorithm string
		key             any
		signature       []byte
	}{
		{"pkcs1", "RS256", pkix(&rsaKey.PublicKey), pkcs},
		{
			"pkcs1 by the name of Node.js", "RSA-SHA256",
			block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey.PublicKey)), pkcs,
		},
		{"pkcs1 by the kind of the key", "SHA-256", rsaWeb, pkcs},
		{"pss", "PS512", rsaWeb, pss},
		{"ecdsa", "sha256", pkix(&ecKey.PublicKey), der},
		{"ecdsa in a certificate", "sha256", block("CERTIFICATE", certificate), der},
		{"ecdsa of two numbers", "ES256", ecWeb, raw},
		{"ed25519", "ed25519", pkix(edPublic), ed},
		{"ed25519 as a web key", "EdDSA", edWeb, ed},
		{"ed25519 in hex", "Ed25519", hex.EncodeToString(edPublic), ed},
		{"ed25519 in base64", "Ed25519", base64.StdEncoding.EncodeToString(edPublic), ed},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			inBase64 := base64.StdEncoding.EncodeToString(c.signature)
			is.Equal(verify(t, c.algorithm, c.key, data, inBase64), "true")
			is.Equal(verify(t, c.algorithm, c.key, data, inBase64, true), "true")
			is.Equal(verify(t, c.algorithm, c.key, data, hex.EncodeToString(c.signature)), "true")
			is.Equal(verify(t, c.algorithm, c.key, data, number(c.signature)), "true")
			is.Equal(verify(t, c.algorithm, c.key, data+"!", inBase64), "false")
			changed := append([]byte(nil), c.signature...)
			changed[len(changed)/2] ^= 1
			is.Equal(verify(t, c.algorithm, c.key, data, number(changed)), "false")
			for _, signature := range []any{"", nil, "*", "AA"} {
				is.Equal(verify(t, c.algorithm, c.key, data, signature), "false")
			}
		})
	}
	// RFC 8032, section 7.1, test 1.
	is.Equal(verify(t, "Ed25519", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
		"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
		"true")

	private, err := x509.MarshalPKCS8PrivateKey(edKey)
	is.NoErr(err)
	for _, c := range []struct {
		algorithm string
		key       any
	}{
		{"HS256", edWeb}, {"none", edWeb}, {"md5", rsaWeb}, {"sha1", rsaWeb},
		{"RS256", edWeb}, {"Ed25519", rsaWeb}, {"ES256", rsaWeb}, {"RS256", ecWeb}, {"sha256", edWeb},
		{"Ed25519", ""}, {"Ed25519", "AA"}, {"Ed25519", nil},
		{"Ed25519", 5}, {"Ed25519", block("PRIVATE KEY", private)}, {"RS256", "-----BEGIN PUBLIC KEY-----\nAA"},
		{"RS256", block("PUBLIC KEY", []byte{1})}, {"RS256", block("CERTIFICATE", []byte{1})},
		{"RS256", "{"}, {"RS256", map[string]any{}}, {"RS256", map[string]any{"kty": "RSA", "n": 5}},
		{"RS256", map[string]any{"kty": "RSA", "n": "AQAB", "e": "AQAB"}},
		{"RS256", map[string]any{"kty": "RSA", "n": rsaWeb["n"], "e": "AQ"}},
		{"ES256", map[string]any{"kty": "EC", "crv": "P-256", "x": ecWeb["y"], "y": ecWeb["y"]}},
		{"ES256", map[string]any{"kty": "EC", "crv": "P-257", "x": ecWeb["x"], "y": ecWeb["y"]}},
		{"EdDSA", map[string]any{"kty": "OKP", "crv": "Ed25519", "x": edWeb["x"], "d": edWeb["x"]}},
	} {
		got := verify(t, c.algorithm, c.key, data, "AA")
		if len(got) < 12 || got[:12] != `"TypeError: ` {
			t.Errorf("%s with %v: %s, want a TypeError", c.algorithm, c.key, got)
		}
	}
}

// encrypts checks crypto.encrypt and crypto.decrypt.
func (s *suite) encrypts(t *testing.T) {
	rt := s.runtime(t, usual())
	for _, c := range []struct{ statements, want string }{
		{"const k = crypto.randomBytes(32), e = crypto.encrypt(k, 'ä secret'); return [e.slice(0, 3), e.length, " +
			"crypto.decrypt(k, e), crypto.decrypt(base64Encode(k), e), e === crypto.encrypt(k, 'ä secret')]",
			`["v1.",53,"ä secret","ä secret",false]`},
		{
			"const k = crypto.hash('sha256', 'k'); return Array.from(crypto.decrypt(k, crypto.encrypt(k, new " +
				"Uint8Array([0, 255])), 'bytes'))",
			`[0,255]`,
		},
		{"const k = crypto.hash('sha256', 'k'); return crypto.decrypt(k, crypto.encrypt(k, ''))", `""`},
		{"const k = crypto.randomBytes(32), e = crypto.encrypt(k, 'x')\n" +
			"return [[k, e.slice(0, 10) + (e[10] === 'A' ? 'B' : 'A') + e.slice(11)], [crypto.randomBytes(32), " +
			"e], [k, 'v2' + e.slice(2)], [k, e.slice(3)], [k, e + 'A'], [k, ''], [k, 'v1.'], [k, undefined]]" +
			".map(([k, e]) => { try { return crypto.decrypt(k, e) } catch (e) { return e.name } })",
			`["TypeError","TypeError","TypeError","TypeError","TypeError","TypeError","TypeError","TypeError"]`},
		{"return ['a passphrase', '', new Uint8Array(31), 'ab'.repeat(33), undefined].map(k => { try { return " +
			"crypto.encrypt(k, 'x') } catch (e) { return e.name } })",
			`["TypeError","TypeError","TypeError","TypeError","TypeError"]`},
		{"return await crypto.decrypt('ab'.repeat(32), await crypto.encrypt('ab'.repeat(32), 'awaited'))", `"awaited"`},
	} {
		t.Run(c.statements, func(t *testing.T) {
			is.New(t).Equal(value(t, rt, body(c.statements)), c.want)
		})
	}
}

// arguments checks that arguments which a function does not know throw.
func (s *suite) arguments(t *testing.T) {
	rt := s.runtime(t, usual())
	for _, c := range []struct{ call, names string }{
		{"base64Encode('a', 1)", "base64Encode"}, {"base64UrlEncode('a', 1)", "base64UrlEncode"},
		{"base64Decode('YQ==', 'text', 1)", "base64Decode"}, {"base64UrlDecode('YQ', 'text', 1)", "base64UrlDecode"},
		{"base64Decode('YQ==', 'hex')", `\"hex\"`}, {"base64UrlDecode('YQ', {})", "the form"},
		{"crypto.hash('sha256', 'a', 'hex', 1)", "crypto.hash"}, {"crypto.hash('sha256', 'a', 'x')", "x"},
		{"crypto.hmac('sha256', 'a', 'b', 'hex', 1)", "crypto.hmac"},
		{"crypto.verifyHmac('sha256', 'a', 'b', 'c', 1)", "crypto.verifyHmac"},
		{"crypto.verify('ed25519', 'a', 'b', 'c', 1)", "crypto.verify"},
		{"crypto.encrypt('a', 'b', 1)", "crypto.encrypt"},
		{"crypto.decrypt('a', 'b', 'text', 1)", "crypto.decrypt"}, {"crypto.decrypt('a', 'b', 'hex')", "the form"},
		{"crypto.timingSafeEqual('a', 'b', 1)", "crypto.timingSafeEqual"},
		{"crypto.randomBytes(1, 'hex', 1)", "crypto.randomBytes"},
	} {
		t.Run(c.call, func(t *testing.T) {
			got := value(t, rt, body("try { return '' + "+c.call+" } catch (e) { return 'threw ' + e.message }"))
			if !strings.HasPrefix(got, `"threw `) || !strings.Contains(got, c.names) {
				t.Fatalf("got %s, want an error that names %s", got, c.names)
			}
		})
	}
}
