package oidctest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

// ServeDocument is the default handler of Document.
func (p *Provider) ServeDocument(w http.ResponseWriter, _ *http.Request) {
	d := Object{
		"issuer":                 p.URL,
		"authorization_endpoint": p.URL + "/authorize?from=document", "token_endpoint": p.URL + "/token",
		"jwks_uri":          p.URL + "/keys",
		"userinfo_endpoint": p.URL + "/userinfo", "end_session_endpoint": p.URL + "/logout?from=document",
		"backchannel_logout_supported":          true,
		"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
	}
	if p.Methods != nil {
		d["token_endpoint_auth_methods_supported"] = p.Methods
	}
	if p.EditDocument != nil {
		p.EditDocument(d)
	}
	Reply(w, http.StatusOK, d)
}

func (p *Provider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	Reply(w, http.StatusOK, jose.JSONWebKeySet{Keys: p.Keys})
}

func (p *Provider) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("from") != "document" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if p.Ask && q.Get("agreed") == "" {
		q.Set("agreed", "yes")
		_, _ = fmt.Fprintf(
			w, `<!DOCTYPE html><title>Provider</title><a id="agree" href="?%s">Log in</a>`,
			html.EscapeString(q.Encode()),
		)
		return
	}
	code := rand.Text()
	p.codes[code] = grant{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce")}
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	to, err := url.Parse(q.Get("redirect_uri")) // which may have a query (RFC 6749, 3.1.2)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	query := to.Query()
	maps.Copy(query, back)
	to.RawQuery = query.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

func (p *Provider) serveToken(w http.ResponseWriter, r *http.Request) {
	client, ok := p.authenticate(r)
	if !ok {
		Reply(w, http.StatusUnauthorized, Object{"error": "invalid_client"})
		return
	}
	code := r.FormValue("code")
	g, known := p.codes[code]
	delete(p.codes, code)
	challenge := oauth2.S256ChallengeFromVerifier(r.FormValue("code_verifier"))
	if !known || g.client != client || g.redirect != r.FormValue("redirect_uri") || g.challenge != challenge {
		Reply(w, http.StatusBadRequest, Object{
			"error":             "invalid_grant",
			"error_description": "The code " + code + " is not good.",
		})
		return
	}
	now := p.now()
	claims := Object{
		"iss":   p.URL,
		"aud":   client,
		"iat":   now.Unix(),
		"exp":   now.Add(time.Minute).Unix(),
		"nonce": g.nonce,
	}
	maps.Copy(claims, p.Person)
	if p.EditClaims != nil {
		p.EditClaims(claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	answer := Object{"access_token": AccessToken, "token_type": "Bearer", "id_token": p.signed(payload)}
	if p.EditTokens != nil {
		p.EditTokens(answer)
	}
	Reply(w, http.StatusOK, answer)
}

// serveLogout redirects the browser to the requested address.
func (p *Provider) serveLogout(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	to, err := url.Parse(q.Get("post_logout_redirect_uri"))
	if err != nil || q.Get("from") != "document" || q.Get("client_id") != ClientID || q.Get("id_token_hint") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	query := to.Query()
	query.Set("state", q.Get("state"))
	to.RawQuery = query.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

// LogoutToken returns a logout token of the person. otherwise replaces claims; those that are nil
// are left out.
func (p *Provider) LogoutToken(otherwise Object) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	claims := Object{
		"iss": p.URL, "aud": ClientID, "iat": now.Unix(),
		"exp": now.Add(2 * time.Minute).Unix(), "jti": rand.Text(), "sub": p.Person["sub"],
		"events": Object{"http://schemas.openid.net/event/backchannel-logout": Object{}},
	}
	maps.Copy(claims, otherwise)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	return Sign(p.t, p.Key, payload)
}

// authenticate returns the client that a request authenticates.
func (p *Provider) authenticate(r *http.Request) (string, bool) {
	id, password, basic := r.BasicAuth()
	if basic {
		p.Proved = append(p.Proved, "client_secret_basic")
		id, _ = url.QueryUnescape(id)
		password, _ = url.QueryUnescape(password)
		return id, len(p.Methods) > 0 && p.Methods[0] == "client_secret_basic" && password == Secret
	}
	if id, password = r.FormValue("client_id"), r.FormValue("client_secret"); p.Public {
		p.Proved = append(p.Proved, "none")
		return id, password == ""
	}
	p.Proved = append(p.Proved, "client_secret_post")
	return id, (p.Methods == nil || p.Methods[0] == "client_secret_post") && password == Secret
}

func (p *Provider) serveUserinfo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+AccessToken {
		http.Error(w, "who is "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	Reply(w, http.StatusOK, p.Userinfo)
}

func (p *Provider) signed(payload []byte) string {
	if p.SignClaims != nil {
		return p.SignClaims(payload)
	}
	return Sign(p.t, p.Key, payload)
}
