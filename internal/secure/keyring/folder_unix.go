//go:build unix

package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// syncFolder syncs the file's directory, so that a new name in it survives a crash of the machine.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// keepOwner gives f the owner of the file at path, so that the server can read its keys after a
// command of root.
func keepOwner(f *os.File, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	s := info.Sys().(*syscall.Stat_t)
	if int(s.Uid) == os.Geteuid() {
		return nil
	}
	return f.Chown(int(s.Uid), int(s.Gid))
}
