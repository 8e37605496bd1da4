//go:build interop

package interop

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// directory is a driver with a configuration.
type directory struct {
	driver domains.Driver
	config map[string]any
}

// with returns the configuration with some changed members.
func (d directory) with(changed map[string]any) json.RawMessage {
	all := maps.Clone(d.config)
	maps.Copy(all, changed)
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // the values can be encoded
	}
	return text
}

// realm is a realm with a directory.
type realm interface {
	domains.Directory
	domains.AccountNames
	domains.Tester
}

func (d directory) open(t *testing.T, changed map[string]any) realm {
	t.Helper()
	r, err := d.driver.Open(d.with(changed))
	is.New(t).NoErr(err)
	return r.(realm)
}

// scan reads a whole directory: people by name, and the names of the members of each group.
func scan(t *testing.T, d domains.Directory) (people map[string]domains.Identity, groups map[string][]string) {
	t.Helper()
	people, groups = map[string]domains.Identity{}, map[string][]string{}
	names := map[string]string{}
	for e, err := range d.Entries(t.Context()) {
		is.New(t).NoErr(err)
		if e.Person != nil {
			people[e.Person.Username], names[e.Person.ID] = *e.Person, e.Person.Username
			continue
		}
		members := []string{}
		for _, id := range e.Group.Members {
			members = append(members, names[id])
		}
		groups[e.Group.Name] = members
	}
	return people, groups
}

// logins checks which user a name and a password log in. "" means that they are refused, for a
// logged reason that contains some words.
func logins(t *testing.T, r realm, name, password, want, reason string) {
	t.Helper()
	who, err := r.Login(t.Context(), name, password)
	switch {
	case want != "" && (err != nil || who.Username != want):
		t.Errorf("%s: %q, %v", name, who.Username, err)
	case want == "" && errs.CodeOf(err) != errs.Unauthenticated:
		t.Errorf("%s is not refused: %v", name, err)
	case want == "":
		if errs.MessageOf(err) != "Unable to log in" || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v does not say %q", name, err, reason)
		}
	}
}

// upstreamError checks that an error has the code errs.Upstream, and that its message contains all
// words.
func upstreamError(t *testing.T, err error, words ...string) {
	t.Helper()
	is.New(t).Equal(errs.CodeOf(err), errs.Upstream)
	for _, word := range words {
		if !strings.Contains(errs.MessageOf(err), word) {
			t.Errorf("%q does not say %q", errs.MessageOf(err), word)
		}
	}
}

// passes checks that a test of a configuration has no failed step, and returns the steps.
func passes(t *testing.T, r realm, username string) map[string]domains.Step {
	t.Helper()
	all := map[string]domains.Step{}
	for _, step := range r.Test(t.Context(), domains.Endpoints{}, username) {
		all[step.Name] = step
		if !step.OK {
			t.Errorf("%s: %s", step.Name, step.Message)
		}
	}
	return all
}

// add adds an entry. attributes are names of attributes, each followed by a value.
func add(t *testing.T, c *goldap.Conn, dn string, attributes ...string) {
	t.Helper()
	values := map[string][]string{}
	var order []string
	for i := 0; i < len(attributes); i += 2 {
		if values[attributes[i]] == nil {
			order = append(order, attributes[i])
		}
		values[attributes[i]] = append(values[attributes[i]], attributes[i+1])
	}
	r := goldap.NewAddRequest(dn, nil)
	for _, name := range order {
		r.Attribute(name, values[name])
	}
	if err := c.Add(r); err != nil {
		t.Fatalf("%s: %v", dn, err)
	}
}

// set replaces the values of an attribute.
func set(t *testing.T, c *goldap.Conn, dn, attribute string, values ...string) {
	t.Helper()
	r := goldap.NewModifyRequest(dn, nil)
	r.Replace(attribute, values)
	if err := c.Modify(r); err != nil {
		t.Fatalf("%s %s: %v", dn, attribute, err)
	}
}
