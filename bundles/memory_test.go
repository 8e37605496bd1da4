package bundles_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver/kitchen"
	"github.com/tenantcontent/tenantcontent/internal/store/bundles"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// shipping is a world in which acme has a bundle of a user kim, a color and a recipe, which is the
// host's own kind.
type shipping struct {
	*world
	t       *testing.T
	recipes kitchen.Recipes
	bundle  bundles.Bundle
}

// eachShipping has deployed the bundle to evil, which has a user kim of its own, once.
func eachShipping(t *testing.T, test func(is *is.I, s *shipping)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		_, err := db.ExecContext(t.Context(), kitchen.Table)
		is.NoErr(err)
		recipes := kitchen.Recipes{DB: db}
		w := newWorld(t, db, func(c *tenantcontent.Config) {
			c.Entities, c.BundleDrivers = []entity.Type{recipes.Type()}, []bundles.Driver{recipes}
		})
		s := &shipping{world: w, t: t, recipes: recipes}
		s.own("acme", "acme's")
		_, err = w.Principals.CreateUser(w.as(t, "evil"), principals.User{Username: "kim", Enabled: true}, "")
		is.NoErr(err)
		s.bundle = w.bundle(t, "All", "user kim", "global ", "recipe dough")
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Created: 2, Skipped: 1})
		test(is, s)
	})
}

// own makes the three entities in a tenant.
func (s *shipping) own(tenant, title string) {
	s.t.Helper()
	is, ctx := is.New(s.t), s.as(s.t, tenant)
	_, err := s.Principals.CreateUser(ctx, principals.User{Username: "kim", DisplayName: &title, Enabled: true}, "")
	is.NoErr(err)
	_, err = s.Colors.Put(ctx, "brand", "#00ff00")
	is.NoErr(err)
	is.NoErr(s.recipes.Insert(ctx, kitchen.Recipe{TenantID: tenant, ID: "dough", Title: title}))
}

// delete removes them as their owners do, through no archive.
func (s *shipping) delete(tenant string) {
	s.t.Helper()
	is, ctx := is.New(s.t), s.as(s.t, tenant)
	is.NoErr(s.Principals.DeleteUser(ctx, "kim", ""))
	is.NoErr(s.Colors.Delete(ctx, "brand"))
	_, err := s.recipes.Remove(ctx, tenant, []string{"dough"})
	is.NoErr(err)
}

// there says which of them a tenant has.
func (s *shipping) there(tenant string) (there string) {
	s.t.Helper()
	is, ctx := is.New(s.t), s.as(s.t, tenant)
	_, err := s.Principals.User(ctx, "kim")
	_, other := s.Colors.Get(ctx, "brand")
	ids, err2 := s.recipes.IDs(ctx, tenant)
	is.NoErr(err2)
	return fmt.Sprint(err == nil, other == nil, len(ids) == 1)
}

// drop takes them out of the bundle and the source.
func (s *shipping) drop() {
	s.t.Helper()
	entries, err := s.Bundles.Entries(s.as(s.t, "acme"), s.bundle.ID, pageOf(10))
	is.New(s.t).NoErr(err)
	for _, e := range entries.Rows {
		if e.Type != "global" {
			is.New(s.t).NoErr(s.Bundles.DeleteEntry(s.as(s.t, "acme"), s.bundle.ID, e.ID))
		}
	}
	s.delete("acme")
}

func (s *shipping) deploy(how bundles.ImportOptions) bundles.ImportResult {
	s.t.Helper()
	done, err := s.Bundles.Deploy(s.as(s.t, "acme"), s.bundle.ID, []string{"evil"}, how)
	is.New(s.t).NoErr(err)
	return done[0].ImportResult
}

// TestDroppedIsRemoved also by a deploy that overwrites nothing, and when the tenant has changed it
// meanwhile; but users stay.
func TestDroppedIsRemoved(t *testing.T) {
	for _, rule := range []entity.Rule{entity.Overwrite, entity.Skip, entity.Fail} {
		eachShipping(t, func(is *is.I, s *shipping) {
			is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Updated: 2, Skipped: 1})
			_, err := s.Principals.UpdateUser(s.as(s.t, "evil"), "kim", func(u *principals.User) error {
				u.Enabled = false
				return nil
			})
			is.NoErr(err)
			_, err = s.Colors.Put(s.as(s.t, "evil"), "brand", "#0000ff")
			is.NoErr(err)
			s.drop()
			is.Equal(s.deploy(bundles.ImportOptions{Rule: rule}).Counts, bundles.Counts{Deleted: 2})
			is.Equal(s.there("evil"), "true false false")
			is.Equal(s.deploy(bundles.ImportOptions{Rule: rule}).Counts, bundles.Counts{})
		})
	}
}

