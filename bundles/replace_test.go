package bundles_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// fetch reads the archive that a restore or deploy kept, as a superuser of its tenant.
func (w *world) fetch(t testing.TB, tenant string, kept *bundles.Backup) []byte {
	t.Helper()
	is := is.New(t)
	is.True(kept != nil)
	is.Equal(kept.ExpiresAt.Sub(kept.CreatedAt).Hours(), 7*24.0)
	_, r, err := w.Downloads.Open(w.as(t, tenant), kept.ID)
	is.NoErr(err)
	content, err := io.ReadAll(r)
	is.NoErr(err)
	is.NoErr(r.Close())
	return content
}

func (w *world) names(t testing.TB, tenant string, kind entity.Kind) string {
	t.Helper()
	page, err := w.Content.List(w.as(t, tenant), kind, pageOf(100))
	is.New(t).NoErr(err)
	var names []string
	for _, e := range page.Rows {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// TestRestore makes each kind of the archive exactly the archive's, leaves other kinds alone, and
// can be taken back.
func TestRestore(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		stays := w.make(t, "acme", "tag", "Stays", `{"v": 1}`)
		goes := w.make(t, "acme", "tag", "Goes", `{}`)
		w.make(t, "acme", "report", "Untouched", `{}`)
		library := w.make(t, "acme", "library", "L", `{}`)
		_, err := w.Content.PutFile(acme, library, entity.File{Path: "a"}, strings.NewReader("a"))
		is.NoErr(err)
		old := w.export(t, "acme", "", "tagged "+stays, "tagged "+goes, "library "+library)
		oldState := w.dump(t, "acme")

		is.NoErr(w.Content.Delete(acme, "tag", goes))
		circle(t, w, "tag", stays, `{"v": 2}`)
		other := w.make(t, "acme", "tag", "Goes", `{}`) // the slug of the one that comes back
		is.NoErr(w.Content.DeleteFile(acme, library, "a"))
		r, err := w.Bundles.Restore(acme, bytes.NewReader(old), bundles.ImportOptions{Changes: true})
		is.NoErr(err)
		is.Equal(r.Counts, bundles.Counts{Created: 1, Updated: 2, Deleted: 1})
		is.Equal(r.Changes[0], bundles.Change{Action: "deleted", Key: entity.Key{Kind: "tag", ID: other}, Name: "Goes"})
		is.Equal(w.export(t, "acme", "", "tagged "+stays, "tagged "+goes, "library "+library), old)
		is.Equal(w.names(t, "acme", "report"), "Untouched")
		// All is as it was, except for the archive that was kept.
		is.Equal(
			strings.Join(lines(w.dump(t, "acme"), "tc_blobs", "tc_downloads"), "\n"),
			strings.Join(lines(oldState, "tc_blobs", "tc_downloads"), "\n"),
		)

		kept := w.fetch(t, "acme", r.Archive)
		header, all := unpacked(t, kept)
		is.Equal(header.Counts, map[entity.Kind]int{"tag": 2, "library": 1})
		is.Equal(len(all), 3)
		_, err = w.Bundles.Restore(acme, bytes.NewReader(kept), bundles.ImportOptions{})
		is.NoErr(err)
		tag, err := w.Content.Get(acme, "tag", stays)
		is.NoErr(err)
		is.Equal(string(tag.Data), `{"v":2}`)
		_, err = w.Content.Get(acme, "tag", other)
		is.NoErr(err)
		_, err = w.Content.Get(acme, "tag", goes)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	})
}

