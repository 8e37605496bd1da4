// Package ldap has the domain drivers AD and LDAP: people log in with their passwords of a company's directory, and a scan
// reads its people and groups. They differ in their defaults, in the attribute that never changes, and in that AD tells
// who is disabled. The root, cmd and hosts import it.
//
// A login binds as the service, finds the one entry that userFilter and the name fit, and binds as that with the password.
// A scan reads everything page by page; whatever goes wrong on the way ends it with an error. An answer without the
// paging control is one of these things: nobody could tell whether it is all.
//
// TLS 1.2 or newer, by ldaps or startTLS, checks the certificate against the name in url. Without either of them passwords
// cross the network in the clear: that is for loopback addresses and networks that are safe by other means.
//
// Not read: the primary groups of AD (Domain Users), members whom a dynamic group computes, and what a referral points to.
// Groups within groups count where both are found. Who is disabled outside of AD has no common attribute: leave those
// people out with userFilter, and the scan disables them.
//
// Source: RFC 4511 to 4515, 2696, 4530.
package ldap

import (
	"context"
	"encoding/json"
	"maps"
	"net"

	"github.com/tenantcontent/tenantcontent/domains"
)

// AD is the driver for Active Directory. Its zero value is ready.
//
// Its defaults: userFilter (&(objectClass=user)(!(objectClass=computer))), groupFilter (objectClass=group), groupMember
// member. An entry's id is its objectGUID. Who has the flag ACCOUNTDISABLE in userAccountControl is disabled. bindDN may
// be a userPrincipalName, too.
type AD struct {
	Dial   Dial
	Denied Denied
}

// LDAP is the driver for other LDAP directories. Its zero value is ready.
//
// Its defaults: userFilter (objectClass=person), groupMember member; groupFilter is for the class that goes with
// groupMember: groupOfNames, groupOfUniqueNames (uniqueMember) or posixGroup (memberUid, which has the uid of people
// in place of DNs). An entry's id is its entryUUID.
type LDAP struct {
	Dial   Dial
	Denied Denied
}

// Dial connects to a directory, as (*net.Dialer).DialContext does, which is what nil stands for. A host gives its own to
// forbid some addresses, such as private ones.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Denied reports whether connections to the host of an address are denied, so that a domain there says so; nil: none are.
type Denied func(address string) bool

// Info describes the driver.
func (AD) Info() domains.Info { return activeDirectory.info() }

// Info describes the driver.
func (LDAP) Info() domains.Info { return standard.info() }

// Open reads a configuration; null, and "" outside of attributes, are as good as left out:
//
//   - url: ldap:// or ldaps://, host and perhaps port. startTLS: true to turn ldap:// into TLS. caCert: PEM certificates
//     to trust beside those of the system.
//   - bindDN, bindPassword: of an account that may read what is needed; without them the search is anonymous.
//   - baseDN: where people and groups are. userBaseDN, groupBaseDN: where to look for them instead.
//   - userFilter, groupFilter: which entries they are.
//   - attributes: which attributes say what of a person, see Info's Defaults; "" is not asked for, but username must be.
//   - groupName, groupMember: attributes of a group, default cn and member.
//   - pageSize: entries a page, 1 to 10000, default 1000. timeoutMs: how long to wait for an answer, 100 to 300000,
//     default 10000: for the connection with its TLS, for a bind, for the next entry. domains ends a login after 15 seconds
//     all the same.
//
// Errors: errs.Invalid naming the member.
func (d AD) Open(config json.RawMessage) (domains.Realm, error) {
	return open(activeDirectory, config, d.Dial, d.Denied)
}

// Open reads a configuration, as that of AD does. Errors: errs.Invalid naming the member.
func (d LDAP) Open(config json.RawMessage) (domains.Realm, error) {
	return open(standard, config, d.Dial, d.Denied)
}

// flavor is what the two drivers differ in.
type flavor struct {
	id, name    string
	idAttribute string
	binaryID    bool // the id is a GUID of 16 bytes, not text
	control     string
	userFilter  string
	groupFilter func(member string) string
	attributes  map[string]string // those of a person, by the keys of the configuration
}

var activeDirectory = flavor{
	id: "AD", name: "Active Directory",
	idAttribute: "objectGUID", binaryID: true, control: "userAccountControl",
	userFilter:  "(&(objectClass=user)(!(objectClass=computer)))",
	groupFilter: func(string) string { return "(objectClass=group)" },
	attributes: map[string]string{
		"username": "sAMAccountName", "givenName": "givenName", "familyName": "sn", "displayName": "displayName",
		"timezone": "timezone", "emailAttribute": "mail",
	},
}

var standard = flavor{
	id: "LDAP", name: "LDAP",
	idAttribute: "entryUUID",
	userFilter:  "(objectClass=person)",
	groupFilter: groupClass,
	attributes: map[string]string{
		"username": "uid", "givenName": "givenName", "familyName": "sn", "displayName": "cn",
		"timezone": "timezone", "emailAttribute": "mail",
	},
}

func (f flavor) info() domains.Info {
	return domains.Info{
		ID:             f.id,
		Name:           f.name,
		Group:          "Directory",
		LoginComponent: "ldap-login",
		EditComponent:  map[string]any{"name": "ldap-edit"},
		ScanComponent:  map[string]any{"name": "ldap-scan"},
		LoginMethod:    "POST",
		UsernameParam:  "username",
		PasswordParam:  "password",
		Members: append([]string{
			"url", "startTLS", "caCert", "bindDN", "bindPassword", "baseDN", "userBaseDN", "userFilter", "groupBaseDN", "groupFilter", "attributes",
			"groupName", "groupMember", "pageSize", "timeoutMs",
		}, domains.MemberNames("attributes", f.attributes)...),
		Secrets:  []string{"bindPassword"},
		Defaults: maps.Clone(f.attributes),
	}
}
