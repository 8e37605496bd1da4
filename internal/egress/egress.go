// Package egress makes connections to addresses that tenants configure, and keeps them out of networks that the operator
// names. The root imports it.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// Default are the networks where clouds hand out a machine's own credentials: those of one link, as at 169.254.169.254, and
// the one address that a cloud has for that in IPv6.
var Default = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("fd00:ec2::254/128"),
}

// nat64 are the addresses behind which a gateway reaches IPv4.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// plain gives an address as IPv4 where it stands for such a one.
func plain(ip netip.Addr) netip.Addr {
	if ip = ip.Unmap().WithZone(""); nat64.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}

// Dialer makes a dialer that connects to no address in the denied networks. It looks at the address that a name has been
// resolved to, at the moment of the connection.
func Dialer(denied []netip.Prefix) *net.Dialer {
	denied = slices.Clone(denied)
	for i, network := range denied {
		if at := network.Addr(); at.Is4In6() && network.Bits() >= 96 { // ::ffff:10.0.0.0/104
			denied[i] = netip.PrefixFrom(at.Unmap(), network.Bits()-96)
		}
	}
	return &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := plain(at.Addr())
		for _, network := range denied {
			if network.Contains(ip) {
				return fmt.Errorf("connections to the network %s are denied by configuration", network)
			}
		}
		return nil
	}}
}

// Client makes an HTTP client that connects as Dialer does. Through a proxy, which the environment may name as
// http.ProxyFromEnvironment says, it is the proxy that decides where connections go.
func Client(denied []netip.Prefix) *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
	}
	transport.DialContext = Dialer(denied).DialContext
	return &http.Client{Transport: transport}
}
