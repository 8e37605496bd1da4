package ldap

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/certs"
)

// realm is a directory as a configuration describes it.
type realm struct {
	flavor
	dial                 Dial
	denied               bool   // connections to address are denied
	url                  string // for messages
	address              string // host and port
	tls                  *tls.Config
	trusted              certs.Trusted
	secure, startTLS     bool
	bindDN, bindPassword string

	people, groups         part
	attributes             map[string]string // as flavor's
	groupName, groupMember string
	pageSize               uint32
	timeout                time.Duration
}

// part is a base and a filter of a search.
type part struct{ base, filter string }

var (
	_ domains.PasswordLogin = (*realm)(nil)
	_ domains.Directory     = (*realm)(nil)
	_ domains.SecretSender  = (*realm)(nil)
)

func open(f flavor, config json.RawMessage, dial Dial, denied Denied) (domains.Realm, error) {
	m := readMembers(config)
	r := &realm{flavor: f, dial: dial}
	r.readConnection(m)
	base := m.dn("baseDN", "")
	r.groupName, r.groupMember = m.attribute("groupName", "cn"), m.attribute("groupMember", "member")
	r.people = part{m.dn("userBaseDN", base), m.filter("userFilter", f.userFilter)}
	r.groups = part{m.dn("groupBaseDN", base), m.filter("groupFilter", f.groupFilter(r.groupMember))}
	r.attributes = m.attributes(f.attributes)
	r.pageSize = uint32(m.number("pageSize", 1000, 1, 10_000))
	r.timeout = time.Duration(m.number("timeoutMs", 10_000, 100, 300_000)) * time.Millisecond
	if base == "" {
		m.bad("baseDN", "a distinguished name such as dc=example,dc=org")
	}
	if m.err != nil {
		return nil, m.err
	}
	r.denied = denied != nil && denied(r.url)
	if r.dial == nil {
		r.dial = (&net.Dialer{}).DialContext
	}
	return r, nil
}

// readConnection reads the address, TLS and account.
func (r *realm) readConnection(m *members) {
	u, err := url.Parse(m.text("url", "", maxText))
	if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" {
		m.bad("url", "an address that begins with ldap:// or ldaps://")
		return
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.Port() != "" && (err != nil || port == 0) {
		m.bad("url", "an address of a host and perhaps a port alone, such as ldaps://ldap.example.org:636")
		return
	}
	r.secure, r.startTLS = u.Scheme == "ldaps", m.flag("startTLS")
	if r.secure && r.startTLS {
		m.bad("startTLS", "false where url begins with ldaps://, which is TLS already")
	}
	r.url = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	r.address = net.JoinHostPort(u.Hostname(), defaultPort(u))
	r.trusted = m.certificates("caCert")
	r.tls = &tls.Config{ServerName: u.Hostname(), RootCAs: r.trusted.Pool, MinVersion: tls.VersionTLS12}
	r.bindDN, r.bindPassword = m.text("bindDN", "", maxText), m.text("bindPassword", "", maxText)
	switch {
	case r.bindDN == "" && r.bindPassword != "":
		m.bad("bindDN", "given where bindPassword is")
	case r.bindDN != "" && r.bindPassword == "":
		m.bad("bindPassword", "given where bindDN is")
	}
}

// Check implements domains.Realm.
func (r *realm) Check() error {
	if r.denied {
		return domains.DeniedAddress("url")
	}
	return nil
}

// Redirects implements domains.SecretSender. The password is sent to the server of url, which startTLS and caCert
// authenticate.
func (r *realm) Redirects(before domains.Realm) string {
	ports := map[string]string{"ldap": goldap.DefaultLdapPort, "ldaps": goldap.DefaultLdapsPort}
	was, ok := before.(*realm)
	switch {
	case !ok || domains.SameServer(was.url, ports) != domains.SameServer(r.url, ports):
		return "url"
	case was.startTLS && !r.startTLS:
		return "startTLS"
	case was.trusted.Lacks(r.trusted):
		return "caCert"
	}
	return ""
}

func defaultPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "ldaps":
		return goldap.DefaultLdapsPort
	}
	return goldap.DefaultLdapPort
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
