package bundles_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// diff says what an import that overwrites would change: action, kind and name of each row.
func (w *world) diff(t *testing.T, tenant string, file []byte) (changes []string, counts bundles.Counts) {
	t.Helper()
	is := is.New(t)
	r, err := w.Bundles.Import(
		w.as(t, tenant), bytes.NewReader(file),
		bundles.ImportOptions{Rule: entity.Overwrite, DryRun: true, Changes: true},
	)
	is.NoErr(err)
	for _, c := range r.Changes {
		changes = append(changes, fmt.Sprint(c.Action, " ", c.Kind, " ", c.Name))
	}
	done, err := w.Bundles.Import(
		w.as(t, tenant), bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Overwrite, DryRun: true},
	)
	is.NoErr(err)
	is.Equal(done.Updated, r.Updated+r.Unchanged) // who does not ask for changes gets no other counts
	is.Equal(done.Unchanged, 0)
	return changes, r.Counts
}

// TestUnchanged: what an import overwrites with what it says already is told from what it changes.
func TestUnchanged(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, evil := is.New(t), w.as(t, "evil")
		entries := w.everything(t, "acme")
		file := w.export(t, "acme", "", entries...)
		_, err := w.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Overwrite})
		is.NoErr(err)
		changes, counts := w.diff(t, "evil", file)
		is.Equal(counts, bundles.Counts{Unchanged: len(changes)})
		is.True(len(changes) > 20)
		for _, rule := range []entity.Rule{entity.Skip, entity.Fail} { // and under every other rule
			r, err := w.Bundles.Import(
				evil, bytes.NewReader(file), bundles.ImportOptions{Rule: rule, DryRun: true, Changes: true},
			)
			is.NoErr(err)
			for _, c := range r.Changes {
				if c.Action != "unchanged" {
					t.Errorf("rule %s: %s %s is %s", rule, c.Kind, c.ID, c.Action)
				}
			}
			is.Equal(r.Counts, counts)
		}
		_, err = w.Bundles.Import(evil, bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Fail, Changes: true})
		is.Equal(errs.CodeOf(err), errs.Conflict) // the real thing stops at the first row that exists
		_, err = w.Colors.Put(evil, "red", "#0000ff")
		is.NoErr(err)
		is.NoErr(w.Colors.Delete(evil, "Red"))
		changes, counts = w.diff(t, "evil", file)
		is.Equal(counts, bundles.Counts{Created: 1, Updated: 1, Unchanged: len(changes) - 2})
		is.True(strings.Contains(strings.Join(changes, "\n"), "updated color red\n"))
		is.True(strings.Contains(strings.Join(changes, "\n"), "created color Red\n"))
	})
}

// TestUnknownOwnerIsUnchanged: what counts is what the tenant would say, not what the archive says.
func TestUnknownOwnerIsUnchanged(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		tag := w.make(t, "evil", "tag", "T", `{}`)
		_, rows := unpacked(t, w.export(t, "evil", "", "tagged "+tag))
		stranger := strings.Replace(rows["tag "+tag], `"jo"`, `"stranger"`, 1)
		file := packed(t, map[string]string{"tag " + tag: stranger}, nil)
		changes, _ := w.diff(t, "evil", file)
		is.Equal(changes, []string{"updated tag T"})
		_, err := w.Bundles.Import(
			w.as(t, "evil"), bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Overwrite},
		)
		is.NoErr(err)
		changes, _ = w.diff(t, "evil", file)
		is.Equal(changes, []string{"unchanged tag T"})
		r, err := w.Bundles.Import(
			w.as(t, "evil"), bytes.NewReader(file), bundles.ImportOptions{DryRun: true, Changes: true},
		)
		is.NoErr(err)
		is.Equal(r.Counts, bundles.Counts{Unchanged: 1})
	})
}

