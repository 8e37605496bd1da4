package slapd

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoServer is the error on a machine without slapd.
var ErrNoServer = errors.New("slapd: no slapd with its schemas found: " +
	"`make test` installs it, as does `apt-get install slapd`; or name the program in SLAPD")

// The folders of packages: Debian, Red Hat, Alpine, Homebrew, OpenLDAP's make install.
var (
	binaries = []string{
		"/usr/sbin/slapd", "/usr/lib/openldap/slapd", "/usr/local/libexec/slapd",
		"/opt/homebrew/opt/openldap/libexec/slapd", "/usr/local/opt/openldap/libexec/slapd",
	}
	schemas = []string{
		"/etc/ldap/schema", "/etc/openldap/schema",
		"/usr/local/etc/openldap/schema", "/opt/homebrew/etc/openldap/schema",
	}
	modules = []string{
		"/usr/lib/ldap", "/usr/lib64/openldap", "/usr/lib/openldap", "/usr/local/libexec/openldap",
		"/opt/homebrew/opt/openldap/libexec/openldap", "/usr/local/opt/openldap/libexec/openldap",
	}
)

// installation has the paths of an installed OpenLDAP.
type installation struct {
	binary  string
	schema  string // folder
	modules string // folder; "": all modules are built in
}

// find looks for the program only in SLAPD if that is set, else in PATH and in the folders of
// packages.
func find() (installation, error) {
	in := installation{binary: os.Getenv("SLAPD")}
	if in.binary == "" {
		if p, err := exec.LookPath("slapd"); err == nil {
			in.binary = p
		} else {
			in.binary = first(binaries, "")
		}
	}
	if dir := filepath.Dir(first(schemas, "msuser.schema")); dir != "." {
		in.schema = dir
	}
	if dir := filepath.Dir(first(modules, "back_mdb.*")); dir != "." {
		in.modules = dir
	}
	if _, err := os.Stat(in.binary); err != nil || in.schema == "" {
		return in, ErrNoServer
	}
	return in, nil
}

// first returns the first path that exists, or "".
func first(paths []string, name string) string {
	for _, p := range paths {
		if found, _ := filepath.Glob(filepath.Join(p, name)); len(found) > 0 { // the only error is a malformed pattern
			return found[0]
		}
	}
	return ""
}

// unconfine copies the program to a folder. If AppArmor has a profile for slapd (Ubuntu), the
// program at its original path may not read files elsewhere.
func (in *installation) unconfine(folder string) error {
	if _, err := os.Stat("/etc/apparmor.d/usr.sbin.slapd"); err != nil {
		return nil
	}
	from, err := os.Open(in.binary)
	if err != nil {
		return err
	}
	defer from.Close()
	in.binary = filepath.Join(folder, "slapd")
	to, err := os.OpenFile(in.binary, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
