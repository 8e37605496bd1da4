// Package drivertest checks that a host's own kinds of content and bundle drivers meet the contracts of entity.Transferer and
// bundles.Driver. Tests of hosts import it.
package drivertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Fixture is a kind of content over an empty store that has two tenants.
type Fixture struct {
	Kind       entity.Kind
	Transferer entity.Transferer
	Tenants    [2]string // two different ones
	Owner      string    // principal id that both tenants know
	// Make makes the nth entity of a tenant, owned by Owner if the kind has owners, and returns its id. Entities of one
	// tenant with different n can be there at once; of what they need, the kind itself aside, nothing has to be there.
	Make func(t *testing.T, tenant string, n int) string
	// InTx runs fn in one transaction, which the Transferer joins. nil: the Transferer's store has none.
	InTx func(ctx context.Context, fn func(ctx context.Context) error) error
	// Free is JSON of an entity that its kind does not know the members of, which may have secrets: see entity.Transferer. nil:
	// the kind has none. A kind with more of it has a fixture for each.
	Free *Free
}

// Free sets and reads JSON of an entity that exists.
type Free struct {
	Set func(t *testing.T, tenant, id string, data json.RawMessage)
	Get func(t *testing.T, tenant, id string) json.RawMessage
}

// TestDriver runs all checks of a driver: of itself, and of the Transferer that the fixture has. The fixture's kind must be
// among its content.
func TestDriver(t *testing.T, open func(t *testing.T) (bundles.Driver, Fixture)) {
	t.Run("Driver", func(t *testing.T) {
		is := is.New(t)
		d, f := open(t)
		is.NoErr(bundles.CheckDriver(d))
		is.Equal(d.Descriptor(), d.Descriptor()) // it never changes
		i := slices.IndexFunc(d.Content(), func(c entity.Type) bool { return c.Kind == f.Kind })
		is.True(i >= 0) // ships the kind
		content := d.Content()[i]
		if content.Lookup == nil {
			return
		}
		id := f.Make(t, f.Tenants[0], 1)
		ref, err := content.Lookup(t.Context(), f.Tenants[0], id)
		is.NoErr(err)
		is.Equal(ref.ID, id)
		is.Equal(ref.Kind, f.Kind)
		_, err = content.Lookup(t.Context(), f.Tenants[1], id)
		is.Equal(errs.CodeOf(err), errs.NotFound) // of another tenant
		_, err = content.Lookup(t.Context(), f.Tenants[0], "there is none")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		if content.Find == nil {
			return
		}
		for tenant, want := range map[string]map[string]entity.Ref{f.Tenants[0]: {id: ref}, f.Tenants[1]: {}} {
			found, err := content.Find(t.Context(), tenant, []string{id, "there is none"})
			is.NoErr(err)
			is.Equal(found, want)
		}
	})
	TestTransferer(t, func(t *testing.T) Fixture { _, f := open(t); return f })
}

// TestTransferer runs all checks of a Transferer, and those of a FileTransferer when it is one. open returns an empty fixture.
func TestTransferer(t *testing.T, open func(t *testing.T) Fixture) {
	for name, check := range map[string]func(*testing.T, *fixture){
		"IDs":         testIDs,
		"Needs":       testNeeds,
		"Export":      testExport,
		"RoundTrip":   testRoundTrip,
		"Rules":       testRules,
		"BadRows":     testBadRows,
		"Transaction": testTransaction,
		"Remove":      testRemove,
		"Files":       testFiles,
		"Secrets":     testSecrets,
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			check(t, &fixture{Fixture: f, I: is.New(t), t: t, ctx: t.Context(), here: f.Tenants[0], there: f.Tenants[1]})
		})
	}
}

type fixture struct {
	Fixture
	*is.I
	t           *testing.T
	ctx         context.Context
	here, there string
}

// some makes entities in the first tenant and returns their ids, ordered.
func (f *fixture) some(n int) []string {
	f.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = f.Make(f.t, f.here, i+1)
	}
	slices.Sort(ids)
	f.Equal(len(slices.Compact(slices.Clone(ids))), n) // different ones
	return ids
}

// ids returns what of some the tenant has: it may have had others to begin with.
func (f *fixture) ids(tenant string, some []string) []string {
	f.t.Helper()
	all, err := f.Transferer.IDs(f.ctx, tenant)
	f.NoErr(err)
	f.True(slices.IsSorted(all))
	return slices.DeleteFunc(all, func(id string) bool { return !slices.Contains(some, id) })
}

func (f *fixture) export(tenant string, ids []string) []entity.Row {
	f.t.Helper()
	var rows []entity.Row
	for row, err := range f.Transferer.Export(f.ctx, tenant, ids) {
		f.NoErr(err)
		row.JSON = bytes.Clone(row.JSON)
		rows = append(rows, row)
	}
	return rows
}

func (f *fixture) options(rule entity.Rule) entity.ImportOptions {
	return entity.ImportOptions{Rule: rule, Owner: f.Owner}
}

