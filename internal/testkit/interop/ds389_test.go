//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
)

// TestDS389 tests with a 389 Directory Server, on which FreeIPA and Red Hat's directories are
// based.
func TestDS389(t *testing.T) {
	d, admin := startDS389(t)
	anna := ds389User(
		t, admin, "anna", "mail", "anna@example.org", "objectClass", "posixAccount", "uidNumber", "1000",
		"gidNumber", "500", "homeDirectory", "/",
	)
	for _, name := range []string{"o'brien", "anna lee", "a&b", "x#1"} {
		ds389User(t, admin, name)
	}
	add(t, admin, "cn=team,ou=groups,"+ds389Base, "objectClass", "groupOfNames", "cn", "team", "member", anna)

	t.Run("Driver", func(t *testing.T) {
		drivertest.Test(t, d.driver, drivertest.Fixture{Config: d.with(nil), Login: "anna", Password: ds389Password})
	})
	t.Run("Names", func(t *testing.T) {
		is := is.New(t)
		r := d.open(t, nil)
		people, groups := scan(t, r)
		is.Equal(len(people), 5)
		is.Equal(groups, map[string][]string{"team": {"anna"}})
		for name, who := range people {
			is.Equal(len(who.ID), 35) // an nsUniqueId 3f2a…-…-…-…, which has fewer hyphens than a UUID
			logins(t, r, name, ds389Password, name, "")
		}
		logins(t, r, "anna", "wrong", "", "refuses the password")
		logins(t, r, "reader", ds389Password, "", "no entry has this name")
	})
	t.Run("IDs", func(t *testing.T) {
		is := is.New(t)
		find := func(ids domains.IDAttributes) (domains.Identity, error) {
			r, err := d.driver.(domains.IDDriver).OpenWithIDs(d.with(nil), ids)
			is.NoErr(err)
			return r.(domains.Finder).Find(t.Context(), "anna")
		}
		for _, ids := range []domains.IDAttributes{{}, {People: "nsUniqueId"}} {
			who, err := find(ids)
			is.NoErr(err)
			is.Equal(who.IDAttribute, "nsUniqueId")
		}
		_, err := find(domains.IDAttributes{People: "entryUUID"}) // for a reader that cannot see it any more
		upstreamError(t, err, "shows no usable entryUUID", "only nsUniqueId", "may read entryUUID")
	})
	t.Run("TLS", func(t *testing.T) {
		_, err := d.open(t, map[string]any{"caCert": ""}).Login(t.Context(), "anna", ds389Password)
		upstreamError(t, err, "TLS with the directory", "set caCert")
		_, err = d.open(t, map[string]any{"bindPassword": "wrong"}).Login(t.Context(), "anna", ds389Password)
		upstreamError(t, err, "refuses the bind of uid=reader")
	})
	t.Run("Posix", func(t *testing.T) {
		is := is.New(t)
		add(
			t, admin, "cn=staff,ou=groups,"+ds389Base, "objectClass", "posixGroup", "objectClass",
			"groupOfNames", "cn", "staff", "gidNumber", "500", "memberUid", "o'brien",
		)
		_, groups := scan(t, d.open(t, map[string]any{"groupMember": "memberUid"}))
		is.Equal(len(groups), 1)
		is.Equal(len(groups["staff"]), 2) // anna through her gidNumber
	})
	t.Run("Refused", func(t *testing.T) {
		is := is.New(t)
		ds389User(t, admin, "inactive", "nsAccountLock", "true")
		ds389User(t, admin, "locked")
		for attribute, value := range map[string]string{
			"passwordLockout":         "on",
			"passwordMaxFailure":      "3",
			"passwordLockoutDuration": "3600",
		} {
			set(t, admin, "cn=config", attribute, value)
		}
		r := d.open(t, nil)
		for range 3 {
			logins(t, r, "locked", "wrong", "", "refuses")
		}
		logins(t, r, "locked", ds389Password, "", "it is locked")
		logins(t, r, "inactive", ds389Password, "", "it is disabled (nsAccountLock)")
		people, _ := scan(t, r)
		is.True(people["inactive"].Disabled)
		is.True(people["locked"].Locked && !people["locked"].Disabled)
		is.True(!people["anna"].Disabled && !people["anna"].Locked)
	})
	t.Run("Test", func(t *testing.T) {
		is := is.New(t)
		steps := passes(t, d.open(t, nil), "anna")
		is.Equal(steps["person"].Person.Email, "anna@example.org")
		is.Equal(len(steps["groups"].Groups), 2)
		all := d.open(t, map[string]any{"bindDN": nil, "bindPassword": nil}).Test(t.Context(), domains.Endpoints{}, "")
		last := all[len(all)-1]
		is.True(!last.OK && strings.Contains(last.Message, "an anonymous reader sees no entry below it at all"))
	})
	t.Run("Service", func(t *testing.T) {
		testService(t, d, []string{"anna", "o'brien", "anna lee", "a&b", "x#1"}, ds389Password,
			func(name string) []string {
				return []string{name}
			}, "inactive",
			map[string]string{"nobody": "no entry has this name"})
	})
	t.Run("Many", func(t *testing.T) {
		is := is.New(t)
		for i := range 2500 {
			name := fmt.Sprintf("user%04d", i)
			add(
				t, admin, "uid="+name+","+ds389People, "objectClass", "inetOrgPerson", "uid", name, "cn", name,
				"sn", name,
			)
		}
		people, _ := scan(t, d.open(t, nil))
		is.True(len(people) > 2500)
		// An account may read only a limited number of entries, in pages, too.
		set(t, admin, "uid=reader,"+ds389People, "nsPagedSizeLimit", "1000")
		for _, err := range d.open(t, nil).Entries(t.Context()) {
			if err != nil {
				upstreamError(t, err, "returns only so many entries to uid=reader", "nsSizeLimit")
				return
			}
		}
		t.Error("the directory has no limit")
	})
}
