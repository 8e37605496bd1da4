// Package oidctest runs OpenID providers for tests, over HTTP on this machine. They conform to the
// specification unless a test changes that.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// ClientID and Secret are those of the only client of a provider. The secret needs escaping.
const (
	ClientID = "tenant content"
	Secret   = "s3cr/t+%&: "
)

// AccessToken is the access token that a provider returns for a code, together with the ID token.
const AccessToken = "access-token-of-jo"

// Document is the path of the discovery document.
const Document = "/.well-known/openid-configuration"

// Object is a JSON object.
type Object = map[string]any

// Provider is an OpenID provider with one person, jo, whom it logs in, without a page unless Ask is
// set. After the first request, it must be changed with Set.
type Provider struct {
	*httptest.Server
	t testing.TB

	mu    sync.Mutex
	codes map[string]grant
	hits  map[string]int // number of requests by path

	Ahead  time.Duration     // by which its clock is ahead
	Key    jose.JSONWebKey   // the key that signs
	Keys   []jose.JSONWebKey // the published keys
	Proved []string          // how clients authenticated

	Ask     bool     // a login shows a page first, with the link #agree
	Methods []string // allowed authentication of clients; nil: only client_secret_post, unlisted
	Public  bool     // the client does not have a secret
	Person  Object   // claims of the person in the ID token
	// Userinfo has the claims at the userinfo endpoint. It may be about another person than Person.
	Userinfo Object

	EditDocument func(Object)                // edits the discovery document
	EditClaims   func(Object)                // edits the ID token's claims
	EditTokens   func(Object)                // edits the answer of the token endpoint
	SignClaims   func(payload []byte) string // makes the ID token, instead of Key
	Broken       map[string]http.HandlerFunc // handlers by path, instead of the default ones
}

// grant is what a code was issued for.
type grant struct{ client, redirect, challenge, nonce string }

// New starts a provider that ends with the test.
func New(t testing.TB) *Provider {
	p := &Provider{
		t: t, codes: map[string]grant{}, hits: map[string]int{}, Broken: map[string]http.HandlerFunc{},
		Methods: []string{"client_secret_basic"},
		Person: Object{
			"sub":                "0017",
			"preferred_username": "jo",
			"name":               "Jo Doe",
			"email":              "jo@example.com",
			"email_verified":     true,
		},
		Userinfo: Object{
			"sub": "0017", "preferred_username": "not asked",
			"zoneinfo": "Europe/Rome", "given_name": "Jo", "family_name": "Doe",
		},
	}
	mux := http.NewServeMux()
	for path, serve := range map[string]http.HandlerFunc{
		Document: p.ServeDocument, "/keys": p.serveKeys, "/authorize": p.serveAuthorize, "/token": p.serveToken,
		"/userinfo": p.serveUserinfo, "/logout": p.serveLogout,
	} {
		mux.HandleFunc(path, serve)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.hits[r.URL.Path]++
		instead := p.Broken[r.URL.Path]
		p.mu.Unlock()
		if instead != nil {
			instead(w, r)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	p.Rotate("first")
	return p
}

// Set changes the provider while it runs.
func (p *Provider) Set(edit func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	edit()
}

// Be sets the person that logs in. The userinfo endpoint has no further claims.
func (p *Provider) Be(person Object) {
	p.Set(func() { p.Person, p.Userinfo = person, Object{"sub": person["sub"]} })
}

// Now returns the time of the provider's clock.
func (p *Provider) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()
}

func (p *Provider) now() time.Time { return time.Now().Add(p.Ahead) }

// Count returns the number of requests of a path.
func (p *Provider) Count(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[path]
}

// Rotate makes a new key the only one.
func (p *Provider) Rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Use(jose.JSONWebKey{Key: key, KeyID: id, Algorithm: "ES256"})
}

// Use makes a key the only one.
func (p *Provider) Use(key jose.JSONWebKey) {
	p.Set(func() { p.Key, p.Keys = key, []jose.JSONWebKey{key.Public()} })
}

// Sign returns a token of a payload. A key that cannot sign fails the test.
func Sign(t testing.TB, key jose.JSONWebKey, payload []byte) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Error(err)
		return ""
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Error(err)
	}
	return token
}

// Reply answers with JSON.
func Reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error of the client's connection does not matter
}