func testIDs(_ *testing.T, f *fixture) {
	ids := f.some(3)
	f.Equal(f.ids(f.here, ids), ids)
	f.Equal(len(f.ids(f.there, ids)), 0) // another tenant has none
}

func testNeeds(_ *testing.T, f *fixture) {
	ids := f.some(3)
	needs, err := f.Transferer.Needs(f.ctx, f.here, append(slices.Clone(ids), f.missing()))
	f.NoErr(err)
	f.Equal(len(needs), 3) // each that exists, needy or not, and no other
	for _, id := range ids {
		keys, ok := needs[id]
		f.True(ok)
		for _, k := range keys {
			f.True(k.Kind != "" && k.ID != "")
		}
	}
	again, err := f.Transferer.Needs(f.ctx, f.here, ids)
	f.NoErr(err)
	f.Equal(again, needs) // in a fixed order
	elsewhere, err := f.Transferer.Needs(f.ctx, f.there, ids)
	f.NoErr(err)
	f.Equal(len(elsewhere), 0)
	none, err := f.Transferer.Needs(f.ctx, f.here, nil)
	f.NoErr(err)
	f.Equal(len(none), 0)
}

// missing is an id of the form that the kind has, of which there is no entity.
func (f *fixture) missing() string { return "00000000-0000-7000-8000-ffffffffffff" }

func testExport(_ *testing.T, f *fixture) {
	ids := f.some(3)
	slices.Reverse(ids)
	rows := f.export(f.here, ids)
	f.Equal(len(rows), 3)
	for i, r := range rows {
		f.Equal(r.Key, entity.Key{Kind: f.Kind, ID: ids[i]}) // in the order that was asked for
		f.True(bytes.HasPrefix(r.JSON, []byte("{")))
		low := strings.ToLower(string(r.JSON))
		for _, secret := range []string{"argon2", "passwordhash", "password_hash", "secrethash", "secret_hash"} {
			f.True(!strings.Contains(low, secret))
		}
	}
	f.Equal(f.export(f.here, ids), rows) // the same bytes
	for range f.Transferer.Export(f.ctx, f.here, ids) {
		break // a caller may have enough
	}
	for tenant, ids := range map[string][]string{f.here: {ids[0], f.missing()}, f.there: ids[:1]} {
		var last error
		for _, err := range f.Transferer.Export(f.ctx, tenant, ids) {
			last = err
		}
		f.Equal(errs.CodeOf(last), errs.NotFound)
	}
	f.Equal(len(f.export(f.here, nil)), 0)
}

func (f *fixture) land(tenant string, rows []entity.Row, rule entity.Rule) []entity.ImportAction {
	f.t.Helper()
	actions, _, err := f.Transferer.Import(f.ctx, tenant, rows, f.options(rule))
	f.NoErr(err)
	return actions
}

func testRoundTrip(_ *testing.T, f *fixture) {
	ids := f.some(3)
	rows := f.export(f.here, ids)
	f.Equal(f.land(f.there, rows, entity.Fail), []entity.ImportAction{entity.Created, entity.Created, entity.Created})
	f.Equal(f.ids(f.there, ids), ids)                  // a row keeps its id
	f.Equal(f.export(f.there, ids), rows)              // and all that it says
	f.Equal(len(f.land(f.there, nil, entity.Skip)), 0) // nothing is nothing
}

func testRules(_ *testing.T, f *fixture) {
	ids := f.some(3)
	rows := f.export(f.here, ids)
	f.land(f.there, rows[:1], entity.Skip)
	f.Equal(f.land(f.there, rows[:2], entity.Skip), []entity.ImportAction{entity.Skipped, entity.Created})
	f.Equal(f.land(f.there, rows, entity.Overwrite), []entity.ImportAction{entity.Updated, entity.Updated, entity.Created})
	f.Equal(f.export(f.there, ids), rows)
	_, err := f.Transferer.Remove(f.ctx, f.there, ids[:1])
	f.NoErr(err)
	_, _, err = f.Transferer.Import(f.ctx, f.there, rows, f.options(entity.Fail))
	f.Equal(errs.CodeOf(err), errs.Conflict)
	f.True(strings.Contains(errs.MessageOf(err), ids[1])) // it names the row
	if f.InTx != nil {
		f.Equal(f.ids(f.there, ids), ids[1:])
	}
	_, _, err = f.Transferer.Import(f.ctx, f.there, rows, f.options("other"))
	f.Equal(errs.CodeOf(err), errs.Invalid)
}

func testBadRows(_ *testing.T, f *fixture) {
	ids := f.some(2)
	rows := f.export(f.here, ids)
	for _, text := range []string{`[]`, `{`, `null`, `7`, ``} {
		bad := []entity.Row{rows[0], {Key: rows[1].Key, JSON: []byte(text)}}
		_, _, err := f.Transferer.Import(f.ctx, f.there, bad, f.options(entity.Overwrite))
		f.Equal(errs.CodeOf(err), errs.Invalid)
		f.True(strings.Contains(errs.MessageOf(err), ids[1])) // it names the row
		if f.InTx != nil {
			f.Equal(len(f.ids(f.there, ids)), 0)
		}
	}
	foreign := rows[0]
	foreign.Kind = "another kind"
	_, _, err := f.Transferer.Import(f.ctx, f.there, []entity.Row{foreign}, f.options(entity.Overwrite))
	f.Equal(errs.CodeOf(err), errs.Invalid)
}

