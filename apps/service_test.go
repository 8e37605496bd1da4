package apps_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/store/apps"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	librarystore "github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// people is a Directory.
type people []string

func (p people) Known(_ context.Context, _ string, ids []string) (map[string]bool, error) {
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = slices.Contains(p, id)
	}
	return known, nil
}

// world is a Service with a clock that a test moves.
type world struct {
	*apps.Service
	registry *entity.Registry
	now      time.Time
	licensed bool
	n        int

	manifests *libraries.Files // of deployed apps
}

func (w *world) newID() string {
	w.n++
	return fmt.Sprintf("00000000-0000-7000-8000-%012d", w.n)
}

func newWorld(t testing.TB, db *bun.DB) *world {
	t.Helper()
	dbtest.People(t, db, "jo", "mia", "al", team)
	w := &world{registry: entity.NewRegistry(), now: time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC), licensed: true}
	w.Service = w.service(t, db)
	return w
}

// service returns a Service of the world over a database.
func (w *world) service(t testing.TB, db *bun.DB) *apps.Service {
	t.Helper()
	clock := func() time.Time { return w.now }
	keys, err := keyring.Parse(keyring.Generate())
	is.New(t).NoErr(err)
	filesOf := func(kind entity.Kind) *libraries.Files {
		return libraries.New(libraries.Options{
			Store: librarystore.New(db, kind),
			Blobs: blobstore.New(db),
			Limit: 1 << 20,
			Now:   clock,
		})
	}
	w.manifests = filesOf("app-manifest")
	return apps.New(apps.Options{
		Store: bunstore.New(db), Files: filesOf(apps.Kind), Deployed: w.manifests,
		MaxFile: 100, Directory: people{"jo", "mia", "al", team}, Keys: keys,
		Licensed: func(context.Context, string, string) (bool, error) { return w.licensed, nil },
		CanonicalName: func(_ context.Context, _, name string) (string, error) {
			if strings.EqualFold(name, "mia") {
				name = "mia"
			}
			return name, nil
		},
		Registry: w.registry, Now: clock, NewID: w.newID,
	})
}

// as is the context of a user of a tenant with a role; session tells credentials of one user apart.
func as(t testing.TB, tenant, user string, role actor.Role, session ...string) context.Context {
	a := actor.Actor{Tenant: tenant, User: user, Teams: map[string]actor.Role{"crew": role}}
	if len(session) > 0 {
		a.Session = session[0]
	}
	return actor.With(t.Context(), a)
}

func (w *world) create(t testing.TB, ctx context.Context, change ...func(*apps.App)) apps.Shown {
	t.Helper()
	in := apps.App{Type: apps.Report, Name: "Sales"}
	for _, f := range change {
		f(&in)
	}
	v, err := w.Create(ctx, in)
	is.New(t).NoErr(err)
	return v
}

// level returns an edit of a share.
func level(l shares.Level) func(*shares.Share) { return func(s *shares.Share) { s.Level = l } }

func (w *world) put(t testing.TB, ctx context.Context, id, path, text string) {
	t.Helper()
	_, err := w.PutFile(ctx, id, entity.File{Path: path}, strings.NewReader(text))
	is.New(t).NoErr(err)
}

func (w *world) read(t testing.TB, ctx context.Context, id, path string) string {
	t.Helper()
	_, r, err := w.OpenFile(ctx, id, path)
	if errors.Is(err, errs.NotFound) {
		return ""
	}
	is := is.New(t)
	is.NoErr(err)
	raw, err := io.ReadAll(r)
	is.NoErr(err)
	is.NoErr(r.Close())
	return string(raw)
}

// TestEntryPoint: the entry point of a definition is the path of a file.
func TestEntryPoint(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Designer)
		v := w.create(t, jo)
		for entryPoint, ok := range map[string]bool{
			`"index.html"`: true, `"dist/ä b.html"`: true, `null`: true, `""`: false,
			`"/index.html"`: false, `"./index.html"`: false, `"../index.html"`: false, `"a/../b.html"`: false,
			`"a//b.html"`: false, `"a/"`: false, `"."`: false, `".."`: false,
			`"a\\b.html"`: false, `"a\u0000.html"`: false, `"a\n.html"`: false, `"a\u0308.html"`: false,
			`"` + strings.Repeat("a", 1025) + `"`: false, `5`: false, `["a.html"]`: false, `{}`: false, `true`: false,
		} {
			defn := json.RawMessage(`{"entryPoint": ` + entryPoint + `}`)
			_, err := w.Update(jo, v.ID, apps.Edit{Defn: defn})
			_, atOnce := w.Create(jo, apps.App{Type: apps.Report, Name: "X", Defn: defn})
			for _, err := range []error{err, atOnce} {
				if ok {
					is.NoErr(err)
					continue
				}
				is.Equal(errs.CodeOf(err), errs.Invalid)
				is.True(strings.HasPrefix(errs.MessageOf(err), "defn.entryPoint"))
			}
		}
	})
}

