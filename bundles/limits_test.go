package bundles_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
)

// TestTightTenantSize: content that says the same 10,000 times over is exported, replaced, and
// restored from the archive that was kept, whatever the expansion ratio.
func TestTightTenantSize(t *testing.T) {
	for _, ratio := range []int64{0, 2} {
		t.Run(fmt.Sprint(ratio), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
				is := is.New(t)
				w := newWorld(t, open(t), func(c *tenantcontent.Config) { c.ArchiveLimits.Ratio = ratio })
				acme := w.as(t, "acme")
				library := w.make(t, "acme", "library", "Zeros", `{}`)
				zeros := strings.NewReader(strings.Repeat("\x00", 10<<20))
				_, err := w.Content.PutFile(acme, library, entity.File{Path: "zeros"}, zeros)
				is.NoErr(err)
				for i := range 5 {
					w.make(
						t, "acme", "dataset", fmt.Sprint("Same ", i),
						`{"same": "`+strings.Repeat("same", 200_000)+`"}`,
					)
				}
				whole := w.export(t, "acme", "", "library "+library)
				before := contentOf(w, t)
				done, err := w.Bundles.Restore(
					acme, bytes.NewReader(packed(t, nil, map[entity.Kind]int{"library": 0, "dataset": 0})),
					bundles.ImportOptions{},
				)
				is.NoErr(err)
				is.Equal(done.Deleted, 6)
				_, err = w.Bundles.Restore(
					acme, bytes.NewReader(w.fetch(t, "acme", done.Archive)), bundles.ImportOptions{},
				)
				is.NoErr(err)
				is.Equal(contentOf(w, t), before)
				_, err = w.Bundles.Import(acme, bytes.NewReader(whole), bundles.ImportOptions{Rule: entity.Overwrite})
				is.NoErr(err)
			})
		})
	}
}

// contentOf returns the content of acme, without what is kept of it.
func contentOf(w *world, t *testing.T) string {
	return strings.Join(lines(w.dump(t, "acme"), "tc_blobs", "tc_downloads"), "\n")
}

// TestWhatCannotBeKeptStays: when the automatic archive would be one that cannot be sent in again,
// nothing is removed.
func TestWhatCannotBeKeptStays(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is := is.New(t)
		one := w.make(t, "acme", "tag", "One", `{}`)
		file := w.export(t, "acme", "", "tagged "+one)
		b := w.bundle(t, "Tags", "tagged "+one)
		for i := range 20 {
			w.make(t, "acme", "tag", fmt.Sprint("Other ", i), `{"random": "`+random(2000)+`"}`)
		}
		circle(t, w, "tag", one, `{"random": "`+random(60_000)+`"}`)
		before := contentOf(w, t)
		for name, c := range map[string]struct {
			change  func(c *tenantcontent.Config)
			message string
			deploys bool // one row is not too much
		}{
			"members": {func(c *tenantcontent.Config) { c.ArchiveLimits.Members = 10 }, "at most 10 members", true},
			"bytes": {func(c *tenantcontent.Config) {
				c.ArchiveLimits.Bytes = 50_000
			}, "at most 50000 bytes when it is unpacked", false},
			"row": {func(c *tenantcontent.Config) {
				c.ArchiveLimits.Row = 50_000
			}, "an archive takes at most 50000", false},
			"packed": {func(c *tenantcontent.Config) { c.MaxArchive = 20_000 }, "at most 20000 bytes", false},
		} {
			t.Run(name, func(t *testing.T) {
				is := is.New(t)
				narrow := opened(t, w.db, c.change)
				_, restore := narrow.Bundles.Restore(w.as(t, "acme"), bytes.NewReader(file), bundles.ImportOptions{})
				_, rehearse := narrow.Bundles.Restore(
					w.as(t, "acme"), bytes.NewReader(file), bundles.ImportOptions{DryRun: true},
				)
				_, deploy := narrow.Bundles.Deploy(w.as(t, "acme"), b.ID, []string{"acme"}, bundles.ImportOptions{})
				for _, err := range []error{restore, rehearse} {
					is.Equal(errs.CodeOf(err), errs.Invalid)
					is.True(strings.HasPrefix(
						errs.MessageOf(err), "What the restore replaces cannot be kept, so nothing is done: ",
					))
					is.True(strings.Contains(errs.MessageOf(err), c.message))
				}
				is.Equal(deploy == nil, c.deploys)
				is.Equal(contentOf(w, t), before)
			})
		}
		for _, bad := range []func(c *tenantcontent.Config){
			func(c *tenantcontent.Config) {
				c.ArchiveLimits.Ratio = -1
			}, func(c *tenantcontent.Config) { c.MaxArchive = -1 },
		} {
			c := tenantcontent.Config{
				Scripts:   javascript.New(javascript.Options{}),
				DB:        w.db,
				SecretKey: tenantcontent.NewSecretKey(),
			}
			bad(&c)
			_, err := tenantcontent.Open(c)
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
	})
}