// TestOwnInItsPlaceStays: what a tenant makes after it has deleted what came is its own, though it
// has the same key.
func TestOwnInItsPlaceStays(t *testing.T) {
	eachShipping(t, func(is *is.I, s *shipping) {
		s.delete("evil")
		s.own("evil", "evil's")
		s.drop()
		dry := s.deploy(bundles.ImportOptions{DryRun: true})
		r := s.deploy(bundles.ImportOptions{})
		is.Equal(dry, r)
		is.Equal(r.Counts, bundles.Counts{})
		is.Equal(r.Archive, nil)
		is.Equal(r.Warnings, []string{
			"color brand stays as it is.", "recipe dough stays as it is.",
		})
		is.Equal(s.there("evil"), "true true true")
		r = s.deploy(bundles.ImportOptions{}) // it is forgotten
		is.Equal(len(r.Warnings), 0)
		is.Equal(s.there("evil"), "true true true")
	})
}

// TestOwnInItsPlaceHere: in the caller's own tenant the reason is told.
func TestOwnInItsPlaceHere(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		_, err := w.Colors.Put(acme, "brand", "#ff0000")
		is.NoErr(err)
		b := w.bundle(t, "B", "user jo")
		other := bundles.Deployment{Key: entity.Key{Kind: "color", ID: "brand"}, Fingerprint: "of an earlier one"}
		is.NoErr(bunstore.New(w.db).SetDeployed(acme, "acme", "acme", b.ID, []bundles.Deployment{other}))
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"acme"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(
			done[0].ImportResult.Warnings,
			[]string{"color brand stays: it is not the one that the bundle brought."},
		)
		_, err = w.Colors.Get(acme, "brand")
		is.NoErr(err)
	})
}

// TestSkippedOwnStays: a deploy that finds a tenant's own entities leaves them, and does not make
// them the bundle's.
func TestSkippedOwnStays(t *testing.T) {
	for rule, counts := range map[entity.Rule]bundles.Counts{
		entity.Overwrite: {Skipped: 3},
		entity.Skip:      {Skipped: 3},
	} {
		eachShipping(t, func(is *is.I, s *shipping) {
			s.delete("evil")
			s.own("evil", "evil's")
			is.Equal(s.deploy(bundles.ImportOptions{Rule: rule}).Counts, counts)
			s.drop()
			is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{})
			is.Equal(s.there("evil"), "true true true")
		})
	}
}

// TestDeployedAgain: what a tenant has deleted comes again with the next deploy, except users, and
// is the bundle's.
func TestDeployedAgain(t *testing.T) {
	eachShipping(t, func(is *is.I, s *shipping) {
		s.delete("evil")
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Created: 2, Skipped: 1})
		is.Equal(s.there("evil"), "false true true") // no user comes
		s.drop()
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Deleted: 2})
	})
}

// TestDeletedIsNotCounted when a deploy does not ship it any more.
func TestDeletedIsNotCounted(t *testing.T) {
	eachShipping(t, func(is *is.I, s *shipping) {
		tag := s.make(t, "acme", "tag", "T", `{}`)
		_, err := s.Bundles.CreateEntry(s.as(t, "acme"), s.bundle.ID, bundles.Entry{Type: "tagged", EntityID: tag})
		is.NoErr(err)
		s.deploy(bundles.ImportOptions{})
		is.NoErr(s.Content.Delete(s.as(t, "evil"), "tag", tag))
		is.NoErr(s.Content.Delete(s.as(t, "acme"), "tag", tag))
		s.delete("evil")
		s.drop()
		r := s.deploy(bundles.ImportOptions{})
		is.Equal(r.Counts, bundles.Counts{})
		is.Equal(len(r.Warnings), 0)
	})
}

