// Package drivertest checks that a host's own kinds of content and bundle drivers meet the
// contracts of entity.Transferer and bundles.Driver. Tests of hosts import it.
package drivertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	// Make makes the nth entity of a tenant, owned by Owner if the kind has owners, and returns its
	// id. Entities of one tenant with different n can be there at once; of what they need, the kind
	// itself aside, nothing has to be there.
	Make func(t *testing.T, tenant string, n int) string
	// InTx runs fn in one transaction, which the Transferer joins. nil: the Transferer's store has
	// none.
	InTx func(ctx context.Context, fn func(ctx context.Context) error) error
	// Free is JSON of an entity that its kind does not know the members of, which may have secrets:
	// see entity.Transferer. nil: the kind has none. A kind with more of it has a fixture for each.
	Free *Free
}

// Free sets and reads JSON of an entity that exists.
type Free struct {
	Set func(t *testing.T, tenant, id string, data json.RawMessage)
	Get func(t *testing.T, tenant, id string) json.RawMessage
}

// TestDriver runs all checks of a driver: of itself, and of the Transferer that the fixture has.
// The fixture's kind must be among its content.
func TestDriver(t *testing.T, open func(t *testing.T) (bundles.Driver, Fixture)) {
	t.Run("Driver", func(t *testing.T) {
		d, in := open(t)
		f := newFixture(t, in)
		f.noErr(bundles.CheckDriver(d), "the check of the Driver")
		f.equal(d.Descriptor(), d.Descriptor(), "Descriptor, which never changes, the second time")
		i := slices.IndexFunc(d.Content(), func(c entity.Type) bool { return c.Kind == f.Kind })
		f.true(i >= 0, "Content has no %s, the kind of the fixture", f.Kind)
		content := d.Content()[i]
		if content.Lookup == nil {
			return
		}
		id := f.Make(t, f.here, 1)
		ref, err := content.Lookup(t.Context(), f.here, id)
		f.noErr(err, "Lookup of an entity that is there")
		f.equal(entity.Key{Kind: ref.Kind, ID: ref.ID}, entity.Key{Kind: f.Kind, ID: id}, "Lookup")
		_, err = content.Lookup(t.Context(), f.there, id)
		f.fails(err, errs.NotFound, "Lookup of an entity of another tenant")
		_, err = content.Lookup(t.Context(), f.here, "there is none")
		f.fails(err, errs.NotFound, "Lookup of an id that there is not")
		if content.Find == nil {
			return
		}
		for tenant, want := range map[string]map[string]entity.Ref{f.here: {id: ref}, f.there: {}} {
			found, err := content.Find(t.Context(), tenant, []string{id, "there is none"})
			f.noErr(err, "Find")
			f.equal(found, want, "Find in "+tenant)
		}
	})
	TestTransferer(t, func(t *testing.T) Fixture { _, f := open(t); return f })
}

// TestTransferer runs all checks of a Transferer, and those of a FileTransferer when it is one.
// open returns an empty fixture.
func TestTransferer(t *testing.T, open func(t *testing.T) Fixture) {
	for name, check := range map[string]func(*testing.T, *fixture){
		"IDs":         testIDs,
		"Needs":       testNeeds,
		"Export":      testExport,
		"RoundTrip":   testRoundTrip,
		"Rules":       testRules,
		"BadRows":     testBadRows,
		"Transaction": testTransaction,
		"Context":     testContext,
		"Remove":      testRemove,
		"Files":       testFiles,
		"Secrets":     testSecrets,
	} {
		t.Run(name, func(t *testing.T) {
			check(t, newFixture(t, open(t)))
		})
	}
}

type fixture struct {
	Fixture
	t           *testing.T
	ctx         context.Context
	here, there string
}

func newFixture(t *testing.T, f Fixture) *fixture {
	return &fixture{Fixture: f, t: t, ctx: t.Context(), here: f.Tenants[0], there: f.Tenants[1]}
}

// timeout is how long a call may take whose context has ended.
const timeout = 5 * time.Second

// true ends the subtest with a sentence unless something holds.
func (f *fixture) true(holds bool, format string, args ...any) {
	f.t.Helper()
	if !holds {
		f.t.Fatalf(format, args...)
	}
}

// equal ends the subtest unless two values are the same. what names the one that the driver
// returned.
func (f *fixture) equal(got, want any, what string) {
	f.t.Helper()
	if !reflect.DeepEqual(got, want) && !(empty(got) && empty(want)) {
		f.t.Fatalf("%s: got %s, want %s", what, text(got), text(want))
	}
}