// random is text that does not pack.
func random(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(tenantcontent.NewSecretKey()[:40])
	}
	return b.String()
}

// TestLimitsOfAnImport: the configured limits hold for what is sent in.
func TestLimitsOfAnImport(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite(t))
	file := w.export(
		t, "acme", "",
		"tagged "+w.make(t, "acme", "tag", "One", `{"text": "`+strings.Repeat("text", 10_000)+`"}`), "user jo",
	)
	for limits, message := range map[bundles.Limits]string{
		{}: "", {Members: 4}: "",
		{Members: 3}:    "at most 3 members",
		{Bytes: 40_000}: "more than 40000 bytes", {Row: 40_000}: "at most 40000 are allowed",
	} {
		narrow := opened(t, w.db, func(c *tenantcontent.Config) { c.ArchiveLimits = limits })
		_, err := narrow.Bundles.Import(w.as(t, "evil"), bytes.NewReader(file), bundles.ImportOptions{})
		is.Equal(err == nil, message == "")
		is.True(strings.Contains(errs.MessageOf(err), message))
	}
}

// TestNestedData: an entry's data is nested so deep and no deeper, so that its bundle always
// travels.
func TestNestedData(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		tag := w.make(t, "acme", "tag", "One", `{}`)
		b := w.bundle(t, "Deep")
		nested := func(levels int) []byte {
			return []byte(strings.Repeat(`{"a":`, levels-1) + `{}` + strings.Repeat(`}`, levels-1))
		}
		e, err := w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "tagged", EntityID: tag, Data: nested(64)})
		is.NoErr(err)
		_, err = w.Bundles.Import(acme, bytes.NewReader(w.export(t, "acme", b.ID)), bundles.ImportOptions{})
		is.NoErr(err)
		_, add := w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "global", Data: nested(65)})
		_, set := w.Bundles.UpdateEntry(acme, b.ID, e.ID, nested(65))
		_, manifest := w.Bundles.ExportManifest(acme, bundles.Manifest{Entries: []bundles.Entry{{
			Type: "global",
			Data: nested(10_000),
		}}})
		for _, err := range []error{add, set, manifest} {
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasSuffix(errs.MessageOf(err), "data must not be nested more than 64 levels deep"))
		}
		circle(t, w, content.Library, w.make(t, "acme", "library", "L", `{}`), string(nested(500))) // rows may
		_, err = w.Bundles.Restore(
			acme, bytes.NewReader(packed(t, nil, map[entity.Kind]int{"library": 0})), bundles.ImportOptions{},
		)
		is.NoErr(err)
	})
}

