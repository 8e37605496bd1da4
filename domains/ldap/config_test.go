package ldap_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
)

// with returns the smallest configuration, with members added.
func with(members string) string {
	return `{"url": "ldap://127.0.0.1", "baseDN": "dc=example,dc=org", ` + members + `}`
}

// bad are configurations, each with the member that is to blame.
var bad = map[string]string{
	`{}`:                                         "url",
	`{"baseDN": "dc=x"}`:                         "url",
	`{"url": null}`:                              "url",
	`{"url": 389}`:                               "url",
	`{"url": "http://a"}`:                        "url",
	`{"url": "ldapi://a"}`:                       "url",
	`{"url": "cldap://a"}`:                       "url",
	`{"url": "ldap:"}`:                           "url",
	`{"url": "ldap://"}`:                         "url",
	`{"url": "ldap://:389"}`:                     "url",
	`{"url": "ldap://a:0"}`:                      "url",
	`{"url": "ldap://a:65536"}`:                  "url",
	`{"url": "ldap://a:x"}`:                      "url",
	`{"url": "ldap://a/dc=x"}`:                   "url",
	`{"url": "ldap://a?x"}`:                      "url",
	`{"url": "ldap://a#x"}`:                      "url",
	`{"url": "ldap://jo:pw@a"}`:                  "url",
	`{"url": "ldap://a b"}`:                      "url",
	`{"url": "ldap://a\u0000"}`:                  "url",
	`{"url": "ldap://127.0.0.1"}`:                "baseDN",
	with(`"baseDN": ""`):                         "baseDN",
	with(`"baseDN": " "`):                        "baseDN",
	with(`"baseDN": []`):                         "baseDN",
	with(`"baseDN": "no dn"`):                    "baseDN",
	with(`"baseDN": "dc=a,,dc=b"`):               "baseDN",
	with(`"userBaseDN": "x"`):                    "userBaseDN",
	with(`"groupBaseDN": 1`):                     "groupBaseDN",
	with(`"startTLS": "true"`):                   "startTLS",
	with(`"url": "ldaps://a", "startTLS": true`): "startTLS",
	with(`"caCert": true`):                       "caCert",
	with(`"caCert": "no pem"`):                   "caCert",
	with(`"caCert": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"`): "caCert",
	with(`"caCert": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"`): "caCert",
	with(`"caCert": "` + strings.Repeat("x", 300_000) + `"`):                         "caCert",
	with(`"bindDN": {}`):                                          "bindDN",
	with(`"bindPassword": "pw"`):                                  "bindDN",
	with(`"bindDN": "cn=x"`):                                      "bindPassword",
	with(`"bindDN": "cn=x", "bindPassword": ""`):                  "bindPassword",
	with(`"bindDN": "cn=x", "bindPassword": 1`):                   "bindPassword",
	with(`"userFilter": "objectClass=person"`):                    "userFilter",
	with(`"userFilter": "(objectClass=person)(uid=*)"`):           "userFilter",
	with(`"userFilter": "(&(objectClass=person)"`):                "userFilter",
	with(`"userFilter": "` + strings.Repeat("(!", 3000) + `"`):    "userFilter",
	with(`"groupFilter": 7`):                                      "groupFilter",
	with(`"groupFilter": "()"`):                                   "groupFilter",
	with(`"groupName": "a b"`):                                    "groupName",
	with(`"groupName": ["cn"]`):                                   "groupName",
	with(`"groupMember": "member;range=0-1"`):                     "groupMember",
	with(`"attributes": []`):                                      "attributes",
	with(`"attributes": {"username": ""}`):                        "attributes.username",
	with(`"attributes": {"username": "uid)(uid=*"}`):              "attributes.username",
	with(`"attributes": {"username": "1.2."}`):                    "attributes.username",
	with(`"attributes": {"givenName": 1}`):                        "attributes.givenName",
	with(`"attributes": {"familyName": "*"}`):                     "attributes.familyName",
	with(`"attributes": {"displayName": "a,b"}`):                  "attributes.displayName",
	with(`"attributes": {"timezone": {}}`):                        "attributes.timezone",
	with(`"attributes": {"emailAttribute": "a\u0000"}`):           "attributes.emailAttribute",
	with(`"hosts": "ldap://b"`):                                   "hosts",
	with(`"hosts": ["ldaps://b"]`):                                "hosts",
	with(`"hosts": [7]`):                                          "hosts",
	with(`"idAttribute": "a b"`):                                  "idAttribute",
	with(`"netbiosName": "A\\B"`):                                 "netbiosName",
	with(`"upnSuffixes": "x"`):                                    "upnSuffixes",
	with(`"upnSuffixes": [""]`):                                   "upnSuffixes",
	with(`"builtin": "yes"`):                                      "builtin",
	with(`"pageSize": 0`):                                         "pageSize",
	with(`"pageSize": 10001`):                                     "pageSize",
	with(`"pageSize": 1.5`):                                       "pageSize",
	with(`"pageSize": "10"`):                                      "pageSize",
	with(`"timeoutMs": 99`):                                       "timeoutMs",
	with(`"timeoutMs": 1e99`):                                     "timeoutMs",
	with(`"timeoutMs": true`):                                     "timeoutMs",
	with(`"bindDN": "` + strings.Repeat("x", 5000) + `"`):         "bindDN",
	with(`"attributes": {}, "pageSize": -9223372036854775809`):    "pageSize",
	with(`"userBaseDN": "` + strings.Repeat("dc=x,", 2000) + `"`): "userBaseDN",
}