func testTransaction(t *testing.T, f *fixture) {
	if f.InTx == nil {
		return
	}
	ids, fault := f.some(2), errors.New("fault")
	rows := f.export(f.here, ids)
	err := f.InTx(f.ctx, func(ctx context.Context) error {
		_, _, err := f.Transferer.Import(ctx, f.there, rows, f.options(entity.Fail))
		f.NoErr(err)
		n, err := f.Transferer.Remove(ctx, f.here, ids)
		f.NoErr(err)
		f.Equal(n, 2)
		for row, err := range f.Transferer.Export(ctx, f.there, ids) { // what it wrote it reads
			f.NoErr(err)
			_, _, err = f.Transferer.Import(ctx, f.there, []entity.Row{row}, f.options(entity.Overwrite)) // with a row in hand
			f.NoErr(err)
		}
		return fault
	})
	f.Equal(err, fault)
	f.Equal(len(f.ids(f.there, ids)), 0)
	f.Equal(f.ids(f.here, ids), ids)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = f.Transferer.Import(ctx, f.there, rows, f.options(entity.Fail))
	f.True(err != nil)
	f.Equal(len(f.ids(f.there, ids)), 0)
}

func testRemove(_ *testing.T, f *fixture) {
	ids := f.some(3)
	f.land(f.there, f.export(f.here, ids), entity.Fail)
	n, err := f.Transferer.Remove(f.ctx, f.here, []string{ids[0], f.missing(), ids[2]})
	f.NoErr(err)
	f.Equal(n, 2)
	f.Equal(f.ids(f.here, ids), ids[1:2])
	f.Equal(f.ids(f.there, ids), ids) // another tenant keeps its own
	n, err = f.Transferer.Remove(f.ctx, f.here, nil)
	f.NoErr(err)
	f.Equal(n, 0)
}

func testFiles(_ *testing.T, f *fixture) {
	p, ok := f.Transferer.(entity.FileTransferer)
	if !ok {
		return
	}
	id := f.some(1)[0]
	f.land(f.there, f.export(f.here, []string{id}), entity.Fail)
	for n, path := range []string{"b/ü é.txt", "a.txt", "empty"} {
		content := strings.Repeat("x", n*700_000) + path
		if path == "empty" {
			content = ""
		}
		file := entity.File{Path: path, ContentType: "text/plain", Size: int64(len(content))}
		f.NoErr(p.PutFile(f.ctx, f.here, id, file, strings.NewReader(content)))
	}
	list := func(tenant string) (paths []string) {
		all, err := p.Files(f.ctx, tenant, id)
		f.NoErr(err)
		for _, file := range all {
			r, err := p.OpenFile(f.ctx, tenant, id, file.Path)
			f.NoErr(err)
			content, err := io.ReadAll(r)
			f.NoErr(err)
			f.NoErr(r.Close())
			f.Equal(int64(len(content)), file.Size)
			f.Equal(file.ContentType, "text/plain")
			if file.Size > 0 {
				f.True(bytes.HasSuffix(content, []byte(file.Path)))
			}
			paths = append(paths, file.Path)
		}
		return paths
	}
	f.Equal(list(f.here), []string{"a.txt", "b/ü é.txt", "empty"}) // ordered
	f.Equal(len(list(f.there)), 0)                                 // another tenant's
	other := entity.File{Path: "a.txt", ContentType: "text/plain", Size: 5}
	f.NoErr(p.PutFile(f.ctx, f.here, id, other, strings.NewReader("a.txt"))) // again: it is overwritten
	for _, path := range []string{"", "/a", "../a", "a/../b", "a//b", ".", "a/", "a\x00b"} {
		err := p.PutFile(f.ctx, f.here, id, entity.File{Path: path, Size: 1}, strings.NewReader("x"))
		if errs.CodeOf(err) != errs.Invalid {
			f.t.Errorf("the path %q: %v", path, err)
		}
	}
	fault := errors.New("fault")
	err := p.PutFile(f.ctx, f.here, id, entity.File{Path: "fails", Size: 9}, io.MultiReader(strings.NewReader("x"), broken{fault}))
	f.Equal(err, fault) // the reader's own
	f.NoErr(p.KeepFiles(f.ctx, f.here, id, []string{"a.txt", "not there"}))
	f.Equal(list(f.here), []string{"a.txt"})
	_, err = p.OpenFile(f.ctx, f.here, id, "empty")
	f.Equal(errs.CodeOf(err), errs.NotFound)
	f.NoErr(p.KeepFiles(f.ctx, f.here, id, nil))
	f.Equal(len(list(f.here)), 0)
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
