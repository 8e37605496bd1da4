package domains_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestRules: the members that all drivers of single sign-on have are checked when a domain is
// saved, and shown as they were sent.
func TestRules(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		w.add(t, "Empty", "gate", `{}`)
		_, err := w.people.CreateTeam(root(t), principals.Team{Name: "T"})
		is.NoErr(err)
		w.add(t, "Gate", "gate", `{}`)
		put := func(config string) (domains.Domain, error) {
			return w.Update(root(t), "gate", func(d *domains.Domain) error {
				d.Config = json.RawMessage(config)
				return nil
			})
		}
		const all = `{"accounts":"books","accountsBy":"id","allow":{"groups":["a","b"],"domains":["Example.com"],"claims":{"x":"1","y":["2","3"]}},` +
			`"key":"hush","teams":{"create":false,"map":[{"group":"a","team":"t","role":"admin"},{"group":"b","team":"t"}]}}`
		d, err := put(all)
		is.NoErr(err)
		is.Equal(string(d.Config), strings.Replace(all, "hush", domains.Mask, 1))
		is.Equal(d.Unready, "")
		for config, want := range map[string]string{
			`{"accounts": "nowhere"}`:                     "config.accounts must be the id of a domain",
			`{"accounts": "gate"}`:                        "config.accounts must be another domain",
			`{"accounts": "local"}`:                       "config.accounts must not be local",
			`{"accounts": "empty"}`:                       "config.accounts must be a directory, or have users",
			`{"accounts": 1}`:                             "config.accounts is not understood",
			`{"accountsBy": "email"}`:                     "config.accountsBy needs accounts",
			`{"accounts": "books", "accountsBy": "name"}`: "config.accountsBy must be username, email or id",
			`{"Accounts": "books"}`:                       "config.Accounts is not known",
			`{"allow": []}`:                               "config.allow is not understood",
			`{"teams": {"map": [{"group": "a", "team": "t"}, {"group": "a", "team": "gone"}]}}`: "config.teams.map has the team gone, which is not there",
			`{"allow": {"groups": "a"}}`: "config.allow.groups is not " +
				"understood",
			`{"allow": {"groups": []}}`: "config.allow.groups must " +
				"have 1 to",
			`{"allow": {"groups": [""]}}`: "config.allow.groups must " +
				"have texts of",
			`{"allow": {"group": ["a"]}}`: "config.allow.group is not known",
			`{"allow": {"domains": ["@example.com"]}}`: "config.allow.domains must " +
				"be domains",
			`{"allow": {"domains": ["*.example.com"]}}`: "config.allow.domains must " +
				"be domains",
			`{"allow": {"claims": {}}}`: "config.allow.claims must " +
				"have 1 to",
			`{"allow": {"claims": {"x": 1}}}`: "config.allow",
			`{"allow": {"claims": {"x": null}}}`: "config.allow.claims.x must " +
				"have texts of",
			`{"allow": {"claims": {"x": []}}}`: "config.allow.claims.x must " +
				"have 1 to",
			`{"teams": {"create": "no"}}`: "config.teams.create is not " +
				"understood",
			`{"teams": {"map": [{"group": "a"}]}}`: "config.teams.map must have " +
				"a group and a team",
			`{"teams": {"map": [{"grp": "a"}]}}`: "config.teams is not understood",
			`{"teams": {"map": [{"group": "a", "team": "t", "role": "superuser"}]}}`: "config.teams.map has the " +
				"role superuser",
		} {
			_, err := put(config)
			if errs.CodeOf(err) != errs.Invalid || !strings.HasPrefix(errs.MessageOf(err), want) {
				t.Errorf("%s: %v", config, err)
			}
		}
		_, err = w.Update(root(t), "books", func(d *domains.Domain) error {
			d.Config = []byte(`{"url": "x", "accounts": "gate"}`)
			return nil
		})
		is.Equal(errs.CodeOf(err), errs.Invalid) // nobody logs in elsewhere at a directory
		_, err = put(`{"allow": null, "teams": null, "accounts": ""}`)
		is.NoErr(err)

		// Who is named stays, and no tenant names the domains of another one.
		_, err = put(`{"accounts": "books"}`)
		is.NoErr(err)
		err = w.Delete(root(t), "books")
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.True(strings.Contains(errs.MessageOf(err), "The domain gate logs in the users of this one"))
		w.addTo(t, "evil", "Other", "paper", `{"url": "x"}`)
		_, err = put(`{"accounts": "other"}`)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		_, err = put(`{}`)
		is.NoErr(err)
		is.NoErr(w.Delete(root(t), "books"))
	})
}

