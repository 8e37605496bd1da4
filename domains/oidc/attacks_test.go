package oidc_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

// refused fails the test unless a login was refused, in words that say nothing, for a reason.
func refused(t *testing.T, err error, reason string) {
	t.Helper()
	is := is.New(t)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(errs.MessageOf(err), "Unable to log in")
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("the reason is %q, want %q", err, reason)
	}
}

func TestTokensThatAreNotGood(t *testing.T) {
	set := func(claim string, to any) func(*idp) {
		return func(p *idp) { p.EditClaims = func(c object) { c[claim] = to } }
	}
	unset := func(claim string) func(*idp) {
		return func(p *idp) { p.EditClaims = func(c object) { delete(c, claim) } }
	}
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, c := range map[string]struct {
		attack func(*idp)
		reason string
	}{
		"another nonce":          {set("nonce", "other"), "another login"},
		"no nonce":               {unset("nonce"), "another login"},
		"an empty nonce":         {set("nonce", ""), "another login"},
		"another audience":       {set("aud", "other"), "expected audience"},
		"no audience":            {unset("aud"), "expected audience"},
		"audiences without azp":  {set("aud", []string{clientID, "other"}), "another client"},
		"another azp":            {set("azp", "other"), "another client"},
		"an azp that is no text": {set("azp", 7), "another client"},
		"audiences and their azp": {func(p *idp) {
			p.EditClaims = func(c object) { c["aud"], c["azp"] = []string{clientID, "other"}, "other" }
		}, "another client"},
		"expired":               {set("exp", at(-domains.ClockSkew-time.Second)), "expired"},
		"no expiry":             {unset("exp"), "expired"},
		"not yet":               {set("nbf", at(domains.ClockSkew+time.Minute)), "not before"},
		"not yet, in a text":    {set("nbf", "2020-01-01"), "unmarshal"},
		"issued in the future":  {set("iat", at(domains.ClockSkew+time.Minute)), "in the future"},
		"issued at no time":     {unset("iat"), "at no time"},
		"another issuer":        {set("iss", "https://other.example.com"), "different provider"},
		"no issuer":             {unset("iss"), "different provider"},
		"no sub":                {unset("sub"), "sub"},
		"an empty sub":          {set("sub", ""), "sub"},
		"a long sub":            {set("sub", strings.Repeat("x", 256)), "sub"},
		"a sub with NUL":        {set("sub", "jo\x00"), "sub"},
		"a sub of broken text":  {set("sub", "jo\xff"), "sub"},
		"a sub that is no text": {set("sub", 17), "unmarshal"},
		"another access token":  {set("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), "another access token"},
		"a second sub in other letters": {func(p *idp) {
			p.SignClaims = func(b []byte) string {
				return oidctest.Sign(t, p.Key, []byte(string(b[:len(b)-1])+`,"Sub":"admin"}`))
			}
		}, "sub"},
		"a nonce in other letters": {func(p *idp) {
			p.SignClaims = func(b []byte) string {
				return oidctest.Sign(t, p.Key, []byte(strings.Replace(string(b), `"nonce"`, `"Nonce"`, 1)))
			}
		}, "another login"},
		"not JSON": {func(p *idp) {
			p.SignClaims = func([]byte) string { return oidctest.Sign(t, p.Key, []byte("hello")) }
		}, "unmarshal"},
		"no token":            {func(p *idp) { p.SignClaims = func([]byte) string { return "hello" } }, "malformed"},
		"userinfo of another": {func(p *idp) { p.Userinfo["sub"] = "0018" }, "somebody else"},
		"userinfo of nobody":  {func(p *idp) { delete(p.Userinfo, "sub") }, "somebody else"},
		"userinfo of another in other letters": {func(p *idp) {
			delete(p.Userinfo, "sub")
			p.Userinfo["Sub"] = "0017"
		}, "somebody else"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			c.attack(p)
			who, err := login(t, p.open(t, nil), nil)
			refused(t, err, c.reason)
			is.New(t).Equal(who, domains.Identity{})
		})
	}
}

func TestClaimsThatAreGood(t *testing.T) {
	for name, edit := range map[string]func(object){
		"an azp":             func(c object) { c["azp"] = clientID },
		"audiences with azp": func(c object) { c["aud"], c["azp"] = []string{"other", clientID}, clientID },
		"a clock that is a bit ahead": func(c object) {
			c["iat"], c["nbf"] = time.Now().Add(2*time.Minute).Unix(), time.Now().Add(2*time.Minute).Unix()
		},
		"a clock that is a bit behind":  func(c object) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() },
		"the hash of the access token":  func(c object) { c["at_hash"] = "qJkW05s5NNHDSkMxaTtseA" },
		"a claim that nobody asked for": func(c object) { c["groups"] = []string{"admins"} },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.EditClaims = edit
			_, err := login(t, p.open(t, nil), nil)
			is.New(t).NoErr(err)
		})
	}
}

