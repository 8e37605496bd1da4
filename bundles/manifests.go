package bundles

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
	"github.com/tenantcontent/tenantcontent/paging"
)

const (
	maxName        = 255       // characters
	maxDescription = 16 * 1024 // bytes
	maxData        = 64 * 1024 // bytes
)

// List returns a page of bundles with their entries to any session, sorted by createdAt (the
// default), name or updatedAt.
// Errors: errs.Invalid for a sort or cursor that does not fit.
func (s *Service) List(ctx context.Context, q paging.Query) (paging.Page[Bundle], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Bundle]{}, err
	}
	return s.store.Page(ctx, a.Tenant, q)
}

// All returns all bundles, without entries, to any session. An error ends it.
func (s *Service) All(ctx context.Context) iter.Seq2[Bundle, error] {
	return paging.Load(func() ([]Bundle, error) {
		a, err := actor.From(ctx)
		if err != nil {
			return nil, err
		}
		return s.store.All(ctx, a.Tenant)
	})
}

// Get returns one bundle with its entries, by id or slug, to any session. Errors: errs.NotFound.
func (s *Service) Get(ctx context.Context, id string) (Bundle, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Bundle{}, err
	}
	return s.get(ctx, a.Tenant, id)
}

func (s *Service) get(ctx context.Context, tenant, id string) (Bundle, error) {
	key, err := bundleKey(id)
	if err != nil {
		return Bundle{}, err
	}
	return s.store.Get(ctx, tenant, key)
}

// find returns a bundle without its entries.
func (s *Service) find(ctx context.Context, tenant, id string) (Bundle, error) {
	key, err := bundleKey(id)
	if err != nil {
		return Bundle{}, err
	}
	return s.store.Find(ctx, tenant, key)
}

// found is find for the caller's tenant.
func (s *Service) found(ctx context.Context, id string) (Bundle, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Bundle{}, err
	}
	return s.find(ctx, a.Tenant, id)
}

// bundleKey returns an id in the one form that ids have, and a slug as it is.
func bundleKey(id string) (string, error) {
	if key, ok := uuids.Parse(id); ok {
		return key, nil
	}
	if !slug.Valid(id) {
		return "", errs.New(errs.NotFound, "Bundle not found.")
	}
	return id, nil
}

// Create adds a bundle with a name, slug and description. It needs a superuser. An empty slug is
// made of the name, with -2, -3… when that is taken. Errors: errs.Forbidden; errs.Invalid naming
// the field; errs.Conflict for a taken slug.
func (s *Service) Create(ctx context.Context, b Bundle) (Bundle, error) {
	if of := (entity.Subject{Kind: Kind, Action: entity.ActionCreate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, bundleID, func(ctx context.Context) (Bundle, error) {
			return s.Create(ctx, b)
		})
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Bundle{}, err
	}
	derived := strings.TrimSpace(b.Slug) == ""
	if derived {
		b.Slug = slug.Of(b.Name, "bundle")
	}
	if err := b.accept(); err != nil {
		return Bundle{}, err
	}
	b.Tenant, b.ID, b.CreatedAt, b.Entries = a.Tenant, s.clock.NewID(), s.clock.Stamp(), []Entry{}
	b.UpdatedAt = b.CreatedAt
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if derived {
			if err := s.store.Lock(ctx, a.Tenant); err != nil { // so that two of one name get two slugs
				return err
			}
			if b.Slug, err = s.freeSlug(ctx, a.Tenant, b.Slug); err != nil {
				return err
			}
		}
		return s.store.Insert(ctx, a.Tenant, b)
	})
	if err != nil {
		return Bundle{}, err
	}
	return b, nil
}

// bundleID returns the id of a bundle, for changes.
func bundleID(b Bundle) string { return b.ID }

// freeSlug returns the slug itself, or the first of slug-2, slug-3… that no bundle has.
func (s *Service) freeSlug(ctx context.Context, tenant, wanted string) (string, error) {
	try := wanted
	for n := 2; ; n++ {
		_, err := s.store.Find(ctx, tenant, try)
		if errs.CodeOf(err) == errs.NotFound {
			return try, nil
		}
		if err != nil {
			return "", err
		}
		try = slug.Numbered(wanted, n)
	}
}

