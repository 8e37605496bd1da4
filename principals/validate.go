package principals

import (
	"bytes"
	"encoding/json"
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/escapes"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/slug"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
)

// The most characters of each field.
const (
	maxUsername = 256 // bytes
	maxName     = 255

	maxOldUsername = 512 // bytes; it was 128 characters once
	maxEmail       = 254
	maxSource      = 1024 // a distinguished name
	maxSmall       = 128
	maxText        = 16 * 1024
	maxJSON        = 64 * 1024 // bytes
)

var slugForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// notInUsernames are the characters that separate the parts of URLs, natural ids ("owner:slug"), lists and distinguished names.
const notInUsernames = "/\\:,;\"<>|"

// everyone is a reserved name, beside *.
const everyone = "everyone"

// ValidUsername returns errs.Invalid if a text cannot be the name of a new user. A username has 1 to 256 bytes, none of / \ : , ; " < > | and no
// control or invisible characters, also after Unicode's NFKC, and no spaces at an end or two in a row. It is not *, ., ..
// or everyone, does not have the form of a UUID, as team ids have, and does not mix Latin letters with Cyrillic or Greek ones.
func ValidUsername(name string) error {
	if err := formOfUsername(name); err != nil {
		return err
	}
	latin, other := false, false
	for _, r := range norm.NFKC.String(name) {
		latin = latin || unicode.Is(unicode.Latin, r)
		other = other || unicode.In(r, unicode.Cyrillic, unicode.Greek)
	}
	switch {
	case len(name) > maxUsername:
		return errUsernameLength
	case strings.ContainsFunc(name, fold.Invisible):
		return errInvisible
	case fold.Name(name) == everyone:
		return errs.New(errs.Invalid, "username must not be %s, which stands for everybody", everyone)
	case latin && other:
		return errs.New(errs.Invalid, "username must not mix Latin letters with Cyrillic or Greek ones")
	}
	return nil
}

var errInvisible = errs.New(errs.Invalid, "username must not have control or invisible characters, spaces other than the plain one, or any of %s", notInUsernames)

var errUsernameLength = errs.New(errs.Invalid, "username must be 1 to %d bytes", maxUsername)

// formOfUsername returns errs.Invalid if a text cannot be the name of any user, even of one that is older than the rules.
func formOfUsername(name string) error {
	normal := norm.NFKC.String(name)
	switch {
	case name == "" || len(name) > maxOldUsername || !escapes.StorableWithin(name, maxOldUsername):
		return errUsernameLength
	case strings.ContainsAny(name+normal, notInUsernames) || strings.ContainsFunc(name, invisible) || strings.ContainsFunc(normal, invisible):
		return errInvisible
	case strings.TrimSpace(normal) != normal || strings.Contains(normal, "  "):
		return errs.New(errs.Invalid, "username must not have spaces at an end, or two in a row")
	case normal == "*" || normal == "." || normal == "..":
		return errs.New(errs.Invalid, "username must not be %s", normal)
	case uuids.Valid(name):
		return errs.New(errs.Invalid, "username must not have the form of a UUID")
	}
	return nil
}

// invisible reports whether a character is not visible in a name: control, format and unassigned characters, and unusual spaces.
func invisible(r rune) bool { return r != ' ' && unicode.IsSpace(r) || !unicode.IsGraphic(r) }

// field is an optional text field: its name in the API, its limit, and whether it may have several lines.
type field struct {
	name  string
	value **string
	most  int
	lines bool
}

// check trims the texts, sets empty ones to nil, and returns errs.Invalid for an invalid one.
func check(fields []field) error {
	for _, f := range fields {
		if *f.value == nil {
			continue
		}
		s := strings.TrimSpace(**f.value)
		if s == "" {
			*f.value = nil
			continue
		}
		*f.value = &s
		if !escapes.StorableWithin(s, f.most) {
			return errs.New(errs.Invalid, "%s must be UTF-8 without NUL and have at most %d characters", f.name, f.most)
		}
		if !f.lines && strings.ContainsFunc(s, unicode.IsControl) {
			return errs.New(errs.Invalid, "%s must not have control characters", f.name)
		}
	}
	return nil
}

// accept checks a user and fills in what was left out. Errors: errs.Invalid naming the field.
func (u *User) accept() error { return u.acceptWith(object) }

// acceptRow is accept for a row, whose JSON was found to be valid when the row was read.
func (u *User) acceptRow() error { return u.acceptWith(objectOfRow) }

