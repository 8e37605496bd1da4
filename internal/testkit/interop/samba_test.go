//go:build interop

package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
)

// TestSamba tests with a domain controller of Active Directory as implemented by Samba.
func TestSamba(t *testing.T) {
	d, admin, ip := startSamba(t)
	anna := sambaUser(
		t, admin, "anna", "userPrincipalName", "anna.smith@example.com", "givenName", "Anna", "sn", "Smith",
		"mail", "anna@example.com",
	)
	for _, name := range []string{"o'brien", "anna lee", "a&b", "guest#EXT#"} {
		sambaUser(t, admin, name)
	}

	t.Run("Driver", func(t *testing.T) {
		drivertest.Test(t, d.driver, drivertest.Fixture{Config: d.with(nil), Login: "anna", Password: sambaPassword})
	})
	t.Run("Names", func(t *testing.T) {
		r := d.open(t, nil)
		for name, want := range map[string]string{
			"anna": "anna", "ANNA": "anna", "anna@corp.example.com": "anna",
			`CORP\anna`: "anna", `corp.example.com\anna`: "anna", "anna.smith@example.com": "anna",
			`OTHER\anna`: "", "anna@example.com": "", "anna.smith": "",
			"o'brien": "o'brien", "anna lee": "anna lee", "a&b": "a&b",
			"guest#EXT#": "guest#EXT#", "anna lee@corp.example.com": "anna lee", `CORP\o'brien`: "o'brien",
		} {
			reason := ""
			if want == "" {
				reason = "no entry has this name"
			}
			logins(t, r, name, sambaPassword, want, reason)
		}
		logins(t, r, `CORP\anna`, "wrong", "", "data 52e")
		is := is.New(t)
		is.Equal(r.Account(`corp\anna`), "anna")
		is.Equal(r.Account("anna@corp.example.com"), "anna")
		is.Equal(r.Account(`OTHER\anna`), "")

		// Samba does not allow the implicit name of another user as userPrincipalName, nor the
		// other way round.
		r2 := goldap.NewModifyRequest("CN=a&b,"+sambaPeople, nil)
		r2.Replace("userPrincipalName", []string{"anna@corp.example.com"})
		is.True(admin.Modify(r2) != nil)
	})
	t.Run("TLS", func(t *testing.T) {
		is := is.New(t)
		plain := "ldap://" + ip
		logins(t, d.open(t, map[string]any{"url": plain, "startTLS": true}), "anna", sambaPassword, "anna", "")
		_, err := d.open(t, map[string]any{"url": plain}).Login(t.Context(), "anna", sambaPassword)
		upstreamError(t, err, "It wants TLS")
		_, err = d.open(t, map[string]any{"caCert": ""}).Login(t.Context(), "anna", sambaPassword)
		upstreamError(t, err, "TLS with the directory", "set caCert")
		_, err = d.open(
			t, map[string]any{"url": "ldaps://localhost", "hosts": []string{ip}, "timeoutMs": 3000},
		).Login(t.Context(), "anna", sambaPassword)
		is.NoErr(err) // through the second host
		_, err = d.open(t, map[string]any{"bindPassword": "wrong"}).Login(t.Context(), "anna", sambaPassword)
		upstreamError(t, err, "refuses the bind", "data 52e")
		_, err = d.open(t, map[string]any{"bindDN": nil, "bindPassword": nil}).Login(t.Context(), "anna", sambaPassword)
		upstreamError(t, err, "set bindDN and bindPassword")
	})
	t.Run("Builtin", func(t *testing.T) {
		is := is.New(t)
		whole := map[string]any{"userBaseDN": sambaBase}
		people, groups := scan(t, d.open(t, whole))
		for _, name := range []string{"krbtgt", "Guest", "Administrator", "DC1$"} {
			is.Equal(people[name].Username, "")
		}
		is.Equal(len(groups), 0)
		logins(t, d.open(t, whole), "Administrator", sambaPassword, "", "builtin")
		whole["builtin"] = true
		people, groups = scan(t, d.open(t, whole))
		is.True(people["krbtgt"].Disabled && people["Guest"].Disabled && !people["Administrator"].Disabled)
		is.True(slices.Contains(groups["Domain Users"], "anna")) // only by her primary group
		is.True(slices.Contains(groups["Users"], "anna"))        // that group is a member of this one
		is.Equal(groups["Domain Admins"], []string{"Administrator"})
	})
	t.Run("Groups", func(t *testing.T) {
		is := is.New(t)
		group := func(name string, members ...string) string {
			dn := "CN=" + name + "," + sambaPeople
			add(t, admin, dn, "objectClass", "group", "sAMAccountName", name)
			if len(members) > 0 {
				set(t, admin, dn, "member", members...)
			}
			return dn
		}
		inner := group("inner", anna)
		group("outer", inner)
		field := group("field", anna)
		set(t, admin, anna, "primaryGroupID", ridOf(t, admin, field))
		set(t, admin, field, "member") // she is nevertheless a member
		_, groups := scan(t, d.open(t, nil))
		is.Equal(groups, map[string][]string{"inner": {"anna"}, "outer": {"anna"}, "field": {"anna"}})
	})
	t.Run("Test", func(t *testing.T) {
		is := is.New(t)
		steps := passes(t, d.open(t, nil), `CORP\anna`)
		is.Equal(steps["person"].Person.DisplayName, "")
		is.Equal(steps["person"].Person.Email, "anna@example.com")
		is.Equal(len(steps["groups"].Groups), 3)
		last := func(changed map[string]any) domains.Step {
			all := d.open(t, changed).Test(t.Context(), domains.Endpoints{}, "")
			return all[len(all)-1]
		}
		is.True(strings.Contains(last(map[string]any{
			"userFilter": "(sAMAccountName=nobody)",
		}).Message, "userFilter leaves them out"))
		is.True(strings.Contains(last(map[string]any{
			"userBaseDN": "OU=none," + sambaBase,
		}).Message, "There is no such entry"))
		is.True(strings.Contains(last(map[string]any{
			"userBaseDN": "CN=Users," + sambaBase,
		}).Message, "Only accounts that Active Directory has by itself"))
	})
	t.Run("Refused", func(t *testing.T) { testSambaRefused(t, d, admin) })
	t.Run("Service", func(t *testing.T) {
		testService(t, d, []string{"anna", "o'brien", "anna lee", "a&b", "guest#EXT#"}, sambaPassword,
			func(name string) []string { return []string{name, `CORP\` + name, name + "@corp.example.com"} }, "expired",
			map[string]string{
				"new":        "its password must be changed first (data 773)",
				`OTHER\anna`: "no entry has this name",
				"nobody":     "no entry has this name",
			})
	})
	t.Run("Many", func(t *testing.T) {
		is := is.New(t)
		const people, members = 1200, 1600
		add(t, admin, "OU=many,"+sambaBase, "objectClass", "organizationalUnit")
		var dns []string
		began := time.Now()
		for i := range members {
			dn := fmt.Sprintf("CN=user%04d,OU=many,%s", i, sambaBase)
			if i < people {
				add(
					t, admin, dn, "objectClass", "user", "sAMAccountName", fmt.Sprintf("user%04d", i),
					"userAccountControl", "544",
				)
			} else {
				add(t, admin, dn, "objectClass", "contact")
			}
			dns = append(dns, dn)
		}
		add(t, admin, "CN=big,OU=many,"+sambaBase, "objectClass", "group", "sAMAccountName", "big")
		for some := range slices.Chunk(dns, 400) {
			r := goldap.NewModifyRequest("CN=big,OU=many,"+sambaBase, nil)
			r.Add("member", some)
			is.NoErr(admin.Modify(r))
		}
		t.Logf("%d entries were added in %v", members, time.Since(began))
		base := map[string]any{"userBaseDN": "OU=many," + sambaBase, "groupBaseDN": "OU=many," + sambaBase}
		for _, size := range []int{10_000, 100} { // the directory returns at most 1000
			base["pageSize"] = size
			found, groups := scan(t, d.open(t, base))
			is.Equal(len(found), people)
			is.Equal(len(groups["big"]), people)
		}
		steps := passes(t, d.open(t, base), "user0007")
		is.True(strings.Contains(steps["search"].Message, "t least 1"))
	})
}

// ridOf returns the last part of the SID of an entry.
func ridOf(t *testing.T, admin *goldap.Conn, dn string) string {
	t.Helper()
	found, err := admin.Search(goldap.NewSearchRequest(
		dn, goldap.ScopeBaseObject, 0, 0, 0, false, "(objectClass=*)", []string{"objectSid"}, nil,
	))
	is.New(t).NoErr(err)
	sid := found.Entries[0].GetRawAttributeValue("objectSid")
	b := sid[len(sid)-4:]
	return fmt.Sprint(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}

// testSambaRefused: which users the directory refuses, and for which reasons. A scan reports who is
// disabled or expired, and who is only locked.
func testSambaRefused(t *testing.T, d directory, admin *goldap.Conn) {
	is := is.New(t)
	disabled := sambaUser(t, admin, "disabled")
	set(t, admin, disabled, "userAccountControl", "514")
	ticks := func(at time.Time) string { return fmt.Sprint((at.Unix() + 11_644_473_600) * 1e7) }
	sambaUser(t, admin, "expired", "accountExpires", ticks(time.Now().Add(-time.Hour)))
	sambaUser(t, admin, "leaves", "accountExpires", ticks(time.Now().Add(time.Hour)))
	set(t, admin, sambaUser(t, admin, "new"), "pwdLastSet", "0")
	sambaUser(t, admin, "locked")
	set(t, admin, sambaBase, "lockoutThreshold", "3")
	r := d.open(t, nil)
	for range 3 {
		logins(t, r, "locked", "wrong", "", "data 52e")
	}
	for name, reason := range map[string]string{
		"disabled": "it is disabled (data 533)",
		"expired":  "it has expired (data 701)", "new": "its password must be changed first (data 773)",
		"locked": "it is locked (data 775)", "nobody": "no entry has this name",
	} {
		logins(t, r, name, sambaPassword, "", reason)
	}
	logins(t, r, "leaves", sambaPassword, "leaves", "")
	people, _ := scan(t, r)
	for name, want := range map[string]bool{
		"disabled": true,
		"expired":  true,
		"locked":   false,
		"new":      false,
		"leaves":   false,
		"anna":     false,
	} {
		if people[name].Disabled != want || people[name].Locked != (name == "locked") || people[name].Username != name {
			t.Errorf("%s: %+v", name, people[name])
		}
	}
	steps := r.Test(t.Context(), domains.Endpoints{}, "locked")
	is.True(slices.ContainsFunc(steps, func(s domains.Step) bool { return s.Person != nil && s.Person.Locked }))

	// An administrator unlocks it.
	set(t, admin, "CN=locked,"+sambaPeople, "lockoutTime", "0")
	logins(t, r, "locked", sambaPassword, "locked", "")
}