// Update changes the name, slug and description of a bundle, found by id or slug. It needs a
// superuser. Changes of other fields are ignored. Errors: errs.Forbidden; errs.NotFound;
// errs.Invalid naming the field; errs.Conflict for a taken slug; an error from edit as it is.
func (s *Service) Update(ctx context.Context, id string, edit func(*Bundle) error) (Bundle, error) {
	if of := (entity.Subject{Kind: Kind, ID: id, Action: entity.ActionUpdate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, nil, func(ctx context.Context) (Bundle, error) {
			return s.Update(ctx, id, edit)
		})
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Bundle{}, err
	}
	key, err := bundleKey(id)
	if err != nil {
		return Bundle{}, err
	}
	return s.store.Update(ctx, a.Tenant, key, func(b *Bundle) error {
		was := *b
		if err := edit(b); err != nil {
			return err
		}
		b.Tenant, b.ID, b.Entries = was.Tenant, was.ID, was.Entries
		b.CreatedAt, b.UpdatedAt = was.CreatedAt, s.clock.Stamp()
		return b.accept()
	})
}

// Delete removes a bundle, found by id or slug, with its entries; what they refer to stays. It
// needs a superuser.
// Errors: errs.Forbidden; errs.NotFound.
func (s *Service) Delete(ctx context.Context, id string) error {
	if of := (entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}); s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, id) })
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	key, err := bundleKey(id)
	if err != nil {
		return err
	}
	return s.store.Delete(ctx, a.Tenant, key)
}

// accept checks the fields of a bundle that a caller sets. Errors: errs.Invalid naming the field.
func (b *Bundle) accept() error {
	b.Name = strings.TrimSpace(b.Name)
	switch {
	case b.Name == "":
		return errs.New(errs.Invalid, "name is required")
	case utf8.RuneCountInString(b.Name) > maxName || !escapes.Storable(b.Name) ||
		strings.ContainsFunc(b.Name, unicode.IsControl):
		return errs.New(errs.Invalid, "name must have at most %d characters, and no control characters", maxName)
	case !slug.Valid(b.Slug):
		return errs.New(
			errs.Invalid,
			"slug must be 1 to 128 letters, digits, hyphens and underscores, begin with a letter or digit, and be "+
				"no UUID",
		)
	}
	if b.Description == nil {
		return nil
	}
	if d := strings.TrimSpace(*b.Description); d == "" {
		b.Description = nil
	} else if b.Description = &d; len(d) > maxDescription || !escapes.Storable(d) {
		return errs.New(errs.Invalid, "description must have at most %d bytes, and no NUL", maxDescription)
	}
	return nil
}

// Entries returns a page of a bundle's entries, with what they refer to, to any session, sorted by
// createdAt (the default), type or updatedAt. Errors: errs.NotFound; errs.Invalid for a sort or
// cursor that does not fit.
func (s *Service) Entries(ctx context.Context, bundle string, q paging.Query) (paging.Page[Entry], error) {
	b, err := s.found(ctx, bundle)
	if err != nil {
		return paging.Page[Entry]{}, err
	}
	page, err := s.store.Entries(ctx, b.Tenant, b.ID, q)
	if err != nil {
		return paging.Page[Entry]{}, err
	}
	return page, s.resolve(ctx, b.Tenant, page.Rows)
}

// Entry returns one entry of a bundle, with what it refers to, to any session. Errors:
// errs.NotFound.
func (s *Service) Entry(ctx context.Context, bundle, id string) (Entry, error) {
	b, err := s.found(ctx, bundle)
	if err != nil {
		return Entry{}, err
	}
	key, err := entryKey(id)
	if err != nil {
		return Entry{}, err
	}
	return s.resolved(ctx)(s.store.Entry(ctx, b.Tenant, b.ID, key))
}

