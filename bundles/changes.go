package bundles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// Change is what an import did with one row: an entity.ImportAction, or one of the two actions
// below.
type Change struct {
	Action string
	entity.Key
	// "" for a kind that cannot be looked up; in another tenant than the caller's what the archive
	// says, else the id
	Name string
}

const (
	unchanged = "unchanged" // exists already with the same content
	deleted   = "deleted"
)

// stored returns the rows of the given entities that exist, by id.
func (l *importer) stored(ctx context.Context, kind entity.Kind, ids []string) (map[string]json.RawMessage, error) {
	rows := map[string]json.RawMessage{}
	for row, err := range l.s.present(ctx, l.tenant, kind, ids) {
		if errs.CodeOf(err) == errs.NotFound { // a draft, which cannot be exported: its import reports it
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows[row.ID] = bytes.Clone(row.JSON)
	}
	return rows, nil
}

// before returns the stored rows of the entities in the batch, if changes are to be reported.
func (l *importer) before(ctx context.Context, kind entity.Kind) (map[string]json.RawMessage, error) {
	if !l.list || l.into.Rule != entity.Overwrite && !l.leaves() {
		return nil, nil
	}
	ids := make([]string, len(l.rows))
	for i, r := range l.rows {
		ids[i] = r.ID
	}
	return l.stored(ctx, kind, ids)
}

// leaves reports whether identical rows are reported as unchanged and not imported: with the rule
// Skip, and in a dry run with the rule Fail, which is to find the rows that differ.
func (l *importer) leaves() bool {
	return l.list && !l.crossTenant && (l.into.Rule == entity.Skip || l.into.Rule == entity.Fail && l.dry)
}

// leaveIdentical removes the rows from the batch that are identical to stored ones, and records
// them as unchanged.
func (l *importer) leaveIdentical(ctx context.Context, kind entity.Kind, before map[string]json.RawMessage) error {
	if !l.leaves() || len(before) == 0 {
		return nil
	}
	rest, identical := []entity.Row{}, []string{}
	for _, r := range l.rows {
		same, err := l.identical(ctx, r, before[r.ID])
		if err != nil {
			return err
		}
		if same {
			identical = append(identical, r.ID)
		} else {
			rest = append(rest, r)
		}
	}
	names, err := l.names(ctx, kind, identical)
	if err != nil {
		return err
	}
	for _, id := range identical {
		if err := l.leave(ctx, Change{
			Action: unchanged,
			Key:    entity.Key{Kind: kind, ID: id},
			Name:   names[id],
		}); err != nil {
			return err
		}
	}
	l.rows = rest
	return nil
}

// identical reports whether overwriting with a row would change nothing. It ignores an unknown
// owner, who would be replaced, and the createdAt of a user.
func (l *importer) identical(ctx context.Context, r entity.Row, there json.RawMessage) (bool, error) {
	switch {
	case there == nil || bytes.Equal(r.JSON, there):
		return there != nil, nil
	case r.Kind == entity.KindUser:
		return sameBut("createdAt", r.JSON, there), nil
	}
	owner := column(r.JSON, "ownerId")
	if owner == "" || column(there, "ownerId") != l.into.Owner || !sameBut("ownerId", r.JSON, there) {
		return false, nil
	}
	known, err := l.s.principals.Known(ctx, l.tenant, []string{owner})
	return err == nil && !known[owner], err
}

// sameBut reports whether two rows have the same members, except for the value of one.
func sameBut(name string, a, b json.RawMessage) bool {
	members := func(row json.RawMessage) (all []string) {
		rawjson.Each(row, func(member string, value json.RawMessage) {
			if member != name {
				all = append(all, member, string(value))
			}
		})
		return all
	}
	return slices.Equal(members(a), members(b))
}

// leave records an identical row, whose files may still differ.
func (l *importer) leave(ctx context.Context, c Change) error {
	if p, ok := l.s.transferers[c.Kind].(entity.FileTransferer); ok {
		if err := l.comparePaths(ctx, p, &c); err != nil {
			return err
		}
		if c.Action != unchanged {
			if err := l.differs(c.Key); err != nil {
				return err
			}
			c.Action = string(entity.Skipped)
		}
	}
	l.skipped[c.Key] = true
	l.count(c)
	return nil
}

// differs returns the error for an entity that exists with different files, nil if it is skipped.
func (l *importer) differs(k entity.Key) error {
	if l.into.Rule == entity.Fail {
		return errs.New(errs.Conflict, "%s %s exists already, with other files.", k.Kind, k.ID)
	}
	return nil
}

// compareFile compares a file of an identical entity with the stored one.
func (l *importer) compareFile(ctx context.Context, k entity.Key, f entity.File, r io.Reader) error {
	has, now := l.same[k], sha256.New()
	if _, err := io.Copy(now, r); err != nil {
		return err
	}
	if old := has.files[f.Path]; old.Size == f.Size && old.ContentType == f.ContentType {
		before, err := l.digest(ctx, l.s.transferers[k.Kind].(entity.FileTransferer), k.ID, f.Path)
		if err != nil || bytes.Equal(before, now.Sum(nil)) {
			return err
		}
	}
	delete(l.same, k)
	l.report.Changes[has.change].Action = string(entity.Skipped)
	l.add(k.Kind, unchanged, -1)
	l.add(k.Kind, string(entity.Skipped), 1)
	return l.differs(k)
}

// changes returns the changes of the rows in the batch.
func (l *importer) changes(
	ctx context.Context, kind entity.Kind, actions []entity.ImportAction, before map[string]json.RawMessage,
) ([]Change, error) {
	all, ids, over := make([]Change, len(l.rows)), make([]string, len(l.rows)), []string{}
	for i, r := range l.rows {
		all[i], ids[i] = Change{Action: string(actions[i]), Key: r.Key}, r.ID
		if actions[i] == entity.Updated {
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
	now, err := l.stored(ctx, kind, over)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		all[i].Name = names[id]
		if old, ok := before[id]; ok && all[i].Action == string(entity.Updated) && bytes.Equal(old, now[id]) {
			all[i].Action = unchanged
		}
	}
	return all, nil
}

// names returns the names of the given entities that exist, by id. In another tenant than the
// caller's they are those in the rows of the batch, else the ids.
func (l *importer) names(ctx context.Context, kind entity.Kind, ids []string) (map[string]string, error) {
	if l.crossTenant {
		return l.shippedNames(kind, ids), nil
	}
	refs, err := l.s.typeOf(kind).Refs(ctx, l.tenant, ids)
	names := make(map[string]string, len(refs))
	for id, ref := range refs {
		names[id] = ref.Name
	}
	return names, err
}

func (l *importer) shippedNames(kind entity.Kind, ids []string) map[string]string {
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

// column returns a text column of a row, "" for none.
func column(row json.RawMessage, name string) (text string) {
	rawjson.Each(row, func(member string, value json.RawMessage) {
		if member == name {
			text, _ = rawjson.Text(value)
		}
	})
	return text
}

// sameEntity is an entity with files that is unchanged so far.
type sameEntity struct {
	change int // its index in ImportResult.Changes
	files  map[string]entity.File
}

// comparePaths compares the paths of an entity's files with those in the archive, before files are
// removed.
func (l *importer) comparePaths(ctx context.Context, p entity.FileTransferer, c *Change) error {
	if c.Action != unchanged {
		return nil
	}
	files, err := p.Files(ctx, l.tenant, c.ID)
	if err != nil {
		return err
	}
	has := sameEntity{change: len(l.report.Changes), files: map[string]entity.File{}}
	for _, f := range files {
		has.files[f.Path] = f
	}
	differ := func(path string) bool { _, ok := has.files[path]; return !ok }
	if len(files) != len(l.index.files[c.ID]) || slices.ContainsFunc(l.index.files[c.ID], differ) {
		c.Action = string(entity.Updated)
		return nil
	}
	l.same[c.Key] = has
	return nil
}

// put writes a file, and records whether it changes the stored one.
func (l *importer) put(ctx context.Context, p entity.FileTransferer, k entity.Key, f entity.File, r io.Reader) error {
	if !l.crossTenant {
		return l.putFile(ctx, p, k, f, r)
	}
	sum := sha256.New()
	err := l.putFile(ctx, p, k, f, io.TeeReader(r, sum))
	l.written[fileID(k, f.Path)] = hex.EncodeToString(sum.Sum(nil))
	return err
}

func (l *importer) putFile(
	ctx context.Context, p entity.FileTransferer, k entity.Key, f entity.File, r io.Reader,
) error {
	has, ok := l.same[k]
	if !ok {
		if err := l.noteUndeployed(ctx, p, k, f.Path); err != nil {
			return err
		}
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
		if err := l.noteUndeployed(ctx, p, k, f.Path); err != nil {
			return err
		}
		delete(l.same, k)
		l.report.Changes[has.change].Action = string(entity.Updated)
		l.add(k.Kind, unchanged, -1)
		l.add(k.Kind, string(entity.Updated), 1)
	}
	return nil
}

func (l *importer) digest(ctx context.Context, p entity.FileTransferer, id, path string) ([]byte, error) {
	r, err := p.OpenFile(ctx, l.tenant, id, path)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	return sum.Sum(nil), errors.Join(err, r.Close())
}
