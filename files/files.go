// Package files stores files until they expire. A file is a row with its name, type, owner and
// expiry, and a blob with its bytes.
//
//	file, err := app.Uploads.Create(ctx, "sales.csv", "text/csv", r)
//	file, bytes, err := app.Uploads.Open(ctx, file.ID)
//	err = app.Uploads.Delete(ctx, file.ID)
//
// Uploads are what users staged for another request, Downloads what was made for a user. httpapi,
// the root and hosts import it; internal/store/files stores the rows and a blobs.Store the bytes.
package files

import (
	"cmp"
	"context"
	"io"
	"math"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// The kinds of files in changes.
const (
	KindUpload   entity.Kind = "upload"
	KindDownload entity.Kind = "download"
)

// File is one file of a tenant.
type File struct {
	ID          string    // UUID, also of its blob
	Filename    string    // 1 to 255 characters, without a path
	ContentType string    // a media type, at most 255 bytes
	Size        int64     // bytes
	Chunks      int       // stored chunks of 1 MiB; 0 when it is empty
	Username    string    // who made it
	CreatedAt   time.Time // UTC, whole microseconds
	ExpiresAt   time.Time // UTC, whole microseconds; from then on it is not found
}

// Version returns a constant version, as a file does not change.
func (f File) Version() string {
	return guard.Version(f.ID, f.Filename, f.ContentType, f.Size, f.Username, f.CreatedAt, f.ExpiresAt)
}

// Store keeps the rows of files. The tests beside its bun-backed store say what every
// implementation must do.
type Store interface {
	// Insert adds a file. Errors: errs.Conflict for a taken id; errs.Forbidden when its user does
	// not exist.
	Insert(ctx context.Context, tenant string, f File) error
	// Get returns a file, expired or not. Errors: errs.NotFound.
	Get(ctx context.Context, tenant, id string) (File, error)
	// Expired returns the ids of at most limit files that expire at this time or before, the oldest
	// first.
	Expired(ctx context.Context, tenant string, at time.Time, limit int) ([]string, error)
	// List returns a page of the files of some users, at least one, that have not expired by then,
	// in the order of q.Sort: createdAt, the newest first unless it says otherwise.
	Page(
		ctx context.Context, tenant string, usernames []string, at time.Time, q paging.Query,
	) (paging.Page[File], error)
	// Forget sets some n files at most of a deleted user to belong to nobody and to expire at a
	// time, and reports whether there may be more; account is the user's: see
	// entity.Hooks.RemoveRest. It neither reads nor writes their bytes. From the delete on they are
	// no other user's, nor in a list.
	Forget(ctx context.Context, tenant, account string, at time.Time, n int) (more bool, err error)
	// CountOfUsers returns how many files of some users have not expired at a time.
	CountOfUsers(ctx context.Context, tenant string, usernames []string, at time.Time) (int, error)
	// RenameUsers replaces the usernames of files; names maps old ones to new ones, and no new one
	// is an old one.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error
	// UsedBytes returns the bytes of all files of a user. It costs the same for any number of
	// files. In a transaction that has inserted a file of the user it is exact until that ends:
	// others that insert one wait.
	UsedBytes(ctx context.Context, tenant, username string) (int64, error)
	// Delete removes a file's row. One that does not exist is no error.
	Delete(ctx context.Context, tenant, id string) error
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Service stores the files of one noun, such as uploads. It checks no permission: its methods take
// the tenant, and those that read take a function, visible, that reports whether the caller may see
// a file.
type Service struct {
	o     Options
	clock clock.Clock
}

// Options configure a Service. Store, Blobs and Noun are required.
type Options struct {
	Store    Store
	Blobs    Blobs
	Noun     string           // names a file in messages, such as "Upload"
	Kind     entity.Kind      // of the files in changes
	Table    string           // of the Store, for a sweep to find what has expired
	Now      func() time.Time // default time.Now
	NewID    func() string    // default UUIDv7
	Limit    int64            // bytes of one file; default unlimited
	Quota    int64            // bytes of all files of a user; default unlimited
	Lifetime time.Duration    // default 24 h
	Feed     *entity.Changes  // nil: changes are not announced
}

// New returns a Service.
func New(o Options) *Service {
	if o.Limit == 0 {
		o.Limit = math.MaxInt64
	}
	if o.Quota == 0 {
		o.Quota = math.MaxInt64
	}
	if o.Lifetime == 0 {
		o.Lifetime = 24 * time.Hour
	}
	return &Service{o, clock.New(o.Now, o.NewID)}
}

// Draft describes a file that is to be made.
type Draft struct {
	Username    string        // its owner
	Filename    string        // the last part of its path is kept; the noun in lower case when there is none
	ContentType string        // default application/octet-stream
	Lifetime    time.Duration // default the Service's
}

// Create creates a file with the bytes that fill writes. fill runs in this goroutine. After an
// error or a panic nothing of the file remains; an error from fill is returned as it is.
// Errors: errs.Invalid for a bad name or content type; errs.TooLarge for a file beyond
// Options.Limit; errs.Full for what the user's files, or the tenant's storage, have no room for:
// before fill runs if the size is known (blobs.WithSize).
func (s *Service) Create(ctx context.Context, tenant string, d Draft, fill func(io.Writer) error) (File, error) {
	f := File{ID: s.clock.NewID(), Username: d.Username, CreatedAt: s.clock.Stamp()}
	f.ExpiresAt = f.CreatedAt.Add(cmp.Or(d.Lifetime, s.o.Lifetime))
	var err error
	if f.Filename, err = cleanName(d.Filename, s.o.Noun); err != nil {
		return File{}, err
	}
	if f.ContentType, err = cleanType(d.ContentType); err != nil {
		return File{}, err
	}
	room, err := s.room(ctx, tenant, d.Username)
	if err != nil {
		return File{}, err
	}
	w, err := s.o.Blobs.Create(ctx, tenant, f.ID, s.o.Limit, f.CreatedAt)
	if err != nil {
		return File{}, err
	}
	kept := false
	defer func() {
		if !kept {
			w.Abort()
		}
	}()
	within := &within{Writer: w, s: s, room: room}
	if err := cmp.Or(fill(within), within.failed); err != nil {
		return File{}, err
	}
	err = s.o.Store.InTx(ctx, func(ctx context.Context) error { // so no complete blob is without its row
		info, err := w.Commit(ctx)
		if err != nil {
			return err
		}
		f.Size, f.Chunks = info.Size, info.Chunks
		if err := s.o.Store.Insert(ctx, tenant, f); err != nil {
			return err
		}
		if err := s.stillWithin(ctx, tenant, f); err != nil {
			return err
		}
		return s.o.Feed.Announce(ctx, tenant, entity.ActionCreate, entity.Key{Kind: s.o.Kind, ID: f.ID})
	})
	if err != nil {
		return File{}, err
	}
	kept = true
	return f, nil
}

// room returns how many bytes the user's next file may have for all of them to be within the quota.
// It returns errs.Full if there are none, or fewer than the file is about to have.
func (s *Service) room(ctx context.Context, tenant, user string) (int64, error) {
	if s.o.Quota == math.MaxInt64 {
		return s.o.Quota, nil
	}
	held, err := s.o.Store.UsedBytes(ctx, tenant, user)
	room := s.o.Quota - held
	if err == nil && room < max(1, min(blobs.SizeOf(ctx), s.o.Limit)) {
		err = s.full(held)
	}
	return room, err
}

// within is the Writer of a file that ends where the quota of its user does.
type within struct {
	io.Writer
	s      *Service
	room   int64
	failed error // it stays, also if fill goes on
}

// Write implements io.Writer.
func (w *within) Write(p []byte) (int, error) {
	if w.failed == nil && int64(len(p)) > w.room {
		w.failed = w.s.full(w.s.o.Quota - w.room)
	}
	if w.failed != nil {
		return 0, w.failed
	}
	n, err := w.Writer.Write(p)
	w.room -= int64(n)
	return n, err
}

// stillWithin returns errs.Full if the files of a user pass the quota with one that has been
// inserted, as others were made at the same time.
func (s *Service) stillWithin(ctx context.Context, tenant string, f File) error {
	if s.o.Quota == math.MaxInt64 || f.Size == 0 {
		return nil
	}
	held, err := s.o.Store.UsedBytes(ctx, tenant, f.Username)
	if err == nil && held > s.o.Quota {
		err = s.full(held - f.Size)
	}
	return err
}

func (s *Service) full(held int64) error {
	nouns := strings.ToLower(s.o.Noun) + "s"
	return errs.New(errs.Full,
		"Your %s are full: they hold %d of the %d bytes that they may have, and this does not fit. Remove some, "+
			"or wait until they expire.",
		nouns, held, s.o.Quota)
}

// Used returns the bytes of all files of a user, and how many these may be, math.MaxInt64 without a
// quota.
func (s *Service) Used(ctx context.Context, tenant, user string) (used, allowed int64, err error) {
	used, err = s.o.Store.UsedBytes(ctx, tenant, user)
	return used, s.o.Quota, err
}

// Get returns a file that has not expired and whose user was not deleted, if it is visible. Errors:
// errs.NotFound, also for an id that is no UUID.
func (s *Service) Get(ctx context.Context, tenant, id string, visible func(File) bool) (File, error) {
	key, ok := uuids.Parse(id)
	if !ok {
		return File{}, s.notFound()
	}
	f, err := s.o.Store.Get(ctx, tenant, key)
	if err != nil {
		return File{}, err
	}
	if !s.clock.Now().Before(f.ExpiresAt) || f.Username == "" || !visible(f) { // without a user it is to be removed
		return File{}, s.notFound()
	}
	return f, nil
}

// Open returns a file as Get does, with its bytes, which the caller closes.
func (s *Service) Open(ctx context.Context, tenant, id string, visible func(File) bool) (File, Reader, error) {
	f, err := s.Get(ctx, tenant, id, visible)
	if err != nil {
		return File{}, nil, err
	}
	r, err := s.o.Blobs.Open(ctx, tenant, f.ID)
	if errs.CodeOf(err) == errs.NotFound { // deleted meanwhile
		err = s.notFound()
	}
	if err != nil {
		return File{}, nil, err
	}
	return f, r, nil
}

// List returns a page of the files of some users, at least one, that have not expired. Errors:
// errs.Invalid for a sort or cursor that does not fit.
func (s *Service) List(
	ctx context.Context, tenant string, usernames []string, q paging.Query,
) (paging.Page[File], error) {
	return s.o.Store.Page(ctx, tenant, usernames, s.clock.Now(), q)
}

// Delete removes a file for good.
func (s *Service) Delete(ctx context.Context, tenant, id string) error {
	// The bytes first: if this is interrupted, Sweep still finds the row.
	if err := s.o.Blobs.Delete(ctx, tenant, id); err != nil {
		return err
	}
	return s.o.Store.Delete(ctx, tenant, id)
}

func (s *Service) notFound() error { return errs.New(errs.NotFound, "%s not found.", s.o.Noun) }
