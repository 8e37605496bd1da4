//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// elsewhere are folders of packages that PATH usually lacks: Debian, PGDG on Red Hat, Alpine,
// Homebrew.
var elsewhere = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
}

// serverBin returns the folder of the server binaries: only PG_BIN if that is set, else the one in
// PATH, else the newest in elsewhere.
func serverBin() (string, error) {
	if dir := os.Getenv("PG_BIN"); dir != "" {
		if !hasServer(dir) {
			return "", fmt.Errorf("%w (PG_BIN=%s)", ErrNoServer, dir)
		}
		return dir, nil
	}
	if p, err := exec.LookPath("postgres"); err == nil {
		// Resolved, because a link in PATH may be without the rest of its installation.
		if p, err = filepath.EvalSymlinks(p); err == nil && hasServer(filepath.Dir(p)) {
			return filepath.Dir(p), nil
		}
	}
	var dirs []string
	for _, pattern := range elsewhere {
		found, _ := filepath.Glob(pattern) // the only error is a malformed pattern
		dirs = append(dirs, found...)
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !hasServer(dir) })
	if len(dirs) == 0 {
		return "", ErrNoServer
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return int(10 * (version(a) - version(b))) }), nil
}

// Program returns the path of a program of the newest PostgreSQL, such as pg_dump. It returns
// ErrNoServer on a machine without PostgreSQL.
func Program(name string) (string, error) {
	bin, err := serverBin()
	return filepath.Join(bin, name), err
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// version returns the number in a folder's name: 15 for /usr/lib/postgresql/15/bin, or 0.
func version(dir string) float64 {
	v, _ := strconv.ParseFloat(number.FindString(dir), 64)
	return v
}
