package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

// TestLogout: a browser is sent to the provider's address with the ID token of the login, and to no
// other provider.
func TestLogout(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	p.Person["sid"] = "s-1"
	at := at
	at.LoggedOut = "https://here.example.com/api/login/work/loggedout?tenant=acme"
	realm := p.open(t, nil)
	who, err := enter(t, realm)
	is.NoErr(err)
	is.Equal(who.Session.Subject, "0017")
	is.Equal(who.Session.ID, "s-1")
	location, kept, err := realm.(domains.LogoutAtProvider).BeginLogout(t.Context(), at, who.Session.Memory, "a state")
	is.NoErr(err)
	to, err := url.Parse(location)
	is.NoErr(err)
	q := to.Query()
	is.Equal(p.URL+to.Path, p.URL+"/logout")
	is.Equal(len(strings.Split(q.Get("id_token_hint"), ".")), 3)
	q.Del("id_token_hint")
	is.Equal(q, url.Values{
		"from":                     {"document"},
		"client_id":                {clientID},
		"post_logout_redirect_uri": {at.LoggedOut},
		"state":                    {"a state"},
	})
	is.NoErr(realm.(domains.LogoutAtProvider).FinishLogout(t.Context(), at, kept, domains.Answer{}))

	// A token that makes the address too long is left out, and so is a session that cannot be an
	// id.
	p.Set(func() { p.Person["extra"], p.Person["sid"] = strings.Repeat("x", 10_000), strings.Repeat("x", 2000) })
	who, err = enter(t, realm)
	is.NoErr(err)
	is.Equal(who.Session.ID, "")
	is.True(len(who.Session.Memory) < 1000)
	location, _, err = realm.(domains.LogoutAtProvider).BeginLogout(t.Context(), at, who.Session.Memory, "a state")
	is.NoErr(err)
	is.True(strings.Contains(location, "client_id=") && !strings.Contains(location, "id_token_hint"))

	// Another provider gets nothing; one without logout has no address.
	for _, c := range []struct {
		session []byte
		edit    func(object)
	}{
		{who.Session.Memory, func(d object) { delete(d, "end_session_endpoint") }},
		{who.Session.Memory, func(d object) { d["end_session_endpoint"] = "http://other.example.com/logout" }},
		{who.Session.Memory, func(d object) { d["end_session_endpoint"] = "javascript:alert(1)" }},
		{[]byte(`{"issuer": "https://other.example.com", "token": "x"}`), nil}, {nil, nil}, {[]byte("x"), nil},
	} {
		p.Set(func() { p.EditDocument = c.edit })
		location, _, err := p.open(t, nil).(domains.LogoutAtProvider).BeginLogout(t.Context(), at, c.session, "a state")
		is.NoErr(err)
		is.Equal(location, "")
	}
	p.Close()
	_, _, err = p.open(t, nil).(domains.LogoutAtProvider).BeginLogout(t.Context(), at, who.Session.Memory, "a state")
	is.Equal(errs.CodeOf(err), errs.Upstream)
}

// notify sends a realm what a provider sends.
func notify(t *testing.T, realm domains.Realm, tokens ...string) (domains.LogoutNotice, error) {
	t.Helper()
	return realm.(domains.LogoutReceiver).ReceiveLogout(
		t.Context(), at, domains.Answer{Params: url.Values{"logout_token": tokens}},
	)
}

func TestLogoutTokens(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	realm := p.open(t, nil)
	for _, c := range []struct {
		claims  object
		subject string
		session []string
	}{
		{object{"jti": "1"}, "0017", nil},
		{object{"jti": "1", "sid": "s-1"}, "0017", []string{"s-1"}},
		{object{"jti": "1", "sub": nil, "sid": "s-1"}, "", []string{"s-1"}},
		// clocks differ
		{
			object{
				"jti": "1",
				"exp": time.Now().Add(-2 * time.Minute).Unix(),
				"iat": time.Now().Add(2 * time.Minute).Unix(),
			},
			"0017", nil,
		},
		{object{"jti": "1", "aud": []string{clientID}}, "0017", nil},
	} {
		n, err := notify(t, realm, p.LogoutToken(c.claims))
		is.NoErr(err)
		is.Equal(n.Subject, c.subject)
		is.Equal(n.Sessions, c.session)
		is.Equal(n.ID, p.URL+" 1")
		is.True(n.Until.After(time.Now()) && n.Until.Before(time.Now().Add(10*time.Minute)))
	}
	n, err := notify(t, realm, p.LogoutToken(object{"exp": time.Now().AddDate(1, 0, 0).Unix()}))
	is.NoErr(err)
	is.True(n.Until.Before(time.Now().Add(20 * time.Minute))) // its record need not be kept for a year
}

