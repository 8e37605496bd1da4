// Package files stores files until they expire. uploads and downloads share it. A file is a row with its name, type, owner and
// expiry, and a blob with its bytes.
//
// uploads and downloads import it and decide who may see a file; their bunstores store its rows through files/bunstore.
package files

import (
	"context"
	"io"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/blobs"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/internal/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
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

// Store keeps the rows of files. Implementations must pass filestest.TestStore.
type Store interface {
	// Insert adds a file. Errors: errs.Conflict for a taken id; errs.Forbidden when its user does not exist.
	Insert(ctx context.Context, tenant string, f File) error
	// Get returns a file, expired or not. Errors: errs.NotFound.
	Get(ctx context.Context, tenant, id string) (File, error)
	// Expired returns the ids of at most limit files that expire at this time or before, the oldest first.
	Expired(ctx context.Context, tenant string, at time.Time, limit int) ([]string, error)
	// Page returns a page of the files of some users, at least one, that have not expired by then, in the order of q.Sort:
	// createdAt, the newest first unless it says otherwise.
	Page(ctx context.Context, tenant string, usernames []string, at time.Time, q paging.Query) (paging.Page[File], error)
	// OfUsers returns the ids of at most limit files of some users, at least one.
	OfUsers(ctx context.Context, tenant string, usernames []string, limit int) ([]string, error)
	// CountOfUsers returns how many files of some users have not expired at a time.
	CountOfUsers(ctx context.Context, tenant string, usernames []string, at time.Time) (int, error)
	// RenameUsers replaces the usernames of files; names maps old ones to new ones, and no new one is an old
	// one.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error
	// UsedBytes returns the bytes of all files of a user.
	UsedBytes(ctx context.Context, tenant, username string) (int64, error)
	// Delete removes a file's row. One that does not exist is no error.
	Delete(ctx context.Context, tenant, id string) error
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// FileStore stores the files of one kind, such as uploads. Store, Blobs and Noun are required.
type FileStore struct {
	Store    Store
	Blobs    blobs.Store
	Noun     string           // "Upload": names the kind in messages
	Now      func() time.Time // default time.Now
	NewID    func() string    // default UUIDv7
	Limit    int64            // bytes of one file; default unlimited
	Quota    int64            // bytes of all files of a user, not exactly when several are made at once; default unlimited
	Lifetime time.Duration    // default 24 h
}

const (
	sweepBatch = 100            // how many expired files Sweep asks for at once
	userBatch  = 500            // for how many users Forget asks at once
	abandoned  = 24 * time.Hour // how long after its begin a blob that is not complete counts as left behind
)

// WithDefaults fills what is not set.
func (s FileStore) WithDefaults() FileStore {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.NewID == nil {
		s.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if s.Limit == 0 {
		s.Limit = math.MaxInt64
	}
	if s.Quota == 0 {
		s.Quota = math.MaxInt64
	}
	if s.Lifetime == 0 {
		s.Lifetime = 24 * time.Hour
	}
	return s
}

// Create creates a file with the bytes that fill writes. fill runs in this goroutine. After an error or a panic nothing of the
// file remains; an error from fill is returned as it is.
// Errors: errs.Invalid for a bad name or content type; errs.TooLarge.
func (s FileStore) Create(ctx context.Context, tenant, user, filename, contentType string, fill func(io.Writer) error) (File, error) {
	f := File{ID: s.NewID(), Username: user, CreatedAt: s.Now().UTC().Truncate(time.Microsecond)}
	f.ExpiresAt = f.CreatedAt.Add(s.Lifetime)
	var err error
	if f.Filename, err = cleanName(filename, s.Noun); err != nil {
		return File{}, err
	}
	if f.ContentType, err = cleanType(contentType); err != nil {
		return File{}, err
	}
	limit, err := s.room(ctx, tenant, user)
	if err != nil {
		return File{}, err
	}
	w, err := s.Blobs.Create(ctx, tenant, f.ID, limit, f.CreatedAt)
	if err != nil {
		return File{}, err
	}
	kept := false
	defer func() {
		if !kept {
			w.Abort()
		}
	}()
	if err := fill(w); err != nil {
		return File{}, err
	}
	err = s.Store.InTx(ctx, func(ctx context.Context) error { // so no complete blob is without its row
		info, err := w.Commit(ctx)
		if err != nil {
			return err
		}
		f.Size, f.Chunks = info.Size, info.Chunks
		return s.Store.Insert(ctx, tenant, f)
	})
	if err != nil {
		return File{}, err
	}
	kept = true
	return f, nil
}

// room returns how many bytes the user's next file may have.
func (s FileStore) room(ctx context.Context, tenant, user string) (int64, error) {
	if s.Quota == math.MaxInt64 {
		return s.Limit, nil
	}
	held, err := s.Store.UsedBytes(ctx, tenant, user)
	if err == nil && held >= s.Quota {
		err = errs.New(errs.TooLarge, "Your files hold %d bytes of %d: remove some, or wait until they expire.", held, s.Quota)
	}
	return min(s.Limit, s.Quota-held), err
}

// Forget removes all files of deleted users, so that later users with their names do not get them.
func (s FileStore) Forget(ctx context.Context, tenant string, users ...string) error {
	for some := range slices.Chunk(users, userBatch) {
		if err := s.forget(ctx, tenant, some); err != nil {
			return err
		}
	}
	return nil
}

func (s FileStore) forget(ctx context.Context, tenant string, users []string) error {
	for {
		ids, err := s.Store.OfUsers(ctx, tenant, users, sweepBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := s.Delete(ctx, tenant, id); err != nil {
				return err
			}
		}
	}
}

// Get returns a file that has not expired, when may allows it. Errors: errs.NotFound, also for an id that is no UUID.
func (s FileStore) Get(ctx context.Context, tenant, id string, may func(File) bool) (File, error) {
	key, ok := uuids.Parse(id)
	if !ok {
		return File{}, s.notFound()
	}
	f, err := s.Store.Get(ctx, tenant, key)
	if err != nil {
		return File{}, err
	}
	if !s.Now().Before(f.ExpiresAt) || !may(f) {
		return File{}, s.notFound()
	}
	return f, nil
}

// Open returns what Get does, with the bytes. The caller closes them.
func (s FileStore) Open(ctx context.Context, tenant, id string, may func(File) bool) (File, blobs.Reader, error) {
	f, err := s.Get(ctx, tenant, id, may)
	if err != nil {
		return File{}, nil, err
	}
	r, err := s.Blobs.Open(ctx, tenant, f.ID)
	if errs.CodeOf(err) == errs.NotFound { // deleted meanwhile
		err = s.notFound()
	}
	if err != nil {
		return File{}, nil, err
	}
	return f, r, nil
}

// Delete removes a file for good.
func (s FileStore) Delete(ctx context.Context, tenant, id string) error {
	// The bytes first: if this is interrupted, Sweep still finds the row.
	if err := s.Blobs.Delete(ctx, tenant, id); err != nil {
		return err
	}
	return s.Store.Delete(ctx, tenant, id)
}

// Sweep removes the expired files of a tenant, and returns their number. It also removes blobs, of any kind, that were
// begun a day ago and never completed.
func (s FileStore) Sweep(ctx context.Context, tenant string) (int, error) {
	now, n := s.Now(), 0
	for {
		ids, err := s.Store.Expired(ctx, tenant, now, sweepBatch)
		if err != nil {
			return n, err
		}
		for _, id := range ids {
			if err := s.Delete(ctx, tenant, id); err != nil {
				return n, err
			}
			n++
		}
		if len(ids) < sweepBatch {
			break
		}
	}
	_, err := s.Blobs.Sweep(ctx, tenant, now.Add(-abandoned))
	return n, err
}

func (s FileStore) notFound() error { return errs.New(errs.NotFound, "%s not found.", s.Noun) }
