// Package ldap provides the domain drivers AD and LDAP: users log in with the passwords of a
// company's directory, and a scan reads its users and groups. The drivers differ in their defaults,
// in the attribute that identifies an entry, and in that AD knows disabled accounts. The root, cmd
// and hosts import it.
//
// A login binds as the service, searches the one entry that userFilter and the name match, and
// binds as that entry with the password. A scan reads all pages; any failure ends it with an error.
// So does an answer without the paging control, as it may be incomplete.
//
// TLS is 1.2 or newer, by ldaps or startTLS, and checks the certificate against the name in the
// address. Without TLS, passwords cross the network in the clear, which is for loopback addresses
// and networks that are safe by other means.
//
// Where there are several hosts, another one is asked when one cannot be reached or has no valid
// certificate, never because it refuses something. A host that could not be reached is asked last
// for half a minute. Referrals are followed to hosts of the configuration alone, with its TLS.
//
// A configuration has these members; null, and "" outside of attributes, are as good as left out:
//
//   - url: ldap:// or ldaps://, host and perhaps port. hosts: up to 8 more of these, in the order
//     in which they are tried. startTLS: true to turn ldap:// into TLS. caCert: PEM certificates to
//     trust beside those of the system.
//   - bindDN, bindPassword: of an account that may read what is needed; without them the search is
//     anonymous.
//   - baseDN: where people and groups are. userBaseDN, groupBaseDN: where to look for them instead.
//   - userFilter, groupFilter: which entries they are.
//   - attributes: the attribute for each field of a user, see Info's Defaults; "" is not read,
//     except that username is required.
//   - groupName, groupMember: attributes of a group, default cn and member.
//   - idAttribute: the attribute with the id of a person. OpenWithIDs refuses another one than
//     before.
//   - netbiosName, upnSuffixes: of AD, what may precede or follow the sAMAccountName in a name;
//     the defaults are made of baseDN: CORP and corp.example.com. builtin: of AD, true for accounts
//     and groups that it has by itself, too.
//   - pageSize: entries a page, 1 to 10000, default 1000. timeoutMs: how long to wait for an
//     answer, 100 to 300000, default 10000: for the connection with its TLS, for a bind, for the
//     next entry. domains ends a login after 15 seconds all the same.
//
// Members of dynamic groups are not read. Members of nested groups count if both groups are found.
//
// Source: RFC 4511 to 4515, 2696, 4530.
package ldap

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/netip"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// AD is the driver for Active Directory. Its zero value is ready.
//
// Its defaults: userFilter (&(objectClass=user)(!(objectClass=computer))), groupFilter
// (objectClass=group), groupMember member. An entry's id is its objectGUID. An account that is
// disabled, locked or expired is disabled. bindDN may also be a userPrincipalName. People are
// members of their primary group.
//
// People log in with their sAMAccountName (anna), with the domain (CORP\anna,
// anna@corp.example.com), or with their userPrincipalName. If one name fits two accounts, the one
// whose username it is counts, else none. What Active Directory has by itself, such as krbtgt,
// Administrator, Domain Users and the container Builtin, is left out, unless builtin is true.
type AD struct {
	Dial   Dial
	Denied Denied
	// receives which host cannot be reached any more, and is back (warn and info); default
	// slog.Default
	Log *slog.Logger
}

// LDAP is the driver for other LDAP directories. Its zero value is ready.
//
// Its defaults: userFilter (objectClass=person), groupMember member; groupFilter is for the class
// that goes with groupMember: groupOfNames, groupOfUniqueNames (uniqueMember) or posixGroup
// (memberUid, which has the uid of people in place of DNs). An entry's id is its entryUUID,
// nsUniqueId, ipaUniqueID, GUID or objectGUID, the first that it has; with OpenWithIDs, it is the
// same one of all entries. People are members of the group with their gidNumber. An account with
// nsAccountLock, or that is locked by wrong passwords, is disabled.
type LDAP struct {
	Dial   Dial
	Denied Denied
	// receives which host cannot be reached any more, and is back (warn and info); default
	// slog.Default
	Log *slog.Logger
}

