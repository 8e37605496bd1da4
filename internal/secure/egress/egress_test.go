package egress_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/matryer/is"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func TestDialer(t *testing.T) {
	is := is.New(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	is.NoErr(err)
	mapped := []netip.Prefix{netip.MustParsePrefix("::ffff:127.0.0.0/104")}
	_, err = egress.Dialer(mapped).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	is.True(err != nil)
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1", "127.1.2.3"} {
		_, err := egress.Dialer(loopback).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		is.True(err != nil)
		is.True(strings.Contains(err.Error(), "denied by configuration")) // not refused by the other side
	}
	for _, host := range []string{
		"0.0.0.0", "::", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0", "::1", "::ffff:127.0.0.1%lo", "64:ff9b::",
		"64:ff9b::7f00:1", "",
	} {
		for _, network := range []string{"tcp", "tcp4", "tcp6"} {
			_, err := egress.Dialer(loopback).DialContext(t.Context(), network, net.JoinHostPort(host, port))
			is.True(err != nil)
			if !strings.Contains(err.Error(), "denied by configuration") &&
				!strings.Contains(err.Error(), "no suitable address") {
				t.Errorf("%s %q: %v", network, host, err)
			}
		}
	}
	c, err := egress.Dialer(egress.Default()).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	is.NoErr(err)
	is.NoErr(c.Close())
	for _, address := range []string{
		"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fe80::1%1]:80", "[fd00:ec2::254]:80",
		"[64:ff9b::a9fe:a9fe]:80",
	} {
		_, err := egress.Dialer(egress.Default()).DialContext(t.Context(), "tcp", address)
		is.True(strings.Contains(err.Error(), "denied by configuration"))
	}
}

// TestDenied: what Denied reports without a connection.
func TestDenied(t *testing.T) {
	denied := egress.Denied(loopback)
	for address, want := range map[string]bool{
		"ldap://127.0.0.1": true, "ldaps://127.1.2.3:636": true,
		"ldap://0.0.0.0": true, "ldap://[::]:389": true, "ldap://[::ffff:0.0.0.0]": true,
		"http://[::1]/metadata": true, "https://127.0.0.1:8443/a": true,
		"ldap://[64:ff9b::7f00:1]": true, "ldap://[::ffff:127.0.0.1%251]": true,
		"ldap://localhost": false, "ldap://192.0.2.1": false, "ldap://[2001:db8::1]": false,
		"ldap://127.0.0.1.example.com": false, "": false, "%": false,
	} {
		if denied(address) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
	is := is.New(t)
	is.True(egress.Denied(egress.Default())("ldap://169.254.169.254/latest"))
	is.True(!egress.Denied(nil)("ldap://169.254.169.254/latest"))
}

func TestClient(t *testing.T) {
	is := is.New(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	answer, err := egress.Client(egress.Default()).Get(server.URL)
	is.NoErr(err)
	is.NoErr(answer.Body.Close())
	_, err = egress.Client(loopback).Get(server.URL)
	is.True(err != nil)
	is.True(strings.Contains(err.Error(), "denied by configuration"))
}

// TestExcept: Except returns the remaining addresses in as few networks as possible.
func TestExcept(t *testing.T) {
	is := is.New(t)
	parse := func(all ...string) (out []netip.Prefix) {
		for _, text := range all {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	for _, c := range []struct{ all, others, want []netip.Prefix }{
		{parse("10.0.0.0/8", "fc00::/7"), nil, parse("10.0.0.0/8", "fc00::/7")},
		{parse("10.0.0.0/8", "fc00::/7"), parse("10.0.0.0/8"), parse("fc00::/7")},
		{parse("10.0.0.0/8"), parse("0.0.0.0/0"), nil},
		{parse("10.0.0.0/8"), parse("11.0.0.0/8", "::/0"), parse("10.0.0.0/8")},
		{parse("10.0.0.0/30"), parse("10.0.0.1/32"), parse("10.0.0.0/32", "10.0.0.2/31")},
		{parse("10.0.0.0/30"), parse("::ffff:10.0.0.2/127"), parse("10.0.0.0/31")},
		{parse("0.0.0.0/0"), parse("128.0.0.0/1", "64.0.0.0/2"), parse("0.0.0.0/2")},
		{parse("fc00::/126"), parse("fc00::3/128"), parse("fc00::/127", "fc00::2/128")},
	} {
		is.Equal(egress.Except(c.all, c.others), c.want)
	}
	denied := egress.Denied(egress.Except(egress.Private(), parse("10.1.2.0/24", "::1/128")))
	for address, want := range map[string]bool{
		"https://10.1.2.3": false, "https://10.1.3.3": true, "https://10.1.1.255": true,
		"https://[::1]": false, "https://127.0.0.1": true, "https://[::]": true,
		"https://0.0.0.0": true, "https://192.168.1.1": true,
		"https://[fd12::1]": true, "https://169.254.169.254": true, "https://[::ffff:10.1.3.3]": true,
		"https://[64:ff9b::a01:303]": true, "https://[64:ff9b::a01:203]": false,
		"https://[2002:a01:303::1]": true, "https://255.255.255.255": true, "https://224.0.0.1": true,
		"https://100.64.0.1": true, "https://[::a00:1]": true, "https://1.1.1.1": false,
		"https://[2606:4700::1111]": false, "https://172.32.0.1": false, "https://223.255.255.255": false,
	} {
		if denied(address) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
	_, err := egress.Dialer(egress.Private()).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	is.True(errors.Is(err, egress.ErrDenied))
}

// TestClientSendsTraceContext: of the context of a request, and leaves the request as it is.
func TestClientSendsTraceContext(t *testing.T) {
	is := is.New(t)
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	defer server.Close()
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	for _, c := range []struct {
		ctx  context.Context
		want []string
	}{
		{t.Context(), nil},
		{
			trace.ContextWithSpanContext(t.Context(), span),
			[]string{"00-01000000000000000000000000000000-0200000000000000-00"},
		},
	} {
		r, err := http.NewRequestWithContext(c.ctx, http.MethodGet, server.URL, nil)
		is.NoErr(err)
		answer, err := egress.Client(egress.Default()).Do(r)
		is.NoErr(err)
		is.NoErr(answer.Body.Close())
		is.Equal((<-got)["Traceparent"], c.want)
		is.Equal(len(r.Header), 0)
	}
}
