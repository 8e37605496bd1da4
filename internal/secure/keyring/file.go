package keyring

import (
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

const maxFile = 64 << 10

// LoadOrCreate reads the ring in a file. A missing file is created with one new key, readable only
// by its owner. It is created atomically: processes that start at the same time use the same key.
// It returns errs.Invalid if others can read the file or it does not contain a ring.
func LoadOrCreate(path string) (*Ring, error) {
	r, err := load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
		return nil, errs.Wrap(errs.Invalid, err, "The key file %s cannot be made.", path)
	}
	return load(path)
}

// Rotate puts a new key before the others. It returns errs.Conflict while another Rotate or Retire
// runs.
func Rotate(path string) (*Ring, error) {
	return replace(path, func(r *Ring) (*Ring, error) {
		return Parse(Generate() + "\n" + r.text())
	})
}

// Retire removes all keys but the first. Values that are still sealed with the other keys are lost.
// It returns errs.Conflict as Rotate does.
func Retire(path string) error {
	_, err := replace(path, func(r *Ring) (*Ring, error) { return &Ring{keys: r.keys[:1]}, nil })
	return err
}

func load(path string) (*Ring, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The key file %s cannot be read.", path)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, errs.Wrap(errs.Invalid, err, "The key file %s cannot be read.", path)
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, errs.New(errs.Invalid, "The key file %s is not a file with keys.", path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return nil, errs.New(errs.Invalid, "The key file %s can be read by others than its owner: chmod 600 it.", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The key file %s cannot be read.", path)
	}
	r, err := Parse(string(text))
	if err != nil {
		return nil, errs.New(errs.Invalid, "The key file %s: %s", path, errs.MessageOf(err))
	}
	return r, nil
}

// create creates the file with one new key. It returns fs.ErrExist if the file exists. It makes a
// link, which, unlike a rename, does not replace a file.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := write(f, Generate()+"\n"); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(path)
}

// replace replaces the ring in the file. The name of the new file is also the lock, because it
// cannot be created twice.
func replace(path string, edit func(*Ring) (*Ring, error)) (*Ring, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The key file cannot be found.")
	}
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errs.Wrap(
			errs.Conflict, err,
			"Another change of the key file is running. If none is, one was cut short: remove %s.", next,
		)
	}
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The key file %s cannot be written.", path)
	}
	r, err := rewrite(f, path, edit)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(next))
	}
	return r, syncFolder(path)
}

func rewrite(f *os.File, path string, edit func(*Ring) (*Ring, error)) (*Ring, error) {
	old, err := load(path)
	if err != nil {
		return nil, err
	}
	r, err := edit(old)
	if err != nil {
		return nil, err
	}
	if err := keepOwner(f, path); err != nil {
		return nil, err
	}
	return r, write(f, r.text())
}

// write writes text to the file and syncs it, so that it survives a crash of the machine.
func write(f *os.File, text string) error {
	_, err := f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// text returns the keys in the form of the file, one on each line.
func (r *Ring) text() string {
	var b strings.Builder
	for _, k := range r.keys {
		b.WriteString(base64.StdEncoding.EncodeToString(k.secret[:]))
		b.WriteByte('\n')
	}
	return b.String()
}