// TestChangedFiles make a library that says the same a changed one.
func TestChangedFiles(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		library := w.make(t, "acme", "library", "L", `{}`)
		put := func(path, kind, content string) {
			_, err := w.Content.PutFile(acme, library, entity.File{
				Path: path, ContentType: kind,
			}, strings.NewReader(content))
			is.NoErr(err)
		}
		put("a", "text/plain", "aa")
		put("b", "text/plain", strings.Repeat("b", 1<<20+9))
		put("c", "text/plain", "")
		file := w.export(t, "acme", "", "library "+library)
		w.make(t, "acme", "report", "R", `{}`)
		for name, change := range map[string]func(){
			"unchanged": func() {},
			"content":   func() { put("b", "text/plain", strings.Repeat("b", 1<<20+8)+"x") },
			"size":      func() { put("a", "text/plain", "a") },
			"type":      func() { put("a", "text/css", "aa") },
			"more":      func() { put("d", "text/plain", "d") },
			"other":     func() { is.NoErr(w.Content.DeleteFile(acme, library, "c")); put("C", "text/plain", "") },
			"less":      func() { is.NoErr(w.Content.DeleteFile(acme, library, "c")) },
		} {
			change()
			want, counts := "updated library L", bundles.Counts{Updated: 1}
			if name == "unchanged" {
				want, counts = "unchanged library L", bundles.Counts{Unchanged: 1}
			}
			changes, got := w.diff(t, "acme", file)
			if len(changes) != 1 || changes[0] != want || got != counts {
				t.Errorf("%s: %v %v", name, changes, got)
			}
			skipped, err := w.Bundles.Import(
				acme, bytes.NewReader(file), bundles.ImportOptions{DryRun: true, Changes: true},
			)
			is.NoErr(err)
			is.Equal(skipped.Counts, bundles.Counts{Unchanged: counts.Unchanged, Skipped: counts.Updated})
			_, err = w.Bundles.Import(
				acme, bytes.NewReader(file),
				bundles.ImportOptions{Rule: entity.Fail, DryRun: true, Changes: true},
			)
			is.Equal(err == nil, name == "unchanged")
			_, err = w.Bundles.Import(acme, bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Overwrite})
			is.NoErr(err)
		}
	})
}

// TestChangesAreNamed, also those that a restore removes.
func TestChangesAreNamed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		same := w.make(t, "acme", "tag", "Same", `{}`)
		file := w.export(t, "acme", "", "tagged "+same)
		goes := w.make(t, "acme", "tag", "Goes", `{}`)
		for _, dry := range []bool{true, false} {
			r, err := w.Bundles.Restore(acme, bytes.NewReader(file), bundles.ImportOptions{Changes: true, DryRun: dry})
			is.NoErr(err)
			is.Equal(r.Changes, []bundles.Change{
				{Action: "deleted", Key: entity.Key{Kind: "tag", ID: goes}, Name: "Goes"},
				{Action: "unchanged", Key: entity.Key{Kind: "tag", ID: same}, Name: "Same"},
			})
			is.Equal(r.Counts, bundles.Counts{Deleted: 1, Unchanged: 1})
		}
		r, err := w.Bundles.Import(acme, bytes.NewReader(file), bundles.ImportOptions{Changes: true})
		is.NoErr(err)
		is.Equal(r.Changes, []bundles.Change{{
			Action: "unchanged",
			Key:    entity.Key{Kind: "tag", ID: same},
			Name:   "Same",
		}})
	})
}

// TestDraftInTheWay is a conflict, whether changes are asked for or not.
func TestDraftInTheWay(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		report := w.make(t, "acme", "report", "R", `{}`)
		draft, err := w.Content.Create(acme, content.Entity{Kind: "report", Name: "Draft", EditingID: &report})
		is.NoErr(err)
		file := packed(t, map[string]string{"report " + draft.ID: `{"name": "x", "ownerId": "jo"}`}, nil)
		for _, changes := range []bool{false, true} {
			_, err := w.Bundles.Import(
				acme, bytes.NewReader(file), bundles.ImportOptions{Rule: entity.Overwrite, Changes: changes},
			)
			is.Equal(errs.CodeOf(err), errs.Conflict)
		}
	})
}

// TestChangesCost: they are asked for batch by batch.
func TestChangesCost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, counter := dbtest.Counted(t, open)
		w := newWorld(t, db)
		var cost []int
		for tenant, n := range map[string]int{"acme": 2, "evil": 32} { // 32 are read at once for their secrets
			var entries []string
			for i := range n {
				entries = append(entries, "tagged "+w.make(t, tenant, "tag", fmt.Sprint("T", i), `{}`))
				_, err := w.Colors.Put(w.as(t, tenant), fmt.Sprint("c", i), "#ffffff")
				is.NoErr(err)
			}
			entries = append(entries, "global ")
			file := w.export(t, tenant, "", entries...)
			counter.Take()
			r, err := w.Bundles.Import(
				w.as(t, tenant), bytes.NewReader(file),
				bundles.ImportOptions{Rule: entity.Overwrite, Changes: true},
			)
			is.NoErr(err)
			is.Equal(r.Unchanged, 2*n)
			cost = append(cost, len(counter.Take()))
		}
		is.Equal(cost[0], cost[1])
	})
}