func TestCreate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Designer)
		slug := "sales"
		v, err := w.Create(jo, apps.App{
			Type: apps.Report,
			Name: " Sales ",
			Slug: &slug,
			Defn: json.RawMessage(`{"entryPoint": "index.html", "env": {"KEY": "geheim"}}`),
		})
		is.NoErr(err)
		is.Equal(v.Name, "Sales")
		is.Equal(v.NaturalID(), "jo:sales")
		is.Equal(string(v.Defn), `{"entryPoint":"index.html","env":{"KEY":"********"}}`)
		is.True(!strings.Contains(v.Sealed, "geheim"))
		is.Equal(v.DefnUpdatedAt, nil)
		is.Equal(v.ContentModifiedAt, nil)
		again, err := w.Get(jo, "jo:sales")
		is.NoErr(err)
		is.Equal(again, v)

		_, err = w.Create(jo, apps.App{Type: apps.Report, Name: "x", Slug: &slug})
		is.True(errors.Is(err, errs.Conflict))
		for _, c := range []struct {
			in   apps.App
			role actor.Role
			want string
		}{
			{apps.App{Name: "x"}, actor.Admin, "type must be report or app"},
			{apps.App{Type: "report"}, actor.Admin, "name must be 1 to 255 characters without control characters"},
			{apps.App{Type: apps.Full, Name: "x"}, actor.Publisher, "This needs the role admin. " + actor.RoleHint},
			{
				apps.App{Type: apps.Report, Name: "x"}, actor.Member,
				"This needs the role designer or a higher one. " + actor.RoleHint,
			},
			{
				apps.App{Type: apps.Report, Name: "x", Defn: json.RawMessage(`[]`)}, actor.Admin,
				"defn must be a JSON object",
			},
			{
				apps.App{Type: apps.Report, Name: "x", Settings: json.RawMessage(`1`)}, actor.Admin,
				"settings must be a JSON object",
			},
			{
				apps.App{Type: apps.Report, Name: "x", Defn: json.RawMessage(`{"env":{"A":1}}`)}, actor.Admin,
				"defn.env must be an object of texts",
			},
			{
				apps.App{Type: apps.Report, Name: "x", Defn: json.RawMessage(`{"env":{"A":"********"}}`)},
				actor.Admin, "defn.env.A: ******** stands for a value that is there already, and there is none",
			},
			{
				apps.App{Type: apps.Report, Name: "x", Datasets: []apps.Dataset{{Alias: "1a", DatasetID: team}}},
				actor.Admin,
				`datasets: alias "1a" must be 1 to 128 letters, digits and underscores and not begin with a digit`,
			},
		} {
			_, err := w.Create(as(t, "acme", "jo", c.role), c.in)
			is.Equal(errs.MessageOf(err), c.want)
		}
		w.licensed = false // which comes before the role
		_, err = w.Create(as(t, "acme", "jo", actor.Member), apps.App{Type: apps.Full, Name: "x"})
		is.Equal(
			errs.MessageOf(err),
			"This tenant has no license for apps of the type app; those of the type report need none. The "+
				"operator of this server adds it: tenantcontent tenant license acme --add apps",
		)
	})
}

// TestCreateFindsDatasetsAtOnce: one look-up finds all datasets; a draft cannot be bound.
func TestCreateFindsDatasetsAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		first, second, draft, none := w.newID(), w.newID(), w.newID(), w.newID()
		var asked [][]string
		is.NoErr(w.registry.Add(entity.Type{Kind: "dataset",
			Find: func(_ context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
				asked = append(asked, ids)
				return map[string]entity.Ref{
					first:  {ID: first},
					second: {ID: second},
					draft:  {ID: draft, Draft: true},
				}, nil
			}}))
		jo := as(t, "acme", "jo", actor.Designer)
		bound := func(ids ...string) apps.App {
			in := apps.App{Type: apps.Report, Name: "x"}
			for i, id := range ids {
				in.Datasets = append(in.Datasets, apps.Dataset{Alias: fmt.Sprint("a", i), DatasetID: id})
			}
			return in
		}
		_, err := w.Create(jo, bound(first, second))
		is.NoErr(err)
		is.Equal(asked, [][]string{{first, second}})
		for _, id := range []string{draft, none} {
			_, err = w.Create(jo, bound(first, id))
			is.Equal(errs.MessageOf(err), "datasets: there is no dataset "+id+" for a1")
		}
	})
}