func TestGoodConfig(t *testing.T) {
	for _, config := range []string{
		with(`"x": 1`), with(`"url": "ldaps://[::1]:636/"`), with(`"url": "LDAP://ldap.example.org:3268"`),
		with(`"startTLS": null, "caCert": "", "bindDN": null, "userFilter": "", "groupMember": "", "pageSize": ` +
			`null, "attributes": null`),
		with(`"bindDN": "jo@example.org", "bindPassword": "pw"`), with(`"bindDN": "EXAMPLE\\jo", "bindPassword": "pw"`),
		with(`"attributes": {"username": "2.5.4.3", "timezone": "", "givenName": null, "mail": 7}`),
		with(`"pageSize": 10000, "timeoutMs": 300000, "userFilter": "(&(objectClass=person)(!(uid=x)))"`),
	} {
		for _, f := range flavors {
			_, err := f.driver.Open(json.RawMessage(config))
			is.New(t).NoErr(err)
		}
	}
}

// TestMessages: an error says what to do.
func TestMessages(t *testing.T) {
	for config, want := range map[string]string{
		`{"url": "http://a"}`:        "url must be an address that begins with ldap:// or ldaps://",
		`{"url": 1}`:                 "url must be text",
		with(`"pageSize": 0`):        "pageSize must be a whole number from 1 to 10000",
		with(`"userFilter": "x"`):    "userFilter must be a filter in parentheses such as (objectClass=person)",
		with(`"bindDN": "x"`):        "bindPassword must be given where bindDN is",
		with(`"startTLS": "yes"`):    "startTLS must be true or false",
		with(`"groupBaseDN": "x"`):   "groupBaseDN must be a distinguished name such as dc=example,dc=org",
		with(`"attributes": "none"`): "attributes must be an object of texts",
	} {
		_, err := ldap.LDAP{}.Open(json.RawMessage(config))
		is.New(t).Equal(errs.MessageOf(err), want)
	}
}

func TestInfo(t *testing.T) {
	is := is.New(t)
	is.Equal([]string{ldap.AD{}.Info().ID, ldap.LDAP{}.Info().ID}, []string{"AD", "LDAP"})
	for _, f := range flavors {
		info := f.driver.Info()
		is.Equal(info.Secrets, []string{"bindPassword"})
		is.Equal(info.LoginMethod, "POST")
		is.Equal([]string{info.UsernameParam, info.PasswordParam}, []string{"username", "password"})
		var keys []string
		for key, value := range info.Defaults {
			is.True(value != "")
			keys = append(keys, key)
		}
		slices.Sort(keys)
		is.Equal(keys, []string{"displayName", "emailAttribute", "familyName", "givenName", "timezone", "username"})
	}
}

// TestOpenAsksNobody: a domain can be opened while its directory is away.
func TestOpenAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, calls := is.New(t), 0
		d := ldap.LDAP{Dial: func(context.Context, string, string) (net.Conn, error) {
			calls++
			return nil, errors.New("away")
		}}
		realm := mustOpen(t, d, json.RawMessage(with(`"x": 1`)))
		time.Sleep(time.Hour) // of the test's own clock: whatever Open may have begun has come to its end
		is.Equal(calls, 0)
		_, err := realm.Login(t.Context(), "jo", "pw")
		is.Equal(errs.CodeOf(err), errs.Upstream)
		is.Equal(calls, 1)
	})
}
