package tenants

import (
	"context"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

// Blobs returns Blobs that returns errs.Full for what its tenant has no room for: before
// anything is taken if the size is known (blobs.WithSize), and in the middle of it if not.
//
// What this process writes at once never passes the quota together. Several processes may pass it
// by what they write in one second, and so may a transaction that others do not see yet.
func (s *Quotas) Blobs(store Blobs) Blobs { return &bounded{store, s} }

// Blobs keeps blobs.
type Blobs = blobs.Store

type bounded struct {
	Blobs
	quotas *Quotas
}

// Create implements Blobs.
func (b *bounded) Create(ctx context.Context, tenant, id string, limit int64, at time.Time) (blobs.Writer, error) {
	if err := b.quotas.Check(ctx, tenant, min(blobs.SizeOf(ctx), limit)); err != nil {
		return nil, err
	}
	w, err := b.Blobs.Create(ctx, tenant, id, limit, at)
	if err != nil {
		return nil, err
	}
	return &writer{Writer: w, quotas: b.quotas, ctx: ctx, tenant: tenant, room: b.quotas.of(tenant), limit: limit}, nil
}

// writer counts what it writes. A chunk that is full is in the counters of the database; what
// follows is pending.
type writer struct {
	blobs.Writer
	quotas  *Quotas
	ctx     context.Context
	tenant  string
	room    *room
	limit   int64
	size    int64
	pending int64
	failed  error // the first one; it stays
}

var _ io.Writer = (*writer)(nil)

// Write implements blobs.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.failed != nil {
		return 0, w.failed
	}
	if int64(len(p)) <= w.limit-w.size { // or it is too large: the Writer says so
		if w.failed = w.take(int64(len(p))); w.failed != nil {
			return 0, w.failed
		}
	}
	n, err = w.Writer.Write(p)
	w.settle((w.size) % blobs.ChunkSize)
	return n, err
}

// take counts n bytes as written, or returns errs.Full.
func (w *writer) take(n int64) error {
	for measured := false; ; measured = true {
		w.room.mu.Lock()
		if old := w.quotas.clock.Now().Sub(w.room.measured) > fresh; w.room.left() >= n && (measured || !old) {
			w.room.written += n
			w.room.pending += n
			w.size += n
			w.pending += n
			w.room.mu.Unlock()
			return nil
		}
		w.room.mu.Unlock()
		if measured {
			return w.quotas.full(w.tenant)
		}
		if err := w.quotas.measure(w.ctx, w.tenant, w.room); err != nil {
			return err
		}
	}
}

// settle notes that the counters of the database have all but some of the bytes.
func (w *writer) settle(pending int64) {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	w.room.pending -= w.pending - pending
	w.pending = pending
}

// Commit implements blobs.Writer.
func (w *writer) Commit(ctx context.Context) (blobs.Info, error) {
	if w.failed != nil {
		return blobs.Info{}, w.failed
	}
	defer w.settle(0)
	return w.Writer.Commit(ctx)
}

// Abort implements blobs.Writer.
func (w *writer) Abort() {
	defer w.settle(0)
	w.Writer.Abort()
}
