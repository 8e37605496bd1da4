package endtoend_test

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
)

// TestDeniedNetworks: a superuser cannot make the server connect to denied networks, with any
// driver and any name for the address. By default these are the loopback and link-local networks.
func TestDeniedNetworks(t *testing.T) {
	is := is.New(t)
	db, key := dbtest.SQLite(t), tenantcontent.NewSecretKey()
	w := serve(t, db, key, nil)
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	t.Cleanup(func() { _ = inside.Close() })
	var reached atomic.Int64
	go func() {
		for {
			c, err := inside.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(inside.Addr().String())
	is.NoErr(err)
	local := "localhost:" + port
	for id, config := range map[string]map[string]any{
		"LDAP":  {"url": "ldap://" + local, "baseDN": "dc=example,dc=org"},
		"AD":    {"url": "ldaps://127.0.0.1:" + port, "baseDN": "dc=example,dc=org"},
		"Any4":  {"url": "ldap://0.0.0.0:" + port, "baseDN": "dc=example,dc=org"},
		"Any6":  {"url": "ldap://[::]:" + port, "baseDN": "dc=example,dc=org"},
		"Any46": {"url": "ldap://[::ffff:0.0.0.0]:" + port, "baseDN": "dc=example,dc=org"},
		"SAML":  {"metadataURL": "http://" + local + "/metadata"},
		"OIDC":  {"issuer": "http://" + local, "clientID": "us"},
		"Cloud": {"url": "ldap://169.254.169.254:80", "baseDN": "dc=example,dc=org"},
		"Zone":  {"url": "ldap://[fe80::1%25eth0]", "baseDN": "dc=example,dc=org"},
	} {
		driver := id
		if id == "Cloud" || id == "Zone" || strings.HasPrefix(id, "Any") {
			driver = "LDAP"
		}
		body, err := json.Marshal(map[string]any{
			"id":     strings.ToLower(id),
			"name":   id,
			"type":   driver,
			"config": config,
		})
		is.NoErr(err)
		if id == "Cloud" || id == "Zone" { // only loopback is allowed here
			said := w.admin.do(t, "POST", "/api/domains?check=false", string(body)).refused(t, 400)
			is.Equal(
				said,
				"config.url must not be an address in a network that this server does not connect to: its "+
					"operator names the networks that it may connect to in TENANTCONTENT_ALLOW_NETWORKS",
			)
			continue
		}
		w.admin.must(t, "POST", "/api/domains?check=false", string(body))
	}
	ask := func() {
		t.Helper()
		for _, id := range []string{"ldap", "ad", "any4", "any6", "any46"} {
			w.admin.do(t, "POST", "/api/domains/"+id+"/driver/_scan", "").refused(t, 502)
			w.login(t, "acme", id, "jo", "secret").refused(t, 502)
		}
		for _, id := range []string{"saml", "oidc"} {
			(&caller{w, ""}).do(t, "GET", "/api/login/"+id+"/sso?tenant=acme", "").refused(t, 502)
		}
	}
	ask()
	is.True(reached.Load() > 0)                                     // the addresses are reachable
	for _, deny := range [][]netip.Prefix{nil, egress.Loopback()} { // by default, and if both settings name it
		c := tenantcontent.Config{
			DomainDrivers: []domains.Driver{ldap.AD{}, ldap.LDAP{}, saml.Driver{}, oidc.Driver{}},
			Scripts:       javascript.New(javascript.Options{}),
			DB:            db,
			SecretKey:     key,
			BaseURL:       w.url,
			Log:           slog.New(slog.NewTextHandler(&w.log, nil)),
			DenyNetworks:  deny,
		}
		if deny != nil {
			c.AllowNetworks = egress.Loopback()
		}
		w.app, err = tenantcontent.Open(c)
		is.NoErr(err)
		reached.Store(0)
		for id, member := range map[string]string{
			"ad":    "url",
			"any4":  "url",
			"any6":  "url",
			"any46": "url",
			"ldap":  "",
			"saml":  "",
			"oidc":  "",
		} {
			var d struct {
				Public struct {
					Ready  bool
					Reason string
				}
			}
			// the address of a name is only known when it is resolved
			is.NoErr(json.Unmarshal([]byte(w.admin.must(t, "GET", "/api/domains/"+id, "").body), &d))
			// http is not ready for it
			is.Equal(d.Public.Ready, member == "" && id != "saml")
			is.True(member == "" ||
				d.Public.Reason == "config."+member+
					" must not be an address in a network that this server does not connect to: its operator "+
					"names the networks that it may connect to in TENANTCONTENT_ALLOW_NETWORKS")
		}
		ask()
		is.Equal(reached.Load(), int64(0))
		is.True(strings.Contains(
			w.admin.do(t, "POST", "/api/domains/ldap/driver/_scan", "").refused(t, 502),
			"TENANTCONTENT_ALLOW_NETWORKS",
		))
		is.True(strings.Contains(w.log.String(), "denied by configuration"))
	}
}
