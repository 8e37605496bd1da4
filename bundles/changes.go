package bundles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rawjson"
)

// Change is what became of one row: an arrival, or one of the two below.
type Change struct {
	Action string
	entity.Key
	Name string // "" for a kind that cannot be looked up; in another tenant than the caller's what the archive says, else the id
}

const (
	unchanged = "unchanged" // overwritten, and says what it said before
	deleted   = "deleted"
)

// says gives what those of some pieces say that are there, by id.
func (l *landing) says(ctx context.Context, kind entity.Kind, ids []string) (map[string]json.RawMessage, error) {
	said := map[string]json.RawMessage{}
	for row, err := range l.s.present(ctx, l.tenant, kind, ids) {
		if errs.CodeOf(err) == errs.NotFound { // a draft, which cannot be exported: its import says so
			return said, nil
		}
		if err != nil {
			return nil, err
		}
		said[row.ID] = bytes.Clone(row.JSON)
	}
	return said, nil
}

// before gives what the gathered rows are going to overwrite, where changes are asked for.
func (l *landing) before(ctx context.Context, kind entity.Kind) (map[string]json.RawMessage, error) {
	if !l.list || l.into.Rule != entity.Overwrite {
		return nil, nil
	}
	ids := make([]string, len(l.rows))
	for i, r := range l.rows {
		ids[i] = r.ID
	}
	return l.says(ctx, kind, ids)
}

// changes gives what became of the gathered rows.
func (l *landing) changes(ctx context.Context, kind entity.Kind, arrivals []entity.Arrival, before map[string]json.RawMessage) ([]Change, error) {
	all, ids, over := make([]Change, len(l.rows)), make([]string, len(l.rows)), []string{}
	for i, r := range l.rows {
		all[i], ids[i] = Change{Action: string(arrivals[i]), Key: r.Key}, r.ID
		if arrivals[i] == entity.Updated {
			over = append(over, r.ID)
		}
	}
	if !l.list {
		return all, nil
	}
	names, err := l.names(ctx, kind, ids)
	if err != nil {
		return nil, err
	}
	now, err := l.says(ctx, kind, over)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		all[i].Name = names[id]
		if said, ok := before[id]; ok && all[i].Action == string(entity.Updated) && bytes.Equal(said, now[id]) {
			all[i].Action = unchanged
		}
	}
	return all, nil
}

// names gives the names of those of some pieces that are there, by id. In another tenant than the caller's it asks nobody:
// they are what the gathered rows say, else the ids.
func (l *landing) names(ctx context.Context, kind entity.Kind, ids []string) (map[string]string, error) {
	if l.crossTenant {
		return l.shippedNames(kind, ids), nil
	}
	refs, err := find(ctx, l.s.typeOf(kind), l.tenant, ids)
	names := make(map[string]string, len(refs))
	for id, ref := range refs {
		names[id] = ref.Name
	}
	return names, err
}

func (l *landing) shippedNames(kind entity.Kind, ids []string) map[string]string {
	names := make(map[string]string, len(ids))
	for _, id := range ids {
		names[id] = id
	}
	for _, r := range l.rows {
		if name := column(r.JSON, "name"); r.Kind == kind && name != "" {
			names[r.ID] = name
		}
	}
	return names
}

// column gives a text that a row says, "" for none.
func column(row json.RawMessage, name string) (text string) {
	rawjson.Each(row, func(member string, value json.RawMessage) {
		if member == name {
			text, _ = rawjson.Text(value)
		}
	})
	return text
}

// samePiece is a piece with files that is unchanged so far.
type samePiece struct {
	change int // its place in Report.Changes
	files  map[string]entity.File
}

// comparePaths looks whether a piece has other files than the archive, before those are removed and the archive's come.
func (l *landing) comparePaths(ctx context.Context, p entity.FilePorter, c *Change) error {
	if c.Action != unchanged {
		return nil
	}
	files, err := p.Files(ctx, l.tenant, c.ID)
	if err != nil {
		return err
	}
	has := samePiece{change: len(l.report.Changes), files: map[string]entity.File{}}
	for _, f := range files {
		has.files[f.Path] = f
	}
	differ := func(path string) bool { _, ok := has.files[path]; return !ok }
	if len(files) != len(l.look.files[c.ID]) || slices.ContainsFunc(l.look.files[c.ID], differ) {
		c.Action = string(entity.Updated)
		return nil
	}
	l.same[c.Key] = has
	return nil
}

// put writes a file, and looks whether it changes the one that was there.
func (l *landing) put(ctx context.Context, p entity.FilePorter, k entity.Key, f entity.File, r io.Reader) error {
	has, ok := l.same[k]
	if !ok {
		return p.PutFile(ctx, l.tenant, k.ID, f, r)
	}
	var before []byte
	if old := has.files[f.Path]; old.Size == f.Size && old.ContentType == f.ContentType {
		var err error
		if before, err = l.digest(ctx, p, k.ID, f.Path); err != nil {
			return err
		}
	}
	now := sha256.New()
	if err := p.PutFile(ctx, l.tenant, k.ID, f, io.TeeReader(r, now)); err != nil {
		return err
	}
	if !bytes.Equal(before, now.Sum(nil)) {
		delete(l.same, k)
		l.report.Changes[has.change].Action = string(entity.Updated)
		l.add(k.Kind, unchanged, -1)
		l.add(k.Kind, string(entity.Updated), 1)
	}
	return nil
}

func (l *landing) digest(ctx context.Context, p entity.FilePorter, id, path string) ([]byte, error) {
	r, err := p.OpenFile(ctx, l.tenant, id, path)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	return sum.Sum(nil), errors.Join(err, r.Close())
}
