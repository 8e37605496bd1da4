package ldap

import (
	"slices"
	"strconv"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"
)

// The attributes with which people log in to Active Directory.
const (
	accountName   = "sAMAccountName"
	principalName = "userPrincipalName"
)

// maxSuffixes is how many suffixes upnSuffixes may have.
const maxSuffixes = 100

// names are the forms that the name of a person may have in a domain of Active Directory: anna,
// anna@corp.example.com and CORP\anna. Outside of Active Directory, and where another attribute
// than these is the username, a name has one form.
type names struct {
	username string   // the attribute that is the username here
	forms    bool     // of Active Directory
	domain   string   // DNS name, of baseDN
	netbios  string   // CORP
	suffixes []string // those behind the @ of names whose part before it is a sAMAccountName
}

// names reads netbiosName and upnSuffixes.
func (m *members) names(base, username string, forms bool) names {
	n := names{
		username: username,
		forms:    forms && (strings.EqualFold(username, accountName) || strings.EqualFold(username, principalName)),
		domain:   dnsName(base),
	}
	first, _, _ := strings.Cut(n.domain, ".")
	n.netbios = m.text("netbiosName", first, maxText)
	if strings.ContainsAny(n.netbios, `\/@`) {
		m.bad("netbiosName", "the short name of the domain alone, such as CORP")
	}
	if n.domain != "" {
		n.suffixes = []string{n.domain}
	}
	m.read("upnSuffixes", &n.suffixes, "a list of texts")
	if len(n.suffixes) > maxSuffixes {
		m.bad("upnSuffixes", "a list of at most "+strconv.Itoa(maxSuffixes)+" texts")
	}
	n.suffixes = slices.Clone(n.suffixes)
	for i, suffix := range n.suffixes {
		suffix = strings.TrimPrefix(suffix, "@")
		if suffix == "" || len(suffix) > maxText || strings.ContainsAny(suffix, `\@`) {
			m.bad("upnSuffixes", "a list of what is behind the @ of names, such as corp.example.com")
		}
		n.suffixes[i] = suffix
	}
	return n
}

// dnsName returns the DNS name that the components dc of a DN make: corp.example.com for
// ou=people,dc=corp,dc=example,dc=com.
func dnsName(dn string) string {
	parsed, err := goldap.ParseDN(dn)
	if err != nil {
		return ""
	}
	var labels []string
	for _, rdn := range parsed.RDNs {
		if len(rdn.Attributes) == 1 && strings.EqualFold(rdn.Attributes[0].Type, "dc") {
			labels = append(labels, rdn.Attributes[0].Value)
		}
	}
	return strings.Join(labels, ".")
}

// short returns the sAMAccountName of a name with a domain, and whether it is a name of this
// domain; qualified reports whether it has a domain.
func (n names) short(name string) (short string, ours, qualified bool) {
	if before, after, ok := strings.Cut(name, `\`); ok {
		return after, after != "" && n.is(before, n.netbios, n.domain), true
	}
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		return name[:at], at > 0 && n.is(name[at+1:], n.suffixes...), true
	}
	return name, true, false
}

func (n names) is(domain string, ours ...string) bool {
	return domain != "" && slices.ContainsFunc(ours, func(s string) bool { return strings.EqualFold(s, domain) })
}

// Account implements domains.AccountNames. Where the username is not the sAMAccountName, only the
// name itself is known.
func (r *realm) Account(name string) string {
	if !r.names.forms {
		return name
	}
	short, ours, qualified := r.names.short(name)
	switch {
	case !qualified:
		return name
	case strings.EqualFold(r.names.username, accountName):
		if ours {
			return short
		}
		return ""
	case strings.Contains(name, `\`):
		return ""
	}
	return name
}

// condition is an attribute with a value that an entry must have.
type condition struct {
	attribute, value string
	local            bool // the entry must also be one of the domain of baseDN, and not of one below
}

// conditions returns those of which the entry of a name has one. The first one decides if an entry
// has it: the attribute that is the username.
func (n names) conditions(name string) []condition {
	all := []condition{{attribute: n.username, value: name}}
	if !n.forms {
		return all
	}
	short, ours, qualified := n.short(name)
	if ours && !(strings.EqualFold(n.username, accountName) && !qualified) {
		all = append(all, condition{accountName, short, qualified})
	}
	if strings.Contains(name, "@") && !strings.EqualFold(n.username, principalName) {
		all = append(all, condition{attribute: principalName, value: name})
	}
	return all
}

func filterOf(all []condition) string {
	var b strings.Builder
	for _, c := range all {
		b.WriteString("(" + c.attribute + "=" + goldap.EscapeFilter(c.value) + ")")
	}
	if len(all) == 1 {
		return b.String()
	}
	return "(|" + b.String() + ")"
}

// holds reports whether an entry has a condition. Directories match names loosely; here they must
// be equal except for case, so that one account cannot be attacked under many names.
func (c condition) holds(e *goldap.Entry, domain string) bool {
	return sameName(textOf(e, c.attribute, maxValue), c.value) && (!c.local || strings.EqualFold(dnsName(e.DN), domain))
}

// choose returns the one entry of a name among those that were found, or why there is none. The
// username itself wins; where only another form of name fits, it must fit one entry.
func (n names) choose(name string, found []located) (one *located, why string) {
	if len(found) == 0 {
		return nil, "no entry has this name"
	}
	for i, c := range n.conditions(name) {
		for at := range found {
			if !c.holds(found[at].Entry, n.domain) {
				continue
			}
			if one != nil && one.DN != found[at].DN {
				return nil, "more than one entry has this name"
			}
			one = &found[at]
		}
		if i == 0 && one != nil {
			return one, ""
		}
	}
	if one == nil {
		return nil, "the entry that was found has another name"
	}
	return one, ""
}

// located is an entry with the connection to the host that has it.
type located struct {
	*goldap.Entry
	from *conn
}
