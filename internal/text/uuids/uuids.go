// Package uuids reads the ids of rows.
package uuids

import "github.com/google/uuid"

// Parse returns the id that s spells, in lower case, and reports whether it spells one: 36
// characters in lower or upper case. Other spellings of a UUID (braces, urn:uuid:, no dashes) are
// no ids, so that an id has no second name.
func Parse(s string) (id string, ok bool) {
	if len(s) != 36 {
		return "", false
	}
	u, err := uuid.Parse(s)
	if err != nil {
		return "", false
	}
	return u.String(), true
}

// Valid reports whether s spells an id.
func Valid(s string) bool {
	_, ok := Parse(s)
	return ok
}
