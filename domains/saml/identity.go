package saml

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	crewjam "github.com/crewjam/saml"

	"github.com/tenantcontent/tenantcontent/domains"
)

// maxID is the longest domains.Identity.ID, in characters.
const maxID = 255

// identity returns the person that an assertion is about.
func (r *realm) identity(p *provider, a assertion) (domains.Identity, error) {
	names := slices.Compact(a.values(r.attributes["username"])) // the same twice is one
	if len(names) != 1 {
		return domains.Identity{}, fmt.Errorf("the assertion has %d values of the attribute %q for the username instead of one", len(names), r.attributes["username"])
	}
	id := identifier(p.entityID, a.Subject.NameID, names[0])
	if utf8.RuneCountInString(id) > maxID {
		return domains.Identity{}, errors.New("the person's id and the provider's have more than 255 characters together")
	}
	return domains.Identity{
		ID:          id,
		Username:    names[0],
		DisplayName: a.first(r.attributes["displayName"]),
		GivenName:   a.first(r.attributes["givenName"]),
		FamilyName:  a.first(r.attributes["familyName"]),
		Email:       a.first(r.attributes["email"]),
		Timezone:    a.first(r.attributes["timezone"]),
	}, nil
}

// identifier returns the id of a person at a provider. It has a prefix, so that usernames and NameIDs differ.
func identifier(provider string, name *crewjam.NameID, username string) string {
	if name != nil && name.Format == string(crewjam.PersistentNameIDFormat) && name.Value != "" {
		return provider + "!persistent!" + name.Value
	}
	return provider + "!username!" + username
}

// values returns the values of the attribute with a name, else of the one with it as FriendlyName; "" is none.
func (a assertion) values(name string) []string {
	if name == "" {
		return nil
	}
	var byName, byFriendly []string
	for _, s := range a.AttributeStatements {
		for _, attribute := range s.Attributes {
			for _, v := range attribute.Values {
				switch {
				case v.Value == "":
				case attribute.Name == name:
					byName = append(byName, v.Value)
				case attribute.FriendlyName == name:
					byFriendly = append(byFriendly, v.Value)
				}
			}
		}
	}
	if len(byName) > 0 {
		return byName
	}
	return byFriendly
}

// first returns an attribute's first value, "" for none.
func (a assertion) first(name string) string {
	if values := a.values(name); len(values) > 0 {
		return values[0]
	}
	return ""
}
