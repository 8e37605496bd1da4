package principals

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/port"
)

const (
	maxSourceID = 255  // characters of Identity.ID and Group.ID
	maxWarnings = 1000 // of a SyncReport
)

// validSourceID reports whether a directory's id can be kept as it is.
func validSourceID(id string) bool {
	return id != "" && plain(id, maxSourceID) && strings.TrimSpace(id) == id && !strings.ContainsFunc(id, unicode.IsControl)
}

// shown makes a text of a directory one that can stand in a sentence.
func shown(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, port.Short(s))
}

// warnings are sentences for people, up to a number.
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

// sentences returns them, and how many there are beside.
func (w *warnings) sentences() []string {
	if w.more > 0 {
		return append(w.all[:len(w.all):len(w.all)], fmt.Sprintf("There are %d more warnings.", w.more))
	}
	return w.all
}

// scribe writes what a directory says of people into their users. Where it says nothing a user keeps what is there, and
// what does not fit is left out with a warning.
type scribe struct {
	source string
	warn   func(format string, args ...any)
	zones  map[string]bool // whether a time zone is one, as to find out takes reading a file
}

func newScribe(source string, warn func(format string, args ...any)) *scribe {
	return &scribe{source: source, warn: warn, zones: map[string]bool{}}
}

// silent is a scribe that has warned already.
func (s *scribe) silent() *scribe {
	return &scribe{source: s.source, warn: func(string, ...any) {}, zones: s.zones}
}

// profile writes all but the username and whether the user is enabled.
func (s *scribe) profile(u *DirectoryUser, who Identity) {
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

func (s *scribe) notTimezone(name string) error {
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

// fresh returns the user that somebody becomes who has none yet.
func (s *scribe) fresh(who Identity) DirectoryUser {
	u := DirectoryUser{Username: who.Username, Enabled: !who.Disabled, DirectoryDisabled: who.Disabled}
	s.profile(&u, who)
	return u
}