func TestLogoutTokensThatAreNotGood(t *testing.T) {
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	for name, c := range map[string]struct {
		claims object
		reason string
	}{
		"another issuer":       {object{"iss": "https://other.example.com"}, "different provider"},
		"another audience":     {object{"aud": "other"}, "expected audience"},
		"no audience":          {object{"aud": nil}, "expected audience"},
		"expired":              {object{"exp": ago(domains.ClockSkew + time.Minute)}, "expired"},
		"no expiry":            {object{"exp": nil}, "expired"},
		"old":                  {object{"iat": ago(time.Hour), "exp": ago(-time.Hour)}, "too long ago"},
		"issued in the future": {object{"iat": ago(-domains.ClockSkew - time.Minute)}, "in the future"},
		"issued at no time":    {object{"iat": nil}, "at no time"},
		"no jti":               {object{"jti": nil}, "jti"},
		"an empty jti":         {object{"jti": ""}, "jti"},
		"a jti with NUL":       {object{"jti": "a\x00"}, "jti"},
		"nobody":               {object{"sub": nil}, "neither a sub nor a sid"},
		"a sub that is empty":  {object{"sub": "", "sid": "s-1"}, "a bad one"},
		"a sid that is empty":  {object{"sid": ""}, "a bad one"},
		"a sid of a number":    {object{"sid": 7}, "a bad one"},
		"a long sid":           {object{"sid": strings.Repeat("x", 1025)}, "a bad one"},
		"no events":            {object{"events": nil}, "no event"},
		"another event": {
			object{"events": object{"http://schemas.openid.net/event/other": object{}}}, "no event",
		},
		"an event of a text": {
			object{"events": object{"http://schemas.openid.net/event/backchannel-logout": "yes"}}, "no event",
		},
		"events of a list": {
			object{"events": []string{"http://schemas.openid.net/event/backchannel-logout"}}, "no event",
		},
		"a nonce":         {object{"nonce": "x"}, "nonce"},
		"a nonce of null": {object{"nonce": json.RawMessage("null")}, "nonce"},
		"a long token":    {object{"extra": strings.Repeat("x", 20_000)}, "a long one"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			n, err := notify(t, p.open(t, nil), p.LogoutToken(c.claims))
			refused(t, err, c.reason)
			is.New(t).Equal(n.Subject, "")
		})
	}
	p := newProvider(t)
	good := p.LogoutToken(nil)
	for _, tokens := range [][]string{nil, {""}, {good, good}, {"x"}, {good + "x"}, {good[:len(good)-4]}} {
		_, err := notify(t, p.open(t, nil), tokens...)
		refused(t, err, "")
	}
}

// TestTokensOfAnotherUse: an ID token logs nobody out, and a logout token logs nobody in.
func TestTokensOfAnotherUse(t *testing.T) {
	p := newProvider(t)
	realm := p.open(t, nil)
	raw := ""
	p.EditTokens = func(answer object) { raw, _ = answer["id_token"].(string) }
	_, err := login(t, realm, nil)
	is.New(t).NoErr(err)
	_, err = notify(t, realm, raw)
	refused(t, err, "no event")

	logout := p.LogoutToken(nil)
	p.Set(func() { p.EditTokens = func(answer object) { answer["id_token"] = logout } })
	_, err = login(t, realm, nil)
	refused(t, err, "another login")
}

