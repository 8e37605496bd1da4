package bundles_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// TestDroppedStaysWithAdditions: what a deploy no longer ships stays where the tenant's people
// added something of their own to it, which would be removed with it. The source is told that it
// stays, and nothing else.
func TestDroppedStaysWithAdditions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		team := func() string { return w.team(t) }
		of := func(kind entity.Kind, name, data string) string { return w.make(t, "acme", kind, name, data) }
		source := of("datasource", "Needed", `{}`)
		ids := map[string]string{
			"untouched team": team(), "team with a member": team(),
			"team with content": team(), "team with a comment": team(), "team with shipped content": team(),
			"untouched report":      of("report", "Untouched", `{}`),
			"report with a comment": of("report", "Commented", `{"datasourceId": "`+source+`"}`),
			"needed datasource":     source, "datasource with a secret": of("datasource", "Secret", `{"host": "x"}`),
			"untouched library":           of("library", "Untouched", `{}`),
			"library with a file":         of("library", "Added", `{}`),
			"library with a changed file": of("library", "Changed", `{}`),
		}
		entries := []string{"tagged " + of("tag", "Stays", `{}`)}
		for name, id := range ids {
			kind := "report"
			for _, k := range []string{"team", "library", "datasource"} {
				if strings.Contains(name, k) {
					kind = k
				}
			}
			if kind == "library" {
				for _, path := range []string{"a.txt", "dir/b.txt"} {
					_, err := w.Content.PutFile(acme, id, entity.File{
						Path: path, ContentType: "text/plain",
					}, strings.NewReader("acme's"))
					is.NoErr(err)
				}
			}
			ids[name] = kind + " " + id
			entries = append(entries, ids[name])
		}
		id := func(name string) string { _, id, _ := strings.Cut(ids[name], " "); return id }
		b := w.bundle(t, "B", entries...)
		deploy := func() bundles.ImportResult {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			is.NoErr(done[0].Err)
			return done[0].ImportResult
		}
		is.Equal(deploy().Created, len(entries))
		deploy() // what the second one finds is still the first one's

		_, err := w.Principals.PutMember(evil, id("team with a member"), "jo", actor.Admin)
		is.NoErr(err)
		_, err = w.Principals.Reassign(evil, "eve", id("team with shipped content"))
		is.NoErr(err)
		as := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: id("team with content"), Superuser: true})
		own, err := w.Content.Create(as, content.Entity{Kind: "dataset", Name: "Own"})
		is.NoErr(err)
		for _, name := range []string{"team with a comment", "report with a comment"} {
			kind, at, _ := strings.Cut(ids[name], " ")
			_, err = w.Comments.Create(evil, entity.Key{Kind: entity.Kind(kind), ID: at}, "hello")
			is.NoErr(err)
		}
		w.setData(t, "evil", "datasource", id("datasource with a secret"), `{"host":"x","password":"p"}`)
		_, err = w.Content.PutFile(evil, id("library with a file"), entity.File{
			Path: "c.txt", ContentType: "text/plain",
		}, strings.NewReader("evil's"))
		is.NoErr(err)
		_, err = w.Content.PutFile(
			evil, id("library with a changed file"), entity.File{
				Path: "dir/b.txt", ContentType: "text/plain",
			}, strings.NewReader("evil's"),
		)
		is.NoErr(err)

		for _, entry := range entries[1:] {
			_, at, _ := strings.Cut(entry, " ")
			w.undo(t, b.ID, at)
		}
		r := deploy()
		var stay, went []string
		for name, key := range ids {
			kind, at, _ := strings.Cut(key, " ")
			there := false
			if kind == "team" {
				_, err = w.Principals.Team(evil, at)
			} else {
				_, err = w.Content.Get(evil, entity.Kind(kind), at)
			}
			if there = err == nil; !there {
				is.Equal(errs.CodeOf(err), errs.NotFound)
			}
			warning := key + " stays as it is."
			is.Equal(slices.Contains(r.Warnings, warning), there)
			if there {
				stay = append(stay, name)
			} else {
				went = append(went, name)
			}
		}
		slices.Sort(went)
		is.Equal(went, []string{"team with shipped content", "untouched library", "untouched report", "untouched team"})
		is.Equal(len(r.Warnings), len(stay)) // and no others
		is.Equal(r.Deleted, len(went))
		members, err := w.Principals.Members(evil, id("team with a member"), pageOf(100))
		is.NoErr(err)
		is.Equal(members.Total, 1)
		is.Equal(w.data(t, "evil", "datasource", id("datasource with a secret")), `{"host":"x","password":"p"}`)
		_, err = w.Content.Get(evil, "dataset", own.ID)
		is.NoErr(err)
		told := w.told(t, "eve")
		for name, want := range map[string]string{
			"team with a member": "1 member",
			"team with content":  "1 owned row", "team with a comment": "1 comment thread",
			"report with a comment": "1 comment thread", "datasource with a secret": "1 secret",
			"library with a file": "1 file", "library with a changed file": "1 file",
			"needed datasource": "what stays needs it",
		} {
			is.True(strings.Contains(told, ids[name]+" stays, though acme does not ship it any more: "+want+"."))
		}
		is.True(strings.Contains(told, ids["untouched team"]+" is removed: acme does not ship it any more."))
		is.Equal(len(deploy().Warnings), 0) // they are the tenant's own now
	})
}

// TestDeployKeepsAddedFiles: a deploy of a library replaces the files that it brought, and leaves
// those alone that the tenant's people added.
func TestDeployKeepsAddedFiles(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		library := w.make(t, "acme", "library", "L", `{}`)
		put := func(c ctx, path, text string) {
			_, err := w.Content.PutFile(c, library, entity.File{
				Path: path, ContentType: "text/plain",
			}, strings.NewReader(text))
			is.NoErr(err)
		}
		put(acme, "a", "acme's")
		put(acme, "gone", "acme's")
		put(acme, "changed", "acme's")
		b := w.bundle(t, "B", "library "+library)
		deploy := func(manifest bool) {
			var done []bundles.Deployed
			var err error
			if manifest {
				done, err = w.Bundles.DeployManifest(acme, bundles.Manifest{Entries: []bundles.Entry{{
					Type:     "library",
					EntityID: library,
				}}}, []string{"evil"}, bundles.ImportOptions{})
			} else {
				done, err = w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			}
			is.NoErr(err)
			is.NoErr(done[0].Err)
		}
		files := func() (all string) {
			page, err := w.Content.Files(evil, library, pageOf(100))
			is.NoErr(err)
			for _, f := range page.Rows {
				all += f.Path + " "
			}
			return all
		}
		for _, manifest := range []bool{false, true} {
			deploy(manifest)
			put(evil, "own", "evil's")
			put(evil, "changed", "evil's")
			put(evil, "case", "evil's")
			put(evil, "folder/file", "evil's")
			for _, path := range []string{"gone", "changed"} {
				is.NoErr(w.Content.DeleteFile(acme, library, path))
			}
			put(acme, "CASE", "acme's")
			put(acme, "folder", "acme's")
			deploy(manifest)
			is.Equal(files(), "CASE a changed folder own ")
			for _, path := range []string{"CASE", "folder"} {
				is.NoErr(w.Content.DeleteFile(acme, library, path))
			}
			put(acme, "gone", "acme's")
			put(acme, "changed", "acme's")
			deploy(manifest)
			is.Equal(files(), "a changed gone own ")
			is.NoErr(w.Content.DeleteFile(evil, library, "own"))
		}
	})
}
