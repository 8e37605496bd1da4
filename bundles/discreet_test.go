package bundles_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entities"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// undo takes an entry out of a bundle of acme.
func (w *world) undo(t *testing.T, bundle, entityID string) {
	t.Helper()
	entries, err := w.Bundles.Entries(w.as(t, "acme"), bundle, pageOf(100))
	is.New(t).NoErr(err)
	for _, e := range entries.Rows {
		if e.EntityID == entityID {
			is.New(t).NoErr(w.Bundles.DeleteEntry(w.as(t, "acme"), bundle, e.ID))
		}
	}
}

// TestSuperusersOfATargetStay: whom a bundle brought and the tenant has made a superuser since, also one who is disabled.
func TestSuperusersOfATargetStay(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		b := w.bundle(t, "B", "user jo")
		names := []string{"kim", "lee", "sam"}
		for _, name := range names {
			_, err := w.Principals.CreateUser(acme, principals.User{Username: name, Enabled: true}, "")
			is.NoErr(err)
			_, err = w.Bundles.AddEntry(acme, b.ID, "user", name, nil)
			is.NoErr(err)
		}
		deploy := func(dry bool) bundles.Report {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.How{DryRun: dry, Rule: entity.Skip})
			is.NoErr(err)
			return done[0].Report
		}
		is.Equal(deploy(false).Created, 3)
		for tenant, name := range map[ctx]string{evil: "kim", acme: "lee"} { // that lee is one in acme alone matters not
			_, err := w.Principals.UpdateUser(tenant, name, func(u *principals.User) error { u.Superuser = true; return nil })
			is.NoErr(err)
		}
		_, err := w.Principals.UpdateUser(evil, "sam", func(u *principals.User) error { u.Superuser, u.Enabled = true, false; return nil })
		is.NoErr(err)
		for _, name := range []string{"kim", "sam"} {
			w.undo(t, b.ID, name)
		}
		for _, dry := range []bool{true, false} {
			r := deploy(dry)
			is.Equal(r.Deleted, 0)
			is.Equal(r.Warnings, []string{"user kim stays as it is.", "user sam stays as it is."})
			is.Equal(r.Archive, nil) // nothing is replaced
		}
		w.undo(t, b.ID, "lee")
		is.Equal(deploy(false).Deleted, 1)
		for _, name := range names {
			_, err := w.Principals.User(evil, name)
			is.Equal(errs.CodeOf(err) == errs.NotFound, name == "lee")
		}
	})
}

// TestDeployTellsNothingOfUsers of the target: what they are called, who is a superuser, who is in which team, what they have.
func TestDeployTellsNothingOfUsers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		called := "Josephine"
		_, err := w.Principals.UpdateUser(evil, "jo", func(u *principals.User) error { u.DisplayName = &called; return nil })
		is.NoErr(err)
		for _, name := range []string{"eve", "sam"} {
			_, err = w.Principals.CreateUser(acme, principals.User{Username: name, Enabled: true}, "")
			is.NoErr(err)
		}
		_, err = w.Principals.CreateUser(evil, principals.User{Username: "mallory", Enabled: true}, "")
		is.NoErr(err)
		team := w.team(t)
		_, err = w.Principals.SetMember(acme, team, "jo", actor.Member)
		is.NoErr(err)
		report := w.make(t, "acme", "report", "The plan", `{}`)
		_, err = w.Principals.Reassign(acme, "jo", "admin") // who is nobody in evil
		is.NoErr(err)
		b := w.bundle(t, "B", "user jo", "user eve", "user sam", "team "+team, "report "+report)
		deploy := func(how bundles.How) bundles.Report {
			how.Changes = true
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, how)
			is.NoErr(err)
			said := fmt.Sprintf("%+v", done[0].Report)
			for _, secret := range []string{"Josephine", "mallory", "superuser here", "eve owns", "Member"} {
				if strings.Contains(said, secret) {
					t.Errorf("%s: %s", secret, said)
				}
			}
			return done[0].Report
		}
		r := deploy(bundles.How{DryRun: true})
		is.Equal(r.Warnings, []string{
			"Left out: 1 user warning, which may tell of the tenant's users. An import of the archive there has all warnings.",
			"Left out: 1 team warning, which may tell of the tenant's users. An import of the archive there has all warnings.",
			"Left out: 1 report warning, which may tell of the tenant's users. An import of the archive there has all warnings.",
			"user eve stays as it is.",
		})
		named := map[string]string{}
		for _, c := range r.Changes {
			named[c.ID] = c.Name
		}
		is.Equal(named, map[string]string{"jo": "jo", "eve": "eve", "sam": "sam", team: "T", report: "The plan"})
		deploy(bundles.How{Rule: entity.Skip, DryRun: true})
		deploy(bundles.How{})

		_, err = w.Principals.SetMember(evil, team, "mallory", actor.Admin)
		is.NoErr(err)
		sam := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "sam", Superuser: true})
		_, err = w.Entities.Create(sam, entities.Entity{Kind: "query", Name: "Sam's"})
		is.NoErr(err)
		_, err = w.Principals.UpdateUser(evil, "sam", func(u *principals.User) error {
			u.MFA, u.AIConsent, u.GlobalPermissions.AI = true, true, true
			return nil
		})
		is.NoErr(err)
		is.NoErr(w.Principals.SetPasswordOf(t.Context(), "evil", "sam", "a long password"))
		w.undo(t, b.ID, "sam")
		r = deploy(bundles.How{DryRun: true})
		lost := slices.DeleteFunc(slices.Clone(r.Warnings), func(said string) bool { return !strings.HasPrefix(said, "Lost") })
		is.Equal(lost, []string{"Lost with 1 user: what hangs on it. The archive of what is replaced does not hold that."})
		is.True(strings.Contains(strings.Join(r.Warnings, "\n"), "sam owned 1 piece of content, which somebody else owns now."))
		is.Equal(r.Changes[0], bundles.Change{Action: "deleted", Key: entity.Key{Kind: "user", ID: "sam"}, Name: "sam"})

		_, err = w.Principals.UpdateUser(acme, "jo", func(u *principals.User) error { u.DisplayName = &called; return nil })
		is.NoErr(err)
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"acme"}, bundles.How{Changes: true}) // of one's own all is told
		is.NoErr(err)
		is.True(strings.Contains(fmt.Sprint(done[0].Changes), called))
	})
}
