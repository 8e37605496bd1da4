package ldap

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

// maxText bounds every text of a configuration but caCert, in bytes: a filter is parsed
// recursively.
const maxText = 4096

// members are those of a configuration, under their exact names. The first that does not fit stays
// the error.
type members struct {
	all map[string]json.RawMessage
	err error
}

func readMembers(config json.RawMessage) *members {
	m := &members{}
	if err := json.Unmarshal(config, &m.all); err != nil || m.all == nil {
		m.err = errs.New(errs.Invalid, "config must be a JSON object")
	}
	return m
}

// bad notes what a member must be.
func (m *members) bad(name, must string) {
	if m.err == nil {
		m.err = errs.New(errs.Invalid, "%s must be %s", name, must)
	}
}

// read reads a member. It reports false when the member is left out, null or wrong.
func (m *members) read(name string, into any, must string) bool {
	raw, given := m.all[name]
	if !given || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, into) != nil {
		m.bad(name, must)
		return false
	}
	return true
}

func (m *members) text(name, otherwise string, most int) (s string) {
	if !m.read(name, &s, "text") || s == "" {
		return otherwise
	}
	if len(s) > most {
		m.bad(name, "of at most "+strconv.Itoa(most)+" bytes")
	}
	return s
}

func (m *members) flag(name string) (b bool) {
	m.read(name, &b, "true or false")
	return b
}

func (m *members) number(name string, otherwise, least, most int) int {
	n, must := otherwise, "a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most)
	m.read(name, &n, must)
	if n < least || n > most {
		m.bad(name, must)
	}
	return n
}

func (m *members) dn(name, otherwise string) string {
	s := strings.TrimSpace(m.text(name, otherwise, maxText))
	if _, err := goldap.ParseDN(s); err != nil {
		m.bad(name, "a distinguished name such as dc=example,dc=org")
	}
	return s
}

func (m *members) filter(name, otherwise string) string {
	s := m.text(name, otherwise, maxText)
	if _, err := goldap.CompileFilter(s); err != nil {
		m.bad(name, "a filter in parentheses such as (objectClass=person)")
	}
	return s
}

var attributeName = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*|[0-9]+(\.[0-9]+)+)$`)

func (m *members) attribute(name, otherwise string) string {
	s := m.text(name, otherwise, maxText)
	if !attributeName.MatchString(s) {
		m.bad(name, "the name of an attribute")
	}
	return s
}

// attributes returns the attributes of a person: the default for each key that is not given.
func (m *members) attributes(defaults map[string]string) map[string]string {
	var given map[string]json.RawMessage
	m.read("attributes", &given, "an object of texts")
	names := map[string]string{}
	for _, key := range []string{"username", "givenName", "familyName", "displayName", "timezone", "emailAttribute"} {
		name, path := defaults[key], "attributes."+key
		if raw, ok := given[key]; ok && string(raw) != "null" && json.Unmarshal(raw, &name) != nil {
			m.bad(path, "text")
		}
		if !attributeName.MatchString(name) && (name != "" || key == "username") {
			m.bad(path, "the name of an attribute")
		}
		names[key] = name
	}
	return names
}

// certificates returns the certificates that a member trusts beside those of the system.
func (m *members) certificates(name string) certs.Trusted {
	text := m.text(name, "", certs.MaxBytes)
	if m.err != nil {
		return certs.Trusted{}
	}
	trusted, err := certs.Read(name, text)
	m.err = err
	return trusted
}
