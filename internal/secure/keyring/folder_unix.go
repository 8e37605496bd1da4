//go:build unix

package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// syncFolder makes a new name in the file's folder stay also when the machine stops.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// keepOwner makes the owner of f that of the file at path, so that a command of root leaves the
// server able to read its keys.
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
