package bundles_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestEveryTypeTravels from one tenant to another, and to the other engine and back: what arrives
// is what left.
func TestEveryTypeTravels(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open(t))
		entries := w.everything(t, "acme")
		first := w.export(t, "acme", w.bundle(t, "All", entries...).ID)
		is.Equal(w.export(t, "acme", "all"), first) // byte by byte
		header, all := unpacked(t, first)
		is.Equal(len(header.Entries), len(entries))
		for _, kind := range []entity.Kind{
			"user", "team", "color", "aiInstruction", "datasource", "dataset", "library", "app", "tag",
		} {
			is.True(header.Counts[kind] > 0)
		}
		is.Equal(header.Counts["color"], 4)

		r, err := w.Bundles.Import(w.as(t, "evil"), bytes.NewReader(first), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(len(r.Warnings), 1) // evil knows the owner
		is.True(strings.HasSuffix(r.Warnings[0], ": 1 user got a higher role in it than before: jo is designer."))
		is.Equal(r.Skipped, 1) // jo is there
		is.Equal(r.Created, len(all)-3-1)
		is.Equal(r.ByKind["color"].Created, 4)
		_, there := unpacked(t, w.export(t, "evil", "", entries...))
		is.Equal(without(there, "user jo"), without(all, "user jo"))

		r, err = w.Bundles.Import(
			w.as(t, "evil"), bytes.NewReader(first), bundles.ImportOptions{Rule: entity.Overwrite},
		)
		is.NoErr(err)
		is.Equal([]int{r.Created, r.Updated, r.Skipped, r.Deleted}, []int{0, len(all) - 3, 0, 0})
		_, there = unpacked(t, w.export(t, "evil", "", entries...))
		is.Equal(without(there, "user jo"), without(all, "user jo"))

		other := dbtest.Postgres
		if strings.Contains(t.Name(), "postgres") {
			other = dbtest.SQLite
		} else {
			dbtest.Server(t)
		}
		far := newWorld(t, other(t))
		_, err = far.Bundles.Import(
			far.as(t, "acme"), bytes.NewReader(first), bundles.ImportOptions{Rule: entity.Overwrite},
		)
		is.NoErr(err)
		back := far.export(t, "acme", "", entries...)
		_, there = unpacked(t, back)
		is.Equal(without(there, "user jo"), without(all, "user jo")) // jo's own creation time is each database's
		before := w.dump(t, "acme")
		_, err = w.Bundles.Import(w.as(t, "acme"), bytes.NewReader(back), bundles.ImportOptions{Rule: entity.Overwrite})
		is.NoErr(err)
		is.Equal(w.dump(t, "acme"), before)
	})
}

func without(all map[string]string, name string) map[string]string {
	all = maps.Clone(all)
	delete(all, name)
	return all
}

// TestClosure ships what is needed, once, also in circles, and nothing else; what is gone is left
// out.
func TestClosure(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		a := w.make(t, "acme", "dataset", "A", `{}`)
		b := w.make(t, "acme", "query", "B", `{"datasetId": "`+a+`"}`)
		circle(t, w, "dataset", a, `{"queryId": "`+b+`"}`)
		gone := w.make(t, "acme", "report", "C", `{"queryId": "`+b+`"}`)
		w.make(t, "acme", "report", "Not asked for", `{}`)
		bundle := w.bundle(t, "Circle", "dataset "+a, "report "+gone)
		is.NoErr(w.Content.Delete(w.as(t, "acme"), "report", gone))
		header, all := unpacked(t, w.export(t, "acme", bundle.Slug))
		is.Equal(header.Counts, map[entity.Kind]int{"dataset": 1, "query": 1})
		is.Equal(len(all), 2)
		page, err := w.Bundles.Entries(w.as(t, "acme"), bundle.ID, pageOf(10))
		is.NoErr(err)
		is.Equal(page.Rows[0].Ref.Name, "A")
		is.Equal(page.Rows[1].Ref, nil) // its report is gone
	})
}

