// Package bunstore stores the rows of files in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// row is a row of a table of files.
type row struct {
	tenant, account string // account is the account of the user: see bunx.Account
	files.File
}

// columns are the columns of each table of files. Readers pass the tenant.
var columns = []bunx.Column[row]{
	{Name: "tenant_id", Key: true, Value: func(r *row) any { return r.tenant }},
	{Name: "id", Key: true, Field: func(r *row) any { return &r.ID }},
	{Name: "username", Value: func(r *row) any { return r.account }},
	{Name: "user", Read: bunx.UserOf("f.username"), Field: func(r *row) any { return &r.Username }},
	{Name: "filename", Field: func(r *row) any { return &r.Filename }},
	{Name: "content_type", Field: func(r *row) any { return &r.ContentType }},
	{Name: "size", Field: func(r *row) any { return &r.Size }},
	{Name: "chunks", Field: func(r *row) any { return &r.Chunks }},
	{Name: "created_at", Field: func(r *row) any { return bunx.TimeOf(&r.CreatedAt) }},
	{Name: "expires_at", Field: func(r *row) any { return bunx.TimeOf(&r.ExpiresAt) }},
}

// Store implements files.Store.
type Store struct {
	db          *bun.DB
	table, noun string
	rows        *bunx.Table[row]
	// The statements.
	get, expired, held, remove string
}

// Uploads returns the Store of uploads. The tables must exist: see tenantcontent.Migrate.
func Uploads(db *bun.DB) *Store { return newStore(db, "tc_uploads", "upload_bytes", "Upload") }

// Downloads returns the Store of downloads. The tables must exist: see tenantcontent.Migrate.
func Downloads(db *bun.DB) *Store { return newStore(db, "tc_downloads", "download_bytes", "Download") }

// newStore returns a Store over a table. bytes is the list with the sums of their sizes. noun is
// the name of a row in errors.
func newStore(db *bun.DB, table, bytes, noun string) *Store {
	rows := bunx.NewTable(table, "f", columns)
	return &Store{
		db: db, table: table, noun: noun, rows: rows,
		get: rows.Select(`AS f WHERE f.tenant_id = $1 AND f.id = $2`),
		expired: `SELECT id FROM ` + table +
			` WHERE tenant_id = $1 AND expires_at <= $2 ORDER BY expires_at, id LIMIT $3`,
		held:   `SELECT ` + bunx.Total(bytes, `= `+bunx.Account("$2")),
		remove: `DELETE FROM ` + table + ` WHERE tenant_id = $1 AND id = $2`,
	}
}

// InTx implements files.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// Insert implements files.Store.
func (s *Store) Insert(ctx context.Context, tenant string, f files.File) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		account, err := c.HoldAccount(ctx, tenant, f.Username)
		if err != nil {
			return err
		}
		_, err = s.rows.Insert(ctx, c, "", row{tenant, account, f})
		return bunx.Err(err, s.noun)
	})
}

// Get implements files.Store.
func (s *Store) Get(ctx context.Context, tenant, id string) (files.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var r row
	err := c.One(ctx, s.noun, s.get, []any{tenant, id}, s.rows.Dest(&r)...)
	return r.File, err
}

// Expired implements files.Store.
func (s *Store) Expired(ctx context.Context, tenant string, at time.Time, limit int) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, s.expired, tenant, bunx.At(at), limit)
	ids, err := bunx.Scan(rows, err, func(r *sql.Rows) (id string, err error) { return id, r.Scan(&id) })
	return ids, bunx.Err(err, s.noun)
}

// Delete implements files.Store.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, s.remove, tenant, id)
		return bunx.Err(err, s.noun)
	})
}
