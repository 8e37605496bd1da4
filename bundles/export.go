package bundles

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

const (
	batch    = 500 // how many ids are passed to a Transferer at once
	rowBatch = 250 // how many rows are read or written at once, as they may be long
)

// batchBytes ends a batch of rows early, so that few long rows need no more memory than many short
// ones.
const batchBytes = 8 << 20

// ContentType is the media type of an archive.
const ContentType = archive.ContentType

// Manifest is the content of an export without a bundle. Of entries only Type, EntityID (an id or
// natural id) and Data are used.
type Manifest struct {
	Name    string // default "Content"
	Entries []Entry
}

// Export is an archive to be written.
type Export struct {
	s       *Service
	tenant  string
	header  archive.Header // without counts
	entries []Entry
}

// Filename returns the name of the archive's file.
func (e *Export) Filename() string {
	if e.header.Bundle.Slug == "" {
		return "content.tgz"
	}
	return e.header.Bundle.Slug + ".tgz"
}

// Write finds everything that the entries need and writes the archive. It writes nothing if whole
// kinds, as in a backup, have too many entities. It holds no transaction and, while w is slow, no
// connection, so an export is not a snapshot: its entities are found first, then each batch of at
// most 250 rows is read at one moment, the next one at a later moment. Entities that do not exist
// when they are searched for are left out, and those that are created later are not exported.
//
// Errors: errs.Conflict if an entity that was found is deleted before it is written; errs.Invalid
// if the archive would exceed the Limits, so that it could not be imported; w's own. After an error
// the bytes in w are not a valid archive, as its end is missing.
func (e *Export) Write(ctx context.Context, w io.Writer) error {
	ctx, o := e.s.started(ctx, e.tenant, "export")
	sent := &counter{w: w}
	_, err := e.write(ctx, sent)
	o.Sent = sent.n
	e.s.ended(ctx, o, err)
	return err
}

// started notifies the Observer of an archive that begins. The caller passes what started returns
// to ended.
func (s *Service) started(ctx context.Context, tenant, kind string) (context.Context, entity.Observation) {
	o := entity.Observation{Work: entity.ArchiveWork, Tenant: tenant, Kind: kind, Start: time.Now()}
	return entity.Begin(ctx, s.observer, o.Work, kind), o
}

// ended notifies the Observer of an archive that ends.
func (s *Service) ended(ctx context.Context, o entity.Observation, err error) {
	o.Outcome = entity.Outcome(err)
	entity.Observe(ctx, s.observer, o)
}

// counter counts the bytes that are written to w.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// write is like Write and returns the entries that refer to nothing any more. A transaction would
// last as long as w is slow, which PostgreSQL ends after a minute and which keeps SQLite's log from
// being copied back. The first bytes are written before closure searches, which may take a while.
func (e *Export) write(ctx context.Context, w io.Writer) (dangling []Entry, err error) {
	whole, err := e.s.whole(ctx, e.tenant, e.header, e.entries)
	if err != nil {
		return nil, err
	}
	out, err := e.s.begin(w)
	if err != nil {
		return nil, err
	}
	p, err := e.s.closure(ctx, e.tenant, e.entries, whole)
	if err != nil {
		return nil, err
	}
	h := e.header
	h.Counts = p.counts()
	return e.s.dangling(p, e.entries), e.s.write(ctx, e.tenant, h, p, out, func(entity.Row) {})
}

// Export returns the export of a bundle, found by id or slug: what its entries refer to and
// everything that those need. It needs a superuser. Errors: errs.Forbidden; errs.NotFound;
// errs.Invalid if its entries alone, including those that refer to nothing any more, exceed the
// limits of an archive.
func (s *Service) Export(ctx context.Context, bundle string) (*Export, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	b, err := s.get(ctx, a.Tenant, bundle)
	if err != nil {
		return nil, err
	}
	return s.export(
		a.Tenant, archive.Bundle{ID: b.ID, Name: b.Name, Slug: b.Slug, Description: b.Description}, b.Entries,
	)
}

