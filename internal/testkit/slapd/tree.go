package slapd

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// Tree is the content of a directory, as LDIF, with people below ou=people and groups below
// ou=groups. The classes and attributes are those of most LDAP servers, or of Active Directory.
type Tree struct {
	ad       bool
	ldif     bytes.Buffer
	overlays []string
	conf     string
	access   string
}

// LDAP returns a tree with BaseDN, ReaderDN and the two units. People have the class inetOrgPerson.
func LDAP() *Tree { return newTree(false) }

// AD returns a tree as LDAP does, with the classes user and group of Active Directory.
func AD() *Tree { return newTree(true) }

func newTree(ad bool) *Tree {
	t := &Tree{ad: ad}
	t.Add(BaseDN, "objectClass", "dcObject", "objectClass", "organization", "o", "Example", "dc", "example")
	t.Add(ReaderDN, "objectClass", "organizationalRole", "objectClass", "simpleSecurityObject", "cn", "reader",
		"userPassword", ReaderPassword)
	t.Unit("people")
	t.Unit("groups")
	return t
}

// Overlay enables an overlay of OpenLDAP, such as ppolicy, with lines of slapd.conf.
func (t *Tree) Overlay(name string, lines ...string) {
	t.overlays = append(t.overlays, name)
	t.conf += "overlay " + name + "\n" + strings.Join(lines, "\n") + "\n"
}

// Access adds a rule of slapd.conf, such as to attrs=entryUUID by * none, before the one with which
// every user may read everything.
func (t *Tree) Access(rule string) { t.access += "access " + rule + "\n" }

// Unit adds an organizational unit and returns its DN.
func (t *Tree) Unit(name string) string {
	dn := "ou=" + name + "," + BaseDN
	t.Add(dn, "objectClass", "organizationalUnit", "ou", name)
	return dn
}

// Add adds an entry. attributes are names of attributes, each followed by a value, which may be any
// bytes.
func (t *Tree) Add(dn string, attributes ...string) {
	t.line("dn", dn)
	for i := 0; i < len(attributes); i += 2 {
		t.line(attributes[i], attributes[i+1])
	}
	t.ldif.WriteByte('\n')
}

func (t *Tree) line(name, value string) {
	fmt.Fprintf(&t.ldif, "%s:: %s\n", name, base64.StdEncoding.EncodeToString([]byte(value)))
}

// Person is a person to load. Empty fields are left out, except that the default password is
// PasswordOf the name.
type Person struct {
	Name                string // uid or sAMAccountName
	Given, Family, Mail string
	Password            string
	Disabled            bool   // in Active Directory
	Unit                string // DN of the parent; "": ou=people
}

// PasswordOf returns the default password of a person.
func PasswordOf(name string) string { return "secret of " + name }

// PersonDN returns the DN of a person in either kind of tree.
func (t *Tree) PersonDN(name string) string {
	if t.ad {
		return "cn=" + ldap.EscapeDN(name) + ",ou=people," + BaseDN
	}
	return "uid=" + ldap.EscapeDN(name) + ",ou=people," + BaseDN
}

// GroupDN returns the DN of a group.
func (t *Tree) GroupDN(name string) string {
	return "cn=" + ldap.EscapeDN(name) + ",ou=groups," + BaseDN
}

// Person adds a person and returns the DN.
func (t *Tree) Person(p Person) string {
	password, family := p.Password, p.Family
	if password == "" {
		password = PasswordOf(p.Name)
	}
	if family == "" { // the schema requires it
		family = p.Name
	}
	full := strings.TrimSpace(p.Given + " " + family)
	has := []string{"sn", family, "userPassword", password}
	for name, value := range map[string]string{"givenName": p.Given, "mail": p.Mail} {
		if value != "" {
			has = append(has, name, value)
		}
	}
	if t.ad {
		has = append(has, "objectClass", "user", "objectClass", "securityPrincipal", "cn", p.Name,
			"sAMAccountName", p.Name,
			"displayName", full, "userAccountControl", accountControl(p.Disabled))
		has = append(has, adAttributes()...)
	} else {
		has = append(has, "objectClass", "inetOrgPerson", "uid", p.Name, "cn", full)
	}
	dn := t.PersonDN(p.Name)
	if p.Unit != "" {
		dn = strings.Replace(dn, "ou=people,"+BaseDN, p.Unit, 1)
	}
	t.Add(dn, has...)
	return dn
}

// accountControl returns the flags of a normal account (0x200), with that of a disabled one (2) if
// disabled is set.
func accountControl(disabled bool) string {
	if disabled {
		return "514"
	}
	return "512"
}

// adAttributes returns the attributes of every entry of Active Directory.
func adAttributes() []string {
	guid := make([]byte, 16)
	rand.Read(guid)
	return []string{
		"objectGUID", string(guid), "instanceType", "4", "nTSecurityDescriptor", "none", "objectCategory",
		BaseDN,
	}
}

// Group adds a group of DNs and returns its DN. Outside of Active Directory it must have a member.
func (t *Tree) Group(name, description string, members ...string) string {
	has := []string{"cn", name}
	if description != "" {
		has = append(has, "description", description)
	}
	if t.ad {
		has = append(append(has, "objectClass", "group", "groupType", "-2147483646"), adAttributes()...)
	} else {
		has = append(has, "objectClass", "groupOfNames")
	}
	for _, member := range members {
		has = append(has, "member", member)
	}
	t.Add(t.GroupDN(name), has...)
	return t.GroupDN(name)
}

// Crowd adds people, from user000001 on, and groups, from group0001 on, with memberships that are
// evenly distributed.
func (t *Tree) Crowd(people, groups, memberships int) {
	for i := range people {
		name := UserName(i)
		t.Person(Person{Name: name, Given: "Given", Family: fmt.Sprint("Family ", i+1), Mail: name + "@example.org"})
	}
	for g := range groups {
		var members []string
		for m := range memberships / groups {
			members = append(members, t.PersonDN(UserName((g*(memberships/groups)+m)%people)))
		}
		t.Group(fmt.Sprintf("group%04d", g+1), "A group of the crowd", members...)
	}
}

// UserName returns the name of the n-th person of the crowd, from 0.
func UserName(i int) string { return fmt.Sprintf("user%06d", i+1) }
