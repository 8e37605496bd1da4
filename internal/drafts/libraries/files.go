package libraries

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Files reads and writes files of libraries over a Store. It checks no rights.
type Files struct {
	store Store
	blobs blobs.Store
	limit int64
	clock clock.Clock
	feed  *entity.Changes
	kind  entity.Kind

	named    *cache.Cache[*File] // by library and path; nil for a file that is not there
	contents *cache.Sized[[]byte]
}

// Options configure Files. Store and Blobs are required.
type Options struct {
	Store Store
	Blobs blobs.Store
	Limit int64            // bytes of a file; default 256 MiB
	Now   func() time.Time // default time.Now
	NewID func() string    // default UUIDv7
	// Changes returns how often this process has changed the files of a tenant's libraries: the
	// number grows when the Store commits. GetCached and OpenCached look files up once a second
	// while it stays the same. Default nil: each time.
	Changes func(tenant string) uint64
	// Feed is where files are announced that are written one by one, as Kind with the id of the
	// library, a slash and their path. nil: changes are not announced.
	Feed *entity.Changes
	Kind entity.Kind
}

// What OpenCached keeps in memory.
const (
	maxContents = 32 << 20  // bytes of all contents
	maxContent  = 256 << 10 // bytes of one; a larger file is read from the store
)

// New returns Files.
func New(o Options) *Files {
	if o.Limit == 0 {
		o.Limit = 256 << 20
	}
	return &Files{
		store: o.Store, blobs: o.Blobs, limit: o.Limit, clock: clock.New(o.Now, o.NewID),
		feed: o.Feed, kind: o.Kind,
		named: cache.New[*File](o.Changes), contents: cache.NewSized[[]byte](maxContents),
	}
}

// Page returns a page of a library's files, sorted by path (the default) or updatedAt. Errors:
// errs.Invalid for a sort or cursor that does not fit.
func (l *Files) Page(ctx context.Context, tenant, library string, q paging.Query) (paging.Page[File], error) {
	return l.store.Page(ctx, tenant, library, q)
}

// All returns all files of a library, ordered by path.
func (l *Files) All(ctx context.Context, tenant, library string) ([]File, error) {
	return l.store.All(ctx, tenant, library)
}

// MaxCompared is the most files that Compare compares.
const MaxCompared = MaxFiles

// Comparison is how the files of a library differ from others, which are known by their SHA-256.
// Paths are ordered.
type Comparison struct {
	Missing   []string // the library has no such file
	Differs   []string // the library's file has other bytes
	Extra     []string // the library alone has the file
	Unchanged int      // how many files are the same

	// SHA-256 of the library's files that are Differs or Extra, by path; none of a file without
	// digest
	Digests map[string]string
}

// Compare compares the files of a library with others: digests has the SHA-256 of each, in
// lower-case hexadecimal, by path. It reads that library alone: what it returns does not depend on
// the contents of others. Errors: errs.Invalid for a path that no file can have, for what is no
// digest, and for more than MaxCompared files.
func (l *Files) Compare(
	ctx context.Context, tenant, library string, digests map[string]string,
) (c Comparison, err error) {
	if len(digests) > MaxCompared {
		return c, errs.New(
			errs.Invalid, "files must have at most %d paths: compare the rest with another request",
			MaxCompared,
		)
	}
	missing := maps.Clone(digests)
	for _, path := range slices.Sorted(maps.Keys(digests)) {
		if err := ValidPath(path); err != nil {
			return c, errs.New(errs.Invalid, "files: %q: %s", clipped(path), errs.MessageOf(err))
		}
		if !isSHA256(digests[path]) {
			return c, errs.New(
				errs.Invalid, "files: the value of %q must be a SHA-256 of 64 lower-case hexadecimal digits",
				clipped(path),
			)
		}
	}
	all, err := l.store.All(ctx, tenant, library)
	if err != nil {
		return c, err
	}
	c.Digests = map[string]string{}
	for _, f := range all {
		digest, given := digests[f.Path]
		delete(missing, f.Path)
		switch {
		case !given:
			c.Extra = append(c.Extra, f.Path)
		case digest != f.SHA256:
			c.Differs = append(c.Differs, f.Path)
		default:
			c.Unchanged++
			continue
		}
		if f.SHA256 != "" {
			c.Digests[f.Path] = f.SHA256
		}
	}
	c.Missing = slices.Sorted(maps.Keys(missing))
	return c, nil
}

