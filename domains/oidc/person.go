package oidc

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/domains"
)

// The most that is taken of a person's claims.
const (
	maxGroups    = 1000
	maxClaims    = 200
	maxTexts     = 100      // of one claim
	maxClaimSize = 64 << 10 // bytes of all of them
	maxClaimName = 255      // bytes
)

// value returns a claim. A name with dots that is not there is a path: a.b is the member b of the
// object a.
func (c claims) value(name string) any {
	if value, there := c[name]; there {
		return value
	}
	first, rest, nested := strings.Cut(name, ".")
	inner, isObject := c[first].(map[string]any)
	if !nested || !isObject {
		return nil
	}
	return claims(inner).value(rest)
}

// isMissing reports whether a claim is not there, or is text that cannot be used.
func (c claims) isMissing(name string) bool {
	_, isText := c.value(name).(string)
	return c.value(name) == nil || isText && c.text(name) == ""
}

// signedIn returns the person that claims describe. Errors: errs.Unauthenticated.
func (r *realm) signedIn(p *provider, c claims) (domains.SignedIn, error) {
	of := func(attribute string) string {
		if r.claims[attribute] == "" {
			return "" // it is not asked for
		}
		return c.text(r.claims[attribute])
	}
	sub, username := c.text("sub"), of("username")
	switch {
	case username != "" && r.claims["username"] == "email" && !c.verified():
		return domains.SignedIn{}, refuse("the e-mail address, which is the username, is not verified: the " +
			"provider must send email_verified")
	case username == "":
		if username = c.text("preferred_username"); username == "" {
			username = sub
		}
	}
	who := domains.SignedIn{
		Identity: domains.Identity{
			ID:          qualified(p.issuer, sub),
			Username:    username,
			DisplayName: of("displayName"),
			GivenName:   of("givenName"),
			FamilyName:  of("familyName"),
			Email:       of("email"),
			Timezone:    of("timezone"),
		},
		EmailVerified: of("email") != "" && r.claims["email"] == "email" && c.verified(),
		Claims:        c.texts(),
	}
	if claim := r.claims["id"]; claim != "" {
		if who.AccountID = of("id"); !isSubject(who.AccountID) {
			return domains.SignedIn{}, refuse(
				"the claim %s, which claims.id names, is missing, or no text of 1 to 255 characters", claim,
			)
		}
		if claim != "sub" {
			who.ID = qualified(p.issuer, claim+"="+who.AccountID)
		}
	}
	if claim := r.claims["groups"]; claim != "" {
		who.Groups, who.NoGroups = c.groups(claim)
	}
	return who, nil
}

// emailOwned is the claim of Entra ID that is true if the domain of the e-mail address belongs to
// the tenant at Entra ID.
const emailOwned = "xms_edov"

// verified reports whether the provider has verified the e-mail address. Some providers write true
// as a text or number.
func (c claims) verified() bool {
	said, owned := c["email_verified"], c[emailOwned]
	return said == true || said == "true" || said == nil && (owned == true || owned == "true" || owned == "1" ||
		owned == 1.0)
}

// groups returns the groups in a claim, or the reason why the provider has left them out. A person
// without the claim is in no groups: providers leave it out then.
func (c claims) groups(claim string) (groups []string, none string) {
	names, _ := c["_claim_names"].(map[string]any)
	if has := c["hasgroups"]; names[claim] != nil || names["groups"] != nil || c.value(claim) == nil &&
		(has == true || has == "true") {
		return nil, "the person has too many groups for a token (an overage): have the provider send only the " +
			"groups that are assigned to this application, or app roles"
	}
	groups = []string{}
	switch value := c.value(claim).(type) {
	case nil:
	case string:
		groups = append(groups, value)
	case []any:
		for _, one := range value {
			if object, ok := one.(map[string]any); ok {
				one = object["name"]
			}
			name, ok := one.(string)
			if !ok {
				return nil, fmt.Sprintf("the claim %s has something else than texts and objects with a name", claim)
			}
			groups = append(groups, name)
		}
	default:
		return nil, fmt.Sprintf("the claim %s is neither a list nor a text", claim)
	}
	groups = slices.DeleteFunc(groups, func(name string) bool {
		return name == "" || len(name) > maxText || strings.Contains(name, "\x00")
	})
	slices.Sort(groups)
	if groups = slices.Compact(groups); len(groups) > maxGroups {
		return nil, fmt.Sprintf("the person has more than %d groups", maxGroups)
	}
	return groups, ""
}

// ofTheToken are the claims about the token and not the person.
var ofTheToken = []string{"iss", "aud", "exp", "iat", "nbf", "nonce", "azp", "at_hash", "c_hash", "jti", "sid"}

// texts returns the claims that are texts, numbers or truth values, or lists of them. Members of
// objects have the names of both with a dot between.
func (c claims) texts() map[string][]string {
	all, left := map[string][]string{}, maxClaimSize
	c.collect("", 1, func(name string, texts []string) {
		size := len(name)
		for _, text := range texts {
			size += len(text)
		}
		if len(texts) > 0 && len(all) < maxClaims && size <= left && len(name) <= maxClaimName {
			all[name], left = texts, left-size
		}
	})
	return all
}

// collect calls add with each claim in the order of their names, and with those in objects down to
// a depth.
func (c claims) collect(before string, depth int, add func(name string, texts []string)) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		switch value := c[name].(type) {
		case map[string]any:
			if depth > 0 {
				claims(value).collect(before+name+".", depth-1, add)
			}
		default:
			if before != "" || !slices.Contains(ofTheToken, name) {
				add(before+name, textsOf(value))
			}
		}
	}
}

// textsOf returns the texts of a claim's value.
func textsOf(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		if len(v) <= maxText && !strings.Contains(v, "\x00") {
			texts = []string{v}
		}
	case bool:
		texts = []string{strconv.FormatBool(v)}
	case float64:
		texts = []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case []any:
		for _, one := range v[:min(len(v), maxTexts)] {
			if _, isList := one.([]any); !isList {
				texts = append(texts, textsOf(one)...)
			}
		}
	}
	return texts
}