// lines are those of a dump that are not of some tables.
func lines(dump string, tables ...string) (all []string) {
	for line := range strings.Lines(dump) {
		table, _, _ := strings.Cut(line, " ")
		skip := false
		for _, other := range tables {
			skip = skip || table == other
		}
		if !skip {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// TestRestoreEmpties a kind that the archive counts and has no rows of.
func TestRestoreEmpties(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		w.make(t, "acme", "tag", "Goes", `{}`)
		w.make(t, "acme", "report", "Stays", `{}`)
		r, err := w.Bundles.Restore(
			w.as(t, "acme"), bytes.NewReader(packed(t, nil, map[entity.Kind]int{"tag": 0, "color": 0})),
			bundles.ImportOptions{},
		)
		is.NoErr(err)
		is.Equal(r.Deleted, 1)
		is.Equal(w.names(t, "acme", "tag")+w.names(t, "acme", "report"), "Stays")
		kept := w.fetch(t, "acme", r.Archive)
		header, _ := unpacked(t, kept)
		is.Equal(header.Counts, map[entity.Kind]int{"tag": 1, "color": 0})
		_, err = w.Bundles.Restore(w.as(t, "acme"), bytes.NewReader(kept), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(w.names(t, "acme", "tag"), "Goes")
	})
}

// TestRestoreOfUsers keeps whoever restores and the last superuser, and what the others owned.
func TestRestoreOfUsers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		tag := w.make(t, "acme", "tag", "Orphan", `{}`) // jo's
		file := packed(t, map[string]string{"user newcomer": `{}`}, nil)

		r, err := w.Bundles.Restore(w.as(t, "acme"), bytes.NewReader(file), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(r.Counts, bundles.Counts{Created: 1, Deleted: 1})
		is.Equal(r.Warnings, []string{
			"The user admin stays: it is yours.",
			"jo owned 1 item of content, which admin owns now. The archive of what is replaced does not give 1 of " +
				"them back.",
			"Lost with 1 user: 1 password. The archive of what is replaced does not hold them.",
		})
		e, err := w.Content.Get(w.as(t, "acme"), "tag", tag)
		is.NoErr(err)
		is.Equal(e.OwnerID, "admin")

		host := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "a host", Superuser: true}) // is no user
		r, err = w.Bundles.Restore(
			host, bytes.NewReader(packed(t, map[string]string{"user third": `{}`}, nil)),
			bundles.ImportOptions{},
		)
		is.NoErr(err)
		is.Equal(r.Warnings, []string{"The user admin stays: it is the last superuser."})
		is.Equal(r.Deleted, 1)
		_, err = w.Principals.User(w.as(t, "acme"), "admin")
		is.NoErr(err)

		_, err = w.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "second", Password: "open sesame",
		})
		is.NoErr(err)
		r, err = w.Bundles.Restore(
			w.as(t, "acme"), bytes.NewReader(packed(t, map[string]string{"user second": `{}`}, nil)),
			bundles.ImportOptions{},
		)
		is.NoErr(err)
		is.Equal(r.Warnings, []string{
			"The user admin stays: it is yours.", "user second is a superuser here and stays as it is.",
		})
		u, err := w.Principals.User(w.as(t, "acme"), "second")
		is.NoErr(err)
		is.True(u.Superuser) // as it was here
	})
}

