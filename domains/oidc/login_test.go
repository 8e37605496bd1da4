package oidc_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

var _ domains.Driver = oidc.Driver{}

var at = domains.Endpoints{Callback: "https://here.example.com/api/login/work/callback"}

// open opens the domain of a provider, with some members of its configuration set otherwise.
func (p *idp) open(t *testing.T, otherwise object) domains.RedirectLogin {
	t.Helper()
	return p.openWith(t, oidc.Driver{Now: p.Now}, otherwise)
}

func (p *idp) openWith(t *testing.T, d oidc.Driver, otherwise object) domains.RedirectLogin {
	t.Helper()
	config := object{"issuer": p.URL, "clientID": clientID, "clientSecret": secret}
	maps.Copy(config, otherwise)
	raw, err := json.Marshal(config)
	is.New(t).NoErr(err)
	realm, err := d.Open(raw)
	is.New(t).NoErr(err)
	return realm.(domains.RedirectLogin)
}

// visit is a browser at the provider: it returns the parameters that it is sent back with.
func visit(t *testing.T, location string) url.Values {
	t.Helper()
	is := is.New(t)
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(location)
	is.NoErr(err)
	is.NoErr(answer.Body.Close())
	back, err := answer.Location()
	is.NoErr(err)
	is.True(strings.HasPrefix(back.String(), at.Callback+"?"))
	return back.Query()
}

// login logs in, with the parameters and the memory edited on the way. No error may tell a secret.
func login(t *testing.T, realm domains.RedirectLogin, edit func(url.Values, object)) (domains.Identity, error) {
	t.Helper()
	is := is.New(t)
	location, kept, err := realm.Begin(t.Context(), at, "the state")
	if err != nil {
		return domains.Identity{}, err
	}
	params := visit(t, location)
	is.Equal(params.Get("state"), "the state")
	var memory object
	is.NoErr(json.Unmarshal(kept, &memory))
	secrets := []string{secret, params.Get("code"), memory["verifier"].(string), oidctest.AccessToken}
	if edit != nil {
		edit(params, memory)
		kept, err = json.Marshal(memory)
		is.NoErr(err)
	}
	who, err := realm.Finish(t.Context(), at, kept, domains.Answer{Params: params, State: "the state"})
	for _, s := range secrets {
		is.True(err == nil || !strings.Contains(err.Error(), s)) // the error tells a secret
	}
	is.True(err == nil || len(err.Error()) < 600) // the error is short
	return who.Identity, err
}

func TestLogin(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)

	who, err := login(t, p.open(t, nil), nil)

	is.NoErr(err)
	is.Equal(who, domains.Identity{
		ID: p.URL + "#0017", Username: "jo", DisplayName: "Jo Doe", GivenName: "Jo", FamilyName: "Doe",
		Email: "jo@example.com", Timezone: "Europe/Rome", // the ID token's username, and what it lacks from userinfo
	})
}

