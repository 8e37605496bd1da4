// Package spool keeps bytes in temporary files, for what would otherwise wait in memory.
//
// bundles and httpapi import it.
package spool

import "os"

// File is a temporary file. Where the system allows it the file has no name from the beginning, so
// that it is gone with the process, however that ends.
type File struct {
	*os.File
	named bool
}

// New returns an empty temporary file in the folder of os.TempDir. The caller closes it.
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
