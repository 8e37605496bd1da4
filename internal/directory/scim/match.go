package scim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// kind is the way in which the values of an attribute are compared.
type kind int

const (
	_          kind = iota
	foldedText      // ignoring case
	exactText
	nameText // as usernames are compared
	boolean
	dateTime
	members   // ids of users or groups, which are looked up
	unstored  // an attribute of the core schema that is not stored: it is accepted and has no values
	reference // cannot be compared in a filter
)

// kinds are the attributes of one type of resource, by their paths. The path of an attribute with
// parts stands for its value.
type kinds map[string]kind

var userKinds = kinds{
	"id": exactText, "externalid": exactText, "schemas": exactText,
	"username": nameText, "displayname": foldedText, "timezone": foldedText,
	"active": boolean, "name": foldedText,
	"name.formatted": foldedText, "name.givenname": foldedText, "name.middlename": foldedText,
	"name.familyname": foldedText, "emails": foldedText,
	"emails.value": foldedText, "emails.type": foldedText, "emails.primary": boolean,
	"groups": members, "groups.value": members,
	"groups.$ref": reference, "groups.display": reference, "groups.type": reference,
	"meta.created": dateTime, "meta.lastmodified": dateTime,
	"meta.resourcetype": foldedText, "meta.version": exactText, "meta.location": reference,

	"name.honorificprefix": unstored, "name.honorificsuffix": unstored,
	"emails.display": unstored, "nickname": unstored, "profileurl": unstored,
	"title": unstored, "usertype": unstored, "preferredlanguage": unstored,
	"locale": unstored, "password": unstored, "phonenumbers": unstored,
	"ims": unstored, "photos": unstored, "addresses": unstored,
	"entitlements": unstored, "roles": unstored, "x509certificates": unstored,
}

var groupKinds = kinds{
	"id": exactText, "externalid": exactText, "schemas": exactText, "displayname": foldedText,
	"members": members, "members.value": members,
	"members.$ref": reference, "members.display": reference, "members.type": reference,
	"meta.created": dateTime, "meta.lastmodified": dateTime,
	"meta.resourcetype": foldedText, "meta.version": exactText, "meta.location": reference,
}

// of returns the kind of an attribute. known is false if the attribute does not exist.
func (k kinds) of(p Path) (of kind, known bool) {
	if of, known = k[p.String()]; !known {
		of, known = unstored, p.Extension || k[p.Attribute] == unstored
	}
	return of, known
}

// check returns an error for a filter that does not fit the attributes.
func (k kinds) check(f *filter) error {
	return f.each(func(f *filter) error {
		kind, known := k.of(f.path)
		if !known {
			return invalid(InvalidFilter, "filter: there is no attribute %s", shown(f.path.String()))
		}
		_, isText := f.value.(string)
		orders := slices.Contains([]string{"gt", "ge", "lt", "le"}, f.op)
		parts := slices.Contains([]string{"co", "sw", "ew"}, f.op)
		switch {
		case kind == reference:
			return invalid(InvalidFilter, "filter: %s cannot be compared", f.path)
		case kind == unstored || f.op == "pr" && kind != members:
			return nil
		case kind == members:
			if f.op != "eq" || !isText {
				return invalid(InvalidFilter, "filter: %s can be compared with eq and an id alone", f.path)
			}
		case f.value == nil:
			if f.op != "eq" && f.op != "ne" {
				return invalid(InvalidFilter, "filter: null can be compared with eq and ne alone")
			}
		case kind == boolean:
			if _, ok := boolOf(f.value); !ok || orders || parts {
				return invalid(InvalidFilter, "filter: %s is true or false, and compared with eq and ne", f.path)
			}
		case kind == dateTime:
			if _, ok := timeOf(f.value); !ok || parts {
				return invalid(
					InvalidFilter,
					`filter: %s is compared with a time such as "2026-11-20T20:31:00Z", by eq ne gt ge lt le`,
					f.path,
				)
			}
		case !isText:
			return invalid(InvalidFilter, "filter: %s is compared with a text in quotes", f.path)
		}
		return nil
	})
}

func boolOf(v any) (value, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string: // as Entra writes it
		switch lower(v) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	return false, false
}

func timeOf(v any) (time.Time, bool) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// resource is a user or group for which a filter is evaluated.
type resource interface {
	// value returns the value of an attribute: a string, a bool, a time.Time, or nil.
	value(p Path) any
}

// evaluator decides whether resources match a filter.
type evaluator struct {
	kinds  kinds
	filter *filter
	among  map[*filter]func(resource) bool // of the comparisons of members
}

func (e *evaluator) matches(r resource) bool { return e.filter == nil || e.eval(e.filter, r) }

func (e *evaluator) eval(f *filter, r resource) bool {
	switch f.op {
	case "and":
		return e.eval(f.left, r) && e.eval(f.right, r)
	case "or":
		return e.eval(f.left, r) || e.eval(f.right, r)
	case "not":
		return !e.eval(f.left, r)
	}
	kind, _ := e.kinds.of(f.path)
	if among := e.among[f]; among != nil {
		return among(r)
	}
	var has any
	if kind != unstored {
		has = r.value(f.path)
	}
	return compare(kind, f.op, has, f.value)
}

// compare compares the value of an attribute, which may be nil, with that of a filter.
func compare(kind kind, op string, has, value any) bool {
	switch {
	case op == "pr":
		return has != nil
	case op == "ne":
		return !compare(kind, "eq", has, value)
	case has == nil || value == nil:
		return op == "eq" && has == nil && value == nil
	}
	switch has := has.(type) {
	case bool:
		wanted, _ := boolOf(value)
		return has == wanted
	case time.Time:
		wanted, _ := timeOf(value)
		return ordered(op, has.Compare(wanted))
	}
	text, wanted := folded(kind, has.(string)), folded(kind, value.(string))
	switch op {
	case "co":
		return strings.Contains(text, wanted)
	case "sw":
		return strings.HasPrefix(text, wanted)
	case "ew":
		return strings.HasSuffix(text, wanted)
	}
	return ordered(op, cmp.Compare(text, wanted))
}

func ordered(op string, by int) bool {
	switch op {
	case "eq":
		return by == 0
	case "gt":
		return by > 0
	case "ge":
		return by >= 0
	case "lt":
		return by < 0
	default:
		return by <= 0
	}
}

func folded(kind kind, s string) string {
	switch kind {
	case exactText:
		return s
	case nameText:
		return fold.Name(s)
	default:
		return fold.Text(s)
	}
}