// TestVisible: an app is for its owner, the owning team, those it is shared with and superusers;
// for all others it is not there.
func TestVisible(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo, mia := as(t, "acme", "jo", actor.Admin), as(t, "acme", "mia", actor.Member)
		v := w.create(t, jo)
		w.put(t, jo, v.ID, "index.html", "hi")
		gone := func(ctx context.Context) {
			t.Helper()
			_, err := w.Get(ctx, v.ID)
			is.True(errors.Is(err, errs.NotFound))
			_, err = w.Update(ctx, v.ID, apps.Edit{})
			is.True(errors.Is(err, errs.NotFound))
			is.True(errors.Is(w.Delete(ctx, v.ID), errs.NotFound))
			_, err = w.Edit(ctx, v.ID, true)
			is.True(errors.Is(err, errs.NotFound))
			_, err = w.Files(ctx, v.ID, paging.Query{Limit: 1})
			is.True(errors.Is(err, errs.NotFound))
			_, err = w.PutFile(ctx, v.ID, entity.File{Path: "x"}, strings.NewReader(""))
			is.True(errors.Is(err, errs.NotFound))
			_, err = w.Shares(ctx, v.ID)
			is.True(errors.Is(err, errs.NotFound))
			_, err = w.Copy(ctx, v.ID, nil)
			is.True(errors.Is(err, errs.NotFound))
			_, err = w.OfLibrary(ctx, v.LibraryID)
			is.True(errors.Is(err, errs.NotFound))
			page, err := w.List(ctx, paging.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(page.Total, 0)
		}
		gone(mia)
		gone(as(t, "evil", "jo", actor.Admin))
		w.put(t, jo, v.ID, "informer.yaml", "roles: [viewer]")
		_, err := w.PutShare(jo, v.ID, "mia", func(s *shares.Share) {
			s.Level, s.Roles = shares.Use, []string{"viewer"}
		})
		is.NoErr(err)
		seen, err := w.Get(mia, v.ID)
		is.NoErr(err)
		is.Equal(granted(seen.Permissions), "Run")
		is.True(seen.Shared)
		roles, err := w.Roles(mia, v.ID)
		is.NoErr(err)
		is.Equal(roles, []string{"viewer"})
		_, err = w.Files(mia, v.ID, paging.Query{Limit: 1})
		is.True(errors.Is(err, errs.Forbidden)) // the sources are not hers to read
		_, err = w.Variables(mia, v.ID)
		is.True(errors.Is(err, errs.Forbidden))
		page, err := w.List(mia, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Total, 1)
		gone(as(t, "evil", "mia", actor.Admin)) // the same name elsewhere
		is.NoErr(w.DeleteShare(jo, v.ID, "mia"))
		gone(mia)
	})
}

func TestEnvironment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Designer)
		v := w.create(t, jo, func(a *apps.App) {
			a.Defn = json.RawMessage(`{"entryPoint":"a.html","env":{"A":"1","B":"2"}}`)
		})
		set := func(defn string) apps.Shown {
			t.Helper()
			w.now = w.now.Add(time.Minute)
			v, err := w.Update(jo, v.ID, apps.Edit{Defn: []byte(defn)})
			is.NoErr(err)
			return v
		}
		same := set(`{"env":{"A":"********","B":"2"}}`)
		is.Equal(same.Sealed, v.Sealed) // nothing is different
		is.Equal(same.DefnUpdatedAt, nil)
		is.Equal(
			string(set(`{"env":{"C":"3"}}`).Defn),
			`{"entryPoint":"a.html","env":{"A":"********","B":"********","C":"********"}}`,
		)
		is.Equal(
			string(set(`{"env":{"A":null},"x":1}`).Defn),
			`{"entryPoint":"a.html","env":{"B":"********","C":"********"},"x":1}`,
		)
		is.Equal(string(set(`{"env":null,"x":null}`).Defn), `{"entryPoint":"a.html"}`)
		value := "4"
		_, err := w.PutVariable(jo, v.ID, "D", value)
		is.NoErr(err)
		names, err := w.Variables(jo, v.ID)
		is.NoErr(err)
		is.Equal(names, []apps.Variable{{Name: "D", HasValue: true}})
		err = w.DeleteVariable(jo, v.ID, "E")
		is.True(errors.Is(err, errs.NotFound))
		err = w.DeleteVariable(jo, v.ID, "D")
		is.NoErr(err)
		for _, bad := range []string{
			`{"env":{"":"x"}}`, `{"env":{"a b":"x"}}`, `{"env":{"A":"` + strings.Repeat("x", 64<<10+1) + `"}}`,
			`{"env":[]}`, `{"env":{"A":"\u0000"}}`,
		} {
			_, err := w.Update(jo, v.ID, apps.Edit{Defn: []byte(bad)})
			is.True(errors.Is(err, errs.Invalid))
		}
	})
}

