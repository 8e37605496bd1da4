package actor_test

import (
	"net/netip"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
)

func TestNetwork(t *testing.T) {
	is := is.New(t)
	for address, network := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32",
		"2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "::1": "::/64",
	} {
		is.Equal(actor.Origin{Address: netip.MustParseAddr(address)}.Network(), network)
	}
	is.Equal(actor.Origin{}.Network(), "")
	is.Equal(actor.OriginOf(t.Context()), actor.Origin{})
	o := actor.Origin{Address: netip.MustParseAddr("::1"), Request: "x"}
	is.Equal(actor.OriginOf(actor.WithOrigin(t.Context(), o)), o)
}