func empty(v any) bool {
	of := reflect.ValueOf(v)
	return !of.IsValid() || (of.Kind() == reflect.Slice || of.Kind() == reflect.Map) && of.Len() == 0
}

// text returns a value for a sentence.
func text(v any) string {
	if empty(v) {
		return "none"
	}
	if rows, ok := v.([]entity.Row); ok {
		var all []string
		for _, row := range rows {
			all = append(all, fmt.Sprintf("%s %s %s", row.Kind, row.ID, row.JSON))
		}
		v = all
	}
	return fmt.Sprintf("%.1000v", fmt.Sprintf("%+v", v))
}

func (f *fixture) noErr(err error, what string) {
	f.t.Helper()
	f.true(err == nil, "%s failed: %v", what, err)
}

// fails ends the subtest unless an error has a code.
func (f *fixture) fails(err error, code errs.Code, what string) {
	f.t.Helper()
	f.true(err != nil, "%s succeeded, where it must fail with errs.%s", what, code)
	f.true(
		errs.CodeOf(err) == code, "%s failed with errs.%s, where it must be errs.%s: %v", what,
		errs.CodeOf(err), code, err,
	)
}

// soon calls fn, whose context has ended, and ends the subtest if it does not return.
func (f *fixture) soon(what string, fn func() error) error {
	f.t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(timeout):
		f.t.Fatalf("%s has not returned within %v of the end of its context", what, timeout)
		return nil
	}
}

// some makes entities in the first tenant and returns their ids, ordered.
func (f *fixture) some(n int) []string {
	f.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = f.Make(f.t, f.here, i+1)
	}
	slices.Sort(ids)
	f.true(len(slices.Compact(slices.Clone(ids))) == n, "Make of the fixture returned the same id twice: %q", ids)
	return ids
}

// ids returns what of some the tenant has: it may have had others to begin with.
func (f *fixture) ids(tenant string, some []string) []string {
	f.t.Helper()
	all, err := f.Transferer.IDs(f.ctx, tenant)
	f.noErr(err, "IDs")
	f.true(slices.IsSorted(all), "IDs are not in order: %q", all)
	return slices.DeleteFunc(all, func(id string) bool { return !slices.Contains(some, id) })
}

// have checks which of some entities a tenant has.
func (f *fixture) have(tenant string, some, want []string, after string) {
	f.t.Helper()
	f.equal(f.ids(tenant, some), want, "the ids of "+tenant+" "+after)
}