// TestEntriesOfABundle: how many a bundle has, and how much data they have together, is bounded,
// and what is over the bound already can be made smaller.
func TestEntriesOfABundle(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		many, large := w.bundle(t, "Many"), w.bundle(t, "Large", "global ")
		is.NoErr(bunx.Write(t.Context(), w.db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx,
				`INSERT INTO tc_bundle_entries (tenant_id, id, bundle_id, type, entity_id, data, created_at, updated_at)
				WITH RECURSIVE n (i) AS (SELECT 100000 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
				SELECT 'acme', '00000000-0000-7000-8000-000000' || i, $2, 'gone', 'e' || i, '{}', $3, $3 FROM n`,
				100000+bundles.MaxEntries-2, many.ID, bunx.At(many.CreatedAt))
			return err
		}))
		one, two := w.make(t, "acme", "tag", "One", `{}`), w.make(t, "acme", "tag", "Two", `{}`)
		refused := func(err error, message string) {
			t.Helper()
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.Equal(errs.MessageOf(err), message)
		}
		last, err := w.Bundles.CreateEntry(acme, many.ID, bundles.Entry{Type: "tagged", EntityID: one})
		is.NoErr(err)
		_, err = w.Bundles.CreateEntry(acme, many.ID, bundles.Entry{Type: "tagged", EntityID: two})
		refused(err, "A bundle must have at most 10000 entries: make another bundle for the rest.")
		_, err = w.Bundles.UpdateEntry(acme, many.ID, last.ID, []byte(`{"a": 1}`))
		is.NoErr(err)

		data := func(n int) []byte { return []byte(`{"a":"` + strings.Repeat("x", n-8) + `"}`) }
		is.NoErr(bunx.Write(t.Context(), w.db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, `UPDATE tc_bundle_entries SET data = $1 WHERE tenant_id = 'acme' AND bundle_id = $2`,
				string(data(bundles.MaxEntriesData-100)), large.ID)
			return err
		}))
		e, err := w.Bundles.CreateEntry(acme, large.ID, bundles.Entry{Type: "tagged", EntityID: one, Data: data(100)})
		is.NoErr(err)
		full := "data of all entries of a bundle must have at most 4194304 bytes together: make another bundle " +
			"for the rest."
		_, err = w.Bundles.CreateEntry(acme, large.ID, bundles.Entry{Type: "tagged", EntityID: two})
		refused(err, full)
		_, err = w.Bundles.UpdateEntry(acme, large.ID, e.ID, data(101))
		refused(err, full)
		_, err = w.Bundles.UpdateEntry(acme, large.ID, e.ID, data(100))
		is.NoErr(err)
		_, err = w.Bundles.UpdateEntry(acme, large.ID, e.ID, data(98))
		is.NoErr(err)
		_, err = w.Bundles.CreateEntry(acme, large.ID, bundles.Entry{Type: "tagged", EntityID: two})
		is.NoErr(err)
	})
}

// sleeping is an archive that takes its time when it is imported.
type sleeping struct {
	*bytes.Reader
	seeks *int
}

func (s sleeping) Seek(offset int64, whence int) (int64, error) {
	if *s.seeks++; *s.seeks == 2 {
		time.Sleep(2 * time.Second)
	}
	return s.Reader.Seek(offset, whence)
}

// TestImportsThatTakeLong are refused and change nothing, and a dry run says so.
func TestImportsThatTakeLong(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		w := newWorld(t, open(t), func(c *tenantcontent.Config) { c.MaxImportTime = time.Millisecond })
		file := opened(t, w.db).export(t, "acme", "", "tagged "+w.make(t, "acme", "tag", "T", `{}`))
		for _, dry := range []bool{true, false} {
			for _, do := range []func(context.Context, io.Reader, bundles.ImportOptions) (bundles.ImportResult, error){
				w.App.Bundles.Import, w.App.Bundles.Restore,
			} {
				_, err := do(
					w.as(t, "evil"), sleeping{bytes.NewReader(file), new(int)},
					bundles.ImportOptions{DryRun: dry},
				)
				is.Equal(errs.CodeOf(err), errs.TooLarge)
				is.True(strings.Contains(errs.MessageOf(err), "TENANTCONTENT_MAX_IMPORT_TIME"))
			}
		}
		is.Equal(w.names(t, "evil", "tag"), "")
		w.make(t, "evil", "tag", "Blue", `{}`) // the writer is free
	})
}
