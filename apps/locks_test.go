package apps_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/apps"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// counted returns a world on a database, and a Service over the same one whose statements are
// counted.
func counted(t *testing.T, whole *bun.DB) (w *world, s *apps.Service, db *bun.DB, statements *dbtest.Counter) {
	t.Helper()
	w = newWorld(t, whole)
	db, statements = dbtest.Counted(t, func(testing.TB) *bun.DB { return whole })
	return w, w.service(t, db), db, statements
}

// before returns a Service over a database that calls do once, before the first statement with a
// text.
func before(t *testing.T, w *world, db *bun.DB, text string, do func()) *apps.Service {
	t.Helper()
	done := false
	return w.service(t, dbtest.Watched(t, db, func(statement string) {
		if !done && strings.Contains(statement, text) {
			done = true
			do()
		}
	}))
}

// TestPurgeLeavesRestoredApp: an app that is restored while a purge looks at it either stays, or
// cannot be restored.
func TestPurgeLeavesRestoredApp(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w := newWorld(t, db)
	jo := as(t, "acme", "jo", actor.DataWizard)
	v := w.create(t, jo)
	is.NoErr(w.Delete(jo, v.ID))
	var restored error
	purge := before(t, w, db, "tc_app_shares", func() {
		ctx, cancel := context.WithTimeout(jo, 300*time.Millisecond) // it waits for the purge
		defer cancel()
		_, restored = w.Restore(ctx, v.ID)
	})
	purged := purge.Purge(jo, v.ID)
	is.True((restored == nil) != (purged == nil))
	_, err := w.Get(jo, v.ID)
	is.Equal(errors.Is(err, errs.NotFound), purged == nil)
}

// TestCopyChecksLockedApp: nobody copies an app by a share that has ended, or the draft of an app
// as what it no longer is.
func TestCopyChecksLockedApp(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w := newWorld(t, db)
	jo, mia := as(t, "acme", "jo", actor.Admin), as(t, "acme", "mia", actor.Admin)
	v := w.create(t, jo, func(a *apps.App) { a.Defn = json.RawMessage(`{"entryPoint":"x"}`) })
	_, err := w.PutShare(jo, v.ID, "mia", level(shares.Write))
	is.NoErr(err)
	late := before(t, w, db, "FOR NO KEY UPDATE", func() { is.NoErr(w.DeleteShare(jo, v.ID, "mia")) })
	_, err = late.Copy(mia, v.ID, nil)
	is.True(errors.Is(err, errs.NotFound))

	d, err := w.Edit(jo, v.ID, false)
	is.NoErr(err)
	_, err = w.Copy(jo, d.ID, nil)
	is.Equal(errs.MessageOf(err), "This is the draft of an app: copy the app itself.")
}

// TestPrincipalsAreHeldFirst: a transaction that renames or removes a principal locks the principal
// before apps, and an app before its shares. In another order two transactions would wait for each
// other.
func TestPrincipalsAreHeldFirst(t *testing.T) {
	is := is.New(t)
	w, s, _, statements := counted(t, dbtest.Postgres(t))
	jo := as(t, "acme", "jo", actor.Admin)
	v := w.create(t, jo)
	_, err := w.PutShare(jo, v.ID, "al", level(shares.Use))
	is.NoErr(err)
	exported := func() (rows []entity.Row) {
		for row, err := range w.Unchecked().Type().Transferer.Export(jo, "acme", []string{v.ID}) {
			is.NoErr(err)
			rows = append(rows, row)
		}
		return rows
	}()
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"PutShare", func() error { return second(s.PutShare(jo, v.ID, "mia", level(shares.None))) }},
		{"DeleteShare", func() error { return s.DeleteShare(jo, v.ID, "mia") }},
		{"Sharing", func() error {
			return s.Sharing(jo, v.ID, nil, func(context.Context, string) error { return nil })
		}},
		{"SetFavorite", func() error { return second(s.SetFavorite(jo, v.ID, true)) }},
		{"SetFavorite false", func() error { return second(s.SetFavorite(jo, v.ID, false)) }},
		{"Copy", func() error { return second(s.Copy(jo, v.ID, nil)) }},
		{"Edit", func() error { return second(s.Edit(jo, v.ID, false)) }},
		{"Import", func() error {
			_, _, err := s.Unchecked().Type().Transferer.Import(
				jo, "acme", exported, entity.ImportOptions{Rule: entity.Overwrite, Owner: "jo"},
			)
			return err
		}},
		{"SetOwner", func() error { return second(s.SetOwner(jo, v.ID, "mia")) }},
	} {
		statements.Take()
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		all := statements.Take()
		held := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "FOR KEY SHARE") })
		locked := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "FOR NO KEY UPDATE") })
		if held < 0 || locked < 0 || locked < held {
			t.Errorf(
				"%s holds the principal with statement %d and locks the app with statement %d", c.name, held,
				locked,
			)
		}
	}

	statements.Take()
	is.NoErr(s.Unchecked().Hooks().Deleted(t.Context(), "acme", entity.Key{Kind: entity.KindUser, ID: "al"}))
	all := statements.Take()
	locked := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "FOR NO KEY UPDATE") })
	removed := slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, "DELETE") })
	is.True(locked >= 0 && locked < removed)
}

