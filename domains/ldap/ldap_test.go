package ldap_test

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// company is a directory with what tells good code from bad, in either kind of tree.
func company(tree *slapd.Tree) *slapd.Tree {
	jo := tree.Person(slapd.Person{
		Name:     "jo",
		Given:    "Jo",
		Family:   "Döe, \"the\" +first<",
		Mail:     "jo@example.org",
		Password: "jo's secret",
	})
	sam := tree.Person(slapd.Person{Name: "sam"})
	odd := tree.Person(slapd.Person{Name: `odd, "name" + #1 \ <x>; ü=ö`, Given: "Odd"})
	tree.Person(slapd.Person{Name: "gone", Disabled: true})
	tree.Person(slapd.Person{Name: "joanna"})
	tree.Group("staff", "Everybody", jo, sam, odd, "cn=nobody,"+slapd.BaseDN)
	tree.Group("board", "", jo)
	return tree
}

// flavors are the two drivers with a directory each.
var flavors = map[string]struct {
	driver domains.Driver
	tree   func() *slapd.Tree
}{
	"LDAP": {ldap.LDAP{}, slapd.LDAP},
	"AD":   {ldap.AD{}, slapd.AD},
}

// each runs a test with both drivers, each over a directory that fill has filled.
func each(
	t *testing.T, fill func(*slapd.Tree),
	test func(t *testing.T, d domains.Driver, s *slapd.Server, tree *slapd.Tree),
) {
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) {
			tree := f.tree()
			fill(tree)
			test(t, f.driver, slapd.Test(t, tree), tree)
		})
	}
}

func withCompany(tree *slapd.Tree) { company(tree) }

// silent is the address of a server that takes connections and says nothing.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	t.Cleanup(func() { l.Close() })
	return "ldap://" + l.Addr().String()
}

// mustOpen opens a configuration.
func mustOpen(t *testing.T, d domains.Driver, config json.RawMessage) interface {
	domains.PasswordLogin
	domains.Directory
} {
	t.Helper()
	realm, err := d.Open(config)
	is.New(t).NoErr(err)
	return realm.(interface {
		domains.PasswordLogin
		domains.Directory
	})
}

// everything reads a directory to its end: people by name, members of groups by the groups' and
// their own names.
func everything(ctx context.Context, d domains.Directory) (map[string]domains.Identity, map[string][]string, error) {
	people, groups, names := map[string]domains.Identity{}, map[string][]string{}, map[string]string{}
	for e, err := range d.Entries(ctx) {
		switch {
		case err != nil:
			return people, groups, err
		case e.Person != nil:
			people[e.Person.Username], names[e.Person.ID] = *e.Person, e.Person.Username
		default:
			members := []string{}
			for _, id := range e.Group.Members {
				members = append(members, names[id])
			}
			slices.Sort(members)
			groups[e.Group.Name] = members
		}
	}
	return people, groups, nil
}

// saying checks that an error is errs.Upstream, and that its sentence has some words.
func saying(t *testing.T, err error, words ...string) {
	t.Helper()
	if errs.CodeOf(err) != errs.Upstream {
		t.Fatalf("want errs.Upstream, got %v", err)
	}
	for _, word := range words {
		if !strings.Contains(errs.MessageOf(err), word) {
			t.Errorf("%q does not say %q", errs.MessageOf(err), word)
		}
	}
}

func TestDriver(t *testing.T) {
	each(t, withCompany, func(t *testing.T, d domains.Driver, s *slapd.Server, _ *slapd.Tree) {
		disabled := map[string]string{}
		if d.Info().ID == "AD" {
			disabled["gone"] = slapd.PasswordOf("gone")
		}
		for name, config := range map[string]json.RawMessage{
			"plain":    s.Config(s.URL, nil),
			"startTLS": s.Config(s.URL, map[string]any{"startTLS": true}),
			"ldaps":    s.Config(s.TLSURL, map[string]any{"pageSize": 1}),
		} {
			t.Run(name, func(t *testing.T) {
				drivertest.Test(t, d, drivertest.Fixture{
					Config: config, Bad: bad,
					Away:  s.Config(silent(t), map[string]any{"timeoutMs": 500, "startTLS": name != "plain"}),
					Login: "jo", Password: "jo's secret", Disabled: disabled,
				})
			})
		}
	})
}

func TestIdentities(t *testing.T) {
	each(t, withCompany, func(t *testing.T, d domains.Driver, s *slapd.Server, tree *slapd.Tree) {
		is := is.New(t)
		people, groups, err := everything(t.Context(), mustOpen(t, d, s.Config(s.URL, nil)))
		is.NoErr(err)
		odd := `odd, "name" + #1 \ <x>; ü=ö`
		is.Equal(slices.Sorted(maps.Keys(people)), []string{"gone", "jo", "joanna", odd, "sam"})
		jo := people["jo"]
		is.True(jo.ID != "")
		attribute := map[string]string{"LDAP": "entryUUID", "AD": "objectGUID"}[d.Info().ID]
		is.Equal(jo, domains.Identity{ID: jo.ID, IDAttribute: attribute,
			Username: "jo", DisplayName: "Jo Döe, \"the\" +first<", GivenName: "Jo",
			FamilyName: "Döe, \"the\" +first<", Email: "jo@example.org"})
		is.Equal(people["gone"].Disabled, d.Info().ID == "AD")
		is.Equal(groups, map[string][]string{"staff": {"jo", odd, "sam"}, "board": {"jo"}})

		// A rename is a rename: the id stays, and so do the groups.
		rdn := map[string]string{"LDAP": "uid=joe", "AD": "cn=Joe"}[d.Info().ID]
		is.NoErr(s.Rename(tree.PersonDN("jo"), rdn))
		if d.Info().ID == "AD" {
			is.NoErr(s.Set("cn=Joe,ou=people,"+slapd.BaseDN, "sAMAccountName", "joe"))
		}
		people, groups, err = everything(t.Context(), mustOpen(t, d, s.Config(s.URL, nil)))
		is.NoErr(err)
		is.Equal(people["joe"].ID, jo.ID)
		is.Equal(groups["board"], []string{"joe"})
	})
}
