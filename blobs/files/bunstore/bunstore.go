// Package bunstore stores the rows of files in PostgreSQL or SQLite. uploads/bunstore and downloads/bunstore import it.
package bunstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/blobs/files"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// Store implements files.Store.
type Store struct {
	db          *bun.DB
	table, noun string
	// The statements, by what they do.
	insert, get, expired, ofUsers, held, remove string
}

// New returns a Store over a table of the program's own; noun names a row in messages.
func New(db *bun.DB, table, noun string) *Store {
	const columns = "id, username, filename, content_type, size, chunks, created_at, expires_at"
	return &Store{
		db: db, table: table, noun: noun,
		insert:  `INSERT INTO ` + table + ` (tenant_id, ` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		get:     `SELECT ` + columns + ` FROM ` + table + ` WHERE tenant_id = $1 AND id = $2`,
		expired: `SELECT id FROM ` + table + ` WHERE tenant_id = $1 AND expires_at <= $2 ORDER BY expires_at, id LIMIT $3`,
		ofUsers: `SELECT id FROM ` + table + ` WHERE tenant_id = $1 AND username IN `,
		held:    `SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM ` + table + ` WHERE tenant_id = $1 AND username = $2`,
		remove:  `DELETE FROM ` + table + ` WHERE tenant_id = $1 AND id = $2`,
	}
}

// InTx implements files.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Insert implements files.Store.
func (s *Store) Insert(ctx context.Context, tenant string, f files.File) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := c.HoldPrincipal(ctx, tenant, f.Username); err != nil {
			return err
		}
		_, err := c.Exec(ctx, s.insert, tenant, f.ID, f.Username, f.Filename, f.ContentType, f.Size, f.Chunks,
			bunx.At(f.CreatedAt), bunx.At(f.ExpiresAt))
		return bunx.Err(err, s.noun)
	})
}

// Get implements files.Store.
func (s *Store) Get(ctx context.Context, tenant, id string) (files.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var f files.File
	var created, expires bunx.Time
	err := c.One(ctx, s.noun, s.get, []any{tenant, id},
		&f.ID, &f.Username, &f.Filename, &f.ContentType, &f.Size, &f.Chunks, &created, &expires)
	f.CreatedAt, f.ExpiresAt = created.Time, expires.Time
	return f, err
}

// Expired implements files.Store.
func (s *Store) Expired(ctx context.Context, tenant string, at time.Time, limit int) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, s.expired, tenant, bunx.At(at), limit)
	ids, err := bunx.Scan(rows, err, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	return ids, bunx.Err(err, s.noun)
}

// OfUsers implements files.Store.
func (s *Store) OfUsers(ctx context.Context, tenant string, usernames []string, limit int) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, s.ofUsers+bunx.In(3, len(usernames))+` LIMIT $2`, bunx.Args(usernames, tenant, limit)...)
	ids, err := bunx.Scan(rows, err, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	return ids, bunx.Err(err, s.noun)
}

// RenameUsers implements files.Store.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(c.Rename(ctx, tenant, s.table, "username", names), s.noun)
	})
}

// UsedBytes implements files.Store.
func (s *Store) UsedBytes(ctx context.Context, tenant, username string) (n int64, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return n, c.One(ctx, s.noun, s.held, []any{tenant, username}, &n)
}

// Delete implements files.Store.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, s.remove, tenant, id)
		return bunx.Err(err, s.noun)
	})
}
