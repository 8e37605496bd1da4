package ldap

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

// realm is a directory as a configuration describes it.
type realm struct {
	flavor
	dial                 Dial
	log                  *slog.Logger
	hosts                []host // in the order in which they are tried
	health               health
	account              *account
	trusted              certs.Trusted
	secure, startTLS     bool
	bindDN, bindPassword string

	people, groups part
	attributes     map[string]string // as flavor's
	// the attributes with the id of a person, the first that an entry has counts
	ids                    []string
	groupIDs               []string // as ids
	allIDs                 []string // all attributes with ids that are read, for messages
	names                  names
	builtin                bool // built-in accounts and groups count, too
	groupName, groupMember string
	pageSize               uint32
	timeout                time.Duration
}

// part is a base and a filter of a search.
type part struct{ base, filter string }

var (
	_ domains.PasswordLogin = (*realm)(nil)
	_ domains.AccountNames  = (*realm)(nil)
	_ domains.Directory     = (*realm)(nil)
	_ domains.SecretSender  = (*realm)(nil)
	_ domains.Pausing       = (*realm)(nil)
	_ domains.Tester        = (*realm)(nil)
)

func open(
	f flavor, config json.RawMessage, ids domains.IDAttributes, dial Dial, denied Denied, log *slog.Logger,
) (domains.Realm, error) {
	m := readMembers(config)
	r := &realm{flavor: f, dial: dial, log: cmp.Or(log, slog.Default()), account: newAccount()}
	r.readConnection(m)
	base := m.dn("baseDN", "")
	r.groupName, r.groupMember = m.attribute("groupName", "cn"), m.attribute("groupMember", "member")
	r.people = part{m.dn("userBaseDN", base), m.filter("userFilter", f.userFilter)}
	r.groups = part{m.dn("groupBaseDN", base), m.filter("groupFilter", f.groupFilter(r.groupMember))}
	r.attributes = m.attributes(f.attributes)
	r.setIDs(m, ids)
	r.names = m.names(base, r.attributes["username"], f.activeDirectory)
	r.builtin = m.flag("builtin") || !f.activeDirectory
	r.pageSize = uint32(m.number("pageSize", 1000, 1, 10_000))
	r.timeout = time.Duration(m.number("timeoutMs", 10_000, 100, 300_000)) * time.Millisecond
	if base == "" {
		m.bad("baseDN", "a distinguished name such as dc=example,dc=org")
	}
	if m.err != nil {
		return nil, m.err
	}
	for i := range r.hosts {
		r.hosts[i].denied = denied != nil && denied(r.hosts[i].url)
		r.hosts[i].tls.RootCAs = r.trusted.Pool
	}
	if r.dial == nil {
		r.dial = (&net.Dialer{}).DialContext
	}
	return r, nil
}

// readConnection reads the addresses, TLS and account.
func (r *realm) readConnection(m *members) {
	r.readHosts(m)
	r.startTLS = m.flag("startTLS")
	if r.secure && r.startTLS {
		m.bad("startTLS", "false where url begins with ldaps://, which is TLS already")
	}
	r.trusted = m.certificates("caCert")
	r.bindDN, r.bindPassword = m.text("bindDN", "", maxText), m.text("bindPassword", "", maxText)
	switch {
	case r.bindDN == "" && r.bindPassword != "":
		m.bad("bindDN", "given where bindPassword is")
	case r.bindDN != "" && r.bindPassword == "":
		m.bad("bindPassword", "given where bindDN is")
	}
}

// groupClass returns the filter for the class of groups with a member attribute.
func groupClass(member string) string {
	switch strings.ToLower(member) {
	case "uniquemember":
		return "(objectClass=groupOfUniqueNames)"
	case "memberuid":
		return "(objectClass=posixGroup)"
	}
	return "(objectClass=groupOfNames)"
}
