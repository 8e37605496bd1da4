package content

import (
	"context"
	"io"
	"mime"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/blobs"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// File is one file of a library.
type File struct {
	Path        string // see ValidPath
	BlobID      string
	Size        int64     // bytes
	ContentType string    // a media type
	UpdatedAt   time.Time // UTC, whole microseconds
}

// Version changes with the bytes of the file and its content type.
func (f File) Version() string { return guard.Version(f.BlobID) }

// maxPath is how many bytes a path may have.
const maxPath = 1024

// Files returns a page of a library's files to any session, sorted by path (the default) or updatedAt. The library is found
// by id or natural id. Errors: errs.NotFound; errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Files(ctx context.Context, library string, q paging.Query) (paging.Page[File], error) {
	e, err := s.Get(ctx, Library, library)
	if err != nil {
		return paging.Page[File]{}, err
	}
	return s.store.Files(ctx, e.Tenant, e.ID, q)
}

// OpenFile returns a file of a library with its bytes, which the caller closes, to any session. Errors: errs.NotFound.
func (s *Service) OpenFile(ctx context.Context, library, path string) (File, io.ReadSeekCloser, error) {
	e, err := s.Get(ctx, Library, library)
	if err != nil {
		return File{}, nil, err
	}
	return s.openFile(ctx, e.Tenant, e.ID, path)
}

func (s *Service) openFile(ctx context.Context, tenant, library, path string) (File, blobs.Reader, error) {
	if ValidPath(path) != nil { // cannot exist, and the database may refuse the text
		return File{}, nil, errs.New(errs.NotFound, "File not found.")
	}
	f, err := s.store.File(ctx, tenant, library, path)
	if err != nil {
		return File{}, nil, err
	}
	r, err := s.blobs.Open(ctx, tenant, f.BlobID)
	if err != nil {
		return File{}, nil, err
	}
	return f, r, nil
}

// PutFile writes a file of a library, over the one that has the path already. It is for those who may change the library.
// Without a content type it gets that of the path's ending.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a bad path or content type; errs.Conflict for a path that
// differs from another one in case alone, or that is a folder; errs.TooLarge; r's own, as it is.
func (s *Service) PutFile(ctx context.Context, library, path, contentType string, r io.Reader) (File, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, err
	}
	e, err := s.find(ctx, a.Tenant, Library, library)
	if err != nil {
		return File{}, err
	}
	allowed := func(e Entity) error { return may(a, e) }
	if err := allowed(e); err != nil { // before the bytes are read; asked again with the row locked
		return File{}, err
	}
	return s.putFile(ctx, a.Tenant, e.ID, path, contentType, r, allowed)
}

func (s *Service) putFile(ctx context.Context, tenant, library, path, contentType string, r io.Reader, allowed func(Entity) error) (File, error) {
	if err := ValidPath(path); err != nil {
		return File{}, err
	}
	f := File{Path: path, BlobID: s.newID(), UpdatedAt: s.stamp()}
	var err error
	if f.ContentType, err = mediaType(path, contentType); err != nil {
		return File{}, err
	}
	w, err := s.blobs.Create(ctx, tenant, f.BlobID, s.limit, f.UpdatedAt)
	if err != nil {
		return File{}, err
	}
	kept := false
	defer func() { // also when r panics
		if !kept {
			w.Abort()
		}
	}()
	if _, err := io.Copy(w, r); err != nil {
		return File{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error { // so no complete blob is without its name
		info, err := w.Commit(ctx)
		if err != nil {
			return err
		}
		f.Size = info.Size
		replaced, err := s.store.PutFile(ctx, tenant, library, f, allowed)
		if err != nil || replaced == "" {
			return err
		}
		return s.blobs.Delete(ctx, tenant, replaced)
	})
	if err != nil {
		return File{}, err
	}
	kept = true
	return f, nil
}

// DeleteFile removes a file of a library. It is for those who may change the library. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) DeleteFile(ctx context.Context, library, path string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	e, err := s.find(ctx, a.Tenant, Library, library)
	if err != nil {
		return err
	}
	if err := may(a, e); err != nil {
		return err
	}
	if ValidPath(path) != nil {
		return errs.New(errs.NotFound, "File not found.")
	}
	return s.deleteFile(ctx, a.Tenant, e.ID, path)
}

func (s *Service) deleteFile(ctx context.Context, tenant, library, path string) error {
	return s.store.InTx(ctx, func(ctx context.Context) error {
		blob, err := s.store.DeleteFile(ctx, tenant, library, path)
		if err != nil {
			return err
		}
		return s.blobs.Delete(ctx, tenant, blob)
	})
}

// ValidPath refuses what cannot be the path of a file: it is relative, with slashes and clean, in composed Unicode form
// (NFC), of at most 1,024 bytes, and has neither "..", backslashes nor control characters. Errors: errs.Invalid.
func ValidPath(p string) error {
	switch {
	case p == "" || len(p) > maxPath:
		return errs.New(errs.Invalid, "path must have 1 to %d bytes", maxPath)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == '\\' }):
		return errs.New(errs.Invalid, "path must be UTF-8 without control characters and backslashes")
	case path.IsAbs(p) || path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return errs.New(errs.Invalid, "path must be relative, without empty parts, . and ..")
	case !norm.NFC.IsNormalString(p):
		return errs.New(errs.Invalid, "path must be in composed Unicode form (NFC)")
	}
	return nil
}

// types are the media types by ending of the files that libraries have. The system's own table, which the mime package
// reads, differs from machine to machine.
var types = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".gif": "image/gif", ".htm": "text/html", ".html": "text/html", ".jpeg": "image/jpeg",
	".jpg": "image/jpeg", ".js": "text/javascript", ".json": "application/json", ".md": "text/markdown", ".mjs": "text/javascript",
	".pdf": "application/pdf", ".png": "image/png", ".sql": "application/sql", ".svg": "image/svg+xml", ".ts": "text/typescript",
	".tsx": "text/typescript", ".txt": "text/plain", ".webp": "image/webp", ".woff2": "font/woff2", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip",
}

// mediaType returns a content type as it is kept, and for none that of the path's ending.
func mediaType(p, given string) (string, error) {
	if given == "" {
		if t := types[strings.ToLower(path.Ext(p))]; t != "" {
			return t, nil
		}
		return "application/octet-stream", nil
	}
	t, params, err := mime.ParseMediaType(given)
	formatted := mime.FormatMediaType(t, params)
	if err != nil || formatted == "" || !strings.Contains(t, "/") || len(formatted) > 255 {
		return "", errs.New(errs.Invalid, "contentType must be a media type such as text/plain")
	}
	return formatted, nil
}