func isSHA256(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// clipped returns the beginning of a path for a message.
func clipped(path string) string {
	const most = 100
	if len(path) > most {
		return strings.ToValidUTF8(path[:most], "") + "…"
	}
	return path
}

// Get returns a file of a library without its bytes. Errors: errs.NotFound.
func (l *Files) Get(ctx context.Context, tenant, library, path string) (File, error) {
	if ValidPath(path) != nil { // cannot exist, and the database may refuse the text
		return File{}, errs.New(errs.NotFound, "File not found.")
	}
	return l.store.File(ctx, tenant, library, path)
}

// Open returns a file of a library with its bytes, which the caller closes. Errors: errs.NotFound.
func (l *Files) Open(ctx context.Context, tenant, library, path string) (File, blobs.Reader, error) {
	for again := true; ; again = false {
		f, err := l.Get(ctx, tenant, library, path)
		if err != nil {
			return File{}, nil, err
		}
		r, err := l.blobs.Open(ctx, tenant, f.ContentID)
		switch {
		case err == nil:
			return f, r, nil
		case errs.CodeOf(err) != errs.NotFound || !again: // replaced meanwhile, and its bytes removed
			return File{}, nil, err
		}
	}
}

// GetCached is Get for readers who may see a file as it was a second ago: what another process has
// changed since then is not seen, and in a transaction neither is what that has changed. What this
// process has committed is seen at once.
func (l *Files) GetCached(ctx context.Context, tenant, library, path string) (File, error) {
	f, err := l.named.Get(ctx, tenant, library+"/"+path, func() (*File, error) {
		f, err := l.Get(ctx, tenant, library, path)
		if errs.CodeOf(err) == errs.NotFound {
			return nil, nil
		}
		return &f, err
	})
	switch {
	case err != nil:
		return File{}, err
	case f == nil:
		return File{}, errs.New(errs.NotFound, "File not found.")
	}
	return *f, nil
}

// OpenCached is Open for the readers of GetCached. The bytes of small files are kept in memory.
func (l *Files) OpenCached(ctx context.Context, tenant, library, path string) (File, io.ReadSeekCloser, error) {
	f, err := l.GetCached(ctx, tenant, library, path)
	if err != nil {
		return File{}, nil, err
	}
	if content, ok := l.contents.Get(tenant, f.ContentID); ok {
		return f, inMemory{bytes.NewReader(content)}, nil
	}
	r, err := l.blobs.Open(ctx, tenant, f.ContentID)
	if errs.CodeOf(err) == errs.NotFound { // replaced meanwhile, and its bytes removed
		return l.Open(ctx, tenant, library, path)
	}
	if err != nil || r.Info().Size > maxContent {
		return f, r, err
	}
	content := make([]byte, r.Info().Size)
	_, err = io.ReadFull(r, content)
	if err := errors.Join(err, r.Close()); err != nil {
		return File{}, nil, err
	}
	l.contents.Put(tenant, f.ContentID, content, len(content)) // which no other content ever has
	return f, inMemory{bytes.NewReader(content)}, nil
}

// inMemory is a content that is kept in memory.
type inMemory struct{ *bytes.Reader }

// Close implements io.Closer.
func (inMemory) Close() error { return nil }

// Put writes a file of a library, over the one with its path. Without a content type it gets that
// of the path's extension. r is read before lock is called, which begins the transaction that names
// the file: it locks the library and checks that the caller may write to it. After an error the
// file is as it was.
// Errors: errs.Invalid for a bad path or content type, and for a new path in a library that has
// MaxFiles; errs.Conflict for a path that differs from another one in case alone, or that is a
// folder; errs.TooLarge; those of r and lock, as they are.
func (l *Files) Put(
	ctx context.Context, tenant, library, path, contentType string, r io.Reader,
	lock func(ctx context.Context) error,
) (File, error) {
	if err := ValidPath(path); err != nil {
		return File{}, err
	}
	f := File{Path: path}
	var err error
	if f.ContentType, err = mediaType(path, contentType); err != nil {
		return File{}, err
	}
	id := l.clock.NewID()
	w, err := l.blobs.Create(ctx, tenant, id, l.limit, l.clock.Stamp())
	if err != nil {
		return File{}, err
	}
	stored := false
	defer func() { // also when r panics
		if !stored {
			w.Abort()
		}
	}()
	digest := sha256.New()
	if f.Size, err = io.Copy(io.MultiWriter(w, digest), r); err != nil {
		return File{}, err
	}
	f.SHA256 = hex.EncodeToString(digest.Sum(nil))
	err = l.store.InTx(ctx, func(ctx context.Context) error {
		if err := lock(ctx); err != nil {
			return err
		}
		f.CreatedAt = l.clock.Stamp() // not when the body began, which may be long ago
		f.UpdatedAt = f.CreatedAt
		err := l.name(ctx, tenant, library, w, id, &f)
		if err == nil {
			action := entity.ActionUpdate
			if f.CreatedAt.Equal(f.UpdatedAt) {
				action = entity.ActionCreate
			}
			err = l.announce(ctx, tenant, library, path, action)
		}
		if err != nil && f.ContentID == id { // the caller may pass over the error, and commit
			if failed := l.store.Forget(ctx, tenant, []string{id}); failed != nil {
				err = errors.Join(err, failed)
			}
		}
		return err
	})
	if err != nil {
		return File{}, err
	}
	stored = f.ContentID == id
	return f, nil
}

// name names a file whose content is one that has its bytes already, or else w with this id, which
// it completes.
func (l *Files) name(ctx context.Context, tenant, library string, w blobs.Writer, id string, f *File) error {
	held, err := l.addOrHold(ctx, tenant, Content{ID: id, SHA256: f.SHA256, Size: f.Size})
	if err != nil {
		return err
	}
	if f.ContentID = cmp.Or(held, id); held == "" {
		if _, err := w.Commit(ctx); err != nil {
			return err
		}
	}
	named, err := l.store.Put(ctx, tenant, library, *f)
	if err == nil {
		*f = named
	}
	return err
}

// addOrHold adds a content, or returns the id of one with the same bytes, which may be released
// before it is held.
func (l *Files) addOrHold(ctx context.Context, tenant string, c Content) (held string, err error) {
	for {
		added, err := l.store.Add(ctx, tenant, c)
		if added || err != nil {
			return "", err
		}
		held, err := l.store.Hold(ctx, tenant, c.SHA256)
		if err != nil {
			return "", err
		}
		if held == "" {
			continue
		}
		r, err := l.blobs.Open(ctx, tenant, held)
		if err == nil {
			return held, r.Close()
		}
		if errs.CodeOf(err) != errs.NotFound {
			return "", err
		}
		// Its blob has gone: this content has bytes of its own, and the next one with the digest is
		// shared again.
		if err := l.store.Unshare(ctx, tenant, held); err != nil {
			return "", err
		}
		c.SHA256 = ""
	}
}

// Delete removes a file of a library; lock is called as by Put. Errors: errs.NotFound; those of
// lock, as they are.
func (l *Files) Delete(ctx context.Context, tenant, library, path string, lock func(ctx context.Context) error) error {
	return l.store.InTx(ctx, func(ctx context.Context) error {
		if err := lock(ctx); err != nil {
			return err
		}
		if ValidPath(path) != nil {
			return errs.New(errs.NotFound, "File not found.")
		}
		if err := l.store.Delete(ctx, tenant, library, path, l.clock.Stamp()); err != nil {
			return err
		}
		return l.announce(ctx, tenant, library, path, entity.ActionDelete)
	})
}

func (l *Files) announce(ctx context.Context, tenant, library, path string, action entity.Action) error {
	return l.feed.Each(ctx, tenant, action, entity.Key{Kind: l.kind, ID: l.feed.Part(library, path)})
}

// Keep removes the files of a library whose paths are not among these. The caller has locked the
// library, in the transaction in ctx.
func (l *Files) Keep(ctx context.Context, tenant, library string, paths []string) error {
	keep := make(map[string]bool, len(paths))
	for _, path := range paths {
		keep[path] = true
	}
	all, err := l.store.All(ctx, tenant, library)
	if err != nil {
		return err
	}
	for _, f := range all {
		if keep[f.Path] {
			continue
		}
		if err := l.store.Delete(ctx, tenant, library, f.Path, l.clock.Stamp()); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes all files of some libraries. The caller has locked them, in the transaction in
// ctx.
func (l *Files) Remove(ctx context.Context, tenant string, libraries []string) error {
	return l.store.Remove(ctx, tenant, libraries, l.clock.Stamp())
}

// Copy names in the library to, which has no files, all files of the library from, with their
// contents, content types and times. The caller has locked both, in the transaction in ctx.
func (l *Files) Copy(ctx context.Context, tenant, from, to string) error {
	return l.store.Copy(ctx, tenant, from, to)
}

// Replace makes the files of a library exactly those of the library by, another one, which has none
// then. A file that has the same content and content type in both keeps its CreatedAt and
// UpdatedAt; the others have those of by. The caller has locked both libraries, in the transaction
// in ctx.
func (l *Files) Replace(ctx context.Context, tenant, library, by string) error {
	return l.store.Replace(ctx, tenant, library, by, l.clock.Stamp())
}

// Set makes the files of a library exactly some that another library has, which may be of another
// kind. The caller has locked both libraries, in the transaction in ctx.
func (l *Files) Set(ctx context.Context, tenant, library string, files []File) error {
	had, err := l.store.All(ctx, tenant, library)
	if err != nil {
		return err
	}
	same := func(f File) func(File) bool {
		return func(o File) bool { return o.Path == f.Path && o.Version() == f.Version() }
	}
	for _, f := range had {
		if slices.ContainsFunc(files, same(f)) {
			continue
		}
		if err := l.store.Delete(ctx, tenant, library, f.Path, l.clock.Stamp()); err != nil {
			return err
		}
	}
	for _, f := range files {
		if slices.ContainsFunc(had, same(f)) {
			continue
		}
		if _, err := l.store.Put(ctx, tenant, library, f); err != nil {
			return err
		}
	}
	return nil
}

// Modified returns the newest UpdatedAt of the files of some libraries. Libraries without files are
// left out.
func (l *Files) Modified(ctx context.Context, tenant string, libraries []string) (map[string]time.Time, error) {
	return l.store.Modified(ctx, tenant, libraries)
}

// How contents without files are removed.
const (
	// how long after the last of its files, and after that was found, so that a download that has
	// begun ends
	released      = time.Minute
	releasedBatch = 100 // how many are looked at at once
)

// Hooks returns what is done with contents: Sweep removes those that no file has any more.
func (l *Files) Hooks() entity.Hooks {
	return entity.Hooks{
		Sweep: l.sweep,
		Due:   []entity.Due{{Table: "tc_library_released", Column: "released_at", Age: released}},
	}
}

func (l *Files) sweep(ctx context.Context, tenant string) (n int, err error) {
	for {
		at := l.clock.Stamp()
		ids, looked, err := l.store.Release(ctx, tenant, at.Add(-released), at, releasedBatch)
		if err != nil {
			return n, err
		}
		for _, id := range ids {
			if err := l.blobs.Delete(ctx, tenant, id); err != nil {
				return n, err
			}
		}
		if err := l.store.Forget(ctx, tenant, ids); err != nil {
			return n, err
		}
		if n += len(ids); looked < releasedBatch {
			return n, nil
		}
		if err := entity.Step(ctx); err != nil {
			return n, err
		}
	}
}
