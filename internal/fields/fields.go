// Package fields checks the fields that entities of several kinds have in common: ids and natural ids, names, slugs and texts.
//
// Nouns import it.
package fields

import (
	"strings"
	"unicode"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/escapes"
	"github.com/tenantcontent/tenantcontent/internal/slug"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
)

// The most characters of each field.
const (
	MaxName        = 255
	MaxDescription = 16 * 1024
	MaxSource      = 1024
	MaxOwner       = 256 // of usernames
)

// Place parses text as an id or as a natural id "owner:slug", and reports whether it is one of them. It returns either id, or owner and
// name; the others are empty.
func Place(text string) (id, owner, name string, ok bool) {
	if id, ok := uuids.Parse(text); ok {
		return id, "", "", true
	}
	at := strings.LastIndexByte(text, ':')
	if at <= 0 || !slug.Valid(text[at+1:]) || !escapes.StorableWithin(text[:at], MaxOwner) {
		return "", "", "", false
	}
	owner = text[:at]
	if team, ok := uuids.Parse(owner); ok {
		owner = team
	}
	return "", owner, text[at+1:], true
}

// Name trims a name and checks it. It returns errs.Invalid for a bad one.
func Name(name *string) error {
	*name = strings.TrimSpace(*name)
	if *name == "" || !escapes.StorableWithin(*name, MaxName) || strings.ContainsFunc(*name, unicode.IsControl) {
		return errs.New(errs.Invalid, "name must be 1 to %d characters without control characters", MaxName)
	}
	return nil
}

// Slug checks a slug, and sets an empty one to nil. It returns errs.Invalid for a bad one.
func Slug(s **string) error {
	if *s != nil && **s == "" {
		*s = nil
	}
	if *s != nil && !slug.Valid(**s) {
		return errs.New(errs.Invalid, "slug must be 1 to 128 letters, digits, hyphens and underscores, begin with a letter or digit "+
			"and not have the form of a UUID")
	}
	return nil
}

// Text trims a text of at most so many characters and checks it, and sets an empty one to nil. It returns errs.Invalid naming the
// field.
func Text(field string, text **string, most int) error {
	if *text == nil {
		return nil
	}
	s := strings.TrimSpace(**text)
	if *text = &s; s == "" {
		*text = nil
	}
	if !escapes.StorableWithin(s, most) {
		return errs.New(errs.Invalid, "%s must be UTF-8 without NUL and have at most %d characters", field, most)
	}
	return nil
}
