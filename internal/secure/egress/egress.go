// Package egress connects to addresses that tenants configure, but not to networks that the
// operator denies. The root imports it.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/tracing"
)

// ErrDenied is wrapped by the errors of connections to denied networks.
var ErrDenied = errors.New("denied by configuration")

// Remedy tells what the operator can do about a denied network. It follows a colon and ends without
// a period.
const Remedy = "the operator of this server names the networks that it may connect to in TENANTCONTENT_ALLOW_NETWORKS"

// Default returns the networks in which clouds serve the credentials of a machine: the link-local
// networks, as for 169.254.169.254, and the address that a cloud uses in IPv6.
func Default() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fd00:ec2::254/128"),
	}
}

// Local returns Default and the loopback networks, in which tenants may not configure addresses
// unless the operator allows it.
func Local() []netip.Prefix { return append(Default(), Loopback()...) }

// Loopback returns the networks of this machine.
func Loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// Denials returns the denied networks: those of base that are not in allow, and all of deny.
func Denials(base, allow, deny []netip.Prefix) []netip.Prefix {
	return append(Except(base, allow), deny...)
}

// nat64 are the addresses with which a gateway reaches IPv4.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// forms returns the addresses that are equivalent to ip: ip itself, and its IPv4 form if it has
// one. An unspecified address (0.0.0.0, ::) connects to this machine, so for it forms also returns
// the loopback addresses.
func forms(ip netip.Addr) []netip.Addr {
	ip = ip.Unmap()
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	if ip.IsUnspecified() {
		return []netip.Addr{ip, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	return []netip.Addr{ip}
}

// networks are denied networks.
type networks []netip.Prefix

func newNetworks(denied []netip.Prefix) networks {
	out := networks(slices.Clone(denied))
	for i, network := range out {
		if at := network.Addr(); at.Is4In6() && network.Bits() >= 96 { // ::ffff:10.0.0.0/104
			out[i] = netip.PrefixFrom(at.Unmap(), network.Bits()-96)
		}
	}
	return out
}

// Denied returns a function that reports whether the host of a URL is an address in one of the
// denied networks, to which Dialer and Client never connect. It makes no connection. It does not
// resolve names, and does not know where a proxy connects to.
func Denied(denied []netip.Prefix) func(address string) bool {
	out := newNetworks(denied)
	return func(address string) bool {
		u, err := url.Parse(address)
		if err != nil {
			return false
		}
		ip, err := netip.ParseAddr(u.Hostname())
		if err != nil || out.check(ip.WithZone("")) == nil {
			return false
		}
		if u.Scheme != "http" && u.Scheme != "https" {
			return true
		}
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
		return err == nil && proxy == nil
	}
}

// check returns an error for an address in one of the networks.
func (denied networks) check(ip netip.Addr) error {
	for _, form := range forms(ip) {
		for _, network := range denied {
			if network.Contains(form) {
				return fmt.Errorf("connections to the network %s are %w", network, ErrDenied)
			}
		}
	}
	return nil
}

// Dialer returns a dialer that does not connect to addresses in the denied networks. It checks the
// resolved address at the time of the connection. An unspecified address, such as 0.0.0.0, counts
// as a loopback address.
func Dialer(denied []netip.Prefix) *net.Dialer {
	out := newNetworks(denied)
	return &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		host, _, _ = strings.Cut(host, "%")
		ip := netip.IPv4Unspecified() // no host means this machine, too
		if host != "" {
			ip, err = netip.ParseAddr(host)
		}
		if err != nil {
			return err
		}
		return out.check(ip)
	}}
}

// Transport is the transport of Client. It sends the trace context of a request's context as the
// header traceparent.
type Transport struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if tracing.ID(r.Context()) != "" {
		r = r.Clone(r.Context()) // a RoundTripper must not change its request
		tracing.Inject(r.Context(), r.Header)
	}
	return t.Transport.RoundTrip(r)
}

// Client returns an HTTP client with a Transport that connects as Dialer does. Through a proxy of
// http.ProxyFromEnvironment, the proxy decides where it connects to.
func Client(denied []netip.Prefix) *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
	}
	transport.DialContext = Dialer(denied).DialContext
	return &http.Client{Transport: Transport{transport}}
}

// Private returns Default and the networks that are not part of the internet: loopback and private
// networks, IPv6 networks that contain IPv4 addresses, and multicast.
func Private() []netip.Prefix {
	out := Default()
	for _, network := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8",
		"172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
		"::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fc00::/7", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(network))
	}
	return out
}

// Except returns the networks in all without the addresses in others.
func Except(all, others []netip.Prefix) []netip.Prefix {
	out := newNetworks(all)
	for _, other := range newNetworks(others) {
		var left networks
		for _, network := range out {
			left = append(left, without(network.Masked(), other.Masked())...)
		}
		out = left
	}
	return out
}

// without returns the parts of a network that are not in another one.
func without(network, other netip.Prefix) []netip.Prefix {
	switch {
	case !network.Overlaps(other):
		return []netip.Prefix{network}
	case other.Bits() <= network.Bits():
		return nil
	}
	bits := network.Bits()
	upper := network.Addr().AsSlice()
	upper[bits/8] |= 0x80 >> (bits % 8)
	at, _ := netip.AddrFromSlice(upper)
	return append(without(
		netip.PrefixFrom(network.Addr(), bits+1), other,
	), without(netip.PrefixFrom(at, bits+1), other)...)
}
