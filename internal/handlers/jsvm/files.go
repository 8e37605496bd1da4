package jsvm

import (
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Files is a file system of a Source in memory: contents by slash-separated path.
type Files map[string]string

// Open opens a file. It returns an error that is fs.ErrNotExist if there is none; folders cannot be
// opened.
func (f Files) Open(name string) (fs.File, error) {
	content, ok := f[name]
	if !ok || !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{Reader: strings.NewReader(content), name: path.Base(name)}, nil
}

// file is an open file of Files, and its own description.
type file struct {
	*strings.Reader
	name string
}

var (
	_ io.Reader   = (*file)(nil)
	_ fs.FileInfo = (*file)(nil)
)

func (f *file) Close() error               { return nil }
func (f *file) Stat() (fs.FileInfo, error) { return f, nil }
func (f *file) Name() string               { return f.name }
func (f *file) Mode() fs.FileMode          { return 0o444 }
func (f *file) ModTime() time.Time         { return time.Time{} }
func (f *file) IsDir() bool                { return false }
func (f *file) Sys() any                   { return nil }