// TestDiscovery: a provider is asked outside of any transaction, when its configuration changes and
// then alone.
func TestDiscovery(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		name := "Gate"
		w.gate.away = errs.New(errs.Invalid, "url cannot be reached")
		create := func(o ...domains.SaveOption) error {
			_, err := w.Create(root(t), domains.Domain{Name: &name, Type: "gate", Config: []byte(`{"url": "x"}`)}, o...)
			return err
		}
		err := create()
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.Equal(errs.MessageOf(err), "config.url cannot be reached (check=false saves it all the same)")
		is.Equal(w.count(t, "tc_domains"), 1) // local
		is.NoErr(create(domains.Unasked))
		is.Equal(w.gate.asked, 1)

		put := func(edit func(*domains.Domain), o ...domains.SaveOption) error {
			_, err := w.Update(root(t), "gate", func(d *domains.Domain) error { edit(d); return nil }, o...)
			return err
		}
		configure := func(config string) func(*domains.Domain) {
			return func(d *domains.Domain) { d.Config = json.RawMessage(config) }
		}
		is.NoErr(put(func(d *domains.Domain) { d.Name = new("Door") })) // it is not asked for that
		is.NoErr(put(configure(`{ "url": "x" }`)))
		is.Equal(w.gate.asked, 1)
		is.Equal(errs.CodeOf(put(configure(`{"url": "y"}`))), errs.Invalid)
		is.NoErr(put(configure(`{"url": "y"}`), domains.Unasked))
		is.Equal(w.gate.asked, 2)
		is.Equal(errs.CodeOf(put(configure(`{"url": "y", "key": "s"}`))), errs.Invalid)
		w.gate.away = nil
		is.NoErr(put(configure(`{"url": "y", "key": "s"}`)))
		is.NoErr(put(configure(`{"url": "y", "key": "********"}`)))
		is.NoErr(put(configure(`{"url": "y"}`)))
		is.Equal(w.gate.asked, 4)
		is.NoErr(put(func(d *domains.Domain) { d.Config = nil }))
		is.Equal(w.gate.asked, 4)

		// No transaction is open meanwhile: others write the domain. What was asked for is not what
		// they have made of it.
		is.NoErr(put(configure(`{"url": "z", "key": "old"}`)))
		w.gate.meantime = func() {
			w.gate.meantime = nil
			is.NoErr(put(configure(`{"url": "z", "key": "new"}`), domains.Unasked))
		}
		err = put(configure(`{"url": "zz"}`)) // keeps the secret
		is.Equal(errs.CodeOf(err), errs.Conflict)
		w.gate.meantime = func() {
			w.gate.meantime = nil
			is.NoErr(put(func(d *domains.Domain) { d.Description = new("Of the company.") }))
		}
		is.NoErr(put(configure(`{"url": "zz"}`)))
		d, err := w.Get(root(t), "gate")
		is.NoErr(err)
		is.Equal(*d.Description, "Of the company.")

		// A condition is checked before anybody is asked, and again when the row is locked.
		asked := w.gate.asked
		stale := func(version string) error {
			ctx := guard.With(root(t), &guard.Guard{Row: "domain", Fits: func(v string, exists bool) bool {
				return exists && v == version
			}})
			_, err := w.Update(ctx, "gate", func(d *domains.Domain) error {
				d.Config = []byte(`{"url": "n"}`)
				return nil
			})
			return err
		}
		is.Equal(errs.CodeOf(stale("old")), errs.Stale)
		is.Equal(w.gate.asked, asked)
		w.gate.meantime = func() {
			w.gate.meantime = nil
			is.NoErr(put(func(d *domains.Domain) { d.Description = nil }))
		}
		is.Equal(errs.CodeOf(stale(d.Version())), errs.Stale)
		is.Equal(w.gate.asked, asked+1)
		d, err = w.Get(root(t), "gate")
		is.NoErr(err)
		is.NoErr(stale(d.Version()))

		w.Hurry(time.Second, 50*time.Millisecond, time.Minute, time.Minute)
		w.gate.hangs = true
		err = put(configure(`{"url": "slow"}`))
		is.Equal(
			errs.MessageOf(err),
			"config: the provider has not answered in 50ms (check=false saves it all the same)",
		)
		ctx, cancel := context.WithCancel(root(t))
		cancel()
		_, err = w.Update(ctx, "gate", func(d *domains.Domain) error { return nil })
		is.True(err != nil)
	})
}

// TestUnchangedConfigurationStays: saving what is there already writes no secret again.
func TestUnchangedConfigurationStays(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Gate", "gate", `{"url": "x", "key": "hush"}`)
	sealed := func() (text string) {
		ctx, c := bunx.For(t.Context(), w.db, "acme")
		is.NoErr(c.NewRaw(`SELECT secrets FROM tc_domains WHERE id = 'gate'`).Scan(ctx, &text))
		return text
	}
	before := sealed()
	_, err := w.Update(root(t), "gate", func(d *domains.Domain) error { d.Name = new("Door"); return nil })
	is.NoErr(err)
	is.Equal(sealed(), before)
	_, err = w.Update(root(t), "gate", func(d *domains.Domain) error {
		d.Config = []byte(`{"url": "x", "key": "other"}`)
		return nil
	})
	is.NoErr(err)
	is.True(sealed() != before)
}
