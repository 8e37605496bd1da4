package ldap

import (
	"errors"
	"net/url"
	"strings"

	ber "github.com/go-asn1-ber/asn1-ber"
	goldap "github.com/go-ldap/ldap/v3"
)

// maxReferrals bounds the referrals that are followed in one search.
const maxReferrals = 16

// target is where a search is made.
type target struct {
	*conn
	base  string
	scope int
}

// search calls fn for the base of a part and then for each referral of its results that names a
// listed host other than the one that it comes from. Connections to other hosts are closed with c,
// and have the same bound of bytes. fn returns the referrals.
func (c *conn) search(p part, fn func(t target) (referrals []string, err error)) error {
	todo := []target{{c, p.base, goldap.ScopeWholeSubtree}}
	for i := 0; i < len(todo); i++ {
		t := todo[i]
		referrals, err := fn(t)
		if result, ok := errors.AsType[*goldap.Error](err); ok && result.ResultCode == goldap.LDAPResultReferral {
			next, errFollow := c.follow(t, alternatives(result.Packet))
			if errFollow != nil {
				return errFollow
			}
			if next == nil || len(todo) == maxReferrals {
				return err
			}
			todo = append(todo, *next)
			continue
		}
		if err != nil {
			return err
		}
		for _, referral := range referrals {
			next, err := c.follow(t, []string{referral})
			if err != nil {
				return err
			}
			if next != nil && len(todo) < maxReferrals && !among(todo, *next) {
				todo = append(todo, *next)
			}
		}
	}
	return nil
}

func among(all []target, t target) bool {
	for _, other := range all {
		if other.host == t.host && canonical(other.base) == canonical(t.base) {
			return true
		}
	}
	return false
}

// follow returns the first of several addresses that is a listed host, with a connection to it, nil
// for none. A host that refers to itself is none, nor is the configuration of Active Directory, to
// which every search of a domain refers: it has no people.
func (c *conn) follow(from target, addresses []string) (*target, error) {
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" {
			continue
		}
		h := c.listed(u)
		if h == nil || h == from.host || c.activeDirectory &&
			strings.HasPrefix(strings.ToLower(u.Path), "/cn=configuration,") {
			continue
		}
		to := target{base: strings.TrimPrefix(u.Path, "/"), scope: from.scope}
		if to.base == "" {
			to.base = from.base
		}
		if _, scope, ok := strings.Cut(u.RawQuery, "?"); ok {
			switch scope, _, _ = strings.Cut(scope, "?"); scope {
			case "base":
				to.scope = goldap.ScopeBaseObject
			case "one":
				to.scope = goldap.ScopeSingleLevel
			case "sub":
				to.scope = goldap.ScopeWholeSubtree
			}
		}
		if to.conn, err = c.at(h); err != nil {
			return nil, err
		}
		return &to, nil
	}
	return nil, nil
}

// at returns the connection to a host, which may be c. It is closed with c.
func (c *conn) at(h *host) (*conn, error) {
	if c.host == h {
		return c, nil
	}
	for _, other := range c.others {
		if other.host == h {
			return other, nil
		}
	}
	other, err := c.connectTo(c.ctx, h, c.timeout, c.frames.budget)
	if err == nil {
		c.others = append(c.others, other)
	}
	return other, err
}

// alternatives returns the addresses of a response with the result code referral (RFC 4511, section
// 4.1.10).
func alternatives(response *ber.Packet) (all []string) {
	if response == nil || len(response.Children) < 2 {
		return nil
	}
	for _, part := range response.Children[1].Children {
		if part.ClassType != ber.ClassContext || part.Tag != 3 {
			continue
		}
		for _, address := range part.Children {
			if s, ok := address.Value.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}