// TestDraft: people use the app while a draft of it is edited, and see all of the draft or nothing.
func TestDraft(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Designer, "s1")
		v := w.create(t, jo, func(a *apps.App) { a.Defn = json.RawMessage(`{"env":{"KEY":"geheim"}}`) })
		w.put(t, jo, v.ID, "index.html", "one")
		w.put(t, jo, v.ID, "old.js", "old")

		_, err := w.Draft(jo, v.ID)
		is.True(errors.Is(err, errs.NotFound))
		d, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		is.Equal(*d.EditingID, v.ID)
		is.Equal(*d.Lock.LockedBy, "jo")
		is.True(d.LibraryID != v.LibraryID)
		again, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		is.Equal(again.ID, d.ID) // there is one
		again, err = w.Edit(jo, d.ID, false)
		is.NoErr(err)
		is.Equal(again.ID, d.ID)

		w.now = w.now.Add(time.Minute)
		w.put(t, jo, d.ID, "index.html", "two\n")
		w.put(t, jo, d.ID, "new.js", "new")
		is.NoErr(w.DeleteFile(jo, d.ID, "old.js"))
		name := "Renamed"
		_, err = w.Update(jo, d.ID, apps.Edit{
			Name: &name,
			Defn: []byte(`{"entryPoint":"index.html","env":{"KEY":"other"}}`),
		})
		is.NoErr(err)
		is.Equal(w.read(t, jo, v.ID, "index.html"), "one")
		is.Equal(w.read(t, jo, v.ID, "new.js"), "")

		diff, err := w.Diff(jo, v.ID)
		is.NoErr(err)
		var changed []string
		for _, f := range diff.Files {
			changed = append(changed, string(f.Status)+" "+f.Path)
		}
		for _, f := range diff.Fields {
			changed = append(changed, f.Name+" "+string(f.Before)+" "+string(f.After))
		}
		is.Equal(changed, []string{
			"modified index.html", "added new.js", "deleted old.js", `name "Sales" "Renamed"`,
			`defn {"env":{"KEY":"********"}} {"entryPoint":"index.html","env":{"KEY":"********"}}`,
			`defn.env.KEY "********" "********"`,
		})
		is.Equal(
			*diff.Files[0].Unified,
			"--- a/index.html\n+++ b/index.html\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+two\n",
		)

		page, err := w.List(jo, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Total, 1) // drafts are in no list of apps
		drafts, err := w.Drafts(jo)
		is.NoErr(err)
		is.Equal(len(drafts), 1)

		published, err := w.Commit(jo, v.ID, apps.PublishOptions{})
		is.NoErr(err)
		is.Equal(published.ID, v.ID)
		is.Equal(published.Name, "Renamed")
		is.Equal(published.LibraryID, v.LibraryID)
		is.Equal(*published.DefnUpdatedAt, w.now)
		is.Equal(w.read(t, jo, v.ID, "index.html"), "two\n")
		is.Equal(w.read(t, jo, v.ID, "new.js"), "new")
		is.Equal(w.read(t, jo, v.ID, "old.js"), "")
		for _, err := range []error{
			w.Discard(jo, v.ID), second(w.Commit(jo, v.ID, apps.PublishOptions{})), second(w.Get(jo, d.ID)),
			second(w.Diff(jo, v.ID)),
		} {
			is.True(errors.Is(err, errs.NotFound))
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestLock: a draft belongs to the session that edits it, until that ends or is silent for five
// minutes.
func TestLock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		one, two := as(t, "acme", "jo", actor.Designer, "s1"), as(t, "acme", "jo", actor.Designer, "s2")
		mia := as(t, "acme", "mia", actor.Designer, "s3")
		v := w.create(t, one)
		_, err := w.PutShare(as(t, "acme", "jo", actor.Publisher), v.ID, "mia", level(shares.Write))
		is.NoErr(err)
		d, err := w.Edit(one, v.ID, false)
		is.NoErr(err)

		is.True(d.Held)
		for _, ctx := range []context.Context{two, mia} {
			seen, err := w.Edit(ctx, v.ID, false)
			is.NoErr(err)
			is.Equal(seen.EditLock, d.Lock) // it is shown, and stays
			is.True(!seen.Held)
			for _, err := range []error{
				second(w.Update(ctx, d.ID, apps.Edit{Defn: []byte(`{"a":1}`)})),
				second(w.PutFile(ctx, d.ID, entity.File{Path: "x"}, strings.NewReader(""))),
				w.DeleteFile(ctx, d.ID, "x"), second(w.Commit(ctx, v.ID, apps.PublishOptions{})),
				second(w.Commit(ctx, v.ID, apps.PublishOptions{Force: true})), w.Discard(ctx, v.ID),
			} {
				is.True(errors.Is(err, errs.Conflict))
			}
		}
		is.True(strings.Contains(errs.MessageOf(w.Discard(mia, v.ID)), "edited by jo until 20:36:00"))
		is.True(strings.Contains(errs.MessageOf(w.Discard(two, v.ID)), "edited by another session"))

		w.now = w.now.Add(4 * time.Minute)
		_, err = w.Edit(one, v.ID, false) // it goes on
		is.NoErr(err)
		w.now = w.now.Add(4 * time.Minute)
		is.True(errors.Is(w.Discard(two, v.ID), errs.Conflict))
		w.now = w.now.Add(time.Minute) // and ends
		ended, err := w.Draft(two, v.ID)
		is.NoErr(err)
		is.Equal(ended.EditLock, drafts.Lock{})
		taken, err := w.Edit(two, v.ID, false)
		is.NoErr(err)
		is.Equal(taken.ID, d.ID)
		is.True(errors.Is(w.Discard(one, v.ID), errs.Conflict))
		_, err = w.Edit(mia, v.ID, true) // by force
		is.NoErr(err)
		is.True(errors.Is(w.Discard(two, v.ID), errs.Conflict))
		is.NoErr(w.Discard(mia, v.ID))
		_, err = w.Get(mia, d.ID)
		is.True(errors.Is(err, errs.NotFound))
	})
}

