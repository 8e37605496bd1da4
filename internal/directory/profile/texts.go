package profile

import (
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// Limits of texts of users and teams, in characters.
const (
	MaxName     = 255 // of each name
	MaxEmail    = 254
	MaxTimezone = 128
	MaxText     = 16 * 1024 // of a description
)

// Text is an optional text of a user or team, with its name in the API, its limit, and whether it
// may have several lines.
type Text struct {
	Name  string
	Value **string
	Max   int
	Lines bool
}

// Clean trims texts and sets empty ones to nil. It returns errs.Invalid for an invalid text.
func Clean(texts []Text) error {
	for _, f := range texts {
		if *f.Value == nil {
			continue
		}
		s := strings.TrimSpace(**f.Value)
		if s == "" {
			*f.Value = nil
			continue
		}
		*f.Value = &s
		if !escapes.StorableWithin(s, f.Max) {
			return errs.New(errs.Invalid, "%s must be UTF-8 without NUL and have at most %d characters", f.Name, f.Max)
		}
		if !f.Lines && strings.ContainsFunc(s, unicode.IsControl) {
			return errs.New(errs.Invalid, "%s must not have control characters", f.Name)
		}
	}
	return nil
}

// CleanTeamName returns a team's name without spaces around it. It returns errs.Invalid for an
// invalid name.
func CleanTeamName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" || !escapes.StorableWithin(name, MaxName) || strings.ContainsFunc(name, unicode.IsControl) {
		return name, errs.New(errs.Invalid, "name must be 1 to %d characters without control characters", MaxName)
	}
	return name, nil
}

var (
	errEmail    = errs.New(errs.Invalid, "email must be an email address")
	errTimezone = errs.New(errs.Invalid, "timezone must be an IANA name such as Europe/Berlin")
)

// CheckEmail returns errs.Invalid if a text is not an email address.
func CheckEmail(email string) error {
	if a, err := mail.ParseAddress(email); err != nil || a.Address != email {
		return errEmail
	}
	return nil
}

// CheckTimezone returns errs.Invalid if a text is not the IANA name of a time zone. It uses the
// time zones of the machine. A program that must not depend on them imports time/tzdata; the
// library does not, because that adds 450 KB.
func CheckTimezone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return errTimezone
	}
	return nil
}
