package ldap_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// TestNested: groups in groups, also in cycles and very deep.
func TestNested(t *testing.T) {
	each(t, func(tree *slapd.Tree) {
		jo, sam := tree.Person(slapd.Person{Name: "jo"}), tree.Person(slapd.Person{Name: "sam"})
		tree.Group("inner", "", jo, sam)
		tree.Group("middle", "", tree.GroupDN("inner"), jo)
		tree.Group("outer", "", tree.GroupDN("middle"), tree.GroupDN("inner"), tree.GroupDN("missing"))
		tree.Group("a", "", tree.GroupDN("b"), jo) // a cycle of three
		tree.Group("b", "", tree.GroupDN("c"))
		tree.Group("c", "", tree.GroupDN("a"), sam)
		tree.Group("self", "", tree.GroupDN("self"))
	}, func(t *testing.T, d domains.Driver, s *slapd.Server, _ *slapd.Tree) {
		_, groups, err := everything(t.Context(), mustOpen(t, d, s.Config(s.URL, nil)))
		is := is.New(t)
		is.NoErr(err)
		both := []string{"jo", "sam"}
		is.Equal(groups, map[string][]string{
			"inner":  both,
			"middle": both,
			"outer":  both,
			"a":      both,
			"b":      both,
			"c":      both,
			"self":   {},
		})
	})
}

func TestDeep(t *testing.T) {
	is := is.New(t)
	const depth = 10_000
	tree := slapd.LDAP()
	jo := tree.Person(slapd.Person{Name: "jo"})
	for i := range depth {
		tree.Group(fmt.Sprint("g", i), "", tree.GroupDN(fmt.Sprint("g", (i+1)%depth))) // one great cycle
	}
	tree.Group("last", "", jo, tree.GroupDN("g0"))
	s := slapd.Test(t, tree)
	is.NoErr(s.Set(tree.GroupDN("g9999"), "member", jo, tree.GroupDN("g0")))
	began := time.Now()
	_, groups, err := everything(t.Context(), mustOpen(t, ldap.LDAP{}, s.Config(s.URL, nil)))
	is.NoErr(err)
	t.Log(time.Since(began))
	is.Equal(len(groups), depth+1)
	for _, members := range groups {
		is.Equal(members, []string{"jo"})
	}
}

// TestMemberDNs: groups write DNs in their own way.
func TestMemberDNs(t *testing.T) {
	is := is.New(t)
	tree := slapd.LDAP()
	jo := tree.Person(slapd.Person{Name: "jo"})
	tree.Person(slapd.Person{Name: "Ann,  Lee+ö"})
	for name, member := range map[string]string{
		"same": jo, "case": "UID=JO,OU=People,DC=EXAMPLE,DC=ORG", "spaces": "uid = jo , ou=people,  dc=example,dc=org",
		"hex": `uid=\6Ao,ou=people,dc=example,dc=org`, "semicolons": "uid=jo;ou=people;dc=example;dc=org",
	} {
		tree.Add(tree.GroupDN(name), "objectClass", "groupOfNames", "cn", name, "member", member)
	}
	for name, member := range map[string]string{
		"ann":       `uid=Ann\,  Lee\+ö,ou=people,dc=example,dc=org`,
		"ann hex":   `uid=ANN\2C Lee\2B\C3\96,ou=people,dc=example,dc=org`,
		"ann apart": `uid=ann\, lee\+o` + "\u0308" + `,ou=people,dc=example,dc=org`,
	} {
		tree.Add(tree.GroupDN(name), "objectClass", "groupOfNames", "cn", name, "member", member)
	}
	tree.Add(tree.GroupDN("unique"), "objectClass", "groupOfUniqueNames", "cn", "unique", "uniqueMember", jo)
	tree.Add(tree.GroupDN("bits"), "objectClass", "groupOfUniqueNames", "cn", "bits", "uniqueMember", jo+"#'0101'B")
	tree.Add(
		tree.GroupDN("posix"), "objectClass", "posixGroup", "cn", "posix", "gidNumber", "100", "memberUid",
		"jo", "memberUid", "nobody",
	)
	s := slapd.Test(t, tree)

	_, groups, err := everything(t.Context(), mustOpen(t, ldap.LDAP{}, s.Config(s.URL, nil)))
	is.NoErr(err)
	is.Equal(len(groups), 8)
	for name, members := range groups {
		want := "jo"
		if name[:3] == "ann" {
			want = "Ann,  Lee+ö"
		}
		if !slices.Equal(members, []string{want}) {
			t.Errorf("%s: %q", name, members)
		}
	}
	for member, want := range map[string]map[string][]string{
		"uniqueMember": {"unique": {"jo"}, "bits": {"jo"}},
		"memberUid":    {"posix": {"jo"}}, "MEMBERUID": {"posix": {"jo"}},
	} {
		_, groups, err := everything(
			t.Context(), mustOpen(t, ldap.LDAP{}, s.Config(s.URL, map[string]any{"groupMember": member})),
		)
		is.NoErr(err)
		is.Equal(groups, want)
	}
	// The name that a group has may be another than the one that people log in with.
	changed := map[string]any{
		"groupMember": "memberUid",
		"groupName":   "gidNumber",
		"attributes":  map[string]any{"username": "sn"},
	}
	_, groups, err = everything(t.Context(), mustOpen(t, ldap.LDAP{}, s.Config(s.URL, changed)))
	is.NoErr(err)
	is.Equal(groups, map[string][]string{"100": {"jo"}})
}

