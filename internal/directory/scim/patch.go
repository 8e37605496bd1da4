package scim

import (
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
)

// maxOperations is the most operations of one change.
const maxOperations = 1000

// target is the path of an operation, such as members[value eq "…"] or emails[type eq
// "work"].value.
type target struct {
	path   Path
	filter *filter // the filter in brackets, or nil; its paths begin with the attribute
}

// parseTarget parses the path of an operation (RFC 7644, section 3.5.2).
func parseTarget(text string) (target, error) {
	wrong := invalid(InvalidPath, "path %s is not that of an attribute", shown(text))
	if len(text) > maxFilter {
		return target{}, wrong
	}
	p := &parser{text: text}
	if path, ok := parsePath(text); ok {
		return target{path: path}, nil
	}
	path, err := p.path("")
	if err != nil || path.Sub != "" || !p.sign('[') {
		return target{}, wrong
	}
	t := target{path: path}
	if t.filter, err = p.inside(']', func() (*filter, error) { return p.either(path.Attribute) }); err != nil {
		return target{}, &Error{InvalidPath, errs.Wrap(errs.Invalid, err, "path: %s", errs.MessageOf(err))}
	}
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		if t.path, err = p.path(path.Attribute); err != nil {
			return target{}, wrong
		}
	}
	if p.rest() != "" {
		return target{}, wrong
	}
	return t, nil
}

// Operation is one operation of a PATCH.
type Operation struct {
	op     string // add, replace or remove
	target target // zero: the resource itself
	value  json.RawMessage
}

