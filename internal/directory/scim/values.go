package scim

import (
	"encoding/json"
	"slices"
	"strings"
)

// object is a JSON object by the names of its members in lower case, because names of attributes
// ignore case.
type object map[string]json.RawMessage

// parseObject parses a JSON object. what is its name in errors.
func parseObject(raw json.RawMessage, what string) (object, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return nil, invalid(InvalidSyntax, "%s must be a JSON object", what)
	}
	all := make(object, len(given))
	for name, value := range given {
		if _, twice := all[lower(name)]; twice {
			return nil, invalid(InvalidSyntax, "%s has %s twice", what, shown(name))
		}
		all[lower(name)] = value
	}
	return all, nil
}

// names returns the ordered names.
func (o object) names() []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// flag reports whether a member is true.
func (o object) flag(name string) bool {
	var v any
	_ = json.Unmarshal(o[name], &v) // a missing member is false
	yes, _ := boolOf(v)
	return yes
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// parseText parses a text, "" for null.
func parseText(raw json.RawMessage, what string) (text string, err error) {
	if isNull(raw) {
		return "", nil
	}
	if json.Unmarshal(raw, &text) != nil {
		return "", invalid(InvalidValue, "%s must be a text", what)
	}
	return text, nil
}

// parseObjects parses an array of objects, or a single object. It returns nil for null.
func parseObjects(raw json.RawMessage, what string) ([]object, error) {
	if isNull(raw) {
		return nil, nil
	}
	elements := []json.RawMessage{raw}
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
		if err := json.Unmarshal(raw, &elements); err != nil {
			return nil, invalid(InvalidSyntax, "%s must be an array", what)
		}
	}
	all := make([]object, len(elements))
	for i, e := range elements {
		var err error
		if all[i], err = parseObject(e, "each of "+what); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// spelled are names of attributes in the form for errors.
var spelled = map[string]string{
	"username": "userName", "displayname": "displayName",
	"externalid": "externalId", "name.givenname": "name.givenName",
	"name.middlename": "name.middleName", "name.familyname": "name.familyName",
}

func spell(p Path) string {
	if s := spelled[p.String()]; s != "" {
		return s
	}
	return p.String()
}

// readOnly are the attributes that this service sets.
var readOnly = []string{"id", "meta", "schemas", "groups"}

// text returns a pointer to the text of an attribute, or nil if the attribute is not a text.
func (u *User) text(p Path) *string {
	switch p.String() {
	case "username":
		return &u.UserName
	case "displayname":
		return &u.DisplayName
	case "externalid":
		return &u.ExternalID
	case "name.givenname":
		return &u.GivenName
	case "name.middlename":
		return &u.MiddleName
	case "name.familyname":
		return &u.FamilyName
	case "timezone":
		return &u.Timezone
	case "emails.value":
		return &u.Email
	}
	return nil
}

// set sets an attribute of a user; null removes it. If add is set, it does not replace an e-mail
// address, unless the new one is primary or of type work.
func (u *User) set(p Path, raw json.RawMessage, add bool) (err error) {
	if text := u.text(p); text != nil {
		*text, err = parseText(raw, spell(p))
		return err
	}
	switch p.String() {
	case "active":
		var v any
		_ = json.Unmarshal(raw, &v)
		yes, ok := boolOf(v)
		if !ok {
			return invalid(InvalidValue, "active must be true or false")
		}
		u.Active = yes
		return nil
	case "name":
		return u.setName(raw)
	case "name.formatted", "emails.type", "emails.primary": // are derived from the others
		return nil
	case "emails":
		return u.setEmails(raw, add)
	}
	kind, known := userKinds.of(p)
	switch {
	case slices.Contains(readOnly, p.Attribute):
		return &Error{Mutability, errReadOnly(p)}
	case !known || kind != unstored:
		return invalid(InvalidPath, "there is no attribute %s", shown(p.String()))
	}
	return nil
}

func (u *User) setName(raw json.RawMessage) error {
	if isNull(raw) {
		u.GivenName, u.MiddleName, u.FamilyName = "", "", ""
		return nil
	}
	parts, err := parseObject(raw, "name")
	if err != nil {
		return err
	}
	for _, part := range parts.names() {
		p := Path{Attribute: "name", Sub: part}
		if _, known := userKinds.of(p); !known {
			continue
		}
		if err := u.set(p, parts[part], false); err != nil {
			return err
		}
	}
	return nil
}

// setEmails sets the address to the primary one of several, else to that of type work, else to the
// first.
func (u *User) setEmails(raw json.RawMessage, add bool) error {
	all, err := parseObjects(raw, "emails")
	if err != nil {
		return err
	}
	best, rank := "", 0
	for _, e := range all {
		address, err := parseText(e["value"], "emails.value")
		if err != nil {
			return err
		}
		of, err := parseText(e["type"], "emails.type")
		if err != nil {
			return err
		}
		r := 1
		switch {
		case address == "":
			continue
		case e.flag("primary"):
			r = 3
		case lower(of) == "work":
			r = 2
		}
		if r > rank {
			best, rank = address, r
		}
	}
	if !add || u.Email == "" || rank > 1 {
		u.Email = best
	}
	return nil
}

// setAll sets the attributes in an object. It ignores attributes that this service sets itself or
// does not know.
func (u *User) setAll(all object, add bool) error {
	for _, name := range all.names() {
		t, err := parseTarget(name)
		if err != nil || slices.Contains(readOnly, t.path.Attribute) {
			continue
		}
		switch _, known := userKinds.of(t.path); {
		case t.path.Attribute == "": // the attributes of an extension or schema
			within, err := parseObject(all[name], name)
			if err == nil {
				err = u.setAll(within, add)
			}
			if err != nil {
				return err
			}
		case known:
			if err := u.setTarget(t, all[name], add); err != nil {
				return err
			}
		}
	}
	return nil
}

// setTarget sets the value at a path.
func (u *User) setTarget(t target, raw json.RawMessage, add bool) error {
	if t.filter == nil {
		return u.set(t.path, raw, add)
	}
	kind, known := userKinds.of(t.path)
	switch {
	case known && kind == unstored:
		return nil
	case t.path.Attribute != "emails":
		return invalid(InvalidPath, "%s cannot be selected from", shown(t.path.Attribute))
	}
	if err := userKinds.check(t.filter); err != nil {
		return err
	}
	e := evaluator{kinds: userKinds, filter: t.filter}
	if !e.matches(emailSlot{u}) {
		byValue := false
		_ = t.filter.each(func(f *filter) error {
			byValue = byValue || f.path.Sub == "value" || f.path.Sub == ""
			return nil
		})
		if byValue {
			return &Error{NoTarget, errNoTarget("emails")}
		}
		return nil // an address of another type, which is not stored
	}
	if t.path.Sub == "" {
		return u.setEmails(raw, false)
	}
	return u.set(t.path, raw, add)
}

// emailSlot is the only address that a user can have.
type emailSlot struct{ *User }

func (s emailSlot) value(p Path) any {
	switch p.Sub {
	case "type":
		return "work"
	case "primary":
		return true
	case "", "value":
		if s.Email != "" {
			return s.Email
		}
	}
	return nil
}

// value implements resource.
func (u *User) value(p Path) any {
	if text := u.text(p); text != nil {
		return orNil(*text)
	}
	switch p.String() {
	case "id":
		return u.ID
	case "active":
		return u.Active
	case "name", "name.formatted":
		return orNil(u.Formatted())
	case "emails":
		return orNil(u.Email)
	case "emails.type", "emails.primary":
		if u.Email == "" {
			return nil
		}
		return emailSlot{u}.value(p)
	case "schemas":
		return UserSchema
	case "meta.resourcetype":
		return "User"
	case "meta.version":
		return weakTag(u.Version())
	case "meta.created":
		return u.Created
	case "meta.lastmodified":
		return u.Modified
	}
	return nil
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// value implements resource.
func (g *Group) value(p Path) any {
	switch p.String() {
	case "id":
		return g.ID
	case "externalid":
		return orNil(g.ExternalID)
	case "displayname":
		return g.Name
	case "schemas":
		return GroupSchema
	case "meta.resourcetype":
		return "Group"
	case "meta.version":
		return weakTag(g.Version())
	case "meta.created":
		return g.Created
	case "meta.lastmodified":
		return g.Modified
	}
	return nil
}

// weakTag returns the entity tag of a version.
func weakTag(version string) string { return `W/"` + version + `"` }