// TestRanges: Active Directory gives the members of a large group in parts.
func TestRanges(t *testing.T) {
	guid := func(n int) string { return fmt.Sprintf("%016d", n) }
	people := func(r asked) {
		for i := range 4000 {
			r.entry(fmt.Sprintf("CN=p%d,DC=x", i), "objectGUID", guid(i), "sAMAccountName", fmt.Sprint("p", i))
		}
		r.end("")
	}
	members := func(from, to int) (all string) {
		for i := from; i < to; i++ {
			all += fmt.Sprintf("\nCN=p%d,DC=x", i)
		}
		return all[1:]
	}
	read := func(t *testing.T, ranges map[string][2]string) (int, string, error) {
		f := newFake(t, func(r asked) {
			switch {
			case r.nth == 1:
				people(r)
			case r.nth == 2:
				r.entry(
					"CN=big,DC=x", "objectGUID", guid(1), "cn", "big", "member", "", "member;range=0-1499",
					members(0, 1500),
				)
				r.entry("CN=small,DC=x", "objectGUID", guid(2), "cn", "small", "member", members(0, 10))
				r.end("")
			case r.base != "CN=big,DC=x" || len(r.attributes) != 1:
				r.result(goldap.ApplicationSearchResultDone, goldap.LDAPResultUnwillingToPerform)
			default:
				if a, ok := ranges[r.attributes[0]]; ok {
					r.entry(r.base, a[0], a[1])
				}
				r.result(goldap.ApplicationSearchResultDone, 0)
			}
		})
		_, groups, err := everything(t.Context(), mustOpen(t, ldap.AD{}, f.config()))
		is.New(t).True(err != nil || len(groups["small"]) == 10)
		return len(groups["big"]), f.log(), err
	}
	t.Run("whole", func(t *testing.T) {
		is := is.New(t)
		n, _, err := read(t, map[string][2]string{
			"member;range=1500-*": {"member;range=1500-2999", members(1500, 3000)},
			"member;range=3000-*": {"member;Range=3000-*", members(3000, 4000)},
		})
		is.NoErr(err)
		is.Equal(n, 4000)
	})
	for name, ranges := range map[string]map[string][2]string{
		"nobody there":    {},
		"the same again":  {"member;range=1500-*": {"member;range=0-1499", members(0, 1500)}},
		"no end":          {"member;range=1500-*": {"member;range=1500-1499", members(0, 1)}},
		"no range":        {"member;range=1500-*": {"member;binary", members(0, 1)}},
		"a range of text": {"member;range=1500-*": {"member;range=x-y", members(0, 1)}},
		"below zero":      {"member;range=1500-*": {"member;range=0--5", members(0, 1)}},
		"an odd number":   {"member;range=1500-*": {"member;range=0-99999999999999999999", members(0, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := read(t, ranges)
			saying(t, err, "CN=big,DC=x", "invalid range")
		})
	}
}
