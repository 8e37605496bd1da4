package aiinstr

import (
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// The most bytes of each text.
const (
	maxDescription = 4 << 10
	maxContent     = 256 << 10
)

// place returns the key by which the Store finds an instruction: an id in canonical form, or a
// slug. Errors: errs.NotFound.
func place(key string) (string, error) {
	if id, ok := uuids.Parse(key); ok {
		return id, nil
	}
	if !slug.Valid(key) { // cannot exist, and the database may refuse the text
		return "", errs.New(errs.NotFound, "AI instruction not found.")
	}
	return key, nil
}

// accept checks an instruction. Errors: errs.Invalid naming the field.
func (i *Instruction) accept() error {
	if i.Slug == "" {
		return errs.New(errs.Invalid, "slug is required")
	}
	if !slug.Valid(i.Slug) {
		return errs.New(errs.Invalid,
			"slug must be 1 to 128 letters, digits, hyphens and underscores, begin with a letter or digit "+
				"and not have the form of a UUID")
	}
	if i.Description != nil && strings.TrimSpace(*i.Description) == "" {
		i.Description = nil
	}
	if i.Description != nil && !text(*i.Description, maxDescription) {
		return errs.New(errs.Invalid, "description must be UTF-8 without NUL and have at most %d bytes", maxDescription)
	}
	if strings.TrimSpace(i.Content) == "" {
		return errs.New(errs.Invalid, "content is required")
	}
	if !text(i.Content, maxContent) {
		return errs.New(errs.Invalid, "content must be UTF-8 without NUL and have at most %d bytes", maxContent)
	}
	return nil
}

// text reports whether every database can store s, and it has at most so many bytes.
func text(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