// Dial connects to a directory. nil means (*net.Dialer).DialContext. A host may pass its own, for
// instance to deny private addresses.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Denied reports whether connections to the host of an address are denied, so that a domain with it
// is not ready. nil means that none are.
type Denied func(address string) bool

// Info describes the driver.
func (AD) Info() domains.Info { return activeDirectory.info() }

// Info describes the driver.
func (LDAP) Info() domains.Info { return standard.info() }

// Open reads a configuration: see the package comment. Errors: errs.Invalid naming the member.
func (d AD) Open(config json.RawMessage) (domains.Realm, error) {
	return d.OpenWithIDs(config, domains.IDAttributes{})
}

// OpenWithIDs implements domains.IDDriver.
func (d AD) OpenWithIDs(config json.RawMessage, ids domains.IDAttributes) (domains.Realm, error) {
	return open(activeDirectory, config, ids, d.Dial, d.Denied, d.Log)
}

// Open reads a configuration, as that of AD does. Errors: errs.Invalid naming the member.
func (d LDAP) Open(config json.RawMessage) (domains.Realm, error) {
	return d.OpenWithIDs(config, domains.IDAttributes{})
}

// OpenWithIDs implements domains.IDDriver.
func (d LDAP) OpenWithIDs(config json.RawMessage, ids domains.IDAttributes) (domains.Realm, error) {
	return open(standard, config, ids, d.Dial, d.Denied, d.Log)
}

// flavor has the differences between the two drivers.
type flavor struct {
	id, name        string
	activeDirectory bool     // it has the attributes of Active Directory, not those of other directories
	idAttributes    []string // with the id of an entry, the first that it has counts
	userFilter      string
	groupFilter     func(member string) string
	attributes      map[string]string // those of a person, by the keys of the configuration
}

var activeDirectory = flavor{
	id: "AD", name: "Active Directory",
	activeDirectory: true, idAttributes: []string{"objectGUID"},
	userFilter:  "(&(objectClass=user)(!(objectClass=computer)))",
	groupFilter: func(string) string { return "(objectClass=group)" },
	attributes: map[string]string{
		"username": "sAMAccountName", "givenName": "givenName", "familyName": "sn", "displayName": "displayName",
		"timezone": "timezone", "emailAttribute": "mail",
	},
}

var standard = flavor{
	id: "LDAP", name: "LDAP",
	idAttributes: idAttributes,
	userFilter:   "(objectClass=person)",
	groupFilter:  groupClass,
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
			"url", "hosts", "startTLS", "caCert", "bindDN", "bindPassword",
			"baseDN", "userBaseDN", "userFilter", "groupBaseDN", "groupFilter", "attributes",
			"groupName", "groupMember", "idAttribute", "netbiosName", "upnSuffixes", "builtin", "pageSize", "timeoutMs",
		}, domains.MemberNames("attributes", f.attributes)...),
		Secrets:  []string{"bindPassword"},
		Defaults: maps.Clone(f.attributes),
	}
}

// Within implements domains.Bounded.
func (d AD) Within(denied []netip.Prefix, log *slog.Logger) domains.Driver {
	d.Dial, d.Denied, d.Log = within(d.Dial, denied), orDenied(d.Denied, denied), cmp.Or(d.Log, log)
	return d
}

// Within implements domains.Bounded.
func (d LDAP) Within(denied []netip.Prefix, log *slog.Logger) domains.Driver {
	d.Dial, d.Denied, d.Log = within(d.Dial, denied), orDenied(d.Denied, denied), cmp.Or(d.Log, log)
	return d
}

// within returns a Dial that connects to no denied network, unless there is one.
func within(own Dial, denied []netip.Prefix) Dial {
	if own != nil {
		return own
	}
	return egress.Dialer(denied).DialContext
}

// orDenied returns what reports whether connections are denied.
func orDenied(own Denied, denied []netip.Prefix) Denied {
	if own != nil {
		return own
	}
	return egress.Denied(denied)
}