func TestDriver(t *testing.T) {
	p := newProvider(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	defer func() { is.New(t).NoErr(silent.Close()) }()
	config := func(issuer string) json.RawMessage {
		raw, err := json.Marshal(object{"issuer": issuer, "clientID": clientID, "clientSecret": secret})
		is.New(t).NoErr(err)
		return raw
	}
	drivertest.Test(t, oidc.Driver{Client: &http.Client{Timeout: time.Second}}, drivertest.Fixture{
		Config: config(p.URL),
		Away:   config("http://" + silent.Addr().String()),
		Bad: map[string]string{
			`{"issuer": "http://example.com"}`:                                           "issuer",
			`{"issuer": "https://example.com"}`:                                          "clientID",
			`{"issuer": "https://example.com", "clientID": "x", "scopes": "openid"}`:     "scopes",
			`{"issuer": "https://example.com", "clientID": "x", "claims": {"email": 7}}`: "claims.email",
		},
	})
}

func TestBeginAsksForACode(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	realm := p.open(t, object{"scopes": []string{"email", "groups"}})

	location, first, err := realm.Begin(t.Context(), at, "s t&te")
	is.NoErr(err)
	_, second, err := realm.Begin(t.Context(), at, "s t&te")
	is.NoErr(err)

	u, err := url.Parse(location)
	is.NoErr(err)
	q := u.Query()
	is.Equal(u.Path, "/authorize")
	is.Equal(q.Get("client_id"), clientID)
	is.Equal(q.Get("redirect_uri"), at.Callback)
	is.Equal(q.Get("scope"), "openid email groups") // openid is always asked for
	is.Equal(q.Get("state"), "s t&te")
	is.Equal(q.Get("code_challenge_method"), "S256")
	is.True(!strings.Contains(location, url.QueryEscape(secret)))

	var a, b struct{ Verifier, Nonce string }
	is.NoErr(json.Unmarshal(first, &a))
	is.NoErr(json.Unmarshal(second, &b))
	is.Equal(q.Get("nonce"), a.Nonce)
	is.True(!strings.Contains(location, a.Verifier)) // only its hash travels
	is.True(len(a.Verifier) >= 43 && len(a.Nonce) >= 26)
	is.True(a.Verifier != b.Verifier && a.Nonce != b.Nonce) // each login has its own
}

func TestClientsProveWhoTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		methods []string
		secret  string
		proved  []string // in two logins
	}{
		"in the header": {
			[]string{"client_secret_basic", "client_secret_post"}, secret,
			[]string{"client_secret_basic", "client_secret_basic"},
		},
		"in the body": {
			[]string{"client_secret_post"}, secret, []string{"client_secret_post", "client_secret_post"},
		},
		"whatever works, from then on": {
			nil, secret, []string{"client_secret_basic", "client_secret_post", "client_secret_post"},
		},
		"not at all, as a public client": {nil, "", []string{"none", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p := newProvider(t)
			p.Methods, p.Public = c.methods, c.secret == ""
			realm := p.open(t, object{"clientSecret": c.secret})
			for range 2 {
				_, err := login(t, realm, nil)
				is.NoErr(err)
			}
			is.Equal(p.Proved, c.proved)
		})
	}
}

func TestAlgorithms(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	is.New(t).NoErr(err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	is.New(t).NoErr(err)
	for _, key := range []jose.JSONWebKey{
		{Key: rsaKey, Algorithm: "RS256"}, {Key: rsaKey, Algorithm: "PS512"}, {Key: edKey, Algorithm: "EdDSA"},
	} {
		t.Run(key.Algorithm, func(t *testing.T) {
			p := newProvider(t)
			p.Use(key)
			_, err := login(t, p.open(t, nil), nil)
			is.New(t).NoErr(err)
		})
	}
}

func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		claims object // of the configuration
		person object // beside sub
		want   domains.Identity
		code   errs.Code
	}{
		"no username":                {nil, object{}, domains.Identity{Username: "0017"}, ""},
		"a username that is no text": {nil, object{"preferred_username": 7}, domains.Identity{Username: "0017"}, ""},
		"texts with NUL": {
			nil, object{"preferred_username": "j\x00", "email": "\x00"}, domains.Identity{Username: "0017"}, "",
		},
		"another claim": {
			object{"username": "upn"}, object{"upn": "j", "preferred_username": "x"},
			domains.Identity{Username: "j"}, "",
		},
		"a claim that is not wanted": {
			object{"email": ""}, object{"email": "j@x.io", "": "odd"}, domains.Identity{Username: "0017"}, "",
		},
		"e-mail, verified": {
			object{"username": "email"}, object{"email": "j@x.io", "email_verified": true},
			domains.Identity{Username: "j@x.io", Email: "j@x.io"}, "",
		},
		"e-mail, verified in a text": {
			object{"username": "email"}, object{"email": "j@x.io", "email_verified": "true"},
			domains.Identity{Username: "j@x.io", Email: "j@x.io"}, "",
		},
		"e-mail, not verified": {
			object{"username": "email"}, object{"email": "j@x.io", "email_verified": false}, domains.Identity{},
			errs.Unauthenticated,
		},
		"e-mail, nothing said": {
			object{"username": "email"}, object{"email": "j@x.io"}, domains.Identity{}, errs.Unauthenticated,
		},
		"e-mail, verified as another": {
			object{"username": "email"}, object{"email": "j@x.io", "email_verified": 1}, domains.Identity{},
			errs.Unauthenticated,
		},
		"e-mail of nobody, so sub": {
			object{"username": "email"}, object{"email_verified": true}, domains.Identity{Username: "0017"}, "",
		},
		"only an e-mail not verified": {
			nil, object{"email": "j@x.io", "email_verified": false},
			domains.Identity{Username: "0017", Email: "j@x.io"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p := newProvider(t)
			p.Person = object{"sub": "0017"}
			maps.Copy(p.Person, c.person)
			p.Userinfo = object{"sub": "0017"}

			who, err := login(t, p.open(t, object{"claims": c.claims}), nil)

			is.Equal(errs.CodeOf(err), c.code)
			if c.code == "" {
				is.NoErr(err)
				c.want.ID = p.URL + "#0017"
			}
			is.Equal(who, c.want)
		})
	}
}

