package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// keySet is the keys that a provider signs with. go-oidc's own takes keys of any size, and a key of
// a megabyte keeps a processor busy for minutes.
type keySet struct {
	client *http.Client
	at     string // jwks_uri
	keys   shared[[]jose.JSONWebKey]
	now    func() time.Time
}

const (
	maxKeys = 100
	minRSA  = 2048 // bits
	maxRSA  = 8192
)

// algorithms are the signature algorithms that are accepted: asymmetric ones alone.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384,
	jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// errForged is the error of a signature by none of the keys.
var errForged = errors.New("no key of the provider has made the signature")

// VerifySignature returns the payload of a token, as goidc.KeySet wants it. A key that is not known
// may be new: the keys are read once more. Errors: errForged; another one when they cannot be had.
func (k *keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	return k.payload(ctx, jwt, 0)
}

// strangersKeys is a keySet for tokens that anybody may send: one that no key has signed does not
// make it ask the provider each time.
type strangersKeys struct{ *keySet }

// keysAge is how old the keys are at least when a stranger's token makes them be read again.
const keysAge = time.Minute

// VerifySignature returns the payload of a token, as goidc.KeySet wants it.
func (k strangersKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	return k.payload(ctx, jwt, keysAge)
}

// payload is VerifySignature that reads keys again which are as old as age.
func (k *keySet) payload(ctx context.Context, jwt string, age time.Duration) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(jwt, algorithms)
	if err != nil {
		return nil, errForged
	}
	known, err := k.keys.get(ctx, func(*reading[[]jose.JSONWebKey]) bool { return true }, k.now, k.read)
	if err != nil {
		return nil, err
	}
	payload, err := verify(jws, known.value)
	if err == nil || k.now().Sub(known.at) < age {
		return payload, err
	}
	renewed, err := k.keys.get(ctx, func(r *reading[[]jose.JSONWebKey]) bool { return r != known }, k.now, k.read)
	if err != nil {
		return nil, err
	}
	return verify(jws, renewed.value)
}

func verify(jws *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, error) {
	id := jws.Signatures[0].Header.KeyID
	for _, key := range keys {
		if id != "" && key.KeyID != id {
			continue
		}
		if payload, err := jws.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, errForged
}

// read reads the keys. The client's time-out ends it, as it serves more than one caller.
func (k *keySet) read() ([]jose.JSONWebKey, error) {
	body, _, err := fetch(context.Background(), k.client, k.at, nil)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("the keys are not a JSON Web Key Set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("the keys are not a JSON Web Key Set")
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var key jose.JSONWebKey
		if err := json.Unmarshal(raw, &key); err == nil && signs(key) { // keys of a new kind are none of ours
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// signs reports whether a key is public, made for signatures, and neither weak nor a burden.
func signs(key jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= minRSA && k.N.BitLen() <= maxRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}