// TestDeploy brings a bundle into tenants that let it, removes what it brought and ships no more,
// and nothing else.
func TestDeploy(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		one, two := w.make(t, "acme", "tag", "One", `{"v": 1}`), w.make(t, "acme", "tag", "Two", `{}`)
		own := w.make(t, "evil", "tag", "Own", `{}`)
		b := w.bundle(t, "Tags", "tagged "+one, "tagged "+two)
		deploy := func() bundles.ImportResult {
			t.Helper()
			done, err := w.Bundles.Deploy(acme, b.Slug, []string{"evil", "evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			is.Equal(len(done), 1)
			is.Equal(done[0].Tenant, "evil")
			is.NoErr(done[0].Err)
			return done[0].ImportResult
		}
		r := deploy()
		is.Equal(r.Counts, bundles.Counts{Created: 2})
		is.Equal(r.Archive, nil) // nothing was replaced
		e, err := w.Content.Get(w.as(t, "evil"), "tag", one)
		is.NoErr(err)
		is.Equal(e.OwnerID, "eve")

		circle(t, w, "tag", one, `{"v": 2}`)
		r = deploy()
		is.Equal(r.Counts, bundles.Counts{Updated: 2})
		kept := w.fetch(t, "evil", r.Archive)
		_, all := unpacked(t, kept)
		is.True(strings.Contains(all["tag "+one], `"v":1`)) // what it replaced
		is.Equal(len(all), 2)
		_, err = w.Downloads.Get(acme, r.Archive.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound) // it is the other tenant's

		entries, err := w.Bundles.Entries(acme, b.ID, pageOf(10))
		is.NoErr(err)
		for _, e := range entries.Rows {
			if e.EntityID == two {
				is.NoErr(w.Bundles.DeleteEntry(acme, b.ID, e.ID))
			}
		}
		r = deploy()
		is.Equal(r.Counts, bundles.Counts{Updated: 1, Deleted: 1})
		is.Equal(w.names(t, "evil", "tag"), "One Own")
		_, all = unpacked(t, w.fetch(t, "evil", r.Archive))
		is.Equal(len(all), 2) // the removed one too
		is.Equal(deploy().Counts, bundles.Counts{Updated: 1})

		// What was there before the deploy is neither overwritten nor removed.
		_, err = w.Bundles.Import(
			acme, bytes.NewReader(w.export(t, "evil", "", "tagged "+own)), bundles.ImportOptions{},
		)
		is.NoErr(err)
		mine, err := w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "tagged", EntityID: own})
		is.NoErr(err)
		is.Equal(deploy().Counts, bundles.Counts{Updated: 1, Skipped: 1})
		is.NoErr(w.Bundles.DeleteEntry(acme, b.ID, mine.ID))
		is.Equal(deploy().Counts, bundles.Counts{Updated: 1})
		is.Equal(w.names(t, "evil", "tag"), "One Own")

		// Nor is what another bundle brought too, as long as that ships it.
		other := w.bundle(t, "Other", "tagged "+two)
		_, err = w.Bundles.Deploy(acme, other.ID, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(w.names(t, "evil", "tag"), "One Own Two")
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"acme"}, bundles.ImportOptions{}) // into itself
		is.NoErr(err)
		is.Equal(done[0].Counts, bundles.Counts{Updated: 1})

		// With skip nothing is replaced, so nothing is kept.
		done, err = w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{Rule: entity.Skip})
		is.NoErr(err)
		is.Equal(done[0].Counts, bundles.Counts{Skipped: 1})
		is.Equal(done[0].Archive, nil)
	})
}

// TestDeployManifest brings entries without a bundle: it overwrites what it brought before, and
// removes nothing.
func TestDeployManifest(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		for _, name := range []string{"One", "Two"} {
			m := bundles.Manifest{
				Entries: []bundles.Entry{{Type: "tagged", EntityID: w.make(t, "acme", "tag", name, `{}`)}},
			}
			done, err := w.Bundles.DeployManifest(acme, m, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			is.Equal(done[0].Counts, bundles.Counts{Created: 1})
			done, err = w.Bundles.DeployManifest(acme, m, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			is.Equal(done[0].Counts, bundles.Counts{Updated: 1})
		}
		is.Equal(w.names(t, "evil", "tag"), "One Two")
	})
}