func (f *fixture) export(tenant string, ids []string) []entity.Row {
	f.t.Helper()
	var rows []entity.Row
	for row, err := range f.Transferer.Export(f.ctx, tenant, ids) {
		f.noErr(err, "Export")
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
	f.have(f.here, ids, ids, "that Make has made")
	f.have(f.there, ids, nil, "which are another tenant's")
}

func testNeeds(_ *testing.T, f *fixture) {
	ids := f.some(3)
	needs, err := f.Transferer.Needs(f.ctx, f.here, append(slices.Clone(ids), f.missing()))
	f.noErr(err, "Needs")
	f.true(
		len(needs) == 3,
		"Needs has %d entities, want the 3 that are there, needy or not, and not the one that is not there",
		len(needs),
	)
	for _, id := range ids {
		keys, ok := needs[id]
		f.true(ok, "Needs lacks the entity %s", id)
		for _, k := range keys {
			f.true(k.Kind != "" && k.ID != "", "Needs of %s has a key without a kind or an id: %+v", id, k)
		}
	}
	again, err := f.Transferer.Needs(f.ctx, f.here, ids)
	f.noErr(err, "Needs")
	f.equal(again, needs, "Needs the second time, whose order is fixed")
	elsewhere, err := f.Transferer.Needs(f.ctx, f.there, ids)
	f.noErr(err, "Needs in another tenant")
	f.true(len(elsewhere) == 0, "Needs in another tenant has entities that it does not have: %v", elsewhere)
	none, err := f.Transferer.Needs(f.ctx, f.here, nil)
	f.noErr(err, "Needs of no entity")
	f.true(len(none) == 0, "Needs of no entity has some: %v", none)
}

// missing is an id of the form that the kind has, of which there is no entity.
func (f *fixture) missing() string { return "00000000-0000-7000-8000-ffffffffffff" }

func testExport(_ *testing.T, f *fixture) {
	ids := f.some(3)
	slices.Reverse(ids)
	rows := f.export(f.here, ids)
	f.true(len(rows) == 3, "Export of 3 entities has %d rows", len(rows))
	for i, r := range rows {
		f.equal(
			r.Key, entity.Key{Kind: f.Kind, ID: ids[i]},
			fmt.Sprintf("Export, in the order that was asked for, rows[%d].Key", i),
		)
		f.true(bytes.HasPrefix(r.JSON, []byte("{")), "Export has a row that is not a JSON object: %.200s", r.JSON)
		low := strings.ToLower(string(r.JSON))
		for _, secret := range []string{"argon2", "passwordhash", "password_hash", "secrethash", "secret_hash"} {
			f.true(!strings.Contains(low, secret), "Export has a row with %s, which looks like a secret", secret)
		}
	}
	f.equal(f.export(f.here, ids), rows, "Export the second time, which has the same bytes")
	for range f.Transferer.Export(f.ctx, f.here, ids) {
		break // a caller may have enough
	}
	for tenant, ids := range map[string][]string{f.here: {ids[0], f.missing()}, f.there: ids[:1]} {
		var last error
		for _, err := range f.Transferer.Export(f.ctx, tenant, ids) {
			last = err
		}
		f.fails(last, errs.NotFound, "Export of an entity that "+tenant+" does not have")
	}
	f.true(len(f.export(f.here, nil)) == 0, "Export of no entity has rows")
}

// land imports rows, which must become what is wanted.
func (f *fixture) land(tenant string, rows []entity.Row, rule entity.Rule, want ...entity.ImportAction) {
	f.t.Helper()
	actions, _, err := f.Transferer.Import(f.ctx, tenant, rows, f.options(rule))
	f.noErr(err, fmt.Sprintf("Import of %d rows with the rule %s", len(rows), rule))
	if want != nil || len(rows) == 0 {
		f.equal(actions, want, fmt.Sprintf("the actions of Import with the rule %s", rule))
	}
}

func testRoundTrip(_ *testing.T, f *fixture) {
	ids := f.some(3)
	rows := f.export(f.here, ids)
	f.land(f.there, rows, entity.Fail, entity.Created, entity.Created, entity.Created)
	f.have(f.there, ids, ids, "after Import: a row keeps its id")
	f.equal(f.export(f.there, ids), rows, "Export of what was imported, which has all that its rows had")
	f.land(f.there, nil, entity.Skip)
}

func testRules(_ *testing.T, f *fixture) {
	ids := f.some(3)
	rows := f.export(f.here, ids)
	f.land(f.there, rows[:1], entity.Skip)
	f.land(f.there, rows[:2], entity.Skip, entity.Skipped, entity.Created)
	f.land(f.there, rows, entity.Overwrite, entity.Updated, entity.Updated, entity.Created)
	f.equal(f.export(f.there, ids), rows, "Export of what was imported with the rule overwrite")
	_, err := f.Transferer.Remove(f.ctx, f.there, ids[:1])
	f.noErr(err, "Remove")
	_, _, err = f.Transferer.Import(f.ctx, f.there, rows, f.options(entity.Fail))
	f.fails(err, errs.Conflict, "Import of rows that are there, with the rule fail,")
	f.true(
		strings.Contains(errs.MessageOf(err), ids[1]),
		"Import with the rule fail does not name the row %s that is there: %s", ids[1], errs.MessageOf(err),
	)
	if f.InTx != nil {
		f.have(f.there, ids, ids[1:], "after an Import that failed, which writes nothing")
	}
	_, _, err = f.Transferer.Import(f.ctx, f.there, rows, f.options("other"))
	f.fails(err, errs.Invalid, "Import with a rule that there is not")
}

func testBadRows(_ *testing.T, f *fixture) {
	ids := f.some(2)
	rows := f.export(f.here, ids)
	for _, text := range []string{`[]`, `{`, `null`, `7`, ``} {
		bad := []entity.Row{rows[0], {Key: rows[1].Key, JSON: []byte(text)}}
		_, _, err := f.Transferer.Import(f.ctx, f.there, bad, f.options(entity.Overwrite))
		f.fails(err, errs.Invalid, fmt.Sprintf("Import of the row %q", text))
		f.true(
			strings.Contains(errs.MessageOf(err), ids[1]), "Import of the row %q does not name the row %s: %s",
			text, ids[1], errs.MessageOf(err),
		)
		if f.InTx != nil {
			f.have(f.there, ids, nil, "after an Import that failed, which writes nothing")
		}
	}
	foreign := rows[0]
	foreign.Kind = "another kind"
	_, _, err := f.Transferer.Import(f.ctx, f.there, []entity.Row{foreign}, f.options(entity.Overwrite))
	f.fails(err, errs.Invalid, "Import of a row of another kind")
}

func testTransaction(_ *testing.T, f *fixture) {
	if f.InTx == nil {
		return
	}
	ids, fault := f.some(2), errors.New("fault")
	rows := f.export(f.here, ids)
	err := f.InTx(f.ctx, func(ctx context.Context) error {
		_, _, err := f.Transferer.Import(ctx, f.there, rows, f.options(entity.Fail))
		f.noErr(err, "Import in a transaction")
		n, err := f.Transferer.Remove(ctx, f.here, ids)
		f.noErr(err, "Remove in a transaction")
		f.equal(n, 2, "Remove of 2 entities")
		for row, err := range f.Transferer.Export(ctx, f.there, ids) {
			f.noErr(err, "Export of what was imported in the same transaction")
			_, _, err = f.Transferer.Import(ctx, f.there, []entity.Row{row}, f.options(entity.Overwrite))
			f.noErr(err, "Import while a row of Export is worked on")
		}
		if p, ok := f.Transferer.(entity.FileTransferer); ok {
			file := entity.File{Path: "a.txt", ContentType: "text/plain", Size: 1}
			f.noErr(p.PutFile(ctx, f.there, ids[0], file, strings.NewReader("x")), "PutFile in a transaction")
		}
		return fault
	})
	f.true(errors.Is(err, fault), "InTx of the fixture returned %v, where its function returned %v", err, fault)
	f.have(
		f.there, ids, nil,
		"after the transaction of Import was rolled back: Import does not join the transaction in its context",
	)
	f.have(
		f.here, ids, ids,
		"after the transaction of Remove was rolled back: Remove does not join the transaction in its context",
	)
	if p, ok := f.Transferer.(entity.FileTransferer); ok {
		f.land(f.there, rows, entity.Fail)
		f.equal(
			f.paths(p, f.there, ids[0]), nil,
			"the files of an entity after the transaction of PutFile was rolled back",
		)
	}
}

// testContext: calls return when their context has ended, and writes fail then.
func testContext(t *testing.T, f *fixture) {
	ids := f.some(2)
	rows := f.export(f.here, ids)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tell := func(err error, what string) {
		t.Helper()
		f.true(err != nil, "%s succeeded, although its context had ended before", what)
	}
	tell(f.soon("Import", func() error {
		_, _, err := f.Transferer.Import(ctx, f.there, rows, f.options(entity.Fail))
		return err
	}), "Import")
	f.have(f.there, ids, nil, "after an Import whose context had ended before")
	tell(f.soon("Remove", func() error {
		_, err := f.Transferer.Remove(ctx, f.here, ids)
		return err
	}), "Remove")
	f.have(f.here, ids, ids, "after a Remove whose context had ended before")
	_ = f.soon("IDs", func() error { _, err := f.Transferer.IDs(ctx, f.here); return err })
	_ = f.soon("Needs", func() error { _, err := f.Transferer.Needs(ctx, f.here, ids); return err })
	_ = f.soon("Export", func() error {
		for range f.Transferer.Export(ctx, f.here, ids) { // what it has read it may return
		}
		return nil
	})
	if f.InTx == nil {
		return
	}
	// The caller of a transaction hangs up in the middle.
	within, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	err := f.soon("Import in a transaction", func() error {
		return f.InTx(within, func(ctx context.Context) error {
			if _, _, err := f.Transferer.Import(ctx, f.there, rows[:1], f.options(entity.Fail)); err != nil {
				return err
			}
			hangUp()
			_, _, err := f.Transferer.Import(ctx, f.there, rows[1:], f.options(entity.Fail))
			return err
		})
	})
	tell(err, "Import in a transaction")
	f.have(f.there, ids, nil, "after a transaction whose context ended in the middle")
}

func testRemove(_ *testing.T, f *fixture) {
	ids := f.some(3)
	f.land(f.there, f.export(f.here, ids), entity.Fail)
	n, err := f.Transferer.Remove(f.ctx, f.here, []string{ids[0], f.missing(), ids[2]})
	f.noErr(err, "Remove")
	f.equal(n, 2, "Remove of 2 entities that are there and one that is not")
	f.have(f.here, ids, ids[1:2], "after Remove of two others")
	f.have(f.there, ids, ids, "after Remove in another tenant")
	n, err = f.Transferer.Remove(f.ctx, f.here, nil)
	f.noErr(err, "Remove of no entity")
	f.equal(n, 0, "Remove of no entity")
}

// paths returns the paths of an entity's files.
func (f *fixture) paths(p entity.FileTransferer, tenant, id string) (paths []string) {
	f.t.Helper()
	all, err := p.Files(f.ctx, tenant, id)
	f.noErr(err, "Files")
	for _, file := range all {
		paths = append(paths, file.Path)
	}
	return paths
}

func testFiles(_ *testing.T, f *fixture) {
	p, ok := f.Transferer.(entity.FileTransferer)
	if !ok {
		return
	}
	id := f.some(1)[0]
	rows := f.export(f.here, []string{id})
	f.land(f.there, rows, entity.Fail)
	want := map[string]string{"a.txt": strings.Repeat("x", 700_000) + "a.txt", "b/ü é.txt": "b/ü é.txt", "empty": ""}
	for path, content := range want {
		file := entity.File{Path: path, ContentType: "text/plain", Size: int64(len(content))}
		f.noErr(p.PutFile(f.ctx, f.here, id, file, strings.NewReader(content)), "PutFile of "+path)
	}
	f.equal(f.paths(p, f.here, id), []string{"a.txt", "b/ü é.txt", "empty"}, "Files, ordered by path")
	f.equal(f.paths(p, f.there, id), nil, "Files of an entity with the same id in another tenant")
	all, err := p.Files(f.ctx, f.here, id)
	f.noErr(err, "Files")
	for _, file := range all {
		r, err := p.OpenFile(f.ctx, f.here, id, file.Path)
		f.noErr(err, "OpenFile of "+file.Path)
		content, err := io.ReadAll(r)
		f.noErr(err, "reading "+file.Path)
		f.noErr(r.Close(), "closing "+file.Path)
		f.true(
			string(content) == want[file.Path],
			"%s has %d bytes that are not those that were put, which are %d", file.Path, len(content),
			len(want[file.Path]),
		)
		f.equal(file, entity.File{
			Path:        file.Path,
			ContentType: "text/plain",
			Size:        int64(len(content)),
		}, "Files of "+file.Path)
	}
	other := entity.File{Path: "a.txt", ContentType: "text/plain", Size: 5}
	f.noErr(
		p.PutFile(f.ctx, f.here, id, other, strings.NewReader("a.txt")),
		"PutFile of a file that is there, which it overwrites,",
	)
	for _, path := range []string{"", "/a", "../a", "a/../b", "a//b", ".", "a/", "a\x00b"} {
		err := p.PutFile(f.ctx, f.here, id, entity.File{Path: path, Size: 1}, strings.NewReader("x"))
		f.fails(err, errs.Invalid, fmt.Sprintf("PutFile of the path %q", path))
	}
	fault := errors.New("fault")
	err = p.PutFile(
		f.ctx, f.here, id, entity.File{Path: "fails", Size: 9},
		io.MultiReader(strings.NewReader("x"), broken{fault}),
	)
	f.true(errors.Is(err, fault), "PutFile whose reader failed returned %v, where it must be the reader's error", err)
	f.equal(
		f.paths(p, f.here, id), []string{"a.txt", "b/ü é.txt", "empty"},
		"Files after a PutFile whose reader failed: it leaves nothing",
	)
	f.noErr(p.KeepFiles(f.ctx, f.here, id, []string{"a.txt", "not there"}), "KeepFiles")
	f.equal(f.paths(p, f.here, id), []string{"a.txt"}, "Files after KeepFiles of one: the others are removed")
	_, err = p.OpenFile(f.ctx, f.here, id, "empty")
	f.fails(err, errs.NotFound, "OpenFile of a file that KeepFiles has removed")
	f.noErr(p.KeepFiles(f.ctx, f.here, id, nil), "KeepFiles of none")
	f.equal(f.paths(p, f.here, id), nil, "Files after KeepFiles of none")

	// A removed entity leaves no files behind.
	f.noErr(p.PutFile(f.ctx, f.here, id, other, strings.NewReader("a.txt")), "PutFile")
	_, err = f.Transferer.Remove(f.ctx, f.here, []string{id})
	f.noErr(err, "Remove of an entity with files")
	f.land(f.here, rows, entity.Fail)
	f.equal(
		f.paths(p, f.here, id), nil,
		"Files of an entity that was removed and imported again: Remove leaves files behind",
	)
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