// TestStaleCommit: changes to an app since its draft began are not overwritten unawares.
func TestStaleCommit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Designer, "s1")
		v, name := w.create(t, jo), "github"
		w.put(t, jo, v.ID, "a", "1")
		for name, change := range map[string]func(){
			"a file":     func() { w.put(t, jo, v.ID, "a", "2") },
			"a new file": func() { w.put(t, jo, v.ID, "b", "2") },
			"the name": func() {
				name := "Other"
				_, err := w.Update(jo, v.ID, apps.Edit{Name: &name})
				is.NoErr(err)
			},
			"a variable": func() { _, err := w.PutVariable(jo, v.ID, "A", "x"); is.NoErr(err) },
			"the source": func() {
				source := &name
				_, err := w.Update(jo, v.ID, apps.Edit{Source: &source})
				is.NoErr(err)
			},
			"the settings": func() {
				_, err := w.Update(jo, v.ID, apps.Edit{Settings: []byte(`{"sandbox":true}`)})
				is.NoErr(err)
			},
		} {
			t.Run(name, func(t *testing.T) {
				is := is.New(t)
				d, err := w.Edit(jo, v.ID, false)
				is.NoErr(err)
				w.put(t, jo, d.ID, "a", "draft of "+name)
				w.now = w.now.Add(time.Second)
				change()
				_, err = w.Commit(jo, v.ID, apps.PublishOptions{})
				is.True(errors.Is(err, errs.Conflict))
				is.Equal(w.read(t, jo, d.ID, "a"), "draft of "+name) // all is as it was
				_, err = w.Commit(jo, v.ID, apps.PublishOptions{Force: true})
				is.NoErr(err)
				is.Equal(w.read(t, jo, v.ID, "a"), "draft of "+name)
			})
		}
	})
}

// TestCommitBrokenManifest: a draft whose manifest cannot be read is not published, unless it is
// forced.
func TestCommitBrokenManifest(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Designer, "s1")
		v := w.create(t, jo)
		w.put(t, jo, v.ID, "informer.yaml", "roles: [viewer]")
		d, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		w.put(t, jo, d.ID, "informer.yaml", "roles: [viewer]\nrolls: 1\n")
		_, err = w.Commit(jo, v.ID, apps.PublishOptions{})
		is.True(errors.Is(err, errs.Invalid))
		is.True(strings.HasPrefix(errs.MessageOf(err), "informer.yaml:2:1: rolls: is not known here; "))
		is.True(strings.HasSuffix(errs.MessageOf(err), "_commit?force=true."))
		is.Equal(w.read(t, jo, v.ID, "informer.yaml"), "roles: [viewer]") // all is as it was
		w.put(t, jo, d.ID, "informer.yaml", "roles: [editor]")
		_, err = w.Commit(jo, v.ID, apps.PublishOptions{})
		is.NoErr(err)
		is.Equal(w.read(t, jo, v.ID, "informer.yaml"), "roles: [editor]")

		d, err = w.Edit(jo, v.ID, false)
		is.NoErr(err)
		w.put(t, jo, d.ID, "informer.yaml", "[")
		_, err = w.Commit(jo, v.ID, apps.PublishOptions{Force: true})
		is.NoErr(err)
		is.Equal(w.read(t, jo, v.ID, "informer.yaml"), "[")
	})
}

