package principals

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// The most characters of each field.
const (
	maxUsername    = 256  // bytes
	maxOldUsername = 512  // bytes; it was 128 characters once
	maxSource      = 1024 // a distinguished name
	maxSmall       = 128
	maxJSON        = 64 * 1024 // bytes
)

var slugForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// notInUsernames are the characters that separate the parts of URLs, natural ids ("owner:slug"),
// lists and distinguished names.
const notInUsernames = "/\\:,;\"<>|"

// everyone is a reserved name, beside *.
const everyone = "everyone"

// ValidUsername returns errs.Invalid if a text cannot be the name of a new user. A username has 1
// to 256 bytes, none of / \ : , ; " < > | and no control or invisible characters, also after
// Unicode's NFKC, and no spaces at an end or two in a row. It is not *, ., .. or everyone, does not
// have the form of a UUID, as team ids have, and does not mix Latin letters with Cyrillic or Greek
// ones.
func ValidUsername(name string) error {
	if err := ValidOldUsername(name); err != nil {
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

var errInvisible = errs.New(
	errs.Invalid,
	"username must not have control or invisible characters, spaces other than the plain one, or any of %s",
	notInUsernames,
)

var errUsernameLength = errs.New(errs.Invalid, "username must be 1 to %d bytes", maxUsername)

// ValidOldUsername returns errs.Invalid if a text cannot be the name of any user, even of one that
// is older than the rules.
func ValidOldUsername(name string) error {
	normal := norm.NFKC.String(name)
	switch {
	case name == "" || len(name) > maxOldUsername || !escapes.StorableWithin(name, maxOldUsername):
		return errUsernameLength
	case strings.ContainsAny(name+normal, notInUsernames) || strings.ContainsFunc(name, invisible) ||
		strings.ContainsFunc(normal, invisible):
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

// invisible reports whether a character is not visible in a name: control, format and unassigned
// characters, and unusual spaces.
func invisible(r rune) bool { return r != ' ' && unicode.IsSpace(r) || !unicode.IsGraphic(r) }

// accept checks a user and fills in what was left out. Errors: errs.Invalid naming the field.
func (u *User) accept() error { return u.acceptWith(object) }

// acceptRow is accept for a row, whose JSON was found to be valid when the row was read.
func (u *User) acceptRow() error { return u.acceptWith(objectOfRow) }

func (u *User) acceptWith(object func(name string, raw json.RawMessage) (json.RawMessage, error)) error {
	if err := ValidOldUsername(u.Username); err != nil {
		return err
	}
	if err := acceptDomain(&u.Domain); err != nil {
		return err
	}
	err := profile.Clean([]profile.Text{
		{Name: "displayName", Value: &u.DisplayName, Max: profile.MaxName},
		{Name: "familyName", Value: &u.FamilyName, Max: profile.MaxName},
		{Name: "givenName", Value: &u.GivenName, Max: profile.MaxName},
		{Name: "middleName", Value: &u.MiddleName, Max: profile.MaxName},
		{Name: "email", Value: &u.Email, Max: profile.MaxEmail},
		{Name: "timezone", Value: &u.Timezone, Max: profile.MaxTimezone},
		{Name: "source", Value: &u.Source, Max: maxSource}, {Name: "sourceId", Value: &u.SourceID, Max: maxSource},
		{Name: "avatarId", Value: &u.AvatarID, Max: maxSmall},
		{Name: "aiMessage", Value: &u.AIMessage, Max: profile.MaxText, Lines: true},
	})
	if err == nil && u.Email != nil {
		err = profile.CheckEmail(*u.Email)
	}
	if err == nil && u.Timezone != nil {
		err = profile.CheckTimezone(*u.Timezone)
	}
	if err != nil {
		return err
	}
	if u.Data, err = object("data", u.Data); err != nil {
		return err
	}
	u.UserFields, err = object("userFields", u.UserFields)
	for _, at := range []**time.Time{
		&u.LastViewedFeed, &u.PasswordExpiresAt, &u.ForgotPasswordRequestTime, &u.AvatarUpdatedAt,
	} {
		if *at != nil { // in the precision of every database
			t := (*at).UTC().Truncate(time.Microsecond)
			*at = &t
		}
	}
	return err
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

// objectOfRow is like object but does not count the length of secrets: a mask may be longer than
// the secret it replaces, and stored secrets come from JSON that was accepted before.
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
	name, err := profile.CleanTeamName(t.Name)
	if err != nil {
		return err
	}
	t.Name = name
	if !slug.Valid(t.Slug) {
		return errs.New(errs.Invalid,
			"slug must be 1 to 128 letters, digits, hyphens and underscores, begin with a letter or digit "+
				"and not have the form of a UUID")
	}
	if err := acceptDomain(&t.Domain); err != nil {
		return err
	}
	return profile.Clean([]profile.Text{
		{Name: "description", Value: &t.Description, Max: profile.MaxText, Lines: true},
		{Name: "color", Value: &t.Color, Max: maxSmall},
		{Name: "icon", Value: &t.Icon, Max: profile.MaxName},
		{Name: "materialIcon", Value: &t.MaterialIcon, Max: maxSmall},
		{Name: "source", Value: &t.Source, Max: maxSource}, {Name: "sourceId", Value: &t.SourceID, Max: maxSource},
	})
}
