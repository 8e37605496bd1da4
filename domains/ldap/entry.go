package ldap

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxID is the longest id, in bytes.
const maxID = 255

// The bytes of a value that are kept: one more than the longest value of its field, so that a longer one stays too long.
const (
	maxValue       = 4*255 + 1
	maxDescription = 4*16*1024 + 1 // of a group
)

// accountDisabled is the flag ACCOUNTDISABLE of userAccountControl.
const accountDisabled = 2

// personAttributes returns the attributes that are read of a person.
func (r *realm) personAttributes() []string {
	names := []string{r.idAttribute}
	for _, name := range r.attributes {
		if name != "" {
			names = append(names, name)
		}
	}
	if r.control != "" {
		names = append(names, r.control)
	}
	if r.membersByName() {
		names = append(names, memberName)
	}
	return names
}

// identity returns the person of an entry.
func (r *realm) identity(e *goldap.Entry) (domains.Identity, error) {
	id, err := r.idOf(e)
	return domains.Identity{
		ID:          id,
		Username:    r.text(e, "username"),
		DisplayName: r.text(e, "displayName"),
		GivenName:   r.text(e, "givenName"),
		FamilyName:  r.text(e, "familyName"),
		Email:       r.text(e, "emailAttribute"),
		Timezone:    r.text(e, "timezone"),
		Disabled:    r.isDisabled(e),
	}, err
}

// text returns the value of the attribute that the configuration has for key.
func (r *realm) text(e *goldap.Entry, key string) string {
	return textOf(e, r.attributes[key], maxValue)
}

// textOf returns the first value of an attribute, at most most bytes of it, as text that a database can store, "" for none.
func textOf(e *goldap.Entry, attribute string, most int) string {
	if attribute == "" {
		return ""
	}
	s := e.GetEqualFoldAttributeValue(attribute)
	if len(s) > most {
		s = strings.Clone(s[:most]) // so that the rest does not stay in memory
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// idOf returns the id of an entry, which renames do not change.
func (r *realm) idOf(e *goldap.Entry) (string, error) {
	id := e.GetEqualFoldRawAttributeValue(r.idAttribute)
	switch {
	case r.binaryID && len(id) == 16:
		return guid(id), nil
	case !r.binaryID && len(id) > 0 && len(id) <= maxID:
		return strings.ToLower(textOf(e, r.idAttribute, maxID)), nil
	}
	return "", errs.New(errs.Upstream, "The directory %s shows no usable %s of %s: see whether %s may read it.",
		r.url, r.idAttribute, e.DN, r.reader())
}

// guid formats an objectGUID, whose first three numbers are little-endian.
func guid(b []byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]),
		binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}

// reader returns a name for the account that searches, for messages.
func (r *realm) reader() string {
	if r.bindDN == "" {
		return "an anonymous reader"
	}
	return r.bindDN
}

func (r *realm) isDisabled(e *goldap.Entry) bool {
	if r.control == "" {
		return false
	}
	flags, err := strconv.ParseInt(e.GetEqualFoldAttributeValue(r.control), 10, 64)
	return err == nil && flags&accountDisabled != 0 // an account that does not show its flags is not disabled
}
