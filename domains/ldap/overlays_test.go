package ldap_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/slapd"
)

// TestPasswordPolicy: OpenLDAP locks an account, which a scan shows as locked; and lets it in again when the lock has ended, although
// the entry goes on showing it.
func TestPasswordPolicy(t *testing.T) {
	is := is.New(t)
	tree := company(slapd.LDAP())
	policy := "cn=policy," + slapd.BaseDN
	tree.Overlay("ppolicy", `ppolicy_default "`+policy+`"`)
	tree.Add(policy, "objectClass", "organizationalRole", "objectClass", "pwdPolicy", "cn", "policy", "pwdAttribute", "userPassword",
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
		Config: s.Config(s.URL, nil), Login: "jo", Password: "jo's secret", Locked: map[string]string{"sam": slapd.PasswordOf("sam")},
	})
}
