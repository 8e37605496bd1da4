// Package profile copies what an authentication domain reports of a person into a user, and has the
// rules for such texts. Logins and scans of directories use it.
//
// principals and internal/directory/dirsync import it. For hosts its types have the names
// principals.Identity and domains.Identity.
package profile

import (
	"strings"
	"unicode"

	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// Identity is a person as an authentication domain reports it. Texts that it does not report are
// "".
type Identity struct {
	ID string // never changes and is never reused, such as an entryUUID; 1 to 255 characters
	// the attribute of ID, for a directory whose entries may have several ids; else ""
	IDAttribute string
	Username    string // the name of the user
	DisplayName string
	GivenName   string
	MiddleName  string
	FamilyName  string
	Email       string // does not identify a person
	Timezone    string // IANA name
	Disabled    bool   // may not log in any more
	Locked      bool   // may not log in for a while, for instance after wrong passwords
}

// User has the fields of a user that a directory sets, and those that a scan reads. Missing texts
// are "".
type User struct {
	Username                                                        string
	Source, SourceID                                                string
	DisplayName, FamilyName, GivenName, MiddleName, Email, Timezone string
	Superuser                                                       bool // directories do not change it
	Enabled                                                         bool
	// disabled by a directory, which may enable it again
	DirectoryDisabled bool
	// only locked by the directory: sessions and tokens can be used again after the lock
	DirectoryLocked bool
}

// Enable enables a user that a directory has disabled or locked.
func (u *User) Enable() { u.Enabled, u.DirectoryDisabled, u.DirectoryLocked = true, false, false }

// Disable disables a user because a directory has disabled or removed the person.
func (u *User) Disable() { u.Enabled, u.DirectoryDisabled, u.DirectoryLocked = false, true, false }

// Lock disables a user while a directory locks the person.
func (u *User) Lock() { u.Enabled, u.DirectoryDisabled, u.DirectoryLocked = false, true, true }

// Lasts reports whether a user is enabled, or will be when a lock of the directory ends. Such a
// user may have sessions and tokens.
func (u *User) Lasts() bool { return u.Enabled || u.DirectoryLocked }

// MaxID is the most characters of the id of a person or group.
const MaxID = 255

// ValidID reports whether the id of a person or group can be stored.
func ValidID(id string) bool {
	return id != "" && escapes.StorableWithin(id, MaxID) && strings.TrimSpace(id) == id &&
		!strings.ContainsFunc(id, unicode.IsControl)
}

// Writer copies what a domain reports of people into their users. A field that is not reported
// keeps its value, and an invalid value is left out.
type Writer struct {
	source string
	warn   func(who Identity, invalid error)
	zones  map[string]bool // whether a time zone is valid, which requires reading a file
}

// NewWriter returns a Writer for the people of a source, the id of a domain's driver. It calls
// warn, which may be nil, with each value that it leaves out and the reason.
func NewWriter(source string, warn func(who Identity, invalid error)) *Writer {
	return &Writer{source: source, warn: warn, zones: map[string]bool{}}
}

// Source returns the source of the people.
func (w *Writer) Source() string { return w.source }

// Silent returns a Writer that does not call warn.
func (w *Writer) Silent() *Writer { return &Writer{source: w.source, zones: w.zones} }

// Update copies everything but the username and whether the user is enabled.
func (w *Writer) Update(u *User, who Identity) {
	u.Source, u.SourceID = w.source, who.ID
	for _, f := range [...]struct {
		name    string
		says    string
		has     *string
		most    int
		invalid func(string) error
	}{
		{"displayName", who.DisplayName, &u.DisplayName, MaxName, nil},
		{"familyName", who.FamilyName, &u.FamilyName, MaxName, nil},
		{"givenName", who.GivenName, &u.GivenName, MaxName, nil},
		{"middleName", who.MiddleName, &u.MiddleName, MaxName, nil},
		{"email", who.Email, &u.Email, MaxEmail, CheckEmail},
		{"timezone", who.Timezone, &u.Timezone, MaxTimezone, w.checkTimezone},
	} {
		if f.says == "" || f.says == *f.has {
			continue
		}
		text := &f.says
		err := Clean([]Text{{f.name, &text, f.most, false}})
		if err == nil && text != nil && f.invalid != nil {
			err = f.invalid(*text)
		}
		switch {
		case err != nil && w.warn != nil:
			w.warn(who, err)
		case err == nil && text != nil:
			*f.has = *text
		}
	}
}

// NewUser returns a new user for a person.
func (w *Writer) NewUser(who Identity) User {
	u := User{Username: who.Username, Enabled: true}
	switch {
	case who.Disabled:
		u.Disable()
	case who.Locked:
		u.Lock()
	}
	w.Update(&u, who)
	return u
}

func (w *Writer) checkTimezone(name string) error {
	valid, known := w.zones[name]
	if !known {
		valid = CheckTimezone(name) == nil
		w.zones[name] = valid
	}
	if !valid {
		return errTimezone
	}
	return nil
}