func TestUserinfo(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	byMail := object{"claims": object{"username": "email", "timezone": ""}}

	// An address and whether it is verified come from the same place.
	p.Person = object{"sub": "0017", "name": "Jo", "given_name": "Jo", "family_name": "Doe", "email_verified": true}
	p.Userinfo = object{"sub": "0017", "email": "boss@example.com", "email_verified": false}
	_, err := login(t, p.open(t, byMail), nil)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)

	p.Set(func() { p.Userinfo["email_verified"] = true })
	who, err := login(t, p.open(t, byMail), nil)
	is.NoErr(err)
	is.Equal(who.Username, "boss@example.com")

	// Nobody is asked for what is known already, or is not wanted.
	asked := p.Count("/userinfo")
	p.Set(func() { p.Person["email"] = "jo@example.com" })
	who, err = login(t, p.open(t, byMail), nil)
	is.NoErr(err)
	is.Equal(who.Username, "jo@example.com")
	is.Equal(p.Count("/userinfo"), asked)

	// A provider may have no userinfo.
	p.Set(func() {
		p.Person = object{"sub": "0017"}
		p.EditDocument = func(d object) { delete(d, "userinfo_endpoint") }
	})
	who, err = login(t, p.open(t, nil), nil)
	is.NoErr(err)
	is.Equal(who.Username, "0017")
}

func TestSignedUserinfo(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	signer := &p.Key
	p.Broken["/userinfo"] = func(w http.ResponseWriter, _ *http.Request) {
		payload, _ := json.Marshal(p.Userinfo)
		w.Header().Set("Content-Type", "application/jwt")
		_, _ = w.Write([]byte(oidctest.Sign(t, *signer, payload)))
	}
	who, err := login(t, p.open(t, nil), nil)
	is.NoErr(err)
	is.Equal(who.Timezone, "Europe/Rome")

	signer = &newProvider(t).Key
	_, err = login(t, p.open(t, groupsOf("groups")), nil)
	faulty(t, p, err, "signature")
}

func TestAnotherProcessFinishes(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	location, memory, err := p.open(t, nil).Begin(t.Context(), at, "state")
	is.NoErr(err)
	answer := domains.Answer{Params: visit(t, location), State: "state"}

	p.Set(func() { p.Broken[document] = http.NotFound })
	_, err = p.open(t, nil).Finish(t.Context(), at, memory, answer)
	faulty(t, p, err, "404")

	p.Set(func() { delete(p.Broken, document) })
	who, err := p.open(t, nil).Finish(t.Context(), at, memory, answer)
	is.NoErr(err)
	is.Equal(who.Username, "jo")
}

func TestIDsAreOfTheirIssuer(t *testing.T) {
	is := is.New(t)
	one, other := newProvider(t), newProvider(t)
	a, err := login(t, one.open(t, nil), nil)
	is.NoErr(err)
	b, err := login(t, other.open(t, nil), nil)
	is.NoErr(err)
	is.True(a.ID != b.ID) // the same sub

	one.Set(func() {
		one.Person["sub"] = strings.Repeat("x", 255)
		one.Userinfo["sub"] = one.Person["sub"]
	})
	long, err := login(t, one.open(t, nil), nil)
	is.NoErr(err)
	is.True(strings.HasPrefix(long.ID, "sha256:") && len(long.ID) == len("sha256:")+64)
	one.Set(func() {
		one.Person["sub"] = strings.Repeat("x", 254) + "y"
		one.Userinfo["sub"] = one.Person["sub"]
	})
	longer, err := login(t, one.open(t, nil), nil)
	is.NoErr(err)
	is.True(long.ID != longer.ID)
}
