package saml

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	crewjam "github.com/crewjam/saml"

	"github.com/tenantcontent/tenantcontent/domains"
)

// maxID is the longest domains.Identity.ID, in characters.
const maxID = 255

// identity returns the person that an assertion is about.
func (r *realm) identity(p *provider, a assertion) (domains.SignedIn, error) {
	name, kind, err := r.username(a)
	if err != nil {
		return domains.SignedIn{}, err
	}
	id, err := r.identifier(a, name, kind)
	if err != nil {
		return domains.SignedIn{}, err
	}
	id = p.entityID + "!" + id
	if utf8.RuneCountInString(id) > maxID {
		return domains.SignedIn{}, errors.New("the person's id and the provider's have more than 255 characters " +
			"together")
	}
	who := domains.SignedIn{
		Identity: domains.Identity{
			ID:          id,
			Username:    name,
			DisplayName: r.attributes.first(a, "displayName"),
			GivenName:   r.attributes.first(a, "givenName"),
			FamilyName:  r.attributes.first(a, "familyName"),
			Email:       r.attributes.first(a, "email"),
			Timezone:    r.attributes.first(a, "timezone"),
		},
		AccountID: r.attributes.first(a, "id"),
		Claims:    a.claims(),
	}
	if _, named := r.attributes["email"]; who.Email == "" && !named &&
		nameID(a).Format == string(crewjam.EmailAddressNameIDFormat) {
		who.Email = nameID(a).Value
	}
	if _, named := r.attributes["id"]; who.AccountID == "" && !named &&
		nameID(a).Format == string(crewjam.PersistentNameIDFormat) {
		who.AccountID = nameID(a).Value
	}
	who.EmailVerified = who.Email != "" && r.vouched(a)
	who.Groups, who.NoGroups = r.groups(a)
	return who, nil
}

// username returns what a person is called, and the kind of that name. Where the configuration
// names no attribute, it is the first of the usual ones that is there, or else a NameID that is a
// name.
func (r *realm) username(a assertion) (name, kind string, err error) {
	if configured, named := r.attributes["username"]; named {
		name, err := one(a, configured)
		return name, "username", err
	}
	for _, u := range usernames {
		if len(a.values(u.name)) > 0 {
			name, err := one(a, u.name)
			return name, u.kind, err
		}
	}
	id := nameID(a)
	if kind, ok := nameFormats[id.Format]; ok && id.Value != "" {
		return id.Value, kind, nil
	}
	return "", "", fmt.Errorf("the assertion has none of the usual attributes for the username, and its NameID, "+
		"of format %q, is no name: set attributes.username to "+
		"one of those that came: %s", id.Format, a.named())
}

// one returns the one value of the attribute for the username.
func one(a assertion, name string) (string, error) {
	values := slices.Compact(a.values(name)) // the same twice is one
	if len(values) != 1 {
		return "", fmt.Errorf(
			"the assertion has %d values of the attribute %q for the username instead of one; the attributes that "+
				"came: %s",
			len(values), name, a.named(),
		)
	}
	return values[0], nil
}

// identifier returns the id of a person at their provider. It begins with the kind of id, as two of
// different kinds may be the same text for different people.
func (r *realm) identifier(a assertion, name, kind string) (string, error) {
	if configured := r.attributes["id"]; configured != "" {
		values := slices.Compact(a.values(configured))
		if len(values) != 1 {
			return "", fmt.Errorf(
				"the assertion has %d values of the attribute %q for the id instead of one; the attributes that "+
					"came: %s",
				len(values), configured, a.named(),
			)
		}
		return "id!" + values[0], nil
	}
	if id := nameID(a); id.Format == string(crewjam.PersistentNameIDFormat) && id.Value != "" {
		return "persistent!" + id.Value, nil
	}
	return kind + "!" + name, nil
}

// nameID returns the NameID of an assertion, the zero NameID for none.
func nameID(a assertion) crewjam.NameID {
	if a.Subject == nil || a.Subject.NameID == nil {
		return crewjam.NameID{}
	}
	return *a.Subject.NameID
}

// vouched reports whether the person's e-mail address is verified: by an attribute of the
// assertion, else by trustEmail of the configuration.
func (r *realm) vouched(a assertion) bool {
	for _, name := range []string{"email_verified", "emailVerified"} {
		if values := a.values(name); len(values) > 0 {
			return len(values) == 1 && strings.EqualFold(values[0], "true")
		}
	}
	return r.trustEmail
}

// groups returns the person's groups where the configuration asks for them. Where it names an
// attribute and that did not come, the person has none: most providers leave an attribute out that
// has no values.
func (r *realm) groups(a assertion) (groups []string, missing string) {
	name, named := r.attributes["groups"]
	if named && name == "" || !named && !r.wantsGroups {
		return nil, ""
	}
	all := r.attributes.values(a, "groups")
	switch {
	case len(all) == 0 && len(a.values(tooManyGroups)) > 0:
		return nil, "Entra ID sends no groups of people who have more than 150: let it send the groups that are " +
			"assigned to the application alone"
	case len(all) == 0 && !named:
		return nil, ""
	}
	groups = append([]string{}, all...)
	slices.Sort(groups)
	return slices.Compact(groups), ""
}
