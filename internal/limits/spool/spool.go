// Package spool stores bytes in temporary files that would otherwise be held in memory.
//
// bundles and httpapi import it.
package spool

import "os"

// File is a temporary file. If the system allows it, the file has no name, so that it is removed
// when the process ends, even if it is killed.
type File struct {
	*os.File
	named bool
}

// New returns an empty temporary file in the directory of os.TempDir. The caller must close it.
func New() (*File, error) {
	f, err := os.CreateTemp("", "tenantcontent-*")
	if err != nil {
		return nil, err
	}
	return &File{f, os.Remove(f.Name()) != nil}, nil
}

// Close removes the file.
func (f *File) Close() error {
	err := f.File.Close()
	if f.named {
		err = os.Remove(f.Name())
	}
	return err
}
