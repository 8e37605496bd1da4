package drivertest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/bundles/drivertest"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// place is an entity of a tenant.
type place struct{ tenant, id string }

// notes are a Transferer of notes, which are all free JSON, with their files. fault is what it does
// wrong.
type notes struct {
	mu    sync.Mutex
	rows  map[place][]byte
	files map[place]map[string]stored
	fault string
}

type stored struct {
	entity.File
	content []byte
}

type inTx struct{}

// tx runs fn and takes back what it did if it fails.
func (n *notes) tx(ctx context.Context, fn func(context.Context) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	rows, files := maps.Clone(n.rows), map[place]map[string]stored{}
	for at, all := range n.files {
		files[at] = maps.Clone(all)
	}
	err := fn(context.WithValue(ctx, inTx{}, true))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if n.fault == "keeps rows" {
			rows = n.rows
		}
		if n.fault == "keeps files" {
			files = n.files
		}
		n.rows, n.files = rows, files
	}
	return err
}

// begin joins the transaction in ctx, or begins one.
func (n *notes) begin(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil && n.fault != "ignores its context" {
		if n.fault == "hangs" {
			select {}
		}
		return err
	}
	if n.fault == "ignores its context" {
		ctx = context.WithoutCancel(ctx)
	}
	if ctx.Value(inTx{}) != nil {
		return fn()
	}
	return n.tx(ctx, func(context.Context) error { return fn() })
}

func (n *notes) IDs(ctx context.Context, tenant string) (ids []string, err error) {
	err = n.begin(ctx, func() error {
		for at := range n.rows {
			if at.tenant == tenant || n.fault == "shows others" {
				ids = append(ids, at.id)
			}
		}
		slices.Sort(ids)
		return nil
	})
	return ids, err
}

func (n *notes) Needs(ctx context.Context, tenant string, ids []string) (map[string][]entity.Key, error) {
	needs := map[string][]entity.Key{}
	return needs, n.begin(ctx, func() error {
		for _, id := range ids {
			if n.rows[place{tenant, id}] != nil && n.fault != "needs nothing" {
				needs[id] = nil
			}
		}
		return nil
	})
}

