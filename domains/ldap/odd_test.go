package ldap_test

import (
	"bytes"
	"slices"
	"testing"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// TestNoID: an entry whose id cannot be read would be taken for a new one, or for none.
func TestNoID(t *testing.T) {
	s := slapd.Test(t, company(slapd.LDAP()))
	realm := mustOpen(t, ldap.AD{}, s.Config(s.URL, map[string]any{
		"userFilter": "(objectClass=person)", "attributes": map[string]any{"username": "uid"},
	}))
	_, _, err := everything(t.Context(), realm)
	saying(t, err, "objectGUID", "ou=people", slapd.ReaderDN)
	_, err = realm.Login(t.Context(), "jo", "jo's secret")
	saying(t, err, "objectGUID")
}

// TestOddAnswers: what a directory may answer, and what makes no sense.
func TestOddAnswers(t *testing.T) {
	twice := func(r asked) {
		r.person(1)
		r.reference("ldap://elsewhere/dc=y")
		r.person(1)
		r.entry("uid=renamed,dc=x", "entryUUID", "ID-P1", "uid", "renamed")
		r.end("")
	}
	for _, c := range []struct {
		name   string
		answer func(asked)
		people int
		says   string // "" for no error
	}{
		{"an entry twice counts once", twice, 1, ""},
		{"an empty page is not the last one", func(r asked) {
			if r.cookie == "" {
				r.end("more")
				return
			}
			r.person(1)
			r.end("")
		}, 1, ""},
		{"no paging", func(r asked) {
			r.person(1)
			r.result(goldap.ApplicationSearchResultDone, 0)
		}, 1, "does not support paged results"},
		{"no end", func(r asked) { r.person(1) }, 1, "in time"},
		{"a referral", func(r asked) {
			r.result(goldap.ApplicationSearchResultDone, goldap.LDAPResultReferral)
		}, 0, "(Referral)"},
		{"busy", func(r asked) {
			r.person(1)
			r.result(goldap.ApplicationSearchResultDone, goldap.LDAPResultBusy)
		}, 1, "(Busy)"},
		{"noise", func(r asked) { r.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, 0, "broke off"},
		{"half an entry", func(r asked) { r.Write([]byte{0x30, 0x50, 2, 1}); r.Close() }, 0, "broke off"},
		{"a length of all memory", func(r asked) {
			r.Write([]byte{0x30, 0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		}, 0, "more than"},
		{"a very long message", func(r asked) { r.Write([]byte{0x30, 0x84, 0x01, 0x10, 0, 0}) }, 0, "more than"},
		{"very many values", func(r asked) {
			values := bytes.Repeat([]byte{4, 0}, 500_000)
			r.Write(append([]byte{
				0x30, 0x83, byte((len(values) + 3) >> 16), byte((len(values) + 3) >> 8), byte(len(values) + 3),
				2, 1, 2,
			}, values...))
		}, 0, "more than"},
		{"an id without end", func(r asked) {
			r.entry("uid=x,dc=x", "entryUUID", string(make([]byte, 256)))
			r.end("")
		}, 0, "entryUUID"},
		{"texts that no database keeps", func(r asked) {
			r.entry("uid=x,dc=x", "ENTRYUUID", "1", "UID", "a\x00b\xff", "mail", "")
			r.end("")
		}, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, func(r asked) {
				if r.nth == 1 || r.cookie != "" {
					c.answer(r)
					return
				}
				r.end("") // no groups
			})
			people, _, err := everything(t.Context(), mustOpen(t, ldap.LDAP{}, f.config()))
			is.New(t).Equal(len(people), c.people)
			if c.says != "" {
				saying(t, err, c.says)
			} else {
				is.New(t).NoErr(err)
			}
			if p, ok := people["a"+"b\uFFFD"]; c.name == "texts that no database keeps" && (!ok || p.Email != "") {
				t.Errorf("people: %v", people)
			}
		})
	}
}

// TestWhatIsAsked: the defaults of the driver AD, and what it asks for.
func TestWhatIsAsked(t *testing.T) {
	is := is.New(t)
	var attributes [][]string
	f := newFake(t, func(r asked) { attributes = append(attributes, r.attributes); r.end("") })
	_, _, err := everything(t.Context(), mustOpen(t, ldap.AD{}, f.config()))
	is.NoErr(err)
	is.Equal(
		f.log(),
		"bind cn=reader; search (&(objectClass=user)(!(objectClass=computer))); search (objectClass=group)",
	)
	_, _, err = everything(t.Context(), mustOpen(t, ldap.LDAP{}, f.config()))
	is.NoErr(err)
	is.Equal(f.log(), "bind cn=reader; search (objectClass=person); search (objectClass=groupOfNames)")
	flags := []string{
		"msDS-User-Account-Control-Computed", "objectGUID", "objectSid", "primaryGroupID", "sAMAccountName",
		"sn", "timezone", "userAccountControl",
	}
	for i, want := range [][]string{
		append([]string{
			"accountExpires", "displayName", "givenName", "isCriticalSystemObject", "lockoutTime", "mail",
		}, flags...),
		{"cn", "description", "isCriticalSystemObject", "member", "objectGUID", "objectSid", "sAMAccountName"},
		{"GUID", "accountUnlockTime", "cn", "entryUUID", "gidNumber",
			"givenName", "ipaUniqueID", "mail", "nsAccountLock", "nsUniqueId", "objectGUID",
			"pwdAccountLockedTime", "sn", "timezone", "uid"},
		{"GUID", "cn", "description", "entryUUID", "gidNumber", "ipaUniqueID", "member", "nsUniqueId", "objectGUID"},
	} {
		is.Equal(slices.Sorted(slices.Values(attributes[i])), want)
	}
}