// TestShareWithNobody: only principals of the tenant get shares.
func TestShareWithNobody(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo := as(t, "acme", "jo", actor.Admin)
	v := w.create(t, jo)
	for _, nobody := range []string{"nobody", "", "JO"} {
		_, err := w.PutShare(jo, v.ID, nobody, level(shares.Use))
		is.True(errors.Is(err, errs.Invalid))
		is.True(strings.Contains(errs.MessageOf(err), "principalId"))
	}
	all, err := w.Shares(jo, v.ID)
	is.NoErr(err)
	is.Equal(len(all), 0)
}

// TestFailedLookupIsNoMissingTag: what fails in the program is no fault of the caller.
func TestFailedLookupIsNoMissingTag(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo, fault := as(t, "acme", "jo", actor.Admin), errors.New("fault")
	const id = "00000000-0000-7000-8000-00000000000a"
	v := w.create(t, jo)
	lookup := func(context.Context, string, string) (entity.Ref, error) { return entity.Ref{}, fault }
	is.NoErr(w.registry.Add(entity.Type{Kind: "tag", Lookup: lookup}, entity.Type{Kind: "dataset", Lookup: lookup}))
	is.Equal(w.PutTag(jo, v.ID, id), fault)
	_, err := w.PutDataset(jo, v.ID, "sales", func(d *apps.Dataset) { d.DatasetID = id })
	is.Equal(err, fault)
	_, err = w.Create(jo, apps.App{
		Type:     apps.Report,
		Name:     "x",
		Datasets: []apps.Dataset{{Alias: "sales", DatasetID: id}},
	})
	is.Equal(err, fault)
}

// TestReadsWithoutDefn: a definition may have 1 MiB, so only what shows or changes it reads it.
func TestReadsWithoutDefn(t *testing.T) {
	is := is.New(t)
	w, s, _, statements := counted(t, dbtest.SQLite(t))
	kind := s.Unchecked().Type()
	jo := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
	v := w.create(t, jo)
	w.put(t, jo, v.ID, "a", "1")
	d, err := w.Edit(jo, v.ID, false)
	is.NoErr(err)
	is.NoErr(w.Visit(jo, v.ID))
	files := kind.Transferer.(entity.FileTransferer)
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"Files", func() error { return second(s.Files(jo, v.ID, paging.Query{Limit: 1})) }},
		{"Files of a draft", func() error { return second(s.Files(jo, d.ID, paging.Query{Limit: 1})) }},
		{"Compare", func() error { return second(s.Compare(jo, d.ID, nil)) }},
		{"Shares", func() error { return second(s.Shares(jo, v.ID)) }},
		{"Environment", func() error { return second(s.Variables(jo, v.ID)) }},
		{"Tags", func() error { return second(s.Tags(jo, v.ID)) }},
		{"Ref", func() error { return second(s.Ref(jo, v.ID)) }},
		{"Stats", func() error { return second(s.Stats(jo, v.ID)) }},
		{"Roles", func() error { return second(s.Roles(jo, v.ID)) }},
		{"OfLibrary", func() error { return second(s.OfLibrary(jo, v.LibraryID)) }},
		{"Drafts", func() error { return second(s.Drafts(jo)) }},
		{"Recent", func() error { return second(s.Recent(jo)) }},
		{"All", func() error {
			for _, err := range s.All(jo) {
				is.NoErr(err)
			}
			return nil
		}},
		{"Lookup", func() error { return second(kind.Lookup(jo, "acme", v.ID)) }},
		{"files of an export", func() error { return second(files.Files(jo, "acme", v.ID)) }},
	} {
		statements.Take()
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, statement := range statements.Take() {
			if strings.Contains(statement, " defn,") || strings.Contains(statement, "a.defn,") {
				t.Errorf("%s reads Defn: %s", c.name, statement)
			}
		}
	}
}

