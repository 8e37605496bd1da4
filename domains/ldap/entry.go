package ldap

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxID is the longest id, in bytes.
const maxID = 255

// The bytes of a value that are kept: one more than the longest value of its field, so that a
// longer one stays too long.
const (
	maxValue       = 4*255 + 1
	maxDescription = 4*16*1024 + 1 // of a group
)

// idAttributes are the attributes of directories for what identifies an entry for ever, in the
// order in which they are tried: most directories, 389 Directory Server, FreeIPA, eDirectory,
// Active Directory.
var idAttributes = []string{"entryUUID", "nsUniqueId", "ipaUniqueID", "GUID", "objectGUID"}

// setIDs reads idAttribute. What identifies a person with an attribute of their own does not
// identify groups, which have the attributes of every directory. Where ids came from other
// attributes until now, it refuses the configuration; where it allows several, those of before are
// the only ones.
func (r *realm) setIDs(m *members, before domains.IDAttributes) {
	r.ids, r.groupIDs, r.allIDs = r.idAttributes, r.idAttributes, r.idAttributes
	if own := m.attribute("idAttribute", r.idAttributes[0]); own != r.idAttributes[0] ||
		m.text("idAttribute", "", maxText) != "" {
		r.ids, r.groupIDs, r.allIDs = []string{own}, []string{own}, append([]string{own}, r.idAttributes...)
		if isOwnID(own) {
			r.groupIDs = slices.Clone(r.allIDs)
		}
	}
	for _, one := range []struct {
		of     string
		ids    *[]string
		before string
	}{{"users", &r.ids, before.People}, {"teams", &r.groupIDs, before.Groups}} {
		switch {
		case one.before == "":
		case !hasFold(*one.ids, one.before):
			m.bad("idAttribute", one.before+": the ids of the domain's "+one.of+" come from it, and with ids of "+
				strings.Join(*one.ids, ", ")+
				" all of them would be new ones. For those, make another domain, or clear the sourceId of every "+
				"user and team of this one first")
			return
		case isOwnID((*one.ids)[0]) && !isOwnID(one.before): // of groups, which may have it
			*one.ids = []string{(*one.ids)[0], one.before}
		default:
			*one.ids = []string{one.before}
		}
	}
}

// isOwnID reports whether an attribute with ids is none that directories have for that.
func isOwnID(attribute string) bool { return !hasFold(idAttributes, attribute) }

// hasFold reports whether names of attributes have one, whose case does not matter.
func hasFold(names []string, one string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, one) })
}

// personAttributes returns the attributes that are read of a person.
func (r *realm) personAttributes() []string {
	names := slices.Clone(r.allIDs)
	for _, name := range r.attributes {
		if name != "" {
			names = append(names, name)
		}
	}
	if r.activeDirectory {
		names = append(
			names, controlFlags, computedFlags, accountExpires, lockoutTime, critical, securityID,
			primaryGroupID, accountName,
		)
	} else {
		names = append(names, nsAccountLock, accountUnlock, lockedTime, groupNumber)
	}
	if r.membersByName() {
		names = append(names, memberName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// loginAttributes returns the attributes that are read of a person who logs in.
func (r *realm) loginAttributes() []string {
	if r.activeDirectory {
		return append(r.personAttributes(), principalName)
	}
	return r.personAttributes()
}

// groupAttributes returns the attributes that are read of a group, beside its members.
func (r *realm) groupAttributes() []string {
	names := append(slices.Clone(r.allIDs), r.groupName, "description")
	if r.activeDirectory {
		return append(names, critical, securityID, accountName)
	}
	return append(names, groupNumber)
}

// identity returns the person of an entry.
func (c *conn) identity(e *goldap.Entry) (domains.Identity, error) {
	id, attribute, err := c.idOf(e, c.ids)
	return domains.Identity{
		ID:          id,
		IDAttribute: attribute,
		Username:    c.text(e, "username"),
		DisplayName: c.text(e, "displayName"),
		GivenName:   c.text(e, "givenName"),
		FamilyName:  c.text(e, "familyName"),
		Email:       c.text(e, "emailAttribute"),
		Timezone:    c.text(e, "timezone"),
		Disabled:    c.isDisabled(e),
		Locked:      c.isLocked(e, time.Now()),
	}, err
}

// text returns the value of the attribute that the configuration has for key.
func (r *realm) text(e *goldap.Entry, key string) string {
	return textOf(e, r.attributes[key], maxValue)
}

// textOf returns the first value of an attribute, at most most bytes of it, as text that a database
// can store, "" for none.
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

// idOf returns the id of an entry, which renames do not change, and the attribute that it comes
// from: the first of some that the entry has.
func (c *conn) idOf(e *goldap.Entry, attributes []string) (id, attribute string, err error) {
	for _, attribute := range attributes {
		values := e.GetEqualFoldRawAttributeValues(attribute)
		if len(values) == 0 {
			continue
		}
		if id := idText(attribute, values[0]); len(values) == 1 && id != "" && len(id) <= maxID {
			return id, attribute, nil
		}
		break
	}
	wanted := strings.Join(attributes, ", ")
	for _, other := range c.allIDs {
		if len(e.GetEqualFoldRawAttributeValues(other)) > 0 && !hasFold(attributes, other) {
			return "", "", errs.New(errs.Upstream,
				"The directory %s shows no usable %s of %s, only %s: see whether %s may read %s. With ids of %s, "+
					"the same entries "+
					"would be new ones here.", c.url, wanted, e.DN, other, c.reader(), wanted, other)
		}
	}
	return "", "", errs.New(errs.Upstream,
		"The directory %s shows no usable %s of %s: see whether %s may read it, or set idAttribute.",
		c.url, wanted, e.DN, c.reader())
}

// idText returns an id as text, "" for one that is not usable.
func idText(attribute string, value []byte) string {
	switch strings.ToLower(attribute) {
	case "objectguid", "ms-ds-consistencyguid":
		if len(value) == 16 {
			return guid(value)
		}
	case "guid": // of eDirectory
		if len(value) == 16 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", value[:4], value[4:6], value[6:8], value[8:10], value[10:])
		}
	case "objectsid":
		return sidText(value)
	case "entryuuid", "nsuniqueid", "ipauniqueid":
		return strings.ToLower(plainText(value))
	default:
		return plainText(value)
	}
	return ""
}

// plainText returns a value that is text which a database can store, "" for another one.
func plainText(value []byte) string {
	if !utf8.Valid(value) || slices.Contains(value, 0) {
		return ""
	}
	return string(value)
}

// guid formats an objectGUID, whose first three numbers are little-endian.
func guid(b []byte) string {
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]),
		binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}

// sidText formats an objectSid, "" for what is none.
func sidText(b []byte) string {
	if len(b) < 8 || len(b) != 8+4*int(b[1]) {
		return ""
	}
	text := "S-" + strconv.Itoa(int(b[0])) + "-" + strconv.FormatUint(
		binary.BigEndian.Uint64(append([]byte{0, 0}, b[2:8]...)), 10,
	)
	for at := 8; at < len(b); at += 4 {
		text += "-" + strconv.FormatUint(uint64(binary.LittleEndian.Uint32(b[at:])), 10)
	}
	return text
}

// reader returns a name for the account that searches, for messages.
func (r *realm) reader() string {
	if r.bindDN == "" {
		return "an anonymous reader"
	}
	return r.bindDN
}
