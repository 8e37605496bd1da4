// Package fields checks the fields that several nouns have in common: ids and natural ids, names,
// slugs, texts and JSON.
//
// Nouns import it.
package fields

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// Limits of fields, in characters.
const (
	MaxName        = 255
	MaxDescription = 16 * 1024
	MaxSource      = 1024
	MaxOwner       = 256 // of usernames
)

// Place parses text as an id or as a natural id "owner:slug", and reports whether it is one of
// them. It returns either id, or owner and name; the others are empty.
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

// Name trims and checks a name. It returns errs.Invalid if it is not valid.
func Name(name *string) error {
	*name = strings.TrimSpace(*name)
	if *name == "" || !escapes.StorableWithin(*name, MaxName) || strings.ContainsFunc(*name, unicode.IsControl) {
		return errs.New(errs.Invalid, "name must be 1 to %d characters without control characters", MaxName)
	}
	return nil
}

// Slug checks a slug, and sets an empty one to nil. It returns errs.Invalid if it is not valid.
func Slug(s **string) error {
	if *s != nil && **s == "" {
		*s = nil
	}
	if *s != nil && !slug.Valid(**s) {
		return errs.New(errs.Invalid,
			"slug must be 1 to 128 letters, digits, hyphens and underscores, begin with a letter or digit "+
				"and not have the form of a UUID")
	}
	return nil
}

// Text trims a text and checks that it has at most most characters. It sets an empty text to nil.
// It returns errs.Invalid naming the field.
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

// JSON returns a document without white space around it, or nil for an empty one. It returns
// errs.Invalid naming the field if the document has more than most bytes or databases cannot store
// it.
func JSON(field string, raw json.RawMessage, most int) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return nil, nil
	case len(raw) > most:
		return nil, errs.New(errs.Invalid, "%s has %d bytes of JSON, where %d are allowed", field, len(raw), most)
	case !utf8.Valid(raw) || !rawjson.Valid(raw) || escapes.Bad(raw):
		return nil, errs.New(errs.Invalid, "%s must be JSON without NUL and broken characters", field)
	}
	return raw, nil
}
