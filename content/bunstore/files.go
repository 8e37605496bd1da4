package bunstore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// file is the table's shape except for the folded path.
type file struct {
	bun.BaseModel `bun:"table:tc_library_files,alias:f"`

	Path        string
	BlobID      string `bun:"blob_id"`
	Size        int64
	ContentType string
	UpdatedAt   bunx.Time
}

func (r file) file() content.File {
	return content.File{Path: r.Path, BlobID: r.BlobID, Size: r.Size, ContentType: r.ContentType, UpdatedAt: r.UpdatedAt.Time}
}

var fileList = bunx.List[file]{
	Key: "path", Order: "path",
	Sorts: []bunx.Sort[file]{
		{Field: "path", Column: "path", Value: func(r file) string { return r.Path }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r file) string { return r.UpdatedAt.String() }},
	},
}

const fileColumns = `path, blob_id, size, content_type, updated_at`

func scanFile(from interface{ Scan(...any) error }) (content.File, error) {
	var r file
	err := from.Scan(&r.Path, &r.BlobID, &r.Size, &r.ContentType, &r.UpdatedAt)
	return r.file(), err
}

// File implements content.Store.
func (s *Store) File(ctx context.Context, tenant, library, path string) (content.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	f, err := scanFile(c.Row(ctx, `SELECT `+fileColumns+` FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND path = $3`,
		tenant, library, path))
	if err != nil {
		return content.File{}, bunx.Err(err, "File")
	}
	return f, nil
}

// Files implements content.Store.
func (s *Store) Files(ctx context.Context, tenant, library string, q paging.Query) (paging.Page[content.File], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*file)(nil)).Where("f.tenant_id = ?", tenant).Where("f.library_id = ?", library)
	page, err := bunx.Page(ctx, rows, fileList, func(r file) string { return r.Path }, q)
	return paging.Map(page, file.file), err
}

// AllFiles implements content.Store.
func (s *Store) AllFiles(ctx context.Context, tenant, library string) ([]content.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT `+fileColumns+` FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 ORDER BY path`,
		tenant, library)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (content.File, error) { return scanFile(rows) })
	return all, bunx.Err(err, "File")
}

// PutFile implements content.Store. The library's row is locked, so files come one after the other.
func (s *Store) PutFile(ctx context.Context, tenant, library string, f content.File, may func(content.Entity) error) (replaced string, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		e, err := get(ctx, c, tenant, content.Library, content.Lookup{ID: library}, c.ForUpdate())
		if err != nil {
			return err
		}
		if err := may(e); err != nil {
			return err
		}
		if replaced, err = clash(ctx, c, tenant, library, f.Path); err != nil {
			return err
		}
		if err := check(ctx, replaced); err != nil {
			return err
		}
		_, err = c.Exec(ctx, `INSERT INTO tc_library_files (tenant_id, library_id, path, folded, blob_id, size, content_type, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (tenant_id, library_id, path) DO UPDATE SET blob_id = excluded.blob_id, size = excluded.size,
			content_type = excluded.content_type, updated_at = excluded.updated_at`,
			tenant, library, f.Path, fold.Text(f.Path), f.BlobID, f.Size, f.ContentType, bunx.At(f.UpdatedAt))
		return bunx.Err(err, "File")
	})
	return replaced, err
}

// check checks the condition of a write against the file with a blob, "" for none.
func check(ctx context.Context, blob string) error {
	if blob == "" {
		return guard.Of(ctx, "library-file").Missing()
	}
	return guard.Check(ctx, "library-file", content.File{BlobID: blob})
}

// clash returns the blob of the file that a new one replaces, and refuses paths that no folder on a disk could hold side by
// side.
func clash(ctx context.Context, c bunx.Conn, tenant, library, path string) (replaced string, err error) {
	folded := fold.Text(path)
	near := []string{folded} // the path and the folders it goes through
	for i, r := range folded {
		if r == '/' {
			near = append(near, folded[:i])
		}
	}
	n := len(near)
	rows, err := c.Rows(ctx, `SELECT path, folded, blob_id FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND folded IN `+
		bunx.In(5, n)+` UNION ALL SELECT path, folded, blob_id FROM (SELECT path, folded, blob_id FROM tc_library_files
		WHERE tenant_id = $1 AND library_id = $2 AND folded > $3 AND folded < $4 LIMIT 1) below`,
		bunx.Args(near, tenant, library, folded+"/", folded+"0")...) // 0 comes after /
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var other, otherFolded, blob string
		if err := rows.Scan(&other, &otherFolded, &blob); err != nil {
			return none, err
		}
		switch {
		case other == path:
			replaced = blob
		case otherFolded == folded:
			return none, errs.New(errs.Conflict, "The library has a file %s, which differs from %s in case alone.", other, path)
		case strings.HasPrefix(otherFolded, folded+"/"):
			return none, errs.New(errs.Conflict, "The library has a file %s, so %s is a folder.", other, path)
		default:
			return none, errs.New(errs.Conflict, "The library has a file %s, so %s cannot be in a folder of this name.", other, path)
		}
		return none, nil
	})
	return replaced, bunx.Err(err, "File")
}

// DeleteFile implements content.Store. A condition is checked after the row has been removed, which is undone if it does not
// hold.
func (s *Store) DeleteFile(ctx context.Context, tenant, library, path string) (blob string, err error) {
	write := bunx.WriteOne
	if guard.Of(ctx, "library-file") != nil {
		write = bunx.Write
	}
	err = write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		err := c.One(ctx, "File", `DELETE FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND path = $3 RETURNING blob_id`,
			[]any{tenant, library, path}, &blob)
		if err != nil {
			return err
		}
		return check(ctx, blob)
	})
	return blob, err
}
