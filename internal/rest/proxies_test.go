package rest

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/tenantcontent/tenantcontent/errs"
)

func prefixes(all ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func TestClientAddress(t *testing.T) {
	proxies, err := NewTrustedProxies(prefixes("10.0.0.0/8", "fd00::/8", "::ffff:172.16.0.0/108"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		peer   string
		header http.Header
		want   string // "" for not known
	}{
		"no header": {"10.0.0.1:80", nil, "10.0.0.1"},
		"untrusted peer": {
			"192.0.2.1:80", http.Header{"X-Forwarded-For": {"1.1.1.1"}, "Forwarded": {"for=1.1.1.1"}},
			"192.0.2.1",
		},
		"mapped peer":       {"[::ffff:192.0.2.1]:80", nil, "192.0.2.1"},
		"mapped proxy":      {"[::ffff:10.0.0.1]:80", http.Header{"X-Forwarded-For": {"1.1.1.1"}}, "1.1.1.1"},
		"network in mapped": {"172.16.0.9:80", http.Header{"X-Forwarded-For": {"1.1.1.1"}}, "1.1.1.1"},
		"from the right": {
			"10.0.0.1:80", http.Header{"X-Forwarded-For": {"6.6.6.6, 1.1.1.1, 10.9.9.9"}}, "1.1.1.1",
		},
		"several lines": {
			"10.0.0.1:80", http.Header{"X-Forwarded-For": {"6.6.6.6", "1.1.1.1,10.9.9.9 "}}, "1.1.1.1",
		},
		"proxies alone": {"10.0.0.1:80", http.Header{"X-Forwarded-For": {"10.0.0.3, 10.0.0.2"}}, "10.0.0.3"},
		"with ports": {
			"10.0.0.1:80", http.Header{"X-Forwarded-For": {"6.6.6.6:1, 1.1.1.1:5678, [fd00::1]:9"}}, "1.1.1.1",
		},
		"IPv6":              {"[fd00::1]:80", http.Header{"X-Forwarded-For": {"2001:db8::7"}}, "2001:db8::7"},
		"IPv6 in brackets":  {"[fd00::1]:80", http.Header{"X-Forwarded-For": {"[2001:db8::7]"}}, "2001:db8::7"},
		"IPv4 as IPv6":      {"10.0.0.1:80", http.Header{"X-Forwarded-For": {"::ffff:1.1.1.1"}}, "1.1.1.1"},
		"not an address":    {"10.0.0.1:80", http.Header{"X-Forwarded-For": {"1.1.1.1, unknown"}}, ""},
		"empty":             {"10.0.0.1:80", http.Header{"X-Forwarded-For": {"1.1.1.1,"}}, ""},
		"bracket":           {"10.0.0.1:80", http.Header{"X-Forwarded-For": {"[::1"}}, ""},
		"zone":              {"10.0.0.1:80", http.Header{"X-Forwarded-For": {"fe80::1%eth0"}}, "fe80::1"},
		"behind a stranger": {"10.0.0.1:80", http.Header{"X-Forwarded-For": {"10.0.0.7, 1.1.1.1"}}, "1.1.1.1"},
		"Forwarded": {
			"10.0.0.1:80", http.Header{"Forwarded": {"for=6.6.6.6, for=1.1.1.1;proto=https;by=10.0.0.1"}},
			"1.1.1.1",
		},
		"Forwarded through two": {"10.0.0.1:80", http.Header{"Forwarded": {"for=1.1.1.1", "For=10.0.0.2"}}, "1.1.1.1"},
		"Forwarded IPv6":        {"10.0.0.1:80", http.Header{"Forwarded": {`for="[2001:db8::7]:4711"`}}, "2001:db8::7"},
		"Forwarded quoted": {
			"10.0.0.1:80", http.Header{"Forwarded": {`host="a,for=6.6.6.6;", for="1.1.1.1"`}}, "1.1.1.1",
		},
		"Forwarded, no for":     {"10.0.0.1:80", http.Header{"Forwarded": {"for=1.1.1.1, proto=https"}}, ""},
		"Forwarded obfuscated":  {"10.0.0.1:80", http.Header{"Forwarded": {"for=_hidden"}}, ""},
		"Forwarded, open quote": {"10.0.0.1:80", http.Header{"Forwarded": {`for=1.2.3.4;x=", for=6.6.6.6`}}, ""},
		"its own line":          {"10.0.0.1:80", http.Header{"Forwarded": {`for=1.2.3.4;x="`, `for=6.6.6.6`}}, ""},
		"before a quoted port":  {"10.0.0.1:80", http.Header{"Forwarded": {`for=1.2.3.4;x=", for="6.6.6.6:80"`}}, ""},
		"and an escape": {
			"10.0.0.1:80", http.Header{"Forwarded": {`for=1.2.3.4;x="\`, `for="6.6.6.6:80"`}}, "",
		},
		"two quoted proxies": {
			"10.0.0.1:80", http.Header{"Forwarded": {`for=1.2.3.4;x="`, `for="6.6.6.6:80", for="10.0.0.2:80"`}},
			"",
		},
		"an escaped quote": {"10.0.0.1:80", http.Header{"Forwarded": {`for=1.2.3.4;x="\"`, `for=6.6.6.6`}}, ""},
		"quoted and closed": {
			"10.0.0.1:80", http.Header{"Forwarded": {`for=1.2.3.4;x="y"`, `for="6.6.6.6:80"`}}, "6.6.6.6",
		},
		"both": {
			"10.0.0.1:80", http.Header{"X-Forwarded-For": {"1.1.1.1"}, "Forwarded": {"for=6.6.6.6"}}, "1.1.1.1",
		},
		"no peer": {"@", http.Header{"X-Forwarded-For": {"1.1.1.1"}}, ""},
	} {
		got := proxies.Client(&http.Request{RemoteAddr: c.peer, Header: c.header})
		if want, _ := netip.ParseAddr(c.want); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	forged := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{"X-Forwarded-For": {"1.1.1.1"}}}
	if got := TrustedProxies(nil).Client(forged); got.String() != "10.0.0.1" {
		t.Errorf("without proxies: %v", got)
	}
	for _, bad := range []netip.Prefix{
		{}, netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 40), netip.MustParsePrefix("::ffff:0.0.0.0/90"),
	} {
		if _, err := NewTrustedProxies([]netip.Prefix{bad}); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
