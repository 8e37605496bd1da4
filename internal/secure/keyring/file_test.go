//go:build unix

package keyring_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
)

// TestMain also runs the other process of TestProcessesAgree.
func TestMain(m *testing.M) {
	path := os.Getenv("KEYRING_TEST_LOAD")
	if path == "" {
		os.Exit(m.Run())
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // it starts when the pipe is closed
	r, err := keyring.LoadOrCreate(path)
	fmt.Println(r, err)
}

func TestProcessesAgree(t *testing.T) {
	is := is.New(t)
	for range 10 {
		path := filepath.Join(t.TempDir(), "keys")
		start, w, err := os.Pipe()
		is.NoErr(err)
		var out [2]bytes.Buffer
		var children [2]*exec.Cmd
		for i := range children {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "KEYRING_TEST_LOAD="+path, "GORACE=atexit_sleep_ms=0")
			c.Stdin, c.Stdout, c.Stderr = start, &out[i], os.Stderr
			is.NoErr(c.Start())
			children[i] = c
		}
		is.NoErr(start.Close())
		is.NoErr(w.Close())
		for _, c := range children {
			is.NoErr(c.Wait())
		}
		is.Equal(out[0].String(), out[1].String())
		is.True(strings.HasSuffix(out[0].String(), ") <nil>\n"))
		is.Equal(names(t, filepath.Dir(path)), []string{"keys"}) // no other file remains
	}
}

func TestGoroutinesAgree(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "data", "keys")
	var wg sync.WaitGroup
	got := make([]string, 16)
	for i := range got {
		wg.Go(func() {
			r, err := keyring.LoadOrCreate(path)
			got[i] = fmt.Sprint(r, err)
		})
	}
	wg.Wait()
	for _, s := range got {
		is.Equal(s, got[0])
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestModes(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "data", "keys")
	_, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	is.Equal(mode(t, path), os.FileMode(0o600))
	is.Equal(mode(t, filepath.Dir(path)), os.FileMode(0o700))
	_, err = keyring.Rotate(path)
	is.NoErr(err)
	is.Equal(mode(t, path), os.FileMode(0o600))

	for _, m := range []os.FileMode{0o640, 0o604, 0o620, 0o610, 0o601, 0o666} {
		is.NoErr(os.Chmod(path, m))
		_, err = keyring.LoadOrCreate(path)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		_, err = keyring.Rotate(path)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	is.NoErr(os.Chmod(path, 0o400))
	_, err = keyring.LoadOrCreate(path)
	is.NoErr(err)
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty": "",
		"text":  "hunter2hunter2",
		"big":   strings.Repeat(" ", 1<<20),
	} {
		is, path := is.New(t), filepath.Join(dir, name)
		is.NoErr(os.WriteFile(path, []byte(text), 0o600))
		_, err := keyring.LoadOrCreate(path)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(!strings.Contains(err.Error(), "hunter2"))
		after, err := os.ReadFile(path)
		is.NoErr(err)
		is.Equal(string(after), text) // never overwritten
	}
	is := is.New(t)
	_, err := keyring.LoadOrCreate(dir)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = keyring.Rotate(filepath.Join(dir, "missing"))
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func TestRotateAndRetire(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "keys")
	first, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	sealed, err := first.Seal("acme", "t", "c", "1", []byte("plain"))
	is.NoErr(err)

	both, err := keyring.Rotate(path)
	is.NoErr(err)
	is.True(!both.Current(sealed))
	plain, err := both.Open("acme", "t", "c", "1", sealed)
	is.NoErr(err)
	again, err := both.Seal("acme", "t", "c", "1", plain)
	is.NoErr(err)
	is.True(both.Current(again))

	is.NoErr(keyring.Retire(path))
	last, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	_, err = last.Open("acme", "t", "c", "1", again)
	is.NoErr(err)
	_, err = last.Open("acme", "t", "c", "1", sealed)
	is.True(err != nil)
	is.Equal(names(t, filepath.Dir(path)), []string{"keys"})
}

// TestRotateThroughLink: the link and its target are kept.
func TestRotateThroughLink(t *testing.T) {
	is, dir := is.New(t), t.TempDir()
	path, link := filepath.Join(dir, "keys"), filepath.Join(dir, "link")
	_, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	is.NoErr(os.Symlink(path, link))
	want, err := keyring.Rotate(link)
	is.NoErr(err)
	got, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	is.Equal(got.String(), want.String())
}

// TestRotateKeepsOwner: the owner of the file does not change when root rotates the keys of a
// server that runs as another user.
func TestRotateKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can change owners
	}
	is, path := is.New(t), filepath.Join(t.TempDir(), "keys")
	_, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	is.NoErr(os.Chown(path, 65534, 65534))
	_, err = keyring.Rotate(path)
	is.NoErr(err)
	info, err := os.Stat(path)
	is.NoErr(err)
	is.True(strings.Contains(fmt.Sprintf("%+v", info.Sys()), "Uid:65534 Gid:65534"))
}

// TestRotationsAtOnce: concurrent rotations lose no key; each successful one is in the file.
func TestRotationsAtOnce(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "keys")
	_, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	var wg sync.WaitGroup
	rings := make([]*keyring.Ring, 8)
	for i := range rings {
		wg.Go(func() {
			for {
				r, err := keyring.Rotate(path)
				if rings[i] = r; errs.CodeOf(err) != errs.Conflict {
					return
				}
			}
		})
	}
	wg.Wait()
	all, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	for _, r := range rings {
		sealed, err := r.Seal("acme", "t", "c", "1", nil)
		is.NoErr(err)
		_, err = all.Open("acme", "t", "c", "1", sealed)
		is.NoErr(err)
	}
}

// TestCutShortRotation: an interrupted rotation does not change the ring, and the error of the next
// one says what to do.
func TestCutShortRotation(t *testing.T) {
	is, path := is.New(t), filepath.Join(t.TempDir(), "keys")
	before, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	is.NoErr(os.WriteFile(path+".new", nil, 0o600))
	_, err = keyring.Rotate(path)
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.Equal(errs.CodeOf(keyring.Retire(path)), errs.Conflict)
	is.True(strings.Contains(errs.MessageOf(err), path+".new"))
	after, err := keyring.LoadOrCreate(path)
	is.NoErr(err)
	is.Equal(after.String(), before.String())
}
