package oidc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/errs"
)

func TestInfo(t *testing.T) {
	is := is.New(t)
	info := oidc.Driver{}.Info()

	is.Equal(info.ID, "OIDC")
	is.Equal(info.LoginMethod, "GET")
	is.Equal(info.UsernameParam+info.PasswordParam, "")
	is.Equal(info.Secrets, []string{"clientSecret"})
	is.True(info.ScanComponent == nil)
	is.True(!info.ManagesPassword)
	is.Equal(info.Defaults, map[string]string{
		"username": "preferred_username", "email": "email", "displayName": "name", "timezone": "zoneinfo",
		"givenName": "given_name", "familyName": "family_name",
	})
	info.Defaults["username"] = "edited"
	is.Equal(oidc.Driver{}.Info().Defaults["username"], "preferred_username") // it is the caller's own
}

func TestAbilities(t *testing.T) {
	is := is.New(t)
	realm, err := oidc.Driver{}.Open(json.RawMessage(`{"issuer": "https://login.example.com", "clientID": "x"}`))
	is.NoErr(err)

	_, redirect := realm.(domains.RedirectLogin)
	_, password := realm.(domains.PasswordLogin)
	_, directory := realm.(domains.Directory)
	is.Equal([]bool{redirect, password, directory}, []bool{true, false, false})
}

func TestGoodConfigs(t *testing.T) {
	for _, members := range []string{
		`"clientSecret": "x"`,
		`"clientSecret": null, "scopes": null, "claims": null`,
		`"scopes": []`,
		`"scopes": ["openid", "https://example.com/scope"]`,
		`"claims": {}`,
		`"claims": {"email": "", "timezone": null, "unknown": 7}`,
		`"unknown": [1], "Issuer": 7, "CLIENTID": {}`, // names are case-sensitive
		`"issuer": "https://login.example.com/"`,
		`"issuer": "https://login.example.com:8443/realms/some%20one"`,
		`"issuer": "http://localhost:8080"`,
		`"issuer": "http://127.0.0.9"`,
		`"issuer": "http://[::1]:80/x"`,
	} {
		t.Run(members, func(t *testing.T) {
			_, err := oidc.Driver{}.Open(
				json.RawMessage(`{"issuer": "https://login.example.com", "clientID": "x", ` + members + `}`),
			)
			is.New(t).NoErr(err)
		})
	}
}

// TestRedirects: another issuer gets the client's secret, another spelling of the same one does
// not.
func TestRedirects(t *testing.T) {
	open := func(issuer string) domains.Realm {
		r, err := oidc.Driver{}.Open(json.RawMessage(`{"issuer": "` + issuer +
			`", "clientID": "x", "clientSecret": "y"}`))
		is.New(t).NoErr(err)
		return r
	}
	before := open("https://login.example.com/one")
	for issuer, want := range map[string]string{
		"https://login.example.com/one":  "",
		"https://login.example.com/one/": "", "https://LOGIN.example.com:443/one": "",
		"https://login.example.com/two": "issuer",
		"https://login.example.org/one": "issuer", "https://login.example.com:444/one": "issuer",
	} {
		is.New(t).Equal(open(issuer).(domains.SecretSender).Redirects(before), want)
	}
}

