package scim

import (
	"slices"
	"strings"
)

// The schemas and messages of the protocol.
const (
	UserSchema     = "urn:ietf:params:scim:schemas:core:2.0:User"
	GroupSchema    = "urn:ietf:params:scim:schemas:core:2.0:Group"
	ListMessage    = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	PatchMessage   = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	SearchMessage  = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
	ErrorMessage   = "urn:ietf:params:scim:api:messages:2.0:Error"
	SchemaSchema   = "urn:ietf:params:scim:schemas:core:2.0:Schema"
	TypeSchema     = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
	ProviderSchema = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
)

// Path is the name of an attribute, in lower case because names ignore case, such as
// name.givenname.
type Path struct {
	Attribute string
	Sub       string // or ""
	Extension bool   // of a schema that is not supported
}

// String returns the path in the form for errors.
func (p Path) String() string {
	if p.Sub == "" {
		return p.Attribute
	}
	return p.Attribute + "." + p.Sub
}

// parsePath parses an attribute path: name, name.givenName, or with the schema before it, as in
// urn:ietf:params:scim:schemas:core:2.0:User:name.givenName. ok is false if the text is not a path.
func parsePath(text string) (p Path, ok bool) {
	text = lower(text)
	if strings.HasPrefix(text, "urn:") {
		of := schemaOf(text)
		if of == "" {
			return Path{Attribute: text, Extension: true}, isURN(text)
		}
		text = strings.TrimPrefix(text[len(of):], ":")
		if text == "" {
			return Path{}, true
		}
	}
	attribute, sub, dotted := strings.Cut(text, ".")
	if !isName(attribute) || dotted && !isName(sub) {
		return Path{}, false
	}
	return Path{Attribute: attribute, Sub: sub}, true
}

// schemaOf returns the core schema with which a path in lower case begins, or "".
func schemaOf(text string) string {
	for _, s := range []string{lower(UserSchema), lower(GroupSchema)} {
		if text == s || strings.HasPrefix(text, s+":") {
			return s
		}
	}
	return ""
}

// lower returns s with the capitals of ASCII as small letters. Names of attributes contain only
// these letters. Other letters are not changed, so that a letter of another script does not equal
// one of ASCII.
func lower(s string) string {
	if strings.IndexFunc(s, func(c rune) bool { return c >= 'A' && c <= 'Z' }) < 0 {
		return s
	}
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// isName reports whether a text in lower case is the name of an attribute.
func isName(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || i == 0 && c == '$'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '-' || c == '_')) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// isURN reports whether a text in lower case is the name of a schema, or the path of an attribute
// in a schema.
func isURN(s string) bool {
	parts := strings.Split(s, ":")
	return len(s) <= 512 && len(parts) > 2 && !slices.Contains(parts, "") && strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune(":.-_$", c)
	}) < 0
}
