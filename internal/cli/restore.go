package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

type restoreCommand struct {
	storage
	File    string `arg:"" help:"File that backup has written; - is the input." placeholder:"FILE"`
	Salvage bool   `help:"Take what can be read of a backup that is damaged, or of a damaged database, and count what cannot."`
}

// Run creates the files of an embedded server from a backup.
func (r *restoreCommand) Run(ctx context.Context, t terminal) error {
	files, err := engines.Files(r.url(), r.Workspaces)
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
	if r.Salvage {
		found, failed := sqlite.Salvage(ctx, from, files, shown.show)
		shown.finish()
		err = errors.Join(failed, tellSalvaged(t, found))
	} else {
		err = sqlite.Restore(ctx, from, files, shown.show)
		shown.finish()
	}
	if err != nil {
		return err
	}
	if key := r.keyFile(); key != "" && !there(key) {
		return say(
			t,
			"Restored %s. Put the secret.key of the server that was backed up at %s before you start this one.",
			files.Database, key,
		)
	}
	return say(t, "Restored %s.", files.Database)
}

// tellSalvaged prints what was salvaged, and what was lost.
func tellSalvaged(t terminal, found *sqlite.Salvaged) (err error) {
	for _, note := range found.Notes {
		err = errors.Join(err, say(t, "Damaged: %s.", note))
	}
	for _, d := range found.Databases {
		if d.Err != nil {
			err = errors.Join(err, say(t, "%s: nothing could be read: %v.", d.Name, d.Err))
			continue
		}
		var taken, lost, removed int64
		for _, table := range d.Tables {
			taken, lost, removed = taken+table.Taken, lost+table.Lost, removed+table.Removed
			if table.Damaged > 0 || table.Removed > 0 {
				err = errors.Join(err, say(t, "%s: %s: %d rows taken, %s, %d removed because they refer to lost ones.",
					d.Name, table.Table, table.Taken, lostRows(table), table.Removed))
			}
		}
		err = errors.Join(err, say(t, "%s: %d rows taken, at least %d lost, %d removed.", d.Name, taken, lost, removed))
	}
	if len(found.Databases) == 0 && len(found.Notes) == 0 {
		err = errors.Join(err, say(t, "Nothing in the backup is damaged."))
	}
	return err
}

// lostRows returns a text with the number of unreadable rows of a table. Without an undamaged index
// the number is not known.
func lostRows(t sqlite.SalvagedTable) string {
	switch {
	case t.Damaged == 0:
		return "none lost"
	case t.Lost == 0:
		return fmt.Sprintf("an unknown number lost at %d places", t.Damaged)
	}
	return fmt.Sprintf("%d lost at %d places", t.Lost, t.Damaged)
}