// resolved finds what a single entry refers to.
func (s *Service) resolved(ctx context.Context) func(Entry, error) (Entry, error) {
	return func(e Entry, err error) (Entry, error) {
		if err != nil {
			return Entry{}, err
		}
		one := []Entry{e}
		err = s.resolve(ctx, e.Tenant, one)
		return one[0], err
	}
}

func entryKey(id string) (string, error) {
	key, ok := uuids.Parse(id)
	if !ok {
		return "", errs.New(errs.NotFound, "Entry not found.")
	}
	return key, nil
}

// resolve sets Ref of each entry whose entity exists, with one call per type if the type has Find.
func (s *Service) resolve(ctx context.Context, tenant string, entries []Entry) error {
	ids := map[string][]string{}
	for _, e := range entries {
		if e.EntityID != "" {
			ids[e.Type] = append(ids[e.Type], e.EntityID)
		}
	}
	found := map[string]map[string]entity.Ref{}
	for kind, of := range ids {
		d, err := s.driver(kind)
		if err != nil {
			continue // the type is no longer registered
		}
		if content := d.Content(); len(content) == 1 {
			if found[kind], err = content[0].Refs(ctx, tenant, of); err != nil {
				return err
			}
		}
	}
	for i, e := range entries {
		if ref, ok := found[e.Type][e.EntityID]; ok {
			entries[i].Ref = &ref
		}
	}
	return nil
}

func lookup(ctx context.Context, d Driver, tenant, id string) (entity.Ref, error) {
	content := d.Content()
	if len(content) != 1 || content[0].Lookup == nil {
		return entity.Ref{}, errs.New(errs.NotFound, "There is no %s that could be looked up.", d.Descriptor().ID)
	}
	return content[0].Lookup(ctx, tenant, id)
}

// CreateEntry adds an entity, by its id or natural id, to a bundle. It needs a superuser. Of e only
// Type, EntityID, which is ignored for a type that refers to nothing, and Data count; without Data
// it is {}. Errors: errs.Forbidden;
// errs.NotFound for the bundle; errs.Invalid for an unregistered type, a missing or unknown
// reference, a system job, bad data, or when the bundle has as many entries or as much data as it
// may; errs.Conflict when the bundle has it.
func (s *Service) CreateEntry(
	ctx context.Context, bundle string, e Entry,
) (Entry, error) {
	if of := (entity.Subject{Kind: KindEntry, Action: entity.ActionCreate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, entryID, func(ctx context.Context) (Entry, error) {
			return s.CreateEntry(ctx, bundle, e)
		})
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Entry{}, err
	}
	b, err := s.find(ctx, a.Tenant, bundle)
	if err != nil {
		return Entry{}, err
	}
	if e, err = s.entry(ctx, a.Tenant, e.Type, e.EntityID, e.Data); err != nil {
		return Entry{}, err
	}
	e.ID, e.BundleID, e.CreatedAt = s.clock.NewID(), b.ID, s.clock.Stamp()
	e.UpdatedAt = e.CreatedAt
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		n, bytes, err := s.store.MeasureEntries(ctx, a.Tenant, b.ID)
		if err != nil {
			return err
		}
		if n >= MaxEntries {
			return errs.New(
				errs.Invalid, "A bundle must have at most %d entries: make another bundle for the rest.",
				MaxEntries,
			)
		}
		if err := dataFits(bytes + len(e.Data)); err != nil {
			return err
		}
		return s.store.InsertEntry(ctx, a.Tenant, e)
	})
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

// dataFits checks how many bytes the data of a bundle's entries has together. Bundles are read
// whole.
func dataFits(bytes int) error {
	if bytes > MaxEntriesData {
		return errs.New(
			errs.Invalid,
			"data of all entries of a bundle must have at most %d bytes together: make another bundle for the rest.",
			MaxEntriesData,
		)
	}
	return nil
}

