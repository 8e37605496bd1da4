// Package bunstore stores blobs in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"io"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// chunksPerDelete is the number of chunks that Delete removes in one transaction. SQLite reads all
// their pages, and other writers wait for it.
const chunksPerDelete = 16

// Store implements blobs.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Create implements blobs.Store. The first write to the database is that of the first full chunk.
func (s *Store) Create(ctx context.Context, tenant, id string, limit int64, at time.Time) (blobs.Writer, error) {
	return &writer{s: s, ctx: ctx, tenant: tenant, id: id, limit: limit, at: at}, nil
}

// Open implements blobs.Store.
func (s *Store) Open(ctx context.Context, tenant, id string) (blobs.Reader, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	info := blobs.Info{ID: id}
	err := c.One(ctx, "Blob", `SELECT size, chunks FROM tc_blobs WHERE tenant_id = $1 AND id = $2 AND complete`,
		[]any{tenant, id}, &info.Size, &info.Chunks)
	if err != nil {
		return nil, err
	}
	chunks := &chunks{s: s, ctx: ctx, tenant: tenant, info: info, number: -1}
	return &reader{SectionReader: io.NewSectionReader(chunks, 0, info.Size), chunks: chunks}, nil
}

// Delete implements blobs.Store. It hides a blob of many chunks with the first transaction, and
// removes it in several. If Delete is interrupted, Sweep removes the rest.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	for {
		done := false
		err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
			done, err = deleteChunks(ctx, c, tenant, id)
			return err
		})
		if done || err != nil {
			return err
		}
	}
}

// deleteIncomplete removes a blob as Delete does, unless it is complete, and reports whether it
// did.
func (s *Store) deleteIncomplete(ctx context.Context, tenant, id string) (deleted bool, err error) {
	for {
		done := false
		err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
			err := c.One(
				ctx, "Blob",
				`SELECT id FROM tc_blobs WHERE tenant_id = $1 AND id = $2 AND NOT complete`+c.ForUpdate(),
				[]any{tenant, id}, new(string),
			)
			if errs.CodeOf(err) == errs.NotFound {
				done = true
				return nil
			}
			if err == nil {
				deleted = true
				done, err = deleteChunks(ctx, c, tenant, id)
			}
			return err
		})
		if done || err != nil {
			return deleted && err == nil, err
		}
	}
}

// deleteChunks deletes the last chunks of a blob. It reports whether no chunks remain; the blob is
// then deleted, too.
func deleteChunks(ctx context.Context, c bunx.Conn, tenant, id string) (done bool, err error) {
	n, err := c.Exec(ctx, `DELETE FROM tc_blob_chunks WHERE tenant_id = $1 AND blob_id = $2 AND number IN (
			SELECT number FROM tc_blob_chunks WHERE tenant_id = $1 AND blob_id = $2 ORDER BY number DESC LIMIT $3)`,
		tenant, id, chunksPerDelete)
	if err != nil {
		return false, bunx.Err(err, "Blob")
	}
	rest := `UPDATE tc_blobs SET complete = false WHERE tenant_id = $1 AND id = $2`
	if done = n < chunksPerDelete; done {
		rest = `DELETE FROM tc_blobs WHERE tenant_id = $1 AND id = $2`
	}
	_, err = c.Exec(ctx, rest, tenant, id)
	return done, bunx.Err(err, "Blob")
}

// Sweep implements blobs.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time) (int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT id FROM tc_blobs WHERE tenant_id = $1 AND NOT complete AND created_at < $2`,
		tenant, bunx.At(before))
	ids, err := bunx.Scan(rows, err, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	if err != nil {
		return 0, bunx.Err(err, "Blob")
	}
	n := 0
	for _, id := range ids {
		deleted, err := s.deleteIncomplete(ctx, tenant, id)
		if err != nil {
			return n, err
		}
		if deleted {
			n++
		}
	}
	return n, nil
}
