package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/errs"
)

type backupCommand struct {
	storage
	File string `arg:"" help:"File to write, which must not exist; - is the output." placeholder:"FILE"`
}

// Run copies the files of an embedded server, which may run meanwhile.
func (b *backupCommand) Run(ctx context.Context, t terminal) error {
	files, err := database.FilesOf(b.url(), b.Workspaces)
	if err != nil {
		return err
	}
	if err := b.find(); err != nil {
		return err
	}
	if b.File == "-" {
		return b.write(ctx, t, files, nil)
	}
	if there(b.File) {
		return errs.New(errs.Invalid, "%s exists already: a backup is written to a new file", b.File)
	}
	f, err := os.CreateTemp(filepath.Dir(b.File), ".backup-*.part")
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot write %s: %v", b.File, err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err = b.write(ctx, t, files, f); err == nil {
		err = f.Sync()
	}
	info, unknown := f.Stat()
	if err = errors.Join(err, unknown, f.Close()); err == nil {
		err = publish(f.Name(), b.File)
	}
	if err != nil {
		return err
	}
	return say(t, "Wrote %s, %s. The secret key is not in it: keep %s, too.", b.File, size(info.Size()).about(), cmp.Or(b.keyFile(), "TENANTCONTENT_SECRET_KEY"))
}

// write writes the backup to a file, nil for the output. Copies of databases are kept beside that file meanwhile.
func (b *backupCommand) write(ctx context.Context, t terminal, files database.Files, to *os.File) error {
	shown := t.progress()
	defer shown.finish()
	if to == nil {
		return database.Backup(ctx, files, t.out, "", shown.show)
	}
	return database.Backup(ctx, files, to, filepath.Dir(to.Name()), shown.show)
}

type restoreCommand struct {
	storage
	File string `arg:"" help:"File that backup has written; - is the input." placeholder:"FILE"`
}

// Run makes the files of an embedded server from a backup.
func (r *restoreCommand) Run(ctx context.Context, t terminal) error {
	files, err := database.FilesOf(r.url(), r.Workspaces)
	if err != nil {
		return err
	}
	from := t.in
	if r.File != "-" {
		f, err := os.Open(r.File)
		if err != nil {
			return errs.Wrap(errs.Invalid, err, "cannot read %s: %v", r.File, err)
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	if err := r.make(); err != nil {
		return err
	}
	shown := t.progress()
	err = database.Restore(ctx, from, files, shown.show)
	shown.finish()
	if err != nil {
		return err
	}
	if key := r.keyFile(); key != "" && !there(key) {
		return say(t, "Restored %s. Put the secret.key of the server that was backed up at %s before you start this one.", files.Database, key)
	}
	return say(t, "Restored %s.", files.Database)
}
