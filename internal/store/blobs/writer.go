package bunstore

import (
	"cmp"
	"context"
	"io/fs"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// abortTime bounds Abort, which runs after the caller's context may have ended.
const abortTime = 10 * time.Second

// writer implements blobs.Writer.
type writer struct {
	s          *Store
	ctx        context.Context
	tenant, id string
	limit      int64
	at         time.Time

	buf    []byte // of the chunk that is not full yet
	size   int64  // including buf
	chunks int    // number, without that in buf
	begun  bool   // a row was written that Abort must remove
	err    error  // the first error, which all calls return
}

// Write implements blobs.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	switch {
	case w.err != nil:
	case w.ctx.Err() != nil:
		w.err = w.ctx.Err()
	case int64(len(p)) > w.limit-w.size:
		w.err = errs.New(errs.TooLarge, "The file must have at most %d bytes.", w.limit)
	}
	for n < len(p) && w.err == nil {
		more := p[n:min(len(p), n+blobs.ChunkSize-len(w.buf))]
		w.buf = append(w.buf, more...)
		w.size += int64(len(more))
		n += len(more)
		if len(w.buf) == blobs.ChunkSize {
			w.err = bunx.Write(w.ctx, w.s.db, w.tenant, w.flush)
		}
	}
	return n, w.err
}

// Commit implements blobs.Writer. A blob of less than a chunk is one transaction.
func (w *writer) Commit(ctx context.Context) (blobs.Info, error) {
	if w.err == nil {
		w.err = bunx.Write(ctx, w.s.db, w.tenant, w.complete)
	}
	if w.err != nil {
		return blobs.Info{}, w.err
	}
	w.err, w.buf = fs.ErrClosed, nil
	return blobs.Info{ID: w.id, Size: w.size, Chunks: w.chunks}, nil
}

// flush writes the chunk in buf.
func (w *writer) flush(ctx context.Context, c bunx.Conn) error {
	if err := w.begin(ctx, c); err != nil || len(w.buf) == 0 {
		return err
	}
	_, err := c.Exec(ctx, `INSERT INTO tc_blob_chunks (tenant_id, blob_id, number, bytes) VALUES ($1, $2, $3, $4)`,
		w.tenant, w.id, w.chunks, w.buf)
	w.buf = w.buf[:0]
	w.chunks++
	return bunx.Err(err, "Blob")
}

// begin writes the row, which readers cannot see yet.
func (w *writer) begin(ctx context.Context, c bunx.Conn) error {
	if w.begun {
		return nil
	}
	_, err := c.Exec(ctx, `INSERT INTO tc_blobs (tenant_id, id, size, chunks, complete, created_at)
		VALUES ($1, $2, 0, 0, false, $3)`, w.tenant, w.id, bunx.At(w.at))
	w.begun = err == nil
	return bunx.Err(err, "Blob")
}

// complete writes the last chunk and makes the blob visible to readers.
func (w *writer) complete(ctx context.Context, c bunx.Conn) error {
	if err := w.flush(ctx, c); err != nil {
		return err
	}
	n, err := c.Exec(ctx, `UPDATE tc_blobs SET size = $3, chunks = $4, complete = true
		WHERE tenant_id = $1 AND id = $2 AND NOT complete`, w.tenant, w.id, w.size, w.chunks)
	return bunx.Found(n, err, "Blob")
}

// Abort implements blobs.Writer.
func (w *writer) Abort() {
	w.err, w.buf = cmp.Or(w.err, fs.ErrClosed), nil
	if !w.begun {
		return
	}
	if _, c := bunx.For(w.ctx, w.s.db, w.tenant); c.InTx() {
		_ = w.s.Delete(w.ctx, w.tenant, w.id) // else the transaction cannot be committed, or Sweep removes it
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), abortTime)
	defer cancel()
	_, _ = w.s.deleteIncomplete(ctx, w.tenant, w.id) // else Sweep removes it
}