// TestNothingSecretTravels: of users neither a password nor the right of a superuser goes out, and
// none comes in.
func TestNothingSecretTravels(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		_, all := unpacked(t, w.export(t, "acme", "", "user admin", "user jo"))
		for _, row := range all {
			low := strings.ToLower(row)
			for _, word := range []string{"argon2", "password", "superuser", "token", "secret", "hash"} {
				is.True(!strings.Contains(low, word))
			}
		}
		hash := "$argon2id$v=19$m=8,t=1,p=1$YWFhYWFhYWE$YWFhYWFhYWE"
		hostile := packed(t,
			map[string]string{"user mallory": `{"superuser": true, "enabled": true, "passwordHash": "` + hash +
				`", "password": "x",
			"password_hash": "` + hash + `", "globalPermissions": {"superuser": true}}`,
				"user jo": `{"superuser": true}`},
			nil)
		for _, how := range []bundles.ImportOptions{{}, {Rule: entity.Overwrite}} {
			_, err := w.Bundles.Import(w.as(t, "acme"), bytes.NewReader(hostile), how)
			is.NoErr(err)
			is.True(!strings.Contains(w.dump(t, "acme"), "YWFhYWFhYWE"))
			for _, name := range []string{"mallory", "jo"} {
				u, err := w.Principals.User(w.as(t, "acme"), name)
				is.NoErr(err)
				is.True(!u.Superuser)
				is.Equal(u.PasswordSetAt != nil, name == "jo") // jo keeps what was there
			}
		}
		_, err := w.Bundles.Restore(w.as(t, "acme"), bytes.NewReader(hostile), bundles.ImportOptions{})
		is.NoErr(err)
		u, err := w.Principals.User(w.as(t, "acme"), "mallory")
		is.NoErr(err)
		is.True(!u.Superuser)
	})
}

// TestRules of an import, and whom the rows belong to whose owner is not known.
func TestRules(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, evil := is.New(t), w.as(t, "evil")
		tag := w.make(t, "acme", "tag", "Blue", `{}`)
		file := w.export(t, "acme", "", "tagged "+tag)
		_, rows := unpacked(t, file)
		stranger := packed(t, map[string]string{
			"tag " + tag: strings.Replace(rows["tag "+tag], `"jo"`, `"stranger"`, 1),
		}, nil)
		for _, owners := range [][2]string{{"jo", "jo"}, {"", "eve"}} {
			owner, want := owners[0], owners[1]
			r, err := w.Bundles.Import(
				evil, bytes.NewReader(stranger),
				bundles.ImportOptions{Owner: owner, Rule: entity.Overwrite, Changes: true},
			)
			is.NoErr(err)
			is.Equal(len(r.Warnings), 1)
			is.True(strings.Contains(r.Warnings[0], "stranger"))
			e, err := w.Content.Get(evil, "tag", tag)
			is.NoErr(err)
			is.Equal(e.OwnerID, want)
			is.Equal(len(r.Changes), 1)
		}
		_, err := w.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Fail})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		is.True(strings.Contains(errs.MessageOf(err), tag))
		r, err := w.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{Changes: true})
		is.NoErr(err)
		// eve's, not jo's
		is.Equal(r.Changes, []bundles.Change{{Action: "skipped", Key: entity.Key{Kind: "tag", ID: tag}, Name: "Blue"}})
		for _, how := range []bundles.ImportOptions{{Rule: "x"}, {Owner: "nobody"}, {Owner: "*"}} {
			_, err = w.Bundles.Import(evil, bytes.NewReader(file), how)
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
	})
}

