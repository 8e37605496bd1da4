// Package bunstore stores the files of libraries in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Store implements libraries.Store.
type Store struct {
	db       *bun.DB
	kind     string
	notifier bunx.Notifier
}

// New returns a Store of the libraries of a kind, such as those of apps. Libraries of two kinds may
// have the same id, and the Store of one kind does not access the files of the other. All kinds
// share the contents. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB, kind entity.Kind) *Store { return &Store{db: db, kind: string(kind)} }

// Notify makes the store call changed after each commit that changes the files of a library.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

// file is a row of tc_library_files.
type file struct {
	tenant, kind, library string
	libraries.File
}

// table has the columns of a file. Readers pass the tenant and the library.
var table = bunx.NewTable("tc_library_files", "f", []bunx.Column[file]{
	{Name: "tenant_id", Key: true, Value: func(f *file) any { return f.tenant }},
	{Name: "kind", Key: true, Value: func(f *file) any { return f.kind }},
	{Name: "library_id", Key: true, Value: func(f *file) any { return f.library }},
	{Name: "path", Key: true, Field: func(f *file) any { return &f.Path }},
	{Name: "folded", Once: true, Value: func(f *file) any { return fold.Text(f.Path) }},
	{Name: "content_id", Field: func(f *file) any { return &f.ContentID }},
	{Name: "sha256", Field: func(f *file) any { return bunx.TextOrNull(&f.SHA256) }},
	{Name: "size", Field: func(f *file) any { return &f.Size }},
	{Name: "content_type", Field: func(f *file) any { return &f.ContentType }},
	{Name: "created_at", Once: true, Field: func(f *file) any { return bunx.TimeOf(&f.CreatedAt) }},
	{Name: "updated_at", Field: func(f *file) any { return bunx.TimeOf(&f.UpdatedAt) }},
})

var list = bunx.List[file]{
	Table: table, Key: "path", Order: "path",
	Sorts: []bunx.Sort[file]{
		{Field: "path", Column: "path", Value: func(r file) string { return r.Path }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r file) string { return bunx.At(r.UpdatedAt).String() }},
	},
}

// total is the number of files of a library, whose tenant, kind and id are the arguments.
var total = bunx.Total("library_files", "= $2 || '/' || $3")

func scan(from interface{ Scan(...any) error }) (libraries.File, error) {
	r, err := table.Scan(from)
	return r.File, err
}

var (
	selectOne = table.Select(`WHERE tenant_id = $1 AND kind = $2 AND library_id = $3 AND path = $4`)
	selectAll = table.Select(`WHERE tenant_id = $1 AND kind = $2 AND library_id = $3 ORDER BY path`)
)

// InTx implements libraries.Store.
func (s *Store) InTx(ctx context.Context, fn func(context.Context) error) error {
	return bunx.InTx(ctx, s.db, fn)
}

// File implements libraries.Store.
func (s *Store) File(ctx context.Context, tenant, library, path string) (libraries.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	f, err := scan(c.Row(ctx, selectOne, tenant, s.kind, library, path))
	if err != nil {
		return libraries.File{}, bunx.Err(err, "File")
	}
	return f, nil
}

// Page implements libraries.Store.
func (s *Store) Page(ctx context.Context, tenant, library string, q paging.Query) (paging.Page[libraries.File], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	of := bunx.Part{
		Where: "f.tenant_id = $1 AND f.kind = $2 AND f.library_id = $3",
		Args:  []any{tenant, s.kind, library},
		Total: total,
	}
	page, err := bunx.Page(ctx, c, list, of, func(r file) string { return r.Path }, q)
	return paging.Map(page, func(r file) libraries.File { return r.File }), err
}

// All implements libraries.Store.
func (s *Store) All(ctx context.Context, tenant, library string) ([]libraries.File, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectAll, tenant, s.kind, library)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (libraries.File, error) { return scan(rows) })
	return all, bunx.Err(err, "File")
}

// Put implements libraries.Store.
func (s *Store) Put(ctx context.Context, tenant, library string, f libraries.File) (libraries.File, error) {
	err := s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		replaced, err := clash(ctx, c, tenant, s.kind, library, f.Path)
		if err != nil {
			return err
		}
		if err := check(ctx, replaced); err != nil {
			return err
		}
		if replaced != nil && replaced.ContentID != f.ContentID {
			if err := release(ctx, c, tenant, library, replaced.ContentID, f.UpdatedAt); err != nil {
				return err
			}
		}
		if replaced != nil {
			f.CreatedAt = replaced.CreatedAt
		} else if err := s.room(ctx, c, tenant, library); err != nil {
			return err
		}
		_, err = table.Insert(ctx, c, table.OnConflict, file{tenant, s.kind, library, f})
		return bunx.Err(err, "File")
	})
	if err != nil {
		return libraries.File{}, err
	}
	return f, nil
}