func TestBadConfigs(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for config, begins := range map[string]string{
		``:                                       "config must be a JSON object",
		`null`:                                   "config must be a JSON object",
		`[]`:                                     "config must be a JSON object",
		`"x"`:                                    "config must be a JSON object",
		`{} {}`:                                  "config must be a JSON object",
		`{`:                                      "config must be a JSON object",
		`{}`:                                     "issuer must be an https address",
		`{"issuer": ""}`:                         "issuer must be an https address",
		`{"issuer": 7}`:                          "issuer must be a string",
		`{"issuer": ["https://a.io"]}`:           "issuer must be a string",
		`{"issuer": "login.example.com"}`:        "issuer must be an https address",
		`{"issuer": "http://login.example.com"}`: "issuer must be an https address",
		`{"issuer": "http://localhost.example.com"}`:    "issuer must be an https address",
		`{"issuer": "http://127.0.0.1.example.com"}`:    "issuer must be an https address",
		`{"issuer": "http://10.0.0.1"}`:                 "issuer must be an https address",
		`{"issuer": "ftp://login.example.com"}`:         "issuer must be an https address",
		`{"issuer": "https://"}`:                        "issuer must be an https address",
		`{"issuer": "https://:443"}`:                    "issuer must be an https address",
		`{"issuer": "https:login.example.com"}`:         "issuer must be an https address",
		`{"issuer": "https://jo:pw@login.example.com"}`: "issuer must be an https address",
		`{"issuer": "https://login.example.com?x"}`:     "issuer must be an https address",
		`{"issuer": "https://login.example.com#x"}`:     "issuer must be an https address",
		`{"issuer": "https://login.example.com/#"}`:     "issuer must be an https address",
		`{"issuer": "https://login.example.com/\n"}`:    "issuer must be an https address",
		`{"issuer": "https://x/` + long +
			`"}`: "issuer must be an https address",
		`{"Issuer": "https://x.io", "clientID": "x"}`:  "issuer must be an https address",
		`{"issuer": "https://x.io"}`:                   "clientID must be",
		`{"issuer": "https://x.io", "clientID": ""}`:   "clientID must be",
		`{"issuer": "https://x.io", "clientID": true}`: "clientID must be a string",
		`{"issuer": "https://x.io", "clientID": "` + long +
			`"}`: "clientID must be",
		`{"issuer": "https://x.io", "clientid": "x"}`:                    "clientID must be",
		`{"issuer": "https://x.io", "clientID": "x", "clientSecret": 7}`: "clientSecret must be a string",
		`{"issuer": "https://x.io", "clientID": "x", "clientSecret": "` + long +
			`"}`: "clientSecret must have at most",
		`{"issuer": "https://x.io", "clientID": "x", "scopes": "openid email"}`:   "scopes must be an array of strings",
		`{"issuer": "https://x.io", "clientID": "x", "scopes": ["openid", 7]}`:    "scopes must be an array of strings",
		`{"issuer": "https://x.io", "clientID": "x", "scopes": ["openid", null]}`: "scopes must be at most",
		`{"issuer": "https://x.io", "clientID": "x", "scopes": ["openid email"]}`: "scopes must be at most",
		`{"issuer": "https://x.io", "clientID": "x", "scopes": ["é"]}`:            "scopes must be at most",
		`{"issuer": "https://x.io", "clientID": "x", "scopes": ["` + long +
			`"]}`: "scopes must be at most",
		`{"issuer": "https://x.io", "clientID": "x", "scopes": ["x"` + strings.Repeat(`,"x"`, 50) +
			`]}`: "scopes must be at most",
		`{"issuer": "https://x.io", "clientID": "x", "claims": []}`:           "claims must be an object",
		`{"issuer": "https://x.io", "clientID": "x", "claims": {"email": 7}}`: "claims.email must be a string",
		`{"issuer": "https://x.io", "clientID": "x", "claims": {"username": ""}}`: "claims.username must be the " +
			"name of a claim",
		`{"issuer": "https://x.io", "clientID": "x", "claims": {"email": "` + long +
			`"}}`: "claims.email must have at most",
	} {
		t.Run(config, func(t *testing.T) {
			is := is.New(t)
			_, err := oidc.Driver{}.Open(json.RawMessage(config))
			is.Equal(errs.CodeOf(err), errs.Invalid)
			if !strings.HasPrefix(errs.MessageOf(err), begins) {
				t.Errorf("got %q, want %q…", errs.MessageOf(err), begins)
			}
		})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(`{"issuer": "https://login.example.com", "clientID": "x", "clientSecret": "y", "scopes": ["openid"], ` +
		`"claims": {"email": ""}}`)
	f.Add(`{"issuer": "http://[::1%25x]:80", "clientID": null, "scopes": [null], "claims": {"username": {}}}`)
	f.Fuzz(func(t *testing.T, config string) {
		realm, err := oidc.Driver{}.Open(json.RawMessage(config))
		if err == nil && realm == nil || err != nil && errs.CodeOf(err) != errs.Invalid {
			t.Errorf("Open gave %v and %v", realm, err)
		}
	})
}
