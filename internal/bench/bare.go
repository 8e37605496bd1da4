package main

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
)

// bareHandlers are the limit: net/http, the same wrapped driver, one fixed statement, no
// authentication, no check, JSON written by hand. They answer what the service answers.
func bareHandlers(bdb *bun.DB) http.Handler {
	db := bdb.DB
	blobs := blobstore.New(bdb)
	lite := bdb.Dialect().Name().String() == "sqlite"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch key, one := strings.CutPrefix(r.URL.Path, "/api/colors/"); {
		case strings.Contains(r.URL.Path, "/view/-/"):
			bareView(w, r)
		case strings.Contains(r.URL.Path, "/contents/"):
			err = bareDownload(r.Context(), db, blobs, r.URL.Path, w)
		case !one:
			err = bareList(r.Context(), db, w)
		case r.Method == http.MethodGet:
			err = bareRead(r.Context(), db, key, w)
		case r.URL.RawQuery == bareKept:
			err = bareUpsertKept(r, db, key, w)
		case lite:
			err = bareUpsertSQLite(r, db, key, w)
		default:
			err = bareUpsert(r.Context(), r.Body, db, key, w)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

func bareWrite(w http.ResponseWriter, c colors.Color) error {
	dst := make([]byte, 0, 512)
	dst = append(dst, `{"_links":{"self":{"href":"http://127.0.0.1:8080/api/colors/`...)
	dst = append(dst, c.Key...)
	dst = hal.AppendString(append(dst, `"}},"tenant":"default","key":`...), c.Key)
	dst = hal.AppendString(append(dst, `,"color":`...), c.Color)
	dst = hal.AppendStringOrNull(append(dst, `,"source":`...), c.Source)
	dst = hal.AppendTime(append(dst, `,"createdAt":`...), c.CreatedAt)
	dst = hal.AppendTime(append(dst, `,"updatedAt":`...), c.UpdatedAt)
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(append(dst, '}'))
	return err
}

func bareRead(ctx context.Context, db *sql.DB, key string, w http.ResponseWriter) error {
	c := colors.Color{Key: key}
	var created, updated bunx.Time
	err := db.QueryRowContext(ctx,
		`SELECT color, source, created_at, updated_at FROM tc_colors WHERE tenant_id = $1 AND key = $2`,
		"default", key).Scan(&c.Color, &c.Source, &created, &updated)
	if err != nil {
		return err
	}
	c.CreatedAt, c.UpdatedAt = created.Time, updated.Time
	return bareWrite(w, c)
}

const bareUpsertSQL = `INSERT INTO tc_colors (tenant_id, key, search, color, source, created_at, updated_at)
	VALUES ($1, $2, $2, $3, NULL, $4, $4)
	ON CONFLICT (tenant_id, key) DO UPDATE SET color = excluded.color, updated_at = excluded.updated_at
	RETURNING source, created_at`

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func bareUpsert(ctx context.Context, body io.Reader, q queryer, key string, w http.ResponseWriter) error {
	c, err := bareUpserted(ctx, body, q, key)
	if err != nil {
		return err
	}
	return bareWrite(w, c)
}

func bareUpserted(ctx context.Context, body io.Reader, q queryer, key string) (colors.Color, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return colors.Color{}, err
	}
	now := bunx.At(time.Now())
	c := colors.Color{Key: key, Color: string(raw[len(`{"color":"`) : len(raw)-len(`"}`)]), UpdatedAt: now.Time}
	var created bunx.Time
	err = q.QueryRowContext(ctx, bareUpsertSQL, "default", key, c.Color, now).Scan(&c.Source, &created)
	c.CreatedAt = created.Time
	return c, err
}

// bareUpsertSQLite has the transaction that a write with RETURNING needs on SQLite.
func bareUpsertSQLite(r *http.Request, db *sql.DB, key string, w http.ResponseWriter) error {
	tx, err := db.BeginTx(r.Context(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	c, err := bareUpserted(r.Context(), r.Body, tx, key)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return bareWrite(w, c)
}

func bareList(ctx context.Context, db *sql.DB, w http.ResponseWriter) error {
	rows, err := db.QueryContext(
		ctx,
		`SELECT key, color, source, created_at, updated_at FROM tc_colors WHERE tenant_id = $1 ORDER BY key`,
		"default",
	)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	w.Header().Set("Content-Type", "application/json")
	dst := append(make([]byte, 0, 70<<10), '[')
	for first := true; rows.Next(); first = false {
		var c colors.Color
		var created, updated bunx.Time
		if err := rows.Scan(&c.Key, &c.Color, &c.Source, &created, &updated); err != nil {
			return err
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = hal.AppendString(append(dst, `{"tenant":"default","key":`...), c.Key)
		dst = hal.AppendString(append(dst, `,"color":`...), c.Color)
		dst = hal.AppendStringOrNull(append(dst, `,"source":`...), c.Source)
		dst = hal.AppendTime(append(dst, `,"createdAt":`...), created.Time)
		dst = hal.AppendTime(append(dst, `,"updatedAt":`...), updated.Time)
		dst = hal.AppendString(append(dst, `,"hex":`...), c.Color)
		dst = hal.AppendString(append(dst, `,"named":`...), colors.Named(c.Color))
		if dst = append(dst, '}'); len(dst) > 64<<10 {
			if _, err := w.Write(dst); err != nil {
				return err
			}
			dst = dst[:0]
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_, err = w.Write(append(dst, ']'))
	return err
}