func (n *notes) Export(ctx context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		for _, id := range ids {
			row := entity.Row{Key: entity.Key{Kind: "note", ID: id}}
			err := n.begin(ctx, func() error {
				if row.JSON = n.rows[place{tenant, id}]; row.JSON == nil && n.fault != "exports nothing" {
					return errs.New(errs.NotFound, "There is no note %s.", id)
				}
				return nil
			})
			if n.fault != "does not mask" {
				row.JSON = entity.MaskSecrets(row.JSON)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (n *notes) Import(
	ctx context.Context, tenant string, rows []entity.Row, o entity.ImportOptions,
) (actions []entity.ImportAction, _ []string, err error) {
	if !slices.Contains([]entity.Rule{entity.Fail, entity.Skip, entity.Overwrite}, o.Rule) {
		return nil, nil, errs.New(errs.Invalid, "There is no rule %s.", o.Rule)
	}
	err = n.begin(ctx, func() error {
		before := maps.Clone(n.rows)
		for _, row := range rows {
			at := place{tenant, row.ID}
			var object map[string]any
			action := entity.Created
			switch {
			case row.Kind != "note", json.Unmarshal(row.JSON, &object) != nil, object == nil:
				err = errs.New(errs.Invalid, "%s is no note.", row.ID)
			case n.rows[at] != nil && o.Rule == entity.Skip:
				action = entity.Skipped
			case n.rows[at] != nil && o.Rule == entity.Fail:
				err = errs.New(
					errs.Conflict, "%s is there.",
					cmp.Or(map[string]string{"names no row": "something"}[n.fault], row.ID),
				)
			case n.rows[at] != nil:
				action = entity.Updated
			}
			if err != nil {
				n.rows = before
				return err
			}
			if action != entity.Skipped {
				data := row.JSON
				if n.fault != "does not keep" {
					data, _ = entity.KeepSecrets(data, n.rows[at])
				}
				n.rows[at] = data
			}
			actions = append(actions, action)
		}
		return nil
	})
	return actions, nil, err
}

func (n *notes) Remove(ctx context.Context, tenant string, ids []string) (removed int, err error) {
	return removed, n.begin(ctx, func() error {
		for _, id := range ids {
			at := place{tenant, id}
			if n.rows[at] != nil {
				removed++
			}
			delete(n.rows, at)
			if n.fault != "leaves files" {
				delete(n.files, at)
			}
		}
		return nil
	})
}

func (n *notes) Files(ctx context.Context, tenant, id string) (all []entity.File, err error) {
	err = n.begin(ctx, func() error {
		for _, path := range slices.Sorted(maps.Keys(n.files[place{tenant, id}])) {
			all = append(all, n.files[place{tenant, id}][path].File)
		}
		return nil
	})
	return all, err
}

func (n *notes) OpenFile(ctx context.Context, tenant, id, path string) (r io.ReadCloser, err error) {
	return r, n.begin(ctx, func() error {
		file, there := n.files[place{tenant, id}][path]
		if !there {
			return errs.New(errs.NotFound, "There is no file %s.", path)
		}
		r = io.NopCloser(bytes.NewReader(file.content))
		return nil
	})
}

func (n *notes) PutFile(ctx context.Context, tenant, id string, f entity.File, r io.Reader) error {
	if !validPath(f.Path) && n.fault != "takes any path" {
		return errs.New(errs.Invalid, "%q is no path.", f.Path)
	}
	content, err := io.ReadAll(r)
	if err != nil && n.fault != "leaves halves" {
		return err
	}
	return cmp.Or(n.begin(ctx, func() error {
		at := place{tenant, id}
		if n.files[at] == nil {
			n.files[at] = map[string]stored{}
		}
		n.files[at][f.Path] = stored{f, content}
		return nil
	}), err)
}

func validPath(path string) bool {
	return utf8.ValidString(path) && !strings.Contains(path, "\x00") &&
		!slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
			return part == "" || part == "." || part == ".."
		})
}

func (n *notes) KeepFiles(ctx context.Context, tenant, id string, paths []string) error {
	return n.begin(ctx, func() error {
		maps.DeleteFunc(n.files[place{tenant, id}], func(path string, _ stored) bool {
			return !slices.Contains(paths, path) && n.fault != "keeps all files"
		})
		return nil
	})
}

func (n *notes) fixture() drivertest.Fixture {
	return drivertest.Fixture{
		Kind: "note", Transferer: n, Tenants: [2]string{"acme", "evil"}, InTx: n.tx,
		Make: func(_ *testing.T, tenant string, i int) string {
			id := fmt.Sprint("note-", i)
			n.rows[place{tenant, id}] = []byte(`{"title":"` + id + `"}`)
			return id
		},
		Free: &drivertest.Free{
			Set: func(_ *testing.T, tenant, id string, data json.RawMessage) { n.rows[place{tenant, id}] = data },
			Get: func(_ *testing.T, tenant, id string) json.RawMessage { return n.rows[place{tenant, id}] },
		},
	}
}

// badTransferer is the variable of the environment with the fault that TestOneTransferer has.
const badTransferer = "TENANTCONTENT_TEST_FAULT"

// TestOneTransferer: the checks find no fault in a good Transferer. TestBadTransferers runs it with
// faults.
func TestOneTransferer(t *testing.T) {
	drivertest.TestTransferer(t, func(*testing.T) drivertest.Fixture {
		n := &notes{rows: map[place][]byte{}, files: map[place]map[string]stored{}, fault: os.Getenv(badTransferer)}
		return n.fixture()
	})
}

// TestBadTransferers: each fault fails the check that is meant for it, with a sentence, and soon.
func TestBadTransferers(t *testing.T) {
	for fault, want := range map[string][2]string{
		"shows others": {
			"IDs", "the ids of evil which are another tenant's: got [note-1 note-2 note-3], want none",
		},
		"needs nothing":   {"Needs", "Needs has 0 entities, want the 3 that are there"},
		"exports nothing": {"Export", "does not have succeeded, where it must fail with errs.not_found"},
		"names no row":    {"Rules", "does not name the row note-2 that is there: something is there."},
		"does not mask":   {"Secrets", "Export has a secret of free JSON"},
		"does not keep":   {"Secrets", "Import must give it to entity.KeepSecrets"},
		"keeps rows": {
			"Transaction",
			"Import does not join the transaction in its context: got [note-1 note-2], want none",
		},
		"keeps files": {
			"Transaction",
			"the files of an entity after the transaction of PutFile was rolled back: got [a.txt], want none",
		},
		"ignores its context": {"Context", "Import succeeded, although its context had ended before"},
		"hangs":               {"Context", "Import has not returned within 5s of the end of its context"},
		"leaves files":        {"Files", "Remove leaves files behind: got [a.txt], want none"},
		"leaves halves":       {"Files", "it leaves nothing: got [a.txt b/ü é.txt empty fails]"},
		"keeps all files":     {"Files", "Files after KeepFiles of one: the others are removed: got"},
		"takes any path":      {"Files", `PutFile of the path "" succeeded, where it must fail with errs.invalid`},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneTransferer$", "-test.v")
			child.Env = append(os.Environ(), badTransferer+"="+fault)
			out, err := child.CombinedOutput()
			if err == nil {
				t.Fatalf("no check fails:\n%s", out)
			}
			for _, text := range []string{"--- FAIL: TestOneTransferer/" + want[0] + " (", want[1]} {
				if !strings.Contains(string(out), text) {
					t.Errorf("there is no %q in\n%s", text, out)
				}
			}
		})
	}
}