// TestForgedLogoutTokens: the header of a token chooses neither the key nor the way that it is
// checked.
func TestForgedLogoutTokens(t *testing.T) {
	p := newProvider(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	is.New(t).NoErr(err)
	p.Use(jose.JSONWebKey{Key: key, KeyID: "k", Algorithm: "RS256"})
	realm := p.open(t, nil)
	asked := 0
	evil := newProvider(t)
	evil.Broken["/keys"] = func(http.ResponseWriter, *http.Request) { asked++ }
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(p.LogoutToken(nil), ".")[1])
	is.New(t).NoErr(err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	is.New(t).NoErr(err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	header := func(extra map[jose.HeaderKey]any) string {
		o := &jose.SignerOptions{ExtraHeaders: extra, EmbedJWK: extra["jwk"] != nil}
		delete(extra, "jwk")
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: evil.Key}, o)
		is.New(t).NoErr(err)
		jws, err := signer.Sign(payload)
		is.New(t).NoErr(err)
		token, err := jws.CompactSerialize()
		is.New(t).NoErr(err)
		return token
	}
	for name, token := range map[string]string{
		"HS256 with the public key in PEM": oidctest.Sign(
			t, jose.JSONWebKey{Key: public, KeyID: "k", Algorithm: "HS256"}, payload,
		),
		"HS256 with the public key in DER": oidctest.Sign(
			t, jose.JSONWebKey{Key: der, KeyID: "k", Algorithm: "HS256"}, payload,
		),
		"HS256 with the client's secret": oidctest.Sign(t, jose.JSONWebKey{
			Key:       []byte(strings.Repeat(secret, 4)),
			KeyID:     "k",
			Algorithm: "HS256",
		}, payload),
		"none": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k"}`)) + "." +
			base64.RawURLEncoding.EncodeToString(payload) + ".",
		"another key of the same id": oidctest.Sign(
			t, jose.JSONWebKey{Key: evil.Key.Key, KeyID: "k", Algorithm: "ES256"}, payload,
		),
		"a path as kid": oidctest.Sign(
			t, jose.JSONWebKey{Key: evil.Key.Key, KeyID: "../../dev/null", Algorithm: "ES256"}, payload,
		),
		"SQL as kid": oidctest.Sign(
			t, jose.JSONWebKey{Key: evil.Key.Key, KeyID: "' OR 1=1 --", Algorithm: "ES256"}, payload,
		),
		"jku": header(map[jose.HeaderKey]any{"jku": evil.URL + "/keys"}),
		"x5u": header(map[jose.HeaderKey]any{"x5u": evil.URL + "/keys"}),
		"jwk": header(map[jose.HeaderKey]any{"jwk": true}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := notify(t, realm, token)
			refused(t, err, "")
		})
	}
	is.New(t).Equal(asked, 0)
}

// TestStrangersDoNotMakeKeysBeRead: tokens that anybody can make ask the provider for its keys once
// a minute at most; then a new key is found.
func TestStrangersDoNotMakeKeysBeRead(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	now := time.Now()
	realm := p.openWith(t, oidc.Driver{Now: func() time.Time { return now }}, nil)
	for range 10 {
		_, err := notify(t, realm, oidctest.Sign(t, newProvider(t).Key, []byte(`{}`)))
		refused(t, err, "")
	}
	is.Equal(p.Count("/keys"), 1)
	p.Rotate("second")
	_, err := notify(t, realm, p.LogoutToken(nil))
	refused(t, err, "")
	now = now.Add(61 * time.Second)
	_, err = notify(t, realm, p.LogoutToken(nil))
	is.NoErr(err)
	is.Equal(p.Count("/keys"), 2)
	p.Set(func() { p.Broken["/keys"] = http.NotFound })
	p.Rotate("third")
	now = now.Add(61 * time.Second)
	_, err = notify(t, realm, p.LogoutToken(nil))
	is.Equal(errs.CodeOf(err), errs.Upstream)
	_, err = login(t, realm, nil) // which does not wait
	is.Equal(errs.CodeOf(err), errs.Upstream)
}
