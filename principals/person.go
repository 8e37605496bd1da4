package principals

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/escapes"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

const (
	maxSourceID = 255  // characters of Identity.ID and Group.ID
	maxWarnings = 1000 // of a SyncReport
)

// validSourceID reports whether a directory's id can be stored as it is.
func validSourceID(id string) bool {
	return id != "" && escapes.StorableWithin(id, maxSourceID) && strings.TrimSpace(id) == id && !strings.ContainsFunc(id, unicode.IsControl)
}

// shown returns a text of a directory for use in a sentence.
func shown(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, transfer.Short(s))
}

// warnings collects sentences for people, up to a maximum.
type warnings struct {
	all  []string
	more int
}

func (w *warnings) warn(format string, args ...any) {
	if len(w.all) == maxWarnings {
		w.more++
		return
	}
	w.all = append(w.all, fmt.Sprintf(format, args...))
}

// sentences returns the warnings, and a last one with the number of those that were left out.
func (w *warnings) sentences() []string {
	if w.more > 0 {
		return append(w.all[:len(w.all):len(w.all)], fmt.Sprintf("There are %d more warnings.", w.more))
	}
	return w.all
}

// profileWriter copies what a directory reports of people into their users. A field that it does not report keeps its value,
// and an invalid value is left out with a warning.
type profileWriter struct {
	source string
	warn   func(format string, args ...any)
	zones  map[string]bool // whether a time zone is valid, which takes reading a file to find out
}

func newProfileWriter(source string, warn func(format string, args ...any)) *profileWriter {
	return &profileWriter{source: source, warn: warn, zones: map[string]bool{}}
}

// silent returns a profileWriter that does not warn.
func (s *profileWriter) silent() *profileWriter {
	return &profileWriter{source: s.source, warn: func(string, ...any) {}, zones: s.zones}
}

// profile copies everything but the username and whether the user is enabled.
func (s *profileWriter) profile(u *DirectoryUser, who Identity) {
	u.Source, u.SourceID = s.source, who.ID
	for _, f := range [...]struct {
		name     string
		says     string
		has      *string
		most     int
		complain func(string) error
	}{
		{"displayName", who.DisplayName, &u.DisplayName, maxName, nil},
		{"familyName", who.FamilyName, &u.FamilyName, maxName, nil},
		{"givenName", who.GivenName, &u.GivenName, maxName, nil},
		{"middleName", who.MiddleName, &u.MiddleName, maxName, nil},
		{"email", who.Email, &u.Email, maxEmail, notEmail},
		{"timezone", who.Timezone, &u.Timezone, maxSmall, s.notTimezone},
	} {
		if f.says == "" || f.says == *f.has {
			continue
		}
		text := &f.says
		err := check([]field{{f.name, &text, f.most, false}})
		if err == nil && text != nil && f.complain != nil {
			err = f.complain(*text)
		}
		switch {
		case err != nil:
			s.warn("%s (%s): %s; it is left out.", shown(who.Username), shown(who.ID), errs.MessageOf(err))
		case text != nil:
			*f.has = *text
		}
	}
}

func notEmail(email string) error {
	if !validEmail(email) {
		return errEmail
	}
	return nil
}

func (s *profileWriter) notTimezone(name string) error {
	valid, asked := s.zones[name]
	if !asked {
		valid = validTimezone(name)
		s.zones[name] = valid
	}
	if !valid {
		return errTimezone
	}
	return nil
}

// newUser returns the user for a person who has none yet.
func (s *profileWriter) newUser(who Identity) DirectoryUser {
	u := DirectoryUser{Username: who.Username, Enabled: !who.Disabled, DirectoryDisabled: who.Disabled}
	s.profile(&u, who)
	return u
}