// ExportManifest is like Export for entries that are in no bundle. Errors: errs.Forbidden;
// errs.Invalid as CreateEntry, for no entries, and as Export; errs.Conflict naming a duplicate
// entry.
func (s *Service) ExportManifest(ctx context.Context, m Manifest) (*Export, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	if len(m.Entries) == 0 {
		return nil, errs.New(errs.Invalid, "entries must have at least one entry")
	}
	if m.Name == "" {
		m.Name = "Content"
	}
	b := Bundle{Name: m.Name, Slug: "content"}
	if err := b.accept(); err != nil {
		return nil, err
	}
	entries, first := make([]Entry, len(m.Entries)), map[[2]string]int{}
	for i, e := range m.Entries {
		if entries[i], err = s.entry(ctx, a.Tenant, e.Type, e.EntityID, e.Data); err != nil {
			if errs.CodeOf(err) == errs.Invalid {
				err = errs.Wrap(errs.Invalid, err, "entries[%d]: %s", i, errs.MessageOf(err))
			}
			return nil, err
		}
		reference := [2]string{e.Type, entries[i].EntityID}
		if twin, ok := first[reference]; ok {
			return nil, errs.New(errs.Conflict, "entries[%d] is the same as entries[%d].", i, twin)
		}
		first[reference] = i
	}
	return s.export(a.Tenant, archive.Bundle{Name: b.Name}, entries)
}

func (s *Service) export(tenant string, b archive.Bundle, entries []Entry) (*Export, error) {
	h := archive.Header{Tenant: tenant, Bundle: b, Entries: make([]json.RawMessage, len(entries))}
	named := idsByKind{}
	for i, e := range entries {
		d, err := s.driver(e.Type)
		column := ""
		if err == nil { // else the type is no longer registered
			column = d.Descriptor().Column
		}
		if column != "" {
			kind := d.Content()[0].Kind
			named[kind] = append(named[kind], e.EntityID)
		}
		if h.Entries[i], err = json.Marshal(shipped{e, column}); err != nil {
			return nil, err
		}
	}
	return &Export{s: s, tenant: tenant, header: h, entries: entries}, s.fits(h, named)
}

// fits returns errs.Invalid for entries that cannot be exported, whatever they need. It is called
// before anything is sent.
func (s *Service) fits(h archive.Header, named idsByKind) error {
	for kind, ids := range named {
		slices.Sort(ids)
		named[kind] = slices.Compact(ids) // entries of two types may be of one kind
	}
	h.Counts = named.counts()
	if err := h.Check(s.limits); err != nil {
		return errs.Wrap(
			errs.CodeOf(err), err, "The entries do not fit into one archive: make several bundles of them. %s",
			errs.MessageOf(err),
		)
	}
	return nil
}

// shipped is an entry in bundle.json.
type shipped struct {
	Entry
	column string
}

// MarshalJSON implements json.Marshaler: type, reference and data.
func (e shipped) MarshalJSON() ([]byte, error) {
	members := map[string]any{"type": e.Type, "data": entity.MaskSecrets(e.Data)}
	if e.column != "" {
		members[e.column] = e.EntityID
	}
	return json.Marshal(members) // in the order of the names
}

// whole returns the ids of all entities of the kinds that entries without an id stand for. Errors:
// errs.Invalid if they are more than an archive may have.
func (s *Service) whole(ctx context.Context, tenant string, h archive.Header, entries []Entry) (idsByKind, error) {
	all := idsByKind{}
	for _, e := range entries {
		d, err := s.driver(e.Type)
		if err != nil || d.Descriptor().Column != "" {
			continue
		}
		for _, t := range d.Content() {
			if t.Transferer == nil || all[t.Kind] != nil {
				continue
			}
			if all[t.Kind], err = t.Transferer.IDs(ctx, tenant); err != nil {
				return nil, err
			}
		}
	}
	h.Counts = all.counts()
	return all, h.Check(s.limits)
}