// TestManifestOfLastDeploy: a manifest that is written into an app that was deployed waits for the
// next deploy, and one that cannot be read is refused; an app that was never deployed has the one
// in its files.
func TestManifestOfLastDeploy(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Publisher, "s1")
		v := w.create(t, jo)
		roles := func() (ids string) {
			t.Helper()
			shown, err := w.Declared(jo, v.ID)
			is.NoErr(err)
			for _, r := range shown.Manifest.Roles {
				ids += r.ID + " "
			}
			return strings.TrimSpace(ids)
		}
		write := func(id, name, text string) error {
			_, err := w.PutFile(jo, id, entity.File{Path: name, ContentType: "text/plain"}, strings.NewReader(text))
			return err
		}
		deploy := func() { is.NoErr(second(w.Deploy(jo, v.ID, apps.PublishOptions{}))) }
		is.NoErr(write(v.ID, "app.yaml", "roles: [a]"))
		is.Equal(roles(), "a")

		// before the first deploy, the one that counts cannot make room for one that cannot be read
		is.NoErr(write(v.ID, "informer.yaml", "roles: [i]"))
		is.NoErr(write(v.ID, "app.yaml", "roles: [a]\nrolls: 1\n"))
		err := w.DeleteFile(jo, v.ID, "informer.yaml")
		is.True(errors.Is(err, errs.Invalid))
		is.True(strings.HasPrefix(
			errs.MessageOf(err), "Without informer.yaml, app.yaml is the manifest. app.yaml:2:1: rolls: ",
		))
		is.Equal(roles(), "i")
		for _, other := range []context.Context{as(t, "acme", "mia", actor.Member), as(t, "evil", "jo", actor.Admin)} {
			is.True(errors.Is(w.DeleteFile(other, v.ID, "informer.yaml"), errs.NotFound))
		}
		is.NoErr(w.DeleteFile(jo, v.ID, "app.yaml"))
		is.Equal(roles(), "i")
		is.NoErr(write(v.ID, "app.yaml", "roles: [a]"))
		is.NoErr(w.DeleteFile(jo, v.ID, "informer.yaml"))
		is.Equal(roles(), "a")
		deploy()
		is.Equal(roles(), "a")
		is.NoErr(write(v.ID, "app.yaml", "roles: [b]"))
		is.Equal(roles(), "a")
		// which the next deploy brings
		_, err = w.PutShare(jo, v.ID, "mia", func(s *shares.Share) { s.Level, s.Roles = 1, []string{"b"} })
		is.NoErr(err)
		is.NoErr(write(v.ID, "informer.yaml", "roles: [c]"))
		is.NoErr(write(v.ID, "app.yaml", "[")) // informer.yaml comes before it
		is.Equal(roles(), "a")
		deploy()
		is.Equal(roles(), "c")

		err = write(v.ID, "informer.yaml", "roles: [c]\nrolls: 1\n")
		is.True(errors.Is(err, errs.Invalid))
		is.True(strings.HasPrefix(errs.MessageOf(err), "informer.yaml:2:1: rolls: is not known here; "))
		is.Equal(w.read(t, jo, v.ID, "informer.yaml"), "roles: [c]")
		_, err = w.PutFile(as(t, "acme", "mia", actor.Member), v.ID, entity.File{
			Path: "informer.yaml",
		}, strings.NewReader("["))
		is.True(errors.Is(err, errs.Forbidden)) // whatever the content

		is.NoErr(w.DeleteFile(jo, v.ID, "informer.yaml"))
		is.Equal(roles(), "c")
		_, err = w.Deploy(jo, v.ID, apps.PublishOptions{}) // app.yaml counts now
		is.True(errors.Is(err, errs.Invalid))
		is.Equal(roles(), "c")
		is.NoErr(w.DeleteFile(jo, v.ID, "app.yaml"))
		deploy()
		is.Equal(roles(), "")

		d, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		is.NoErr(write(d.ID, "informer.yaml", "["))
		is.NoErr(write(d.ID, "informer.yaml", "roles: [d]"))
		is.Equal(roles(), "")
		drafted, err := w.Declared(jo, d.ID)
		is.NoErr(err)
		is.True(drafted.Manifest.HasRole("d"))
		is.NoErr(second(w.Commit(jo, v.ID, apps.PublishOptions{})))
		is.Equal(roles(), "d")

		copied, err := w.Copy(jo, v.ID, nil)
		is.NoErr(err)
		of, err := w.Declared(jo, copied.ID)
		is.NoErr(err)
		is.True(of.Manifest.HasRole("d"))
		is.NoErr(w.DeleteFile(jo, v.ID, "informer.yaml"))
		is.NoErr(w.Delete(jo, v.ID))
		is.NoErr(second(w.Restore(jo, v.ID)))
		is.Equal(roles(), "d")
		is.NoErr(w.Delete(jo, v.ID))
		is.NoErr(w.Purge(as(t, "acme", "jo", actor.DataWizard), v.ID))
		left, err := w.manifests.All(jo, "acme", v.LibraryID)
		is.NoErr(err)
		is.Equal(len(left), 0)
	})
}

func TestDeleteRestorePurge(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo, wizard := as(t, "acme", "jo", actor.Designer), as(t, "acme", "jo", actor.DataWizard)
		slug := "sales"
		v := w.create(t, jo, func(a *apps.App) { a.Slug = &slug })
		w.put(t, jo, v.ID, "a", "1")
		is.True(errors.Is(w.Purge(wizard, v.ID), errs.NotFound)) // it is not deleted
		is.NoErr(w.Delete(jo, "jo:sales"))
		for _, err := range []error{
			w.Delete(jo, v.ID), second(w.Get(jo, v.ID)),
			second(w.Get(jo, "jo:sales")), second(w.Files(jo, v.ID, paging.Query{})),
			second(w.Restore(as(t, "acme", "mia", actor.Admin), v.ID)),
			second(w.Restore(as(t, "evil", "jo", actor.Admin), v.ID)),
		} {
			is.True(errors.Is(err, errs.NotFound))
		}
		other := w.create(t, jo, func(a *apps.App) { a.Slug = &slug }) // the slug is free
		back, err := w.Restore(jo, v.ID)
		is.NoErr(err)
		is.Equal(back.Slug, nil)
		is.Equal(w.read(t, jo, v.ID, "a"), "1")
		is.NoErr(w.Delete(jo, other.ID))
		back, err = w.Restore(jo, other.ID)
		is.NoErr(err)
		is.Equal(*back.Slug, "sales")

		is.NoErr(w.Delete(jo, v.ID))
		is.True(errors.Is(w.Purge(jo, v.ID), errs.Forbidden))
		is.NoErr(w.Purge(wizard, v.ID))
		is.True(errors.Is(w.Purge(wizard, v.ID), errs.NotFound))
		_, err = w.Restore(jo, v.ID)
		is.True(errors.Is(err, errs.NotFound))
	})
}

// TestFileLimit: a file that is too large leaves the old one.
func TestFileLimit(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo := as(t, "acme", "jo", actor.Designer)
	v := w.create(t, jo)
	w.put(t, jo, v.ID, "a", strings.Repeat("x", 100))
	for _, n := range []int{101, 10_000} {
		_, err := w.PutFile(jo, v.ID, entity.File{Path: "a"}, strings.NewReader(strings.Repeat("y", n)))
		is.True(errors.Is(err, errs.TooLarge))
	}
	is.Equal(w.read(t, jo, v.ID, "a"), strings.Repeat("x", 100))
}

