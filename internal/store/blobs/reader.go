package bunstore

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// reader implements blobs.Reader. io.SectionReader implements Read and Seek with chunks.ReadAt.
type reader struct {
	*io.SectionReader
	chunks *chunks
}

// Info implements blobs.Reader.
func (r *reader) Info() blobs.Info { return r.chunks.info }

// Close implements blobs.Reader. Reads fail afterwards.
func (r *reader) Close() error {
	r.chunks.mu.Lock()
	defer r.chunks.mu.Unlock()
	r.chunks.closed, r.chunks.buf = true, nil
	return nil
}

// chunks reads a blob at any offset and keeps the chunk it read last.
type chunks struct {
	s      *Store
	ctx    context.Context
	tenant string
	info   blobs.Info

	mu     sync.Mutex
	closed bool
	number int // of the chunk in buf, or -1
	buf    chunk
}

// chunk is a column of bytes that is scanned into the same memory each time. The driver's slice is
// copied once, not twice.
type chunk []byte

// Scan implements sql.Scanner.
func (c *chunk) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok {
		return fmt.Errorf("bunstore: a chunk is %T", src)
	}
	*c = append((*c)[:0], b...)
	return nil
}

// ReadAt implements io.ReaderAt. io.SectionReader ensures that off and the length of p are within
// the blob.
func (c *chunks) ReadAt(p []byte, off int64) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(p) {
		if off >= c.info.Size {
			return n, io.EOF
		}
		if err := c.load(int(off / blobs.ChunkSize)); err != nil {
			return n, err
		}
		m := copy(p[n:], c.buf[off%blobs.ChunkSize:])
		n, off = n+m, off+int64(m)
	}
	return n, nil
}

// load reads the chunk with this number, unless it is the current one.
func (c *chunks) load(number int) error {
	if c.closed {
		return fs.ErrClosed
	}
	if number == c.number {
		return nil
	}
	c.number = -1
	ctx, conn := bunx.For(c.ctx, c.s.db, c.tenant)
	err := conn.One(ctx, "Blob",
		`SELECT bytes FROM tc_blob_chunks WHERE tenant_id = $1 AND blob_id = $2 AND number = $3`,
		[]any{c.tenant, c.info.ID, number}, &c.buf)
	if err != nil {
		return err
	}
	if want := min(blobs.ChunkSize, c.info.Size-int64(number)*blobs.ChunkSize); int64(len(c.buf)) != want {
		return fmt.Errorf("bunstore: chunk %d of blob %s has %d bytes, not %d", number, c.info.ID, len(c.buf), want)
	}
	c.number = number
	return nil
}
