package bunstore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// file is a row of tc_library_files.
type file struct {
	tenant, library string
	content.File
}

// fileTable has the columns of a file. Whoever reads knows the tenant and the library.
var fileTable = bunx.NewTable("tc_library_files", "f", []bunx.Column[file]{
	{Name: "tenant_id", Key: true, Value: func(f *file) any { return f.tenant }},
	{Name: "library_id", Key: true, Value: func(f *file) any { return f.library }},
	{Name: "path", Key: true, Field: func(f *file) any { return &f.Path }},
	{Name: "folded", Once: true, Value: func(f *file) any { return fold.Text(f.Path) }},
	{Name: "blob_id", Field: func(f *file) any { return &f.BlobID }},
	{Name: "size", Field: func(f *file) any { return &f.Size }},
	{Name: "content_type", Field: func(f *file) any { return &f.ContentType }},
	{Name: "updated_at", Field: func(f *file) any { return bunx.TimeOf(&f.UpdatedAt) }},
})

var fileList = bunx.List[file]{
	Table: fileTable, Key: "path", Order: "path",
	Sorts: []bunx.Sort[file]{
		{Field: "path", Column: "path", Value: func(r file) string { return r.Path }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r file) string { return bunx.At(r.UpdatedAt).String() }},
	},
}

func scanFile(from interface{ Scan(...any) error }) (content.File, error) {
	r, err := fileTable.Scan(from)
	return r.File, err
}

var (
	selectFile  = fileTable.Select(`WHERE tenant_id = $1 AND library_id = $2 AND path = $3`)
	selectFiles = fileTable.Select(`WHERE tenant_id = $1 AND library_id = $2 ORDER BY path`)
)

// File implements content.Store.
func (s *Store) File(ctx context.Context, tenant, library, path string) (content.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	f, err := scanFile(c.Row(ctx, selectFile, tenant, library, path))
	if err != nil {
		return content.File{}, bunx.Err(err, "File")
	}
	return f, nil
}

// Files implements content.Store.
func (s *Store) Files(ctx context.Context, tenant, library string, q paging.Query) (paging.Page[content.File], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := fileTable.Rows(c).Where("f.tenant_id = ?", tenant).Where("f.library_id = ?", library)
	page, err := bunx.Page(ctx, rows, fileList, func(r file) string { return r.Path }, q)
	return paging.Map(page, func(r file) content.File { return r.File }), err
}

// AllFiles implements content.Store.
func (s *Store) AllFiles(ctx context.Context, tenant, library string) ([]content.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectFiles, tenant, library)
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
		_, err = fileTable.Insert(ctx, c, fileTable.OnConflict, file{tenant, library, f})
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
