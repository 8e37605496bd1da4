package ldap_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// TestPasswordPolicy: OpenLDAP locks an account, which a scan shows as locked; and lets it in again
// when the lock has ended, although the entry goes on showing it.
func TestPasswordPolicy(t *testing.T) {
	is := is.New(t)
	tree := company(slapd.LDAP())
	policy := "cn=policy," + slapd.BaseDN
	tree.Overlay("ppolicy", `ppolicy_default "`+policy+`"`)
	tree.Add(policy, "objectClass", "organizationalRole", "objectClass", "pwdPolicy", "cn", "policy",
		"pwdAttribute", "userPassword",
		"pwdLockout", "TRUE", "pwdMaxFailure", "3", "pwdLockoutDuration", "600")
	s := slapd.Test(t, tree)
	realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, nil))
	for range 3 {
		_, err := realm.Login(t.Context(), "jo", "wrong")
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	}
	_, err := realm.Login(t.Context(), "jo", "jo's secret")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	people, _, err := everything(t.Context(), realm)
	is.NoErr(err)
	is.True(people["jo"].Locked && !people["jo"].Disabled)
	is.True(!people["sam"].Locked && !people["sam"].Disabled)

	is.NoErr(s.Set(policy, "pwdLockoutDuration", "1"))
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		if _, err = realm.Login(t.Context(), "jo", "jo's secret"); err == nil {
			break
		}
	}
	is.NoErr(err)
	people, _, err = everything(t.Context(), realm)
	is.NoErr(err)
	is.True(!people["jo"].Locked)

	is.NoErr(s.Set(tree.PersonDN("sam"), "pwdAccountLockedTime", "000001010000Z")) // an administrator has locked it
	people, _, err = everything(t.Context(), realm)
	is.NoErr(err)
	is.True(people["sam"].Locked && !people["sam"].Disabled)
	is.NoErr(s.Set(policy, "pwdMaxFailure", "0")) // so that the checks do not lock jo
	drivertest.Test(t, ldap.LDAP{}, drivertest.Fixture{
		Config: s.Config(s.URL, nil), Login: "jo",
		Password: "jo's secret", Locked: map[string]string{"sam": slapd.PasswordOf("sam")},
	})
}

// TestMemberOf: a userFilter by memberOf lets in who is in the group at the moment, and nobody else
// is scanned.
func TestMemberOf(t *testing.T) {
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			tree := company(f.tree())
			tree.Overlay("memberof", "memberof-group-oc "+map[string]string{
				"LDAP": "groupOfNames",
				"AD":   "group",
			}[name])
			s := slapd.Test(t, tree)
			passwords := map[string]string{"jo": "jo's secret", "sam": slapd.PasswordOf("sam")}
			allowed := func(group string, want ...string) {
				t.Helper()
				realm := mustOpen(
					t, f.driver,
					s.Config(s.URL, map[string]any{"userFilter": "(memberOf=" + tree.GroupDN(group) + ")"}),
				)
				people, groups, err := everything(t.Context(), realm)
				is.NoErr(err)
				is.Equal(slices.Sorted(maps.Keys(people)), want)
				is.Equal(groups["board"], want) // with those whom the filter finds
				for username, password := range passwords {
					_, err := realm.Login(t.Context(), username, password)
					if slices.Contains(want, username) {
						is.NoErr(err)
					} else {
						is.Equal(errs.CodeOf(err), errs.Unauthenticated)
					}
				}
			}
			jo, sam := tree.PersonDN("jo"), tree.PersonDN("sam")
			is.NoErr(s.Set(tree.GroupDN("board"), "member", sam)) // the overlay has not seen what was loaded
			allowed("board", "sam")
			is.NoErr(s.Set(tree.GroupDN("board"), "member", jo, sam))
			allowed("board", "jo", "sam")
			is.NoErr(s.Set(tree.GroupDN("board"), "member", jo))
			allowed("board", "jo")
		})
	}
}