// room returns errs.Invalid if a library already has the most files that it may have.
func (s *Store) room(ctx context.Context, c bunx.Conn, tenant, library string) error {
	var n int
	err := c.One(ctx, "File", `SELECT `+total, []any{tenant, s.kind, library}, &n)
	if err == nil && n >= libraries.MaxFiles {
		err = errs.New(errs.Invalid, "A library has at most %d files: remove some first.", libraries.MaxFiles)
	}
	return err
}

// check checks the condition of a write to a file; f is nil if the file does not exist.
func check(ctx context.Context, f *libraries.File) error {
	if f == nil {
		return guard.Of(ctx, "library-file").Missing()
	}
	return guard.Check(ctx, "library-file", *f)
}

// clash returns the file that a new one replaces, or nil. It refuses paths that cannot exist
// together in a file system.
func clash(ctx context.Context, c bunx.Conn, tenant, kind, library, path string) (replaced *libraries.File, err error) {
	folded := fold.Text(path)
	near := []string{folded} // the path and the folders in it
	for i, r := range folded {
		if r == '/' {
			near = append(near, folded[:i])
		}
	}
	n := len(near)
	rows, err := c.Rows(ctx,
		`SELECT path, folded, content_id, content_type, created_at FROM tc_library_files WHERE tenant_id = $1
			AND kind = $2 AND library_id = $3
		AND folded IN `+bunx.In(6, n)+
			` UNION ALL SELECT * FROM (SELECT path, folded, content_id, content_type, created_at FROM tc_library_files
		WHERE tenant_id = $1 AND kind = $2 AND library_id = $3 AND folded > $4 AND folded < $5 LIMIT 1) below`,
		bunx.Args(near, tenant, kind, library, folded+"/", folded+"0")...) // 0 comes after /
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var other libraries.File
		var otherFolded string
		if err := rows.Scan(
			&other.Path, &otherFolded, &other.ContentID, &other.ContentType, bunx.TimeOf(&other.CreatedAt),
		); err != nil {
			return none, err
		}
		switch {
		case other.Path == path:
			replaced = &other
		case otherFolded == folded:
			return none, errs.New(
				errs.Conflict, "The library has a file %s, which differs from %s in case alone.", other.Path,
				path,
			)
		case strings.HasPrefix(otherFolded, folded+"/"):
			return none, errs.New(errs.Conflict, "The library has a file %s, so %s is a folder.", other.Path, path)
		default:
			return none, errs.New(
				errs.Conflict, "The library has a file %s, so %s cannot be in a folder of this name.",
				other.Path, path,
			)
		}
		return none, nil
	})
	return replaced, bunx.Err(err, "File")
}

// Delete implements libraries.Store. A condition is checked after the row has been removed. If it
// is not met, the removal is undone.
func (s *Store) Delete(ctx context.Context, tenant, library, path string, at time.Time) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		var f libraries.File
		err := c.One(ctx, "File",
			`DELETE FROM tc_library_files WHERE tenant_id = $1 AND kind = $2 AND library_id = $3 AND path = $4
			RETURNING content_id, content_type`, []any{tenant, s.kind, library, path}, &f.ContentID, &f.ContentType)
		if err != nil {
			return err
		}
		if err := check(ctx, &f); err != nil {
			return err
		}
		return release(ctx, c, tenant, library, f.ContentID, at)
	})
}

// Remove implements libraries.Store.
func (s *Store) Remove(ctx context.Context, tenant string, all []string, at time.Time) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_library_released (tenant_id, content_id, library_id, released_at)
			WITH gone AS MATERIALIZED (SELECT tenant_id, content_id, library_id FROM tc_library_files WHERE tenant_id = $1 AND kind = $4 AND library_id `+c.OneOf(2)+`)
			SELECT DISTINCT tenant_id, content_id, library_id, `+instant(c)+` FROM gone WHERE true`+
			overwriteRelease, tenant, bunx.Keys(all), bunx.At(at), s.kind)
		if err == nil {
			_, err = c.Exec(
				ctx,
				`DELETE FROM tc_library_files WHERE tenant_id = $1 AND kind = $3 AND library_id `+c.OneOf(2),
				tenant, bunx.Keys(all), s.kind,
			)
		}
		return bunx.Err(err, "File")
	})
}

// instant returns the third argument with the type of a time. PostgreSQL does not infer it from the
// column in a SELECT.
func instant(c bunx.Conn) string {
	if c.Postgres() {
		return "$3::timestamptz"
	}
	return "$3"
}
