// Package blobs stores bytes by key. Blobs may have any size: they are streamed in chunks and never
// held in memory as a whole.
//
// files, content and principals import it; internal/store/blobs keeps the chunks in the database.
package blobs

import (
	"context"
	"io"
	"time"
)

// ChunkSize is how many bytes a chunk has, except for the last one of a blob. Download.chunks
// counts such chunks.
const ChunkSize = 1 << 20

// Info describes a complete blob.
type Info struct {
	ID     string
	Size   int64 // bytes
	Chunks int   // stored chunks of ChunkSize; 0 when the blob is empty
}

// Store keeps blobs. An id is used once: a new blob gets a new one. Implementations must pass
// blobstest.TestStore and TestSize.
type Store interface {
	// Create begins a blob of at most limit bytes; at is what Sweep compares. Readers see it once
	// it is committed. The Writer keeps ctx for its writes; when ctx carries a transaction they
	// join it, else each full chunk is a short transaction of its own, so a slow sender holds
	// neither a connection nor SQLite's one writer meanwhile. A taken id is errs.Conflict, at the
	// latest from Commit.
	Create(ctx context.Context, tenant, id string, limit int64, at time.Time) (Writer, error)
	// Open returns a blob's bytes from any place. It holds no connection between reads, but keeps
	// ctx for them.
	// Errors: errs.NotFound, also for a blob that is not committed. A read of a blob that was
	// deleted meanwhile fails.
	Open(ctx context.Context, tenant, id string) (Reader, error)
	// Delete removes a blob. One that does not exist is no error.
	Delete(ctx context.Context, tenant, id string) error
	// Sweep removes blobs that were begun before a time and never committed, and returns their
	// number. It ends the Writers that still work on one: they fail. A blob that is committed
	// meanwhile stays.
	Sweep(ctx context.Context, tenant string, before time.Time) (int, error)
}

// Writer writes one blob. It must not be used by several goroutines at once.
type Writer interface {
	// Write adds bytes. Errors: errs.TooLarge past the limit; the context's when it has ended.
	// After an error nothing more is taken and Commit fails with the same one.
	io.Writer
	// Commit completes the blob, in the transaction of this ctx when it has one.
	Commit(ctx context.Context) (Info, error)
	// Abort removes everything that was written, even if ctx has ended, and even after a Commit
	// whose transaction failed. A blob whose Commit has been made stays, as its caller may have
	// lost the answer and others may name the blob by then; in the transaction that ctx of Create
	// carries it is removed too. What Abort fails to remove cannot be read, and Sweep removes it.
	Abort()
}

type sizeKey struct{}

// WithSize returns a context for a blob that is about to have n bytes, as far as its sender says,
// so that one without room is refused before its bytes are taken.
func WithSize(ctx context.Context, n int64) context.Context {
	return context.WithValue(ctx, sizeKey{}, n)
}

// SizeOf returns what WithSize put into the context, 0 if nothing is known.
func SizeOf(ctx context.Context) int64 {
	n, _ := ctx.Value(sizeKey{}).(int64)
	return max(0, n)
}

// Reader reads a blob. Read and Seek are for one goroutine at a time, ReadAt for any number.
type Reader interface {
	io.ReadSeekCloser
	io.ReaderAt
	Info() Info
}

// Put streams r into a new blob. After an error, r's own one is passed on as it is, there is no
// blob, except for an error that says that the change may have been made.
func Put(ctx context.Context, s Store, tenant, id string, limit int64, at time.Time, r io.Reader) (Info, error) {
	w, err := s.Create(ctx, tenant, id, limit, at)
	if err != nil {
		return Info{}, err
	}
	done := false
	defer func() { // also when r panics
		if !done {
			w.Abort()
		}
	}()
	if _, err := io.Copy(w, r); err != nil {
		return Info{}, err
	}
	info, err := w.Commit(ctx)
	done = err == nil
	return info, err
}