func (u *User) acceptWith(object func(name string, raw json.RawMessage) (json.RawMessage, error)) error {
	if err := formOfUsername(u.Username); err != nil {
		return err
	}
	if err := acceptDomain(&u.Domain); err != nil {
		return err
	}
	err := check([]field{
		{"displayName", &u.DisplayName, maxName, false}, {"familyName", &u.FamilyName, maxName, false},
		{"givenName", &u.GivenName, maxName, false}, {"middleName", &u.MiddleName, maxName, false},
		{"email", &u.Email, maxEmail, false}, {"timezone", &u.Timezone, maxSmall, false},
		{"source", &u.Source, maxSource, false}, {"sourceId", &u.SourceID, maxSource, false},
		{"avatarId", &u.AvatarID, maxSmall, false}, {"aiMessage", &u.AIMessage, maxText, true},
	})
	if err != nil {
		return err
	}
	if u.Email != nil && !validEmail(*u.Email) {
		return errEmail
	}
	if u.Timezone != nil && !validTimezone(*u.Timezone) {
		return errTimezone
	}
	if u.Data, err = object("data", u.Data); err != nil {
		return err
	}
	u.UserFields, err = object("userFields", u.UserFields)
	for _, at := range []**time.Time{&u.LastViewedFeed, &u.PasswordExpiresAt, &u.ForgotPasswordRequestTime, &u.AvatarUpdatedAt} {
		if *at != nil { // in the precision of every database
			t := (*at).UTC().Truncate(time.Microsecond)
			*at = &t
		}
	}
	return err
}

var (
	errEmail    = errs.New(errs.Invalid, "email must be an email address")
	errTimezone = errs.New(errs.Invalid, "timezone must be an IANA name such as Europe/Berlin")
)

func validEmail(email string) bool {
	a, err := mail.ParseAddress(email)
	return err == nil && a.Address == email
}

// validTimezone uses the time zones of the machine. A program that must not depend on them imports time/tzdata; the library
// does not, as that adds 450 KB.
func validTimezone(name string) bool {
	_, err := time.LoadLocation(name)
	return err == nil && name != "Local"
}

// object returns a JSON object without spaces around its parts, {} for none.
func object(name string, raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	var b bytes.Buffer
	if len(raw) > maxJSON || !utf8.Valid(raw) || json.Compact(&b, raw) != nil || b.Bytes()[0] != '{' {
		return nil, errs.New(errs.Invalid, "%s must be a JSON object of at most %d bytes", name, maxJSON)
	}
	if wrong := transfer.Unfit(raw); wrong != "" {
		return nil, errs.New(errs.Invalid, "%s %s", name, wrong)
	}
	return b.Bytes(), nil
}

// objectOfRow is like object but does not count the length of secrets: a mask may be longer than the secret it replaces, and
// stored secrets come from JSON that was accepted before.
func objectOfRow(name string, raw json.RawMessage) (json.RawMessage, error) {
	bare, _ := entity.KeepSecrets(raw, nil)
	if _, err := object(name, bare); err != nil || len(raw) == 0 {
		return json.RawMessage("{}"), err
	}
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}

// acceptDomain checks the id of a domain, and sets an empty one to Local.
func acceptDomain(domain *string) error {
	if *domain == "" {
		*domain = Local
	}
	if !slugForm.MatchString(*domain) {
		return errs.New(errs.Invalid, "domain must be the id of a domain")
	}
	return nil
}

// accept checks a team and fills in what was left out. Errors: errs.Invalid naming the field.
func (t *Team) accept() error {
	t.Name = strings.TrimSpace(t.Name)
	if t.Name == "" || !escapes.StorableWithin(t.Name, maxName) || strings.ContainsFunc(t.Name, unicode.IsControl) {
		return errs.New(errs.Invalid, "name must be 1 to %d characters without control characters", maxName)
	}
	if !slug.Valid(t.Slug) {
		return errs.New(errs.Invalid, "slug must be 1 to 128 letters, digits, hyphens and underscores, begin with a letter or digit "+
			"and not have the form of a UUID")
	}
	if err := acceptDomain(&t.Domain); err != nil {
		return err
	}
	return check([]field{
		{"description", &t.Description, maxText, true}, {"color", &t.Color, maxSmall, false}, {"icon", &t.Icon, maxName, false},
		{"materialIcon", &t.MaterialIcon, maxSmall, false}, {"source", &t.Source, maxSource, false},
		{"sourceId", &t.SourceID, maxSource, false},
	})
}