func TestForgedSignatures(t *testing.T) {
	for name, c := range map[string]struct {
		forge  func(t *testing.T, p *idp, payload []byte) string
		reason string
	}{
		"alg none": {func(_ *testing.T, _ *idp, payload []byte) string {
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
				base64.RawURLEncoding.EncodeToString(payload) + "."
		}, "malformed"},
		"alg HS256 with the public key": {func(t *testing.T, p *idp, payload []byte) string {
			der, err := x509.MarshalPKIXPublicKey(p.Key.Public().Key)
			is.New(t).NoErr(err)
			public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
			return oidctest.Sign(t, jose.JSONWebKey{Key: public, KeyID: p.Key.KeyID, Algorithm: "HS256"}, payload)
		}, "malformed"},
		"alg HS256 with the client's secret": {func(t *testing.T, p *idp, payload []byte) string {
			long := []byte(strings.Repeat(secret, 4))
			return oidctest.Sign(t, jose.JSONWebKey{Key: long, KeyID: p.Key.KeyID, Algorithm: "HS256"}, payload)
		}, "malformed"},
		"a key that is not published": {func(t *testing.T, _ *idp, payload []byte) string {
			return oidctest.Sign(t, newProvider(t).Key, payload) // with the same id
		}, "signature"},
		"an unknown key": {func(t *testing.T, _ *idp, payload []byte) string {
			other := newProvider(t)
			other.Rotate("unknown")
			return oidctest.Sign(t, other.Key, payload)
		}, "signature"},
		"a key in the token": {func(t *testing.T, _ *idp, payload []byte) string {
			key := newProvider(t).Key
			signer, err := jose.NewSigner(
				jose.SigningKey{Algorithm: jose.ES256, Key: key.Key}, &jose.SignerOptions{EmbedJWK: true},
			)
			is.New(t).NoErr(err)
			jws, err := signer.Sign(payload)
			is.New(t).NoErr(err)
			token, err := jws.CompactSerialize()
			is.New(t).NoErr(err)
			return token
		}, "signature"},
		"another payload": {func(t *testing.T, p *idp, payload []byte) string {
			parts := strings.Split(oidctest.Sign(t, p.Key, payload), ".")
			parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(
				string(payload), `"0017"`, `"0001"`, 1,
			)))
			return strings.Join(parts, ".")
		}, "signature"},
		"a signature in JSON": {func(t *testing.T, p *idp, payload []byte) string {
			parts := strings.Split(oidctest.Sign(t, p.Key, payload), ".")
			token, err := json.Marshal(object{"payload": parts[1], "protected": parts[0], "signature": parts[2]})
			is.New(t).NoErr(err)
			return string(token)
		}, "signature"},
		"two signatures": {func(t *testing.T, p *idp, payload []byte) string {
			parts := strings.Split(oidctest.Sign(t, p.Key, payload), ".")
			one := object{"protected": parts[0], "signature": parts[2]}
			both, err := json.Marshal(object{"payload": parts[1], "signatures": []object{one, one}})
			is.New(t).NoErr(err)
			return string(both)
		}, "multiple signatures"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.SignClaims = func(payload []byte) string { return c.forge(t, p, payload) }
			_, err := login(t, p.open(t, nil), nil)
			refused(t, err, c.reason)
		})
	}
}