// TestDeployIsAsked: all tenants before anything is done anywhere.
func TestDeployIsAsked(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		b := w.bundle(t, "Tags", "tagged "+w.make(t, "acme", "tag", "One", `{}`))
		before := w.dump(t, "evil")
		for target, code := range map[string]errs.Code{
			"nobody": errs.Forbidden,
			"":       errs.Forbidden,
			"EVIL":   errs.Forbidden,
			"x\x00":  errs.Forbidden,
		} {
			_, err := w.Bundles.Deploy(acme, b.ID, []string{"evil", target}, bundles.ImportOptions{})
			is.Equal(errs.CodeOf(err), code)
			is.Equal(w.dump(t, "evil"), before)
		}
		_, err := w.Bundles.Deploy(w.as(t, "evil"), w.bundleIn(t, "evil").ID, []string{"acme"}, bundles.ImportOptions{})
		is.Equal(errs.CodeOf(err), errs.Forbidden) // the other way round it is not allowed
		is.True(strings.Contains(errs.MessageOf(err), `"acme"`))
		for _, tenants := range [][]string{nil, {}} {
			_, err = w.Bundles.Deploy(acme, b.ID, tenants, bundles.ImportOptions{})
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
		_, err = w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{Rule: "x"})
		is.Equal(errs.CodeOf(err), errs.Invalid)
		_, err = w.Bundles.Deploy(acme, "nothing", []string{"evil"}, bundles.ImportOptions{})
		is.Equal(errs.CodeOf(err), errs.NotFound)
	})
}

func (w *world) bundleIn(t testing.TB, tenant string) bundles.Bundle {
	t.Helper()
	b, err := w.Bundles.Create(w.as(t, tenant), bundles.Bundle{Name: "B"})
	is.New(t).NoErr(err)
	return b
}

// TestDeployFails in one tenant: the ones before keep it, and the answer says so; the first one's
// failure is the answer.
func TestDeployFails(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		b := w.bundle(t, "Tags", "tagged "+w.make(t, "acme", "tag", "One", `{}`))
		_, err := w.Tenants.Unchecked().Add(t.Context(), tenants.Tenant{
			ID:       "other",
			Settings: tenants.Settings{DeployFrom: tenants.Sources("acme")},
		})
		is.NoErr(err)
		_, err = w.Bundles.Deploy(acme, b.ID, []string{"other"}, bundles.ImportOptions{})
		is.Equal(
			errs.MessageOf(err),
			`The tenant "other" has nobody to own what comes: it needs a superuser, or a user in its deployFrom.`,
		)
		_, err = w.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "other", Username: "olga", Password: "open sesame",
		})
		is.NoErr(err)
		_, err = w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		before := w.dump(t, "evil")
		how := bundles.ImportOptions{Rule: entity.Fail} // evil has the tag
		_, err = w.Bundles.Deploy(acme, b.ID, []string{"evil", "other"}, how)
		is.Equal(errs.CodeOf(err), errs.Conflict)
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"other", "evil"}, how)
		is.NoErr(err)
		is.NoErr(done[0].Err)
		is.Equal(done[0].Created, 1)
		is.Equal(errs.CodeOf(done[1].Err), errs.Conflict)
		is.Equal(w.dump(t, "evil"), before)
	})
}

