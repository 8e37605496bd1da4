package domains_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
	"github.com/tenantcontent/tenantcontent/principals"
)

// seers is the group of those who may read entryUUID in a directory of twoIDs.
const seers = "cn=seers," + slapd.BaseDN

// twoIDs is a directory whose entries have an entryUUID, which only members of seers see, and an
// objectGUID.
func twoIDs(t *testing.T, seer string, rules ...string) (*slapd.Server, *slapd.Tree) {
	tree := slapd.AD()
	for _, rule := range rules {
		tree.Access(rule)
	}
	tree.Access(`to attrs=entryUUID by group.exact="` + seers + `" read by * none`)
	tree.Add(seers, "objectClass", "groupOfNames", "cn", "seers", "member", seer)
	jo := tree.Person(slapd.Person{Name: "jo"})
	tree.Person(slapd.Person{Name: "mia"})
	tree.Group("staff", "", jo)
	return slapd.Test(t, tree), tree
}

func idConfig(s *slapd.Server, changed map[string]any) json.RawMessage {
	all := map[string]any{
		"userFilter":  "(objectClass=user)",
		"groupFilter": "(objectClass=group)", "attributes": map[string]any{"username": "sAMAccountName"},
	}
	for name, value := range changed {
		all[name] = value
	}
	return s.Config(s.URL, all)
}

// configure saves another configuration.
func (w *world) configure(t *testing.T, id string, config json.RawMessage) error {
	_, err := w.Update(root(t), id, func(d *domains.Domain) error { d.Config = config; return nil })
	return err
}

// test tries a domain out and returns the message of the last step.
func (w *world) test(t *testing.T, trial domains.Trial) (domains.Step, error) {
	t.Helper()
	steps, err := w.Test(root(t), trial, func(string, string) domains.Endpoints { return domains.Endpoints{} })
	if err != nil {
		return domains.Step{}, err
	}
	return steps[len(steps)-1], nil
}

func names(t *testing.T, err error, code errs.Code, words ...string) {
	t.Helper()
	is := is.New(t)
	is.Equal(errs.CodeOf(err), code)
	for _, word := range words {
		if !strings.Contains(errs.MessageOf(err), word) {
			t.Errorf("%q does not have %q", errs.MessageOf(err), word)
		}
	}
}

// TestIDsStay: ids of a domain come from one attribute, whatever the account that reads sees later.
func TestIDsStay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		for _, first := range []string{"scan", "login"} {
			t.Run(first, func(t *testing.T) {
				is, w := is.New(t), newWorld(t, open)
				s, _ := twoIDs(t, slapd.ReaderDN)
				w.add(t, "Dir", "LDAP", string(idConfig(s, nil)))
				scan := func(o domains.ScanOptions) error {
					_, err := w.ScanDomain(root(t), "dir", o)
					return err
				}
				login := func(name string) error {
					_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
						Tenant: "acme", Domain: "dir", Username: name, Password: slapd.PasswordOf(name),
					})
					return err
				}
				known := domains.IDAttributes{People: "entryUUID"}
				is.NoErr(scan(domains.ScanOptions{DryRun: true}))
				d, err := w.store.Get(t.Context(), "acme", "dir")
				is.NoErr(err)
				is.Equal(d.IDs, domains.IDAttributes{}) // a dry run writes nothing
				if first == "scan" {
					is.NoErr(scan(domains.ScanOptions{}))
					known.Groups = "entryUUID"
				} else {
					_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
						Tenant: "acme", Domain: "dir", Username: "jo", Password: "wrong",
					})
					is.Equal(errs.CodeOf(err), errs.Unauthenticated)
					d, err := w.store.Get(t.Context(), "acme", "dir")
					is.NoErr(err)
					is.Equal(d.IDs, domains.IDAttributes{}) // nor does a refused login
					is.NoErr(login("jo"))
				}
				d, err = w.store.Get(t.Context(), "acme", "dir")
				is.NoErr(err)
				is.Equal(d.IDs, known)
				before := *w.user(t, "jo").SourceID

				// The reader sees less.
				is.NoErr(s.Set(seers, "member", slapd.BaseDN))
				names(
					t, scan(domains.ScanOptions{}), errs.Upstream, "entryUUID", "only objectGUID",
					"may read entryUUID",
				)
				names(t, scan(domains.ScanOptions{DryRun: true}), errs.Upstream, "entryUUID", "only objectGUID")
				is.Equal(errs.CodeOf(login("jo")), errs.Upstream)
				step, err := w.test(t, domains.Trial{ID: "dir"})
				is.NoErr(err)
				is.True(!step.OK && step.Name == "person")
				is.True(strings.Contains(step.Message, "no usable entryUUID") &&
					strings.Contains(step.Message, "only objectGUID"))
				other := idConfig(s, map[string]any{"idAttribute": "objectGUID"})
				names(
					t, w.configure(t, "dir", other), errs.Invalid, "config.idAttribute must be entryUUID",
					"objectGUID", "sourceId",
				)
				_, err = w.test(t, domains.Trial{ID: "dir", Config: other})
				names(t, err, errs.Invalid, "config.idAttribute must be entryUUID", "objectGUID")
				is.NoErr(w.configure(t, "dir", idConfig(s, map[string]any{"idAttribute": "ENTRYUUID"}))) // the same one
				// no matter of ids
				is.NoErr(w.configure(t, "dir", idConfig(s, map[string]any{"pageSize": 7})))
				is.Equal(*w.user(t, "jo").SourceID, before)

				// It sees everything again.
				is.NoErr(s.Set(seers, "member", slapd.ReaderDN))
				is.NoErr(scan(domains.ScanOptions{}))
				is.NoErr(login("jo"))
				is.Equal(*w.user(t, "jo").SourceID, before)

				// Without ids to keep, others are taken.
				all, err := w.people.Unchecked().DomainContent(t.Context(), "acme")
				is.NoErr(err)
				is.Equal(all["dir"].Identified, 3)
				w.exec(t, "UPDATE tc_users SET source_id = NULL WHERE domain = 'dir'")
				w.exec(t, "UPDATE tc_teams SET source_id = NULL WHERE domain = 'dir'")
				is.NoErr(w.configure(t, "dir", other))
				is.NoErr(scan(domains.ScanOptions{}))
				d, err = w.store.Get(t.Context(), "acme", "dir")
				is.NoErr(err)
				is.Equal(d.IDs, domains.IDAttributes{People: "objectGUID", Groups: "objectGUID"})
				is.True(*w.user(t, "jo").SourceID != before)
			})
		}
	})
}

