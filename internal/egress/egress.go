// Package egress makes connections to addresses that tenants configure, and keeps them out of networks that the operator
// names. The root imports it.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
)

// LinkLocal are the networks of one link. Clouds hand out a machine's own credentials there, as at 169.254.169.254.
var LinkLocal = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}

// Dialer makes a dialer that connects to no address in the denied networks. It looks at the address that a name has been
// resolved to, at the moment of the connection.
func Dialer(denied []netip.Prefix) *net.Dialer {
	return &net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := at.Addr().Unmap().WithZone("")
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
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = Dialer(denied).DialContext
	return &http.Client{Transport: transport}
}
