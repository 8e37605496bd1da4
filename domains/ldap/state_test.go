package ldap

import (
	"encoding/binary"
	"strconv"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"
)

// TestState checks isDisabled and isLocked. Both are false for an account whose attributes cannot
// be read.
func TestState(t *testing.T) {
	now := time.Now()
	ticks := func(at time.Time) string { return strconv.FormatInt((at.Unix()+11_644_473_600)*1e7, 10) }
	general := func(at time.Time) string { return at.UTC().Format("20060102150405Z") }
	for _, c := range []struct {
		of               flavor
		attribute, value string
		disabled, locked bool
	}{
		{activeDirectory, "userAccountControl", "514", true, false},
		{activeDirectory, "userAccountControl", "8389120", false, false}, // PASSWORD_EXPIRED
		{activeDirectory, "accountExpires", "0", false, false},
		{activeDirectory, "accountExpires", "9223372036854775807", false, false},
		{activeDirectory, "accountExpires", ticks(now.Add(-time.Minute)), true, false},
		{activeDirectory, "accountExpires", ticks(now.Add(time.Minute)), false, false},
		{activeDirectory, "accountExpires", "x", false, false},
		{activeDirectory, "msDS-User-Account-Control-Computed", "16", false, true},
		{activeDirectory, "msDS-User-Account-Control-Computed", "8388608", false, false},
		{activeDirectory, "lockoutTime", "0", false, false},
		{activeDirectory, "lockoutTime", ticks(now.Add(-time.Minute)), false, true},
		{activeDirectory, "lockoutTime", ticks(now.Add(-2 * time.Hour)), false, false},
		{activeDirectory, "nsAccountLock", "TRUE", false, false},
		{standard, "nsAccountLock", "true", true, false},
		{standard, "nsAccountLock", "FALSE", false, false},
		{standard, "pwdAccountLockedTime", "000001010000Z", false, true},
		{standard, "pwdAccountLockedTime", general(now.Add(-time.Minute)), false, true},
		{standard, "pwdAccountLockedTime", general(now.Add(-2 * time.Hour)), false, false},
		{standard, "pwdAccountLockedTime", "soon", false, false},
		{standard, "accountUnlockTime", general(now.Add(time.Minute)), false, true},
		{standard, "accountUnlockTime", general(now.Add(-time.Minute)), false, false},
		{standard, "accountUnlockTime", "19700101000000Z", false, true},
		{standard, "userAccountControl", "514", false, false},
	} {
		r := realm{flavor: c.of}
		e := goldap.NewEntry("cn=x", map[string][]string{c.attribute: {c.value}})
		if d, l := r.isDisabled(e), r.isLocked(e, now); d != c.disabled || l != c.locked {
			t.Errorf("%s %s: %v, %v", c.attribute, c.value, d, l)
		}
	}
	// The computed flags say that a lock has ended, whatever lockoutTime shows.
	r := realm{flavor: activeDirectory}
	e := goldap.NewEntry("cn=x", map[string][]string{
		"lockoutTime":                        {ticks(now)},
		"msDS-User-Account-Control-Computed": {"0"},
	})
	is.New(t).True(!r.isLocked(e, now))
}

// sid returns the bytes of S-1-authority-parts.
func sid(authority byte, parts ...uint32) string {
	b := []byte{1, byte(len(parts)), 0, 0, 0, 0, 0, authority}
	for _, part := range parts {
		b = binary.LittleEndian.AppendUint32(b, part)
	}
	return string(b)
}

func TestSID(t *testing.T) {
	is := is.New(t)
	is.Equal(sidText([]byte(sid(5, 21, 1, 2, 4294967295, 513))), "S-1-5-21-1-2-4294967295-513")
	is.Equal(sidText([]byte(sid(5, 32, 544))), "S-1-5-32-544")
	for _, bad := range []string{"", "S-1-5", "\x01", sid(5, 21, 1) + "x", "\x01\xff" + sid(5, 1)} {
		is.Equal(sidText([]byte(bad)), "")
	}
}

func TestBuiltin(t *testing.T) {
	for _, c := range []struct {
		name, sid, critical string
		want                bool
	}{
		{"anna", sid(5, 21, 1, 2, 3, 1103), "", false},
		{"Guest", sid(5, 21, 1, 2, 3, 501), "", true},
		{"Domain Users", sid(5, 21, 1, 2, 3, 513), "", true},
		{"Administrators", sid(5, 32, 544), "", true},
		{"krbtgt_12345", sid(5, 21, 1, 2, 3, 1200), "", true},
		{"DnsAdmins", sid(5, 21, 1, 2, 3, 1101), "", true},
		{"dns-dc1", sid(5, 21, 1, 2, 3, 1102), "TRUE", true},
		{"dns team", sid(5, 21, 1, 2, 3, 1104), "FALSE", false},
		{"no sid", "", "", false},
		{"short sid", "\x01", "", false},
	} {
		e := goldap.NewEntry(
			"cn=x", map[string][]string{accountName: {c.name}, securityID: {c.sid}, critical: {c.critical}},
		)
		if got := (&realm{flavor: activeDirectory}).isBuiltin(e); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		is.New(t).True(!(&realm{flavor: activeDirectory, builtin: true}).isBuiltin(e))
	}
}