// TestManagedApp: a caller that may write an app that came from another tenant gets an error that
// names where to change it; another caller gets one that names what it needs.
func TestManagedApp(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	w := newWorld(t, db)
	jo := as(t, "acme", "jo", actor.Designer)
	v := w.create(t, jo)
	_, err := bunstore.New(db).Update(t.Context(), "acme", apps.Lookup{ID: v.ID}, func(app *apps.App) error {
		app.IsManaged = true
		return nil
	})
	is.NoErr(err)
	for role, want := range map[actor.Role]string{
		actor.Designer: "This app came from another tenant: change it there and deploy it again.",
		actor.Member: "This needs the role designer at a report app and admin at a full app, and to own the app " +
			"or to have a share with accessLevel 2. " + actor.RoleHint,
	} {
		_, err := w.Edit(as(t, "acme", "jo", role), v.ID, false)
		is.Equal(errs.MessageOf(err), want)
	}
}

// TestReassignLocksAppsFirst and then their drafts, as a commit does: in another order the two
// would wait for each other.
func TestReassignLocksAppsFirst(t *testing.T) {
	is := is.New(t)
	w, s, db, statements := counted(t, dbtest.Postgres(t))
	jo := as(t, "acme", "jo", actor.Admin)
	_, err := w.Edit(jo, w.create(t, jo).ID, false)
	is.NoErr(err)
	statements.Take()
	is.NoErr(bunstore.New(db).InTx(t.Context(), func(ctx context.Context) error {
		return second(s.Unchecked().Type().Reassign(ctx, "acme", "jo", "mia"))
	}))
	var locks []string
	for _, statement := range statements.Take() {
		if strings.Contains(statement, "FOR NO KEY UPDATE") {
			locks = append(locks, statement)
		}
	}
	is.True(len(locks) > 1)
	is.True(strings.Contains(locks[0], "editing_id IS NULL"))
	is.True(strings.Contains(locks[1], "editing_id IS NOT NULL"))
}

// TestViewsOfLockedApp are written while somebody changes the app. A failed write does not prevent
// a read.
func TestViewsOfLockedApp(t *testing.T) {
	is, db := is.New(t), dbtest.Postgres(t)
	w, store := newWorld(t, db), bunstore.New(db)
	jo := as(t, "acme", "jo", actor.Admin)
	v, other := w.create(t, jo), w.create(t, jo)
	is.NoErr(store.InTx(t.Context(), func(ctx context.Context) error {
		_, err := store.Lock(ctx, "acme", apps.Lookup{ID: v.ID})
		is.NoErr(err)
		is.NoErr(w.Visit(jo, v.ID))
		all, err := w.Recent(jo)
		is.NoErr(err)
		is.Equal(len(all), 1)

		ctx, c := bunx.For(ctx, db, "acme")
		is.NoErr(c.One(
			ctx, "App", `SELECT id FROM tc_apps WHERE tenant_id = 'acme' AND id = $1 FOR UPDATE`,
			[]any{other.ID}, new(string),
		))
		is.NoErr(w.Visit(jo, other.ID))
		all, err = w.Recent(jo)
		is.NoErr(err)
		is.Equal(len(all), 1)
		return nil
	}))
	all, err := w.Recent(jo)
	is.NoErr(err)
	is.Equal(len(all), 2) // it was kept
}

// TestDiscardManagedDraft: a draft of an app that a deploy has overwritten can be removed.
func TestDiscardManagedDraft(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		w := newWorld(t, db)
		jo := as(t, "acme", "jo", actor.Admin)
		v := w.create(t, jo)
		_, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		_, err = bunstore.New(db).Update(jo, "acme", apps.Lookup{ID: v.ID}, func(app *apps.App) error {
			app.IsManaged = true
			return nil
		})
		is.NoErr(err)
		_, err = w.Commit(jo, v.ID, apps.PublishOptions{Force: true})
		is.True(errors.Is(err, errs.Forbidden))
		is.NoErr(w.Discard(jo, v.ID))
	})
}

// TestDraftPublishesSource: what a draft has of source and sourceId is in its diff and is
// published.
func TestDraftPublishesSource(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Admin)
		v := w.create(t, jo)
		d, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		source, id := "github", "acme/sales"
		from, at := &source, &id
		_, err = w.Update(jo, d.ID, apps.Edit{Source: &from, SourceID: &at})
		is.NoErr(err)
		diff, err := w.Diff(jo, v.ID)
		is.NoErr(err)
		is.Equal(len(diff.Fields), 2)
		is.Equal(diff.Fields[0], drafts.FieldDiff{
			Name:   "source",
			Before: json.RawMessage(`null`),
			After:  json.RawMessage(`"github"`),
		})
		v, err = w.Commit(jo, v.ID, apps.PublishOptions{})
		is.NoErr(err)
		is.Equal(*v.Source+" "+*v.SourceID, "github acme/sales")
	})
}
