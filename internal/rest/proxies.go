package rest

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// maxHops bounds how many proxies a request is followed back through.
const maxHops = 32

// TrustedProxies are the networks of the proxies whose forwarding headers are trusted.
type TrustedProxies []netip.Prefix

// NewTrustedProxies checks networks. Errors: errs.Invalid.
func NewTrustedProxies(networks []netip.Prefix) (TrustedProxies, error) {
	var all TrustedProxies
	for _, network := range networks {
		if at := network.Addr(); at.Is4In6() && network.Bits() >= 96 {
			network = netip.PrefixFrom(at.Unmap(), network.Bits()-96)
		}
		if !network.IsValid() || network.Addr().Zone() != "" || network.Addr().Is4In6() {
			return nil, errs.New(
				errs.Invalid, "TrustedProxies: %s is not a network such as 10.0.0.0/8 or fd00::/8", network,
			)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

func (p TrustedProxies) has(ip netip.Addr) bool {
	for _, network := range p {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// Client returns the address of the client: that of the connection or, if that is a trusted proxy,
// the first one from the right that is none in X-Forwarded-For or, in a request without that
// header, in Forwarded (RFC 7239). The zero Addr stands for one that is not known: a trusted proxy
// has written something else than an address.
func (p TrustedProxies) Client(r *http.Request) netip.Addr {
	at, ok := address(r.RemoteAddr)
	if !ok || !p.has(at) {
		return at
	}
	hops, ok := forwardedFor(r.Header)
	if !ok {
		return netip.Addr{}
	}
	for i := len(hops) - 1; i >= max(0, len(hops)-maxHops); i-- {
		if at, ok = address(hops[i]); !ok || !p.has(at) {
			return at
		}
	}
	return at
}

// forwardedFor returns the hops that the proxies have recorded, the nearest one last. ok is false
// if a quoted string in Forwarded is not closed: one that a client opened would hide what the
// proxies have added.
func forwardedFor(h http.Header) (hops []string, ok bool) {
	if lines := h.Values("X-Forwarded-For"); len(lines) > 0 {
		return strings.Split(strings.Join(lines, ","), ","), true
	}
	elements, ok := splitOutside(strings.Join(h.Values("Forwarded"), ","), ',')
	if !ok {
		return nil, false
	}
	for _, element := range elements {
		hop := ""
		pairs, _ := splitOutside(element, ';')
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			if strings.EqualFold(strings.TrimSpace(name), "for") {
				hop = strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
		if hop != "" || strings.TrimSpace(element) != "" {
			hops = append(hops, hop)
		}
	}
	return hops, true
}

// splitOutside splits a header outside its quoted strings, and reports whether all of them are
// closed.
func splitOutside(s string, by byte) (parts []string, closed bool) {
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == by && !quoted:
			parts, from = append(parts, s[from:i]), i+1
		}
	}
	return append(parts, s[from:]), !quoted
}

// address reads an IP address with or without a port; one of IPv6 may be in brackets. An IPv4
// address in the form of IPv6 is an IPv4 address.
func address(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok {
			return netip.Addr{}, false
		}
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, false
	}
	return ip.Unmap().WithZone(""), true
}
