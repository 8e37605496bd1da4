package sqlite

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/gofrs/flock"
)

// A scratch is a folder for the files of a backup that runs. Its process holds a lock in it, so
// that the next backup knows the folder of one that was killed, and removes it.
type scratch struct {
	path string
	lock *flock.Flock
}

const (
	scratchLock = "lock"
	// scratchMark is in the file of the lock once it is held: a folder without it may be about to
	// be locked, or somebody else's.
	scratchMark = "tenantcontent backup\n"
)

var scratchName = regexp.MustCompile(`^\.backup-\d+$`)

// newScratch makes a scratch in a folder, "" for that of temporary files, and removes what killed
// backups have left there.
func newScratch(in string) (*scratch, error) {
	if in == "" {
		in = os.TempDir()
	}
	removeLeftovers(in)
	path, err := os.MkdirTemp(in, ".backup-*")
	if err != nil {
		return nil, err
	}
	s := &scratch{path, flock.New(filepath.Join(path, scratchLock), flock.SetPermissions(0o600))}
	if _, err := s.lock.TryLock(); err != nil {
		_ = s.remove()
		return nil, err
	}
	if err := os.WriteFile(s.lock.Path(), []byte(scratchMark), 0o600); err != nil {
		_ = s.remove()
		return nil, err
	}
	return s, nil
}

func (s *scratch) file(name string) string { return filepath.Join(s.path, name) }

// remove removes the folder. The lock ends last, so that nobody else removes it meanwhile.
func (s *scratch) remove() error {
	err := os.RemoveAll(s.path)
	_ = s.lock.Close()
	return err
}

// removeLeftovers removes the scratches of processes that are gone. What cannot be removed stays,
// such as that of another user.
func removeLeftovers(in string) {
	found, err := os.ReadDir(in)
	if err != nil {
		return
	}
	for _, entry := range found {
		if !entry.IsDir() || !scratchName.MatchString(entry.Name()) {
			continue
		}
		s := &scratch{path: filepath.Join(in, entry.Name())}
		file := s.file(scratchLock)
		if text, err := os.ReadFile(file); err != nil || string(text) != scratchMark {
			continue
		}
		s.lock = flock.New(file, flock.SetFlag(os.O_RDWR))
		if held, err := s.lock.TryLock(); err == nil && held {
			_ = s.remove()
		}
	}
}
