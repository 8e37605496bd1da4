package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/matryer/is"
)

func TestKeysRotate(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	realm := p.open(t, nil)
	for _, id := range []string{"first", "second", "third"} {
		p.Rotate(id)
		for range 2 {
			_, err := login(t, realm, nil)
			is.NoErr(err)
		}
	}
	is.Equal(p.Count(document), 1)
	is.Equal(p.Count("/keys"), 3) // a key that is known asks nobody
}

func TestNewKeyCannotBeHad(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	realm := p.open(t, nil)
	_, err := login(t, realm, nil)
	is.NoErr(err)

	p.Rotate("second")
	p.Set(func() { p.Broken["/keys"] = http.NotFound })
	_, err = login(t, realm, nil)
	faulty(t, p, err, "404")
}

func TestKeyIsReplacedUnderItsID(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	realm := p.open(t, nil)
	for range 2 {
		p.Rotate("the only id")
		_, err := login(t, realm, nil)
		is.NoErr(err)
	}
}

func TestWithdrawnKeys(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	realm := p.open(t, nil)
	_, err := login(t, realm, nil)
	is.NoErr(err)

	p.Set(func() { p.Keys = []jose.JSONWebKey{}; p.Ahead += time.Hour })

	_, err = login(t, realm, nil)
	refused(t, err, "signature")
}

func TestKeysWithoutIDs(t *testing.T) {
	for name, ids := range map[string][2]string{"published without": {"", ""}, "used without": {"first", ""}} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.Rotate(ids[0])
			p.Keys = append(newProvider(t).Keys, p.Keys...)
			p.Key.KeyID = ids[1]
			_, err := login(t, p.open(t, nil), nil)
			is.New(t).NoErr(err)
		})
	}
}

func TestKeysThatAreNotGood(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	is.New(t).NoErr(err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.New(t).NoErr(err)
	for name, key := range map[string]jose.JSONWebKey{
		"a weak one":         {Key: weak, KeyID: "x", Algorithm: "RS256"},
		"one for encryption": {Key: curve, KeyID: "x", Algorithm: "ES256", Use: "enc"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.Use(key)
			_, err := login(t, p.open(t, nil), nil)
			refused(t, err, "signature")
		})
	}
	t.Run("a private one", func(t *testing.T) {
		p := newProvider(t)
		p.Keys = []jose.JSONWebKey{p.Key}
		_, err := login(t, p.open(t, nil), nil)
		refused(t, err, "signature")
	})
	t.Run("one too many", func(t *testing.T) {
		p := newProvider(t)
		other := newProvider(t).Keys
		for range 99 {
			other = append(other, other[0])
		}
		p.Keys = append(other, p.Keys[0])
		_, err := login(t, p.open(t, nil), nil)
		refused(t, err, "signature")

		p.Set(func() { p.Keys = p.Keys[1:] })
		_, err = login(t, p.open(t, nil), nil)
		is.New(t).NoErr(err)
	})
}

// A key of five million bits, almost as long as an answer may be, would keep a processor busy for
// minutes.
func TestHugeKey(t *testing.T) {
	p := newProvider(t)
	n := new(big.Int).SetBit(big.NewInt(1), 5_000_000, 1)
	huge := jose.JSONWebKey{Key: &rsa.PublicKey{N: n, E: 65537}, KeyID: "huge", Algorithm: "RS256"}
	p.Set(func() { p.Keys = []jose.JSONWebKey{huge} })
	p.SignClaims = func(payload []byte) string {
		text := base64.RawURLEncoding.EncodeToString
		return text([]byte(`{"alg":"RS256","kid":"huge"}`)) + "." + text(payload) + "." + text(make([]byte, 625_001))
	}
	begun := time.Now()
	_, err := login(t, p.open(t, nil), nil)
	refused(t, err, "signature")
	is.New(t).True(time.Since(begun) < 20*time.Second)
}

func TestKeysOfOtherKinds(t *testing.T) {
	p := newProvider(t)
	p.Broken["/keys"] = func(w http.ResponseWriter, _ *http.Request) {
		ours, err := json.Marshal(p.Keys[0])
		is.New(t).NoErr(err)
		others := []string{
			`{"kty": "new"}`, `{"kty": "oct", "k": "c2VjcmV0"}`,
			`{"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}`, `7`, `null`,
		}
		_, _ = fmt.Fprintf(w, `{"keys": [%s, %s]}`, strings.Join(others, ", "), ours)
	}
	_, err := login(t, p.open(t, nil), nil)
	is.New(t).NoErr(err)
}