// TestMoreIDs: an attribute that the reader sees later, and that comes first by default, changes no
// id.
func TestMoreIDs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		s, _ := twoIDs(t, slapd.BaseDN)
		w.add(t, "Dir", "LDAP", string(idConfig(s, nil)))
		for _, seer := range []string{slapd.BaseDN, slapd.ReaderDN} {
			is.NoErr(s.Set(seers, "member", seer))
			report, err := w.ScanDomain(root(t), "dir", domains.ScanOptions{})
			is.NoErr(err)
			is.Equal(report[0].Users.Disabled, 0)
			is.Equal(report[0].Teams.Created, map[string]int{slapd.BaseDN: 1}[seer])
			is.Equal(len(*w.user(t, "mia").SourceID), 36)
			d, err := w.store.Get(t.Context(), "acme", "dir")
			is.NoErr(err)
			is.Equal(d.IDs, domains.IDAttributes{People: "objectGUID", Groups: "objectGUID"})
			_, err = w.Unchecked().Authenticate(t.Context(), principals.Credentials{
				Tenant: "acme", Domain: "dir", Username: "mia", Password: slapd.PasswordOf("mia"),
			})
			is.NoErr(err)
			step, err := w.test(t, domains.Trial{ID: "dir"})
			is.NoErr(err)
			is.True(step.OK)
		}
		names(
			t, w.configure(t, "dir", idConfig(s, map[string]any{"idAttribute": "entryUUID"})), errs.Invalid,
			"must be objectGUID", "entryUUID",
		)
	})
}

// TestMixedIDs: a directory that shows one attribute of some and another one of others.
func TestMixedIDs(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	s, _ := twoIDs(t, slapd.ReaderDN, `to dn.exact="cn=mia,ou=people,`+slapd.BaseDN+`" attrs=entryUUID by * none`)
	w.add(t, "Dir", "LDAP", string(idConfig(s, nil)))
	_, err := w.ScanDomain(root(t), "dir", domains.ScanOptions{})
	names(t, err, errs.Upstream, "entryUUID", "objectGUID", "set idAttribute to one that all have")
	step, err := w.test(t, domains.Trial{ID: "dir"})
	is.NoErr(err)
	is.True(!step.OK && strings.Contains(step.Message, "entryUUID") && strings.Contains(step.Message, "objectGUID"))
	is.NoErr(w.configure(t, "dir", idConfig(s, map[string]any{"idAttribute": "objectGUID"})))
	_, err = w.ScanDomain(root(t), "dir", domains.ScanOptions{})
	is.NoErr(err)
}

// exec changes rows of acme.
func (w *world) exec(t *testing.T, statement string) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), w.db, "acme")
	_, err := c.Exec(ctx, statement+" AND tenant_id = 'acme'")
	is.New(t).NoErr(err)
}