// TestDeployedAndRestored: an archive brings back the entity that it was. What a deploy removed is
// the tenant's own then.
func TestDeployedAndRestored(t *testing.T) {
	eachShipping(t, func(is *is.I, s *shipping) {
		evil := s.as(t, "evil")
		file := s.export(t, "evil", "", "user kim", "global ", "recipe dough")
		s.delete("evil")
		_, err := s.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{})
		is.NoErr(err)
		s.drop()
		r := s.deploy(bundles.ImportOptions{})
		is.Equal(r.Counts, bundles.Counts{Deleted: 2})
		_, err = s.Bundles.Import(evil, bytes.NewReader(s.fetch(t, "evil", r.Archive)), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{})
		is.Equal(s.there("evil"), "true true true")
	})
}

// TestTwoBundlesShipIt: it goes when neither ships it any more, whichever made it.
func TestTwoBundlesShipIt(t *testing.T) {
	eachShipping(t, func(is *is.I, s *shipping) {
		first := s.bundle
		s.bundle = s.world.bundle(t, "Other", "user kim", "global ", "recipe dough")
		second := s.bundle
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Updated: 2, Skipped: 1})
		s.bundle = first
		s.drop()
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{})
		is.Equal(s.there("evil"), "true true true")
		s.bundle = second
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Deleted: 2})
	})
}

// TestChangedHostPieceStays: nothing but its content tells an entity whose rows do not say when it
// was made.
func TestChangedHostPieceStays(t *testing.T) {
	eachShipping(t, func(is *is.I, s *shipping) {
		ctx, conn := tenantcontent.Conn(s.as(t, "evil"), s.db, "evil")
		_, err := conn.NewUpdate().Model(&kitchen.Recipe{
			TenantID: "evil",
			ID:       "dough",
			Title:    "Changed",
		}).WherePK().Exec(ctx)
		is.NoErr(err)
		s.drop()
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Deleted: 1})
		is.Equal(s.there("evil"), "true false true")
	})
}

// TestNoFormOfAKeyTells that it is not used again.
func TestNoFormOfAKeyTells(t *testing.T) {
	const id = "d41d8cd9-8f00-4204-a980-0998ecf8427e"
	keys := []string{id, strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "{" + id + "}", "urn:uuid:" + id}
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		b := w.bundle(t, "B", "global ")
		deploy := func() bundles.ImportResult {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			return done[0].ImportResult
		}
		for _, key := range append(keys, "stays the bundle's") {
			_, err := w.Colors.Put(acme, key, "#ff0000")
			is.NoErr(err)
		}
		deploy()
		for _, key := range keys {
			is.NoErr(w.Colors.Delete(evil, key))
			_, err := w.Colors.Put(evil, key, "#00ff00")
			is.NoErr(err)
		}
		for _, key := range append(keys, "stays the bundle's") {
			is.NoErr(w.Colors.Delete(acme, key))
		}
		r := deploy()
		is.Equal(r.Counts, bundles.Counts{Deleted: 1})
		is.Equal(len(r.Warnings), len(keys))
		for _, key := range keys {
			is.True(slices.Contains(r.Warnings, "color "+key+" stays as it is."))
			c, err := w.Colors.Get(evil, key)
			is.NoErr(err)
			is.Equal(c.Color, "#00ff00")
		}
	})
}

// TestSystemPieceStays: what a tenant gave to the system is not for bundles to remove.
func TestSystemPieceStays(t *testing.T) {
	eachShipping(t, func(is *is.I, s *shipping) {
		job := s.make(t, "acme", "job", "Nightly", `{}`)
		_, err := s.Bundles.CreateEntry(s.as(t, "acme"), s.bundle.ID, bundles.Entry{Type: "job", EntityID: job})
		is.NoErr(err)
		s.deploy(bundles.ImportOptions{})
		_, err = s.Content.Unchecked().SetSystem(t.Context(), "evil", "job", job, true)
		is.NoErr(err)
		is.NoErr(s.Content.Delete(s.as(t, "acme"), "job", job))
		is.Equal(s.deploy(bundles.ImportOptions{}).Counts, bundles.Counts{Updated: 2, Skipped: 1})
		_, err = s.Content.Get(s.as(t, "evil"), "job", job)
		is.NoErr(err)
	})
}