// ParsePatch parses the body of a PATCH. Errors: errs.Invalid with a scimType.
func ParsePatch(raw []byte) ([]Operation, error) {
	body, err := parseObject(raw, "The body")
	if err != nil {
		return nil, err
	}
	if err := hasSchema(body, PatchMessage); err != nil {
		return nil, err
	}
	given, err := parseObjects(body["operations"], "Operations")
	if err != nil {
		return nil, err
	}
	if len(given) == 0 || len(given) > maxOperations {
		return nil, invalid(InvalidValue, "Operations must have 1 to %d operations", maxOperations)
	}
	all := make([]Operation, len(given))
	for i, o := range given {
		if all[i], err = parseOperation(o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func parseOperation(o object) (Operation, error) {
	op, err := parseText(o["op"], "op")
	if err != nil {
		return Operation{}, err
	}
	if op = lower(op); !slices.Contains([]string{"add", "replace", "remove"}, op) {
		return Operation{}, invalid(InvalidSyntax, "op must be add, replace or remove")
	}
	path, err := parseText(o["path"], "path")
	if err != nil {
		return Operation{}, err
	}
	parsed := Operation{op: op, value: o["value"]}
	switch {
	case path != "":
		if parsed.target, err = parseTarget(path); err != nil {
			return Operation{}, err
		}
	case op == "remove":
		return Operation{}, &Error{NoTarget, errs.New(errs.Invalid, "remove needs a path")}
	}
	if op != "remove" && o["value"] == nil {
		return Operation{}, invalid(InvalidValue, "%s needs a value", op)
	}
	return parsed, nil
}

// hasSchema checks that schemas contains a schema.
func hasSchema(body object, schema string) error {
	var all []string
	if err := json.Unmarshal(body["schemas"], &all); err != nil || !slices.ContainsFunc(all, func(s string) bool {
		return lower(s) == lower(schema)
	}) {
		return invalid(InvalidSyntax, "schemas must have %s", schema)
	}
	return nil
}

// apply applies an operation to a user.
func (o Operation) apply(u *User) error {
	if o.target.path.Attribute == "" {
		all, err := parseObject(o.value, "value")
		if err != nil {
			return err
		}
		return u.setAll(all, o.op == "add")
	}
	if o.op != "remove" {
		return u.setTarget(o.target, o.value, o.op == "add")
	}
	if p := o.target.path.String(); p == "username" || p == "active" {
		return &Error{Mutability, errs.New(errs.Invalid, "%s cannot be removed", spell(o.target.path))}
	}
	return u.setTarget(o.target, nil, false)
}

// UserChange is a change of a user by a POST, PUT or PATCH.
type UserChange func(u *User) error

// PatchUser returns the change of some operations.
func PatchUser(all []Operation) UserChange {
	return func(u *User) error {
		for _, o := range all {
			if err := o.apply(u); err != nil {
				return err
			}
		}
		return nil
	}
}

// ReplaceUser returns the change that sets all attributes to those of the body of a PUT or POST. It
// removes missing attributes, except active. Errors: errs.Invalid with a scimType.
func ReplaceUser(raw []byte) (UserChange, error) {
	body, err := parseObject(raw, "The body")
	if err != nil {
		return nil, err
	}
	if err := hasSchema(body, UserSchema); err != nil {
		return nil, err
	}
	return func(u *User) error {
		*u = User{ID: u.ID, Active: u.Active, Created: u.Created, Modified: u.Modified}
		if isNull(body["active"]) {
			delete(body, "active")
		}
		if err := u.setAll(body, false); err != nil {
			return err
		}
		if u.DisplayName == "" { // some providers send only this one
			if name, err := parseObject(body["name"], "name"); err == nil {
				u.DisplayName, err = parseText(name["formatted"], "name.formatted")
				return err
			}
		}
		return nil
	}, nil
}

// GroupChange is a change of a group by a POST, PUT or PATCH.
type GroupChange func(g *groupEdit) error

// groupEdit is a group that is being changed. Its existing members are not read.
type groupEdit struct {
	Group
	cleared bool            // existing members are removed
	members map[string]bool // by id: whether to add or remove the member
}

// PatchGroup returns the change of some operations.
func PatchGroup(all []Operation) GroupChange {
	return func(g *groupEdit) error {
		for _, o := range all {
			if err := g.apply(o); err != nil {
				return err
			}
		}
		return nil
	}
}

// ReplaceGroup returns the change that sets all attributes to those of the body of a PUT or POST.
// Errors: errs.Invalid with a scimType.
func ReplaceGroup(raw []byte) (GroupChange, error) {
	body, err := parseObject(raw, "The body")
	if err != nil {
		return nil, err
	}
	if err := hasSchema(body, GroupSchema); err != nil {
		return nil, err
	}
	return func(g *groupEdit) error {
		g.Name, g.ExternalID = "", ""
		g.clear()
		return g.setAll(body, "replace")
	}, nil
}

func (g *groupEdit) clear() { g.cleared, g.members = true, map[string]bool{} }

func (g *groupEdit) apply(o Operation) error {
	if o.target.path.Attribute == "" {
		all, err := parseObject(o.value, "value")
		if err != nil {
			return err
		}
		return g.setAll(all, o.op)
	}
	return g.set(o.target, o.op, o.value)
}

func (g *groupEdit) setAll(all object, op string) error {
	for _, name := range all.names() {
		t, err := parseTarget(name)
		if err != nil || slices.Contains(readOnly, t.path.Attribute) {
			continue
		}
		if _, known := groupKinds.of(t.path); !known || t.path.Extension {
			continue
		}
		if err := g.set(t, op, all[name]); err != nil {
			return err
		}
	}
	return nil
}

func (g *groupEdit) set(t target, op string, raw json.RawMessage) (err error) {
	switch p := t.path.String(); {
	case t.path.Extension:
		return nil
	case t.filter != nil && t.path.Attribute == "members":
		return g.selected(t, op)
	case t.filter != nil:
		return invalid(InvalidPath, "%s cannot be selected from", shown(t.path.Attribute))
	case p == "displayname" && op == "remove":
		return &Error{Mutability, errs.New(errs.Invalid, "displayName cannot be removed")}
	case p == "displayname":
		g.Name, err = parseText(raw, "displayName")
		return err
	case p == "externalid":
		if op == "remove" {
			raw = nil
		}
		g.ExternalID, err = parseText(raw, "externalId")
		return err
	case p == "members":
		return g.setMembers(op, raw)
	case slices.Contains(readOnly, t.path.Attribute):
		return &Error{Mutability, errReadOnly(t.path)}
	}
	return invalid(InvalidPath, "there is no attribute %s, or it cannot be changed alone", shown(t.path.String()))
}

func (g *groupEdit) setMembers(op string, raw json.RawMessage) error {
	all, err := parseObjects(raw, "members")
	if err != nil {
		return err
	}
	if op == "replace" || op == "remove" && isNull(raw) {
		g.clear()
	}
	for _, m := range all {
		id, err := parseText(m["value"], "members.value")
		if err != nil {
			return err
		}
		of, err := parseText(m["type"], "members.type")
		if err != nil {
			return err
		}
		switch {
		case id == "":
			return invalid(InvalidValue, "members.value must be the id of a user")
		case of != "" && lower(of) != "user":
			return invalid(InvalidValue, "members.type must be User: groups have no groups as members here")
		}
		g.member(id, op != "remove")
	}
	return nil
}

func (g *groupEdit) member(id string, is bool) {
	if g.members == nil {
		g.members = map[string]bool{}
	}
	g.members[lower(id)] = is
}

// selected changes members[value eq "…"].
func (g *groupEdit) selected(t target, op string) error {
	if t.path.Sub != "" {
		return &Error{
			Mutability,
			errs.New(errs.Invalid, "members.%s cannot be changed: remove and add the member", shown(t.path.Sub)),
		}
	}
	if op != "remove" {
		return invalid(InvalidPath, "members that are selected can be removed alone")
	}
	return removable(t.filter, func(id string) { g.member(id, false) })
}

// removable calls do with the ids in a filter of members.
func removable(f *filter, do func(id string)) error {
	if f.op == "or" {
		if err := removable(f.left, do); err != nil {
			return err
		}
		return removable(f.right, do)
	}
	id, isText := f.value.(string)
	if f.op != "eq" || f.path.String() != "members.value" || !isText {
		return invalid(InvalidFilter, `members can be selected by their ids alone: members[value eq "…"]`)
	}
	do(id)
	return nil
}

func errReadOnly(p Path) error {
	return errs.New(errs.Invalid, "%s cannot be set", shown(p.String()))
}

func errNoTarget(attribute string) error {
	return errs.New(errs.Invalid, "no element of %s is selected", attribute)
}