func TestAnswersThatAreNotGood(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	for name, c := range map[string]struct {
		edit   func(params url.Values, memory object)
		reason string
	}{
		"no code":         {func(p url.Values, _ object) { p.Del("code") }, "no code"},
		"an unknown code": {func(p url.Values, _ object) { p.Set("code", "made up") }, "invalid_grant"},
		"two codes":       {func(p url.Values, _ object) { p.Add("code", "made up") }, "came twice"},
		"an error":        {func(p url.Values, _ object) { p.Set("error", "access_denied") }, "access_denied"},
		"an error and no code": {func(p url.Values, _ object) {
			p.Del("code")
			p.Set("error", "server_error")
		}, "server_error"},
		"a long error": {func(p url.Values, _ object) {
			p.Set("error", "x")
			p.Set("error_description", long)
		}, "x: long long"},
		"an empty error": {func(p url.Values, _ object) { p.Set("error", "") }, "the provider says"},
		"another issuer": {func(p url.Values, _ object) {
			p.Set("iss", "https://other.example.com")
		}, "other.example.com"},
		"an empty issuer": {func(p url.Values, _ object) { p.Set("iss", "") }, "issuer"},
		"an error of another": {func(p url.Values, _ object) {
			p.Set("error", "x")
			p.Set("iss", "https://other.example.com")
		}, "other.example.com"},
		"another verifier": {func(_ url.Values, m object) {
			m["verifier"] = strings.Repeat("x", 43)
		}, "invalid_grant"},
		"no verifier":      {func(_ url.Values, m object) { m["verifier"] = "" }, "begun"},
		"another nonce":    {func(_ url.Values, m object) { m["nonce"] = "other" }, "another login"},
		"no nonce":         {func(_ url.Values, m object) { delete(m, "nonce") }, "begun"},
		"begun at another": {func(_ url.Values, m object) { m["issuer"] = "https://other.example.com" }, "begun"},
		"a broken memory":  {func(_ url.Values, m object) { m["nonce"] = 7 }, "begun"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := login(t, newProvider(t).open(t, nil), c.edit)
			refused(t, err, c.reason)
		})
	}
}

func TestProviderThatNamesItself(t *testing.T) {
	is := is.New(t)
	p := newProvider(t)
	p.EditDocument = func(d object) { d["authorization_response_iss_parameter_supported"] = true }
	realm := p.open(t, nil)

	_, err := login(t, realm, nil)
	refused(t, err, "issuer") // it says that it always does

	_, err = login(t, realm, func(params url.Values, _ object) { params.Set("iss", p.URL) })
	is.NoErr(err)
}

func TestCodesAreGoodOnce(t *testing.T) {
	is := is.New(t)
	realm := newProvider(t).open(t, nil)
	location, memory, err := realm.Begin(t.Context(), at, "state")
	is.NoErr(err)
	answer := domains.Answer{Params: visit(t, location), State: "state"}
	_, err = realm.Finish(t.Context(), at, memory, answer)
	is.NoErr(err)

	_, err = realm.Finish(t.Context(), at, memory, answer)
	refused(t, err, "invalid_grant")
}

func TestCodesAreOfTheirLogin(t *testing.T) {
	p := newProvider(t)
	mine, others := p.open(t, nil), p.open(t, object{"clientID": "other"})

	for name, from := range map[string]domains.RedirectLogin{"another client's": others, "another login's": mine} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			location, _, err := from.Begin(t.Context(), at, "state")
			is.NoErr(err)
			stolen := visit(t, location).Get("code")
			_, err = login(t, mine, func(params url.Values, _ object) { params.Set("code", stolen) })
			refused(t, err, "invalid_grant")
		})
	}
	t.Run("another address's", func(t *testing.T) {
		is := is.New(t)
		location, memory, err := mine.Begin(t.Context(), at, "state")
		is.NoErr(err)
		elsewhere := domains.Endpoints{Callback: "https://here.example.com/api/login/other/callback"}
		_, err = mine.Finish(t.Context(), elsewhere, memory, domains.Answer{Params: visit(t, location), State: "state"})
		refused(t, err, "invalid_grant")
	})
}
