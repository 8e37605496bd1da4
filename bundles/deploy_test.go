package bundles_test

import (
	"bytes"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// meddling is a library transferer that does something when the first rows are exported.
type meddling struct {
	entity.FileTransferer
	meddle func()
}

func (m meddling) Export(ctx ctx, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	m.meddle()
	return m.FileTransferer.Export(ctx, tenant, ids)
}

// TestLeaveIsAskedAgain: a tenant that takes back its leave while the bundle is exported is not
// deployed to.
func TestLeaveIsAskedAgain(t *testing.T) {
	for _, targets := range [][]string{{"evil"}, {"evil", "acme"}, {"acme", "evil"}} {
		dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
			is, db := is.New(t), open(t)
			w := newWorld(t, db)
			b := w.bundle(t, "B", "library "+w.make(t, "acme", "library", "L", `{}`))
			revoke := sync.OnceFunc(func() {
				_, err := w.Tenants.Update(w.as(t, "evil"), func(s *tenants.Tenant) error {
					s.Settings.DeployFrom = nil
					return nil
				})
				is.NoErr(err)
			})
			s := opened(t, db, libraries(w, func(p entity.FileTransferer) entity.Transferer {
				return meddling{p, revoke}
			}))
			before := w.dump(t, "evil")
			done, err := s.Bundles.Deploy(w.as(t, "acme"), b.ID, targets, bundles.ImportOptions{})
			is.Equal(w.dump(t, "evil"), before)
			if targets[0] == "evil" { // nothing is deployed anywhere
				is.Equal(errs.CodeOf(err), errs.Forbidden)
				is.True(strings.Contains(errs.MessageOf(err), `"evil"`))
				is.True(!strings.Contains(w.dump(t, "acme"), "tc_deployments"))
				return
			}
			is.NoErr(err)
			is.NoErr(done[0].Err)
			is.Equal(errs.CodeOf(done[1].Err), errs.Forbidden)
		})
	}
}

// TestEntriesOfNothing: a deploy names the entries whose entities the source has no more, before it
// removes those of the target.
func TestEntriesOfNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		goes, stays := w.make(t, "acme", "report", "Goes", `{}`), w.make(t, "acme", "report", "Stays", `{}`)
		b := w.bundle(t, "B", "report "+goes, "global ", "report "+stays)
		deploy := func(how bundles.ImportOptions) bundles.ImportResult {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, how)
			is.NoErr(err)
			return done[0].ImportResult
		}
		is.Equal(deploy(bundles.ImportOptions{}).Warnings, []string{
			"The owner of 2 new items did not come along: the tenant's own people own what is new there.",
		})
		is.NoErr(w.Content.Delete(acme, "report", goes))
		for _, dry := range []bool{true, false} {
			r := deploy(bundles.ImportOptions{DryRun: dry})
			is.Equal(r.Deleted, 1)
			is.Equal(r.Warnings, []string{"The bundle's entry report " + goes + " refers to nothing any more."})
		}
	})
}

// TestTypesThatAreGone: so does an entry of a type that the host has no more.
func TestTypesThatAreGone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		w := newWorld(t, db)
		b := w.bundle(t, "B", "report "+w.make(t, "acme", "report", "R", `{}`))
		ctx, c := bunx.For(t.Context(), db, "acme")
		_, err := c.Exec(
			ctx, `UPDATE tc_bundle_entries SET type = 'gadget', entity_id = $1 WHERE tenant_id = $2`, "x-1",
			"acme",
		)
		is.NoErr(err)
		done, err := w.Bundles.Deploy(w.as(t, "acme"), b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(done[0].Warnings, []string{"The bundle's entry gadget x-1 refers to nothing any more."})
	})
}

// TestUsersOfOthersAreNotReplaced and so need not be kept, by a deploy that comes to somebody with
// another one's name.
func TestUsersOfOthersAreNotReplaced(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		_, err := w.Principals.CreateUser(acme, principals.User{Username: "eve"}, "")
		is.NoErr(err)
		b := w.bundle(t, "B", "user eve", "user jo")
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(done[0].Archive, nil)
	})
}

// TestImportOwnerInAnySpelling: the owner of an import is a user in any spelling of the name, or a
// team in either case of its id, and is stored as the user or team is.
func TestImportOwnerInAnySpelling(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		const id = "00000000-0000-7000-8000-000000000001"
		file := packed(t, map[string]string{"report " + id: `{"name": "R", "ownerId": "nobody"}`}, nil)
		evil := w.as(t, "evil")
		team, err := w.Principals.CreateTeam(evil, principals.Team{Name: "T"})
		is.NoErr(err)
		for owner, want := range map[string]string{"ＪO": "jo", team.ID: team.ID, strings.ToUpper(team.ID): team.ID} {
			_, err := w.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{Owner: owner})
			is.NoErr(err)
			is.Equal(w.owner(t, id), want)
			is.NoErr(w.Content.Delete(evil, "report", id))
		}
		foreign, err := w.Principals.CreateTeam(w.as(t, "acme"), principals.Team{Name: "T"})
		is.NoErr(err)
		_, err = w.Bundles.Import(
			evil, bytes.NewReader(file), bundles.ImportOptions{Owner: strings.ToUpper(foreign.ID)},
		)
		is.Equal(errs.MessageOf(err), "owner must be a user or team of the tenant")
	})
}
