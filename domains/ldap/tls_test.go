package ldap_test

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// TestCertificates: no password goes to a server that cannot show a certificate for its name.
func TestCertificates(t *testing.T) {
	s, other := slapd.Test(t, company(slapd.LDAP())), slapd.Test(t, slapd.LDAP())
	to := func(url string) ldap.Dial { // wherever the name may point
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(
				ctx, network, strings.TrimPrefix(strings.TrimPrefix(url, "ldaps://"), "ldap://"),
			)
		}
	}
	for _, c := range []struct {
		name   string
		dial   ldap.Dial
		config json.RawMessage
		ok     bool
	}{
		{"ldaps", nil, s.Config(s.TLSURL, nil), true},
		{"startTLS", nil, s.Config(s.URL, map[string]any{"startTLS": true}), true},
		{"by name", to(s.TLSURL), s.Config("ldaps://localhost", nil), true},
		{
			"two authorities", nil,
			s.Config(s.TLSURL, map[string]any{"caCert": "of both:\n" + other.CACert + "\n" + s.CACert}), true,
		},
		{"unknown authority", nil, s.Config(s.TLSURL, map[string]any{"caCert": ""}), false},
		{"startTLS, unknown authority", nil, s.Config(s.URL, map[string]any{"caCert": "", "startTLS": true}), false},
		{"another authority", nil, s.Config(s.TLSURL, map[string]any{"caCert": other.CACert}), false},
		{"another name", to(s.TLSURL), s.Config("ldaps://ldap.example.org", nil), false},
		{
			"startTLS, another name", to(s.URL),
			s.Config("ldap://ldap.example.org", map[string]any{"startTLS": true}), false,
		},
		{"no TLS there", to(s.URL), s.Config("ldaps://localhost", map[string]any{"timeoutMs": 500}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			realm := mustOpen(t, ldap.LDAP{Dial: c.dial}, c.config)
			who, err := realm.Login(t.Context(), "jo", "jo's secret")
			_, _, err2 := everything(t.Context(), realm)
			if c.ok {
				is.NoErr(err)
				is.NoErr(err2)
				is.Equal(who.Username, "jo")
				return
			}
			saying(t, err)
			saying(t, err2)
			switch {
			case c.name == "no TLS there": // of which slapd waits for more
			case strings.HasSuffix(c.name, "another name"):
				saying(t, err, "TLS with the directory", "ldap.example.org")
			default:
				saying(t, err, "TLS with the directory", "caCert")
			}
		})
	}
}

// TestStartTLSRefused: without TLS nothing else is said.
func TestStartTLSRefused(t *testing.T) {
	is := is.New(t)
	f := newFake(t, func(r asked) { r.result(goldap.ApplicationExtendedResponse, goldap.LDAPResultProtocolError) })
	config := json.RawMessage(strings.Replace(string(f.config()), "{", `{"startTLS": true, `, 1))
	_, err := mustOpen(t, ldap.LDAP{}, config).Login(t.Context(), "jo", "pw")
	saying(t, err, "TLS with the directory")
	is.Equal(f.log(), "other")
}

// TestStartTLSInjection: what somebody on the way adds in the clear is not taken for an answer of
// the directory.
func TestStartTLSInjection(t *testing.T) {
	f := newFake(t, func(r asked) {
		r.result(goldap.ApplicationExtendedResponse, 0)
		r.result(goldap.ApplicationBindResponse, 0)
	})
	config := json.RawMessage(strings.Replace(string(f.config()), "{", `{"startTLS": true, `, 1))
	_, err := mustOpen(t, ldap.LDAP{}, config).Login(t.Context(), "jo", "pw")
	saying(t, err, "TLS with the directory")
}

// TestCannotBeReached: nobody there, and somebody who hangs up.
func TestCannotBeReached(t *testing.T) {
	is := is.New(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	url := "ldap://" + l.Addr().String()
	is.NoErr(l.Close())
	realm := mustOpen(t, ldap.LDAP{}, json.RawMessage(with(`"url": "`+url+`"`)))
	_, err = realm.Login(t.Context(), "jo", "pw")
	saying(t, err, "The directory "+url+" cannot be reached.")
	_, _, err = everything(t.Context(), realm)
	saying(t, err, "The directory "+url+" cannot be reached.")
	f := newFake(t, func(r asked) { r.Close() })
	_, err = mustOpen(t, ldap.LDAP{}, f.config()).Login(t.Context(), "jo", "pw")
	saying(t, err, "broke off")
}

// TestDial: a host may forbid addresses; and a dialer that never comes back is not waited for.
func TestDial(t *testing.T) {
	is := is.New(t)
	var asked atomic.Value
	forbid := func(ctx context.Context, network, address string) (net.Conn, error) {
		asked.Store(network + " " + address)
		return nil, errs.New(errs.Forbidden, "a private address")
	}
	for url, want := range map[string]string{
		"ldap://10.0.0.1":  "tcp 10.0.0.1:389",
		"ldaps://10.0.0.1": "tcp 10.0.0.1:636", "ldap://[::1]:1389": "tcp [::1]:1389",
	} {
		_, err := mustOpen(
			t, ldap.AD{Dial: forbid}, json.RawMessage(with(`"url": "`+url+`"`)),
		).Login(t.Context(), "jo", "pw")
		saying(t, err, "cannot be reached")
		is.Equal(asked.Load(), want)
	}
	never := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	realm := mustOpen(t, ldap.AD{Dial: never}, json.RawMessage(with(`"timeoutMs": 100`)))
	began := time.Now()
	_, err := realm.Login(t.Context(), "jo", "pw")
	saying(t, err, "does not answer in time (timeoutMs: 100)")
	is.True(time.Since(began) < 5*time.Second)
}
