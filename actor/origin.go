package actor

import (
	"context"
	"net/netip"
)

// Origin is where a request comes from. A context carries it beside the actor, and before the actor
// is known.
type Origin struct {
	Address netip.Addr // of the client; the zero Addr if it is not known, as for calls without HTTP
	Request string     // id of the request for the log, or ""
}

// Network returns the client's network, by which failed logins are counted: an IPv4 address, or the
// first 64 bits of an IPv6 address. It returns "" if the address is not known.
func (o Origin) Network() string {
	ip, bits := o.Address.Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	network, err := ip.Prefix(bits)
	if err != nil || !ip.IsValid() {
		return ""
	}
	return network.String()
}

type originKey struct{}

// WithOrigin returns a context that carries the origin.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin that a context carries, or the zero Origin.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
