package libraries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Snapshot is the files of a library as they were at one time, as a file system: contents never
// change, so that it stays as it is for as long as the contents are kept, which is minutes at
// least.
type Snapshot struct {
	ctx    context.Context
	files  *Files
	tenant string
	all    []File // ordered by path
}

var (
	_ fs.ReadDirFS = (*Snapshot)(nil)
	_ fs.StatFS    = (*Snapshot)(nil)
)

// Snapshot returns the files of a library. They are read with ctx.
func (l *Files) Snapshot(ctx context.Context, tenant, library string) (*Snapshot, error) {
	all, err := l.store.All(ctx, tenant, library)
	return &Snapshot{ctx, l, tenant, all}, err
}

// Digest returns a text that is the same for the same files: the same paths with the same bytes, of
// those whose paths are chosen.
func (s *Snapshot) Digest(chosen func(path string) bool) string {
	digest := sha256.New()
	for _, f := range s.all {
		if chosen(f.Path) {
			_, _ = io.WriteString(digest, f.Path+"\x00"+f.ContentID+"\x00")
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// Has reports whether there is a file whose path is chosen.
func (s *Snapshot) Has(chosen func(path string) bool) bool {
	return slices.ContainsFunc(s.all, func(f File) bool { return chosen(f.Path) })
}

// find returns the file with a path, and whether the path is a folder.
func (s *Snapshot) find(op, name string) (f File, folder bool, err error) {
	if !fs.ValidPath(name) {
		return File{}, false, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return File{Path: "."}, true, nil
	}
	i, found := slices.BinarySearchFunc(s.all, name, func(f File, name string) int {
		return strings.Compare(f.Path, name)
	})
	if found {
		return s.all[i], false, nil
	}
	if i, _ = slices.BinarySearchFunc(s.all, name+"/", func(f File, name string) int {
		return strings.Compare(f.Path, name)
	}); i < len(s.all) && strings.HasPrefix(s.all[i].Path, name+"/") {
		return File{Path: name}, true, nil
	}
	return File{}, false, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// Open implements fs.FS. Folders cannot be read: see ReadDir.
func (s *Snapshot) Open(name string) (fs.File, error) {
	f, folder, err := s.find("open", name)
	if err != nil {
		return nil, err
	}
	if folder {
		return &snapshotFile{info: info{f, true}, Reader: bytes.NewReader(nil)}, nil
	}
	content, err := s.content(f)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &snapshotFile{info: info{f, false}, Reader: bytes.NewReader(content)}, nil
}

// maxOpened is how many bytes a file has at most that is opened.
const maxOpened = 32 << 20

func (s *Snapshot) content(f File) ([]byte, error) {
	if content, ok := s.files.contents.Get(s.tenant, f.ContentID); ok {
		return content, nil
	}
	if f.Size > maxOpened {
		return nil, errs.New(errs.Invalid, "%s has more than %d MiB.", f.Path, maxOpened>>20)
	}
	r, err := s.files.blobs.Open(s.ctx, s.tenant, f.ContentID)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// Stat implements fs.StatFS.
func (s *Snapshot) Stat(name string) (fs.FileInfo, error) {
	f, folder, err := s.find("stat", name)
	if err != nil {
		return nil, err
	}
	return info{f, folder}, nil
}

// ReadDir implements fs.ReadDirFS.
func (s *Snapshot) ReadDir(name string) ([]fs.DirEntry, error) {
	if _, folder, err := s.find("readdir", name); err != nil {
		return nil, err
	} else if !folder {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a folder")}
	}
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	i, _ := slices.BinarySearchFunc(s.all, prefix, func(f File, prefix string) int {
		return strings.Compare(f.Path, prefix)
	})
	entries := map[string]fs.DirEntry{}
	for ; i < len(s.all) && strings.HasPrefix(s.all[i].Path, prefix); i++ {
		f := s.all[i]
		first, _, folder := strings.Cut(strings.TrimPrefix(f.Path, prefix), "/")
		if folder {
			f = File{Path: prefix + first}
		}
		entries[first] = fs.FileInfoToDirEntry(info{f, folder})
	}
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	list := make([]fs.DirEntry, len(names))
	for i, name := range names {
		list[i] = entries[name]
	}
	return list, nil
}

// snapshotFile is an open file or folder.
type snapshotFile struct {
	info
	*bytes.Reader
}

func (f *snapshotFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *snapshotFile) Close() error               { return nil }

// Size hides that of the Reader.
func (f *snapshotFile) Size() int64 { return f.info.Size() }

// info describes a file or folder.
type info struct {
	f      File
	folder bool
}

func (i info) Name() string       { return path.Base(i.f.Path) }
func (i info) Size() int64        { return i.f.Size }
func (i info) ModTime() time.Time { return i.f.UpdatedAt }
func (i info) IsDir() bool        { return i.folder }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
