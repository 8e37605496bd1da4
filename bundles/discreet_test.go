package bundles_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
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

// TestDeployTellsNothingOfUsers of the target: what they are called, who is a superuser, who is in
// which team, what they have.
func TestDeployTellsNothingOfUsers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		called := "Josephine"
		_, err := w.Principals.UpdateUser(evil, "jo", func(u *principals.User) error {
			u.DisplayName = &called
			return nil
		})
		is.NoErr(err)
		for _, name := range []string{"eve", "sam"} {
			_, err = w.Principals.CreateUser(acme, principals.User{Username: name, Enabled: true}, "")
			is.NoErr(err)
		}
		_, err = w.Principals.CreateUser(evil, principals.User{Username: "mallory", Enabled: true}, "")
		is.NoErr(err)
		team := w.team(t)
		_, err = w.Principals.PutMember(acme, team, "jo", actor.Member)
		is.NoErr(err)
		report := w.make(t, "acme", "report", "The plan", `{}`)
		_, err = w.Principals.Reassign(acme, "jo", "admin") // who is nobody in evil
		is.NoErr(err)
		b := w.bundle(t, "B", "user jo", "user eve", "user sam", "team "+team, "report "+report)
		deploy := func(how bundles.ImportOptions) bundles.ImportResult {
			how.Changes = true
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, how)
			is.NoErr(err)
			result := fmt.Sprintf("%+v", done[0].ImportResult)
			for _, secret := range []string{"Josephine", "mallory", "superuser here", "eve owns", "Member"} {
				if strings.Contains(result, secret) {
					t.Errorf("%s: %s", secret, result)
				}
			}
			return done[0].ImportResult
		}
		r := deploy(bundles.ImportOptions{DryRun: true})
		is.Equal(r.Warnings, []string{
			"3 users did not come along: a tenant's own people decide who its users are.",
			"1 member of teams did not come along: roles in a tenant are given by its own people.",
			"The owner of 1 new item did not come along: the tenant's own people own what is new there.",
		})
		named := map[string]string{}
		for _, c := range r.Changes {
			named[c.ID] = c.Name
		}
		is.Equal(r.ByKind["user"], bundles.Counts{Skipped: 3})
		is.Equal(named, map[string]string{"jo": "jo", "eve": "eve", "sam": "sam", team: "T", report: "The plan"})
		deploy(bundles.ImportOptions{Rule: entity.Skip, DryRun: true})
		deploy(bundles.ImportOptions{})

		_, err = w.Principals.PutMember(evil, team, "mallory", actor.Admin)
		is.NoErr(err)
		_, err = w.Principals.Reassign(evil, "eve", team)
		is.NoErr(err)
		w.undo(t, b.ID, team)
		r = deploy(bundles.ImportOptions{DryRun: true})
		is.Equal(r.Deleted, 0)
		is.True(slices.Contains(r.Warnings, "team "+team+" stays as it is.")) // and not why
		is.NoErr(w.Principals.DeleteMember(evil, team, "mallory"))
		r = deploy(bundles.ImportOptions{DryRun: true})
		is.Equal(strings.Contains(strings.Join(r.Warnings, "\n"), "owned"), false)
		is.Equal(r.Changes[0], bundles.Change{Action: "deleted", Key: entity.Key{Kind: "team", ID: team}, Name: team})

		_, err = w.Principals.UpdateUser(acme, "jo", func(u *principals.User) error {
			u.DisplayName = &called
			return nil
		})
		is.NoErr(err)
		// of one's own all is told
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"acme"}, bundles.ImportOptions{Changes: true})
		is.NoErr(err)
		is.True(strings.Contains(fmt.Sprint(done[0].Changes), called))
	})
}
