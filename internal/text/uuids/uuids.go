// Package uuids parses the ids of rows.
package uuids

import "github.com/google/uuid"

// Parse returns the id in s, in lower case, and reports whether s is an id: 36 characters in lower
// or upper case. Other forms of a UUID (braces, urn:uuid:, no hyphens) are refused, so that an id
// has only one form.
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

// Valid reports whether s is an id.
func Valid(s string) bool {
	_, ok := Parse(s)
	return ok
}
