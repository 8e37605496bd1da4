package ldap

import (
	"strings"
	"testing"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"
)

func TestKeys(t *testing.T) {
	is := is.New(t)
	var k keys
	for _, same := range [][]string{
		{
			"uid=jo,dc=x", "UID=JO,DC=X", "uid = jo , dc=x", `uid=\6a\6F,dc=x`, "uid=jo;dc=x", " uid=jo,dc=x ",
			"uid=jo,dc= x",
		},
		{`cn=a\,b,dc=x`, `CN=A\2CB,dc=x`},
		{"cn=a  b,dc=x", "cn=A b,dc=x", `cn=\ a b\ ,dc=x`},
		{"cn=\u00fc,dc=x", "cn=u\u0308,dc=x", `cn=\C3\9C,dc=x`},
		{"cn=a+uid=b,dc=x", "UID=b + CN=a,dc=x"},
		{"cn=a=b,dc=x", `cn=a\3db,dc=x`},
		{"no dn", "NO DN"},
		{"", " "},
	} {
		for _, s := range same {
			is.Equal(k.dn(s), k.dn(same[0])) // the same entry
		}
	}
	different := []string{
		"uid=jo,dc=x", "uid=jo,dc=y", "uid=jo", "uid=j o,dc=x",
		"cn=jo,dc=x", "uid=jo,uid=jo,dc=x", `uid=jo\,dc=x`, "uid=jo+dc=x",
		// alike when folded; not for a directory
		"uid=stra\u00dfe,dc=x", "uid=strasse,dc=x", "uid=stra\u017f\u017fe,dc=x",
		"uid=\u0131,dc=x", "uid=i,dc=x", "", "jo", `uid=jo\00,dc=x`, "uid=\uff4ao,dc=x",
	}
	for i, a := range different {
		for _, b := range different[:i] {
			is.True(k.dn(a) != k.dn(b))
		}
	}
	is.Equal(k.name("JO"), k.name("jo"))
	is.True(k.name("jo") != k.name("jo "))
	is.Equal(withoutBits("cn=a#'01'B"), "cn=a")
	is.Equal(withoutBits("cn=a#'02'B"), "cn=a#'02'B")
	is.Equal(withoutBits("cn=a"), "cn=a")
}

// FuzzDN: a DN that is read the quick way gets the key that the long way gives it.
func FuzzDN(f *testing.F) {
	for _, s := range []string{
		"uid=jo,dc=x", "CN=A B,O=c=d", "cn= a", "cn=a,,b", "=", "a=,b=", `cn=\`, "cn=#04", "cn=a+b=c", "a =b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var k keys
		long := canonical(s) // nor does it panic
		if _, err := goldap.ParseDN(s); err != nil || !k.plain(s) {
			return
		}
		if string(k.buffer) != strings.ToLower(long) {
			t.Errorf("%q: %q, and the long way %q", s, k.buffer, long)
		}
	})
}

// TestGUID: the bytes of the objectGUID that Microsoft's documentation shows.
func TestGUID(t *testing.T) {
	is := is.New(t)
	b := []byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	is.Equal(guid(b), "33221100-5544-7766-8899-aabbccddeeff")
	c := conn{realm: &realm{flavor: activeDirectory}, host: &host{}}
	for size := range 40 {
		_, _, err := c.idOf(
			goldap.NewEntry("cn=x", map[string][]string{"objectGUID": {strings.Repeat("x", size)}}),
			activeDirectory.idAttributes,
		)
		is.Equal(err == nil, size == 16)
	}
}

func TestDisabled(t *testing.T) {
	is := is.New(t)
	r := realm{flavor: activeDirectory}
	for control, want := range map[string]bool{
		"512": false, "514": true, "66048": false, "66050": true,
		"2": true, "": false, "x": false, "-1": true, "4194818": true,
	} {
		e := goldap.NewEntry("cn=x", map[string][]string{"useraccountcontrol": {control}})
		is.Equal(r.isDisabled(e), want)
	}
	r = realm{flavor: standard}
	is.Equal(r.isDisabled(goldap.NewEntry("cn=x", map[string][]string{"userAccountControl": {"514"}})), false)
}