// TestIDs: ids of every directory, each in its own form, and the first attribute that an entry has.
func TestIDs(t *testing.T) {
	bytes16 := "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
	for _, c := range []struct {
		config, attribute, value, want string
	}{
		{``, "entryUUID", "ABC-1", "abc-1"},
		{``, "nsuniqueid", "F1-A2", "f1-a2"},
		{``, "ipaUniqueID", "X-9", "x-9"},
		{``, "GUID", bytes16, "00112233-4455-6677-8899-aabbccddeeff"},
		{``, "objectGUID", bytes16, "33221100-5544-7766-8899-aabbccddeeff"},
		{``, "objectGUID", "x", ""},
		{``, "uid", "jo", ""},
		{`, "idAttribute": "employeeNumber"`, "employeeNumber", "A-7", "A-7"},
		{`, "idAttribute": "employeeNumber"`, "entryUUID", "abc", ""},
		{`, "idAttribute": "employeeNumber"`, "employeeNumber", "\xff\xfe", ""},
		{`, "idAttribute": "objectSid"`, "objectSid", sid(5, 21, 1, 2, 3, 1103), "S-1-5-21-1-2-3-1103"},
		{`, "idAttribute": "entryUUID"`, "nsUniqueId", "abc", ""},
		{
			`, "idAttribute": "mS-DS-ConsistencyGuid"`, "mS-DS-ConsistencyGuid", bytes16,
			"33221100-5544-7766-8899-aabbccddeeff",
		},
	} {
		r := namesOf(t, c.config, standard)
		got, _, _ := (&conn{realm: r, host: &r.hosts[0]}).idOf(
			goldap.NewEntry("cn=x", map[string][]string{c.attribute: {c.value}}), r.ids,
		)
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.config, c.attribute, got, c.want)
		}
	}
	is := is.New(t)
	r := namesOf(t, ``, standard)
	c := &conn{realm: r, host: &r.hosts[0]}
	got, attribute, err := c.idOf(
		goldap.NewEntry("cn=x", map[string][]string{"nsUniqueId": {"b"}, "entryUUID": {"a"}, "objectGUID": {bytes16}}),
		r.ids,
	)
	is.NoErr(err)
	is.Equal(got, "a")
	is.Equal(attribute, "entryUUID")
	_, _, err = c.idOf(goldap.NewEntry("cn=x", map[string][]string{"entryUUID": {"a", "b"}}), r.ids) // which one is it?
	is.True(err != nil)
	is.Equal(namesOf(t, ``, activeDirectory).ids, []string{"objectGUID"}) // as it always was
	is.Equal(
		namesOf(t, `, "idAttribute": "employeeNumber"`, standard).groupIDs,
		append([]string{"employeeNumber"}, idAttributes...),
	)
}

func TestSubCodes(t *testing.T) {
	is := is.New(t)
	for code, want := range map[string]string{"525": "no such account", "52e": "wrong",
		"530": "time", "531": "computer", "532": "password has expired",
		"533": "disabled", "701": "it has expired", "773": "changed first", "775": "locked", "99": "data 99"} {
		got := subCode(goldap.NewError(
			49,
			errorText("80090308: LdapErr: DSID-0C09042A, comment: AcceptSecurityContext error, data "+code+
				", v3839\x00"),
		))
		has(t, got, want)
		has(t, got, "data "+code)
	}
	for code, want := range map[string]bool{
		"525": false,
		"52e": false,
		"530": false,
		"531": false,
		"532": false,
		"533": true,
		"701": true,
		"773": false,
		"775": false,
	} {
		is.Equal(
			saysDisabled(goldap.NewError(
				49,
				errorText("80090308: LdapErr: DSID-0C09042A, comment: AcceptSecurityContext error, data "+code+
					", v3839"),
			)),
			want,
		)
	}
	is.True(saysDisabled(goldap.NewError(53, errorText("Account inactivated. Contact system administrator."))))
	is.Equal(subCode(goldap.NewError(49, errorText("80090308: data 52e is not where it should be"))), "")
	has(t, subCode(goldap.NewError(53, errorText("Account inactivated. Contact system administrator."))), "disabled")
	is.Equal(subCode(nil), "")
}
