package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/tenantcontent/tenantcontent/errs"
)

// appCommands copy the files of an app between a folder and a running server.
type appCommands struct {
	client

	Push appPushCommand `cmd:"" help:"Send what has changed in a folder to its app, publish it, and run its handlers from then on. Ignored are node_modules, .git, .env, .env.*, .DS_Store, ._*, Thumbs.db, desktop.ini and what .tenantcontentignore lists, as .gitignore does."`
	Pull appPullCommand `cmd:"" help:"Write what has changed in an app to a folder. Files that were changed here since the last push or pull are not overwritten."`
}

// target returns the id or natural id of the app of a folder, or "". given is the value of the
// flag. It returns an error in order not to send the token to another server that the folder names,
// or the files of a folder to the wrong server.
func (a *appCommands) target(f *appFolder, given string) (string, error) {
	server, err := a.address()
	switch {
	case err != nil:
		return "", err
	case f.state.App == "":
		return given, nil
	case f.state.Server != server:
		return "", errs.New(errs.Invalid,
			"%s is of the app %s at %s, and this is for %s: give --server=%[3]s if your token is for it, or "+
				"remove %[5]s to use the folder for another app",
			harmless(f.Name()), harmless(f.state.App), harmless(f.state.Server), server, f.at(stateFile))
	}
	return cmp.Or(given, f.state.App), nil
}

// check refuses an app that is a draft, or not the app of the folder. given is the value of the
// flag.
func (f *appFolder) check(given, tenant, id string, editingID *string) error {
	switch {
	case f.state.Tenant != "" && tenant != f.state.Tenant:
		return errs.New(errs.Invalid,
			"%s is of the app %s of the tenant %s, and your token is of the tenant %s: take a token of the tenant "+
				"%[3]s, or remove %[5]s to use the folder for another app",
			harmless(f.Name()), harmless(f.state.App), harmless(f.state.Tenant), harmless(tenant), f.at(stateFile))
	case editingID != nil:
		return errs.New(errs.Invalid, "--app=%s is a draft: name its app, %s", given, harmless(*editingID))
	case f.state.App != "" && f.state.App != id:
		return errs.New(errs.Invalid,
			"%s is of the app %s: leave out --app=%s, or remove %s to use the folder for another app",
			harmless(f.Name()), harmless(f.state.App), given, f.at(stateFile))
	}
	return nil
}

// unknown replaces the error for an app that does not exist by one that names its source in the
// folder. given is the value of the flag.
func (f *appFolder) unknown(given string, err error) error {
	refused, ok := errors.AsType[*refusal](err)
	switch {
	case !ok || refused.code != http.StatusNotFound:
		return err
	case f.state.App == "":
		return errs.Wrap(
			errs.NotFound, err,
			"the server has no app %s that you can see: a push without --app makes a new one", harmless(given),
		)
	}
	return errs.Wrap(
		errs.NotFound, err, "%v The folder is of the app %s%s: remove %s to use it for another one.", err,
		harmless(f.state.App), ofTenant(f.state.Tenant), f.at(stateFile),
	)
}

// ofTenant returns the name of a tenant in the form in which it follows that of an app, or "".
func ofTenant(tenant string) string {
	if tenant == "" {
		return ""
	}
	return " of the tenant " + harmless(tenant)
}

// outcome prints what is done with files.
type outcome struct {
	mu    sync.Mutex
	t     terminal
	quiet bool     // print nothing
	shown bool     // a progress line is on the terminal: lines wait for its end
	lines []string // waiting lines
}

// file prints a file after a sign: + is new, ~ has changed, - is removed.
func (o *outcome) file(sign, path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, sign+" "+harmless(path))
	if !o.shown {
		o.flush()
	}
}

// flush prints the waiting lines.
func (o *outcome) flush() {
	for _, line := range o.lines {
		if !o.quiet {
			_ = say(o.t, "%s", line)
		}
	}
	o.lines = nil
}

// listedPaths returns the first of some paths, one on each line.
func listedPaths(paths []string) string {
	const most = 20
	var b strings.Builder
	for i, path := range paths {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more", len(paths)-most)
			break
		}
		b.WriteString("\n  " + harmless(path))
	}
	return b.String()
}

// stopped returns the error of a command that Ctrl-C has ended, with what was done until then. It
// includes err if that has another cause.
func stopped(ctx context.Context, err error, what string) error {
	if own, ok := errors.AsType[interrupted](err); ok {
		return own
	}
	if interruption(ctx, err) != nil {
		return interrupted(what)
	}
	return err
}