// TestDryRun counts as the real thing does, and writes nothing.
func TestDryRun(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, evil := is.New(t), w.as(t, "evil")
		entries := w.everything(t, "acme")
		w.make(t, "evil", "tag", "Goes", `{}`)
		b := w.bundle(t, "All", entries...)
		file := w.export(t, "acme", b.ID)
		before := w.dump(t, "evil")
		dry, err := w.Bundles.Restore(evil, bytes.NewReader(file), bundles.ImportOptions{DryRun: true, Changes: true})
		is.NoErr(err)
		is.Equal(dry.Archive, nil)
		_, err = w.Bundles.Deploy(w.as(t, "acme"), b.ID, []string{"evil", "acme"}, bundles.ImportOptions{DryRun: true})
		is.NoErr(err)
		is.Equal(w.dump(t, "evil"), before)
		done, err := w.Bundles.Restore(evil, bytes.NewReader(file), bundles.ImportOptions{Changes: true})
		is.NoErr(err)
		is.True(done.Archive != nil)
		done.Archive = nil
		is.Equal(done, dry)
		is.True(done.Deleted > 0)
	})
}

// TestRefusedArchives: of a bad archive nothing is written, however far it goes before it is bad.
func TestRefusedArchives(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, evil := is.New(t), w.as(t, "evil")
		file := w.export(t, "acme", "", w.everything(t, "acme")...)
		id := "0190163d-8694-739b-aea5-966c26f8ad91"
		good := `{"name": "x", "ownerId": "jo", "data": {}}`
		before := w.dump(t, "evil")
		for name, bad := range map[string][]byte{
			"empty": nil, "text": []byte("hello"), "cut": file[:len(file)-20], "junk": append(bytes.Clone(file), 'x'),
			"unknown kind":    packed(t, map[string]string{"color red": `{"color": "#fff"}`, "gadget x": `{}`}, nil),
			"counted unknown": packed(t, map[string]string{}, map[entity.Kind]int{"gadget": 0}),
			"bad row": packed(t, map[string]string{
				"tag " + id: good,
				"color red": `{"color": "#fff"}`,
				"color x":   `{"color": 7}`,
			}, nil),
			"bad id":         packed(t, map[string]string{"tag x": good}, nil),
			"file of nobody": packed(t, map[string]string{"tag " + id: good, "file " + id + " a": "x"}, nil),
			// not NFC
			"bad path": packed(t, map[string]string{
				"library " + id:           good,
				"file " + id + " a":       "x",
				"file " + id + " e\u0301": "x",
			}, nil),
		} {
			for _, restore := range []bool{false, true} {
				call := w.Bundles.Import
				if restore {
					call = w.Bundles.Restore
				}
				_, err := call(evil, bytes.NewReader(bad), bundles.ImportOptions{})
				if code := errs.CodeOf(err); code != errs.Invalid && code != errs.Conflict {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		broken := errors.New("broken")
		_, err := w.Bundles.Import(
			evil, io.MultiReader(bytes.NewReader(file[:5000]), iotest.ErrReader(broken)),
			bundles.ImportOptions{},
		)
		is.Equal(err, broken)
		is.Equal(w.dump(t, "evil"), before)
	})
}

// failing is a library transferer whose files fail from the nth on.
type failing struct {
	entity.FileTransferer
	left  *int
	fault error
}

func (f failing) PutFile(ctx ctx, tenant, id string, file entity.File, r io.Reader) error {
	if *f.left--; *f.left < 0 {
		return f.fault
	}
	return f.FileTransferer.PutFile(ctx, tenant, id, file, r)
}

// TestFailingFile: when a file in the middle fails, nothing is left, not even the rows and files
// before it.
func TestFailingFile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, fault := is.New(t), errors.New("fault")
		db := open(t)
		w := newWorld(t, db)
		entries := w.everything(t, "acme")
		file := w.export(t, "acme", "", entries...)
		b := w.bundle(t, "All", entries...)
		w.make(t, "evil", "library", "Old", `{}`)
		before, here := w.dump(t, "evil"), w.dump(t, "acme")
		for left := range 3 {
			broken := opened(t, db, libraries(w, func(p entity.FileTransferer) entity.Transferer {
				return failing{p, &left, fault}
			}))
			for _, call := range []func() error{
				func() error {
					_, err := broken.Bundles.Import(w.as(t, "evil"), bytes.NewReader(file), bundles.ImportOptions{})
					return err
				},
				func() error {
					_, err := broken.Bundles.Restore(w.as(t, "evil"), bytes.NewReader(file), bundles.ImportOptions{})
					return err
				},
				func() error {
					_, err := broken.Bundles.Deploy(w.as(t, "acme"), b.ID, []string{"evil"}, bundles.ImportOptions{})
					return err
				},
			} {
				n := left
				is.Equal(call(), fault)
				left = n
				is.Equal(w.dump(t, "evil"), before)
			}
		}
		is.Equal(w.dump(t, "acme"), here)
	})
}