// closure returns the entities of some entries, with those of whole for entries without an id, and
// all that they need, level by level. Each is visited once, so that cycles end.
func (s *Service) closure(ctx context.Context, tenant string, entries []Entry, whole idsByKind) (idsByKind, error) {
	wanted := map[entity.Kind][]string{}
	seen := map[entity.Key]bool{}
	want := func(k entity.Key) {
		if s.transferers[k.Kind] != nil && !seen[k] {
			seen[k] = true
			wanted[k.Kind] = append(wanted[k.Kind], k.ID)
		}
	}
	for _, e := range entries {
		d, err := s.driver(e.Type)
		if err != nil {
			continue // the type is no longer registered
		}
		for _, t := range d.Content() {
			ids := []string{e.EntityID}
			if d.Descriptor().Column == "" && t.Transferer != nil {
				ids = whole[t.Kind]
			}
			for _, id := range ids {
				want(entity.Key{Kind: t.Kind, ID: id})
			}
		}
	}
	p := idsByKind{}
	for len(wanted) > 0 {
		level := wanted
		wanted = map[entity.Kind][]string{}
		for _, kind := range s.kinds {
			for ids := range slices.Chunk(level[kind], batch) {
				needs, err := s.transferers[kind].Needs(ctx, tenant, ids)
				if err != nil {
					return nil, err
				}
				for _, id := range ids {
					keys, there := needs[id]
					if !there {
						continue
					}
					p[kind] = append(p[kind], id)
					for _, k := range keys {
						want(k)
					}
				}
			}
		}
	}
	for _, ids := range p {
		slices.Sort(ids)
	}
	return p, nil
}

// dangling returns the entries whose entities are not in p: they no longer exist, or their
// types are not registered.
func (s *Service) dangling(p idsByKind, entries []Entry) (gone []Entry) {
	for _, e := range entries {
		d, err := s.driver(e.Type)
		shipped := func(t entity.Type) bool { return p.has(entity.Key{Kind: t.Kind, ID: e.EntityID}) }
		if e.EntityID != "" && (err != nil || !slices.ContainsFunc(d.Content(), shipped)) {
			gone = append(gone, e)
		}
	}
	return gone
}

// write writes the header, the entities of p and their files to an archive that was begun, and
// calls see with each row.
func (s *Service) write(
	ctx context.Context, tenant string, h archive.Header, p idsByKind, out *archive.Writer, see func(entity.Row),
) error {
	return changed(s.pack(ctx, tenant, h, p, out, see))
}

// changed returns the error for an entity that was found and no longer exists.
func changed(err error) error {
	if errs.CodeOf(err) == errs.NotFound {
		return errs.Wrap(errs.Conflict, err, "The content was changed meanwhile: try again.")
	}
	return err
}

func (s *Service) pack(
	ctx context.Context, tenant string, h archive.Header, p idsByKind, out *archive.Writer, see func(entity.Row),
) error {
	if err := s.checkFileIDs(p); err != nil {
		return err
	}
	if err := out.Header(h); err != nil {
		return err
	}
	for _, kind := range s.kinds {
		rows := rowsOf(p[kind], func(ids []string) iter.Seq2[entity.Row, error] {
			return s.transferers[kind].Export(ctx, tenant, ids)
		})
		if !s.store.InTransaction(ctx) {
			rows = aheadOf(rows)
		}
		for row, err := range rows {
			if err != nil {
				return err
			}
			if err := out.Row(row); err != nil {
				return err
			}
			see(row)
		}
	}
	for _, kind := range s.kinds {
		if transferer, ok := s.transferers[kind].(entity.FileTransferer); ok {
			for _, id := range p[kind] {
				if err := writeFiles(ctx, tenant, id, transferer, out); err != nil {
					return err
				}
			}
		}
	}
	return out.Close()
}

func writeFiles(ctx context.Context, tenant, id string, transferer entity.FileTransferer, out *archive.Writer) error {
	files, err := transferer.Files(ctx, tenant, id)
	if err != nil {
		return err
	}
	for _, f := range files {
		r, err := transferer.OpenFile(ctx, tenant, id, f.Path)
		if err != nil {
			return err
		}
		err = out.File(id, f, r)
		_ = r.Close() // it was read to its end, or failed
		if err != nil {
			return err
		}
	}
	return nil
}
