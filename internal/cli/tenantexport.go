package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
)

// passphrase is the passphrase with which a file with a tenant is encrypted. It is not a flag,
// because others can see the arguments of a process.
type passphrase struct {
	PassphraseFile string `env:"TENANTCONTENT_PASSPHRASE_FILE" help:"File whose first line is the passphrase (default: the variable TENANTCONTENT_PASSPHRASE, or it is asked for)." placeholder:"FILE"`
}

// read returns the passphrase.
func (p *passphrase) read(ctx context.Context, t terminal) (string, error) {
	if p.PassphraseFile != "" {
		text, err := os.ReadFile(p.PassphraseFile)
		if err != nil {
			return "", errs.Wrap(errs.Invalid, err, "--passphrase-file: %v", err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimRight(line, "\r"), nil
	}
	if text := os.Getenv("TENANTCONTENT_PASSPHRASE"); text != "" {
		return text, nil
	}
	if _, ok := t.keyboard(); !ok {
		return "", errs.New(
			errs.Invalid, "no passphrase: set TENANTCONTENT_PASSPHRASE, or name a file with --passphrase-file",
		)
	}
	return t.ask(ctx, "Passphrase: ")
}

type tenantExportCommand struct {
	storage
	passphrase
	ID                string `arg:"" help:"Id of the tenant."`
	File              string `arg:"" help:"File to write; it must not exist."`
	WithoutWorkspaces bool   `help:"Leave the SQL databases of apps behind. Those in a PostgreSQL do not travel."`
}

// Run writes to a temporary name until the file is complete.
func (e *tenantExportCommand) Run(ctx context.Context, t terminal) error {
	if there(e.File) {
		return errs.New(errs.Invalid, "%s exists already: name a new file", e.File)
	}
	secret, err := e.read(ctx, t)
	if err != nil {
		return err
	}
	return e.with(ctx, t, func(app *tenantcontent.App) error {
		if err := app.Lock(ctx, "tenant export"); err != nil { // it reads secrets
			return err
		}
		defer func() { _ = app.Unlock() }()
		file, err := os.CreateTemp(filepath.Dir(e.File), "."+filepath.Base(e.File)+"-*") // accessible only by its owner
		if err != nil {
			return errs.Wrap(errs.Invalid, err, "the file cannot be written: %v", err)
		}
		defer func() { _ = os.Remove(file.Name()) }()
		moved, err := e.write(ctx, t, app, file, secret)
		if closed := file.Close(); err == nil {
			err = closed
		}
		if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Path == file.Name() {
			return errs.Wrap(errs.Invalid, err, "%s cannot be written: %v", e.File, failed.Err)
		}
		if err != nil {
			return err
		}
		if err := publish(file.Name(), e.File); err != nil {
			return err
		}
		return errors.Join(
			say(
				t, "Wrote the tenant %s with %s to %s. Keep the passphrase: nothing opens the file without it.",
				e.ID, contents(moved), e.File,
			),
			sayLeft(t, moved),
		)
	})
}

// publish links a complete file to its name, unless another file has got that name since.
func publish(whole, name string) error {
	err := os.Link(whole, name)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errs.Wrap(errs.Invalid, err, "%s exists already: name a new file", name)
	case err != nil:
		return errs.Wrap(errs.Invalid, err, "%s cannot be written: %v", name, err)
	}
	return nil
}

func (e *tenantExportCommand) write(
	ctx context.Context, t terminal, app *tenantcontent.App, file *os.File, secret string,
) (tenantcontent.TenantMoved, error) {
	o, end := transferring(t, "exporting")
	defer end()
	o.Passphrase, o.WithoutWorkspaces = secret, e.WithoutWorkspaces
	w := bufio.NewWriterSize(file, 1<<20)
	moved, err := app.ExportTenant(ctx, e.ID, w, o)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	return moved, err
}

// contents describes how much was moved.
func contents(moved tenantcontent.TenantMoved) string {
	text := fmt.Sprintf("%d rows", moved.Rows)
	switch {
	case moved.Workspaces == 1:
		text += " and 1 SQL database of an app"
	case moved.Workspaces > 1:
		text += fmt.Sprintf(" and %d SQL databases of apps", moved.Workspaces)
	}
	return text
}

// sayLeft prints what was not moved.
func sayLeft(t terminal, moved tenantcontent.TenantMoved) (err error) {
	for _, what := range moved.Left {
		err = errors.Join(err, say(t, "Not moved: %s.", harmless(what)))
	}
	return err
}

// transferring returns options that show the number of rows, and a function that ends that.
func transferring(t terminal, what string) (o tenantcontent.TenantTransfer, end func()) {
	p, rows := t.progress(), 0
	p.begin(what, 0)
	o.Progress = func(n int) {
		rows += n
		p.name(fmt.Sprintf("%s, %d rows", what, rows))
	}
	return o, p.finish
}