// TestFilesFollow: a library that is overwritten has the archive's files and no other, whatever lay
// in their way.
func TestFilesFollow(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		library := w.make(t, "acme", "library", "L", `{}`)
		put := func(path, content string) {
			_, err := w.Content.PutFile(acme, library, entity.File{Path: path}, strings.NewReader(content))
			is.NoErr(err)
		}
		put("a.txt", "a")
		put("dir/b.txt", "b")
		old := w.export(t, "acme", "", "library "+library)
		is.NoErr(w.Content.DeleteFile(acme, library, "a.txt"))
		is.NoErr(w.Content.DeleteFile(acme, library, "dir/b.txt"))
		put("A.txt", "case")
		put("dir", "a file now")
		put("more", "x")
		_, err := w.Bundles.Import(acme, bytes.NewReader(old), bundles.ImportOptions{Rule: entity.Skip})
		is.NoErr(err)
		_, now := unpacked(t, w.export(t, "acme", "", "library "+library))
		is.Equal(len(now), 4) // as it was: skipped with its files
		_, err = w.Bundles.Import(acme, bytes.NewReader(old), bundles.ImportOptions{Rule: entity.Overwrite})
		is.NoErr(err)
		is.Equal(w.export(t, "acme", "", "library "+library), old)
	})
}

// TestStatements: a list costs the same number of statements however many bundles and entries it
// has.
func TestStatements(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, counter := dbtest.Counted(t, open)
		w := newWorld(t, db)
		acme := w.as(t, "acme")
		var b bundles.Bundle
		var bundlesCost, entriesCost []int
		for _, n := range []int{1, 12} {
			for i := range n {
				tag := w.make(t, "acme", "tag", fmt.Sprint("t", n, "-", i), `{}`)
				b = w.bundle(
					t, "B", "tagged "+tag,
					"report "+w.make(t, "acme", "report", fmt.Sprint("r", n, "-", i), `{}`), "user jo",
				)
				_, err := w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "team", EntityID: w.team(t)})
				is.NoErr(err)
			}
			for i := range n {
				_, err := w.Bundles.CreateEntry(
					acme, b.ID, bundles.Entry{
						Type: "tagged", EntityID: w.make(t, "acme", "tag", fmt.Sprint("x", n, "-", i), `{}`),
					},
				)
				is.NoErr(err)
			}
			counter.Take()
			page, err := w.Bundles.List(acme, pageOf(100))
			is.NoErr(err)
			is.Equal(len(page.Rows[len(page.Rows)-1].Entries), 4+n)
			bundlesCost = append(bundlesCost, len(counter.Take()))
			entries, err := w.Bundles.Entries(acme, b.ID, pageOf(100))
			is.NoErr(err)
			for _, e := range entries.Rows {
				is.True(e.Ref != nil)
			}
			entriesCost = append(entriesCost, len(counter.Take()))
		}
		is.Equal(bundlesCost, []int{2, 2}) // bundles with their total, entries
		// the bundle, entries with their total, and one for each type
		is.Equal(entriesCost, []int{1 + 1 + 4, 1 + 1 + 4})
	})
}

func (w *world) team(t *testing.T) string {
	t.Helper()
	team, err := w.Principals.CreateTeam(w.as(t, "acme"), principals.Team{Name: "T"})
	is.New(t).NoErr(err)
	return team.ID
}
