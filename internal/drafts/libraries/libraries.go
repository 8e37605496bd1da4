// Package libraries keeps the files of libraries: paths over contents. The bytes of equal files of
// a tenant are stored once.
//
// It checks no rights: the packages content and apps, which import it, do so before.
// internal/store/libraries stores its rows and a blobs.Store the bytes.
package libraries

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// MaxFiles is how many files a library has at most: the time of a copy or a comparison grows with
// them.
const MaxFiles = 10_000

// File is one file of a library.
type File struct {
	Path      string // see ValidPath
	ContentID string // of its bytes, which other files may share
	// of its bytes, in lower-case hexadecimal; "" for a file that was written before digests were
	// kept
	SHA256      string
	Size        int64     // bytes
	ContentType string    // a media type
	CreatedAt   time.Time // UTC, whole microseconds; of the path: the file that replaces one keeps it
	UpdatedAt   time.Time // UTC, whole microseconds
}

// Version changes with the bytes of the file and its content type.
func (f File) Version() string { return guard.Version(f.ContentID, f.ContentType) }

// Content is the bytes of files.
type Content struct {
	ID string // of the blob that has the bytes
	// lower-case hexadecimal; no two contents of a tenant have the same one. "" for one that no
	// other file gets
	SHA256 string
	Size   int64 // bytes
}

// Store keeps the names and contents of files. The tests beside its bun-backed store say what every
// implementation must do.
//
// Whoever calls a method that writes to a library holds a lock of that library, such as its row's,
// until the transaction in ctx ends. at is the time of a write: contents that a library has not had
// for a while, and no other file has, are what Release finds.
type Store interface {
	// File fails with errs.NotFound when the library has no file of exactly this path.
	File(ctx context.Context, tenant, library, path string) (File, error)
	// Page returns a page of a library's files in the order of q.Sort: path (the default) or
	// updatedAt.
	Page(ctx context.Context, tenant, library string, q paging.Query) (paging.Page[File], error)
	// All returns all files of a library, ordered by path.
	All(ctx context.Context, tenant, library string) ([]File, error)

	// Put names a file, over the one with its path, whose CreatedAt stays, and returns it as it is
	// stored. It fails with errs.Conflict when another path differs in case alone, or goes through
	// this one as if it were a folder, or the other way round, and with errs.Invalid for a new path
	// when the library has MaxFiles.
	Put(ctx context.Context, tenant, library string, f File) (File, error)
	// Delete removes the name of a file. It fails with errs.NotFound.
	Delete(ctx context.Context, tenant, library, path string, at time.Time) error
	// Remove removes the names of all files of some libraries.
	Remove(ctx context.Context, tenant string, libraries []string, at time.Time) error

	// Copy names in the library to, which has no files, all files of the library from, with their
	// contents, content types and times. Both libraries are locked.
	Copy(ctx context.Context, tenant, from, to string) error
	// Replace makes the files of a library exactly those of the library by, another one, which has
	// none then. A file that has the same content and content type in both keeps its CreatedAt and
	// UpdatedAt; the others have those of by. Both libraries are locked.
	Replace(ctx context.Context, tenant, library, by string, at time.Time) error
	// Modified returns the newest UpdatedAt of the files of some libraries. Libraries without files
	// are left out.
	Modified(ctx context.Context, tenant string, libraries []string) (map[string]time.Time, error)

	// Hold returns the id of the content with a digest, "" for none, which stays until the
	// transaction ends.
	Hold(ctx context.Context, tenant, sha256 string) (id string, err error)
	// Add adds a content. It returns false, and adds nothing, when there is one with the digest. It
	// does not wait for another transaction that adds one with the digest: the content is then
	// added without its digest, and not shared.
	Add(ctx context.Context, tenant string, c Content) (added bool, err error)
	// Release looks at no more than n of the contents that libraries have not had since before.
	// Hold does not find any more those that no file has: Release returns the ids of them once it
	// has found that at a time before, and notes the time, at, of what it finds. So a file that a
	// long transaction removed stays readable after its end. looked is less than n when there are
	// no more contents to look at now.
	Release(ctx context.Context, tenant string, before, at time.Time, n int) (ids []string, looked int, err error)
	// Unshare has Hold not find a content any more. It does nothing to one that another transaction
	// holds.
	Unshare(ctx context.Context, tenant, id string) error
	// Forget removes contents that no file has: those that Release has returned, or one that the
	// same transaction has added.
	Forget(ctx context.Context, tenant string, ids []string) error

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}
