package saml

import (
	"strings"

	crewjam "github.com/crewjam/saml"
)

// Prefixes of the names of claims.
const (
	soap      = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
	microsoft = "http://schemas.microsoft.com/ws/2008/06/identity/claims/"
	entra     = "http://schemas.microsoft.com/identity/claims/"
)

// usual are the names under which providers send an attribute, where the configuration names none.
// The first one that is there counts. Each list begins with what Info calls the default.
var usual = map[string][]string{
	"email": {
		"mail", "urn:oid:0.9.2342.19200300.100.1.3", "email",
		soap + "emailaddress", "emailAddress", "emailaddress", "Email",
	},
	"displayName": {
		"displayName", "urn:oid:2.16.840.1.113730.3.1.241", entra + "displayname",
		"cn", "urn:oid:2.5.4.3", "name", soap + "name",
	},
	"givenName": {
		"givenName", "urn:oid:2.5.4.42", soap + "givenname", "firstName", "FirstName", "first_name",
		"given_name",
	},
	"familyName": {
		"sn", "urn:oid:2.5.4.4", soap + "surname", "lastName", "LastName", "last_name", "surname", "familyName",
		"family_name",
	},
	"timezone": {"timezone", "zoneinfo", "preferredTimezone"},
	"groups": {
		"groups", microsoft + "groups",
		"http://schemas.xmlsoap.org/claims/Group", "memberOf", "urn:oid:1.2.840.113556.1.2.102",
		"isMemberOf", "urn:oid:1.3.6.1.4.1.5923.1.5.1.1", "group", "Group", "Groups", microsoft + "role",
	},
	"id": {
		"http://schemas.microsoft.com/LiveID/Federation/2008/05/ImmutableID",
		"objectGUID", "urn:oid:1.2.840.113556.1.4.2",
		"entryUUID", "urn:oid:1.3.6.1.1.16.4", "nsUniqueId", "ipaUniqueID", entra + "objectidentifier",
		"urn:oasis:names:tc:SAML:attribute:subject-id",
	},
}

// usernames lists the usual names of the attribute for the username, each with the kind of the ids
// made of its values. The kind is part of an id, as attributes of different kinds may have the same
// value for different people. Ids of the kind username are those of the first versions of the
// driver.
var usernames = []struct{ name, kind string }{
	{"uid", "username"},
	{"urn:oid:0.9.2342.19200300.100.1.1", "username"},
	{"username", "name"},
	{"userName", "name"},
	{"sAMAccountName", "sAMAccountName"},
	{"urn:oid:1.2.840.113556.1.4.221", "sAMAccountName"},
	{microsoft + "windowsaccountname", "windowsaccountname"},
	{soap + "upn", "upn"},
	{"userPrincipalName", "upn"},
	{"urn:oid:1.2.840.113556.1.4.656", "upn"},
	{"eduPersonPrincipalName", "eppn"},
	{"urn:oid:1.3.6.1.4.1.5923.1.1.1.6", "eppn"},
}

// nameFormats maps the formats of NameIDs that are usernames to the kind of the ids made of them.
// Persistent and transient NameIDs are no usernames.
var nameFormats = map[string]string{
	"": "unspecified",
	"urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified":                "unspecified",
	"urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress":               "emailAddress",
	"urn:oasis:names:tc:SAML:1.1:nameid-format:WindowsDomainQualifiedName": "WindowsDomainQualifiedName",
	"urn:oasis:names:tc:SAML:2.0:nameid-format:kerberos":                   "kerberos",
}

// tooManyGroups is what Entra ID sends in place of more than 150 groups.
const tooManyGroups = "http://schemas.microsoft.com/claims/groups.link"

// attributes maps the keys of a configuration to names of attributes. A missing key stands for the
// usual names, and "" for no attribute.
type attributes map[string]string

// values returns the values of the attribute for a key.
func (names attributes) values(a assertion, key string) []string {
	if name, ok := names[key]; ok {
		return a.values(name)
	}
	for _, name := range usual[key] {
		if values := a.values(name); len(values) > 0 {
			return values
		}
	}
	return nil
}

// first returns the first value of the attribute for a key, "" for none.
func (names attributes) first(a assertion, key string) string {
	if values := names.values(a, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// values returns the values of the attribute with a name, else of the one with it as FriendlyName;
// "" is none.
func (a assertion) values(name string) []string {
	if name == "" {
		return nil
	}
	var byName, byFriendly []string
	a.each(func(attribute crewjam.Attribute, value string) {
		switch {
		case value == "":
		case attribute.Name == name:
			byName = append(byName, value)
		case attribute.FriendlyName == name:
			byFriendly = append(byFriendly, value)
		}
	})
	if len(byName) > 0 {
		return byName
	}
	return byFriendly
}

// each calls fn with every value of every attribute.
func (a assertion) each(fn func(of crewjam.Attribute, value string)) {
	for _, s := range a.AttributeStatements {
		for _, attribute := range s.Attributes {
			for _, v := range attribute.Values {
				fn(attribute, v.Value)
			}
		}
	}
}

// Bounds of claims. What is beyond them is left out, so that a rule about it does not hold.
const (
	maxClaims     = 256     // names
	maxClaimBytes = 1 << 17 // of names and values together
)

// claims returns the values of all attributes by name, and by friendly name where no attribute has
// that one as its name.
func (a assertion) claims() map[string][]string {
	all, names, bytes := map[string][]string{}, map[string]bool{}, 0
	add := func(name, value string) {
		_, known := all[name]
		if name == "" || strings.TrimSpace(value) == "" || !known && len(all) == maxClaims ||
			bytes+len(name)+len(value) > maxClaimBytes {
			return
		}
		bytes += len(name) + len(value)
		all[name] = append(all[name], value)
	}
	a.each(func(of crewjam.Attribute, value string) {
		names[of.Name] = true
		add(of.Name, value)
	})
	a.each(func(of crewjam.Attribute, value string) {
		if !names[of.FriendlyName] {
			add(of.FriendlyName, value)
		}
	})
	return all
}

// named returns the names of the attributes, for a message.
func (a assertion) named() string {
	var all []string
	for _, s := range a.AttributeStatements {
		for _, attribute := range s.Attributes {
			if len(all) == 30 {
				return strings.Join(all, ", ") + ", …"
			}
			all = append(all, attribute.Name)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
