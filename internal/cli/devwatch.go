package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// The interval between two checks of a folder for changes, and the time without changes before they
// are published, because editors and bundlers write several files. Checks take at most a twentieth
// of the time.
const (
	lookAgain = 300 * time.Millisecond
	settled   = 50 * time.Millisecond
)

// watch updates the app at the beginning and after each change, until ctx ends. It checks the files
// itself, because no operating system reports changes on all file systems, such as those of a
// container's host.
func (d *dev) watch(ctx context.Context) error {
	published := ""
	for {
		begin := time.Now()
		now := d.fingerprint()
		took := time.Since(begin)
		if now != published {
			for last := ""; now != last; now = d.fingerprint() {
				if last = now; !pause(ctx, settled) {
					return nil
				}
			}
			published = now // changes during the push are found by the next check
			if err := d.update(ctx); err != nil && ctx.Err() == nil {
				if err := d.calls.print(d.problem(err) + "\n"); err != nil {
					return err
				}
			}
		}
		if !pause(ctx, max(lookAgain, 20*took)) {
			return nil
		}
	}
}

// pause waits for some time. It returns false if ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// fingerprint returns a text that changes with the sizes and times of the folder's files.
func (d *dev) fingerprint() string {
	sum := sha256.New()
	add := func(name string, info fs.FileInfo, err error) {
		if err != nil {
			fmt.Fprintf(sum, "%q %v\n", name, cause(err))
			return
		}
		fmt.Fprintf(sum, "%q %d %s %s\n", name, info.Size(), info.ModTime(), info.Mode())
	}
	_ = fs.WalkDir(d.folder.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			add(name, nil, err)
		case name == ".":
		case d.folder.ignoresOne(strings.Split(name, "/"), entry.IsDir()):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir():
			info, err := entry.Info()
			add(name, info, err)
		}
		return nil
	})
	info, err := d.folder.Stat(ignoreFile)
	add(ignoreFile, info, err)
	if d.EnvFile != "" {
		info, err := os.Stat(d.EnvFile)
		add("", info, err)
	}
	return string(sum.Sum(nil))
}

// setVariables sets the variables of the app to those in the file, if it exists.
func (d *dev) setVariables(ctx context.Context, id string) error {
	if d.EnvFile == "" {
		return nil
	}
	wanted, err := readVariables(d.EnvFile)
	if err != nil {
		return err
	}
	var has struct {
		Env map[string]string `json:"env"`
	}
	env := hal.Href("apps", id, "environment")
	if err := d.client.call(ctx, http.MethodGet, env, nil, &has); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(has.Env)) {
		if _, ok := wanted[name]; !ok {
			if err := d.client.call(
				ctx, http.MethodDelete, hal.Href("apps", id, "environment", name), nil, nil,
			); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := d.client.call(
			ctx, http.MethodPut, hal.Href("apps", id, "environment", name),
			map[string]string{"value": wanted[name]}, nil,
		); err != nil {
			return err
		}
	}
	return nil
}

// readVariables reads a file of lines NAME=VALUE. It ignores empty lines, those that begin with #,
// and export before a name. A value can be in quotes. In double quotes, \n, \", \$ and \\ stand for
// a line end and for the characters themselves.
func readVariables(file string) (map[string]string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "cannot read --env-file=%s: %v", file, cause(err))
	}
	all := map[string]string{}
	for i, line := range strings.Split(strings.TrimPrefix(string(raw), "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, errs.New(errs.Invalid, "%s:%d: this is no NAME=VALUE", file, i+1)
		}
		if all[name], ok = unquoted(strings.TrimSpace(value)); !ok {
			return nil, errs.New(errs.Invalid, "%s:%d: the value has no quote at its end", file, i+1)
		}
	}
	return all, nil
}

var escaped = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\$`, "$", `\\`, `\`)

// unquoted returns a value without its quotes, or, if it has no quotes, without a comment after it.
func unquoted(value string) (string, bool) {
	switch {
	case strings.HasPrefix(value, "'"):
		return strings.CutSuffix(value[1:], "'")
	case strings.HasPrefix(value, `"`):
		inner, ok := strings.CutSuffix(value[1:], `"`)
		return escaped.Replace(inner), ok
	}
	value, _, _ = strings.Cut(value, " #")
	return strings.TrimSpace(value), true
}

// position matches the beginning of errors that have a position in a file.
var position = regexp.MustCompile(`^([^\s:][^:]*):(\d+)(:\d+)?: `)

// problem returns the text of an error. Positions in files of the folder have their paths relative
// to the working directory.
func (d *dev) problem(err error) string {
	text := errs.MessageOf(err)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.message != "" {
		text = strings.ReplaceAll(refused.message, `\u000a`, "\n")
	} else if text == "" {
		text = err.Error()
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if m := position.FindStringSubmatch(line); m != nil {
			lines[i] = d.found(m[1]) + line[len(m[1]):]
		}
	}
	return strings.Join(lines, "\n")
}

// found returns the path of a file of the folder relative to the working directory, and other paths
// unchanged.
func (d *dev) found(name string) string {
	if path.IsAbs(name) {
		return name
	}
	if _, err := d.folder.Stat(filepath.FromSlash(name)); err != nil {
		return name
	}
	return filepath.Join(d.Folder, filepath.FromSlash(name))
}
