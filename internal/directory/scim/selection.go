package scim

import (
	"slices"
	"strings"
)

// Selection selects the attributes of resources in an answer.
type Selection struct {
	only, without []Path
}

// Select returns the Selection of the parameters attributes and excludedAttributes, each a list of
// paths. If both are given, only the first one is used. Errors: errs.Invalid with a scimType.
func Select(attributes, excluded []string) (s Selection, err error) {
	if s.only, err = selected(attributes, "attributes"); err == nil && len(s.only) == 0 {
		s.without, err = selected(excluded, "excludedAttributes")
	}
	return s, err
}

func selected(names []string, what string) (all []Path, err error) {
	for _, name := range names {
		for one := range strings.SplitSeq(name, ",") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			p, ok := parsePath(one)
			if !ok || len(all) == 100 {
				return nil, invalid(InvalidValue, "%s must be a list of at most 100 names of attributes", what)
			}
			if p.Attribute != "" {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// Given reports whether the client requests only some attributes.
func (s Selection) Given() bool { return len(s.only) > 0 }

// Has reports whether an attribute such as members, or a part of it, is in the answer.
func (s Selection) Has(attribute string) bool {
	if s.Given() {
		return slices.ContainsFunc(s.only, func(p Path) bool { return p.Attribute == lower(attribute) })
	}
	return !slices.Contains(s.without, Path{Attribute: lower(attribute)})
}

// always are the attributes of every answer.
var always = []string{"schemas", "id"}

// Apply removes the attributes that are not selected from a resource, which maps names to values.
// The values of attributes with parts are maps, or lists of maps.
func (s Selection) Apply(resource map[string]any) {
	for name, value := range resource {
		switch attribute := lower(name); {
		case slices.Contains(always, attribute):
		case !s.Has(attribute):
			delete(resource, name)
		default:
			s.applyParts(attribute, value)
		}
	}
}

// applyParts removes the parts that are not selected from the value of an attribute.
func (s Selection) applyParts(attribute string, value any) {
	shown := func(part string) bool {
		p := Path{Attribute: attribute, Sub: lower(part)}
		if s.Given() {
			return slices.Contains(s.only, p) || slices.Contains(s.only, Path{Attribute: attribute})
		}
		return !slices.Contains(s.without, p)
	}
	parts := func(of map[string]any) {
		for part := range of {
			if !shown(part) {
				delete(of, part)
			}
		}
	}
	switch value := value.(type) {
	case map[string]any:
		parts(value)
	case []map[string]any:
		for _, one := range value {
			parts(one)
		}
	}
}