// TestNobodyElse: members get nothing that is a superuser's, and nobody anything without an actor.
func TestNobodyElse(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		b := w.bundle(t, "Tags", "tagged "+w.make(t, "acme", "tag", "One", `{}`))
		before := w.dump(t, "acme")
		entries, err := w.Bundles.Entries(w.as(t, "acme"), b.ID, pageOf(1))
		is.NoErr(err)
		entry := entries.Rows[0].ID
		for actorCtx, code := range map[ctx]errs.Code{
			t.Context(): errs.Unauthenticated,
			actor.With(t.Context(), actor.Actor{
				Tenant: "acme",
				User:   "jo",
				AI:     true,
				Teams:  map[string]actor.Role{"x": actor.Admin},
			}): errs.Forbidden,
		} {
			how, tenants, m := bundles.ImportOptions{}, []string{"acme"}, bundles.Manifest{
				Entries: []bundles.Entry{{Type: "global"}},
			}
			for n, call := range []func() error{
				func() error { _, err := w.Bundles.Create(actorCtx, bundles.Bundle{Name: "x"}); return err },
				func() error {
					_, err := w.Bundles.Update(actorCtx, b.ID, func(*bundles.Bundle) error { return nil })
					return err
				},
				func() error { return w.Bundles.Delete(actorCtx, b.ID) },
				func() error {
					_, err := w.Bundles.CreateEntry(actorCtx, b.ID, bundles.Entry{Type: "global"})
					return err
				},
				func() error { _, err := w.Bundles.UpdateEntry(actorCtx, b.ID, entry, nil); return err },
				func() error { return w.Bundles.DeleteEntry(actorCtx, b.ID, entry) },
				func() error { _, err := w.Bundles.Export(actorCtx, b.ID); return err },
				func() error { _, err := w.Bundles.ExportManifest(actorCtx, m); return err },
				func() error { _, err := w.Bundles.Import(actorCtx, strings.NewReader(""), how); return err },
				func() error { _, err := w.Bundles.Restore(actorCtx, strings.NewReader(""), how); return err },
				func() error { _, err := w.Bundles.Deploy(actorCtx, b.ID, tenants, how); return err },
				func() error { _, err := w.Bundles.DeployManifest(actorCtx, m, tenants, how); return err },
			} {
				if got := errs.CodeOf(call()); got != code {
					t.Errorf("call %d: %s", n, got)
				}
			}
			reads := []error{}
			_, err := w.Bundles.Get(actorCtx, b.ID)
			reads = append(reads, err)
			_, err = w.Bundles.List(actorCtx, pageOf(1))
			reads = append(reads, err)
			_, err = paging.Collect(w.Bundles.All(actorCtx))
			reads = append(reads, err)
			_, err = w.Bundles.Entries(actorCtx, b.ID, pageOf(1))
			reads = append(reads, err)
			_, err = w.Bundles.Entry(actorCtx, b.ID, entry)
			reads = append(reads, err)
			_, err = w.Bundles.Drivers(actorCtx)
			reads = append(reads, err)
			_, err = w.Bundles.Driver(actorCtx, "tagged")
			reads = append(reads, err)
			for n, err := range reads { // are any session's
				if (err == nil) != (code == errs.Forbidden) {
					t.Errorf("read %d: %v", n, err)
				}
			}
		}
		is.Equal(w.dump(t, "acme"), before)
	})
}

// TestSystemJobs and drafts stay out of bundles.
func TestSystemJobs(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		job := w.make(t, "acme", "job", "Nightly", `{}`)
		b := w.bundle(t, "Jobs")
		_, err := w.Content.Unchecked().SetSystem(t.Context(), "acme", "job", job, true)
		is.NoErr(err)
		_, err = w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "job", EntityID: job})
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.Equal(errs.MessageOf(err), "System jobs cannot be added to bundles")
		report := w.make(t, "acme", "report", "R", `{}`)
		draft, err := w.Content.Create(acme, content.Entity{Kind: "report", Name: "Draft", EditingID: &report})
		is.NoErr(err)
		if draft.EditingID != nil {
			_, err = w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "report", EntityID: draft.ID})
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
	})
}

// TestSizeIsBounded: an archive that is sent may have so many bytes and no more.
func TestSizeIsBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		file := w.export(t, "acme", "", "tagged "+w.make(t, "acme", "tag", "One", `{}`))
		registry := entity.NewRegistry()
		is.NoErr(registry.Add(w.Content.Unchecked().Types()...))
		for size, code := range map[int64]errs.Code{
			int64(len(file)):     errs.Unauthenticated,
			int64(len(file)) - 1: errs.TooLarge,
		} {
			s, err := bundles.New(bundles.Options{
				Content: registry,
				Size:    size,
				Limits:  archive.Limits{},
				Store:   panicking{},
			})
			is.NoErr(err)
			_, err = s.Import(w.as(t, "evil"), io.MultiReader(bytes.NewReader(file)), bundles.ImportOptions{})
			is.Equal(errs.CodeOf(err), code)
		}
	})
}

// panicking is a Store that an import may not reach.
type panicking struct{ bundles.Store }

func (panicking) InTx(ctx, func(ctx) error) error { return errs.New(errs.Unauthenticated, "reached") }

func (panicking) InTransaction(ctx) bool { return false }