// TestDraftOfDeletedApp: it is gone with its app, and back with it.
func TestDraftOfDeletedApp(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo := as(t, "acme", "jo", actor.Designer, "s1")
	v := w.create(t, jo)
	d, err := w.Edit(jo, v.ID, false)
	is.NoErr(err)
	is.NoErr(w.Delete(jo, v.ID))
	for _, err := range []error{
		second(w.Get(jo, d.ID)),
		second(w.Update(jo, d.ID, apps.Edit{})), second(w.PutFile(jo, d.ID, entity.File{
			Path: "a",
		}, strings.NewReader(""))),
		second(w.Edit(jo, d.ID, true)),
		second(w.Commit(jo, d.ID, apps.PublishOptions{Force: true})), second(w.OfLibrary(jo, d.LibraryID)),
	} {
		is.True(errors.Is(err, errs.NotFound))
	}
	drafts, err := w.Drafts(jo)
	is.NoErr(err)
	is.Equal(len(drafts), 0)
	_, err = w.Restore(jo, v.ID)
	is.NoErr(err)
	_, err = w.Get(jo, d.ID)
	is.NoErr(err)
}

// TestDraftOfFullApp: a user who may no longer write an app after its upgrade may not write the
// draft either.
func TestDraftOfFullApp(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo, full := as(t, "acme", "jo", actor.Designer, "s1"), apps.Full
	v := w.create(t, jo)
	d, err := w.Edit(jo, v.ID, false)
	is.NoErr(err)
	_, err = w.Update(as(t, "acme", "jo", actor.Admin), v.ID, apps.Edit{Type: &full})
	is.NoErr(err)
	_, err = w.PutFile(jo, d.ID, entity.File{Path: "a"}, strings.NewReader(""))
	is.True(errors.Is(err, errs.NotFound))
	drafts, err := w.Drafts(jo)
	is.NoErr(err)
	is.Equal(len(drafts), 0)
	admin := as(t, "acme", "jo", actor.Admin, "s1")
	drafts, err = w.Drafts(admin)
	is.NoErr(err)
	is.Equal(drafts[0].Type, apps.Full)
	for _, read := range []func() (apps.Shown, error){
		func() (apps.Shown, error) { return w.Get(admin, d.ID) },
		func() (apps.Shown, error) { return w.Draft(admin, v.ID) },
		func() (apps.Shown, error) { return w.Edit(admin, v.ID, false) },
	} {
		same, err := read()
		is.NoErr(err)
		is.Equal(same.Type, apps.Full)
		is.Equal(granted(same.Permissions), granted(drafts[0].Permissions))
	}
}

// TestReadOnlyTokenReads: a token that can only read shows what its user may see, and not more.
func TestReadOnlyTokenReads(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo, mia := as(t, "acme", "jo", actor.Publisher), as(t, "acme", "mia", actor.Member)
	v := w.create(t, jo)
	_, err := w.PutShare(jo, v.ID, "mia", level(shares.Use))
	is.NoErr(err)
	_, err = w.Edit(jo, v.ID, false)
	is.NoErr(err)
	token := func(ctx context.Context) context.Context {
		a, err := actor.From(ctx)
		is.NoErr(err)
		a.ReadOnly = true
		return actor.With(ctx, a)
	}
	drafts, err := w.Drafts(token(mia))
	is.NoErr(err)
	is.Equal(len(drafts), 0)
	drafts, err = w.Drafts(token(jo))
	is.NoErr(err)
	is.Equal(len(drafts), 1)
	read, err := w.Get(token(jo), v.ID)
	is.NoErr(err)
	is.True(read.HasDraft)
	read, err = w.Get(token(mia), v.ID)
	is.NoErr(err)
	is.True(!read.HasDraft)
}

// TestDraftPermissions: a draft has no permission for what is done with its app alone.
func TestDraftPermissions(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo := as(t, "acme", "jo", actor.Admin)
	v := w.create(t, jo)
	_, err := w.PutShare(jo, v.ID, "mia", level(shares.Use))
	is.NoErr(err)
	d, err := w.Edit(jo, v.ID, false)
	is.NoErr(err)
	is.Equal(granted(d.Permissions), "Bind Edit Manage Run SwitchRoles Write")
	is.True(d.Shared) // as the app
	is.Equal(errs.CodeOf(second(w.PutShare(jo, d.ID, "al", level(shares.Use)))), errs.Invalid)
	is.Equal(errs.CodeOf(second(w.SetOwner(jo, d.ID, "mia"))), errs.Invalid)
	is.Equal(errs.CodeOf(w.Delete(jo, d.ID)), errs.Invalid)
	is.Equal(d.Version(), second2(w.Get(jo, d.ID)).Version())
}

func second2(v apps.Shown, _ error) apps.Shown { return v }

