//go:build interop

package interop

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// lemonLDAP is Debian's LemonLDAP::NG, a provider of SAML and OpenID Connect. dwho logs in there
// with the password dwho, and is in the group dev.
type lemonLDAP struct{ url string }

// startLemonLDAP starts it. service is the SAML metadata of this service. redirect and loggedOut
// are its registered addresses for OpenID Connect.
func startLemonLDAP(t *testing.T, port int, service, redirect, loggedOut string) *lemonLDAP {
	t.Helper()
	is, dir := is.New(t), t.TempDir()
	p := &lemonLDAP{fmt.Sprintf("http://localhost:%d", port)}
	is.NoErr(os.CopyFS(dir, os.DirFS("testdata/lemonldap")))
	for _, folder := range []string{"conf", "cache", "sessions/lock", "psessions/lock"} {
		is.NoErr(os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	ini, err := os.ReadFile(filepath.Join(dir, "lemonldap-ng.ini"))
	is.NoErr(err)
	write(t, filepath.Join(dir, "lemonldap-ng.ini"), strings.ReplaceAll(string(ini), "DIR", dir))
	key, err := x509.MarshalPKCS8PrivateKey(samltest.Ours().Key)
	is.NoErr(err)
	private, certificate := pemOf("PRIVATE KEY", key), pemOf("CERTIFICATE", samltest.Ours().Cert.Raw)
	files := func(name string) map[string]any {
		return map[string]any{"Directory": filepath.Join(dir, name), "LockDirectory": filepath.Join(dir, name, "lock")}
	}
	type object = map[string]any
	conf, err := json.Marshal(object{
		"cfgNum": 1, "cfgVersion": "2.16.1", "cfgDate": "1", "cfgAuthor": "interop",
		"portal": p.url + "/", "domain": "localhost", "cookieName": "lemonldap", "securedCookie": 0,
		"authentication": "Demo", "userDB": "Same", "passwordDB": "Demo",
		"registerDB": "Null", "requireToken": 0, "captcha": "NoCaptcha", "portalSkin": "bootstrap",
		"portalDisplayResetPassword": 0, "portalDisplayCertificateResetByMail": 0, "portalDisplayRegister": 0,
		"notification": 0, "timeout": 7200, "whatToTrace": "$uid",
		"locationRules": object{}, "exportedHeaders": object{}, "exportedVars": object{},
		"macros":           object{},
		"demoExportedVars": object{"uid": "uid", "cn": "cn", "mail": "mail"}, "groups": object{"dev": "$uid eq 'dwho'"},
		"globalStorage": "Apache::Session::File", "globalStorageOptions": files("sessions"),
		"persistentStorage": "Apache::Session::File", "persistentStorageOptions": files("psessions"),
		"localSessionStorage": "Cache::FileCache",
		"localSessionStorageOptions": object{
			"namespace":          "sessions",
			"cache_root":         filepath.Join(dir, "cache"),
			"cache_depth":        3,
			"default_expires_in": 600,
			"directory_umask":    "077",
		},

		"issuerDBSAMLActivation": 1, "samlServiceSignatureMethod": "RSA_SHA256",
		"samlServiceUseCertificateInResponse": 1,
		"samlServicePrivateKeySig":            private, "samlServicePublicKeySig": certificate,
		"samlSPMetaDataXML": object{"content": object{"samlSPMetaDataXML": service}},
		"samlSPMetaDataExportedAttributes": object{
			"content": object{"uid": "1;uid;;", "mail": "1;mail;;", "cn": "1;cn;;", "groups": "0;groups;;"},
		},
		"samlSPMetaDataOptions": object{"content": object{"samlSPMetaDataOptionsSignSSOMessage": 1,
			"samlSPMetaDataOptionsSignSLOMessage": 1, "samlSPMetaDataOptionsCheckSSOMessageSignature": 1,
			"samlSPMetaDataOptionsCheckSLOMessageSignature": 1,
			"samlSPMetaDataOptionsEncryptionMode":           "assertion",
			"samlSPMetaDataOptionsNameIDFormat":             "persistent"}},

		"issuerDBOpenIDConnectActivation": 1, "oidcServicePrivateKeySig": private,
		"oidcServicePublicKeySig": certificate, "oidcServiceKeyIdSig": "first", "oidcServiceMetaDataIssuer": p.url,
		"oidcServiceAllowAuthorizationCodeFlow": 1, "oidcServiceIgnoreScopeForClaims": 1,
		"oidcRPMetaDataExportedVars": object{
			"content": object{
				"email":              "mail",
				"name":               "cn",
				"preferred_username": "uid",
				"groups":             "groups;string;always",
			},
		},
		"oidcRPMetaDataOptions": object{"content": object{"oidcRPMetaDataOptionsClientID": "content",
			"oidcRPMetaDataOptionsClientSecret": "content-secret", "oidcRPMetaDataOptionsRedirectUris": redirect,
			"oidcRPMetaDataOptionsPostLogoutRedirectUris": loggedOut, "oidcRPMetaDataOptionsIDTokenSignAlg": "RS256",
			"oidcRPMetaDataOptionsBypassConsent": 1, "oidcRPMetaDataOptionsLogoutBypassConfirm": 1,
			"oidcRPMetaDataOptionsRequirePKCE": 1}},
	})
	is.NoErr(err)
	write(t, filepath.Join(dir, "conf/lmConf-1.json"), string(conf))
	s := serve(t, dir, []string{
		"LLNG_DEFAULTCONFFILE=" + filepath.Join(dir, "lemonldap-ng.ini"),
		"PERL5LIB=" + filepath.Join(dir, "lib"),
	},
		"plackup", "--host", "127.0.0.1",
		"--port", fmt.Sprint(port), "/usr/share/lemonldap-ng/portal/htdocs/index.psgi")
	s.wait(t, func() error {
		res, err := http.Get(p.url + "/saml/metadata")
		if err == nil {
			res.Body.Close()
		}
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", res.StatusCode)
		}
		return err
	})
	return p
}

// lemonBrowser returns a browser that does not follow redirects to this service.
func lemonBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	is.New(t).NoErr(err)
	return &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host == "localhost" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// enter opens an address of the provider, logs dwho in if necessary, and returns the address to
// which the browser is sent then, with the form.
func (p *lemonLDAP) enter(t *testing.T, b *http.Client, to string) (location string, form url.Values) {
	t.Helper()
	for range 3 {
		res, err := b.Get(to)
		if form != nil {
			res, err = b.PostForm(to, form)
		}
		is.New(t).NoErr(err)
		location = res.Header.Get("Location")
		_, text, fields := page(t, res, err)
		if location != "" {
			return location, nil
		}
		if action, _ := samltest.Form([]byte(text)); strings.HasPrefix(action, "http://localhost/") {
			return action, fields
		}
		to, form = p.url+"/", fields
		form.Set("user", "dwho")
		form.Set("password", "dwho")
	}
	t.Fatal("the provider does not let dwho in")
	return "", nil
}

// frames matches the addresses to which the provider's logout page sends the browser.
var frames = regexp.MustCompile(`<iframe src="([^"]*)"`)

func TestLemonLDAP(t *testing.T) {
	is, s := is.New(t), newService(t)
	port := freePort(t, "127.0.0.1")
	issuer := fmt.Sprintf("http://localhost:%d", port)
	s.call(t, "POST", "/api/domains?check=false", map[string]any{"name": "SAML",
		"type": "SAML", "config": map[string]any{
			"metadataURL": issuer + "/saml/metadata", "attributes": map[string]string{"groups": "groups"},
		}}, http.StatusOK, &struct{}{})
	metadata := s.visit(t, "http://localhost/api/login/saml/metadata?tenant=acme", nil, nil).Body.String()
	p := startLemonLDAP(
		t, port, metadata, "http://localhost/api/login/oidc/callback?tenant=acme",
		"http://localhost/api/login/oidc/loggedout?tenant=acme",
	)

	_, dwho := p.enterSAML(t, s)
	is.Equal(dwho.User.Username, "dwho")
	var user struct{ Email, DisplayName string }
	s.call(t, "GET", "/api/users/dwho", nil, http.StatusOK, &user)
	is.Equal(user.Email, "dwho@badwolf.org")
	is.Equal(user.DisplayName, "Doctor Who")
	var teams struct {
		Embedded struct {
			Teams []struct{ Name string } `json:"inf:team"`
		} `json:"_embedded"`
	}
	s.call(t, "GET", "/api/teams", nil, http.StatusOK, &teams)
	is.True(slices.ContainsFunc(teams.Embedded.Teams, func(t struct{ Name string }) bool { return t.Name == "dev" }))

	// A logout that begins here, and one that begins there.
	b, in := p.enterSAML(t, s)
	p.leave(t, s, b, in)
	b, in = p.enterSAML(t, s)
	res, err := b.Get(p.url + "/?logout=1")
	_, text, _ := page(t, res, err)
	to := frames.FindStringSubmatch(text)
	is.True(len(to) > 0)
	back := s.visit(t, html.UnescapeString(to[1]), nil, nil)
	is.True(!s.alive(t, in.Token) && s.alive(t, s.token))
	is.Equal(back.Code, http.StatusSeeOther)
	res, err = b.Get(back.Header().Get("Location"))
	is.NoErr(err)
	is.NoErr(res.Body.Close())
	is.Equal(res.StatusCode, http.StatusOK) // it accepts the answer

	// OpenID Connect, for the same user, who may log in because of the group.
	s.call(t, "POST", "/api/domains", map[string]any{"name": "OIDC", "type": "OIDC", "config": map[string]any{
		"issuer": issuer, "clientID": "content", "clientSecret": "content-secret", "accounts": "saml",
		"claims": map[string]string{"groups": "groups"}, "allow": map[string]any{"groups": []string{"dev"}},
	}}, http.StatusOK, &struct{}{})
	b, in = p.enterOIDC(t, s)
	is.Equal(in.User.Username, "dwho")
	p.leave(t, s, b, in)
}

// leave logs a browser out of both, beginning here.
func (p *lemonLDAP) leave(t *testing.T, s *service, b *http.Client, in session) {
	t.Helper()
	is, cookies := is.New(t), map[string]string{"sid": in.Token}
	out := s.visit(t, "http://localhost/api/logout?provider=true&returnTo=/apps", nil, cookies)
	is.Equal(out.Code, http.StatusSeeOther)
	is.True(!s.alive(t, in.Token))
	back, form := p.enter(t, b, out.Header().Get("Location"))
	is.Equal(s.visit(t, back, form, cookies).Header().Get("Location"), "http://localhost/apps")
}

// enterSAML logs dwho in by SAML.
func (p *lemonLDAP) enterSAML(t *testing.T, s *service) (b *http.Client, in session) {
	t.Helper()
	is := is.New(t)
	b = lemonBrowser(t)
	location, form, cookie := s.begin(t, "saml")
	is.Equal(form, nil)
	to, form := p.enter(t, b, location)
	is.Equal(to, "http://localhost/api/login/saml/acs?tenant=acme")
	w := s.finish(t, "saml", cookie, form)
	if w.Code != http.StatusOK {
		t.Fatalf("dwho cannot log in: %d %s\n%s", w.Code, w.Body, s.log.String())
	}
	is.NoErr(json.Unmarshal(w.Body.Bytes(), &in))
	return b, in
}

// enterOIDC logs dwho in by OpenID Connect.
func (p *lemonLDAP) enterOIDC(t *testing.T, s *service) (b *http.Client, in session) {
	t.Helper()
	b = lemonBrowser(t)
	location, _, cookie := s.begin(t, "oidc")
	to, form := p.enter(t, b, location)
	is.New(t).Equal(form, nil)
	name, value, _ := strings.Cut(cookie, "=")
	w := s.visit(t, to, nil, map[string]string{name: value})
	if w.Code != http.StatusOK {
		t.Fatalf("dwho cannot log in: %d %s\n%s", w.Code, w.Body, s.log.String())
	}
	is.New(t).NoErr(json.Unmarshal(w.Body.Bytes(), &in))
	return b, in
}