// entry checks the fields of a new entry.
func (s *Service) entry(ctx context.Context, tenant, kind, reference string, data json.RawMessage) (Entry, error) {
	d, err := s.driver(kind)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Tenant: tenant, Type: kind}
	if e.Data, err = object(data); err != nil {
		return Entry{}, err
	}
	column := d.Descriptor().Column
	if column == "" {
		return e, nil
	}
	if reference == "" {
		return Entry{}, errs.New(errs.Invalid, "%s is required", column)
	}
	ref, err := lookup(ctx, d, tenant, reference)
	if errs.CodeOf(err) == errs.NotFound {
		return Entry{}, errs.New(errs.Invalid, "%s names no %s that is there", column, d.Content()[0].Kind)
	}
	if err != nil {
		return Entry{}, err
	}
	e.EntityID, e.Ref = ref.ID, &ref
	return e, shippable(ref)
}

// UpdateEntry replaces the data of an entry; empty data is {}. It needs a superuser. Errors:
// errs.Forbidden; errs.NotFound; errs.Invalid for bad data, or more of it than the bundle may have.
func (s *Service) UpdateEntry(ctx context.Context, bundle, id string, data json.RawMessage) (Entry, error) {
	of := entity.Subject{Kind: KindEntry, ID: s.feed.Part(bundle, id), Action: entity.ActionUpdate}
	if s.feed.Wanted(ctx, of) {
		given := data // which is not moved to the heap without listeners
		return entity.Record(ctx, s.feed, of, nil, func(ctx context.Context) (Entry, error) {
			return s.UpdateEntry(ctx, bundle, id, given)
		})
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Entry{}, err
	}
	b, err := s.find(ctx, a.Tenant, bundle)
	if err != nil {
		return Entry{}, err
	}
	key, err := entryKey(id)
	if err != nil {
		return Entry{}, err
	}
	if data, err = object(data); err != nil {
		return Entry{}, err
	}
	var e Entry
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		_, bytes, err := s.store.MeasureEntries(ctx, a.Tenant, b.ID)
		if err != nil {
			return err
		}
		was, err := s.store.Entry(ctx, a.Tenant, b.ID, key)
		if err != nil {
			return err
		}
		if more := len(data) - len(was.Data); more > 0 {
			if err := dataFits(bytes + more); err != nil {
				return err
			}
		}
		e, err = s.store.SetData(ctx, a.Tenant, b.ID, key, data, s.clock.Stamp())
		return err
	})
	return s.resolved(ctx)(e, err)
}

// DeleteEntry removes an entry from a bundle; what it refers to stays. It needs a superuser.
// Errors: errs.Forbidden; errs.NotFound.
func (s *Service) DeleteEntry(ctx context.Context, bundle, id string) error {
	of := entity.Subject{Kind: KindEntry, ID: s.feed.Part(bundle, id), Action: entity.ActionDelete}
	if s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.DeleteEntry(ctx, bundle, id) })
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	b, err := s.find(ctx, a.Tenant, bundle)
	if err != nil {
		return err
	}
	key, err := entryKey(id)
	if err != nil {
		return err
	}
	return s.store.DeleteEntry(ctx, a.Tenant, b.ID, key)
}

// object checks an entry's data: a JSON object, {} when there is none. Errors: errs.Invalid.
func object(data json.RawMessage) (json.RawMessage, error) {
	if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "null" {
		return json.RawMessage("{}"), nil
	}
	var out bytes.Buffer
	if data[0] != '{' || json.Compact(&out, data) != nil || !utf8.Valid(data) {
		return nil, errs.New(errs.Invalid, "data must be an object")
	}
	if escapes.Bad(data) {
		return nil, errs.New(errs.Invalid, "data must not have NUL characters or halves of surrogate pairs")
	}
	if archive.TooDeep(out.Bytes()) {
		return nil, errs.New(errs.Invalid, "data must not be nested more than %d levels deep", archive.MaxNesting)
	}
	if out.Len() > maxData {
		return nil, errs.New(errs.Invalid, "data must have at most %d bytes", maxData)
	}
	return out.Bytes(), nil
}