// TestDefinitionOfViewers: the names of variables are for those who see the insides.
func TestDefinitionOfViewers(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo, mia := as(t, "acme", "jo", actor.Publisher), as(t, "acme", "mia", actor.Member)
	v := w.create(t, jo, func(a *apps.App) { a.Defn = json.RawMessage(`{"env":{"KEY":"geheim"},"x":1}`) })
	_, err := w.PutShare(jo, v.ID, "mia", level(shares.Use))
	is.NoErr(err)
	is.Equal(string(v.Definition()), `{"env":{"KEY":"********"},"x":1}`)
	seen, err := w.Get(mia, v.ID)
	is.NoErr(err)
	is.Equal(string(seen.Definition()), `{"x":1}`)
}

// TestSharePrincipals: ids and names are found in any spelling, and roles are those of the
// manifest.
func TestSharePrincipals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Admin)
		v := w.create(t, jo)
		for said, meant := range map[string]string{"MIA": "mia", strings.ToUpper(team): team} {
			put, err := w.PutShare(jo, v.ID, said, level(shares.Use))
			is.NoErr(err)
			is.Equal(put.PrincipalID, meant)
			got, err := w.Share(jo, v.ID, said)
			is.NoErr(err)
			is.Equal(got.PrincipalID, meant)
			is.NoErr(w.DeleteShare(jo, v.ID, said))
		}
		roles := func(roles ...string) func(*shares.Share) {
			return func(s *shares.Share) { s.Level, s.Roles = shares.Use, roles }
		}
		_, err := w.PutShare(jo, v.ID, "mia", roles("viewer"))
		is.Equal(errs.MessageOf(err), `roles: "viewer" is no role of the app's manifest`)
		_, err = w.Edit(jo, v.ID, false)
		is.NoErr(err)
		d, err := w.Draft(jo, v.ID)
		is.NoErr(err)
		w.put(t, jo, d.ID, "informer.yaml", "roles: [viewer]")
		_, err = w.PutShare(jo, v.ID, "mia", roles("viewer")) // of the draft's manifest
		is.NoErr(err)
		is.NoErr(w.Discard(jo, v.ID))
		kept, err := w.PutShare(jo, v.ID, "mia", level(shares.Write)) // it has the role already
		is.NoErr(err)
		is.Equal(kept.Roles, []string{"viewer"})
		moved, err := w.SetOwner(jo, v.ID, "MIA")
		is.NoErr(err)
		is.Equal(moved.OwnerID, "mia")
	})
}

func TestTier(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite(t))
	jo, admin := as(t, "acme", "jo", actor.Designer), as(t, "acme", "jo", actor.Admin)
	v := w.create(t, jo)
	full, report := apps.Full, apps.Report
	_, err := w.Update(jo, v.ID, apps.Edit{Type: &full})
	is.Equal(errs.MessageOf(err), "This needs the role admin. "+actor.RoleHint)
	w.licensed = false
	_, err = w.Update(admin, v.ID, apps.Edit{Type: &full})
	is.True(errors.Is(err, errs.Forbidden))
	w.licensed = true
	up, err := w.Update(admin, v.ID, apps.Edit{Type: &full})
	is.NoErr(err)
	is.Equal(up.Type, apps.Full)
	_, err = w.Update(admin, v.ID, apps.Edit{Type: &report})
	is.Equal(errs.MessageOf(err), "type cannot go back from app to report")
	_, err = w.Update(jo, v.ID, apps.Edit{})
	is.True(errors.Is(err, errs.Forbidden)) // a full app is an admin's
}

func TestSetOwnerAndCopy(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open(t))
		jo := as(t, "acme", "jo", actor.Admin)
		v := w.create(t, jo, func(a *apps.App) {
			a.Defn = json.RawMessage(`{"entryPoint":"x","env":{"KEY":"geheim"}}`)
		})
		w.put(t, jo, v.ID, "a", "1")
		copied, err := w.Copy(jo, v.ID, nil)
		is.NoErr(err)
		is.Equal(copied.Name, "Copy of Sales")
		is.Equal(string(copied.Defn), `{"entryPoint":"x"}`)
		is.Equal(copied.Sealed, "")
		is.Equal(w.read(t, jo, copied.ID, "a"), "1")
		w.put(t, jo, copied.ID, "a", "2")
		is.Equal(w.read(t, jo, v.ID, "a"), "1")

		d, err := w.Edit(jo, v.ID, false)
		is.NoErr(err)
		for _, owner := range []string{"", "nobody", "*"} {
			_, err := w.SetOwner(jo, v.ID, owner)
			is.Equal(errs.MessageOf(err), "ownerId must be a user or team of this tenant")
		}
		_, err = w.SetOwner(jo, d.ID, "mia")
		is.True(errors.Is(err, errs.Invalid))
		_, err = w.SetOwner(as(t, "acme", "jo", actor.Publisher), v.ID, "mia")
		is.True(errors.Is(err, errs.Forbidden))
		_, err = w.SetOwner(jo, v.ID, "mia")
		is.NoErr(err)
		_, err = w.Get(jo, v.ID)
		is.True(errors.Is(err, errs.NotFound)) // it was all that showed it to jo
		moved, err := w.Draft(as(t, "acme", "mia", actor.Admin), v.ID)
		is.NoErr(err)
		is.Equal(moved.OwnerID, "mia")
	})
}
